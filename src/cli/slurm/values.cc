#include "cli/slurm/values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "base/strings.h"
#include "cli/flags.h"
#include "kube/api/meta/meta.h"

namespace swell::cli::slurm {
namespace {

constexpr int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
// What seconds and MiB are multiplied with stays far below the largest number.
constexpr int64_t kNumberMax = 1'000'000'000;

Status Wrong(std::string_view flag, std::string_view text, std::string_view expected) {
  return Misuse(StrCat(flag, " ", Quote(text), ": expected ", expected));
}

std::optional<int64_t> Number(std::string_view text) {
  const auto number = ParseInt(text);
  if (!number || *number < 0 || *number > kNumberMax || text.starts_with('+')) return std::nullopt;
  return number;
}

std::optional<std::vector<int64_t>> Numbers(std::string_view text) {
  std::vector<int64_t> all;
  for (std::string_view part : Split(text, ':')) {
    const auto number = Number(part);
    if (!number) return std::nullopt;
    all.push_back(*number);
  }
  if (all.empty() || all.size() > 3) return std::nullopt;
  return all;
}

// Minutes and seconds behind the first number.
bool BelowSixty(const std::vector<int64_t>& parts) {
  return std::all_of(parts.begin() + 1, parts.end(), [](int64_t part) { return part < 60; });
}

std::string ClockText(int64_t seconds, const char* form) {
  char text[64];
  std::snprintf(text, sizeof text, form, static_cast<long>(seconds / kHour),
                static_cast<long>(seconds % kHour / kMinute), static_cast<long>(seconds % kMinute));
  return text;
}

int64_t Seconds(Duration span) {
  return std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(span).count());
}

struct NamedSignal {
  std::string_view name;
  int64_t number;
};
constexpr std::array<NamedSignal, 12> kSignals = {{{"HUP", 1},
                                                   {"INT", 2},
                                                   {"QUIT", 3},
                                                   {"ABRT", 6},
                                                   {"KILL", 9},
                                                   {"USR1", 10},
                                                   {"USR2", 12},
                                                   {"ALRM", 14},
                                                   {"TERM", 15},
                                                   {"CONT", 18},
                                                   {"STOP", 19},
                                                   {"TSTP", 20}}};

// One of "3", "5-9", "5-9:2"; null: it is none of them.
std::optional<std::vector<int64_t>> Range(std::string_view text, size_t most) {
  int64_t step = 1;
  if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    const auto number = Number(text.substr(colon + 1));
    if (!number || *number < 1) return std::nullopt;
    step = *number;
    text = text.substr(0, colon);
  }
  const size_t dash = text.find('-');
  const auto first = Number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : Number(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  if (static_cast<size_t>((*last - *first) / step) >= most) return std::nullopt;
  std::vector<int64_t> all;
  for (int64_t id = *first; id <= *last; id += step) all.push_back(id);
  return all;
}

}  // namespace

Result<int64_t> ParseTimeLimit(std::string_view flag, std::string_view text) {
  constexpr std::string_view kForms = "minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS";
  const std::string word = ToLower(text);
  if (word == "infinite" || word == "unlimited" || word == "-1") return 0;
  int64_t seconds = 0;
  const size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto days = Number(text.substr(0, dash));
    const auto rest = Numbers(text.substr(dash + 1));
    if (!days || !rest || (*rest)[0] > 23 || !BelowSixty(*rest)) return Wrong(flag, text, kForms);
    seconds = *days * kDay + (*rest)[0] * kHour;
    if (rest->size() > 1) seconds += (*rest)[1] * kMinute;
    if (rest->size() > 2) seconds += (*rest)[2];
  } else {
    const auto parts = Numbers(text);
    if (!parts || !BelowSixty(*parts)) return Wrong(flag, text, kForms);
    if (parts->size() == 3) {
      seconds = (*parts)[0] * kHour + (*parts)[1] * kMinute + (*parts)[2];
    } else {
      seconds = (*parts)[0] * kMinute + (parts->size() == 2 ? (*parts)[1] : 0);
    }
  }
  // What a pod can be told.
  if (seconds > INT32_MAX) return Wrong(flag, text, "at most 24855 days, or UNLIMITED");
  return seconds;
}

Result<int64_t> ParseMemoryMib(std::string_view flag, std::string_view text) {
  std::string_view digits = text;
  int64_t factor = 1, divisor = 1;
  if (!digits.empty() && ToLower(digits).back() == 'b') digits.remove_suffix(1);
  if (!digits.empty() && (digits.back() < '0' || digits.back() > '9')) {
    const std::string unit = ToLower(digits.substr(digits.size() - 1));
    digits.remove_suffix(1);
    if (unit == "k") {
      divisor = 1024;
    } else if (unit == "g") {
      factor = 1024;
    } else if (unit == "t") {
      factor = int64_t{1024} * 1024;
    } else if (unit != "m") {
      return Wrong(flag, text, "an amount like 4G or 512M");
    }
  }
  const auto number = Number(digits);
  if (!number) return Wrong(flag, text, "an amount like 4G or 512M");
  return (*number * factor + divisor - 1) / divisor;
}

