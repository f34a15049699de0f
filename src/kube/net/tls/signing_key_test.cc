#include "kube/net/tls/signing_key.h"

#include <gtest/gtest.h>

namespace swell::net {
namespace {

TEST(SigningKey, SignsWhatOnlyItVerifies) {
  const SigningKey key = SigningKey::Generate().value();
  const SigningKey other = SigningKey::Generate().value();
  const std::string signature = key.Sign("a token");
  EXPECT_EQ(signature.size(), 64U);
  EXPECT_TRUE(key.Verify("a token", signature));
  EXPECT_FALSE(key.Verify("a token.", signature));
  EXPECT_FALSE(other.Verify("a token", signature));
}

TEST(SigningKey, RefusesBrokenSignatures) {
  const SigningKey key = SigningKey::Generate().value();
  std::string signature = key.Sign("a token");
  for (size_t i = 0; i < signature.size(); i += 7) {
    std::string broken = signature;
    broken[i] = static_cast<char>(broken[i] ^ 1);
    EXPECT_FALSE(key.Verify("a token", broken)) << i;
  }
  EXPECT_FALSE(key.Verify("a token", ""));
  EXPECT_FALSE(key.Verify("a token", std::string(64, '\0')));
  EXPECT_FALSE(key.Verify("a token", std::string(64, '\xff')));
  EXPECT_FALSE(key.Verify("a token", signature + "x"));
}

TEST(SigningKey, SurvivesPem) {
  const SigningKey key = SigningKey::Generate().value();
  const SigningKey again = SigningKey::FromPem(key.ToPem().value()).value();
  EXPECT_EQ(again.x(), key.x());
  EXPECT_EQ(again.y(), key.y());
  EXPECT_TRUE(again.Verify("text", key.Sign("text")));
}

TEST(SigningKey, RefusesWhatIsNoKey) {
  EXPECT_FALSE(SigningKey::FromPem("").ok());
  EXPECT_FALSE(
      SigningKey::FromPem("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").ok());
}

}  // namespace
}  // namespace swell::net
