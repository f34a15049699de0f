// Job: facts that the kinds of training jobs have in common, each read in one place.
// - Threads: pure functions.
// - Ownership: texts and documents are the job's own, valid while it lives.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "json/value.h"

namespace swell::api {

// replicas of a role, a scale or a workload's spec; 1 where it does not say.
int64_t ReplicasOf(const json::Value& role);
// The template of a role's pods, or null.
const json::Value* TemplateOf(const json::Value& role);

// Whether the members of the role lead the others, as its name says: master, chief, leader or
// launcher, in letters of any case.
bool IsLeadingRole(std::string_view role);
// A job's log and progress are those of a member of the role with the least rank: 0 for a role that
// leads, 1 for workers, 2 for others, as parameter servers.
int LeadRank(std::string_view role);

// Between how many replicas a role may be, as it is written: nothing is checked.
struct ReplicaBounds {
  // `holder` has minReplicas and maxReplicas: spec.elasticPolicy, or a role's elastic.
  explicit ReplicaBounds(const json::Value& holder);

  int64_t least = 1;
  std::optional<int64_t> most;
};

// spec.elasticPolicy of PyTorchJobs, Kubeflow's and KubeDL's. All is as without one where the job
// has none.
struct ElasticPolicy {
  explicit ElasticPolicy(const json::Value& job_spec);
  explicit ElasticPolicy(const json::Value&&) = delete;

  bool given = false;
  ReplicaBounds bounds;
  std::string_view backend;   // c10d where it says nothing
  std::string_view endpoint;  // KubeDL's; empty: the first worker
  std::string_view host;      // Kubeflow's; empty: the leader
  std::string_view id;        // empty: the job's name
  std::optional<int64_t> port;
  std::optional<int64_t> processes_per_node;
  int64_t max_restarts = 100;
  bool standalone = false;
  std::vector<std::pair<std::string_view, std::string_view>> options;  // rdzvConf
};

// One change of an elastic job's size.
struct SizeChange {
  std::optional<WallTime> time;
  int64_t replicas = 0, desired = 0;
  double throughput = 0;  // 0: unknown
  std::string_view reason;
};

// How large an elastic job is, and how it came to that (status.elastic; KubeDL's: status.size).
struct JobSize {
  explicit JobSize(const json::Value& document);
  explicit JobSize(const json::Value&&) = delete;

  int64_t replicas = 0, least = 0, most = 0;
  std::optional<int64_t> desired;
  int64_t shrinks = 0;  // how often others took members and left it its minimum
  std::optional<WallTime> last_shrink;
  std::string_view message;  // why it is not larger
  std::vector<SizeChange> history;
};
std::optional<JobSize> SizeOfJob(const json::Value& job);

// The project that a scheduling policy of Kubeflow or Volcano names by its queue. Both call the
// queue of jobs that choose none "default", so that one names no project.
std::string_view ProjectOfQueue(const json::Value& policy);

// What the job's conditions add up to, in a word: Succeeded, Failed, Suspended, Preempted,
// Restarting, Running; else its phase, or Pending.
std::string_view JobStatusWord(const json::Value& job);

// The controller that runs the job instead of Swell, such as "kueue.x-k8s.io/multikueue"
// (spec.runPolicy.managedBy, spec.managedBy of TrainJobs); empty: Swell does. Swell stands in for
// the operators of Kubeflow.
std::string_view OtherManager(const json::Value& job);

// Whether the job is suspended. `field` is its kind's: "suspend" or "runPolicy.suspend", below
// spec.
bool IsSuspended(const json::Value& job, std::string_view field);
// In a job, or in a patch of one.
void SetSuspended(json::Value& job, std::string_view field, bool suspended);

}  // namespace swell::api
