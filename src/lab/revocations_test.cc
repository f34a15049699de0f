#include "lab/revocations.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "lab/lab_test_util.h"

namespace swell::lab {
namespace {

RevocationOptions Often(double per_node_day) {
  RevocationOptions options;
  options.per_node_day = per_node_day;
  return options;
}

// A job of which only the duration is known.
TraceJob Known(const char* name, int gpus, int64_t duration_s, int gpus_min = 0) {
  TraceJob job{name, "", 0, gpus, "", 0, duration_s};
  job.gpus_min = gpus_min;
  return job;
}

RunOutcome Played(const Trace& trace, std::string_view policy, const RunOptions& options) {
  auto run = Play(trace, ToyProfiles(), **FindPolicy(policy), options);
  SWELL_CHECK_MSG(run.ok(), run.status().message());
  return std::move(*run);
}

TEST(Exponential, HasTheMeanAndTheTailOfItsDistribution) {
  Random random(7);
  constexpr int kDraws = 20'000;
  double sum = 0;
  int beyond = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double one = Exponential(random);
    sum += one;
    beyond += one > 2 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kDraws, 1, 0.03);
  EXPECT_NEAR(static_cast<double>(beyond) / kDraws, 0.1353, 0.01);
}

TEST(Revocations, ANodeIsBackAfterTheNoticeAndItsTimeAway) {
  RevocationOptions options = Often(5);
  options.notice_s = 40;
  options.away_s = 600;
  Revocations revocations(16, options);
  std::map<int, int64_t> gone;  // since when
  int64_t last = 0, announced = 0;
  while (last < int64_t{10} * 86'400) {
    const NodeChange change = revocations.Take();
    EXPECT_GE(change.at_s, last);
    last = change.at_s;
    if (change.returns) {
      EXPECT_EQ(change.at_s, gone.at(change.node) + 640);
      gone.erase(change.node);
    } else {
      EXPECT_TRUE(gone.emplace(change.node, change.at_s).second);
      ++announced;
    }
  }
  EXPECT_NEAR(static_cast<double>(announced), 16 * 10 * 5 * 0.965, 80);
}

TEST(Revocations, TheTimesOfASeedAreTheSameOnEveryMachine) {
  Revocations one(3, Often(5));
  std::string text;
  for (int i = 0; i < 4; ++i) {
    const NodeChange change = one.Take();
    text += StrCat(change.node, change.returns ? " returns " : " goes ", change.at_s, ", ");
  }
  EXPECT_EQ(text, "2 goes 11338, 2 returns 13168, 2 goes 23663, 2 returns 25493, ");
  EXPECT_EQ(Revocations(3, Often(0)).NextAt(), INT64_MAX);
}

TEST(SimJob, LosesWhatItTrainedSinceTheLastCheckpoint) {
  const TraceJob trace = Known("a", 2, 1000);
  JobOptions options;
  options.save_every_s = 100;
  SimJob job(trace, {}, options);
  job.Place({2}, 0);
  job.Advance(0, 30 + 250);  // checkpoints at 130 and 230
  job.LoseUnsaved();
  EXPECT_EQ(job.lost_gpu_s(), 50 * 2);
  EXPECT_EQ(job.paused_gpu_s(), 30 * 2);
  EXPECT_EQ(job.service(), 280 * 2);
  EXPECT_EQ(job.RemainingSeconds({2}), 800);
  // A change of its GPUs saves what it has.
  job.Place({2}, 280);
  job.Advance(280, 30 + 70);
  job.Place({}, 380);
  job.LoseUnsaved();
  EXPECT_EQ(job.lost_gpu_s(), 50 * 2);
  EXPECT_EQ(job.RemainingSeconds({2}), 730);
}

TEST(SimJob, TrainsALostEpochAgain) {
  const Trace trace = ToyTrace({{"a", 0, 1}});
  const ProfileLibrary profiles = ToyProfiles();
  JobOptions options;
  options.save_every_s = 150;
  SimJob job(trace.jobs[0], {profiles.Find("toy", "aws")}, options);
  job.Place({1}, 0);
  job.Advance(0, 30 + 290);  // two epochs of 100 steps of 2 s: it is in the second
  EXPECT_EQ(job.epoch(), 1);
  job.LoseUnsaved();
  EXPECT_EQ(job.epoch(), 0);
  EXPECT_EQ(job.lost_gpu_s(), 140);
  EXPECT_EQ(job.RemainingSeconds({1}), 250);
  job.Place({1}, 320);
  job.Advance(320, 30 + 250);
  EXPECT_TRUE(job.ended());
  EXPECT_EQ(job.ended_s(), 600);
}

// One node, one GPU, one revocation: at `notice_at`. The job begins at 0 and trains from 30 on.
struct OneNode {
  Trace trace{"t", "philly", {Known("a", 1, 10'000)}};
  RunOptions options;
  int64_t notice_at = 0;

  OneNode() {
    options.shape = {1, 1};
    options.revocations = Often(3);
    for (int64_t next = 0; notice_at < 1000 || notice_at > 9000 || next < 20'000;) {
      ++options.revocations->seed;
      Revocations revocations(1, *options.revocations);
      notice_at = revocations.Take().at_s;
      revocations.Take();
      next = revocations.NextAt();
    }
  }
};

TEST(Simulator, AJobIsSavedWithinTheNoticeAndGoesOnWhenTheNodeIsBack) {
  OneNode one;
  const RunOutcome run = Played(one.trace, "fifo", one.options);
  // Notice and absence, and another start.
  EXPECT_EQ(run.jobs[0].ended_s, 30 + 10'000 + 30 + 1800 + 30);
  EXPECT_EQ(run.jobs[0].restarts, 1);
  EXPECT_EQ(run.revocations, 1);
  EXPECT_EQ(run.gpu_s.held, 10'060);
  EXPECT_EQ(run.gpu_s.paused, 60);
  EXPECT_EQ(run.gpu_s.lost, 0);
  EXPECT_EQ(run.gpu_s.vacated, 30);
  EXPECT_DOUBLE_EQ(run.gpu_s.UsefulPart(), 10'000.0 / 10'090);
}

TEST(Simulator, AJobLosesWhatTheNoticeIsTooShortToSave) {
  OneNode one;
  one.options.revocations->save_s = 31;
  const RunOutcome run = Played(one.trace, "fifo", one.options);
  const int64_t lost = (one.notice_at - 30) % 600;
  ASSERT_GT(lost, 0);
  EXPECT_EQ(run.jobs[0].ended_s, 30 + 10'000 + lost + 30 + 1800 + 30);
  EXPECT_EQ(run.jobs[0].lost_gpu_s, lost);
  EXPECT_EQ(run.gpu_s.held, 10'060 + lost);
}

TEST(Simulator, AJobThatCanShrinkKeepsItsStateOnTheNodeThatStays) {
  Trace trace{"t", "swell", {Known("a", 2, 100'000, 1)}};
  RunOptions options;
  options.shape = {2, 1};
  options.revocations = Often(5);
  options.revocations->away_s = 60;
  options.revocations->save_s = 3600;
  std::vector<std::string> sizes;
  options.on_decision = [&](const DecisionSeen& seen) {
    const size_t there = seen.after.empty() ? 0 : seen.after.at(0).size();
    sizes.push_back(StrCat(there, " of ", seen.shape.gpus()));
  };
  const RunOutcome elastic = Played(trace, "goodput", options);
  EXPECT_GE(elastic.revocations, 1);
  const std::set<std::string> seen(sizes.begin(), sizes.end());
  EXPECT_EQ(seen, (std::set<std::string>{"1 of 1", "2 of 2"}));
  EXPECT_EQ(elastic.gpu_s.lost, 0);
  const RunOutcome rigid = Played(trace, "fifo", options);
  EXPECT_GT(rigid.gpu_s.lost, 0);
  EXPECT_GT(rigid.jobs[0].ended_s, elastic.jobs[0].ended_s);
}

TEST(Simulator, ARunWithoutRevocationsIsItsOwnMeasure) {
  const Trace trace = ToyTrace({{"a", 0, 1}, {"b", 10, 2}});
  RunOptions options;
  options.shape = {2, 2};
  const RunOutcome before = Played(trace, "goodput", options);
  options.revocations = Often(0);
  RunOutcome run = Played(trace, "goodput", options);
  EXPECT_EQ(run.hash, before.hash);
  ASSERT_TRUE(AddUndisturbed(trace, ToyProfiles(), **FindPolicy("goodput"), options, run).ok());
  EXPECT_EQ(run.undisturbed_gpu_s->UsefulPart(), run.gpu_s.UsefulPart());
}

// Many small jobs of two tenants with a quota of half the cluster each, and one without.
Trace Crowd(int jobs, int64_t duration_s) {
  Trace trace{"crowd", "swell", {}};
  Random random(11);
  for (int i = 0; i < jobs; ++i) {
    const char* tenants[] = {"one", "two", "guest"};
    TraceJob job = Known("", 1, duration_s / 10 + static_cast<int64_t>(random.Below(duration_s)));
    job.name = StrCat("job-", i);
    job.tenant = tenants[random.Below(3)];
    job.submitted_s = static_cast<int64_t>(random.Below(uint64_t{250} * jobs));
    trace.jobs.push_back(job);
  }
  return trace;
}

TEST(Simulator, QuotasHoldWhileNodesGoAndComeBack) {
  const Trace trace = Crowd(150, 6000);
  const std::map<std::string, int> quotas{{"one", 4}, {"two", 4}, {"guest", 0}};
  for (const char* policy : {"fair", "goodput"}) {
    RunOptions options;
    options.shape = {4, 2};
    for (const auto& [tenant, quota] : quotas) options.shape.tenants[tenant].quota = quota;
    options.revocations = Often(40);
    int tight = 0;
    options.on_decision = [&](const DecisionSeen& seen) {
      std::map<std::string, int> held;
      std::set<std::string> waiting;
      for (const ActiveJob& active : seen.jobs) {
        const auto has = seen.after.find(active.number);
        const std::string& tenant = active.job->trace().tenant;
        if (has == seen.after.end()) {
          waiting.insert(tenant);
        } else {
          ++held[tenant];
          ASSERT_FALSE(seen.shape.away.contains(has->second.front())) << policy;
        }
      }
      for (const std::string& poor : waiting) {
        if (held[poor] >= quotas.at(poor)) continue;
        ++tight;
        for (const auto& [rich, gpus] : held) {
          EXPECT_LE(gpus, quotas.at(rich))
              << policy << ": " << rich << " holds what is due to " << poor << " at " << seen.now_s;
        }
      }
    };
    const RunOutcome run = Played(trace, policy, options);
    EXPECT_GT(run.revocations, 20) << policy;
    EXPECT_GT(tight, 0) << policy;
  }
}

TEST(Simulator, GangsStayWholeWhileNodesGoAndComeBack) {
  Trace trace = Crowd(10, 800);
  for (size_t i = 0; i < trace.jobs.size(); ++i) trace.jobs[i].gpus = 1 + static_cast<int>(i) % 5;
  for (const PolicyKind& kind : Policies()) {
    if (!kind.nodes_go) continue;
    RunOptions options;
    options.shape = {4, 2};
    options.revocations = Often(200);
    options.revocations->away_s = 300;
    options.on_decision = [&](const DecisionSeen& seen) {
      for (const ActiveJob& active : seen.jobs) {
        const auto has = seen.after.find(active.number);
        if (has == seen.after.end()) continue;
        const auto wanted = static_cast<size_t>(active.job->trace().gpus);
        if (!kind.resizes) {
          ASSERT_EQ(has->second.size(), wanted) << kind.name;
        }
        for (int node : has->second) ASSERT_FALSE(seen.shape.away.contains(node)) << kind.name;
      }
    };
    const RunOutcome one = Played(trace, kind.name, options);
    EXPECT_GT(one.revocations, 5) << kind.name;
    for (const JobOutcome& job : one.jobs) EXPECT_GT(job.ended_s, 0) << kind.name;
    EXPECT_EQ(one.hash, Played(trace, kind.name, options).hash) << kind.name;
    options.revocations->seed = 2;
    EXPECT_NE(one.hash, Played(trace, kind.name, options).hash) << kind.name;
  }
}

TEST(Simulator, APolicyThatDoesNotKnowOfRevocationsIsRefused) {
  RunOptions options;
  options.shape = {2, 1};
  options.revocations = Often(1);
  const Trace trace = ToyTrace({{"a", 0, 1}});
  const ProfileLibrary profiles = ToyProfiles({"aws", "fast"});
  const auto sia = Play(trace, profiles, **FindPolicy("sia"), options);
  EXPECT_EQ(sia.status().message().find("policy sia does not know that nodes are revoked; these "
                                        "do: goodput, recurring, "),
            0u);
  options.shape = ClusterShape({{1, 1, "aws"}, {1, 1, "fast"}});
  const auto types = Play(trace, profiles, **FindPolicy("goodput"), options);
  EXPECT_EQ(types.status().message(),
            "nodes are revoked on a cluster with GPUs of one type, not 1x1:aws,1x1:fast");
}

}  // namespace
}  // namespace swell::lab
