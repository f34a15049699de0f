// BatchJobController: batch/v1 Jobs, NonIndexed and Indexed, as Kubernetes' job controller runs
// them: parallelism, completions, backoff limit and delay (of the job or of each index), deadline,
// TTL, suspension, policies of failure, success and replacement.
//
// Every pod carries the finalizer batch.kubernetes.io/job-tracking until its end is counted. An end
// is first written into status.uncountedTerminatedPods, then the finalizer goes, then it moves to
// the counters: so each pod counts once, even if it is deleted or this process stops in between.
// Its pods are those that its selector names: orphans become its own, others are let go.
// Pods have names made from the job's uid and a number, so that making one twice is refused.
//
// One difference: a pod that the cluster took away (condition DisruptionTarget) is replaced without
// being held against the backoff limit.
//
// - Threads: core executor only.
#pragma once

#include <memory>
#include <string>

#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"
#include "kube/controllers/workloads/job_adoption.h"
#include "kube/controllers/workloads/job_gang.h"
#include "kube/controllers/workloads/queued_jobs.h"

namespace swell::controllers {

class BatchJobController {
 public:
  explicit BatchJobController(Context context);

 private:
  struct Pass;
  using Done = client::WorkQueue::Done;

  void OnPod(const json::Value& pod);
  void Reconcile(const std::string& key, Done done);
  void ReconcileOrphan(const std::string& key, Done done);
  void Work(const std::shared_ptr<Pass>& pass, Done done);
  bool IsFresh(const json::Value& job) const;
  void Observe(Pass& pass);
  void Count(Pass& pass);
  void CountFailure(Pass& pass, const json::SharedValue& pod, int64_t index);
  void Book(Pass& pass, const json::SharedValue& pod, bool counts);
  void ResolveIndexes(Pass& pass);
  void Decide(Pass& pass);
  bool DecideEnd(Pass& pass);
  void DecideFinished(Pass& pass);
  void DecideSuspended(Pass& pass);
  void WantPods(Pass& pass);
  bool IsDue(Pass& pass, int64_t index);
  bool MustWait(Pass& pass);
  void Complete(Pass& pass, std::string_view reason, std::string_view message);
  void Fail(Pass& pass, std::string_view reason, std::string_view message);
  void FillCounts(Pass& pass);
  json::Value MakePod(const Pass& pass, const std::string& name, int64_t index) const;
  void Write(const std::shared_ptr<Pass>& pass, Done done);
  void WriteRest(const std::shared_ptr<Pass>& pass, Done done);
  // `as_known`: refused when the pod has changed since.
  void Release(const json::Value& pod, client::ObjectCallback done, bool as_known = false);

  Context context_;
  client::Informer& jobs_;
  client::Informer& pods_;
  client::EventRecorder events_;
  client::WorkQueue queue_;
  client::WorkQueue orphans_;
  client::Client client_;
  JobAdoption adoption_;
  QueuedJobs queued_;
  JobGang gangs_;
};

}  // namespace swell::controllers
