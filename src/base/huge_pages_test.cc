#include "base/huge_pages.h"

#include <string>

#include <gtest/gtest.h>

namespace swell {
namespace {

TEST(HugePages, LargeVectorsBeginWithAPageAndKeepWhatTheyHold) {
  LargeVector<std::string> words;
  for (int i = 0; i < 200'000; ++i) {
    words.push_back("word number " + std::to_string(i));
    const bool large = words.capacity() >= kHugePageBytes / sizeof(std::string);
    if (!large) continue;
    ASSERT_EQ(reinterpret_cast<uintptr_t>(words.data()) % kHugePageBytes, 0u);
  }
  ASSERT_GE(words.capacity() * sizeof(std::string), kHugePageBytes);
  for (int i = 0; i < 200'000; ++i) ASSERT_EQ(words[i], "word number " + std::to_string(i));
  LargeVector<std::string> others = words;
  words.resize(3);
  words.shrink_to_fit();
  EXPECT_EQ(words.back(), "word number 2");
  EXPECT_EQ(others.back(), "word number 199999");
  others = std::move(words);
  EXPECT_EQ(others.size(), 3u);
}

}  // namespace
}  // namespace swell
