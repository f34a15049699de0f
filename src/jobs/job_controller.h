// JobController: runs jobs of one kind. It creates the PodGroup, services and pods of each job, and
// handles restarts, clean-up, deadlines, suspension and preemption. Its status distinguishes
// *preempted* from *failed*. A failed job's remaining pods are stopped (annotation
// swell.dev/stop-requested and a deadline of one second), so that they hold no GPUs, and stay
// listed.
//
// Level-triggered: each pass reads the job and its pods, computes the next status and the writes
// that lead to it, and makes them. If nothing has to change, nothing is written. So a restarted
// controller continues where the last one stopped.
//
// A pass goes through its parts in one order. Observe reads the pods. Requests of the job's own
// pods, its end, disruptions, hangs and failures may each decide it; else the job's pods are
// wanted. Then the counts are filled in, and JobWrites carries it out.
//
// - Threads: core executor only.
#pragma once

#include <memory>
#include <string>

#include "jobs/decisions/job_attempts.h"
#include "jobs/decisions/job_disruptions.h"
#include "jobs/decisions/job_failures.h"
#include "jobs/decisions/job_health.h"
#include "jobs/decisions/job_size.h"
#include "jobs/gpus/gpu_time.h"
#include "jobs/kinds/job_kind.h"
#include "jobs/pass/job_pass.h"
#include "jobs/pass/job_writes.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::jobs {

class JobController {
 public:
  JobController(controllers::Context context, std::unique_ptr<JobKind> kind);

 private:
  void OnJobGone(const json::Value& job);
  void OnPod(const json::Value& pod);
  void OnPodGone(const json::SharedValue& pod);

  void Reconcile(const std::string& key, client::WorkQueue::Done done);
  void Observe(JobPass& pass);
  void Decide(JobPass& pass);
  void DecideSuspended(JobPass& pass);
  void WantPods(JobPass& pass);
  void NoteAttempts(JobPass& pass);
  void NoteGpuTime(JobPass& pass, bool over);
  void NoteEnd(JobPass& pass);
  void FillCounts(JobPass& pass);

  controllers::Context context_;
  std::unique_ptr<JobKind> kind_;
  client::Informer& jobs_;
  client::Informer& pods_;
  JobAttempts attempts_;
  JobDisruptions disruptions_;
  JobFailures failures_;
  GpuTime gpu_time_;
  JobHealth health_;
  ElasticSize size_;
  JobWrites writes_;
  client::WorkQueue queue_;
};

}  // namespace swell::jobs
