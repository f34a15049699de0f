// SchedulingEvents: reports what the scheduler decided, as events, log lines and metrics.
// - Threads: core executor only.
// - Ownership: the model, the metrics and the context's parts outlive it.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/client/event_recorder.h"
#include "kube/controllers/context.h"
#include "sched/model.h"
#include "sched/scheduler.h"
#include "scheduling/scheduler_metrics.h"

namespace swell::scheduling {

// Called when work starts and when it is preempted. Either may be empty.
struct SchedulerObserver {
  // The pod, or the group that it belongs to, was placed after it had waited for that long.
  std::function<void(const json::Value& pod, Duration waited)> started;
  std::function<void(const json::Value& pod, const sched::Decision& eviction)> preempted;
};

class SchedulingEvents {
 public:
  // The pods of a cycle's decisions, by index. Null: not a bind, or the pod is gone.
  using PodsOfBinds = std::vector<json::SharedValue>;

  SchedulingEvents(controllers::Context context,
                   const sched::Model& model,
                   SchedulerMetrics& metrics);

  void Observe(SchedulerObserver observer) { observer_ = std::move(observer); }
  client::EventRecorder& recorder() { return events_; }

  void OnBound(const sched::Decision& decision, const json::Value& pod);
  // `shrinks`: the pod's group keeps its minimum without it.
  void OnEviction(const sched::Decision& decision, bool shrinks);
  // After the decisions of a cycle were carried out.
  void OnCycle(const sched::CycleResult& result, const PodsOfBinds& pods);
  // Whether every pod set of the group still has its minimum without these pods.
  bool KeepsMinimum(const std::string& group, const std::set<std::string_view>& evicted) const;

 private:
  struct Resize {
    int64_t evicted = 0, grown = 0;
    bool waited = false;  // new members that are placed at once are not news
    std::string by, because, rule, by_group;
  };

  // Whether a pod of the group is on a node.
  bool HasPlaces(const std::string& group) const;
  void ReportStarts(const sched::CycleResult& result, const PodsOfBinds& pods);
  void ReportSizes(const sched::CycleResult& result, const PodsOfBinds& pods);
  // "; -4 % goodput here, +61 % there"; what the winner's next event will say of it is kept.
  std::string TradeText(const json::Value& group, int64_t count, const std::string& winner);
  // ": +61 % goodput expected, 0.3 s to resize; gave up: job-b -4 %"; empty without a curve.
  std::string GainText(const json::Value& group, int64_t grown);
  // Members of the set that the group's curve counts, which stay.
  int64_t MembersOf(const json::Value& group, const sched::GoodputInfo& goodput) const;
  void ReportSize(const std::string& key,
                  const Resize& resize,
                  const std::set<std::string_view>& evicted);

  const Clock& clock_;
  const sched::Model& model_;
  SchedulerMetrics& metrics_;
  client::Informer& pods_;
  client::Informer& groups_;
  client::EventRecorder events_;
  SchedulerObserver observer_;
  std::map<std::string, std::string> gave_up_;  // by the group that gains: "job-b -4 %"; bounded
};

}  // namespace swell::scheduling
