// What ranks report becomes a job's progress, and a job that hangs is told, restarted or stopped.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/failure_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/progress.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::jobs {
namespace {

using client::resources::kPods;
using client::resources::kTrainingJobs;
using manager::kSecond;
using manager::TestCluster;

class JobProgressTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* node : {"node-a", "node-b"}) cluster_.AddNode(node, 4);
    cluster_.StartManager();
  }
  void Submit(const std::string& health) {
    cluster_.Create(StrCat(R"(
apiVersion: swell.dev/v1
kind: TrainingJob
metadata: {name: job, namespace: default}
spec:
  health: {)",
                           health, R"(}
  roles:
    worker:
      replicas: 3
      template:
        spec:
          containers:
          - name: main
            image: busybox
            resources: {limits: {nvidia.com/gpu: 1}}
)"));
    ASSERT_TRUE(cluster_.Until([&] { return Is("Running") && cluster_.Pods("Running") == 3; }));
  }
  bool Is(std::string_view type) { return cluster_.Condition(kTrainingJobs, "default/job", type); }
  std::string Message(std::string_view type) {
    const json::SharedValue job = cluster_.Get(kTrainingJobs, "default/job");
    const auto found = api::FindCondition(*job, type);
    return found ? std::string(found->message) : "";
  }
  static std::string Pod(int64_t rank) { return StrCat("default/job-worker-", rank); }
  void Annotate(int64_t rank, std::string_view key, const std::string& text) {
    ASSERT_TRUE(
        cluster_
            .Patch(kPods, Pod(rank), StrCat("metadata: {annotations: {", key, ": '", text, "'}}"))
            .ok());
  }
  void Report(api::RankProgress rank) {
    rank.world = 3;
    if (rank.changed == WallTime()) rank.changed = *api::ParseTime("2026-01-01T00:00:00Z");
    rank.deadline_seconds = 30;
    Annotate(rank.rank, api::keys::kProgress, json::Print(api::RanksToJson({rank})));
  }
  // Rank 1 sleeps in its step; the others wait for it.
  void Hang(int64_t step) {
    for (int64_t rank = 0; rank < 3; ++rank) {
      Report({.rank = rank,
              .phase = "step",
              .step = step,
              .stalled = true,
              .stack = rank == 1 ? "File \"train.py\", line 9 in load"
                                 : "File \"torch.py\", line 70 in all_reduce"});
    }
  }
  TestCluster cluster_;
};

TEST_F(JobProgressTest, TheFirstRankTellsHowFarTheJobIs) {
  Submit("");
  Report({.rank = 0, .phase = "step", .step = 30, .total = 120, .steps_per_second = 1.5});
  Report({.rank = 1, .phase = "step", .step = 31, .total = 120});
  ASSERT_TRUE(cluster_.Until([&] {
    return cluster_.Int(kTrainingJobs, "default/job", {"status", "progress", "step"}) == 30;
  }));
  auto number = [&](std::string_view field) {
    return cluster_.Int(kTrainingJobs, "default/job", {"status", "progress", field});
  };
  EXPECT_EQ(number("progressPercentage"), 25);
  EXPECT_EQ(number("estimatedRemainingSeconds"), 60);
  EXPECT_EQ(number("totalSteps"), 120);
  EXPECT_EQ(number("world"), 3);
  EXPECT_FALSE(Is("Hung"));
}

TEST_F(JobProgressTest, TheStepsOfCheckpointsAloneAreNoProgress) {
  Submit("");
  Report({.rank = 0, .phase = "init", .step = 16});
  cluster_.Run(std::chrono::seconds(5));
  Report({.rank = 0, .phase = "save", .step = 17});
  cluster_.Run(std::chrono::seconds(5));
  const json::SharedValue job = cluster_.Get(kTrainingJobs, "default/job");
  EXPECT_EQ(json::Find(*job, {"status", "progress"}), nullptr) << json::Print(*job);
  Report({.rank = 0, .phase = "step", .step = 18});
  ASSERT_TRUE(cluster_.Until([&] {
    return cluster_.Int(kTrainingJobs, "default/job", {"status", "progress", "step"}) == 18;
  }));
}

