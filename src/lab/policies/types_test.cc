// Clusters with GPUs of several types, and Sia's rules.
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/random.h"
#include "lab/free_gpus.h"
#include "lab/lab_test_util.h"

namespace swell::lab {
namespace {

ClusterShape TwoTypes() { return ClusterShape({{2, 2, "aws"}, {1, 2, "fast"}}); }

RunOptions OptionsOn(ClusterShape shape, Rules rules = Rules::kPollux) {
  RunOptions options;
  options.shape = std::move(shape);
  options.rules = rules;
  return options;
}

TEST(ClusterShape, NodesAreNumberedThrough) {
  const ClusterShape shape = TwoTypes();
  EXPECT_EQ(shape.gpus(), 6);
  EXPECT_EQ(shape.nodes(), 3);
  EXPECT_EQ(shape.GroupOf(1), 0);
  EXPECT_EQ(shape.GroupOf(2), 1);
  EXPECT_EQ(shape.ToString(), "2x2:aws,1x2:fast");
  EXPECT_EQ(ClusterShape(16, 4).ToString(), "16x4");
}

TEST(PlaceSizes, WhoKeepsItsSizeKeepsItsPlaceUnlessAnotherWouldBeScattered) {
  const ClusterShape shape({{3, 2, "aws"}, {1, 2, "fast"}});
  const Allocations now{{0, {0}}, {1, {1}}, {2, {3, 3}}};
  EXPECT_EQ(PlaceSizes(shape, {{0, {0, 1}}, {1, {0, 1}}, {2, {1, 2}}, {3, {0, 2}}}, now),
            (Allocations{{0, {0}}, {1, {1}}, {2, {3, 3}}, {3, {2, 2}}}));
  EXPECT_EQ(PlaceSizes(shape, {{0, {0, 1}}, {1, {0, 1}}, {3, {0, 4}}}, now),
            (Allocations{{0, {2}}, {1, {2}}, {3, {0, 0, 1, 1}}}));
}

TEST(Types, APolicyThatKnowsOneTypeRefusesTwo) {
  const std::string said = Outcome(ToyTrace({{"a", 0, 1}}), "tiresias", TwoTypes());
  EXPECT_EQ(said,
            "policy tiresias knows GPUs of one type, not 2x2:aws,1x2:fast; these know several: "
            "goodput, recurring, sia, max-min, max-sum");
}

TEST(Types, AnApplicationNeedsAProfileOnEachType) {
  const auto run =
      Play(ToyTrace({{"a", 0, 1}}), ToyProfiles(), **FindPolicy("sia"), OptionsOn(TwoTypes()));
  EXPECT_EQ(run.status().message(),
            "toy.csv: job \"a\": application \"toy\" has no profile on fast; the profiles are toy "
            "(--profiles)");
}

TEST(Types, OfAnUntriedTypeAJobKnowsHowFastOneGpuIs) {
  const ProfileLibrary library = ToyProfiles({"aws", "fast"});
  const Trace trace = ToyTrace({{"a", 0, 1}});
  JobOptions options;
  options.batch = BatchMode::kAdaptive;
  options.gpus_per_node = {2, 2};
  SimJob job(trace.jobs[0], {library.Find("toy", "aws"), library.Find("toy", "fast")}, options);
  EXPECT_FALSE(job.measured());
  EXPECT_EQ(job.EstimatedGoodput(1, 1, 1), 1) << "nothing is known: a GPU is a GPU";
  job.Place({1}, 0, 0);
  job.Advance(0, 60);
  ASSERT_TRUE(job.measured());
  EXPECT_NEAR(job.EstimatedGoodput(1, 1, 1), 2 * job.EstimatedGoodput(0, 1, 1), 1e-9);
}

TEST(Types, TrueSpeedIsThatOfTheTypeDividedByTheSlowdown) {
  const ProfileLibrary library = ToyProfiles({"aws", "fast"});
  const Trace trace = ToyTrace({{"a", 0, 1}});
  JobOptions options;
  options.gpus_per_node = {2, 2};
  options.slowdown = 1.25;
  options.resize_s = 0;
  SimJob job(trace.jobs[0], {library.Find("toy", "aws"), library.Find("toy", "fast")}, options);
  job.Place({1}, 0, 1);
  job.Advance(0, 1000);
  EXPECT_EQ(job.ended_s(), 250) << "200 steps of 1 s, times 1.25";
}

// By Sia's rules a job that keeps its shape moves for nothing; by Pollux' it restarts.
class Mover final : public Policy {
 public:
  Allocations Decide(int64_t now_s, const ActiveJobs& jobs, const Allocations&) override {
    Allocations next;
    for (const ActiveJob& active : jobs) next[active.number] = {now_s < 120 ? 0 : 1};
    return next;
  }
  std::string Reason(const ActiveJob&) const override { return "to the next node"; }
};

TEST(Rules, AMoveInTheSameShapeIsFreeBySias) {
  PolicyKind kind;
  kind.name = "mover";
  kind.make = [](const ClusterShape&) -> std::unique_ptr<Policy> {
    return std::make_unique<Mover>();
  };
  const auto play = [&](Rules rules) {
    const auto run =
        Play(ToyTrace({{"a", 0, 1}}), ToyProfiles(), kind, OptionsOn(ClusterShape(2, 1), rules));
    return StrCat(run->jobs[0].restarts, " ", run->jobs[0].ended_s);
  };
  EXPECT_EQ(play(Rules::kPollux), "1 520");
  EXPECT_EQ(play(Rules::kSia), "0 490");
}

TEST(Rules, DelaysAndBatchesAreThoseOfTheApplication) {
  EXPECT_EQ(CostsOf(Rules::kPollux, "imagenet").resize_s, 30);
  EXPECT_EQ(CostsOf(Rules::kSia, "imagenet").resize_s, 250);
  EXPECT_EQ(CostsOf(Rules::kSia, "cifar10").slowdown, 1.8);
  EXPECT_EQ(CostsOf(Rules::kSia, "toy").resize_s, 30);
  EXPECT_EQ(LocalBatchMax(Rules::kPollux, "yolov3", "aws", 16), 8);
  EXPECT_EQ(LocalBatchMax(Rules::kSia, "yolov3", "aws", 16), 16);
  EXPECT_EQ(LocalBatchMax(Rules::kSia, "deepspeech2", "rtx", 80), 57);
}

// Where each job was, decision by decision: "0:1 1:2" is one GPU of group 0, then two of group 1.
std::string WaysOf(const Trace& trace, std::string_view policy, const RunOptions& chosen) {
  RunOptions options = chosen;
  std::string way;
  options.on_decision = [&](const DecisionSeen& seen) {
    for (const auto& [number, allocation] : seen.after) {
      const std::string at =
          StrCat(options.shape.GroupOf(allocation.front()), ":", allocation.size());
      if (!way.ends_with(at)) way += StrCat(way.empty() ? "" : " ", at);
    }
  };
  const auto run = Play(trace, ToyProfiles({"aws", "fast"}), **FindPolicy(policy), options);
  return run.ok() ? way : run.status().message();
}

TEST(Sia, AJobAloneIsTriedOnOneGpuAndThenGoesWhereItIsFastest) {
  const std::string way = WaysOf(ToyTrace({{"a", 0, 1}}), "sia", OptionsOn(TwoTypes()));
  EXPECT_TRUE(way.starts_with("0:1 ") || way.starts_with("1:1 ")) << way;
  EXPECT_TRUE(way.ends_with("1:2")) << way;
}

TEST(Sia, AJobInTheMiddleOfARestartKeepsWhatItHas) {
  // It would grow a round after its start, but a start takes 100 s.
  RunOptions options = OptionsOn(TwoTypes());
  options.resize_s = 100;
  int64_t grew_s = 0;
  options.on_decision = [&](const DecisionSeen& seen) {
    const auto held = seen.after.find(0);
    if (held != seen.after.end() && held->second.size() > 1 && grew_s == 0) grew_s = seen.now_s;
  };
  const auto run =
      Play(ToyTrace({{"a", 0, 1}}), ToyProfiles({"aws", "fast"}), **FindPolicy("sia"), options);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(grew_s, 180) << "started at 60, trains from 160 on";
}

TEST(GoodputTypes, AJobAloneGoesWhereItIsFastest) {
  const std::string way = WaysOf(ToyTrace({{"a", 0, 1}}), "goodput", OptionsOn(TwoTypes()));
  EXPECT_TRUE(way.ends_with("1:2")) << way;
}

TEST(GoodputTypes, JobsThatAreAlikeDoNotTakeTurns) {
  // A start costs a job that waits as much as a change costs one that trains.
  Trace trace{"t", "swell", {}};
  for (const char* name : {"a", "b", "c", "d"}) {
    trace.jobs.push_back({name, "", 0, 1, "", 0, 3000});
  }
  RunOptions options = OptionsOn(ClusterShape({{1, 1, "aws"}, {1, 1, "fast"}}));
  options.resize_s = 250;
  const auto run = Play(trace, ProfileLibrary(), **FindPolicy("goodput"), options);
  ASSERT_TRUE(run.ok());
  for (const JobOutcome& job : run->jobs) EXPECT_LE(job.restarts, 2) << job.name;
}

TEST(GoodputTypes, AJobThatWaitsGainsWeightWithItsAge) {
  RunOptions options = OptionsOn(ClusterShape({{1, 1, "aws"}, {1, 1, "fast"}}));
  std::string early;
  std::string late;
  options.on_decision = [&](const DecisionSeen& seen) {
    for (const ActiveJob& active : seen.jobs) {
      if (active.job->service() > 0) continue;
      const std::string reason = seen.policy.Reason(active);
      if (seen.now_s == active.job->trace().submitted_s) early = reason;
      if (seen.now_s == 3000) late = reason;
    }
  };
  Trace trace{"t", "swell", {}};
  for (const char* name : {"a", "b", "c"}) {
    trace.jobs.push_back({name, "", 0, 1, "", 0, 6000});
  }
  ASSERT_TRUE(Play(trace, ProfileLibrary(), **FindPolicy("goodput"), options).ok());
  EXPECT_TRUE(early.ends_with("its weight is 1.00 after 0 GPU-seconds and 0 s")) << early;
  EXPECT_TRUE(late.ends_with("its weight is 1.05 after 0 GPU-seconds and 3000 s")) << late;
}

// How many GPUs each tenant holds after a decision; tenants without GPUs are left out.
std::map<std::string, int> HeldBy(const DecisionSeen& seen) {
  std::map<std::string, int> held;
  for (const ActiveJob& active : seen.jobs) {
    const auto has = seen.after.find(active.number);
    if (has == seen.after.end()) continue;
    held[active.job->trace().tenant] += static_cast<int>(has->second.size());
  }
  return held;
}

TEST(GoodputTypes, AProjectHasItsQuotaOfEachTypeAndLendsWhatItDoesNotUse) {
  RunOptions options = OptionsOn(ClusterShape({{1, 4, "aws"}, {1, 4, "fast"}}));
  options.shape.tenants = {{"red", {4, 1}}, {"blue", {4, 1}}};
  Trace trace{"t", "swell", {}};
  for (int i = 0; i < 6; ++i) {
    trace.jobs.push_back({StrCat("red-", i), "red", 0, 1, "", 0, 4000, 4});
  }
  // Later, and of an age and service that count for more or less: its quota is its quota.
  for (int i = 0; i < 2; ++i) {
    trace.jobs.push_back({StrCat("blue-", i), "blue", 1000, 2, "", 0, 500, 4});
  }
  int alone = 0, together = 0;
  options.on_decision = [&](const DecisionSeen& seen) {
    std::map<std::string, int> jobs;
    for (const ActiveJob& active : seen.jobs) ++jobs[active.job->trace().tenant];
    std::map<std::string, int> held = HeldBy(seen);
    if (jobs["red"] < 4) return;  // they can use all of it
    if (jobs["blue"] == 2) {
      EXPECT_EQ(held["red"], 4) << "at " << seen.now_s;
      EXPECT_EQ(held["blue"], 4) << "at " << seen.now_s;
      ++together;
    } else if (jobs["blue"] == 0) {
      EXPECT_EQ(held["red"], 8) << "at " << seen.now_s;
      ++alone;
    }
  };
  ASSERT_TRUE(Play(trace, ProfileLibrary(), **FindPolicy("goodput"), options).ok());
  EXPECT_GT(alone, 0);
  EXPECT_GT(together, 0);
}

TEST(GoodputTypes, AHigherPriorityTakesAllThatItCanUse) {
  RunOptions options = OptionsOn(ClusterShape({{1, 2, "aws"}, {1, 2, "fast"}}));
  Trace trace{"t", "swell", {}};
  trace.jobs.push_back({"low", "low", 0, 1, "", 0, 3000, 2});
  for (const char* name : {"high-0", "high-1"}) {
    trace.jobs.push_back({name, "high", 100, 2, "", 0, 500, 2, 2, 10});
  }
  int seen_both = 0;
  options.on_decision = [&](const DecisionSeen& seen) {
    if (seen.jobs.size() < 3) return;
    EXPECT_EQ(HeldBy(seen), (std::map<std::string, int>{{"high", 4}})) << "at " << seen.now_s;
    ++seen_both;
  };
  ASSERT_TRUE(Play(trace, ProfileLibrary(), **FindPolicy("goodput"), options).ok());
  EXPECT_GT(seen_both, 0);
}

TEST(GoodputTypes, AJobStartsHoweverMuchAStartCosts) {
  RunOptions options = OptionsOn(ClusterShape({{1, 1, "aws"}, {1, 1, "fast"}}));
  options.resize_s = 3600;
  Trace trace{"t", "swell", {}};
  for (const char* name : {"a", "b"}) trace.jobs.push_back({name, "", 0, 1, "", 0, 100});
  const auto run = Play(trace, ProfileLibrary(), **FindPolicy("goodput"), options);
  ASSERT_TRUE(run.ok()) << run.status().message();
  for (const JobOutcome& job : run->jobs) EXPECT_EQ(job.ended_s, 3700) << job.name;
}

TEST(GoodputTypes, NoJobTrainsBelowItsMinimumAndAnyMinimumIsASize) {
  RunOptions options = OptionsOn(ClusterShape({{1, 4, "aws"}, {1, 8, "fast"}}));
  Trace trace{"t", "swell", {}};
  for (const char* name : {"a", "b", "c"}) {
    trace.jobs.push_back({name, "", 0, 3, "", 0, 600, 7, 3});
  }
  std::set<size_t> sizes;
  options.on_decision = [&](const DecisionSeen& seen) {
    for (const auto& [number, allocation] : seen.after) sizes.insert(allocation.size());
  };
  ASSERT_TRUE(Play(trace, ProfileLibrary(), **FindPolicy("goodput"), options).ok());
  EXPECT_GE(*sizes.begin(), 3u);
}

// Two jobs for two GPUs, one of which is twice as fast: with max-min each has its turn there.
TEST(Gavel, MaxMinSharesTheFastGpu) {
  const ClusterShape shape({{1, 1, "aws"}, {1, 1, "fast"}});
  RunOptions options = OptionsOn(shape);
  std::map<int, std::set<int>> groups;
  options.on_decision = [&](const DecisionSeen& seen) {
    for (const auto& [number, allocation] : seen.after) {
      groups[number].insert(shape.GroupOf(allocation.front()));
    }
  };
  Trace trace = ToyTrace({{"a", 0, 1}, {"b", 0, 1}});
  const ProfileLibrary library = ToyProfiles({"aws", "fast"});
  options.round_s = 60;
  ASSERT_TRUE(Play(trace, library, **FindPolicy("max-min"), options).ok());
  EXPECT_EQ(groups[0], (std::set<int>{0, 1}));
  EXPECT_EQ(groups[1], (std::set<int>{0, 1}));
}

TEST(Gavel, MaxSumGivesTheFastGpuToWhomMakesMoreStepsOfIt) {
  // With half the batch, steps take half the time.
  const ClusterShape shape({{1, 1, "aws"}, {1, 1, "fast"}});
  RunOptions options = OptionsOn(shape);
  std::map<int, int> first;
  options.on_decision = [&](const DecisionSeen& seen) {
    for (const auto& [number, allocation] : seen.after) {
      first.try_emplace(number, shape.GroupOf(allocation.front()));
    }
  };
  Trace trace = ToyTrace({{"a", 0, 1}, {"b", 0, 1}});
  trace.jobs[0].batch = 16;
  const ProfileLibrary library = ToyProfiles({"aws", "fast"});
  ASSERT_TRUE(Play(trace, library, **FindPolicy("max-sum"), options).ok());
  EXPECT_EQ(first, (std::map<int, int>{{0, 0}, {1, 1}}));
}

TEST(Gavel, AJobThatIsWiderThanEachTypeIsRefused) {
  const std::string said = Outcome(ToyTrace({{"a", 0, 5}}), "max-min", TwoTypes());
  EXPECT_EQ(said, "toy.csv: job \"a\" requests 5 GPUs, the cluster has 4 of one type");
}

// For random jobs: a job's GPUs are of one type, no node gives more than it has (the simulator
// checks), every job ends, and a second run decides the same.
TEST(Types, AnyTracePlaysToItsEndOnOneTypeAtATime) {
  const ProfileLibrary library = ToyProfiles({"aws", "fast"});
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Random random(seed);
    Trace trace{"random", "pollux", {}};
    for (uint64_t i = 0; i < 12; ++i) {
      TraceJob job{StrCat("job-", i), "", static_cast<int64_t>(random.Below(2000)), 1, "", 0, 0};
      if (random.OneIn(3)) {
        job.duration_s = 1 + static_cast<int64_t>(random.Below(3000));
      } else {
        job.application = "toy";
        job.batch = 8 << random.Below(4);
      }
      trace.jobs.push_back(job);
    }
    for (const Rules rules : {Rules::kPollux, Rules::kSia}) {
      RunOptions options = OptionsOn(
          ClusterShape({{1 + static_cast<int>(random.Below(3)), 2, "aws"}, {2, 4, "fast"}}), rules);
      options.on_decision = [&options](const DecisionSeen& seen) {
        for (const auto& [number, allocation] : seen.after) {
          for (int node : allocation) {
            ASSERT_EQ(options.shape.GroupOf(node), options.shape.GroupOf(allocation.front()));
          }
        }
      };
      for (const PolicyKind& kind : Policies()) {
        if (!kind.many_types) continue;
        const auto run = Play(trace, library, kind, options);
        ASSERT_TRUE(run.ok()) << kind.name << ", seed " << seed << ": " << run.status().message();
        for (const JobOutcome& job : run->jobs) {
          ASSERT_GT(job.ended_s, job.started_s) << kind.name << " " << job.name;
        }
        EXPECT_EQ(run->hash, Play(trace, library, kind, options)->hash) << kind.name;
      }
    }
  }
}

}  // namespace
}  // namespace swell::lab
