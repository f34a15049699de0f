#include "kube/node/health/progress_watch.h"

#include <gtest/gtest.h>

#include "base/sim_executor.h"
#include "base/strings.h"
#include "json/value.h"
#include "kube/node/pod/pod_progress.h"

namespace swell::node {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

enum Phase : uint64_t { kInit, kStep, kEval, kSave, kLoad, kData, kDone };

struct Record {
  uint64_t sequence = 2, phase = kInit, step = 0, total = 0, epoch = 0, epochs = 0, rank = 0,
           world = 1, pid = 7;
  uint64_t measured = 0, own_ms = 0, whole_ms = 0, elements = 0;

  std::string Bytes() const {
    std::string out = "SWELLPR1";
    auto add = [&out](uint64_t value, int size) {
      for (int i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
    };
    add(sequence, 4);
    add(phase, 4);
    add(step, 8);
    add(total, 8);
    add(0, 8);
    for (uint64_t value : {epoch, epochs, rank, world, pid, uint64_t{0}}) add(value, 4);
    for (uint64_t value : {measured, own_ms * 1'000'000, whole_ms * 1'000'000, elements}) {
      add(value, 8);
    }
    return out;
  }
};

// One rank whose record is read every second, in virtual time.
class ProgressWatchTest : public ::testing::Test {
 protected:
  void Enter(Phase phase) {
    record_.sequence += 2;
    record_.phase = phase;
  }
  void FinishStep() {
    Enter(kStep);
    ++record_.step;
  }
  void Pass(Duration time) {
    for (Duration passed{0}; passed < time; passed += seconds(1)) {
      now_ = now_ + seconds(1);
      watch_.Read({{0, record_.Bytes()}}, now_, WallTime() + Duration(now_.ns));
      if (watch_.Check(now_) && watch_.Ranks().front().stalled) ++alarms_;
    }
  }
  void Train(int steps, Duration each) {
    for (int i = 0; i < steps; ++i) {
      FinishStep();
      Pass(each);
    }
  }
  api::RankProgress Rank() const { return watch_.Ranks().front(); }

