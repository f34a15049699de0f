#include "base/host_port.h"

#include <gtest/gtest.h>

namespace swell {
namespace {

TEST(HostPort, ThePortIsBehindTheLastColonThatNoBracketsHold) {
  EXPECT_EQ(WithoutPort("localhost:80"), "localhost");
  EXPECT_EQ(WithoutPort("localhost"), "localhost");
  EXPECT_EQ(WithoutPort(":80"), "");
  EXPECT_EQ(WithoutPort("[::1]:80"), "[::1]");
  EXPECT_EQ(WithoutPort("[::1]"), "[::1]");
}

TEST(HostPort, WhatListensEverywhereIsReachedAtTheLoopback) {
  for (const char* any : {"", ":80", "0.0.0.0:80", "[::]:80"}) {
    EXPECT_EQ(HostForClients(any), "127.0.0.1") << any;
  }
  EXPECT_EQ(HostForClients("10.0.0.1:80"), "10.0.0.1");
  EXPECT_EQ(HostForClients("[fd00::1]:80"), "[fd00::1]");
  EXPECT_EQ(HostForClients("localhost:80"), "localhost");
}

TEST(HostPort, WhatListensHasAnIpAddress) {
  EXPECT_EQ(IpForClients("localhost:80"), "127.0.0.1");
  EXPECT_EQ(IpForClients("0.0.0.0:80"), "127.0.0.1");
  EXPECT_EQ(IpForClients("10.0.0.1:80"), "10.0.0.1");
  EXPECT_EQ(IpForClients("[fd00::1]:80"), "fd00::1");
}

TEST(HostPort, BracketsComeAndGo) {
  for (const char* host : {"10.0.0.1", "node-1", "fd00::1"}) {
    const std::string bracketed = Bracketed(host);
    EXPECT_EQ(Unbracketed(bracketed), host);
    EXPECT_EQ(Bracketed(bracketed), bracketed);
  }
  EXPECT_EQ(Bracketed("fd00::1"), "[fd00::1]");
  EXPECT_EQ(Bracketed("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(Unbracketed("[fd00"), "[fd00");
}

TEST(HostPort, AnAddressIsNotAName) {
  EXPECT_TRUE(IsIpAddress("10.0.0.1"));
  EXPECT_TRUE(IsIpAddress("fd00::1"));
  EXPECT_FALSE(IsIpAddress("10.example.com"));
  EXPECT_FALSE(IsIpAddress("localhost"));
}

TEST(HostPort, LoopbackIsThisMachineOnly) {
  for (const char* own : {"127.0.0.1:80", "127.1.2.3", "localhost", "localhost:80", "[::1]:80"}) {
    EXPECT_TRUE(IsLoopback(own)) << own;
  }
  for (const char* other : {"", ":80", "0.0.0.0:80", "10.0.0.1:80", "127.example.com:80", "[::]:80",
                            "localhost.example.com"}) {
    EXPECT_FALSE(IsLoopback(other)) << other;
  }
}

}  // namespace
}  // namespace swell
