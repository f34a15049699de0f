// The rules of reclaim alone, on eight GPUs.
#include "sched/victims/reclaim_rules.h"

#include <gtest/gtest.h>

#include "sched/victims/search_test_util.h"

namespace swell::sched {
namespace {

QueueAmounts Gpus(int64_t count) {
  QueueAmounts amounts{};
  amounts[kQueueGpu] = count * kPpm;
  return amounts;
}

// A job with pods of one GPU each: some run, some wait.
void Job(Scenario& s, const std::string& queue, int running, int waiting) {
  const std::string name = "of-" + queue;
  s.Group(name, {.queue = queue});
  s.Pods(name + "-runs", running, {.group = name, .gpus = 1, .on = "n0"});
  s.Pods(name + "-waits", waiting, {.group = name, .gpus = 1});
}

ReclaimRules RulesFor(TestCycle& cycle, const std::string& queue, int64_t gpus) {
  return {cycle.context, cycle.Queue(queue), cycle.state.pool_facts.live.front(), Gpus(gpus)};
}

// Two projects of four GPUs: a holds six, b two and asks for more.
TEST(ReclaimRules, AQueueReclaimsUpToItsFairShare) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Queue(MakeQueue("a", 4));
  s.Queue(MakeQueue("b", 4));
  Job(s, "a", 6, 0);
  Job(s, "b", 2, 3);
  TestCycle cycle(s);
  const int pool = cycle.state.pool_facts.live.front();
  EXPECT_TRUE(StaysWithinDue(cycle.context, cycle.Queue("b"), pool, Gpus(2)));
  EXPECT_FALSE(StaysWithinDue(cycle.context, cycle.Queue("b"), pool, Gpus(3)));
  EXPECT_EQ(RulesFor(cycle, "b", 2).MayLose(), std::vector<QueueId>{cycle.Queue("a")});
}

TEST(ReclaimRules, TheVictimsQueueLosesOnlyWhatIsAboveItsShare) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Queue(MakeQueue("a", 4));
  s.Queue(MakeQueue("b", 4));
  Job(s, "a", 6, 0);
  Job(s, "b", 2, 3);
  TestCycle cycle(s);
  const ReclaimRules rules = RulesFor(cycle, "b", 2);
  const QueueId a = cycle.Queue("a");
  Losses losses;
  EXPECT_TRUE(rules.Allows(a, losses, Gpus(1)));
  AddLoss(losses, a, Gpus(1));
  EXPECT_TRUE(rules.Allows(a, losses, Gpus(1)));
  AddLoss(losses, a, Gpus(1));
  EXPECT_FALSE(rules.Allows(a, losses, Gpus(1))) << "it holds its four";
  EXPECT_TRUE(rules.Allows(a, {}, Gpus(6))) << "a gang over the share goes whole";
  EXPECT_FALSE(rules.Allows(cycle.Queue("b"), {}, Gpus(1))) << "its own queue";
}

// Beyond its quota a queue does not take what another holds within its own.
TEST(ReclaimRules, WithinItsQuotaIsProtectedFromAReclaimerBeyondItsOwn) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Queue(MakeQueue("a", 6));
  s.Queue(MakeQueue("b", 3));
  Job(s, "a", 5, 0);
  Job(s, "b", 3, 1);
  TestCycle cycle(s);
  const QueueId a = cycle.Queue("a");
  // WithinItsQuota asks as if the victim were gone: five held and one more are six.
  EXPECT_TRUE(RulesFor(cycle, "b", 1).WithinItsQuota(a, Gpus(1)));
  EXPECT_FALSE(RulesFor(cycle, "b", 1).WithinItsQuota(a, Gpus(2)));
  EXPECT_FALSE(RulesFor(cycle, "b", 0).WithinItsQuota(a, Gpus(1))) << "b stays within its quota";
}

// Victims are compared just below the common ancestor, not queue by queue.
TEST(ReclaimRules, CompareBelowTheCommonAncestor) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Queue(MakeQueue("research", 4));
  s.Queue(MakeQueue("vision", 2, "research"));
  s.Queue(MakeQueue("speech", 2, "research"));
  s.Queue(MakeQueue("product", 4));
  s.Queue(MakeQueue("ads", 4, "product"));
  Job(s, "vision", 4, 0);
  Job(s, "ads", 4, 0);
  Job(s, "speech", 0, 2);
  TestCycle cycle(s);
  const ReclaimRules rules = RulesFor(cycle, "speech", 2);
  EXPECT_EQ(rules.BelowCommon(cycle.Queue("vision")), cycle.Queue("vision"));
  EXPECT_EQ(rules.BelowCommon(cycle.Queue("ads")), cycle.Queue("product"));
  EXPECT_EQ(rules.BelowCommon(cycle.Queue("research")), kNone) << "it is above the reclaimer";
  EXPECT_TRUE(rules.Allows(cycle.Queue("vision"), {}, Gpus(1)));
  EXPECT_FALSE(rules.Allows(cycle.Queue("ads"), {}, Gpus(1))) << "product holds its share";
  EXPECT_EQ(rules.MayLose(), std::vector<QueueId>{cycle.Queue("vision")});
}

// Moving costs nobody anything, so it asks only that the job is due at every level.
TEST(ReclaimRules, AJobThatIsDueAtEveryLevelMayMoveOthers) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Queue(MakeQueue("research", 4));
  s.Queue(MakeQueue("speech", 4, "research"));
  s.Queue(MakeQueue("vision", 4, "research"));
  s.Queue(MakeQueue("product", 4));
  Job(s, "vision", 3, 0);
  Job(s, "product", 4, 0);
  Job(s, "speech", 0, 2);
  TestCycle cycle(s);
  EXPECT_TRUE(RulesFor(cycle, "speech", 1).MayMoveOthers());
  EXPECT_FALSE(RulesFor(cycle, "speech", 2).MayMoveOthers()) << "research would hold five of four";
}

}  // namespace
}  // namespace swell::sched
