#include "lab/fair_time.h"

#include <gtest/gtest.h>

#include "lab/lab_test_util.h"

namespace swell::lab {
namespace {

// What each job's fair time is, given when the jobs of the trace ended.
std::vector<double> FairTimes(const Trace& trace,
                              std::string_view policy,
                              const ClusterShape& shape,
                              const std::vector<int64_t>& ended_s) {
  RunOutcome run;
  for (size_t i = 0; i < trace.jobs.size(); ++i) {
    const TraceJob& job = trace.jobs[i];
    run.jobs.push_back({job.name, job.submitted_s, job.submitted_s, ended_s[i], 0, 0});
  }
  RunOptions options;
  options.shape = shape;
  const ProfileLibrary profiles = ToyProfiles({"aws", "fast"});
  const Status done = AddFairTimes(trace, profiles, **FindPolicy(policy), options, run);
  EXPECT_TRUE(done.ok()) << done.message();
  std::vector<double> times;
  for (const JobOutcome& job : run.jobs) times.push_back(job.fair_s);
  return times;
}

TEST(FairTime, AKnownDurationCountsJobsPerGpu) {
  Trace trace{"t", "swell", {}};
  for (const char* name : {"a", "b", "c"}) trace.jobs.push_back({name, "", 0, 1, "", 0, 200});
  EXPECT_EQ(FairTimes(trace, "fifo", {1, 2}, {200, 200, 400}),
            (std::vector<double>{300, 300, 300}));
  EXPECT_EQ(FairTimes(trace, "fifo", {1, 4}, {200, 200, 200}), (std::vector<double>{200, 200, 200}))
      << "no more jobs than GPUs";
}

TEST(FairTime, TheShareIsThatOfTheJobsWhichWereThereMeanwhile) {
  // Alone, a job takes 430 s on one GPU, 330 s on two, 30 s of them to start.
  const Trace trace = ToyTrace({{"a", 0, 1}, {"b", 0, 1}});
  const std::vector<double> fair = FairTimes(trace, "optimus", {1, 2}, {300, 600});
  EXPECT_DOUBLE_EQ(fair[0], 430) << "two jobs all the time: a GPU each";
  EXPECT_DOUBLE_EQ(fair[1], 430 - 100.0 / 3) << "one job and a half: 1 1/3 GPUs";
}

TEST(FairTime, LessThanAGpuIsAGpuForAPartOfTheTime) {
  const Trace trace = ToyTrace({{"a", 0, 1}, {"b", 0, 1}, {"c", 0, 1}});
  EXPECT_DOUBLE_EQ(FairTimes(trace, "optimus", {1, 2}, {500, 500, 500})[0], 430 * 1.5);
}

TEST(FairTime, AJobWaitsForItsRoundAloneToo) {
  EXPECT_DOUBLE_EQ(FairTimes(ToyTrace({{"a", 25, 1}}), "optimus", {1, 1}, {500})[0], 430 + 35);
}

TEST(FairTime, RatiosToTheTimesOnEachTypeAreAveragedByItsGpus) {
  // 430 s on the four GPUs of "aws", 230 s on the two of "fast".
  const ClusterShape shape({{2, 2, "aws"}, {1, 2, "fast"}});
  const double fair = FairTimes(ToyTrace({{"a", 0, 1}}), "max-sum", shape, {1000})[0];
  EXPECT_DOUBLE_EQ(1000 / fair, (4 * 1000.0 / 430 + 2 * 1000.0 / 230) / 6);
  const double wide = FairTimes(ToyTrace({{"a", 0, 4}}), "max-sum", shape, {1000})[0];
  EXPECT_DOUBLE_EQ(wide, 30 + 200 * 1.75) << "it does not fit on the fast ones";
}

TEST(FairTime, AJobThatKeepsItsSizeHasMoreThanItsShareForAPartOfTheTime) {
  const Trace trace = ToyTrace({{"a", 0, 2}, {"b", 0, 2}});
  EXPECT_DOUBLE_EQ(FairTimes(trace, "tiresias", {1, 2}, {900, 900})[0], 330 * 2);
}

}  // namespace
}  // namespace swell::lab