TEST_F(JobProgressTest, WhenTheFirstRankIsGoneAnOlderReportOfAnotherTellsNothing) {
  Submit("");
  auto step = [&] {
    return cluster_.Int(kTrainingJobs, "default/job", {"status", "progress", "step"});
  };
  const WallTime begin = *api::ParseTime("2026-01-01T00:00:00Z");
  auto later = [begin](int seconds) { return begin + std::chrono::seconds(seconds); };
  Report({.rank = 0, .phase = "step", .step = 90, .total = 120, .changed = later(50)});
  Report({.rank = 1, .phase = "step", .step = 40, .total = 120, .changed = begin});
  ASSERT_TRUE(cluster_.Until([&] { return step() == 90; }));
  Annotate(0, api::keys::kProgress, "");
  cluster_.Run(std::chrono::seconds(5));
  EXPECT_EQ(step(), 90);
  Report({.rank = 1, .phase = "step", .step = 95, .total = 120, .changed = later(60)});
  ASSERT_TRUE(cluster_.Until([&] { return step() == 95; }));
}

TEST_F(JobProgressTest, TheFirstRankMayReportItsLastStepAfterTheEndOfTheJob) {
  Submit("");
  Report({.rank = 0, .phase = "step", .step = 80, .total = 120});
  for (int64_t rank = 0; rank < 3; ++rank) cluster_.agents->Exit(Pod(rank), 0);
  ASSERT_TRUE(cluster_.Until([&] { return Is("Succeeded"); }));
  Report({.rank = 0, .phase = "done", .step = 120, .total = 120});
  EXPECT_TRUE(cluster_.Until([&] {
    return cluster_.Int(kTrainingJobs, "default/job",
                        {"status", "progress", "progressPercentage"}) == 100;
  }));
}

TEST_F(JobProgressTest, RanksThatWaitTogetherAreNotNamedForWhatTheyDoMeanwhile) {
  Submit("");
  // Each waits in all_reduce, where one sleeps and one reads a file.
  const std::string stacks[] = {
      "Current thread 0x1 (most recent call first):\n"
      "  File \"train.py\", line 20 in all_reduce\n  File \"train.py\", line 32 in main\n",
      "Thread 0x2 (most recent call first):\n  File \"threading.py\", line 320 in wait\n\n"
      "Current thread 0x1 (most recent call first):\n"
      "  File \"train.py\", line 25 in load\n  File \"train.py\", line 31 in main\n",
      "Current thread 0x1 (most recent call first):\n  File \"pathlib.py\", line 1045 in open\n"
      "  File \"train.py\", line 19 in all_reduce\n  File \"train.py\", line 32 in main\n"};
  for (int64_t rank = 0; rank < 3; ++rank) {
    Report({.rank = rank, .phase = "step", .step = 12, .stalled = true, .stack = stacks[rank]});
  }
  ASSERT_TRUE(cluster_.Until([&] { return Is("Hung"); }));
  EXPECT_NE(Message("Hung").find("rank 1 (pod job-worker-1 on node-"), std::string::npos)
      << Message("Hung");
  EXPECT_NE(Message("Hung").find("train.py\", line 25 in load"), std::string::npos);
  EXPECT_EQ(Message("Hung").find("rank 0"), std::string::npos) << Message("Hung");
  EXPECT_EQ(Message("Hung").find("rank 2"), std::string::npos) << Message("Hung");
}

