// Tests of the durable backend: what comes back, what is refused, what a full disk does.
#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>
#include <map>

#include <gtest/gtest.h>

#include "base/random.h"
#include "kube/store/memory_backend.h"
#include "kube/store/sqlite_db.h"
#include "kube/store/store_test_util.h"

namespace swell::store {
namespace {

class SqliteBackendTest : public testing::Test {
 protected:
  Result<std::unique_ptr<Store>> TryOpen(const std::string& path) {
    SWELL_ASSIGN_OR_RETURN(auto backend, OpenSqliteBackend(executor_, path));
    return Store::Open(executor_, std::move(backend));
  }
  std::unique_ptr<Store> Open(const std::string& path) {
    auto store = TryOpen(path);
    EXPECT_TRUE(store.ok()) << store.status().ToString();
    return store.ok() ? std::move(*store) : nullptr;
  }
  // Waits for one write.
  Status Wait(Store& store, const Key& key, std::string_view payload) {
    std::optional<Status> outcome;
    Put(store, key, payload, [&](const Status& s) { outcome = s; });
    executor_.RunUntil([&] { return outcome.has_value(); });
    return *outcome;
  }
  Status WaitDelete(Store& store, const Key& key) {
    std::optional<Status> outcome;
    Delete(store, key, [&](const Status& s) { outcome = s; });
    executor_.RunUntil([&] { return outcome.has_value(); });
    return *outcome;
  }

