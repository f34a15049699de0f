// JobController: runs jobs of one kind. It creates the PodGroup, services and pods of each job, and
// handles restarts, clean-up, deadlines, suspension and preemption. Its status distinguishes
// *preempted* from *failed*.
//
// Level-triggered: each pass reads the job and its pods, computes the next status and the writes
// that lead to it, and makes them. If nothing has to change, nothing is written. So a restarted
// controller continues where the last one stopped.
//
// Preemption. A pod with condition DisruptionTarget (or annotation swell.dev/preempted-by) was
// evicted; it did not fail. With Requeue the rest of the gang is stopped gracefully. When the last
// pod is gone, all are created again and wait; failures of peers in that time do not count. With
// Fail the job fails with reason Preempted. Its remaining pods are stopped (annotation
// swell.dev/stop-requested and a deadline of one second), so that they hold no GPUs, and stay
// listed. An elastic job that keeps its minimum continues without the member. Other disruptions (a
// node lost or drained) restart the gang as Requeue does, under the condition Restarting.
//
// Order of writes: the status is written first, against the version that the pass has read; then
// objects are deleted and created. So no observation is lost and no pass acts on stale data.
//
// - Threads: core executor only.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "jobs/gpu_time.h"
#include "jobs/job_attempts.h"
#include "jobs/job_kind.h"
#include "jobs/job_members.h"
#include "jobs/last_preemption.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/failure.h"
#include "kube/api/objects/job.h"
#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"
#include "kube/controllers/workload.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {

class JobController {
 public:
  JobController(Context context, std::unique_ptr<JobKind> kind);

 private:
  struct Pass;  // one reconcile pass over one job
  using WritesPtr = std::shared_ptr<WriteBatch>;

  void Reconcile(const std::string& key, client::WorkQueue::Done done);
  bool Owns(const api::OwnerReference& owner) const;
  void OnPod(const json::Value& pod);
  void OnPodGone(const json::SharedValue& pod);

  void Observe(Pass& pass);
  static void ObserveFailure(Pass& pass);
  void NoteAttempts(Pass& pass);
  void Decide(Pass& pass);
  bool DecideEnd(Pass& pass);
  void DecideFinished(Pass& pass);
  void DecideSuspended(Pass& pass);
  bool DecideRequested(Pass& pass);
  bool DecideDisrupted(Pass& pass);
  void DecidePreempted(Pass& pass, const std::string& message, bool again);
  bool OnLostNode(const json::Value& pod) const;
  bool ExceedsBackoff(const Pass& pass, int64_t in_place_restarts) const;
  // What a failed member means for its job.
  struct Judgement {
    OnFailure verdict = OnFailure::kAsUsual;
    bool retryable = false;  // it is made anew; else the job fails
    bool charged = false;    // against the job's limit of restarts
  };
  Judgement JudgeFailure(const Pass& pass, size_t role, const json::Value& pod) const;
  bool DecideFailures(Pass& pass);
  // True when the job is over, and not given more memory instead.
  bool EndAtBackoffLimit(Pass& pass);
  void SayRestarting(Pass& pass);
  // It does not run meanwhile.
  void SetRestarting(Pass& pass, std::string_view reason, std::string_view message);
  bool DecideHopeless(Pass& pass);
  static int64_t InPlaceRestarts(const Pass& pass);
  void ChargeFailure(Pass& pass, const ReplicaSpec& replica, const json::Value& pod);
  void NoteCrash(Pass& pass, const json::Value& pod, const api::Failure& failure);
  bool RaiseMemory(Pass& pass, const ReplicaSpec& replica, const json::Value& pod);
  bool RaiseMemoryInPlace(Pass& pass, bool running_too);
  static std::string_view DecidedAnnotation(const Pass& pass, std::string_view key);
  static int64_t SparedFailures(const Pass& pass);
  static bool IsSpared(const Pass& pass, const api::Failure& failure);
  static void AvoidNode(Pass& pass, std::string_view node);
  bool SpareHardware(Pass& pass, const json::Value& pod, const api::Failure& failure);
  void LeaveHardwareInPlace(Pass& pass);
  int64_t MemoryMax(const json::Value& pod, std::string_view container) const;
  std::string HoldPreemption(Pass& pass);
  void GiveBackMemory(const std::shared_ptr<Pass>& pass, const Status& refused);
  bool StoppedBySuspension(const Pass& pass) const;
  void DecideRunning(Pass& pass);
  void DecideDegraded(Pass& pass);
  // Whether members are missing because the API server refuses them.
  void NoteRefusal(Pass& pass);
  void NoteProgress(Pass& pass);
  void NoteGpuTime(Pass& pass, bool over);
  static bool GangRuns(const Pass& pass);
  static void NoteGradients(Pass& pass);
  void NoteSaves(Pass& pass);
  void NoteNotFinite(Pass& pass);
  void NoteWorld(Pass& pass);
  void NoteStragglers(Pass& pass);
  bool SuspensionWaits(Pass& pass);
  bool DecideHang(Pass& pass);
  bool ActOnHang(Pass& pass,
                 int64_t step,
                 const std::vector<std::string>& suspect_nodes,
                 const std::string& message);
  bool AwaitsEndOfHungPods(Pass& pass);
  void NoteEnd(Pass& pass, bool failed, std::string_view reason);
  static std::optional<api::Failure> LastFailure(const Pass& pass);
  static std::string FailureText(const Pass& pass);
  static bool EndsElastically(const Pass& pass);
  void WantPods(Pass& pass);
  static void StopStragglers(Pass& pass);
  enum class Which { kUnfinished, kAll };
  void StopPods(Pass& pass, Which which);
  void Finish(Pass& pass, std::string_view type, std::string_view reason, std::string message);
  void SetFirst(Pass& pass,
                std::string_view type,
                bool status,
                std::string_view reason,
                std::string_view message);
  void SetDegraded(Pass& pass, bool degraded, std::string_view reason, std::string_view message);
  void SetCondition(Pass& pass,
                    std::string_view type,
                    bool status,
                    std::string_view reason,
                    std::string_view message);
  static std::string_view PhaseWord(const Pass& pass);
  void FillCounts(Pass& pass);
  void FillSize(Pass& pass);
  // Members of the roles that may change size.
  struct SizeNow {
    int64_t least = 0, most = 0, desired = 0, now = 0;
  };
  static bool HasSettled(const Pass& pass);
  void ReportResize(Pass& pass, const SizeNow& size);
  std::string WhyNoMore(const Pass& pass, int64_t now, int64_t desired) const;
  std::string WhyChanged(const Pass& pass,
                         const std::vector<api::SizeChange>& history,
                         int64_t now,
                         int64_t desired) const;

