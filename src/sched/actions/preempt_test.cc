// preempt: who is stopped for whom, no more than needed, and never for nothing.
#include <gtest/gtest.h>

#include "sched/scenario_test_util.h"
#include "sched/state/exclusive_claims.h"
#include "sched/state/state.h"

namespace swell::sched {
namespace {

using Type = Decision::Type;

// Walkthrough 1: three nodes of four GPUs, full with one job of three pods; a critical job of one.
void FillWithMedium(Scenario& s, PreemptUnit unit) {
  for (int i = 0; i < 3; ++i) s.Node(StrCat("master-", i), {.cpu = 16'000});
  for (int i = 0; i < 3; ++i) s.Node(StrCat("worker-", i), {.gpus = 4, .cpu = 16'000});
  s.Group("medium", {.priority = 1'000'000, .min = 3, .unit = unit});
  s.Pods("medium", 3, {.group = "medium", .gpus = 4});
  s.Cycle();
  ASSERT_EQ(s.CountDecisions(Type::kBind), 3);
  s.AdvancePods();
  s.now = s.now + std::chrono::minutes(3);
  s.Group("critical", {.priority = 1'100'000, .minutes_old = 0});
  s.Pod("critical-0", {.group = "critical", .gpus = 1});
}

TEST(Preempt, OnlyThePodNeededWhereTheJobSaysSo) {
  Scenario s;
  FillWithMedium(s, PreemptUnit::kPod);
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kEvict), 1);
  EXPECT_EQ(s.CountDecisions(Type::kNominate), 1);
  const Decision& evict = s.last.decisions[0];
  EXPECT_EQ(evict.Reason(),
            "Preempted by default/critical-0, which needs 1 GPU on worker-2: priority 1100000 is "
            "above 1000000; 720 GPU-seconds since its start");
  EXPECT_EQ(evict.beneficiary->pod, "default/critical-0");
  EXPECT_EQ(evict.beneficiary->group, "default/critical");
  EXPECT_DOUBLE_EQ(evict.lost_gpu_seconds, 720);
  s.Cycle();
  EXPECT_TRUE(s.last.decisions.empty());
  s.AdvancePods();
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("critical-0"), "Bound");
}

TEST(Preempt, ARigidGangIsStoppedWhole) {
  Scenario s;
  FillWithMedium(s, PreemptUnit::kGang);
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kEvict), 3);
  EXPECT_EQ(s.Violations(), "");
  int elsewhere = 0;
  for (const Decision& d : s.last.decisions) {
    elsewhere += d.Reason().find("stopped with the rest of its gang") != std::string::npos;
    const bool names_node = d.Reason().find(" GPU on worker-") != std::string::npos;
    EXPECT_TRUE(names_node || d.type != Type::kEvict) << d.Reason();
  }
  EXPECT_EQ(elsewhere, 2);
  s.Converge();
  EXPECT_EQ(s.PhaseOf("critical-0"), "Running");
  EXPECT_EQ(s.PhaseOf("medium-0"), "Pending");
}

TEST(Preempt, NobodyOfLowerPriorityTakesThePromisedRoom) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Pod("low", {.gpus = 1, .on = "n0", .devices = {0}});
  s.Pod("high", {.gpus = 2, .priority = 80});
  s.Cycle();
  EXPECT_EQ(s.Log(), "evict low n0 [0] preempt\nnominate high n0 [0,1] preempt\n");
  // One GPU is idle, but it is promised.
  s.Pod("sneaky", {.gpus = 1, .priority = 60});
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  s.AdvancePods();
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind high n0 [0,1] allocate\n");
}

TEST(Preempt, TheUserOfAClaimOfOnePodGivesWayToHigherPriority) {
  const auto user = [](PodSpec spec) {
    spec.labels = {{ExclusiveClaimLabel("data"), ""}};
    spec.anti_affinity = {ExclusiveClaimTerm("data")};
    return spec;
  };
  Scenario s;
  s.Node("n0", {});
  s.Node("n1", {});
  s.Pod("other", {.on = "n0"});
  s.Pod("low", user({.on = "n1"}));
  s.Pod("equal", user({}));
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  // Where its user is not, nobody is stopped for the claim; with the user gone, any node will do.
  s.Pod("high", user({.priority = 80}));
  s.Cycle();
  EXPECT_EQ(s.Log(), "evict low n1 [] preempt\nnominate high n0 [] preempt\n");
  s.AdvancePods();
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind high n0 [] allocate\n");
}

