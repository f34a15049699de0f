// What `swell describe` prints, as functions of objects: fields in order, then pods, conditions and
// events.
// - Threads: pure functions, except for the colours of the session's terminal.
#pragma once

#include <string>
#include <vector>

#include "cli/session.h"
#include "cli/views/events_view.h"
#include "cli/views/job_view.h"

namespace swell::cli {

// `unhealthy_places`: its pods' nodes that have faults, in sentences.
std::string DescribeJob(Session& session,
                        const JobView& job,
                        const std::vector<std::string>& unhealthy_places,
                        const std::vector<EventView>& events);
std::string DescribePod(Session& session,
                        const json::Value& pod,
                        const std::vector<EventView>& events);
std::string DescribeNode(Session& session,
                         const json::Value& node,
                         const std::vector<json::SharedValue>& pods,
                         const std::vector<EventView>& events);
std::string DescribeAny(Session& session,
                        const json::Value& object,
                        const std::vector<EventView>& events);

}  // namespace swell::cli
