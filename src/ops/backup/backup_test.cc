#include "ops/backup/backup.h"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "kube/store/backend.h"

namespace swell::ops {
namespace {

class BackupTest : public ::testing::Test {
 protected:
  // A stopped cluster without objects.
  void MakeCluster(const DataDir& dir) {
    ASSERT_TRUE(PrepareDataDir(dir).ok());
    ASSERT_TRUE(MakeDirs(dir.path + "/pki", 0700).ok());
    for (const char* file : {"ca.crt", "ca.key", "sa.key"}) {
      ASSERT_TRUE(WriteFileAtomically(StrCat(dir.path, "/pki/", file), file, 0600).ok());
    }
    ASSERT_TRUE(WriteFileAtomically(dir.PortFile(), "12345").ok());
    ASSERT_TRUE(store::WriteDatabase(dir.Database(), {}).ok());
  }
  Status Save(const DataDir& dir, const std::string& passphrase = "") {
    return Backup(dir, file_, passphrase, print_);
  }
  Status Load(const DataDir& dir,
              ClusterThere there = ClusterThere::kIsKept,
              const std::string& passphrase = "") {
    return Restore(dir, file_, there, passphrase, print_);
  }

  TempDir temp_;
  const DataDir old_{temp_.File("old")};
  const DataDir fresh_{temp_.File("fresh")};
  const std::string file_ = temp_.File("cluster.tar");
  std::string printed_;
  const PrintLine print_ = [this](std::string_view line) { printed_ += StrCat(line, "\n"); };
};

TEST_F(BackupTest, AClusterIsRestoredIntoAnotherDirectory) {
  MakeCluster(old_);
  Status saved = Save(old_);
  ASSERT_TRUE(saved.ok()) << saved.ToString();
  EXPECT_NE(printed_.find("0 objects of the stopped cluster in "), std::string::npos) << printed_;
  Status loaded = Load(fresh_);
  ASSERT_TRUE(loaded.ok()) << loaded.ToString();
  EXPECT_EQ(*ReadFile(fresh_.PortFile()), "12345");
  EXPECT_EQ(*ReadFile(fresh_.path + "/pki/sa.key"), "sa.key");
  EXPECT_TRUE(store::ReadDatabase(fresh_.Database()).ok());
  EXPECT_NE(printed_.find("swell up --detach --data-dir " + fresh_.path), std::string::npos);
}

TEST_F(BackupTest, WhatMayHaveNoEndIsNoBackup) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_EQ(Load(fresh_).message(), file_ + " is a named pipe, not a file");
}

TEST_F(BackupTest, AnExistingClusterIsReplacedOnlyByForceAndKept) {
  MakeCluster(old_);
  ASSERT_TRUE(Save(old_).ok());
  MakeCluster(fresh_);
  EXPECT_EQ(Load(fresh_).code(), Code::kConflict);
  ASSERT_TRUE(WriteFileAtomically(fresh_.PortFile(), "1").ok());
  Status loaded = Load(fresh_, ClusterThere::kIsReplaced);
  ASSERT_TRUE(loaded.ok()) << loaded.ToString();
  EXPECT_EQ(*ReadFile(fresh_.PortFile()), "12345");
  EXPECT_EQ(*ReadFile(fresh_.path + "/port.before-restore"), "1");
}

TEST_F(BackupTest, ADamagedFileChangesNothing) {
  MakeCluster(old_);
  ASSERT_TRUE(Save(old_).ok());
  const std::string good = *ReadFile(file_);
  std::string bytes = good;
  const size_t at = bytes.rfind("sa.key");  // the content, not a name
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 'S';
  ASSERT_TRUE(WriteFileAtomically(file_, bytes).ok());
  const Status loaded = Load(fresh_);
  EXPECT_NE(loaded.message().find("pki/sa.key is missing or damaged"), std::string::npos)
      << loaded.ToString();
  EXPECT_FALSE(FileExists(fresh_.Database()));
  ASSERT_TRUE(WriteFileAtomically(file_, good.substr(0, 700)).ok());
  // Elsewhere: the first attempt holds the lock until this process ends.
  const DataDir other{temp_.File("other")};
  EXPECT_NE(Restore(other, file_, ClusterThere::kIsKept, "", print_).message().find("cut off"),
            std::string::npos);
}

TEST_F(BackupTest, WithoutAClusterThereIsNothingToSave) {
  EXPECT_EQ(Save(old_).code(), Code::kNotFound);
}

}  // namespace
}  // namespace swell::ops
