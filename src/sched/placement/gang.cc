#include "sched/placement/gang.h"

#include "base/strings.h"
#include "sched/placement/packing.h"
#include "sched/placement/topology.h"
#include "sched/queues/lending.h"
#include "sched/state/amount_text.h"

namespace swell::sched {
namespace {

// The pool whose limits count; kNone stands for the only one with nodes.
size_t LimitsOf(const State& state, int pool) {
  return static_cast<size_t>(pool == kNone ? state.pool_facts.live.front() : pool);
}

// " in node pool a100"; nothing of nodes that are in none, and where one share counts everywhere.
std::string InPool(const State& state, const QueueState& queue, size_t pool) {
  const std::string& name = state.pools[pool].name;
  return name.empty() || queue.one_share ? "" : StrCat(" in node pool ", name);
}

// What the user of the group may hold of its project, wherever it is.
bool FitsUser(const State& state,
              const GroupState& group,
              const QueueAmounts& more,
              Tense tense,
              std::string* why) {
  const QueueState& queue = state.queues[group.queue];
  if (queue.user_gpu_limit < 0 || group.user == 0 || more[kQueueGpu] == 0) return true;
  const UserUse& use = queue.UseOf(group.user);
  int64_t used = use.used[kQueueGpu];
  if (tense == Tense::kNow) used += use.leaving[kQueueGpu];
  if (used + more[kQueueGpu] <= queue.user_gpu_limit) return true;
  if (why == nullptr) return false;
  const std::string limit =
      StrCat(AmountText(kQueueGpu, queue.user_gpu_limit), " for each user of project ", queue.name);
  const std::string asked = AmountText(kQueueGpu, more[kQueueGpu]);
  if (more[kQueueGpu] > queue.user_gpu_limit) {
    *why = StrCat(asked, " asked at once, above the limit of ", limit);
  } else {
    *why = StrCat("user ", state.users[group.user], " would exceed the limit of ", limit, ": ",
                  AmountText(kQueueGpu, used), " used, ", asked, " asked");
  }
  return false;
}

// Where the queue's work runs instead of a pool that is closed to it.
std::string SharesElsewhere(const QueueState& queue, const State& state, size_t pool) {
  const std::string& name = state.pools[pool].name;
  std::string others;
  for (const QueuePoolInfo& listed : queue.info.pools) {
    others += StrCat(others.empty() ? ", only of " : ", ", listed.pool);
  }
  return StrCat("project ", queue.name, " has no share of ",
                name.empty() ? "nodes that are in no node pool" : StrCat("node pool ", name),
                others);
}

}  // namespace

bool Schedulable(const State& state, const GroupState& group) {
  return group.known && !state.QueueUnknown(group);
}

bool FitsQueues(State& state,
                const GroupState& group,
                const std::vector<PodId>& pods,
                int pool,
                Tense tense,
                std::string* why) {
  if (state.counts.known_queues == 0) return true;
  const QueueAmounts more = NeedOf(state, pods);
  const size_t p = LimitsOf(state, pool);
  bool fits = true;
  state.ForQueues(group.queue, [&](QueueState& queue) {
    for (int r = 0; r < kQueueResources && fits; ++r) {
      const int64_t limit = queue.LimitIn(p, r);
      if (more[r] == 0 || limit < 0) continue;
      int64_t used = queue.Counted(&QueuePool::used, p, r);
      if (tense == Tense::kNow) used += queue.Counted(&QueuePool::leaving, p, r);
      if (used + more[r] <= limit) continue;
      fits = false;
      if (why == nullptr) continue;
      const std::string most = StrCat(AmountText(r, limit), InPool(state, queue, p));
      const std::string asked = StrCat(AmountText(r, more[r]), " asked");
      if (queue.pools[p].closed) {
        *why = SharesElsewhere(queue, state, p);
      } else if (more[r] > limit) {
        *why = StrCat(asked, " at once, above the limit of project ", queue.name, ", ", most);
      } else {
        *why = StrCat("project ", queue.name, " would exceed its limit of ", most, ": ",
                      AmountText(r, used), " used, ", asked);
      }
    }
  });
  return fits && FitsUser(state, group, more, tense, why) &&
         FitsQuotas(state, group, pods, pool, why) &&
         FitsLending(state, group.queue, more, p, tense == Tense::kNow, why);
}

bool WithinLimits(State& state, const GroupState& group, int pool) {
  const size_t p = LimitsOf(state, pool);
  const QueueState& own = state.queues[group.queue];
  bool within = own.user_gpu_limit < 0 || group.user == 0 ||
                own.UseOf(group.user).used[kQueueGpu] <= own.user_gpu_limit;
  state.ForQueues(group.queue, [&](QueueState& queue) {
    for (int r = 0; r < kQueueResources; ++r) {
      const int64_t limit = queue.LimitIn(p, r);
      if (limit >= 0 && queue.Counted(&QueuePool::used, p, r) > limit) within = false;
    }
  });
  return within;
}

bool FitsQuotas(State& state,
                const GroupState& group,
                const std::vector<PodId>& pods,
                int pool,
                std::string* why) {
  if (state.counts.known_queues == 0 || group.preemptible) return true;
  const QueueAmounts more = NeedOf(state, pods);
  const size_t p = LimitsOf(state, pool);
  bool fits = true;
  state.ForQueues(group.queue, [&](QueueState& queue) {
    for (int r = 0; r < kQueueResources && fits; ++r) {
      const int64_t quota = queue.QuotaIn(p, r);
      if (more[r] == 0 || quota < 0) continue;
      const int64_t used = queue.Counted(&QueuePool::used_protected, p, r);
      if (used + more[r] <= quota) continue;
      fits = false;
      if (why == nullptr) continue;
      const std::string asked = StrCat(AmountText(r, more[r]), " asked");
      *why = StrCat("non-preemptible work must fit the quota of project ", queue.name,
                    ", which is ", AmountText(r, quota), InPool(state, queue, p), ": ",
                    more[r] > quota ? StrCat(asked, " at once")
                                    : StrCat(AmountText(r, used), " used by such work, ", asked));
    }
  });
  return fits;
}

bool PlaceAll(Statement& trial,
              State& state,
              GroupId group,
              const std::vector<PodId>& pods,
              Tense tense,
              const NodeFilter* within) {
  const PlacePod place = [&](PodId pod, const NodeFilter* filter) {
    return PlaceOne(trial, state, pod, tense, filter);
  };
  if (HasTopology(state.groups[group])) {
    const PlacePods together = [&](const std::vector<PodId>& some, const NodeFilter* filter) {
      return PlacePacked(trial, state, some, tense, filter);
    };
    return PlaceInTopology(trial, state, group, pods, place, together, within);
  }
  if (const std::optional<bool> packed = PlacePacked(trial, state, pods, tense, within)) {
    return *packed;
  }
  const Statement::Mark mark = trial.Checkpoint();
  for (size_t i = 0; i < pods.size(); ++i) {
    state.PrefetchAt(pods, i);
    const PodId pod = pods[i];
    if (PlaceOne(trial, state, pod, tense, within)) continue;
    trial.Rollback(mark);
    return !state.terms.empty() && PlaceNear(trial, state, group, pods, tense, place, within);
  }
  return true;
}

}  // namespace swell::sched
