#include "lab/policies/policies.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/random.h"
#include "lab/free_gpus.h"
#include "lab/lab_test_util.h"

namespace swell::lab {
namespace {

TEST(Policies, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  const auto found = FindPolicy("polux");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().message().find("unknown policy \"polux\"; the policies are goodput, "),
            0u);
}

TEST(FreeGpus, TightlyMeansTheFewestNodesAndTheLeastLeftBehind) {
  FreeGpus free({3, 4}, {{0, {0, 0, 1}}});  // free: 2, 3, 4
  EXPECT_EQ(free.TakeTightly(2), (Allocation{0, 0}));
  EXPECT_EQ(free.TakeTightly(3), (Allocation{1, 1, 1}));
  EXPECT_EQ(free.total(), 4);
  FreeGpus other({3, 4}, {{0, {0, 0, 1}}});
  EXPECT_EQ(other.TakeTightly(6), (Allocation{2, 2, 2, 2, 0, 0}));
  EXPECT_EQ(PlacementOf({2, 2, 2, 2, 0, 0}), (Placement{4, 2}));
}

TEST(FreeGpus, FreestTakesTheFirstOfEquals) {
  FreeGpus free({3, 4}, {{0, {0}}});
  EXPECT_EQ(free.TakeFromFreest(5), (Allocation{1, 1, 1, 1, 2}));
}

TEST(Fifo, ASmallJobFillsWhatALargeOneLeaves) {
  // b needs both GPUs of a node and waits for a; c fits beside a and passes it.
  EXPECT_EQ(Outcome(ToyTrace({{"a", 0, 1}, {"b", 10, 2}, {"c", 20, 1}}), "fifo", {1, 2}),
            "a 0-430 x0, b 450-780 x0, c 20-450 x0");
}

TEST(Fair, ATenantReclaimsItsShare) {
  // One tenant holds both GPUs; the other one's job gets the GPU that is above the first's share.
  Trace trace{"t", "philly", {}};
  trace.jobs.push_back({"a", "one", 0, 1, "", 0, 1000});
  trace.jobs.push_back({"b", "one", 0, 1, "", 0, 1000});
  trace.jobs.push_back({"c", "two", 100, 1, "", 0, 100});
  EXPECT_EQ(Outcome(trace, "fifo", {1, 2}), "a 0-1030 x0, b 0-1030 x0, c 1030-1160 x0");
  EXPECT_EQ(Outcome(trace, "fair", {1, 2}), "a 0-1030 x0, b 0-1190 x1, c 100-230 x0");
}

TEST(Critical, AJobThatWouldEndLastGoesFirst) {
  // One GPU short: shortest first leaves the longest until the others are done.
  Trace trace{"t", "philly", {}};
  trace.jobs.push_back({"a", "", 0, 1, "", 0, 300});
  trace.jobs.push_back({"b", "", 0, 1, "", 0, 300});
  trace.jobs.push_back({"long", "", 0, 1, "", 0, 900});
  EXPECT_EQ(Outcome(trace, "shortest", {1, 2}), "a 60-390 x0, b 60-390 x0, long 420-1350 x0");
  EXPECT_EQ(Outcome(trace, "critical", {1, 2}), "a 60-390 x0, b 420-750 x0, long 60-990 x0");
}

TEST(Critical, AJobThatTrainsIsNotStoppedInEveryRound) {
  // The wide job needs all GPUs. By turns it and the others have nearly as much left as all work.
  Trace trace{"t", "swell", {}};
  trace.jobs.push_back({"long", "", 0, 8, "", 0, 7200});
  trace.jobs.push_back({"wide", "", 600, 16, "", 0, 1800});
  trace.jobs.push_back({"late", "", 1200, 4, "", 0, 5400});
  RunOptions options;
  options.shape = {2, 8};
  const auto run = Play(trace, ProfileLibrary(), **FindPolicy("critical"), options);
  ASSERT_TRUE(run.ok());
  for (const JobOutcome& job : run->jobs) EXPECT_LE(job.restarts, 5) << job.name;
}

TEST(Goodput, AJobAloneGrowsAsItLearns) {
  RunOptions options;
  options.shape = {2, 2};
  const ProfileLibrary library = ToyProfiles();
  const auto run = Play(ToyTrace({{"a", 0, 1}}), library, **FindPolicy("goodput"), options);
  ASSERT_TRUE(run.ok());
  EXPECT_GE(run->jobs[0].restarts, 1);
  EXPECT_LT(run->jobs[0].ended_s, 430) << "sooner than on the GPU it began with";
}

TEST(Goodput, JobsThatAreAlikeDoNotTakeTurns) {
  // Each that trains counts a little less from second to second; a start costs more than that.
  Trace trace{"t", "swell", {}};
  for (const char* name : {"a", "b", "c", "d"}) {
    trace.jobs.push_back({name, "", 0, 1, "", 0, 3000});
  }
  RunOptions options;
  options.shape = {1, 2};
  const auto run = Play(trace, ProfileLibrary(), **FindPolicy("goodput"), options);
  ASSERT_TRUE(run.ok());
  for (const JobOutcome& job : run->jobs) EXPECT_LE(job.restarts, 2) << job.name;
}

TEST(Pollux, AJobAloneGrowsAsItLearns) {
  EXPECT_EQ(Outcome(ToyTrace({{"a", 0, 1}}), "shortest", {2, 2}), "a 60-490 x0");
  RunOptions options;
  options.shape = {2, 2};
  const ProfileLibrary library = ToyProfiles();
  const auto run = Play(ToyTrace({{"a", 0, 1}}), library, **FindPolicy("pollux"), options);
  ASSERT_TRUE(run.ok());
  EXPECT_GE(run->jobs[0].restarts, 1);
  EXPECT_LT(run->jobs[0].ended_s, 490);
}

TEST(Pollux, AtMostOneJobOfANodeSpansNodes) {
  RunOptions options;
  options.shape = {4, 2};
  options.on_decision = [](const DecisionSeen& seen) {
    std::map<int, int> spanning;  // jobs on several nodes, by node
    for (const auto& [number, allocation] : seen.after) {
      const std::set<int> nodes(allocation.begin(), allocation.end());
      if (nodes.size() < 2) continue;
      for (int node : nodes) EXPECT_LE(++spanning[node], 1) << "at " << seen.now_s;
    }
  };
  const ProfileLibrary library = ToyProfiles();
  const Trace trace = ToyTrace({{"a", 0, 1}, {"b", 0, 1}, {"c", 60, 1}});
  ASSERT_TRUE(Play(trace, library, **FindPolicy("pollux"), options).ok());
}

TEST(Shockwave, TheLongestIsLeftWithLittleAndAllMakeProgress) {
  // Two GPUs for three jobs, 120 s a round: the longest has one of them all the time, the others
  // share the other one.
  Trace trace{"t", "shockwave", {}};
  trace.jobs.push_back({"a", "", 0, 1, "", 0, 1200});
  trace.jobs.push_back({"b", "", 0, 1, "", 0, 1200});
  trace.jobs.push_back({"long", "", 0, 1, "", 0, 6000});
  RunOptions options;
  options.shape = {1, 2};
  options.resize_s = 0;
  const auto run = Play(trace, ProfileLibrary(), **FindPolicy("shockwave"), options);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ(run->jobs[2].started_s, 120);
  EXPECT_EQ(run->jobs[2].restarts, 0);
  EXPECT_EQ(run->jobs[2].ended_s, 6120);
  EXPECT_LE(run->jobs[0].ended_s, 2640);
  EXPECT_LE(run->jobs[1].ended_s, 2640);
}

// Whatever comes: no job holds more than it may, no node gives more than it has (the simulator
// checks), every job ends, and a second run decides the same.
TEST(Policies, AnyTracePlaysToItsEnd) {
  const ProfileLibrary library = ToyProfiles();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    Trace trace{"random", "pollux", {}};
    const ClusterShape shape{1 + static_cast<int>(random.Below(4)), 2};
    for (uint64_t i = 0; i < 12; ++i) {
      TraceJob job{StrCat("job-", i),
                   StrCat("tenant-", random.Below(3)),
                   static_cast<int64_t>(random.Below(2000)),
                   1 + static_cast<int>(random.Below(2)),
                   "",
                   0,
                   0};
      if (random.OneIn(2)) {
        job.application = "toy";
        job.batch = 8 << random.Below(4);
      } else {
        job.duration_s = 1 + static_cast<int64_t>(random.Below(3000));
      }
      trace.jobs.push_back(job);
    }
    RunOptions options;
    options.shape = shape;
    for (const PolicyKind& kind : Policies()) {
      if (kind.name == "pollux" && seed > 2) continue;  // it takes a hundred times as long
      const auto run = Play(trace, library, kind, options);
      ASSERT_TRUE(run.ok()) << kind.name << ", seed " << seed << ": " << run.status().message();
      for (const JobOutcome& job : run->jobs) {
        ASSERT_GE(job.started_s, job.submitted_s) << kind.name << " " << job.name;
        ASSERT_GT(job.ended_s, job.started_s) << kind.name << " " << job.name;
      }
      EXPECT_EQ(run->hash, Play(trace, library, kind, options)->hash) << kind.name;
    }
  }
}

}  // namespace
}  // namespace swell::lab
