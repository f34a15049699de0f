// What commands show, as documents for programs: the fields of a table's row, with numbers and
// times that programs can read.
// - Threads: pure functions.
#pragma once

#include <vector>

#include "cli/views/events_view.h"
#include "cli/views/job_view.h"
#include "cli/views/node_view.h"
#include "cli/views/project_view.h"

namespace swell::cli {

json::Object EventJson(const EventView& event);
json::Array EventsJson(const std::vector<EventView>& events);
json::Array ConditionsJson(const json::Value& object);
json::Object PodJson(const json::Value& pod);
json::Array PodsJson(const std::vector<json::SharedValue>& pods);
// A job's name and kind, its state and why, what it asks for and what it holds.
json::Object JobJson(const JobView& job);
// What pods request of one node, or of all nodes.
json::Object NodeUseJson(const Amounts& used, const Amounts& total, int64_t unhealthy_gpus);
json::Object ProjectJson(const ProjectView& project);

// GPUs or CPUs from their thousandths: 4, 0.5.
json::Value UnitsJson(int64_t milli);
json::Value TimeJson(const std::optional<WallTime>& time);
json::Value TextJson(std::string_view text);  // null for an empty one

}  // namespace swell::cli
