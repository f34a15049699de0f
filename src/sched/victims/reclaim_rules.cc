#include "sched/victims/reclaim_rules.h"

#include <limits>

namespace swell::sched {
namespace {

std::vector<QueueId> PathToRoot(const State& state, QueueId queue) {
  std::vector<QueueId> path;
  for (int depth = 0; queue != kNone && depth < kQueueDepthMax; ++depth) {
    path.push_back(queue);
    queue = state.queues[queue].parent;
  }
  return path;
}

// For a queue that is due nothing, any use is too much.
double Utilization(int64_t used, int64_t due) {
  if (due <= 0) return used > 0 ? std::numeric_limits<double>::infinity() : 0;
  return static_cast<double>(used) / static_cast<double>(due);
}

}  // namespace

bool StaysWithinDue(const CycleContext& context,
                    QueueId queue,
                    int pool,
                    const QueueAmounts& need) {
  const QueueAmounts& used = context.state.queues[queue].pools[pool].used;
  const QueueAmounts& due = context.shares.Due(pool, queue);
  for (int r = 0; r < kQueueResources; ++r) {
    if (need[r] > 0 && used[r] + need[r] > due[r]) return false;
  }
  return true;
}

ReclaimRules::ReclaimRules(const CycleContext& context,
                           QueueId reclaimer,
                           int pool,
                           const QueueAmounts& need)
    : context_(context),
      state_(context.state),
      pool_(pool),
      need_(need),
      below_(context.state.queues.size(), {kNone, kNone}) {
  const std::vector<QueueId> own = PathToRoot(state_, reclaimer);
  for (QueueId queue : own) used_before_.emplace_back(queue, Used(queue));
  for (size_t id = 0; id < below_.size(); ++id) {
    std::vector<QueueId> theirs = PathToRoot(state_, static_cast<QueueId>(id));
    size_t common = 0;
    while (common < own.size() && common < theirs.size() &&
           own[own.size() - 1 - common] == theirs[theirs.size() - 1 - common]) {
      ++common;
    }
    if (common == own.size() || common == theirs.size()) continue;  // one is above the other
    below_[id] = {own[own.size() - 1 - common], theirs[theirs.size() - 1 - common]};
  }
}

void ReclaimRules::ReadUse(const std::vector<PodId>& pods) {
  QueueAmounts promised{};
  for (PodId id : pods) {
    const PodState& pod = state_.pods[id];
    if (pod.promise == kNone) continue;
    for (int r = 0; r < kQueueResources; ++r) promised[r] += pod.charge[r];
  }
  for (auto& [queue, used] : used_before_) {
    used = Used(queue);
    for (int r = 0; r < kQueueResources; ++r) used[r] -= promised[r];
  }
}

const QueueAmounts& ReclaimRules::Used(QueueId queue) const {
  return state_.queues[queue].pools[pool_].used;
}

const QueueAmounts& ReclaimRules::UsedBefore(QueueId queue) const {
  static constexpr QueueAmounts kNothing{};
  for (const auto& [own, used] : used_before_) {
    if (own == queue) return used;
  }
  return kNothing;
}

bool ReclaimRules::StaysWithinQuota(QueueId queue) const {
  const QueueAmounts& quota = state_.queues[queue].pools[pool_].quota;
  const QueueAmounts& used = UsedBefore(queue);
  for (int r = 0; r < kQueueResources; ++r) {
    if (need_[r] > 0 && quota[r] >= 0 && used[r] + need_[r] > quota[r]) return false;
  }
  return true;
}

bool ReclaimRules::WithinItsQuota(QueueId victim, const QueueAmounts& charge) const {
  const auto [mine, theirs] = below_[victim];
  if (theirs == kNone || StaysWithinQuota(mine)) return false;
  const QueuePool& other = state_.queues[theirs].pools[pool_];
  for (int r = 0; r < kQueueResources; ++r) {
    if (charge[r] > 0 && other.quota[r] >= 0 && other.used[r] + charge[r] > other.quota[r]) {
      return false;
    }
  }
  return true;
}

bool ReclaimRules::MayMoveOthers() const {
  return std::all_of(used_before_.begin(), used_before_.end(), [this](const auto& level) {
    return StaysWithinDue(context_, level.first, pool_, need_);
  });
}

bool ReclaimRules::IsUnder(QueueId queue, QueueId ancestor) const {
  for (int depth = 0; queue != kNone && depth < kQueueDepthMax; ++depth) {
    if (queue == ancestor) return true;
    queue = state_.queues[queue].parent;
  }
  return false;
}

QueueAmounts ReclaimRules::LostBy(QueueId queue, const Losses& losses) const {
  QueueAmounts sum{};
  for (const auto& [from, amounts] : losses.queues) {
    if (!IsUnder(from, queue)) continue;
    for (int r = 0; r < kQueueResources; ++r) sum[r] += amounts[r];
  }
  return sum;
}

std::vector<QueueId> ReclaimRules::MayLose() const {
  std::vector<QueueId> queues;
  for (size_t id = 0; id < below_.size(); ++id) {
    const QueueId theirs = below_[id].second;
    if (theirs == kNone) continue;
    const QueuePool& other = state_.queues[theirs].pools[pool_];
    const QueueAmounts& fair = context_.shares.Fair(pool_, theirs);
    bool over = false;
    for (int r = 0; r < kQueueResources; ++r) {
      over |= other.used[r] > AllocatableShare(other, fair, r);
      over |= other.quota[r] >= 0 && other.used[r] > other.quota[r];
    }
    if (over) queues.push_back(static_cast<QueueId>(id));
  }
  return queues;
}

bool ReclaimRules::Allows(QueueId victim, const Losses& losses, const QueueAmounts& more) const {
  const auto [mine, theirs] = below_[victim];
  if (theirs == kNone) return false;
  const QueuePool& other = state_.queues[theirs].pools[pool_];
  const QueueAmounts& their_due = context_.shares.Due(pool_, theirs);
  const QueueAmounts& my_due = context_.shares.Due(pool_, mine);
  const QueueAmounts lost = LostBy(theirs, losses);
  const QueueAmounts& mine_before = UsedBefore(mine);
  bool over_share = false;
  bool over_quota = false;
  for (int r = 0; r < kQueueResources; ++r) {
    const int64_t left = other.used[r] - lost[r];
    if (more[r] > 0) over_share |= left > AllocatableShare(other, their_due, r);
    if (more[r] > 0 && other.quota[r] >= 0) over_quota |= left > other.quota[r];
  }
  if (!over_share && !(over_quota && StaysWithinQuota(mine))) return false;
  for (int r = 0; r < kQueueResources; ++r) {
    // Against one who is due nothing, being due something is enough.
    if (need_[r] == 0 || (their_due[r] <= 0 && my_due[r] > 0)) continue;
    const double after = Utilization(mine_before[r] + need_[r], my_due[r]);
    if (after <= 1) continue;
    if (after >= Utilization(other.used[r] - lost[r] - more[r], their_due[r])) return false;
  }
  return true;
}

}  // namespace swell::sched
