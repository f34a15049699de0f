#include "kube/images/unpack.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "kube/images/tar_test_util.h"
#include "kube/net/tls/sha256.h"

namespace swell::images {
namespace {

class UnpackTest : public testing::Test {
 protected:
  Result<std::string> Unpack(const std::string& tar, const UnpackLimits& limits = {}) {
    EXPECT_TRUE(WriteFileAtomically(dir_.File("layer.tar"), tar).ok());
    EXPECT_TRUE(RemoveTree(Root()).ok());
    EXPECT_TRUE(MakeDirs(Root()).ok());
    auto input = FileInput::Open(dir_.File("layer.tar"));
    EXPECT_TRUE(input.ok()) << input.status().message();
    return UnpackLayer(**input, Root(), limits, cancel_);
  }
  std::string Root() const { return dir_.File("root"); }
  std::string Read(const std::string& path) { return ReadFile(Root() + path).value(); }
  struct stat Stat(const std::string& path) {
    struct stat info = {};
    EXPECT_EQ(::lstat((Root() + path).c_str(), &info), 0) << path;
    return info;
  }

  TempDir dir_;
  Cancellation cancel_;
};

TEST_F(UnpackTest, FilesHaveTheirModesLinksAndDigest) {
  const std::string tar =
      TarItem("./") + TarItem("bin/", '5', "", "", 0755) +
      TarItem("bin/tool", '0', "text", "", 04755) + TarItem("bin/alias", '2', "", "/bin/tool") +
      TarItem("bin/same", '1', "", "bin/tool") + TarItem("/deep/er/file", '0', "x") + TarEnd();
  auto digest = Unpack(TarItem("./", '5', "", "", 0711) + tar.substr(512));
  ASSERT_TRUE(digest.ok()) << digest.status().message();
  EXPECT_EQ(Read("/bin/tool"), "text");
  EXPECT_EQ(Stat("/bin/tool").st_mode & 07777, 04755u);
  EXPECT_EQ(Stat("/bin/tool").st_ino, Stat("/bin/same").st_ino);
  EXPECT_EQ(std::filesystem::read_symlink(Root() + "/bin/alias"), "/bin/tool");
  EXPECT_EQ(Read("/deep/er/file"), "x");
  EXPECT_EQ(Stat("").st_mode & 07777, 0711u);
  net::Sha256 hash;
  hash.Add(ReadFile(dir_.File("layer.tar")).value());
  EXPECT_EQ(*digest, "sha256:" + hash.Hex());
}

// In a file system of this thread alone, which goes with it.
TEST_F(UnpackTest, StopsBeforeTheDiskHasNoMoreFiles) {
  const std::string disk = dir_.File("disk");
  ASSERT_TRUE(MakeDirs(disk).ok());
  bool permitted = false;
  Status before, after;
  std::thread apart([&] {
    permitted = ::unshare(CLONE_NEWNS) == 0 &&
                ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                ::mount("tmpfs", disk.c_str(), "tmpfs", 0, "nr_inodes=100") == 0;
    if (!permitted) return;
    before = CheckRoom(disk);
    for (int i = 0; i < 97; ++i) EXPECT_TRUE(MakeDirs(StrCat(disk, "/", i)).ok());
    after = CheckRoom(disk);
  });
  apart.join();
  if (!permitted) GTEST_SKIP() << "file systems cannot be mounted here";
  EXPECT_TRUE(before.ok()) << before.message();
  EXPECT_EQ(after.code(), Code::kNoSpace);
  EXPECT_EQ(after.message(),
            "the disk of the image store has no room for more files (2 left): remove some, or "
            "remove images with swell images remove");
}

TEST_F(UnpackTest, WhiteoutsTakeTheOverlaysForm) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_TRUE(Unpack(TarItem("etc/", '5', "", "", 0755) + TarItem("etc/.wh.gone") +
                     TarItem("etc/.wh..wh..opq") + TarItem("etc/.wh..wh.plnk") + TarEnd())
                  .ok());
  EXPECT_TRUE(S_ISCHR(Stat("/etc/gone").st_mode));
  EXPECT_EQ(Stat("/etc/gone").st_rdev, makedev(0, 0));
  char value[8] = {};
  EXPECT_EQ(::getxattr((Root() + "/etc").c_str(), "trusted.overlay.opaque", value, 8), 1);
  EXPECT_EQ(value[0], 'y');
  EXPECT_EQ(ListDir(Root() + "/etc").value(), std::vector<std::string>{"gone"});
}

TEST_F(UnpackTest, WhiteoutsLeaveWhatTheirOwnLayerHas) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  auto opaque = [&](const std::string& dir) {
    char value[8] = {};
    return ::getxattr((Root() + dir).c_str(), "trusted.overlay.opaque", value, 8) == 1 &&
           value[0] == 'y';
  };
  for (const std::string& tar :
       {TarItem(".wh.d") + TarItem("d/", '5', "", "", 0711) + TarItem("d/new", '0', "new"),
        TarItem("d/", '5', "", "", 0711) + TarItem("d/new", '0', "new") + TarItem(".wh.d"),
        TarItem(".wh.d") + TarItem("d/new", '0', "new") + TarItem("d/", '5', "", "", 0711)}) {
    auto done = Unpack(tar + TarItem("file", '0', "kept") + TarItem(".wh.file") +
                       TarItem(".wh.other") + TarItem("other", '0', "made") + TarEnd());
    ASSERT_TRUE(done.ok()) << done.status().message();
    EXPECT_EQ(Read("/d/new"), "new");
    EXPECT_EQ(Stat("/d").st_mode & 07777, 0711u);
    EXPECT_TRUE(opaque("/d"));
    EXPECT_EQ(Read("/file"), "kept");
    EXPECT_EQ(Read("/other"), "made");
  }
  // A directory that is nowhere removed shows what is below.
  ASSERT_TRUE(Unpack(TarItem("d/new", '0', "new") + TarItem("d/.wh.old") + TarEnd()).ok());
  EXPECT_FALSE(opaque("/d"));
  // Nothing removes a file of the same layer.
  EXPECT_FALSE(Unpack(TarItem("d", '0', "file") + TarItem("d/new") + TarEnd()).ok());
}

