// Recorded cycles run again: the same bytes in, the same decisions out.
#include "sched/replay.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "sched/scenario_test_util.h"

namespace swell::sched {
namespace {

// A cluster in which every part of the model is in use: promises, evictions, shares of GPUs,
// volumes, affinities, a stale gang, pools and quotas.
void Play(Scenario& s) {
  s.Pool({.name = "blue", .node_selector = {{"pool", "blue"}}, .gpu = PlacementStrategy::kSpread});
  QueueInfo top{.name = "top"};
  top.gpu = {6, kUnlimited, 1};
  QueueInfo a{.name = "a", .parent = "top"};
  a.gpu = {2, 5, 1};
  a.pools = {{"blue", {2, kUnlimited, 2}, {}, {}}};
  QueueInfo b{.name = "b", .parent = "top"};
  b.gpu = {4, kUnlimited, 1};
  for (const QueueInfo& queue : {top, a, b}) s.Queue(queue);
  s.Node("n0", {.gpus = 4, .labels = {{"zone", "x"}}});
  s.Node("n1", {.gpus = 4, .taints = {{"odd", "yes", TaintEffect::kPreferNoSchedule}}});
  s.Node("n2", {.gpus = 2, .gpu_mib = 8000, .labels = {{"pool", "blue"}}});
  s.Group("big", {.min = 4, .queue = "a"});
  s.Pods("big", 6, {.group = "big", .gpus = 1, .labels = {{"app", "big"}}});
  s.Group("half", {.queue = "b"});
  s.Pods("half", 2, {.group = "half", .fraction = 0.5, .member_priority = 3});
  s.Pod("alone", {.cpu = 500, .priority = 60, .ports = {{"TCP", "", 80}}, .gates = {"later"}});
  s.Cycle();
  s.AdvancePods();
  s.now = s.now + std::chrono::seconds(90);
  s.Group("claim",
          {.priority = 75, .min = 2, .queue = "b", .min_runtime = std::chrono::minutes(5)});
  PodSpec far{.group = "claim", .gpus = 2, .labels = {{"app", "claim"}}};
  far.anti_affinity = {
      {{{"app", SelectorOp::kIn, {"claim"}}}, {}, false, "kubernetes.io/hostname"}};
  s.Pods("claim", 2, far);
  s.Cycle();
  s.now = s.now + std::chrono::seconds(30);
  s.model.Forget("default/claim-0");
  s.model.AssumeEvicted("default/half-0");
  s.Cycle();
  s.model.RemoveNode("n1");
  s.AdvancePods();
  s.Cycle();
  s.now = s.now + std::chrono::minutes(2);
  s.Converge(5);
  for (int i = 0; i < 40; ++i) {
    s.now = s.now + std::chrono::seconds(10);
    s.Pod(StrCat("more-", i), {.gpus = i % 3, .priority = 50 + 5 * (i % 4)});
    s.Cycle();
    if (i % 2 == 0) s.AdvancePods();
  }
}

TEST(Replay, RunsTheSameCyclesAgain) {
  for (size_t segment_bytes : {size_t{1}, size_t{3000}, size_t{1} << 30}) {
    Scenario s({.past_share = 0.5});
    s.KeepRecords(segment_bytes);
    Play(s);
    EXPECT_GT(s.records.size(), 5u);
    EXPECT_EQ(s.ReplayDifference(), "") << segment_bytes;
  }
}

TEST(Replay, BeginsAnywhereASegmentDoes) {
  Scenario s;
  s.KeepRecords(1);
  Play(s);
  int segments = 0;
  for (size_t from = 0; from < s.records.size(); ++from) {
    if (!BeginsSegment(s.records[from])) continue;
    ++segments;
    Replay replay;
    for (size_t i = from; i < s.records.size(); ++i) {
      auto cycle = replay.Next(s.records[i]);
      ASSERT_TRUE(cycle.ok()) << cycle.status().message();
      if (!*cycle) continue;
      EXPECT_EQ((*cycle)->difference, "") << "from " << from << " at " << i;
    }
  }
  EXPECT_GT(segments, 2);
}

TEST(Replay, TellsTheFirstDifference) {
  Scenario s;
  s.KeepRecords(size_t{1} << 30);
  s.Node("n0", {.gpus = 2});
  s.Pod("a", {.gpus = 1});
  s.Cycle();
  // The same length, so that the record stays one: the pod was bound to a node of another name.
  std::string& record = s.records.front();
  const size_t decision = record.rfind("n0");
  ASSERT_NE(decision, std::string::npos);
  const size_t pod = record.rfind("default/a");
  ASSERT_NE(pod, std::string::npos);
  record[pod + 8] = 'b';
  const std::string difference = s.ReplayDifference();
  EXPECT_EQ(difference,
            "cycle 1: decision 1: recorded bind default/b to n0 [0] (allocate); replayed bind "
            "default/a to n0 [0] (allocate)");
}

TEST(Replay, RecordsNothingOfCyclesThatDoNothing) {
  Scenario s;
  s.KeepRecords(size_t{1} << 30);
  s.Node("n0", {.gpus = 2});
  s.Cycle();
  const size_t before = s.records.size();
  for (int i = 0; i < 5; ++i) s.Cycle();
  EXPECT_EQ(s.records.size(), before);
}

TEST(Replay, NumbersGoOn) {
  Scenario s;
  s.KeepRecords(size_t{1} << 30);
  s.Node("n0", {.gpus = 2});
  s.Cycle();
  s.Pod("a", {.gpus = 1});
  s.Cycle();
  ASSERT_EQ(s.records.size(), 2u);
  EXPECT_EQ(NextCycleOf(s.records[0]), 2u);
  EXPECT_EQ(NextCycleOf(s.records[1]), 3u);
  EXPECT_EQ(NextCycleOf("what is this?"), std::nullopt);
}

TEST(Replay, SurvivesWhateverItReads) {
  Scenario s;
  s.KeepRecords(size_t{1} << 30);
  Play(s);
  int refused = 0;
  for (uint64_t seed = FirstSeed(); seed <= LastSeed(300); ++seed) {
    Random random(seed);
    Replay replay;
    bool damaged = false;
    for (std::string record : s.records) {
      for (uint64_t flips = random.Below(4); flips > 0; --flips) {
        record[random.Below(record.size())] = static_cast<char>(random.Below(256));
        damaged = true;
      }
      if (random.OneIn(4)) {
        record.resize(random.Below(record.size()));
        damaged = true;
      }
      const auto next = replay.Next(record);
      EXPECT_TRUE(next.ok() || damaged) << "seed " << seed << ": " << next.status().message();
      if (next.ok()) continue;
      ++refused;
      break;
    }
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace swell::sched