  ProgressWatch watch_;
  Record record_;
  SteadyTime now_;
  int alarms_ = 0;
};

// A process that resumes begins with the step of its checkpoint, which it has not done itself.
TEST_F(ProgressWatchTest, TheFirstStepIsTheOneThatWasSeenToEnd) {
  auto read = [this] { return watch_.Read({{0, record_.Bytes()}}, now_, WallTime()); };
  record_.step = 40;
  Enter(kStep);
  EXPECT_FALSE(read());
  now_ = now_ + seconds(1);
  FinishStep();
  EXPECT_TRUE(read());
  now_ = now_ + seconds(1);
  FinishStep();
  EXPECT_FALSE(read());
}

TEST_F(ProgressWatchTest, EightHoursWithLongEvaluationsAndSavesRaiseNoAlarm) {
  Pass(minutes(20));  // it compiles
  while (now_.ns < Duration(std::chrono::hours(8)).count()) {
    Train(100, seconds(2));
    Enter(kSave);
    Pass(seconds(90));
    Train(100, seconds(3));
    Enter(kEval);
    Pass(minutes(12));
    Enter(kData);
    Pass(seconds(8));
  }
  EXPECT_EQ(alarms_, 0);
}

TEST_F(ProgressWatchTest, AStuckRankIsFoundWithinSecondsOfItsDeadline) {
  Train(40, seconds(2));
  Pass(seconds(29));
  EXPECT_EQ(alarms_, 0);
  Pass(seconds(3));
  EXPECT_EQ(alarms_, 1);
  EXPECT_TRUE(Rank().stalled);
  EXPECT_EQ(Rank().deadline_seconds, 30);
  EXPECT_EQ(Rank().step, 40);
}

TEST_F(ProgressWatchTest, TheDeadlineFollowsTheLongestStepsOfTheLast) {
  Train(40, seconds(20));
  Pass(seconds(79));
  EXPECT_EQ(alarms_, 0);
  Pass(seconds(3));
  EXPECT_EQ(alarms_, 1);
  EXPECT_EQ(Rank().deadline_seconds, 100);
}

TEST_F(ProgressWatchTest, ARankThatMovesAgainIsNotStalledAndHasNoStack) {
  Train(40, seconds(2));
  Pass(minutes(1));
  watch_.SetStack(0, "File \"train.py\", line 3 in step");
  EXPECT_EQ(Rank().stack, "File \"train.py\", line 3 in step");
  Train(1, seconds(1));
  EXPECT_FALSE(Rank().stalled);
  EXPECT_EQ(Rank().stack, "");
}

TEST_F(ProgressWatchTest, FewStepsAndTheFirstOneHaveLongDeadlines) {
  Pass(minutes(29));
  EXPECT_EQ(alarms_, 0);
  Train(3, seconds(1));
  Pass(minutes(9));
  EXPECT_EQ(alarms_, 0);
  Pass(minutes(1) + seconds(2));
  EXPECT_EQ(alarms_, 1);
}

TEST_F(ProgressWatchTest, AUsersBoundHoldsBeforeADeadlineIsLearnt) {
  watch_ = ProgressWatch(seconds(5));
  Train(3, seconds(1));
  Pass(seconds(6));
  EXPECT_EQ(alarms_, 1);
  EXPECT_EQ(Rank().deadline_seconds, 5);
}

// The records are read once a second, in which a process can start, do its steps and hang.
TEST_F(ProgressWatchTest, AProcessThatHangsBeforeItsFirstReadingIsFound) {
  watch_ = ProgressWatch(seconds(5));
  record_.step = 16;
  record_.measured = 1;
  Enter(kStep);
  EXPECT_TRUE(watch_.Read({{0, record_.Bytes()}}, now_, WallTime()));
  Pass(seconds(7));
  EXPECT_EQ(alarms_, 1);
  EXPECT_EQ(Rank().deadline_seconds, 5);
}

TEST_F(ProgressWatchTest, WhatIsKnownOfAProcessEndsWithIt) {
  Train(40, seconds(2));
  watch_.Forget();
  Pass(minutes(5));
  EXPECT_TRUE(watch_.empty());
  record_ = Record{.pid = 8};
  Pass(minutes(5));
  EXPECT_FALSE(watch_.empty());
  EXPECT_EQ(alarms_, 0);
}

TEST_F(ProgressWatchTest, ARankThatIsDoneIsNeverStalled) {
  Train(40, seconds(1));
  Enter(kDone);
  Pass(std::chrono::hours(2));
  EXPECT_EQ(alarms_, 0);
}

TEST_F(ProgressWatchTest, SpeedIsThatOfTheLastMinutes) {
  record_.total = 1000;
  Train(100, seconds(4));
  EXPECT_NEAR(Rank().steps_per_second, 0.25, 0.02);
  Train(400, seconds(1));
  EXPECT_NEAR(Rank().steps_per_second, 1, 0.05);
}

// One that joins a running group begins with the group's step, and so do all after a resize.
TEST_F(ProgressWatchTest, AStepThatARankBeginsWithIsNotItsSpeed) {
  Pass(seconds(30));
  record_.step = 465;
  record_.world = 2;
  Train(60, seconds(1));
  EXPECT_NEAR(Rank().steps_per_second, 1, 0.05);
  record_.world = 3;
  record_.step += 1000;
  Train(60, seconds(2));
  EXPECT_NEAR(Rank().steps_per_second, 0.5, 0.05);
}

// Steps of which each takes half a second; the rank's own part is `own` milliseconds.
class OwnPartTest : public ProgressWatchTest {
 protected:
  void Measure(int steps, uint64_t own, uint64_t elements = 0) {
    for (int i = 0; i < steps; ++i) {
      ++record_.measured;
      record_.own_ms += own;
      record_.whole_ms += 500;
      record_.elements += elements;
      FinishStep();
      if (i % 2 == 1) Pass(seconds(1));
    }
  }
  api::OwnPart Own() const { return Rank().own; }
};

TEST_F(OwnPartTest, TheOwnPartIsAMeanOverHalfAMinute) {
  Measure(58, 200, 7);
  EXPECT_EQ(Own().windows, 0);
  Measure(4, 200, 7);
  EXPECT_EQ(Own().windows, 1);
  EXPECT_EQ(Own().own_ms, 200);
  EXPECT_EQ(Own().step_ms, 500);
  EXPECT_EQ(Own().elements, 7);
  Measure(30, 300, 7);
  Measure(30, 500, 7);
  EXPECT_EQ(Own().windows, 2);
  EXPECT_EQ(Own().own_ms, 400) << "what was before does not count any more";
}

TEST_F(OwnPartTest, FewLongStepsSayNothingYet) {
  for (int i = 0; i < 25; ++i) {
    Measure(2, 200);
    Pass(seconds(20));
  }
  EXPECT_EQ(Own().windows, 0) << "the first ones were there before the first reading";
  Measure(2, 200);
  EXPECT_EQ(Own().windows, 1);
}

TEST_F(OwnPartTest, AnotherGroupAndAnotherProcessBeginAnew) {
  Measure(62, 200);
  EXPECT_EQ(Own().windows, 1);
  record_.world = 2;
  Measure(2, 200);
  EXPECT_EQ(Own().windows, 0);
  Measure(62, 300);
  EXPECT_EQ(Own().own_ms, 300);
  record_ = Record{.pid = 8};
  Pass(seconds(2));
  EXPECT_EQ(Own().windows, 0);
}

TEST_F(OwnPartTest, SumsThatGoBackBeginAnew) {
  Measure(62, 200);
  record_.measured = record_.own_ms = record_.whole_ms = 0;
  Measure(2, 100);
  EXPECT_EQ(Own().windows, 0);
  record_.measured = ~uint64_t{0};
  record_.own_ms = ~uint64_t{0} / 1'000'000;
  Measure(80, 100);
  EXPECT_GE(Own().own_ms, 0);
}

TEST(ProgressRecordTest, NonsenseIsNoRecord) {
  const std::string good = Record{.phase = kStep, .step = 17, .rank = 3, .world = 4}.Bytes();
  const auto rank = ParseProgressRecord(good);
  ASSERT_TRUE(rank);
  EXPECT_EQ(StrCat(rank->phase, " ", rank->step, " ", rank->rank, " ", rank->world), "step 17 3 4");
  EXPECT_FALSE(ParseProgressRecord(""));
  EXPECT_FALSE(ParseProgressRecord(good.substr(1)));
  EXPECT_FALSE(ParseProgressRecord(std::string(96, '\xff')));
  EXPECT_FALSE(ParseProgressRecord(Record{.sequence = 3}.Bytes())) << "it is being written";
  EXPECT_FALSE(ParseProgressRecord(Record{.phase = 99}.Bytes()));
}

TEST(ProgressRecordTest, OnlySoManyRanksOfAPodCount) {
  ProgressWatch watch;
  ProgressRecords records;
  for (int64_t i = 0; i < 100; ++i) records[i] = Record{.rank = uint64_t(i)}.Bytes();
  watch.Read(records, {}, {});
  EXPECT_EQ(watch.Ranks().size(), api::kRanksPerPodMax);
}

// A host that has time and nothing else.
class TimeOnly final : public PodHost {
 public:
  Executor& executor() override { return time; }
  Clock& clock() override { return time; }
  client::Client& client() override { return None<client::Client>(); }
  Runtime& runtime() override { return None<Runtime>(); }
  ServiceNames* names() override { return nullptr; }
  const NodeConfig& config() const override { return None<const NodeConfig>(); }
  const Amounts& allocatable() const override { return None<const Amounts>(); }
  AdmitResult Admit(const PodWorker&) override { return {}; }
  Room RoomFor(const PodWorker&, const Amounts&) const override { return {}; }
  bool IsMountedBeside(const PodWorker&, const std::string&) const override { return false; }
  std::string GpuDeviceId(int) const override { return ""; }
  int64_t GpuMemoryMib() const override { return 0; }
  void Event(const json::Value&, std::string_view, std::string_view, std::string_view) override {}
  void OnResourcesFreed() override {}
  void OnWorkerDone(const std::string&) override {}