TEST_F(JobProgressTest, TheInnermostCallDecidesWhereNoOuterOneIsSharedByMost) {
  Submit("");
  // The same wait, called from two places.
  for (int64_t rank = 0; rank < 3; ++rank) {
    Report({.rank = rank,
            .phase = "step",
            .step = 12,
            .stalled = true,
            .stack = StrCat(rank == 1 ? "File \"train.py\", line 9 in load"
                                      : "File \"torch.py\", line 70 in all_reduce",
                            "\nFile \"train.py\", line ", 30 + rank, " in main")});
  }
  ASSERT_TRUE(cluster_.Until([&] { return Is("Hung"); }));
  EXPECT_NE(Message("Hung").find("rank 1 (pod job-worker-1 on node-"), std::string::npos)
      << Message("Hung");
  EXPECT_EQ(Message("Hung").find("rank 0"), std::string::npos) << Message("Hung");
}

TEST_F(JobProgressTest, AJobThatHangsNamesTheRankThatIsElsewhere) {
  Submit("");
  Hang(12);
  ASSERT_TRUE(cluster_.Until([&] { return Is("Hung"); }));
  EXPECT_NE(Message("Hung").find("rank 1 (pod job-worker-1 on node-"), std::string::npos)
      << Message("Hung");
  EXPECT_NE(Message("Hung").find("train.py\", line 9 in load"), std::string::npos);
  EXPECT_EQ(Message("Hung").find("rank 0"), std::string::npos) << Message("Hung");
  EXPECT_EQ(cluster_.Events("Hung"), 1);
  const auto job = cluster_.Get(kTrainingJobs, "default/job");
  std::string suspects;
  for (const json::Value& one : json::GetArray(*job, {"status", "hang", "ranks"})) {
    if (json::GetBool(one, {"suspect"})) suspects += StrCat(json::GetInt(one, {"rank"}), " ");
  }
  EXPECT_EQ(suspects, "1 ");
  EXPECT_TRUE(Is("Running")) << "it is only told";
  Report({.rank = 1, .phase = "step", .step = 13});
  ASSERT_TRUE(cluster_.Until([&] { return !Is("Hung"); }));
  EXPECT_EQ(cluster_.Int(kTrainingJobs, "default/job", {"status", "hang", "restarts"}), 0);
}

TEST_F(JobProgressTest, ARankThatStaysSlowIsAStragglerUntilItKeepsUp) {
  Submit("");
  const auto speeds = [&](double of_rank_2) {
    for (int64_t rank = 0; rank < 3; ++rank) {
      Report({.rank = rank,
              .phase = "step",
              .step = 100,
              .steps_per_second = rank == 2 ? of_rank_2 : 2.0});
    }
  };
  speeds(1.0);
  cluster_.Run(std::chrono::seconds(90));
  EXPECT_FALSE(Is("Straggler")) << "it may be for a moment";
  cluster_.Run(std::chrono::seconds(60));
  ASSERT_TRUE(Is("Straggler"));
  EXPECT_NE(Message("Straggler").find("rank 2 (pod job-worker-2 on node-"), std::string::npos);
  EXPECT_NE(Message("Straggler").find("makes 0.50 of the steps of its peers: 1.00 a second"),
            std::string::npos)
      << Message("Straggler");
  EXPECT_EQ(cluster_.Events("Straggler"), 1);
  EXPECT_TRUE(Is("Running"));
  speeds(1.6);
  cluster_.Run(kSecond);
  EXPECT_TRUE(Is("Straggler")) << "not even yet";
  speeds(1.9);
  cluster_.Run(kSecond);
  EXPECT_FALSE(Is("Straggler"));
}

class OwnPartTest : public JobProgressTest {
 protected:
  struct Part {
    double own_ms = 50, elements = 0;
  };
  // Each rank reports half a minute's means; all have one speed, that of the slowest.
  void Window(const std::vector<Part>& ranks) {
    ++windows_;
    double step = 0;
    for (const Part& one : ranks) step = std::max(step, one.own_ms + 10);
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      Report({.rank = static_cast<int64_t>(rank),
              .phase = "step",
              .step = 100 * windows_,
              .steps_per_second = 1000 / step,
              .own = {.windows = windows_,
                      .own_ms = ranks[rank].own_ms,
                      .step_ms = step,
                      .elements = ranks[rank].elements}});
    }
    cluster_.Run(std::chrono::seconds(30));
  }
  int64_t windows_ = 0;
};

