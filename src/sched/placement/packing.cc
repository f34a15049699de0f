#include "sched/placement/packing.h"

#include <algorithm>

namespace swell::sched {
namespace {

// The pool of all the pods; kNone: not known.
int PoolOfAll(const State& state, const NodeFilter* within) {
  if (within != nullptr && within->pool != kNone) return within->pool;
  return state.pool_facts.live.size() == 1 ? state.pool_facts.live.front() : kNone;
}

// Pods with equally many whole GPUs, to which all nodes with room are equally good.
bool MayPack(const State& state, const std::vector<PodId>& pods, int pool) {
  if (pods.size() < 2 || pool == kNone || !state.terms.empty()) return false;
  if (state.pools[pool].gpu != PlacementStrategy::kPack || state.counts.soft_taints > 0) {
    return false;
  }
  const int64_t gpus = state.ShapeOf(pods.front()).core[kGpu];
  ShapeId known = kNone;
  return gpus > 0 && std::all_of(pods.begin(), pods.end(), [&](PodId pod) {
           if (state.pods[pod].hint != kNone) return false;
           if (state.pods[pod].shape == known) return true;
           known = state.pods[pod].shape;
           const Shape& shape = state.shapes[known];
           return shape.core[kGpu] == gpus && shape.extended.empty() && !shape.HasPreferences();
         });
}

bool AreAlike(const State& state, const std::vector<PodId>& pods) {
  return std::all_of(pods.begin(), pods.end(), [&](PodId pod) {
    return state.pods[pod].shape == state.pods[pods.front()].shape;
  });
}

// The free pieces of a pool: for each number of idle GPUs, the nodes that have this number.
class Pieces {
 public:
  Pieces(State& state, Tense tense, const NodeFilter* within, int pool)
      : state_(state), tense_(tense), within_(within), pool_(pool) {}

  // The node for the next of `left` pods that are like this one: the largest piece if they fill
  // it, else the smallest that holds them all. Pods that fill less than half of a whole idle node
  // go to smaller pieces, if these hold them.
  NodeId For(PodId pod, int64_t left) {
    const auto gpus = static_cast<int>(state_.ShapeOf(pod).core[kGpu]);
    const int64_t rest = left * gpus;
    int largest = Last();
    NodeId top = kNone;
    for (; largest >= gpus; --largest) {
      if ((top = FirstWith(largest, pod)) != kNone) break;
    }
    if (top == kNone || rest >= largest) return top;
    for (int size = static_cast<int>(rest); size < largest; ++size) {
      if (const NodeId node = FirstWith(size, pod); node != kNone) return node;
    }
    const bool whole = state_.nodes[top].gpu_count == largest;
    if (!whole || 2 * rest >= largest || !SmallerOnesHold(left, gpus, largest)) return top;
    for (int size = static_cast<int>(rest) - 1; size >= gpus; --size) {
      if (const NodeId node = FirstWith(size, pod); node != kNone) return node;
    }
    return top;
  }

 private:
  const std::vector<RankBitmap>& Sizes() const {
    const NodeIndex::Pool& pool = state_.index.pools()[pool_];
    return tense_ == Tense::kNow ? pool.by_idle_gpus : pool.by_future_gpus;
  }
  int Last() const { return static_cast<int>(Sizes().size()) - 1; }
  NodeId FirstWith(int size, PodId pod) {
    const RankBitmap& nodes = Sizes()[size];
    return nodes.empty() ? kNone : FirstFitting(state_, pod, nodes, tense_, within_);
  }
  bool SmallerOnesHold(int64_t left, int gpus, int largest) const {
    for (int size = gpus; size < largest && left > 0; ++size) {
      left -= int64_t{Sizes()[size].count()} * (size / gpus);
    }
    return left <= 0;
  }

  State& state_;
  const Tense tense_;
  const NodeFilter* within_;
  const int pool_;
};

void Put(Statement& trial, State& state, PodId pod, NodeId node, Tense tense) {
  const DeviceSet devices = ChooseDevices(state, state.ShapeOf(pod), state.nodes[node], tense);
  if (tense == Tense::kNow) {
    trial.Bind(pod, node, devices);
  } else {
    trial.Promise(pod, node, devices);
  }
}

}  // namespace

std::optional<bool> PlacePacked(Statement& trial,
                                State& state,
                                const std::vector<PodId>& pods,
                                Tense tense,
                                const NodeFilter* within) {
  const int pool = PoolOfAll(state, within);
  if (!MayPack(state, pods, pool)) return std::nullopt;
  const Statement::Mark mark = trial.Checkpoint();
  Pieces pieces(state, tense, within, pool);
  for (size_t i = 0; i < pods.size();) {
    const NodeId node = pieces.For(pods[i], static_cast<int64_t>(pods.size() - i));
    if (node == kNone) {
      trial.Rollback(mark);
      // Pods of different shapes may still fit in another order.
      return AreAlike(state, pods) ? std::optional(false) : std::nullopt;
    }
    do {
      state.PrefetchAt(pods, i);
      Put(trial, state, pods[i++], node, tense);
    } while (i < pods.size() && WhyNot(state, pods[i], node, tense, {}) == Lack::kNothing);
  }
  return true;
}

}  // namespace swell::sched
