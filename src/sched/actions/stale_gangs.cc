// stale gangs: a gang that has run below its minimum for longer than the grace period is stopped
// whole, because what is left of it holds room and gets nothing done.
#include "sched/actions/stale_gangs.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "sched/actions/decide.h"
#include "sched/actions/registry.h"
#include "sched/state/statement.h"

namespace swell::sched {
namespace {

std::string Shortage(const GroupState& group) {
  for (const SetState& set : group.sets) {
    const int here = set.holding + set.releasing + set.promised;
    if (here >= set.min_member) continue;
    return StrCat("pod set ", set.name.empty() ? "default" : set.name, " has ", here, " of ",
                  set.min_member, " members");
  }
  return "";
}

void StopStale(CycleContext& context, const Action& action, GroupId id) {
  State& state = context.state;
  std::vector<PodId> victims;
  for (PodId pod : state.groups[id].members) {
    if (state.pods[pod].Holds()) victims.push_back(pod);
  }
  if (victims.empty()) return;
  Statement trial(state);
  for (PodId pod : victims) trial.Evict(pod);
  for (PodId pod : state.groups[id].members) {
    if (state.pods[pod].phase == PodPhase::kPending && state.pods[pod].promise != kNone) {
      trial.DropPromise(pod);
    }
  }
  trial.Commit();
  DecideEvictions(context, action, {.victims = std::move(victims)});
}

class StaleGangs final : public Action {
 public:
  std::string_view Name() const override { return "stale-gangs"; }
  std::string_view Event() const override { return "Preempted"; }
  std::string Reason(const CycleContext& context,
                     const EvictionPlan& /*evictions*/,
                     PodId victim) const override {
    const GroupState& group = context.state.groups[context.state.pods[victim].group];
    const auto seconds = [](Duration span) {
      return std::chrono::duration_cast<std::chrono::seconds>(span).count();
    };
    return StrCat(Shortage(group), " for ", seconds(context.now - group.stale_since),
                  " s, longer than the grace period of ", seconds(context.settings.stale_grace),
                  " s");
  }
  void Run(CycleContext& context) const override {
    State& state = context.state;
    std::vector<GroupId> stale(state.lists.below_minimum.begin(), state.lists.below_minimum.end());
    std::sort(stale.begin(), stale.end(),
              [&state](GroupId a, GroupId b) { return state.JobBefore(a, b); });
    for (GroupId id : stale) {
      GroupState& group = state.groups[id];
      if (!group.known) continue;
      if (group.stale_since.unix_ns == 0) group.stale_since = context.now;  // in this very cycle
      const Duration stale_for = context.now - group.stale_since;
      if (stale_for >= context.settings.stale_grace) {
        StopStale(context, *this, id);
      } else {
        context.WakeAt(group.stale_since + context.settings.stale_grace);
      }
    }
  }
};

}  // namespace

std::vector<GroupId> NoteStale(CycleContext& context) {
  std::vector<GroupId> fresh;
  for (GroupId id : context.state.lists.below_minimum) {
    GroupState& group = context.state.groups[id];
    if (group.stale_since.unix_ns != 0) continue;
    group.stale_since = context.now;
    fresh.push_back(id);
  }
  return fresh;
}

void ReportStale(CycleContext& context,
                 const std::vector<GroupId>& fresh,
                 std::set<GroupId>& noticed) {
  State& state = context.state;
  std::vector<CycleResult::Stale>& stale = context.result.stale;
  // An object may say so of a group that is whole again: it came from the store late, or an earlier
  // scheduler wrote it. The next time the group falls below, its grace begins anew.
  noticed.merge(state.lists.said_stale);
  state.lists.said_stale.clear();
  for (GroupId id : fresh) {
    if (!state.groups[id].below && !noticed.contains(id)) state.groups[id].stale_since = {};
  }
  for (GroupId id : state.lists.below_minimum) {
    GroupState& group = state.groups[id];
    const bool said = group.stale_since.unix_ns != 0 && group.info &&
                      group.info->stale_since == group.stale_since;
    if (group.stale_since.unix_ns == 0) group.stale_since = context.now;
    if (noticed.insert(id).second && !said) {
      stale.push_back({state.GroupName(group), group.stale_since});
    }
  }
  for (auto it = noticed.begin(); it != noticed.end();) {
    GroupState& group = state.groups[*it];
    if (group.below) {
      ++it;
      continue;
    }
    if (group.live && group.stale_since.unix_ns != 0) {
      group.stale_since = {};
      stale.push_back({state.GroupName(group), {}});
    }
    it = noticed.erase(it);
  }
  std::sort(stale.begin(), stale.end(),
            [](const auto& a, const auto& b) { return a.group < b.group; });
}

const Action& StaleGangsAction() {
  static const StaleGangs action;
  return action;
}

}  // namespace swell::sched
