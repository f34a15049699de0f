#include "cli/jobs/expected_end.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/progress.h"

namespace swell::cli {
namespace {

constexpr size_t kNamesShown = 3;
// As far ahead as the scheduler looks. Users write the times and lengths that are read here.
constexpr int64_t kAheadMaxSeconds = 1'000'000'000;

// Work that began in the future has not begun.
WallTime After(WallTime from, int64_t seconds, WallTime now) {
  return std::min(from, now) + std::chrono::seconds(std::min(seconds, kAheadMaxSeconds));
}

// When the last of them reaches its limit.
std::optional<WallTime> LimitOf(const std::vector<const json::Value*>& pods, WallTime now) {
  std::optional<WallTime> last;
  for (const json::Value* pod : pods) {
    int64_t most = json::GetInt(*pod, {"spec", "activeDeadlineSeconds"});
    if (most <= 0) most = ParseInt(api::Annotation(*pod, api::keys::kMaxRunSeconds)).value_or(0);
    if (most <= 0) return std::nullopt;
    const WallTime end = After(api::StartTime(*pod).value_or(now), most, now);
    last = last ? std::max(*last, end) : end;
  }
  return last;
}

// The estimate of the lowest rank, which holds for all.
std::optional<WallTime> EstimateOf(const std::vector<const json::Value*>& pods, WallTime now) {
  std::optional<api::RankProgress> lead;
  for (const json::Value* pod : pods) {
    for (api::RankProgress& rank : api::RanksOf(*pod)) {
      if (!lead || rank.rank < lead->rank) lead = std::move(rank);
    }
  }
  if (!lead || lead->stalled) return std::nullopt;
  const auto left = api::JobProgress::Of(*lead).remaining_seconds;
  if (!left) return std::nullopt;
  return After(lead->changed, *left, now);
}

// "a reaches its time limit", "a, b and 3 more end by their own estimates"; empty: there are none.
std::string EndsText(const std::vector<std::string>& names, bool estimated) {
  if (names.empty()) return "";
  std::string text;
  const size_t shown = names.size() > kNamesShown + 1 ? kNamesShown : names.size();
  for (size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == names.size();
    text += StrCat(i == 0 ? "" : last ? " and " : ", ", names[i]);
  }
  if (shown < names.size()) text += StrCat(" and ", names.size() - shown, " more");
  const bool one = names.size() == 1;
  if (estimated) return text + (one ? " ends by its own estimate" : " end by their own estimates");
  return text + (one ? " reaches its time limit" : " reach their time limits");
}

}  // namespace

std::optional<ExpectedEnd> ExpectedEndOf(const std::vector<const json::Value*>& pods,
                                         WallTime now) {
  const auto limit = LimitOf(pods, now);
  const auto estimate = EstimateOf(pods, now);
  if (estimate && *estimate >= now && (!limit || *estimate < *limit)) {
    return ExpectedEnd{*estimate, true};
  }
  if (limit && *limit >= now) return ExpectedEnd{*limit, false};
  return std::nullopt;
}

std::string CouldStart::Text(WallTime now, bool grows) const {
  std::vector<std::string> limited, estimated, parts;
  for (const auto& [name, end] : ends) (end.estimated ? estimated : limited).push_back(name);
  for (std::string part : {EndsText(limited, false), EndsText(estimated, true)}) {
    if (!part.empty()) parts.push_back(std::move(part));
  }
  return StrCat("It could ", grows ? "grow" : "start", " in ", api::HumanDuration(at - now),
                ", at ", api::FormatTime(at), ", if no other work comes before it: by then ",
                Join(parts, ", and "), ".");
}

json::Value CouldStart::Json() const {
  json::Array list;
  for (const auto& [name, end] : ends) {
    list.push_back(json::Object{{"job", name},
                                {"at", api::FormatTime(end.at)},
                                {"by", end.estimated ? "estimate" : "limit"}});
  }
  return json::Object{{"at", api::FormatTime(at)}, {"ends", std::move(list)}};
}

}  // namespace swell::cli