  TempDir dir_;
  LoopExecutor executor_;
};

TEST_F(SqliteBackendTest, EverythingComesBack) {
  std::string path = dir_.File("data/store.db");
  Key pod{"pods", "team", "a"};
  Key job{"pytorchjobs.kubeflow.org", "team", "j\xc3\xb6"};
  uint64_t version = 0;
  {
    auto store = Open(path);
    ASSERT_NE(store, nullptr);
    EXPECT_EQ(store->PeekVersion(), 2u);
    EXPECT_TRUE(Wait(*store, pod, "1").ok());
    EXPECT_TRUE(Wait(*store, job, std::string(100'000, 'x')).ok());
    EXPECT_TRUE(Wait(*store, pod, "2").ok());
    EXPECT_TRUE(Wait(*store, {"pods", "team", "gone"}, "x").ok());
    EXPECT_TRUE(WaitDelete(*store, {"pods", "team", "gone"}).ok());
    version = store->Version();
    EXPECT_EQ(version, 6u);
  }
  auto store = Open(path);
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->Version(), version);
  EXPECT_EQ(store->OldestWatchable(), version);
  EXPECT_EQ(store->Count("pods"), 1u);
  EntryPtr entry = store->Get(pod);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->version, 4u);
  EXPECT_EQ(PayloadOf(entry), "2");
  EXPECT_EQ(entry->attributes.uid, "uid-a");
  EXPECT_EQ(entry->attributes.labels, (api::StringPairs{{"app", "a"}}));
  EXPECT_EQ(entry->attributes.fields,
            (api::StringPairs{{"metadata.name", "a"}, {"metadata.namespace", "team"}}));
  EXPECT_EQ(PayloadOf(store->Get(job)), std::string(100'000, 'x'));
  EXPECT_TRUE(Wait(*store, {"pods", "team", "gone"}, "again").ok());
}

TEST_F(SqliteBackendTest, ManyWritesPassThroughCheckpoints) {
  std::string path = dir_.File("store.db");
  std::map<std::string, std::string> expected;
  Random random(7);
  {
    auto store = Open(path);
    ASSERT_NE(store, nullptr);
    size_t waiting = 0;
    for (int i = 0; i < 4000; ++i) {
      std::string name = StrCat("p", random.Below(300));
      Key key{"pods", "ns", name};
      ++waiting;
      auto done = [&waiting](const Status& s) {
        EXPECT_TRUE(s.ok()) << s.ToString();
        --waiting;
      };
      if (store->Latest(key) && random.OneIn(4)) {
        Delete(*store, key, done);
        expected.erase(name);
      } else {
        expected[name] = StrCat(i, std::string(random.Below(6000), 'y'));
        Put(*store, key, expected[name], done);
      }
      executor_.RunUntil([&] { return waiting < 16; });
    }
    executor_.RunUntil([&] { return waiting == 0; });
  }
  EXPECT_LT(std::filesystem::file_size(path), 8u << 20);
  EXPECT_FALSE(FileExists(path + "-wal"));
  auto store = Open(path);
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->Count("pods"), expected.size());
  for (const auto& [name, payload] : expected) {
    EXPECT_EQ(PayloadOf(store->Get({"pods", "ns", name})), payload) << name;
  }
}

TEST_F(SqliteBackendTest, ASecondProcessIsToldWhoHasTheFile) {
  std::string path = dir_.File("store.db");
  auto store = Open(path);
  auto second = TryOpen(path);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::kUnavailable);
  EXPECT_EQ(second.status().message(),
            StrCat(path, ": in use by another process (pid ", ::getpid(), ")"));
  store.reset();
  EXPECT_TRUE(TryOpen(path).ok());
}

TEST_F(SqliteBackendTest, ForeignFilesAreRefusedAndLeftAsTheyAre) {
  std::string text = dir_.File("notes.txt");
  ASSERT_TRUE(WriteFileAtomically(text, "my only copy of a poem\n").ok());
  std::string other = dir_.File("other.db");
  {
    auto db = SqliteDb::Open(other, SqliteDb::Mode::kCreate);
    ASSERT_TRUE(db.ok() && (*db)->Execute("CREATE TABLE birds(name TEXT)").ok());
  }
  std::string newer = dir_.File("newer.db");
  Open(newer).reset();
  {
    auto db = SqliteDb::Open(newer, SqliteDb::Mode::kCreate);
    ASSERT_TRUE(db.ok() &&
                (*db)->Execute("PRAGMA journal_mode=DELETE; PRAGMA user_version=9").ok());
  }
  std::string no_tables = dir_.File("no_tables.db");
  {
    auto db = SqliteDb::Open(no_tables, SqliteDb::Mode::kCreate);
    ASSERT_TRUE(db.ok() &&
                (*db)->Execute("PRAGMA application_id=1398228300; PRAGMA user_version=1").ok());
  }
  const std::pair<std::string, std::string> cases[] = {
      {text, "not a Swell database (no SQLite header)"},
      {other, "not a Swell database (another program's SQLite database)"},
      {newer, "written in format 9, this Swell knows 1"},
      {no_tables, "the database is damaged"},
  };
  for (const auto& [path, message] : cases) {
    std::string before = *ReadFile(path);
    auto store = TryOpen(path);
    ASSERT_FALSE(store.ok()) << path;
    EXPECT_EQ(store.status().code(), Code::kInternal);
    EXPECT_NE(store.status().message().find(path + ": "), std::string::npos);
    EXPECT_NE(store.status().message().find(message), std::string::npos)
        << store.status().message();
    const bool newer_format = path == newer;
    EXPECT_EQ(
        store.status().message().find("swell restore --force --data-dir ") == std::string::npos,
        newer_format)
        << store.status().message();
    EXPECT_EQ(*ReadFile(path), before) << path;
    EXPECT_FALSE(FileExists(path + "-wal")) << path;
  }
  EXPECT_FALSE(TryOpen(dir_.path()).ok());
}

TEST_F(SqliteBackendTest, DamageIsFoundAndTheFileLeftAsItIs) {
  std::string path = dir_.File("store.db");
  {
    auto store = Open(path);
    for (int i = 0; i < 60; ++i) {
      ASSERT_TRUE(Wait(*store, {"pods", "ns", StrCat("p", i)}, std::string(1500, 'x')).ok());
    }
  }
  const std::string good = *ReadFile(path);
  int refused = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    std::string bytes = good;
    if (random.OneIn(4)) {
      bytes.resize(1 + random.Below(bytes.size() - 1));
    } else {
      for (uint64_t n = 1 + random.Below(4); n > 0; --n) {
        bytes[random.Below(bytes.size())] = static_cast<char>(random.Below(256));
      }
    }
    std::string damaged = dir_.File(StrCat("damaged", seed, ".db"));
    ASSERT_TRUE(WriteFileAtomically(damaged, bytes).ok());
    auto store = TryOpen(damaged);
    if (!store.ok()) {
      ++refused;
      EXPECT_NE(store.status().message().find(damaged), std::string::npos);
      EXPECT_EQ(*ReadFile(damaged), bytes) << "seed " << seed;
      continue;
    }
    // The damage must have hit what holds nothing.
    ASSERT_EQ((*store)->Count("pods"), 60u) << "seed " << seed;
    for (int i = 0; i < 60; ++i) {
      ASSERT_EQ(PayloadOf((*store)->Get({"pods", "ns", StrCat("p", i)})), std::string(1500, 'x'))
          << "seed " << seed;
    }
  }
  EXPECT_GT(refused, 75);
}

// A place with little room: a tmpfs where mounting is allowed, else the limit on file sizes.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& path) : path_(path) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &limit_);
    mounted_ = ::mount("swell", path.c_str(), "tmpfs", 0, "size=1m") == 0;
    if (!mounted_) Limit(300'000);
  }
  ~SmallDisk() {
    if (mounted_) {
      ::umount(path_.c_str());
    } else {
      Limit(limit_.rlim_cur);
    }
  }
  void Grow() {
    if (mounted_) {
      ::mount("swell", path_.c_str(), "tmpfs", MS_REMOUNT, "size=64m");
    } else {
      Limit(limit_.rlim_cur);
    }
  }

