// The account of who held what: exact to the second, whole over restarts, bounded.
#include "projects/usage_ledger.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::projects {
namespace {

using manager::kSecond;
using manager::TestCluster;

constexpr std::string_view kProject = R"(
apiVersion: swell.dev/v1
kind: Project
metadata: {name: red}
spec: {resources: {gpu: {quota: 8}}}
)";

std::string Job(std::string_view name, int gpus, std::string_view priority = "train") {
  return StrCat(R"(
apiVersion: swell.dev/v1
kind: TrainingJob
metadata: {name: )",
                name, R"(, namespace: red, annotations: {swell.dev/user: alice}}
spec:
  project: red
  priorityClassName: )",
                priority, R"(
  roles:
    worker:
      replicas: 1
      template: {spec: {containers: [{name: main, image: i, resources: {limits: {nvidia.com/gpu: )",
                gpus, "}}}]}}\n");
}

class UsageLedgerTest : public testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-1", 8);
    StartManager();
    cluster_.Create(kProject);
    ASSERT_TRUE(cluster_.Until(
        [&] { return cluster_.Get(client::resources::kNamespaces, "red") != nullptr; }));
  }
  void StartManager() {
    manager::ManagerOptions options;
    options.own_namespace = "swell-system";
    cluster_.StartManager(options);
  }
  // All rows of the user in all days that are stored.
  client::UsageRow Stored(std::string_view user) {
    client::UsageRow sum;
    for (const auto& object : cluster_.List(client::resources::kConfigMaps, "swell-system")) {
      if (api::Label(*object, client::kUsageLabel).empty()) continue;
      auto day = client::UsageDay::FromConfigMap(*object);
      EXPECT_TRUE(day.ok()) << day.status().ToString();
      if (!day.ok()) continue;
      for (const auto& [key, row] : day->rows) {
        if (std::get<1>(key) == user) sum.Add(row);
      }
    }
    return sum;
  }
  void RunFlush() { cluster_.Run(UsageLedger::kFlushEvery + kSecond); }

  TestCluster cluster_;
};

TEST_F(UsageLedgerTest, ChargesFromBindingToEnd) {
  cluster_.Create(Job("j", 4));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  const WallTime began = cluster_.sim.Now();
  cluster_.Run(600 * kSecond);
  cluster_.agents->Exit("red/j-worker-0", 0);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 0; }));
  const double held = std::chrono::duration<double>(cluster_.sim.Now() - began).count();
  RunFlush();
  const client::UsageRow row = Stored("alice");
  EXPECT_NEAR(row.gpu_s, 4 * held, 4 * 3);  // times of the API are whole seconds
  EXPECT_EQ(row.started, 1);
  const double before = row.gpu_s;
  RunFlush();
  EXPECT_EQ(Stored("alice").gpu_s, before);
}

TEST_F(UsageLedgerTest, WhoStartsAgainHasNotWaitedWhileItRan) {
  cluster_.Create(Job("j", 4));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  cluster_.Run(600 * kSecond);
  const std::string first = cluster_.PodUid("red/j-worker-0");
  ASSERT_TRUE(cluster_.Delete(client::resources::kPods, "red/j-worker-0").ok());
  ASSERT_TRUE(cluster_.Until(
      [&] { return cluster_.Pods("Running") == 1 && cluster_.PodUid("red/j-worker-0") != first; }));
  RunFlush();
  EXPECT_EQ(Stored("alice").started, 2);
  EXPECT_LT(Stored("alice").wait_max_s, 60);
}

TEST_F(UsageLedgerTest, NothingIsLostOrTwiceOverARestart) {
  cluster_.Create(Job("j", 2));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  const WallTime began = cluster_.sim.Now();
  for (int i = 0; i < 4; ++i) {
    cluster_.Run(100 * kSecond);  // not at the end of a flush
    cluster_.StopManager();
    cluster_.Run(30 * kSecond);
    StartManager();
  }
  RunFlush();
  const double held = std::chrono::duration<double>(cluster_.sim.Now() - began).count();
  EXPECT_NEAR(Stored("alice").gpu_s, 2 * held, 2 * (1 + 61));
  EXPECT_GE(Stored("alice").gpu_s, 2 * (held - 62));
  EXPECT_EQ(Stored("alice").started, 1);
}

