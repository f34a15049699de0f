// ForeignScheduler: another scheduler on the same nodes, as kube-scheduler is beside Swell. It
// binds its own pods by what it listed a moment ago. If both use the same room, the node refuses a
// pod.
// - Threads: one thread.
// - Ownership: executor outlives it.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/callback_scope.h"
#include "base/random.h"
#include "base/timer.h"
#include "kube/client/client.h"

namespace swell::sim {

class ForeignScheduler {
 public:
  // What it acts as, and what its pods name as their scheduler.
  static constexpr std::string_view kName = "neighbour";

  // `gpus_of_nodes`: all it knows of them.
  ForeignScheduler(Executor& executor,
                   std::shared_ptr<api::RestHandler> server,
                   std::map<std::string, int> gpus_of_nodes,
                   uint64_t seed);

  void Start() { ScheduleLater(); }
  // Somebody wants a pod; asked for until it is there.
  void Submit(const std::string& name, int gpus, uint64_t run_s);
  size_t bindings() const { return bindings_; }

 private:
  void ScheduleLater();
  void OnPods(const client::ObjectList& pods);
  void Bind(const std::string& name, const std::string& node);

  Executor& executor_;
  const std::map<std::string, int> gpus_of_nodes_;
  Random random_;
  std::set<std::string> under_way_;  // pods of which it has not heard whether they are bound
  size_t bindings_ = 0;
  Timer timer_{executor_};
  client::Client client_;
  CallbackScope scope_;
};

}  // namespace swell::sim
