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

// What is not lent of a quota. One without bounds is whatever others leave, so nothing of it is
// kept.
int64_t KeptOf(const QueueLimits& limits, double unit) {
  if (limits.quota < 0 || limits.lending_limit < 0) return 0;
  return Scaled(std::max(0.0, limits.quota - limits.lending_limit), unit);
}

// Counts what is taken of each pool while waiting groups choose theirs.
class HomeChooser {
 public:
  explicit HomeChooser(State& state)
      : state_(state),
        firm_(state.pools.size()),
        held_(state.pools.size()),
        claimed_(state.queues.size(), std::vector<QueueAmounts>(state.pools.size())) {
    for (const QueueState& queue : state.queues) {
      if (!queue.children.empty()) continue;
      for (size_t p = 0; p < queue.pools.size(); ++p) {
        const QueuePool& own = queue.pools[p];
        for (int r = 0; r < kQueueResources; ++r) {
          held_[p][r] += own.used[r];
          firm_[p][r] += own.quota[r] < 0 ? own.used[r] : std::min(own.used[r], own.quota[r]);
        }
      }
    }
  }

  int Choose(GroupId id) {
    const GroupState& group = state_.groups[id];
    const QueueAmounts need = NeedOf(group);
    int home = Where(group);
    if (home == kNone) home = First(group, [&](int p) { return HasQuota(group, need, p); });
    if (home == kNone) home = First(group, [&](int p) { return Fits(need, held_[p], p); });
    if (home == kNone) home = First(group, [](int) { return true; });
    if (home == kNone) return kNone;
    state_.ForQueues(group.queue, [&](QueueState& queue) {
      Add(claimed_[static_cast<size_t>(&queue - state_.queues.data())][home], need);
    });
    Add(firm_[home], need);
    Add(held_[home], need);
    return home;
  }

 private:
  static void Add(QueueAmounts& to, const QueueAmounts& more) {
    for (int r = 0; r < kQueueResources; ++r) to[r] += more[r];
  }
  // What the members need that the group cannot run without.
  QueueAmounts NeedOf(const GroupState& group) const {
    QueueAmounts need{};
    std::vector<int32_t> missing;
    for (const SetState& set : group.sets) missing.push_back(set.Minimum() - set.holding);
    for (PodId member : group.members) {
      const PodState& pod = state_.pods[member];
      if (pod.Waits() && missing[pod.set]-- > 0) Add(need, pod.charge);
    }
    return need;
  }
  // The pool in which members are already, or are promised a place.
  int Where(const GroupState& group) const {
    int promised = kNone;
    for (PodId member : group.members) {
      const PodState& pod = state_.pods[member];
      if (pod.Holds()) return state_.nodes[pod.node].pool;
      if (pod.promise != kNone && promised == kNone) promised = state_.nodes[pod.promise].pool;
    }
    return promised;
  }
  template <class Fn>
  int First(const GroupState& group, Fn&& takes) const {
    for (int pool : state_.queues[group.queue].pool_order) {
      if (std::count(state_.pool_facts.live.begin(), state_.pool_facts.live.end(), pool) == 0)
        continue;
      bool open = true;
      state_.ForQueues(group.queue, [&](QueueState& queue) { open &= !queue.pools[pool].closed; });
      if (open && Suits(group, pool) && takes(pool)) return pool;
    }
    return kNone;
  }
  bool Suits(const GroupState& group, int pool) const {
    return std::all_of(group.members.begin(), group.members.end(), [&](PodId member) {
      const PodState& pod = state_.pods[member];
      return !pod.Waits() || state_.SuitsPool(pod.shape, pool);
    });
  }
  bool Fits(const QueueAmounts& need, const QueueAmounts& taken, int pool) const {
    for (int r = 0; r < kQueueResources; ++r) {
      if (need[r] > 0 && taken[r] + need[r] > state_.pool_facts.totals[pool][r]) return false;
    }
    return true;
  }
  // Whether the group is due that much of the pool: its queues' quotas and the claims of others
  // within theirs leave it.
  bool HasQuota(const GroupState& group, const QueueAmounts& need, int pool) const {
    bool has = Fits(need, firm_[pool], pool);
    state_.ForQueues(group.queue, [&](QueueState& queue) {
      const auto id = static_cast<size_t>(&queue - state_.queues.data());
      for (int r = 0; r < kQueueResources; ++r) {
        const int64_t quota = queue.pools[pool].quota[r];
        const int64_t taken = queue.pools[pool].used[r] + claimed_[id][pool][r];
        if (need[r] > 0 && quota >= 0 && taken + need[r] > quota) has = false;
      }
    });
    return has;
  }

