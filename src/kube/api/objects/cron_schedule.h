// CronSchedule: five fields of cron (minute, hour, day of month, month, day of week) with lists,
// ranges, steps and names, and the words @hourly, @daily, @weekly, @monthly, @yearly. Times are
// those of a zone's clocks; UTC if none is named.
// - Threads: values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "base/time_zone.h"

namespace swell::api {

class CronSchedule {
 public:
  // kBadRequest says which field is wrong, and what it may be.
  static Result<CronSchedule> Parse(std::string_view text);

  // The first time after `time`; nullopt if no time matches within eight years (30 February).
  std::optional<WallTime> Next(WallTime time, const TimeZone& zone = {}) const;

  struct Due {
    std::optional<WallTime> run;   // the latest time after `since` that has come
    std::optional<WallTime> next;  // the first that has not
    bool too_many = false;         // more than kMissedMax have come: a clock may be wrong
  };
  Due DueAt(WallTime now, WallTime since, const TimeZone& zone = {}) const;
  static constexpr int kMissedMax = 100;

 private:
  bool MatchesDay(int64_t day) const;  // since 1970
  // Both in seconds, as clocks without a zone show them.
  std::optional<int64_t> NextOnClock(int64_t time) const;

  uint64_t minutes_ = 0, hours_ = 0, days_ = 0, months_ = 0, weekdays_ = 0;  // bit sets
  // Where both are given, either is enough; a star in one leaves the other alone.
  bool any_day_ = false, any_weekday_ = false;
};

}  // namespace swell::api
