// UsageLedger: the durable account of GPU hours by project, user and hour, for `swell report`. It
// writes a ConfigMap per day in one namespace: once a minute, and when it ends. After a start, a
// preemption or an end it writes within seconds, because objects do not show these for long.
//
// A pod is charged from its binding until it has ended or is deleted. The record says up to when it
// is complete. A new ledger (after a crash, or on another replica) continues from there, with pods
// that still hold their places and pods that say when they ended. If a pod is deleted between a
// crash and the next ledger, its time since the last write is lost.
//
// Each second of a held GPU is also charged to what it was used for (jobs/gpus/gpu_use.h), by
// project and by job.
//
// - Threads: core executor only.
// - Ownership: model and informers outlive it.
// - Invariants: two days in memory; days older than kDaysKept are removed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/callback_scope.h"
#include "base/timer.h"
#include "jobs/gpus/gpu_use.h"
#include "kube/client/usage_record.h"
#include "kube/controllers/context.h"
#include "sched/model.h"

namespace swell::projects {

class UsageLedger {
 public:
  UsageLedger(controllers::Context context, const sched::Model& model, std::string ns);

  // Once the informers are in sync.
  void Start();
  void OnStarted(const json::Value& pod, Duration waited);
  // Its lost work is charged when it has ended.
  void OnPreempted(const json::Value& pod);
  // Call before the end. Writes the rest and runs `done`, which does not wait long for the server.
  void FlushThen(std::function<void()> done);

  static constexpr Duration kFlushEvery = std::chrono::minutes(1);
  static constexpr Duration kFlushSoon = std::chrono::seconds(10);
  static constexpr int kDaysKept = 400;

 private:
  struct Holding {
    std::string key;  // of the pod
    std::string project, user, job;
    std::string group;    // "namespace/group"; empty: in none
    std::string job_uid;  // empty: it belongs to no job
    WallTime submitted;   // the job
    client::GpuUse use = client::GpuUse::kStarting;
    double gpus = 0;
    double cpus = 0;
    WallTime since;  // charged up to here
    jobs::LossInPlace lost_in_place;
  };

  void OnPod(const json::Value& pod);
  void OnGone(const json::Value& pod);
  void OnGroup(const json::Value& group);
  bool GangRuns(std::string_view group) const;
  void SetUse(Holding& holding, const json::Value& pod);
  Holding HoldingOf(const json::Value& pod) const;
  void ChargeEnded(const Holding& holding, const json::Value& pod);
  void AddLost(const Holding& who, double gpu_s);
  void Charge(const Holding& holding, WallTime until);
  void NoteJob(client::UsageDay& day, const Holding& holding, WallTime from, WallTime to) const;
  void CountHeld();
  void Release(const Holding& holding);
  void ChargeAll(WallTime now);
  client::UsageDay* DayOf(WallTime time);
  client::UsageRow& RowNow(const Holding& who);
  client::UsageRow& JobNow(const Holding& who);

  void Load();
  void OnLoaded(const client::ObjectList& list);
  void FlushAfter(Duration wait);
  void FlushSoon();
  void Flush();
  void WriteNext();
  void Write(std::string date);
  void Written(const Status& status, const std::string& date);

  controllers::Context context_;
  const sched::Model& model_;
  const std::string ns_;
  client::Informer& pods_;
  client::Informer& groups_;
  std::map<std::string, Holding, std::less<>> holdings_;  // by uid
  std::map<std::string, double, std::less<>> held_;       // GPUs by the job's uid
  std::map<std::string, client::UsageDay> days_;          // by date
  std::set<std::string, std::less<>> waiting_gangs_;      // of which too few members run
  CounterVec gpu_seconds_;                                // by project and use, since the start
  std::unique_ptr<Metrics::Registration> registration_;
  std::set<std::string> unwritten_;  // dates
  WallTime charged_until_;
  WallTime awake_since_;  // before this time the capacity is taken to be what was held
  bool loaded_ = false;
  bool writing_ = false;
  bool soon_ = false;  // the next flush comes within kFlushSoon
  Timer timer_{context_.executor};
  std::function<void()> on_flushed_;  // told when nothing is left to write
  Timer flush_timeout_{context_.executor};
  client::Client client_;
  CallbackScope scope_;
};

// The user that submitted the pod, from its annotation.
std::string_view UserOfPod(const json::Value& pod);

}  // namespace swell::projects
