#include "controllers/capacity_guard.h"

#include <algorithm>

#include "api/meta.h"
#include "base/strings.h"
#include "controllers/pod_facts.h"
#include "controllers/sched_convert.h"

namespace swell::controllers {
namespace {

constexpr Duration kApprovedFor = std::chrono::seconds(10);

std::map<std::string, int64_t> Flat(const sched::Resources& resources) {
  std::map<std::string, int64_t> flat = resources.extended;
  if (resources.cpu_milli > 0) flat["cpu"] = resources.cpu_milli;
  if (resources.memory_bytes > 0) flat["memory"] = resources.memory_bytes;
  if (resources.ephemeral_bytes > 0) flat["ephemeral-storage"] = resources.ephemeral_bytes;
  return flat;
}

}  // namespace

CapacityGuard::CapacityGuard(Context context)
    : clock_(context.clock),
      pods_(context.informers.Of(client::resources::kPods)),
      nodes_(context.informers.Of(client::resources::kNodes)) {
  // A pod that comes and goes between two bindings must not be remembered as on its way.
  auto settle = [this, alive = std::weak_ptr<bool>(alive_)](const json::SharedValue& pod) {
    if (alive.expired() || json::GetString(*pod, {"spec", "nodeName"}).empty()) return;
    approved_.erase(std::string(api::Uid(*pod)));
  };
  auto forget = [this, alive = std::weak_ptr<bool>(alive_)](const json::SharedValue& pod) {
    if (!alive.expired()) approved_.erase(std::string(api::Uid(*pod)));
  };
  pods_.AddHandlers(
      {settle, [settle](const json::SharedValue&, const json::SharedValue& pod) { settle(pod); },
       forget});
}

void CapacityGuard::ForgetSettled() {
  std::erase_if(approved_, [this](const auto& entry) {
    return clock_.Steady() - entry.second.at >= kApprovedFor;
  });
}

Status CapacityGuard::CheckBind(const json::Value& pod, const std::string& node) {
  json::SharedValue node_object = nodes_.Get(node);
  const json::Value* spec = json::Find(pod, {"spec"});
  if (!node_object || spec == nullptr) return Status::Ok();
  ForgetSettled();
  sched::Resources allocatable = ToNodeInfo(*node_object).allocatable;
  std::map<std::string, int64_t> free = Flat(allocatable);
  int64_t pods_free = allocatable.pods;
  auto take = [&free, &pods_free](const std::map<std::string, int64_t>& requests) {
    --pods_free;
    for (const auto& [name, amount] : requests) free[name] -= amount;
  };
  std::string uid(api::Uid(pod));
  for (const json::SharedValue& other : pods_.ByIndex("node", node)) {
    const json::Value* other_spec = json::Find(*other, {"spec"});
    if (HasEnded(*other) || api::Uid(*other) == uid || other_spec == nullptr) continue;
    take(Flat(PodRequests(*other_spec)));
  }
  for (const auto& [other, approved] : approved_) {
    if (approved.node == node && other != uid) take(approved.requests);
  }
  if (pods_free < 1) {
    return Status(Code::kConflict, StrCat("node ", Quote(node), " has no room for another pod"));
  }
  std::map<std::string, int64_t> requests = Flat(PodRequests(*spec));
  for (const auto& [name, amount] : requests) {
    if (amount <= free[name]) continue;
    return Status(Code::kConflict,
                  StrCat("pod ", Quote(api::KeyOf(pod)), " asks for ", amount, " ", name,
                         name == "cpu" ? " (milli)" : "", ", node ", Quote(node), " has ",
                         std::max<int64_t>(0, free[name]), " free"));
  }
  approved_[uid] = {node, std::move(requests), clock_.Steady()};
  return Status::Ok();
}

}  // namespace swell::controllers
