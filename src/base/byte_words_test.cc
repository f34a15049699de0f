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
    const size_t from = random.Below(a.size() + 1);
    for (const char byte : {'"', '\0', '\x80', '\xff', a.empty() ? 'x' : a.back()}) {
      EXPECT_EQ(FindByte(a, byte, from), a.find(byte, from));
    }
  }
}

}  // namespace
}  // namespace swell
