// What the scheduler would do with a changed cluster: the state is read once, changed here, and
// given to the scheduler's own code (CliEnv::what_if). Nothing is written anywhere.
// - Threads: values; functions that ask the server block on its loop.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/session.h"
#include "cli/views/job_view.h"

namespace swell::cli {

// Everything that scheduling depends on, as `swell simulate --state` reads it.
Result<json::Array> ReadState(Api& api);

// The pod's group, "namespace/name"; of a pod without one "/namespace/name".
std::string GroupOfPod(const json::Value& pod);
// The same of a PodGroup; empty for objects of other kinds.
std::string GroupOf(const json::Value& object);

// A view of a state in memory.
StateView StateViewOf(const json::Array& state);

// What becomes of one pod group.
struct Outcome {
  struct Place {
    std::string pod, node, gpus;  // "0,1"
    bool now = true;              // else promised, when others have stopped
  };
  struct Victim {
    std::string pod, group, node, rule, reason;
  };
  std::vector<Place> places;
  std::vector<Victim> victims;       // stopped that would not be without the group
  std::vector<std::string> waiting;  // pods without a place
  std::string reason;                // why, in the scheduler's words
  bool promised() const;

  bool starts(int64_t least) const { return static_cast<int64_t>(places.size()) >= least; }
};

class WhatIf {
 public:
  // `group`: of the state, or one that AddJob puts there.
  // kNotAcceptable without a scheduler.
  static Result<WhatIf> Make(Session& session, json::Array state);

  // The pod group and pods that the job's controller would make of it.
  Status AddJob(const json::Value& job, const JobKindInfo& kind);
  // The state without the groups and their pods.
  StateView Without(const std::set<std::string>& groups) const;
  const json::Array& state() const { return state_; }

  Outcome Run(const std::string& group) const { return Run(group, Without({})); }
  // `later`: than now, with nothing else changed.
  Outcome Run(const std::string& group,
              const StateView& state,
              Duration later = Duration::zero()) const;

 private:
  WhatIf(Session& session, json::Array state) : session_(&session), state_(std::move(state)) {}
  json::Value FirstCycle(const StateView& state, Duration later) const;

  Session* session_;
  json::Array state_;
};

// The number of pods of the group that must run together, over all pod sets.
int64_t LeastMembers(const json::Array& state, const std::string& group);

// Where a job that does not exist would go, when, and whom it would displace.
struct Plan {
  Outcome outcome;
  int64_t least = 1;  // members that must run together
  std::string job;
};
// The server is asked what it would make of the job, and whether it would take it.
Result<Plan> MakePlan(Session& session, Api& api, const json::Value& job);
std::string PlanText(const Plan& plan);
Status PrintPlan(Session& session, Api& api, const json::Value& job);

// What the server would make of the job; the job itself where one of that name exists.
Result<json::Value> TryJob(Api& api, const json::Value& job);

}  // namespace swell::cli
