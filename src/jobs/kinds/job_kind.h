// JobKind: what differs between kinds of training jobs. JobController does everything else, so a
// new kind is one implementation of this interface.
// - Threads: stateless; core executor only.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "kube/api/meta/meta.h"
#include "kube/client/client.h"
#include "kube/controllers/wrong_field.h"
#include "sched/state/types.h"

namespace swell::jobs {

// With which the processes of one job reach each other by SSH.
struct SshKeyPair {
  std::string private_pem;
  std::string public_line;  // of authorized_keys, with its newline
};

// What kinds of jobs are told about the cluster they run in.
struct JobKindOptions {
  // Pods share the machine's ports: each job, or each member, then has ports of its own.
  bool host_network = false;
  // An object that a job refers to, such as a training runtime; null if it does not exist. Empty
  // where nobody can look it up: then only the job itself is read.
  std::function<json::SharedValue(const client::Resource&, std::string_view key)> find;
  // Makes a fresh key pair; empty where nobody does: pods then have none.
  std::function<Result<SshKeyPair>()> make_ssh_key;
};

enum class RestartPolicy { kNever, kOnFailure, kAlways, kExitCode };
enum class CleanPodPolicy { kNone, kRunning, kAll };
using sched::OnPreemption;

// What follows when a pod fails by itself.
enum class OnFailure {
  kAsUsual,          // by its role's restart policy
  kAsUsualOrIgnore,  // kAsUsual; if that would end the job, kIgnore
  kReplace,          // it is made again, which counts as a restart of the job
  kReplaceFree,      // it is made again
  kIgnore,           // it stays as it is, and the others continue
  kRestartJob,       // all pods are made again, which counts as one restart of the job
  kFailJob,
  kCompleteJob,  // the job has succeeded
};

// Volcano's policies: what follows when a pod of a task fails. The first that matches counts.
struct FailurePolicy {
  std::optional<int64_t> exit_code;  // empty: any
  OnFailure action = OnFailure::kIgnore;
};

// A priority class, or a part of a role's members that has it: "high", "high=0.5".
struct PriorityShare {
  std::string priority_class;
  double part = 1;
};

struct ReplicaSpec {
  std::string type;  // "Master", as the spec says it; lower case in names and labels
  int64_t replicas = 1;
  // Members of this role that must run together; empty: by JobSpec::min_available.
  std::optional<int64_t> min_member;
  // For a role that may change size: its maximum, and the number that was requested.
  std::optional<int64_t> max_member;
  int64_t requested = 1;
  // Members that have failed and are not replaced: the gang continues without them.
  int64_t given_up = 0;
  RestartPolicy restart_policy = RestartPolicy::kNever;
  json::Value pod_template;  // {metadata, spec}
  // What its pods are called, "-index" following if there can be several; empty: ReplicaName.
  std::string pod_name;
  bool numbered = true;
  int64_t relaunches = 0;  // failures of members that a kind's ClassifyFailure forgives
  std::vector<FailurePolicy> on_failure;
  bool completes_job = false;  // the job has succeeded when all members of this role have
  // How many of its first members an elastic job cannot lose without starting again whole: the
  // others cannot continue without them.
  int64_t vital = 0;
  // Members with a priority class of their own; empty if all have the job's.
  PriorityShare priority;

  // Whether the member has the role's own class. The part holds for any number of members, and a
  // member keeps its class when the number changes. Members of the minimum come first, if the part
  // of the maximum covers it.
  bool HasOwnPriority(int64_t index) const;
  std::string PodName(std::string_view job, int64_t index) const;
};

inline constexpr int64_t kReplicasMax = 10'000;  // of one role
inline constexpr int64_t kMembersMax = 20'000;   // of all roles together
inline constexpr size_t kRolesMax = 100;
inline constexpr std::string_view kNoClass = "no-class";  // in the name of a group

// What a job of any kind asks for.
struct JobSpec {
  std::vector<ReplicaSpec> replicas;  // in the kind's order, chief first
  CleanPodPolicy clean_pod_policy = CleanPodPolicy::kNone;
  std::optional<int64_t> ttl_seconds_after_finished;
  std::optional<int64_t> active_deadline_seconds;
  std::optional<int64_t> backoff_limit;
  bool suspend = false;
  // Gang: members needed before any starts; empty: all of them.
  std::optional<int64_t> min_available;
  // Members beyond min_available may come and go while the others train on.
  bool elastic = false;
  std::optional<int64_t> min_success;  // members that must succeed; empty: by the kind's rule
  // All workers must succeed. If false, the job succeeds with its first worker.
  bool all_must_succeed = true;
  // Without a group each pod is placed and preempted for itself, by its own priority.
  bool grouped = true;
  std::string priority_class;
  std::string project;
  OnPreemption on_preemption = OnPreemption::kRequeue;
  // Further fields of the PodGroup's spec, as they are: topology, preemptibility, ...
  json::Object group_fields;

  int64_t TotalReplicas() const;
  const ReplicaSpec* Find(std::string_view type) const;