  SimExecutor time;

 private:
  template <class T>
  static T& None() {
    SWELL_CHECK_MSG(false, "the progress of a pod does not ask for it");
    std::abort();
  }
};

class PodProgressTest : public ::testing::Test {
 protected:
  ~PodProgressTest() override { progress_.Close(); }
  // A step a second.
  void Train(int steps) {
    for (int i = 0; i < steps; ++i) {
      rank_.sequence += 2;
      ++rank_.step;
      progress_.OnRecords({{0, rank_.Bytes()}});
      host_.time.Advance(seconds(1));
    }
  }

  TimeOnly host_;
  const PodRecord record_{std::make_shared<json::Value>(
      json::Object{{"metadata", json::Object{{"name", "p"}, {"uid", "u"}}}})};
  std::vector<std::string> told_;
  PodProgress progress_{host_, record_, [this](std::string text) { told_.push_back(text); }};
  Record rank_{.phase = kStep, .step = 1, .rank = 2, .world = 3};
};

TEST_F(PodProgressTest, TheFirstSpeedIsToldSoon) {
  Train(12);
  ASSERT_FALSE(told_.empty());
  EXPECT_NE(told_.back().find("\"stepsPerSecond\":1"), std::string::npos) << told_.back();
  const size_t before = told_.size();
  Train(45);
  EXPECT_EQ(told_.size(), before) << "steps alone wait";
  Train(20);
  EXPECT_EQ(told_.size(), before + 1);
}

TEST_F(PodProgressTest, TheEndOfAStallIsToldAtOnce) {
  // It falls between two of the reports that come each minute.
  Train(90);
  for (int i = 0; i < 3600 && told_.back().find("\"stalled\"") == std::string::npos; ++i) {
    progress_.OnRecords({{0, rank_.Bytes()}});
    host_.time.Advance(seconds(1));
  }
  ASSERT_NE(told_.back().find("\"stalled\""), std::string::npos) << told_.back();
  Train(2);
  EXPECT_EQ(told_.back().find("\"stalled\""), std::string::npos) << told_.back();
}

TEST_F(PodProgressTest, ANewNumberIsToldAtOnce) {
  Train(12);
  const size_t before = told_.size();
  // The others left, and it speaks for the job now.
  rank_.rank = 0;
  rank_.world = 1;
  Train(1);
  ASSERT_EQ(told_.size(), before + 1);
  EXPECT_NE(told_.back().find("\"rank\":0"), std::string::npos) << told_.back();
  Train(5);
  EXPECT_EQ(told_.size(), before + 1);
}

}  // namespace
}  // namespace swell::node
