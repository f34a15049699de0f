#include "goodput/step_model.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/random.h"

namespace swell::goodput {
namespace {

StepTime TimeOf(const StepParameters& truth, int nodes, int gpus, int64_t batch) {
  const double step = truth.LastPassTime(nodes, gpus, static_cast<double>(batch));
  return {step, step - truth.ComputeTime(static_cast<double>(batch))};
}

TEST(StepModel, FindsTheParametersItWasMeasuredFrom) {
  const StepParameters truth{0.05, 0.002, 0.08, 0.001, 0.02, 0.0005, 1.5};
  StepMeasurements measured;
  for (const auto& [nodes, gpus] : {std::pair{1, 1}, {1, 2}, {1, 4}, {2, 8}, {4, 16}}) {
    for (int64_t batch : {16, 32, 64, 128}) {
      measured[{nodes, gpus, batch}] = TimeOf(truth, nodes, gpus, batch);
    }
  }
  const StepParameters found = FitSteps(measured, nullptr);
  for (const auto& [nodes, gpus] : {std::pair{1, 3}, {3, 12}, {8, 32}}) {
    const double expected = truth.LastPassTime(nodes, gpus, 96);
    EXPECT_NEAR(found.LastPassTime(nodes, gpus, 96), expected, expected * 0.05) << gpus;
  }
}

TEST(StepModel, NoiseOfOneFifthCostsAFewPercent) {
  const StepParameters truth{0.05, 0.002, 0.08, 0.001, 0.02, 0.0005, 1.5};
  Random random(7);
  StepMeasurements measured;
  for (const auto& [nodes, gpus] : {std::pair{1, 1}, {1, 2}, {1, 4}, {2, 8}, {4, 16}}) {
    for (int64_t batch = 16; batch <= 128; batch += 8) {
      StepTime time = TimeOf(truth, nodes, gpus, batch);
      const double noise = 0.8 + 0.4 * random.Unit();
      measured[{nodes, gpus, batch}] = {time.step_s * noise, time.sync_s * noise};
    }
  }
  const StepParameters found = FitSteps(measured, nullptr);
  for (const auto& [nodes, gpus] : {std::pair{1, 4}, {4, 16}, {8, 32}}) {
    const double expected = truth.LastPassTime(nodes, gpus, 64);
    EXPECT_NEAR(found.LastPassTime(nodes, gpus, 64), expected, expected * 0.2) << gpus;
  }
}

TEST(StepModel, WhatWasNeverMeasuredCountsAsFree) {
  const StepMeasurements measured{{{1, 1, 32}, {0.4, 0}}};
  const StepParameters found = FitSteps(measured, nullptr);
  EXPECT_NEAR(found.LastPassTime(1, 1, 32), 0.4, 0.01);
  EXPECT_NEAR(found.LastPassTime(4, 16, 32), 0.4, 0.01);
}

TEST(StepModel, ALargeBatchPaysWhereGradientsAreNoisy) {
  const StepParameters step{0.1, 0.001, 0.1, 0, 0.1, 0, 1};
  const BatchLimits limits{.initial = 32, .max = 1024, .local_min = 8, .local_max = 128};
  const BatchChoice noisy = ChooseBatch(step, {0, 1}, limits, 1, 4);
  EXPECT_EQ(noisy.local_batch * 4 * (noisy.passes_before + 1), 1024);
  const BatchChoice clean = ChooseBatch(step, {1, 0}, limits, 1, 4);
  EXPECT_EQ(clean.local_batch * 4 * (clean.passes_before + 1), 32);
  EXPECT_GT(noisy.goodput, clean.goodput);
}

TEST(StepModel, AFixedBatchIsSplitOverGpusAndPasses) {
  const BatchLimits limits{.initial = 32, .max = 1024, .local_min = 8, .local_max = 128};
  auto split = [&](int64_t batch, int gpus) {
    const BatchChoice choice = SplitBatch(limits, batch, gpus);
    return std::pair(choice.local_batch, choice.passes_before);
  };
  EXPECT_EQ(split(32, 1), std::pair(int64_t{32}, 0));
  EXPECT_EQ(split(64, 1), std::pair(int64_t{32}, 1)) << "one GPU needs two passes for statistics";
  EXPECT_EQ(split(1000, 3), std::pair(int64_t{112}, 2));
}

}  // namespace
}  // namespace swell::goodput
