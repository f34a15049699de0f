#include <gtest/gtest.h>

#include "cli/cli_test_util.h"
#include "json/yaml.h"
#include "kube/client/usage_record.h"

namespace swell::cli {
namespace {

class ReportTest : public CliTest {
 protected:
  // It is the first moment of 2026.
  void SetUp() override {
    Create("{apiVersion: v1, kind: Namespace, metadata: {name: swell-system}}");
    client::UsageDay yesterday = Day("2025-12-31");
    yesterday.capacity_gpu_s[9] = 8 * 3600;
    yesterday.capacity_gpu_s[10] = 8 * 3600;
    yesterday.Row("vision", "alice", 9) = {
        .gpu_s = 4 * 3600, .cpu_s = 3600, .started = 2, .wait_s = 90, .wait_max_s = 60};
    yesterday.Row("vision", "alice", 10) = {.gpu_s = 2 * 3600, .preempted = 1, .lost_gpu_s = 1800};
    yesterday.Row("nlp", "=cmd()", 9) = {.gpu_s = 1800};
    Store(yesterday);
    client::UsageDay long_ago = Day("2025-09-01");
    long_ago.Row("vision", "bob", 0) = {.gpu_s = 3600};
    Store(long_ago);
  }

  static client::UsageDay Day(std::string date) {
    client::UsageDay day;
    day.until = *api::ParseTime(date + "T23:59:59Z");
    day.date = std::move(date);
    return day;
  }
  void Store(const client::UsageDay& day) {
    Create(json::PrintYaml(day.ToConfigMap(client::kUsageNamespace)));
  }
};

TEST_F(ReportTest, UseOfNoProjectIsNamedSo) {
  client::UsageDay day = Day("2025-12-30");
  day.capacity_gpu_s[9] = 8 * 3600;
  day.Row("", "alice", 9) = {.gpu_s = 3600};
  Store(day);
  ASSERT_EQ(Run({"swell", "report", "--by", "project"}), 0) << err_;
  EXPECT_NE(out_.find("\n(no project)   1.00 "), std::string::npos) << out_;
  ASSERT_EQ(Run({"swell", "report", "--by", "project", "-o", "csv"}), 0) << err_;
  EXPECT_EQ(out_.find("(no project)"), std::string::npos) << "names are for people";
}

TEST_F(ReportTest, SumsWhatProjectsAndUsersHeld) {
  ASSERT_EQ(Run({"swell", "report"}), 0) << err_;
  EXPECT_EQ(out_,
            "PROJECT   USER     GPU-HOURS   CPU-HOURS   UTILIZATION   STARTED   MEAN WAIT   "
            "LONGEST WAIT   PREEMPTED   LOST GPU-HOURS   PRODUCTIVE\n"
            "nlp       =cmd()   0.50        0.00        3.1%          0         -           "
            "-              0           0.00             -\n"
            "vision    alice    6.00        1.00        37.5%         2         45s         "
            "60s            1           0.50             -\n"
            "all                6.50        1.00        40.6%         2         45s         "
            "60s            1           0.50             -\n"
            "\n2025-12-25T00:00:00Z to 2026-01-01T00:00:00Z: 6.50 of 16.00 GPU-hours were used\n");
}

TEST_F(ReportTest, GroupsByWhatIsAsked) {
  ASSERT_EQ(Run({"swell", "report", "--by", "hour", "--project", "vision", "-o", "csv"}), 0)
      << err_;
  EXPECT_EQ(out_,
            "hour,gpu_hours,cpu_hours,utilisation,started,mean_wait_seconds,longest_wait_seconds,"
            "preempted_pods,lost_gpu_hours,productive,gpu_hours_starting,"
            "gpu_hours_waitingForPeers,gpu_hours_loading,gpu_hours_training,gpu_hours_saving,"
            "gpu_hours_hung,gpu_hours_failing,gpu_hours_stopping\n"
            "2025-12-31T09:00,4.0000,1.0000,0.5000,2,45.0,60.0,0,0.0000,,0.0000,0.0000,0.0000,"
            "0.0000,0.0000,0.0000,0.0000,0.0000\n"
            "2025-12-31T10:00,2.0000,0.0000,0.2500,0,0.0,0.0,1,0.5000,,0.0000,0.0000,0.0000,"
            "0.0000,0.0000,0.0000,0.0000,0.0000\n");
}

TEST_F(ReportTest, SaysWhatGpusWereUsedForByJob) {
  client::UsageDay before = Day("2025-12-30");
  before.capacity_gpu_s[0] = 16 * 3600;
  client::UsageRow& row = before.Job("vision", "alice", "vision/bert");
  row.gpu_s = 8 * 3600;
  row.Of(client::GpuUse::kTraining) = 6 * 3600;
  row.Of(client::GpuUse::kStarting) = 3600;
  row.Of(client::GpuUse::kFailing) = 3600;
  row.lost_gpu_s = 2 * 3600;
  before.Job("nlp", "bob", "nlp/gpt").gpu_s = 3600;
  Store(before);
  ASSERT_EQ(Run({"swell", "report", "--last", "3d", "--by", "job", "--project", "vision"}), 0)
      << err_;
  EXPECT_NE(out_.find("vision/bert   8.00        0.00        25.0%         0         -           -"
                      "              0           2.00             50.0%\n"),
            std::string::npos)
      << out_;
  EXPECT_TRUE(
      out_.ends_with("GPU-hours by use: starting 1.00, training 6.00, failing 1.00; lost again "
                     "2.00\n"))
      << out_;
  ASSERT_EQ(Run({"swell", "report", "--by", "job", "-o", "json"}), 0) << err_;
  const auto report = json::Parse(out_);
  ASSERT_TRUE(report.ok()) << out_;
  const json::Array& rows = json::GetArray(*report, {"rows"});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(json::Find(rows[1], {"productive"})->to_number<double>(), 0.5);
  EXPECT_EQ(json::Find(rows[1], {"gpuHoursByUse", "training"})->to_number<double>(), 6);
  EXPECT_TRUE(json::Find(rows[0], {"productive"})->is_null());
  EXPECT_EQ(Run({"swell", "report", "--by", "job,hour"}), 2);
  EXPECT_NE(err_.find("jobs are recorded by the day"), std::string::npos) << err_;
  EXPECT_EQ(Run({"swell", "report", "--last", "3d", "--since", "2d"}), 2);
  EXPECT_NE(err_.find("--since and --last exclude each other"), std::string::npos) << err_;
}

TEST_F(ReportTest, GroupsByNothingToo) {
  ASSERT_EQ(Run({"swell", "report", "--by", "", "-o", "csv"}), 0) << err_;
  EXPECT_TRUE(out_.starts_with("gpu_hours,cpu_hours,")) << out_;
  EXPECT_NE(out_.find("\n6.5000,1.0000,0.4062,2,"), std::string::npos) << out_;
}

TEST_F(ReportTest, LeavesNoFormulaToASpreadsheet) {
  ASSERT_EQ(Run({"swell", "report", "--project", "nlp", "-o", "csv"}), 0) << err_;
  EXPECT_NE(out_.find("\nnlp,'=cmd(),0.5000,"), std::string::npos) << out_;
}

TEST_F(ReportTest, CountsWholeHoursOfThePeriod) {
  ASSERT_EQ(Run({"swell", "report", "--since", "2025-12-31T10:30:00Z", "--until", "2026-01-01",
                 "--by", "user", "-o", "json"}),
            0)
      << err_;
  auto report = json::Parse(out_);
  ASSERT_TRUE(report.ok()) << out_;
  EXPECT_EQ(json::GetString(*report, {"since"}), "2025-12-31T10:00:00Z");
  EXPECT_EQ(json::Find(*report, {"total", "gpuHours"})->to_number<double>(), 2);
  EXPECT_EQ(json::Find(*report, {"capacityGpuHours"})->to_number<double>(), 8);
  ASSERT_EQ(json::GetArray(*report, {"rows"}).size(), 1u);
  EXPECT_EQ(json::GetString(json::GetArray(*report, {"rows"})[0], {"user"}), "alice");
}

// A cluster that is full every day is not said to be full to a seventh.
TEST_F(ReportTest, ADaysShareIsOfThatDay) {
  client::UsageDay before = Day("2025-12-30");
  before.capacity_gpu_s[5] = 100 * 3600;
  before.Row("vision", "alice", 5) = {.gpu_s = 50 * 3600};
  Store(before);
  ASSERT_EQ(Run({"swell", "report", "--by", "day,project", "-o", "csv"}), 0) << err_;
  EXPECT_NE(out_.find("\n2025-12-30,vision,50.0000,0.0000,0.5000,"), std::string::npos) << out_;
  EXPECT_NE(out_.find("\n2025-12-31,vision,6.0000,1.0000,0.3750,"), std::string::npos) << out_;
}

TEST_F(ReportTest, ThePeriodIsWhatWasCounted) {
  ASSERT_EQ(Run({"swell", "report", "--since", "2025-12-31T09:10:00+00:00", "--until",
                 "2025-12-31T09:20:00Z", "-o", "json"}),
            0)
      << err_;
  EXPECT_NE(out_.find("\"since\": \"2025-12-31T09:00:00Z\""), std::string::npos) << out_;
  EXPECT_NE(out_.find("\"until\": \"2025-12-31T10:00:00Z\""), std::string::npos) << out_;
}

TEST_F(ReportTest, AClusterWithoutAnAccountIsToldSo) {
  ASSERT_EQ(Run({"swell", "report", "--usage-namespace", "elsewhere", "-o", "csv"}), 0);
  EXPECT_NE(err_.find("there are no usage records in the namespace elsewhere"), std::string::npos)
      << err_;
  ASSERT_EQ(Run({"swell", "report", "--usage-namespace", "elsewhere"}), 0);
  EXPECT_EQ(err_,
            "No use of GPUs is recorded yet in the namespace elsewhere; the scheduler writes its "
            "first record within a minute\n");
}

TEST_F(ReportTest, SaysWhatIsWrongWithFlags) {
  EXPECT_EQ(Run({"swell", "report", "--by", "user,user"}), 2);
  EXPECT_NE(err_.find("--by \"user,user\": user is there twice"), std::string::npos) << err_;
  EXPECT_EQ(Run({"swell", "report", "--since", "2027-01-01"}), 2);
  EXPECT_NE(err_.find("--since \"2027-01-01\" is not before now, 2026-01-01T"), std::string::npos)
      << err_;

  EXPECT_EQ(Run({"swell", "report", "--by", "colour"}), 2);
  EXPECT_NE(err_.find(": --by \"colour\": expected project, user, job, day or hour\n"),
            std::string::npos)
      << err_;
  EXPECT_EQ(Run({"swell", "report", "--since", "soon"}), 2);
  EXPECT_NE(err_.find("--since \"soon\""), std::string::npos);
  EXPECT_EQ(Run({"swell", "report", "--since", "1d", "--until", "2d"}), 2);
  EXPECT_NE(err_.find("is not after --since"), std::string::npos);
}

TEST_F(ReportTest, ADamagedDayIsLeftOutWithAWord) {
  Create(
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: swell-usage-2025-12-30, namespace: "
      "swell-system, labels: {swell.dev/usage: day}}, data: {usage: 'nonsense'}}");
  ASSERT_EQ(Run({"swell", "report"}), 0);
  EXPECT_NE(err_.find("\"swell-usage-2025-12-30\": data.usage: "), std::string::npos) << err_;
  EXPECT_NE(out_.find("alice"), std::string::npos);
}

}  // namespace
}  // namespace swell::cli
