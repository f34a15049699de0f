// Queues: what they are due, what they give back, pools and past use.
#include <gtest/gtest.h>

#include "sched/scenario_test_util.h"

namespace swell::sched {
namespace {

// Walkthrough 2: two projects of four GPUs each on one node of eight; a takes all of it.
void TwoProjects(Scenario& s, int members, int minimum, int gpus) {
  s.Node("n0", {.gpus = 8});
  s.Queue(MakeQueue("a", 4));
  s.Queue(MakeQueue("b", 4));
  s.Group("big", {.min = minimum, .queue = "a"});
  s.Pods("big", members, {.group = "big", .gpus = gpus});
  s.Cycle();
  s.AdvancePods();
  s.now = s.now + std::chrono::minutes(30);
  s.Group("claim", {.queue = "b", .minutes_old = 0});
  s.Pod("claim-0", {.group = "claim", .gpus = 4});
}

TEST(Reclaim, ARigidJobOverQuotaIsStoppedWholeAndComesBack) {
  Scenario s;
  TwoProjects(s, 1, 1, 8);
  ASSERT_EQ(s.PhaseOf("big-0"), "Running") << "over quota while nobody else asks";
  s.Cycle();
  EXPECT_EQ(s.Log(),
            "evict big-0 n0 [0,1,2,3,4,5,6,7] reclaim\nnominate claim-0 n0 [0,1,2,3] reclaim\n");
  EXPECT_EQ(
      s.last.decisions[0].Reason(),
      "Preempted by default/claim-0, which needs 4 GPUs on n0: project b has a fair share of 4 "
      "GPUs and would hold 4 GPUs; project a held 8 GPUs with a fair share of 4 GPUs and a quota "
      "of 4 "
      "GPUs; 14400 GPU-seconds since its start");
  s.Converge();
  EXPECT_EQ(s.Places(), "big-0:Pending\nclaim-0:Running@n0\n");
  s.RemovePod("claim-0");
  s.Converge();
  EXPECT_EQ(s.PhaseOf("big-0"), "Running");
}

// Quotas of five GPUs where there are four: the gang is due them all, the half is due its own.
TEST(Reclaim, WhoGoesBeyondItsQuotaLeavesOthersWhatTheyHoldWithinTheirs) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Node("n1", {.gpus = 2});
  s.Queue(MakeQueue("all", 5));
  s.Queue(MakeQueue("a", 2, "all"));
  s.Queue(MakeQueue("b", 1, "all"));
  s.Group("gang", {.min = 2, .queue = "a"});
  s.Pods("gang", 2, {.group = "gang", .gpus = 2});
  s.Group("large", {.priority = 75, .queue = "b"});
  s.Pod("large-0", {.group = "large", .gpus = 2});
  s.Group("half", {.queue = "b"});
  s.Pod("half-0", {.group = "half", .fraction = 0.5});
  s.Converge(40);
  EXPECT_EQ(s.PhaseOf("half-0"), "Running");
  EXPECT_EQ(s.PhaseOf("gang-0"), "Pending");
  s.RemovePod("large-0");
  s.Converge(40);
  EXPECT_EQ(s.PhaseOf("half-0"), "Running") << s.Places();
  s.RemovePod("half-0");
  s.Converge(40);
  EXPECT_EQ(s.PhaseOf("gang-0"), "Running") << s.Places();
}

// Two projects have quotas of all there is, and a third holds it.
TEST(Reclaim, AJobOfAWholeQuotaGetsItWhereQuotasPromiseMoreThanThereIs) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Queue(MakeQueue("above", 8));
  s.Queue(MakeQueue("a", 8, "above"));
  s.Queue(MakeQueue("b", 8));
  s.Queue(MakeQueue("c", 0));
  for (const char* name : {"old0", "old1"}) {
    s.Group(name, {.min = 4, .queue = "c"});
    s.Pods(name, 4, {.group = name, .gpus = 1, .on = "n0"});
  }
  s.Group("whole", {.queue = "a"});
  s.Pod("whole-0", {.group = "whole", .gpus = 8});
  s.Group("halves", {.min = 2, .queue = "b"});
  s.Pods("halves", 2, {.group = "halves", .gpus = 4});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Decision::Type::kEvict), 8) << s.Log();
  EXPECT_NE(
      s.last.decisions[0].Reason().find("project a has a quota of 8 GPUs and would hold 8 GPUs"),
      std::string::npos)
      << s.last.decisions[0].Reason();
}

