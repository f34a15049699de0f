#include "kube/process/files/disk_use.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"

namespace swell::edge {
namespace {

TEST(BytesOnDisk, CountsFilesOnceAndFollowsNoLink) {
  TempDir dir;
  const std::string root = dir.File("root");
  ASSERT_TRUE(MakeDirs(root + "/a/b").ok());
  const std::string large(1 << 20, 'x');
  ASSERT_TRUE(WriteFileAtomically(dir.File("outside"), large).ok());
  const int64_t before = BytesOnDisk(root);
  ASSERT_TRUE(WriteFileAtomically(root + "/a/b/file", large).ok());
  ASSERT_EQ(::link((root + "/a/b/file").c_str(), (root + "/same").c_str()), 0);
  ASSERT_EQ(::symlink(dir.File("outside").c_str(), (root + "/away").c_str()), 0);
  ASSERT_EQ(::symlink(dir.path().c_str(), (root + "/up").c_str()), 0);
  const int64_t grown = BytesOnDisk(root) - before;
  EXPECT_GE(grown, 1 << 20);
  EXPECT_LT(grown, 1 << 21);
}

TEST(BytesOnDisk, HolesTakeNothing) {
  TempDir dir;
  ASSERT_TRUE(WriteFileAtomically(dir.File("holes"), "x").ok());
  ASSERT_EQ(::truncate(dir.File("holes").c_str(), 1 << 30), 0);
  EXPECT_LT(BytesOnDisk(dir.path()), 1 << 20);
}

TEST(BytesOnDisk, WhatIsNotThereTakesNothing) { EXPECT_EQ(BytesOnDisk("/nowhere/at/all"), 0); }

}  // namespace
}  // namespace swell::edge
