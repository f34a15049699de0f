// JobController: runs jobs of one kind: one PodGroup, services and pods per job, restarts,
// clean-up, deadlines, suspension, preemption, and a status that tells *preempted* from *failed*.
//
// Level-triggered: each pass looks at the job and its pods as they are, works out the next status
// and the writes that lead there, and does them. A pass that finds nothing to do writes nothing, so
// a restarted controller goes on where the last one stopped.
//
// Preemption. A pod with condition DisruptionTarget (or annotation swell.dev/preempted-by) was
// taken away, it did not fail. Requeue: the rest of the gang is stopped with grace, and when the
// last pod is gone all are made anew and wait; failures of peers in that time do not count. Fail:
// the job fails with reason Preempted; survivors are told to stop (annotation
// swell.dev/stop-requested and a deadline of one second), so that nothing of a dead job holds GPUs,
// and stay listed. An elastic job that keeps its minimum trains on without the member. Other
// disruptions (a node lost or drained) restart the gang as Requeue does, under the condition
// Restarting.
//
// Order of writes: what was seen goes into the job's status, with the version that was looked at,
// before anything is deleted or made; so no observation is lost and no pass acts on an old picture.
//
// - Threads: core executor only.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "jobs/job_kind.h"
#include "jobs/job_members.h"
#include "kube/api/meta/meta.h"
#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class JobController {
 public:
  JobController(Context context, std::unique_ptr<JobKind> kind);

 private:
  struct Pass;    // one look at one job
  struct Writes;  // the pass's writes under way

  void Reconcile(const std::string& key, client::WorkQueue::Done done);
  bool Owns(const api::OwnerReference& owner) const;
  void OnPod(const json::Value& pod);
  void OnPodGone(const json::Value& pod);

  void Observe(Pass& pass);
  void Decide(Pass& pass);
  bool DecideEnd(Pass& pass);
  void DecideFinished(Pass& pass);
  void DecideSuspended(Pass& pass);
  bool DecideDisrupted(Pass& pass);
  void DecidePreempted(Pass& pass, const std::string& message, bool again);
  bool OnLostNode(const json::Value& pod) const;
  bool ExceedsBackoff(const Pass& pass, int64_t in_place_restarts) const;
  bool DecideFailures(Pass& pass);
  bool StoppedBySuspension(const Pass& pass) const;
  void DecideRunning(Pass& pass);
  static bool EndsElastically(const Pass& pass);
  void WantPods(Pass& pass);
  static void StopLatecomers(Pass& pass);
  void StopPods(Pass& pass, bool also_finished);
  void Finish(Pass& pass, std::string_view type, std::string_view reason, std::string message);
  void SetCondition(Pass& pass,
                    std::string_view type,
                    bool status,
                    std::string_view reason,
                    std::string_view message);
  static std::string_view PhaseWord(const Pass& pass);
  void FillCounts(Pass& pass);
  void FillSize(Pass& pass);
  std::string WhyNoMore(const Pass& pass, int64_t now, int64_t desired) const;
  std::string WhyChanged(const Pass& pass,
                         const json::Array& history,
                         int64_t now,
                         int64_t desired) const;

  JobParts PartsOf(const Pass& pass) const;

  void Write(const std::shared_ptr<Pass>& pass, client::WorkQueue::Done done);
  void WriteStatus(const std::shared_ptr<Pass>& pass,
                   const json::Value& job,
                   const std::shared_ptr<Writes>& writes,
                   const std::function<void()>& then);
  void WriteRest(const std::shared_ptr<Pass>& pass, const std::shared_ptr<Writes>& writes);
  void WriteServices(const std::shared_ptr<Pass>& pass, const std::shared_ptr<Writes>& writes);
  void WriteMembers(const std::shared_ptr<Pass>& pass, const std::shared_ptr<Writes>& writes);
  void WriteGroups(const std::shared_ptr<Pass>& pass, const std::shared_ptr<Writes>& writes);
  void WriteGroupAndPods(const std::shared_ptr<Pass>& pass,
                         const std::shared_ptr<Writes>& writes,
                         const std::string& name);
  void CreatePods(const std::shared_ptr<Pass>& pass,
                  const std::shared_ptr<Writes>& writes,
                  const std::string& group);

  // A preempted pod that was gone before a pass saw it, by its job's uid.
  struct Vanished {
    std::string message;
    WallTime created;
  };

  // Whether a pod was made that the watch has not told of yet.
  bool IsMade(Pass& pass, const std::string& pod);

  Context context_;
  std::unique_ptr<JobKind> kind_;
  client::Informer& jobs_;
  client::Informer& pods_;
  client::Informer& groups_;
  client::Informer& services_;
  client::Informer& nodes_;
  client::EventRecorder events_;
  std::map<std::string, Vanished> vanished_;
  // By the job's uid the names of pods made, and when, until the watch tells of them: it lags where
  // the API server has much to do, and each of them would be asked for once more meanwhile.
  std::map<std::string, std::map<std::string, SteadyTime, std::less<>>, std::less<>> made_;
  std::set<std::string> counted_;  // uids of failed pods whose restart is in the job's count
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::controllers
