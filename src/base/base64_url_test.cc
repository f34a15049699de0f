#include "base/base64_url.h"

#include <gtest/gtest.h>

namespace swell {
namespace {

TEST(Base64Url, HasNoCharacterThatAUrlMustEscape) {
  EXPECT_EQ(Base64UrlEncode("\xfb\xff\xfe"), "-__-");
  EXPECT_EQ(Base64UrlEncode("f"), "Zg");
  EXPECT_EQ(Base64UrlEncode(""), "");
}

TEST(Base64Url, IsReadBack) {
  for (const std::string bytes : {"", "f", "fo", "foo", "\xfb\xff\xfe", "\xfb\xff\xfe\x01"}) {
    EXPECT_EQ(Base64UrlDecode(Base64UrlEncode(bytes)), bytes);
  }
  EXPECT_EQ(Base64UrlDecode("a.b"), std::nullopt);
}

}  // namespace
}  // namespace swell
