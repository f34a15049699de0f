#include "base/fair_queue.h"

#include <memory>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/strings.h"

namespace swell {
namespace {

using Queue = FairQueue<std::string>;
constexpr Duration kMs = std::chrono::milliseconds(1);

// Serves until nobody waits; every item costs what `cost` says of its client.
std::string Serve(Queue& queue, const std::function<Duration(const std::string&)>& cost) {
  std::string order;
  while (auto next = queue.Pop()) {
    order += next->second;
    queue.Charge(next->first, cost(next->first));
  }
  return order;
}

TEST(FairQueue, OneClientsItemsGoInOrder) {
  Queue queue(100, 100);
  for (const char* item : {"a", "b", "c"}) EXPECT_TRUE(queue.Push("x", "", item));
  EXPECT_EQ(Serve(queue, [](const std::string&) { return kMs; }), "abc");
  EXPECT_TRUE(queue.empty());
}

TEST(FairQueue, WhoComesLateIsNextAllTheSame) {
  Queue queue(1000, 1000);
  for (int i = 0; i < 500; ++i) queue.Push("flood", "", "f");
  for (int i = 0; i < 10; ++i) queue.Charge(queue.Pop()->first, kMs);
  queue.Push("ordinary", "", "o");
  // At most the one that is their turn anyway comes first.
  const std::string first = queue.Pop()->second;
  const std::string second = queue.Pop()->second;
  EXPECT_TRUE(first == "o" || second == "o");
}

TEST(FairQueue, DearRequestsCountForMore) {
  Queue queue(1000, 1000);
  for (int i = 0; i < 100; ++i) {
    queue.Push("lists", "", "L");
    queue.Push("gets", "", "g");
  }
  std::string order;
  for (int i = 0; i < 55; ++i) {
    auto next = queue.Pop();
    order += next->second;
    queue.Charge(next->first, next->first == "lists" ? 10 * kMs : kMs);
  }
  EXPECT_NEAR(static_cast<double>(std::count(order.begin(), order.end(), 'g')), 50, 2);
}

TEST(FairQueue, NobodySavesUpTimeByBeingAway) {
  Queue queue(1000, 1000);
  queue.Push("idle", "", "i");
  queue.Charge(queue.Pop()->first, kMs);
  for (int i = 0; i < 200; ++i) queue.Push("busy", "", "b");
  for (int i = 0; i < 100; ++i) queue.Charge(queue.Pop()->first, kMs);
  for (int i = 0; i < 100; ++i) queue.Push("idle", "", "i");
  std::string order;
  for (int i = 0; i < 20; ++i) {
    auto next = queue.Pop();
    order += next->second;
    queue.Charge(next->first, kMs);
  }
  EXPECT_NEAR(static_cast<double>(std::count(order.begin(), order.end(), 'i')), 10, 1);
}

TEST(FairQueue, ProgramsOfOneClientTakeTurns) {
  Queue queue(1000, 1000);
  for (int i = 0; i < 100; ++i) queue.Push("alice", "script", "s");
  queue.Push("alice", "kubectl", "k");
  std::string order = Serve(queue, [](const std::string&) { return kMs; });
  EXPECT_LT(order.find('k'), 2u);
  // A client that invents programs is not served more for it.
  for (int i = 0; i < 100; ++i) queue.Push("alice", std::to_string(i), "x");
  EXPECT_EQ(Serve(queue, [](const std::string&) { return kMs; }).size(), 100u);
}

TEST(FairQueue, RestsComeBeforeWhatFollowsThem) {
  Queue queue(2, 2);
  queue.Push("x", "p", "a");
  queue.Push("x", "p", "b");
  std::string order;
  for (int piece = 0; piece < 3; ++piece) {
    auto next = queue.Pop();
    order += next->second;
    queue.Charge(next->first, kMs);
    queue.PushRest("x", "p", "r");
  }
  EXPECT_EQ(order + Serve(queue, [](const std::string&) { return kMs; }), "arrrb");
  EXPECT_TRUE(queue.empty());
}

// In virtual time: 64 answers of which each takes 4 ms, in pieces of 100 us, beside one that asks
// for 10 us of work, each millisecond. It waits for the piece under way, and for no other.
TEST(FairQueue, WhoAsksForLittleWaitsForOnePieceAtMost) {
  constexpr int64_t kPiece = 100'000, kLittle = 10'000, kEach = 1'000'000;
  struct Work {
    int64_t asked = 0;  // little's; 0: the flood's
    int pieces = 40;
  };
  FairQueue<Work> queue(1000, 1000);
  for (int i = 0; i < 64; ++i) queue.Push("flood", "", {});
  int64_t now = 0, next_ask = kEach;
  int answered = 0, lists = 0;
  while (answered < 1000) {
    if (now >= next_ask) {
      queue.Push("little", "", {next_ask, 1});
      next_ask += kEach;
    }
    auto next = queue.Pop();
    ASSERT_TRUE(next.has_value());
    Work& work = next->second;
    const bool little = work.asked > 0;
    if (little) {
      EXPECT_LT(now - work.asked, kPiece);
      ++answered;
    }
    const int64_t cost = little ? kLittle : kPiece;
    now += cost;
    queue.Charge(next->first, Duration(cost));
    if (little) continue;
    if (--work.pieces > 0) {
      queue.PushRest("flood", "", work);
    } else {
      ++lists;
      queue.Push("flood", "", {});
    }
  }
  // All the rest of the time is the flood's: one list after the other is made.
  EXPECT_NEAR(lists, static_cast<double>(now - answered * kLittle) / (40.0 * kPiece), 1);
}

TEST(FairQueue, KeepsItsBounds) {
  Queue queue(10, 6);
  int taken = 0;
  for (int i = 0; i < 20; ++i) taken += queue.Push("flood", "", "f");
  EXPECT_EQ(taken, 6);
  for (int i = 0; i < 20; ++i) taken += queue.Push("other", "", "o");
  EXPECT_EQ(taken, 10);
  EXPECT_EQ(queue.size(), 10u);
}

// Whatever comes in whatever order: everything is served once, and who always has something waiting
// gets as much time as anybody else who has.
TEST(FairQueue, HoldsUnderRandomLoad) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    Queue queue(10'000, 5000);
    std::map<std::string, int64_t> used;
    size_t pushed = 0, served = 0;
    for (int i = 0; i < 2000; ++i) {
      for (const char* client : {"a", "b", "c"}) {
        while (random.Below(3) == 0 || queue.size() < 9) {
          pushed += queue.Push(client, StrCat("p", random.Below(4)), "x");
          if (queue.size() > 4000) break;
        }
      }
      auto next = queue.Pop();
      ASSERT_TRUE(next.has_value()) << seed;
      ++served;
      const int64_t cost = 1'000 + static_cast<int64_t>(random.Below(100'000));
      used[next->first] += cost;
      queue.Charge(next->first, Duration(cost));
    }
    while (queue.Pop()) ++served;
    EXPECT_EQ(pushed, served) << seed;
  }
}

}  // namespace
}  // namespace swell