// Nobody can start on a cordoned node: two projects share what is left.
TEST(Reclaim, ACordonedNodeIsNotSharedOut) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Node("n1", {.gpus = 8, .cordoned = true});
  s.Queue(MakeQueue("a", 0));
  s.Queue(MakeQueue("b", 0));
  s.Group("many", {.queue = "a"});
  s.Pods("many", 8, {.group = "many", .gpus = 1, .on = "n0"});
  s.Group("here", {.queue = "b"});
  s.Pods("here", 5, {.group = "here", .gpus = 1});
  s.Converge();
  EXPECT_EQ(s.CountDecisions(Decision::Type::kEvict), 0);
  int running = 0;
  for (int i = 0; i < 5; ++i) running += s.PhaseOf(StrCat("here-", i)) == "Running";
  EXPECT_EQ(running, 4);
}

TEST(Reclaim, AnElasticJobShrinksToQuotaAndGrowsBack) {
  Scenario s;
  TwoProjects(s, 8, 1, 1);
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Decision::Type::kEvict), 4);
  for (const Decision& d : s.last.decisions) EXPECT_EQ(d.rule, "shrink");
  s.Converge();
  int running = 0;
  for (int i = 0; i < 8; ++i) running += s.PhaseOf(StrCat("big-", i)) == "Running";
  EXPECT_EQ(running, 4);
  EXPECT_EQ(s.PhaseOf("claim-0"), "Running");
  s.RemovePod("claim-0");
  s.Converge();
  running = 0;
  for (int i = 0; i < 8; ++i) running += s.PhaseOf(StrCat("big-", i)) == "Running";
  EXPECT_EQ(running, 8);
}

TEST(Reclaim, NotBeyondTheFairShare) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Queue(MakeQueue("a", 4));
  s.Queue(MakeQueue("b", 4));
  s.Group("mine", {.min = 4, .queue = "a"});
  s.Pods("mine", 4, {.group = "mine", .gpus = 1, .on = "n0"});
  s.Group("theirs", {.min = 4, .queue = "b"});
  s.Pods("theirs", 4, {.group = "theirs", .gpus = 1, .on = "n0"});
  s.Group("more", {.priority = 90, .queue = "b"});
  s.Pod("more-0", {.group = "more", .gpus = 1});
  s.Cycle(Only({"reclaim"}));
  EXPECT_EQ(s.Log(), "");
}

TEST(Reclaim, NonPreemptibleWorkIsNoVictimAndNeedsQuota) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Queue(MakeQueue("a", 4));
  s.Queue(MakeQueue("b", 4));
  s.Group("build", {.priority = 100, .min = 5, .preemptible = false, .queue = "a"});
  s.Pods("build", 5, {.group = "build", .gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  ASSERT_NE(s.WaitingOf("build"), nullptr);
  EXPECT_EQ(
      s.WaitingOf("build")->reason,
      "non-preemptible work must fit the quota of project a, which is 4 GPUs: 5 GPUs asked at "
      "once");
}

TEST(Reclaim, DepartmentsCompareBeforeTheirProjects) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  s.Queue(MakeQueue("east", 2));
  s.Queue(MakeQueue("west", 2));
  s.Queue(MakeQueue("e1", 2, "east"));
  s.Queue(MakeQueue("w1", 1, "west"));
  s.Queue(MakeQueue("w2", 1, "west"));
  for (int i = 0; i < 4; ++i) {
    s.Group(StrCat("w", i), {.queue = i < 1 ? "w1" : "w2", .minutes_old = 10 - i});
    s.Pod(StrCat("w", i, "-0"), {.group = StrCat("w", i), .gpus = 1, .on = "n0"});
  }
  s.Group("claim", {.queue = "e1", .minutes_old = 0});
  s.Pod("claim-0", {.group = "claim", .gpus = 2});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Decision::Type::kEvict), 2);
  for (const Decision& d : s.last.decisions) {
    EXPECT_NE(d.pod, "default/w0-0") << "its project holds no more than its quota";
  }
}