// Three nodes of eight GPUs. Project a has lesser work on two of them; b has one less `idle` GPUs,
// and one GPU beside a's work. A gang of a needs whole nodes, and a is due two of them.
void ShareThreeNodes(Scenario& s, int idle, int pieces, int members = 2) {
  for (const char* node : {"n0", "n1", "n2"}) s.Node(node, {.gpus = 8});
  s.Queue(MakeQueue("a", 16));
  s.Queue(MakeQueue("b", 8));
  s.Group("b-full", {.priority = 75, .queue = "b"});
  s.Pod("b-full-0", {.group = "b-full", .gpus = 8 - idle, .on = "n0"});
  s.Group("b-extra", {.queue = "b"});
  s.Pod("b-extra-0", {.group = "b-extra", .gpus = 1, .on = "n2"});
  s.Group("low", {.queue = "a"});
  s.Pod("low-0", {.group = "low", .gpus = 8, .on = "n1"});
  for (int i = 0; i < pieces; ++i) {
    const std::string name = StrCat("piece", i);
    s.Group(name, {.queue = "a"});
    s.Pod(name + "-0", {.group = name, .gpus = 4 / pieces, .on = "n2"});
  }
  s.Group("high", {.priority = 75, .min = members, .queue = "a", .minutes_old = 0});
  s.Pods("high", members, {.group = "high", .gpus = 8});
  s.Cycle();
}

TEST(Preempt, TakesTheRestFromAProjectThatHoldsMoreThanItIsDue) {
  Scenario s;
  ShareThreeNodes(s, 0, 1);
  EXPECT_EQ(s.Log(),
            "evict piece0-0 n2 [1,2,3,4] preempt\n"
            "evict low-0 n1 [0,1,2,3,4,5,6,7] preempt\n"
            "evict b-extra-0 n2 [0] reclaim\n"
            "nominate high-0 n1 [0,1,2,3,4,5,6,7] preempt\n"
            "nominate high-1 n2 [0,1,2,3,4,5,6,7] preempt\n");
  ASSERT_EQ(s.CountDecisions(Type::kEvict), 3);
  EXPECT_EQ(s.last.decisions[0].Reason(),
            "Preempted by default/high-1, which needs 8 GPUs on n2: priority 75 is above 50; 240 "
            "GPU-seconds since its start");
  EXPECT_EQ(s.last.decisions[2].Reason(),
            "Preempted by default/high-1, which needs 8 GPUs on n2: project a has a fair share of "
            "16 GPUs and would hold 16 GPUs; project b held 9 GPUs with a fair share of 8 GPUs and "
            "a quota of 8 GPUs; 60 GPU-seconds since its start");
  EXPECT_LT(s.Converge(), 10);
  EXPECT_EQ(s.PhaseOf("high-1"), "Running");
  EXPECT_EQ(s.Violations(), "");
}

TEST(Preempt, LeavesOtherProjectsWhatTheyAreDue) {
  Scenario s;
  ShareThreeNodes(s, 1, 1);
  EXPECT_EQ(s.CountDecisions(Type::kEvict), 0) << s.Log();
}

TEST(Preempt, TakesNothingOfOthersForMoreThanItsProjectIsDue) {
  Scenario s;
  ShareThreeNodes(s, 0, 1, 3);
  EXPECT_EQ(s.CountDecisions(Type::kEvict), 0) << s.Log();
}

// More units than combinations are tried of.
TEST(Preempt, TakesTheRestFromOthersWhereManyCouldGo) {
  for (const int nodes : {0, 12}) {
    Scenario s;
    for (int i = 0; i < nodes; ++i) {
      s.Node(StrCat("z", i), {.gpus = 1});
      s.Group(StrCat("other", i), {.queue = i % 2 == 0 ? "a" : "b"});
      s.Pod(StrCat("other", i, "-0"),
            {.group = StrCat("other", i), .gpus = 1, .on = StrCat("z", i)});
    }
    ShareThreeNodes(s, 0, 4);
    // Its project holds what it is due: as much of its own goes as it gets.
    std::map<std::string, int> gone;
    for (const Decision& d : s.last.decisions) {
      if (d.type == Type::kEvict) ++gone[d.rule];
    }
    EXPECT_EQ(gone["reclaim"], 1) << s.Log();
    EXPECT_GE(gone["preempt"], 5) << s.Log();
    EXPECT_LT(s.Converge(), 10);
    EXPECT_EQ(s.PhaseOf("high-1"), "Running") << s.Places();
    EXPECT_EQ(s.Violations(), "");
  }
}

