#include "base/fair_places.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace swell {
namespace {

TEST(FairPlacesTest, NobodyHoldsMoreThanAreFree) {
  FairPlaces places(12);
  auto take_all = [&places](const std::string& who) {
    std::vector<FairPlaces::Place> taken;
    while (FairPlaces::Place place = places.Take(who)) taken.push_back(std::move(place));
    return taken;
  };
  std::vector<FairPlaces::Place> alice = take_all("alice");
  EXPECT_EQ(alice.size(), 6u);
  std::vector<FairPlaces::Place> bob = take_all("bob");
  EXPECT_EQ(bob.size(), 3u);
  EXPECT_EQ(take_all("carl").size(), 2u);
  EXPECT_EQ(places.taken(), 9u) << "what carl took is free again";
  EXPECT_EQ(places.Take("alice"), nullptr);
  alice.clear();
  EXPECT_EQ(take_all("bob").size(), 3u) << "beside the three that bob holds";
}

TEST(FairPlacesTest, AnotherThreadMayDropAPlace) {
  FairPlaces places(1000);
  std::vector<FairPlaces::Place> held;
  for (int i = 0; i < 100; ++i) held.push_back(places.Take("alice"));
  std::thread other([held = std::move(held)]() mutable { held.clear(); });
  for (int i = 0; i < 100; ++i) EXPECT_NE(places.Take("bob"), nullptr);
  other.join();
  EXPECT_EQ(places.taken(), 0u);
}

TEST(FairPlacesTest, APlaceMayOutliveThem) {
  FairPlaces::Place place;
  {
    FairPlaces places(1);
    place = places.Take("alice");
    EXPECT_NE(place, nullptr);
    EXPECT_EQ(places.Take("bob"), nullptr);
  }
  place.reset();
}

}  // namespace
}  // namespace swell
