#include "cli/views/node_view.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "base/strings.h"
#include "cli/views/job_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/device_claim.h"
#include "kube/api/objects/node.h"
#include "kube/api/objects/node_health.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

constexpr std::string_view kRole = "node-role.kubernetes.io/";

api::Quantity QuantityAt(const json::Value& root, json::Path path) {
  if (const json::Value* amount = json::Find(root, path)) {
    auto quantity = api::Quantity::FromJson(*amount);
    if (quantity.ok()) return *quantity;
  }
  return {};
}

std::string RoleOf(const json::Value& node) {
  std::vector<std::string> roles;
  for (const auto& label : api::Labels(node)) {
    std::string_view key(label.key().data(), label.key().size());
    if (key.starts_with(kRole) && key.size() > kRole.size()) {
      roles.emplace_back(key.substr(kRole.size()));
    }
  }
  // A control-plane node is called master as well; older tools knew that name alone.
  if (std::find(roles.begin(), roles.end(), "master") != roles.end()) {
    std::erase(roles, "control-plane");
  }
  std::sort(roles.begin(), roles.end());
  return roles.empty() ? "<none>" : Join(roles, ",");
}

NodeView ViewNode(json::SharedValue object) {
  const json::Value& node = *object;
  NodeView view;
  view.name = api::Name(node);
  view.role = RoleOf(node);
  view.ready = api::ConditionIsTrue(node, "Ready");
  view.unschedulable = api::IsUnschedulable(node);
  for (const api::Taint& taint : api::TaintsOf(node)) {
    view.unhealthy |= taint.key == api::keys::kUnhealthyTaint;
  }
  view.total.milli_cpu = QuantityAt(node, {"status", "allocatable", "cpu"}).MilliValue();
  view.total.memory = QuantityAt(node, {"status", "allocatable", "memory"}).Value();
  const int64_t healthy = QuantityAt(node, {"status", "allocatable", api::kGpuResource}).Value();
  const int64_t gpus =
      std::max(QuantityAt(node, {"status", "capacity", api::kGpuResource}).Value(), healthy);
  view.total.milli_gpus = gpus * 1000;
  // Its agent may have named one before it lowers what is allocatable.
  view.unhealthy_gpus = std::min(
      gpus, std::max(gpus - healthy, static_cast<int64_t>(api::UnhealthyGpus(node).size())));
  view.gpu_type = api::Label(node, "nvidia.com/gpu.product");
  view.address = api::InternalIp(node);
  view.object = std::move(object);
  return view;
}

// Those of these names, all for none.
Result<std::vector<NodeView>> Choose(std::vector<NodeView> all,
                                     const std::vector<std::string>& names) {
  if (names.empty()) return all;
  for (const std::string& name : names) {
    const bool there = std::any_of(all.begin(), all.end(),
                                   [&name](const auto& view) { return view.name == name; });
    if (there) continue;
    return Status(Code::kNotFound, StrCat("node ", Quote(name), " not found"));
  }
  std::erase_if(all, [&names](const NodeView& view) {
    return std::find(names.begin(), names.end(), view.name) == names.end();
  });
  return all;
}

// Devices that pods share by a claim, of each pod but one.
int64_t RepeatedDevices(const std::vector<json::SharedValue>& pods) {
  std::set<std::string_view> seen;
  int64_t repeated = 0;
  for (const json::SharedValue& pod : pods) {
    if (!api::HasDeviceClaims(*pod)) continue;
    for (std::string_view device : Split(api::Annotation(*pod, api::keys::kGpuDevices), ',')) {
      repeated += seen.insert(device).second ? 0 : 1;
    }
  }
  return repeated;
}

}  // namespace

void Amounts::AddPod(const json::Value& pod) {
  const api::Amounts requests = api::HeldAmounts(pod);
  if (const auto cpu = requests.find("cpu"); cpu != requests.end()) {
    milli_cpu += cpu->second.MilliValue();
  }
  if (const auto bytes = requests.find("memory"); bytes != requests.end()) {
    memory += bytes->second.Value();
  }
  milli_gpus += MilliGpus(pod);
}

