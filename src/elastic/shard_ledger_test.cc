#include "elastic/shard_ledger.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <tuple>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/strings.h"

namespace swell::elastic {
namespace {

using std::chrono::seconds;

WallTime At(int64_t s) { return {s * 1'000'000'000}; }

TEST(Shuffled, IsAPermutationThatTheSeedFixes) {
  for (int64_t count : {1, 2, 3, 7, 64, 65, 1000}) {
    std::vector<int64_t> seen(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) ++seen[static_cast<size_t>(Shuffled(i, count, 5))];
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), count);
  }
  std::vector<int64_t> one, same, other;
  for (int64_t i = 0; i < 100; ++i) {
    one.push_back(Shuffled(i, 100, 1));
    same.push_back(Shuffled(i, 100, 1));
    other.push_back(Shuffled(i, 100, 2));
  }
  EXPECT_EQ(one, same);
  EXPECT_NE(one, other);
  EXPECT_FALSE(std::is_sorted(one.begin(), one.end()));
}

TEST(LedgerOptions, AreRefusedByField) {
  EXPECT_EQ(LedgerOptions{.records = 0}.Check().message(),
            "records: Invalid value: 0: must be between 1 and 281474976710656");
  EXPECT_FALSE((LedgerOptions{.records = 1, .epochs = 0}.Check().ok()));
  EXPECT_FALSE((LedgerOptions{.records = int64_t{1} << 40, .epochs = 1000}.Check().ok()));
}

TEST(ShardLedger, HandsOutEveryRecordOncePerEpochInAnOrderOfItsOwn) {
  ShardLedger ledger({.records = 25, .records_per_task = 10, .epochs = 2, .seed = 3}, 100);
  std::map<std::pair<int64_t, int64_t>, int> count;
  std::vector<int64_t> starts;
  for (int i = 0; i < 6; ++i) {
    auto handed = ledger.Next("a", At(i));
    ASSERT_EQ(handed->kind, Handout::Kind::kLease);
    EXPECT_EQ(handed->lease.id, 100 + i);
    const Range& range = handed->lease.range;
    starts.push_back(range.start);
    for (int64_t r = range.start; r < range.end; ++r) ++count[{range.epoch, r}];
    EXPECT_TRUE(ledger.Progress("a", handed->lease.id, range.size(), At(i)).ok());
  }
  EXPECT_EQ(count.size(), 50u);
  for (const auto& [record, times] : count) EXPECT_EQ(times, 1);
  EXPECT_EQ(ledger.Next("a", At(9))->kind, Handout::Kind::kFinished);
  EXPECT_TRUE(ledger.finished());
}

TEST(ShardLedger, WaitsWhileOthersHoldTheLastRecords) {
  ShardLedger ledger({.records = 10, .records_per_task = 10, .hang_floor = seconds(1000)}, 1);
  auto first = ledger.Next("a", At(0));
  EXPECT_EQ(ledger.Next("b", At(1))->kind, Handout::Kind::kWait);
  ledger.Leave("a", At(2));
  EXPECT_EQ(ledger.Next("b", At(3))->kind, Handout::Kind::kLease);
}

TEST(ShardLedger, GivesBackWhatALeaverHasNotDone) {
  ShardLedger ledger({.records = 100, .records_per_task = 100}, 1);
  auto lease = ledger.Next("a", At(0))->lease;
  ASSERT_TRUE(ledger.Progress("a", lease.id, 40, At(1)).ok());
  ledger.Leave("a", At(2));
  auto rest = ledger.Next("b", At(3))->lease;
  EXPECT_EQ(rest.range.start, 40);
  EXPECT_EQ(rest.range.end, 100);
  EXPECT_EQ(rest.range.tries, 0);
  EXPECT_EQ(ledger.repeated_max(), 0);
  EXPECT_EQ(ledger.Progress("a", lease.id, 50, At(4)).message(),
            "task 1 is not held by worker \"a\"");
}

TEST(ShardLedger, CountsWhatASilentDeathMayHaveUsed) {
  LedgerOptions options{.records = 100, .records_per_task = 100, .worker_timeout = seconds(30)};
  for (bool exact : {false, true}) {
    options.exact_progress = exact;
    ShardLedger ledger(options, 1);
    auto lease = ledger.Next("a", At(0))->lease;
    ASSERT_TRUE(ledger.Progress("a", lease.id, 40, At(1)).ok());
    EXPECT_TRUE(ledger.FindExpired(At(31)).empty());
    EXPECT_EQ(ledger.FindExpired(At(32)).lost, std::vector<std::string>{"a"});
    ledger.Expire(ledger.FindExpired(At(32)));
    EXPECT_EQ(ledger.repeated_max(), exact ? 0 : 60);
  }
}

TEST(ShardLedger, PreemptionCostsNoTryButFailuresEndTheJobWithWords) {
  ShardLedger ledger({.records = 10, .records_per_task = 10, .tries_max = 2}, 1);
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(ledger.Next("a", At(i))->lease.range.tries, 0);
    ledger.Leave("a", At(i));
  }
  auto lease = ledger.Next("a", At(60))->lease;
  ASSERT_TRUE(ledger.Failed("a", lease.id, "ValueError: x", At(61)).ok());
  EXPECT_EQ(ledger.failure(), "");
  lease = ledger.Next("b", At(62))->lease;
  EXPECT_EQ(lease.range.tries, 1);
  ASSERT_TRUE(ledger.Failed("b", lease.id, "ValueError: x", At(63)).ok());
  EXPECT_EQ(ledger.failure(),
            "records 0 to 10 of epoch 1 failed 2 times, the last time on b: ValueError: x");
  EXPECT_EQ(ledger.Next("a", At(64))->kind, Handout::Kind::kFailed);
  EXPECT_FALSE(ledger.finished());
}

TEST(ShardLedger, TakesBackWhatHangsThreeTimesLongerThanTheSlowest) {
  ShardLedger ledger({.records = 30,
                      .records_per_task = 10,
                      .hang_floor = seconds(5),
                      .worker_timeout = seconds(3600)},
                     1);
  auto quick = ledger.Next("a", At(0))->lease;
  auto hangs = ledger.Next("b", At(0))->lease;
  ASSERT_TRUE(ledger.Progress("a", quick.id, 10, At(10)).ok());
  EXPECT_TRUE(ledger.FindExpired(At(30)).empty());
  EXPECT_EQ(ledger.FindExpired(At(31)).hung, std::vector<int64_t>{hangs.id});
  ledger.Expire(ledger.FindExpired(At(31)));
  EXPECT_EQ(ledger.Next("a", At(32))->lease.range.tries, 1);
}

TEST(ShardLedger, KnowsStragglers) {
  ShardLedger ledger({.records = 300, .records_per_task = 10, .shuffle = false}, 1);
  for (auto [name, took] : {std::pair("a", 1), std::pair("b", 1), std::pair("c", 5)}) {
    auto lease = ledger.Next(name, At(0))->lease;
    ASSERT_TRUE(ledger.Progress(name, lease.id, 10, At(took)).ok());
  }
  std::string slow;
  for (const WorkerView& view : ledger.Workers(At(6))) {
    if (view.straggler) slow += view.name;
  }
  EXPECT_EQ(slow, "c");
}

TEST(ShardLedger, RefusesSnapshotsThatDoNotAddUp) {
  ShardLedger ledger({.records = 25, .records_per_task = 10, .epochs = 2}, 1);
  auto lease = ledger.Next("a", At(0))->lease;
  ASSERT_TRUE(ledger.Progress("a", lease.id, 3, At(1)).ok());
  json::Value snapshot = ledger.Snapshot();
  ASSERT_TRUE(ShardLedger::Restore(snapshot, 1).ok());
  for (std::string_view field : {"done", "next", "epoch"}) {
    json::Value wrong = snapshot;
    json::Set(wrong, {field}, json::GetInt(snapshot, {field}) + 1);
    EXPECT_FALSE(ShardLedger::Restore(wrong, 1).ok()) << field;
  }
  json::Value wrong = snapshot;
  json::Set(wrong, {"leases"}, json::Array{});
  EXPECT_EQ(ShardLedger::Restore(wrong, 1).status().message(),
            "the snapshot of the ledger does not add up");
  EXPECT_FALSE(ShardLedger::Restore(json::Object{}, 1).ok());
}

// Workers that come, go with notice, die, hang and fail, against a ledger that restarts from
// snapshots; `used` is what really went into the model.
class Chaos {
 public:
  explicit Chaos(uint64_t seed) : random_(seed), ledger_(Options(random_), 1) {
    used_.resize(static_cast<size_t>(ledger_.options().records * ledger_.options().epochs));
  }