TEST_F(OwnPartTest, TheRankThatTheOthersWaitForIsAStraggler) {
  Submit("");
  for (int i = 0; i < 4; ++i) Window({{50}, {50}, {100}});
  EXPECT_FALSE(Is("Straggler")) << "it may be for a moment";
  for (int i = 0; i < 2; ++i) Window({{48}, {50}, {100}});
  ASSERT_TRUE(Is("Straggler"));
  EXPECT_NE(Message("Straggler").find("rank 2 (pod job-worker-2 on node-"), std::string::npos);
  EXPECT_NE(Message("Straggler")
                .find("takes 2.00 times as long as its peers for its own part of a step: 100.00 "
                      "ms, where half of them take 50.00 ms or less and then wait for it. A step "
                      "takes 110.00 ms, and about 60.00 without it"),
            std::string::npos)
      << Message("Straggler");
  EXPECT_EQ(cluster_.Events("Straggler"), 1);
  Window({{50}, {50}, {60}});
  EXPECT_TRUE(Is("Straggler")) << "not even yet";
  Window({{50}, {50}, {54}});
  EXPECT_FALSE(Is("Straggler"));
}

// A window that is long, since its steps are, is not counted several times.
TEST_F(OwnPartTest, OneWindowProvesNothing) {
  Submit("");
  Window({{50}, {50}, {100}});
  cluster_.Run(std::chrono::minutes(10));
  EXPECT_FALSE(Is("Straggler"));
}

TEST_F(OwnPartTest, LongerDataIsNoFaultOfTheRank) {
  Submit("");
  // Twice the data takes twice the time.
  for (int i = 0; i < 10; ++i) Window({{50, 1000}, {50, 1000}, {100, 2000}});
  EXPECT_FALSE(Is("Straggler"));
  // A part of a step takes as long for little data, so a rank with little is slow for each number.
  for (int i = 0; i < 10; ++i) Window({{50, 1000}, {50, 1000}, {45, 500}});
  EXPECT_FALSE(Is("Straggler"));
  for (int i = 0; i < 6; ++i) Window({{50, 1000}, {50, 1000}, {150, 2000}});
  EXPECT_TRUE(Is("Straggler"));
}

// Lengths that vary from batch to batch make each rank the slowest of some windows.
TEST_F(OwnPartTest, UnevenLengthsRaiseNoAlarmInEightHours) {
  Submit("");
  uint32_t seed = 7;
  const auto random = [&seed] {
    seed = seed * 1664525 + 1013904223;
    return static_cast<double>(seed >> 16) / 65536;
  };
  // 20 to 60 ms; one step in ten takes three times as long.
  const auto mean = [&random] {
    double sum = 0;
    for (int step = 0; step < 50; ++step) {
      sum += (20 + 40 * random()) * (random() < 0.1 ? 3 : 1);
    }
    return sum / 50;
  };
  for (int i = 0; i < 960; ++i) Window({{mean()}, {mean()}, {mean()}});
  EXPECT_EQ(cluster_.Events("Straggler"), 0);
}

TEST_F(OwnPartTest, AShareOfTheStepThatIsSmallCostsLittle) {
  Submit("");
  // 2 ms more, of a step that takes 52 for other reasons.
  for (int i = 0; i < 10; ++i) {
    ++windows_;
    for (int64_t rank = 0; rank < 3; ++rank) {
      Report({.rank = rank,
              .phase = "step",
              .step = 100,
              .own = {.windows = windows_, .own_ms = rank == 2 ? 4.0 : 2.0, .step_ms = 52}});
    }
    cluster_.Run(std::chrono::seconds(30));
  }
  EXPECT_FALSE(Is("Straggler"));
}

