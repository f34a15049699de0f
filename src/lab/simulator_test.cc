#include "lab/simulator.h"

#include <set>

#include <gtest/gtest.h>

#include "lab/lab_test_util.h"

namespace swell::lab {
namespace {

TEST(Simulator, ARoundSeesAJobAndAStartCostsHalfAMinute) {
  // Seen at 60, 30 s to start, 200 steps of 2 s.
  EXPECT_EQ(Outcome(ToyTrace({{"a", 5, 1}}), "tiresias", {1, 1}), "a 60-490 x0");
  // Two GPUs of one node: steps of 1.5 s.
  EXPECT_EQ(Outcome(ToyTrace({{"a", 5, 2}}), "tiresias", {1, 2}), "a 60-390 x0");
  // Two nodes: 1.75 s.
  EXPECT_EQ(Outcome(ToyTrace({{"a", 5, 2}}), "tiresias", {2, 1}), "a 60-440 x0");
}

TEST(Simulator, GpusFreedWithinARoundWaitForItsEnd) {
  EXPECT_EQ(Outcome(ToyTrace({{"a", 0, 1}, {"b", 10, 1}}), "tiresias", {1, 1}),
            "a 60-490 x0, b 540-970 x0");
}

TEST(Simulator, OnEventsNothingWaitsForARound) {
  EXPECT_EQ(Outcome(ToyTrace({{"a", 0, 1}, {"b", 10, 1}}), "fifo", {1, 1}),
            "a 0-430 x0, b 430-860 x0");
  EXPECT_EQ(Outcome(ToyTrace({{"a", 0, 1}, {"b", 10, 1}}), "fifo", {1, 1}, 60),
            "a 60-490 x0, b 540-970 x0")
      << "unless rounds are asked for";
}

TEST(Simulator, ALongPauseIsPassedOverAndRoundsStayWhereTheyWere) {
  EXPECT_EQ(Outcome(ToyTrace({{"a", 0, 1}, {"b", 100'001, 1}}), "tiresias", {1, 1}),
            "a 60-490 x0, b 100020-100450 x0");
}

TEST(Simulator, APreemptedJobKeepsItsProgress) {
  // a needs 430 s for itself. b, which needs less, comes when a has run for 115 of them (30 to
  // start, 42.5 steps) and holds the GPU from 180 to 420 by rounds (30 + 200 s).
  Trace trace = ToyTrace({{"a", 0, 1}});
  trace.jobs.push_back({"b", "", 130, 1, "", 0, 200});
  EXPECT_EQ(Outcome(trace, "shortest", {1, 1}), "a 60-760 x1, b 180-410 x0");
}

TEST(Simulator, AJobOfWhichOnlyTheDurationIsKnownRunsThatLong) {
  Trace trace{"t", "philly", {}};
  trace.jobs.push_back({"a", "", 0, 2, "", 0, 1000});
  EXPECT_EQ(Outcome(trace, "fifo", {1, 2}), "a 0-1030 x0");
}

TEST(Simulator, ErrorsNameJobAndCluster) {
  EXPECT_EQ(Outcome(ToyTrace({{"a", 0, 3}}), "fifo", {1, 2}),
            "toy.csv: job \"a\" requests 3 GPUs, the cluster has 2");
  Trace trace = ToyTrace({{"a", 0, 1}});
  trace.jobs[0].application = "gpt";
  EXPECT_EQ(
      Outcome(trace, "fifo", {1, 2}),
      "toy.csv: job \"a\": application \"gpt\" has no profile; the profiles are toy (--profiles)");
}

TEST(Simulator, APolicyThatWouldTakeTooMuchMemoryEndsWithAnError) {
  PolicyKind kind = **FindPolicy("fifo");
  kind.bytes = [](const ClusterShape&, size_t jobs) { return 3.0 * (1 << 30) * jobs; };
  RunOptions options;
  options.shape = {1, 2};
  const ProfileLibrary library = ToyProfiles();
  EXPECT_TRUE(Play(ToyTrace({{"a", 0, 1}, {"b", 5000, 1}}), library, kind, options).ok());
  EXPECT_EQ(
      Play(ToyTrace({{"a", 0, 1}, {"b", 1, 1}}), library, kind, options).status().message(),
      "toy.csv, policy fifo: a decision would take 6 GiB of memory for 2 jobs at once on 1x2, "
      "and may take 4; play fewer jobs, or a cluster that fits them better");
  constexpr double kMost = 4.0 * (1 << 30);
  for (const char* name : {"max-min", "max-sum", "pollux"}) {
    const PolicyKind& searches = **FindPolicy(name);
    const ClusterShape types({{16, 4, "a"}, {16, 4, "b"}}), published(16, 4);
    const ClusterShape& shape = searches.many_types ? types : published;
    EXPECT_LT(searches.bytes(shape, 1000), kMost) << name;
    EXPECT_GT(searches.bytes(shape, 1'000'000), kMost) << name;
  }
}

TEST(Simulator, OtherDecisionsGiveAnotherHash) {
  const ProfileLibrary library = ToyProfiles();
  RunOptions options;
  options.shape = {1, 4};
  std::set<uint64_t> hashes;
  for (int gpus : {1, 2, 4}) {
    const auto run = Play(ToyTrace({{"a", 0, gpus}}), library, **FindPolicy("fifo"), options);
    ASSERT_TRUE(run.ok()) << run.status().message();
    hashes.insert(run->hash);
  }
  EXPECT_EQ(hashes.size(), 3u);
}

// The hash is the same on every machine: neither policy uses the C library's logarithms.
TEST(Simulator, PlaysTheExampleThatIsInTheTree) {
  const std::string here = __FILE__;
  const auto trace =
      ReadTrace(here.substr(0, here.rfind("/src/lab/")) + "/examples/lab/two-teams.csv");
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  RunOptions options;
  options.shape = {2, 8};
  for (const auto& [policy, hash] : {std::pair("tiresias", 0x57e651cd12efe14dULL),
                                     std::pair("shortest", 0x8f24b8a910b5273bULL)}) {
    const auto run = Play(*trace, ProfileLibrary(), **FindPolicy(policy), options);
    ASSERT_TRUE(run.ok()) << run.status().message();
    EXPECT_EQ(run->jobs.size(), 120u) << policy;
    EXPECT_EQ(run->hash, hash) << policy;
  }
}

TEST(Simulator, EqualInputGivesEqualDecisions) {
  const Trace trace = ToyTrace({{"a", 0, 1}, {"b", 10, 2}, {"c", 200, 1}, {"d", 205, 2}});
  const ProfileLibrary library = ToyProfiles();
  RunOptions options;
  options.shape = {2, 2};
  for (const PolicyKind& kind : Policies()) {
    const auto one = Play(trace, library, kind, options);
    const auto other = Play(trace, library, kind, options);
    ASSERT_TRUE(one.ok() && other.ok()) << kind.name;
    EXPECT_EQ(one->hash, other->hash) << kind.name;
    EXPECT_NE(one->hash, 0u) << kind.name;
  }
  const auto tiresias = Play(trace, library, **FindPolicy("tiresias"), options);
  const auto optimus = Play(trace, library, **FindPolicy("optimus"), options);
  EXPECT_NE(tiresias->hash, optimus->hash) << "other decisions, another hash";
}

}  // namespace
}  // namespace swell::lab
