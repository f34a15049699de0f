// DisruptionController: writes into a PodDisruptionBudget's status how many disruptions it allows
// now. The API server's eviction and the scheduler read it.
// - Threads: core executor only.
#pragma once

#include <optional>
#include <string>

#include "json/value.h"
#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

// How many of the budget's pods must be healthy when `expected` should be there.
int64_t DesiredHealthy(const json::Value& budget, int64_t expected);

class DisruptionController {
 public:
  explicit DisruptionController(Context context);

 private:
  void OnPod(const json::Value& pod);
  void OnScale(const json::Value& before, const json::Value& now);
  std::optional<int64_t> ScaleOf(const json::Value& pod) const;
  struct Sums;
  Sums CountPods(const json::Value& budget) const;
  int64_t ExpectedPods(const json::Value& budget, const Sums& sums) const;
  json::Value NextStatus(const json::Value& budget, const Sums& sums, int64_t expected) const;
  void Reconcile(const std::string& key, const client::WorkQueue::Done& done);

  Context context_;
  client::Informer& budgets_;
  client::Informer& pods_;
  client::Informer& replica_sets_;
  client::Informer& deployments_;
  client::Informer& stateful_sets_;
  client::WorkQueue queue_;
  client::Client client_;
  client::EventRecorder events_;
};

}  // namespace swell::controllers