TEST_F(UnpackTest, DirectoriesKeepTheirTimes) {
  ASSERT_TRUE(Unpack(TarItem("./", '5', "", "", 0755) + TarItem("d/", '5', "", "", 0755) +
                     TarItem("d/e/", '5', "", "", 0500) + TarItem("d/e/file") + TarEnd())
                  .ok());
  for (const char* path : {"", "/d", "/d/e", "/d/e/file"}) {
    EXPECT_EQ(Stat(path).st_mtim.tv_sec, 1000) << path;
  }
}

TEST_F(UnpackTest, LinksOfAnArchiveBecomeTheirFiles) {
  ASSERT_TRUE(WriteFileAtomically(dir_.File("secret"), "secret").ok());
  ASSERT_TRUE(MakeDirs(Root()).ok());
  const std::string file = dir_.File("archive.tar");
  ASSERT_TRUE(WriteFileAtomically(file, TarItem("a/layer.tar", '2', "", "../b/layer.tar") +
                                            TarItem("c/layer.tar", '1', "", "b/layer.tar") +
                                            TarItem("b/layer.tar", '0', "layer") +
                                            TarItem("d/up", '2', "", "../../secret") +
                                            TarItem("d/root", '2', "", dir_.File("secret")) +
                                            TarItem("d/hard", '1', "", "../secret") +
                                            TarItem("d/none", '2', "", "nothing") +
                                            TarItem("../out", '2', "", "b/layer.tar") + TarEnd())
                  .ok());
  Status done = UnpackFiles(file, Root(), cancel_);
  ASSERT_TRUE(done.ok()) << done.message();
  EXPECT_EQ(Read("/a/layer.tar"), "layer");
  EXPECT_EQ(Read("/c/layer.tar"), "layer");
  EXPECT_TRUE(S_ISREG(Stat("/a/layer.tar").st_mode));
  EXPECT_TRUE(ListDir(Root() + "/d").value().empty());
  EXPECT_FALSE(FileExists(dir_.File("out")));
}

TEST_F(UnpackTest, NamesThatLeadOutAreRefused) {
  for (const char* path : {"../out", "a/../../out", "..", "/../out", "a/.wh...", "./../x"}) {
    auto done = Unpack(TarItem(path, '0', "evil") + TarEnd());
    ASSERT_FALSE(done.ok()) << path;
    EXPECT_EQ(done.status().code(), Code::kInvalid) << done.status().message();
    EXPECT_FALSE(FileExists(dir_.File("out")));
  }
}

TEST_F(UnpackTest, LinksNeverLeadOut) {
  ASSERT_TRUE(MakeDirs(dir_.File("outside")).ok());
  ASSERT_TRUE(WriteFileAtomically(dir_.File("outside/file"), "safe").ok());
  const std::string outside = dir_.File("outside");
  // An absolute link counts from the layer's root, where there is no such directory.
  for (const std::string& target : {outside, std::string("../outside"), std::string("../..")}) {
    auto done =
        Unpack(TarItem("way", '2', "", target) + TarItem("way/file", '0', "evil") + TarEnd());
    EXPECT_EQ(ReadFile(dir_.File("outside/file")).value(), "safe") << target;
    if (!done.ok()) {
      EXPECT_EQ(done.status().code(), Code::kInvalid);
    }
    EXPECT_FALSE(FileExists(dir_.File("file")));
  }
  // A file that is written through a link replaces the link.
  ASSERT_TRUE(
      Unpack(TarItem("file", '2', "", outside + "/file") + TarItem("file", '0', "evil") + TarEnd())
          .ok());
  EXPECT_EQ(ReadFile(outside + "/file").value(), "safe");
  EXPECT_EQ(Read("/file"), "evil");
}

