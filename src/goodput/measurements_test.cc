#include "goodput/measurements.h"

#include <cmath>

#include <gtest/gtest.h>

namespace swell::goodput {
namespace {

Measurements Of(const std::map<int, double>& speeds) {
  Measurements measurements;
  for (const auto& [members, speed] : speeds) {
    measurements.Add(members, {.nodes = 1, .speed = speed, .step_s = 1 / speed, .sync_s = {}});
  }
  return measurements;
}

std::string Text(const std::vector<SizeSpeed>& speeds) {
  std::string text;
  for (const SizeSpeed& at : speeds) {
    text += std::to_string(at.members) + ":" + std::to_string(std::lround(at.speed)) + " " +
            std::string(SourceName(at.source)) + "\n";
  }
  return text;
}

TEST(Measurements, MeansForgetWhatIsLongAgo) {
  Measurements measurements;
  for (int i = 0; i < 4; ++i) measurements.Add(2, {.speed = 100, .step_s = 0.01});
  measurements.Add(2, {.speed = 200, .step_s = 0.01});
  EXPECT_DOUBLE_EQ(measurements.sizes().at(2).speed, 120);
  for (int i = 0; i < 60; ++i) measurements.Add(2, {.speed = 200, .step_s = 0.01});
  EXPECT_GT(measurements.sizes().at(2).speed, 198);
  measurements.Add(2, {.speed = NAN, .step_s = 1});
  measurements.Add(0, {.speed = 1, .step_s = 1});
  measurements.Add(3, {.speed = -1, .step_s = 1});
  EXPECT_EQ(measurements.sizes().size(), 1u);
}

TEST(Measurements, KeepsABoundedNumberOfSizes) {
  Measurements measurements;
  for (int members = 1; members <= 100; ++members) {
    measurements.Add(members, {.speed = 1.0 * members, .step_s = 1});
  }
  EXPECT_EQ(measurements.sizes().size(), kSizesMax);
  EXPECT_EQ(measurements.largest(), 100);
}

TEST(Speeds, OneMeasuredSizePromisesTwiceAsMuchForTwice) {
  const auto speeds = SpeedsOf(Of({{2, 100}}), {1, 8}, {}, {});
  EXPECT_EQ(Text(speeds),
            "1:50 Proportional\n2:100 Measured\n3:150 Optimistic\n4:200 Optimistic\n");
}

TEST(Speeds, ContinueAsTheLastMembersDid) {
  const auto speeds = SpeedsOf(Of({{1, 100}, {3, 120}}), {1, 8}, {}, {});
  EXPECT_EQ(Text(speeds),
            "1:100 Measured\n2:110 Between\n3:120 Measured\n4:130 Optimistic\n5:140 Optimistic\n"
            "6:150 Optimistic\n");
}

TEST(Speeds, FollowFromGpusOfAnotherTypeInProportion) {
  const auto speeds_at = [](const Measurements& here, const MeasurementsByType& others) {
    return Text(SpeedsOf(WithOtherTypes(here, others), {1, 8}, {}, {}));
  };
  const Measurements t4 = Of({{1, 100}, {2, 180}, {4, 240}});
  EXPECT_EQ(speeds_at(Of({{2, 360}}), {{"T4", t4}}),
            "1:200 OtherType\n2:360 Measured\n3:420 Between\n4:480 OtherType\n"
            "5:540 Optimistic\n6:600 Optimistic\n7:660 Optimistic\n8:720 Optimistic\n");
  // A size that was measured on neither lies between two that were.
  EXPECT_EQ(WithOtherTypes(Of({{3, 420}}), {{"T4", t4}}).sizes().at(4).speed, 480);
  // The size that both know says nothing of a type that knows only others.
  EXPECT_EQ(WithOtherTypes(Of({{8, 100}}), {{"T4", t4}}).sizes().size(), 1u);
  EXPECT_EQ(WithOtherTypes({}, {{"T4", t4}}).sizes().size(), 0u);
  EXPECT_EQ(WithOtherTypes(t4, {{"V100", {}}}).sizes().size(), 3u);
}

TEST(Speeds, AreWithinTheBounds) {
  EXPECT_TRUE(SpeedsOf({}, {1, 8}, {}, {}).empty());
  EXPECT_EQ(SpeedsOf(Of({{2, 100}}), {2, 3}, {}, {}).size(), 2u);
  EXPECT_EQ(SpeedsOf(Of({{1, 100}}), {4, 8}, {}, {}).front().members, 4);
  const auto many = SpeedsOf(Of({{600, 100}}), {1, 1000}, {}, {});
  EXPECT_LE(many.size(), kCurvePointsMax);
  EXPECT_EQ(many.back().members, 1000);
  EXPECT_FALSE(CurveOf(many).empty());
}

// Step times of a job with a constant batch of 1024 records on one node.
Measurements OfModel(const StepParameters& truth, const std::vector<int>& sizes, double noise) {
  Measurements measurements;
  int sign = 1;
  for (int members : sizes) {
    const double local = 1024.0 / members;
    const double step = truth.LastPassTime(1, members, local) * (1 + sign * noise);
    sign = -sign;
    measurements.Add(members, {.nodes = 1,
                               .speed = 1024 / step,
                               .step_s = step,
                               .sync_s = step - truth.ComputeTime(local)});
  }
  return measurements;
}

TEST(FitOf, PredictsSizesThatWereNotMeasured) {
  const StepParameters truth{0.02, 0.001, 0.1, 0.01, 0.06, 0.004, 1.3};
  const Measurements measurements = OfModel(truth, {1, 2, 3}, 0);
  const Fit fit = FitOf(measurements, BatchRule::kConstant);
  EXPECT_TRUE(fit.healthy) << fit.message;
  const auto speeds = SpeedsOf(measurements, {1, 6}, fit, {});
  ASSERT_EQ(speeds.size(), 6u);
  for (const SizeSpeed& at : speeds) {
    const double expected = 1024 / truth.LastPassTime(1, at.members, 1024.0 / at.members);
    EXPECT_NEAR(at.speed, expected, 0.15 * expected) << at.members;
  }
  EXPECT_EQ(speeds.back().source, Source::kFitted);
}

TEST(FitOf, IsNotUsedWhereItDoesNotFit) {
  Measurements measurements;
  measurements.Add(1, {.speed = 1, .step_s = 1, .sync_s = 0});
  measurements.Add(2, {.speed = 0.1, .step_s = 10, .sync_s = 0.1});
  measurements.Add(3, {.speed = 5, .step_s = 0.2, .sync_s = 0.1});
  const Fit fit = FitOf(measurements, BatchRule::kConstant);
  EXPECT_FALSE(fit.healthy);
  EXPECT_GT(fit.error, kFitErrorMax);
  EXPECT_NE(fit.message.find("so it is not used"), std::string::npos) << fit.message;
  const auto speeds = SpeedsOf(measurements, {1, 6}, fit, {});
  EXPECT_EQ(speeds.back().source, Source::kOptimistic);
}

TEST(Measurements, ForgetsLargerSizesThatWereSeenLongAgo) {
  Measurements measurements;
  for (const auto& [members, at_s] : std::map<int, int64_t>{{1, 10}, {2, 50}, {4, 20}, {8, 60}}) {
    measurements.Add(members, {.speed = 10, .step_s = 0.1, .sync_s = {}, .at_s = at_s});
  }
  measurements.ForgetLarger(2, 55);
  EXPECT_EQ(measurements.sizes().size(), 3u) << "smaller ones are kept";
  EXPECT_FALSE(measurements.sizes().contains(4));
  EXPECT_EQ(measurements.largest(), 8);
}

TEST(FitOf, NeedsTwoSizesWithSynchronisation) {
  const Fit fit = FitOf(Of({{2, 100}, {4, 150}}), BatchRule::kConstant);
  EXPECT_FALSE(fit.healthy);
  EXPECT_EQ(
      fit.message,
      "none yet: it needs 2 sizes with known time for gradients, and has 0; other sizes follow "
      "from the measured ones");
}

int Ask(const std::map<int, double>& measured, int least, int most, int now) {
  return SizeToRequest(SpeedsOf(Of(measured), {least, most}, {}, {}), now);
}

TEST(SizeToRequest, IsTheMostThatPays) {
  EXPECT_EQ(Ask({{1, 100}}, 1, 8, 1), 2) << "twice what was tried";
  EXPECT_EQ(Ask({{1, 100}, {2, 195}}, 1, 8, 2), 4);
  EXPECT_EQ(Ask({{1, 100}, {2, 101}}, 1, 8, 2), 1) << "the second member does nothing";
  EXPECT_EQ(Ask({{1, 100}, {2, 101}}, 2, 8, 2), 2) << "but the minimum stays";
  EXPECT_EQ(Ask({{1, 100}, {2, 190}}, 1, 2, 2), 2);
}

// Members with 64 records each, of which one is the least.
int AskWithNoise(double noise, int now) {
  Measurements measurements;
  for (int members : {1, 2, 4}) {
    measurements.Add(members, {.speed = 100.0 * members, .step_s = 1, .batch = 64.0 * members});
  }
  const BatchFacts batch{.rule = BatchRule::kPerMember, .noise = noise};
  return SizeToRequest(SpeedsOf(measurements, {1, 4}, {}, batch), now);
}

TEST(SizeToRequest, FollowsTheNoise) {
  EXPECT_EQ(AskWithNoise(0, 1), 4) << "not known";
  EXPECT_EQ(AskWithNoise(5000, 1), 4);
  EXPECT_EQ(AskWithNoise(15, 1), 2);
  EXPECT_EQ(AskWithNoise(3, 1), 1);
}

TEST(EfficiencyAt, IsOfARecordAgainstTheLeastBatch) {
  Measurements measurements;
  measurements.Add(2, {.speed = 100, .step_s = 1, .batch = 20, .at_s = 5});
  measurements.Add(4, {.speed = 100, .step_s = 1, .batch = 400, .at_s = 4});
  BatchFacts batch{.rule = BatchRule::kPerMember, .noise = 20};
  EXPECT_DOUBLE_EQ(EfficiencyAt(measurements, batch, 1), 1);
  EXPECT_DOUBLE_EQ(EfficiencyAt(measurements, batch, 2), 30.0 / 40) << "the batch seen last";
  batch.least = 2;
  EXPECT_DOUBLE_EQ(EfficiencyAt(measurements, batch, 4), 40.0 / 60);
  batch.others = 2;
  EXPECT_DOUBLE_EQ(EfficiencyAt(measurements, batch, 4), 40.0 / 50) << "5 records each";
  batch.rule = BatchRule::kConstant;
  EXPECT_DOUBLE_EQ(EfficiencyAt(measurements, batch, 4), 1);
  EXPECT_DOUBLE_EQ(EfficiencyAt({}, {.rule = BatchRule::kPerMember, .noise = 20}, 4), 1);
}

TEST(EfficiencyAt, IsOfTheBatchThatTheJobChose) {
  Measurements measurements;
  const BatchFacts batch{.rule = BatchRule::kChosen, .noise = 40};
  measurements.Add(2, {.speed = 100, .step_s = 1, .batch = 20});
  measurements.Add(4, {.speed = 100, .step_s = 1, .batch = 80});
  for (const auto& [members, expected] :
       std::map<int, double>{{1, 1}, {2, 1}, {3, 1}, {4, 60.0 / 120}, {8, 60.0 / 120}}) {
    EXPECT_DOUBLE_EQ(EfficiencyAt(measurements, batch, members), expected) << members;
  }
  EXPECT_DOUBLE_EQ(EfficiencyAt({}, batch, 4), 1);
}

TEST(SizeToRequest, StaysWhereNothingIsClearlyBetter) {
  EXPECT_EQ(Ask({{2, 100}, {4, 104}}, 2, 4, 2), 2);
  EXPECT_EQ(Ask({{2, 100}, {4, 104}}, 2, 4, 4), 4);
  EXPECT_EQ(Ask({{2, 100}, {4, 108}}, 2, 4, 2), 4);
  EXPECT_EQ(Ask({{2, 100}, {4, 102}}, 2, 4, 4), 2);
}

TEST(SizeToRequest, LooksBeyondASizeThatDoesNotPay) {
  EXPECT_EQ(Ask({{1, 100}, {3, 101}, {4, 380}}, 1, 4, 1), 4);
}

}  // namespace
}  // namespace swell::goodput
