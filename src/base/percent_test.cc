#include "base/percent.h"

#include <gtest/gtest.h>

namespace swell {
namespace {

TEST(Percent, EncodesWhatIsNotPlain) {
  EXPECT_EQ(PercentEncode("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(PercentEncode("a b/%\xff"), "a%20b%2F%25%FF");
  EXPECT_EQ(PercentEncode("a b/c", "/"), "a%20b/c");
  EXPECT_EQ(PercentEncode(""), "");
}

TEST(Percent, DecodesDigitsInBothCases) {
  EXPECT_EQ(PercentDecode("plain"), "plain");
  EXPECT_EQ(PercentDecode("a%20b%2F%2f+%25"), "a b//+%");
  EXPECT_EQ(PercentDecode(PercentEncode("\x01\xff %")), "\x01\xff %");
}

TEST(Percent, RefusesAnEscapeThatIsCutOff) {
  for (const std::string_view text : {"%", "a%2", "%zz", "%2", "%20%"}) {
    EXPECT_EQ(PercentDecode(text), std::nullopt) << text;
  }
}

TEST(Percent, PlusIsASpaceInAQueryOnly) {
  EXPECT_EQ(QueryDecode("a+b%2B"), "a b+");
  EXPECT_EQ(PercentDecode("a+b"), "a+b");
}

}  // namespace
}  // namespace swell
