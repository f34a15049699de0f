#include "kube/process/shim/log_pump.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"

namespace swell::process {
namespace {

class LogPumpTest : public testing::Test {
 protected:
  static WallTime At(int64_t milliseconds) { return WallTime{milliseconds * 1'000'000}; }
  // The records without their times.
  std::string Written() {
    pump_.Flush();
    const auto text = ReadFile(path_, 1 << 20);
    EXPECT_TRUE(text.ok());
    std::string out;
    for (size_t at = 0; at < text->size();) {
      const size_t end = text->find('\n', at);
      const size_t time_end = text->find(' ', at);
      out += text->substr(time_end + 1, end - time_end);
      at = end + 1;
    }
    return out;
  }

  TempDir dir_;
  const std::string path_ = dir_.File("0.log");
  LogPump pump_{path_, 1 << 20, 2};
};

TEST_F(LogPumpTest, ALineIsWrittenWhenItEnds) {
  pump_.Feed("stdout", "one\ntw", At(0));
  EXPECT_EQ(pump_.TakeBars(At(5000)), std::nullopt) << "a line without an end is not a bar";
  EXPECT_EQ(Written(), "stdout F one\n");
  pump_.Feed("stdout", "o\nthree", At(6000));
  pump_.End("stdout", At(7000));
  EXPECT_EQ(Written(), "stdout F one\nstdout F two\nstdout P three\n");
}

TEST_F(LogPumpTest, ABarIsWrittenASecondAfterItWasBegun) {
  pump_.Feed("stderr", "\r 1/9", At(100));
  EXPECT_EQ(pump_.TakeBars(At(100)), std::chrono::milliseconds(1000));
  pump_.Feed("stderr", "\r 2/9", At(700));
  EXPECT_EQ(pump_.TakeBars(At(700)), std::chrono::milliseconds(400));
  EXPECT_EQ(Written(), "");
  EXPECT_EQ(pump_.TakeBars(At(1100)), std::nullopt);
  EXPECT_EQ(Written(), "stderr P \r 1/9\r 2/9\n");
  pump_.Feed("stderr", "\r 3/9\n", At(1200));
  EXPECT_EQ(Written(), "stderr P \r 1/9\r 2/9\nstderr F \r 3/9\n");
}

TEST_F(LogPumpTest, AClockThatIsSetBackHoldsNoBar) {
  pump_.Feed("stdout", "\r 1/9", At(5000));
  EXPECT_EQ(pump_.TakeBars(At(1000)), std::nullopt);
  EXPECT_EQ(Written(), "stdout P \r 1/9\n");
}

}  // namespace
}  // namespace swell::process
