#include "base/duration.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/strings.h"

namespace swell {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kMinute = 60 * kSecond;
constexpr int64_t kHour = 60 * kMinute;
constexpr int64_t kLongest = int64_t{100} * 365 * 24 * kHour;

constexpr std::pair<std::string_view, int64_t> kUnits[] = {
    {"ns", 1},      {"us", 1'000},  {"µs", 1'000}, {"ms", 1'000'000},
    {"s", kSecond}, {"m", kMinute}, {"h", kHour},  {"d", 24 * kHour},
};
constexpr std::string_view kDigits = "0123456789.";

// Digits with one point at most, times the unit; rounded down to whole nanoseconds.
std::optional<int64_t> Amount(std::string_view number, int64_t unit) {
  const size_t point = number.find('.');
  const std::string_view whole = number.substr(0, point);
  std::string_view fraction;
  if (point != std::string_view::npos) fraction = number.substr(point + 1);
  if (whole.empty() && fraction.empty()) return {};
  if (fraction.find('.') != std::string_view::npos) return {};
  int64_t out = 0;
  if (!whole.empty()) {
    const auto units = ParseInt(whole);
    if (!units || *units > kLongest / unit) return {};
    out = *units * unit;
  }
  // Each digit is worth a tenth of the one before; what is below a nanosecond is dropped.
  int64_t worth = unit;
  for (const char digit : fraction) {
    worth /= 10;
    out += (digit - '0') * worth;
  }
  return out;
}

// "1.5" of 1500 thousandths.
std::string Decimal(int64_t value, int64_t unit) {
  std::string fraction = std::to_string(unit + value % unit).substr(1);
  fraction.erase(fraction.find_last_not_of('0') + 1);
  return StrCat(value / unit, fraction.empty() ? "" : ".", fraction);
}

}  // namespace

std::optional<Duration> ParseDuration(std::string_view text) {
  if (text.empty()) return {};
  int64_t total = 0;
  bool first = true;
  while (!text.empty()) {
    const size_t digits = std::min(text.find_first_not_of(kDigits), text.size());
    const std::string_view number = text.substr(0, digits);
    text.remove_prefix(digits);
    const size_t letters = std::min(text.find_first_of(kDigits), text.size());
    const std::string_view word = text.substr(0, letters);
    text.remove_prefix(letters);
    const bool alone = std::exchange(first, false) && word.empty();
    const auto* unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                    [word](const auto& one) { return one.first == word; });
    if (unit == std::end(kUnits) && !alone) return {};
    const auto amount = Amount(number, alone ? kSecond : unit->second);
    if (!amount || *amount > kLongest - total) return {};
    total += *amount;
  }
  return Duration(total);
}

std::string FormatDuration(Duration duration) {
  int64_t ns = duration.count();
  const char* sign = ns < 0 ? "-" : "";
  ns = ns < 0 ? -std::max(ns, -INT64_MAX) : ns;
  if (ns == 0) return "0s";
  if (ns < 1'000) return StrCat(sign, ns, "ns");
  if (ns < 1'000'000) return StrCat(sign, Decimal(ns, 1'000), "µs");
  if (ns < kSecond) return StrCat(sign, Decimal(ns, 1'000'000), "ms");
  std::string out = sign;
  if (ns >= kHour) out += StrCat(ns / kHour, "h");
  if (ns >= kMinute) out += StrCat(ns / kMinute % 60, "m");
  return StrCat(out, Decimal(ns % kMinute, kSecond), "s");
}

}  // namespace swell
