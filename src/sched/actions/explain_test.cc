// What waiting jobs are told: the least change has to be one that would help.
#include <gtest/gtest.h>

#include "sched/scenario_test_util.h"

namespace swell::sched {
namespace {

std::string LeastChange(const Scenario& s, const std::string& name) {
  const Waiting* waiting = s.WaitingOf(name);
  return waiting == nullptr ? "it does not wait" : waiting->least_change;
}

TEST(Explain, AGangThatAllNodesTogetherCannotHoldNeedsMoreNodes) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Node("n1", {.gpus = 8});
  s.Pod("x", {.gpus = 1, .on = "n0"});
  s.Group("g", {.min = 40});
  s.Pods("g", 40, {.group = "g", .gpus = 8});
  s.Cycle();
  EXPECT_EQ(LeastChange(s, "g"),
            "more suitable nodes: even when empty, the nodes hold only 2 of its 40 pods");
}

TEST(Explain, AGangForWhichNoNodeIsFreeNeedsRoomForAllOfIt) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Node("n1", {.gpus = 2});
  s.Pod("x", {.gpus = 1, .on = "n0", .preemptible = false});
  s.Pod("y", {.gpus = 1, .on = "n1", .preemptible = false});
  s.Group("g", {.min = 2});
  s.Pods("g", 2, {.group = "g", .gpus = 2});
  s.Cycle();
  EXPECT_EQ(LeastChange(s, "g"), "room for 2 more pods, each with 2 GPUs on one node");
}

TEST(Explain, ADeviceThatNoNodeHasIsWhatIsMissingNotGpus) {
  Scenario s;
  s.Node("n0", {.gpus = 4, .extended = {{"rdma/hca", 1}}});
  s.Node("n1", {.gpus = 4});
  s.Group("fast", {.min = 2});
  s.Pods("fast", 2, {.group = "fast", .gpus = 1, .extended = {{"rdma/hca", 2}}});
  s.Group("gone", {.min = 2});
  s.Pods("gone", 2, {.group = "gone", .gpus = 1, .extended = {{"fpga", 1}}});
  s.Group("pair", {.min = 2});
  s.Pods("pair", 2, {.group = "pair", .gpus = 1, .extended = {{"rdma/hca", 1}}});
  s.Cycle();
  EXPECT_EQ(LeastChange(s, "fast"), "a suitable node with at least 2 rdma/hca; the largest has 1");
  EXPECT_EQ(LeastChange(s, "gone"), "a suitable node with at least 1 fpga");
  EXPECT_EQ(LeastChange(s, "pair"),
            "more suitable nodes: even when empty, the nodes hold only 1 of its 2 pods");
}

TEST(Explain, LabelsThatNoNodeHasAreNamed) {
  Scenario s;
  s.Node("n0", {.gpus = 4, .labels = {{"zone", "a"}, {"disk", "ssd"}}});
  s.Node("n1", {.gpus = 4, .labels = {{"zone", "b"}}});
  s.Node("n2", {.gpus = 4, .labels = {{"zone", "c"}}, .cordoned = true});
  s.Pod("none", {.gpus = 1, .selector = {{"zone", "a"}, {"disk", "hdd"}}});
  s.Pod("apart", {.gpus = 1, .selector = {{"zone", "b"}, {"disk", "ssd"}}});
  s.Pod("cordoned", {.gpus = 1, .selector = {{"zone", "c"}}});
  s.Cycle();
  EXPECT_EQ(LeastChange(s, "none"), "a node with the label disk=hdd");
  EXPECT_EQ(LeastChange(s, "apart"), "a node with the labels disk=ssd, zone=b");
  EXPECT_EQ(LeastChange(s, "cordoned"), "") << "the node says what is in the way";
}

