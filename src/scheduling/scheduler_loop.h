// SchedulerLoop: keeps the scheduling model in step with the API, runs a cycle when something
// changed, and carries its decisions out: bindings, evictions, nominations, and why others wait.
//
// A cycle's decisions are assumed in the model at once; a write that the API refuses is forgotten
// again and the next cycle decides anew (after a back-off, when it keeps happening). Who is evicted
// is marked first (evictions.h), so that the agent, the job's controller and people all know that
// it was preempted and not broken.
//
// - Threads: core executor only.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/callback_scope.h"
#include "base/strings.h"
#include "base/timer.h"
#include "kube/client/event_recorder.h"
#include "kube/controllers/context.h"
#include "sched/past_use.h"
#include "sched/scheduler.h"
#include "scheduling/evictions.h"
#include "scheduling/pending_reporter.h"
#include "scheduling/scheduler_metrics.h"
#include "scheduling/volume_waits.h"

namespace swell::controllers {

// What the scheduler did, for whoever keeps accounts. May be empty.
struct SchedulerWitness {
  // Of the pod's group, or of itself: it got its places after waiting that long.
  std::function<void(const json::Value& pod, Duration waited)> started;
  std::function<void(const json::Value& pod, const sched::Decision& eviction)> preempted;
};

class SchedulerLoop {
 public:
  SchedulerLoop(Context context, sched::Settings settings = {});

  // Pods that name one of these schedulers are placed here. Before Start.
  void Serve(const std::vector<std::string>& names) { names_ = {names.begin(), names.end()}; }
  // Cycles and what leads to them are told to it; null: they are not. Before Start.
  void Record(sched::Recorder* recorder) {
    model_.Record(recorder);
    scheduler_.Record(recorder);
  }
  // So many members of one gang are marked together when they are evicted. Before Start.
  void MarkTogether(size_t least) { evictions_.MarkTogether(least); }
  void Witness(SchedulerWitness witness) { witness_ = std::move(witness); }
  // Pods of which it is true stay where they are, as if a scheduling gate held them. Before Start.
  void HoldWhile(std::function<bool(const json::Value& pod)> held) { held_ = std::move(held); }
  // It may be held no more.
  void LookAgain(const json::Value& pod) { OnPod(pod); }
  // Called after every cycle.
  void OnCycle(std::function<void()> told) { on_cycle_ = std::move(told); }
  // Cycles begin once the informers are in sync.
  void Start();
  const sched::Model& model() const { return model_; }
  std::vector<sched::PastUse> past_use() const { return sched::PastUses(model_); }
  const SchedulerLoopStats& stats() const { return stats_; }

 private:
  // By number of a cycle's decisions; null but for binds of pods that there are.
  using PodsOfBinds = std::vector<json::SharedValue>;

  void WatchPods();
  void WatchVolumes();
  void LookAtPlacedVolumes();
  void WatchNodes();
  void WatchQueues();
  void WatchGroups();
  void OnPod(const json::Value& pod);
  void OnGroup(const json::Value& pod_group);
  void RefreshGroups(std::string_view priority_class);
  void RefreshProjects();
  std::string_view ProjectOfNamespace(std::string_view ns) const;

  void RecallPastUse();
  void Wake();
  void Cycle();
  void Carry(const sched::CycleResult& result);
  void Bind(const sched::Decision& decision, const json::SharedValue& pod);
  double ShareOf(const sched::Decision& decision, const json::SharedValue& pod) const;
  void SendBinding(const sched::Decision& decision, const json::SharedValue& pod);
  void SendBindings();
  void HearOfBindings(uint64_t batch);
  void OnBound(const sched::Decision& decision, const json::SharedValue& pod, const Status& status);
  void Nominate(const sched::Decision& decision);
  void ClearNomination(const std::string& key);
  void Evict(const sched::Decision& decision, bool shrinks);
  void SendEvictions();
  void TellSizes(const sched::CycleResult& result, const PodsOfBinds& pods);
  void TellStarts(const sched::CycleResult& result, const PodsOfBinds& pods);
  bool KeepsMinimum(const std::string& group, const std::set<std::string_view>& evicted) const;
  // The pod while nothing was decided for it; null after that.
  json::SharedValue FindWaiting(const std::string& key) const;
  // In the status of the group; zero: it is taken out.
  void TellTime(const std::string& key, std::string_view field, WallTime time);
  void Confirm(const sched::Decision& binding, const Status& why, SteadyTime until);
  void Settle(const sched::Decision& binding);
  // The binding was not made.
  void Fail(const sched::Decision& binding, const Status& why);
  void OnEvictionFailed(const sched::Decision& eviction, const Status& why);
  void OnRefused(const sched::Decision& decision, const Status& why);
  void RetryLater();

  Context context_;
  sched::Model model_;
  sched::Scheduler scheduler_;
  SchedulerLoopStats stats_;
  SchedulerMetrics metrics_;
  SchedulerWitness witness_;
  client::Informer& pods_;
  client::Informer& nodes_;
  client::Informer& groups_;
  client::Informer& priorities_;
  client::Informer& projects_;
  client::Informer& pools_;
  client::Informer& topologies_;
  client::Informer& budgets_;
  client::Informer& claims_;
  client::Informer& volumes_;
  client::Informer& classes_;
  client::EventRecorder events_;
  PendingReporter teller_;
  std::map<std::string, std::string, std::less<>> project_of_;  // namespace → leaf project
  // Bindings of which it is not known yet whether they were made, by pod. A server may bind the
  // next pod of that name with one that comes late. So the pod is not evicted before (the eviction
  // waits here), and when it is deleted all the same, the model keeps it and is told of the next
  // one only then.
  struct OpenBinding {
    struct Eviction {
      sched::Decision decision;
      bool shrinks = false;
    };
    std::string pod_uid;
    std::optional<Eviction> eviction;
  };
  std::unordered_map<std::string, OpenBinding, StringHash, std::equal_to<>> binding_;
  // Bindings that go to the server together, where it takes them so, and what was heard of them.
  struct Batch {
    std::vector<sched::Decision> decisions;
    std::vector<json::SharedValue> pods;             // as they were
    std::vector<std::pair<size_t, Status>> answers;  // not looked at yet
    size_t open = 0;                                 // without an answer
    std::unique_ptr<api::RestCall> call;
  };
  std::deque<std::pair<sched::Decision, json::SharedValue>> to_bind_;
  VolumeWaits volume_waits_;
  Evictions evictions_;
  std::vector<sched::Decision> to_evict_;  // decided in this turn
  std::map<uint64_t, std::shared_ptr<Batch>> batches_;
  uint64_t last_batch_ = 0;
  size_t bindings_open_ = 0;  // in all of them
  bool bindings_posted_ = false;
  std::set<std::string, std::less<>> names_{"swell"};
  std::function<void()> on_cycle_;
  std::function<bool(const json::Value& pod)> held_;
  bool started_ = false;
  bool cycle_posted_ = false;
  int refused_in_a_row_ = 0;
  Timer wake_timer_{context_.executor};
  Timer retry_timer_{context_.executor};
  client::Client client_;
  CallbackScope scope_;
};

}  // namespace swell::controllers
