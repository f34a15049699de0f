// What containers use, read from files as the kernel writes them, and of a real process.
#include "kube/process/machine/usage_meter.h"

#include <unistd.h>

#include <algorithm>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"

namespace swell::process {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class UsageMeterTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::string file = StrCat(root_, "/", path);
    ASSERT_TRUE(MakeDirs(file.substr(0, file.rfind('/'))).ok());
    ASSERT_TRUE(WriteFileAtomically(file, text).ok());
  }
  // A process with so many ticks of user time, and of children that have ended.
  void WriteProcess(int pid, int parent, int ticks, int ended, int resident, int shared) {
    Write(StrCat("proc/", pid, "/stat"), StrCat(pid, " (a ) b) S ", parent, " 1 1 0 -1 0 0 0 0 0 ",
                                                ticks, " 1 ", ended, " 0 20\n"));
    Write(StrCat("proc/", pid, "/statm"), StrCat("9999 ", resident, " ", shared, " 1 0 1 0\n"));
  }
  std::vector<node::ContainerUsage> Measure(const UsageMeter::Subject& subject, Duration at) {
    return meter_.Measure({subject}, start_ + at, SteadyTime{500} + at);
  }

  const TempDir dir_;
  const std::string root_ = dir_.path();
  UsageMeter meter_{root_ + "/proc"};
  WallTime start_{1'700'000'000'000'000'000};
  const int64_t page_ = ::sysconf(_SC_PAGESIZE);
  const Duration tick_{1'000'000'000 / ::sysconf(_SC_CLK_TCK)};
};

TEST_F(UsageMeterTest, ATreeOfProcessesCountsWithItsEndedChildrenAndSharesPagesOnce) {
  WriteProcess(1, 0, 100000, 0, 5000, 10);
  WriteProcess(10, 1, 50, 7, 300, 200);
  WriteProcess(11, 10, 20, 0, 250, 210);
  WriteProcess(12, 11, 30, 0, 100, 90);
  WriteProcess(20, 1, 4000, 0, 4000, 10);
  const auto usage = Measure({{"pod", "main", 0}, 10, "", start_}, seconds(2));
  ASSERT_EQ(usage.size(), 1u);
  EXPECT_EQ(usage[0].cpu, (50 + 7 + 20 + 30 + 3) * tick_);
  EXPECT_EQ(usage[0].memory_bytes, (100 + 40 + 10 + 210) * page_);
  // Until there is more to compare with, since its start.
  EXPECT_EQ(usage[0].window, seconds(2));
  EXPECT_EQ(usage[0].window_cpu, usage[0].cpu);
  EXPECT_EQ(usage[0].at, start_ + seconds(2));
}

TEST_F(UsageMeterTest, ARateIsOfTheLastSeconds) {
  const UsageMeter::Subject subject{{"pod", "main", 0}, 10, "", start_};
  for (int second = 0; second <= 60; second += 5) {
    // Busy in the last 20 seconds only.
    WriteProcess(10, 1, std::max(0, second - 40) * 50, 0, 1, 0);
    const auto usage = Measure(subject, seconds(second));
    ASSERT_EQ(usage.size(), 1u);
    EXPECT_LE(usage[0].window, seconds(15));
    if (second < 10) continue;
    EXPECT_EQ(usage[0].window, UsageMeter::kWindow) << second;
    const int busy = std::clamp(second - 40, 0, 10);
    EXPECT_EQ(usage[0].window_cpu, busy * 50 * tick_ + (second == 10 ? tick_ : Duration(0)))
        << second;
  }
  // Frequent requests get rates over seconds, too, not over moments.
  for (int ms = 100; ms <= 3000; ms += 100) {
    const auto usage = Measure(subject, seconds(60) + milliseconds(ms));
    ASSERT_EQ(usage.size(), 1u);
    EXPECT_GE(usage[0].window, UsageMeter::kWindow);
  }
}

TEST_F(UsageMeterTest, TimeNeverGoesBack) {
  const UsageMeter::Subject subject{{"pod", "main", 0}, 10, "", start_};
  WriteProcess(10, 1, 500, 0, 1, 0);
  EXPECT_EQ(Measure(subject, seconds(5))[0].cpu, 501 * tick_);
  WriteProcess(10, 1, 400, 0, 1, 0);
  EXPECT_EQ(Measure(subject, seconds(20))[0].cpu, 501 * tick_);
  EXPECT_EQ(Measure(subject, seconds(20))[0].window_cpu, Duration(0));
}

TEST_F(UsageMeterTest, AControlGroupTellsMoreThanItsProcesses) {
  Write("group/cpu.stat", "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\n");
  Write("group/memory.current", "1000000\n");
  Write("group/memory.stat", "anon 5\nfile 7\nactive_file 9\ninactive_file 400000\n");
  const UsageMeter::Subject subject{{"pod", "main", 0}, 10, root_ + "/group", start_};
  auto usage = Measure(subject, seconds(5));
  ASSERT_EQ(usage.size(), 1u);
  EXPECT_EQ(usage[0].cpu, milliseconds(2500));
  EXPECT_EQ(usage[0].memory_bytes, 600000);
  // A group without these files: the processes.
  ASSERT_TRUE(RemoveTree(root_ + "/group/memory.stat").ok());
  WriteProcess(10, 1, 1000, 0, 3, 0);
  usage = Measure(subject, seconds(6));
  ASSERT_EQ(usage.size(), 1u);
  EXPECT_EQ(usage[0].memory_bytes, 3 * page_);
}

TEST_F(UsageMeterTest, WhoIsGoneUsesNothingAndIsForgotten) {
  const UsageMeter::Subject subject{{"pod", "main", 0}, 10, "", start_};
  EXPECT_TRUE(Measure(subject, seconds(1)).empty());
  WriteProcess(10, 1, 500, 0, 1, 0);
  EXPECT_EQ(Measure(subject, seconds(30)).size(), 1u);
  meter_.Measure({}, start_ + seconds(31), SteadyTime{500} + seconds(31));
  // As if it had just been met: its own start is all there is.
  EXPECT_EQ(Measure(subject, seconds(40))[0].window, seconds(40));
}

TEST(UsageMeterHere, ThisProcess) {
  UsageMeter meter;
  const RealClock clock;
  const auto usage = meter.Measure({{{"pod", "main", 0}, ::getpid(), "", clock.Now()}}, clock.Now(),
                                   clock.Steady());
  ASSERT_EQ(usage.size(), 1u);
  EXPECT_GT(usage[0].memory_bytes, 1 << 20);
  EXPECT_GE(usage[0].cpu, Duration(0));
}

}  // namespace
}  // namespace swell::process
