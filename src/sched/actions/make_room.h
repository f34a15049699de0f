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
};

enum class SearchOutcome { kStarted, kDeferred, kNothing, kOutOfBudget };

// Searches victims for the job. When there are some, evicts them for the action and promises the
// job their room. `explains`: why a search found nothing becomes part of the job's waiting reason.
SearchOutcome TryEvictFor(CycleContext& context,
                          const Action& action,
                          const WaitingJob& job,
                          const VictimSearchRequest& request,
                          bool explains);

// Calls `attempt` for the waiting jobs that `may` be helped, each with what it lacks: its minimum,
// else one more member. A job that started comes again, until the search budget is spent. `might`:
// whether the attempt can be more than kNothing as things are. While no job has started, it ends
// with the last such job: in a long queue few jobs can be helped.
void ForWaiters(CycleContext& context,
                const std::function<bool(GroupId)>& may,
                const std::function<bool(const WaitingJob&)>& might,
                const std::function<SearchOutcome(const WaitingJob&)>& attempt);
// Where each of them might.
void ForWaiters(CycleContext& context,
                const std::function<bool(GroupId)>& may,
                const std::function<SearchOutcome(const WaitingJob&)>& attempt);

// Whether `might` holds for a pod that waits. An action asks this before it lines up all waiting
// jobs: in a long queue mostly none of them can be helped.
bool AnyPodWaits(const CycleContext& context, const std::function<bool(PodId)>& might);

// The setting of the nearest queue, from this one up, that has one.
Duration MinRuntime(const State& state, QueueId queue, std::optional<Duration> QueueInfo::*setting);
// Whether anything in the group's queue has a lower priority and may be stopped.
bool AnyBelow(const State& state, const GroupState& group);
std::vector<QueueId> AllQueues(const State& state, QueueId but);

}  // namespace swell::sched
