#include "lab/tenant_hours.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "lab/lab_test_util.h"

namespace swell::lab {
namespace {

std::string Text(const std::vector<TenantHour>& hours) {
  std::string text;
  for (const TenantHour& one : hours) {
    text += StrCat(text.empty() ? "" : ", ", one.hour, " ", one.tenant, " ", std::lround(one.asked),
                   "/", std::lround(one.share), "/", std::lround(one.held));
  }
  return text;
}

TEST(TenantHours, AveragesOverEachHourWithSharesByQuotaAndWeight) {
  const std::map<std::string, TenantShare> shares{{"a", {6, 1}}, {"b", {2, 1}}};
  TenantHours hours(8, shares);
  hours.Ask(0, "a", 8);
  hours.Hold(0, "a", 8);
  // From half past on a second tenant asks, and gets nothing before the next hour.
  hours.Ask(1800, "b", 4);
  hours.Hold(3600, "a", -2);
  hours.Hold(3600, "b", 2);
  EXPECT_EQ(Text(hours.Take(7200)), "0 a 8/7/8, 0 b 2/1/0, 1 a 8/6/6, 1 b 4/2/2");
}

TEST(TenantHours, HoursWithoutDemandAreLeftOut) {
  const std::map<std::string, TenantShare> shares;
  TenantHours hours(4, shares);
  hours.Ask(10 * 3600, "a", 2);
  hours.Hold(10 * 3600, "a", 2);
  hours.Hold(11 * 3600, "a", -2);
  hours.Ask(11 * 3600, "a", -2);
  hours.Ask(int64_t{5000} * 3600 + 900, "a", 4);
  EXPECT_EQ(Text(hours.Take(int64_t{5000} * 3600 + 2700)), "10 a 2/2/2, 5000 a 2/2/0");
}

TEST(TenantHours, KnowsWhenWhatATenantLacksIsTooLittleForItsJobs) {
  const std::map<std::string, TenantShare> shares{{"a", {6, 1}}, {"b", {2, 1}}};
  TenantHours hours(8, shares);
  hours.Ask(0, "a", 8);
  hours.Hold(0, "a", 4);
  hours.Wait(0, "a", 4, true);
  hours.Ask(0, "b", 2);
  hours.Hold(0, "b", 2);
  // From half past on a smaller job waits as well, for which there would be enough.
  hours.Ask(1800, "a", 1);
  hours.Wait(1800, "a", 1, true);
  const std::vector<TenantHour> all = hours.Take(3600);
  ASSERT_EQ(Text(all), "0 a 9/6/4, 0 b 2/2/2");
  EXPECT_EQ(all[0].Short(), 2);
  EXPECT_EQ(all[0].too_little, 1);
  EXPECT_EQ(all[1].too_little, 0);
}

TEST(TenantHours, ARunRecordsThemForTracesWithTenants) {
  Trace trace{"t", "swell", {}};
  trace.jobs.push_back({"a", "red", 0, 2, "", 0, 3570});  // 30 s to start: an hour
  trace.jobs.push_back({"b", "blue", 0, 2, "", 0, 3570});
  RunOptions options;
  options.shape = {1, 2};
  const auto run = Play(trace, ProfileLibrary(), **FindPolicy("fair"), options);
  ASSERT_TRUE(run.ok()) << run.status().message();
  const std::vector<TenantHour>& hours = run->tenant_hours;
  ASSERT_EQ(hours.size(), 3u) << Text(hours);
  // Each is due one GPU of two, and only one of the two jobs fits.
  EXPECT_EQ(hours[0].share, 1);
  EXPECT_EQ(hours[1].share, 1);
  EXPECT_EQ(hours[0].held + hours[1].held, 2);
  EXPECT_EQ(hours[0].Short() + hours[1].Short(), 1);
  EXPECT_EQ(hours[0].too_little + hours[1].too_little, 1);
  EXPECT_EQ(hours[2].share, 2);
  EXPECT_EQ(hours[2].Short(), 0);

  for (TraceJob& job : trace.jobs) job.tenant.clear();
  EXPECT_TRUE(Play(trace, ProfileLibrary(), **FindPolicy("fair"), options)->tenant_hours.empty());
}

}  // namespace
}  // namespace swell::lab
