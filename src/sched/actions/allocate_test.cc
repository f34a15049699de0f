// allocate: what fits, where it goes, and gangs whole or not at all.
#include <set>

#include <gtest/gtest.h>

#include "sched/scenario_test_util.h"
#include "sched/state/exclusive_claims.h"
#include "sched/state/state.h"

namespace swell::sched {
namespace {

using Type = Decision::Type;

TEST(Allocate, BindsAPodAndNamesItsDevices) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  s.Pod("a", {.gpus = 2});
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind a n0 [0,1] allocate\n");
  EXPECT_EQ(s.Violations(), "");
  s.Pod("b", {.gpus = 2});
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind b n0 [2,3] allocate\n");
}

TEST(Allocate, AStableClusterYieldsAnEmptyCycle) {
  Scenario s;
  s.Node("n0", {.gpus = 1});
  s.Pod("a", {.gpus = 1});
  s.Pod("b", {.gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kBind), 1);
  s.Cycle();  // the scenario has confirmed the bind
  EXPECT_TRUE(s.last.decisions.empty());
  EXPECT_TRUE(s.last.waiting.empty());
  EXPECT_EQ(s.scheduler.stats().empty_cycles, 1);
  s.AdvancePods();  // bound became running: nothing to decide about
  s.Cycle();
  EXPECT_EQ(s.scheduler.stats().empty_cycles, 2);
}

TEST(Allocate, PacksByDefaultAndSpreadsWhereThePoolSaysSo) {
  for (PlacementStrategy placement : {PlacementStrategy::kPack, PlacementStrategy::kSpread}) {
    Scenario s;
    s.Pool({.name = "default", .gpu = placement, .cpu = placement});
    s.Node("n0", {.gpus = 4});
    s.Node("n1", {.gpus = 4});
    s.Pod("x", {.gpus = 1, .on = "n1", .devices = {0}});
    s.Pod("a", {.gpus = 1});
    s.Cycle();
    EXPECT_EQ(s.NodeOf("a"), placement == PlacementStrategy::kPack ? "n1" : "n0");
  }
}

TEST(Allocate, KeepsGpuNodesFreeOfPodsWithoutGpus) {
  Scenario s;
  s.Node("a-gpu", {.gpus = 4});
  s.Node("b-cpu", {.cpu = 1000});
  s.Pods("p", 3, {.cpu = 500});
  s.Cycle();
  EXPECT_EQ(s.NodeOf("p-0"), "b-cpu");
  EXPECT_EQ(s.NodeOf("p-1"), "b-cpu");
  EXPECT_EQ(s.NodeOf("p-2"), "a-gpu");
}

TEST(Allocate, OrdersByPriorityThenAgeThenUid) {
  Scenario s;
  s.Node("n0", {.gpus = 1});
  s.Pod("young", {.gpus = 1, .minutes_old = 1});
  s.Pod("old", {.gpus = 1, .minutes_old = 9});
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("old"), "Bound");
  Scenario t;
  t.Node("n0", {.gpus = 1});
  t.Pod("old", {.gpus = 1, .minutes_old = 9});
  t.Pod("high", {.gpus = 1, .priority = 75, .minutes_old = 1});
  t.Cycle();
  EXPECT_EQ(t.PhaseOf("high"), "Bound");
  EXPECT_EQ(t.PhaseOf("old"), "Pending");
}

TEST(Allocate, AGangStartsWholeOrNotAtAll) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  s.Node("n1", {.gpus = 4});
  s.Group("g", {.min = 3});
  s.Pods("g", 3, {.group = "g", .gpus = 4});
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  const Waiting* waiting = s.WaitingOf("g");
  ASSERT_NE(waiting, nullptr);
  EXPECT_EQ(waiting->reason, "2/2 nodes are available. Needs 12 GPUs (3 pods x 4); 8 free.");
  EXPECT_EQ(waiting->least_change,
            "more suitable nodes: even when empty, the nodes hold only 2 of its 3 pods");
  s.Node("n2", {.gpus = 4});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kBind), 3);
  EXPECT_EQ(s.Violations(), "");
}

