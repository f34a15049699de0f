// LogParts: the starts of a job's containers, each of which has a log of its own: those of the pods
// that it has, and those of pods that are gone and that status.attempts names.
// - Threads: pure functions.
// - Invariants: of each container, at most the newest kStartsShown starts.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/pods/pod_logs.h"
#include "cli/views/job_view.h"

namespace swell::cli {

struct LogPart {
  static constexpr int64_t kStartsShown = 5;

  std::string member, uid, node, container;
  int64_t attempt = 1;                     // pods of this member, this one included
  int64_t restart = 0;                     // starts of the container before this one
  std::string result;                      // how the pod ended; empty: it is there
  json::SharedValue pod;                   // for the newest start in a pod that is there
  std::optional<WallTime> started, ended;  // of the pod

  std::string Key() const;
  std::string ResultText() const;
  std::string Title() const;  // "mnist-worker-0, attempt 2, start 3, preempted"
};

// Those of the members for which `chosen` is true, in the order in which they ran.
std::vector<LogPart> LogPartsOf(const JobView& job,
                                const std::function<bool(std::string_view member)>& chosen,
                                const LogOptions& options);

}  // namespace swell::cli
