// What `runai` prints, as functions of what was read.
// - Threads: pure functions, except for the colours of the session's terminal.
#pragma once

#include <string>
#include <vector>

#include "cli/runai/runai.h"
#include "cli/views/events_view.h"
#include "cli/views/node_view.h"

namespace swell::cli::runai {

std::string JobsTable(Session& session,
                      const Scope& scope,
                      const std::vector<JobView>& jobs,
                      bool headers);
std::string NodesTable(Session& session, const std::vector<NodeView>& nodes);
// "KEY: value" lines, then its pods.
std::string DescribeWorkload(Session& session, const Scope& scope, const JobView& job);
// The last `shown` of the events.
std::string EventsText(Session& session, const std::vector<EventView>& events, size_t shown);
std::string DescribeProject(Session& session, const ProjectView& project);
// One row per resource.
std::string SharesTable(Session& session, const ProjectView& project);
// "8/4 GPUs (over quota)".
std::string QuotaText(const ProjectView& project);

}  // namespace swell::cli::runai
