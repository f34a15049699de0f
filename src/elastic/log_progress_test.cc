#include "elastic/log_progress.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "base/strings.h"

namespace swell::elastic {
namespace {

const WallTime kNow{1'800'000'000'000'000'000};

std::string Line(int second, const std::string& text) {
  return StrCat("2026-01-01T00:00:", second < 10 ? "0" : "", second, "Z ", text, "\n");
}

std::string Told(const LoggedProgress& progress) {
  return StrCat(progress.step, "/", progress.total, " epoch ", progress.epoch, "/", progress.epochs,
                " loss ", progress.loss ? StrCat(*progress.loss) : "none");
}

std::string ReadBy(std::string_view pattern, const std::string& text) {
  auto reader = LogProgress::Compile(pattern);
  EXPECT_TRUE(reader.ok()) << reader.status().ToString();
  LoggedProgress progress;
  return reader->Read(Line(1, text), kNow, progress) ? Told(progress) : "nothing";
}

TEST(LogProgress, GroupsNameWhatIsFound) {
  constexpr std::string_view kPattern = R"(at (?P<step>\d+) of (?P<total>\d+), (?P<loss>\S+))";
  EXPECT_EQ(ReadBy(kPattern, "at 12 of 100, 0.5"), "12/100 epoch 0/0 loss 0.500000");
  EXPECT_EQ(ReadBy(kPattern, "at 12 of 100, nan"), "12/100 epoch 0/0 loss nan");
  EXPECT_EQ(ReadBy(kPattern, "at 12 of 100, info"), "12/100 epoch 0/0 loss none");
  EXPECT_EQ(ReadBy(kPattern, "at 12 of 100, 0.5,"), "12/100 epoch 0/0 loss 0.500000");
  EXPECT_EQ(ReadBy(kPattern, "at 12 of 100, x"), "12/100 epoch 0/0 loss none");
  EXPECT_EQ(ReadBy(kPattern, "at 99999999999999999999 of 1, x"), "nothing");
  EXPECT_EQ(ReadBy(kPattern, "elsewhere"), "nothing");
}

TEST(LogProgress, AutoKnowsCommonForms) {
  EXPECT_EQ(ReadBy("auto", "step 12/100 loss=0.25"), "12/100 epoch 0/0 loss 0.250000");
  EXPECT_EQ(ReadBy("auto", "Epoch [3/10], Step [100/600], Loss: 1.5"),
            "100/600 epoch 3/10 loss 1.500000");
  EXPECT_EQ(ReadBy("auto", "step 12/100 loss: NaN"), "12/100 epoch 0/0 loss nan");
  EXPECT_EQ(ReadBy("auto", "step 12/100 loss: -inf"), "12/100 epoch 0/0 loss -inf");
  EXPECT_EQ(ReadBy("auto", "step 12/100 loss nanoseconds"), "12/100 epoch 0/0 loss none");
  EXPECT_EQ(ReadBy("auto", "iteration: 7"), "7/0 epoch 0/0 loss none");
  EXPECT_EQ(ReadBy("auto", " 12%|#2  | 12/100 [00:03<00:21,  4.1it/s]"),
            "12/100 epoch 0/0 loss none");
  EXPECT_EQ(ReadBy("auto", "Epoch 3/10"), "3/10 epoch 3/10 loss none");
  EXPECT_EQ(ReadBy("auto", "listening on port 80"), "nothing");
  EXPECT_EQ(ReadBy("auto", "{'loss': 0.125, 'epoch': 1.5}"), "1/0 epoch 1/0 loss 0.125000");
}

TEST(LogProgress, OfAProgressBarTheLastWritingCounts) {
  EXPECT_EQ(ReadBy("auto", "step 1/9\rstep 2/9\rstep 3/9\r"), "3/9 epoch 0/0 loss none");
}

TEST(LogProgress, ABarThatIsBeingDrawnIsReadAtTheTimeOfTheReading) {
  auto reader = LogProgress::Compile("auto");
  LoggedProgress progress;
  const std::string begun = "2026-01-01T00:00:01Z \r 10/90 [00:03<00:21]\r 20/90 [00:06<00:21]";
  ASSERT_TRUE(reader->Read(begun, kNow, progress));
  EXPECT_EQ(progress.step, 10) << "the last writing may be cut off";
  EXPECT_EQ(progress.total, 90);
  EXPECT_EQ(progress.changed_unix_ns, kNow.unix_ns);
  EXPECT_FALSE(reader->Read(begun, kNow, progress)) << "it counts once";
  const WallTime later = kNow + std::chrono::seconds(10);
  ASSERT_TRUE(reader->Read(begun + "\r 21/90 [", later, progress));
  EXPECT_EQ(progress.step, 20);
  EXPECT_DOUBLE_EQ(progress.Speed(), 1);
  ASSERT_TRUE(reader->Read(begun + "\r 90/90 [00:27<00:00]\n", later, progress));
  EXPECT_EQ(progress.step, 90);
  EXPECT_EQ(progress.changed_unix_ns, later.unix_ns) << "the line began before";
}

TEST(LogProgress, TheFirstStepOfALossThatIsNotFiniteIsKept) {
  auto reader = LogProgress::Compile("auto");
  LoggedProgress progress;
  ASSERT_TRUE(reader->Read(Line(1, "step 35 loss 1.5") + Line(2, "step 40 loss nan") +
                               Line(3, "step 45 loss nan") + Line(4, "step 50 loss inf"),
                           kNow, progress));
  EXPECT_EQ(progress.not_finite_since, 40);
  ASSERT_TRUE(reader->Read(Line(5, "step 55 loss 1.25"), kNow, progress));
  EXPECT_EQ(progress.not_finite_since, std::nullopt);
}

TEST(LogProgress, TheSpeedIsThatOfTheLastReadings) {
  auto reader = LogProgress::Compile("auto");
  LoggedProgress progress;
  std::string log;
  for (int second = 1; second <= 40; ++second) log += Line(second, StrCat("step ", second * 3));
  EXPECT_TRUE(reader->Read(log, kNow, progress));
  EXPECT_DOUBLE_EQ(progress.Speed(), 3);
  EXPECT_LE(progress.readings.size(), LoggedProgress::kReadingsMax);
  EXPECT_FALSE(reader->Read(log, kNow, progress)) << "lines count once";
  EXPECT_TRUE(reader->Read(Line(50, "step 2"), kNow, progress));
  EXPECT_EQ(progress.Speed(), 0) << "it began anew";
  EXPECT_EQ(progress.step, 2);
}

TEST(LogProgress, TheSpeedIsThatOfTheGroupThatTrains) {
  auto reader = LogProgress::Compile("auto");
  LoggedProgress progress;
  std::string log;
  for (int second = 1; second <= 10; ++second) log += Line(second, StrCat("step ", second * 2));
  log += Line(20, "swell.launch: 2 nodes train");
  EXPECT_TRUE(reader->Read(log, kNow, progress));
  EXPECT_EQ(progress.Speed(), 0) << "the new group has made no step yet";
  log.clear();
  for (int second = 21; second <= 40; ++second) {
    log += Line(second, StrCat("step ", 20 + 4 * (second - 20)));
  }
  EXPECT_TRUE(reader->Read(log, kNow, progress));
  EXPECT_DOUBLE_EQ(progress.Speed(), 4) << "neither the other size nor the pause counts";
}

TEST(LogProgress, LinesWithoutATimeOrAnEndAreSkipped) {
  auto reader = LogProgress::Compile("auto");
  LoggedProgress progress;
  EXPECT_FALSE(reader->Read("step 3\n", kNow, progress));
  EXPECT_FALSE(reader->Read("2026-01-01T00:00:01Z step 1", kNow, progress));
  EXPECT_FALSE(reader->Read(Line(2, std::string(9000, 'x') + " step 4"), kNow, progress));
}

TEST(LogProgress, WrongPatternsSayWhy) {
  auto why = [](std::string_view pattern) {
    auto reader = LogProgress::Compile(pattern);
    return reader.ok() ? std::string("fine") : std::string(reader.status().message());
  };
  EXPECT_EQ(why("step (["), "Invalid value: \"step ([\": missing ]: [");
  EXPECT_NE(why(R"(step (\d+))").find("must have a group named step or epoch"), std::string::npos);
  EXPECT_NE(why(R"((?P<loss>\d+))").find("must have a group named"), std::string::npos);
  EXPECT_NE(why(std::string(2000, 'x')).find("Too long"), std::string::npos);
  EXPECT_EQ(why(R"((?P<epoch>\d+))"), "fine");
}

}  // namespace
}  // namespace swell::elastic