  void Run() {
    int64_t steps = 0;
    while (!ledger_.finished() && ledger_.failure().empty()) {
      ASSERT_LT(++steps, 200'000) << "the job does not end";
      now_ = now_ + std::chrono::milliseconds(10 + random_.Below(500));
      Step();
      if (random_.OneIn(50)) ledger_.Expire(ledger_.FindExpired(now_));
      if (random_.OneIn(40)) Restart();
      if (HasFatalFailure()) return;
    }
    ASSERT_EQ(ledger_.failure(), "");
    CheckUse();
  }

  static bool HasFatalFailure() { return testing::Test::HasFatalFailure(); }

 private:
  static LedgerOptions Options(Random& random) {
    LedgerOptions options;
    options.records = 1 + static_cast<int64_t>(random.Below(200));
    options.records_per_task = 1 + static_cast<int64_t>(random.Below(30));
    options.epochs = 1 + static_cast<int64_t>(random.Below(3));
    options.shuffle = !random.OneIn(4);
    options.seed = random.Next();
    options.tries_max = 1000;
    options.hang_floor = seconds(20);
    options.worker_timeout = seconds(5);
    options.exact_progress = random.OneIn(2);
    return options;
  }

  struct Held {
    int64_t id = 0;
    Range range;
    int64_t told = 0;  // to the ledger
    int64_t done = 0;  // really
  };

  void Use(const Held& held, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      ++used_[static_cast<size_t>(held.range.epoch * ledger_.options().records + held.range.start +
                                  i)];
    }
  }

