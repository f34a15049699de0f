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
