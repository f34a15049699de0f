// The whole system under faults, by seed. SWELL_SEED is the first seed, SWELL_SEEDS how many;
// `./dev soak` runs thousands. SWELL_STORY=1 prints the log.
#include "sim/chaos_scenario.h"

#include <cstdlib>
#include <iostream>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "base/test_seeds.h"

namespace swell::sim {
namespace {

constexpr uint64_t kSeeds = 8;

TEST(SystemUnderFaults, KeepsItsPromises) {
  const auto [first, count, replayed] = TestSeeds::FromEnvironment(kSeeds);
  size_t bindings = 0, evictions = 0, watched = 0, answers = 0, conflicts = 0, grown = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(StrCat("replay with SWELL_STORY=1 SWELL_SEED=", seed,
                        " build/dev/src/sim/sim_test --gtest_filter=SystemUnderFaults.*"));
    ChaosScenario scenario(seed);
    scenario.Play();
    for (const std::string& what : scenario.violations()) ADD_FAILURE() << what;
    if (std::getenv("SWELL_STORY") != nullptr) {
      for (const std::string& line : scenario.log()) std::cout << line << '\n';
      std::cout << "seed " << seed << ": " << scenario.Summary() << ", trace "
                << scenario.trace_hash() << '\n';
    }
    bindings += scenario.invariants().bindings();
    evictions += scenario.invariants().evictions();
    watched += scenario.watched();
    answers += scenario.cluster().history().answers_checked();
    conflicts += scenario.cluster().history().conflicts();
    grown += scenario.GrownByGoodput();
    if (HasFailure()) break;
  }
  if (replayed) return;
  // There was something to check.
  EXPECT_GT(bindings, count);
  EXPECT_GT(evictions, 0U);
  EXPECT_GT(watched, 100 * count);
  EXPECT_GT(answers, 100 * count);
  EXPECT_GT(conflicts, count);
  EXPECT_GT(grown, 0U);
}

TEST(SystemUnderFaults, SameSeedSameTrace) {
  auto play = [](uint64_t seed) {
    ChaosScenario scenario(seed);
    scenario.Play();
    return std::pair(scenario.trace_hash(), scenario.log());
  };
  const auto once = play(42);
  EXPECT_EQ(play(42), once);
  EXPECT_NE(play(43).first, once.first);
}

}  // namespace
}  // namespace swell::sim