// Its search is too large for one cycle, and is not repeated in the next.
TEST(Preempt, IsTriedAgainWhenAMinimumRunTimeEndsThoughTheCycleWasResumed) {
  Scenario s({.search_budget = 1});
  s.Node("n0", {.gpus = 2});
  s.Group("young", {.min_runtime = std::chrono::minutes(10)});
  s.Pod("young-0", {.group = "young", .gpus = 2, .on = "n0", .devices = {0, 1}});
  s.Pod("a", {.gpus = 2, .priority = 80});
  s.Pod("b", {.gpus = 1, .priority = 70});
  s.Cycle();
  ASSERT_TRUE(s.last.more);
  for (int i = 0; s.last.more && i < 5; ++i) s.Cycle();
  ASSERT_FALSE(s.last.more);
  ASSERT_TRUE(s.last.wake_at);
  EXPECT_EQ(*s.last.wake_at, kNoon + std::chrono::minutes(9));
}

TEST(Preempt, AGangThatIsPromisedRoomOnSeveralNodesIsToldSo) {
  Scenario s;
  for (const char* node : {"n0", "n1", "n2"}) {
    s.Node(node, {.gpus = 1});
    s.Pod(StrCat("low-", node), {.gpus = 1, .on = node, .devices = {0}});
  }
  s.Group("g", {.priority = 80, .min = 3});
  s.Pods("g", 3, {.group = "g", .gpus = 1});
  s.Cycle();
  ASSERT_NE(s.WaitingOf("g"), nullptr);
  EXPECT_EQ(s.WaitingOf("g")->reason,
            "waits for terminating pods to leave node n0 and 2 others, which are reserved for it");
}

TEST(Preempt, WhoIsPromisedRoomIsToldOnceAndWhoReplacesThemToo) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Pod("low", {.gpus = 1, .on = "n0", .devices = {0}});
  s.Pod("firm", {.gpus = 1, .on = "n0", .devices = {1}, .priority = 90});
  s.Group("g", {.priority = 80});
  s.Pod("g-0", {.group = "g", .gpus = 1});
  s.Group("late", {.priority = 70});
  s.Pod("late-0", {.group = "late", .gpus = 1});
  s.Cycle();
  EXPECT_TRUE(s.WaitingOf("g")->reason.starts_with("waits for terminating pods to leave node n0"));
  ASSERT_NE(s.WaitingOf("late"), nullptr);
  for (const char* something : {"one", "another"}) {  // now nobody is left to stop for the late one
    s.Pod(something, {});
    s.Cycle();
    EXPECT_EQ(s.WaitingOf("g"), nullptr);
  }
  EXPECT_EQ(s.WaitingOf("late"), nullptr);
  // Their records are given to the next ones.
  s.RemovePod("late-0");
  s.Pod("late-1", {.group = "late", .gpus = 1});
  s.RemovePod("g-0");
  s.Pod("g-1", {.group = "g", .gpus = 1});
  s.Cycle();
  ASSERT_NE(s.WaitingOf("g"), nullptr);
  EXPECT_EQ(s.WaitingOf("g")->pods, std::vector<std::string>{"default/g-1"});
  ASSERT_NE(s.WaitingOf("late"), nullptr);
  EXPECT_EQ(s.WaitingOf("late")->pods, std::vector<std::string>{"default/late-1"});
}

TEST(Preempt, ButSomeoneOfHigherPriorityDoes) {
  Scenario s;
  s.Node("n0", {.gpus = 1});
  s.Pod("low", {.gpus = 1, .on = "n0", .devices = {0}});
  s.Pod("high", {.gpus = 1, .priority = 80});
  s.Cycle();
  s.Pod("higher", {.gpus = 1, .priority = 90});
  s.Cycle();
  EXPECT_EQ(s.Log(), "nominate higher n0 [0] allocate\n");
  EXPECT_EQ(s.last.nominations_cleared, std::vector<std::string>{"default/high"});
}

TEST(Preempt, EqualPriorityAndNonPreemptibleAreSafe) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Pod("equal", {.gpus = 1, .on = "n0", .devices = {0}, .priority = 80});
  s.Pod("firm", {.gpus = 1, .on = "n0", .devices = {1}, .priority = 50, .preemptible = false});
  s.Pod("p", {.gpus = 1, .priority = 80});
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  EXPECT_EQ(s.WaitingOf("p")->reason,
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. Needs 1 GPU; 0 free.");
}