TEST_F(UsageLedgerTest, WhatEndedWhileNobodyLookedIsChargedUpToItsEnd) {
  cluster_.Create(Job("j", 4));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  const WallTime began = cluster_.sim.Now();
  cluster_.Run(UsageLedger::kFlushSoon + kSecond);
  cluster_.StopManager();
  cluster_.Run(300 * kSecond);
  cluster_.agents->Exit("red/j-worker-0", 0);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 0; }));
  const double held = std::chrono::duration<double>(cluster_.sim.Now() - began).count();
  cluster_.Run(500 * kSecond);
  for (int again = 0; again < 2; ++again) {
    StartManager();
    RunFlush();
    EXPECT_NEAR(Stored("alice").gpu_s, 4 * held, 4 * 3);
    cluster_.StopManager();
  }
}

TEST_F(UsageLedgerTest, WhoseEndNobodySawIsNotChargedForWhenNobodyLooked) {
  cluster_.Create(Job("j", 4));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  cluster_.Run(UsageLedger::kFlushSoon + kSecond);
  cluster_.StopManager();
  const double before = Stored("alice").gpu_s;
  EXPECT_GE(before, 4 * 8);
  cluster_.Run(std::chrono::hours(9));
  StartManager();
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.manager->synced(); }));
  cluster_.Run(2 * kSecond);
  ASSERT_TRUE(
      cluster_
          .Patch(client::resources::kPods, "red/j-worker-0",
                 StrCat("status: {phase: Failed, containerStatuses: [{name: main, image: i, "
                        "imageID: '', ready: false, restartCount: 0, state: {terminated: "
                        "{exitCode: 137, reason: ContainerStatusUnknown, finishedAt: '",
                        api::FormatTime(cluster_.sim.Now()), "'}}}]}"),
                 "status")
          .ok());
  RunFlush();
  EXPECT_EQ(Stored("alice").gpu_s, before);
}

TEST_F(UsageLedgerTest, WhatNothingElseTellsIsWrittenWithinSeconds) {
  RunFlush();
  cluster_.Create(Job("j", 4));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  cluster_.Run(UsageLedger::kFlushSoon + kSecond);
  EXPECT_EQ(Stored("alice").started, 1);
  const double before = Stored("alice").gpu_s;
  ASSERT_TRUE(cluster_.Delete(client::resources::kPods, "red/j-worker-0").ok());
  cluster_.Run(UsageLedger::kFlushSoon + 3 * kSecond);
  EXPECT_GT(Stored("alice").gpu_s, before);
}

TEST_F(UsageLedgerTest, WhoEndsInOrderLeavesNothingUnwritten) {
  cluster_.Create(Job("j", 4));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  cluster_.Run(3 * kSecond);
  bool flushed = false;
  cluster_.manager->Flush([&flushed] { flushed = true; });
  ASSERT_TRUE(cluster_.Until([&] { return flushed; }, kSecond));
  cluster_.StopManager();
  EXPECT_EQ(Stored("alice").started, 1);
  EXPECT_GE(Stored("alice").gpu_s, 4 * 3);
}

