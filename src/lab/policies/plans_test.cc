// Jobs with execution plans: what their workloads, curves and policies do together.
#include <map>
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "lab/fair_time.h"
#include "lab/lab_test_util.h"

namespace swell::lab {
namespace {

// "steep" doubles with its GPUs, "flat" hardly gains; "one" and "three" train on that many GPUs
// only; "split" needs 4 of a node or a pair of one, "wide" four nodes of 8, "pairs" two nodes.
ProfileLibrary PlanProfiles() {
  const TempDir dir;
  const std::map<std::string, std::string> rows{{"steep", "ga,1,4\nga,2,2\nga,4,1\ngc,1,2\n"},
                                                {"flat", "ga,1,1\nga,2,0.9\n"},
                                                {"one", "ga,1,1\n"},
                                                {"three", "ga,3,1\n"},
                                                {"split", "141,4,1\n121,2,1\n"},
                                                {"wide", "481,8888,1\n"},
                                                {"pairs", "122,22,2\n124,44,1\n"}};
  for (const auto& [application, text] : rows) {
    const std::string folder = StrCat(dir.path(), "/", application);
    SWELL_CHECK(MakeDirs(folder).ok());
    SWELL_CHECK(WriteFileAtomically(StrCat(folder, "/placements.csv"),
                                    StrCat("exec_plan,placement,iter_time\n", text))
                    .ok());
  }
  auto library = ProfileLibrary::Load(dir.path(), {"aws"});
  SWELL_CHECK_MSG(library.ok(), library.status().message());
  return std::move(*library);
}

TraceJob Job(const std::string& application, int64_t submitted_s, int gpus, int64_t steps) {
  TraceJob job;
  job.name = StrCat(application, "-", submitted_s);
  job.submitted_s = submitted_s;
  job.gpus = gpus;
  job.application = application;
  job.duration_s = steps;
  job.plan = "ga";
  job.steps = steps;
  return job;
}

TraceJob Split(const std::string& plan, int64_t submitted_s, int gpus, int64_t steps) {
  TraceJob job = Job("split", submitted_s, gpus, steps);
  job.plan = plan;
  return job;
}

std::string Played(std::vector<TraceJob> jobs,
                   std::string_view policy,
                   RunOptions options,
                   const ProfileLibrary& library = PlanProfiles()) {
  const Trace trace{"w.csv", "rubick", std::move(jobs)};
  return TextOf(Play(trace, library, **FindPolicy(policy), options));
}

RunOptions On(ClusterShape shape, Rules rules = Rules::kPollux) {
  RunOptions options;
  options.shape = std::move(shape);
  options.rules = rules;
  return options;
}

// GPUs of each job after the decision at an instant.
std::vector<int> HeldAt(int64_t at_s, std::vector<TraceJob> jobs, RunOptions options) {
  const size_t count = jobs.size();
  std::vector<int> held(count);
  options.on_decision = [&](const DecisionSeen& seen) {
    if (seen.now_s != at_s) return;
    for (const auto& [number, allocation] : seen.after) {
      held[number] = static_cast<int>(allocation.size());
    }
  };
  Played(std::move(jobs), "rubick", options);
  return held;
}

TEST(Plans, AJobTakesItsStepsAsFastAsItsPlacement) {
  EXPECT_EQ(Played({Job("steep", 0, 2, 10)}, "fifo", On({1, 4})), "steep-0 0-50 x0");
  RunOptions fastest = On({1, 4});
  fastest.fastest_plans = true;
  EXPECT_EQ(Played({Job("steep", 0, 1, 10)}, "fifo", On({1, 4})), "steep-0 0-70 x0");
  EXPECT_EQ(Played({Job("steep", 0, 1, 10)}, "fifo", fastest), "steep-0 0-50 x0") << "plan gc";
}

TEST(Plans, RubicksRulesCountOneStepMoreAnd260SecondsAResize) {
  EXPECT_EQ(Played({Job("steep", 0, 4, 10)}, "fifo", On({1, 4}, Rules::kRubick)),
            "steep-0 0-271 x0");
}

TEST(Plans, TheFairTimeOfAJobIsTheDurationThatTheTraceSays) {
  const Trace trace{"w.csv", "rubick", {Job("steep", 0, 2, 10), Job("steep", 1, 2, 10)}};
  const ProfileLibrary library = PlanProfiles();
  const PolicyKind& policy = **FindPolicy("goodput");
  const RunOptions options = On({1, 1});
  RunOutcome outcome;
  outcome.jobs = {{"a", 0, 0, 50}, {"b", 1, 1, 50}};
  ASSERT_TRUE(AddFairTimes(trace, library, policy, options, outcome).ok());
  EXPECT_EQ(outcome.jobs[0].fair_s, 20) << "two jobs on one GPU";
}

TEST(Plans, WhatCannotBePlayedIsRefused) {
  EXPECT_EQ(
      Played({Job("steep", 0, 3, 10)}, "fifo", On({1, 4})),
      "w.csv: job \"steep-0\" requests 3 GPUs, and plan \"ga\" of steep was measured on 1, 2, "
      "4");
  EXPECT_EQ(Played({Split("188", 0, 4, 10)}, "fifo", On({1, 4})),
            "w.csv: job \"split-0\": application \"split\" was not measured with plan \"188\" "
            "(--profiles DIR with DIR/split/placements.csv)");
  const std::string any = Played({Job("steep", 0, 2, 10)}, "optimus", On({1, 4}));
  EXPECT_EQ(any.find("w.csv: job \"steep-0\" trains only on numbers of GPUs that its execution "
                     "plan allows, and this policy tries any; these keep to plans, or to the "
                     "requested GPUs: goodput, recurring, rubick, "),
            0u)
      << any;
  const std::string types =
      Played({Job("steep", 0, 2, 10)}, "goodput", On(ClusterShape({{1, 4, "aws"}, {1, 4, "dgx"}})));
  EXPECT_EQ(types.find("w.csv: job \"steep-0\" has an execution plan, and plans were measured on "
                       "one type of GPU"),
            0u)
      << types;
}

// Nodes go often and are soon back.
RunOptions Revoked(ClusterShape shape, Rules rules) {
  RunOptions options = On(std::move(shape), rules);
  options.revocations.emplace();
  options.revocations->per_node_day = 20;
  options.revocations->away_s = 300;
  return options;
}

RunOutcome PlayedAlone(TraceJob job, std::string_view policy, const RunOptions& options) {
  const Trace trace{"w.csv", "rubick", {std::move(job)}};
  auto run = Play(trace, PlanProfiles(), **FindPolicy(policy), options);
  SWELL_CHECK_MSG(run.ok(), run.status().message());
  return std::move(*run);
}

TEST(Plans, AModelThatIsSplitDoesNotTrainOnThePartOfItsNodesThatStays) {
  RunOptions options = Revoked({2, 4}, Rules::kPollux);
  options.revocations->save_s = 3600;
  std::set<std::string> seen_sizes;
  options.on_decision = [&](const DecisionSeen& seen) {
    const size_t held = seen.after.empty() ? 0 : seen.after.begin()->second.size();
    seen_sizes.insert(StrCat(held, " of ", seen.shape.gpus()));
  };
  TraceJob pairs = Job("pairs", 0, 8, 10'000);
  pairs.plan = "124";
  EXPECT_GT(PlayedAlone(pairs, "goodput", options).gpu_s.lost, 0);
  EXPECT_TRUE(seen_sizes.contains("8 of 8"));
  EXPECT_TRUE(seen_sizes.contains("0 of 4"));
  EXPECT_FALSE(seen_sizes.contains("4 of 4")) << "it was measured on two nodes only";
}

TEST(Plans, AJobWithAllOfItsStateOnEachGpuTrainsOnWhereAnotherNodeStays) {
  RunOptions options = Revoked({2, 2}, Rules::kPollux);
  options.revocations->save_s = 3600;
  int shrinks = 0;
  std::optional<double> lost_before;
  options.on_decision = [&](const DecisionSeen& seen) {
    const SimJob& job = *seen.jobs.front().job;
    if (lost_before) {
      EXPECT_EQ(job.lost_gpu_s(), *lost_before);
    }
    lost_before.reset();
    if (job.gpus() != 4 || seen.after.empty() || seen.after.begin()->second.size() != 2) return;
    ++shrinks;
    lost_before = job.lost_gpu_s();
  };
  PlayedAlone(Job("steep", 0, 4, 10'000), "goodput", options);
  EXPECT_GT(shrinks, 0);
}

TEST(Plans, AMoveFromANodeThatGoesCostsAResizeUnderAllRules) {
  RunOptions options = Revoked({3, 1}, Rules::kRubick);
  int moves = 0;
  options.on_decision = [&](const DecisionSeen& seen) {
    moves += !seen.before.empty() && !seen.after.empty() && seen.before != seen.after ? 1 : 0;
  };
  for (const char* policy : {"fifo", "goodput"}) {
    moves = 0;
    const RunOutcome run = PlayedAlone(Job("one", 0, 1, 10'000), policy, options);
    EXPECT_GT(moves, 0) << policy;
    EXPECT_GE(run.jobs[0].restarts, moves) << policy;
    EXPECT_EQ(run.gpu_s.paused, 260 * (1 + run.jobs[0].restarts)) << policy;
  }
}

TEST(Plans, ASplitModelIsRefusedOnNodesThatAreSmallerThanAllThatWereMeasured) {
  const char* refused =
      "w.csv: job \"split-0\" trains only where plan \"141\" of split was measured: on nodes with "
      "more than 2 GPUs (--cluster NODESxGPUS)";
  EXPECT_EQ(Played({Split("141", 0, 4, 10)}, "goodput", On({4, 2})), refused);
  EXPECT_EQ(Played({Split("141", 0, 4, 10)}, "rubick", On({4, 2})), refused);
  EXPECT_EQ(Played({Split("141", 0, 4, 10)}, "fifo", On({4, 2})), "split-0 0-40 x0")
      << "it keeps its size, and runs on any nodes";
}

TEST(Rubick, AJobThatWaitsTakesFromTheFlattestCurve) {
  const std::vector<TraceJob> jobs{Job("flat", 0, 1, 1000), Job("steep", 70, 1, 1000)};
  EXPECT_EQ(HeldAt(60, jobs, On({1, 2})), (std::vector<int>{2, 0})) << "alone, it has all";
  EXPECT_EQ(HeldAt(120, jobs, On({1, 2})), (std::vector<int>{1, 1}));
}

TEST(Rubick, TheFreeGpusOfANodeGoToTheSteepestCurve) {
  // The first job ends at 191 s.
  const std::vector<TraceJob> jobs{Job("three", 0, 3, 100), Job("flat", 70, 1, 1000),
                                   Job("steep", 70, 1, 1000)};
  EXPECT_EQ(HeldAt(120, jobs, On({1, 5})), (std::vector<int>{3, 1, 1}));
  EXPECT_EQ(HeldAt(240, jobs, On({1, 5})), (std::vector<int>{0, 1, 4}));
}

TEST(Rubick, ALargeJobYieldsToSmallOnesAndNotToOthersLikeIt) {
  TraceJob first = Job("wide", 0, 32, 1000), second = Job("wide", 70, 32, 1000);
  first.plan = second.plan = "481";
  EXPECT_EQ(HeldAt(120, {first, second}, On({4, 8})), (std::vector<int>{32, 0}));
  EXPECT_EQ(HeldAt(120, {first, Job("one", 70, 1, 1000)}, On({4, 8})), (std::vector<int>{0, 1}));
}

TEST(Rubick, AJobWithAGuaranteeTakesItFromOnesWithout) {
  std::vector<TraceJob> jobs{Job("steep", 0, 1, 1000), Job("steep", 70, 2, 1000)};
  jobs[0].tenant = "best-effort";
  jobs[1].tenant = "guaranteed";
  EXPECT_EQ(HeldAt(120, jobs, On({1, 2})), (std::vector<int>{2, 0}))
      << "without a quota it takes only what brings it more";
  RunOptions options = On({1, 2});
  options.shape.tenants["guaranteed"].quota = 2;
  EXPECT_EQ(HeldAt(120, jobs, options), (std::vector<int>{0, 2}));
}

TEST(Goodput, JobsMoveTogetherForAModelThatNeedsAWholeNode) {
  // Until 50 s, "three" and a job share the first node; then each node has a job of one GPU.
  EXPECT_EQ(Played({Job("three", 0, 3, 20), Job("one", 0, 1, 1000), Job("one", 1, 1, 1000),
                    Split("141", 60, 4, 100)},
                   "goodput", On({2, 4})),
            "three-0 0-50 x0, one-0 0-1060 x1, one-1 1-1031 x0, split-60 60-190 x0");
}

TEST(Goodput, AModelThatFindsNoPlacementWaits) {
  // One GPU of each node is free, and it needs two of one.
  EXPECT_EQ(Played({Job("three", 0, 3, 20), Job("three", 1, 3, 100), Split("121", 10, 2, 100)},
                   "goodput", On({2, 4})),
            "three-0 0-50 x0, three-1 1-131 x0, split-10 50-180 x0");
}

}  // namespace
}  // namespace swell::lab