Result<int64_t> ParseCount(std::string_view flag, std::string_view text, int64_t least) {
  const auto number = Number(text);
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  if (!number && digits) return Wrong(flag, text, StrCat("a number of at most ", kNumberMax));
  if (!number || *number < least) {
    return Wrong(flag, text, StrCat("a whole number of at least ", least));
  }
  return *number;
}

Result<GpuRequest> ParseGpuRequest(std::string_view flag, std::string_view text) {
  GpuRequest request;
  const size_t colon = text.rfind(':');
  std::string_view count = colon == std::string_view::npos ? text : text.substr(colon + 1);
  if (colon != std::string_view::npos) request.type = text.substr(0, colon);
  SWELL_ASSIGN_OR_RETURN(request.count, ParseCount(flag, count, 0));
  return request;
}

Result<GpuRequest> ParseGres(std::string_view text) {
  if (text.empty() || text == "none") return GpuRequest{};
  std::string_view rest = text;
  if (rest.starts_with("gres:") || rest.starts_with("gres/")) rest.remove_prefix(5);
  if (rest == "gpu") return GpuRequest{.count = 1, .type = {}};
  const bool gpus = rest.starts_with("gpu:") || rest.starts_with("gpu=");
  if (!gpus || rest.find(',') != std::string_view::npos) {
    return Misuse(StrCat("--gres ", Quote(text),
                         ": only GPUs are resources of this kind here: gpu:N or gpu:TYPE:N"));
  }
  rest.remove_prefix(4);
  if (rest.find(':') == std::string_view::npos && !ParseInt(rest)) {
    return GpuRequest{.count = 1, .type = std::string(rest)};
  }
  return ParseGpuRequest("--gres", rest);
}

std::string SignalName(std::string_view text) {
  std::string word = ToUpper(text);
  if (word.starts_with("SIG")) word.erase(0, 3);
  const auto number = ParseInt(word);
  for (const NamedSignal& one : kSignals) {
    if (word == one.name || (number && *number == one.number)) return std::string(one.name);
  }
  return "";
}

Result<SignalRequest> ParseSignal(std::string_view text) {
  constexpr std::string_view kForm = "[B:]SIGNAL[@SECONDS], like B:USR1@60";
  SignalRequest request;
  std::string_view rest = text;
  if (rest.starts_with("B:") || rest.starts_with("b:")) {
    request.shell_only = true;
    rest.remove_prefix(2);
  }
  if (const size_t at = rest.find('@'); at != std::string_view::npos) {
    const auto seconds = Number(rest.substr(at + 1));
    if (!seconds || *seconds > 65535) return Wrong("--signal", text, kForm);
    request.seconds_before = *seconds;
    rest = rest.substr(0, at);
  }
  request.name = SignalName(rest);
  if (request.name.empty()) return Wrong("--signal", text, kForm);
  return request;
}

std::optional<WallTime> ParseWord(std::string_view text, WallTime now) {
  const std::string word = ToLower(text);
  if (word == "now") return now;
  const auto today = api::ParseTime(api::FormatTime(now).substr(0, 11) + "00:00:00Z");
  if (!today) return std::nullopt;
  const WallTime tomorrow = *today + std::chrono::seconds(kDay);
  if (word == "today") return today;
  // The next one.
  if (word == "tomorrow" || word == "midnight") return tomorrow;
  const WallTime noon = *today + std::chrono::seconds(kDay / 2);
  if (word == "noon") return noon < now ? noon + std::chrono::seconds(kDay) : noon;
  if (!word.starts_with("now+") && !word.starts_with("now-")) return std::nullopt;
  const std::string_view span = std::string_view(word).substr(4);
  const size_t letters = span.find_first_not_of("0123456789");
  const auto count = Number(span.substr(0, letters));
  std::string_view unit = letters == std::string_view::npos ? "" : span.substr(letters);
  if (unit.ends_with('s') && unit.size() > 1) unit.remove_suffix(1);
  const int64_t seconds = unit.empty() || unit == "second" || unit == "s" ? 1
                          : unit == "minute" || unit == "min"             ? kMinute
                          : unit == "hour"                                ? kHour
                          : unit == "day"                                 ? kDay
                          : unit == "week"                                ? 7 * kDay
                                                                          : 0;
  // As far as a clock of nanoseconds reaches.
  if (!count || seconds == 0 || *count * seconds > 3650 * kDay) return std::nullopt;
  return now + std::chrono::seconds(word[3] == '-' ? -*count * seconds : *count * seconds);
}

Result<WallTime> ParseBegin(std::string_view flag, std::string_view text, WallTime now) {
  constexpr std::string_view kForms = "now+2hours, tomorrow, 2026-12-24T18:00:00 or 18:30 (UTC)";
  if (ToLower(text).starts_with("now-")) return Wrong(flag, text, "a time that is to come");
  if (const auto time = ParseWord(text, now)) return *time;
  for (std::string_view rest : {"", "Z", ":00Z", "T00:00:00Z"}) {
    if (auto time = api::ParseTime(StrCat(text, rest))) return *time;
  }
  const std::string today = api::FormatTime(now).substr(0, 11);
  for (std::string_view rest : {"Z", ":00Z"}) {
    if (auto time = api::ParseTime(StrCat(today, text, rest))) {
      return *time < now ? *time + std::chrono::seconds(kDay) : *time;
    }
  }
  return Wrong(flag, text, kForms);
}

