#include "lab/policies/linear_program.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "lab/policies/size_program.h"

namespace swell::lab {
namespace {

double SumOf(const std::vector<double>& gains, const std::vector<double>& values) {
  double sum = 0;
  for (size_t i = 0; i < gains.size(); ++i) sum += gains[i] * values[i];
  return sum;
}

TEST(LinearProgram, FindsTheCornerThatIsWorthMost) {
  // 3x + 5y within x <= 4, 2y <= 12, 3x + 2y <= 18: 36 at (2, 6).
  const auto values = MaximizeWithin({3, 5}, {{{1, 0}, 4}, {{0, 2}, 12}, {{3, 2}, 18}});
  EXPECT_NEAR(values[0], 2, 1e-9);
  EXPECT_NEAR(values[1], 6, 1e-9);
}

TEST(LinearProgram, AVariableThatGainsNothingStaysOut) {
  EXPECT_EQ(MaximizeWithin({-1, 2}, {{{1, 1}, 3}}), (std::vector<double>{0, 3}));
}

TEST(LinearProgram, AVariableWhoseLimitIsLostInRoundingStaysOut) {
  EXPECT_EQ(MaximizeWithin({1, 2}, {{{1, 0}, 3}, {{0, 1e-12}, 1}}), (std::vector<double>{3, 0}));
}

TEST(LinearProgram, EndsWhereTheLargestGainGoesRoundInCircles) {
  // Beale's example.
  const std::vector<double> gains{0.75, -150, 0.02, -6};
  const auto values = MaximizeWithin(
      gains, {{{0.25, -60, -0.04, 9}, 0}, {{0.5, -90, -0.02, 3}, 0}, {{0, 0, 1, 0}, 1}});
  EXPECT_NEAR(SumOf(gains, values), 0.05, 1e-9);
}

// Jobs, each with one of its sizes in parts: the best sum is between the best whole choice and the
// bound that prices give it.
TEST(LinearProgram, AgreesWithTheBoundOfTheSizeProgram) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    const std::vector<int> capacity{8, 6};
    std::vector<std::vector<SizeOption>> jobs(6);
    std::vector<double> gains;
    for (auto& options : jobs) {
      for (int group = 0; group < 2; ++group) {
        for (int gpus : {1, 2, 4}) {
          options.push_back({group, gpus, -static_cast<double>(1 + random.Below(100))});
          gains.push_back(-options.back().cost);
        }
      }
    }
    std::vector<LinearRow> rows(capacity.size() + jobs.size(),
                                {std::vector<double>(gains.size(), 0), 1});
    size_t at = 0;
    for (size_t job = 0; job < jobs.size(); ++job) {
      for (const SizeOption& option : jobs[job]) {
        rows[option.group].coefficients[at] = option.gpus;
        rows[capacity.size() + job].coefficients[at++] = 1;
      }
    }
    for (size_t g = 0; g < capacity.size(); ++g) rows[g].limit = capacity[g];
    const double most = SumOf(gains, MaximizeWithin(gains, rows));
    const SizeChoice choice = ChooseSizes(jobs, capacity, 1);
    EXPECT_NEAR(most, -choice.bound, 0.01) << "seed " << seed;
    EXPECT_GE(most, -choice.cost - 1e-6) << "seed " << seed;
  }
}

}  // namespace
}  // namespace swell::lab
