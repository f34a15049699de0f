#include "controllers/capacity_guard.h"

#include "api/meta.h"
#include "base/strings.h"
#include "controllers/pod_facts.h"
#include "controllers/sched_convert.h"

namespace swell::controllers {
namespace {

std::map<std::string, int64_t> Flat(const sched::Resources& resources) {
  std::map<std::string, int64_t> flat = resources.extended;
  if (resources.cpu_milli > 0) flat["cpu"] = resources.cpu_milli;
  if (resources.memory_bytes > 0) flat["memory"] = resources.memory_bytes;
  if (resources.ephemeral_bytes > 0) flat["ephemeral-storage"] = resources.ephemeral_bytes;
  return flat;
}

}  // namespace

CapacityGuard::CapacityGuard(Context context)
    : pods_(context.informers.Of(client::resources::kPods)),
      nodes_(context.informers.Of(client::resources::kNodes)) {}

Status CapacityGuard::CheckBind(const json::Value& pod, const std::string& node) const {
  json::SharedValue node_object = nodes_.Get(node);
  const json::Value* spec = json::Find(pod, {"spec"});
  if (!node_object || spec == nullptr) return Status::Ok();
  sched::Resources allocatable = ToNodeInfo(*node_object).allocatable;
  std::map<std::string, int64_t> free = Flat(allocatable);
  int64_t pods_free = allocatable.pods;
  for (const json::SharedValue& other : pods_.ByIndex("node", node)) {
    if (HasEnded(*other) || api::Uid(*other) == api::Uid(pod)) continue;
    --pods_free;
    const json::Value* other_spec = json::Find(*other, {"spec"});
    if (other_spec == nullptr) continue;
    for (const auto& [name, amount] : Flat(PodRequests(*other_spec))) free[name] -= amount;
  }
  if (pods_free < 1) {
    return Status(Code::kConflict, StrCat("node ", Quote(node), " has no room for another pod"));
  }
  for (const auto& [name, amount] : Flat(PodRequests(*spec))) {
    if (amount <= free[name]) continue;
    return Status(Code::kConflict,
                  StrCat("pod ", Quote(api::KeyOf(pod)), " asks for ", amount, " ", name,
                         name == "cpu" ? " (milli)" : "", ", node ", Quote(node), " has ",
                         std::max<int64_t>(0, free[name]), " free"));
  }
  return Status::Ok();
}

}  // namespace swell::controllers
