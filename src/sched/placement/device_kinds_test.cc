// Devices by kind: who gets which, what is refused, and whom it costs.
#include "sched/state/device_kinds.h"

#include <gtest/gtest.h>

#include "sched/scenario_test_util.h"

namespace swell::sched {
namespace {

const std::string kLarge = "GPUs of class large";
const std::string kAny = "GPUs of class any";
const std::string kNic = "devices of class nic";

DeviceSet Set(const std::vector<int>& devices) { return DeviceSet::From(devices); }

// A node of so many GPUs, of which these are large, with two other devices.
NodeSpec Mixed(int gpus, const std::vector<int>& large) {
  std::vector<int> all;
  for (int i = 0; i < gpus; ++i) all.push_back(i);
  return {.gpus = gpus,
          .labels = {{kLarge, DeviceKindText(Set(large))},
                     {kAny, DeviceKindText(Set(all))},
                     {kNic, "126,127"}},
          .extended = {{kLarge, static_cast<int64_t>(large.size())}, {kAny, gpus}, {kNic, 2}}};
}

TEST(DeviceKinds, TextsAreReadAsTheyAreWritten) {
  EXPECT_EQ(DeviceKindText(Set({5, 0, 64, 127})), "0,5,64,127");
  EXPECT_EQ(ReadDeviceKind("0,5,64,127"), Set({0, 5, 64, 127}));
  EXPECT_EQ(ReadDeviceKind("-1,x,128,,3"), Set({3}));
  EXPECT_TRUE(IsDeviceKind(kNic) && IsDeviceKind(kAny) && !IsDeviceKind("nvidia.com/gpu"));
}

TEST(DeviceKinds, WhoCanHaveOneDeviceOnlyGetsIt) {
  std::vector<DeviceSet> out;
  EXPECT_TRUE(ShareOut({{Set({0, 1, 2}), 2}, {Set({0, 1}), 1}}, Set({0, 1, 2}), {}, &out));
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].Count(), 2);
  EXPECT_EQ(out[1].Count(), 1);
  EXPECT_TRUE(out[0].Has(2));
  EXPECT_FALSE(ShareOut({{Set({0}), 1}, {Set({0}), 1}}, Set({0, 1}), {}, nullptr));
  EXPECT_FALSE(ShareOut({{Set({0, 1}), 3}}, Set({0, 1}), {}, nullptr));
  EXPECT_FALSE(ShareOut({{Set({0, 1}), INT64_MAX}}, Set({0, 1}), {}, nullptr));
  EXPECT_TRUE(ShareOut({{Set({0, 1, 2}), 1}}, Set({0, 1, 2}), Set({1}), &out));
  EXPECT_EQ(out[0], Set({1}));
}

TEST(DeviceKinds, APodGetsDevicesOfItsKindAndOthersTheRest) {
  Scenario s;
  s.Node("n0", Mixed(4, {1, 3}));
  s.Pod("a", {.gpus = 2, .minutes_old = 12, .extended = {{kLarge, 2}}});
  s.Pod("b", {.gpus = 2, .minutes_old = 11});
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind a n0 [1,3] allocate\nbind b n0 [0,2] allocate\n");
  EXPECT_EQ(s.Violations(), "");
}

TEST(DeviceKinds, ADeviceOfTwoKindsIsGivenOnce) {
  Scenario s;
  s.Node("n0", Mixed(2, {0}));
  s.Pod("a", {.gpus = 2, .minutes_old = 12, .extended = {{kLarge, 1}, {kAny, 1}}});
  s.Pod("b", {.gpus = 1, .minutes_old = 11, .extended = {{kAny, 1}}});
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind a n0 [0,1] allocate\n");
  EXPECT_EQ(s.WaitingOf("b")->reason,
            "0/1 nodes are available: 1 node(s) had fewer than 1 free GPUs of class any. Needs 1 "
            "GPUs of class any; 0 free.");
}

TEST(DeviceKinds, GpusThatWereRequestedAreNotClaimedToo) {
  Scenario s;
  s.Node("n0", Mixed(2, {0, 1}));
  s.Pod("plain", {.gpus = 1, .on = "n0", .devices = {0}, .preemptible = false});
  s.Pod("two", {.gpus = 2, .preemptible = false, .minutes_old = 12, .extended = {{kLarge, 2}}});
  s.Pod("one", {.gpus = 1, .minutes_old = 11, .extended = {{kLarge, 1}}});
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind one n0 [1] allocate\n");
}