TEST(Preempt, NoEvictionWithoutAStart) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Node("n1", {.gpus = 2});
  s.Pod("low", {.gpus = 1, .on = "n0", .devices = {0}});
  s.Pod("firm", {.gpus = 1, .on = "n0", .devices = {1}, .preemptible = false});
  s.Pod("firm-2", {.gpus = 2, .on = "n1", .devices = {0, 1}, .preemptible = false});
  s.Pod("p", {.gpus = 2, .priority = 80});
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  EXPECT_NE(s.WaitingOf("p")->reason.find("stopping all work that it may preempt would not "
                                          "free enough room"),
            std::string::npos)
      << s.WaitingOf("p")->reason;
}

TEST(Preempt, SurplusGoesBeforeAnyGang) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  s.Group("elastic", {.min = 1});
  for (int i = 0; i < 3; ++i) {
    s.Pod(StrCat("elastic-", i),
          {.group = "elastic", .gpus = 1, .on = "n0", .devices = {i}, .started_minutes_ago = 500});
  }
  s.Pod("cheap", {.gpus = 1, .on = "n0", .devices = {3}, .started_minutes_ago = 0.1});
  s.Pod("high", {.gpus = 2, .priority = 80});
  s.Cycle();
  EXPECT_EQ(s.Log(),
            "evict elastic-2 n0 [2] shrink\nevict elastic-1 n0 [1] shrink\n"
            "nominate high n0 [1,2] shrink\n");
}

// Too many to try every choice: nodes are compared, and the first members are the last to go.
TEST(Preempt, ForAWholeNodeTheLastMembersGo) {
  for (const bool long_ago : {false, true}) {
    Scenario s;
    s.Group("elastic", {.min = 4});
    for (int i = 0; i < 16; ++i) {
      const std::string node = StrCat("n", i / 4);
      if (i % 4 == 0) s.Node(node, {.gpus = 4});
      // They did not begin at the very same time.
      s.Pod(StrCat("elastic-", i), {.group = "elastic",
                                    .gpus = 1,
                                    .on = node,
                                    .devices = {i % 4},
                                    .started_minutes_ago = (long_ago ? 500 : 5) - 0.01 * (i % 7),
                                    .member_priority = 16 - i});
    }
    s.Pod("high", {.gpus = 4, .priority = 80});
    s.Cycle();
    EXPECT_EQ(s.Log(),
              "evict elastic-15 n3 [3] shrink\nevict elastic-14 n3 [2] shrink\n"
              "evict elastic-13 n3 [1] shrink\nevict elastic-12 n3 [0] shrink\n"
              "nominate high n3 [0,1,2,3] shrink\n");
  }
}

TEST(Preempt, PreemptAloneAlsoTakesSurplusFirst) {
  Scenario s;
  s.Node("n0", {.gpus = 3});
  s.Group("elastic", {.min = 1});
  for (int i = 0; i < 3; ++i) {
    s.Pod(StrCat("elastic-", i), {.group = "elastic", .gpus = 1, .on = "n0", .devices = {i}});
  }
  s.Pod("high", {.gpus = 1, .priority = 80});
  s.Cycle(Only({"preempt"}));
  EXPECT_EQ(s.Log(), "evict elastic-2 n0 [2] preempt\nnominate high n0 [2] preempt\n");
}

// The members that stay have the work of one that is given up.
TEST(Preempt, AnElasticJobThatShrinksLosesNoWork) {
  for (const int minimum : {1, 2}) {
    Scenario s;
    s.Node("n0", {.gpus = 2});
    s.Group("elastic", {.min = minimum});
    for (int i = 0; i < 2; ++i) {
      s.Pod(StrCat("elastic-", i),
            {.group = "elastic", .gpus = 1, .on = "n0", .devices = {i}, .member_priority = 2 - i});
    }
    s.Pod("high", {.gpus = 1, .priority = 80});
    s.Cycle(Only({"preempt"}));
    ASSERT_FALSE(s.last.decisions.empty());
    const double lost = s.last.decisions[0].lost_gpu_seconds;
    EXPECT_EQ(lost, minimum == 1 ? 0 : 60) << "with a minimum of 2 it stops as a whole";
    const std::string reason = s.last.decisions[0].Reason();
    EXPECT_EQ(reason.find("GPU-seconds") == std::string::npos, minimum == 1) << reason;
  }
}

