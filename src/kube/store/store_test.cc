// Tests of the store's semantics over a disk in memory, in virtual time.
#include "kube/store/store.h"

#include <map>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/sim_executor.h"
#include "kube/store/memory_backend.h"
#include "kube/store/store_test_util.h"

namespace swell::store {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class StoreTest : public testing::Test {
 protected:
  void Open(const Options& options = {}) {
    store_.reset();
    auto store = Store::Open(executor_, MakeFaultyBackend(executor_, disk_), options);
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    store_ = std::move(*store);
  }
  Key Pod(std::string name, std::string ns = "team") {
    return {"pods", std::move(ns), std::move(name)};
  }
  void Run() { executor_.RunPosted(); }
  std::string Names(const Result<Listing>& listing) {
    if (!listing.ok()) return listing.status().ToString();
    std::string names;
    for (const EntryPtr& entry : listing->entries) {
      names += (names.empty() ? "" : " ") + entry->key.ns + "/" + entry->key.name + "=" +
               PayloadOf(entry);
    }
    return names;
  }

  SimExecutor executor_;
  std::shared_ptr<MemoryDisk> disk_ = std::make_shared<MemoryDisk>();
  std::unique_ptr<Store> store_;
};

TEST_F(StoreTest, OnlyWhatIsDurableIsVisible) {
  disk_->commit_delay = milliseconds(5);
  Open();
  Status outcome(Code::kUnavailable, "not yet");
  uint64_t version = Put(*store_, Pod("a"), "1", [&](const Status& s) { outcome = s; });
  EXPECT_EQ(PayloadOf(store_->Latest(Pod("a"))), "1");
  EXPECT_EQ(store_->Get(Pod("a")), nullptr);
  EXPECT_EQ(store_->Count("pods"), 0u);
  EXPECT_EQ(store_->Version(), 1u);
  Run();
  EXPECT_EQ(store_->Get(Pod("a")), nullptr);
  EXPECT_EQ(outcome.code(), Code::kUnavailable);
  executor_.Advance(milliseconds(5));
  EXPECT_TRUE(outcome.ok());
  EXPECT_EQ(PayloadOf(store_->Get(Pod("a"))), "1");
  EXPECT_EQ(store_->Version(), version);
  EXPECT_EQ(store_->Count("pods"), 1u);
}

// Each writes again a tenth of a millisecond after it was answered.
class Writers {
 public:
  Writers(SimExecutor& executor, Store& store) : executor_(executor), store_(store) {}
  void Start(size_t count) {
    for (size_t i = 0; i < count; ++i) Next();
  }
  size_t written = 0;
  bool stopped = false;

