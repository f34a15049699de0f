// TopData: what `swell top` shows, read from the server at one moment by the same views as the
// other commands.
// - Threads: values; ReadTop blocks on the session's loop.
#pragma once

#include <string>
#include <vector>

#include "cli/views/events_view.h"
#include "cli/views/job_view.h"
#include "cli/views/node_view.h"
#include "cli/views/project_view.h"

namespace swell::cli {

struct TopData {
  WallTime now;
  std::string server;  // its address
  std::vector<NodeView> nodes;
  std::vector<JobView> jobs;
  ProjectTree tree;
  std::vector<EventView> events;    // newest first
  std::vector<std::string> hidden;  // what the user may not see, in sentences

  int64_t MilliGpus() const;      // of all nodes
  int64_t HeldMilliGpus() const;  // by pods on them
};

// `ns` empty: all namespaces, or the user's own where he may not list all.
Result<TopData> ReadTop(Session& session, Api& api, const std::string& ns);

}  // namespace swell::cli