TEST(Preempt, TheLeastWorkIsLost) {
  Scenario s;
  s.Node("n0", {.gpus = 1});
  s.Node("n1", {.gpus = 1});
  s.Pod("long", {.gpus = 1, .on = "n0", .devices = {0}, .started_minutes_ago = 100});
  s.Pod("short", {.gpus = 1, .on = "n1", .devices = {0}, .started_minutes_ago = 5});
  s.Pod("high", {.gpus = 1, .priority = 80});
  s.pods["long"].checkpoint = s.now - std::chrono::minutes(1);  // it has saved since
  s.model.UpsertPod(s.pods["long"]);
  s.Cycle();
  EXPECT_EQ(s.Log(), "evict long n0 [0] preempt\nnominate high n0 [0] preempt\n");
  EXPECT_DOUBLE_EQ(s.last.decisions[0].lost_gpu_seconds, 60);
  EXPECT_TRUE(s.last.decisions[0].Reason().ends_with("; 60 GPU-seconds since its last checkpoint"));
}

TEST(Preempt, OneMembersCheckpointKeepsTheWorkOfItsGang) {
  for (const PreemptUnit unit : {PreemptUnit::kGang, PreemptUnit::kPod}) {
    Scenario s;
    s.Node("n0", {.gpus = 2});
    s.Group("gang", {.min = 2, .unit = unit});
    for (int i = 0; i < 2; ++i) {
      s.Pod(StrCat("gang-", i),
            {.group = "gang", .gpus = 1, .on = "n0", .devices = {i}, .started_minutes_ago = 100});
    }
    s.Pod("high", {.gpus = 2, .priority = 80});
    PodInfo& leader = s.pods["gang-0"];
    leader.checkpoint = s.now - std::chrono::minutes(50);
    s.model.UpsertPod(leader);
    leader.checkpoint = s.now - std::chrono::minutes(1);
    s.model.UpsertPod(leader);
    s.Cycle();
    std::map<std::string, double> lost;
    for (const Decision& decision : s.last.decisions) {
      if (decision.type == Decision::Type::kEvict) lost[decision.pod] = decision.lost_gpu_seconds;
    }
    const double other = unit == PreemptUnit::kGang ? 60 : 6000;
    EXPECT_EQ(lost,
              (std::map<std::string, double>{{"default/gang-0", 60}, {"default/gang-1", other}}));
  }
}

TEST(Preempt, AGangHasSavedNothingMoreWhenTheMemberThatSavedIsGone) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Group("gang", {.min = 2});
  for (int i = 0; i < 2; ++i) {
    s.Pod(StrCat("gang-", i),
          {.group = "gang", .gpus = 1, .on = "n0", .devices = {i}, .started_minutes_ago = 100});
  }
  s.pods["gang-0"].checkpoint = s.now - std::chrono::minutes(1);
  s.model.UpsertPod(s.pods["gang-0"]);
  s.RemovePod("gang-0");
  s.Pod("high", {.gpus = 2, .priority = 80});
  s.Cycle(Only({"preempt"}));
  ASSERT_FALSE(s.last.decisions.empty());
  EXPECT_EQ(s.last.decisions[0].lost_gpu_seconds, 6000);
}

TEST(Preempt, AmongEqualCostsTheLowestPriorityThenTheYoungest) {
  Scenario s;
  s.Node("n0", {.gpus = 3});
  s.Pod("a", {.gpus = 1, .on = "n0", .devices = {0}, .priority = 40, .minutes_old = 5});
  s.Pod("b", {.gpus = 1, .on = "n0", .devices = {1}, .priority = 40, .minutes_old = 4});
  s.Pod("c", {.gpus = 1, .on = "n0", .devices = {2}, .priority = 50, .minutes_old = 3});
  s.Pod("high", {.gpus = 1, .priority = 80});
  s.Cycle();
  EXPECT_EQ(s.Log(), "evict b n0 [1] preempt\nnominate high n0 [1] preempt\n");
}

TEST(Preempt, TheVictimSetIsMinimal) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  s.Pod("one", {.gpus = 1, .on = "n0", .devices = {0}, .started_minutes_ago = 1});
  s.Pod("three", {.gpus = 3, .on = "n0", .devices = {1, 2, 3}, .started_minutes_ago = 2});
  s.Pod("high", {.gpus = 3, .priority = 80});
  s.Cycle();
  EXPECT_EQ(s.Log(), "evict three n0 [1,2,3] preempt\nnominate high n0 [1,2,3] preempt\n");
}

