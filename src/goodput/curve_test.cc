#include "goodput/curve.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace swell::goodput {
namespace {

TEST(Curve, UtilityIsTheLogarithm) {
  EXPECT_EQ(UtilityOf(kOne), 0);
  EXPECT_EQ(UtilityOf(2 * kOne), kUtilityOne);
  EXPECT_EQ(UtilityOf(kOne / 2), -kUtilityOne);
  for (int64_t value : {3LL, 999'999LL, 1'500'000LL, 61'803'399LL, 1'000'000'000'000LL}) {
    const double expected = std::log2(static_cast<double>(value) / kOne) * kUtilityOne;
    EXPECT_NEAR(static_cast<double>(UtilityOf(value)), expected, 2) << value;
  }
}

TEST(Curve, IsLinearBetweenPointsAndConstantBeyond) {
  const Curve curve({{2, kOne}, {4, 1'800'000}, {8, 2'000'000}});
  EXPECT_EQ(curve.At(1), kOne / 2);
  EXPECT_EQ(curve.At(2), kOne);
  EXPECT_EQ(curve.At(3), 1'400'000);
  EXPECT_EQ(curve.At(6), 1'900'000);
  EXPECT_EQ(curve.At(100), 2'000'000);
  EXPECT_EQ(curve.Gain(8), 0);
  EXPECT_GT(curve.Gain(2), curve.Gain(4));
}

TEST(Curve, LooksBeyondASizeThatDoesNotPay) {
  const Curve curve({{1, kOne}, {2, kOne}, {3, kOne}, {4, 4 * kOne}});
  EXPECT_EQ(curve.Gain(1), 2 * kUtilityOne / 3);
  EXPECT_EQ(curve.Loss(4, 1), 2 * kUtilityOne);
  EXPECT_EQ(curve.Loss(3, 1), 0);
}

TEST(Curve, LeavesOutWhatMakesNoSense) {
  const Curve curve({{0, kOne}, {2, kOne}, {2, 5}, {1, 7}, {3, -1}, {4, 2 * kOne}});
  EXPECT_EQ(curve, Curve({{2, kOne}, {4, 2 * kOne}}));
  std::vector<CurvePoint> many;
  for (int32_t i = 1; i <= 1000; ++i) many.push_back({i, i * kOne});
  EXPECT_EQ(Curve(many).points().size(), kCurvePointsMax);
  EXPECT_TRUE(Curve(std::vector<CurvePoint>{}).empty());
}

TEST(Curve, SaysChangesInPercent) {
  const Curve curve({{1, kOne}, {2, 1'610'000}, {3, 1'612'000}});
  EXPECT_EQ(ChangeText(curve, 1, 2), "+61 %");
  EXPECT_EQ(ChangeText(curve, 2, 1), "-38 %");
  EXPECT_EQ(ChangeText(curve, 2, 3), "0 %");
  EXPECT_EQ(MoreText(curve, 1, 2), "61 % more");
  EXPECT_EQ(MoreText(curve, 2, 1), "38 % less");
  EXPECT_EQ(MoreText(curve, 2, 3), "no more");
}

// Jobs by Amdahl's law, each with a share of serial work of its own.
struct Jobs {
  std::vector<Curve> truth, measured;
};

Jobs RandomJobs(Random& random, double noise) {
  Jobs jobs;
  for (int j = 0; j < 6; ++j) {
    const double serial = 0.02 + 0.6 * random.Unit();
    std::vector<CurvePoint> truth, measured;
    for (int k = 1; k <= 16; ++k) {
      const double speed = 1 / (serial + (1 - serial) / k);
      const double seen = speed * (1 + noise * (2 * random.Unit() - 1));
      truth.push_back({k, static_cast<int64_t>(speed * kOne)});
      measured.push_back({k, static_cast<int64_t>(seen * kOne)});
    }
    jobs.truth.emplace_back(truth);
    jobs.measured.emplace_back(measured);
  }
  return jobs;
}

// One member each, and what is left where it is worth most.
std::vector<int> Give(const std::vector<Curve>& curves, int gpus) {
  std::vector<int> sizes(curves.size(), 1);
  for (int left = gpus - static_cast<int>(curves.size()); left > 0; --left) {
    size_t best = 0;
    for (size_t j = 1; j < curves.size(); ++j) {
      if (curves[j].Gain(sizes[j]) > curves[best].Gain(sizes[best])) best = j;
    }
    ++sizes[best];
  }
  return sizes;
}

int64_t TotalUtility(const std::vector<Curve>& curves, const std::vector<int>& sizes) {
  int64_t total = 0;
  for (size_t j = 0; j < curves.size(); ++j) total += curves[j].Utility(sizes[j]);
  return total;
}

TEST(Curve, OneMoreGpuNeverLowersTotalUtility) {
  Random random(11);
  for (int round = 0; round < 20; ++round) {
    const Jobs jobs = RandomJobs(random, 0);
    int64_t before = 0;
    for (int gpus = 6; gpus <= 48; ++gpus) {
      const int64_t total = TotalUtility(jobs.truth, Give(jobs.truth, gpus));
      EXPECT_GE(total, before) << gpus;
      before = total;
    }
  }
}

// The geometric mean of the jobs' goodput.
TEST(Curve, NoiseOfOneFifthCostsLessThanOneTwentieth) {
  Random random(12);
  double sum = 0;
  constexpr int kRounds = 40;
  for (int round = 0; round < kRounds; ++round) {
    const Jobs jobs = RandomJobs(random, 0.2);
    const auto best = TotalUtility(jobs.truth, Give(jobs.truth, 32));
    const auto noisy = TotalUtility(jobs.truth, Give(jobs.measured, 32));
    const double lost = static_cast<double>(best - noisy) / kUtilityOne / 6;
    sum += 1 - std::exp2(-lost);
  }
  EXPECT_LT(sum / kRounds, 0.05);
}

TEST(LastsFor, GrowsWithTheRun) {
  using std::chrono::hours;
  using std::chrono::seconds;
  EXPECT_EQ(LastsFor(seconds(-5)), seconds(120));
  EXPECT_EQ(LastsFor(hours(1)), seconds(300));
  EXPECT_EQ(RunUntilLasts(seconds(300)), hours(1));
  EXPECT_EQ(RunUntilLasts(seconds(60)), seconds(0));
}

}  // namespace
}  // namespace swell::goodput
