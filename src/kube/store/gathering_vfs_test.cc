#include "kube/store/gathering_vfs.h"

#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "kube/store/sqlite_db.h"

namespace swell::store {
namespace {

using Rows = std::map<int64_t, std::string>;

std::unique_ptr<SqliteDb> Gathering(const std::string& path) {
  auto db = SqliteDb::Open(path, SqliteDb::Mode::kReadWrite);
  EXPECT_TRUE(db.ok()) << db.status().ToString();
  // A cache of some pages, so that transactions reach the log before they are complete.
  const Status set = (*db)->Execute(
      "PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=10; PRAGMA journal_mode=WAL;"
      "PRAGMA synchronous=FULL");
  EXPECT_TRUE(set.ok()) << set.ToString();
  return std::move(*db);
}

// What a machine finds that comes back now: the files as they are, read without gathering.
Rows InTheFiles(const std::string& path) {
  TempDir elsewhere;
  const std::string copy = elsewhere.File("copy.db");
  for (const char* suffix : {"", "-wal"}) {
    if (std::filesystem::exists(path + suffix)) {
      std::filesystem::copy_file(path + suffix, copy + suffix);
    }
  }
  auto db = SqliteDb::Open(copy, SqliteDb::Mode::kReadOnly);
  EXPECT_TRUE(db.ok()) << db.status().ToString();
  auto rows = (*db)->Prepare("SELECT id, text FROM t");
  EXPECT_TRUE(rows.ok()) << rows.status().ToString();
  Rows found;
  while (rows->Step() == 100) found[rows->Int(0)] = rows->Bytes(1);
  EXPECT_EQ(*(*db)->Ask("PRAGMA integrity_check"), "ok");
  return found;
}

TEST(GatheringVfs, WhatIsCommittedIsInTheFilesAndNothingElse) {
  const uint64_t seed = EntropySeed();
  SCOPED_TRACE(StrCat("seed ", seed));
  Random random(seed);
  TempDir dir;
  const std::string path = dir.File("a.db");
  {
    auto fresh = SqliteDb::Open(path, SqliteDb::Mode::kCreate);
    ASSERT_TRUE(fresh.ok());
    ASSERT_TRUE((*fresh)->Execute("CREATE TABLE t(id INTEGER PRIMARY KEY, text TEXT)").ok());
  }
  auto db = Gathering(path);
  Rows committed;
  for (int round = 0; round < 60; ++round) {
    Rows next = committed;
    ASSERT_TRUE(db->Execute("BEGIN").ok());
    for (uint64_t i = random.Below(100); i > 0; --i) {
      const int64_t id = static_cast<int64_t>(random.Below(80));
      const std::string text(random.Below(9000), static_cast<char>('a' + random.Below(26)));
      const std::string sql = StrCat("INSERT OR REPLACE INTO t VALUES(", id, ", '", text, "')");
      ASSERT_TRUE(db->Execute(sql.c_str()).ok());
      next[id] = text;
    }
    if (random.OneIn(4)) {
      db->RollBack();
    } else {
      ASSERT_TRUE(db->Execute("COMMIT").ok());
      committed = std::move(next);
    }
    if (random.OneIn(5)) {
      ASSERT_TRUE(db->Checkpoint().ok());
    }
    ASSERT_EQ(InTheFiles(path), committed) << "round " << round;
    if (random.OneIn(10)) {
      db.reset();
      ASSERT_EQ(InTheFiles(path), committed) << "closed in round " << round;
      db = Gathering(path);
    }
  }
}

}  // namespace
}  // namespace swell::store