TEST(Preempt, AGangTakesAsManyNodesAsItNeeds) {
  Scenario s;
  for (int i = 0; i < 4; ++i) {
    s.Node(StrCat("n", i), {.gpus = 4});
    s.Pod(StrCat("low-", i), {.gpus = 4,
                              .on = StrCat("n", i),
                              .devices = {0, 1, 2, 3},
                              .started_minutes_ago = 10.0 + i});
  }
  s.Group("g", {.priority = 80, .min = 3});
  s.Pods("g", 3, {.group = "g", .gpus = 4});
  s.Cycle();
  EXPECT_EQ(s.Log(),
            "evict low-0 n0 [0,1,2,3] preempt\nevict low-1 n1 [0,1,2,3] preempt\n"
            "evict low-2 n2 [0,1,2,3] preempt\nnominate g-0 n0 [0,1,2,3] preempt\n"
            "nominate g-1 n1 [0,1,2,3] preempt\nnominate g-2 n2 [0,1,2,3] preempt\n");
  EXPECT_EQ(s.Converge(), 1);
  EXPECT_EQ(s.PhaseOf("g-2"), "Running");
}

TEST(Preempt, MinRuntimeProtectsGangsButNotSurplus) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Group("g", {.min = 1, .min_runtime = std::chrono::minutes(5)});
  s.Pod("g-0", {.group = "g", .gpus = 2, .on = "n0", .devices = {0, 1}});
  s.Pod("high", {.gpus = 1, .priority = 80});
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  ASSERT_TRUE(s.last.wake_at.has_value());
  EXPECT_EQ(*s.last.wake_at, s.now + std::chrono::minutes(4));
  s.now = *s.last.wake_at;
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kEvict), 1);
}

TEST(Preempt, DisruptionBudgetsAreKept) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Group("g", {.min = 2});
  s.Pods("g", 2, {.group = "g", .gpus = 1, .on = "n0", .labels = {{"app", "g"}}});
  s.Budget("b", {{"app", "g"}}, 1);
  s.Pod("high", {.gpus = 1, .priority = 80});
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  EXPECT_NE(s.WaitingOf("high")->reason.find("a disruption budget"), std::string::npos);
  s.Budget("b", {{"app", "g"}}, 2);
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kEvict), 2);
}

TEST(Preempt, OneBudgetIsSharedByAllItCovers) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  s.Pods("web", 4, {.gpus = 1, .on = "n0", .labels = {{"app", "web"}}});
  s.Budget("web", {{"app", "web"}}, 1);
  s.Pod("large", {.gpus = 2, .priority = 80});
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  s.Pod("small", {.gpus = 1, .priority = 80});
  s.Pod("small-2", {.gpus = 1, .priority = 80});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kEvict), 1) << s.Log();
  // Decided and not yet seen by the budget's controller.
  s.Pod("small-3", {.gpus = 1, .priority = 90});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kEvict), 0) << s.Log();
}

TEST(Preempt, ABudgetOfOtherPodsDoesNotMatter) {
  Scenario s;
  s.Node("n0", {.gpus = 1});
  s.Pod("low", {.gpus = 1, .on = "n0", .devices = {0}, .labels = {{"app", "web"}}});
  s.Budget("other", {{"app", "db"}}, 0);
  s.model.UpsertBudget({"elsewhere/all", {}, 0});
  s.Pod("high", {.gpus = 1, .priority = 80});
  s.Cycle();
  EXPECT_EQ(s.Log(), "evict low n0 [0] preempt\nnominate high n0 [0] preempt\n");
}

TEST(Preempt, WhoMayNotPreemptGoesFirstAndStopsNobody) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Pod("low", {.gpus = 1, .on = "n0", .devices = {0}});
  s.Pod("low-2", {.gpus = 1, .on = "n0", .devices = {1}});
  s.Pod("never", {.gpus = 1, .priority = 90, .may_preempt = false});
  s.Pod("equal", {.gpus = 1, .minutes_old = 60});
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  EXPECT_EQ(
      s.WaitingOf("never")->reason,
      "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. Needs 1 GPU; 0 free; it may not "
      "preempt others: its preemptionPolicy is Never.");
  s.RemovePod("low");
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind never n0 [0] allocate\n");
}

