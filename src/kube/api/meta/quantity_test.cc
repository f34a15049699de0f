// Tests of resource amounts.
#include "kube/api/meta/quantity.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/strings.h"

namespace swell::api {
namespace {

Quantity Q(std::string_view text) {
  auto quantity = Quantity::Parse(text);
  EXPECT_TRUE(quantity.ok()) << text;
  return quantity.ok() ? *quantity : Quantity();
}

TEST(Quantity, ReadsAndCanonicalizes) {
  struct Case {
    std::string text, canonical;
    int64_t value, milli;
  };
  const Case cases[] = {
      {"0", "0", 0, 0},
      {"1", "1", 1, 1000},
      {"100m", "100m", 1, 100},
      {"1500m", "1500m", 2, 1500},
      {"2000m", "2", 2, 2000},
      {"0.5", "500m", 1, 500},
      {".5", "500m", 1, 500},
      {"5.", "5", 5, 5000},
      {"+1", "1", 1, 1000},
      {"-1.5", "-1500m", -2, -1500},
      {"4Gi", "4Gi", 4LL << 30, (4LL << 30) * 1000},
      {"1.5Gi", "1536Mi", 3LL << 29, (3LL << 29) * 1000},
      {"1024Mi", "1Gi", 1LL << 30, (1LL << 30) * 1000},
      {"0.5Ki", "512", 512, 512'000},
      {"0.1Ki", "102400m", 103, 102'400},
      {"100k", "100k", 100'000, 100'000'000},
      {"1000k", "1M", 1'000'000, 1'000'000'000},
      {"1e3", "1e3", 1000, 1'000'000},
      {"1E3", "1e3", 1000, 1'000'000},
      {"12e-1", "1200e-3", 2, 1200},
      {"1E", "1E", 1'000'000'000'000'000'000, INT64_MAX},
      {"123u", "123u", 1, 1},
      {"0.0000000001", "1n", 1, 1},
      {"1n", "1n", 1, 1},
      {"1e-20", "1e-9", 1, 1},
      {"8Ei", "9223372036854775807", INT64_MAX, INT64_MAX},
      {"1e30", "9223372036854775807", INT64_MAX, INT64_MAX},
      {"-9999999E", "-9223372036854775807", -INT64_MAX, INT64_MIN},
      {"0.000000000000000000000000001Ki", "1n", 1, 1},
      {"000001", "1", 1, 1000},
  };
  for (const Case& c : cases) {
    Quantity quantity = Q(c.text);
    EXPECT_EQ(quantity.ToString(), c.canonical) << c.text;
    EXPECT_EQ(quantity.Value(), c.value) << c.text;
    EXPECT_EQ(quantity.MilliValue(), c.milli) << c.text;
  }
}

TEST(Quantity, RefusesWhatIsNone) {
  for (const char* text : {"", " 1", "1 ", "1Gb", "Gi", "1.2.3", "--1", "1e", "1e1.5", "0x1", "1kI",
                           ".", "1e99999999999", "one", "1ee3", "-", "1+"}) {
    auto quantity = Quantity::Parse(text);
    ASSERT_FALSE(quantity.ok()) << text;
    EXPECT_EQ(quantity.status().code(), Code::kBadRequest);
    EXPECT_NE(quantity.status().message().find("quantities must match"), std::string::npos);
  }
  EXPECT_FALSE(Quantity::Parse(std::string(10'000, '1')).ok());
}

TEST(Quantity, ReadsJson) {
  EXPECT_EQ(Quantity::FromJson(json::Value("2Gi"))->ToString(), "2Gi");
  EXPECT_EQ(Quantity::FromJson(json::Value(3))->ToString(), "3");
  EXPECT_EQ(Quantity::FromJson(json::Value(0.25))->ToString(), "250m");
  EXPECT_EQ(Quantity::FromJson(json::Value(1e21))->Value(), INT64_MAX);
  EXPECT_FALSE(Quantity::FromJson(json::Value(true)).ok());
  EXPECT_FALSE(Quantity::FromJson(json::Array()).ok());
}

TEST(Quantity, Compares) {
  EXPECT_EQ(Q("1Gi"), Q("1024Mi"));
  EXPECT_EQ(Q("1000m"), Q("1"));
  EXPECT_LT(Q("1G"), Q("1Gi"));
  EXPECT_LT(Q("-1"), Q("0"));
  EXPECT_TRUE(Q("-1n").negative());
}

TEST(QuantityProperty, CanonicalTextMeansTheSameAmount) {
  static constexpr std::string_view kSuffixes[] = {
      "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e2"};
  for (uint64_t seed = 1; seed <= 5000; ++seed) {
    Random random(seed);
    std::string text = StrCat(random.OneIn(4) ? "-" : "", random.Below(100'000));
    if (random.OneIn(2)) text += StrCat(".", random.Below(1'000'000));
    text += kSuffixes[random.Below(std::size(kSuffixes))];
    Quantity quantity = Q(text);
    std::string canonical = quantity.ToString();
    EXPECT_EQ(Q(canonical), quantity) << text << " → " << canonical;
    EXPECT_EQ(Q(canonical).ToString(), canonical) << text;
  }
}

TEST(Quantity, SumsKeepTheirForm) {
  auto sum = [](std::string_view a, std::string_view b) {
    Quantity total = Quantity::Parse(a).value();
    total += Quantity::Parse(b).value();
    return total.ToString();
  };
  EXPECT_EQ(sum("500m", "1"), "1500m");
  EXPECT_EQ(sum("0", "1Gi"), "1Gi");
  EXPECT_EQ(sum("512Mi", "512Mi"), "1Gi");
  EXPECT_EQ(sum("1", "-1"), "0");
  EXPECT_EQ(sum("9223372036854775807", "9223372036854775807"), "9223372036854775807");
}

}  // namespace
}  // namespace swell::api
