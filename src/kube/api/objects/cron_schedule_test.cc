#include "kube/api/objects/cron_schedule.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::api {
namespace {

std::string NextAfter(std::string_view schedule, std::string_view time, const TimeZone& zone = {}) {
  const auto parsed = CronSchedule::Parse(schedule);
  if (!parsed.ok()) return parsed.status().message();
  const auto next = parsed->Next(ParseTime(time).value(), zone);
  return next ? FormatTime(*next) : "never";
}

TEST(CronSchedule, FindsTheNextTime) {
  EXPECT_EQ(NextAfter("* * * * *", "2026-01-01T00:00:00Z"), "2026-01-01T00:01:00Z");
  EXPECT_EQ(NextAfter("*/15 * * * *", "2026-01-01T00:15:01Z"), "2026-01-01T00:30:00Z");
  EXPECT_EQ(NextAfter("30 4 * * *", "2026-01-01T04:30:00Z"), "2026-01-02T04:30:00Z");
  EXPECT_EQ(NextAfter("0 0 29 2 *", "2026-01-01T00:00:00Z"), "2028-02-29T00:00:00Z");
  EXPECT_EQ(NextAfter("0 9-17/4 * * MON-FRI", "2026-01-02T17:00:00Z"), "2026-01-05T09:00:00Z");
  EXPECT_EQ(NextAfter("0 0 * * 7", "2026-01-01T00:00:00Z"), "2026-01-04T00:00:00Z");
  EXPECT_EQ(NextAfter("0 0 1 jan,jul *", "2026-01-01T00:00:00Z"), "2026-07-01T00:00:00Z");
  EXPECT_EQ(NextAfter("@hourly", "2026-12-31T23:30:00Z"), "2027-01-01T00:00:00Z");
  EXPECT_EQ(NextAfter("0 0 30 2 *", "2026-01-01T00:00:00Z"), "never");
  // Both days given: either is enough.
  EXPECT_EQ(NextAfter("0 0 13 * 5", "2026-01-01T00:00:00Z"), "2026-01-02T00:00:00Z");
}

TEST(CronSchedule, TimesAreThoseOfAZonesClocks) {
  const auto berlin = TimeZone::Load("Europe/Berlin");
  ASSERT_TRUE(berlin.ok()) << "install the package tzdata";
  EXPECT_EQ(NextAfter("30 4 * * *", "2026-01-01T00:00:00Z", *berlin), "2026-01-01T03:30:00Z");
  EXPECT_EQ(NextAfter("30 4 * * *", "2026-07-01T00:00:00Z", *berlin), "2026-07-01T02:30:00Z");
  EXPECT_EQ(NextAfter("0 0 * * MON", "2026-07-01T00:00:00Z", *berlin), "2026-07-05T22:00:00Z");
  // On 29 March 2026, 02:30 is left out; on 25 October it is there twice.
  EXPECT_EQ(NextAfter("30 2 * * *", "2026-03-28T23:00:00Z", *berlin), "2026-03-30T00:30:00Z");
  EXPECT_EQ(NextAfter("30 2 * * *", "2026-10-24T23:00:00Z", *berlin), "2026-10-25T00:30:00Z");
  EXPECT_EQ(NextAfter("30 2 * * *", "2026-10-25T00:30:00Z", *berlin), "2026-10-26T01:30:00Z");
}

// "RUN NEXT", and "many" where a clock may be wrong.
std::string DueAt(std::string_view schedule, std::string_view since, std::string_view now) {
  const auto parsed = CronSchedule::Parse(schedule);
  if (!parsed.ok()) return parsed.status().message();
  const auto due = parsed->DueAt(ParseTime(now).value(), ParseTime(since).value());
  auto text = [](const std::optional<WallTime>& time) { return time ? FormatTime(*time) : "none"; };
  return StrCat(text(due.run), " ", text(due.next), due.too_many ? " many" : "");
}

TEST(CronSchedule, OfAllTimesThatHaveComeTheLatestIsDue) {
  EXPECT_EQ(DueAt("*/10 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:09:59Z"),
            "none 2026-01-01T00:10:00Z");
  EXPECT_EQ(DueAt("*/10 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z"),
            "2026-01-01T00:10:00Z 2026-01-01T00:20:00Z");
  EXPECT_EQ(DueAt("*/10 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:35:00Z"),
            "2026-01-01T00:30:00Z 2026-01-01T00:40:00Z");
  // 100 missed ones are few.
  EXPECT_EQ(DueAt("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T01:40:59Z"),
            "2026-01-01T01:40:00Z 2026-01-01T01:41:00Z");
  EXPECT_EQ(DueAt("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T01:41:00Z"),
            "2026-01-01T01:41:00Z 2026-01-01T01:42:00Z many");
  EXPECT_EQ(DueAt("* * * 1 *", "2001-01-01T00:00:00Z", "2026-12-31T00:00:00Z"),
            "2026-01-31T23:59:00Z 2027-01-01T00:00:00Z many");
  EXPECT_EQ(DueAt("@yearly", "2020-06-01T00:00:00Z", "2026-06-01T00:00:00Z"),
            "2026-01-01T00:00:00Z 2027-01-01T00:00:00Z");
  // A clock that was put back.
  EXPECT_EQ(DueAt("@hourly", "2026-01-01T05:30:00Z", "2026-01-01T03:00:00Z"),
            "none 2026-01-01T04:00:00Z");
}

TEST(CronSchedule, WhatIsWrongIsNamedWithWhatItMayBe) {
  const auto wrong = [](std::string_view text) {
    const auto parsed = CronSchedule::Parse(text);
    return parsed.ok() ? std::string() : std::string(parsed.status().message());
  };
  EXPECT_EQ(wrong("61 * * * *"), "minute 61 is not in 0-59");
  EXPECT_EQ(wrong("5,60 * * * *"), "minute 60 is not in 0-59");
  EXPECT_EQ(wrong("* 24 * * *"), "hour 24 is not in 0-23");
  EXPECT_EQ(wrong("* * 0 * *"), "day of month 0 is not in 1-31");
  EXPECT_EQ(wrong("* * * 13 *"), "month 13 is not in 1-12 or jan-dec");
  EXPECT_EQ(wrong("* * * * 8"), "day of week 8 is not in 0-7 or sun-sat");
  EXPECT_EQ(wrong("* * * * 1-8"), "day of week 8 is not in 0-7 or sun-sat");
  EXPECT_EQ(wrong("* * * foo *"), "month \"foo\" is not a number in 1-12 or jan-dec");
  EXPECT_EQ(wrong("a * * * *"), "minute \"a\" is not a number in 0-59");
  EXPECT_EQ(wrong("1,,2 * * * *"), "minute \"\" is not a number in 0-59");
  EXPECT_EQ(wrong("1-0 * * * *"), "minute \"1-0\" ends before it begins");
  EXPECT_EQ(wrong("*/0 * * * *"), "minute \"*/0\": the step \"0\" is not in 1-100");
  EXPECT_EQ(wrong("0 */x * * *"), "hour \"*/x\": the step \"x\" is not in 1-100");
  EXPECT_EQ(wrong(""), "expected exactly 5 fields, found 0");
  EXPECT_EQ(wrong("* * * *"), "expected exactly 5 fields, found 4");
  EXPECT_EQ(wrong("@never"), "expected exactly 5 fields, found 1");
  EXPECT_EQ(wrong("* * * * * *"), "expected exactly 5 fields, found 6; leave out the seconds");
  EXPECT_EQ(wrong("@every 5m"), "@every is not supported; write five fields, such as */5 * * * *");
}

}  // namespace
}  // namespace swell::api
