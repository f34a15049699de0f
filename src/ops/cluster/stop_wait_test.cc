#include "ops/cluster/stop_wait.h"

#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/sim_executor.h"
#include "base/temp_dir.h"
#include "kube/process/files/data_dir.h"
#include "kube/process/pod_store.h"

namespace swell::ops {
namespace {

using std::chrono::seconds;

class StopWaitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto path = process::PrepareDataDir(dir_.path());
    ASSERT_TRUE(path.ok());
    memory_ = process::MemoryRootOf(process::TagOf(*path));
    ASSERT_TRUE(MakeDirs(memory_).ok());
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(memory_).ok()); }

  void Tell(const process::SavingStates& saving) { process::TellSaving(dir_.path(), saving); }
  std::string LookAfter(int after) {
    sim_.Advance(seconds(after));
    return wait_.Look();
  }

  TempDir dir_;
  std::string memory_;
  SimExecutor sim_;
  StopWait wait_{sim_, dir_.path()};
};

TEST_F(StopWaitTest, AClusterHasAMinute) {
  EXPECT_EQ(LookAfter(59), "");
  EXPECT_FALSE(wait_.over());
  EXPECT_EQ(LookAfter(1), "");
  EXPECT_TRUE(wait_.over());
}

TEST_F(StopWaitTest, StatesThatAreBeingWrittenHaveAsLongAsTheyGetOn) {
  Tell({.states = 2, .bytes = 3LL << 30, .written = 1LL << 30});
  EXPECT_EQ(LookAfter(2), "The cluster writes what pods left in memory to disk: 1024 of 3072 MiB");
  EXPECT_EQ(LookAfter(1), "") << "not every second";
  Tell({.states = 2, .bytes = 3LL << 30, .written = 2LL << 30});
  EXPECT_EQ(LookAfter(50), "The cluster writes what pods left in memory to disk: 2048 of 3072 MiB");
  LookAfter(59);
  EXPECT_FALSE(wait_.over());
  LookAfter(1);
  EXPECT_TRUE(wait_.over()) << "the disk hangs";
}

TEST_F(StopWaitTest, AFullDiskIsSaidWithWhatToDo) {
  Tell({.states = 1, .delay = "3 MiB are missing", .seconds_left = 290});
  EXPECT_EQ(
      LookAfter(2),
      "A state that a pod left in memory is not on disk yet: 3 MiB are missing. It is lost in "
      "290 s; to give it up now: swell down --now");
  Tell({});
  EXPECT_EQ(LookAfter(20), "");
  EXPECT_EQ(*ListDir(memory_), std::vector<std::string>{}) << "the file is gone";
}

TEST_F(StopWaitTest, NobodyElseMakesOneWait) {
  Tell({.states = 1, .delay = "for ever", .seconds_left = 290});
  if (::chown(memory_.c_str(), 12345, 12345) != 0) GTEST_SKIP() << "only root may";
  EXPECT_EQ(LookAfter(2), "");
}

}  // namespace
}  // namespace swell::ops
