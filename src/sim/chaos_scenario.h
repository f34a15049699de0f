// ChaosScenario: users submit jobs to a cluster of processes while faults are injected.
//
// The API server, replicas, agents and machines die and restart. Links are cut or lose messages.
// Watches fall behind. The disk is slow, full, or lost in the middle of a write. Clocks jump. Nodes
// are deleted and return. Another client writes each object that was just written, and deletes new
// pods. Another scheduler binds pods to the same nodes.
//
// Then the faults stop. Every job must end, and those that nothing stops must succeed. At last one
// job gets the whole cluster, is suspended and resumed, and is preempted twice, each with its one
// right outcome. Everything follows from the seed.
//
//   ChaosScenario scenario(17);
//   scenario.Play();
//   for (const std::string& what : scenario.violations()) ADD_FAILURE() << what;
//
// - Threads: one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/timer.h"
#include "sim/foreign_scheduler.h"
#include "sim/goodput_reports.h"
#include "sim/job_count_checker.h"
#include "sim/sim_caches.h"
#include "sim/sim_cluster.h"
#include "sim/sim_invariants.h"
#include "sim/sim_watcher.h"

namespace swell::sim {

class ChaosScenario {
 public:
  explicit ChaosScenario(uint64_t seed);
  ~ChaosScenario();

  void Play();

  const std::vector<std::string>& violations() { return cluster_.history().violations(); }
  uint64_t trace_hash() const { return cluster_.trace_hash(); }
  // A line for each fault, each request of a user, and each change of a pod.
  const std::vector<std::string>& log() const { return log_; }
  // How much there was to check.
  std::string Summary();

  size_t jobs() const { return acknowledged_.size(); }
  size_t watched() const;
  // Jobs that goodput scaled, and whose speed it measured with several members.
  size_t GrownByGoodput() const;
  const Invariants& invariants() const { return invariants_; }
  SimCluster& cluster() { return cluster_; }

 private:
  struct PendingRequest;
  using RequestPtr = std::shared_ptr<PendingRequest>;

  void Prepare();
  void Create(const std::string& object);
  void Watch(const client::Resource& resource);
  void Step();
  void Submit();
  void SubmitToForeignScheduler();
  void DeleteRandomJob();
  void ResizeRandomJob();
  void SuspendRandomJob();
  RequestPtr RandomJob(const client::Resource& resource);
  static RequestPtr PatchOf(const PendingRequest& job, json::Object spec);
  void Send(const RequestPtr& request);
  void OnAnswer(const RequestPtr& request, const Status& status);

  void Break();
  void BreakServer();
  void BreakReplica();
  void KillReplica(size_t index, Duration down);
  void BreakNode();
  void DeleteNode();
  void BreakLink();
  void BreakWatches();
  void BreakDisk();
  void BreakClock();
  void ChangeNetworkFaults();
  void InjectConflicts();
  void InjectConflict(const store::Change& change);
  void DeletePods();
  void DeletePod(const store::Change& change);
  void StopFaults();
  void SubmitAfterFaults();
  bool AllEnded() const;
  void CheckNothingRuns();
  void CheckWholeClusterJob();
  void CheckOutcome(const PendingRequest& job, const std::string& end, int64_t preemptions);
  bool Eventually(const std::string& what,
                  const std::function<bool()>& condition,
                  Duration limit = std::chrono::minutes(2));
  int CountMembers(const std::string& job,
                   const std::function<bool(const json::Value&)>& matches) const;
  int Running(const std::string& job) const;
  int Bound(const std::string& job) const;
  RequestPtr Add(json::Value object, const client::Resource& resource);

  void LoseMessages();
  void CheckRequest(const std::string& process, const api::RestRequest& request);

  void Check();
  void CheckDevices();
  void CheckEnd();
  void Log(const std::string& what);
  void LogPod(const store::Change& change);
  Duration RandomDuration(Duration least, Duration most);

  const uint64_t seed_;
  Random random_;
  SimCluster cluster_;
  Invariants invariants_;
  JobCountChecker job_counts_;
  SimCaches caches_;
  std::vector<std::unique_ptr<SimWatcher>> watchers_;
  std::unique_ptr<client::Client> client_;
  ForeignScheduler foreign_;
  GoodputReports reports_;
  std::set<std::string> acknowledged_;  // "resource ns/name": created, and not asked to go
  std::vector<RequestPtr> jobs_;        // acknowledged, in order
  std::vector<RequestPtr> suspended_;   // what resumes them
  std::map<std::string, std::string> doubly_used_;
  std::map<std::string, std::string> pods_logged_;  // "ns/name" → as it was
  std::string leader_logged_;
  std::vector<std::string> log_;
  int submitted_ = 0;
  int submitted_to_foreign_ = 0;
  bool faults_stopped_ = false;
  SteadyTime conflicts_until_;
  SteadyTime deletes_until_;
  uint64_t conflicts_injected_ = 0;
  uint64_t deleted_ = 0;                               // pods, by somebody
  std::map<std::string, std::string> conflict_marks_;  // "resource ns/name" → as it says
  Timer check_timer_{cluster_.executor()};
};

}  // namespace swell::sim
