// stale gangs: a gang that has run below its minimum for longer than the grace period is stopped
// whole; what is left of it holds room and gets nothing done.
#include <vector>

#include "base/strings.h"
#include "sched/actions/actions.h"
#include "sched/actions/decide.h"
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

void StopStale(Context& context, GroupId id, Duration stale_for) {
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
  EvictionCause cause;
  cause.rule = Action::kStaleGangs;
  cause.why = StrCat(
      Shortage(state.groups[id]), " for ",
      std::chrono::duration_cast<std::chrono::seconds>(stale_for).count(),
      " s, longer than the grace period of ",
      std::chrono::duration_cast<std::chrono::seconds>(context.settings.stale_grace).count(), " s");
  DecideEvictions(context, victims, cause);
}

}  // namespace

void StaleGangs(Context& context) {
  State& state = context.state;
  std::vector<GroupId> stale(state.below_minimum.begin(), state.below_minimum.end());
  std::sort(stale.begin(), stale.end(),
            [&state](GroupId a, GroupId b) { return state.JobBefore(a, b); });
  for (GroupId id : stale) {
    GroupState& group = state.groups[id];
    if (!group.known) continue;
    if (group.stale_since.unix_ns == 0) group.stale_since = context.now;  // in this very cycle
    const Duration stale_for = context.now - group.stale_since;
    if (stale_for >= context.settings.stale_grace) {
      StopStale(context, id, stale_for);
    } else {
      context.WakeAt(group.stale_since + context.settings.stale_grace);
    }
  }
}

}  // namespace swell::sched
