#include "cli/pods/pod_logs.h"

#include <algorithm>

#include "base/strings.h"
#include "cli/pods/pod_choice.h"
#include "cli/views/job_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/failure.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

// The init container that keeps the pod from starting; empty: none does.
std::string FailingInit(const json::Value& pod) {
  const auto failure = api::FailureOf(pod, WallTime());
  const bool init = failure && failure->role == "init container" && failure->exit_code;
  return init ? failure->container : "";
}

// Such a container has said nothing itself, or is not the one whose log is expected.
void ReportFailedStart(Session& session, const json::Value& pod, const std::string& container) {
  const auto failure = api::FailureOf(pod, WallTime());
  if (!failure) return;
  const bool never_ran = !failure->exit_code || failure->reason == "StartError";
  const bool other = failure->container == container && container != DefaultContainer(pod);
  if (never_ran || other) session.ErrLine(failure->Sentence());
}

// It has not run yet, so there is no log of it.
bool IsStillToStart(const json::Value& pod, std::string_view container) {
  const auto of_its_name = [container](const api::ContainerStatus& one) {
    return one.name == container;
  };
  for (const auto& statuses : {api::InitContainerStatuses(pod), api::ContainerStatuses(pod)}) {
    const auto it = std::find_if(statuses.begin(), statuses.end(), of_its_name);
    if (it != statuses.end()) return it->Waits() && it->restart_count == 0;
  }
  return true;
}

}  // namespace

api::RestRequest LogRequest(const LogSource& source, const LogOptions& options) {
  std::string query = StrCat("container=", api::EscapeQuery(source.container));
  if (options.follow) query += "&follow=true";
  if (options.previous) query += "&previous=true";
  if (options.timestamps) query += "&timestamps=true";
  if (options.tail >= 0) query += StrCat("&tailLines=", options.tail);
  if (options.limit_bytes > 0) query += StrCat("&limitBytes=", options.limit_bytes);
  if (!options.since_time.empty()) {
    query += StrCat("&sinceTime=", api::EscapeQuery(options.since_time));
  }
  if (auto span = ParseDuration(options.since, "--since"); !options.since.empty() && span.ok()) {
    query += StrCat(
        "&sinceSeconds=",
        std::max<int64_t>(1, std::chrono::duration_cast<std::chrono::seconds>(*span).count()));
  }
  return {.method = "GET",
          .path = client::resources::kPods.Path(source.ns, source.pod, "log"),
          .query = query,
          .accept = "*/*"};
}

std::string ContainerToShow(const json::Value& pod, const LogOptions& options) {
  if (!options.container.empty()) return options.container;
  const std::string init = FailingInit(pod);
  return init.empty() ? DefaultContainer(pod) : init;
}

bool HasStarted(const json::Value& pod) {
  const std::string_view phase = api::Phase(pod);
  return (!phase.empty() && phase != "Pending") || !FailingInit(pod).empty();
}

void LogOptions::Declare(Flags& flags) {
  flags.Switch("-f,--follow", &follow, "follow the log");
  flags.Text("--since", &since, "DURATION", "only lines newer than this: 10m");
  flags.Text("--since-time", &since_time, "TIME",
             "only lines after this time: 2026-01-01T12:00:00Z");
  flags.Int("-t,--tail", &tail, "LINES", "only the last LINES lines");
  flags.Int("--limit-bytes", &limit_bytes, "N", "only the first N bytes of each log");
  flags.Switch("--timestamps", &timestamps, "prefix each line with its time");
  flags.Text("-c,--container", &container, "NAME", "container (default: the first)");
}

Status LogOptions::Check() const {
  if (!since.empty() && !since_time.empty()) {
    return Misuse("--since and --since-time cannot be used together");
  }
  if (!since.empty()) SWELL_RETURN_IF_ERROR(ParseDuration(since, "--since").status());
  if (!since_time.empty() && !api::ParseTime(since_time)) {
    return Misuse(
        StrCat("--since-time ", Quote(since_time), " is not a time like 2026-01-01T12:00:00Z"));
  }
  return Status::Ok();
}

Status PrintLogs(Session& session,
                 Api& api,
                 const std::vector<json::SharedValue>& pods,
                 const LogOptions& options) {
  static constexpr Colour kColours[] = {Colour::kCyan, Colour::kYellow, Colour::kGreen,
                                        Colour::kBlue, Colour::kRed};
  std::vector<json::SharedValue> ready;
  for (json::SharedValue pod : pods) {
    while (options.follow && !HasStarted(*pod)) {
      if (!api.Pause(std::chrono::milliseconds(300))) return Status::Ok();
      SWELL_ASSIGN_OR_RETURN(
          pod, api.Get(client::resources::kPods, api::Namespace(*pod), api::Name(*pod)));
    }
    if (!api::IsBound(*pod)) {
      session.ErrLine(
          StrCat(api::Name(*pod), " has not started: it waits for a node; ", AskWhy(*pod)));
      continue;
    }
    const bool of_many = pods.size() > 1;
    if (!HasStarted(*pod) && (of_many || IsStillToStart(*pod, ContainerToShow(*pod, options)))) {
      session.ErrLine(
          StrCat(api::Name(*pod), " has not started: ", PodStatusWord(*pod), "; ", AskWhy(*pod)));
      continue;
    }
    ready.push_back(std::move(pod));
  }
  std::vector<Api::StreamRequest> streams;
  std::vector<std::unique_ptr<LineSplitter>> splitters;
  bool prefixed = pods.size() > 1;
  for (size_t i = 0; i < ready.size(); ++i) {
    Api::StreamRequest stream;
    const std::string container = ContainerToShow(*ready[i], options);
    stream.request =
        LogRequest({api::Namespace(*ready[i]), api::Name(*ready[i]), container}, options);
    ReportFailedStart(session, *ready[i], container);
    if (!prefixed) {
      stream.on_data = [&session](std::string_view bytes) { return session.Out(bytes); };
    } else {
      splitters.push_back(std::make_unique<LineSplitter>());
      std::string prefix =
          session.Paint(kColours[i % std::size(kColours)], StrCat("[", api::Name(*ready[i]), "] "));
      LineSplitter* lines = splitters.back().get();
      stream.on_data = [&session, prefix, lines](std::string_view bytes) {
        return lines->Feed(
            bytes, [&](std::string_view line) { return session.Out(StrCat(prefix, line, "\n")); });
      };
      stream.on_end = [&session, prefix, lines](const Status&) {
        std::string rest = lines->Rest();
        if (!rest.empty()) session.Out(StrCat(prefix, rest, "\n"));
      };
    }
    streams.push_back(std::move(stream));
  }
  // Whole logs one after the other; growing ones all at once.
  if (options.follow || streams.size() == 1) return api.Follow(std::move(streams));
  for (Api::StreamRequest& stream : streams) {
    std::vector<Api::StreamRequest> one;
    one.push_back(std::move(stream));
    SWELL_RETURN_IF_ERROR(api.Follow(std::move(one)));
  }
  return Status::Ok();
}

}  // namespace swell::cli
