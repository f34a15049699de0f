#include "cli/jobs/gate_request.h"

#include <set>

#include "base/strings.h"
#include "cli/flags.h"
#include "kube/api/meta/gate_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/job.h"

namespace swell::cli {
namespace {

constexpr int64_t kArrayIdMax = 4'000'000;

std::optional<int64_t> ArrayId(std::string_view text) {
  const auto number = ParseUint(text);
  if (!number || *number > static_cast<uint64_t>(kArrayIdMax)) return std::nullopt;
  return static_cast<int64_t>(*number);
}

// Adds "3", "5-9" or "5-9:2". False: it is none of them, or too many.
bool AddRange(std::string_view text, std::set<int64_t>& ids) {
  int64_t step = 1;
  if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    const auto number = ArrayId(text.substr(colon + 1));
    if (!number || *number < 1) return false;
    step = *number;
    text = text.substr(0, colon);
  }
  const size_t dash = text.find('-');
  const auto first = ArrayId(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : ArrayId(text.substr(dash + 1));
  if (!first || !last || *last < *first) return false;
  for (int64_t id = *first; id <= *last && ids.size() <= ArrayRange::kTasksMax; id += step) {
    ids.insert(id);
  }
  return ids.size() <= ArrayRange::kTasksMax;
}

}  // namespace

void SetGate(json::Value& job, const JobKindInfo& kind, const GateRequest& gate) {
  const auto annotate = [&job](std::string_view key, std::string value) {
    json::Set(job, {"metadata", "annotations", key}, std::move(value));
  };
  if (!gate.array.empty()) json::Set(job, {"metadata", "labels", api::keys::kArray}, gate.array);
  if (gate.at_once > 0) annotate(api::keys::kArrayAtOnce, std::to_string(gate.at_once));
  if (!gate.start_after.empty()) annotate(api::keys::kStartAfter, gate.start_after);
  if (gate.not_before) annotate(api::keys::kStartNotBefore, api::FormatTime(*gate.not_before));
  if (gate.fail_if_never) annotate(api::keys::kIfNever, "Fail");
  if (gate.held) annotate(api::keys::kHeld, "user");
  if (gate.closed()) annotate(api::keys::kGate, "closed");
  if (!gate.closed() && !gate.held) return;
  api::SetSuspended(job, kind.suspend, true);
}

Result<ArrayRange> ParseArrayRange(std::string_view flag, std::string_view text) {
  ArrayRange range;
  std::string_view list = text;
  const auto wrong = [&] {
    return Misuse(StrCat(flag, " ", Quote(text),
                         ": expected indices like 0-99, 1,3,5-9:2 or 0-99%8, at most ",
                         ArrayRange::kTasksMax));
  };
  if (const size_t percent = text.find('%'); percent != std::string_view::npos) {
    const auto number = ArrayId(text.substr(percent + 1));
    if (!number || *number < 1) return wrong();
    range.at_once = *number;
    list = text.substr(0, percent);
  }
  std::set<int64_t> ids;
  for (std::string_view part : Split(list, ',')) {
    if (!AddRange(part, ids)) return wrong();
  }
  if (ids.empty()) return wrong();
  range.ids.assign(ids.begin(), ids.end());
  return range;
}

}  // namespace swell::cli
