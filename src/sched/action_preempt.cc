// preempt: inside a queue, strictly higher priority takes from preemptible work.
//
// Also shrink, which takes only members beyond a minimum and therefore goes first: nobody is
// stopped by it.
#include "base/strings.h"
#include "sched/context.h"
#include "sched/topology.h"
#include "sched/victims.h"

namespace swell::sched {
namespace {

// What two groups must share for a failed search to speak for both.
std::vector<int32_t> SearchSignature(const State& state,
                                     GroupId id,
                                     const std::vector<PodId>& pods,
                                     Action rule) {
  const GroupState& group = state.groups[id];
  std::vector<int32_t> key{static_cast<int32_t>(rule), group.queue, group.priority,
                           group.preemptible, HasTopology(group) ? id : kNone};
  for (PodId pod : pods) {
    key.push_back(state.pods[pod].shape);
    // Others' inter-pod terms tell pods of one shape apart by their labels.
    if (!state.terms.empty()) key.push_back(state.pods[pod].labels);
  }
  return key;
}

// Whether anything in the group's queue has a lower priority and may be stopped.
bool AnyBelow(const State& state, const GroupState& group) {
  const auto& holders = state.queues[group.queue].holders_by_priority;
  return !holders.empty() && holders.begin()->first < group.priority;
}

void PreemptFor(Context& context, GroupId id, Action rule) {
  State& state = context.state;
  const GroupState& group = state.groups[id];
  if (!Schedulable(state, group)) return;
  const Needed needed = NeededPods(state, id);
  if (needed.pods.empty() || !FitsQuotas(state, group, needed.pods)) return;
  if (!AnyBelow(state, group)) return;
  const std::vector<int32_t> key = SearchSignature(state, id, needed.pods, rule);
  auto failed = context.failed_searches.find(key);
  if (failed != context.failed_searches.end()) {
    ++context.stats.groups_skipped;
    if (rule == Action::kPreempt) context.search_said[id] = failed->second;
    return;
  }
  if (context.budget <= 0) {
    context.result.more = true;
    return;
  }
  const bool whole_budget = context.budget == context.settings.search_budget;
  VictimPolicy policy;
  policy.surplus_only = rule == Action::kShrink;
  policy.eligible = [&state, id](const GroupState& victim) {
    const GroupState& preemptor = state.groups[id];
    return victim.queue == preemptor.queue && victim.preemptible &&
           victim.priority < preemptor.priority;
  };
  Statement trial(state);
  const VictimPlan plan = FindVictims(context, trial, id, needed.pods, policy);
  if (plan.outcome != VictimPlan::Outcome::kPlan) {
    const bool spent = plan.outcome == VictimPlan::Outcome::kBudgetSpent;
    if (spent) context.result.more = true;
    // Cut short after others had their part of the budget, it deserves a try with all of it.
    if (!spent || whole_budget) context.failed_searches[key] = plan.because;
    if (rule == Action::kPreempt) context.search_said[id] = plan.because;
    return;
  }
  trial.Commit();
  EvictionCause cause;
  cause.rule = rule;
  cause.beneficiary = id;
  cause.beneficiaries = needed.pods;
  DecideEvictions(context, plan.victims, cause);
  DecideNominations(context, needed.pods, rule);
  context.failed_searches.clear();  // what was freed beside the place may help others
}

void PreemptAll(Context& context, Action rule) {
  for (GroupId group : context.order) PreemptFor(context, group, rule);
}

}  // namespace

void Shrink(Context& context) { PreemptAll(context, Action::kShrink); }

void Preempt(Context& context) { PreemptAll(context, Action::kPreempt); }

}  // namespace swell::sched
