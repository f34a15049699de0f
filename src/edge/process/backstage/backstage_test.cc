#include "edge/process/backstage/backstage.h"

#include <future>
#include <vector>

#include <gtest/gtest.h>

namespace swell::edge {
namespace {

TEST(Backstage, WhatSomebodyWaitsForComesFirst) {
  std::vector<int> order;
  std::promise<void> gate, done;
  Backstage backstage;
  backstage.Now([held = gate.get_future().share()] { held.wait(); });
  EXPECT_TRUE(backstage.Later([&] { order.push_back(3); }));
  backstage.Now([&] { order.push_back(1); });
  backstage.Now([&] { order.push_back(2); });
  EXPECT_TRUE(backstage.Later([&] {
    order.push_back(4);
    done.set_value();
  }));
  gate.set_value();
  done.get_future().wait();  // without Finish: the pause ends by itself
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
}

TEST(Backstage, FinishWaitsForEverything) {
  int count = 0;
  Backstage backstage;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(backstage.Later([&] { ++count; }));
    backstage.Now([&] { ++count; });
  }
  backstage.Finish();
  EXPECT_EQ(count, 2000);
  backstage.Finish();
}

TEST(Backstage, RefusesMoreThanItCanHold) {
  std::promise<void> gate;
  Backstage backstage;
  backstage.Now([held = gate.get_future().share()] { held.wait(); });
  int taken = 0;
  while (backstage.Later([] {})) ++taken;
  EXPECT_EQ(taken, 10'000);
  gate.set_value();
  backstage.Finish();
  EXPECT_TRUE(backstage.Later([] {}));
}

}  // namespace
}  // namespace swell::edge