TEST(Reclaim, MinRuntimeOfTheQueueProtects) {
  Scenario s;
  TwoProjects(s, 1, 1, 8);
  QueueInfo a = MakeQueue("a", 4);
  a.reclaim_min_runtime = std::chrono::minutes(45);
  s.Queue(a);
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  ASSERT_TRUE(s.last.wake_at.has_value());
  EXPECT_EQ(*s.last.wake_at, s.now + std::chrono::minutes(15));
  s.now = *s.last.wake_at;
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Decision::Type::kEvict), 1);
}

TEST(Reclaim, WhatAnOwnerSetsKeepsNoQuotaOfOthers) {
  Scenario s;
  s.Queue(MakeQueue("a", 0));
  s.Queue(MakeQueue("b", 4));
  s.Node("n0", {.gpus = 8});
  s.Group("hog", {.min = 2, .queue = "a", .min_runtime = std::chrono::hours(24 * 365)});
  s.Pods("hog", 2, {.group = "hog", .gpus = 4, .on = "n0", .labels = {{"app", "hog"}}});
  s.Budget("none", {{"app", "hog"}}, 0);
  s.Group("claim", {.min = 1, .queue = "b"});
  s.Pod("claim-0", {.group = "claim", .gpus = 4});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Decision::Type::kEvict), 2) << s.Log();
}

TEST(Pools, WhatAVictimThatMovesToAnotherPoolHeldIsTold) {
  Scenario s;
  s.Node("n0", {.gpus = 4, .labels = {{"kind", "old"}}});
  s.Node("n1", {.gpus = 4, .labels = {{"kind", "new"}}});
  s.Pool({.name = "new", .node_selector = {{"kind", "new"}}});
  s.Pool({.name = "old", .node_selector = {{"kind", "old"}}});
  for (const char* name : {"a", "b"}) {
    QueueInfo queue = MakeQueue(name, 0);
    queue.pools = {{"new", {2, -1, 1}, {}, {}}, {"old", {0, -1, 1}, {}, {}}};
    s.Queue(queue);
  }
  s.Group("j", {.queue = "a"});
  s.Pod("j-0", {.group = "j", .gpus = 4, .on = "n1"});
  s.Group("k", {.queue = "b", .minutes_old = 1});
  s.Pod("k-0", {.group = "k", .gpus = 2, .required = {{{{"kind", SelectorOp::kIn, {"new"}}}, {}}}});
  s.Cycle();
  ASSERT_FALSE(s.last.decisions.empty());
  const std::string reason = s.last.decisions[0].Reason();
  EXPECT_NE(reason.find("project a held 4 GPUs"), std::string::npos) << reason;
  EXPECT_NE(reason.find("moves to n0"), std::string::npos) << reason;
}

TEST(Pools, QuotasCountPerPool) {
  Scenario s;
  s.Node("n0", {.gpus = 4, .labels = {{"kind", "old"}}});
  s.Node("n1", {.gpus = 4, .labels = {{"kind", "new"}}});
  s.Pool({.name = "new", .node_selector = {{"kind", "new"}}});
  s.Pool({.name = "old", .node_selector = {{"kind", "old"}}});
  QueueInfo a = MakeQueue("a", 0);
  a.pools = {{"new", {2, 2, 1}, {}, {}}, {"old", {0, 1, 1}, {}, {}}};
  s.Queue(a);
  for (int i = 0; i < 4; ++i) {
    s.Group(StrCat("j", i), {.queue = "a", .minutes_old = 10 - i});
    s.Pod(StrCat("j", i, "-0"), {.group = StrCat("j", i), .gpus = 1});
  }
  s.Cycle();
  EXPECT_EQ(s.NodeOf("j0-0"), "n1");
  EXPECT_EQ(s.NodeOf("j1-0"), "n1");
  EXPECT_EQ(s.NodeOf("j2-0"), "n0");
  EXPECT_EQ(s.PhaseOf("j3-0"), "Pending");
  const auto views = s.model.Queues();
  ASSERT_EQ(views.size(), 1u);
  ASSERT_EQ(views[0].pools.size(), 2u);
  EXPECT_EQ(views[0].pools[0].name, "new");
  EXPECT_DOUBLE_EQ(views[0].pools[0].resources[0].allocated, 2);
  EXPECT_DOUBLE_EQ(views[0].resources[0].allocated, 3);
}

