#include "ops/nodes/node_gpus.h"

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/device_claim.h"
#include "kube/api/objects/pod.h"
#include "kube/node/devices/gpu_env.h"
#include "kube/process/machine/virtual_smi.h"

namespace swell::ops {
namespace {

constexpr int64_t kGpusMax = 4096;

struct Usage {
  double cores = 0;
  int64_t memory_bytes = 0;
};

api::Quantity Amount(const json::Value& object, json::Path path) {
  const json::Value* found = json::Find(object, path);
  if (found == nullptr) return {};
  auto quantity = api::Quantity::FromJson(*found);
  return quantity.ok() ? *quantity : api::Quantity();
}

// By "namespace/pod/container".
std::map<std::string, Usage> ReadUsage(const json::Value& list) {
  std::map<std::string, Usage> out;
  for (const json::Value& pod : json::GetArray(list, {"items"})) {
    for (const json::Value& container : json::GetArray(pod, {"containers"})) {
      const std::string key = StrCat(api::Namespace(pod), "/", api::Name(pod), "/",
                                     json::GetString(container, {"name"}));
      out[key] = {static_cast<double>(Amount(container, {"usage", "cpu"}).MilliValue()) / 1000,
                  Amount(container, {"usage", "memory"}).Value()};
    }
  }
  return out;
}

// Virtual nodes say nothing of real GPUs, and only Swell's own runtimes have virtual ones.
Status CheckVirtual(const json::Value& node) {
  const std::string name(api::Name(node));
  const std::string_view runtime =
      json::GetString(node, {"status", "nodeInfo", "containerRuntimeVersion"});
  // For a container engine, our agents write down what pods lack with it.
  const bool ours = runtime.starts_with("process://") || runtime.starts_with("simulated://") ||
                    !api::Annotation(node, api::keys::kRuntimeLimits).empty();
  if (!ours || api::Label(node, "nvidia.com/gpu.present") == "true") {
    return Status(Code::kInvalid, StrCat("node ", Quote(name),
                                         " has no virtual GPUs; run nvidia-smi on that machine, "
                                         "or in a pod: swell exec POD -- nvidia-smi"));
  }
  return Status::Ok();
}

struct Holder {
  const json::Value& pod;
  const json::Value& container;
  std::vector<std::string> ids;  // of the devices that it sees
};

std::vector<Holder> HoldersOf(const json::Value& pod) {
  std::vector<Holder> out;
  std::vector<std::string> devices;
  for (std::string_view id : Split(api::Annotation(pod, api::keys::kGpuDevices), ',')) {
    if (!Trim(id).empty()) devices.emplace_back(Trim(id));
  }
  // Those of claims come last. Which container uses which is known to the node alone.
  const node::Amounts asked = node::PodRequests(pod);
  const auto whole = asked.find(node::kGpuResource);
  node::PodGpus gpus;
  if (api::HasDeviceClaims(pod)) {
    const auto own = static_cast<size_t>(whole == asked.end() ? 0 : whole->second);
    while (devices.size() > own) {
      gpus.claimed.push_back(std::move(devices.back()));
      devices.pop_back();
    }
  }
  gpus.devices = std::move(devices);
  for (const json::Value& container : json::GetArray(pod, {"spec", "containers"})) {
    node::EnvList env;
    node::PodGpus its = gpus;
    if (api::ContainerClaims(container).empty()) its.claimed.clear();
    auto ids = node::AddGpuEnv(pod, json::GetString(container, {"name"}), its, env);
    if (!ids.empty()) out.push_back({pod, container, std::move(ids)});
  }
  return out;
}

int64_t HeldMilli(const json::Value& node, const json::Value& container) {
  const int64_t limit = Amount(container, {"resources", "limits", "cpu"}).MilliValue();
  if (limit > 0) return limit;
  const int64_t request = Amount(container, {"resources", "requests", "cpu"}).MilliValue();
  return request > 0 ? request : Amount(node, {"status", "capacity", "cpu"}).MilliValue();
}

}  // namespace

Result<NodeGpus> DescribeNodeGpus(const json::Value& node,
                                  const std::vector<json::SharedValue>& pods,
                                  const json::Value& usage) {
  SWELL_RETURN_IF_ERROR(CheckVirtual(node));
  const node::Amounts allocatable = node::ReadAmounts(json::Find(node, {"status", "allocatable"}));
  node::NodeConfig config;
  config.name = api::Name(node);
  for (const auto& label : api::Labels(node)) {
    if (label.value().is_string()) {
      config.labels[std::string(label.key())] = json::View(label.value().get_string());
    }
  }
  node::EnvList env;
  node::AddVirtualGpuEnv(config, allocatable, env);
  std::vector<process::VirtualGpu> gpus;
  const int64_t count =
      std::min(kGpusMax, Amount(node, {"status", "capacity", node::kGpuResource}).Value());
  for (int i = 0; i < count; ++i) {
    gpus.push_back(process::MakeVirtualGpu(i, config.name, std::to_string(i), env));
  }
  const std::map<std::string, Usage> used = ReadUsage(usage);
  NodeGpus out;
  for (const json::SharedValue& pod : pods) {
    if (api::NodeName(*pod) != config.name || !api::IsActive(*pod)) continue;
    for (const Holder& holder : HoldersOf(*pod)) {
      const std::string name = StrCat(api::Namespace(*pod), "/", api::Name(*pod), "/",
                                      json::GetString(holder.container, {"name"}));
      const auto known = used.find(name);
      const Usage now = known == used.end() ? Usage() : known->second;
      for (const std::string& id : holder.ids) {
        const auto at = ParseInt(id);
        if (!at || *at < 0 || *at >= static_cast<int64_t>(gpus.size())) continue;
        const int64_t mib = process::AddUse(gpus[static_cast<size_t>(*at)],
                                            {.cores = now.cores,
                                             .held_milli = HeldMilli(node, holder.container),
                                             .memory_bytes = now.memory_bytes,
                                             .gpus = holder.ids.size()});
        out.programs += StrCat(*at, "|-|", name, "|", mib, "\n");
      }
    }
  }
  out.devices = process::PrintVirtualGpus(gpus);
  return out;
}

}  // namespace swell::ops