TEST(Explain, APartOfAGpuMayBeMoreMemoryThanAnyHas) {
  Scenario s;
  s.Node("n0", {.gpus = 2, .gpu_mib = 81920});
  s.Node("n1", {.gpus = 2, .gpu_mib = 40960});
  s.Pod("large", {.gpu_mib = 190734});
  s.Cycle();
  EXPECT_EQ(LeastChange(s, "large"),
            "a suitable node whose GPUs have at least 190734 MiB; the largest have 81920 MiB");
}

TEST(Explain, AMisspeltResourceIsOneThatNodesHave) {
  Scenario s;
  s.Node("n0", {.gpus = 4, .extended = {{"rdma/hca", 1}}});
  for (const auto& [name, resource] : {std::pair("gpus", "nvidia.com/gpus"),
                                       {"vendor", "nvidia/gpu"},
                                       {"hcas", "rdma/hcas"},
                                       {"other", "example.com/dongle"}}) {
    s.Pod(name, {.extended = {{resource, 1}}});
  }
  s.Cycle();
  EXPECT_EQ(LeastChange(s, "gpus"),
            "a suitable node with at least 1 nvidia.com/gpus; no node has any: did you mean "
            "nvidia.com/gpu?");
  EXPECT_EQ(LeastChange(s, "vendor"),
            "a suitable node with at least 1 nvidia/gpu; no node has any: did you mean "
            "nvidia.com/gpu?");
  EXPECT_EQ(LeastChange(s, "hcas"),
            "a suitable node with at least 1 rdma/hcas; no node has any: did you mean rdma/hca?");
  EXPECT_EQ(LeastChange(s, "other"), "a suitable node with at least 1 example.com/dongle");
}

TEST(Explain, HugePagesAreToldAsMemoryIs) {
  Scenario s;
  s.Node("n0", {.extended = {{"hugepages-2Mi", 512LL << 20}}});
  s.Pod("db", {.extended = {{"hugepages-2Mi", 3LL << 29}}});
  s.Cycle();
  EXPECT_EQ(LeastChange(s, "db"),
            "a suitable node with at least 1.5 GiB of hugepages-2Mi; the largest has 512 MiB");
}

TEST(Explain, RoomIsNotWhatHelpsAPodThatNoNodeSuitsOtherwise) {
  Scenario s;
  s.Node("n0", {.gpus = 1, .labels = {{"rack", "r0"}}});
  s.Node("n1", {.gpus = 1, .labels = {{"rack", "r0"}}});
  s.Pod("x", {.gpus = 1, .on = "n0", .preemptible = false});
  PodAffinityTerm none;
  none.selector = {{"app", SelectorOp::kIn, {"nobody"}}};
  none.topology_key = "rack";
  s.Pod("p", {.gpus = 1, .affinity = {none}});
  s.Cycle();
  EXPECT_EQ(s.WaitingOf("p")->reason,
            "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) didn't match pod "
            "affinity rules. Needs 1 GPU; 1 free.");
  EXPECT_EQ(LeastChange(s, "p"), "");
}