void Amounts::Add(const Amounts& more) {
  milli_cpu += more.milli_cpu;
  memory += more.memory;
  milli_gpus += more.milli_gpus;
}

std::string NodeView::StatusWord() const {
  return StrCat(ready ? "Ready" : "NotReady", unschedulable ? ",SchedulingDisabled" : "",
                unhealthy ? ",Unhealthy" : "");
}

int64_t NodeView::FreeMilliGpus() const {
  int64_t held = used.milli_gpus;
  int64_t taken_out = unhealthy_gpus * 1000;
  if (unhealthy_gpus > 0) {
    // What pods hold of unhealthy GPUs counts once.
    const std::vector<int> bad = api::UnhealthyGpus(*object);
    for (const json::SharedValue& pod : pods) {
      const auto devices = api::Annotation(*pod, api::keys::kGpuDevices);
      if (devices.empty()) continue;
      const auto parts = Split(devices, ',');
      const int64_t each = MilliGpus(*pod) / static_cast<int64_t>(parts.size());
      for (std::string_view part : parts) {
        const auto index = ParseInt(Trim(part));
        const bool is_bad = index && std::find(bad.begin(), bad.end(), *index) != bad.end();
        if (is_bad) held -= each;
      }
    }
  }
  return std::max<int64_t>(0, total.milli_gpus - taken_out - std::max<int64_t>(0, held));
}

std::vector<NodeView> ViewNodes(std::vector<json::SharedValue> nodes,
                                const std::vector<json::SharedValue>& pods) {
  std::map<std::string, NodeView, std::less<>> by_name;
  for (json::SharedValue& node : nodes) {
    NodeView view = ViewNode(std::move(node));
    by_name[view.name] = std::move(view);
  }
  for (const json::SharedValue& pod : pods) {
    auto node = by_name.find(api::NodeName(*pod));
    if (node == by_name.end() || api::HasEnded(*pod)) continue;
    node->second.used.AddPod(*pod);
    node->second.pods.push_back(pod);
  }
  std::vector<NodeView> views;
  for (auto& [name, view] : by_name) {
    view.used.milli_gpus -= 1000 * RepeatedDevices(view.pods);
    views.push_back(std::move(view));
  }
  return views;
}

Result<std::vector<NodeView>> ReadNodes(Api& api) { return ReadNodes(api, {}); }

Result<std::vector<NodeView>> ReadNodes(Api& api, const std::vector<std::string>& names) {
  auto pods = api.List(client::resources::kPods, "");
  if (!pods.ok()) return pods.status().WithContext("pods on the nodes");
  SWELL_ASSIGN_OR_RETURN(auto nodes, api.List(client::resources::kNodes, ""));
  return Choose(ViewNodes(std::move(nodes), *pods), names);
}

Result<std::vector<NodeView>> ReadNodesWithPodsOf(Api& api,
                                                  const std::vector<std::string>& names,
                                                  const std::set<std::string>& namespaces) {
  std::vector<json::SharedValue> pods;
  for (const std::string& ns : namespaces) {
    auto inside = api.List(client::resources::kPods, ns);
    if (!inside.ok() && inside.status().code() == Code::kForbidden) continue;
    if (!inside.ok()) return inside.status();
    pods.insert(pods.end(), inside->begin(), inside->end());
  }
  SWELL_ASSIGN_OR_RETURN(auto nodes, api.List(client::resources::kNodes, ""));
  return Choose(ViewNodes(std::move(nodes), pods), names);
}

std::string CpuText(int64_t milli) {
  return milli % 1000 == 0 ? std::to_string(milli / 1000) : StrCat(milli, "m");
}

std::string MemoryText(int64_t bytes) {
  constexpr int64_t kMi = 1 << 20;
  constexpr int64_t kGi = 1024 * kMi;
  if (bytes >= 10 * kGi) return StrCat(bytes / kGi, "Gi");
  return StrCat(bytes / kMi, "Mi");
}

}  // namespace swell::cli
