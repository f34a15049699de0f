#include "cli/pods/tar.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/random.h"
#include "base/strings.h"

namespace swell::cli {
namespace {

class TarTest : public ::testing::Test {
 protected:
  TarTest() {
    char name[] = "/tmp/swell-tar-test-XXXXXX";
    EXPECT_NE(::mkdtemp(name), nullptr);
    dir_ = name;
  }
  ~TarTest() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  void Write(const std::string& path, const std::string& text, int mode = 0644) {
    const std::string whole = dir_ + "/" + path;
    ASSERT_TRUE(MakeDirs(whole.substr(0, whole.rfind('/'))).ok());
    ASSERT_TRUE(WriteFileAtomically(whole, text, mode).ok());
  }
  std::string Read(const std::string& path) {
    auto text = ReadFile(dir_ + "/" + path);
    return text.ok() ? *text : text.status().ToString();
  }
  std::string Archive(const std::string& path, const std::string& name) {
    TarWriter writer(dir_ + "/" + path, name);
    std::string all;
    while (true) {
      auto piece = writer.Next();
      EXPECT_TRUE(piece.ok()) << piece.status().ToString();
      if (!piece.ok() || piece->empty()) return all;
      all += *piece;
    }
  }
  Status Unpack(const std::string& archive, const std::string& prefix, size_t piece = 777) {
    TarReader reader(prefix, dir_ + "/out",
                     [this](std::string_view text) { warnings_ += StrCat(text, "\n"); });
    for (size_t at = 0; at < archive.size(); at += piece) {
      SWELL_RETURN_IF_ERROR(reader.Feed(std::string_view(archive).substr(at, piece)));
    }
    return reader.Finish();
  }

  std::string dir_;
  std::string warnings_;
};

TEST_F(TarTest, ATreeComesBackAsItWas) {
  const std::string long_name(180, 'n');
  Write("in/a", "hello");
  Write("in/empty", "");
  Write("in/sub/run.sh", "#!/bin/sh\n", 0755);
  Write("in/sub/" + long_name, std::string(100'000, 'x'));
  ASSERT_EQ(::symlink("a", (dir_ + "/in/link").c_str()), 0);
  ASSERT_TRUE(MakeDirs(dir_ + "/in/nothing").ok());
  Status unpacked = Unpack(Archive("in", "tree"), "tree");
  ASSERT_TRUE(unpacked.ok()) << unpacked.ToString();
  EXPECT_EQ(Read("out/a"), "hello");
  EXPECT_EQ(Read("out/empty"), "");
  EXPECT_EQ(Read("out/link"), "hello");
  EXPECT_EQ(Read("out/sub/" + long_name).size(), 100'000u);
  struct stat info;
  ASSERT_EQ(::stat((dir_ + "/out/sub/run.sh").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0755u);
  EXPECT_TRUE(FileExists(dir_ + "/out/nothing"));
  EXPECT_EQ(warnings_, "");
}

TEST_F(TarTest, ASingleFileTakesItsNewName) {
  Write("in", "text");
  ASSERT_TRUE(Unpack(Archive("in", "there"), "there", 1).ok());
  EXPECT_EQ(Read("out"), "text");
}

TEST_F(TarTest, NothingIsWrittenOutside) {
  Write("in/x", "evil");
  for (const std::string name : {"../escape", "tree/../../escape", "other"}) {
    warnings_.clear();
    ASSERT_TRUE(Unpack(Archive("in/x", name), "tree").ok());
    EXPECT_TRUE(warnings_.starts_with("skipping ")) << name;
  }
  EXPECT_FALSE(FileExists(dir_ + "/escape"));
  ASSERT_EQ(::symlink("../..", (dir_ + "/in/up").c_str()), 0);
  warnings_.clear();
  ASSERT_TRUE(Unpack(Archive("in", "tree"), "tree").ok());
  EXPECT_FALSE(FileExists(dir_ + "/out/up"));
  EXPECT_NE(warnings_.find("the link points outside"), std::string::npos);
  // Nor through a link that was there before.
  ASSERT_EQ(::symlink(dir_.c_str(), (dir_ + "/out/door").c_str()), 0);
  ASSERT_TRUE(Unpack(Archive("in/x", "tree/door/walked"), "tree").ok());
  EXPECT_FALSE(FileExists(dir_ + "/walked"));
}

TEST_F(TarTest, ACutOrDamagedArchiveIsAnError) {
  Write("in/a", std::string(5000, 'a'));
  const std::string good = Archive("in", "tree");
  EXPECT_EQ(Unpack(good.substr(0, 2000), "tree").message(), "the archive is cut off");
  Random random(5);
  for (int round = 0; round < 500; ++round) {
    std::string bad = good;
    bad[random.Next() % bad.size()] ^= static_cast<char>(1 + random.Next() % 255);
    Status ignored = Unpack(bad, "tree");
    (void)ignored;  // whatever it says: it stays inside
  }
  auto names = ListDir(dir_);
  ASSERT_TRUE(names.ok());
  EXPECT_EQ(*names, (std::vector<std::string>{"in", "out"}));
}

}  // namespace
}  // namespace swell::cli
