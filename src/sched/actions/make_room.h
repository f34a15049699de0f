// ForWaiters: a victim search for each waiting job, shared by the actions that stop or move other
// work.
// - Threads: none; the scheduler's thread.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sched/cycle/action.h"
#include "sched/cycle/context.h"
#include "sched/queues/queue_order.h"
#include "sched/victims/victims.h"

namespace swell::sched {

struct VictimSearchRequest {
  SearcherKey searcher;    // but its action
  bool contested = false;  // the place that is found may be another's yet: see consolidate.cc
  VictimPolicy policy;
  // In whose name victims of other queues are stopped; null: the searching action's.
  const Action* from_others = nullptr;
  bool explains = true;  // why it finds nothing becomes part of the job's waiting reason
};

// kSurplus: only members beyond their gangs' minimum.
enum class Victims { kAny, kSurplus };

enum class SearchOutcome { kStarted, kDeferred, kNothing, kOutOfBudget };

// Searches victims for the job. When there are some, evicts them for the action and promises the
// job their room.
SearchOutcome TryEvictFor(CycleContext& context,
                          const Action& action,
                          const WaitingJob& job,
                          const VictimSearchRequest& request);

// Which waiting jobs an action tries to help. Both answer alike for all jobs of one line.
struct WaiterFilter {
  // Whether the action may help the group at all. Null: it may help every group.
  std::function<bool(GroupId)> eligible = {};
  // Whether an attempt can find room for the job as things are, before any job is helped. Null: it
  // can for every job.
  std::function<bool(const WaitingJob&)> feasible = {};
};

// Calls `attempt` for each job that passes the filter and is not deferred, with what the job lacks:
// its minimum, else one more member. A job that was helped is tried again, until the search budget
// is spent. When a job of a line gets nothing, the rest of its line is passed over until a job has
// been helped. While no job has been helped, the pass ends with the last feasible one: in a long
// queue there are few.
void ForWaiters(CycleContext& context,
                const WaiterFilter& filter,
                const std::function<SearchOutcome(const WaitingJob&)>& attempt);

// The same for the deferred jobs alone.
void ForDeferred(CycleContext& context,
                 const std::function<SearchOutcome(const WaitingJob&)>& attempt);

// Whether `feasible` holds for the least that some group may start with: what each job of a line
// needs, or one pod of a job that stands alone. An action asks this before it lines up all waiting
// jobs: in a long queue the answer is mostly no.
bool AnyWaits(
    CycleContext& context,
    const std::function<bool(GroupId, const QueueAmounts& amounts, int64_t gpu_ppm)>& feasible);

// The setting of the nearest queue, from this one up, that has one.
Duration MinRuntime(const State& state, QueueId queue, std::optional<Duration> QueueInfo::*setting);
// Whether anything in the group's queue has a lower priority and may be stopped.
bool AnyBelow(const State& state, const GroupState& group);
std::vector<QueueId> AllQueues(const State& state, QueueId but);

}  // namespace swell::sched
