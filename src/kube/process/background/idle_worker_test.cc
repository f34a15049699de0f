#include "kube/process/background/idle_worker.h"

#include <future>
#include <vector>

#include <gtest/gtest.h>

namespace swell::process {
namespace {

TEST(IdleWorker, WhatSomebodyWaitsForComesFirst) {
  std::vector<int> order;
  std::promise<void> gate, done;
  IdleWorker worker;
  worker.Post([held = gate.get_future().share()] { held.wait(); });
  EXPECT_TRUE(worker.PostIdle([&] { order.push_back(3); }));
  worker.Post([&] { order.push_back(1); });
  worker.Post([&] { order.push_back(2); });
  EXPECT_TRUE(worker.PostIdle([&] {
    order.push_back(4);
    done.set_value();
  }));
  gate.set_value();
  done.get_future().wait();  // without Finish: the pause ends by itself
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
}

TEST(IdleWorker, FinishWaitsForEverything) {
  int count = 0;
  IdleWorker worker;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(worker.PostIdle([&] { ++count; }));
    worker.Post([&] { ++count; });
  }
  worker.Finish();
  EXPECT_EQ(count, 2000);
  worker.Finish();
}

TEST(IdleWorker, RefusesMoreThanItCanHold) {
  std::promise<void> gate;
  IdleWorker worker;
  worker.Post([held = gate.get_future().share()] { held.wait(); });
  int taken = 0;
  while (worker.PostIdle([] {})) ++taken;
  EXPECT_EQ(taken, 10'000);
  gate.set_value();
  worker.Finish();
  EXPECT_TRUE(worker.PostIdle([] {}));
}

TEST(IdleWorker, TwoThreadsDoTwoThingsAtOnce) {
  std::promise<void> first, second;
  IdleWorker worker(2);
  // Each waits for the other to begin.
  worker.Post([&] {
    first.set_value();
    second.get_future().wait();
  });
  worker.Post([&] {
    second.set_value();
    first.get_future().wait();
  });
  worker.Finish();
}

}  // namespace
}  // namespace swell::process