TEST(DeviceKinds, OtherDevicesAreNoGpus) {
  Scenario s;
  s.Node("n0", Mixed(1, {0}));
  s.Pod("a", {.minutes_old = 12, .extended = {{kNic, 1}}});
  s.Pod("b", {.minutes_old = 11, .extended = {{kNic, 1}}});
  s.Pod("c", {.minutes_old = 10, .extended = {{kNic, 1}}});
  s.Pod("d", {.gpus = 1, .minutes_old = 9});
  s.Cycle();
  EXPECT_EQ(s.Log(),
            "bind a n0 [126] allocate\nbind b n0 [127] allocate\nbind d n0 [0] allocate\n");
  EXPECT_EQ(s.WaitingOf("c")->reason,
            "0/1 nodes are available: 1 node(s) had fewer than 1 free devices of class nic. Needs "
            "1 devices of class nic; 0 free.");
  s.AdvancePods();
  s.RemovePod("a");
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind c n0 [126] allocate\n");
}

// The large device is held by a pod that did not ask for a large one: that one has to go.
TEST(DeviceKinds, TheVictimIsWhoHoldsADeviceOfTheKind) {
  Scenario s;
  s.Node("n0", Mixed(2, {1}));
  s.Pod("keeps", {.gpus = 1, .on = "n0", .devices = {0}, .priority = 10});
  s.Pod("goes", {.gpus = 1, .on = "n0", .devices = {1}, .priority = 20});
  s.Pod("a", {.gpus = 1, .priority = 60, .extended = {{kLarge, 1}}});
  s.Cycle();
  EXPECT_EQ(s.Log(), "evict goes n0 [1] preempt\nnominate a n0 [1] preempt\n");
}

TEST(DeviceKinds, ClaimedGpusCountAgainstTheQuota) {
  Scenario s;
  s.Node("n0", Mixed(4, {0, 1, 2, 3}));
  QueueInfo queue = MakeQueue("team", 1);
  queue.gpu.limit = 1;
  s.Queue(queue);
  s.Group("g", {.queue = "team"});
  s.Group("h", {.queue = "team", .minutes_old = 9});
  s.Pod("g-0", {.group = "g", .gpus = 1, .extended = {{kLarge, 1}}});
  s.Pod("h-0", {.group = "h", .gpus = 1, .minutes_old = 9, .extended = {{kLarge, 1}}});
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind g-0 n0 [0] allocate\n");
  EXPECT_NE(s.WaitingOf("h")->reason.find("limit"), std::string::npos) << s.WaitingOf("h")->reason;
}

TEST(DeviceKinds, NodesThatGiveGpusByKindTakeNoPlainRequests) {
  Scenario s;
  NodeSpec node = Mixed(1, {0});
  node.labels[std::string(kGpusByKind)] = "";
  s.Node("n0", node);
  s.Pod("a", {.gpus = 1, .minutes_old = 12});
  s.Pod("b", {.gpus = 1, .minutes_old = 11, .extended = {{kAny, 1}}});
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind b n0 [0] allocate\n");
  EXPECT_EQ(s.WaitingOf("a")->reason,
            "0/1 nodes are available: 1 node(s) gave their GPUs to resource claims only. Needs 1 "
            "GPU; 0 free on suitable nodes.");
}

TEST(DeviceKinds, AGangGetsItsDevicesWholeOrNotAtAll) {
  Scenario s;
  s.Node("n0", Mixed(4, {0, 1}));
  s.Node("n1", Mixed(4, {2}));
  s.Group("three", {.min = 3});
  s.Group("four", {.min = 4, .minutes_old = 20});
  s.Pods("four", 4, {.group = "four", .gpus = 1, .extended = {{kLarge, 1}}});
  s.Pods("three", 3, {.group = "three", .gpus = 1, .extended = {{kLarge, 1}}});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Decision::Type::kBind), 3);
  EXPECT_EQ(s.PhaseOf("four-0"), "Pending");
  EXPECT_EQ(s.Violations(), "");
}

