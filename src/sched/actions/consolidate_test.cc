// Work moves where that makes room, and no more often than it must.
#include <gtest/gtest.h>

#include "sched/scenario_test_util.h"

namespace swell::sched {
namespace {

TEST(Consolidate, MovesWorkToMakeOneHole) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  s.Node("n1", {.gpus = 4});
  s.Group("x", {});
  s.Pod("x-0", {.group = "x", .gpus = 2, .on = "n0"});
  s.Group("y", {});
  s.Pod("y-0", {.group = "y", .gpus = 2, .on = "n1"});
  s.Group("whole", {.minutes_old = 1});
  s.Pod("whole-0", {.group = "whole", .gpus = 4});
  s.Cycle();
  ASSERT_EQ(s.last.decisions.size(), 3u) << s.Log();
  EXPECT_EQ(s.last.decisions[0].rule, "consolidate");
  EXPECT_NE(s.last.decisions[0].Reason().find("; moves to n"), std::string::npos);
  s.Converge();
  EXPECT_EQ(s.PhaseOf("x-0"), "Running");
  EXPECT_EQ(s.PhaseOf("y-0"), "Running");
  EXPECT_EQ(s.PhaseOf("whole-0"), "Running");
}

// It has the higher priority, and likes its old node best: the emptiest one.
TEST(Consolidate, WhatWasMovedDoesNotTakeItsOldPlaceBack) {
  Scenario s;
  s.Pool({.name = "default", .node_selector = {}, .gpu = PlacementStrategy::kSpread});
  s.Node("n0", {.gpus = 4});
  s.Node("n1", {.gpus = 4});
  s.Group("moves", {.priority = 75});
  s.Pod("moves-0", {.group = "moves", .gpus = 2, .on = "n0"});
  s.Group("stays", {.priority = 100, .preemptible = false});
  s.Pod("stays-0", {.group = "stays", .gpus = 2, .on = "n1"});
  s.Group("whole", {.priority = 50});
  s.Pod("whole-0", {.group = "whole", .gpus = 4});
  s.Cycle();
  ASSERT_EQ(s.CountDecisions(Decision::Type::kEvict), 1) << s.Log();
  s.AdvancePods();
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind whole-0 n0 [0,1,2,3] allocate\nbind moves-0 n1 [2,3] allocate\n");
}

// Pods move for the first job in the order, even if that job must also stop others to start.
TEST(Consolidate, MovesNobodyForAJobThatIsDisplacedNext) {
  Scenario s;
  for (const char* node : {"n0", "n1"}) {
    s.Node(node, {.gpus = 4});
    const std::string half = StrCat("half-", node);
    s.Group(half, {});
    s.Pod(StrCat(half, "-0"), {.group = half, .gpus = 2, .on = node});
  }
  s.Group("later", {.priority = 60, .minutes_old = 5});
  s.Pod("later-0", {.group = "later", .gpus = 4});
  s.Group("first", {.priority = 70, .min = 2, .minutes_old = 1});
  s.Pods("first", 2, {.group = "first", .gpus = 3});
  s.Cycle();
  EXPECT_EQ(s.Log(),
            "evict half-n1-0 n1 [0,1] preempt\nevict half-n0-0 n0 [0,1] preempt\n"
            "nominate first-0 n0 [0,1,2] preempt\nnominate first-1 n1 [0,1,2] preempt\n");
  s.Converge();
  EXPECT_EQ(s.PhaseOf("first-1"), "Running");
  EXPECT_EQ(s.PhaseOf("later-0"), "Pending");
}

TEST(Consolidate, MovesForALaterJobWhenTheFirstCannotStartAnyway) {
  Scenario s;
  for (const char* node : {"n0", "n1"}) {
    s.Node(node, {.gpus = 4});
    const std::string half = StrCat("half-", node);
    s.Group(half, {});
    s.Pod(StrCat(half, "-0"), {.group = half, .gpus = 2, .on = node});
  }
  s.Group("later", {.priority = 60, .minutes_old = 5});
  s.Pod("later-0", {.group = "later", .gpus = 4});
  s.Group("first", {.priority = 70, .min = 3, .minutes_old = 1});
  s.Pods("first", 3, {.group = "first", .gpus = 3});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Decision::Type::kEvict), 1) << s.Log();
  s.Converge();
  EXPECT_EQ(s.PhaseOf("later-0"), "Running");
}

// Two halves on two nodes become a whole one; then the same again with what has been moved.
TEST(Consolidate, LeavesAloneWhatNobodyMakesAnew) {
  Scenario s;
  for (const char* node : {"n0", "n1"}) s.Node(node, {.gpus = 4});
  s.Pod("x", {.gpus = 2, .on = "n0", .comes_back = false});
  s.Pod("y", {.gpus = 2, .on = "n1", .comes_back = false});
  s.Pod("whole", {.gpus = 4});
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
}

TEST(Consolidate, LeavesAloneWhatWasMovedLately) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  s.Node("n1", {.gpus = 4});
  s.Group("x", {});
  s.Pod("x-0", {.group = "x", .gpus = 2, .on = "n0"});
  s.Group("y", {});
  s.Pod("y-0", {.group = "y", .gpus = 2, .on = "n1"});
  s.Group("whole", {.minutes_old = 1});
  s.Pod("whole-0", {.group = "whole", .gpus = 4});
  s.Cycle();
  const WallTime moved = s.now;
  const std::string first =
      s.CountDecisions(Decision::Type::kEvict) == 1 && s.PhaseOf("x-0") == "Running" ? "y" : "x";
  const std::string second = first == "y" ? "x" : "y";
  s.Converge();
  ASSERT_EQ(s.PhaseOf("whole-0"), "Running");
  // What was not moved ends, and as much runs elsewhere, that may not be moved at all.
  s.RemovePod(second + "-0");
  s.Node("n2", {.gpus = 4});
  s.Group("z", {.preemptible = false});
  s.Pod("z-0", {.group = "z", .gpus = 2, .on = "n2"});
  s.Group("another", {.minutes_old = 0});
  s.Pod("another-0", {.group = "another", .gpus = 4});
  s.now = s.now + std::chrono::minutes(1);
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  ASSERT_TRUE(s.last.wake_at.has_value());
  EXPECT_EQ(*s.last.wake_at, moved + Settings().move_pause);
  s.now = *s.last.wake_at;
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Decision::Type::kEvict), 1) << s.Log();
  s.Converge();
  EXPECT_EQ(s.PhaseOf("another-0"), "Running");
  EXPECT_EQ(s.PhaseOf(first + "-0"), "Running");
}

TEST(Consolidate, LetsWhatStartsStart) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  s.Node("n1", {.gpus = 4});
  s.Group("x", {.preemptible = false});
  s.Pod("x-0", {.group = "x", .gpus = 2, .on = "n0"});
  s.Group("filler", {.preemptible = false});
  s.Pod("filler-0", {.group = "filler", .gpus = 2, .on = "n0"});
  s.Group("y", {});
  s.Pod("y-0", {.group = "y", .gpus = 2});
  s.Cycle();
  ASSERT_EQ(s.NodeOf("y-0"), "n1");
  s.RemovePod("filler-0");
  s.Group("whole", {.minutes_old = 1});
  s.Pod("whole-0", {.group = "whole", .gpus = 4});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Decision::Type::kEvict), 0) << s.Log();
  s.AdvancePods();
  ASSERT_TRUE(s.last.wake_at.has_value());
  s.now = *s.last.wake_at;
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Decision::Type::kEvict), 1) << s.Log();
}

}  // namespace
}  // namespace swell::sched