TEST(Explain, WhatNoNodeCouldGiveIsToldBesideTheLargest) {
  Scenario s;
  s.Node("n0", {.cpu = 64'000, .memory_gib = 512});
  s.Pod("cpu", {.cpu = 65'000});
  s.Pod("memory", {.memory_mib = 614'400});
  s.Cycle();
  EXPECT_EQ(s.WaitingOf("cpu")->reason,
            "0/1 nodes are available: 1 Insufficient cpu. Needs 65 CPUs; 64 CPUs free.");
  EXPECT_EQ(LeastChange(s, "cpu"),
            "a suitable node with at least 65 CPUs; the largest has 64 CPUs");
  EXPECT_EQ(s.WaitingOf("memory")->reason,
            "0/1 nodes are available: 1 Insufficient memory. Needs 600 GiB of memory.");
  EXPECT_EQ(LeastChange(s, "memory"),
            "a suitable node with at least 600 GiB of memory; the largest has 512 GiB of memory");
}

TEST(Explain, AnUnhealthyGpuIsOneOfThoseThatTheNodeHas) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Pod("on-both", {.gpus = 2, .on = "n0", .devices = {0, 1}, .preemptible = false});
  s.Node("n0", {.gpus = 1, .labels = {{"swell.dev/unhealthy-gpus", "1"}}});
  s.Pod("p", {.gpus = 1});
  s.Cycle();
  EXPECT_EQ(LeastChange(s, "p"), "1 more free GPU on n0, which has 0 of 2 free, 1 unhealthy");
}

TEST(Explain, ANodeThatIsUnhealthyIsSaidToBe) {
  Scenario s;
  s.Node("n0", {.gpus = 1, .taints = {{"swell.dev/unhealthy", "", TaintEffect::kNoSchedule}}});
  s.Pod("p", {.gpus = 1});
  s.Cycle();
  ASSERT_NE(s.WaitingOf("p"), nullptr);
  EXPECT_EQ(s.WaitingOf("p")->reason,
            "0/1 nodes are available: 1 node(s) were unhealthy (swell health lists them). Needs 1 "
            "GPU; 0 free on suitable nodes.");
}

// What is free in other pools helps nobody whose project has no share of them.
TEST(Explain, NodesOfPoolsThatAreClosedToTheProjectDoNotCount) {
  Scenario s;
  s.Node("n0", {.gpus = 4, .labels = {{"kind", "old"}}});
  s.Node("n1", {.gpus = 8, .labels = {{"kind", "new"}}});
  s.Node("n2", {.gpus = 2, .labels = {{"kind", "new"}}});
  s.Pool({.name = "new", .node_selector = {{"kind", "new"}}});
  s.Pool({.name = "old", .node_selector = {{"kind", "old"}}});
  QueueInfo a;
  a.name = "a";
  a.pools = {{"old", {}, {}, {}}};
  s.Queue(a);
  QueueInfo both;
  both.name = "both";
  both.pools = {{"old", {}, {}, {}}, {"new", {}, {}, {}}};
  s.Queue(both);
  s.Group("here", {.preemptible = false, .queue = "a"});
  s.Pod("here-0", {.group = "here", .gpus = 3, .on = "n0"});
  s.Group("g", {.queue = "a"});
  s.Pod("g-0", {.group = "g", .gpus = 2});
  s.Group("h", {.min = 1, .queue = "both"});
  s.Pod("h-0", {.group = "h", .on = "n0"});
  s.Pod("h-1", {.group = "h", .gpus = 2});
  s.Cycle();
  EXPECT_EQ(s.WaitingOf("g")->reason,
            "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) were in node pools "
            "closed to project a. Needs 2 GPUs; 1 free.");
  EXPECT_EQ(LeastChange(s, "g"), "1 more free GPU on n0, which has 1 of 4 free");
  EXPECT_EQ(s.WaitingOf("h")->reason,
            "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) were in other node "
            "pools than its pods. Needs 2 GPUs; 1 free; no other project holds more than its fair "
            "share.");
}

TEST(Explain, AGangThatNoSinglePoolHoldsIsToldSo) {
  Scenario s;
  s.Node("n0", {.gpus = 4, .labels = {{"kind", "old"}}});
  s.Node("n1", {.gpus = 4, .labels = {{"kind", "new"}}});
  s.Pool({.name = "new", .node_selector = {{"kind", "new"}}});
  s.Pool({.name = "old", .node_selector = {{"kind", "old"}}});
  QueueInfo a;
  a.name = "a";
  s.Queue(a);
  s.Group("g", {.min = 2, .queue = "a"});
  s.Pods("g", 2, {.group = "g", .gpus = 4});
  s.Cycle();
  EXPECT_EQ(s.WaitingOf("g")->reason,
            "2/2 nodes are available. Needs 8 GPUs (2 pods x 4); 8 free; all of its pods must run "
            "in one node pool, and node pool new has room for only 1 of 2.");
  EXPECT_EQ(LeastChange(s, "g"),
            "a larger node pool: even when empty, none holds more than 1 of its 2 pods");
  s.Node("n2", {.gpus = 4, .labels = {{"kind", "new"}}});
  s.Group("h", {.preemptible = false, .queue = "a"});
  s.Pod("h-0", {.group = "h", .gpus = 1, .on = "n2"});
  s.Cycle();
  EXPECT_EQ(LeastChange(s, "g"), "room for 1 more pod with 4 GPUs on one node in node pool new");
}

TEST(Explain, AGangWhosePodsAreInEachOthersWayIsToldSo) {
  Scenario s;
  for (const char* node : {"n0", "n1"}) s.Node(node, {.gpus = 4});
  PodAffinityTerm apart;
  apart.selector = {{"app", SelectorOp::kIn, {"r"}}};
  apart.topology_key = "kubernetes.io/hostname";
  s.Group("g", {.min = 3});
  s.Pods("g", 3, {.group = "g", .gpus = 1, .labels = {{"app", "r"}}, .anti_affinity = {apart}});
  s.Cycle();
  EXPECT_EQ(s.WaitingOf("g")->reason,
            "2/2 nodes are available. Needs 3 GPUs (3 pods x 1); 8 free; 2 of them fit together, "
            "and for the next 2 node(s) didn't match pod anti-affinity rules.");
}

class ExplainDomains : public ::testing::Test {
 protected:
  ExplainDomains() {
    for (int i = 0; i < 4; ++i) {
      s.Node(StrCat("n", i), {.gpus = 2, .labels = {{"rack", i < 2 ? "r0" : "r1"}}});
    }
    s.model.UpsertTopology({"dc", {"rack"}});
  }
  Scenario s;
};

TEST_F(ExplainDomains, ALevelThatNoNodeHasIsWhatIsMissing) {
  s.Group("g", {.min = 2, .topology = {"dc", "rak", ""}});
  s.Pods("g", 2, {.group = "g", .gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.WaitingOf("g")->reason,
            "4/4 nodes are available. Needs 2 GPUs (2 pods x 1); 8 free; no suitable node has the "
            "label rak.");
  EXPECT_EQ(LeastChange(s, "g"), "suitable nodes with the label rak");
}

TEST_F(ExplainDomains, RoomHelpsInTheDomainThatHasMost) {
  s.Pod("x", {.gpus = 1, .on = "n0", .preemptible = false});
  s.Pod("y", {.gpus = 2, .on = "n2", .preemptible = false});
  s.Group("g", {.min = 4, .topology = {"dc", "rack", ""}});
  s.Pods("g", 4, {.group = "g", .gpus = 1});
  s.Cycle();
  EXPECT_EQ(LeastChange(s, "g"), "room for 1 more pod in r0");
}

TEST_F(ExplainDomains, MembersThatGrowHaveToGoWhereTheOthersAre) {
  s.Group("g", {.min = 2, .topology = {"dc", "rack", ""}});
  s.Pods("g", 5, {.group = "g", .gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.WaitingOf("g")->reason,
            "2/4 nodes are available: 2 Insufficient nvidia.com/gpu. Needs 1 GPU; 4 free; all of "
            "its pods must share one rack, and the one others of them are in, r0, takes 0.");
  EXPECT_EQ(LeastChange(s, "g"), "room for 1 more pod in r0");
}

TEST_F(ExplainDomains, APartOfAGroupIsToldByItsName) {
  s.Group("g",
          {.sets = {{"a", 2, "left", {}}, {"b", 5, "right", {}}},
           .subgroups = {{"left", "", {"dc", "rack", ""}}, {"right", "", {"dc", "rack", ""}}}});
  s.Pods("a", 2, {.group = "g", .set = "a", .gpus = 1});
  s.Pods("b", 5, {.group = "g", .set = "b", .gpus = 1});
  s.Cycle();
  EXPECT_EQ(s.WaitingOf("g")->reason,
            "4/4 nodes are available. Needs 7 GPUs (7 pods x 1); 8 free; the pods of right must "
            "share one rack, and the one with most room, r0, takes 4.");
  EXPECT_EQ(LeastChange(s, "g"), "a larger rack: none there is takes more than 4 of these 5 pods");
}

TEST(Explain, MembersBeyondTheMinimumOfAJobThatRunsAreToldApart) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Group("g", {.min = 2});
  s.Pods("g", 4, {.group = "g", .gpus = 1});
  s.Cycle();
  s.Group("rigid", {.min = 2});
  s.Pods("rigid", 2, {.group = "rigid", .gpus = 1});
  s.Pod("alone", {.gpus = 1});
  ASSERT_NE(s.WaitingOf("g"), nullptr);
  EXPECT_TRUE(s.WaitingOf("g")->surplus) << s.WaitingOf("g")->reason;
  s.Cycle();
  for (const char* name : {"rigid", "alone"}) {
    ASSERT_NE(s.WaitingOf(name), nullptr) << name;
    EXPECT_FALSE(s.WaitingOf(name)->surplus) << s.WaitingOf(name)->reason;
  }
}

TEST(Explain, AJobBeyondItsProjectsShareIsToldWhyItReclaimsNothing) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Node("n1", {.gpus = 4});
  s.Queue(MakeQueue("a", 4));
  s.Queue(MakeQueue("b", 4));
  s.Group("wide", {.min = 8, .queue = "a"});
  s.Pods("wide", 8, {.group = "wide", .gpus = 1, .on = "n0"});
  s.Group("whole", {.queue = "b"});
  s.Pod("whole-0", {.group = "whole", .gpus = 8});
  s.Cycle();
  ASSERT_NE(s.WaitingOf("whole"), nullptr);
  EXPECT_EQ(s.WaitingOf("whole")->reason,
            "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. Needs 8 GPUs; 4 free; with it "
            "project b would hold more than its fair share, so it reclaims nothing.");
}

TEST(Explain, PoolsWhereAProjectMayHoldNoMoreAreToldApart) {
  Scenario s;
  s.Pool({.name = "new", .node_selector = {{"kind", "new"}}});
  s.Pool({.name = "old", .node_selector = {{"kind", "old"}}});
  s.Node("n0", {.gpus = 8, .labels = {{"kind", "new"}}});
  s.Node("n1", {.gpus = 8, .labels = {{"kind", "old"}}});
  QueueInfo a = MakeQueue("a", 0);
  a.pools = {{"new", {4, 4, 1}, {}, {}}, {"old", {4, kUnlimited, 1}, {}, {}}};
  s.Queue(a);
  s.Group("large", {.queue = "a", .minutes_old = 30});
  s.Pod("large-0", {.group = "large", .gpus = 8});
  s.Group("small", {.queue = "a", .minutes_old = 20});
  s.Pod("small-0", {.group = "small", .gpus = 4});
  s.Group("third", {.queue = "a"});
  s.Pod("third-0", {.group = "third", .gpus = 4});
  s.Cycle();
  ASSERT_EQ(s.NodeOf("large-0") + s.NodeOf("small-0"), "n1n0");
  ASSERT_NE(s.WaitingOf("third"), nullptr);
  EXPECT_EQ(s.WaitingOf("third")->reason,
            "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were in node pools "
            "where project a would exceed its limit or quota. Needs 4 GPUs; 0 free.");
}

TEST(Explain, SaysNothingInACycleThatIsNotAskedTo) {
  Scenario s;
  s.Node("n0", {.gpus = 1});
  s.Pod("a", {.gpus = 2});
  s.Cycle({.explain = false});
  EXPECT_TRUE(s.last.waiting.empty());
  s.Pod("b", {.gpus = 1});
  s.Cycle();
  EXPECT_NE(s.WaitingOf("a"), nullptr);
}

}  // namespace
}  // namespace swell::sched
