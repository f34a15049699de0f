#include "kube/controllers/workloads/cron_job.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::controllers {
namespace {

using client::resources::kCronJobs;
using client::resources::kJobs;
using manager::TestCluster;

std::string CronYaml(std::string_view more) {
  return StrCat(R"(
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: '* * * * *'
  )",
                more, R"(
  jobTemplate:
    spec:
      template:
        spec: {schedulerName: swell, restartPolicy: Never, containers: [{name: c, image: 'x'}]}
)");
}

class CronJobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster.AddNode("n0", 0);
    cluster.StartManager();
  }
  void FinishPods() {
    for (const json::SharedValue& pod : cluster.List(client::resources::kPods)) {
      const std::string key = api::KeyOf(*pod);
      if (cluster.PodPhase(key) == "Running") cluster.agents->Exit(key, 0);
    }
  }
  TestCluster cluster;
};

TEST_F(CronJobTest, MakesAJobEachMinuteAndKeepsTheLastThree) {
  cluster.Create(CronYaml("concurrencyPolicy: Allow"));
  for (int minute = 0; minute < 6; ++minute) {
    cluster.Run(std::chrono::seconds(60));
    FinishPods();
  }
  cluster.Run(std::chrono::seconds(5));
  EXPECT_GE(cluster.Events("SuccessfulCreate", "tick"), 5);
  EXPECT_LE(cluster.List(kJobs).size(), 4U);
  const json::SharedValue cron = cluster.Get(kCronJobs, "default/tick");
  EXPECT_FALSE(json::GetString(*cron, {"status", "lastScheduleTime"}).empty());
}

TEST_F(CronJobTest, ForbidWaitsForTheOneThatRuns) {
  cluster.Create(CronYaml("concurrencyPolicy: Forbid"));
  cluster.Run(std::chrono::seconds(240));
  EXPECT_EQ(cluster.List(kJobs).size(), 1U);
  const json::SharedValue cron = cluster.Get(kCronJobs, "default/tick");
  EXPECT_EQ(json::GetArray(*cron, {"status", "active"}).size(), 1U);
  FinishPods();
  ASSERT_TRUE(
      cluster.Until([&] { return cluster.List(kJobs).size() == 2; }, std::chrono::seconds(90)));
}

TEST_F(CronJobTest, ReplaceEndsTheOneBefore) {
  cluster.Create(CronYaml("concurrencyPolicy: Replace"));
  cluster.Run(std::chrono::seconds(245));
  EXPECT_EQ(cluster.List(kJobs).size(), 1U);
  EXPECT_GE(cluster.Events("SuccessfulDelete", "tick"), 2);
}

TEST_F(CronJobTest, OfManyMissedRunsItStartsTheLatest) {
  cluster.Create(CronYaml("suspend: true\n  concurrencyPolicy: Forbid"));
  cluster.Run(std::chrono::hours(3));
  ASSERT_TRUE(cluster.Patch(kCronJobs, "default/tick", "spec: {suspend: false}").ok());
  cluster.Run(std::chrono::seconds(5));
  EXPECT_EQ(cluster.List(kJobs).size(), 1U);
  EXPECT_GE(cluster.Events("TooManyMissedTimes", "tick"), 1);
}

TEST_F(CronJobTest, SuspendedItMakesNone) {
  cluster.Create(CronYaml("suspend: true"));
  cluster.Run(std::chrono::seconds(180));
  EXPECT_TRUE(cluster.List(kJobs).empty());
}

}  // namespace
}  // namespace swell::controllers
