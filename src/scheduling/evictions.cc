#include "scheduling/evictions.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "sched_inputs/sched_convert.h"

namespace swell::scheduling {
namespace {

// What a group's status holds: 36 bytes each.
constexpr size_t kTogetherMax = 10'000;

// A pod that ignores the signal to stop holds its GPUs until its time is over.
constexpr int64_t kGraceMaxS = 600;

}  // namespace

std::string Beneficiary(const sched::Decision& decision) {
  if (!decision.beneficiary) return "";
  const auto& [pod, group] = *decision.beneficiary;
  return pod.empty() ? group : pod;
}

Evictions::Evictions(controllers::Context context, client::Client& client, Outcomes outcomes)
    : context_(std::move(context)),
      client_(client),
      outcomes_(std::move(outcomes)),
      groups_(context_.informers.Of(client::resources::kPodGroups)),
      pods_(context_.informers.Of(client::resources::kPods)),
      marks_(context_, [this](const std::string& group) { OnMarked(group); }) {}

void Evictions::Take(const std::vector<sched::Decision>& decisions) {
  std::map<std::string, std::vector<sched::Decision>> by_group;
  for (const sched::Decision& decision : decisions) by_group[decision.group].push_back(decision);
  for (auto& [group, victims] : by_group) {
    if (!client_.in_order() && MayMarkAll(group, victims)) {
      MarkAll(group, std::move(victims));
    } else {
      MarkEach(victims);
    }
  }
}

bool Evictions::MayMarkAll(const std::string& key,
                           const std::vector<sched::Decision>& victims) const {
  if (victims.size() < together_min_ || victims.size() > kTogetherMax) return false;
  const json::SharedValue group = key.empty() ? nullptr : groups_.Get(key);
  return group && !marked_.contains(key) &&
         std::all_of(victims.begin(), victims.end(), [&](const sched::Decision& victim) {
           const json::SharedValue pod = pods_.Get(victim.pod);
           return pod && GroupMarks::MayMark(*group, *pod);
         });
}

EvictionMark Evictions::MarkOf(const sched::Decision& decision) const {
  return {.by = Beneficiary(decision),
          .rule = decision.rule,
          .lost_gpu_seconds = std::llround(decision.lost_gpu_seconds),
          .message = decision.Reason(),
          .time = api::FormatTime(context_.clock.Now())};
}

void Evictions::MarkEach(const std::vector<sched::Decision>& victims) {
  const bool at_once = client_.in_order();
  for (const sched::Decision& victim : victims) {
    const auto [ns, name] = sched_inputs::SplitKey(victim.pod);
    client_.Patch(
        client::resources::kPods, ns, name, client::PatchType::kStrategic,
        MarkOf(victim).PodPatch(victim.pod_uid),
        [this, victim, at_once](const Result<json::SharedValue>& result) {
          if (!result.ok()) return outcomes_.failed(victim, result.status());
          if (!at_once) Delete(victim);
        },
        "status");
    if (at_once) Delete(victim);
  }
}

void Evictions::MarkAll(const std::string& key, std::vector<sched::Decision> victims) {
  std::vector<GroupMarks::Victim> marks;
  for (const sched::Decision& victim : victims) marks.push_back({victim.pod_uid, MarkOf(victim)});
  const json::Value patch = marks_.GroupPatch(*groups_.Get(key), marks);
  marked_[key] = std::move(victims);
  const auto [ns, name] = sched_inputs::SplitKey(key);
  client_.Patch(
      client::resources::kPodGroups, ns, name, client::PatchType::kMerge, patch,
      [this, key](const Result<json::SharedValue>& result) {
        auto left = result.ok() ? decltype(marked_)::node_type() : marked_.extract(key);
        if (left) MarkEach(left.mapped());
      },
      "status");
}

// Called when the watch shows that the group has changed or is gone. It may show marks of earlier
// writes only.
void Evictions::OnMarked(const std::string& group) {
  const auto known = marked_.find(group);
  if (known == marked_.end()) return;
  const bool gone = groups_.Get(group) == nullptr;
  if (!gone && !marks_.Has(group, known->second.front().pod_uid)) return;
  const std::vector<sched::Decision> victims = std::move(marked_.extract(known).mapped());
  if (gone) return MarkEach(victims);
  for (const sched::Decision& victim : victims) Delete(victim);
}

void Evictions::Hasten(const std::string& node, std::string_view ns) {
  const WallTime latest = context_.clock.Now() + std::chrono::seconds(kGraceMaxS);
  for (const json::SharedValue& pod : pods_.ByIndex("node", node)) {
    const std::optional<WallTime> end = api::DeletionTime(*pod);
    if (!end || *end <= latest || api::HasEnded(*pod) || api::Namespace(*pod) == ns) continue;
    std::string uid(api::Uid(*pod));
    if (!hastened_.insert(uid).second) continue;
    const client::DeleteOptions options{.grace_seconds = kGraceMaxS, .precondition_uid = uid};
    // If the server refuses, the next pod that waits tries again.
    client_.Delete(client::resources::kPods, api::Namespace(*pod), api::Name(*pod), options,
                   [this, uid](const Result<json::SharedValue>&) { hastened_.erase(uid); });
  }
}

void Evictions::Delete(const sched::Decision& decision) {
  const auto [ns, name] = sched_inputs::SplitKey(decision.pod);
  client::DeleteOptions options{.precondition_uid = decision.pod_uid};
  const json::SharedValue pod = pods_.Get(decision.pod);
  if (pod && json::GetInt(*pod, {"spec", "terminationGracePeriodSeconds"}) > kGraceMaxS) {
    options.grace_seconds = kGraceMaxS;
  }
  client_.Delete(client::resources::kPods, ns, name, options,
                 [this, decision](const Result<json::SharedValue>& result) {
                   if (!result.ok() && result.status().code() != Code::kNotFound) {
                     return outcomes_.failed(decision, result.status());
                   }
                   outcomes_.done();
                 });
}

}  // namespace swell::scheduling
