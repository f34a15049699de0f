#include "cli/slurm/partitions.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::cli::slurm {
namespace {

bool Selects(const json::Value& pool, const json::Value& node) {
  const json::Object& labels = json::GetObject(pool, {"spec", "nodeSelector"});
  return std::all_of(labels.begin(), labels.end(), [&node](const auto& label) {
    const std::string_view key(label.key().data(), label.key().size());
    return label.value().is_string() &&
           api::Label(node, key) == json::View(label.value().get_string());
  });
}

}  // namespace

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
        if (Selects(*pool, *node.object)) one.nodes.push_back(&node);
      }
      all.push_back(std::move(one));
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Partition& a, const Partition& b) { return a.name < b.name; });
  Partition usual{.name = "all", .usual = true};
  for (const NodeView& node : nodes) {
    // Where pods go only if they tolerate it is nobody's partition.
    if (node.role != "master") usual.nodes.push_back(&node);
  }
  all.push_back(std::move(usual));
  return all;
}

NodeState StateOf(const NodeView& node) {
  const bool used = node.used.milli_gpus > 0 || node.used.milli_cpu > 0 || !node.pods.empty();
  if (!node.ready) return {"down", "down", false};
  if (node.unschedulable) {
    return used ? NodeState{"drng", "draining", false} : NodeState{"drain", "drained", false};
  }
  if (!used) return {"idle", "idle"};
  const bool gpus_gone = node.total.milli_gpus > 0 && node.used.milli_gpus >= node.total.milli_gpus;
  const bool cpus_gone = node.total.milli_cpu > 0 && node.used.milli_cpu >= node.total.milli_cpu;
  return gpus_gone || cpus_gone ? NodeState{"alloc", "allocated"} : NodeState{"mix", "mixed"};
}

std::string GresOf(const NodeView& node) {
  if (node.gpus() == 0) return "(null)";
  return node.gpu_type.empty() ? StrCat("gpu:", node.gpus())
                               : StrCat("gpu:", node.gpu_type, ":", node.gpus());
}

}  // namespace swell::cli::slurm
