#include "kube/controllers/workloads/cron.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "operator/testing/cluster_test_util.h"

namespace swell::controllers {
namespace {

std::string NextAfter(std::string_view schedule, std::string_view time, const TimeZone& zone = {}) {
  const auto parsed = CronSchedule::Parse(schedule);
  if (!parsed.ok()) return parsed.status().message();
  const auto next = parsed->Next(api::ParseTime(time).value(), zone);
  return next ? api::FormatTime(*next) : "never";
}

TEST(CronSchedule, FindsTheNextTime) {
  EXPECT_EQ(NextAfter("* * * * *", "2026-01-01T00:00:00Z"), "2026-01-01T00:01:00Z");
  EXPECT_EQ(NextAfter("*/15 * * * *", "2026-01-01T00:15:01Z"), "2026-01-01T00:30:00Z");
  EXPECT_EQ(NextAfter("30 4 * * *", "2026-01-01T04:30:00Z"), "2026-01-02T04:30:00Z");
  EXPECT_EQ(NextAfter("0 0 29 2 *", "2026-01-01T00:00:00Z"), "2028-02-29T00:00:00Z");
  EXPECT_EQ(NextAfter("0 9-17/4 * * MON-FRI", "2026-01-02T17:00:00Z"), "2026-01-05T09:00:00Z");
  EXPECT_EQ(NextAfter("0 0 * * 7", "2026-01-01T00:00:00Z"), "2026-01-04T00:00:00Z");
  EXPECT_EQ(NextAfter("0 0 1 jan,jul *", "2026-01-01T00:00:00Z"), "2026-07-01T00:00:00Z");
  EXPECT_EQ(NextAfter("@hourly", "2026-12-31T23:30:00Z"), "2027-01-01T00:00:00Z");
  EXPECT_EQ(NextAfter("0 0 30 2 *", "2026-01-01T00:00:00Z"), "never");
  // Both days given: either is enough.
  EXPECT_EQ(NextAfter("0 0 13 * 5", "2026-01-01T00:00:00Z"), "2026-01-02T00:00:00Z");
}

TEST(CronSchedule, TimesAreThoseOfAZonesClocks) {
  const auto berlin = TimeZone::Load("Europe/Berlin");
  ASSERT_TRUE(berlin.ok()) << "install the package tzdata";
  EXPECT_EQ(NextAfter("30 4 * * *", "2026-01-01T00:00:00Z", *berlin), "2026-01-01T03:30:00Z");
  EXPECT_EQ(NextAfter("30 4 * * *", "2026-07-01T00:00:00Z", *berlin), "2026-07-01T02:30:00Z");
  EXPECT_EQ(NextAfter("0 0 * * MON", "2026-07-01T00:00:00Z", *berlin), "2026-07-05T22:00:00Z");
  // On 29 March 2026, 02:30 is left out; on 25 October it is there twice.
  EXPECT_EQ(NextAfter("30 2 * * *", "2026-03-28T23:00:00Z", *berlin), "2026-03-30T00:30:00Z");
  EXPECT_EQ(NextAfter("30 2 * * *", "2026-10-24T23:00:00Z", *berlin), "2026-10-25T00:30:00Z");
  EXPECT_EQ(NextAfter("30 2 * * *", "2026-10-25T00:30:00Z", *berlin), "2026-10-26T01:30:00Z");
}

// "RUN NEXT", and "many" where a clock may be wrong.
std::string DueAt(std::string_view schedule, std::string_view since, std::string_view now) {
  const auto parsed = CronSchedule::Parse(schedule);
  if (!parsed.ok()) return parsed.status().message();
  const auto due = parsed->DueAt(api::ParseTime(now).value(), api::ParseTime(since).value());
  auto text = [](const std::optional<WallTime>& time) {
    return time ? api::FormatTime(*time) : "none";
  };
  return StrCat(text(due.run), " ", text(due.next), due.too_many ? " many" : "");
}

TEST(CronSchedule, OfAllTimesThatHaveComeTheLatestIsDue) {
  EXPECT_EQ(DueAt("*/10 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:09:59Z"),
            "none 2026-01-01T00:10:00Z");
  EXPECT_EQ(DueAt("*/10 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z"),
            "2026-01-01T00:10:00Z 2026-01-01T00:20:00Z");
  EXPECT_EQ(DueAt("*/10 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:35:00Z"),
            "2026-01-01T00:30:00Z 2026-01-01T00:40:00Z");
  // 100 missed ones are few.
  EXPECT_EQ(DueAt("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T01:40:59Z"),
            "2026-01-01T01:40:00Z 2026-01-01T01:41:00Z");
  EXPECT_EQ(DueAt("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T01:41:00Z"),
            "2026-01-01T01:41:00Z 2026-01-01T01:42:00Z many");
  EXPECT_EQ(DueAt("* * * 1 *", "2001-01-01T00:00:00Z", "2026-12-31T00:00:00Z"),
            "2026-01-31T23:59:00Z 2027-01-01T00:00:00Z many");
  EXPECT_EQ(DueAt("@yearly", "2020-06-01T00:00:00Z", "2026-06-01T00:00:00Z"),
            "2026-01-01T00:00:00Z 2027-01-01T00:00:00Z");
  // A clock that was put back.
  EXPECT_EQ(DueAt("@hourly", "2026-01-01T05:30:00Z", "2026-01-01T03:00:00Z"),
            "none 2026-01-01T04:00:00Z");
}

TEST(CronSchedule, RefusesWhatIsNone) {
  for (const char* broken :
       {"", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *",
        "* * * * 8", "a * * * *", "1-0 * * * *", "*/0 * * * *", "1,,2 * * * *", "@never"}) {
    EXPECT_FALSE(CronSchedule::Parse(broken).ok()) << broken;
  }
}

using client::resources::kCronJobs;
using client::resources::kJobs;

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