TEST_F(UsageLedgerTest, EverySecondHasAName) {
  cluster_.agents->start_after = 30 * kSecond;
  cluster_.agents->stop_after = 20 * kSecond;
  cluster_.Create(Job("j", 4));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  cluster_.Run(600 * kSecond);
  const auto report = [&](std::string_view progress) {
    ASSERT_TRUE(
        cluster_
            .Patch(client::resources::kPods, "red/j-worker-0",
                   StrCat("metadata: {annotations: {swell.dev/progress: '", progress, "'}}"))
            .ok());
    cluster_.Run(100 * kSecond);
  };
  report(R"({"ranks":[{"rank":0,"phase":"save"}]})");
  report(R"({"ranks":[{"rank":0,"phase":"step","stalled":true}]})");
  report(R"({"ranks":[{"rank":0,"phase":"load"}]})");
  report("{ nonsense");
  ASSERT_TRUE(cluster_.Delete(client::resources::kPods, "red/j-worker-0").ok());
  cluster_.Run(100 * kSecond);
  RunFlush();
  const client::UsageRow row = Stored("alice");
  const auto expect = [&row](client::GpuUse use, double seconds) {
    EXPECT_NEAR(row.Of(use), 4 * seconds, 4 * 4) << client::GpuUseName(use);
  };
  expect(client::GpuUse::kSaving, 100);
  expect(client::GpuUse::kHung, 100);
  expect(client::GpuUse::kLoading, 100);
  expect(client::GpuUse::kStopping, 20);
  expect(client::GpuUse::kStarting, 30 + 30);  // the pod that follows, too
  double sum = 0;
  for (double seconds : row.use_gpu_s) sum += seconds;
  EXPECT_NEAR(sum, row.gpu_s, 0.5);
  EXPECT_GE(row.Of(client::GpuUse::kTraining), 4 * 700);
}

TEST_F(UsageLedgerTest, AJobsUseOutlivesTheJob) {
  cluster_.Create(Job("j", 4));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  cluster_.Run(300 * kSecond);
  ASSERT_TRUE(cluster_.Delete(client::resources::kTrainingJobs, "red/j").ok());
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
  RunFlush();
  client::UsageRow sum;
  for (const auto& object : cluster_.List(client::resources::kConfigMaps, "swell-system")) {
    if (api::Label(*object, client::kUsageLabel).empty()) continue;
    const auto day = client::UsageDay::FromConfigMap(*object);
    ASSERT_TRUE(day.ok());
    for (const auto& [key, row] : day->jobs) {
      if (key == std::tuple<std::string, std::string, std::string>("red", "alice", "red/j")) {
        sum.Add(row);
      }
    }
  }
  EXPECT_NEAR(sum.gpu_s, 4 * 301, 4 * 4);
  EXPECT_EQ(sum.started, 1);
  EXPECT_NEAR(sum.Productive(), 4 * 300, 4 * 4);
  EXPECT_NE(
      cluster_.metrics.Print().find("swell_gpu_seconds_total{project=\"red\",use=\"training\"}"),
      std::string::npos);
}

TEST_F(UsageLedgerTest, WhatAFailedPodDidSinceItsCheckpointIsLost) {
  cluster_.Create(Job("j", 4));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  cluster_.Run(300 * kSecond);
  const std::string now = api::FormatTime(cluster_.sim.Now());
  ASSERT_TRUE(
      cluster_
          .Patch(client::resources::kPods, "red/j-worker-0",
                 StrCat("metadata: {annotations: {swell.dev/checkpoint-time: '", now, "'}}"))
          .ok());
  cluster_.Run(50 * kSecond);
  ASSERT_TRUE(
      cluster_
          .Patch(client::resources::kPods, "red/j-worker-0",
                 StrCat("status: {phase: Failed, containerStatuses: [{name: main, image: i, "
                        "imageID: '', ready: false, restartCount: 0, state: {terminated: "
                        "{exitCode: 139, reason: Error, finishedAt: '",
                        api::FormatTime(cluster_.sim.Now()), "'}}}]}"),
                 "status")
          .ok());
  RunFlush();
  EXPECT_NEAR(Stored("alice").lost_gpu_s, 4 * 50, 4 * 2);
}