// Two pools of four GPUs each, with one node each.
void AddTwoPools(Scenario& s) {
  s.Node("n0", {.gpus = 4, .labels = {{"kind", "a"}}});
  s.Node("n1", {.gpus = 4, .labels = {{"kind", "b"}}});
  s.Pool({.name = "pa", .node_selector = {{"kind", "a"}}});
  s.Pool({.name = "pb", .node_selector = {{"kind", "b"}}});
}

void AddJob(Scenario& s, const std::string& name, const std::string& queue, int gpus) {
  s.Group(name, {.queue = queue, .minutes_old = 30 - static_cast<int>(s.groups.size())});
  s.Pod(name + "-0", {.group = name, .gpus = gpus});
}

TEST(Pools, AJobReclaimsInItsPoolThoughOthersThatWaitCannotInTheirs) {
  Scenario s;
  AddTwoPools(s);
  for (const char* name : {"a", "b"}) {
    QueueInfo queue = MakeQueue(name, 0);
    queue.pools = {{"pa", {2, -1, 1}, {}, {}}, {"pb", {2, -1, 1}, {}, {}}};
    s.Queue(queue);
  }
  auto add = [&s](const std::string& name, const std::string& queue, int minutes_old,
                  const std::string& kind, const std::string& on) {
    s.Group(name, {.queue = queue, .minutes_old = minutes_old});
    s.Pod(name + "-0", {.group = name,
                        .gpus = 2,
                        .on = on,
                        .required = {{{{"kind", SelectorOp::kIn, {kind}}}, {}}}});
  };
  for (const char* name : {"b0", "b1"}) add(name, "b", 30, "a", "n0");
  for (const char* name : {"a0", "a1"}) add(name, "a", 30, "b", "n1");
  add("above", "b", 20, "a", "");
  add("within", "b", 10, "b", "");
  s.Cycle();
  EXPECT_EQ(s.Log(), "evict a1-0 n1 [2,3] reclaim\nnominate within-0 n1 [2,3] reclaim\n");
}

TEST(Pools, AProjectThatListsNoneHasOneLimitForAll) {
  Scenario s;
  AddTwoPools(s);
  QueueInfo a = MakeQueue("a", 1);
  a.gpu.limit = 4;
  s.Queue(a);
  AddJob(s, "big", "a", 3);
  AddJob(s, "two", "a", 2);
  AddJob(s, "one", "a", 1);
  s.Cycle();
  EXPECT_EQ(s.NodeOf("big-0"), "n0");
  EXPECT_EQ(s.NodeOf("one-0"), "n0");
  ASSERT_NE(s.WaitingOf("two"), nullptr);
  EXPECT_EQ(s.WaitingOf("two")->reason,
            "project a would exceed its limit of 4 GPUs: 4 GPUs used, 2 GPUs asked");
  const auto views = s.model.Queues();
  ASSERT_EQ(views.size(), 1u);
  EXPECT_TRUE(views[0].one_share);
  EXPECT_DOUBLE_EQ(views[0].resources[0].quota, 1);
  EXPECT_DOUBLE_EQ(views[0].resources[0].limit, 4);
  EXPECT_DOUBLE_EQ(views[0].resources[0].fair_share, 4);
}

