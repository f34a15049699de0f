// Rules between the users of a project: how much one may hold, and who goes first.
#include <gtest/gtest.h>

#include "sched/scenario_test_util.h"

namespace swell::sched {
namespace {

QueueInfo Team(double user_gpu_limit, bool fair) {
  QueueInfo info = MakeQueue("team", 8);
  info.user_gpu_limit = user_gpu_limit;
  info.fair_to_users = fair;
  return info;
}

// A gang of one pod.
void Job(Scenario& s, const std::string& name, const std::string& user, int gpus, int minutes_old) {
  s.Group(name, {.queue = "team", .minutes_old = minutes_old});
  s.Pod(name + "-0", {.group = name, .user = user, .gpus = gpus, .minutes_old = minutes_old});
}

TEST(UserRules, NobodyHoldsMoreThanTheLimit) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Queue(Team(3, false));
  Job(s, "a", "alice", 2, 30);
  Job(s, "b", "alice", 2, 20);
  Job(s, "c", "bob", 2, 10);
  s.Cycle();
  EXPECT_EQ(s.NodeOf("a-0"), "n0");
  EXPECT_EQ(s.NodeOf("b-0"), "");
  EXPECT_EQ(s.NodeOf("c-0"), "n0");
  const Waiting* waiting = s.WaitingOf("b");
  ASSERT_NE(waiting, nullptr);
  EXPECT_EQ(waiting->reason,
            "user alice would exceed the limit of 3 GPUs for each user of project team: 2 GPUs "
            "used, 2 GPUs asked");
}

TEST(UserRules, WorkAboveTheLimitSaysThatItAloneIs) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Queue(Team(3, false));
  Job(s, "a", "alice", 4, 30);
  s.Cycle();
  const Waiting* waiting = s.WaitingOf("a");
  ASSERT_NE(waiting, nullptr);
  EXPECT_EQ(waiting->reason,
            "4 GPUs asked at once, above the limit of 3 GPUs for each user of project team");
}

TEST(UserRules, TheLimitCountsWhatIsStillLeaving) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Queue(Team(2, false));
  Job(s, "a", "alice", 2, 30);
  s.Cycle();
  s.AdvancePods();
  s.RemovePod("a-0");
  Job(s, "b", "alice", 2, 20);
  s.Cycle();
  EXPECT_EQ(s.NodeOf("b-0"), "n0");
}

TEST(UserRules, RaisingTheLimitLetsWorkStart) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Queue(Team(2, false));
  Job(s, "a", "alice", 2, 30);
  Job(s, "b", "alice", 2, 20);
  s.Converge();
  EXPECT_EQ(s.NodeOf("b-0"), "");
  s.Queue(Team(4, false));
  s.Converge();
  EXPECT_EQ(s.NodeOf("b-0"), "n0");
}

TEST(UserRules, WorkOfNobodyKnownHasNoLimit) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Queue(Team(1, false));
  Job(s, "a", "", 4, 30);
  s.Cycle();
  EXPECT_EQ(s.NodeOf("a-0"), "n0");
}

// Alice came first with all of hers; Bob gets his turn nevertheless.
TEST(UserRules, WhoHoldsLessGoesFirst) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  s.Queue(Team(kUnlimited, true));
  for (int i = 0; i < 4; ++i) Job(s, StrCat("a", i), "alice", 1, 60 - i);
  for (int i = 0; i < 4; ++i) Job(s, StrCat("b", i), "bob", 1, 30 - i);
  s.Cycle();
  EXPECT_EQ(s.Log(),
            "bind a0-0 n0 [0] allocate\n"
            "bind b0-0 n0 [1] allocate\n"
            "bind a1-0 n0 [2] allocate\n"
            "bind b1-0 n0 [3] allocate\n");
}

TEST(UserRules, PriorityComesBeforeTurns) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Queue(Team(kUnlimited, true));
  for (int i = 0; i < 2; ++i) {
    const std::string name = StrCat("a", i);
    s.Group(name, {.priority = 90, .queue = "team", .minutes_old = 10 - i});
    s.Pod(name + "-0", {.group = name, .user = "alice", .gpus = 1});
  }
  Job(s, "b", "bob", 1, 60);
  s.Cycle();
  EXPECT_EQ(s.NodeOf("a0-0"), "n0");
  EXPECT_EQ(s.NodeOf("a1-0"), "n0");
  EXPECT_EQ(s.NodeOf("b-0"), "");
}

TEST(UserRules, WithoutTheRuleTheOldestGoesFirst) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Queue(Team(kUnlimited, false));
  for (int i = 0; i < 3; ++i) Job(s, StrCat("a", i), "alice", 1, 60 - i);
  Job(s, "b", "bob", 1, 30);
  s.Cycle();
  EXPECT_EQ(s.NodeOf("a0-0"), "n0");
  EXPECT_EQ(s.NodeOf("a1-0"), "n0");
  EXPECT_EQ(s.NodeOf("b-0"), "");
}

// Surplus members take turns alike.
TEST(UserRules, ElasticMembersAreSharedAmongUsers) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Queue(Team(kUnlimited, true));
  for (const char* user : {"alice", "bob"}) {
    s.Group(user, {.queue = "team", .minutes_old = user[0] == 'a' ? 60 : 10});
    s.Pods(user, 8, {.group = user, .user = user, .gpus = 1});
  }
  s.Cycle();
  s.AdvancePods();
  int alices = 0;
  for (int i = 0; i < 8; ++i) alices += s.NodeOf(StrCat("alice-", i)) == "n0" ? 1 : 0;
  EXPECT_EQ(alices, 4);
}

// A recording tells it all: the same decisions follow from it.
TEST(UserRules, AReplayKnowsTheUsers) {
  Scenario s;
  s.KeepRecords(256);
  s.Node("n0", {.gpus = 4});
  s.Queue(Team(2, true));
  for (int i = 0; i < 4; ++i) Job(s, StrCat("a", i), "alice", 1, 60 - i);
  for (int i = 0; i < 4; ++i) Job(s, StrCat("b", i), "bob", 1, 30 - i);
  s.Converge();
  EXPECT_EQ(s.ReplayDifference(), "");
}

// With a limit for each user, one user's failure to make room does not speak for another's.
TEST(UserRules, OthersMayStillTakeRoomByPriority) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  s.Queue(Team(4, false));
  for (int i = 0; i < 4; ++i) {
    const std::string name = StrCat("low", i);
    s.Group(name, {.priority = 10, .queue = "team", .minutes_old = 60});
    s.Pod(name + "-0", {.group = name, .user = "carol", .gpus = 1, .on = "n0"});
  }
  QueueInfo team = Team(1, false);
  s.Queue(team);
  s.Group("held", {.priority = 60, .queue = "team", .minutes_old = 50});
  s.Pod("held-0", {.group = "held", .user = "alice", .gpus = 2, .minutes_old = 50});
  s.Group("next", {.priority = 60, .queue = "team", .minutes_old = 40});
  s.Pod("next-0", {.group = "next", .user = "bob", .gpus = 1, .minutes_old = 40});
  s.Converge();
  EXPECT_EQ(s.NodeOf("held-0"), "");
  EXPECT_EQ(s.NodeOf("next-0"), "n0");
}

}  // namespace
}  // namespace swell::sched
