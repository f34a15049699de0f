// Secrets at rest: encrypted in the database, rotated, carried by backups under a passphrase alone.
#include "ops/access/secret_keys.h"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/sim_executor.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "ops/backup/backup.h"

namespace swell::ops {
namespace {

constexpr std::string_view kPassword = "correct-horse-battery";

class SecretKeysTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(PrepareDataDir(dir_).ok());
    for (const char* file : {"ca.crt", "ca.key", "sa.key"}) {
      ASSERT_TRUE(WriteFileAtomically(StrCat(dir_.path, "/pki/", file), file, 0600).ok());
    }
  }
  static store::EntryPtr Entry(const std::string& resource, const std::string& name) {
    return std::make_shared<const store::Entry>(
        store::Key{resource, "a", name}, 1,
        StrCat(R"({"metadata":{"name":")", name, R"("},"data":{"p":")", kPassword, R"("}})"),
        store::Attributes{});
  }
  void Write(std::shared_ptr<const store::RowSealer> sealer) {
    store::Store::Snapshot snapshot{{Entry("secrets", "s"), Entry("configmaps", "c")}, 1};
    const Status written = store::WriteDatabase(dir_.Database(), snapshot, std::move(sealer));
    ASSERT_TRUE(written.ok()) << written.ToString();
  }
  std::shared_ptr<const SecretKeys> Keys() {
    auto keys = LoadOrMakeSecretKeys(dir_);
    EXPECT_TRUE(keys.ok()) << keys.status().ToString();
    return keys.ok() ? *keys : nullptr;
  }
  // How often the password is in the file; once for the ConfigMap.
  size_t Seen(const std::string& path) {
    const std::string bytes = ReadFile(path).value();
    size_t count = 0;
    for (size_t at = 0; (at = bytes.find(kPassword, at)) != std::string::npos; ++at) ++count;
    return count;
  }
  std::string SecretIn(const DataDir& dir, std::shared_ptr<const store::RowSealer> sealer) {
    auto read = store::ReadDatabase(dir.Database(), std::move(sealer));
    if (!read.ok()) return read.status().ToString();
    for (const auto& entry : read->entries) {
      if (entry->key.resource == "secrets") return *entry->text;
    }
    return "none";
  }

  TempDir temp_;
  const DataDir dir_{temp_.File("cluster")};
  const std::string key_file_ = dir_.path + "/pki/secrets.key";
};

