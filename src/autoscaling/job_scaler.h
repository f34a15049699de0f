// JobScaler: the loop that both job autoscalers share. Once per interval it lets the subclass
// observe each running job and decide, then it writes the number of members with the memory, and
// the status.
// - Threads: core executor only.
// - Ownership: the context's informers outlive it.
// - Invariants: one round per job at a time; no decision is based on a job older than our own last
//   write.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autoscaling/scale_observation.h"
#include "autoscaling/scale_target.h"
#include "base/callback_scope.h"
#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::autoscaling {

class JobScaler {
 public:
  JobScaler(const JobScaler&) = delete;
  JobScaler& operator=(const JobScaler&) = delete;

 protected:
  struct Round : ScaledRole {  // one interval of one job
    std::string key, ns, name;
    json::SharedValue job;
    Duration interval{};
    client::WorkQueue::Done done;  // empty once the round has ended
  };
  using AnyRound = std::shared_ptr<Round>;

  JobScaler(controllers::Context context, client::Resource resource, std::string_view queue);
  virtual ~JobScaler() = default;

  // Observes a running job; ends with Finish, or calls `done` itself.
  virtual void ObserveAndDecide(const std::string& key,
                                const json::SharedValue& job,
                                client::WorkQueue::Done done) = 0;
  // The state of the job between intervals; null if it has none.
  virtual ScaleObservation* Recall(const std::string& key) = 0;
  virtual void Forget(const std::string& key) = 0;

  // Whether the interval is over; if not, requeues the job for then.
  bool IsDue(ScaleObservation& look,
             const json::Value& job,
             Duration interval,
             const client::WorkQueue::Done& done) const;
  static void Begin(Round& round,
                    const std::string& key,
                    const json::SharedValue& job,
                    const ScaledRole& role,
                    Duration interval,
                    client::WorkQueue::Done done);
  // Writes `replicas`, if set, together with `memory`, and updates the round's job. Then calls
  // `next` with the outcome. Without `why` there is no event.
  void WriteJob(const AnyRound& round,
                std::optional<int64_t> replicas,
                const std::string& why,
                const std::string& memory,
                std::function<void(const Status&)> next);
  // Writes the status of the role's scaling and ends the round.
  void PatchStatus(const AnyRound& round, json::Value wanted);
  // Writes `wanted` to a field of the status and ends the round.
  void PatchStatusField(const AnyRound& round,
                        const std::vector<std::string>& path,
                        json::Value wanted);
  void Finish(const AnyRound& round, const Status& status);
  // Something that decides about all jobs has changed: each is looked at when it is due.
  void RequeueAll();
  const client::Informer& jobs() const { return jobs_; }
  // Records an event, unless the last one had the same message.
  void Complain(const json::Value& job, ScaleObservation& look, const std::string& message);

  controllers::Context context_;
  client::Informer& pods_;
  client::EventRecorder events_;
  CallbackScope scope_;

  const client::Resource resource_;

 private:
  void Reconcile(const std::string& key, client::WorkQueue::Done done);

  client::Informer& jobs_;
  client::WorkQueue queue_;

 protected:
  client::Client client_;
};

}  // namespace swell::autoscaling
