#include "kube/api/objects/progress.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::api {
namespace {

json::Value PodWith(std::string_view key, const std::string& text) {
  json::Value pod = json::Object{};
  json::Set(pod, {"metadata", "annotations", key}, text);
  return pod;
}

TEST(ProgressTest, RanksSurviveTheAnnotation) {
  RankProgress rank{.file = 1, .rank = 2, .world = 4, .phase = "eval", .step = 100, .total = 400};
  rank.pid = 17;
  rank.steps_per_second = 2.5;
  rank.changed = *ParseTime("2026-01-01T00:00:00Z");
  rank.stalled = true;
  rank.stack = "state";
  const auto ranks = RanksOf(PodWith(keys::kProgress, json::Print(RanksToJson({rank, rank}))));
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(json::Print(RanksToJson(ranks)), json::Print(RanksToJson({rank, rank})));
}

TEST(ProgressTest, NonsenseIsRead) {
  for (const char* text :
       {"", "x", "[]", "{}", R"({"ranks": 3})", R"({"ranks": {"a": 1}})", R"({"ranks": "x"})"}) {
    EXPECT_TRUE(RanksOf(PodWith(keys::kProgress, text)).empty()) << text;
  }
  const auto ranks = RanksOf(PodWith(
      keys::kProgress,
      R"({"ranks": [7, {"step": -3, "world": "x", "stepsPerSecond": -1e400, "changed": "now"}]})"));
  for (const RankProgress& rank : ranks) {
    EXPECT_EQ(rank.step, 0);
    EXPECT_EQ(rank.steps_per_second, 0);
  }
  EXPECT_FALSE(FailedSaveOf(PodWith(keys::kSaveError, "")));
  EXPECT_FALSE(FailedSaveOf(PodWith(keys::kSaveError, "[1]")));
}

TEST(ProgressTest, AJobTellsPercentageAndWhatRemains) {
  RankProgress lead{.rank = 0, .world = 4, .phase = "step", .step = 250, .total = 1000};
  EXPECT_EQ(JobProgress::Of(lead).percentage, 25);
  EXPECT_FALSE(JobProgress::Of(lead).remaining_seconds);
  lead.steps_per_second = 2;
  EXPECT_EQ(JobProgress::Of(lead).remaining_seconds, 375);
  lead.steps_per_second = 1e-7;
  EXPECT_FALSE(JobProgress::Of(lead).remaining_seconds) << "after all times of the clock";
  lead.step = 5000;
  EXPECT_EQ(JobProgress::Of(lead).percentage, 100);
  EXPECT_EQ(JobProgress::Of(lead).remaining_seconds, 0);
  lead.total = 0;
  EXPECT_FALSE(JobProgress::Of(lead).percentage) << "nothing is claimed";
  json::Value far = json::Object{};
  json::Set(far, {"status", "progress", "estimatedRemainingSeconds"}, int64_t{1} << 60);
  EXPECT_EQ(ProgressOfJob(far)->remaining_seconds, 1'000'000'000);
  json::Value job = json::Object{};
  json::Set(job, {"status", "progress"}, JobProgress::Of(lead).ToJson());
  EXPECT_EQ(json::Print(ProgressOfJob(job)->ToJson()), json::Print(JobProgress::Of(lead).ToJson()));
}

TEST(ProgressTest, TheTopOfTheMainThreadIsShown) {
  RankProgress rank;
  rank.stack =
      "Thread 0x1 (most recent call first):\n  File \"a.py\", line 1 in wait\n\n"
      "Current thread 0x2 (most recent call first):\n  File \"train.py\", line 12 in step\n"
      "  File \"train.py\", line 30 in <module>";
  EXPECT_EQ(rank.Top(), "File \"train.py\", line 12 in step");
  rank.stack = "the process 7 is stopped by a signal: T (stopped)";
  EXPECT_EQ(rank.Top(), rank.stack);
  rank.stack = "";
  EXPECT_EQ(rank.Top(), "");
}

}  // namespace
}  // namespace swell::api
