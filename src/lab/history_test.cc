// What a cluster's past jobs become: a trace to play, and the run that it was.
#include "lab/history.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "lab/report.h"

namespace swell::lab {
namespace {

constexpr int64_t kMonday = 1'795'000'000;

PastJob Job(const std::string& name, int64_t submitted_s, double gpus, double work_gpu_s) {
  PastJob job;
  job.name = name;
  job.tenant = "vision";
  job.submitted_s = kMonday + submitted_s;
  job.started_s = job.submitted_s + 60;
  job.ended_s = job.submitted_s + 660;
  job.gpus = job.gpus_min = job.gpus_max = gpus;
  job.work_gpu_s = work_gpu_s;
  job.held_gpu_s = gpus * 600;
  return job;
}

TEST(History, IsAnExactTraceInTheOrderOfSubmission) {
  PastJob elastic = Job("v/b", 100, 2, 1000);
  elastic.gpus_max = 8;
  elastic.gpus_min = 1;
  elastic.priority = 75;
  elastic.restarts = 3;
  const auto history =
      HistoryOf("t", {elastic, Job("v/a", 40, 4, 2000), Job("v/half", 40, 0.5, 250),
                      Job("v/idle", 0, 4, 0), Job("v/none", 0, 0, 10)});
  ASSERT_TRUE(history.ok()) << history.status().message();
  EXPECT_EQ(TraceAsCsv(history->trace),
            "job,tenant,submit_s,gpus,gpus_max,duration_s,gpus_min,priority\n"
            "v/a,vision,0,4,4,500,4,0\n"
            "v/half,vision,0,1,1,500,1,0\n"
            "v/b,vision,60,2,8,500,1,75\n");
  EXPECT_EQ(history->trace.left_out, 2);
  EXPECT_EQ(
      JobsAsCsv({{"as it was", false, {history->as_it_was}, true}}, {"t"}),
      "policy,trace,job,submit_s,start_s,end_s,completion_s,restarts,gpu_s,fair_s,lost_gpu_s\n"
      "as it was,t,v/a,0,60,660,660,0,2400,,0\n"
      "as it was,t,v/half,0,60,660,660,0,300,,0\n"
      "as it was,t,v/b,60,120,720,660,3,1200,,0\n");
}

TEST(History, AStartCostsWhatItCostInTheMedian) {
  // Held for 600 s each, productive for 500 s, 400 s and 590 s of that; the second began twice.
  PastJob twice = Job("v/b", 0, 2, 800);
  twice.restarts = 1;
  const auto history = HistoryOf("t", {Job("v/a", 0, 1, 500), twice, Job("v/c", 0, 1, 590)});
  EXPECT_EQ(history->start_s, 100);
}

TEST(History, NeedsAJobThatDidWork) {
  EXPECT_EQ(HistoryOf("t", {}).status().code(), Code::kNotFound);
  EXPECT_EQ(HistoryOf("t", {Job("v/idle", 0, 4, 0)}).status().code(), Code::kNotFound);
}

TEST(History, ASavedTraceIsPlayedAsTheOneItCameFrom) {
  PastJob elastic = Job("v/b", 1, 2, 1000);
  elastic.gpus_max = 4;
  const auto history = HistoryOf("t", {elastic, Job("v/a", 0, 4, 2000), Job("v/c", 2, 4, 4000)});
  ASSERT_TRUE(history.ok());
  const auto again = ParseTrace("t", TraceAsCsv(history->trace));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(TraceAsCsv(*again), TraceAsCsv(history->trace));
  EXPECT_EQ(again->format, "swell");
  RunOptions options;
  options.shape = {1, 4};
  for (const char* policy : {"fifo", "fair", "goodput"}) {
    const auto kind = FindPolicy(policy);
    ASSERT_TRUE(kind.ok());
    const auto first = Play(history->trace, ProfileLibrary(), **kind, options);
    const auto second = Play(*again, ProfileLibrary(), **kind, options);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(first->hash, second->hash) << policy;
    EXPECT_NE(first->hash, 0u) << policy;
  }
}

TEST(History, AnElasticJobIsFasterOnItsMaximum) {
  RunOptions options;
  options.shape = {1, 8};
  options.resize_s = 0;
  auto ended = [&](double gpus_max) {
    PastJob job = Job("v/a", 0, 2, 2000);
    job.gpus_max = gpus_max;
    const auto run =
        Play(HistoryOf("t", {job})->trace, ProfileLibrary(), **FindPolicy("goodput"), options);
    return run->jobs[0].ended_s;
  };
  EXPECT_EQ(ended(2), 1000);
  EXPECT_LT(ended(8), 400);
  EXPECT_GT(ended(8), 250);
}

TEST(History, ARigidJobHoldsWhatItRequestedOrNothing) {
  // Other jobs are tried on 1, 2 or 4 GPUs, and two of them are free while the first job trains.
  RunOptions options;
  options.shape = {1, 4};
  options.resize_s = 0;
  std::string sizes;
  options.on_decision = [&sizes](const DecisionSeen& seen) {
    for (const auto& [number, allocation] : seen.after) {
      sizes += StrCat(number == 0 ? "a" : "b", allocation.size(), " ");
    }
  };
  const auto history = HistoryOf("t", {Job("v/a", 0, 2, 20), Job("v/b", 0, 3, 300)});
  ASSERT_TRUE(Play(history->trace, ProfileLibrary(), **FindPolicy("goodput"), options).ok());
  EXPECT_EQ(sizes.find("b1"), std::string::npos) << sizes;
  EXPECT_EQ(sizes.find("b2"), std::string::npos) << sizes;
  EXPECT_NE(sizes.find("b3"), std::string::npos) << sizes;
}

TEST(History, AQuotaGoesBeforeTheOrderOfSubmission) {
  Trace trace{"t", "swell", {}};
  for (int i = 0; i < 4; ++i) {
    trace.jobs.push_back({StrCat("a", i), "first", 0, 1, "", 0, 1000});
    trace.jobs.push_back({StrCat("b", i), "second", 0, 1, "", 0, 1000});
  }
  RunOptions options;
  options.shape = {1, 4};
  auto begun_at_once = [&](const char* policy, const std::string& tenant) {
    const auto run = Play(trace, ProfileLibrary(), **FindPolicy(policy), options);
    int64_t count = 0;
    for (size_t i = 0; i < run->jobs.size(); ++i) {
      count += trace.jobs[i].tenant == tenant && run->jobs[i].started_s == 0 ? 1 : 0;
    }
    return count;
  };
  for (const char* policy : {"fair", "goodput", "recurring"}) {
    options.shape.tenants.clear();
    EXPECT_EQ(begun_at_once(policy, "second"), 2) << policy;
    options.shape.tenants["second"].quota = 4;
    EXPECT_EQ(begun_at_once(policy, "second"), 4) << policy;
  }
}

TEST(History, AHigherPriorityGoesFirst) {
  Trace trace{"t", "swell", {}};
  for (int i = 0; i < 4; ++i) {
    trace.jobs.push_back({StrCat("a", i), "t", 0, 1, "", 0, 1000});
    trace.jobs.push_back({StrCat("b", i), "t", 0, 1, "", 0, 1000});
    trace.jobs.back().priority = 75;
  }
  RunOptions options;
  options.shape = {1, 4};
  for (const char* policy : {"fifo", "fair", "goodput", "recurring"}) {
    const auto run = Play(trace, ProfileLibrary(), **FindPolicy(policy), options);
    ASSERT_TRUE(run.ok()) << policy;
    for (size_t i = 0; i < run->jobs.size(); ++i) {
      EXPECT_EQ(run->jobs[i].started_s == 0, trace.jobs[i].priority == 75)
          << policy << " " << run->jobs[i].name;
    }
  }
}

}  // namespace
}  // namespace swell::lab