std::string TimeText(Duration span) {
  const int64_t seconds = Seconds(span);
  if (seconds >= kDay) return LongTimeText(span);
  if (seconds >= kHour) return ClockText(seconds, "%ld:%02ld:%02ld");
  char text[32];
  std::snprintf(text, sizeof text, "%ld:%02ld", static_cast<long>(seconds / kMinute),
                static_cast<long>(seconds % kMinute));
  return text;
}

std::string LongTimeText(Duration span) {
  const int64_t seconds = Seconds(span);
  const std::string clock = ClockText(seconds % kDay, "%02ld:%02ld:%02ld");
  return seconds >= kDay ? StrCat(seconds / kDay, "-", clock) : clock;
}

std::string WhenText(const std::optional<WallTime>& time) {
  return time ? api::FormatTime(*time).substr(0, 19) : "Unknown";
}

std::vector<std::string> CommaList(std::string_view text) {
  std::vector<std::string> all;
  std::string word;
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth <= 0) {
      if (!word.empty()) all.push_back(std::move(word));
      word.clear();
    } else {
      word += c;
    }
  }
  if (!word.empty()) all.push_back(std::move(word));
  return all;
}

bool NameFilter::Takes(const std::string& word) const {
  if (text.empty()) return true;
  const std::vector<std::string> all = CommaList(text);
  return std::find(all.begin(), all.end(), word) != all.end();
}

bool NameFilter::TakesOneOf(const std::string& list) const {
  if (text.empty()) return true;
  const std::vector<std::string> all = CommaList(list);
  return std::any_of(all.begin(), all.end(), [this](const auto& one) { return Takes(one); });
}

Result<std::vector<std::string>> ExpandNames(std::string_view flag, std::string_view text) {
  std::vector<std::string> all;
  for (const std::string& word : CommaList(text)) {
    const size_t open = word.find('[');
    const size_t close = word.find(']');
    if (open == std::string::npos) {
      all.push_back(word);
    } else if (close == std::string::npos || close < open) {
      return Wrong(flag, text, "names like node[1-3,7]");
    } else {
      for (std::string_view part :
           Split(std::string_view(word).substr(open + 1, close - open - 1), ',')) {
        const auto range = Range(part, kNamesMax);
        if (!range) return Wrong(flag, text, "names like node[1-3,7]");
        // node[01-10] keeps its zeros.
        const size_t width = part.starts_with('0') ? part.find_first_of("-:") : 0;
        for (const int64_t number : *range) {
          std::string digits = std::to_string(number);
          const size_t digits_min = width == std::string_view::npos ? part.size() : width;
          if (digits.size() < digits_min) digits.insert(0, digits_min - digits.size(), '0');
          all.push_back(StrCat(word.substr(0, open), digits, word.substr(close + 1)));
        }
      }
    }
    if (all.size() > kNamesMax) {
      return Misuse(StrCat(flag, " ", Quote(text), ": more than ", kNamesMax, " names"));
    }
  }
  return all;
}

std::string RangesText(const std::set<int64_t>& numbers, size_t width) {
  const auto digits = [width](int64_t number) {
    std::string text = std::to_string(number);
    return text.size() < width ? std::string(width - text.size(), '0') + text : text;
  };
  std::vector<std::string> ranges;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const int64_t first = *at;
    int64_t last = first;
    while (++at != numbers.end() && *at == last + 1) last = *at;
    ranges.push_back(first == last ? digits(first) : StrCat(digits(first), "-", digits(last)));
  }
  return Join(ranges, ",");
}

std::string CompressNames(std::vector<std::string> names) {
  // Numbers by what stands before them, and by how many digits they are written with if they begin
  // with a zero.
  std::map<std::pair<std::string, size_t>, std::set<int64_t>> numbered;
  std::set<std::string> others;
  for (const std::string& name : names) {
    const size_t last = name.find_last_not_of("0123456789");
    const size_t digits = last == std::string::npos ? 0 : last + 1;
    const auto number = Number(std::string_view(name).substr(digits));
    if (digits == 0 || digits == name.size() || !number) {
      others.insert(name);
      continue;
    }
    const bool zeros = name[digits] == '0' && name.size() - digits > 1;
    const size_t width = zeros ? name.size() - digits : 0;
    numbered[{name.substr(0, digits), width}].insert(*number);
  }
  std::vector<std::string> parts(others.begin(), others.end());
  for (const auto& [key, ids] : numbered) {
    const std::string ranges = RangesText(ids, key.second);
    parts.push_back(ids.size() == 1 ? StrCat(key.first, ranges)
                                    : StrCat(key.first, "[", ranges, "]"));
  }
  return Join(parts, ",");
}

}  // namespace swell::cli::slurm
