// Large jobs do not starve: they hold nodes once they have waited long.
#include <gtest/gtest.h>

#include "sched/scenario_test_util.h"

namespace swell::sched {
namespace {

// Two nodes busy with one small job each; a job of two whole nodes has waited for an hour.
void FillAndWait(Scenario& s, int big_priority) {
  s.Node("n0", {.gpus = 4});
  s.Node("n1", {.gpus = 4});
  s.Group("old0", {.preemptible = false});
  s.Pod("old0-0", {.group = "old0", .gpus = 1, .on = "n0"});
  s.Group("old1", {.preemptible = false});
  s.Pod("old1-0", {.group = "old1", .gpus = 1, .on = "n1"});
  s.Group("big", {.priority = big_priority, .min = 2, .minutes_old = 60});
  s.Pods("big", 2, {.group = "big", .gpus = 4});
}

TEST(Reservation, EqualsMayNotTakeWhatALongWaitingJobDrains) {
  Scenario s;
  FillAndWait(s, 50);
  s.Group("small", {.preemptible = false, .minutes_old = 1});
  s.Pod("small-0", {.group = "small", .gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("small-0"), "Pending");
  ASSERT_NE(s.WaitingOf("small"), nullptr);
  EXPECT_NE(s.WaitingOf("small")->reason.find("held for default/big"), std::string::npos)
      << s.WaitingOf("small")->reason;
  ASSERT_NE(s.WaitingOf("big"), nullptr);
  EXPECT_NE(s.WaitingOf("big")->reason.find("2 nodes are held for it"), std::string::npos)
      << s.WaitingOf("big")->reason;
  s.RemovePod("old0-0");
  s.RemovePod("old1-0");
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("big-0"), "Bound");
  EXPECT_EQ(s.PhaseOf("big-1"), "Bound");
}

TEST(Reservation, AJobIsToldWhenNodesAreHeldForItThoughNothingElseChanged) {
  Scenario s;
  FillAndWait(s, 50);
  s.now = s.now - std::chrono::minutes(45);
  s.KeepRecords(1);
  s.Cycle();
  ASSERT_NE(s.WaitingOf("big"), nullptr);
  EXPECT_EQ(s.WaitingOf("big")->reason.find("held for it"), std::string::npos);
  s.now = *s.last.wake_at;
  s.Cycle();
  ASSERT_NE(s.WaitingOf("big"), nullptr);
  EXPECT_NE(s.WaitingOf("big")->reason.find("2 nodes are held for it"), std::string::npos)
      << s.WaitingOf("big")->reason;
  EXPECT_EQ(s.ReplayDifference(), "");
}

// A project that is due all there is, and whose own small jobs keep some of it busy.
TEST(Reservation, AProjectsLargeJobIsNotStarvedByItsSmallOnes) {
  Scenario s;
  QueueInfo a;
  a.name = "a";
  a.gpu = {8, 8, 1};
  s.Queue(a);
  for (const char* node : {"n0", "n1"}) s.Node(node, {.gpus = 4});
  s.Group("old", {.preemptible = false, .queue = "a"});
  s.Pod("old-0", {.group = "old", .gpus = 1, .on = "n0"});
  s.Group("impossible", {.queue = "a", .minutes_old = 90});
  s.Pod("impossible-0", {.group = "impossible", .gpus = 6});
  s.Group("big", {.min = 2, .queue = "a", .minutes_old = 60});
  s.Pods("big", 2, {.group = "big", .gpus = 4});
  s.Group("small", {.queue = "a", .minutes_old = 1});
  s.Pod("small-0", {.group = "small", .gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  EXPECT_NE(s.WaitingOf("big")->reason.find("2 nodes are held for it"), std::string::npos)
      << s.WaitingOf("big")->reason;
  s.RemovePod("old-0");
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("big-1"), "Bound");
}

TEST(Reservation, NobodyHoldsNodesForMoreThanItsProjectIsDue) {
  Scenario s;
  QueueInfo a;
  a.name = "a";
  a.gpu = {4, kUnlimited, 0};
  s.Queue(a);
  QueueInfo b;
  b.name = "b";
  b.gpu = {8, kUnlimited, 0};
  s.Queue(b);
  for (const char* node : {"n0", "n1"}) s.Node(node, {.gpus = 4});
  s.Group("own", {.preemptible = false, .queue = "a"});
  s.Pod("own-0", {.group = "own", .gpus = 4, .on = "n0"});
  s.Group("others", {.preemptible = false, .queue = "b"});
  s.Pod("others-0", {.group = "others", .gpus = 3, .on = "n1"});
  s.Group("big", {.min = 2, .queue = "a", .minutes_old = 60});
  s.Pods("big", 2, {.group = "big", .gpus = 3});
  s.Group("small", {.queue = "b", .minutes_old = 1});
  s.Pod("small-0", {.group = "small", .gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("small-0"), "Bound");
}

TEST(Reservation, BeforeThatTheyMay) {
  Scenario s;
  FillAndWait(s, 50);
  s.Group("big", {.priority = 50, .min = 2, .minutes_old = 5});
  s.Group("small", {.preemptible = false, .minutes_old = 1});
  s.Pod("small-0", {.group = "small", .gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("small-0"), "Bound");
  ASSERT_TRUE(s.last.wake_at.has_value());
  EXPECT_EQ(*s.last.wake_at, s.now + std::chrono::minutes(25));
}

TEST(Reservation, PreemptibleWorkFillsTheHole) {
  Scenario s;
  FillAndWait(s, 75);
  s.Group("filler", {.priority = 50, .minutes_old = 1});
  s.Pod("filler-0", {.group = "filler", .gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("filler-0"), "Bound");
}

TEST(Reservation, ShortWorkFillsTheHole) {
  Scenario s;
  FillAndWait(s, 50);
  for (const char* name : {"old0-0", "old1-0"}) {
    s.pods[name].max_runtime = std::chrono::hours(2);
    s.model.UpsertPod(s.pods[name]);
  }
  s.Group("short", {.preemptible = false, .minutes_old = 2});
  s.Pod("short-0", {.group = "short", .gpus = 1});
  s.pods["short-0"].max_runtime = std::chrono::hours(1);
  s.model.UpsertPod(s.pods["short-0"]);
  s.Group("long", {.preemptible = false, .minutes_old = 1});
  s.Pod("long-0", {.group = "long", .gpus = 1});
  s.pods["long-0"].max_runtime = std::chrono::hours(3);
  s.model.UpsertPod(s.pods["long-0"]);
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("short-0"), "Bound");
  EXPECT_EQ(s.PhaseOf("long-0"), "Pending");
}

// Nodes held for a job do not stop pods from moving onto them, if the move makes room for the job.
TEST(Reservation, WhoMovesForTheHolderMayGoWhereItHolds) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  for (int i : {0, 1}) {
    const std::string name = StrCat("half", i);
    s.Group(name, {.minutes_old = 70});
    s.Pod(StrCat(name, "-0"), {.group = name, .fraction = 0.5, .on = "n0", .devices = {i}});
  }
  s.Group("whole", {.minutes_old = 60});
  s.Pod("whole-0", {.group = "whole", .gpus = 1});
  s.Converge(10);
  EXPECT_EQ(s.PhaseOf("whole-0"), "Running");
  EXPECT_EQ(s.PhaseOf("half0-0"), "Running");
  EXPECT_EQ(s.PhaseOf("half1-0"), "Running");
}

}  // namespace
}  // namespace swell::sched