const std::string kQuarter = "parts of GPUs of class quarter (0.25 of a GPU)";
const std::string kShare = "parts of GPUs of class share (0.4 of a GPU)";

// A node whose GPU 0 is given whole or as quarters, which are 120 to 123, and whose GPU 1 is shared
// by claims that each take four tenths.
NodeSpec Divided() {
  DeviceCounters counters;
  counters.capacity = {80, 10};
  counters.own = {0, 0};
  counters.shared.Add(1);
  counters.of_device[0] = {{0, 80}};
  counters.of_device[1] = {{1, 10}};
  for (int i = 120; i < 124; ++i) counters.of_device[i] = {{0, 20}};
  return {.gpus = 2,
          .labels = {{kAny, "0"},
                     {kQuarter, DeviceKindText(Set({120, 121, 122, 123}))},
                     {kShare, DeviceKindText(Set({1}), {{1, {{1, 4}}}})},
                     {std::string(kGpusByKind), ""},
                     {std::string(kDeviceCounters), DeviceCountersText(counters)}},
          .extended = {{kAny, 1}, {kQuarter, 4}, {kShare, 2}}};
}

TEST(DeviceKinds, CountersAreReadAsTheyAreWritten) {
  const NodeSpec node = Divided();
  const std::string& text = node.labels.at(std::string(kDeviceCounters));
  EXPECT_EQ(text, "80,10|1|0:0=80;1:1=10;120:0=20;121:0=20;122:0=20;123:0=20");
  const DeviceCounters read = ReadDeviceCounters(text);
  EXPECT_EQ(DeviceCountersText(read), text);
  EXPECT_EQ(node.labels.at(kShare), "1|1:1=4");
  EXPECT_EQ(ReadDeviceKind("1|1:1=4"), Set({1}));
  EXPECT_EQ(ReadKindUses("1|1:1=4;2:9=4", read), (DeviceUses{{1, {{1, 4}}}, {2, {}}}));
  EXPECT_EQ(DeviceCountersText(ReadDeviceCounters("~1,-5,x|7|3:0=1+9=2;999:0=1;4")),
            "~1,0,0|7|3:0=1");
  EXPECT_EQ(GpuPartPpm(kQuarter), 250'000);
  EXPECT_EQ(GpuPartPpm(GpuPartName("class x (all 2)", 142'857)), 142'857);
  EXPECT_EQ(GpuPartPpm(kNic), 0);
}

TEST(DeviceKinds, PartitionsAndTheWholeTakeFromOneGpu) {
  Scenario s;
  s.Node("n0", Divided());
  s.Pod("quarter", {.minutes_old = 12, .extended = {{kQuarter, 1}}});
  s.Pod("whole", {.gpus = 1, .minutes_old = 11, .extended = {{kAny, 1}}});
  s.Pods("three", 3, {.minutes_old = 10, .extended = {{kQuarter, 1}}});
  s.Pod("fifth", {.minutes_old = 9, .extended = {{kQuarter, 1}}});
  s.Cycle();
  EXPECT_EQ(s.Log(),
            "bind quarter n0 [120] allocate\nbind three-0 n0 [121] allocate\n"
            "bind three-1 n0 [122] allocate\nbind three-2 n0 [123] allocate\n");
  EXPECT_NE(s.WaitingOf("whole")->reason.find("fewer than 1 free GPUs of class any"),
            std::string::npos)
      << s.WaitingOf("whole")->reason;
  s.AdvancePods();
  for (const char* pod : {"quarter", "three-0", "three-1"}) s.RemovePod(pod);
  s.RemovePod("fifth");
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("whole"), "Pending") << "a quarter is still held";
  s.RemovePod("three-2");
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind whole n0 [0] allocate\n");
}

TEST(DeviceKinds, PodsShareADeviceAsFarAsItGoes) {
  Scenario s;
  s.Node("n0", Divided());
  s.Pods("p", 3, {.extended = {{kShare, 1}}});
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind p-0 n0 [1] allocate\nbind p-1 n0 [1] allocate\n");
  s.AdvancePods();
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("p-2"), "Pending");
  s.RemovePod("p-0");
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind p-2 n0 [1] allocate\n");
}

TEST(DeviceKinds, PartsCountAgainstTheQuotaAsPartsOfAGpu) {
  Scenario s;
  s.Node("n0", Divided());
  QueueInfo queue = MakeQueue("team", 1);
  queue.gpu.limit = 0.6;
  s.Queue(queue);
  for (int i = 0; i < 3; ++i) {
    const std::string name = StrCat("g", i);
    s.Group(name, {.queue = "team", .minutes_old = 20 - i});
    s.Pod(name + "-0", {.group = name, .minutes_old = 20 - i, .extended = {{kQuarter, 1}}});
  }
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Decision::Type::kBind), 2);
  EXPECT_NE(s.WaitingOf("g2")->reason.find("limit"), std::string::npos)
      << s.WaitingOf("g2")->reason;
}

