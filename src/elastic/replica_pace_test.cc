#include "elastic/replica_pace.h"

#include <gtest/gtest.h>

namespace swell::elastic {
namespace {

using std::chrono::seconds;
using Limit = PacedReplicas::Limit;

struct World {
  Pace pace{.replicas_min = 1, .replicas_max = 100, .up = {}, .down = {}};
  PaceState state;
  WallTime now{1'000'000'000};
  int64_t replicas = 10;
  Limit limit = Limit::kNone;

  // What becomes of it, half a minute after the last look.
  int64_t Ask(int64_t desired) {
    now = now + seconds(30);
    const PacedReplicas paced = Follow(pace, now, replicas, desired, state);
    limit = paced.limit;
    if (paced.replicas != replicas) NoteChange(pace, now, paced.replicas - replicas, state);
    return replicas = paced.replicas;
  }
};

TEST(ReplicaPace, WithoutRulesItFollowsWithinItsBounds) {
  World world;
  EXPECT_EQ(world.Ask(30), 30);
  EXPECT_EQ(world.limit, Limit::kNone);
  EXPECT_EQ(world.Ask(3), 3);
  EXPECT_EQ(world.Ask(101), 100);
  EXPECT_EQ(world.limit, Limit::kMaximum);
  EXPECT_EQ(world.Ask(0), 1);
  EXPECT_EQ(world.limit, Limit::kMinimum);
}

TEST(ReplicaPace, WithinAWindowTheSmallestStepCounts) {
  World world;
  world.pace.up.window = seconds(60);
  world.pace.down.window = seconds(60);
  EXPECT_EQ(world.Ask(20), 10) << "it has just begun";
  EXPECT_EQ(world.Ask(16), 10);
  EXPECT_EQ(world.Ask(30), 16) << "the lowest of the last minute";
  EXPECT_EQ(world.Ask(12), 16) << "30 were asked for half a minute ago";
  EXPECT_EQ(world.Ask(5), 16);
  EXPECT_EQ(world.Ask(5), 12);
  EXPECT_EQ(world.Ask(5), 5);
}

TEST(ReplicaPace, PoliciesBoundAPeriodsChange) {
  World world;
  world.pace.up.policies = {{.percent = false, .value = 4, .period = seconds(60)},
                            {.percent = true, .value = 50, .period = seconds(60)}};
  world.pace.down.policies = {{.percent = true, .value = 10, .period = seconds(60)}};
  EXPECT_EQ(world.Ask(80), 15) << "half as many again is more than four";
  EXPECT_EQ(world.limit, Limit::kUpRate);
  EXPECT_EQ(world.Ask(80), 15) << "that was all of this minute";
  EXPECT_EQ(world.Ask(80), 23) << "22.5, rounded up";
  world.now = world.now + seconds(60);
  EXPECT_EQ(world.Ask(1), 20) << "20.7, rounded down";
  EXPECT_EQ(world.limit, Limit::kDownRate);
  world.now = world.now + seconds(60);
  world.pace.up.select = PaceRules::Select::kMin;
  EXPECT_EQ(world.Ask(80), 24) << "four are less than half";
}

TEST(ReplicaPace, ADirectionCanBeDisabled) {
  World world;
  world.pace.down.select = PaceRules::Select::kDisabled;
  EXPECT_EQ(world.Ask(2), 10);
  EXPECT_EQ(world.limit, Limit::kDownRate);
  EXPECT_EQ(world.Ask(12), 12);
}

}  // namespace
}  // namespace swell::elastic
