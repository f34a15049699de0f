#include "sched/queues/fair_share.h"

#include <cmath>
#include <tuple>

namespace swell::sched {
namespace {

// A queue with all of the past use still gets what no other queue asks for.
constexpr double kForgiven = 1e-6;

// One priority's rounds over what is left. Returns what stays over; `remainders` gets the part of a
// unit that rounding kept from each.
int64_t DivideRounds(int64_t left,
                     int64_t unit,
                     const std::vector<ShareClaim>& claims,
                     const std::vector<size_t>& members,
                     std::vector<int64_t>& given,
                     std::vector<double>& remainders) {
  bool satisfied = true;
  while (satisfied && left > 0) {
    satisfied = false;
    double weights = 0;
    for (size_t i : members) {
      if (given[i] < claims[i].requestable) weights += std::max(0.0, claims[i].weight);
    }
    if (weights <= 0) break;
    const int64_t round = left;
    for (size_t i : members) {
      const int64_t asked = claims[i].requestable - given[i];
      if (asked <= 0 || claims[i].weight <= 0) continue;
      const double share = static_cast<double>(round) * claims[i].weight / weights;
      int64_t gets = 0;
      if (static_cast<double>(asked) <= share) {
        gets = asked;
        remainders[i] = 0;
        satisfied = true;
      } else {
        gets = static_cast<int64_t>(std::floor(share / static_cast<double>(unit))) * unit;
        remainders[i] = share - static_cast<double>(gets);
      }
      gets = std::min(gets, left);
      given[i] += gets;
      left -= gets;
    }
  }
  return left;
}

// Rounds, and then the units that they leave, one each. `members` have one priority and are in the
// order in which equals are served. Returns what is left.
int64_t DivideAmong(int64_t left,
                    int64_t unit,
                    const std::vector<ShareClaim>& claims,
                    std::vector<size_t> members,
                    std::vector<int64_t>& given) {
  std::vector<double> remainders(claims.size());
  left = DivideRounds(left, unit, claims, members, given, remainders);
  std::stable_sort(members.begin(), members.end(),
                   [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  // Where all weights are 0, they count as equal.
  const bool weightless =
      std::none_of(members.begin(), members.end(), [&](size_t i) { return claims[i].weight > 0; });
  for (size_t i : members) {
    const int64_t gets = std::min({unit, left, claims[i].requestable - given[i]});
    if (gets <= 0 || (claims[i].weight <= 0 && !weightless)) continue;
    given[i] += gets;
    left -= gets;
  }
  return left;
}

// What each claim gets of its quota. If `total` is too little, it is divided in proportion to the
// quotas.
std::vector<int64_t> DivideQuotas(int64_t total,
                                  int64_t unit,
                                  const std::vector<ShareClaim>& claims,
                                  const std::vector<size_t>& order) {
  std::vector<ShareClaim> within = claims;
  std::vector<int64_t> given(claims.size());
  int64_t asked = 0;
  for (size_t i = 0; i < claims.size(); ++i) {
    ShareClaim& claim = within[i];
    const int64_t quota = claim.quota < 0 ? total : std::min(claim.quota, total);
    claim.requestable = std::min(quota, claim.requestable);
    claim.weight = static_cast<double>(quota);
    given[i] = claim.requestable;
    if (claim.quota >= 0) asked += claim.requestable;
  }
  if (asked <= total) return given;
  std::vector<size_t> bounded;
  for (size_t i : order) {
    if (claims[i].quota >= 0) bounded.push_back(i);
  }
  for (size_t i : bounded) given[i] = 0;
  DivideAmong(total, unit, within, std::move(bounded), given);
  return given;
}

}  // namespace

std::vector<int64_t> DivideShares(int64_t total,
                                  int64_t unit,
                                  const std::vector<ShareClaim>& claims) {
  // An order that does not depend on the caller's: rounding must not either.
  std::vector<size_t> order(claims.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tuple(-claims[a].priority, claims[a].creation, std::string_view(claims[a].name)) <
           std::tuple(-claims[b].priority, claims[b].creation, std::string_view(claims[b].name));
  });
  std::vector<int64_t> given = DivideQuotas(total, unit, claims, order);
  int64_t left = total;
  for (size_t i = 0; i < claims.size(); ++i) {
    left -= std::max(given[i], std::min(claims[i].kept, total));
  }
  for (size_t from = 0; from < order.size() && left > 0;) {
    size_t to = from;
    std::vector<size_t> members;
    for (; to < order.size() && claims[order[to]].priority == claims[order[from]].priority; ++to) {
      members.push_back(order[to]);
    }
    left = DivideAmong(left, unit, claims, std::move(members), given);
    from = to;
  }
  return given;
}

QueueShares::QueueShares(const State& state)
    : state_(state),
      pools_(state.pools.size()),
      granted_(state.queues.size()),
      kept_before_(state.queues.size()) {
  for (Pool& pool : pools_) {
    pool.requestable.resize(state.queues.size());
    pool.kept.resize(state.queues.size());
    pool.fair.resize(state.queues.size());
    pool.due.resize(state.queues.size());
  }
  for (size_t p = 0; p < pools_.size(); ++p) pools_[p].total = state.pool_facts.totals[p];
  std::vector<QueueId> roots;
  for (size_t id = 0; id < state.queues.size(); ++id) {
    if (state.queues[id].parent == kNone) roots.push_back(static_cast<QueueId>(id));
  }
  for (int pool : state.pool_facts.live) {
    for (QueueId root : roots) Gather(pool, root, 0);
    Divide(pool, pools_[pool].total, pools_[pool].total, roots, 0);
    for (size_t id = 0; id < state.queues.size(); ++id) {
      if (!state.queues[id].one_share) continue;
      const QueueAmounts& used = state.queues[id].pools[pool].used;
      for (int r = 0; r < kQueueResources; ++r) {
        granted_[id][r] += std::max<int64_t>(0, pools_[pool].fair[id][r] - used[r]);
      }
    }
  }
}

QueueAmounts QueueShares::Requested(int pool, QueueId queue) const {
  const QueuePool& own = state_.queues[queue].pools[pool];
  QueueAmounts sum = own.used;
  for (int r = 0; r < kQueueResources; ++r) sum[r] += own.pending[r];
  return sum;
}

int64_t QueueShares::KeptIn(int pool, QueueId id, int r) {
  const QueueState& queue = state_.queues[id];
  const QueuePool& own = queue.pools[pool];
  if (!queue.one_share) return own.kept[r];
  int64_t idle = queue.whole_kept[r] - queue.Counted(&QueuePool::used, pool, r);
  idle = std::min(idle - kept_before_[id][r], pools_[pool].total[r] - own.used[r]);
  if (idle <= 0) return 0;
  kept_before_[id][r] += idle;
  return own.used[r] + idle;
}

// Sums up requests from the leaves; no queue asks for more than its limit.
void QueueShares::Gather(int pool, QueueId id, int depth) {
  const QueueState& queue = state_.queues[id];
  QueueAmounts own = Requested(pool, id);
  QueueAmounts below{};
  QueueAmounts kept_below{};
  if (depth < kQueueDepthMax) {
    for (QueueId child : queue.children) {
      Gather(pool, child, depth + 1);
      const QueueAmounts requested = Requested(pool, child);
      for (int r = 0; r < kQueueResources; ++r) {
        own[r] -= requested[r];
        below[r] += pools_[pool].requestable[child][r];
        kept_below[r] += pools_[pool].kept[child][r];
      }
    }
  }
  for (int r = 0; r < kQueueResources; ++r) {
    const int64_t limit = Left(id, queue.pools[pool].limit[r], r);
    own[r] += below[r];
    if (limit >= 0) own[r] = std::min(own[r], limit);
    pools_[pool].kept[id][r] = std::max(KeptIn(pool, id, r), kept_below[r]);
  }
  pools_[pool].requestable[id] = own;
}

void QueueShares::Divide(int pool,
                         const QueueAmounts& total,
                         const QueueAmounts& due,
                         const std::vector<QueueId>& level,
                         int depth) {
  std::vector<ShareClaim> claims(level.size());
  for (int r = 0; r < kQueueResources; ++r) {
    double weights = 0;
    double usage = 0;
    for (QueueId id : level) {
      // A queue that asks for nothing does not count in the comparison.
      if (pools_[pool].requestable[id][r] <= 0) continue;
      weights += std::max(0.0, state_.queues[id].pools[pool].weight[r]);
      usage += state_.queues[id].pools[pool].past[r];
    }
    for (size_t i = 0; i < level.size(); ++i) {
      const QueueState& queue = state_.queues[level[i]];
      const QueuePool& own = queue.pools[pool];
      double weight = own.weight[r];
      if (state_.past_share > 0 && weights > 0 && usage > 0) {
        const double part = weight / weights;
        weight =
            std::max(part * kForgiven, part + state_.past_share * (part - own.past[r] / usage));
      }
      // An unlimited quota counts as all GPUs. It takes no part of CPU and memory, because the
      // projects that get the GPUs need them.
      const bool all = own.quota[r] < 0 && r == kQueueGpu;
      claims[i] = {all ? total[r] : Left(level[i], own.quota[r], r),
                   pools_[pool].requestable[level[i]][r],
                   pools_[pool].kept[level[i]][r],
                   weight,
                   queue.info.priority,
                   queue.info.creation,
                   queue.name};
    }
    const std::vector<int64_t> given = DivideShares(total[r], r == kQueueGpu ? kPpm : 1, claims);
    for (size_t i = 0; i < level.size(); ++i) {
      const int64_t quota = Left(level[i], state_.queues[level[i]].pools[pool].quota[r], r);
      const int64_t most = quota < 0 ? due[r] : std::min(quota, due[r]);
      pools_[pool].fair[level[i]][r] = given[i];
      pools_[pool].due[level[i]][r] = std::max(given[i], std::min(most, claims[i].requestable));
    }
  }
  if (depth >= kQueueDepthMax) return;
  for (QueueId id : level) {
    const std::vector<QueueId>& children = state_.queues[id].children;
    if (children.empty()) continue;
    Divide(pool, pools_[pool].fair[id], pools_[pool].due[id], children, depth + 1);
  }
}

int64_t AllocatableShare(const QueuePool& own, const QueueAmounts& fair, int resource) {
  if (own.quota[resource] < 0) {
    return own.limit[resource] < 0 ? INT64_MAX : own.limit[resource];
  }
  const int64_t due = std::max(own.quota[resource], fair[resource]);
  return own.limit[resource] < 0 ? due : std::min(due, own.limit[resource]);
}

}  // namespace swell::sched
