// JobFailures: what a job does about failures of its members. It decides which members start again
// and when, what counts as a restart, whether they get more memory or other nodes, and when the job
// has failed.
// - Threads: core executor only.
// - Ownership: belongs to the JobController; the informer outlives it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "jobs/pass/job_pass.h"
#include "kube/client/informer.h"

namespace swell::jobs {

class JobFailures {
 public:
  // `nodes` bound the memory that a container can get.
  explicit JobFailures(client::Informer& nodes) : nodes_(nodes) {}

  // Adds to failures for lack of memory what the next pod gets.
  void Explain(JobPass& pass) const;
  // Counts the members that the gang does without (ReplicaSpec::given_up).
  void NoteGivenUp(JobPass& pass) const;
  // True when the pass is decided: the job is over, or all of it starts again.
  bool Decide(JobPass& pass);
  // A user who changes the pod templates of a job that fails means to mend it: its members that
  // fail are made anew of them, and nothing waits for a later start any more. True if members are.
  static bool FollowCorrection(JobPass& pass);
  // A job whose members start again and again holds its place, but does not train.
  static void DecideDegraded(JobPass& pass);
  // Whether members are made only later, because those before them failed soon after their start.
  static bool StartsLater(JobPass& pass);
  // Until when new pods may not preempt others. Empty: they may, and pods that wait may from now
  // on, too.
  static std::string HoldPreemption(JobPass& pass);

  // The job's annotations count the failures of these pods (JobPass::dealt_with).
  void NoteWritten(const std::vector<std::string>& pod_uids) {
    counted_.insert(pod_uids.begin(), pod_uids.end());
  }
  void OnPodGone(const std::string& pod_uid) { counted_.erase(pod_uid); }

 private:
  // What a failed member means for its job.
  struct Judgement {
    OnFailure verdict = OnFailure::kAsUsual;
    bool retryable = false;  // it is made anew; else the job fails
    bool charged = false;    // to the job's limit of restarts
  };
  Judgement Judge(const JobPass& pass, size_t role, const json::Value& pod) const;
  // True when the job is over, and not given more memory instead.
  bool EndAtBackoffLimit(JobPass& pass) const;
  void Charge(JobPass& pass, const ReplicaSpec& replica, const json::Value& pod) const;
  // What the next pod of the role gets for a container that was killed for lack of memory.
  struct NextLimit {
    int64_t bytes = 0;
    std::string why_not;   // why the limit is not raised
    bool decided = false;  // the job's annotations have it already
  };
  NextLimit NextLimitOf(const JobPass& pass,
                        const ReplicaSpec& replica,
                        const json::Value& pod,
                        const api::Failure& failure) const;
  void ExplainMemory(const JobPass& pass, api::Failure& failure) const;
  int64_t MemoryMax(const json::Value& pod, std::string_view container) const;
  bool RaiseMemory(JobPass& pass, const ReplicaSpec& replica, const json::Value& pod) const;
  bool RaiseMemoryInPlace(JobPass& pass, bool running_too) const;

  client::Informer& nodes_;
  std::set<std::string> counted_;  // uids of failed pods whose failure the job's annotations have
};

}  // namespace swell::jobs
