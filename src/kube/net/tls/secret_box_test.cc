#include "kube/net/tls/secret_box.h"

#include <gtest/gtest.h>

namespace swell::net {
namespace {

TEST(SecretBox, OpensWithItsKeyAndContextAlone) {
  const std::string key = RandomBytes(kSecretKeyBytes).value();
  for (const std::string& plain :
       {std::string(), std::string("password"), std::string(100'000, 'x')}) {
    const std::string box = SealBytes(key, plain, "secrets/a/b").value();
    EXPECT_EQ(box.find("password"), std::string::npos);
    EXPECT_EQ(OpenBytes(key, box, "secrets/a/b").value(), plain);
    EXPECT_EQ(OpenBytes(key, box, "secrets/a/c").status().code(), Code::kUnauthorized);
    const std::string other = RandomBytes(kSecretKeyBytes).value();
    EXPECT_EQ(OpenBytes(other, box, "secrets/a/b").status().code(), Code::kUnauthorized);
    for (size_t at : {size_t{0}, box.size() / 2, box.size() - 1}) {
      std::string changed = box;
      changed[at] = static_cast<char>(changed[at] ^ 1);
      EXPECT_FALSE(OpenBytes(key, changed, "secrets/a/b").ok()) << at;
    }
    EXPECT_FALSE(OpenBytes(key, box.substr(0, box.size() - 1), "secrets/a/b").ok());
  }
  EXPECT_FALSE(OpenBytes(key, "", "").ok());
  EXPECT_EQ(SealBytes("short", "x", "").status().code(), Code::kInvalid);
}

TEST(SecretBox, TheSameTextIsNeverTheSameBox) {
  const std::string key = RandomBytes(kSecretKeyBytes).value();
  EXPECT_NE(SealBytes(key, "x", "").value(), SealBytes(key, "x", "").value());
}

TEST(SecretBox, APassphraseIsAKey) {
  const std::string key = KeyFromPassphrase("correct horse", "salt").value();
  EXPECT_EQ(key.size(), kSecretKeyBytes);
  EXPECT_EQ(KeyFromPassphrase("correct horse", "salt").value(), key);
  EXPECT_NE(KeyFromPassphrase("correct horse", "pepper").value(), key);
  EXPECT_NE(KeyFromPassphrase("battery staple", "salt").value(), key);
}

}  // namespace
}  // namespace swell::net