TEST(Allocate, AGangWaitsForAllItsPods) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Group("g", {.min = 3});
  s.Pods("g", 2, {.group = "g", .gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  ASSERT_NE(s.WaitingOf("g"), nullptr);
  EXPECT_EQ(s.WaitingOf("g")->reason, "pod set default has 2 of the 3 pods it needs to start.");
  s.Pod("g-2", {.group = "g", .gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kBind), 3);
}

TEST(Allocate, EveryPodSetNeedsItsMinimum) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Group("g", {.sets = {{"master", 1, "", {}}, {"worker", 2, "", {}}}});
  s.Pod("g-master-0", {.group = "g", .set = "master", .gpus = 1});
  s.Pods("g-worker", 2, {.group = "g", .set = "worker", .gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  s.Node("n1", {.gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kBind), 3);
}

TEST(Allocate, ElasticMembersComeAfterAllMinima) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  s.Group("elastic", {.priority = 75, .min = 1, .minutes_old = 20});
  s.Pods("elastic", 4, {.group = "elastic", .gpus = 1});
  s.Group("late", {.priority = 50, .min = 2});
  s.Pods("late", 2, {.group = "late", .gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("late-0"), "Bound");
  EXPECT_EQ(s.PhaseOf("late-1"), "Bound");
  EXPECT_EQ(s.PhaseOf("elastic-0"), "Bound");
  EXPECT_EQ(s.PhaseOf("elastic-1"), "Bound");
  EXPECT_EQ(s.PhaseOf("elastic-2"), "Pending");
}

TEST(Allocate, MemberPriorityDecidesWhoComesFirst) {
  Scenario s;
  s.Node("n0", {.gpus = 1});
  s.Group("g", {.min = 1});
  s.Pod("g-0", {.group = "g", .gpus = 1});
  s.Pod("g-1", {.group = "g", .gpus = 1, .member_priority = 5});
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("g-1"), "Bound");
  EXPECT_EQ(s.PhaseOf("g-0"), "Pending");
}

TEST(Allocate, TaintsTolerationsAndSelectors) {
  Scenario s;
  s.Node("n0", {.gpus = 1, .taints = {{"dedicated", "x", TaintEffect::kNoSchedule}}});
  s.Node("n1", {.gpus = 1, .labels = {{"zone", "b"}}});
  s.Node("n2", {.gpus = 1, .cordoned = true});
  s.Node("n3", {.gpus = 1, .ready = false});
  s.Pod("selects", {.gpus = 1, .selector = {{"zone", "a"}}});
  s.Cycle();
  ASSERT_NE(s.WaitingOf("selects"), nullptr);
  EXPECT_EQ(s.WaitingOf("selects")->reason,
            "0/4 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
            "1 node(s) had taint {dedicated: x}, that the pod didn't tolerate, "
            "1 node(s) were not ready, 1 node(s) were unschedulable. Needs 1 GPU; 0 free on "
            "suitable nodes.");
  EXPECT_EQ(s.WaitingOf("selects")->least_change, "a node with the label zone=a");
  s.Pod("tolerates", {.gpus = 1, .tolerations = {{.key = "dedicated", .value = "x"}}});
  s.Pod("plain", {.gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.NodeOf("plain"), "n1");
  EXPECT_EQ(s.NodeOf("tolerates"), "n0");
}

TEST(Allocate, InsufficientResourcesAreCountedPerNode) {
  Scenario s;
  s.Node("n0", {.gpus = 1, .cpu = 100});
  s.Node("n1", {.cpu = 4000});
  s.Pod("a", {.gpus = 2, .cpu = 2000});
  s.Cycle();
  ASSERT_NE(s.WaitingOf("a"), nullptr);
  EXPECT_EQ(s.WaitingOf("a")->reason,
            "0/2 nodes are available: 1 Insufficient cpu, 2 Insufficient nvidia.com/gpu. "
            "Needs 2 GPUs; 1 free.");
  EXPECT_EQ(s.WaitingOf("a")->least_change,
            "a suitable node with at least 2 GPUs; the largest has 1");
}

TEST(Allocate, RequiredAndPreferredNodeAffinity) {
  Scenario s;
  s.Node("n0", {.labels = {{"type", "a"}}});
  s.Node("n1", {.labels = {{"type", "b"}}});
  s.Node("n2", {.labels = {{"type", "c"}}});
  const Requirement a_or_c{"type", SelectorOp::kIn, {"a", "c"}};
  const Requirement c{"type", SelectorOp::kIn, {"c"}};
  s.Pod("p", {.required = {{{a_or_c}, {}}}, .preferred = {{10, {{c}, {}}}}});
  s.Cycle();
  EXPECT_EQ(s.NodeOf("p"), "n2");
  s.Node("soft", {.taints = {{"busy", "", TaintEffect::kPreferNoSchedule}}});
  s.Pod("q", {.cpu = 60'000});
  s.Cycle();
  EXPECT_NE(s.NodeOf("q"), "soft");
}

TEST(Allocate, UnhealthyGpusGetNothingNew) {
  Scenario s;
  // The node has four devices, of which the second is not allocatable.
  s.Node("n0", {.gpus = 3, .labels = {{"swell.dev/unhealthy-gpus", "1"}}});
  s.Pods("p", 4, {.gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kBind), 3);
  std::set<int> used;
  for (const Decision& one : s.last.decisions) {
    used.insert(one.gpu_devices.begin(), one.gpu_devices.end());
  }
  EXPECT_EQ(used, (std::set<int>{0, 2, 3}));
  ASSERT_NE(s.WaitingOf("p-3"), nullptr);
}

TEST(Allocate, APodOnAGpuThatBecameUnhealthyRunsOnAndItsGpuIsNotGivenAgain) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  s.Pod("on-it", {.gpus = 1, .on = "n0", .devices = {1}});
  s.Node("n0", {.gpus = 3, .labels = {{"swell.dev/unhealthy-gpus", "1"}}});
  s.Pods("half", 2, {.fraction = 0.5});
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("on-it"), "Running");
  for (const Decision& one : s.last.decisions) {
    EXPECT_EQ(one.type, Type::kBind);
    EXPECT_EQ(one.gpu_devices.size(), 1U);
    EXPECT_NE(one.gpu_devices[0], 1);
  }
  s.RemovePod("on-it");
  s.Node("n0", {.gpus = 4});
  s.Pods("later", 3, {.gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kBind), 3) << "the device is as free as the others again";
}

TEST(Allocate, HostPortsKeepPodsApart) {
  Scenario s;
  s.Node("n0", {});
  s.Node("n1", {});
  s.Pods("p", 3, {.ports = {{"TCP", "", 80}}});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kBind), 2);
  EXPECT_NE(s.NodeOf("p-0"), s.NodeOf("p-1"));
  ASSERT_NE(s.WaitingOf("p-2"), nullptr);
  EXPECT_EQ(s.WaitingOf("p-2")->reason,
            "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod "
            "ports. Needs 100m CPU; 127800m CPU free.");
}