TEST_F(JobProgressTest, AStuckRankAmongMovingOnesIsAStragglerAndOneThatOthersWaitForIsNone) {
  Submit("");
  Report({.rank = 0, .phase = "step", .step = 12});
  Report({.rank = 1, .phase = "step", .step = 12, .stalled = true, .stack = "x"});
  Report({.rank = 2, .phase = "step", .step = 12});
  cluster_.Run(std::chrono::minutes(4));
  EXPECT_FALSE(Is("Straggler"));
  Report({.rank = 0, .phase = "step", .step = 90});
  Report({.rank = 2, .phase = "step", .step = 91});
  cluster_.Run(std::chrono::minutes(4));
  ASSERT_TRUE(Is("Straggler"));
  EXPECT_NE(Message("Straggler").find("rank 1 (pod job-worker-1 on node-"), std::string::npos);
  EXPECT_NE(Message("Straggler").find("while 2 ranks that are further move on"), std::string::npos)
      << Message("Straggler");
  EXPECT_FALSE(Is("Hung"));
}

TEST_F(JobProgressTest, ARankThatWaitsForALongEvaluationIsNoHang) {
  Submit("onHang: Stop");
  Report({.rank = 0, .phase = "eval", .step = 12});
  Report({.rank = 1, .phase = "step", .step = 12, .stalled = true, .stack = "x"});
  Report({.rank = 2, .phase = "step", .step = 12, .stalled = true, .stack = "x"});
  cluster_.Run(std::chrono::minutes(2));
  EXPECT_FALSE(Is("Hung"));
  EXPECT_TRUE(Is("Running"));
}

TEST_F(JobProgressTest, RestartMakesThePodsAnewAndStopsAfterThreeWithoutProgress) {
  Submit("onHang: Restart, hangSeconds: 20");
  EXPECT_EQ(api::Annotation(*cluster_.Get(kPods, Pod(0)), api::keys::kHangSeconds), "20");
  for (int restart = 1; restart <= 3; ++restart) {
    const std::string before = cluster_.PodUid(Pod(1));
    Hang(12);
    ASSERT_TRUE(cluster_.Until([&] {
      return cluster_.Pods("Running") == 3 && Is("Running") && cluster_.PodUid(Pod(1)) != before;
    })) << restart;
    EXPECT_EQ(cluster_.Int(kTrainingJobs, "default/job", {"status", "hang", "restarts"}), restart);
    EXPECT_EQ(cluster_.Events("HangRestart"), restart);
  }
  Hang(12);
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed") && cluster_.Pods("Running") == 0; }));
  EXPECT_EQ(cluster_.Reason(kTrainingJobs, "default/job", "Failed"), "Hung");
  EXPECT_NE(Message("Failed").find("after 3 restarts without progress"), std::string::npos);
  const auto job = cluster_.Get(kTrainingJobs, "default/job");
  EXPECT_EQ(json::GetArray(*job, {"status", "hang", "ranks"}).size(), 3U) << "the evidence stays";
}

TEST_F(JobProgressTest, ARestartAvoidsTheNodeOfTheSuspect) {
  Submit("onHang: Restart");
  const std::string node(api::NodeName(*cluster_.Get(kPods, Pod(1))));
  const std::string before = cluster_.PodUid(Pod(1));
  Hang(12);
  ASSERT_TRUE(cluster_.Until([&] {
    return cluster_.Pods("Running") == 3 && Is("Running") && cluster_.PodUid(Pod(1)) != before;
  }));
  const auto job = cluster_.Get(kTrainingJobs, "default/job");
  EXPECT_EQ(api::Annotation(*job, api::keys::kAvoidedNodes), node);
  EXPECT_NE(Message("Hung").find(StrCat("Its pods go to other nodes than ", node)),
            std::string::npos)
      << Message("Hung");
  EXPECT_NE(api::NodeName(*cluster_.Get(kPods, Pod(1))), node);
}

