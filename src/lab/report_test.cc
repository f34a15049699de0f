#include "lab/report.h"

#include <gtest/gtest.h>

namespace swell::lab {
namespace {

RunOutcome RunOf(const std::vector<int64_t>& completions) {
  RunOutcome run;
  for (int64_t completion : completions) {
    run.jobs.push_back({"job", 10, 10, 10 + completion, 1, 7200});
  }
  run.hash = 7;
  return run;
}

TEST(Report, AveragesOverTracesAndPoolsTheTail) {
  const auto report = Summarize({{"a", false, {RunOf({10, 20}), RunOf({100})}}}, 1);
  ASSERT_EQ(report.size(), 1u);
  EXPECT_EQ(report[0].average_s, (15.0 + 100) / 2) << "traces count the same, whatever their size";
  EXPECT_EQ(report[0].p99_s, 100);
  EXPECT_EQ(report[0].makespan_s, (30.0 + 110) / 2);
  EXPECT_EQ(report[0].restarts, 1);
  EXPECT_EQ(report[0].gpu_hours, 2);
  EXPECT_FALSE(report[0].change.has_value()) << "beside what?";
  ASSERT_TRUE(report[0].average_range.has_value());
  EXPECT_EQ(report[0].average_range->low, 15);
  EXPECT_EQ(report[0].average_range->high, 100);
}

TEST(Report, DifferencesAreOfPairs) {
  // Traces differ by far; the second policy takes 10 % less on each of them.
  const auto report = Summarize({{"a", false, {RunOf({100}), RunOf({1000}), RunOf({5000})}},
                                 {"b", false, {RunOf({90}), RunOf({900}), RunOf({4500})}}},
                                1);
  ASSERT_TRUE(report[1].change.has_value() && report[1].change_range.has_value());
  EXPECT_NEAR(*report[1].change, -0.1, 1e-12);
  EXPECT_NEAR(report[1].change_range->low, -0.1, 1e-12);
  EXPECT_NEAR(report[1].change_range->high, -0.1, 1e-12);
  EXPECT_EQ(report[1].average_range->low, 90);
}

TEST(Report, OneTraceHasNoInterval) {
  const auto report = Summarize({{"a", false, {RunOf({100})}}, {"b", true, {RunOf({150})}}}, 1);
  EXPECT_FALSE(report[0].average_range.has_value());
  EXPECT_FALSE(report[1].change_range.has_value());
  EXPECT_NEAR(*report[1].change, 0.5, 1e-12);
  EXPECT_TRUE(report[1].looks_ahead);
}

TEST(Report, RatiosOfFinishTimesNeedFairTimesOfAllJobs) {
  RunOutcome run = RunOf({100, 300, 420});
  for (JobOutcome& job : run.jobs) {
    EXPECT_FALSE(Summarize({{"a", false, {run}}}, 1)[0].worst_ratio.has_value());
    job.fair_s = 300;
  }
  const auto report = Summarize({{"a", false, {run}}}, 1);
  ASSERT_TRUE(report[0].worst_ratio.has_value());
  EXPECT_NEAR(*report[0].worst_ratio, 1.4, 1e-12);
  EXPECT_NEAR(*report[0].unfair, 1.0 / 3, 1e-12);
}

TEST(Report, JobsAreLinesOfCsv) {
  RunOutcome run = RunOf({20, 40});
  run.jobs[1].fair_s = 50;
  EXPECT_EQ(
      JobsAsCsv({{"a", false, {run}}}, {"t.csv"}),
      "policy,trace,job,submit_s,start_s,end_s,completion_s,restarts,gpu_s,fair_s,lost_gpu_s\n"
      "a,t.csv,job,10,10,30,20,1,7200,,0\n"
      "a,t.csv,job,10,10,50,40,1,7200,50,0\n");
}

TEST(Report, GoodputIsTheUsefulPartBesideThatOfTheSameRunWithoutRevocations) {
  RunOutcome run = RunOf({20, 40});
  run.gpu_s = {36'000, 1800, 7200, 0};
  run.revocations = 3;
  EXPECT_FALSE(Summarize({{"a", false, {run}}}, 1)[0].revoked.has_value());
  run.undisturbed_gpu_s = {36'000, 3600, 0, 0};
  RunOutcome other = run;
  other.gpu_s = {34'000, 0, 0, 2000};
  other.revocations = 4;
  const auto report = Summarize({{"a", false, {run, other}}}, 1);
  ASSERT_TRUE(report[0].revoked.has_value());
  // (27,000 + 34,000) of 72,000 beside nine tenths.
  EXPECT_DOUBLE_EQ(report[0].revoked->goodput, 61.0 / 72 / 0.9);
  EXPECT_EQ(report[0].revoked->revocations, 3.5);
  EXPECT_EQ(report[0].revoked->lost_gpu_hours, 0.5);
}

TEST(Report, HoursOfTenantsAreHeldAgainstTheirShares) {
  RunOutcome run = RunOf({20});
  EXPECT_FALSE(Summarize({{"a", false, {run}}}, 1)[0].tenant_hours.has_value());
  run.tenant_hours = {{"red", 0, 9, 9, 8.9},       // 1 % below
                      {"red", 1, 9, 9, 8.5},       // less than a GPU
                      {"blue", 1, 9, 4, 7},        // lent
                      {"red", 2, 90, 90, 80, 9}};  // 10 GPUs, 9 of them too little for its jobs
  const auto report = Summarize({{"a", false, {run}}}, 1);
  ASSERT_TRUE(report[0].tenant_hours.has_value());
  EXPECT_EQ(report[0].tenant_hours->count, 4);
  EXPECT_EQ(report[0].tenant_hours->fair, 0.5);
  EXPECT_EQ(report[0].tenant_hours->nearly, 0.75);
  EXPECT_EQ(report[0].tenant_hours->divisible, 0.75);
  EXPECT_EQ(report[0].tenant_hours->worst_short, 10);
  run.tenant_hours.resize(1);
  EXPECT_EQ(TenantHoursAsCsv({{"a", false, {run}}}, {"t.csv"}),
            "policy,trace,tenant,hour,asked,share,held,too_little\na,t.csv,red,0,9.000,9.000,8.900,"
            "0.000\n");
}

}  // namespace
}  // namespace swell::lab
