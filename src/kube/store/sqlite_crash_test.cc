// Kills a writing process over and over: every write that it was told is durable must be there.
#include <sys/wait.h>

#include <csignal>
#include <map>

#include <gtest/gtest.h>

#include "base/random.h"
#include "kube/store/store_test_util.h"

namespace swell::store {
namespace {

constexpr size_t kOutstanding = 16;
constexpr size_t kNames = 40;

// What the child reports for each acknowledged write, in one piece.
struct Acknowledgement {
  uint32_t name;
  uint32_t deleted;
  uint64_t version;
};

// Never returns: writes until it is killed.
[[noreturn]] void WriteForEver(const std::string& path, int pipe, uint64_t seed) {
  LoopExecutor executor;
  auto backend = OpenSqliteBackend(executor, path);
  if (!backend.ok()) ::_exit(10);
  auto opened = Store::Open(executor, std::move(*backend));
  if (!opened.ok()) ::_exit(11);
  Store& store = **opened;
  Random random(seed);
  size_t waiting = 0;
  while (true) {
    uint32_t name = static_cast<uint32_t>(random.Below(kNames));
    Key key{"pods", "ns", StrCat("p", name)};
    bool erase = store.Latest(key) != nullptr && random.OneIn(5);
    Acknowledgement report{name, erase, store.PeekVersion()};
    auto done = [&waiting, report, pipe](const Status& status) {
      --waiting;
      if (!status.ok()) ::_exit(12);
      if (::write(pipe, &report, sizeof report) != sizeof report) ::_exit(13);
    };
    ++waiting;
    if (erase) {
      Delete(store, key, done);
    } else {
      Put(store, key, std::string(random.Below(4000), 'x') + StrCat("#", report.version), done);
    }
    executor.RunUntil([&] { return waiting < kOutstanding; });
  }
}

// Reads reports until `kill_after` of them, kills the child, and reads what else it had sent.
void RunAndKill(const std::string& path,
                uint64_t seed,
                uint64_t kill_after,
                std::map<uint32_t, Acknowledgement>* newest,
                uint64_t* newest_version) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(ends[0]);
    WriteForEver(path, ends[1], seed);
  }
  ::close(ends[1]);
  Acknowledgement report;
  uint64_t reports = 0;
  while (::read(ends[0], &report, sizeof report) == static_cast<ssize_t>(sizeof report)) {
    (*newest)[report.name] = report;
    *newest_version = std::max(*newest_version, report.version);
    if (++reports == kill_after) ::kill(child, SIGKILL);
  }
  ::close(ends[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "child ended by itself: " << WEXITSTATUS(status);
}

TEST(SqliteCrash, AcknowledgedWritesSurviveSigkill) {
  uint64_t seed = EntropySeed();
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE(StrCat("seed ", seed));
  Random random(seed);
  TempDir dir;
  std::string path = dir.File("store.db");
  std::map<uint32_t, Acknowledgement> newest;
  uint64_t newest_version = 0;
  for (int round = 0; round < 40; ++round) {
    RunAndKill(path, random.Next(), 1 + random.Below(round % 4 == 0 ? 3000 : 300), &newest,
               &newest_version);
    if (testing::Test::HasFatalFailure()) return;
    LoopExecutor executor;
    auto backend = OpenSqliteBackend(executor, path);
    ASSERT_TRUE(backend.ok()) << backend.status().ToString();
    auto store = Store::Open(executor, std::move(*backend));
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    ASSERT_GE((*store)->Version(), newest_version);
    for (const auto& [name, report] : newest) {
      EntryPtr entry = (*store)->Get({"pods", "ns", StrCat("p", name)});
      if (entry != nullptr && entry->version >= report.version) {
        // The content belongs to the version, so the state is one that was written.
        EXPECT_TRUE(PayloadOf(entry).ends_with(StrCat("#", entry->version)));
        continue;
      }
      // Gone, then by the acknowledged deletion or by one that nobody heard about any more.
      EXPECT_EQ(entry, nullptr) << "p" << name << " has version " << entry->version
                                << ", acknowledged was " << report.version;
      EXPECT_TRUE(report.deleted || (*store)->Version() > report.version)
          << "round " << round << ": p" << name << " at " << report.version << " is lost";
    }
  }
}

}  // namespace
}  // namespace swell::store