TEST(Pools, WorkThatIsNotPreemptibleFitsTheOneQuotaOfAllPools) {
  Scenario s;
  AddTwoPools(s);
  s.Queue(MakeQueue("a", 5));
  s.Group("j", {.preemptible = false, .queue = "a"});
  s.Pod("j-0", {.group = "j", .gpus = 4, .on = "n0"});
  s.Group("k", {.preemptible = false, .queue = "a"});
  s.Pod("k-0", {.group = "k", .gpus = 2});
  s.Cycle();
  ASSERT_NE(s.WaitingOf("k"), nullptr);
  EXPECT_EQ(s.WaitingOf("k")->reason,
            "non-preemptible work must fit the quota of project a, which is 5 GPUs: 4 GPUs used by "
            "such work, 2 GPUs asked");
}

// Quotas that add up to all GPUs are fair shares that do, too.
TEST(Pools, FairSharesOfProjectsThatListNoneAddUpToWhatThereIs) {
  Scenario s;
  AddTwoPools(s);
  for (const char* name : {"a", "b"}) {
    s.Queue(MakeQueue(name, 4));
    for (int i = 0; i < 3; ++i) AddJob(s, StrCat(name, i), name, 2);
  }
  s.Converge(6);
  double sum = 0;
  for (const auto& view : s.model.Queues()) {
    EXPECT_DOUBLE_EQ(view.resources[0].fair_share, 4) << view.name;
    EXPECT_DOUBLE_EQ(view.resources[0].allocated, 4) << view.name;
    EXPECT_DOUBLE_EQ(view.resources[0].requested, 6) << view.name;
    for (const auto& pool : view.pools) sum += pool.resources[0].quota;
  }
  EXPECT_DOUBLE_EQ(sum, 8);
}

// One project holds its quota in one pool, another is beyond its own in the other: the third takes
// its due there, though that is not the first pool that suits.
TEST(Pools, AProjectTakesItsQuotaBackInWhicheverPoolItIs) {
  Scenario s;
  AddTwoPools(s);
  s.Queue(MakeQueue("a", 4));
  s.Queue(MakeQueue("b", 4));
  s.Queue(MakeQueue("c", 0));
  s.Group("mine", {.queue = "a"});
  s.Pod("mine-0", {.group = "mine", .gpus = 4, .on = "n0"});
  s.Group("over", {.queue = "c"});
  s.Pod("over-0", {.group = "over", .gpus = 4, .on = "n1"});
  AddJob(s, "due", "b", 4);
  s.Converge(6);
  EXPECT_EQ(s.NodeOf("mine-0"), "n0");
  EXPECT_EQ(s.NodeOf("due-0"), "n1");
  EXPECT_EQ(s.PhaseOf("over-0"), "Pending");
}

// It holds 4 in each of two pools, with a quota of 4. The project that is due the room gets it.
TEST(Pools, AProjectBeyondItsOneQuotaGivesBack) {
  Scenario s;
  AddTwoPools(s);
  s.Queue(MakeQueue("a", 4));
  s.Queue(MakeQueue("b", 4));
  for (int i = 0; i < 2; ++i) {
    s.Group(StrCat("j", i), {.queue = "a", .minutes_old = 20 - i});
    s.Pod(StrCat("j", i, "-0"), {.group = StrCat("j", i), .gpus = 4, .on = StrCat("n", i)});
  }
  AddJob(s, "due", "b", 4);
  s.Converge(6);
  EXPECT_EQ(s.PhaseOf("due-0"), "Running");
  EXPECT_NE(s.PhaseOf("j0-0"), s.PhaseOf("j1-0"));
}