// The cheapest victims that make room: quarters for the whole, one share for another.
TEST(DeviceKinds, VictimsGiveTheirPartsBack) {
  Scenario s;
  s.Node("n0", Divided());
  s.Pod("q-0", {.on = "n0", .devices = {120}, .priority = 10, .extended = {{kQuarter, 1}}});
  s.Pod("q-1", {.on = "n0", .devices = {123}, .priority = 10, .extended = {{kQuarter, 1}}});
  s.Pod("s-0", {.on = "n0", .devices = {1}, .priority = 20, .extended = {{kShare, 1}}});
  s.Pod("s-1", {.on = "n0", .devices = {1}, .priority = 10, .extended = {{kShare, 1}}});
  s.Pod("whole", {.gpus = 1, .priority = 60, .extended = {{kAny, 1}}});
  s.Pod("share", {.priority = 60, .extended = {{kShare, 1}}});
  s.Cycle();
  EXPECT_EQ(s.CountDecisions(Decision::Type::kEvict), 3) << s.Log();
  EXPECT_EQ(s.PhaseOf("s-0"), "Running");
  s.AdvancePods();
  s.Cycle();
  EXPECT_EQ(s.NodeOf("whole"), "n0");
  EXPECT_EQ(s.NodeOf("share"), "n0");
}

TEST(DeviceKinds, TheDevicesOfOnePodDiffer) {
  const std::string differ = "GPUs of class any distinct in rail";
  DeviceCounters counters;
  counters.capacity = {1, 1};
  counters.own = {1, 1};
  Scenario s;
  s.Node("n0",
         {.gpus = 4,
          .labels = {{differ,
                      DeviceKindText(Set({0, 1, 2, 3}),
                                     {{0, {{0, 1}}}, {1, {{0, 1}}}, {2, {{1, 1}}}, {3, {{1, 1}}}})},
                     {std::string(kDeviceCounters), DeviceCountersText(counters)}},
          .extended = {{differ, 4}}});
  s.Pod("a", {.gpus = 2, .minutes_old = 12, .extended = {{differ, 2}}});
  s.Pod("b", {.gpus = 2, .minutes_old = 11, .extended = {{differ, 2}}});
  s.Pod("c", {.gpus = 3, .minutes_old = 10, .extended = {{differ, 3}}});
  s.Cycle();
  EXPECT_EQ(s.Log(), "bind a n0 [0,2] allocate\nbind b n0 [1,3] allocate\n");
  s.AdvancePods();
  s.RemovePod("a");
  s.RemovePod("b");
  s.Cycle();
  EXPECT_EQ(s.PhaseOf("c"), "Pending") << "there are two values";
}

TEST(DeviceKinds, ARecordedClusterWithKindsDecidesTheSameAgain) {
  Scenario s;
  s.KeepRecords(1);
  s.Node("n0", Mixed(4, {1, 3}));
  s.Pod("low", {.gpus = 1, .on = "n0", .devices = {3}, .priority = 10});
  s.Pod("a", {.gpus = 2, .priority = 60, .extended = {{kLarge, 2}}});
  s.Pod("b", {.extended = {{kNic, 2}}});
  s.Cycle();
  s.AdvancePods();
  s.Cycle();
  EXPECT_EQ(s.ReplayDifference(), "");
  EXPECT_EQ(s.NodeOf("a"), "n0");
}

}  // namespace
}  // namespace swell::sched
