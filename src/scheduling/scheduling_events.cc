#include "scheduling/scheduling_events.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod_group.h"
#include "kube/controllers/pod_facts.h"
#include "sched/actions/registry.h"
#include "sched_inputs/goodput_note.h"
#include "sched_inputs/sched_convert.h"
#include "scheduling/evictions.h"

namespace swell::scheduling {
namespace {

constexpr size_t kGaveUpMax = 256;  // groups of which it is kept

std::string_view EvictionReason(std::string_view rule, bool shrinks) {
  if (shrinks) return "Shrunk";
  const sched::Action* action = sched::FindAction(rule);
  return action == nullptr ? "Preempted" : action->Event();
}

}  // namespace

SchedulingEvents::SchedulingEvents(controllers::Context context,
                                   const sched::Model& model,
                                   SchedulerMetrics& metrics)
    : clock_(context.clock),
      model_(model),
      metrics_(metrics),
      pods_(context.informers.Of(client::resources::kPods)),
      groups_(context.informers.Of(client::resources::kPodGroups)),
      events_(controllers::MakeRecorder(context, "swell-scheduler")) {}

void SchedulingEvents::OnBound(const sched::Decision& decision, const json::Value& pod) {
  events_.Record(pod, "Normal", "Scheduled",
                 StrCat("Successfully assigned ", decision.pod, " to ", decision.node));
}

void SchedulingEvents::OnEviction(const sched::Decision& decision, bool shrinks) {
  metrics_.OnEviction(decision);
  const json::SharedValue pod = pods_.Get(decision.pod);
  if (!pod) return;
  if (observer_.preempted) observer_.preempted(*pod, decision);
  events_.Record(*pod, "Normal", EvictionReason(decision.rule, shrinks), decision.Reason());
}

void SchedulingEvents::OnCycle(const sched::CycleResult& result, const PodsOfBinds& pods) {
  ReportStarts(result, pods);
  ReportSizes(result, pods);
}

bool SchedulingEvents::KeepsMinimum(const std::string& group,
                                    const std::set<std::string_view>& evicted) const {
  json::SharedValue object = group.empty() ? nullptr : groups_.Get(group);
  if (!object) return false;
  std::map<std::string, int64_t, std::less<>> staying;
  for (const json::SharedValue& pod : pods_.ByIndex("group", group)) {
    if (!api::IsBound(*pod) || api::HasEnded(*pod) || api::IsDeleting(*pod) ||
        controllers::WasPreempted(*pod))
      continue;
    if (!evicted.contains(api::KeyOf(*pod))) {
      ++staying[std::string(api::Label(*pod, api::keys::kPodSet))];
    }
  }
  int64_t all = 0;
  for (const api::PodSetSpec& set : api::PodGroupSpec(*object).pod_sets) {
    auto found = staying.find(set.name);
    int64_t here = found == staying.end() ? 0 : found->second;
    if (here < set.min_member) return false;
    all += here;
  }
  return all > 0;
}

// Looks at the pods, because the group's status changes later.
bool SchedulingEvents::HasPlaces(const std::string& group) const {
  if (group.empty()) return false;
  const std::vector<json::SharedValue> pods = pods_.ByIndex("group", group);
  return std::any_of(pods.begin(), pods.end(), [](const json::SharedValue& pod) {
    return api::IsBound(*pod) && !api::HasEnded(*pod) && !api::IsDeleting(*pod);
  });
}

// A group starts when none of its pods had a place before. It has waited since these pods were
// created: after a preemption or a failure they are new ones.
void SchedulingEvents::ReportStarts(const sched::CycleResult& result, const PodsOfBinds& pods) {
  std::set<std::string_view> reported;
  for (size_t i = 0; i < pods.size(); ++i) {
    const sched::Decision& decision = result.decisions[i];
    const json::SharedValue& pod = pods[i];
    if (!pod || (!decision.group.empty() && !reported.insert(decision.group).second)) continue;
    if (HasPlaces(decision.group)) continue;
    const Duration waited =
        std::max<Duration>(clock_.Now() - api::CreationTime(*pod), Duration::zero());
    metrics_.OnStart(model_.QueueOfPod(decision.pod), waited);
    if (observer_.started) observer_.started(*pod, waited);
  }
}

void SchedulingEvents::ReportSizes(const sched::CycleResult& result, const PodsOfBinds& pods) {
  std::map<std::string_view, Resize> resizes;
  std::set<std::string_view> evicted;
  for (size_t i = 0; i < pods.size(); ++i) {
    const sched::Decision& decision = result.decisions[i];
    Resize& resize = resizes[decision.group.empty() ? decision.pod : decision.group];
    if (decision.type == sched::Decision::Type::kEvict) {
      evicted.insert(decision.pod);
      ++resize.evicted;
      resize.by = Beneficiary(decision);
      resize.rule = decision.rule;
      if (decision.beneficiary) resize.by_group = decision.beneficiary->group;
      resize.because = decision.Reason();
    } else if (decision.type == sched::Decision::Type::kBind) {
      ++resize.grown;
      resize.rule = decision.rule;
      resize.waited =
          resize.waited || (pods[i] && api::FindCondition(*pods[i], "PodScheduled").has_value());
    }
  }
  for (const auto& [key, resize] : resizes) ReportSize(std::string(key), resize, evicted);
}

int64_t SchedulingEvents::MembersOf(const json::Value& group,
                                    const sched::GoodputInfo& goodput) const {
  int64_t members = 0;
  for (const json::SharedValue& pod : pods_.ByIndex("group", api::KeyOf(group))) {
    const bool stays = api::IsBound(*pod) && !api::HasEnded(*pod) && !api::IsDeleting(*pod) &&
                       !controllers::WasPreempted(*pod);
    members += stays && api::Label(*pod, api::keys::kPodSet) == goodput.pod_set;
  }
  return members;
}

std::string SchedulingEvents::TradeText(const json::Value& group,
                                        int64_t count,
                                        const std::string& winner) {
  const sched::GoodputInfo goodput = sched_inputs::ToGoodput(group);
  const json::SharedValue other = winner.empty() ? nullptr : groups_.Get(winner);
  const goodput::Curve curve(goodput.curve);
  if (curve.empty() || !other) return "";
  const int64_t before = MembersOf(group, goodput);
  const std::string lost = ChangeText(curve, before, before - count);
  std::string text = StrCat("; ", lost, " goodput expected");
  const sched::GoodputInfo gains = sched_inputs::ToGoodput(*other);
  const goodput::Curve theirs(gains.curve);
  if (theirs.empty()) return text;
  const int64_t has = MembersOf(*other, gains);
  std::string& gave_up = gave_up_[winner];
  gave_up += StrCat(gave_up.empty() ? "" : ", ", api::Name(group), " ", lost);
  if (gave_up_.size() > kGaveUpMax) gave_up_.erase(gave_up_.begin());
  return StrCat(text, ", ", ChangeText(theirs, has, has + 1), " for ", api::Name(*other),
                " with one member more");
}

std::string SchedulingEvents::GainText(const json::Value& group, int64_t grown) {
  const sched::GoodputInfo goodput = sched_inputs::ToGoodput(group);
  const goodput::Curve curve(goodput.curve);
  const auto gave_up = gave_up_.extract(api::KeyOf(group));
  if (curve.empty()) return "";
  const int64_t before = MembersOf(group, goodput);
  std::string text = StrCat(": ", ChangeText(curve, before, before + grown), " goodput expected");
  if (goodput.resize_cost) {
    const auto ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(*goodput.resize_cost).count();
    const int64_t tenths = std::max<int64_t>(1, (ms + 50) / 100);
    text += StrCat(", ", tenths / 10, ".", tenths % 10, " s to resize");
  }
  if (!gave_up.empty()) text += StrCat("; gave up: ", gave_up.mapped());
  return text;
}

// One event for a group that shrinks or grows, however many members it loses or gets.
void SchedulingEvents::ReportSize(const std::string& key,
                                  const Resize& resize,
                                  const std::set<std::string_view>& evicted) {
  if (resize.evicted > 0) {
    SWELL_LOG_INFO("scheduler", "evicting", {"group", key},
                   {"pods", std::to_string(resize.evicted)}, {"for", resize.by},
                   {"because", resize.because});
  }
  if (resize.grown > 0) {
    SWELL_LOG_INFO("scheduler", "placing", {"group", key}, {"pods", std::to_string(resize.grown)},
                   {"rule", resize.rule});
  }
  json::SharedValue group = key.empty() ? nullptr : groups_.Get(key);
  // A group that starts does not grow.
  if (!group || !HasPlaces(key)) return;
  int64_t before = 0, total = 0;
  for (const json::SharedValue& pod : pods_.ByIndex("group", key)) {
    if (api::HasEnded(*pod)) continue;
    ++total;
    before += api::IsBound(*pod) && !api::IsDeleting(*pod) && !controllers::WasPreempted(*pod);
  }
  if (resize.evicted > 0 && KeepsMinimum(key, evicted)) {
    const std::string trade = TradeText(*group, resize.evicted, resize.by_group);
    const int64_t left = before - resize.evicted;
    events_.Record(*group, "Normal", "Shrunk",
                   StrCat("Preempted ", resize.evicted, " of ", before, " members for ", resize.by,
                          "; ", left, left == 1 ? " continues" : " continue", trade));
  }
  if (resize.waited && KeepsMinimum(key, {})) {
    events_.Record(*group, "Normal", "Grown",
                   StrCat("Grew from ", before, " to ", before + resize.grown, " of ", total,
                          " members", GainText(*group, resize.grown)));
  }
}

}  // namespace swell::scheduling
