// Replica: one of the processes that run a cluster's scheduler and controllers, of which one leads.
//
// All replicas keep their informers current, and try to acquire the Lease once these are synced.
// The replica that holds the Lease has a Manager, which writes through a gate. The gate shuts as
// soon as the replica may not lead any more. If no other replica led meanwhile (when the server was
// away, for example), the gate opens again and the Manager continues. Otherwise the Manager is
// destroyed. A new leader first reads all pods anew, because its watch may be behind what the last
// leader did.
//
// - Threads: core executor only.
// - Ownership: executor, clock and random outlive it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/timer.h"
#include "kube/client/leader_elector.h"
#include "kube/client/write_gate.h"
#include "manager/manager.h"

namespace swell::manager {

struct ReplicaOptions {
  std::optional<client::LeaderOptions> election;  // empty: it leads at once, without a Lease
  ManagerOptions manager;
  // Makes the recorder of a new Manager's cycles; null: they are not recorded.
  std::function<sched::Recorder*()> recorder;
  Metrics* metrics = nullptr;  // outlives it; may be null
  size_t writes_under_way = client::WriteGate::kUnderWayMax;
  // Called before any informer is made.
  std::function<void(controllers::Informers&)> prepare;
  // Called when it begins to lead; its caches are filled then.
  std::function<void(const controllers::Informers&)> on_lead;
  // Called when another replica leads.
  std::function<void(const std::string& holder)> on_follow;
};

class Replica {
 public:
  Replica(Executor& executor,
          Clock& clock,
          Random& random,
          std::shared_ptr<api::RestHandler> server,
          api::UserInfo user,
          ReplicaOptions options);
  ~Replica();

  void Start();
  // Waits for what it is writing, and releases the Lease. `done` runs within
  // seconds; after that it does nothing any more.
  void Stop(std::function<void()> done);

  // Whether it may write.
  bool leading() const { return manager_ && !stopping_ && (!elector_ || elector_->leading()); }
  const Manager* manager() const { return manager_.get(); }
  // Null once it has stopped.
  const controllers::Informers* informers() const { return informers_.get(); }
  // Whether it knows the cluster, so that it could lead.
  bool synced() const { return informers_ && informers_->synced(); }
  bool stopping() const { return stopping_; }

 private:
  controllers::Context ContextOf(controllers::Informers& informers) const;
  std::unique_ptr<controllers::Informers> MakeInformers();
  void WarmUp();
  void Lead(const std::string& term);
  void Manage();
  void Follow(const std::string& holder);
  void Drain(SteadyTime until, std::function<void()> done);

  Executor& executor_;
  Clock& clock_;
  Random& random_;
  std::shared_ptr<api::RestHandler> server_;
  api::UserInfo user_;
  ReplicaOptions options_;
  std::shared_ptr<client::WriteGate> gate_;
  std::unique_ptr<controllers::Informers> informers_;
  std::unique_ptr<Manager> manager_;
  std::string term_;       // of the Manager; empty: without an election
  bool stopping_ = false;  // it begins nothing new
  Timer drain_timer_{executor_};
  std::unique_ptr<client::LeaderElector> elector_;
  std::unique_ptr<Metrics::Registration> registered_;
};

}  // namespace swell::manager
