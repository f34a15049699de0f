#include "cli/slurm/partitions.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "cli/slurm/job_info.h"
#include "cli/slurm/slurm_keys.h"
#include "cli/slurm/values.h"
#include "cli/views/node_faults.h"
#include "cli/views/own_namespaces.h"
#include "cli/views/project_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/selector.h"

namespace swell::cli::slurm {
Result<std::vector<NodeView>> ReadNodesToShow(Session& session,
                                              Api& api,
                                              const std::vector<std::string>& names) {
  auto nodes = ReadShownNodes(session, api, names);
  if (!nodes.ok()) return ExplainInJob(session, nodes.status());
  return nodes;
}

Status CheckPartitions(std::string_view flag,
                       const std::string& list,
                       const std::vector<Partition>& partitions) {
  std::vector<std::string> names;
  for (const Partition& one : partitions) names.push_back(one.name);
  for (const std::string& name : CommaList(list)) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return Status(Code::kNotFound, StrCat(flag, " ", Quote(name),
                                          ": Invalid partition; available: ", Join(names, ", ")));
  }
  return Status::Ok();
}

Result<std::vector<Partition>> ReadPartitions(Api& api, const std::vector<NodeView>& nodes) {
  std::vector<Partition> all;
  auto pools = api.List(client::resources::kNodePools, "");
  if (!pools.ok() && pools.status().code() != Code::kNotFound &&
      pools.status().code() != Code::kForbidden) {
    return pools.status();
  }
  if (pools.ok()) {
    for (const json::SharedValue& pool : *pools) {
      Partition one{.name = std::string(api::Name(*pool))};
      for (const NodeView& node : nodes) {
        if (api::HasLabels(*node.object, json::GetObject(*pool, {"spec", "nodeSelector"})))
          one.nodes.push_back(&node);
      }
      all.push_back(std::move(one));
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Partition& a, const Partition& b) { return a.name < b.name; });
  const bool taken = std::any_of(all.begin(), all.end(),
                                 [](const Partition& one) { return one.name == kAllPartition; });
  if (taken) return all;
  Partition usual{.name = std::string(kAllPartition), .usual = true};
  for (const NodeView& node : nodes) {
    // Nodes with a taint for all usual pods are in no partition.
    if (node.role != "master") usual.nodes.push_back(&node);
  }
  all.push_back(std::move(usual));
  return all;
}

NodeState StateOf(const NodeView& node) {
  const bool used = node.used.milli_gpus > 0 || node.used.milli_cpu > 0 || !node.pods.empty();
  if (!node.ready) return {"down", "down", false};
  if (node.unschedulable || node.unhealthy) {
    return used ? NodeState{"drng", "draining", false} : NodeState{"drain", "drained", false};
  }
  if (!used) return {"idle", "idle"};
  const bool gpus_gone = node.total.milli_gpus > 0 && node.used.milli_gpus >= node.total.milli_gpus;
  const bool cpus_gone = node.total.milli_cpu > 0 && node.used.milli_cpu >= node.total.milli_cpu;
  return gpus_gone || cpus_gone ? NodeState{"alloc", "allocated"} : NodeState{"mix", "mixed"};
}

std::string ReasonOf(const NodeView& node) {
  const NodeHealthState health = HealthOfNode(*node.object);
  if ((node.unhealthy || !node.ready) && !health.faults.empty()) return health.faults;
  if (StateOf(node).usable) return "none";
  const std::string_view said = api::Annotation(*node.object, kDrainReason);
  return node.unschedulable && !said.empty() ? std::string(said) : node.StatusWord();
}

namespace {

std::string GresText(const NodeView& node, const std::string& gpus) {
  if (node.gpus() == 0) return "(null)";
  return node.gpu_type.empty() ? StrCat("gpu:", gpus) : StrCat("gpu:", node.gpu_type, ":", gpus);
}

}  // namespace

std::string GresOf(const NodeView& node) { return GresText(node, std::to_string(node.gpus())); }

std::string GresUsedOf(const NodeView& node) {
  return GresText(node, GpuText(node.used.milli_gpus));
}

}  // namespace swell::cli::slurm
