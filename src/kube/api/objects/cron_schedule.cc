#include "kube/api/objects/cron_schedule.h"

#include <string>

#include "base/strings.h"

namespace swell::api {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kDaySeconds = 86'400;
constexpr int64_t kDayMinutes = 1440;
constexpr int64_t kHorizonDays = int64_t{8} * 366;

struct Field {
  const char* name;
  int first;
  int last;
  std::string_view words;  // of values from `first` on, three letters each
};
constexpr Field kFields[] = {
    {"minute", 0, 59, ""},
    {"hour", 0, 23, ""},
    {"day of month", 1, 31, ""},
    {"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
    {"day of week", 0, 7, "sunmontuewedthufrisat"},
};

// "0-59", "1-12 or jan-dec".
std::string RangeOf(const Field& field) {
  std::string range = StrCat(field.first, "-", field.last);
  if (field.words.size() < 6) return range;
  return StrCat(range, " or ", field.words.substr(0, 3), "-",
                field.words.substr(field.words.size() - 3));
}

Status Wrong(std::string_view what) { return Status(Code::kBadRequest, std::string(what)); }

Result<int> ReadValue(std::string_view text, const Field& field) {
  if (text.size() == 3 && !field.words.empty()) {
    const size_t at = field.words.find(ToLower(text));
    if (at != std::string_view::npos && at % 3 == 0) {
      return field.first + static_cast<int>(at / 3);
    }
  }
  const auto number = ParseInt(text);
  if (!number) {
    return Wrong(StrCat(field.name, " ", Quote(text), " is not a number in ", RangeOf(field)));
  }
  if (*number < field.first || *number > field.last) {
    return Wrong(StrCat(field.name, " ", *number, " is not in ", RangeOf(field)));
  }
  return static_cast<int>(*number);
}

// One of a field's items: "*", "?", "3", "1-5", each perhaps with "/2".
Result<uint64_t> ReadItem(std::string_view text, const Field& field) {
  constexpr int64_t kStepMax = 100;
  int64_t step = 1;
  const size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    const std::string_view after = text.substr(slash + 1);
    const auto number = ParseInt(after);
    if (!number || *number <= 0 || *number > kStepMax) {
      return Wrong(StrCat(field.name, " ", Quote(text), ": the step ", Quote(after),
                          " is not in 1-", kStepMax));
    }
    step = *number;
    text = text.substr(0, slash);
  }
  int from = field.first;
  int to = field.last;
  if (text != "*" && text != "?") {
    const size_t dash = text.find('-');
    SWELL_ASSIGN_OR_RETURN(from, ReadValue(text.substr(0, dash), field));
    if (dash != std::string_view::npos) {
      SWELL_ASSIGN_OR_RETURN(to, ReadValue(text.substr(dash + 1), field));
      if (to < from) {
        return Wrong(StrCat(field.name, " ", Quote(text), " ends before it begins"));
      }
    } else if (slash == std::string_view::npos) {
      to = from;
    }
  }
  uint64_t bits = 0;
  for (int64_t value = from; value <= to; value += step) bits |= uint64_t{1} << value;
  return bits;
}

Result<uint64_t> ReadField(std::string_view text, const Field& field) {
  uint64_t bits = 0;
  for (std::string_view item : Split(text, ',')) {
    SWELL_ASSIGN_OR_RETURN(const uint64_t one, ReadItem(item, field));
    bits |= one;
  }
  return bits;
}

std::string_view Expand(std::string_view text) {
  if (text == "@hourly") return "0 * * * *";
  if (text == "@daily" || text == "@midnight") return "0 0 * * *";
  if (text == "@weekly") return "0 0 * * 0";
  if (text == "@monthly") return "0 0 1 * *";
  if (text == "@yearly" || text == "@annually") return "0 0 1 1 *";
  return text;
}

struct Date {
  int month;
  int day;
};

// The civil date of a day since 1970 (Hinnant's algorithm).
Date DateOf(int64_t days) {
  days += 719'468;
  const int64_t era = (days >= 0 ? days : days - 146'096) / 146'097;
  const int64_t of_era = days - era * 146'097;
  const int64_t year = (of_era - of_era / 1460 + of_era / 36'524 - of_era / 146'096) / 365;
  const int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
  const int64_t shifted = (5 * of_year + 2) / 153;
  return {static_cast<int>(shifted < 10 ? shifted + 3 : shifted - 9),
          static_cast<int>(of_year - (153 * shifted + 2) / 5 + 1)};
}

bool Has(uint64_t bits, int64_t value) { return (bits >> value & 1) != 0; }

}  // namespace

Result<CronSchedule> CronSchedule::Parse(std::string_view text) {
  if (Trim(text).starts_with("@every")) {
    return Wrong("@every is not supported; write five fields, such as */5 * * * *");
  }
  std::vector<std::string_view> parts;
  for (std::string_view part : Split(Expand(Trim(text)), ' ')) {
    if (!part.empty()) parts.push_back(part);
  }
  if (parts.size() != 5) {
    // Quartz, and Arena's own example, begin with seconds.
    return Wrong(StrCat("expected exactly 5 fields, found ", parts.size(),
                        parts.size() == 6 ? "; leave out the seconds" : ""));
  }
  CronSchedule schedule;
  uint64_t* const bits[] = {&schedule.minutes_, &schedule.hours_, &schedule.days_,
                            &schedule.months_, &schedule.weekdays_};
  for (size_t i = 0; i < parts.size(); ++i) {
    SWELL_ASSIGN_OR_RETURN(*bits[i], ReadField(parts[i], kFields[i]));
  }
  // Sunday is 0 and 7.
  if (Has(schedule.weekdays_, 7)) schedule.weekdays_ |= 1;
  schedule.any_day_ = parts[2].starts_with("*") || parts[2].starts_with("?");
  schedule.any_weekday_ = parts[4].starts_with("*") || parts[4].starts_with("?");
  return schedule;
}

bool CronSchedule::MatchesDay(int64_t day) const {
  const Date date = DateOf(day);
  if (!Has(months_, date.month)) return false;
  const bool of_month = Has(days_, date.day);
  const bool of_week = Has(weekdays_, (day + 4) % 7);  // 1970 began on a Thursday
  return any_day_ || any_weekday_ ? of_month && of_week : of_month || of_week;
}

std::optional<int64_t> CronSchedule::NextOnClock(int64_t time) const {
  // From the next whole minute on.
  const int64_t start = (time / 60 + 1) * 60;
  const int64_t first_day = start / kDaySeconds;
  for (int64_t day = first_day; day <= first_day + kHorizonDays; ++day) {
    if (!MatchesDay(day)) continue;
    const int64_t from = day == first_day ? start % kDaySeconds / 60 : 0;
    for (int64_t minute = from; minute < kDayMinutes; ++minute) {
      if (!Has(hours_, minute / 60) || !Has(minutes_, minute % 60)) continue;
      return day * kDaySeconds + minute * 60;
    }
  }
  return std::nullopt;
}

// When clocks are put back, a time is there twice: the first one counts, if it is yet to come. When
// they are put forward, the times that are left out do not count.
std::optional<WallTime> CronSchedule::Next(WallTime time, const TimeZone& zone) const {
  const int64_t now = time.unix_ns / kSecond;
  std::optional<int64_t> clock = now + zone.OffsetAt(now);
  constexpr int kTriesMax = 200;  // more minutes than clocks are put forward at once
  for (int i = 0; i < kTriesMax; ++i) {
    clock = NextOnClock(*clock);
    if (!clock) return std::nullopt;
    // Offsets of a day before and after: clocks change once in between, if at all.
    for (int64_t around : {*clock - kDaySeconds, *clock + kDaySeconds}) {
      const int64_t offset = zone.OffsetAt(around);
      const int64_t at = *clock - offset;
      if (at <= now || zone.OffsetAt(at) != offset) continue;
      WallTime next;
      next.unix_ns = at * kSecond;
      return next;
    }
  }
  return std::nullopt;
}

CronSchedule::Due CronSchedule::DueAt(WallTime now, WallTime since, const TimeZone& zone) const {
  Due due{.next = Next(now, zone)};
  auto has_come = [now](const std::optional<WallTime>& time) { return time && *time <= now; };
  std::optional<WallTime> time = Next(since, zone);
  if (!has_come(time)) return due;
  // There may be years of minutes between them, so this is a binary search for the latest: after
  // `early` a time has come, after `late` none.
  int64_t early = since.unix_ns / kSecond;
  int64_t late = now.unix_ns / kSecond;
  while (late - early > 1) {
    const int64_t middle = early + (late - early) / 2;
    if (has_come(Next(WallTime{middle * kSecond}, zone))) {
      early = middle;
    } else {
      late = middle;
    }
  }
  due.run = Next(WallTime{early * kSecond}, zone);
  int missed = 0;
  for (; has_come(time) && missed <= kMissedMax; ++missed) time = Next(*time, zone);
  due.too_many = missed > kMissedMax;
  return due;
}

}  // namespace swell::api
