// Fair shares: what each queue is due, per resource and per level of the tree, top down.
//
// (1) Each queue gets min(quota, requestable), requestable being what it runs and waits for, up to
// its limit. If that is more than the total, they divide the total in proportion to their quotas.
// (2) What is left, less what queues keep of their quotas, goes by queue priority, high to low, in
// proportion to the over-quota weights, in whole units, and no queue gets more than it still asks
// for. Rounds continue while a round satisfies a queue. (3) What a priority's rounds leave goes one
// unit each: largest remainder, oldest, name; only then come lower priorities.
//
// - Threads: none needed; pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sched/state/state.h"

namespace swell::sched {

struct ShareClaim {
  int64_t quota = kUnlimited;  // kUnlimited: all it asks for, whatever the others get
  int64_t requestable = 0;
  int64_t kept = 0;  // of the quota: not for others, even if it is not asked for
  double weight = 1;
  int32_t priority = 100;
  WallTime creation;
  std::string name;
};

// What each claim gets of `total`; `unit` is what over-quota amounts are whole multiples of, unless
// less is asked.
std::vector<int64_t> DivideShares(int64_t total,
                                  int64_t unit,
                                  const std::vector<ShareClaim>& claims);

// What every queue is due of every pool with nodes, and what they share.
class QueueShares {
 public:
  explicit QueueShares(const State& state);

  // Running and waiting, subtree included.
  QueueAmounts Requested(int pool, QueueId queue) const;
  const QueueAmounts& Fair(int pool, QueueId queue) const { return pools_[pool].fair[queue]; }
  // What it may take back: its fair share, or its quota if that is more, as where all quotas exceed
  // the total. Otherwise a job that needs a whole quota could never start.
  const QueueAmounts& Due(int pool, QueueId queue) const { return pools_[pool].due[queue]; }
  const QueueAmounts& Total(int pool) const { return pools_[pool].total; }

 private:
  struct Pool {
    QueueAmounts total{};
    std::vector<QueueAmounts> requestable;  // up to the limits of the subtree
    std::vector<QueueAmounts> kept;         // by the queue, or by those below it together
    std::vector<QueueAmounts> fair;
    std::vector<QueueAmounts> due;
  };
  void Gather(int pool, QueueId queue, int depth);
  // `total` is the fair share of the queue above the level, `due` what that queue is due.
  void Divide(int pool,
              const QueueAmounts& total,
              const QueueAmounts& due,
              const std::vector<QueueId>& level,
              int depth);
  // What the queue keeps of its quota in the pool. Where one quota counts in all pools, what it
  // does not hold of it is kept in the first pools that have so much.
  int64_t KeptIn(int pool, QueueId id, int resource);
  // What is left of a quota or limit that counts in all pools, after the pools before.
  int64_t Left(QueueId queue, int64_t bound, int resource) const {
    return bound < 0 ? bound : std::max<int64_t>(0, bound - granted_[queue][resource]);
  }

  const State& state_;
  std::vector<Pool> pools_;
  // By queue: what it is due beyond what it holds, in the pools before, where one share counts.
  std::vector<QueueAmounts> granted_;
  // By queue: what it keeps idle in the pools before, where one share counts.
  std::vector<QueueAmounts> kept_before_;
};

// The most that a queue may hold and nobody has a claim to: its quota or fair share, whichever is
// more, up to its limit. INT64_MAX: no bound.
int64_t AllocatableShare(const QueuePool& own, const QueueAmounts& fair, int resource);

}  // namespace swell::sched
