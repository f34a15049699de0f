// Invariants: what must hold in a cluster at every durable change, whatever fails around it.
//
//   1. No device of a node is promised to two pods, and no node carries more GPUs than it has.
//   2. No project holds more GPUs than its limit.
//   3. Another scheduler may place pods on the same nodes, and both may take the same room at once.
//      In calm, no pod of ours goes where such pods are known to leave no room.
//   4. Nobody evicts a pod that another scheduler placed.
//   5. A bound pod stays on its node. A pod or job that ended stays ended.
//   6. In calm, no gang is half placed for longer than `kHalfPlacedMax`.
//   7. A leader never asks to bind a pod that was bound before it took the lead, and never asks
//      twice while the first answer is open. No binding of an old term is carried out.
//   8. A write or deletion of a pod names its uid, since another pod may get the same name.
//   9. An eviction for a pod was in vain only if that pod was deleted, and was bound.
//   10. In calm, a pod that is marked for a waiting pod is soon told to end.
//
// - Threads: one thread.
// - Ownership: the history outlives it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/api/meta/lease_term.h"
#include "sim/sim_history.h"

namespace swell::sim {

// That it asks for, by its containers' limits.
int GpusOf(const json::Value& pod);

class Invariants {
 public:
  static constexpr Duration kHalfPlacedMax = std::chrono::minutes(3);
  // An eviction is written so long after it was decided, at most.
  static constexpr Duration kDecidedBefore = std::chrono::minutes(1);
  // In calm, a mark is followed by a deletion within that.
  static constexpr Duration kMarkedMax = std::chrono::minutes(1);
  // In calm, everybody has heard of a binding by then.
  static constexpr Duration kKnownAfter = std::chrono::seconds(10);

  Invariants(SimExecutor& executor, SimHistory& history, std::map<std::string, int> gpus_of_nodes);

  // From now on, every change is checked: pods of this namespace hold at most `gpus` GPUs.
  void LimitProject(const std::string& ns, int gpus) { limits_[ns] = gpus; }
  // Something is being broken: what is half done may take its time from now.
  void Disturbed() { disturbed_ = executor_.Steady(); }
  // To be asked now and then; the rest checks itself.
  void Check();
  Duration CalmFor() const { return executor_.Steady() - disturbed_; }
  // At the end, when every job is over.
  void CheckEnd();

  size_t evictions() const { return evictions_; }
  size_t bindings() const { return bindings_; }
  // Jobs that are not over.
  std::vector<std::string> OpenJobs() const;
  // Whether the job, "resource ns/name", is over and was not in vain.
  bool Succeeded(const std::string& job) const;

 private:
  struct Pod {
    std::string uid, ns, node, group, preempted_by;
    std::set<int> devices;
    uint64_t bound_at = 0;  // version
    SteadyTime bound_since;
    int gpus = 0;
    bool ended = false;
    bool deleting = false;
    bool foreign = false;  // another scheduler's
  };
  struct Eviction {
    std::string victim, uid, beneficiary;
    SteadyTime since;
  };

  void OnChange(const store::Change& change);
  void OnPod(const store::Change& change);
  void OnGroup(const store::Change& change);
  void OnMarks(const std::string& group, const json::Value& object);
  void Evicted(const std::string& key, const Pod& pod);
  void OnJob(const store::Change& change);
  void OnLease(const store::Change& change);
  void OnBinding(uint64_t number, const api::RestRequest& request, bool made);
  void OnPodWrite(const api::RestRequest& request);
  // The term of this Lease after that version; empty if it had no holder yet.
  std::string TermAt(const api::LeaseTerm& lease, uint64_t version) const;
  void CheckNode(const std::string& node);
  void CheckRoom(const std::string& key, const Pod& pod);
  void CheckLimit(const std::string& ns);
  bool ResolvedRecently(const std::string& beneficiary) const;
  void CheckVictims();
  void Started(const std::string& pod, const std::string& group);
  void Deleted(const std::string& key);

  SimExecutor& executor_;
  SimHistory& history_;
  const std::map<std::string, int> gpus_of_nodes_;
  std::map<std::string, int> limits_;
  SteadyTime disturbed_;
  std::map<std::string, Pod> pods_;        // by "ns/name"
  std::map<std::string, int64_t> groups_;  // members that must be there together
  std::map<std::string, SteadyTime> half_;
  std::map<std::string, std::string> jobs_;  // "resource ns/name" → uid + how it ended, or uid
  std::map<std::string, uint64_t> terms_;    // of leaders → the version in which they began
  // "ns/name" of a Lease → its terms in order, each with the version in which it began.
  std::map<std::string, std::vector<std::pair<uint64_t, std::string>>> leases_;
  std::map<std::string, uint64_t> last_asked_;     // "term uid" → number of its last binding
  std::vector<Eviction> open_;                     // whose beneficiary has not started yet
  std::map<std::string, SteadyTime> resolved_at_;  // pods and groups: started or deleted when, last
  size_t evictions_ = 0;
  size_t bindings_ = 0;
};

}  // namespace swell::sim
