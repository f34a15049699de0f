// SimStory: people submit jobs to a cluster of processes while everything that can break breaks:
// the API server, replicas, agents and machines die and come back, ways are cut or lose messages,
// watches fall behind, the disk is slow, full, or gone in the middle of a write, clocks jump, nodes
// are taken out of the cluster and come back, somebody else writes whatever the cluster has just
// written and deletes pods that have just come, and another scheduler takes room on the same nodes.
// Then there is peace, in which every job must end, and those that nothing stops succeed. At last
// nothing runs, and one job gets the whole cluster, is suspended and resumed, and is preempted
// twice, each with the one outcome that it has in calm. All of it follows from the seed.
//
//   SimStory story(17);
//   story.Play();
//   for (const std::string& what : story.violations()) ADD_FAILURE() << what;
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
#include "sim/sim_caches.h"
#include "sim/sim_cluster.h"
#include "sim/sim_invariants.h"
#include "sim/sim_job_books.h"
#include "sim/sim_neighbour.h"
#include "sim/sim_watcher.h"

namespace swell::sim {

class SimStory {
 public:
  explicit SimStory(uint64_t seed);
  ~SimStory();

  void Play();

  const std::vector<std::string>& violations() { return cluster_.history().violations(); }
  uint64_t trace_hash() const { return cluster_.trace_hash(); }
  // What happened, a line for each fault, each thing that people did, and each step of a pod.
  const std::vector<std::string>& told() const { return told_; }
  // How much there was to check.
  std::string Summary();

  size_t jobs() const { return acknowledged_.size(); }
  size_t watched() const;
  const Invariants& invariants() const { return invariants_; }
  SimCluster& cluster() { return cluster_; }

 private:
  struct Wish;
  using WishPtr = std::shared_ptr<Wish>;

  void Prepare();
  void Must(const std::string& object);
  void Watch(const client::Resource& resource);
  void Step();
  void Submit();
  void SubmitToNeighbour();
  void DeleteSomething();
  void ResizeSomething();
  void SuspendSomething();
  WishPtr SomeJob(const client::Resource& resource);
  static WishPtr PatchOf(const Wish& job, json::Object spec);
  void Ask(const WishPtr& wish);
  void OnAnswer(const WishPtr& wish, const Status& status);

  void Break();
  void BreakServer();
  void BreakReplica();
  void KillReplica(size_t index, Duration down);
  void BreakNode();
  void ForgetNode();
  void BreakWay();
  void BreakWatches();
  void BreakDisk();
  void BreakClock();
  void ChangeWeather();
  void MeddleForAWhile();
  void Meddle(const store::Change& change);
  void DeletePodsForAWhile();
  void DeletePod(const store::Change& change);
  void Peace();
  void WorkInPeace();
  bool AllOver() const;
  void CheckNothingRuns();
  void CheckOneAfterTheOther();
  void CheckOutcome(const Wish& job, const std::string& end, int64_t preemptions);
  bool Comes(const std::string& what,
             const std::function<bool()>& condition,
             Duration limit = std::chrono::minutes(2));
  int Running(const std::string& job) const;
  WishPtr Add(json::Value object, const client::Resource& resource);

  void LoseMessagesForAWhile();
  void CheckAsked(const std::string& process, const api::RestRequest& request);

  void Look();
  void LookAtDevices();
  void CheckEnd();
  void Tell(const std::string& what);
  void TellOfPod(const store::Change& change);
  Duration Between(Duration least, Duration most);

  const uint64_t seed_;
  Random random_;
  SimCluster cluster_;
  Invariants invariants_;
  JobBooks books_;
  SimCaches caches_;
  std::vector<std::unique_ptr<SimWatcher>> watchers_;
  std::unique_ptr<client::Client> people_;
  SimNeighbour neighbour_;
  std::set<std::string> acknowledged_;  // "resource ns/name": created, and not asked to go
  std::vector<WishPtr> jobs_;           // acknowledged, in order
  std::vector<WishPtr> suspended_;      // what resumes them
  std::map<std::string, std::string> doubly_used_;
  std::map<std::string, std::string> pods_told_;  // "ns/name" → as it was
  std::string leader_told_;
  std::vector<std::string> told_;
  int submitted_ = 0;
  int submitted_to_neighbour_ = 0;
  bool peace_ = false;
  SteadyTime meddles_until_;
  SteadyTime deletes_until_;
  uint64_t meddled_ = 0;
  uint64_t deleted_ = 0;                             // pods, by somebody
  std::map<std::string, std::string> meddled_with_;  // "resource ns/name" → as it says
  Timer look_timer_{cluster_.executor()};
};

}  // namespace swell::sim