 private:
  void Next() {
    if (stopped) return;
    Put(store_, {"pods", "team", StrCat("p", next_++)}, "x", [this](const Status& status) {
      EXPECT_TRUE(status.ok());
      ++written;
      executor_.After(microseconds(100), [this] { Next(); });
    });
  }
  SimExecutor& executor_;
  Store& store_;
  size_t next_ = 0;
};

TEST_F(StoreTest, WritersWhoAreAnsweredTogetherShareTheNextCommit) {
  disk_->commit_delay = milliseconds(4);
  Open();
  Writers writers(executor_, *store_);
  writers.Start(1);
  Run();
  writers.Start(15);  // too late for the first commit
  executor_.Advance(milliseconds(42));
  EXPECT_EQ(disk_->commits(), 10u);
  EXPECT_EQ(writers.written, 1 + 15 + 8 * 16u);
}

TEST_F(StoreTest, NobodyWaitsLongForWritersWhoDoNotComeBack) {
  disk_->commit_delay = milliseconds(4);
  Open();
  Writers writers(executor_, *store_);
  writers.Start(16);
  writers.stopped = true;
  executor_.Advance(milliseconds(4));
  ASSERT_EQ(writers.written, 16u);
  bool done = false;
  Put(*store_, Pod("one"), "x", [&](const Status&) { done = true; });
  executor_.Advance(milliseconds(5));
  EXPECT_TRUE(done);
}

TEST_F(StoreTest, SettlingWaitsForWhatIsAcceptedAndForNothingElse) {
  disk_->commit_delay = milliseconds(5);
  Open();
  std::string order;
  auto when_durable = [&](const char* name) {
    store_->WhenDurable([&order, this, name](const Status& status) {
      order += StrCat(name, "=", status.ok() ? PayloadOf(store_->Get(Pod("a"))) : "failed", " ");
    });
  };
  when_durable("none");
  EXPECT_EQ(order, "");
  Run();
  EXPECT_EQ(order, "none=(none) ");
  Put(*store_, Pod("a"), "1", [&](const Status&) { order += "written "; });
  when_durable("accepted");
  Run();
  when_durable("in-flight");
  Put(*store_, Pod("a"), "2");
  executor_.Advance(milliseconds(5));
  EXPECT_EQ(order, "none=(none) written accepted=1 in-flight=1 ");
  executor_.Advance(milliseconds(50));
  order.clear();
  disk_->failing_commits = 1;
  Put(*store_, Pod("a"), "3");
  when_durable("lost");
  executor_.Advance(milliseconds(50));
  EXPECT_EQ(order, "lost=failed ");
}

TEST_F(StoreTest, WritesOfOneTurnAndThoseThatWaitShareCommits) {
  disk_->commit_delay = milliseconds(1);
  Open();
  int done = 0;
  for (int i = 0; i < 10; ++i)
    Put(*store_, Pod(StrCat("a", i)), "x", [&](const Status&) { ++done; });
  Run();
  for (int i = 0; i < 10; ++i)
    Put(*store_, Pod(StrCat("b", i)), "x", [&](const Status&) { ++done; });
  executor_.Advance(milliseconds(10));
  EXPECT_EQ(done, 20);
  EXPECT_EQ(disk_->commits(), 2u);
}

TEST_F(StoreTest, AFailedCommitTakesEverythingBackThatWasNotDurable) {
  Open();
  Put(*store_, Pod("old"), "1");
  Run();
  disk_->commit_delay = milliseconds(1);
  disk_->failing_commits = 1;
  std::vector<std::string> outcomes;
  auto note = [&](const std::string& what) {
    return [&outcomes, what](const Status& s) { outcomes.push_back(what + s.ToString()); };
  };
  Put(*store_, Pod("old"), "2", note("modify "));
  Put(*store_, Pod("new"), "1", note("add "));
  Run();
  Delete(*store_, Pod("old"), note("delete "));
  EXPECT_EQ(store_->Latest(Pod("old")), nullptr);
  executor_.Advance(milliseconds(5));
  EXPECT_EQ(outcomes, (std::vector<std::string>{"modify InsufficientStorage: the disk is full",
                                                "add InsufficientStorage: the disk is full",
                                                "delete InsufficientStorage: the disk is full"}));
  EXPECT_EQ(PayloadOf(store_->Latest(Pod("old"))), "1");
  EXPECT_EQ(PayloadOf(store_->Get(Pod("old"))), "1");
  EXPECT_EQ(store_->Latest(Pod("new")), nullptr);
  EXPECT_EQ(store_->Count("pods"), 1u);
  outcomes.clear();
  Put(*store_, Pod("new"), "3", note("add "));
  executor_.Advance(milliseconds(5));
  EXPECT_EQ(outcomes, (std::vector<std::string>{"add OK"}));
  EXPECT_EQ(PayloadOf(store_->Get(Pod("new"))), "3");
}

TEST_F(StoreTest, OthersHaveTheirTurnWhileALargeGroupIsTold) {
  disk_->commit_delay = milliseconds(1);
  Open();
  std::vector<std::string> seen;
  auto watch = store_->WatchFrom(
      "pods", "", 1, [&](const Event& event) { seen.push_back(event.entry->key.name); });
  std::vector<std::string> told;
  size_t told_before = 0;
  constexpr size_t kMany = 100;
  for (size_t i = 0; i < kMany; ++i) {
    const std::string name = StrCat("p", i);
    Put(*store_, Pod(name), "1", [&, name](const Status& status) {
      EXPECT_TRUE(status.ok());
      EXPECT_EQ(seen.back(), name);
      if (told.empty()) executor_.Post([&] { told_before = told.size(); });
      told.push_back(name);
    });
  }
  executor_.Advance(milliseconds(1));
  EXPECT_EQ(told.size(), kMany);
  EXPECT_EQ(told, seen);
  EXPECT_LT(told_before, kMany / 4);
}

TEST_F(StoreTest, WhatIsDurableIsToldBeforeALaterFailure) {
  disk_->commit_delay = milliseconds(1);
  Open();
  std::vector<std::string> outcomes;
  constexpr size_t kMany = 30;
  for (size_t i = 0; i < kMany; ++i) {
    Put(*store_, Pod(StrCat("p", i)), "1", [&](const Status& status) {
      disk_->failing_commits = outcomes.empty() ? 1 : disk_->failing_commits;
      outcomes.push_back(status.ToString());
    });
  }
  Run();
  disk_->commit_delay = milliseconds(0);
  const Key last = Pod(StrCat("p", kMany - 1));
  Put(*store_, last, "2", [&](const Status& status) {
    EXPECT_EQ(PayloadOf(store_->Get(last)), "1");
    outcomes.push_back(status.ToString());
  });
  executor_.Advance(milliseconds(1));
  std::vector<std::string> expected(kMany, "OK");
  expected.push_back("InsufficientStorage: the disk is full");
  EXPECT_EQ(outcomes, expected);
  EXPECT_EQ(PayloadOf(store_->Latest(last)), "1");
}

TEST_F(StoreTest, ListsAreSortedFilteredAndPaged) {
  Open();
  for (const char* name : {"c", "a", "b"}) {
    Put(*store_, Pod(name, "team"), name);
    Put(*store_, Pod(name, "other"), name);
  }
  Put(*store_, {"nodes", "", "n1"}, "n");
  Run();
  EXPECT_EQ(Names(store_->List("pods", "")),
            "other/a=a other/b=b other/c=c team/a=a team/b=b team/c=c");
  EXPECT_EQ(Names(store_->List("pods", "team")), "team/a=a team/b=b team/c=c");
  EXPECT_EQ(Names(store_->List("nodes", "")), "/n1=n");
  EXPECT_EQ(Names(store_->List("nothing", "")), "");
  auto page = store_->List("pods", "", {}, 2);
  EXPECT_EQ(Names(page), "other/a=a other/b=b");
  EXPECT_TRUE(page->more);
  EXPECT_EQ(page->remaining, 4u);
  page = store_->List("pods", "", {}, 2, {}, 0, false);
  EXPECT_EQ(Names(page), "other/a=a other/b=b");
  EXPECT_TRUE(page->more);
  page = store_->List("pods", "", {}, 3, page->entries.back()->key);
  EXPECT_EQ(Names(page), "other/c=c team/a=a team/b=b");
  EXPECT_EQ(page->remaining, 1u);
  page = store_->List("pods", "", {}, 3, page->entries.back()->key);
  EXPECT_EQ(Names(page), "team/c=c");
  EXPECT_FALSE(page->more);
  EXPECT_EQ(Names(store_->List("pods", "team", {}, 0, Pod("zz", "other"))),
            "team/a=a team/b=b team/c=c");
  auto only_b = [](const Entry& entry) { return entry.key.name == "b"; };
  EXPECT_EQ(Names(store_->List("pods", "", only_b)), "other/b=b team/b=b");
  EXPECT_TRUE(store_->List("pods", "", only_b, 1)->more);
}

TEST_F(StoreTest, ListsGoBackInHistory) {
  Open({.history_events = 4});
  uint64_t v1 = Put(*store_, Pod("a"), "1");
  uint64_t v2 = Put(*store_, Pod("b"), "1");
  uint64_t v3 = Put(*store_, Pod("a"), "2");
  uint64_t v4 = Delete(*store_, Pod("b"));
  uint64_t v5 = Put(*store_, Pod("c"), "1");
  Run();
  EXPECT_EQ(Names(store_->List("pods", "", {}, 0, {}, v1)), "team/a=1");
  EXPECT_EQ(Names(store_->List("pods", "", {}, 0, {}, v2)), "team/a=1 team/b=1");
  EXPECT_EQ(Names(store_->List("pods", "", {}, 0, {}, v3)), "team/a=2 team/b=1");
  EXPECT_EQ(Names(store_->List("pods", "", {}, 0, {}, v4)), "team/a=2");
  EXPECT_EQ(Names(store_->List("pods", "", {}, 0, {}, v5)), "team/a=2 team/c=1");
  EXPECT_EQ(store_->List("pods", "", {}, 0, {}, v2)->version, v2);
  EXPECT_EQ(store_->OldestWatchable(), v1);
  Put(*store_, Pod("c"), "2");
  Run();
  EXPECT_EQ(store_->List("pods", "", {}, 0, {}, v1).status().code(), Code::kExpired);
  auto future = store_->List("pods", "", {}, 0, {}, 1000);
  EXPECT_EQ(future.status().code(), Code::kTimeout);
  EXPECT_EQ(future.status().message(), "Too large resource version: 1000, current: 7");
}

TEST_F(StoreTest, WatchesReplayTheHistoryAndGoOnLive) {
  Open();
  uint64_t v1 = Put(*store_, Pod("a"), "1");
  Put(*store_, Pod("b", "other"), "1");
  Put(*store_, {"nodes", "", "n"}, "1");
  Put(*store_, Pod("a"), "2");
  Run();
  std::string seen;
  auto on_event = [&](const Event& e) {
    EXPECT_EQ(e.version, e.entry->version);
    seen += StrCat(e.type == EventType::kAdded     ? "+"
                   : e.type == EventType::kDeleted ? "-"
                                                   : "~",
                   e.entry->key.name, PayloadOf(e.entry), "<", PayloadOf(e.previous), " ");
  };
  auto all = store_->WatchFrom("pods", "", v1, on_event);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(seen, "");
  Put(*store_, Pod("c"), "1");
  Run();
  EXPECT_EQ(seen, "+b1<(none) ~a2<1 +c1<(none) ");
  all->reset();
  seen.clear();
  auto team = store_->WatchFrom("pods", "team", 0, on_event);
  Put(*store_, Pod("b", "other"), "2");
  Delete(*store_, Pod("a"));
  Run();
  EXPECT_EQ(seen, "-agone<2 ");
}

TEST_F(StoreTest, WatchesFromOutsideTheHistoryAreRefused) {
  Open({.history_events = 2});
  for (int i = 0; i < 5; ++i) Put(*store_, Pod("a"), StrCat(i));
  Run();
  auto nothing = [](const Event&) {};
  EXPECT_EQ(store_->WatchFrom("pods", "", 3, nothing).status().code(), Code::kExpired);
  EXPECT_EQ(store_->WatchFrom("pods", "", 3, nothing).status().message(),
            "too old resource version: 3 (4)");
  EXPECT_TRUE(store_->WatchFrom("pods", "", 4, nothing).ok());
  auto future = store_->WatchFrom("pods", "", 9, nothing).status();
  EXPECT_EQ(future.code(), Code::kTimeout);
  ASSERT_EQ(future.details().causes.size(), 1u);
  EXPECT_EQ(future.details().causes[0].reason, "ResourceVersionTooLarge");
}

TEST_F(StoreTest, HistoryIsBoundedInBytes) {
  Open({.history_bytes = 10'000});
  for (int i = 0; i < 100; ++i) Put(*store_, Pod("a"), std::string(1000, 'x'));
  Run();
  EXPECT_GE(store_->OldestWatchable(), 90u);
  EXPECT_LT(store_->OldestWatchable(), 95u);
}

TEST_F(StoreTest, HistoryIsForgottenWhenItIsOldAndOnlyThen) {
  Open({.history_age = std::chrono::minutes(5)});
  Put(*store_, Pod("a"), "1");
  Run();
  const uint64_t first = store_->Version();
  executor_.Advance(std::chrono::minutes(4));
  Put(*store_, Pod("a"), "2");
  Run();
  const uint64_t second = store_->Version();
  executor_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(store_->OldestWatchable(), first);
  executor_.Advance(std::chrono::minutes(5));
  EXPECT_EQ(store_->OldestWatchable(), second);
  EXPECT_EQ(store_->stats().history_events, 0u);
  EXPECT_EQ(store_->stats().history_bytes, 0u);
  // And once more, after there was nothing.
  Put(*store_, Pod("a"), "3");
  Run();
  auto nothing = [](const Event&) {};
  EXPECT_TRUE(store_->WatchFrom("pods", "", second, nothing).ok());
  executor_.Advance(std::chrono::minutes(10));
  EXPECT_EQ(store_->WatchFrom("pods", "", second, nothing).status().code(), Code::kExpired);
}

TEST_F(StoreTest, WatchesMayEndAndBeginInsideCallbacks) {
  Open();
  std::unique_ptr<Watch> first;
  std::unique_ptr<Watch> second;
  int first_events = 0;
  int second_events = 0;
  auto count_second = [&](const Event&) { ++second_events; };
  auto end_first = [&](const Event&) {
    ++first_events;
    first.reset();
    second = std::move(*store_->WatchFrom("pods", "", 0, count_second));
  };
  first = std::move(*store_->WatchFrom("pods", "", 0, end_first));
  for (int i = 0; i < 3; ++i) Put(*store_, Pod("a"), StrCat(i));
  Run();
  EXPECT_EQ(first_events, 1);
  EXPECT_EQ(second_events, 2);
  // A replay that ends itself.
  int replayed = 0;
  auto end_at_once = [&](const Event&) {
    ++replayed;
    first.reset();
  };
  first = std::move(*store_->WatchFrom("pods", "", 2, end_at_once));
  Run();
  EXPECT_EQ(replayed, 1);
  store_.reset();
  second.reset();
}

TEST_F(StoreTest, LongReplaysKeepTheOrderWithLiveEvents) {
  Open();
  for (int i = 0; i < 3500; ++i) Put(*store_, Pod("a"), "x");
  Run();
  uint64_t last = 2;
  size_t events = 0;
  auto watch = store_->WatchFrom("pods", "", 2, [&](const Event& e) {
    EXPECT_EQ(e.version, last + 1);
    last = e.version;
    if (++events % 500 == 0) Put(*store_, Pod("a"), "live");
  });
  Run();
  EXPECT_EQ(last, store_->Version());
  EXPECT_GT(events, 3500u);
}

TEST_F(StoreTest, APausedWatchHearsEverythingInOrderWhenItGoesOn) {
  Open();
  for (int i = 0; i < 1500; ++i) Put(*store_, Pod("a"), "old");
  Run();
  uint64_t last = 2;
  std::unique_ptr<Watch> watch;
  watch = std::move(*store_->WatchFrom("pods", "", 2, [&](const Event& e) {
    EXPECT_EQ(e.version, last + 1);
    last = e.version;
    if (last == 1200) watch->Pause();
  }));
  EXPECT_EQ(watch->waiting(), 1499U);
  Run();
  EXPECT_EQ(last, 1200U);
  Put(*store_, Pod("a"), "live");
  Run();
  EXPECT_EQ(last, 1200U);
  EXPECT_EQ(watch->waiting(), store_->Version() - last);
  watch->Resume();
  EXPECT_EQ(last, 1200U) << "nothing comes from inside";
  watch->Resume();
  Run();
  EXPECT_EQ(last, store_->Version());
  EXPECT_EQ(watch->waiting(), 0U);
  // One that has heard all may be paused, too.
  watch->Pause();
  Put(*store_, Pod("a"), "late");
  Run();
  EXPECT_EQ(watch->waiting(), 1U);
  watch->Resume();
  watch->Pause();
  Run();
  EXPECT_EQ(watch->waiting(), 1U);
  watch->Resume();
  Put(*store_, Pod("a"), "later");
  Run();
  EXPECT_EQ(last, store_->Version());
}

TEST_F(StoreTest, TooManyWaitingWritesAreRefused) {
  disk_->commit_delay = milliseconds(1);
  Open({.pending_writes_max = 3});
  std::vector<Code> codes;
  for (int i = 0; i < 5; ++i) {
    Put(*store_, Pod(StrCat(i)), "x", [&](const Status& s) { codes.push_back(s.code()); });
  }
  EXPECT_TRUE(codes.empty());
  executor_.Advance(milliseconds(5));
  EXPECT_EQ(codes, (std::vector<Code>{Code::kTooManyRequests, Code::kTooManyRequests, Code::kOk,
                                      Code::kOk, Code::kOk}));
}

TEST_F(StoreTest, AStoreMayGoWhileWritesAreUnderWay) {
  disk_->commit_delay = milliseconds(1);
  Open();
  bool answered = false;
  Put(*store_, Pod("a"), "x", [&](const Status&) { answered = true; });
  Run();
  store_.reset();
  executor_.Advance(milliseconds(5));
  EXPECT_FALSE(answered);
}

TEST_F(StoreTest, ParsedDocumentsAreShared) {
  Open();
  Put(*store_, Pod("a"), "x");
  Run();
  EntryPtr entry = store_->Get(Pod("a"));
  json::SharedValue one = entry->Parsed();
  EXPECT_EQ(one, entry->Parsed());
  Entry damaged(Pod("b"), 1, "{not json", {});
  EXPECT_TRUE(damaged.Parsed()->is_object());
  EXPECT_TRUE(damaged.Content()->is_object());
}

TEST_F(StoreTest, ContentIsAllButWhoWroteIt) {
  const auto content = [](const std::string& text) {
    const Entry entry({"pods", "ns", "a"}, 1, text, {});
    const json::SharedValue one = entry.Content();
    EXPECT_EQ(one, entry.Content());
    return json::Print(*one);
  };
  EXPECT_EQ(content(R"({"kind":"Pod","metadata":{"name":"a","managedFields":[{"manager":"}"}],)"
                    R"("uid":"u"},"spec":{"managedFields":1}})"),
            R"({"kind":"Pod","metadata":{"name":"a","uid":"u"},"spec":{"managedFields":1}})");
  EXPECT_EQ(content(R"({"metadata":{"managedFields":[]}})"), R"({"metadata":{}})");
  for (const char* text :
       {"{}", R"({"kind":"Pod"})", R"({"metadata":{}})", R"({"metadata":null})"}) {
    EXPECT_EQ(content(text), text);
  }
}

// ---- Random operations against a model ---------------------------------------------------------

using State = std::map<std::pair<std::string, std::string>, std::string>;

class Model {
 public:
  explicit Model(uint64_t seed) : random_(seed) { Open(); }

  void Run(int steps) {
    for (int i = 0; i < steps; ++i) Step();
    disk_->failing_commits = 0;
    executor_.Advance(milliseconds(100));
    Check();
  }

 private:
  struct Observer {
    std::unique_ptr<Watch> watch;
    State state;
    uint64_t last = 0;
  };

  void Open() {
    observers_.clear();
    store_.reset();
    auto store =
        Store::Open(executor_, MakeFaultyBackend(executor_, disk_), {.history_events = 200});
    ASSERT_TRUE(store.ok());
    store_ = std::move(*store);
    durable_.clear();
    auto listing = store_->List("pods", "");
    for (const EntryPtr& entry : listing->entries) {
      durable_[{entry->key.ns, entry->key.name}] = PayloadOf(entry);
    }
    // Acknowledged writes survive; unanswered ones may.
    for (const auto& [version, state] : states_) {
      if (version == store_->Version()) {
        EXPECT_EQ(durable_, state);
      }
    }
    EXPECT_GE(store_->Version(), acknowledged_);
    states_.clear();
    states_[store_->Version()] = durable_;
    recorder_ = std::move(*store_->WatchFrom("pods", "", 0, [this](const Event& e) {
      Apply(durable_, e);
      states_[e.version] = durable_;
    }));
  }

  static void Apply(State& state, const Event& e) {
    std::pair<std::string, std::string> name{e.entry->key.ns, e.entry->key.name};
    EXPECT_EQ(state.count(name) > 0, e.type != EventType::kAdded);
    if (e.previous) {
      EXPECT_EQ(PayloadOf(e.previous), state[name]);
    }
    if (e.type == EventType::kDeleted) {
      state.erase(name);
    } else {
      state[name] = PayloadOf(e.entry);
    }
  }

  void Step() {
    Key key{"pods", StrCat("ns", random_.Below(3)), StrCat("p", random_.Below(6))};
    switch (random_.Below(20)) {
      case 0:
        disk_->failing_commits = random_.Below(2);
        break;
      case 1:
        disk_->commit_delay = milliseconds(random_.Below(4));
        break;
      case 2:
        Observe();
        break;
      case 3:
        if (!observers_.empty()) observers_.erase(observers_.begin());
        break;
      case 4:
        Check();
        break;
      case 5:
        if (random_.OneIn(5)) {
          disk_->Crash(random_.OneIn(2));
          recorder_.reset();
          Open();
        }
        break;
      case 6:
      case 7:
      case 8:
        executor_.Advance(milliseconds(random_.Below(4)));
        break;
      case 9:
      case 10:
      case 11:
        if (store_->Latest(key)) Delete(*store_, key, Acknowledge());
        break;
      default:
        Put(*store_, key, StrCat("v", store_->PeekVersion()), Acknowledge());
    }
  }

  std::function<void(const Status&)> Acknowledge() {
    return [this, version = store_->PeekVersion()](const Status& status) {
      if (!status.ok()) return;
      EXPECT_GE(store_->Version(), version);
      EXPECT_GE(disk_->version(), version);
      acknowledged_ = std::max(acknowledged_, version);
    };
  }

  // A list at some version and a watch from there.
  void Observe() {
    auto it = states_.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(random_.Below(states_.size())));
    std::string ns = random_.OneIn(2) ? "" : "ns1";
    auto listing = store_->List("pods", ns, {}, 0, {}, it->first);
    if (it->first < store_->OldestWatchable()) {
      EXPECT_EQ(listing.status().code(), Code::kExpired);
      return;
    }
    ASSERT_TRUE(listing.ok()) << listing.status().ToString();
    auto observer = std::make_shared<Observer>();
    for (const EntryPtr& entry : listing->entries) {
      observer->state[{entry->key.ns, entry->key.name}] = PayloadOf(entry);
    }
    EXPECT_EQ(observer->state, Only(it->second, ns));
    observer->last = it->first;
    auto watch = store_->WatchFrom("pods", ns, it->first, [o = observer.get()](const Event& e) {
      EXPECT_GT(e.version, o->last);
      o->last = e.version;
      Apply(o->state, e);
    });
    ASSERT_TRUE(watch.ok());
    observer->watch = std::move(*watch);
    observers_.emplace_back(ns, std::move(observer));
  }

  static State Only(const State& state, const std::string& ns) {
    State result;
    for (const auto& [name, payload] : state) {
      if (ns.empty() || name.first == ns) result[name] = payload;
    }
    return result;
  }

  void Check() {
    executor_.RunPosted();
    for (const auto& [ns, observer] : observers_) {
      EXPECT_EQ(observer->state, Only(durable_, ns));
    }
    EXPECT_EQ(store_->Count("pods"), durable_.size());
    for (const auto& [version, state] : states_) {
      auto listing = store_->List("pods", "", {}, 0, {}, version);
      if (!listing.ok()) continue;
      State listed;
      for (const EntryPtr& entry : listing->entries) {
        listed[{entry->key.ns, entry->key.name}] = PayloadOf(entry);
      }
      EXPECT_EQ(listed, state) << "at version " << version;
    }
  }

  Random random_;
  SimExecutor executor_;
  std::shared_ptr<MemoryDisk> disk_ = std::make_shared<MemoryDisk>();
  std::unique_ptr<Store> store_;
  std::unique_ptr<Watch> recorder_;
  std::vector<std::pair<std::string, std::shared_ptr<Observer>>> observers_;
  State durable_;
  std::map<uint64_t, State> states_;
  uint64_t acknowledged_ = 0;
};

TEST(StoreProperty, ListsAndWatchesAgreeUnderFaultsAndCrashes) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    Model(seed).Run(600);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace swell::store
