// JobController::Pass: what one reconcile pass over a job observed, and the writes it decided on.
// - Threads: core executor only; lives until the pass's last write is answered.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jobs/job_controller.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/failure.h"
#include "kube/controllers/pod_facts.h"

namespace swell::controllers {

struct JobController::Pass {
  // Seen.
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

  bool IsTrue(std::string_view condition) const {
    return api::ConditionIsTrueIn(status, condition);
  }
  bool Wants(const std::string& pod_name) const {
    for (const ReplicaSpec& replica : spec.replicas) {
      for (int64_t k = 0; k < replica.replicas; ++k) {
        if (replica.PodName(name, k) == pod_name) return true;
      }
    }
    return false;
  }
  std::string GroupOf(const ReplicaSpec& replica, int64_t index) const {
    return spec.GroupOf(name, gang_class, replica, index);
  }
  // Every member of the gang's minimum has its place.
  bool GangPlaced() const {
    for (const ReplicaSpec& replica : spec.replicas) {
      for (int64_t k = 0; k < std::min(replica.min_member.value_or(0), replica.replicas); ++k) {
        auto pod = pods.find(replica.PodName(name, k));
        if (pod == pods.end() || !api::IsBound(*pod->second)) {
          return false;
        }
      }
    }
    return true;
  }
  // The members without which the others cannot continue hold their places.
  bool KeepsVitalMembers() const {
    for (const ReplicaSpec& replica : spec.replicas) {
      for (int64_t k = 0; replica.vital && k < replica.replicas; ++k) {
        auto pod = pods.find(replica.PodName(name, k));
        if (pod == pods.end() || !api::IsBound(*pod->second) || api::IsDeleting(*pod->second) ||
            WasPreempted(*pod->second) || WasDisrupted(*pod->second)) {
          return false;
        }
      }
    }
    return true;
  }
  // Members that the job has no more are to go.
  bool Shrinks() const {
    return std::any_of(
        delete_pods.begin(), delete_pods.end(),
        [this](const json::SharedValue& pod) { return !Wants(std::string(api::Name(*pod))); });
  }
  // Nothing is deleted and no event is recorded, so the writes need not wait for the status.
  bool OnlyAdds() const {
    return annotations.empty() && !vanished_seen && !delete_job && delete_pods.empty() &&
           stop_pods.empty() && free_pods.empty() && events.empty();
  }
  void AddEvent(std::string_view type, std::string_view reason, std::string message) {
    events.push_back({std::string(type), std::string(reason), std::move(message)});
  }
  void RequeueAfter(Duration delay) {
    if (requeue_after.count() == 0 || delay < requeue_after) requeue_after = delay;
  }
};

}  // namespace swell::controllers
