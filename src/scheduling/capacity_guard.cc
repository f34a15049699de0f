#include "scheduling/capacity_guard.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "sched_inputs/sched_convert.h"

namespace swell::scheduling {
namespace {

constexpr Duration kApprovedFor = std::chrono::seconds(10);

std::map<std::string, int64_t> Flat(const sched::Resources& resources) {
  std::map<std::string, int64_t> flat = resources.extended;
  if (resources.cpu_milli > 0) flat["cpu"] = resources.cpu_milli;
  if (resources.memory_bytes > 0) flat["memory"] = resources.memory_bytes;
  if (resources.ephemeral_bytes > 0) flat["ephemeral-storage"] = resources.ephemeral_bytes;
  return flat;
}

// Without what its claim to extended resources gets it.
std::map<std::string, int64_t> WithoutClaimed(const json::Value& pod, sched::Resources resources) {
  sched_inputs::LeaveOutMapped(pod, resources);
  return Flat(resources);
}

}  // namespace

CapacityGuard::CapacityGuard(controllers::Context context)
    : clock_(context.clock), nodes_(context.informers.Of(client::resources::kNodes)) {
  client::Informer& pods = context.informers.Of(client::resources::kPods);
  auto now = scope_.Wrap([this](const json::SharedValue& pod) { OnPod(*pod); });
  auto gone = scope_.Wrap([this](const json::SharedValue& pod) { Release(api::Uid(*pod)); });
  controllers::Follow(pods, now, gone);
  controllers::Follow(
      nodes_, [](const json::SharedValue&) {}, scope_.Wrap([this](const json::SharedValue& node) {
        rooms_.erase(std::string(api::Name(*node)));
      }));
}

const CapacityGuard::Room* CapacityGuard::RoomOn(const std::string& node) {
  json::SharedValue object = nodes_.Get(node);
  if (!object) return nullptr;
  Room& room = rooms_[node];
  if (room.object == object) return &room;
  const sched::Resources allocatable = sched_inputs::ToNodeInfo(*object).allocatable;
  room = {std::move(object), Flat(allocatable), allocatable.pods};
  return &room;
}

void CapacityGuard::OnPod(const json::Value& pod) {
  const std::string_view node = api::NodeName(pod);
  if (node.empty()) return;
  if (api::HasEnded(pod)) return Release(api::Uid(pod));
  // A pod holds what it held when it was bound, unless its spec has changed since.
  const bool changed = json::GetInt(pod, {"metadata", "generation"}) > 1;
  const auto held = held_.find(api::Uid(pod));
  if (held != held_.end() && held->second.node == node && !changed) {
    held->second.seen = true;
    return;
  }
  Hold(std::string(api::Uid(pod)),
       {std::string(node), WithoutClaimed(pod, sched_inputs::HeldRequests(pod)), true, {}});
}

void CapacityGuard::Hold(const std::string& uid, Held held) {
  Release(uid);
  Node& node = on_[held.node];
  ++node.pods;
  for (const auto& [name, amount] : held.requests) node.held[name] += amount;
  held_.emplace(uid, std::move(held));
}

void CapacityGuard::Release(std::string_view uid) {
  const auto found = held_.find(uid);
  if (found == held_.end()) return;
  const Held& held = found->second;
  const auto node = on_.find(held.node);
  for (const auto& [name, amount] : held.requests) node->second.held[name] -= amount;
  if (--node->second.pods == 0) on_.erase(node);
  held_.erase(found);
}

void CapacityGuard::ForgetFailed() {
  while (!let_through_.empty() && clock_.Steady() - let_through_.front().first >= kApprovedFor) {
    const auto& [at, uid] = let_through_.front();
    const auto held = held_.find(uid);
    if (held != held_.end() && !held->second.seen && held->second.at == at) Release(uid);
    let_through_.pop_front();
  }
}

Status CapacityGuard::CheckBind(const json::Value& pod, const std::string& node) {
  const json::Value* spec = json::Find(pod, {"spec"});
  const Room* room = RoomOn(node);
  if (room == nullptr || spec == nullptr) return Status::Ok();
  ForgetFailed();
  const std::string uid(api::Uid(pod));
  Release(uid);  // let through before, and not made
  const Node none;
  const auto found = on_.find(node);
  const Node& on = found == on_.end() ? none : found->second;
  if (room->pods - on.pods < 1) {
    return Status(Code::kConflict, StrCat("node ", Quote(node), " has no room for another pod"));
  }
  const auto at = [](const Amounts& amounts, const std::string& name) {
    const auto amount = amounts.find(name);
    return amount == amounts.end() ? 0 : amount->second;
  };
  Amounts requests = WithoutClaimed(pod, sched_inputs::PodRequests(*spec));
  for (const auto& [name, amount] : requests) {
    const int64_t free = at(room->amounts, name) - at(on.held, name);
    if (amount <= free) continue;
    return Status(Code::kConflict,
                  StrCat("pod ", Quote(api::KeyOf(pod)), " asks for ", amount, " ", name,
                         name == "cpu" ? " (milli)" : "", ", node ", Quote(node), " has ",
                         std::max<int64_t>(0, free), " free"));
  }
  const SteadyTime now = clock_.Steady();
  let_through_.emplace_back(now, uid);
  Hold(uid, {node, std::move(requests), false, now});
  return Status::Ok();
}

}  // namespace swell::scheduling