TEST(Preempt, NeitherDoesAGangWhoseClassOrMemberMayNot) {
  for (const bool by_class : {true, false}) {
    Scenario s;
    s.Node("n0", {.gpus = 2});
    s.Pods("low", 2, {.gpus = 1, .on = "n0"});
    s.Group("gang", {.priority = 90, .min = 2, .may_preempt = !by_class});
    s.Pod("gang-0", {.group = "gang", .gpus = 1});
    s.Pod("gang-1", {.group = "gang", .gpus = 1, .may_preempt = by_class});
    s.Cycle();
    EXPECT_EQ(s.Log(), "") << by_class;
  }
}

TEST(Preempt, OtherQueuesAreNotTouched) {
  Scenario s;
  s.Node("n0", {.gpus = 1});
  for (const char* name : {"a", "b"}) {
    QueueInfo queue;
    queue.name = name;
    s.Queue(queue);
  }
  s.Group("low", {.queue = "a"});
  s.Pod("low-0", {.group = "low", .gpus = 1, .on = "n0", .devices = {0}});
  s.Group("high", {.priority = 80, .queue = "b"});
  s.Pod("high-0", {.group = "high", .gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  s.Group("high", {.priority = 80, .queue = "a"});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kEvict), 1);
}

TEST(Preempt, AQueueAtItsLimitMakesRoomWithinItself) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  QueueInfo queue;
  queue.name = "team";
  queue.gpu = {.quota = 1, .limit = 2};
  s.Queue(queue);
  s.Group("low", {.queue = "team"});
  s.Pods("low", 2, {.group = "low", .gpus = 1, .on = "n0"});
  s.Group("high", {.priority = 80, .queue = "team"});
  s.Pod("high-0", {.group = "high", .gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kEvict), 1);
  EXPECT_EQ(s.CountDecisions(Type::kNominate), 1);
  // There is room beside the one that goes, but the project would hold three GPUs.
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  s.AdvancePods();
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("high-0"), "Bound");
}

TEST(Preempt, WhatTerminatesCountsAgainstTheLimitUntilItIsGone) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  QueueInfo queue;
  queue.name = "team";
  queue.gpu = {.quota = 1, .limit = 2};
  s.Queue(queue);
  s.Group("old", {.queue = "team"});
  s.Pods("old", 2, {.group = "old", .gpus = 1, .on = "n0"});
  for (const char* name : {"old-0", "old-1"}) {
    s.pods.at(name).phase = PodPhase::kReleasing;
    s.model.UpsertPod(s.pods.at(name));
  }
  s.Group("new", {.min = 2, .queue = "team"});
  s.Pods("new", 2, {.group = "new", .gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kBind), 0);
  EXPECT_EQ(s.CountDecisions(Type::kNominate), 2);
  s.RemovePod("old-0");
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  s.RemovePod("old-1");
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kBind), 2);
}

// A job that was deleted: its PodGroup went first, and a scheduler that begins has never seen it.
TEST(Preempt, WhatAForgottenGangStillHoldsCountsAgainstTheLimit) {
  Scenario s;
  s.KeepRecords(1);
  s.Node("n0", {.gpus = 4});
  QueueInfo queue;
  queue.name = "team";
  queue.gpu = {.quota = 1, .limit = 2};
  s.Queue(queue);
  s.Pods("old", 2, {.group = "old", .gpus = 1, .on = "n0"});
  for (const char* name : {"old-0", "old-1"}) {
    s.pods.at(name).queue = "team";
    s.pods.at(name).phase = PodPhase::kReleasing;
    s.model.UpsertPod(s.pods.at(name));
  }
  s.Group("new", {.queue = "team"});
  s.Pods("new", 1, {.group = "new", .gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kBind), 0);
  s.RemovePod("old-0");
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kBind), 1);
  EXPECT_EQ(s.ReplayDifference(), "");
}

TEST(Preempt, CpuPodsPreemptToo) {
  Scenario s;
  s.Node("n0", {.cpu = 3900});
  s.Pods("low", 3, {.cpu = 1200, .on = "n0"});
  s.Pod("high", {.cpu = 1500, .priority = 80});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kEvict), 1);
  EXPECT_EQ(s.CountDecisions(Type::kNominate), 1);
}

