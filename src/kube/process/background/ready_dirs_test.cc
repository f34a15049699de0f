#include "kube/process/background/ready_dirs.h"

#include <unistd.h>

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "kube/net/reactor/reactor.h"

namespace swell::process {
namespace {

constexpr Duration kLimit = std::chrono::seconds(30);

class ReadyDirsTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(MakeDirs(dir_).ok()); }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  Status Make(const std::string& path) {
    MutexLock lock(mutex_);
    made_.insert(path);
    return MakeDirs(path + "/part");
  }

  bool Made(const std::string& path) {
    MutexLock lock(mutex_);
    return made_.contains(path);
  }

  ReadyDirs::Options Options(size_t ready) {
    return {.prefix = dir_ + "/ready/",
            .ready = ready,
            .make = [this](const std::string& path) { return Make(path); },
            .post =
                [this](std::function<void()> fn) {
                  owner_.Post([this, fn = std::move(fn)] {
                    fn();
                    ++told_;
                  });
                }};
  }

  // One at once, one when it is quiet.
  void MakeTwoReady(ReadyDirs& dirs) {
    dirs.Refill();
    ASSERT_TRUE(owner_.RunUntil([this] { return told_ == 3; }, kLimit));
  }

  const std::string dir_ = StrCat(testing::TempDir(), "ready-dirs-", ::getpid());
  net::Reactor owner_;
  int told_ = 0;
  Mutex mutex_;
  std::set<std::string> made_ SWELL_GUARDED_BY(mutex_);
};

TEST_F(ReadyDirsTest, AReadyOneIsMovedToItsPlace) {
  ReadyDirs dirs(Options(2));
  MakeTwoReady(dirs);
  ASSERT_TRUE(dirs.Take(dir_ + "/a").ok());
  ASSERT_TRUE(dirs.Take(dir_ + "/b").ok());
  for (const char* name : {"/a", "/b"}) {
    EXPECT_FALSE(Made(dir_ + name));
    EXPECT_TRUE(FileExists(dir_ + name + "/part"));
  }
}

TEST_F(ReadyDirsTest, WithNoneReadyItIsMadeInItsPlace) {
  ReadyDirs dirs(Options(0));
  ASSERT_TRUE(dirs.Take(dir_ + "/a").ok());
  EXPECT_TRUE(Made(dir_ + "/a"));
  EXPECT_TRUE(FileExists(dir_ + "/a/part"));
  EXPECT_FALSE(dirs.Take("/proc/self/no/such/place").ok());
}

TEST_F(ReadyDirsTest, WhatIsThereAlreadyStaysAndIsCompleted) {
  ReadyDirs dirs(Options(2));
  MakeTwoReady(dirs);
  ASSERT_TRUE(MakeDirs(dir_ + "/a/own").ok());
  ASSERT_TRUE(dirs.Take(dir_ + "/a").ok());
  EXPECT_EQ(ListDir(dir_ + "/a").value(), (std::vector<std::string>{"own", "part"}));
}

TEST_F(ReadyDirsTest, OneThatVanishedIsMadeInItsPlace) {
  ReadyDirs dirs(Options(2));
  MakeTwoReady(dirs);
  ASSERT_TRUE(RemoveTree(dir_ + "/ready").ok());
  ASSERT_TRUE(dirs.Take(dir_ + "/a").ok());
  EXPECT_TRUE(FileExists(dir_ + "/a/part"));
}

TEST_F(ReadyDirsTest, NothingIsMadeReadyAfterTheEnd) {
  ReadyDirs dirs(Options(8));
  dirs.Refill();
  dirs.Finish();
  ASSERT_TRUE(RemoveTree(dir_ + "/ready").ok());
  ASSERT_TRUE(dirs.Take(dir_ + "/a").ok());
  ASSERT_TRUE(owner_.RunUntil([this] { return told_ == 5; }, kLimit));  // four made, one quiet
  ASSERT_TRUE(dirs.Take(dir_ + "/b").ok());
  EXPECT_FALSE(FileExists(dir_ + "/ready"));
}

}  // namespace
}  // namespace swell::process