TEST_F(UsageLedgerTest, WhatAVictimDoesNotSaveOnItsNoticeIsLost) {
  cluster_.agents->stop_after = 20 * kSecond;
  for (const bool saves : {true, false}) {
    cluster_.Create(Job("victim", 4));
    ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
    cluster_.Run(300 * kSecond);
    cluster_.Create(Job("urgent", 8, "inference"));
    ASSERT_TRUE(cluster_.Until([&] {
      const auto pod = cluster_.Get(client::resources::kPods, "red/victim-worker-0");
      return pod && api::IsDeleting(*pod);
    }));
    cluster_.Run(5 * kSecond);
    if (saves) {
      ASSERT_TRUE(cluster_
                      .Patch(client::resources::kPods, "red/victim-worker-0",
                             StrCat("metadata: {annotations: {swell.dev/checkpoint-time: '",
                                    api::FormatTime(cluster_.sim.Now()), "'}}"))
                      .ok());
    }
    for (const char* job : {"red/victim", "red/urgent"}) {
      ASSERT_TRUE(cluster_.Delete(client::resources::kTrainingJobs, job).ok());
    }
    ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
    RunFlush();
    EXPECT_EQ(Stored("alice").preempted, saves ? 1 : 2);
    EXPECT_NEAR(Stored("alice").lost_gpu_s, saves ? 0 : 4 * 300, 4 * 4);
  }
}

TEST_F(UsageLedgerTest, EveryHourHasItsOwn) {
  cluster_.Create(Job("j", 1));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  cluster_.Run(std::chrono::hours(26));
  RunFlush();
  const auto objects = cluster_.List(client::resources::kConfigMaps, "swell-system");
  double most = 0;
  double sum = 0;
  double capacity = 0;
  std::set<std::pair<std::string, int>> hours;
  for (const auto& object : objects) {
    if (api::Label(*object, client::kUsageLabel).empty()) continue;
    const auto day = client::UsageDay::FromConfigMap(*object);
    ASSERT_TRUE(day.ok());
    for (const auto& [key, row] : day->rows) {
      if (std::get<1>(key) != "alice") continue;
      hours.insert({day->date, std::get<2>(key)});
      most = std::max(most, row.gpu_s);
      sum += row.gpu_s;
    }
    for (double seconds : day->capacity_gpu_s) capacity += seconds;
  }
  EXPECT_GE(hours.size(), 26u);
  EXPECT_LE(most, 3600.5);
  EXPECT_NEAR(sum, 26 * 3600, 200);
  // From when the account began, not before.
  EXPECT_NEAR(capacity, 8 * 26 * 3600.0, 8 * 200);
}

// While no scheduler ran, the capacity was only what pods held.
TEST_F(UsageLedgerTest, CapacityIsNotCountedWhileNobodySchedules) {
  cluster_.Create(Job("j", 2));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  RunFlush();
  cluster_.StopManager();
  cluster_.Run(std::chrono::hours(3));
  StartManager();
  RunFlush();
  double capacity = 0;
  for (const auto& object : cluster_.List(client::resources::kConfigMaps, "swell-system")) {
    if (api::Label(*object, client::kUsageLabel).empty()) continue;
    const auto day = client::UsageDay::FromConfigMap(*object);
    ASSERT_TRUE(day.ok());
    for (double seconds : day->capacity_gpu_s) capacity += seconds;
  }
  EXPECT_NEAR(capacity, 2 * 3 * 3600.0, 8 * 300);
}

TEST_F(UsageLedgerTest, ADayKnowsWhenAJobCameAndHowMuchItHeldAtOnce) {
  cluster_.Create(Job("j", 4));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  const auto job = cluster_.Get(client::resources::kTrainingJobs, "red/j");
  const std::string uid(api::Uid(*job));
  const WallTime created = api::CreationTime(*job);
  cluster_.Run(300 * kSecond);
  ASSERT_TRUE(cluster_.Delete(client::resources::kTrainingJobs, "red/j").ok());
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
  const WallTime ended = cluster_.sim.Now();
  RunFlush();
  std::vector<client::UsageJobFacts> known;
  for (const auto& object : cluster_.List(client::resources::kConfigMaps, "swell-system")) {
    if (api::Label(*object, client::kUsageLabel).empty()) continue;
    const auto day = client::UsageDay::FromConfigMap(*object);
    ASSERT_TRUE(day.ok());
    for (const auto& [key, facts] : day->facts) known.push_back(facts);
  }
  ASSERT_EQ(known.size(), 1u);
  EXPECT_EQ(known[0].uid, uid);
  EXPECT_EQ(known[0].gpus, 4);
  EXPECT_FALSE(known[0].several);
  auto seconds = [](Duration span) { return std::chrono::duration<double>(span).count(); };
  EXPECT_NEAR(seconds(known[0].submitted - created), 0, 2);
  EXPECT_NEAR(seconds(known[0].first - created), 0, 5);
  EXPECT_NEAR(seconds(known[0].last - ended), 0, 5);
}

