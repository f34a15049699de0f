// NodeIndex: nodes by pool and free room, so that placing looks at likely nodes first.
//
// Three views of every pool: by idle GPUs now, the same once terminating pods are gone, and (apart
// for nodes with and without GPUs) by how much of the CPU is free, in 32nds. Within a bucket nodes
// are in name order.
//
// - Threads: none. Ids are ranks: the index is reset whenever ranks change.
#pragma once

#include <vector>

#include "sched/state/rank_bitmap.h"

namespace swell::sched {

inline constexpr int kCpuBuckets = 33;

// Where a node currently is, kept in the node.
struct NodeSlot {
  int gpu = -1;
  int future_gpu = -1;
  int shared_gpu = -1;
  int cpu = -1;
};

class NodeIndex {
 public:
  struct Pool {
    std::vector<RankBitmap> by_idle_gpus;    // [idle GPUs]; nodes without GPUs are not listed
    std::vector<RankBitmap> by_future_gpus;  // the same in the future
    std::vector<RankBitmap> by_shared_gpus;  // of by_idle_gpus, those with part of a GPU free
    std::vector<RankBitmap> by_free_cpu[2];  // [has GPUs][free 32nds]
  };

  void Reset(int pools, int nodes, int gpus_max) {
    pools_.assign(pools, Pool{});
    for (Pool& pool : pools_) {
      for (auto* by_gpus : {&pool.by_idle_gpus, &pool.by_future_gpus, &pool.by_shared_gpus}) {
        by_gpus->resize(gpus_max + 1);
        for (RankBitmap& b : *by_gpus) b.Reset(nodes);
      }
      for (auto& side : pool.by_free_cpu) {
        side.resize(kCpuBuckets);
        for (RankBitmap& b : side) b.Reset(nodes);
      }
    }
  }
  void Move(int pool, bool has_gpus, int rank, NodeSlot& slot, const NodeSlot& to) {
    Pool& p = pools_[pool];
    Relist(p.by_idle_gpus, rank, slot.gpu, to.gpu);
    Relist(p.by_future_gpus, rank, slot.future_gpu, to.future_gpu);
    Relist(p.by_shared_gpus, rank, slot.shared_gpu, to.shared_gpu);
    Relist(p.by_free_cpu[has_gpus], rank, slot.cpu, to.cpu);
  }
  const std::vector<Pool>& pools() const { return pools_; }
  // NodeId by rank.
  std::vector<int> by_rank;

 private:
  static void Relist(std::vector<RankBitmap>& buckets, int rank, int& from, int to) {
    if (from == to) return;
    if (from >= 0) buckets[from].Remove(rank);
    if (to >= 0) buckets[to].Add(rank);
    from = to;
  }

  std::vector<Pool> pools_;
};

}  // namespace swell::sched
