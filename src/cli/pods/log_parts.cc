#include "cli/pods/log_parts.h"

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

int64_t RestartsOf(const json::Value& pod, std::string_view container) {
  for (const auto& statuses : {api::ContainerStatuses(pod), api::InitContainerStatuses(pod)}) {
    for (const api::ContainerStatus& one : statuses) {
      if (one.name == container) return one.restart_count;
    }
  }
  return 0;
}

void AddStarts(const LogPart& part, int64_t newest, std::vector<LogPart>& parts) {
  for (int64_t k = std::max<int64_t>(0, newest - LogPart::kStartsShown + 1); k <= newest; ++k) {
    LogPart one = part;
    one.restart = k;
    if (k < newest) one.pod = nullptr;
    parts.push_back(std::move(one));
  }
}

// The container to show of a pod that is gone: the one wanted, or the one that pods show first.
LogPart PartOfAttempt(const json::Value& attempt, const LogOptions& options) {
  LogPart part{.member = std::string(json::GetString(attempt, {"member"})),
               .uid = std::string(json::GetString(attempt, {"uid"})),
               .node = std::string(json::GetString(attempt, {"node"})),
               .container = options.container,
               .attempt = json::GetInt(attempt, {"attempt"}),
               .result = std::string(json::GetString(attempt, {"result"})),
               .started = api::ParseTime(json::GetString(attempt, {"started"})),
               .ended = api::ParseTime(json::GetString(attempt, {"ended"}))};
  if (part.container.empty()) part.container = json::GetString(attempt, {"container"});
  return part;
}

int64_t RestartsOfAttempt(const json::Value& attempt, std::string_view container) {
  int64_t newest = 0;
  for (const json::Value& one : json::GetArray(attempt, {"containers"})) {
    if (json::GetString(one, {"name"}) == container) newest = json::GetInt(one, {"restarts"});
  }
  return newest;
}

}  // namespace

std::string LogPart::Key() const { return StrCat(uid, "/", restart); }

std::string LogPart::ResultText() const {
  return result == "NodeShutdown" ? "its node was shut down" : ToLower(result);
}

std::string LogPart::Title() const {
  return StrCat(member, ", attempt ", attempt, restart > 0 ? StrCat(", start ", restart + 1) : "",
                result.empty() ? "" : StrCat(", ", ResultText()));
}

std::vector<LogPart> LogPartsOf(const JobView& job,
                                const std::function<bool(std::string_view member)>& chosen,
                                const LogOptions& options) {
  std::vector<LogPart> parts;
  std::map<std::string, int64_t> attempts;  // by member
  for (const json::Value& one : json::GetArray(*job.object, {"status", "attempts"})) {
    const LogPart part = PartOfAttempt(one, options);
    attempts[part.member] = part.attempt;
    if (chosen(part.member)) AddStarts(part, RestartsOfAttempt(one, part.container), parts);
  }
  for (const json::SharedValue& pod : job.pods) {
    LogPart part{.member = std::string(api::Name(*pod)),
                 .uid = std::string(api::Uid(*pod)),
                 .node = std::string(api::NodeName(*pod)),
                 .container = ContainerToShow(*pod, options),
                 .attempt = attempts[std::string(api::Name(*pod))] + 1,
                 .pod = pod,
                 .started = api::StartTime(*pod)};
    if (chosen(part.member)) AddStarts(part, RestartsOf(*pod, part.container), parts);
  }
  return parts;
}

}  // namespace swell::cli