TEST(UsageDay, JobsOfOneNameOnOneDayAreTold) {
  const WallTime noon{1'795'000'000'000'000'000};
  const client::UsageDay::JobKey key("p", "u", "p/j");
  client::UsageDay day;
  day.date = "2026-11-21";
  day.until = noon;
  day.NoteJob(key, {"no-row", noon, 1, noon, noon});
  EXPECT_TRUE(day.facts.empty());
  day.Job("p", "u", "p/j").gpu_s = 60;
  day.NoteJob(key, {"", noon, 1, noon, noon});
  EXPECT_TRUE(day.facts.empty());
  day.NoteJob(key, {"first", noon, 2, noon + 10 * kSecond, noon + 20 * kSecond});
  day.NoteJob(key, {"first", noon - kSecond, 1, noon + 20 * kSecond, noon + 30 * kSecond});
  const auto back = client::UsageDay::FromConfigMap(day.ToConfigMap("swell-system"));
  ASSERT_TRUE(back.ok());
  const client::UsageJobFacts& facts = back->facts.at(key);
  EXPECT_EQ(facts.uid, "first");
  EXPECT_EQ(facts.gpus, 2);
  EXPECT_EQ(facts.submitted, noon - kSecond);
  EXPECT_EQ(facts.first, noon + 10 * kSecond);
  EXPECT_EQ(facts.last, noon + 30 * kSecond);
  EXPECT_FALSE(facts.several);
  day.NoteJob(key, {"second", noon, 1, noon, noon});
  EXPECT_TRUE(client::UsageDay::FromConfigMap(day.ToConfigMap("ns"))->facts.at(key).several);
}

TEST(UsageDay, KeepsItsBoundAndItsWords) {
  client::UsageDay day;
  day.date = "2026-11-21";
  day.until = {1'795'000'000'000'000'000};
  for (int i = 0; i < 10'000; ++i) {
    client::UsageRow row;
    row.gpu_s = 1.5;
    for (double& seconds : row.use_gpu_s) seconds = 12345.6;
    day.Row("p", StrCat("user-", i), i % 24).Add(row);
    const std::string job = StrCat("team/job-", i);
    day.Job("p", "user", job).Add(row);
    day.NoteJob({"p", "user", job}, {"6a7bf4a0-56c5-4b5c-9b2f-3f1f0e9d8c7b", day.until, 4.5,
                                     day.until, day.until, true});
  }
  EXPECT_LE(day.rows.size(), client::UsageDay::kRowsMax + 24);
  EXPECT_LE(day.jobs.size(), client::UsageDay::kJobsMax + 1);
  const json::Value object = day.ToConfigMap("swell-system");
  EXPECT_LT(json::Print(object).size(), size_t{1} << 20);  // what etcd takes
  const auto back = client::UsageDay::FromConfigMap(object);
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  double sum = 0;
  for (const auto& [key, row] : back->rows) sum += row.gpu_s;
  EXPECT_NEAR(sum, 10'000 * 1.5, 1);
  EXPECT_EQ(back->jobs.size(), day.jobs.size());
  for (const char* usage : {"", "[]", "{}", R"({"until":"x"})",
                            R"({"until":"2026-11-21T00:00:00Z","rows":[{"hour":24}]})"}) {
    json::Value broken = object;
    json::Set(broken, {"data", "usage"}, usage);
    const auto read = client::UsageDay::FromConfigMap(broken);
    ASSERT_FALSE(read.ok()) << usage;
    EXPECT_TRUE(
        read.status().message().starts_with("configmap \"swell-usage-2026-11-21\": data.usage: "));
  }
}

}  // namespace
}  // namespace swell::projects