TEST(Preempt, PortsAreFreedByEvictingTheirHolder) {
  Scenario s;
  s.Node("n0", {});
  s.Pod("holder", {.on = "n0", .ports = {{"TCP", "", 80}}});
  s.Pod("other", {.on = "n0"});
  s.Pod("high", {.priority = 80, .ports = {{"TCP", "", 80}}});
  s.Cycle();
  EXPECT_EQ(s.Log(), "evict holder n0 [] preempt\nnominate high n0 [] preempt\n");
}

TEST(Preempt, AShareIsFreedOnOneDevice) {
  Scenario s;
  s.Node("n0", {.gpus = 1});
  s.Pods("half", 2, {.fraction = 0.5, .on = "n0", .devices = {0}});
  s.Pod("high", {.fraction = 0.5, .priority = 80});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kEvict), 1);
  EXPECT_EQ(s.CountDecisions(Type::kNominate), 1);
}

TEST(Preempt, OnePlanPerGroupAndCycle) {
  Scenario s;
  s.Node("n0", {.gpus = 3});
  s.Group("elastic", {.min = 1});
  s.Pods("elastic", 3, {.group = "elastic", .gpus = 1, .on = "n0"});
  s.Group("high",
          {.priority = 80, .min = 1});  // elastic too: its second pod is not a reason to stop
  s.Pods("high", 2, {.group = "high", .gpus = 2});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kEvict), 2);
  EXPECT_EQ(s.CountDecisions(Type::kNominate), 1);
}

TEST(Preempt, WhoeverWasJustPlacedIsTakenBackRatherThanEvicted) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  s.Pod("low", {.gpus = 2, .on = "n0", .devices = {0, 1}});
  s.Pod("filler", {.gpus = 2, .priority = 40});
  s.Pod("high", {.gpus = 4, .priority = 80});
  s.Cycle();
  EXPECT_EQ(s.Log(), "evict low n0 [0,1] preempt\nnominate high n0 [0,1,2,3] preempt\n");
  EXPECT_EQ(s.PhaseOf("filler"), "Pending");
  EXPECT_TRUE(s.last.more);
}

TEST(Preempt, ASearchTooLargeForTheBudgetDoesNotSpinNorBlockOthers) {
  Settings settings;
  settings.search_budget = 6;
  Scenario s(settings);
  for (int i = 0; i < 40; ++i) {
    s.Node(StrCat("n", i), {.gpus = 1, .labels = {{"zone", i == 0 ? "small" : "large"}}});
    s.Pod(StrCat("low-", i), {.gpus = 1, .on = StrCat("n", i), .devices = {0}});
  }
  s.Group("wide", {.priority = 90, .min = 30});
  s.Pods("wide", 30, {.group = "wide", .gpus = 1});
  int cycles = 0;
  for (; cycles < 10; ++cycles) {
    s.Cycle();
    EXPECT_EQ(s.Log(), "");
    if (!s.last.more) break;
  }
  EXPECT_LT(cycles, 5);
  EXPECT_GT(s.scheduler.stats().searches_out_of_budget, 0);
  s.Cycle();
  EXPECT_GT(s.scheduler.stats().empty_cycles, 0);
}

TEST(Preempt, ARefusedDecisionIsForgotten) {
  Scenario s;
  s.Node("n0", {.gpus = 1});
  s.Pod("p", {.gpus = 1});
  s.scheduler.RunCycle(s.model, s.now);
  EXPECT_EQ(s.PhaseOf("p"), "Bound");
  // A stale event does not undo the decision; Forget does.
  s.model.UpsertPod(s.pods["p"]);
  EXPECT_EQ(s.PhaseOf("p"), "Bound");
  s.model.Forget("default/p");
  EXPECT_EQ(s.PhaseOf("p"), "Pending");
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind p n0 [0] allocate\n");
}

TEST(Preempt, AnEventFromBeforeABindingDoesNotFreeAnEvictedPlace) {
  Scenario s;
  s.Node("n0", {.gpus = 1});
  s.Pod("p", {.gpus = 1});
  s.scheduler.RunCycle(s.model, s.now);
  s.model.AssumeEvicted("default/p");
  s.model.UpsertPod(s.pods["p"]);
  EXPECT_EQ(s.PhaseOf("p"), "Releasing");
  s.Pod("q", {.gpus = 1});
  s.scheduler.RunCycle(s.model, s.now);
  EXPECT_EQ(s.PhaseOf("q"), "Pending");
  s.model.Forget("default/p");
  EXPECT_EQ(s.PhaseOf("p"), "Pending");
}

}  // namespace
}  // namespace swell::sched
