#include "elastic/log_progress.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "base/strings.h"
#include "elastic/log_metrics.h"

namespace swell::elastic {
namespace {

constexpr size_t kPatternMax = 1024;
constexpr size_t kLineMax = 8192;
constexpr int kGroupsMax = 15;
constexpr int64_t kProgramBytesMax = 1 << 20;
constexpr int64_t kCountMax = int64_t{1} << 53;
constexpr int64_t kReadingSpanNs = 5'000'000'000;
constexpr std::string_view kAuto = "auto";
constexpr std::array<const char*, 4> kAutoPatterns = {
    R"re((?i)\b(?:global[_ ]step|steps?|iter(?:ation)?s?)\b\s*[:=#]?\s*\[?\s*)re"
    R"re((?P<step>\d+)\b(?:\s*(?:/|of)\s*(?P<total>\d+))?)re",
    R"re((?P<step>\d+)/(?P<total>\d+)\s+\[\d+:\d\d)re",
    R"re((?i)\bepoch\b['"]?\s*[:=#]?\s*\[?\s*(?P<epoch>\d+)\b(?:\s*(?:/|of)\s*(?P<epochs>\d+))?)re",
    R"re((?i)\bloss\b['"]?\s*[:=]?\s*(?P<loss>[-+]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|(?:nan|inf)\b)))re"};
constexpr std::array<std::string_view, 5> kGroupNames = {"step", "total", "epoch", "epochs",
                                                         "loss"};

// What one line says.
struct Found {
  std::optional<int64_t> step, total, epoch, epochs;
  std::optional<double> loss;

  void Take(std::string_view name, std::string_view text) {
    if (name == "loss") {
      double value = 0;
      const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
      // "info" begins with a number that is not finite.
      const bool whole = parsed.ptr == text.data() + text.size();
      if (parsed.ec == std::errc() && (whole || std::isfinite(value)) && !loss) loss = value;
      return;
    }
    const auto number = ParseInt(text);
    if (!number || *number < 0 || *number > kCountMax) return;
    std::optional<int64_t>& place = name == "step"    ? step
                                    : name == "total" ? total
                                    : name == "epoch" ? epoch
                                                      : epochs;
    // The first pattern that finds it counts.
    if (!place) place = number;
  }
};

}  // namespace

struct LogProgress::Rep {
  struct Pattern {
    std::unique_ptr<re2::RE2> re;
    std::vector<std::pair<int, std::string>> groups;  // number and name
  };

  static Result<Pattern> Compile(std::string_view text) {
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(kProgramBytesMax);
    // Logs are bytes: what is not UTF-8 must not end the search.
    options.set_encoding(re2::RE2::Options::EncodingLatin1);
    Pattern pattern;
    pattern.re = std::make_unique<re2::RE2>(re2::StringPiece(text.data(), text.size()), options);
    if (!pattern.re->ok()) return Status(Code::kInvalid, pattern.re->error());
    if (pattern.re->NumberOfCapturingGroups() > kGroupsMax) {
      return Status(Code::kInvalid, StrCat("must have at most ", kGroupsMax, " groups"));
    }
    for (const auto& [name, number] : pattern.re->NamedCapturingGroups()) {
      for (std::string_view known : kGroupNames) {
        if (name == known) pattern.groups.emplace_back(number, name);
      }
    }
    return pattern;
  }

  static void Search(const Pattern& pattern, std::string_view line, Found& found) {
    std::array<re2::StringPiece, kGroupsMax + 1> groups;
    const re2::StringPiece text(line.data(), line.size());
    if (!pattern.re->Match(text, 0, line.size(), re2::RE2::UNANCHORED, groups.data(),
                           pattern.re->NumberOfCapturingGroups() + 1)) {
      return;
    }
    for (const auto& [number, name] : pattern.groups) {
      const re2::StringPiece& group = groups[static_cast<size_t>(number)];
      if (group.data() != nullptr) found.Take(name, {group.data(), group.size()});
    }
  }

  Found FindIn(std::string_view line) const {
    Found found;
    if (line.size() > kLineMax) return found;
    for (const Pattern& pattern : patterns) Search(pattern, line, found);
    return found;
  }

  std::vector<Pattern> patterns;
};

