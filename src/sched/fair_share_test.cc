// Fair shares: quotas first, then surplus by priority and weight, in whole GPUs.
#include "sched/fair_share.h"

#include <gtest/gtest.h>

#include "sched/scenario_test_util.h"

namespace swell::sched {
namespace {

using Gpus = std::vector<int64_t>;

Gpus Divide(int64_t total, std::vector<ShareClaim> claims) {
  for (size_t i = 0; i < claims.size(); ++i) {
    if (claims[i].name.empty()) claims[i].name = StrCat("q", i);
  }
  return DivideShares(total, 1, claims);
}

TEST(FairShare, QuotaFirstButNoMoreThanAsked) {
  EXPECT_EQ(Divide(8, {{.quota = 4, .requestable = 2}, {.quota = 4, .requestable = 4}}),
            (Gpus{2, 4}));
}

TEST(FairShare, SurplusGoesByWeightInWholeUnits) {
  EXPECT_EQ(Divide(9, {{.quota = 0, .requestable = 9, .weight = 1},
                       {.quota = 0, .requestable = 9, .weight = 2}}),
            (Gpus{3, 6}));
}

TEST(FairShare, WhatOneDoesNotAskGoesToTheOthers) {
  EXPECT_EQ(Divide(10, {{.quota = 0, .requestable = 1},
                        {.quota = 0, .requestable = 10},
                        {.quota = 0, .requestable = 10}}),
            (Gpus{1, 5, 4}));
}

TEST(FairShare, HigherPriorityIsServedFirst) {
  EXPECT_EQ(Divide(6, {{.quota = 1, .requestable = 6, .priority = 100},
                       {.quota = 1, .requestable = 4, .priority = 200}}),
            (Gpus{2, 4}));
}

TEST(FairShare, LeftOversGoToTheOldestAmongEquals) {
  EXPECT_EQ(Divide(1, {{.quota = 0, .requestable = 1, .creation = {5}},
                       {.quota = 0, .requestable = 1, .creation = {3}}}),
            (Gpus{0, 1}));
}

TEST(FairShare, NoWeightNoSurplus) {
  EXPECT_EQ(Divide(6, {{.quota = 1, .requestable = 6, .weight = 0},
                       {.quota = 1, .requestable = 2, .weight = 1}}),
            (Gpus{1, 2}));
}

TEST(FairShare, UnlimitedQuotaGetsWhatItAsks) {
  EXPECT_EQ(Divide(4, {{.quota = kUnlimited, .requestable = 3}, {.quota = 0, .requestable = 9}}),
            (Gpus{3, 1}));
}

TEST(FairShare, SharesGoDownTheTree) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  auto queue = [&s](const std::string& name, const std::string& parent, double quota) {
    QueueInfo info;
    info.name = name;
    info.parent = parent;
    info.gpu.quota = quota;
    s.Queue(info);
  };
  queue("dept-a", "", 4);
  queue("dept-b", "", 4);
  queue("team-a1", "dept-a", 2);
  queue("team-a2", "dept-a", 2);
  queue("team-b1", "dept-b", 4);
  s.Group("g", {.min = 8, .queue = "team-a1"});
  s.Pods("g", 8, {.group = "g", .gpus = 1});
  std::map<std::string, double> shares;
  for (const Model::QueueView& view : s.model.Queues()) {
    shares[view.name] = view.resources[0].fair_share;
    if (view.name == "team-a1" || view.name == "dept-a") {
      EXPECT_EQ(view.resources[0].requested, 8);
    }
  }
  EXPECT_EQ(shares,
            (std::map<std::string, double>{
                {"dept-a", 8}, {"dept-b", 0}, {"team-a1", 8}, {"team-a2", 0}, {"team-b1", 0}}));
}

}  // namespace
}  // namespace swell::sched
