#include "base/duration.h"

#include <gtest/gtest.h>

namespace swell {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(Durations, AreReadAsGoReadsThemAndInDays) {
  const std::pair<const char*, Duration> cases[] = {
      {"0", Duration(0)},
      {"90", seconds(90)},
      {"90s", seconds(90)},
      {"1h", hours(1)},
      {"1h30m", minutes(90)},
      {"500ms", milliseconds(500)},
      {"1s500ms", milliseconds(1500)},
      {"1.5s", milliseconds(1500)},
      {".5m", seconds(30)},
      {"1.m", minutes(1)},
      {"1.5h0.5m", seconds(5430)},
      {"10us", microseconds(10)},
      {"10µs", microseconds(10)},
      {"7ns", nanoseconds(7)},
      {"3d", hours(72)},
      {"2d12h", hours(60)},
      {"0.1234567891s", nanoseconds(123456789)},
      {"36500d", hours(876'000)},
  };
  for (const auto& [text, duration] : cases) EXPECT_EQ(ParseDuration(text), duration) << text;
}

TEST(Durations, NothingElseIsOne) {
  for (const char* text : {"",
                           "s",
                           "x",
                           "5x",
                           "-1s",
                           "+1s",
                           "1 s",
                           " 1s",
                           "1s ",
                           "1h30",
                           "0h30",
                           "1.2.3s",
                           ".s",
                           ".",
                           "1e3s",
                           "1S",
                           "1sm",
                           "36501d",
                           "99999999999999999999s",
                           "9223372036s9223372036s",
                           "1w",
                           "infs",
                           "\xff"}) {
    EXPECT_EQ(ParseDuration(text), std::nullopt) << text;
  }
}

TEST(Durations, ArePrintedAsGoPrintsThem) {
  const std::pair<Duration, const char*> cases[] = {
      {Duration(0), "0s"},          {nanoseconds(7), "7ns"},
      {nanoseconds(1500), "1.5µs"}, {milliseconds(500), "500ms"},
      {seconds(1), "1s"},           {milliseconds(12345), "12.345s"},
      {seconds(60), "1m0s"},        {seconds(90), "1m30s"},
      {hours(24), "24h0m0s"},       {hours(1) + milliseconds(50), "1h0m0.05s"},
      {seconds(-90), "-1m30s"},     {Duration::min(), "-2562047h47m16.854775807s"},
  };
  for (const auto& [duration, text] : cases) EXPECT_EQ(FormatDuration(duration), text);
}

}  // namespace
}  // namespace swell
