#include "kube/net/reactor/reactor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "kube/net/net_testing.h"

namespace swell::net {
namespace {

using std::chrono::milliseconds;

TEST(ReactorTest, RunsPostedClosuresInOrder) {
  Reactor reactor;
  std::string order;
  reactor.Post([&] {
    order += 'a';
    reactor.Post([&] { order += 'c'; });
  });
  reactor.Post([&] { order += 'b'; });
  EXPECT_TRUE(reactor.RunUntil([&] { return order.size() == 3; }, kPatience));
  EXPECT_EQ(order, "abc");
}

TEST(ReactorTest, RunsTimersByDueTimeThenInTheOrderSet) {
  Reactor reactor;
  std::string order;
  reactor.After(milliseconds(20), [&] { order += 'c'; });
  reactor.After(milliseconds(1), [&] { order += 'a'; });
  reactor.After(milliseconds(5), [&] { order += 'b'; });
  TimerId cancelled = reactor.After(milliseconds(2), [&] { order += 'x'; });
  reactor.Cancel(cancelled);
  reactor.Cancel(kNoTimer);
  EXPECT_TRUE(reactor.RunUntil([&] { return order.size() == 3; }, kPatience));
  EXPECT_EQ(order, "abc");
}

TEST(ReactorTest, ATimerThatSetsItselfAgainLetsOthersRun) {
  Reactor reactor;
  bool posted = false;
  int rounds = 0;
  std::function<void()> again = [&] {
    if (++rounds == 3) reactor.Post([&] { posted = true; });
    if (!posted) reactor.After(Duration::zero(), again);
  };
  reactor.After(Duration::zero(), again);
  EXPECT_TRUE(reactor.RunUntil([&] { return posted; }, kPatience));
}

TEST(ReactorTest, TakesPostsFromOtherThreadsAndStops) {
  Reactor reactor;
  std::atomic<int> ran{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        reactor.Post([&] {
          EXPECT_TRUE(reactor.OnThread());
          if (++ran == 4000) reactor.Stop();
        });
      }
    });
  }
  reactor.Run();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ran, 4000);
}

TEST(ReactorTest, AnotherThreadIsNotOnThread) {
  Reactor reactor;
  std::atomic<bool> other{true};
  reactor.Post([&] {
    std::thread([&] { other = reactor.OnThread(); }).join();
    reactor.Stop();
  });
  reactor.Run();
  EXPECT_FALSE(other);
}

TEST(ReactorTest, DescriptorWatchMayEndInsideItsOwnCallback) {
  Reactor reactor;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  int calls = 0;
  std::unique_ptr<FdWatch> watch;
  auto made = reactor.WatchFd(reader.get(), [&] {
    if (++calls == 2) watch = nullptr;  // twice although only one byte came: level-triggered
  });
  ASSERT_TRUE(made.ok());
  watch = std::move(*made);
  ASSERT_EQ(write(writer.get(), "x", 1), 1);
  EXPECT_TRUE(reactor.RunUntil([&] { return watch == nullptr; }, kPatience));
  reactor.RunFor(milliseconds(5));
  EXPECT_EQ(calls, 2);
  char byte = 0;
  EXPECT_EQ(read(reader.get(), &byte, 1), 1) << "the watch does not own the descriptor";
}

TEST(ReactorTest, WhatIsReadyTogetherMayEndEachOther) {
  Reactor reactor;
  std::vector<UniqueFd> readers;
  std::vector<UniqueFd> writers;
  std::vector<std::unique_ptr<FdWatch>> watches(8);
  int calls = 0;
  for (auto& watch : watches) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    readers.emplace_back(ends[0]);
    writers.emplace_back(ends[1]);
    auto made = reactor.WatchFd(ends[0], [&] {
      ++calls;
      watches.clear();  // all of them are ready: none may be called after this
    });
    ASSERT_TRUE(made.ok());
    watch = std::move(*made);
    ASSERT_EQ(write(ends[1], "x", 1), 1);
  }
  EXPECT_TRUE(reactor.RunUntil([&] { return calls > 0; }, kPatience));
  reactor.RunFor(milliseconds(5));
  EXPECT_EQ(calls, 1);
}

TEST(ReactorTest, WithoutInterestNotEvenAHangUpIsTold) {
  Reactor reactor;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  UniqueFd reader(ends[0]);
  bool readable = false;
  auto watch = reactor.Watch(reader.get(), [&](Readiness ready) {
    readable = ready.readable;
    EXPECT_FALSE(ready.writable);
  });
  ASSERT_TRUE(watch.ok());
  (*watch)->SetInterest(Interest::kRead);
  (*watch)->SetInterest(Interest::kNone);
  ASSERT_EQ(close(ends[1]), 0);
  reactor.RunFor(milliseconds(5));
  EXPECT_FALSE(readable);
  (*watch)->SetInterest(Interest::kRead);
  EXPECT_TRUE(reactor.RunUntil([&] { return readable; }, kPatience));
}

TEST(ReactorTest, AFileThatCannotBeWatchedIsReadable) {
  Reactor reactor;
  UniqueFd file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(file.valid());
  int calls = 0;
  auto watch = reactor.WatchFd(file.get(), [&] { ++calls; });
  ASSERT_TRUE(watch.ok());
  EXPECT_TRUE(reactor.RunUntil([&] { return calls == 1; }, kPatience));
}

TEST(ReactorTest, WatchesAChildThroughItsPidfd) {
  Reactor reactor;
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  ASSERT_TRUE(pidfd.valid());
  bool exited = false;
  auto watch = reactor.WatchFd(pidfd.get(), [&] { exited = true; });
  ASSERT_TRUE(watch.ok());
  kill(child, SIGKILL);
  EXPECT_TRUE(reactor.RunUntil([&] { return exited; }, kPatience));
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST(ReactorTest, ReportsSignals) {
  Reactor reactor;
  int got = 0;
  auto watch = reactor.WatchSignals({SIGUSR1, SIGUSR2}, [&](int signal) { got = signal; });
  ASSERT_TRUE(watch.ok());
  kill(getpid(), SIGUSR2);
  EXPECT_TRUE(reactor.RunUntil([&] { return got != 0; }, kPatience));
  EXPECT_EQ(got, SIGUSR2);
}

TEST(ReactorTest, RefusesADescriptorThatIsNotOne) {
  Reactor reactor;
  EXPECT_FALSE(reactor.WatchFd(-1, [] {}).ok());
}

TEST(ReactorTest, ResolvesLiteralAddressesAndLocalhost) {
  Reactor reactor;
  size_t found = 0;
  Status failed;
  reactor.Resolve("localhost", 80, [&](Result<std::vector<SocketAddress>> addresses) {
    if (addresses.ok()) found = addresses->size();
  });
  reactor.Resolve("name with blanks", 80, [&](Result<std::vector<SocketAddress>> addresses) {
    failed = addresses.status();
  });
  EXPECT_TRUE(reactor.RunUntil([&] { return found > 0 && !failed.ok(); }, kPatience));
  EXPECT_NE(failed.message().find("name with blanks"), std::string::npos);
}

TEST(ReactorTest, DestroysWhatWasPostedAfterItStopped) {
  auto held = std::make_shared<int>(1);
  {
    Reactor reactor;
    reactor.Stop();
    reactor.Post([held] {});
    reactor.Run();
  }
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace swell::net