TEST_F(SecretKeysTest, SecretsAreEncryptedAndNothingElse) {
  const auto keys = Keys();
  Write(keys);
  EXPECT_EQ(Seen(dir_.Database()), 1u);
  EXPECT_NE(SecretIn(dir_, keys).find(kPassword), std::string::npos);
  struct stat info;
  ASSERT_EQ(::stat(key_file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_TRUE(store::HasSealedRows(dir_.Database()).value());
  EXPECT_NE(SecretIn(dir_, nullptr).find("is encrypted"), std::string::npos);
}

TEST_F(SecretKeysTest, WhatIsThereInPlainTextIsEncryptedAtTheNextStart) {
  Write(nullptr);
  EXPECT_EQ(Seen(dir_.Database()), 2u);
  const auto keys = Keys();
  {
    SimExecutor executor;
    auto backend = store::OpenSqliteBackend(executor, dir_.Database(), nullptr, keys);
    ASSERT_TRUE(backend.ok());
    const auto loaded = (*backend)->Load();
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    EXPECT_EQ(loaded->entries.size(), 2u);
  }
  EXPECT_EQ(Seen(dir_.Database()), 1u);
}

TEST_F(SecretKeysTest, AMissingOrAnotherKeyIsRefusedWithWhatToDo) {
  Write(Keys());
  const std::string key = ReadFile(key_file_).value();
  ASSERT_TRUE(RemoveTree(key_file_).ok());
  const auto missing = LoadOrMakeSecretKeys(dir_);
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.status().message().find("secrets.key is missing"), std::string::npos);
  EXPECT_FALSE(FileExists(key_file_));
  const auto other = SecretKeys::WithNewKey(nullptr, key_file_).value();
  EXPECT_NE(SecretIn(dir_, other).find("Put back the file"), std::string::npos);
  // The right id with other bytes.
  const std::string forged = StrCat(key.substr(0, 17), other->ToText().substr(17));
  EXPECT_NE(SecretIn(dir_, SecretKeys::Parse(forged, "f").value()).find("cannot be decrypted"),
            std::string::npos);
  for (const char* wrong : {"", "x", "0123456789abcdef AAAA\n", "0123456789abcdef\n"}) {
    EXPECT_FALSE(SecretKeys::Parse(wrong, "f").ok()) << wrong;
  }
}

TEST_F(SecretKeysTest, RotationForgetsTheOldKey) {
  const auto old = Keys();
  Write(old);
  const auto rotated = RotateSecretKeys(dir_);
  ASSERT_TRUE(rotated.ok()) << rotated.status().ToString();
  const auto now = Keys();
  EXPECT_EQ(now->current(), *rotated);
  EXPECT_EQ(now->count(), 1u);
  EXPECT_NE(SecretIn(dir_, now).find(kPassword), std::string::npos);
  EXPECT_EQ(SecretIn(dir_, old).find(kPassword), std::string::npos);
  // One that was interrupted, with both keys on the disk, is ended by the next.
  const auto both = SecretKeys::WithNewKey(now.get(), key_file_).value();
  ASSERT_TRUE(StoreSecretKeys(dir_, *both).ok());
  EXPECT_NE(SecretIn(dir_, Keys()).find(kPassword), std::string::npos);
  ASSERT_TRUE(RotateSecretKeys(dir_).ok());
  EXPECT_NE(SecretIn(dir_, Keys()).find(kPassword), std::string::npos);
}

TEST_F(SecretKeysTest, BackupsCarrySecretsUnderAPassphraseOrNotAtAll) {
  Write(Keys());
  const std::string file = temp_.File("cluster.tar");
  std::string said;
  const PrintLine print = [&said](std::string_view line) { said += StrCat(line, "\n"); };
  ASSERT_TRUE(Backup(dir_, file, "", print).ok());
  EXPECT_NE(said.find("1 Secrets are left out"), std::string::npos) << said;
  EXPECT_EQ(Seen(file), 1u);
  const DataDir without{temp_.File("without")};
  ASSERT_TRUE(Restore(without, file, ClusterThere::kIsKept, "", print).ok());
  EXPECT_EQ(SecretIn(without, nullptr), "none");

  const Status saved = Backup(dir_, file, "open sesame", print);
  ASSERT_TRUE(saved.ok()) << saved.ToString();
  EXPECT_EQ(Seen(file), 1u);
  EXPECT_EQ(ReadFile(file).value().find(ReadFile(key_file_).value()), std::string::npos);
  const DataDir with{temp_.File("with")};
  const Status forgotten = Restore(with, file, ClusterThere::kIsKept, "", print);
  EXPECT_NE(forgotten.message().find("--passphrase-file"), std::string::npos);
  const DataDir third{temp_.File("third")};
  EXPECT_NE(
      Restore(third, file, ClusterThere::kIsKept, "wrong", print).message().find("passphrase"),
      std::string::npos);
  const DataDir fourth{temp_.File("fourth")};
  const Status restored = Restore(fourth, file, ClusterThere::kIsKept, "open sesame", print);
  ASSERT_TRUE(restored.ok()) << restored.ToString();
  EXPECT_EQ(ReadFile(fourth.path + "/pki/sa.key").value(), "sa.key");
  EXPECT_NE(SecretIn(fourth, LoadOrMakeSecretKeys(fourth).value()).find(kPassword),
            std::string::npos);
}

}  // namespace
}  // namespace swell::ops
