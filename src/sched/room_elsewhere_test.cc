#include "sched/room_elsewhere.h"

#include <gtest/gtest.h>

#include "sched/scenario_test_util.h"

namespace swell::sched {
namespace {

constexpr const char* kType = "type";

GoodputInfo Curve() { return {.pod_set = "default", .curve = {{1, 1'000'000}, {4, 3'000'000}}}; }

// A job with members on T4 and others that wait, beside free nodes of other types.
class RoomElsewhereTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Node("t4", "T4", 2);
    s_.Group("job", {.min = 2, .goodput = Curve()});
    for (int i = 0; i < 4; ++i) s_.Pod(StrCat("job-", i), Member(i));
  }
  static PodSpec Member(int i) {
    PodSpec pod{.group = "job", .gpus = 1, .member_priority = 10 - i};
    if (i < 2) pod.on = "t4";
    return pod;
  }
  void Node(const std::string& name, const std::string& type, int gpus, bool tainted = false) {
    NodeSpec spec{.gpus = gpus, .labels = {{kType, type}}};
    if (tainted) spec.taints = {{"for", "others", TaintEffect::kNoSchedule}};
    s_.Node(name, spec);
  }
  std::string Rooms() {
    const std::string before = s_.Places();
    const uint64_t version = s_.model.version();
    std::string text;
    for (const RoomElsewhere& room : RoomsElsewhere(s_.model, "default/job", kType)) {
      text += StrCat(text.empty() ? "" : " ", room.value, ":", room.members);
    }
    EXPECT_EQ(s_.Places(), before);
    EXPECT_EQ(s_.model.version(), version);
    EXPECT_EQ(s_.Violations(), "");
    return text;
  }

  Scenario s_;
};

TEST_F(RoomElsewhereTest, IsWhatWouldFitOnOneTypeAlone) {
  Node("a", "A100", 2);
  Node("b", "A100", 1);
  Node("h", "H100", 8);
  Node("k", "K80", 1);
  Node("x", "", 8);
  EXPECT_EQ(Rooms(), "A100:3 H100:4") << "one K80 is less than its minimum";
}

TEST_F(RoomElsewhereTest, IsForPodsThatMayGoThere) {
  Node("a", "A100", 8, /*tainted=*/true);
  EXPECT_EQ(Rooms(), "");
}

TEST_F(RoomElsewhereTest, CountsNotWhatThePodsRequireOfTheTypeItself) {
  Node("a", "A100", 8);
  Node("b", "B", 8);
  for (int i = 0; i < 4; ++i) {
    PodSpec pod = Member(i);
    pod.required = {{.expressions = {{kType, SelectorOp::kIn, {"T4"}}}}};
    s_.Pod(StrCat("job-", i), pod);
  }
  EXPECT_EQ(Rooms(), "A100:4 B:4");
  for (int i = 0; i < 4; ++i) {
    PodSpec pod = Member(i);
    pod.required = {
        {.expressions = {{kType, SelectorOp::kIn, {"T4"}}, {kType, SelectorOp::kNotIn, {"B"}}},
         .fields = {{"metadata.name", SelectorOp::kIn, {"t4", "b"}}}}};
    s_.Pod(StrCat("job-", i), pod);
  }
  EXPECT_EQ(Rooms(), "B:4") << "everything else holds";
}

TEST_F(RoomElsewhereTest, IsNotTakenFromWorkThatWaits) {
  Node("a", "A100", 3);
  Node("h", "H100", 4);
  s_.Group("large", {.min = 4});
  s_.Pods("large", 4, {.group = "large", .gpus = 1, .selector = {{kType, "A100"}}});
  EXPECT_EQ(Rooms(), "H100:4") << "four wait for A100, of which there are three";
  s_.Pod("other", {.gpus = 8});
  EXPECT_EQ(Rooms(), "");
}

TEST_F(RoomElsewhereTest, IsFreeAlready) {
  Node("a", "A100", 4);
  s_.Pod("old", {.gpus = 2, .on = "a"});
  EXPECT_EQ(Rooms(), "A100:2");
  s_.model.AssumeEvicted("default/old");
  EXPECT_EQ(RoomsElsewhere(s_.model, "default/job", kType).size(), 0u) << "it terminates";
}

TEST_F(RoomElsewhereTest, KeepsLimitsAndQuotas) {
  Node("a", "A100", 4);
  s_.Pool({.name = "t4", .node_selector = {{kType, "T4"}}});
  s_.Pool({.name = "a100", .node_selector = {{kType, "A100"}}});
  const auto project = [&](double quota, double limit) {
    QueueInfo queue{.name = "team"};
    queue.pools = {{.pool = "t4", .gpu = {.quota = 2}},
                   {.pool = "a100", .gpu = {.quota = quota, .limit = limit}}};
    s_.Queue(queue);
    s_.Group("job", {.min = 2, .queue = "team", .goodput = Curve()});
  };
  project(4, kUnlimited);
  EXPECT_EQ(Rooms(), "A100:4");
  project(4, 3);
  EXPECT_EQ(Rooms(), "A100:3");
  project(2, kUnlimited);
  EXPECT_EQ(Rooms(), "A100:2") << "the others could be taken back";
  project(0, kUnlimited);
  EXPECT_EQ(Rooms(), "") << "its place on T4 is within the quota";
}

TEST_F(RoomElsewhereTest, IsForGroupsThatMayMove) {
  Node("a", "A100", 4);
  s_.Group("job", {.min = 2, .preemptible = false, .goodput = Curve()});
  EXPECT_EQ(Rooms(), "") << "it never gives up its place";
  s_.Group("job", {.min = 2});
  EXPECT_EQ(Rooms(), "") << "it has no curve";
  s_.Group("job", {.min = 3, .goodput = Curve()});
  EXPECT_EQ(RoomsElsewhere(s_.model, "default/job", kType).size(), 0u) << "it is below its minimum";
  s_.Group("job", {.min = 2, .goodput = Curve()});
  EXPECT_EQ(Rooms(), "A100:4");
  PodSpec elsewhere = Member(2);
  elsewhere.on = "a";
  s_.Pod("job-2", elsewhere);
  EXPECT_EQ(Rooms(), "") << "it is on two types";
  EXPECT_EQ(RoomsElsewhere(s_.model, "default/none", kType).size(), 0u);
}

TEST_F(RoomElsewhereTest, LeavesDecisionsAsTheyWere) {
  Node("a", "A100", 4);
  Scenario other;
  s_.FillModel(other.model, /*backwards=*/false);
  EXPECT_EQ(RoomsElsewhere(other.model, "default/job", kType).size(), 1u);
  other.Cycle();
  s_.Cycle();
  EXPECT_EQ(other.Log(), s_.Log());
}

}  // namespace
}  // namespace swell::sched