TEST(Allocate, SchedulingGatesHold) {
  Scenario s;
  s.Node("n0", {});
  s.Pod("p", {.gates = {"example.com/wait"}});
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  s.pods["p"].scheduling_gates.clear();
  s.model.UpsertPod(s.pods["p"]);
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("p"), "Bound");
}

PodAffinityTerm Together(const std::string& app, const std::string& key) {
  PodAffinityTerm term;
  term.selector = {{"app", SelectorOp::kIn, {app}}};
  term.topology_key = key;
  return term;
}

TEST(Allocate, PodAntiAffinityWorksBothWays) {
  Scenario s;
  s.Node("n0", {});
  s.Node("n1", {});
  const PodAffinityTerm term = Together("web", "kubernetes.io/hostname");
  s.Pods("web", 3, {.labels = {{"app", "web"}}, .anti_affinity = {term}});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kBind), 2);
  // It does not say so itself, but the others want to be away from it.
  s.Pod("meek", {.labels = {{"app", "web"}}});
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("meek"), "Pending");
}

TEST(Allocate, AClaimOfOnePodKeepsOthersWaitingOnAllNodes) {
  Scenario s;
  s.Node("n0", {});
  s.Node("n1", {});
  const auto user = [](std::string_view claim) {
    return PodSpec{.labels = {{ExclusiveClaimLabel(claim), ""}},
                   .anti_affinity = {ExclusiveClaimTerm(claim)}};
  };
  s.Pod("a", user("data"));
  s.Pod("b", user("data"));
  s.Pod("c", user("other"));
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kBind), 2);
  EXPECT_EQ(s.PhaseOf("b"), "Pending");
  EXPECT_EQ(s.PhaseOf("c"), "Bound");
  EXPECT_NE(
      s.WaitingOf("b")->reason.find("0/2 nodes are available: 2 node has pod using "
                                    "PersistentVolumeClaim with the same name and ReadWriteOncePod "
                                    "access mode."),
      std::string::npos)
      << s.WaitingOf("b")->reason;
  s.AdvancePods();
  s.RemovePod("a");
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("b"), "Bound");
}