  // A gang has one priority. So members beyond the minimum whose class is another than the gang's
  // are a group of their own, one per class, with a minimum of 0.
  bool tiered() const;
  // The class of the members that must run together; kInvalid if they differ and the job has none.
  Result<std::string> GangClass() const;
  std::string_view ClassOf(const ReplicaSpec& replica, int64_t index) const;
  // The PodGroup that the member is in, "JOB" or "JOB.CLASS", of a job of that name whose gang has
  // that class.
  std::string GroupOf(std::string_view job,
                      std::string_view gang_class,
                      const ReplicaSpec& replica,
                      int64_t index) const;
};

// Pods of one replica type, counted.
struct ReplicaCount {
  int64_t active = 0;
  int64_t running = 0;
  int64_t succeeded = 0;
  int64_t failed = 0;
  bool first_succeeded = false;  // the one with index 0
};

// One member of a job, and what it is made from. Everything it refers to outlives it.
struct JobMember {
  const json::Value& job;
  const JobSpec& spec;
  const ReplicaSpec& role;  // an element of spec.replicas
  int64_t index = 0;        // in its role

  // Its position among all members, in the order of their roles.
  int64_t rank() const;
  std::string pod_name() const;
};

class JobKind {
 public:
  virtual ~JobKind() = default;

  virtual client::Resource resource() const = 0;
  virtual std::string kind() const = 0;  // "PyTorchJob"
  // Two groups may have a kind of the same name.
  bool Owns(const api::OwnerReference& owner) const;
  // Other resources that its jobs refer to (JobKindOptions::find).
  virtual std::vector<client::Resource> References() const { return {}; }
  // The reason of a condition or an event: "PyTorchJobRunning".
  virtual std::string Reason(std::string_view what) const;
  // Whether the status has KubeDL's form: no Created condition once the job runs, no selectors.
  virtual bool kubedl_style_status() const { return false; }
  // Whether status.phase says in a word what the conditions add up to.
  virtual bool has_phase() const { return false; }
  // kInvalid with the field when the job cannot be run as written, or has more members or roles
  // than any.
  Result<JobSpec> Parse(const json::Value& job) const;
  // Labels of the member's pod, besides the common ones.
  virtual json::Object Labels(const JobMember& member) const = 0;
  // Adds the kind's environment, ports and arguments to a pod made from the template.
  virtual void PreparePod(const JobMember& member, json::Value& pod) const = 0;
  // Headless services of the job, complete except metadata.ownerReferences and namespace.
  virtual std::vector<json::Value> Services(const json::Value& job, const JobSpec& spec) const = 0;
  // What its pods need beside services, complete in the same sense and written before them.
  virtual Result<std::vector<json::Value>> Dependents(const json::Value& job,
                                                      const JobSpec& spec) const;
  // Whether the counts (one per spec.replicas, same order) mean success.
  virtual bool Succeeded(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const = 0;
  virtual OnFailure ClassifyFailure(const ReplicaSpec& replica,
                                    const ReplicaCount& count,
                                    const json::Value& pod,
                                    int64_t restarts) const;
  // Whether they mean that the job has failed, though no single failure did.
  virtual bool Failed(const JobSpec&, const std::vector<ReplicaCount>&) const { return false; }
  // Adds the kind's own fields to a status that has conditions and replicaStatuses.
  virtual void FillStatus(const json::Value& job,
                          const JobSpec& spec,
                          const std::vector<ReplicaCount>& counts,
                          WallTime now,
                          json::Value& status) const;
  // Whether they mean that the job is running.
  virtual bool Running(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const = 0;

 protected:
  // What Parse() answers, of any number of members.
  virtual Result<JobSpec> Read(const json::Value& job) const = 0;
};

// The role at `field` as kinds have it in common: replicas, restartPolicy and template.
struct RoleRules {
  RestartPolicy restart_policy = RestartPolicy::kOnFailure;  // of a role that names none
  int64_t least = 0, most = kReplicasMax;
};
struct RoleName {
  std::string_view name;
  int64_t most = kReplicasMax;
  std::optional<RestartPolicy> restart_policy = {};  // empty: the kind's
};
// The roles in spec.FIELD, in the order of `known`: one that is not among them is refused, and so
// is a job without members. Roles with none are left out.
Status ReadRoles(const json::Value& body,
                 std::string_view field,
                 const std::vector<RoleName>& known,
                 RestartPolicy restart_policy,
                 JobSpec& spec);
Result<ReplicaSpec> ReadReplicaSpec(std::string_view field,
                                    std::string_view type,
                                    const json::Value& role,
                                    const RoleRules& rules);

// How far spec.elasticPolicy lets the role Worker shrink and grow. The members of the other roles
// are always needed.
Status ReadWorkerBounds(const json::Value& body, JobSpec& spec);

// How many of the members a part of them is: never less than it.
int64_t ShareOf(double part, int64_t members);
// "0.5": a number from 0 to 1.
std::optional<double> ParsePart(std::string_view text);
// kInvalid with the field when it is neither a class nor CLASS=PART.
Result<PriorityShare> ReadPriorityShare(std::string_view field, std::string_view text);

RestartPolicy ParseRestartPolicy(std::string_view text, RestartPolicy fallback);
CleanPodPolicy ParseCleanPodPolicy(std::string_view text, CleanPodPolicy fallback);
// Reads runPolicy's fields from `policy` (spec.runPolicy, or spec itself in older manifests).
void ReadRunPolicy(const json::Value& policy, JobSpec& spec);
// Reads what labels and annotations say: project, on-preemption, code to fetch. After the roles.
Status ReadSwellHints(const json::Value& job, JobSpec& spec);

// Fields that kinds of others have and nobody here follows: "spec.launcherCreationPolicy".
std::vector<std::string> IgnoredFields(const json::Value& job);

// "<job>-<type>-<index>".
std::string ReplicaName(std::string_view job, std::string_view type, int64_t index);

}  // namespace swell::jobs