TEST(Pools, WhoListsSomeRunsInNoOther) {
  Scenario s;
  s.Node("n0", {.gpus = 4, .labels = {{"kind", "old"}}});
  s.Node("n1", {.gpus = 2, .labels = {{"kind", "new"}}});
  s.Node("n2", {.gpus = 8});
  s.Pool({.name = "new", .node_selector = {{"kind", "new"}}});
  s.Pool({.name = "old", .node_selector = {{"kind", "old"}}});
  QueueInfo a = MakeQueue("a", 0);
  a.gpu = a.cpu = a.memory = {0, 0, 1};
  a.pools = {{"new", {1, 2, 1}, {}, {}}};
  s.Queue(a);
  s.Group("j", {.min = 1, .queue = "a"});
  s.Pods("j", 3, {.group = "j", .gpus = 1});
  s.Group("k", {.queue = "a"});
  s.Pod("k-0", {.group = "k", .gpus = 4});
  s.Cycle();
  ASSERT_NE(s.WaitingOf("k"), nullptr);
  EXPECT_EQ(s.WaitingOf("k")->reason, "project a has no share of node pool old, only of new");
  s.Converge(10);
  EXPECT_EQ(s.NodeOf("j-0"), "n1");
  EXPECT_EQ(s.NodeOf("j-1"), "n1");
  EXPECT_EQ(s.PhaseOf("j-2"), "Pending");
  EXPECT_DOUBLE_EQ(s.model.Queues()[0].resources[0].fair_share, 2);
  a.pools.push_back({"old", {0, kUnlimited, 1}, {}, {}});
  s.Queue(a);
  s.Converge(10);
  EXPECT_EQ(s.NodeOf("k-0"), "n0");
}

TEST(TimeShare, WhoeverUsedMoreGetsLessOfTheSurplus) {
  Settings settings;
  settings.past_share = 1;
  Scenario s(settings);
  s.Node("n0", {.gpus = 8});
  s.Queue(MakeQueue("a", 0));
  s.Queue(MakeQueue("b", 0));
  s.Group("ga", {.queue = "a"});
  s.Pod("ga-0", {.group = "ga", .gpus = 8});
  s.Cycle();
  s.AdvancePods();
  s.now = s.now + std::chrono::hours(5);
  s.Group("gb", {.queue = "b"});
  s.Pods("gb", 8, {.group = "gb", .gpus = 1});
  s.Cycle();
  for (const auto& queue : s.model.Queues()) {
    EXPECT_DOUBLE_EQ(queue.resources[0].fair_share, queue.name == "b" ? 8 : 0) << queue.name;
  }
}

// Two projects of equal weight, one of which had everything for a day: the other makes up for it,
// more in the beginning than later, until it makes no difference any more.
TEST(TimeShare, WhatWasUsedIsMadeUpForAndForgotten) {
  Scenario s({.past_share = 1, .past_half_life = std::chrono::hours(24)});
  s.Node("n0", {.gpus = 8});
  auto ask = [&s](const std::string& queue) {
    s.Queue(MakeQueue(queue, 0));
    for (int i = 0; i < 8; ++i) {
      const std::string name = StrCat(queue, i);
      s.Group(name, {.queue = queue});
      s.Pod(StrCat(name, "-0"), {.group = name, .gpus = 1});
    }
  };
  std::map<std::string, int> runs;
  auto play = [&](int hours) {
    std::map<std::string, int> gpu_hours;
    for (int hour = 0; hour < hours; ++hour) {
      s.now = s.now + std::chrono::hours(1);
      s.Converge(10);
      runs.clear();
      for (const auto& [name, pod] : s.pods) {
        if (pod.phase == PodPhase::kRunning)
          ++runs[name.substr(0, 1)], ++gpu_hours[name.substr(0, 1)];
      }
    }
    return gpu_hours;
  };
  s.Queue(MakeQueue("idle", 0));
  ask("a");
  EXPECT_EQ(play(24)["a"], 8 * 24);
  ask("b");
  play(1);
  EXPECT_EQ(runs["b"], 8) << "a queue that used nothing has all of it for now";
  play(11);
  EXPECT_LT(runs["a"], runs["b"]);
  EXPECT_GT(runs["a"], 0);
  std::map<std::string, int> later = play(240);
  EXPECT_EQ(runs["a"], 4);
  EXPECT_EQ(runs["b"], 4);
  EXPECT_NEAR(later["a"], later["b"], 0.1 * later["b"]);
}

}  // namespace
}  // namespace swell::sched