  JobParts PartsOf(const Pass& pass) const;

  void Write(const std::shared_ptr<Pass>& pass, client::WorkQueue::Done done);
  void WriteStatus(const std::shared_ptr<Pass>& pass,
                   const json::Value& job,
                   const WritesPtr& writes,
                   const std::function<void()>& then);
  void WriteRest(const std::shared_ptr<Pass>& pass, const WritesPtr& writes);
  void WriteServices(const std::shared_ptr<Pass>& pass, const WritesPtr& writes);
  void WriteMembers(const std::shared_ptr<Pass>& pass, const WritesPtr& writes);
  void WriteGroups(const std::shared_ptr<Pass>& pass, const WritesPtr& writes);
  bool IsOfAnotherJob(const Pass& pass, const json::Value& group);
  void WriteGroupAndPods(const std::shared_ptr<Pass>& pass,
                         const WritesPtr& writes,
                         const std::string& name);
  void CreatePods(const std::shared_ptr<Pass>& pass,
                  const WritesPtr& writes,
                  const std::string& group);
  void Refused(const Pass& pass, std::string_view reason, const std::string& message);

  // A preempted pod that was gone before a pass saw it, by its job's uid.
  struct Vanished {
    std::string message;
    PodAge age;
  };

  // Whether a pod was created that the watch has not shown yet.
  bool IsExpected(Pass& pass, const std::string& pod);

  Context context_;
  std::unique_ptr<JobKind> kind_;
  client::Informer& jobs_;
  client::Informer& pods_;
  client::Informer& groups_;
  client::Informer& services_;
  client::Informer& nodes_;
  client::EventRecorder events_;
  std::map<std::string, Vanished> vanished_;
  std::map<std::string, std::string> refused_;  // why members cannot be created, by their job's uid
  // Pods created, "JOB_UID/NAME", until the watch shows them. The watch lags when the API server is
  // busy; without this each of them would be created once more.
  Expectations expected_;
  JobAttempts attempts_;
  GpuTime gpu_time_;
  // Since when ranks are slow, by their job's uid; only of jobs that have such.
  struct SlowSince {
    WallTime time;
    int64_t windows = 0;  // api::OwnPart::windows then
  };
  std::map<std::string, std::map<int64_t, SlowSince>> slow_since_;
  // How many members ran when another number was requested, by their job's uid; until the change is
  // reported.
  std::map<std::string, int64_t> resizing_;
  std::set<std::string> counted_;  // uids of failed pods whose failure the job's annotations have
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::controllers
