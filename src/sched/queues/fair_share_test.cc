// Fair shares: quotas first, then surplus by priority and weight, in whole GPUs.
#include "sched/queues/fair_share.h"

#include <cmath>

#include <gtest/gtest.h>

#include "sched/past_use.h"
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

TEST(FairShare, QuotasOfMoreThanThereIsAreMetInProportion) {
  EXPECT_EQ(Divide(8, {{.quota = 8, .requestable = 9}, {.quota = 8, .requestable = 9}}),
            (Gpus{4, 4}));
  EXPECT_EQ(Divide(9, {{.quota = 8, .requestable = 9}, {.quota = 4, .requestable = 4}}),
            (Gpus{6, 3}));
  EXPECT_EQ(Divide(8, {{.quota = 8, .requestable = 1}, {.quota = 8, .requestable = 9}}),
            (Gpus{1, 7}))
      << "what one does not ask goes to the others";
  EXPECT_EQ(Divide(2, {{.quota = 100, .requestable = 9},
                       {.quota = 1, .requestable = 1},
                       {.quota = 0, .requestable = 9}}),
            (Gpus{1, 1, 0}))
      << "a quota of more than there is counts as all there is";
  EXPECT_EQ(Divide(8, {{.quota = kUnlimited, .requestable = 8}, {.quota = 8, .requestable = 8}}),
            (Gpus{8, 8}))
      << "one without a bound takes nothing from the others";
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

// A node is lost, and the quotas promise more than what is left: also to those below them.
TEST(FairShare, SharesAddUpToNoMoreThanTheClusterHas) {
  Scenario s;
  s.Node("n0", {.gpus = 8});
  s.Node("n1", {.gpus = 4, .ready = false});
  s.Queue(MakeQueue("dept", 8));
  s.Queue(MakeQueue("one", 6, "dept"));
  s.Queue(MakeQueue("two", 6, "dept"));
  s.Queue(MakeQueue("all", kUnlimited));
  for (const char* name : {"one", "two", "all"}) {
    s.Group(name, {.queue = name});
    s.Pods(name, 12, {.group = name, .gpus = 1});
  }
  s.Cycle(Only({}));
  std::map<std::string, double> shares;
  for (const Model::QueueView& view : s.model.Queues()) {
    shares[view.name] = view.resources[0].fair_share;
  }
  EXPECT_EQ(shares,
            (std::map<std::string, double>{{"all", 4}, {"dept", 4}, {"one", 2}, {"two", 2}}));
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

// What each queue would get of eight GPUs when both ask for all.
std::map<std::string, double> SharesOf(const Model& model) {
  std::map<std::string, double> shares;
  for (const Model::QueueView& view : model.Queues()) {
    shares[view.name] = view.resources[0].fair_share;
  }
  return shares;
}

TEST(PastUse, CountsAndOutlivesTheProcess) {
  const Settings settings{.past_share = 1, .past_half_life = std::chrono::hours(10)};
  auto prepare = [](Scenario& s) {
    s.Node("n0", {.gpus = 8});
    for (const char* name : {"a", "b"}) {
      QueueInfo queue{.name = name};
      queue.gpu.quota = 0;
      s.Queue(queue);
    }
  };
  auto ask = [](Scenario& s) {
    for (const char* name : {"a", "b"}) {
      s.Group(StrCat("all-", name), {.queue = name});
      s.Pods(StrCat("all-", name), 8, {.group = StrCat("all-", name), .gpus = 1});
    }
    s.Cycle(Only({}));
  };
  Scenario first(settings);
  prepare(first);
  first.Group("early", {.queue = "a"});
  first.Pod("early-0", {.group = "early", .gpus = 4});
  first.Cycle();
  first.now = first.now + std::chrono::hours(2);
  ASSERT_TRUE(first.last.wake_at) << "shares that drift are looked at again";
  first.Cycle();
  const std::vector<PastUse> notes = PastUses(first.model);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].queue, "a");
  EXPECT_NEAR(notes[0].gpu_hours, 8, 1e-6);
  EXPECT_EQ(notes[0].as_of, first.now);
  EXPECT_EQ(SharesOf(first.model), (std::map<std::string, double>{{"a", 4}, {"b", 0}}))
      << "nobody else asks";

  Scenario forgetful(settings);
  prepare(forgetful);
  ask(forgetful);
  EXPECT_EQ(SharesOf(forgetful.model), (std::map<std::string, double>{{"a", 4}, {"b", 4}}));

  Scenario second(settings);
  prepare(second);
  second.now = first.now + std::chrono::hours(10);
  AddPastUses(second.model, settings, notes, second.now);
  ask(second);
  EXPECT_NEAR(PastUses(second.model)[0].gpu_hours, 4, 1e-6) << "half after a half-life";
  EXPECT_EQ(SharesOf(second.model), (std::map<std::string, double>{{"a", 0}, {"b", 8}}));
}

TEST(PastUse, NotesThatMakeNoSenseAreLeftOut) {
  Scenario s({.past_share = 1});
  s.Node("n0", {.gpus = 8});
  const double nan = std::nan("");
  AddPastUses(s.model, s.scheduler.settings(),
              {{"a", "nowhere", 1, 1, 1, kNoon},
               {"a", "", nan, 0, 0, kNoon},
               {"", "", 1, 1, 1, kNoon},
               {"a", "", -1, 0, 0, kNoon}},
              kNoon);
  EXPECT_TRUE(PastUses(s.model).empty());
}

}  // namespace
}  // namespace swell::sched
