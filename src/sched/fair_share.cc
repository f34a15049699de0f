#include "sched/fair_share.h"

#include <cmath>
#include <tuple>

namespace swell::sched {
namespace {

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

QueueAmounts ClusterTotal(const State& state) {
  QueueAmounts total{};
  for (const NodeState& node : state.nodes) {
    if (!node.present) continue;
    total[kQueueGpu] += node.gpu_count * kPpm;
    for (size_t r = 0; r < node.ext_allocatable.size(); ++r) {
      total[kQueueGpu] += state.resource_gpus[r] * node.ext_allocatable[r] * kPpm;
    }
    total[kQueueCpu] += node.allocatable[kCpu];
    total[kQueueMemory] += node.allocatable[kMemory];
  }
  return total;
}

class Tree {
 public:
  explicit Tree(const State& state) : state_(state) {
    shares_.requested.resize(state.queues.size());
    shares_.fair.resize(state.queues.size());
    requestable_.resize(state.queues.size());
  }

  QueueShares Run() {
    for (const PodState& pod : state_.pods) {
      const bool counts = pod.Holds() || (pod.phase == PodPhase::kPending && !pod.gated);
      if (pod.key.empty() || pod.group == kNone || !counts) continue;
      const QueueAmounts charge = state_.ChargeOf(state_.shapes[pod.shape], pod.node);
      QueueAmounts& own = requestable_[state_.groups[pod.group].queue];
      for (int r = 0; r < kQueueResources; ++r) own[r] += charge[r];
    }
    std::vector<QueueId> roots;
    for (size_t id = 0; id < state_.queues.size(); ++id) {
      if (state_.queues[id].parent == kNone) roots.push_back(static_cast<QueueId>(id));
    }
    for (QueueId root : roots) Gather(root, 0);
    Divide(ClusterTotal(state_), roots, 0);
    return std::move(shares_);
  }

 private:
  static constexpr int kDepthMax = 64;

  // Sums up requests from the leaves; no queue asks for more than its limit.
  void Gather(QueueId id, int depth) {
    QueueAmounts& own = requestable_[id];
    shares_.requested[id] = own;
    if (depth < kDepthMax) {
      for (QueueId child : state_.queues[id].children) {
        Gather(child, depth + 1);
        for (int r = 0; r < kQueueResources; ++r) {
          own[r] += requestable_[child][r];
          shares_.requested[id][r] += shares_.requested[child][r];
        }
      }
    }
    for (int r = 0; r < kQueueResources; ++r) {
      const int64_t limit = state_.queues[id].limit[r];
      if (limit >= 0) own[r] = std::min(own[r], limit);
    }
  }

  void Divide(const QueueAmounts& total, const std::vector<QueueId>& level, int depth) {
    for (int r = 0; r < kQueueResources; ++r) {
      std::vector<ShareClaim> claims;
      for (QueueId id : level) {
        const QueueState& queue = state_.queues[id];
        const QueueLimits* limits[] = {&queue.info.gpu, &queue.info.cpu, &queue.info.memory};
        claims.push_back({queue.quota[r], requestable_[id][r], limits[r]->weight,
                          queue.info.priority, queue.info.creation, queue.name});
      }
      const std::vector<int64_t> given = DivideShares(total[r], r == kQueueGpu ? kPpm : 1, claims);
      for (size_t i = 0; i < level.size(); ++i) shares_.fair[level[i]][r] = given[i];
    }
    if (depth >= kDepthMax) return;
    for (QueueId id : level) {
      const std::vector<QueueId>& children = state_.queues[id].children;
      if (!children.empty()) Divide(shares_.fair[id], children, depth + 1);
    }
  }

  const State& state_;
  QueueShares shares_;
  std::vector<QueueAmounts> requestable_;
};

}  // namespace

std::vector<int64_t> DivideShares(int64_t total,
                                  int64_t unit,
                                  const std::vector<ShareClaim>& claims) {
  std::vector<int64_t> given(claims.size());
  std::vector<double> remainders(claims.size());
  int64_t left = total;
  for (size_t i = 0; i < claims.size(); ++i) {
    const ShareClaim& claim = claims[i];
    given[i] = claim.quota < 0 ? claim.requestable : std::min(claim.quota, claim.requestable);
    left -= given[i];
  }
  // An order that does not depend on the caller's: rounding must not either.
  std::vector<size_t> order(claims.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tuple(-claims[a].priority, claims[a].creation, std::string_view(claims[a].name)) <
           std::tuple(-claims[b].priority, claims[b].creation, std::string_view(claims[b].name));
  });
  for (size_t from = 0; from < order.size() && left > 0;) {
    size_t to = from;
    std::vector<size_t> members;
    for (; to < order.size() && claims[order[to]].priority == claims[order[from]].priority; ++to) {
      members.push_back(order[to]);
    }
    left = DivideRounds(left, unit, claims, members, given, remainders);
    from = to;
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tuple(-claims[a].priority, -remainders[a]) <
           std::tuple(-claims[b].priority, -remainders[b]);
  });
  for (size_t i : order) {
    if (left <= 0) break;
    if (claims[i].weight <= 0) continue;
    const int64_t gets = std::min({unit, left, claims[i].requestable - given[i]});
    if (gets <= 0) continue;
    given[i] += gets;
    left -= gets;
  }
  return given;
}

QueueShares ComputeQueueShares(const State& state) { return Tree(state).Run(); }

}  // namespace swell::sched
