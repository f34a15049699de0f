#include "base/byte_words.h"

#include <string>

#include <gtest/gtest.h>

#include "base/random.h"

namespace swell {
namespace {

TEST(Words, AgreeWithLookingAtEachByte) {
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string a(random.Below(40), 'x');
    for (char& c : a) c = static_cast<char>(random.Below(256));
    std::string b = a;
    if (!b.empty() && !random.OneIn(4)) b[random.Below(b.size())] ^= 1;
    size_t common = 0;
    while (common < a.size() && a[common] == b[common]) ++common;
    EXPECT_EQ(CommonStart(a.data(), b.data(), a.size()), common);
    const size_t from = random.Below(a.size() + 1);
    for (const char byte : {'"', '\0', '\x80', '\xff', a.empty() ? 'x' : a.back()}) {
      EXPECT_EQ(FindByte(a, byte, from), a.find(byte, from));
    }
  }
}

}  // namespace
}  // namespace swell
