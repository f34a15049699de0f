// Gangs below their minimum are stopped after the grace period.
#include <gtest/gtest.h>

#include "sched/scenario_test_util.h"

namespace swell::sched {
namespace {

TEST(StaleGangs, StopWholeAfterTheGracePeriod) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Node("n1", {.gpus = 2});
  s.Group("g", {.min = 2});
  s.Pods("g", 2, {.group = "g", .gpus = 2});
  s.Converge();
  s.RemovePod("g-1");
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  ASSERT_EQ(s.last.stale.size(), 1u);
  EXPECT_EQ(s.last.stale[0].group, "default/g");
  ASSERT_TRUE(s.last.wake_at.has_value());
  s.now = *s.last.wake_at;
  s.Cycle();
  EXPECT_EQ(s.Log(), "evict g-0 n0 [0,1] stale-gangs\n");
  EXPECT_EQ(s.last.decisions[0].Reason(),
            "Preempted: pod set default has 1 of 2 members for 60 s, longer than the grace period "
            "of 60 s; 120 GPU-seconds since its start");
}

TEST(StaleGangs, ARecreatedMemberRejoinsInTime) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  s.Group("g", {.min = 2});
  s.Pods("g", 2, {.group = "g", .gpus = 2});
  s.Converge();
  s.RemovePod("g-1");
  s.Cycle();
  s.Pod("g-1", {.group = "g", .gpus = 2});
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("g-1"), "Bound");
  ASSERT_EQ(s.last.stale.size(), 1u);
  EXPECT_EQ(s.last.stale[0].since, WallTime{});
}

TEST(StaleGangs, AGroupThatIsWholeAgainHasItsWholeGraceTheNextTime) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  s.Group("g", {.min = 2});
  s.Pods("g", 2, {.group = "g", .gpus = 2});
  s.Converge();
  s.RemovePod("g-1");
  s.Cycle();
  ASSERT_EQ(s.last.stale.size(), 1u);
  GroupInfo said = s.groups.at("g");
  said.stale_since = s.last.stale[0].since;
  s.Pod("g-1", {.group = "g", .gpus = 2});
  s.Cycle();
  // What the first cycle wrote comes back only now.
  s.model.UpsertGroup(said);
  s.Cycle();
  ASSERT_EQ(s.last.stale.size(), 1u);
  EXPECT_EQ(s.last.stale[0].since, WallTime{});
  s.now = s.now + std::chrono::hours(1);
  s.RemovePod("g-1");
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  EXPECT_EQ(s.PhaseOf("g-0"), "Running");
  ASSERT_EQ(s.last.stale.size(), 1u);
  EXPECT_EQ(s.last.stale[0].since, s.now);
}

}  // namespace
}  // namespace swell::sched
