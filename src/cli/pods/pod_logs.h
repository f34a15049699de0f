// Logs of pods: which container, how much, how long; several pods side by side.
// - Threads: one thread.
#pragma once

#include <string>
#include <vector>

#include "cli/session.h"

namespace swell::cli {

struct LogOptions {
  bool follow = false;
  bool previous = false;
  bool timestamps = false;
  int64_t tail = -1;
  int64_t limit_bytes = 0;  // 0: all
  std::string since;        // 5m
  std::string since_time;   // RFC 3339
  std::string container;    // empty: the annotated default or the first one

  void Declare(Flags& flags);
  Status Check() const;
};

// The container that has the log.
struct LogSource {
  std::string_view ns, pod, container;
};
api::RestRequest LogRequest(const LogSource& source, const LogOptions& options);
// The container whose log is shown: the one that was named, else the init container that fails,
// else the default one.
std::string ContainerToShow(const json::Value& pod, const LogOptions& options);
// Something of it has run.
bool HasStarted(const json::Value& pod);

// Prints the logs of the pods. With several, each line begins with its pod's name.
// A pod that has not started is waited for when following; else it is said on the error stream.
Status PrintLogs(Session& session,
                 Api& api,
                 const std::vector<json::SharedValue>& pods,
                 const LogOptions& options);

}  // namespace swell::cli
