// Lending limits: what a project keeps of its quota stays there for it, and the rest is lent.
#include "sched/queues/lending.h"

#include <gtest/gtest.h>

#include "sched/queues/fair_share.h"
#include "sched/scenario_test_util.h"

namespace swell::sched {
namespace {

QueueInfo Lender(const std::string& name, double quota, double lending_limit) {
  QueueInfo info = MakeQueue(name, quota);
  info.gpu.lending_limit = lending_limit;
  return info;
}

// A gang of one pod.
void Job(Scenario& s, const std::string& name, const std::string& queue, int gpus) {
  s.Group(name, {.queue = queue});
  s.Pod(name + "-0", {.group = name, .gpus = gpus});
}

std::string ReasonOf(const Scenario& s, const std::string& group) {
  const Waiting* waiting = s.WaitingOf(group);
  return waiting == nullptr ? "" : waiting->reason;
}

TEST(Lending, OthersGetWhatIsLentAndNoMore) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Queue(Lender("owner", 6, 2));
  s.Queue(MakeQueue("guest", 2));
  Job(s, "a", "guest", 2);
  Job(s, "b", "guest", 2);
  s.Converge();
  EXPECT_EQ(s.NodeOf("a-0"), "n0");
  EXPECT_EQ(s.NodeOf("b-0"), "n0") << "the two that the owner lends";
  Job(s, "c", "guest", 1);
  s.Cycle();
  EXPECT_EQ(s.NodeOf("c-0"), "");
  EXPECT_EQ(ReasonOf(s, "c"),
            "1 GPU asked beyond the quota of project guest, nothing can be borrowed: project owner "
            "keeps 4 GPUs of its quota for itself");
  Job(s, "own", "owner", 4);
  s.Converge();
  EXPECT_EQ(s.NodeOf("own-0"), "n0") << "without stopping anybody";
  EXPECT_EQ(s.NodeOf("b-0"), "n0");
}

TEST(Lending, WhatTheOwnerHoldsIsNotKeptTwice) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Queue(Lender("owner", 6, 2));
  s.Queue(MakeQueue("guest", 2));
  Job(s, "own", "owner", 3);
  s.Converge();
  Job(s, "a", "guest", 4);
  s.Converge();
  EXPECT_EQ(s.NodeOf("a-0"), "n0") << "3 held, 1 kept, 4 left";
}

TEST(Lending, WorkWithinItsQuotaBorrowsNothing) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  s.Queue(Lender("owner", 4, 0));
  s.Queue(MakeQueue("guest", 2));  // more was promised than there is
  Job(s, "a", "guest", 2);
  s.Converge();
  EXPECT_EQ(s.NodeOf("a-0"), "n0");
}

TEST(Lending, WorkWithoutAProjectBorrowsToo) {
  Scenario s;
  s.Node("n0", {.gpus = 4});
  s.Queue(Lender("owner", 4, 1));
  s.Pod("stray", {.gpus = 2});
  s.Pod("small", {.gpus = 1});
  s.Converge();
  EXPECT_EQ(s.NodeOf("stray"), "");
  EXPECT_EQ(s.NodeOf("small"), "n0");
}

TEST(Lending, WhatADepartmentKeepsIsKeptForItsProjects) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Queue(Lender("science", 6, 0));
  s.Queue(MakeQueue("vision", 2, "science"));
  s.Queue(MakeQueue("guest", 2));
  Job(s, "a", "guest", 4);
  s.Converge();
  EXPECT_EQ(s.NodeOf("a-0"), "") << "6 are kept";
  Job(s, "b", "vision", 6);
  s.Converge();
  EXPECT_EQ(s.NodeOf("b-0"), "n0") << "beyond vision's quota, within that of its department";
}

TEST(Lending, RaisingTheLimitLetsWorkStart) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Queue(Lender("owner", 8, 1));
  s.Queue(MakeQueue("guest", 0));
  Job(s, "a", "guest", 2);
  s.Converge();
  EXPECT_EQ(s.NodeOf("a-0"), "");
  s.Queue(Lender("owner", 8, 2));
  s.Converge();
  EXPECT_EQ(s.NodeOf("a-0"), "n0");
}

TEST(Lending, OneQuotaForAllPoolsIsKeptInAllTogether) {
  Scenario s;
  for (const char* kind : {"old", "new"}) {
    s.Pool({.name = kind, .node_selector = {{"kind", kind}}});
    s.Node(kind, {.gpus = 4, .labels = {{"kind", kind}}});
  }
  s.Queue(Lender("owner", 4, 0));
  s.Queue(MakeQueue("guest", 0));
  Job(s, "a", "guest", 4);
  s.Converge();
  EXPECT_NE(s.NodeOf("a-0"), "") << "the other pool has the four that are kept";
  Job(s, "b", "guest", 1);
  s.Converge();
  EXPECT_EQ(s.NodeOf("b-0"), "");
}

TEST(Lending, AQuotaOfOnePoolIsKeptThere) {
  Scenario s;
  for (const char* kind : {"old", "new"}) {
    s.Pool({.name = kind, .node_selector = {{"kind", kind}}});
    s.Node(kind, {.gpus = 4, .labels = {{"kind", kind}}});
  }
  QueueInfo owner = MakeQueue("owner", 0);
  owner.pools.push_back({"new", {.quota = 4, .lending_limit = 1}, {}, {}});
  s.Queue(owner);
  s.Queue(MakeQueue("guest", 0));
  for (const char* job : {"a", "b", "c"}) Job(s, job, "guest", 2);
  s.Converge();
  int old_pool = 0;
  for (const char* pod : {"a-0", "b-0", "c-0"}) old_pool += s.NodeOf(pod) == "old" ? 1 : 0;
  EXPECT_EQ(old_pool, 2);
  EXPECT_TRUE(s.NodeOf("a-0").empty() || s.NodeOf("b-0").empty() || s.NodeOf("c-0").empty())
      << "one GPU is lent of the other pool, and two are asked";
}

TEST(Lending, SharesLeaveWhatIsKept) {
  ShareClaim owner{.quota = 6, .requestable = 1, .kept = 4};
  ShareClaim guest{.quota = 2, .requestable = 8};
  EXPECT_EQ(DivideShares(8, 1, {owner, guest}), (std::vector<int64_t>{1, 4}));
  owner.kept = 0;
  EXPECT_EQ(DivideShares(8, 1, {owner, guest}), (std::vector<int64_t>{1, 7}));
}

}  // namespace
}  // namespace swell::sched
