// A scheduling cycle as values: what it is asked, what it answers, and what is carried from one to
// the next (scheduler.h runs them).
// - Threads: plain values.
// - Ownership: by value; what the decisions of one plan have in common is shared between them and
//   does not change.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/huge_pages.h"

namespace swell::sched {

struct Settings {
  Duration stale_grace = std::chrono::seconds(60);
  // A job that has waited this long and cannot start holds nodes for itself; zero: never.
  Duration reserve_after = std::chrono::minutes(30);
  // Work that was moved to other nodes, or for which others were, is not moved again before.
  Duration move_pause = std::chrono::minutes(10);
  // How much past use counts against a queue's weight; 0 turns it off.
  double past_share = 0;
  // The half-life of past use.
  Duration past_half_life = std::chrono::hours(24 * 7);
  // Victim searches of one cycle look at no more than about this many nodes.
  int64_t search_budget = 2'000'000;
  // A cycle hands out no more binds than this; the rest follows in the next one.
  int32_t binds_per_cycle_max = 100'000;
};

struct CycleOptions {
  // Which actions run: one bit each, by ActionStep::number. Their order is always the registry's.
  uint32_t actions = UINT32_MAX;
  bool explain = true;  // says why groups wait (CycleResult::waiting)
  bool Runs(int number) const { return (actions >> number) & 1u; }
};

struct Decision {
  enum class Type { kBind, kNominate, kEvict };
  Type type = Type::kBind;
  std::string pod;  // "namespace/name"
  std::string pod_uid;
  std::string group;             // of the pod; empty for a pod without a group
  std::string node;              // where the pod goes, or was
  std::vector<int> gpu_devices;  // indices on `node`; empty for pods without GPUs
  std::string rule;              // Action::Name()
  double lost_gpu_seconds = 0;   // evictions: work since the last checkpoint, else the start

  // A sentence for people; starts with "Preempted" for evictions. It is put together when it is
  // read: the decisions of one plan share most of it, and there may be tens of thousands.
  std::string Reason() const;
  std::shared_ptr<const std::string> words;  // shared: what is asked, or why it is stopped
  // Evictions, shared: who needs the place; null: nobody.
  struct Beneficiary {
    std::string pod;    // "namespace/name"
    std::string group;  // empty for a pod without a group
  };
  std::shared_ptr<const Beneficiary> beneficiary;
  std::string moves_to;    // evictions: a node that takes it
  int32_t gpus_idle = 0;   // binds: that stay free of the node's
  int32_t gpus = -1;       // binds: the node's; -1: it uses none
  bool has_saved = false;  // evictions: since its start

 private:
  std::string LostText() const;
};
std::string_view DecisionTypeName(Decision::Type type);  // "bind", "nominate", "evict"

// A group that waits, told when its reason changed since it was last told.
struct Waiting {
  std::string group;              // PodGroup's key; empty for a pod without a group
  std::vector<std::string> pods;  // the pods that wait, in the order they would be placed
  std::string reason;             // "0/6 nodes are available: 3 Insufficient nvidia.com/gpu, ..."
  std::string least_change;       // "4 more free GPUs on one node"; may be empty
  bool incomplete = false;        // its group or members were not created yet
  bool surplus = false;           // it runs; these are beyond its minimum
};

struct CycleResult {
  LargeVector<Decision> decisions;  // in the order taken
  std::vector<Waiting> waiting;     // by job order
  // Pods whose promised room was given up; their status.nominatedNodeName is void.
  std::vector<std::string> nominations_cleared;
  // Groups noticed below their minimum, or whole again: what status.staleSince should say.
  struct Stale {
    std::string group;
    WallTime since;  // zero: no longer stale
  };
  std::vector<Stale> stale;
  // Groups that were moved, or others for them: what status.movedAt should say from now on.
  std::vector<std::string> moved;
  // When to run again though nothing changes (a grace period or min runtime ends).
  std::optional<WallTime> wake_at;
  // More could have been decided; run again at once (binds_per_cycle_max, search_budget).
  bool more = false;
};

struct CycleStats {
  int64_t cycles = 0;
  int64_t empty_cycles = 0;
  int64_t groups_tried = 0;
  int64_t groups_skipped = 0;  // no easier than one that already failed
  int64_t searches = 0;
  int64_t searches_out_of_budget = 0;
};

// What a scheduler carries from cycle to cycle, beside the model.
struct CycleMemory {
  std::optional<WallTime> counted_at;  // up to when past use is counted
  int fruitless = 0;                   // cycles in a row that asked for another, deciding nothing
  std::set<int32_t> noticed_stale;     // groups seen below their minimum
};

}  // namespace swell::sched
