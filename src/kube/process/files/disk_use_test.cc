#include "kube/process/files/disk_use.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"
#include "base/unique_fd.h"

namespace swell::process {
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

// A pod hides nothing from its limit by putting it deep.
TEST(BytesOnDisk, CountsFilesAtAnyDepth) {
  TempDir dir;
  const int64_t before = BytesOnDisk(dir.path());
  UniqueFd at(::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), "d", 0755), 0);
    at = UniqueFd(::openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(at.valid());
  }
  const UniqueFd file(::openat(at.get(), "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  const std::string large(8 << 20, 'x');
  ASSERT_EQ(::write(file.get(), large.data(), large.size()), static_cast<ssize_t>(large.size()));
  ASSERT_EQ(::fsync(file.get()), 0);
  EXPECT_GE(BytesOnDisk(dir.path()) - before, 8 << 20);
}

TEST(BytesOnDisk, HolesTakeNothing) {
  TempDir dir;
  ASSERT_TRUE(WriteFileAtomically(dir.File("holes"), "x").ok());
  ASSERT_EQ(::truncate(dir.File("holes").c_str(), 1 << 30), 0);
  EXPECT_LT(BytesOnDisk(dir.path()), 1 << 20);
}

TEST(BytesOnDisk, WhatIsNotThereTakesNothing) { EXPECT_EQ(BytesOnDisk("/nowhere/at/all"), 0); }

}  // namespace
}  // namespace swell::process
