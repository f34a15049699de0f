#include "elastic/metric_scaler.h"

#include <cmath>
#include <cstdlib>
#include <functional>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/strings.h"

namespace swell::elastic {
namespace {

// A job whose members start at once where there is room, one look after the other.
struct World {
  ScalePolicy policy{.replicas_min = 1, .replicas_max = 3, .noun = "Pytorch job"};
  ScaleState state;
  int64_t replicas = 1;
  int64_t capacity = 100;
  std::function<double(int64_t)> seconds = [](int64_t) { return 0.25; };
  WallTime now{1'000'000'000};
  int64_t changes = 0;
  std::vector<std::string> story;  // condition and replicas, whenever they change

  void DecideScale() {
    int64_t running = std::min(replicas, capacity);
    ScaleFacts facts{.now = now,
                     .replicas = replicas,
                     .running = running,
                     .placed = running,
                     .unplaced = replicas - running,
                     .room = std::max<int64_t>(0, capacity - replicas)};
    if (running == replicas) facts.seconds_per_step = seconds(running);
    ScaleDecision decision = elastic::DecideScale(policy, facts, state);
    if (decision.replicas) {
      ASSERT_NE(*decision.replicas, replicas);
      ASSERT_FALSE(decision.why.empty());
      replicas = *decision.replicas;
      ++changes;
    }
    ASSERT_EQ(state.current, replicas);
    std::string line = StrCat(json::GetString(state.Status(), {"elasticCondition"}), " ", replicas);
    if (story.empty() || story.back() != line) story.push_back(line);
    now = now + policy.interval;
  }
  void Looks(int count) {
    for (int i = 0; i < count; ++i) DecideScale();
  }
  std::string Story() const { return Join(story, ", "); }
};

TEST(MetricScaler, GrowsUntilThereIsNoRoomAndReturns) {
  World world;
  world.capacity = 2;
  world.DecideScale();
  EXPECT_EQ(json::Print(world.state.Status()),
            R"({"elasticCondition":"Start","continue":true,"currentReplicas":1})");
  world.Looks(6);
  EXPECT_EQ(json::Print(world.state.Status()),
            R"({"elasticCondition":"Continue","continue":true,"currentReplicas":2,)"
            R"("lastReplicas":1,"message":"Pytorch job continues to be scaled"})");
  world.Looks(20);
  EXPECT_EQ(json::Print(world.state.Status()),
            R"({"elasticCondition":"Stop","continue":false,"currentReplicas":2,"lastReplicas":3,)"
            R"("message":"There exists pending pods, return to the last replicas"})");
  EXPECT_EQ(world.Story(), "Start 1, Continue 2, Continue 3, Stop 2");
  world.Looks(1000);
  EXPECT_EQ(world.changes, 3) << "the cluster has not changed";
}

TEST(MetricScaler, GrowsAgainWhenRoomHasCome) {
  World world;
  world.capacity = 2;
  world.Looks(30);
  world.capacity = 3;
  world.Looks(30);
  EXPECT_EQ(world.Story(),
            "Start 1, Continue 2, Continue 3, Stop 2, Continue 3, "
            "ReachMaxReplicas 3");
  EXPECT_EQ(world.state.message, "Pytorch job has reached the max replicas");
}

TEST(MetricScaler, StopsWhereMoreMembersDoNotPay) {
  World world;
  world.policy.replicas_max = 8;
  // From four on the network is the limit.
  world.seconds = [](int64_t n) { return n < 4 ? 0.25 : 0.25 * static_cast<double>(n) / 2; };
  world.Looks(200);
  EXPECT_EQ(world.Story(), "Start 1, Continue 2, Continue 4, ReachMaxMetric 2");
  EXPECT_EQ(json::Print(world.state.Status()),
            R"({"elasticCondition":"ReachMaxMetric","continue":false,"currentReplicas":2,)"
            R"("lastReplicas":4,"message":"Pytorch job has reached the max metrics"})");
  world.seconds = [](int64_t) { return 0.15; };
  world.Looks(40);
  EXPECT_EQ(world.replicas, 8) << "steps have changed: " << world.Story();
}

TEST(MetricScaler, StepsOfOneReachTheBestNumber) {
  World world;
  world.policy.doubles = false;
  world.policy.replicas_max = 8;
  world.seconds = [](int64_t n) { return n <= 5 ? 2.5 : 2.5 * static_cast<double>(n) / 5; };
  world.Looks(100);
  EXPECT_EQ(world.replicas, 5) << world.Story();
}

TEST(MetricScaler, TakesHalfAStepWhenThatIsWhatFits) {
  World world;
  world.policy.replicas_max = 8;
  world.capacity = 3;
  world.Looks(100);
  EXPECT_EQ(world.Story(),
            "Start 1, Continue 2, Continue 4, Stop 2, Continue 3, Continue 6, "
            "Stop 3");
  world.Looks(1000);
  EXPECT_EQ(world.changes, 6);
}

TEST(MetricScaler, MembersThatOthersTookAreWaitedFor) {
  World world;
  world.policy.replicas_max = 4;
  world.Looks(40);
  ASSERT_EQ(world.Story(), "Start 1, Continue 2, Continue 4, ReachMaxReplicas 4");
  world.capacity = 1;
  world.Looks(50);
  EXPECT_EQ(world.replicas, 4);
  world.capacity = 4;
  world.Looks(50);
  EXPECT_EQ(world.Story(), "Start 1, Continue 2, Continue 4, ReachMaxReplicas 4");
}

TEST(MetricScaler, AMemberTakenWhileItObservesIsNoStop) {
  World world;
  world.Looks(8);
  ASSERT_EQ(world.Story(), "Start 1, Continue 2");
  world.DecideScale();
  world.capacity = 1;
  world.Looks(10);
  EXPECT_EQ(world.Story(), "Start 1, Continue 2");
  world.capacity = 3;
  world.Looks(20);
  EXPECT_EQ(world.Story(), "Start 1, Continue 2, Continue 3, ReachMaxReplicas 3");
}

TEST(MetricScaler, WhoSetsReplicasIsRight) {
  World world;
  world.policy.replicas_max = 8;
  world.Looks(8);
  ASSERT_EQ(world.replicas, 2);
  world.replicas = 5;
  world.Looks(100);
  EXPECT_EQ(world.replicas, 5);
  EXPECT_EQ(world.state.message, "Replicas were set to 5, scaling by metrics rests");
  world.replicas = 20;
  world.Looks(2);
  EXPECT_EQ(world.replicas, 8) << "never above max";
}

TEST(MetricScaler, MoreAllowedIsMoreTried) {
  World world;
  world.Looks(40);
  ASSERT_EQ(world.replicas, 3);
  world.policy.replicas_max = 6;
  world.Looks(40);
  EXPECT_EQ(world.replicas, 6) << world.Story();
}

TEST(MetricScaler, AStalledLogDecidesNothing) {
  World world;
  world.seconds = [](int64_t) { return 0.0; };
  world.Looks(100);
  EXPECT_EQ(world.Story(), "Start 1");
}

TEST(MetricScaler, ForeignMemoryReadsAsFarAsItMakesSense) {
  for (const char* text :
       {"{}", "[]", "7", R"({"series":{"x":[1],"2":[-1,"a",1e400]},"reference":"x"})",
        R"({"elasticCondition":7,"currentReplicas":"many","returns":-5,"tries":1000})"}) {
    auto value = json::Parse(text);
    if (!value.ok()) continue;
    ScaleState state = ScaleState::FromMemory(*value);
    EXPECT_EQ(state.condition, ScaleCondition::kNone) << text;
    EXPECT_GE(state.returns, 0);
    EXPECT_LE(state.tries, 64);
  }
}

// Thousands of lives with capacity and speed that change at random: bounds hold at every look, a
// restart at any of them changes no decision, and when all stays as it is the job comes to rest.
TEST(MetricScaler, RandomLives) {
  uint64_t base = 1;
  if (const char* given = std::getenv("SWELL_SEED")) base = std::strtoull(given, nullptr, 10);
  for (uint64_t seed = base; seed < base + 3000; ++seed) {
    SCOPED_TRACE(StrCat("SWELL_SEED=", seed));
    Random random(seed);
    World world;
    ScalePolicy& policy = world.policy;
    policy.replicas_min = 1 + static_cast<int64_t>(random.Below(3));
    policy.replicas_max = policy.replicas_min + static_cast<int64_t>(random.Below(12));
    policy.doubles = random.OneIn(2);
    policy.observations = 1 + static_cast<int>(random.Below(5));
    world.replicas = static_cast<int64_t>(random.Below(14));
    double speed = 0.1, limit = 4, noise = random.Unit() * 0.02;
    world.seconds = [&](int64_t n) {
      double members = static_cast<double>(n);
      return speed * std::max(1.0, members / limit) * (1 + noise * (random.Unit() - 0.5));
    };
    for (int look = 0; look < 150; ++look) {
      if (random.OneIn(25)) world.capacity = static_cast<int64_t>(random.Below(16));
      if (random.OneIn(40)) speed = 0.05 + random.Unit() * 3;
      if (random.OneIn(40)) limit = 1 + random.Unit() * 12;
      if (random.OneIn(60)) world.replicas = static_cast<int64_t>(random.Below(20));
      if (world.state.goes_on && random.OneIn(4)) {
        ScaleState again = ScaleState::FromMemory(world.state.Memory());
        ASSERT_EQ(json::Print(again.Memory()), json::Print(world.state.Memory()));
        world.state = again;
      }
      world.DecideScale();
      if (HasFatalFailure()) return;
      ASSERT_GE(world.replicas, policy.replicas_min);
      ASSERT_LE(world.replicas, policy.replicas_max);
    }
    world.Looks(100);
    int64_t before = world.changes;
    world.Looks(600);
    EXPECT_LE(world.changes - before, 12) << world.Story();
    before = world.changes;
    world.Looks(200);
    EXPECT_EQ(world.changes, before) << world.Story();
  }
}

}  // namespace
}  // namespace swell::elastic