TEST(Allocate, PodAffinityFollows) {
  Scenario s;
  s.Node("n0", {.cpu = 1000, .labels = {{"zone", "a"}}});
  s.Node("n1", {.cpu = 1000, .labels = {{"zone", "b"}}});
  s.Node("n2", {.cpu = 1000, .labels = {{"zone", "b"}}});
  s.Pod("cache", {.cpu = 800, .on = "n1", .labels = {{"app", "cache"}}});
  s.Pod("web", {.cpu = 500, .affinity = {Together("cache", "zone")}});
  s.Cycle();
  EXPECT_EQ(s.NodeOf("web"), "n2");
}

TEST(Allocate, TopologySpreadKeepsTheSkew) {
  Scenario s;
  for (int i = 0; i < 4; ++i) {
    s.Node(StrCat("n", i), {.labels = {{"zone", i < 3 ? "a" : "b"}}});
  }
  SpreadConstraint spread;
  spread.topology_key = "zone";
  spread.selector = {{"app", SelectorOp::kIn, {"web"}}};
  s.Pods("web", 4, {.labels = {{"app", "web"}}, .spread = {spread}});
  s.Cycle();
  int in_b = 0;
  for (int i = 0; i < 4; ++i) in_b += s.NodeOf(StrCat("web-", i)) == "n3";
  EXPECT_EQ(in_b, 2);
}

// Where each of `count` pods went that are to be spread over the zones of two nodes.
std::string SpreadOverTwoZones(const SpreadConstraint& rules,
                               int count,
                               const NodeSpec& far = {},
                               const Labels& selector = {}) {
  Scenario s;
  NodeSpec away = far;
  away.labels["zone"] = "b";
  s.Node("near", {.labels = {{"zone", "a"}, {"disk", "fast"}}});
  s.Node("far", away);
  SpreadConstraint spread = rules;
  spread.topology_key = "zone";
  spread.selector = {{"app", SelectorOp::kIn, {"web"}}};
  s.Pods("web", count, {.labels = {{"app", "web"}}, .selector = selector, .spread = {spread}});
  s.Cycle();
  std::string out;
  for (int i = 0; i < count; ++i) out += StrCat(i > 0 ? " " : "", s.NodeOf(StrCat("web-", i)));
  EXPECT_EQ(s.Violations(), "");
  return out;
}

TEST(Allocate, FewerDomainsThanWantedCountAsEmpty) {
  EXPECT_EQ(SpreadOverTwoZones({.min_domains = 2}, 4), "far near far near");
  EXPECT_EQ(SpreadOverTwoZones({.min_domains = 3}, 4), "far near  ");
  EXPECT_EQ(SpreadOverTwoZones({.max_skew = 2, .min_domains = 3}, 5), "far far near near ");
}

TEST(Allocate, ADomainOfManyNodesIsOne) {
  const auto placed = [](int32_t min_domains) {
    Scenario s;
    for (int i = 0; i < 9; ++i) {
      s.Node(StrCat("n", i),
             {.labels = {{"zone", std::string(1, static_cast<char>('a' + i % 3))}}});
    }
    const SpreadConstraint spread{.topology_key = "zone",
                                  .selector = {{"app", SelectorOp::kIn, {"web"}}},
                                  .min_domains = min_domains};
    s.Pods("web", 12, {.labels = {{"app", "web"}}, .spread = {spread}});
    s.Cycle();
    int count = 0;
    for (int i = 0; i < 12; ++i) count += !s.NodeOf(StrCat("web-", i)).empty();
    EXPECT_EQ(s.Violations(), "");
    return count;
  };
  EXPECT_EQ(placed(3), 12);
  EXPECT_EQ(placed(4), 3) << "one in each zone while a fourth is missing";
  EXPECT_EQ(placed(INT32_MAX), 3);
}

// A zone where the pods cannot go keeps the others from more than the skew, unless the constraint
// leaves such nodes out.
TEST(Allocate, TheConstraintSaysWhichNodesArePlacesToSpreadOver) {
  const NodeSpec tainted{.taints = {{"dedicated", "x", TaintEffect::kNoSchedule}}};
  EXPECT_EQ(SpreadOverTwoZones({}, 2, tainted), "near ");
  EXPECT_EQ(SpreadOverTwoZones({.honors_taints = true}, 2, tainted), "near near");
  const Labels fast{{"disk", "fast"}};
  EXPECT_EQ(SpreadOverTwoZones({}, 2, {}, fast), "near near");
  EXPECT_EQ(SpreadOverTwoZones({.honors_affinity = false}, 2, {}, fast), "near ");
  EXPECT_EQ(SpreadOverTwoZones({}, 2, {.ready = false}), "near ");
}

