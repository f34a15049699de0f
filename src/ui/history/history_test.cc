// History: coarser with age, in bounded space, and the same after a restart.
#include "ui/history/history.h"

#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/sim_executor.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "ui/history/history_file.h"
#include "ui/history/history_metrics.h"
#include "ui/history/sampler.h"

namespace swell::ui {
namespace {

constexpr int64_t kStart = 1'767'225'600;  // 2026-01-01
constexpr int64_t kHour = 3600, kDay = 24 * kHour;

const auto kAll = [](const SeriesName&) { return true; };

void Add(History& history, int64_t time, double value, std::string name = "held") {
  history.Add(time, {{{std::move(name)}, value}});
}

// "1 2 - 3": values, "-" for a gap.
std::string Text(const Ladder::Points& points) {
  std::vector<std::string> words;
  for (double value : points.values) {
    words.push_back(std::isnan(value) ? "-" : std::to_string(std::lround(value)));
  }
  return Join(words, " ");
}

TEST(History, AStepIsASlot) {
  History history;
  for (int i = 0; i < 4; ++i) Add(history, kStart + int64_t{15} * i, i);
  const auto found = history.Read("held", kStart, kStart + 60, 100, kAll);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(Text(found[0].points), "0 1 2 3");
  EXPECT_EQ(found[0].points.times[1], kStart + 15);
}

TEST(History, WhatWasNotMeasuredIsAGap) {
  History history;
  Add(history, kStart, 1);
  Add(history, kStart + 45, 4);
  EXPECT_EQ(Text(history.Read("held", kStart, kStart + 60, 100, kAll)[0].points), "1 - - 4");
}

TEST(History, FewPointsAreMeans) {
  History history;
  for (int i = 0; i < 8; ++i) Add(history, kStart + int64_t{15} * i, i);
  EXPECT_EQ(Text(history.Read("held", kStart, kStart + 105, 2, kAll)[0].points), "2 6");
}

TEST(History, OldTimesAreCoarse) {
  History history;
  for (int64_t time = kStart; time < kStart + 40 * kDay; time += 15) Add(history, time, 7);
  const int64_t end = kStart + 40 * kDay;
  auto step = [&history](int64_t from, int64_t to) {
    const auto points = history.Read("held", from, to, 100'000, kAll)[0].points;
    return points.times.size() < 2 ? 0 : points.times[1] - points.times[0];
  };
  EXPECT_EQ(step(end - kHour, end), 15);
  EXPECT_EQ(step(end - 3 * kDay, end), 300);
  EXPECT_EQ(step(kStart, end), 3600);
  // Also the part of a span that has finer values comes in one step.
  const auto year = history.Read("held", kStart, end, 50, kAll)[0].points;
  EXPECT_LE(year.times.size(), 50U);
  EXPECT_EQ(Text(year).find('-'), std::string::npos);
}

TEST(History, AYoungSeriesIsFine) {
  History history;
  for (int i = 0; i < 10; ++i) Add(history, kStart + 1000 + int64_t{15} * i, i);
  const auto points = history.Read("held", kStart - kDay, kStart + kDay, 100, kAll)[0].points;
  EXPECT_EQ(Text(points), "0 1 2 3 4 5 6 7 8 9");
}

TEST(History, RingsAreBounded) {
  Ring ring(kRings[0]);
  for (int64_t slot = 0; slot < 20'000; ++slot) ring.Set(slot, {1, 1, 1});
  EXPECT_EQ(ring.last() - ring.first() + 1, static_cast<int64_t>(kRings[0].capacity));
  EXPECT_FALSE(ring.Set(ring.first() - 1, {1, 1, 1}));
  EXPECT_TRUE(ring.Set(1'000'000'000, {2, 2, 2}));
  EXPECT_EQ(ring.first(), 1'000'000'000);
}

TEST(History, TheDeadSeriesGiveWay) {
  History history;
  Add(history, kStart, 1, "dead");
  for (int round = 1; round < 3; ++round) {
    for (size_t i = 0; i < History::kLaddersMax; ++i) {
      Add(history, kStart + int64_t{15} * round, 1, StrCat("s", i));
    }
  }
  EXPECT_EQ(history.ladders(), History::kLaddersMax);
  EXPECT_TRUE(history.Read("dead", 0, kStart + kDay, 10, kAll).empty());
  EXPECT_FALSE(history.Read("s0", 0, kStart + kDay, 10, kAll).empty());
}

TEST(History, AJobHasBoundedPoints) {
  History history;
  for (int i = 0; i < 50'000; ++i) {
    history.Add(kStart + int64_t{15} * i, {{{"loss"}, 1.0 / (i + 1), true}});
  }
  const auto points = history.Read("loss", 0, kStart + 365 * kDay, 100'000, kAll)[0].points;
  EXPECT_LE(points.times.size(), History::kJobPoints);
  EXPECT_GE(points.times.size(), History::kJobPoints / 4);
  EXPECT_EQ(points.times.front(), kStart);
  EXPECT_EQ(points.times.back(), kStart + 749'985);
}

TEST(History, WhatStaysEqualTakesTwoPoints) {
  History history;
  for (int i = 0; i < 1000; ++i) history.Add(kStart + int64_t{15} * i, {{{"members"}, 4, true}});
  EXPECT_EQ(history.Read("members", 0, kStart + kDay, 100, kAll)[0].points.times.size(), 2U);
}

TEST(History, NumbersThatAreNoneAreLeftOut) {
  History history;
  Add(history, kStart, std::nan(""));
  Add(history, kStart, HUGE_VAL);
  EXPECT_EQ(history.ladders(), 0U);
}

TEST(History, NamesMayEndInAStar) {
  History history;
  Add(history, kStart, 1, "gpu_held");
  Add(history, kStart, 1, "gpu_total");
  Add(history, kStart, 1, "queue");
  EXPECT_EQ(history.Read("gpu_*", kStart, kStart, 10, kAll).size(), 2U);
  EXPECT_EQ(history.Read("*", kStart, kStart, 10, kAll).size(), 3U);
  EXPECT_EQ(history.Read("gpu", kStart, kStart, 10, kAll).size(), 0U);
}

TEST(History, RightsDecideWhatIsRead) {
  Rights jane;
  jane.inside["vision"] = Bit(Kind::kPod);
  EXPECT_TRUE(MaySee({"job_loss", {{"namespace", "vision"}, {"job", "a"}}}, jane));
  EXPECT_FALSE(MaySee({"job_loss", {{"namespace", "speech"}, {"job", "a"}}}, jane));
  EXPECT_FALSE(MaySee({"gpu_held", {{"pool", "a"}}}, jane));
  jane.everywhere = Bit(Kind::kNode);
  EXPECT_TRUE(MaySee({"gpu_held", {{"pool", "a"}}}, jane));
  EXPECT_FALSE(MaySee({"project_gpu_held", {{"project", "a"}}}, jane));
  EXPECT_TRUE(MaySee({"project_gpu_held", {{"project", ""}}}, jane)) << "as all that is held";
}

class HistoryFileTest : public ::testing::Test {
 protected:
  std::unique_ptr<HistoryFile> Open() { return std::move(HistoryFile::Open(path_)).value(); }
  void Write(History& history, int64_t now) {
    const Status written = Open()->Write(history.TakeChanges(), now);
    EXPECT_TRUE(written.ok()) << written.ToString();
  }
  History Read() {
    History history;
    const Status read =
        Open()->Load([&history](const HistoryPiece& piece) { history.Restore(piece); });
    EXPECT_TRUE(read.ok()) << read.ToString();
    return history;
  }

  TempDir dir_;
  const std::string path_ = dir_.path() + "/history.db";
};

TEST_F(HistoryFileTest, IsTheSameAfterARestart) {
  History history;
  const SeriesName named{"held", {{"project", "a\"b"}, {"pool", ""}}};
  const SeriesName job{"loss", {{"namespace", "n"}, {"job", "j"}}};
  const int64_t end = kStart + 2 * kDay;
  for (int64_t time = kStart; time < end; time += 15) {
    history.Add(time, {{named, static_cast<double>(time % 97)},
                       {job, static_cast<double>(time % 89), true}});
    if (time % 600 == 0) Write(history, time);
  }
  Write(history, end);
  const History again = Read();
  for (const char* name : {"held", "loss"}) {
    for (int64_t from : {end - kHour, kStart}) {
      const auto before = history.Read(name, from, end, 500, kAll);
      const auto after = again.Read(name, from, end, 500, kAll);
      ASSERT_EQ(after.size(), 1U) << name;
      EXPECT_EQ(*after[0].series, *before[0].series);
      EXPECT_EQ(after[0].points.times, before[0].points.times);
      EXPECT_EQ(Text(after[0].points), Text(before[0].points));
    }
  }
}

TEST_F(HistoryFileTest, ContinuesWhereItEnded) {
  History first;
  for (int i = 0; i < 10; ++i) Add(first, kStart + int64_t{15} * i, i);
  Write(first, kStart + 150);
  History second = Read();
  for (int i = 10; i < 20; ++i) Add(second, kStart + int64_t{15} * i, i);
  Write(second, kStart + 300);
  EXPECT_EQ(Text(Read().Read("held", kStart, kStart + 300, 100, kAll)[0].points),
            "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19");
}

TEST_F(HistoryFileTest, ForgetsWhatGaveWayAndWhatIsOld) {
  History history;
  Add(history, kStart, 1, "dead");
  Write(history, kStart);
  for (size_t i = 0; i < History::kLaddersMax; ++i) Add(history, kStart + 15, 1, StrCat("s", i));
  Write(history, kStart + 15);
  EXPECT_EQ(Read().Read("*", 0, kStart + kDay, 10, kAll).size(), History::kLaddersMax);
  Add(history, kStart + 500 * kDay, 1, "s0");
  Write(history, kStart + 500 * kDay);
  EXPECT_EQ(Read().Read("*", 0, kStart + 600 * kDay, 10, kAll).size(), 1U);
}

TEST_F(HistoryFileTest, TakesLittleMoreSpaceThanWhatItKeeps) {
  History history;
  std::vector<Sample> samples;
  for (int i = 0; i < 50; ++i) samples.push_back({{StrCat("s", i)}, 1.0 / (i + 1)});
  for (int64_t time = kStart; time < kStart + 100 * kDay; time += kHour) {
    history.Add(time, samples);
    if ((time - kStart) % kDay == 0) Write(history, time);
  }
  Write(history, kStart + 100 * kDay);
  int64_t kept = 0;
  const Status read = Open()->Load(
      [&kept](const HistoryPiece& piece) { kept += static_cast<int64_t>(piece.bytes.size()); });
  ASSERT_TRUE(read.ok()) << read.ToString();
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path_));
  EXPECT_GT(kept, 5'000'000);
  EXPECT_LT(size, kept * 3 / 2);
}

TEST_F(HistoryFileTest, AFileOfAnotherKindIsPutAside) {
  ASSERT_TRUE(WriteFileAtomically(path_, std::string(8192, 'x')).ok());
  History history;
  Add(history, kStart, 1);
  Write(history, kStart);
  EXPECT_EQ(Read().ladders(), 1U);
  EXPECT_TRUE(FileExists(path_ + ".unreadable"));
}

TEST_F(HistoryFileTest, KeepsTimelinesAndWhenTheyWereWritten) {
  const auto read = [this](int64_t& written_s) {
    std::string all;
    const Status loaded = Open()->LoadTimelines(
        [&all](const KeptTimeline& one) { all += StrCat(one.job, "=", one.text, " "); }, written_s);
    EXPECT_TRUE(loaded.ok()) << loaded.ToString();
    return all;
  };
  int64_t written_s = -1;
  EXPECT_EQ(read(written_s), "");
  EXPECT_EQ(written_s, 0);
  ASSERT_TRUE(Open()->WriteTimelines({{"a", "1"}, {"b", "2"}}, kStart).ok());
  ASSERT_TRUE(Open()->WriteTimelines({{"a", "3"}}, kStart + 60).ok());
  EXPECT_EQ(read(written_s), "a=3 b=2 ") << "the newest first";
  EXPECT_EQ(written_s, kStart + 60);
  ASSERT_TRUE(Open()->WriteTimelines({{"a", ""}}, kStart + 120).ok());
  EXPECT_EQ(read(written_s), "b=2 ");
  ASSERT_TRUE(Open()->WriteTimelines({}, kStart + 180).ok());
  EXPECT_EQ(read(written_s), "b=2 ");
  EXPECT_EQ(written_s, kStart + 180) << "nothing changed, but the server was there";
}

TEST(HistoryMetrics, TellWhatTheHistoryHears) {
  SimExecutor clock;
  Metrics metrics;
  HistoryMetrics told(&metrics, clock);
  EXPECT_EQ(metrics.Print().find("swell_job_loss{"), std::string::npos);
  told.OnSamples({{{"job_loss", {{"namespace", "n"}, {"job", "j"}}}, 0.25, true},
                  {{"queue_length"}, 3},
                  {{"gpu_held", {{"pool", ""}}}, 8}});
  EXPECT_NE(metrics.Print().find("swell_job_loss{namespace=\"n\",job=\"j\"} 0.25"),
            std::string::npos)
      << metrics.Print();
  EXPECT_NE(metrics.Print().find("swell_queue_jobs 3"), std::string::npos);
  EXPECT_EQ(metrics.Print().find("gpu_held"), std::string::npos) << "the scheduler tells it";
  clock.Advance(HistoryMetrics::kFresh + std::chrono::seconds(1));
  EXPECT_EQ(metrics.Print().find("swell_queue_jobs 3"), std::string::npos) << "it is old";
}

TEST(History, NonsenseInAFileIsLeftOut) {
  History history;
  for (int64_t ring : {-9L, -1L, 0L, 2L, 7L}) {
    for (int64_t chunk : {-1L, 0L, INT64_MAX}) {
      for (size_t size : {0, 3, 4, 1000}) {
        history.Restore({{"x"}, ring, chunk, std::string(size, '\xff')});
      }
    }
  }
  for (const auto& found : history.Read("x", 0, kStart, 10, kAll)) {
    EXPECT_TRUE(found.points.times.empty() || std::isnan(found.points.values[0]));
  }
}

}  // namespace
}  // namespace swell::ui
