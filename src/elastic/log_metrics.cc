#include "elastic/log_metrics.h"

#include <re2/re2.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "base/strings.h"

namespace swell::elastic {
namespace {

constexpr char kDefaultPattern[] = R"(Epoch:\s*\[\d+\]\[\s*\d+/\d+\]\s+Time\s+(\d+(?:\.\d+)?))";
constexpr std::string_view kGroupBegins = "swell.launch: ";
constexpr size_t kPatternMax = 1024;
constexpr size_t kLineMax = 8192;
constexpr int64_t kProgramBytesMax = 1 << 20;
constexpr double kSecondsMax = 1e6;

int64_t Digits(std::string_view text, size_t at, size_t count) {
  if (at + count > text.size()) return -1;
  int64_t value = 0;
  for (char c : text.substr(at, count)) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

// "Z", "+08:00"; nanoseconds east of Greenwich, or nothing.
std::optional<int64_t> OffsetNs(std::string_view text) {
  if (text == "Z") return 0;
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return {};
  int64_t hours = Digits(text, 1, 2), minutes = Digits(text, 4, 2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return {};
  int64_t ns = (hours * 60 + minutes) * 60 * 1'000'000'000;
  return text[0] == '-' ? -ns : ns;
}

}  // namespace

int64_t ParseStamp(std::string_view text) {
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' ||
      text[16] != ':') {
    return -1;
  }
  const int64_t year = Digits(text, 0, 4), month = Digits(text, 5, 2), day = Digits(text, 8, 2);
  const int64_t hour = Digits(text, 11, 2), minute = Digits(text, 14, 2);
  const int64_t second = Digits(text, 17, 2);
  // Nanoseconds since 1970 fit until 2262.
  if (year < 1970 || year > 2200 || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
      second < 0 || second > 60) {
    return -1;
  }
  std::chrono::year_month_day date(std::chrono::year(static_cast<int>(year)),
                                   std::chrono::month(static_cast<unsigned>(month)),
                                   std::chrono::day(static_cast<unsigned>(day)));
  if (month < 1 || day < 1 || !date.ok()) return -1;
  size_t at = 19;
  int64_t fraction = 0, unit = 100'000'000;
  if (text[at] == '.') {
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, unit /= 10) {
      fraction += (text[at] - '0') * unit;
    }
  }
  auto offset = OffsetNs(text.substr(at));
  if (!offset) return -1;
  int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1'000'000'000 + fraction - *offset;
}

int64_t GroupThatBegins(std::string_view line) {
  if (!line.starts_with(kGroupBegins)) return 0;
  line.remove_prefix(kGroupBegins.size());
  const size_t space = std::min(line.find(' '), line.size());
  const std::string_view rest = line.substr(space);
  if (!rest.starts_with(" node trains") && !rest.starts_with(" nodes train")) return 0;
  return std::max<int64_t>(0, ParseInt(line.substr(0, space)).value_or(0));
}

struct LogMetrics::Rep {
  explicit Rep(std::string_view pattern, const re2::RE2::Options& options)
      : value(re2::StringPiece(pattern.data(), pattern.size()), options) {}
  re2::RE2 value;
};

LogMetrics::LogMetrics(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
LogMetrics::LogMetrics(LogMetrics&&) noexcept = default;
LogMetrics& LogMetrics::operator=(LogMetrics&&) noexcept = default;
LogMetrics::~LogMetrics() = default;

Result<LogMetrics> LogMetrics::Compile(std::string_view pattern) {
  if (pattern.empty()) pattern = kDefaultPattern;
  if (pattern.size() > kPatternMax) {
    return Status(Code::kInvalid, StrCat("Too long: must have at most ", kPatternMax, " bytes"));
  }
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kProgramBytesMax);
  // Logs are bytes: what is not UTF-8 must not end the search.
  options.set_encoding(re2::RE2::Options::EncodingLatin1);
  auto rep = std::make_unique<Rep>(pattern, options);
  if (!rep->value.ok()) {
    return Status(Code::kInvalid,
                  StrCat("Invalid value: ", Quote(pattern), ": ", rep->value.error()));
  }
  if (rep->value.NumberOfCapturingGroups() < 1) {
    return Status(Code::kInvalid, StrCat("Invalid value: ", Quote(pattern),
                                         ": must have a group that is the number"));
  }
  return LogMetrics(std::move(rep));
}

std::vector<double> LogMetrics::Read(std::string_view log,
                                     int64_t nodes,
                                     LogPosition& position) const {
  std::vector<double> out;
  const int64_t since = position.seen_unix_ns;
  while (!log.empty()) {
    size_t end = log.find('\n');
    // A line that is cut off may be half a number.
    if (end == std::string_view::npos) break;
    std::string_view line = log.substr(0, end);
    log.remove_prefix(end + 1);
    size_t space = line.find(' ');
    if (space == std::string_view::npos || line.size() > kLineMax) continue;
    int64_t stamp = ParseStamp(line.substr(0, space));
    if (stamp <= since) continue;
    position.seen_unix_ns = std::max(position.seen_unix_ns, stamp);
    if (const int64_t said = GroupThatBegins(line.substr(space + 1)); said > 0) {
      position.nodes = said;
      out.clear();
      continue;
    }
    re2::StringPiece text(line.data() + space + 1, line.size() - space - 1);
    double value = 0;
    if (re2::RE2::PartialMatch(text, rep_->value, &value) && std::isfinite(value) && value > 0 &&
        value < kSecondsMax) {
      out.push_back(value);
    }
  }
  if (position.nodes != 0 && position.nodes != nodes) out.clear();
  return out;
}

}  // namespace swell::elastic