 private:
  void Limit(rlim_t bytes) {
    rlimit changed = limit_;
    changed.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &changed);
  }
  const std::string path_;
  rlimit limit_{};
  bool mounted_ = false;
};

TEST_F(SqliteBackendTest, AFullDiskFailsWritesOnlyAndOnlyWhileItIsFull) {
  std::string path = dir_.File("store.db");
  SmallDisk disk(dir_.path());
  std::map<std::string, std::string> acknowledged;
  {
    auto store = Open(path);
    ASSERT_NE(store, nullptr);
    int failures = 0;
    for (int i = 0; i < 400 && failures < 20; ++i) {
      std::string name = StrCat("p", i);
      Status status = Wait(*store, {"pods", "ns", name}, std::string(5000, 'a'));
      if (status.ok()) {
        acknowledged[name] = std::string(5000, 'a');
        continue;
      }
      ++failures;
      ASSERT_EQ(status.code(), Code::kNoSpace) << status.ToString();
      EXPECT_NE(status.message().find(path), std::string::npos);
      EXPECT_EQ(store->Latest({"pods", "ns", name}), nullptr);
      EXPECT_EQ(store->Count("pods"), acknowledged.size());
    }
    ASSERT_EQ(failures, 20);
    ASSERT_FALSE(acknowledged.empty());
    EXPECT_EQ(PayloadOf(store->Get({"pods", "ns", "p0"})), std::string(5000, 'a'));
    disk.Grow();
    EXPECT_TRUE(Wait(*store, {"pods", "ns", "after"}, "b").ok());
    acknowledged["after"] = "b";
  }
  auto store = Open(path);
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->Count("pods"), acknowledged.size());
  for (const auto& [name, payload] : acknowledged) {
    EXPECT_EQ(PayloadOf(store->Get({"pods", "ns", name})), payload) << name;
  }
}

TEST_F(SqliteBackendTest, BehavesAsTheModelInMemory) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    Random random(seed);
    std::string path = dir_.File(StrCat("store", seed, ".db"));
    std::map<std::string, std::string> expected;
    for (int round = 0; round < 4; ++round) {
      auto store = Open(path);
      ASSERT_NE(store, nullptr);
      std::map<std::string, std::string> loaded;
      auto listing = store->List("pods", "");
      for (const EntryPtr& entry : listing->entries) {
        loaded[entry->key.name] = PayloadOf(entry);
      }
      ASSERT_EQ(loaded, expected);
      size_t waiting = 0;
      auto done = [&waiting](const Status& s) {
        EXPECT_TRUE(s.ok());
        --waiting;
      };
      for (int i = 0; i < 150; ++i) {
        std::string name = StrCat("p", random.Below(12));
        Key key{"pods", "", name};
        ++waiting;
        if (store->Latest(key) && random.OneIn(3)) {
          Delete(*store, key, done);
          expected.erase(name);
        } else {
          Put(*store, key, StrCat(i), done);
          expected[name] = StrCat(i);
        }
        executor_.RunUntil([&, most = random.Below(40)] { return waiting <= most; });
      }
      executor_.RunUntil([&] { return waiting == 0; });
    }
  }
}

// A snapshot that is taken during writes is of one instant, and opens like any other database.
TEST_F(SqliteBackendTest, ASnapshotBecomesADatabaseOfItsOwn) {
  const std::string path = dir_.File("store.db");
  const std::string copy = dir_.File("copy.db");
  auto store = Open(path);
  const Key kept{"pods", "team", "kept"};
  const Key gone{"pods", "team", "gone"};
  ASSERT_TRUE(Wait(*store, kept, "old").ok());
  ASSERT_TRUE(Wait(*store, gone, "x").ok());
  ASSERT_TRUE(WaitDelete(*store, gone).ok());
  const Store::Snapshot snapshot = store->TakeSnapshot();
  const std::string bytes = *store->Get(kept)->text;
  ASSERT_TRUE(Wait(*store, kept, "new").ok());
  ASSERT_TRUE(WriteDatabase(copy, snapshot).ok());
  EXPECT_EQ(WriteDatabase(copy, snapshot).code(), Code::kAlreadyExists);

  auto read = ReadDatabase(copy);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->version, snapshot.version);
  ASSERT_EQ(read->entries.size(), 1u);
  EXPECT_EQ(*read->entries[0]->text, bytes);
  auto second = Open(copy);
  EXPECT_EQ(second->Version(), snapshot.version);
  EXPECT_EQ(second->Get(gone), nullptr);
  EXPECT_TRUE(Wait(*second, gone, "y").ok());
  EXPECT_EQ(ReadDatabase(dir_.File("none.db")).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace swell::store
