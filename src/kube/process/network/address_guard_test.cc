#include "kube/process/network/address_guard.h"

#include <sched.h>

#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/process/network/nftables.h"

namespace swell::process {
namespace {

constexpr char kTable[] = "swellguard_own";

// In a network namespace of this thread alone, which goes with it.
void InANetworkOfItsOwn(const std::function<void()>& test) {
  bool permitted = true;
  std::thread apart([&] {
    permitted = ::unshare(CLONE_NEWNET) == 0 && AskNftables("list tables bridge\n").ok();
    if (permitted) test();
  });
  apart.join();
  if (!permitted) GTEST_SKIP() << "networks of their own or nftables are not permitted here";
}

std::string Listed() { return AskNftables(StrCat("list table bridge ", kTable, "\n")).value(); }

bool Holds(const std::string& port) { return Listed().find(StrCat("\"", port, "\"")) < 1 << 20; }

TEST(AddressGuard, PortsComeAndGo) {
  InANetworkOfItsOwn([] {
    AddressGuard guard(kTable);
    ASSERT_TRUE(guard.Add("before", {"02:00:00:00:00:09", "10.88.0.9"}).ok());
    EXPECT_FALSE(guard.Find().value());
    ASSERT_TRUE(guard.Start({{"one", {"02:00:00:00:00:01", "10.88.0.1"}}}).ok());
    EXPECT_TRUE(guard.Find().value());
    ASSERT_TRUE(guard.Add("two", {"02:00:00:00:00:02", "10.88.0.2"}).ok());
    EXPECT_NE(Listed().find("\"two\" . 02:00:00:00:00:02 . 10.88.0.2"), std::string::npos)
        << Listed();
    EXPECT_TRUE(Holds("one"));
    EXPECT_FALSE(Holds("before"));
    guard.Remove("one");
    EXPECT_FALSE(Holds("one"));
    guard.Remove("one");
    guard.Shutdown();
    EXPECT_FALSE(guard.Find().value());
  });
}

TEST(AddressGuard, AddingAPortMakesATableThatSomebodyRemoved) {
  InANetworkOfItsOwn([] {
    AddressGuard guard(kTable);
    ASSERT_TRUE(guard.Start({{"one", {"02:00:00:00:00:01", "10.88.0.1"}}}).ok());
    ASSERT_TRUE(RunNftables("flush ruleset\n").ok());
    EXPECT_FALSE(guard.Find().value());
    ASSERT_TRUE(guard.Add("two", {"02:00:00:00:00:02", "10.88.0.2"}).ok());
    EXPECT_TRUE(Holds("one"));
    EXPECT_TRUE(Holds("two"));
  });
}

TEST(AddressGuard, ItRefusesWhatIsNoAddress) {
  InANetworkOfItsOwn([] {
    AddressGuard guard(kTable);
    EXPECT_FALSE(guard.Start({{"one", {"zz", "10.88.0.1"}}}).ok());
  });
}

}  // namespace
}  // namespace swell::process
