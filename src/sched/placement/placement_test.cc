// Placement by what is rarer than whole GPUs: MIG slices, parts of several devices, volumes that
// are bound to nodes, and gangs whose parts want to be near each other.
#include <gtest/gtest.h>

#include "sched/scenario_test_util.h"

namespace swell::sched {
namespace {

using Type = Decision::Type;

constexpr const char* kSlice = "nvidia.com/mig-1g.5gb";

TEST(Mig, SlicesAreCountedByTheirName) {
  Scenario s;
  s.Node("n0", {.extended = {{kSlice, 2}, {"nvidia.com/mig-3g.20gb", 1}}});
  s.Pods("p", 3, {.extended = {{kSlice, 1}}});
  s.Pod("large", {.extended = {{"nvidia.com/mig-3g.20gb", 1}}});
  s.Cycle();
  EXPECT_EQ(s.Log(),
            "bind large n0 [] allocate\nbind p-0 n0 [] allocate\nbind p-1 n0 [] allocate\n");
  ASSERT_NE(s.WaitingOf("p-2"), nullptr);
  EXPECT_EQ(s.WaitingOf("p-2")->reason,
            "0/1 nodes are available: 1 Insufficient nvidia.com/mig-1g.5gb. Needs 1 "
            "nvidia.com/mig-1g.5gb; 0 free.");
}

TEST(Mig, SlicesCountAgainstGpuLimits) {
  Scenario s;
  s.Node("n0", {.extended = {{"nvidia.com/mig-2g.10gb", 3}}});
  QueueInfo team;
  team.name = "team";
  team.gpu = {.quota = 2, .limit = 2};
  s.Queue(team);
  s.Group("a", {.queue = "team"});
  s.Pod("a-0", {.group = "a", .extended = {{"nvidia.com/mig-2g.10gb", 1}}});
  s.Group("b", {.queue = "team", .minutes_old = 5});
  s.Pod("b-0", {.group = "b", .extended = {{"nvidia.com/mig-2g.10gb", 1}}});
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind a-0 n0 [] allocate\n");
  EXPECT_EQ(s.WaitingOf("b")->reason,
            "project team would exceed its limit of 2 GPUs: 2 GPUs used, 2 GPUs asked");
}

TEST(Mig, ASliceIsPreempted) {
  Scenario s;
  s.Node("n0", {.extended = {{kSlice, 1}}});
  s.Pod("low", {.on = "n0", .extended = {{kSlice, 1}}});
  s.Pod("high", {.priority = 80, .extended = {{kSlice, 1}}});
  s.Cycle();
  EXPECT_EQ(s.Log(), "evict low n0 [] preempt\nnominate high n0 [] preempt\n");
}

TEST(Mig, DividedGpusAreNotSharedOtherwise) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.nodes["n0"].gpus_sliced = true;
  s.model.UpsertNode(s.nodes["n0"]);
  s.Pod("part", {.fraction = 0.5});
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  EXPECT_NE(s.WaitingOf("part")->reason.find("GPUs divided by MIG"), std::string::npos);
}

TEST(SharedGpus, PartsOfSeveralDevicesAtOnce) {
  Scenario s;
  s.Node("n0", {.gpus = 2});
  s.Node("n1", {.gpus = 1});
  s.Pods("p", 3, {.fraction = 0.5, .fraction_devices = 2});
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind p-0 n0 [0,1] allocate\nbind p-1 n0 [0,1] allocate\n");
  ASSERT_NE(s.WaitingOf("p-2"), nullptr);
  EXPECT_NE(s.WaitingOf("p-2")->reason.find("Needs 50% of a GPU on each of 2"), std::string::npos)
      << s.WaitingOf("p-2")->reason;
  EXPECT_EQ(s.Violations(), "");
}

TEST(SharedGpus, ByMemoryTheyTakeWhatTheDeviceHas) {
  Scenario s;
  s.Node("n0", {.gpus = 1, .gpu_mib = 40'000});
  s.Pods("p", 2, {.gpu_mib = 20'000});
  s.Pod("q", {.gpu_mib = 10'000, .minutes_old = 1});
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind p-0 n0 [0] allocate\nbind p-1 n0 [0] allocate\n");
  EXPECT_EQ(s.last.decisions[0].Reason(), "0.5 of a GPU on n0; 0 of its 1 GPUs stay free");
}

NodeSelectorTerm InZone(const std::string& zone) {
  return {{{"zone", SelectorOp::kIn, {zone}}}, {}};
}

TEST(Volumes, KeepAPodWhereAllOfThemAre) {
  Scenario s;
  s.Node("n0", {.labels = {{"zone", "a"}}});
  s.Node("n1", {.labels = {{"zone", "b"}}});
  s.Node("n2", {.labels = {{"zone", "b"}}});
  const NodeSelectorTerm on_n2{{}, {{"metadata.name", SelectorOp::kIn, {"n2"}}}};
  s.Pod("one", {.volumes = {{InZone("b")}, {InZone("a"), on_n2}}});
  s.Pod("torn", {.volumes = {{InZone("a")}, {InZone("b")}}});
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind one n2 [] allocate\n");
  EXPECT_EQ(s.WaitingOf("torn")->reason,
            "0/3 nodes are available: 3 node(s) had volume node affinity conflict. Needs 100m CPU; "
            "0 CPUs free.");
}

void AddRacks(Scenario& s) {
  for (int i = 0; i < 4; ++i) {
    s.Node(StrCat("n", i), {.gpus = 2, .labels = {{"rack", i < 2 ? "r0" : "r1"}}});
  }
  s.model.UpsertTopology({"dc", {"rack"}});
}

TEST(Topology, APreferenceIsHeededWhereItCanBe) {
  Scenario s;
  AddRacks(s);
  s.Pod("x", {.gpus = 1, .on = "n0", .devices = {0}});
  s.Group("near", {.min = 2, .topology = {"dc", "", "rack"}});
  s.Pods("near", 2, {.group = "near", .gpus = 2});
  s.Cycle();
  EXPECT_EQ(s.NodeOf("near-0"), "n2");
  EXPECT_EQ(s.NodeOf("near-1"), "n3");
}

TEST(Topology, APreferenceKeepsNobodyWaiting) {
  Scenario s;
  AddRacks(s);
  s.Pod("x", {.gpus = 1, .on = "n0", .devices = {0}});
  s.Pod("y", {.gpus = 1, .on = "n2", .devices = {0}});
  s.Group("near", {.min = 2, .topology = {"dc", "", "rack"}});
  s.Pods("near", 2, {.group = "near", .gpus = 2});
  s.Cycle();
  EXPECT_EQ(s.NodeOf("near-0"), "n1");
  EXPECT_EQ(s.NodeOf("near-1"), "n3");
}

GroupSpec TwoSubgroups() {
  GroupSpec group;
  for (const char* name : {"left", "right"}) {
    group.sets.push_back({StrCat(name, "-workers"), 2, name, {}});
    group.subgroups.push_back({name, "", {"dc", "rack", ""}});
  }
  return group;
}

TEST(Subgroups, EachKeepsToItsOwnRack) {
  Scenario s;
  AddRacks(s);
  s.Group("g", TwoSubgroups());
  s.Pods("left", 2, {.group = "g", .set = "left-workers", .gpus = 2});
  s.Pods("right", 2, {.group = "g", .set = "right-workers", .gpus = 2});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kBind), 4);
  EXPECT_EQ(s.Places(), "left-0:Bound@n0\nleft-1:Bound@n1\nright-0:Bound@n2\nright-1:Bound@n3\n");
}

TEST(Subgroups, AreOneGang) {
  Scenario s;
  AddRacks(s);
  s.Pod("x", {.gpus = 1, .on = "n3", .devices = {0}});
  s.Group("g", TwoSubgroups());
  s.Pods("left", 2, {.group = "g", .set = "left-workers", .gpus = 2});
  s.Pods("right", 2, {.group = "g", .set = "right-workers", .gpus = 2});
  s.Cycle();
  EXPECT_EQ(s.Log(), "");
  s.RemovePod("x");
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Type::kBind), 4);
}

// The smaller zone has the best node for the first pod, but no room for all.
TEST(Placement, AGangThatMustBeNearItselfGoesWhereAllOfItFits) {
  Scenario s;
  s.Node("n0", {.gpus = 2, .labels = {{"zone", "small"}}});
  for (const char* node : {"n1", "n2"}) {
    s.Node(node, {.gpus = 2, .labels = {{"zone", "large"}}});
  }
  PodAffinityTerm near;
  near.selector = {{"app", SelectorOp::kIn, {"r"}}};
  near.topology_key = "zone";
  s.Group("g", {.min = 3});
  s.Pods("g", 3, {.group = "g", .gpus = 1, .labels = {{"app", "r"}}, .affinity = {near}});
  s.Cycle();
  EXPECT_EQ(s.Log(),
            "bind g-0 n1 [0] allocate\nbind g-1 n1 [1] allocate\nbind g-2 n2 [0] allocate\n");
}

}  // namespace
}  // namespace swell::sched
