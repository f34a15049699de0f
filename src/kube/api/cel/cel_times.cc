// CEL's times: RFC 3339 texts, seconds since 1970, and their parts in a time zone.
#include <chrono>

#include "base/strings.h"
#include "base/time_zone.h"
#include "kube/api/cel/cel_objects.h"
#include "kube/api/meta/meta.h"

namespace swell::api {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

Status NoOverload() { return Status(Code::kInvalid, "no such overload"); }

// "Europe/Berlin", "+02:00", "-08:30", "02:00": seconds east of Greenwich.
Result<int64_t> OffsetOf(std::string_view zone, int64_t unix_seconds, CelBudget& budget) {
  const size_t colon = zone.find(':');
  if (colon == std::string_view::npos) {
    constexpr size_t kFileCost = 1000;
    SWELL_RETURN_IF_ERROR(budget.Spend(kFileCost));
    SWELL_ASSIGN_OR_RETURN(const TimeZone known, TimeZone::Load(zone));
    return known.OffsetAt(unix_seconds);
  }
  std::string_view hours = zone.substr(0, colon);
  const bool west = hours.starts_with('-');
  if (west || hours.starts_with('+')) hours.remove_prefix(1);
  const auto hour = ParseUint(hours);
  const auto minute = ParseUint(zone.substr(colon + 1));
  if (!hour || !minute || *hour > 23 || *minute > 59) {
    return Status(Code::kInvalid, StrCat("unknown time zone ", zone));
  }
  const auto offset = static_cast<int64_t>(*hour * 3600 + *minute * 60);
  return west ? -offset : offset;
}

Result<CelValue> PartOf(std::string_view name, WallTime time, int64_t offset) {
  using std::chrono::days;
  using std::chrono::sys_time;
  int64_t local_ns = 0;
  if (__builtin_add_overflow(time.unix_ns, offset * kSecond, &local_ns)) {
    return Status(Code::kInvalid, "timestamp overflow");
  }
  const sys_time<std::chrono::nanoseconds> local{std::chrono::nanoseconds(local_ns)};
  const auto day = std::chrono::floor<days>(local);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(local - day);
  const auto part = [](auto value) { return CelValue{static_cast<int64_t>(value)}; };
  if (name == "getFullYear") return part(static_cast<int>(date.year()));
  if (name == "getMonth") return part(static_cast<unsigned>(date.month()) - 1);
  if (name == "getDate") return part(static_cast<unsigned>(date.day()));
  if (name == "getDayOfMonth") return part(static_cast<unsigned>(date.day()) - 1);
  if (name == "getDayOfWeek") return part(std::chrono::weekday(day).c_encoding());
  if (name == "getDayOfYear") {
    return part((day - std::chrono::sys_days(date.year() / std::chrono::January / 1)).count());
  }
  if (name == "getHours") return part(clock.hours().count());
  if (name == "getMinutes") return part(clock.minutes().count());
  if (name == "getSeconds") return part(clock.seconds().count());
  if (name == "getMilliseconds") return part(clock.subseconds().count() / 1'000'000);
  return NoOverload();
}

}  // namespace

std::optional<WallTime> CelTimeOf(const CelValue& value) {
  if (const auto* time = std::get_if<WallTime>(&value.data)) return *time;
  const auto* text = std::get_if<std::string>(&value.data);
  return text != nullptr ? ParseTime(*text) : std::nullopt;
}

int64_t CelSecondsOf(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::nanoseconds(time.unix_ns)).count();
}

std::string CelTimeText(WallTime time) {
  std::string text = FormatTime(time);
  const int64_t rest = ((time.unix_ns % kSecond) + kSecond) % kSecond;
  if (rest == 0) return text;
  std::string fraction = std::to_string(kSecond + rest).substr(1);
  fraction.erase(fraction.find_last_not_of('0') + 1);
  return StrCat(text.substr(0, text.size() - 1), ".", fraction, "Z");
}

Result<CelValue> CallCelTime(std::string_view name,
                             const std::vector<CelValue>& args,
                             CelBudget& budget) {
  if (name == "timestamp") {
    if (const auto* seconds = std::get_if<int64_t>(&args[0].data)) {
      int64_t ns = 0;
      if (__builtin_mul_overflow(*seconds, kSecond, &ns)) {
        return Status(Code::kInvalid, "timestamp overflow");
      }
      return CelValue{WallTime{ns}};
    }
    if (const auto time = CelTimeOf(args[0])) return CelValue{*time};
    const auto* text = std::get_if<std::string>(&args[0].data);
    if (text == nullptr) return NoOverload();
    return Status(Code::kInvalid, StrCat("type conversion error: ", Quote(*text)));
  }
  const std::optional<WallTime> time = CelTimeOf(args[0]);
  const auto* zone = args.size() > 1 ? std::get_if<std::string>(&args[1].data) : nullptr;
  if (!time || (args.size() > 1 && zone == nullptr)) return NoOverload();
  int64_t offset = 0;
  if (zone != nullptr) {
    SWELL_ASSIGN_OR_RETURN(offset, OffsetOf(*zone, CelSecondsOf(*time), budget));
  }
  return PartOf(name, *time, offset);
}

}  // namespace swell::api
