#include "sched/queues/lending.h"

#include <algorithm>

#include "base/strings.h"
#include "sched/state/amount_text.h"

namespace swell::sched {
namespace {

constexpr int kAllPools = -1;

// What one pool, or all together, hold and keep once the borrower has what it asks for.
class Lending {
 public:
  Lending(const State& state, QueueId borrower, const QueueAmounts& more, size_t pool)
      : state_(state), more_(more), pool_(static_cast<int>(pool)) {
    for (QueueId id = borrower; id != kNone && chain_.size() < kQueueDepthMax;) {
      chain_.push_back(id);
      id = state.queues[id].parent;
    }
  }

  // Whether each queue above the work stays within its quota of the resource. The project itself
  // must have one: what is unlimited is a quota of what others do not keep.
  bool WithinQuotas(int r) const {
    for (QueueId id : chain_) {
      const QueueState& queue = state_.queues[id];
      const int64_t quota = queue.QuotaIn(pool_, r);
      if (quota < 0 && id != chain_.front()) continue;
      if (quota < 0 || queue.Counted(&QueuePool::used, pool_, r) + more_[r] > quota) return false;
    }
    return true;
  }

  // What is neither held nor kept. `where` is a pool or kAllPools.
  int64_t Left(int where, int r, bool count_leaving) const {
    int64_t left = 0;
    for (int pool : state_.pool_facts.live) {
      if (where != kAllPools && pool != where) continue;
      left += state_.pool_facts.totals[pool][r];
      for (const QueueState& queue : state_.queues) {
        if (queue.parent != kNone) continue;
        left -= queue.pools[pool].used[r];
        if (count_leaving) left -= queue.pools[pool].leaving[r];
      }
    }
    for (size_t id = 0; id < state_.queues.size(); ++id) {
      if (state_.queues[id].parent == kNone) left -= Kept(static_cast<QueueId>(id), where, r, 0);
    }
    return left;
  }

  // The queue that keeps the most by itself.
  QueueId LargestKeeper(int where, int r) const {
    QueueId largest = kNone;
    int64_t most = 0;
    for (size_t id = 0; id < state_.queues.size(); ++id) {
      const int64_t kept = OwnKept(static_cast<QueueId>(id), where, r);
      if (kept > most) most = kept, largest = static_cast<QueueId>(id);
    }
    return largest;
  }

  // What the queue keeps of its quota and does not hold, whatever the queues below it keep.
  int64_t OwnKept(QueueId id, int where, int r) const {
    const QueueState& queue = state_.queues[id];
    if (queue.one_share) {
      if (where != kAllPools) return 0;  // it may be anywhere
      int64_t used = 0;
      for (int pool : state_.pool_facts.live) used += UsedThen(id, pool, r);
      return std::max<int64_t>(0, queue.whole_kept[r] - used);
    }
    int64_t kept = 0;
    for (int pool : state_.pool_facts.live) {
      if (where != kAllPools && pool != where) continue;
      kept += std::max<int64_t>(0, queue.pools[pool].kept[r] - UsedThen(id, pool, r));
    }
    return kept;
  }

 private:
  int64_t Kept(QueueId id, int where, int r, int depth) const {
    int64_t below = 0;
    if (depth < kQueueDepthMax) {
      for (QueueId child : state_.queues[id].children) below += Kept(child, where, r, depth + 1);
    }
    return std::max(OwnKept(id, where, r), below);
  }
  int64_t UsedThen(QueueId id, int pool, int r) const {
    const int64_t used = state_.queues[id].pools[pool].used[r];
    const bool takes = pool == pool_ && std::find(chain_.begin(), chain_.end(), id) != chain_.end();
    return takes ? used + more_[r] : used;
  }

  const State& state_;
  const QueueAmounts& more_;
  const int pool_;
  std::vector<QueueId> chain_;  // the borrower and the queues above it
};

}  // namespace

bool FitsLending(const State& state,
                 QueueId borrower,
                 const QueueAmounts& more,
                 size_t pool,
                 bool count_leaving,
                 std::string* why) {
  if (!state.counts.some_queue_keeps) return true;
  const Lending lending(state, borrower, more, pool);
  for (int r = 0; r < kQueueResources; ++r) {
    if (more[r] == 0 || lending.WithinQuotas(r)) continue;
    for (int where : {static_cast<int>(pool), kAllPools}) {
      // What a project keeps for itself in no pool in particular counts for all pools together.
      const int64_t left = lending.Left(where, r, count_leaving);
      if (more[r] <= left) continue;
      const QueueId keeper = lending.LargestKeeper(where, r);
      if (keeper == kNone) continue;  // it is room that lacks, which placing tells better
      if (why != nullptr) {
        const std::string& project = state.queues[borrower].name;
        *why = StrCat(AmountText(r, more[r]), " asked beyond the quota of ",
                      project.empty() ? "any project" : StrCat("project ", project), ", ",
                      left > 0 ? AmountText(r, left) : std::string("nothing"),
                      " can be borrowed: project ", state.queues[keeper].name, " keeps ",
                      AmountText(r, lending.OwnKept(keeper, where, r)), " of its quota for itself");
      }
      return false;
    }
  }
  return true;
}

}  // namespace swell::sched
