#include "sched/actions/registry.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "sched/scenario_test_util.h"

namespace swell::sched {
namespace {

TEST(Registry, RunsFromTheLeastDisruptiveToTheMost) {
  std::string steps;
  for (const ActionStep& step : ActionSteps()) {
    const std::string_view event = step.action->Event();
    steps += StrCat(step.number, " ", step.action->Name(), event.empty() ? "" : " ", event, "\n");
  }
  EXPECT_EQ(steps,
            "0 allocate\n1 shrink Preempted\n2 consolidate Preempted\n3 reclaim Reclaimed\n"
            "4 preempt Preempted\n2 consolidate Preempted\n5 stale-gangs Preempted\n6 grow\n"
            "7 rebalance Preempted\n");
}

// Records of cycles name actions by number, people by name.
TEST(Registry, NumbersAndNamesAreUnique) {
  std::map<int, std::string_view> names;
  std::set<std::string_view> distinct;
  for (const ActionStep& step : ActionSteps()) {
    EXPECT_TRUE(step.number >= 0 && step.number < 32);
    EXPECT_EQ(names.emplace(step.number, step.action->Name()).first->second, step.action->Name());
    distinct.insert(step.action->Name());
  }
  EXPECT_EQ(distinct.size(), names.size());
  EXPECT_EQ(ActionNames().size(), names.size());
}

TEST(Registry, FindsActionsByName) {
  EXPECT_EQ(FindAction("reclaim"), &ReclaimAction());
  EXPECT_EQ(FindAction("consolidate"), &ConsolidateAction());
  EXPECT_EQ(FindAction("defragment"), nullptr);
  EXPECT_EQ(ActionBit("allocate"), 1u);
  EXPECT_EQ(ActionBit("grow"), 64u);
  EXPECT_EQ(ActionBit("defragment"), 0u);
  EXPECT_EQ(AllActionBits(), 255u);
}

TEST(Registry, ACycleRunsOnlyTheActionsAskedFor) {
  Scenario s;
  s.Node("n0", {.gpus = 1});
  s.Pod("a", {.gpus = 1});
  s.Cycle(Only({"preempt", "grow"}));
  EXPECT_EQ(s.Log(), "");
  s.Cycle(Only({"allocate"}));
  EXPECT_EQ(s.Log(), "bind a n0 [0] allocate\n");
}

}  // namespace
}  // namespace swell::sched