TEST_F(UnpackTest, HardLinksNeverLeadOut) {
  ASSERT_TRUE(WriteFileAtomically(dir_.File("secret"), "secret").ok());
  for (const std::string& target : {std::string("../secret"), dir_.File("secret")}) {
    auto done = Unpack(TarItem("steal", '1', "", target) + TarEnd());
    ASSERT_FALSE(done.ok()) << target;
    EXPECT_FALSE(FileExists(Root() + "/steal"));
  }
  auto done =
      Unpack(TarItem("d", '2', "", "..") + TarItem("steal", '1', "", "d/secret") + TarEnd());
  EXPECT_FALSE(done.ok());
}

TEST_F(UnpackTest, DeviceFilesAreLeftOut) {
  ASSERT_TRUE(Unpack(TarItem("dev/", '5', "", "", 0755) + TarItem("dev/sda", '4') +
                     TarItem("dev/mem", '3') + TarItem("after", '0', "x") + TarEnd())
                  .ok());
  EXPECT_TRUE(ListDir(Root() + "/dev").value().empty());
  EXPECT_EQ(Read("/after"), "x");
}

TEST_F(UnpackTest, AttributesOfTheOverlayAreNotTakenFromLayers) {
  auto pax = [](const std::string& name) {
    std::string rest = " SCHILY.xattr." + name + "=y\n";
    size_t size = rest.size() + 2;
    return TarItem("p", 'x', std::to_string(size) + rest);
  };
  ASSERT_TRUE(Unpack(pax("trusted.overlay.redirect") + TarItem("a", '5', "", "", 0755) +
                     pax("user.overlay.opaque") + TarItem("b", '5', "", "", 0755) + TarEnd())
                  .ok());
  char value[8];
  EXPECT_LT(::getxattr((Root() + "/a").c_str(), "trusted.overlay.redirect", value, 8), 0);
  EXPECT_LT(::getxattr((Root() + "/b").c_str(), "user.overlay.opaque", value, 8), 0);
}

TEST_F(UnpackTest, DamagedArchivesAreErrors) {
  const std::string good = TarItem("file", '0', std::string(5000, 'x')) + TarEnd();
  EXPECT_FALSE(Unpack(good.substr(0, 2000)).ok());
  EXPECT_FALSE(Unpack(std::string(3000, 'z')).ok());
  EXPECT_FALSE(Unpack("\x1f\x8b\x08" + std::string(100, '\xff')).ok());
  // A header that claims to be larger than any memory.
  std::string huge = TarItem("p", 'x', "");
  std::memcpy(huge.data() + 124, "77777777777", 11);
  EXPECT_FALSE(Unpack(huge + TarEnd()).ok());
  auto empty = Unpack("");
  EXPECT_TRUE(empty.ok()) << empty.status().message();
}

TEST_F(UnpackTest, SizesAndNumbersAreBounded) {
  auto large = Unpack(TarItem("a", '0', std::string(4096, 'x')) + TarItem("b") + TarEnd(),
                      {.bytes_max = 1024});
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.status().code(), Code::kTooLarge);
  auto many = Unpack(TarItem("a") + TarItem("b") + TarItem("c") + TarEnd(), {.entries_max = 2});
  ASSERT_FALSE(many.ok());
  EXPECT_EQ(many.status().code(), Code::kTooLarge);
}

TEST_F(UnpackTest, ACancelledUnpackEnds) {
  cancel_.Cancel();
  EXPECT_FALSE(Unpack(TarItem("a") + TarEnd()).ok());
}

TEST_F(UnpackTest, NamesMayHaveAnyBytes) {
  ASSERT_TRUE(
      Unpack(TarItem("gr\xc3\xbc\xc3\x9f", '0', "x") + TarItem("\xff\xfe", '0', "y") + TarEnd())
          .ok());
  EXPECT_EQ(Read("/gr\xc3\xbc\xc3\x9f"), "x");
  EXPECT_EQ(Read("/\xff\xfe"), "y");
  const std::string rest = " path=l\xc3\xa4nge\n";
  ASSERT_TRUE(Unpack(TarItem("p", 'x', std::to_string(rest.size() + 2) + rest) +
                     TarItem("short", '0', "z") + TarEnd())
                  .ok());
  EXPECT_EQ(Read("/l\xc3\xa4nge"), "z");
}

}  // namespace
}  // namespace swell::images