  State& state_;
  std::vector<QueueAmounts> firm_;  // by pool: held or claimed, less what is beyond quotas
  std::vector<QueueAmounts> held_;  // by pool: held or claimed
  std::vector<std::vector<QueueAmounts>> claimed_;  // by queue and pool, by groups before
};

}  // namespace

// Room aside, readiness too: a node that comes back makes no new pool.
bool State::SuitsPool(ShapeId shape_id, int pool) {
  Shape& shape = shapes[shape_id];
  if (shape.pools_epoch != versions.pools) {
    shape.suits.assign(pools.size(), kUnknownSuit);
    shape.pools_epoch = versions.pools;
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

int State::HomePool(const GroupState& group, ShapeId shape) {
  if (pool_facts.live.size() == 1) return pool_facts.live.front();
  if (group.home != kNone) return group.home;
  for (int pool : queues[group.queue].pool_order) {
    if (SuitsPool(shape, pool)) return pool;
  }
  return pool_facts.live.front();
}

int State::PoolOf(GroupId id) {
  if (pool_facts.live.size() == 1) return pool_facts.live.front();
  const GroupState& group = groups[id];
  int home = kNone;
  for (PodId member : group.members) {
    const PodState& pod = pods[member];
    if (pod.Holds()) return nodes[pod.node].pool;
    if (home == kNone && pod.phase == PodPhase::kPending && !pod.gated) {
      home = HomePool(group, pod.shape);
    }
  }
  return home == kNone ? pool_facts.live.front() : home;
}

std::vector<int> State::PoolsFor(GroupId id) {
  if (counts.known_queues == 0 || pool_facts.live.size() == 1) return {kNone};
  const GroupState& group = groups[id];
  for (PodId member : group.members) {
    if (pods[member].Holds()) return {nodes[pods[member].node].pool};
  }
  std::vector<int> live;
  for (int pool : queues[group.queue].pool_order) {
    if (std::count(pool_facts.live.begin(), pool_facts.live.end(), pool) > 0) live.push_back(pool);
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
  queue.one_share = queue.known && info.pools.empty() && pools.size() > 1;
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
      queue.pools[p].kept[r] = KeptOf(*limits[r], kUnits[r]);
    }
    queue.pools[p].closed = queue.pools[p].limit == QueueAmounts{};
  }
  queue.user_gpu_limit = Scaled(info.user_gpu_limit, static_cast<double>(kPpm));
  queue.whole_quota = queue.pools.back().quota;
  queue.whole_limit = queue.pools.back().limit;
  queue.whole_kept = queue.pools.back().kept;
  versions.queues_dirty = true;
}

void State::SpreadShare(QueueState& queue) {
  const auto left = [](int64_t whole, int64_t elsewhere) {
    return whole < 0 ? kUnlimited : std::max<int64_t>(0, whole - elsewhere);
  };
  for (int r = 0; r < kQueueResources; ++r) {
    int64_t used = 0;
    for (const QueuePool& pool : queue.pools) used += pool.used[r];
    for (QueuePool& pool : queue.pools) {
      pool.quota[r] = left(queue.whole_quota[r], used - pool.used[r]);
      pool.limit[r] = left(queue.whole_limit[r], used - pool.used[r]);
    }
  }
}

void State::ChooseHomes() {
  if (counts.known_queues == 0 || pool_facts.live.size() == 1) return;
  lists.waiting.Settle(*this);
  HomeChooser chooser(*this);
  for (GroupId id : lists.waiting.InOrder(*this)) {
    GroupState& group = groups[id];
    const int home = chooser.Choose(id);
    if (home == group.home) continue;
    const std::vector<PodId>& members = group.members;
    for (PodId pod : members) {
      if (pods[pod].phase == PodPhase::kPending) CountQueue(pod, -1);
    }
    group.home = home;
    lists.waiting.Touch(id);
    for (PodId pod : members) {
      if (pods[pod].phase == PodPhase::kPending) CountQueue(pod, +1);
    }
  }
}

void State::ForgetHomes() {
  for (GroupState& group : groups) group.home = kNone;
  lists.waiting.TouchAll();
}

void State::SumPools() {
  if (pool_facts.totals_version != versions.nodes || pool_facts.open.size() != pools.size()) {
    pool_facts.totals_version = versions.nodes;
    SumOpenNodes();
  }
  pool_facts.totals = pool_facts.open;
  for (NodeId id : pool_facts.closed) AddHeld(nodes[id], pool_facts.totals[nodes[id].pool]);
}

// Adds what pods hold of a node and will hold.
void State::AddHeld(const NodeState& node, QueueAmounts& total) const {
  for (const Device& device : node.devices) {
    total[kQueueGpu] += device.used_ppm - device.releasing_ppm;
  }
  for (size_t r = 0; r < node.ext_used.size(); ++r) {
    total[kQueueGpu] += resource_gpus[r] * (node.ext_used[r] - node.ext_releasing[r]) * kPpm;
  }
  total[kQueueCpu] += node.used[kCpu] - node.releasing[kCpu];
  total[kQueueMemory] += node.used[kMemory] - node.releasing[kMemory];
}

void State::SumOpenNodes() {
  pool_facts.open.assign(pools.size(), QueueAmounts{});
  pool_facts.closed.clear();
  for (NodeId id : index.by_rank) {
    const NodeState& node = nodes[id];
    if (!node.info.ready || node.info.unschedulable) {
      pool_facts.closed.push_back(id);
      continue;
    }
    QueueAmounts& total = pool_facts.open[node.pool];
    total[kQueueGpu] += node.allocatable[kGpu] * kPpm;
    for (size_t r = 0; r < node.ext_allocatable.size(); ++r) {
      total[kQueueGpu] += resource_gpus[r] * node.ext_allocatable[r] * kPpm;
    }
    total[kQueueCpu] += node.allocatable[kCpu];
    total[kQueueMemory] += node.allocatable[kMemory];
  }
}

void State::ChargePods(int sign) {
  for (size_t pod = 0; pod < pods.size(); ++pod) {
    if (!pods[pod].key.empty()) CountQueue(static_cast<PodId>(pod), sign);
  }
}

void State::ChangePools(const std::function<void()>& change) {
  ChargePods(-1);
  ForgetHomes();
  change();
  for (NodeState& node : nodes) node.pool = static_cast<int>(pools.size()) - 1;
  for (size_t id = 0; id < queues.size(); ++id) ReadQueueLimits(static_cast<QueueId>(id));
  pool_facts.filters.assign(pools.size(), NodeFilter{});
  pool_facts.live = {static_cast<int>(pools.size()) - 1};
  ++versions.pools;
  pool_facts.open.clear();
  ChargePods(+1);
  versions.ranks_dirty = true;
  ++versions.model;
}

void State::AssignPools(bool charges_changed) {
  const std::vector<int> live_before = pool_facts.live;
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
  ++versions.pools;
  pool_facts.live.clear();
  for (size_t p = 0; p < pools.size(); ++p) {
    pool_facts.filters[p] = NodeFilter{};
    if (sizes[p] == 0) continue;
    pool_facts.live.push_back(static_cast<int>(p));
    pool_facts.filters[p].pool = static_cast<int>(p);
  }
  if (pool_facts.live.empty()) pool_facts.live = {static_cast<int>(pools.size()) - 1};
  ForgetHomes();
  if (pool_facts.live.size() > 1) {
    for (int p : pool_facts.live) pool_facts.filters[p].nodes.resize(nodes.size());
    for (NodeId id : index.by_rank) pool_facts.filters[nodes[id].pool].nodes[id] = 1;
  }
  if (!charges_changed && pool_facts.live.size() == 1 && pool_facts.live == live_before) return;
  for (size_t pod = 0; pod < pods.size(); ++pod) {
    if (pods[pod].key.empty() || pods[pod].phase != PodPhase::kPending) continue;
    if (pods[pod].promise != kNone) continue;
    CountQueue(static_cast<PodId>(pod), -1);
    CountQueue(static_cast<PodId>(pod), +1);
  }
}

}  // namespace swell::sched
