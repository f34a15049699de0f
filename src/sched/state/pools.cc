// State's pools: which node is in which, which a queue's work belongs to, and its limits there.
#include "base/check.h"
#include "sched/state/state.h"

namespace swell::sched {
namespace {

bool Selects(const PoolInfo& pool, const NodeState& node) {
  return std::all_of(pool.node_selector.begin(), pool.node_selector.end(), [&](const auto& want) {
    auto it = node.info.labels.find(want.first);
    return it != node.info.labels.end() && it->second == want.second;
  });
}

int64_t Scaled(double amount, double unit) {
  if (amount < 0) return kUnlimited;
  return static_cast<int64_t>(std::min(amount * unit + 0.5, 9.0e18));
}

}  // namespace

// Room aside, readiness too: a node that comes back makes no new pool.
bool State::SuitsPool(ShapeId shape_id, int pool) {
  Shape& shape = shapes[shape_id];
  if (shape.pools_epoch != pools_epoch) {
    shape.suits.assign(pools.size(), kUnknownSuit);
    shape.pools_epoch = pools_epoch;
  }
  int8_t& suits = shape.suits[pool];
  if (suits != kUnknownSuit) return suits != 0;
  suits = 0;
  for (NodeId id : index.by_rank) {
    const NodeState& node = nodes[id];
    if (node.pool != pool) continue;
    const Unfit unfit = VerdictOf(shape_id, id).unfit;
    if (unfit != Unfit::kNone && unfit != Unfit::kNotReady && unfit != Unfit::kUnschedulable) {
      continue;
    }
    bool large = true;
    for (int r = 0; r < kCoreCount; ++r) large &= shape.core[r] <= node.allocatable[r];
    if (!large) continue;
    suits = 1;
    break;
  }
  return suits != 0;
}

int State::HomePool(QueueId queue, ShapeId shape) {
  if (live_pools.size() == 1) return live_pools.front();
  for (int pool : queues[queue].pool_order) {
    if (SuitsPool(shape, pool)) return pool;
  }
  return live_pools.front();
}

int State::PoolOf(GroupId id) {
  if (live_pools.size() == 1) return live_pools.front();
  const GroupState& group = groups[id];
  int home = kNone;
  for (PodId member : group.members) {
    const PodState& pod = pods[member];
    if (pod.Holds()) return nodes[pod.node].pool;
    if (home == kNone && pod.phase == PodPhase::kPending && !pod.gated) {
      home = HomePool(group.queue, pod.shape);
    }
  }
  return home == kNone ? live_pools.front() : home;
}

std::vector<int> State::PoolsFor(GroupId id) {
  if (known_queues == 0 || live_pools.size() == 1) return {kNone};
  const GroupState& group = groups[id];
  for (PodId member : group.members) {
    if (pods[member].Holds()) return {nodes[pods[member].node].pool};
  }
  std::vector<int> live;
  for (int pool : queues[group.queue].pool_order) {
    if (std::count(live_pools.begin(), live_pools.end(), pool) > 0) live.push_back(pool);
  }
  return live;
}

void State::ReadQueueLimits(QueueId id) {
  QueueState& queue = queues[id];
  const QueueInfo& info = queue.info;
  std::vector<QueuePool> before(pools.size());
  before.swap(queue.pools);
  for (size_t p = 0; p < pools.size() && p < before.size(); ++p) {
    queue.pools[p].past = before[p].past;
  }
  queue.pool_order.clear();
  for (const QueuePoolInfo& listed : info.pools) {
    for (size_t p = 0; p + 1 < pools.size(); ++p) {
      if (pools[p].name == listed.pool) queue.pool_order.push_back(static_cast<int>(p));
    }
  }
  for (size_t p = 0; p < pools.size(); ++p) {
    const int pool = static_cast<int>(p);
    const bool rest = p + 1 == pools.size();
    auto& order = queue.pool_order;
    if (std::count(order.begin(), order.end(), pool) == 0) order.push_back(pool);
    if (!queue.known) continue;
    const QueueLimits none{.quota = 0, .limit = 0};
    const QueueLimits* limits[] = {&none, &none, &none};
    auto listed = std::find_if(info.pools.begin(), info.pools.end(),
                               [&](const auto& it) { return !rest && it.pool == pools[p].name; });
    if (listed != info.pools.end()) {
      limits[0] = &listed->gpu, limits[1] = &listed->cpu, limits[2] = &listed->memory;
    } else if (info.pools.empty() || rest || pools[p].name == "default") {
      limits[0] = &info.gpu, limits[1] = &info.cpu, limits[2] = &info.memory;
    }
    constexpr double kUnits[] = {static_cast<double>(kPpm), 1000, 1};
    for (int r = 0; r < kQueueResources; ++r) {
      queue.pools[p].quota[r] = Scaled(limits[r]->quota, kUnits[r]);
      queue.pools[p].limit[r] = Scaled(limits[r]->limit, kUnits[r]);
      queue.pools[p].weight[r] = std::max(0.0, limits[r]->weight);
    }
  }
}

void State::SumPools() {
  if (totals_version == node_versions && pool_totals.size() == pools.size()) return;
  totals_version = node_versions;
  pool_totals.assign(pools.size(), QueueAmounts{});
  for (NodeId id : index.by_rank) {
    const NodeState& node = nodes[id];
    QueueAmounts& total = pool_totals[node.pool];
    total[kQueueGpu] += node.gpu_count * kPpm;
    for (size_t r = 0; r < node.ext_allocatable.size(); ++r) {
      total[kQueueGpu] += resource_gpus[r] * node.ext_allocatable[r] * kPpm;
    }
    total[kQueueCpu] += node.allocatable[kCpu];
    total[kQueueMemory] += node.allocatable[kMemory];
  }
}

void State::Recharge(bool add) {
  for (size_t pod = 0; pod < pods.size(); ++pod) {
    if (!pods[pod].key.empty()) CountQueue(static_cast<PodId>(pod), add ? 1 : -1);
  }
}

void State::ChangePools(const std::function<void()>& change) {
  Recharge(false);
  change();
  for (NodeState& node : nodes) node.pool = static_cast<int>(pools.size()) - 1;
  for (size_t id = 0; id < queues.size(); ++id) ReadQueueLimits(static_cast<QueueId>(id));
  pool_filters.assign(pools.size(), NodeFilter{});
  live_pools = {static_cast<int>(pools.size()) - 1};
  ++pools_epoch;
  pool_totals.clear();
  Recharge(true);
  ranks_dirty = true;
  ++version;
}

void State::AssignPools(bool charges_changed) {
  const std::vector<int> live_before = live_pools;
  std::vector<int> sizes(pools.size(), 0);
  for (NodeId id : index.by_rank) {
    NodeState& node = nodes[id];
    int pool = static_cast<int>(pools.size()) - 1;
    for (size_t p = 0; p + 1 < pools.size(); ++p) {
      if (!Selects(pools[p], node)) continue;
      pool = static_cast<int>(p);
      break;
    }
    ++sizes[pool];
    if (node.pool == pool) continue;
    std::vector<PodId> here = node.pods;
    for (PodId pod : node.promises) {
      if (pods[pod].node != id) here.push_back(pod);
    }
    for (PodId pod : here) CountQueue(pod, -1);
    node.pool = pool;
    for (PodId pod : here) CountQueue(pod, +1);
  }
  ++pools_epoch;
  live_pools.clear();
  for (size_t p = 0; p < pools.size(); ++p) {
    pool_filters[p] = NodeFilter{};
    if (sizes[p] == 0) continue;
    live_pools.push_back(static_cast<int>(p));
    pool_filters[p].pool = static_cast<int>(p);
  }
  if (live_pools.empty()) live_pools = {static_cast<int>(pools.size()) - 1};
  if (live_pools.size() > 1) {
    for (int p : live_pools) pool_filters[p].nodes.resize(nodes.size());
    for (NodeId id : index.by_rank) pool_filters[nodes[id].pool].nodes[id] = 1;
  }
  if (!charges_changed && live_pools.size() == 1 && live_pools == live_before) return;
  for (size_t pod = 0; pod < pods.size(); ++pod) {
    if (pods[pod].key.empty() || pods[pod].phase != PodPhase::kPending) continue;
    if (pods[pod].promise != kNone) continue;
    CountQueue(static_cast<PodId>(pod), -1);
    CountQueue(static_cast<PodId>(pod), +1);
  }
}

}  // namespace swell::sched
