// Invariants: what must hold of a cluster at every durable change, whatever goes wrong around it.
//
//   - no device of a node is promised to two pods, and no node carries more GPUs than it has;
//   - no project holds more GPUs than its limit;
//   - where another scheduler places pods on the same nodes, too, both may have taken the same room
//     at once; but in calm, no pod of ours goes where such pods are known to leave no room;
//   - nobody evicts what another scheduler has placed;
//   - a pod that was bound stays on its node, one that ended stays ended, and so does a job;
//   - in calm, no gang is half placed for longer than `kHalfPlacedMax`;
//   - no leader asks for a binding of a pod that was bound before it took the lead, nor for another
//     one while it cannot know whether the last will be made; and none is made that was asked for
//     in a term that was over;
//   - whoever writes or deletes a pod says which one, for another may come to its name;
//   - who was evicted for somebody went in vain only if that somebody was deleted, and was bound;
//   - in calm, who is marked for somebody that waits is soon asked to go.
//
// Ownership: the history outlives it. Thread-safety: one thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/api/lease_term.h"
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

  Invariants(SimExecutor& executor, History& history, std::map<std::string, int> gpus_of_nodes);

  // Holds at every change from now on: pods of this namespace have at most so many GPUs.
  void LimitProject(const std::string& ns, int gpus) { limits_[ns] = gpus; }
  // Something is being broken: what is half done may take its time from now.
  void Disturbed() { disturbed_ = executor_.Steady(); }
  // To be asked now and then; the rest checks itself.
  void Look();
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

  void Hear(const store::Change& change);
  void HearPod(const store::Change& change);
  void HearGroup(const store::Change& change);
  void HearMarks(const std::string& group, const json::Value& object);
  void Evicted(const std::string& key, const Pod& pod);
  void HearJob(const store::Change& change);
  void HearLease(const store::Change& change);
  void HearBinding(uint64_t number, const api::RestRequest& request, bool made);
  void HearPodWrite(const api::RestRequest& request);
  // Of the Lease of this one, after that version; empty: nobody had it yet.
  std::string TermAt(const api::LeaseTerm& lease, uint64_t version) const;
  void CheckNode(const std::string& node);
  void CheckRoom(const std::string& key, const Pod& pod);
  void CheckLimit(const std::string& ns);
  bool JustSettled(const std::string& beneficiary) const;
  void LookAtVictims();
  void Started(const std::string& pod, const std::string& group);
  void Deleted(const std::string& key);

  SimExecutor& executor_;
  History& history_;
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
  std::map<std::string, uint64_t> last_asked_;  // "term uid" → number of its last binding
  std::vector<Eviction> open_;                  // whose beneficiary has not started yet
  std::map<std::string, SteadyTime> settled_;   // pods and groups: started or deleted when, last
  size_t evictions_ = 0;
  size_t bindings_ = 0;
};

}  // namespace swell::sim