TEST(Allocate, SharedGpusPackOntoOneDevice) {
  Scenario s;
  s.Node("n0", {.gpus = 2, .gpu_mib = 1000});
  s.Pods("half", 3, {.fraction = 0.5});
  s.Cycle();
  EXPECT_EQ(s.Log(),
            "bind half-0 n0 [0] allocate\nbind half-1 n0 [0] allocate\n"
            "bind half-2 n0 [1] allocate\n");
  s.Pod("mib", {.gpu_mib = 501});
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("mib"), "Pending");
  s.Pod("less", {.gpu_mib = 500});
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("less"), "Bound");
  EXPECT_EQ(s.Violations(), "");
}

TEST(Allocate, ForeignPodsTakeRoomButAreNotScheduled) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Pod("theirs", {.gpus = 1, .on = "n0", .ours = false});
  s.Pod("not-ours", {.gpus = 1, .ours = false});
  s.Pods("p", 2, {.gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind p-0 n0 [1] allocate\n");
}

TEST(Allocate, RoomOfTerminatingPodsIsPromisedThenTaken) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  s.Group("g", {.min = 2});
  s.Pod("leaving", {.gpus = 4, .on = "n0", .devices = {0, 1, 2, 3}});
  s.pods["leaving"].phase = PodPhase::kReleasing;
  s.model.UpsertPod(s.pods["leaving"]);
  s.Pods("g", 2, {.group = "g", .gpus = 2});
  s.Pod("late", {.gpus = 1, .minutes_old = 1});
  s.Cycle();
  EXPECT_EQ(s.Log(), "nominate g-0 n0 [0,1] allocate\nnominate g-1 n0 [2,3] allocate\n");
  s.Cycle();
  EXPECT_EQ(s.scheduler.stats().empty_cycles, 1);
  s.RemovePod("leaving");
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind g-0 n0 [0,1] allocate\nbind g-1 n0 [2,3] allocate\n");
  EXPECT_EQ(s.PhaseOf("late"), "Pending");
}

TEST(Allocate, TopologyKeepsAGroupInOneRack) {
  Scenario s;
  for (int i = 0; i < 4; ++i) {
    s.Node(StrCat("n", i), {.gpus = 2, .labels = {{"rack", i < 2 ? "r0" : "r1"}}});
  }
  s.Pod("x", {.gpus = 1, .on = "n0", .devices = {0}});
  s.model.UpsertTopology({"dc", {"rack"}});
  s.Group("g", {.min = 2, .topology = {"dc", "rack", ""}});
  s.Pods("g", 2, {.group = "g", .gpus = 2});
  s.Cycle();
  EXPECT_EQ(s.NodeOf("g-0"), "n2");
  EXPECT_EQ(s.NodeOf("g-1"), "n3");
}

TEST(Allocate, TellsHowMuchOfAGroupTheBestRackTakes) {
  Scenario s;
  for (int i = 0; i < 4; ++i) {
    s.Node(StrCat("n", i), {.gpus = 2, .labels = {{"rack", i < 2 ? "r0" : "r1"}}});
  }
  s.Pod("x", {.gpus = 1, .on = "n0", .devices = {0}});
  s.model.UpsertTopology({"dc", {"rack"}});
  s.Group("g", {.min = 5, .topology = {"dc", "rack", ""}});
  s.Pods("g", 5, {.group = "g", .gpus = 1});
  s.Cycle();
  ASSERT_NE(s.WaitingOf("g"), nullptr);
  EXPECT_EQ(s.WaitingOf("g")->reason,
            "4/4 nodes are available. Needs 5 GPUs (5 pods x 1); 7 free; all of its pods must "
            "share one rack, and the one with most room, r1, takes 4.");
}

TEST(Allocate, TellsHowMuchOfAGpuIsAskedAndFree) {
  Scenario s;
  s.Node("n0", {.gpus = 1});
  s.Pod("a", {.fraction = 0.6, .minutes_old = 20});
  s.Pod("b", {.fraction = 0.6});
  s.Cycle();
  ASSERT_NE(s.WaitingOf("b"), nullptr);
  EXPECT_EQ(
      s.WaitingOf("b")->reason,
      "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. Needs 60% of a GPU; at most 40% "
      "of one is free.");
}

