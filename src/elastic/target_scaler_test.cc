#include "elastic/target_scaler.h"

#include <gtest/gtest.h>

namespace swell::elastic {
namespace {

using std::chrono::seconds;

struct World {
  TargetPolicy policy{.replicas_min = 1, .replicas_max = 20};
  TargetState state;
  WallTime now{1'000'000'000};
  int64_t replicas = 4;
  TargetDecision last;

  int64_t Look(std::vector<MetricSample> metrics) {
    last = DecideByTargets(policy, now, replicas, replicas, metrics, state);
    now = now + policy.interval;
    return last.desired;
  }
  // Each of them at this value.
  int64_t All(double value, double target) {
    return Look(
        {{.name = "cpu",
          .of_members = std::vector<std::optional<double>>(static_cast<size_t>(replicas), value),
          .target = target}});
  }
  void PassWindow() {
    while (now - *state.since < policy.window) All(50, 50);
    state.asked.clear();
  }
};

TEST(TargetScaler, ScalesByTheRatioOfValueAndTarget) {
  World world;
  EXPECT_EQ(world.All(75, 50), 6);
  EXPECT_EQ(world.last.why, "cpu is 75, its target 50");
  EXPECT_EQ(world.All(54, 50), 4) << "within a tenth";
  EXPECT_EQ(world.All(56, 50), 5);
}

TEST(TargetScaler, KeepsBetweenItsBoundsAndGrowsByStages) {
  World world;
  world.replicas = 2;
  EXPECT_EQ(world.All(1000, 10), 6) << "4 more at most";
  world.replicas = 6;
  EXPECT_EQ(world.All(1000, 10), 12) << "or twice as many";
  world.replicas = 12;
  EXPECT_EQ(world.All(1000, 10), 20) << "never above the maximum";
}

TEST(TargetScaler, ShrinksToTheMostOfTheWindow) {
  World world;
  EXPECT_EQ(world.All(10, 50), 4) << "it has just begun";
  world.PassWindow();
  EXPECT_EQ(world.All(10, 50), 1);
  world.state.asked.clear();
  EXPECT_EQ(world.All(37, 50), 3);
  EXPECT_EQ(world.All(10, 50), 3) << "three were asked for a moment ago";
  world.now = world.now + seconds(301);
  EXPECT_EQ(world.All(10, 50), 1);
}

TEST(TargetScaler, MembersWithoutAValueAreGuessedCarefully) {
  World world;
  world.Look({{.name = "cpu", .of_members = {50, 50, 50, 50}, .target = 50}});
  world.PassWindow();
  // Two at 100 of 50 and two unknown: as if those were idle, which is not growth.
  EXPECT_EQ(world.Look({{.name = "cpu", .of_members = {100, 100, {}, {}}, .target = 50}}), 4);
  EXPECT_EQ(world.Look({{.name = "cpu", .of_members = {200, 200, {}, {}}, .target = 50}}), 8);
  world.state.asked.clear();
  // Idle ones and an unknown one: as if that one were at its target.
  EXPECT_EQ(world.Look({{.name = "cpu", .of_members = {10, 10, 10, {}}, .target = 50}}), 2);
}

TEST(TargetScaler, ANumberAboutAllOfThem) {
  World world;
  MetricSample queue{.name = "queue", .of_all = 30, .target = 5};
  EXPECT_EQ(world.Look({queue}), 6);
  EXPECT_EQ(world.last.why, "queue is 7.5, its target 5");
  queue.average = false;
  queue.target = 20;
  EXPECT_EQ(world.Look({queue}), 6);
  EXPECT_EQ(world.last.why, "queue is 30, its target 20");
}

TEST(TargetScaler, TheMostThatAnyMetricAsksForAndFaultsStopShrinking) {
  World world;
  world.All(50, 50);
  world.PassWindow();
  const MetricSample low{.name = "low", .of_all = 1, .target = 5};
  const MetricSample high{.name = "high", .of_all = 35, .target = 5};
  const MetricSample gone{.name = "gone", .fault = "nobody serves it"};
  EXPECT_EQ(world.Look({low, high}), 7);
  EXPECT_EQ(world.Look({high, gone}), 7);
  EXPECT_EQ(world.last.faults, "gone: nobody serves it");
  world.state.asked.clear();
  EXPECT_EQ(world.Look({low, gone}), 4);
  EXPECT_EQ(world.Look({{.name = "cpu", .of_members = {{}, {}}, .target = 1}}), 4);
  EXPECT_EQ(world.last.faults, "cpu: no member has a value of it");
  world.state.asked.clear();
  EXPECT_EQ(world.Look({low}), 1);
}

}  // namespace
}  // namespace swell::elastic
