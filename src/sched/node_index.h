// NodeIndex: nodes by pool and free room, so that placing looks at likely nodes first.
//
// Two views of every pool: by idle GPUs, and (apart for nodes with and without GPUs) by how much of
// the CPU is free, in 32nds. Within a bucket nodes are in name order.
// Thread-safety: none. Ids are ranks: the index is reset whenever ranks change.
#pragma once

#include <vector>

#include "sched/rank_bitmap.h"

namespace swell::sched {

inline constexpr int kCpuBuckets = 33;

// Where a node currently is, kept in the node.
struct NodeSlot {
  int gpu = -1;
  int cpu = -1;
};

class NodeIndex {
 public:
  struct Pool {
    std::vector<RankBitmap> by_idle_gpus;    // [idle GPUs]; nodes without GPUs are not listed
    std::vector<RankBitmap> by_free_cpu[2];  // [has GPUs][free 32nds]
  };

  void Reset(int pools, int nodes, int gpus_max) {
    pools_.assign(pools, Pool{});
    for (Pool& pool : pools_) {
      pool.by_idle_gpus.resize(gpus_max + 1);
      for (RankBitmap& b : pool.by_idle_gpus) b.Reset(nodes);
      for (auto& side : pool.by_free_cpu) {
        side.resize(kCpuBuckets);
        for (RankBitmap& b : side) b.Reset(nodes);
      }
    }
  }
  void Move(int pool, bool has_gpus, int rank, NodeSlot& slot, int gpu, int cpu) {
    Pool& p = pools_[pool];
    if (slot.gpu != gpu) {
      if (slot.gpu >= 0) p.by_idle_gpus[slot.gpu].Remove(rank);
      if (gpu >= 0) p.by_idle_gpus[gpu].Add(rank);
      slot.gpu = gpu;
    }
    if (slot.cpu != cpu) {
      if (slot.cpu >= 0) p.by_free_cpu[has_gpus][slot.cpu].Remove(rank);
      if (cpu >= 0) p.by_free_cpu[has_gpus][cpu].Add(rank);
      slot.cpu = cpu;
    }
  }
  const std::vector<Pool>& pools() const { return pools_; }
  // NodeId by rank.
  std::vector<int> by_rank;

 private:
  std::vector<Pool> pools_;
};

}  // namespace swell::sched