TEST(Allocate, QueueLimitsHold) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  QueueInfo team;
  team.name = "team";
  team.gpu = {.quota = 1, .limit = 2};
  s.Queue(team);
  s.Group("a", {.priority = 50, .queue = "team"});
  s.Pod("a-0", {.group = "a", .gpus = 2});
  s.Group("b", {.queue = "team", .minutes_old = 5});
  s.Pod("b-0", {.group = "b", .gpus = 1});
  s.Group("lost", {.queue = "nobody"});
  s.Pod("lost-0", {.group = "lost", .gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind a-0 n0 [0,1] allocate\n");
  EXPECT_EQ(s.WaitingOf("b")->reason,
            "project team would exceed its limit of 2 GPUs: 2 GPUs used, 1 GPU asked");
  EXPECT_EQ(s.WaitingOf("lost")->reason, "project nobody does not exist.");
}

TEST(Allocate, ALimitNamesItsNodePool) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Pool({.name = "a100"});
  QueueInfo team;
  team.name = "team";
  team.pools.push_back({.pool = "a100", .gpu = {.quota = 1, .limit = 2}});
  s.Queue(team);
  s.Group("a", {.queue = "team"});
  s.Pod("a-0", {.group = "a", .gpus = 3});
  s.Group("b", {.preemptible = false, .queue = "team", .minutes_old = 5});
  s.Pod("b-0", {.group = "b", .gpus = 2});
  s.Cycle();
  EXPECT_EQ(s.WaitingOf("a")->reason,
            "3 GPUs asked at once, above the limit of project team, 2 GPUs in node pool a100");
  EXPECT_EQ(s.WaitingOf("b")->reason,
            "non-preemptible work must fit the quota of project team, which is 1 GPU in node pool "
            "a100: 2 GPUs asked at once");
}

TEST(Allocate, WaitsWhileThereIsAnObstacle) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Pod("p", {.gpus = 1, .obstacle = "persistentvolumeclaim \"data\" not found"});
  s.Pod("q", {.gpus = 1, .minutes_old = 1});
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind q n0 [0] allocate\n");
  ASSERT_NE(s.WaitingOf("p"), nullptr);
  EXPECT_EQ(s.WaitingOf("p")->reason,
            "0/1 nodes are available: persistentvolumeclaim \"data\" not found.");
  PodInfo pod = s.pods["p"];
  pod.obstacle.clear();
  s.model.UpsertPod(pod);
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind p n0 [1] allocate\n");
}

TEST(Allocate, AGangWaitsForTheMemberWithAnObstacleOnlyIfItNeedsIt) {
  for (const int min : {2, 3}) {
    Scenario s;
    s.Node("n0", {.gpus = 4});
    s.Group("g", {.min = min});
    s.Pod("g-0", {.group = "g", .gpus = 1, .obstacle = "pod has unbound immediate claims"});
    s.Pod("g-1", {.group = "g", .gpus = 1});
    s.Pod("g-2", {.group = "g", .gpus = 1});
    s.Cycle();
    EXPECT_EQ(s.CountDecisions(Type::kBind), min == 2 ? 2 : 0);
    ASSERT_NE(s.WaitingOf("g"), nullptr);
    EXPECT_EQ(s.WaitingOf("g")->reason,
              "0/1 nodes are available: pod has unbound immediate claims.");
    EXPECT_EQ(s.Violations(), "");
  }
}

TEST(Allocate, WithoutFreeGpusNoJobOfALongQueueIsTried) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Pod("a", {.gpus = 2});
  s.Cycle();
  s.AdvancePods();
  const CycleStats before = s.scheduler.stats();
  for (int i = 0; i < 20; ++i) s.Pod(StrCat("w-", i + 10), {.gpus = 1});
  s.Cycle();
  EXPECT_TRUE(s.last.decisions.empty());
  EXPECT_EQ(s.last.waiting.size(), 20u) << "each is told why";
  EXPECT_EQ(s.scheduler.stats().groups_tried, before.groups_tried);
  EXPECT_EQ(s.scheduler.stats().groups_skipped, before.groups_skipped);
  s.Pod("none", {.gpus = 0});
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind none n0 [] allocate\n") << "who needs no GPU starts";
  s.RemovePod("a");
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind w-10 n0 [0] allocate\nbind w-11 n0 [1] allocate\n");
  EXPECT_LE(s.scheduler.stats().groups_tried, before.groups_tried + 4) << "and no more than fit";
}

}  // namespace
}  // namespace swell::sched
