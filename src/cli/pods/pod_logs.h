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
  std::string since;       // 5m
  std::string since_time;  // RFC 3339
  std::string container;   // empty: the annotated default or the first one

  void Declare(Flags& flags);
  Status Check() const;
};

// Prints the logs of the pods. With several, each line begins with its pod's name.
// A pod that has not started is waited for when following; else it is said on the error stream.
Status PrintLogs(Session& session,
                 Api& api,
                 const std::vector<json::SharedValue>& pods,
                 const LogOptions& options);

}  // namespace swell::cli
