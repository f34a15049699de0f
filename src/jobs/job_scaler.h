// JobScaler: what both autoscalers do alike. Every running job of a kind is looked at once per
// interval; how many members it is to have, what is remembered with that, and its status are
// written in that order. What is looked at and decided is a subclass's.
// - Threads: core executor only.
// - Ownership: the context's informers outlive it.
// - Invariants: one look at a job is under way at a time; nothing is decided on a job that a write
//   of ours is newer than.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "autoscaling/scale_observation.h"
#include "autoscaling/scale_target.h"
#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class JobScaler {
 public:
  JobScaler(const JobScaler&) = delete;
  JobScaler& operator=(const JobScaler&) = delete;

 protected:
  struct Round : ScaledRole {  // one look at one job
    std::string key, ns, name;
    json::SharedValue job;
    Duration interval{};
    client::WorkQueue::Done done;  // empty: it has ended
  };
  using AnyRound = std::shared_ptr<Round>;

  JobScaler(Context context, client::Resource resource, std::string_view queue);
  virtual ~JobScaler() = default;

  // Looks at a job that runs; ends with Finish, or calls `done` itself.
  virtual void Look(const std::string& key,
                    const json::SharedValue& job,
                    client::WorkQueue::Done done) = 0;
  // What is known of the job between looks; null: nothing.
  virtual ScaleObservation* Recall(const std::string& key) = 0;
  virtual void Forget(const std::string& key) = 0;

  // Whether it is time; if not, says so to the queue.
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
  // Writes `replicas`, where they change, with `memory`. Then `next`: with the round's job as it is
  // now, or why it was not written.
  void WriteJob(const AnyRound& round,
                std::optional<int64_t> replicas,
                const std::string& why,
                const std::string& memory,
                std::function<void(const Status&)> next);
  // Of the role's scaling; ends the round.
  void PatchStatus(const AnyRound& round, json::Value wanted);
  void Finish(const AnyRound& round, const Status& status);
  // Each complaint once, until there is another one.
  void Complain(const json::Value& job, ScaleObservation& look, const std::string& message);

  Context context_;
  client::Informer& pods_;
  client::EventRecorder events_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

 private:
  void Reconcile(const std::string& key, client::WorkQueue::Done done);

  const client::Resource resource_;
  client::Informer& jobs_;
  client::WorkQueue queue_;

 protected:
  client::Client client_;
};

}  // namespace swell::controllers
