// JobPass: one reconcile pass over a job as data: what was observed, and the status and the writes
// that were decided. Its parts fill it one after the other (JobController says in which order), and
// JobWrites carries it out.
// - Threads: core executor only.
// - Ownership: lives until the pass's last write is answered; the kind outlives it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "jobs/kinds/job_kind.h"
#include "jobs/pass/job_members.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/failure.h"

namespace swell::jobs {

// Types of a job's conditions that several parts set.
inline constexpr std::string_view kDegraded = "Degraded";
inline constexpr std::string_view kHung = "Hung";
inline constexpr std::string_view kStraggler = "Straggler";
inline constexpr std::string_view kReplicaFailure = "ReplicaFailure";  // as ReplicaSets have it

struct JobPass {
  explicit JobPass(const JobKind& kind) : kind(kind) {}

  // Seen.
  const JobKind& kind;
  std::string key, ns, name;
  json::SharedValue job;
  WallTime now;
  JobSpec spec;
  std::string gang_class;  // of spec
  bool valid = false;
  std::string invalid_because;
  std::string waits_for;                          // an object that it refers to does not exist yet
  std::map<std::string, json::SharedValue> pods;  // by name
  std::vector<ReplicaCount> counts;               // like spec.replicas
  std::optional<api::Failure> failure;            // the first of those of its members
  std::optional<api::Failure> repeated;           // the first of members that start again

  // Decided.
  json::Value status;
  bool ends_now = false;  // this pass has ended the job
  int64_t restarts = 0;
  json::Object annotations;             // of the job, to be written before its status
  std::vector<std::string> dealt_with;  // uids of failed pods of which these annotations are
  bool vanished_seen = false;
  bool want_group = false;
  bool delete_job = false;
  std::vector<json::Value> create_pods;
  std::vector<json::SharedValue> delete_pods;
  std::vector<json::SharedValue> stop_pods;  // asked to stop, kept listed
  std::vector<json::SharedValue> free_pods;  // may preempt others again
  struct Event {
    std::string type, reason, message;
  };
  std::vector<Event> events;
  Duration requeue_after{0};

  // Looks at the pods for failures.
  void ObserveFailure();

  std::string uid() const { return std::string(api::Uid(*job)); }
  // A condition of the status as decided so far.
  bool IsTrue(std::string_view condition) const {
    return api::ConditionIsTrueIn(status, condition);
  }
  // Whether the job has a member of this name.
  bool Wants(const std::string& pod_name) const { return ReplicaOf(pod_name) != nullptr; }
  // The role of the member; null if the job has no such member.
  const ReplicaSpec* ReplicaOf(const std::string& pod_name) const;
  std::string GroupOf(const ReplicaSpec& replica, int64_t index) const {
    return spec.GroupOf(name, gang_class, replica, index);
  }
  JobParts Parts() const { return {kind, *job, spec, gang_class}; }
  // Every member of the gang's minimum has its place.
  bool GangPlaced() const;
  // Every member that the gang needs runs, or has done its part.
  bool GangRuns() const;
  // The members without which the others cannot continue hold their places.
  bool KeepsVitalMembers() const;
  // Members that the job has no more are to go.
  bool Shrinks() const;
  // Nothing is deleted and no event is recorded, so the writes need not wait for the status.
  bool OnlyAdds() const;
  // The job's annotation, as this pass has decided it.
  std::string_view DecidedAnnotation(std::string_view annotation) const;
  // The failure as it is when its pod is not to start again.
  std::optional<api::Failure> LastFailure() const;
  // " train-worker-1 failed: …", to be appended to the message of a condition; empty: none failed.
  std::string FailureText() const;

  // Becomes the last condition, which Kubeflow's clients read as the state of the job.
  void SetCondition(std::string_view type,
                    bool is_true,
                    std::string_view reason,
                    std::string_view message);
  // For what is not the state of the job: stands before the other conditions.
  void SetFirst(std::string_view type,
                bool is_true,
                std::string_view reason,
                std::string_view message);
  // It does not run meanwhile.
  void SetRestarting(std::string_view reason, std::string_view message);
  // The job is over: `type` is Succeeded or Failed.
  void Finish(std::string_view type, std::string_view reason, std::string message);
  enum class Which { kUnfinished, kAll };
  void StopPods(Which which);
  // New pods of the job go to other nodes where those have room.
  void AvoidNode(std::string_view node);
  void AddEvent(std::string_view type, std::string_view reason, std::string message);
  void RequeueAfter(Duration delay);

 private:
  // The end of a job says which failure ended it.
  void NoteEnd(bool failed, std::string_view reason);
};

}  // namespace swell::jobs