TEST_F(JobProgressTest, ProgressEndsTheCountOfRestarts) {
  Submit("onHang: Restart");
  const std::string before = cluster_.PodUid(Pod(1));
  Hang(12);
  ASSERT_TRUE(cluster_.Until([&] {
    return cluster_.Pods("Running") == 3 && Is("Running") && cluster_.PodUid(Pod(1)) != before;
  }));
  for (int64_t rank = 0; rank < 3; ++rank) Report({.rank = rank, .phase = "step", .step = 13});
  ASSERT_TRUE(cluster_.Until([&] {
    return cluster_.Int(kTrainingJobs, "default/job", {"status", "hang", "restarts"}) == 0;
  }));
}

TEST_F(JobProgressTest, AFailedSaveIsToldUntilOneGoesWell) {
  Submit("");
  Annotate(0, api::keys::kSaveError, R"({"step": 40, "reason": "No space left on device"})");
  ASSERT_TRUE(cluster_.Until([&] { return Is("CheckpointFailed"); }));
  EXPECT_EQ(Message("CheckpointFailed"),
            "Pod job-worker-0 could not save step 40: No space left on device. Training continues; "
            "what was done since the last good checkpoint would be lost.");
  EXPECT_EQ(cluster_.Events("CheckpointFailed"), 1);
  Annotate(0, api::keys::kSaveError, "");
  ASSERT_TRUE(cluster_.Until([&] { return !Is("CheckpointFailed"); }));
}

TEST_F(JobProgressTest, ALossThatIsNoNumberIsToldUntilItIsOneAgain) {
  Submit("");
  Annotate(0, api::keys::kMetrics,
           R"({"training_step": 17, "not_finite_since": 12, "loss": "NaN"})");
  ASSERT_TRUE(cluster_.Until([&] { return Is("MetricNotFinite"); }));
  Annotate(0, api::keys::kMetrics, R"({"training_step": 19, "loss": "NaN"})");
  cluster_.Run(std::chrono::seconds(5));
  EXPECT_EQ(Message("MetricNotFinite"),
            "Pod job-worker-0 reports that loss is NaN at step 12. Training continues, but its "
            "steps may be worth nothing: see the learning rate and the data, and start again from "
            "a checkpoint before that step.");
  EXPECT_EQ(cluster_.Events("MetricNotFinite"), 1);
  EXPECT_TRUE(Is("Running"));
  Annotate(0, api::keys::kMetrics, R"({"training_step": 16, "loss": 0.5, "note": "not a NaN"})");
  ASSERT_TRUE(cluster_.Until([&] { return !Is("MetricNotFinite"); }));
}

TEST_F(JobProgressTest, ALossThatCameWithACheckpointIsOfItsStep) {
  Submit("");
  Annotate(0, api::keys::kStep, "40");
  Annotate(0, api::keys::kMetrics, R"({"loss": "Infinity"})");
  ASSERT_TRUE(cluster_.Until([&] { return Is("MetricNotFinite"); }));
  EXPECT_TRUE(Message("MetricNotFinite")
                  .starts_with("Pod job-worker-0 reports that loss is Infinity at step 40. "))
      << Message("MetricNotFinite");
}

TEST_F(JobProgressTest, ASuspensionWaitsForASaveUnlessItIsForced) {
  Submit("");
  Annotate(0, api::keys::kSaveError, R"({"step": 40, "reason": "Read-only file system"})");
  ASSERT_TRUE(cluster_.Until([&] { return Is("CheckpointFailed"); }));
  ASSERT_TRUE(cluster_.Patch(kTrainingJobs, "default/job", "spec: {suspend: true}").ok());
  ASSERT_TRUE(cluster_.Until([&] { return Is("SuspensionWaits"); }));
  cluster_.Run(std::chrono::minutes(1));
  EXPECT_EQ(cluster_.Pods("Running"), 3);
  EXPECT_EQ(cluster_.Events("SuspensionWaits"), 1);
  EXPECT_TRUE(
      cluster_.EventMessage("SuspensionWaits").ends_with("swell suspend job -n default --force"))
      << cluster_.EventMessage("SuspensionWaits");
  ASSERT_TRUE(cluster_
                  .Patch(kTrainingJobs, "default/job",
                         "metadata: {annotations: {swell.dev/suspend-unsaved: 'true'}}")
                  .ok());
  ASSERT_TRUE(cluster_.Until([&] { return Is("Suspended") && cluster_.Pods("Running") == 0; }));
  EXPECT_FALSE(Is("SuspensionWaits"));
}