  void Step() {
    const std::string name = StrCat("w", random_.Below(6));
    auto it = holding_.find(name);
    if (it == holding_.end()) return Ask(name);
    Held& held = it->second;
    switch (random_.Below(12)) {
      case 0:  // notice: it says how far it is, and goes
        if (held.done > held.told) std::ignore = ledger_.Progress(name, held.id, held.done, now_);
        ledger_.Leave(name, now_);
        holding_.erase(it);
        return;
      case 1:  // kill -9
        if (random_.OneIn(2)) ledger_.Lost(name, now_);
        holding_.erase(it);
        return;
      case 2:
        if (held.done > held.told) return Tell(name, held);
        std::ignore = ledger_.Failed(name, held.id, "failed", now_);
        holding_.erase(it);
        return;
      default:
        return Work(name, held);
    }
  }

  void Ask(const std::string& name) {
    // A worker that died and is back under its name knows nothing of what it held.
    ledger_.HoldsOnly(name, {});
    auto handed = ledger_.Next(name, now_);
    ASSERT_TRUE(handed.ok());
    if (handed->kind != Handout::Kind::kLease) return;
    holding_[name] = {.id = handed->lease.id, .range = handed->lease.range};
  }

  // With exact progress records are used in the very step that tells them; else before.
  void Work(const std::string& name, Held& held) {
    const int64_t to = std::min<int64_t>(held.range.size(),
                                         held.done + 1 + static_cast<int64_t>(random_.Below(9)));
    if (ledger_.options().exact_progress) {
      if (!ledger_.Progress(name, held.id, to, now_).ok()) {
        holding_.erase(name);
        return;
      }
      Use(held, held.done, to);
      held.done = held.told = to;
    } else {
      Use(held, held.done, to);
      held.done = to;
      if (random_.OneIn(2)) return Tell(name, held);
    }
    if (held.told == held.range.size()) holding_.erase(name);
  }

  void Tell(const std::string& name, Held& held) {
    if (!ledger_.Progress(name, held.id, held.done, now_).ok()) {
      holding_.erase(name);
      return;
    }
    held.told = held.done;
    if (held.told == held.range.size()) holding_.erase(name);
  }

  void Restart() {
    auto restored = ShardLedger::Restore(ledger_.Snapshot(), 1);
    ASSERT_TRUE(restored.ok()) << restored.status().ToString();
    ASSERT_EQ(json::Print(restored->Snapshot()), json::Print(ledger_.Snapshot()));
    ledger_ = std::move(*restored);
  }

  void CheckUse() {
    ASSERT_EQ(ledger_.done(), ledger_.options().records * ledger_.options().epochs);
    ASSERT_GE(*std::min_element(used_.begin(), used_.end()), 1) << "a record was lost";
    const int64_t extra = std::accumulate(used_.begin(), used_.end(), int64_t{0}) - ledger_.done();
    if (ledger_.options().exact_progress) {
      ASSERT_EQ(extra, 0) << "a record was doubled";
    } else {
      ASSERT_LE(extra, ledger_.repeated_max()) << "more was doubled than the ledger says";
    }
  }

  Random random_;
  ShardLedger ledger_;
  WallTime now_ = At(1'000'000);
  std::map<std::string, Held> holding_;
  std::vector<int64_t> used_;
};

TEST(ShardLedgerProperty, NoRecordIsLostAndNoneDoubledUncountedInThousandsOfRandomRuns) {
  const char* given = std::getenv("SWELL_SEED");
  uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  const uint64_t runs = given != nullptr ? 1 : 4000;
  for (uint64_t seed = first; seed < first + runs; ++seed) {
    Chaos(seed).Run();
    if (testing::Test::HasFatalFailure()) {
      std::cerr << "SWELL_SEED=" << seed << "\n";
      return;
    }
  }
}

}  // namespace
}  // namespace swell::elastic