LogProgress::LogProgress(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
LogProgress::LogProgress(LogProgress&&) noexcept = default;
LogProgress& LogProgress::operator=(LogProgress&&) noexcept = default;
LogProgress::~LogProgress() = default;

Result<LogProgress> LogProgress::Compile(std::string_view pattern) {
  if (pattern.size() > kPatternMax) {
    return Status(Code::kInvalid, StrCat("Too long: must have at most ", kPatternMax, " bytes"));
  }
  auto rep = std::make_unique<Rep>();
  if (pattern == kAuto) {
    for (const char* one : kAutoPatterns) {
      SWELL_ASSIGN_OR_RETURN(Rep::Pattern made, Rep::Compile(one));
      rep->patterns.push_back(std::move(made));
    }
    return LogProgress(std::move(rep));
  }
  auto invalid = [pattern](std::string_view why) {
    return Status(Code::kInvalid, StrCat("Invalid value: ", Quote(pattern), ": ", why));
  };
  auto made = Rep::Compile(pattern);
  if (!made.ok()) return invalid(made.status().message());
  bool counts = false;
  for (const auto& [number, name] : made->groups) {
    counts = counts || name == "step" || name == "epoch";
  }
  if (!counts) {
    return invalid(R"(must have a group named step or epoch, such as (?P<step>\d+), or be "auto")");
  }
  rep->patterns.push_back(std::move(*made));
  return LogProgress(std::move(rep));
}

double LoggedProgress::Speed() const {
  if (readings.size() < 2) return 0;
  const auto& [begin, first] = readings.front();
  const auto& [end, last] = readings.back();
  if (end <= begin || last <= first) return 0;
  return static_cast<double>(last - first) / (static_cast<double>(end - begin) / 1e9);
}

namespace {

void NoteLoss(double loss, LoggedProgress& progress) {
  progress.loss = loss;
  if (std::isfinite(loss)) {
    progress.not_finite_since.reset();
  } else if (!progress.not_finite_since) {
    progress.not_finite_since = progress.step;
  }
}

void NoteCounts(const Found& found, int64_t stamp, LoggedProgress& progress) {
  if (found.epoch) progress.epoch = *found.epoch;
  if (found.epochs) progress.epochs = *found.epochs;
  if (found.step && !progress.counts_steps) {
    progress.counts_steps = true;
    progress.readings.clear();
    progress.total = 0;
  }
  if (progress.counts_steps ? !found.step : !found.epoch) return;
  const int64_t step = progress.counts_steps ? *found.step : *found.epoch;
  const std::optional<int64_t> total = progress.counts_steps ? found.total : found.epochs;
  progress.total = total.value_or(progress.total);
  auto& readings = progress.readings;
  // A new epoch, or a new process, counts anew.
  if (step < progress.step) readings.clear();
  progress.step = step;
  // The last but one is some seconds old, so that fast steps have a span to be measured over.
  if (readings.size() > 1 && stamp - readings[readings.size() - 2].first < kReadingSpanNs) {
    readings.pop_back();
  }
  readings.emplace_back(stamp, step);
  if (readings.size() > LoggedProgress::kReadingsMax) readings.pop_front();
}

void Note(const Found& found, int64_t stamp, LoggedProgress& progress) {
  progress.changed_unix_ns = stamp;
  NoteCounts(found, stamp, progress);
  if (found.loss) NoteLoss(*found.loss, progress);
}

}  // namespace

bool LogProgress::ReadBar(std::string_view begun, WallTime now, LoggedProgress& progress) const {
  const size_t end = begun.rfind('\r');
  // A line that is cut off may be half a number.
  if (end == std::string_view::npos) return false;
  begun = begun.substr(0, end);
  const size_t before = begun.rfind('\r');
  // The first writing stands behind the time of the line.
  begun.remove_prefix((before != std::string_view::npos ? before : begun.find(' ')) + 1);
  const Found found = rep_->FindIn(begun);
  const std::optional<int64_t>& count = progress.counts_steps ? found.step : found.epoch;
  const bool moved = (found.step && !progress.counts_steps) || (count && *count != progress.step);
  if (!moved) return false;
  Note(found, now.unix_ns, progress);
  return true;
}

bool LogProgress::Read(std::string_view log, WallTime now, LoggedProgress& progress) const {
  const int64_t since = progress.seen_unix_ns;
  bool any = false;
  while (!log.empty()) {
    const size_t end = log.find('\n');
    if (end == std::string_view::npos) return ReadBar(log, now, progress) || any;
    std::string_view line = log.substr(0, end);
    log.remove_prefix(end + 1);
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) continue;
    const int64_t stamp = ParseStamp(line.substr(0, space));
    if (stamp <= since) continue;
    progress.seen_unix_ns = std::max(progress.seen_unix_ns, stamp);
    line.remove_prefix(space + 1);
    // A speed must span neither two sizes nor the pause between them.
    if (GroupThatBegins(line) > 0) progress.readings.clear();
    while (line.ends_with('\r')) line.remove_suffix(1);
    line.remove_prefix(line.rfind('\r') + 1);
    const Found found = rep_->FindIn(line);
    if (!found.step && !found.epoch && !found.loss) continue;
    // A bar's line begins long before its last writing.
    Note(found, std::max(stamp, progress.changed_unix_ns), progress);
    any = true;
  }
  return any;
}

}  // namespace swell::elastic
