// The victim search on small clusters. docs/internals/victim-search.md explains the worked example.
#include <gtest/gtest.h>

#include "sched/placement/placement.h"
#include "sched/victims/search_test_util.h"

namespace swell::sched {
namespace {

constexpr int64_t kGpuSeconds = 1000;  // costs are in thousandths

// Six nodes and a gang of two pods that need four GPUs each. docs/internals/victim-search.md
void WorkedExample(Scenario& s) {
  for (const char* node : {"n0", "n1", "n2", "n3", "n4"}) s.Node(node, {.gpus = 4});
  s.Node("n5", {.gpus = 1});
  s.Pod("a", {.gpus = 4, .on = "n0", .started_minutes_ago = 180});
  s.Pods("b", 4, {.gpus = 1, .on = "n1", .started_minutes_ago = 60});
  s.Pods("c", 4, {.gpus = 1, .on = "n2", .started_minutes_ago = 30});
  s.Group("d", {.min = 2});
  s.Pod("d-0", {.group = "d", .gpus = 2, .on = "n3", .started_minutes_ago = 20});
  s.Pod("d-1", {.group = "d", .gpus = 2, .on = "n4", .started_minutes_ago = 20});
  s.Pods("e", 2, {.gpus = 1, .on = "n3", .started_minutes_ago = 10});
  s.Group("f", {.min = 1});
  s.Pod("f-0", {.group = "f", .gpus = 1, .on = "n5", .started_minutes_ago = 10});
  s.Pod("f-1", {.group = "f", .gpus = 1, .on = "n4", .started_minutes_ago = 10});
  s.Pod("f-2", {.group = "f", .gpus = 1, .on = "n4", .started_minutes_ago = 10});
  s.Group("g", {.priority = 100, .min = 2});
  s.Pods("g", 2, {.group = "g", .gpus = 4});
}

TEST(WorkedExample, TheFirstNodeMakesTheSecondCheaper) {
  Scenario s;
  WorkedExample(s);
  TestCycle cycle(s);
  VictimIndex index(cycle.context);
  const VictimPolicy policy = cycle.Preemption(cycle.Group("g"));
  index.Begin(cycle.Group("g"), policy);
  NodeEvictionPlan plan;

  // Step 1: every node's cheapest set is listed. The first is n3, where gang d stops whole.
  EXPECT_EQ(index.Best(cycle.Pod("g-0"), nullptr, plan), cycle.Node("n3"));
  EXPECT_TRUE(plan.stops_gang);
  EXPECT_EQ(plan.cost, 6'000 * kGpuSeconds);
  EXPECT_EQ(plan.units.size(), 3u);

  // Step 2: they are evicted. d-1 leaves n4, so that only surplus members of f are in the way
  // there.
  Statement trial(cycle.state);
  for (const char* pod : {"e-1", "e-0", "d-0", "d-1"}) trial.Evict(cycle.Pod(pod));
  index.CatchUp();
  EXPECT_EQ(index.changed().size(), 2u);
  trial.Promise(cycle.Pod("g-0"), cycle.Node("n3"),
                ChooseDevices(cycle.state, cycle.state.ShapeOf(cycle.Pod("g-0")),
                              cycle.state.nodes[cycle.Node("n3")], Tense::kFuture));
  index.CatchUp();
  EXPECT_EQ(index.Best(cycle.Pod("g-1"), nullptr, plan), cycle.Node("n4"));
  EXPECT_FALSE(plan.stops_gang);
  EXPECT_EQ(plan.cost, 1'200 * kGpuSeconds);
  EXPECT_EQ(plan.units.size(), 2u);
}

TEST(WorkedExample, ThePlanStopsOneGangAndShrinksAnother) {
  Scenario s;
  WorkedExample(s);
  TestCycle cycle(s);
  Statement trial(cycle.state);
  const VictimPlan plan = cycle.Find(trial, "g");
  EXPECT_EQ(plan.outcome, VictimPlan::Outcome::kPlan);
  EXPECT_EQ(cycle.Names(plan.victims), "e-1 e-0 d-0 d-1 f-2 f-1");
  EXPECT_EQ(cycle.state.pods[cycle.Pod("g-0")].promise, cycle.Node("n3"));
  EXPECT_EQ(cycle.state.pods[cycle.Pod("g-1")].promise, cycle.Node("n4"));
}

TEST(WorkedExample, TheActionDecidesThePlan) {
  Scenario s;
  WorkedExample(s);
  s.Cycle(Only({"preempt"}));
  EXPECT_EQ(s.Log(),
            "evict e-1 n3 [3] preempt\nevict e-0 n3 [2] preempt\n"
            "evict d-0 n3 [0,1] preempt\nevict d-1 n4 [0,1] preempt\n"
            "evict f-2 n4 [3] preempt\nevict f-1 n4 [2] preempt\n"
            "nominate g-0 n3 [0,1,2,3] preempt\nnominate g-1 n4 [0,1,2,3] preempt\n");
}

TEST(VictimOrder, ComparesFieldByField) {
  // Each is worse than the one before it by its one field, however good its later ones are.
  const std::vector<VictimOrder> worse = {
      {.number = 1},
      {.member_priority = 1},
      {.age_ns = 1, .member_priority = -9},
      {.over_rank = 1, .age_ns = -9},
      {.priority = 1, .over_rank = -9},
      {.cost = 1, .priority = -9},
      {.stops_gang = true, .cost = -9},
  };
  VictimOrder before;
  for (const VictimOrder& order : worse) {
    EXPECT_LT(before, order);
    before = order;
  }
}

TEST(VictimOrder, CostsAreRoundedDownToSixBits) {
  EXPECT_EQ(QuantizedCost(kLossFloor - 1), 0);
  EXPECT_EQ(QuantizedCost(kLossFloor), 1'179'648);
  EXPECT_EQ(QuantizedCost(14'400'000), 14'155'776);
  EXPECT_EQ(QuantizedCost(14'417'919), 14'155'776);
  EXPECT_EQ(QuantizedCost(14'417'920), 14'417'920);
}

TEST(VictimIndex, AnExcludedNodeIsNotAnsweredAgainInTheSameSearch) {
  Scenario s;
  WorkedExample(s);
  TestCycle cycle(s);
  VictimIndex index(cycle.context);
  const VictimPolicy policy = cycle.Preemption(cycle.Group("g"));
  index.Begin(cycle.Group("g"), policy);
  NodeEvictionPlan plan;
  std::string order;
  const PodId pod = cycle.Pod("g-0");
  for (NodeId node = index.Best(pod, nullptr, plan); node != kNone;
       node = index.Best(pod, nullptr, plan)) {
    order += StrCat(cycle.state.nodes[node].info.name, " ", plan.cost / kGpuSeconds, "; ");
    index.Exclude(pod, node);
  }
  EXPECT_EQ(order, "n3 6000; n4 6000; n2 7200; n1 14400; n0 43200; ");
  index.Begin(cycle.Group("g"), policy);
  EXPECT_EQ(index.Best(pod, nullptr, plan), cycle.Node("n3"));
}

TEST(VictimIndex, AFilterLeavesNodesOut) {
  Scenario s;
  WorkedExample(s);
  TestCycle cycle(s);
  VictimIndex index(cycle.context);
  const VictimPolicy policy = cycle.Preemption(cycle.Group("g"));
  index.Begin(cycle.Group("g"), policy);
  NodeFilter filter;
  filter.nodes.resize(cycle.state.nodes.size());
  filter.nodes[cycle.Node("n1")] = 1;
  NodeEvictionPlan plan;
  EXPECT_EQ(index.Best(cycle.Pod("g-0"), &filter, plan), cycle.Node("n1"));
  EXPECT_EQ(plan.cost, 14'400 * kGpuSeconds);
}

TEST(VictimIndex, ANodeChoosesTheUnitThatIsEnoughAlone) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  s.Pod("large", {.gpus = 2, .on = "n0", .started_minutes_ago = 100});
  s.Pod("small-0", {.gpus = 1, .on = "n0", .started_minutes_ago = 120});
  s.Pod("small-1", {.gpus = 1, .on = "n0", .started_minutes_ago = 120});
  s.Pod("high", {.gpus = 2, .priority = 100});
  TestCycle cycle(s);
  VictimIndex index(cycle.context);
  const GroupId high = cycle.state.pods[cycle.Pod("high")].group;
  const VictimPolicy policy = cycle.Preemption(high);
  index.Begin(high, policy);
  NodeEvictionPlan plan;
  ASSERT_EQ(index.Best(cycle.Pod("high"), nullptr, plan), cycle.Node("n0"));
  ASSERT_EQ(plan.units.size(), 1u);
  EXPECT_EQ(plan.units[0].group, cycle.state.pods[cycle.Pod("large")].group);
}

TEST(VictimIndex, MovesNothingThatStartsOrWasMovedLately) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Group("runs", {});
  s.Pod("runs-0", {.group = "runs", .gpus = 1, .on = "n0"});
  s.Group("ends", {});
  s.Pod("ends-0", {.group = "ends", .gpus = 1, .on = "n0", .comes_back = false});
  TestCycle cycle(s);
  VictimIndex index(cycle.context);
  EXPECT_TRUE(index.facts().MayMove(cycle.Group("runs")));
  EXPECT_FALSE(index.facts().MayMove(cycle.Group("ends"))) << "nobody makes its pod again";
  cycle.state.groups[cycle.Group("runs")].moved_at = s.now - std::chrono::minutes(9);
  EXPECT_FALSE(index.facts().MayMove(cycle.Group("runs")));
  EXPECT_EQ(cycle.context.result.wake_at, s.now + std::chrono::minutes(1));
  cycle.state.groups[cycle.Group("runs")].moved_at = s.now - std::chrono::minutes(10);
  EXPECT_TRUE(index.facts().MayMove(cycle.Group("runs")));
}

TEST(FindVictims, AFailedSearchLeavesTheStateAsItWas) {
  Scenario s;
  WorkedExample(s);
  s.Group("huge", {.priority = 100, .min = 6});
  s.Pods("huge", 6, {.group = "huge", .gpus = 4});
  TestCycle cycle(s);
  Statement trial(cycle.state);
  const std::string before = s.Places();
  const VictimPlan plan = cycle.Find(trial, "huge");
  EXPECT_EQ(plan.outcome, VictimPlan::Outcome::kImpossible);
  EXPECT_EQ(plan.because, "stopping all work that it may preempt would not free enough room");
  EXPECT_TRUE(trial.empty());
  EXPECT_EQ(s.Places(), before);
  EXPECT_EQ(s.Violations(), "");
}

TEST(FindVictims, SaysWhyThereIsNoPlan) {
  Scenario s;
  s.Node("n0", {.gpus = 1});
  s.Group("low", {.priority = 50, .min_runtime = std::chrono::minutes(30)});
  s.Pod("low-0", {.group = "low", .gpus = 1, .on = "n0", .started_minutes_ago = 10});
  s.Group("equal", {.priority = 50});
  s.Pod("equal-0", {.group = "equal", .gpus = 1});
  s.Group("high", {.priority = 100});
  s.Pod("high-0", {.group = "high", .gpus = 1});
  TestCycle cycle(s);
  Statement trial(cycle.state);
  EXPECT_EQ(cycle.Find(trial, "high").because,
            "the work that it could preempt is protected by a minimum run time or a disruption "
            "budget");
  EXPECT_EQ(cycle.context.result.wake_at, s.now + std::chrono::minutes(20));
  TestCycle other(s);
  EXPECT_EQ(other.Find(trial, "equal").because, "there is nothing of lower priority to stop");
}

TEST(FindVictims, ASearchEndsWithItsBudget) {
  Scenario s;
  WorkedExample(s);
  TestCycle cycle(s);
  cycle.context.searches.budget = 3;
  Statement trial(cycle.state);
  const VictimPlan plan = cycle.Find(trial, "g");
  EXPECT_EQ(plan.outcome, VictimPlan::Outcome::kBudgetSpent);
  EXPECT_TRUE(trial.empty());
}

// Few units: all combinations are tried. One gang of 40 GPU-minutes costs less than two pods of 30.
TEST(FindVictims, TriesEveryCombinationOfAFew) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Node("n1", {.gpus = 2});
  s.Pods("single", 2, {.gpus = 1, .on = "n0", .started_minutes_ago = 30});
  s.Group("gang", {.min = 2});
  s.Pods("gang", 2, {.group = "gang", .gpus = 1, .on = "n1", .started_minutes_ago = 20});
  s.Group("high", {.priority = 100});
  s.Pod("high-0", {.group = "high", .gpus = 2});
  TestCycle cycle(s);
  Statement trial(cycle.state);
  EXPECT_EQ(cycle.Names(cycle.Find(trial, "high").victims), "gang-0 gang-1");
}

TEST(FindVictims, MovesAVictimThatFitsElsewhere) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Node("n1", {.gpus = 1});
  s.Pod("low", {.gpus = 1, .on = "n0"});
  s.Group("high", {.priority = 100});
  s.Pod("high-0", {.group = "high", .gpus = 2});
  TestCycle cycle(s);
  Statement trial(cycle.state);
  EXPECT_EQ(cycle.Names(cycle.Find(trial, "high").victims), "low");
  EXPECT_EQ(cycle.state.pods[cycle.Pod("low")].promise, cycle.Node("n1"));
}

TEST(FindVictims, AMoveNeedsAPlaceForEveryVictim) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Node("n1", {.gpus = 2});
  s.Pod("x", {.gpus = 1, .on = "n0"});
  s.Pod("y", {.gpus = 1, .on = "n1"});
  s.Group("whole", {});
  s.Pod("whole-0", {.group = "whole", .gpus = 2});
  TestCycle cycle(s);
  VictimPolicy policy;
  policy.from = {cycle.Queue("")};
  policy.must_move = true;
  policy.eligible = [](const GroupState& it) { return it.preemptible; };
  {
    Statement trial(cycle.state);
    const VictimPlan plan = cycle.Find(trial, "whole", policy);
    ASSERT_EQ(plan.victims.size(), 1u);
    EXPECT_NE(cycle.state.pods[plan.victims[0]].promise, kNone);
  }
  s.Pod("z", {.gpus = 1, .on = "n1"});
  TestCycle full(s);
  Statement again(full.state);
  EXPECT_EQ(full.Find(again, "whole", policy).outcome, VictimPlan::Outcome::kImpossible);
}

}  // namespace
}  // namespace swell::sched