TEST_F(JobProgressTest, ASuspensionThatWaitedHappensAfterAGoodSave) {
  Submit("");
  Annotate(0, api::keys::kSaveError, R"({"step": 40, "reason": "Read-only file system"})");
  ASSERT_TRUE(cluster_.Until([&] { return Is("CheckpointFailed"); }));
  ASSERT_TRUE(cluster_.Patch(kTrainingJobs, "default/job", "spec: {suspend: true}").ok());
  ASSERT_TRUE(cluster_.Until([&] { return Is("SuspensionWaits"); }));
  Annotate(0, api::keys::kSaveError, "");
  ASSERT_TRUE(cluster_.Until([&] { return Is("Suspended"); }));
}

TEST_F(JobProgressTest, RanksThatTrainApartAreTold) {
  Submit("");
  for (int64_t rank = 0; rank < 3; ++rank) {
    api::RankProgress alone{.rank = 0, .world = 1, .phase = "step", .step = 5};
    alone.changed = *api::ParseTime("2026-01-01T00:00:00Z");
    Annotate(rank, api::keys::kProgress, json::Print(api::RanksToJson({alone})));
  }
  ASSERT_TRUE(cluster_.Until([&] { return Is("WorldMismatch"); }));
  EXPECT_EQ(cluster_.Events("WorldMismatch"), 1);
}

TEST_F(JobProgressTest, AJobKnowsWhatItsGpusWereUsedFor) {
  Submit("");
  const auto number = [&](std::string_view field) {
    return cluster_.Int(kTrainingJobs, "default/job", {"status", "gpuTime", field});
  };
  const auto report = [&](const char* phase) {
    for (int64_t rank = 0; rank < 3; ++rank) Report({.rank = rank, .phase = phase, .step = 5});
  };
  report("load");
  cluster_.Run(std::chrono::minutes(1));
  report("step");
  cluster_.Run(std::chrono::minutes(9));
  report("save");
  ASSERT_TRUE(cluster_.Until([&] { return number("heldSeconds") >= 1800; }));
  EXPECT_NEAR(static_cast<double>(number("heldSeconds")), 1800, 30);
  EXPECT_NEAR(static_cast<double>(number("productivePercentage")), 90, 2);
  const auto of = [&](std::string_view use) {
    return cluster_.Int(kTrainingJobs, "default/job", {"status", "gpuTime", "seconds", use});
  };
  EXPECT_NEAR(static_cast<double>(of("training")), 1620, 10);
  EXPECT_NEAR(static_cast<double>(of("loading")), 180, 10);
  EXPECT_NE(cluster_.metrics.Print().find("swell_job_productive_ratio{"), std::string::npos);
}

TEST_F(JobProgressTest, NonsenseChangesNothing) {
  Submit("onHang: Stop");
  for (const char* text : {"x", "{}", "[1]", R"({"ranks": [{"stalled": "yes"}]})"}) {
    Annotate(0, api::keys::kProgress, text);
    Annotate(1, api::keys::kSaveError, text);
  }
  cluster_.Run(std::chrono::minutes(1));
  EXPECT_TRUE(Is("Running"));
  EXPECT_FALSE(Is("Hung"));
}

}  // namespace
}  // namespace swell::jobs
