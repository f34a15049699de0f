#include "kube/process/background/remover.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"

namespace swell::process {
namespace {

class RemoverTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(MakeDirs(dir_).ok()); }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  void MakeTree(const std::string& path) {
    ASSERT_TRUE(MakeDirs(path + "/a/b").ok());
    ASSERT_TRUE(WriteFileAtomically(path + "/a/b/file", "content").ok());
  }

  const std::string dir_ = StrCat(testing::TempDir(), "remover-", ::getpid());
  const std::string trash_ = dir_ + "/removed";
};

TEST_F(RemoverTest, ThePathIsFreeAtOnceAndTheTreeGoes) {
  Remover remover;
  for (int round = 0; round < 100; ++round) {
    MakeTree(dir_ + "/pod");
    // As an overlay's work directory: nobody may look into it.
    ::chmod((dir_ + "/pod/a/b").c_str(), 0);
    ASSERT_TRUE(remover.Discard(dir_ + "/pod", trash_).ok());
    ASSERT_FALSE(FileExists(dir_ + "/pod"));
  }
  remover.Finish();
  EXPECT_EQ(ListDir(trash_).value(), std::vector<std::string>{});
}

TEST_F(RemoverTest, WhatIsNotThereIsNoError) {
  Remover remover;
  EXPECT_TRUE(remover.Discard(dir_ + "/nothing", trash_).ok());
  EXPECT_FALSE(FileExists(trash_));
}

TEST_F(RemoverTest, WithoutAnTrashTheTreeIsRemovedAtOnce) {
  Remover remover;
  MakeTree(dir_ + "/pod");
  ASSERT_TRUE(WriteFileAtomically(dir_ + "/file", "").ok());
  ASSERT_TRUE(remover.Discard(dir_ + "/pod", dir_ + "/file/removed").ok());
  EXPECT_FALSE(FileExists(dir_ + "/pod"));
}

TEST_F(RemoverTest, WhatAnEarlierRunLeftGoesToo) {
  MakeTree(trash_ + "/1-0");
  MakeTree(trash_ + "/1-1");
  Remover remover;
  remover.Empty(trash_);
  remover.Empty(dir_ + "/nothing");
  remover.Finish();
  EXPECT_EQ(ListDir(trash_).value(), std::vector<std::string>{});
}

}  // namespace
}  // namespace swell::process
