#include "kube/process/shim/beneath.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"

namespace swell::process {
namespace {

class BeneathTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = StrCat(testing::TempDir(), "swell-beneath-", ::getpid());
    volume_ = dir_ + "/volume";
    ASSERT_TRUE(RemoveTree(dir_).ok());
    ASSERT_TRUE(MakeDirs(volume_ + "/inside/deep").ok());
    ASSERT_TRUE(WriteFileAtomically(dir_ + "/secret", "hunter2").ok());
  }
  void TearDown() override { ASSERT_TRUE(RemoveTree(dir_).ok()); }
  void Link(const std::string& target, const std::string& name) {
    ASSERT_EQ(::symlink(target.c_str(), (volume_ + "/" + name).c_str()), 0);
  }
  std::string Error(const std::string& relative) {
    auto opened = OpenBeneath(volume_, relative);
    return opened.ok() ? "fine" : opened.status().message();
  }

  std::string dir_, volume_;
};

TEST_F(BeneathTest, AbsoluteLinksLeadToPlacesInTheRoot) {
  Link("/inside/deep", "absolute");
  Link("/../../secret", "out");
  auto opened = OpenInRoot(volume_, "/absolute");
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  struct stat led {
  }, there{};
  ASSERT_EQ(::fstat(opened->get(), &led), 0);
  ASSERT_EQ(::stat((volume_ + "/inside/deep").c_str(), &there), 0);
  EXPECT_EQ(led.st_ino, there.st_ino);
  EXPECT_EQ(OpenInRoot(volume_, "/out").status().code(), Code::kNotFound);
}

TEST_F(BeneathTest, FollowsLinksThatStay) {
  Link("inside", "link");
  EXPECT_EQ(Error("link/deep"), "fine");
  EXPECT_EQ(Error("inside/../inside"), "fine");
  EXPECT_EQ(Error(""), "fine");
  auto opened = OpenBeneath(volume_, "inside");
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(WriteFileAtomically(DescriptorPath(*opened) + "/x", "y").ok());
  EXPECT_EQ(ReadFile(volume_ + "/inside/x").value(), "y");
}

TEST_F(BeneathTest, RefusesWhatLeadsOut) {
  Link("/etc", "absolute");
  Link("../secret", "relative");
  Link("absolute", "twice");
  Link("circle", "circle");
  for (const char* path : {"absolute", "absolute/passwd", "relative", "twice/x", "circle", "..",
                           "inside/../../secret", "inside/deep/../../../secret"}) {
    EXPECT_EQ(Error(path), StrCat("subPath ", Quote(path), " leaves the volume"));
  }
}

TEST_F(BeneathTest, ReadsPlainFilesOnly) {
  auto read = [this](const std::string& name) {
    auto text = ReadPlainFile(volume_, name, 100);
    return text.ok() ? *text : std::string(Reason(text.status().code()));
  };
  ASSERT_TRUE(WriteFileAtomically(volume_ + "/plain", "words").ok());
  EXPECT_EQ(read("plain"), "words");
  Link("../secret", "link");
  Link("plain", "inner");
  ASSERT_EQ(::mkfifo((volume_ + "/pipe").c_str(), 0666), 0);
  for (const char* name : {"link", "inner", "pipe", "inside"}) {
    EXPECT_EQ(read(name), Reason(Code::kInvalid)) << name;
  }
  EXPECT_EQ(read("nothing"), Reason(Code::kNotFound));
  ASSERT_TRUE(WriteFileAtomically(volume_ + "/plain", std::string(101, 'x')).ok());
  EXPECT_EQ(read("plain"), Reason(Code::kTooLarge));
}

TEST_F(BeneathTest, MakesNothingOutside) {
  ASSERT_TRUE(MakeDirs(dir_ + "/other").ok());
  Link("../other", "link");
  EXPECT_EQ(Error("link/new/dir"), "subPath \"link/new/dir\" leaves the volume");
  EXPECT_FALSE(FileExists(dir_ + "/other/new"));
  EXPECT_EQ(Error("new/dir"), "fine");
  EXPECT_TRUE(FileExists(volume_ + "/new/dir"));
}

TEST_F(BeneathTest, WhatItMakesBelongsToTheOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives directories away";
  ASSERT_TRUE(OpenBeneath(volume_, "inside/new/dir", MissingDirs::kAreMade, 70'000).ok());
  const auto owner = [this](const char* dir) {
    struct stat info {};
    EXPECT_EQ(::stat(StrCat(volume_, "/", dir).c_str(), &info), 0);
    return info.st_uid;
  };
  EXPECT_EQ(owner("inside"), 0u) << "it was there";
  EXPECT_EQ(owner("inside/new"), 70'000u);
  EXPECT_EQ(owner("inside/new/dir"), 70'000u);
}

}  // namespace
}  // namespace swell::process
