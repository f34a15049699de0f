// TestCycle: a scenario's cluster with what a cycle gives to victim searches, for their unit tests.
// - Threads: none; one test.
// - Ownership: the Scenario outlives it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sched/cycle/context.h"
#include "sched/scenario_test_util.h"
#include "sched/state/statement.h"
#include "sched/victims/victim_index.h"
#include "sched/victims/victims.h"

namespace swell::sched {

class TestCycle {
 public:
  explicit TestCycle(Scenario& s) : state(Begin(s)), now_(s.now), shares_(state) {}

  GroupId Group(const std::string& name) const { return state.FindGroup("default/" + name); }
  PodId Pod(const std::string& name) const { return state.FindPod("default/" + name); }
  NodeId Node(const std::string& name) const { return state.FindNode(name); }
  QueueId Queue(const std::string& name) { return state.EnsureQueue(name); }
  std::vector<PodId> Pods(const std::string& group) const {
    return state.groups[Group(group)].members;
  }
  std::string NameOf(PodId pod) const {
    const std::string& key = state.pods[pod].key;
    return key.substr(key.find('/') + 1);
  }
  std::string Names(const std::vector<PodId>& pods) const {
    std::string names;
    for (PodId pod : pods) names += StrCat(names.empty() ? "" : " ", NameOf(pod));
    return names;
  }

  // Preemption as the action of that name does it: lower priority in the group's own queue.
  VictimPolicy Preemption(GroupId id) const {
    const GroupState& group = state.groups[id];
    VictimPolicy policy;
    policy.from = {group.queue};
    policy.eligible = [queue = group.queue, priority = group.priority](const GroupState& it) {
      return it.queue == queue && it.preemptible && it.priority < priority;
    };
    return policy;
  }
  // Searches room for all pods of the group. The plan's changes stay in `trial`.
  VictimPlan Find(Statement& trial, const std::string& group, const VictimPolicy& policy) {
    return FindVictims(context, trial, Group(group), Pods(group), {.action = "test"}, policy);
  }
  VictimPlan Find(Statement& trial, const std::string& group) {
    return Find(trial, group, Preemption(Group(group)));
  }

  State& state;

 private:
  static State& Begin(Scenario& s) {
    State& state = s.model.state();
    state.Refresh();
    state.cycle.now = s.now;
    state.cycle.touched.clear();
    ++state.cycle.number;
    return state;
  }

  const WallTime now_;
  const QueueShares shares_;
  const Settings settings_;
  CycleStats stats_;
  CycleResult result_;
  std::map<SearchKey, std::string> failed_;

 public:
  CycleContext context{.state = state,
                       .settings = settings_,
                       .stats = stats_,
                       .now = now_,
                       .result = result_,
                       .shares = shares_,
                       .searches = {.budget = settings_.search_budget, .failed = failed_}};
};

}  // namespace swell::sched
