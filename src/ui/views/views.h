// Views: what the pages show, made from the cluster's state as one user may see it.
//
// A view is a row of one table: its name, the kinds that it is made of, and a function. docs/ui.md
// describes the documents.
//
// - Threads: pure functions over the pages' own state.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/views/events_view.h"
#include "cli/views/job_view.h"
#include "json/value.h"
#include "ui/state/cluster_state.h"
#include "ui/state/rights.h"

namespace swell::ui {

using Params = std::map<std::string, std::string, std::less<>>;

using JobList = std::shared_ptr<const std::vector<cli::JobView>>;

// The jobs that several views are made from, one after the other.
struct JobsMemo {
  uint64_t version = 0;  // of the state
  std::string rights;    // Rights::Key()
  JobList jobs;          // null: nothing is remembered
  bool partial = false;
};

// What a view is made from.
struct ViewInput {
  const ClusterState& state;
  const Rights& rights;
  const Params& params;
  WallTime now;
  JobsMemo* memo = nullptr;  // may be null

  // The objects of a kind that the user may list. `partial` becomes true when some are left out.
  std::vector<json::SharedValue> Of(size_t kind, bool& partial) const;
  std::vector<json::SharedValue> Of(Kind kind, bool& partial) const {
    return Of(IndexOf(kind), partial);
  }
  // Those of one namespace, if the user may list them.
  std::vector<json::SharedValue> Inside(size_t kind, std::string_view ns) const;
  std::string Param(std::string_view name) const;
  cli::JobObjects JobParts(bool& partial, std::string_view ns) const;
  // All jobs, with the pods and groups that belong to them, and servers. `ns` empty: of all
  // namespaces.
  JobList Jobs(bool& partial, std::string_view ns = {}) const;
};

struct View {
  std::string_view name;
  KindSet kinds;  // made anew when one of these has changed
  Result<json::Value> (*make)(const ViewInput& input);
};
// Null: there is no such view.
const View* FindView(std::string_view name);

Result<json::Value> OverviewView(const ViewInput& input);
Result<json::Value> ProjectsView(const ViewInput& input);
Result<json::Value> NodePoolsView(const ViewInput& input);
Result<json::Value> NodesView(const ViewInput& input);
Result<json::Value> WorkloadsView(const ViewInput& input);
Result<json::Value> JobPageView(const ViewInput& input);
Result<json::Value> EventsView(const ViewInput& input);
Result<json::Value> UsersView(const ViewInput& input);
Result<json::Value> CronsView(const ViewInput& input);
Result<json::Value> CronPageView(const ViewInput& input);

// Helpers that several views use.
json::Value GpuNumber(int64_t milli);  // 4, 0.5
json::Value TimeOrNull(std::optional<WallTime> time);
json::Value TextOrNull(std::string_view text);
json::Array ConditionRows(const json::Value& object);
json::Object ObjectOfEvent(const json::Value& event);
json::Object EventRow(const cli::EventView& view, const json::Value& event);
// The newest first; a decision is an event in which the scheduler says what it did.
json::Array DecisionsOf(const ViewInput& input, size_t most);
json::Object WorkloadRow(const cli::JobView& job, const ViewInput& input);
// The job's place among what waits in its project; null: it has none.
json::Value QueueOf(const cli::JobView& job, const ViewInput& input);
bool Runs(const cli::JobView& job);
// Since when the job waits: since it was made, lost its places, or was resumed. nullopt: it does
// not wait.
std::optional<WallTime> WaitsSince(const cli::JobView& job, WallTime now);

}  // namespace swell::ui
