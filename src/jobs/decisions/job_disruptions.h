// JobDisruptions: what a job does when pods of it are taken away: by preemption, by a drain, or
// with their node.
//
// A pod with condition DisruptionTarget (or annotation swell.dev/preempted-by) was evicted; it did
// not fail. With Requeue the rest of the gang is stopped gracefully. When the last pod is gone, all
// are created again and wait; failures of peers in that time do not count. With Fail the job fails
// with reason Preempted. An elastic job that keeps its minimum continues without the member. Other
// disruptions (a node lost or drained) restart the gang as Requeue does, under the condition
// Restarting.
//
// - Threads: core executor only.
// - Ownership: belongs to the JobController; the informer outlives it.
#pragma once

#include <map>
#include <string>

#include "jobs/kinds/last_preemption.h"
#include "jobs/pass/job_pass.h"
#include "kube/client/informer.h"

namespace swell::jobs {

class JobDisruptions {
 public:
  // Nodes that are gone, or do not report, take their pods with them.
  explicit JobDisruptions(client::Informer& nodes) : nodes_(nodes) {}

  // True when the pass is decided.
  bool Decide(JobPass& pass) const;

  // A pod of the job is gone. One that was preempted is known until Forget.
  void OnPodGone(const std::string& job_uid, const json::Value& pod);
  // The message of a preempted pod that is gone; empty: none is.
  std::string MessageOf(const std::string& job_uid) const;
  // The status says it, or the job is gone.
  void Forget(const std::string& job_uid) { vanished_.erase(job_uid); }

 private:
  bool OnLostNode(const json::Value& pod) const;

  // A preempted pod that was gone before a pass saw it.
  struct Vanished {
    std::string message;
    PodAge age;
  };

  client::Informer& nodes_;
  std::map<std::string, Vanished> vanished_;  // by the job's uid
};

}  // namespace swell::jobs
