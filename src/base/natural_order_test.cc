#include "base/natural_order.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace swell {
namespace {

TEST(NaturalOrder, NumbersAreOrderedByValue) {
  const std::vector<std::string> ordered = {
      "",          "a",          "a/job", "job-1", "job-2", "job-10", "job-10a", "job-100",
      "job-100-2", "job-100-11", "job-x", "jobs",  "x1y9",  "x1y10",  "x2y1"};
  std::vector<std::string> names(ordered.rbegin(), ordered.rend());
  std::sort(names.begin(), names.end(), [](const std::string& left, const std::string& right) {
    return CompareNatural(left, right) < 0;
  });
  EXPECT_EQ(names, ordered);
}

TEST(NaturalOrder, DifferentNamesAreNeverEqual) {
  EXPECT_TRUE(CompareNatural("a-7", "a-07") != 0);
  EXPECT_TRUE(CompareNatural("a-7", "a-8") < 0);
  EXPECT_TRUE(CompareNatural("a-07", "a-8") < 0);
  EXPECT_TRUE(CompareNatural("a-7", "a-7") == 0);
}

TEST(NaturalOrder, BytesEndAfterTheirNumbers) {
  NaturalBytes bytes("b012");
  std::string read;
  for (int next = bytes.Next(); next >= 0; next = bytes.Next()) read += static_cast<char>(next);
  EXPECT_EQ(read, "b212");
  EXPECT_EQ(bytes.Next(), -1);
}

}  // namespace
}  // namespace swell
