#include "kube/edge/webhook/webhook_authority.h"

#include <gtest/gtest.h>

namespace swell::edge {
namespace {

constexpr Duration kDay = std::chrono::hours(24);
constexpr WallTime kStart{1767225600LL * 1'000'000'000LL};

WebhookAuthority Made(WallTime now) {
  auto made = Renew({}, "test", now);
  EXPECT_TRUE(made.ok() && made->has_value());
  return **made;
}

// What all replicas would have made of it by then.
WebhookAuthority After(const WebhookAuthority& authority, WallTime now) {
  auto renewed = Renew(authority, "test", now);
  EXPECT_TRUE(renewed.ok());
  return renewed.ok() && *renewed ? **renewed : authority;
}

bool Trusts(const std::string& bundle, const net::CertificatePair& authority) {
  return bundle.find(authority.cert_pem) != std::string::npos;
}

TEST(WebhookAuthority, IsMadeOnceAndThenStays) {
  const WebhookAuthority made = Made(kStart);
  EXPECT_FALSE(made.current.cert_pem.empty());
  EXPECT_FALSE(made.next.has_value());
  EXPECT_EQ(made.previous, "");
  auto later = Renew(made, "test", kStart + 1000 * kDay);
  ASSERT_TRUE(later.ok());
  EXPECT_FALSE(later->has_value());
}

TEST(WebhookAuthority, SurvivesItsSecret) {
  WebhookAuthority made = After(Made(kStart), kStart + 3600 * kDay);
  ASSERT_TRUE(made.next.has_value());
  made.previous = made.current.cert_pem;
  const WebhookAuthority read = WebhookAuthority::Read(json::Value(made.Data()));
  EXPECT_EQ(read.Bundle(), made.Bundle());
  EXPECT_EQ(read.current.key_pem, made.current.key_pem);
  EXPECT_EQ(read.next->key_pem, made.next->key_pem);
}

TEST(WebhookAuthority, AnotherFollowsBeforeItEndsAndIsTrustedFirst) {
  const WebhookAuthority first = Made(kStart);
  WebhookAuthority now = first;
  std::string bundle = first.Bundle();
  int changes = 0;
  for (int day = 0; day <= 3650 + 400; ++day) {
    const WallTime when = kStart + day * kDay;
    const WebhookAuthority then = After(now, when);
    // The issuer was trusted by everybody the day before.
    EXPECT_TRUE(Trusts(bundle, then.current)) << "day " << day;
    auto info = net::DescribeCertificate(then.current.cert_pem);
    ASSERT_TRUE(info.ok());
    EXPECT_GT(info->not_after, when) << "day " << day;
    if (then.current.cert_pem != now.current.cert_pem) {
      ++changes;
      EXPECT_TRUE(Trusts(then.Bundle(), now.current)) << "its certificates are still in use";
    }
    now = then;
    bundle = then.Bundle();
  }
  EXPECT_EQ(changes, 1);
  EXPECT_EQ(now.previous, "") << "it has ended, and is trusted no more";
}

TEST(WebhookAuthority, OneThatEndedUnseenIsReplacedAtOnce) {
  const WebhookAuthority first = Made(kStart);
  const WebhookAuthority late = After(first, kStart + 4000 * kDay);
  EXPECT_NE(late.current.cert_pem, first.current.cert_pem);
  EXPECT_FALSE(late.next.has_value());
}

TEST(WebhookAuthority, WhatCannotBeReadIsMadeAnew) {
  const json::Value broken = json::Object{{"tls.crt", "bm9uc2Vuc2U="}, {"tls.key", "!"}};
  const WebhookAuthority read = WebhookAuthority::Read(broken);
  EXPECT_EQ(read.current.cert_pem, "");
  EXPECT_FALSE(After(read, kStart).current.key_pem.empty());
}

}  // namespace
}  // namespace swell::edge
