#include "sched/actions/make_room.h"

#include <algorithm>
#include <set>
#include <utility>

#include "sched/actions/decide.h"
#include "sched/placement/gang.h"
#include "sched/placement/topology.h"
#include "sched/state/statement.h"

namespace swell::sched {
namespace {

SearchKey KeyOf(const State& state, const SearcherKey& searcher, const WaitingJob& job) {
  const GroupState& group = state.groups[job.group];
  SearchKey key{.searcher = searcher,
                .preemptible = group.preemptible,
                .group = HasTopology(group) || job.surplus ? job.group : kNone,
                .user = state.queues[group.queue].user_gpu_limit < 0 ? kNone : group.user};
  for (PodId pod : job.pods) {
    key.shapes.push_back(state.pods[pod].shape);
    // Others' inter-pod terms tell pods of one shape apart by their labels.
    if (!state.terms.empty()) key.labels.push_back(state.pods[pod].labels);
  }
  return key;
}

// What is free, on all nodes of the pool together.
const FreeRoom& FreeInPieces(CycleContext& context, int pool) {
  const State& state = context.state;
  FreeRoom& room = context.searches.free_rooms[pool];
  if (room.as_of == state.cycle.touched.size() + 1) return room;
  room = {.as_of = state.cycle.touched.size() + 1};
  for (NodeId id : state.index.by_rank) {
    const NodeState& node = state.nodes[id];
    if (pool != kNone && node.pool != pool) continue;
    for (int r = 0; r < kGpu; ++r) {
      room.core[r] += node.allocatable[r] - node.used[r] + node.releasing[r] - node.promised[r];
    }
  }
  return room;
}

// Whether what is free in pieces adds up to what the job needs.
bool EnoughInPieces(CycleContext& context, const WaitingJob& job, int pool) {
  CoreAmounts asked{};
  if (GpuPpmOf(context.state, job.pods) > context.state.FreeGpuPpm(pool)) return false;
  for (PodId pod : job.pods) {
    const Shape& shape = context.state.ShapeOf(pod);
    for (int r = 0; r < kGpu; ++r) asked[r] += shape.core[r];
  }
  const CoreAmounts& free = FreeInPieces(context, pool).core;
  return std::equal(asked.begin(), asked.end(), free.begin(), std::less_equal<>());
}

// The jobs that wait, each with what it lacks: its minimum, else one more member.
class Waiters {
 public:
  Waiters(CycleContext& context, const WaiterFilter& filter)
      : context_(context),
        filter_(filter),
        turns_(context.state, context.shares, context.promised_first) {
    context.state.lists.waiting.Settle(context.state);
  }
  // All eligible ones but the deferred.
  void PushAll() {
    const State& state = context_.state;
    for (GroupId id : state.lists.waiting.alone()) {
      if (state.lists.startable[id] > 0 && !context_.deferred.contains(id) && IsEligible(id)) {
        Push(id);
      }
    }
    for (const WaitingLine& line : state.lists.waiting.lines()) {
      if (!line.jobs.empty() && IsEligible(line.jobs.front())) PushLine(line);
    }
  }
  void Push(GroupId id) {
    State& state = context_.state;
    if (!Schedulable(state, state.groups[id])) return;
    Needed needed = NeededPods(state, id);
    const bool surplus = needed.met;
    if (surplus) {
      needed.pods = ElasticPods(state, id);
      if (needed.pods.size() > 1) needed.pods.resize(1);
    }
    if (needed.pods.empty() || !MayPreempt(state, id, needed.pods)) return;
    const QueueAmounts need = NeedOf(state, needed.pods);
    WaitingJob job{id, std::move(needed.pods), need, surplus};
    if (IsFeasible(job)) ++feasible_;
    turns_.Push(std::move(job));
  }
  bool Empty() const { return turns_.Empty(); }
  bool AnyFeasible() const { return feasible_ > 0; }
  WaitingJob Pop() {
    WaitingJob job = turns_.Pop();
    if (!job.more_alike && IsFeasible(job)) --feasible_;
    if (job.pods.empty()) job.pods = NeededPods(context_.state, job.group).pods;
    return job;
  }
  // It got nothing, and neither would those of its line: equal searches fail alike.
  void SetAside(const WaitingJob& job) {
    if (!job.more_alike) return;
    if (IsFeasible(job)) --feasible_;
    turns_.SetAside();
    const auto said = context_.searches.said.find(job.group);
    if (said == context_.searches.said.end()) return;
    const uint64_t line = context_.state.lists.waiting.LineOf(job.group)->number;
    context_.searches.said_of_line[line] = said->second;
  }
  // The group was helped: it may lack more, and other jobs may have lost something.
  void PushAgain(GroupId id) {
    turns_.Reorder();
    Push(id);
  }

 private:
  bool IsEligible(GroupId id) const { return !filter_.eligible || filter_.eligible(id); }
  bool IsFeasible(const WaitingJob& job) const {
    return !filter_.feasible || filter_.feasible(job);
  }
  void PushLine(const WaitingLine& line) {
    const State& state = context_.state;
    const WaitingJob job{.group = line.jobs.front(), .need = line.need.amounts};
    if (!line.need.complete || !line.need.may_preempt) return;
    if (!Schedulable(state, state.groups[job.group])) return;
    if (turns_.PushLine(line, context_.deferred) && IsFeasible(job)) ++feasible_;
  }

  CycleContext& context_;
  const WaiterFilter& filter_;
  // Lines, and jobs that stand alone, in `turns_`; no longer exact once a job has been helped.
  int64_t feasible_ = 0;
  QueueOrder turns_;
};

// Makes a committed plan the cycle's decisions: evictions, and the room promised to the job and to
// the victims that move. If every victim must move, none of these groups moves again soon.
void DecidePlan(CycleContext& context,
                const Action& action,
                const WaitingJob& job,
                const VictimSearchRequest& request,
                std::vector<PodId> victims) {
  State& state = context.state;
  std::vector<PodId> moved;
  for (PodId pod : victims) {
    if (state.pods[pod].promise != kNone) moved.push_back(pod);
  }
  EvictionPlan others{.victims = {}, .beneficiary = job.group, .beneficiaries = job.pods};
  if (request.from_others != nullptr) {
    const QueueId own = state.groups[job.group].queue;
    const auto first = std::stable_partition(victims.begin(), victims.end(), [&](PodId pod) {
      return state.groups[state.pods[pod].group].queue == own;
    });
    others.victims.assign(first, victims.end());
    victims.erase(first, victims.end());
  }
  const EvictionPlan evictions{
      .victims = std::move(victims), .beneficiary = job.group, .beneficiaries = job.pods};
  DecideEvictions(context, action, evictions);
  if (request.from_others != nullptr && !others.victims.empty()) {
    DecideEvictions(context, *request.from_others, others);
  }
  DecideNominations(context, action, job.pods);
  DecideNominations(context, action, moved);
  if (!request.policy.must_move) return;
  std::set<GroupId> groups{job.group};
  for (PodId pod : moved) groups.insert(state.pods[pod].group);
  for (GroupId group : groups) {
    state.groups[group].moved_at = context.now;
    context.result.moved.push_back(state.groups[group].key);
  }
}

}  // namespace

SearchOutcome TryEvictFor(CycleContext& context,
                          const Action& action,
                          const WaitingJob& job,
                          const VictimSearchRequest& request) {
  State& state = context.state;
  SearcherKey searcher = request.searcher;
  searcher.action = action.Name();
  const SearchKey key = KeyOf(state, searcher, job);
  auto failed = context.searches.failed.find(key);
  if (failed != context.searches.failed.end()) {
    ++context.stats.groups_skipped;
    if (request.explains) context.searches.said[job.group] = failed->second;
    return SearchOutcome::kNothing;
  }
  if (request.policy.must_move && !EnoughInPieces(context, job, request.policy.pool)) {
    context.searches.failed[key] = "";
    return SearchOutcome::kNothing;
  }
  if (context.searches.budget <= 0) {
    context.result.more = true;
    return SearchOutcome::kOutOfBudget;
  }
  const bool whole_budget = context.searches.budget == context.settings.search_budget;
  Statement trial(state);
  VictimPlan plan = FindVictims(context, trial, job.group, job.pods, searcher, request.policy);
  if (plan.outcome != VictimPlan::Outcome::kPlan) {
    const bool spent = plan.outcome == VictimPlan::Outcome::kBudgetSpent;
    if (spent) context.result.more = true;
    // Cut short after others had their part of the budget, it deserves a try with all of it.
    if (!spent || whole_budget) context.searches.failed[key] = plan.because;
    if (request.explains) context.searches.said[job.group] = plan.because;
    return SearchOutcome::kNothing;
  }
  if (request.contested) return SearchOutcome::kDeferred;
  trial.Commit();
  DecidePlan(context, action, job, request, std::move(plan.victims));
  context.searches.failed.clear();  // what was freed beside the place may help others
  context.searches.said.erase(job.group);
  return SearchOutcome::kStarted;
}

bool AnyWaits(
    CycleContext& context,
    const std::function<bool(GroupId, const QueueAmounts& amounts, int64_t gpu_ppm)>& feasible) {
  State& state = context.state;
  state.lists.waiting.Settle(state);
  const auto& lines = state.lists.waiting.lines();
  if (std::any_of(lines.begin(), lines.end(), [&](const WaitingLine& line) {
        return !line.jobs.empty() && line.need.complete &&
               feasible(line.jobs.front(), line.need.amounts, line.need.gpu_ppm);
      })) {
    return true;
  }
  const auto& alone = state.lists.waiting.alone();
  return std::any_of(alone.begin(), alone.end(), [&](GroupId id) {
    const std::vector<PodId>& members = state.groups[id].members;
    return state.lists.startable[id] > 0 &&
           std::any_of(members.begin(), members.end(), [&](PodId pod) {
             const Shape& shape = state.ShapeOf(pod);
             return state.pods[pod].Waits() &&
                    feasible(id, state.ChargeOf(shape, kNone), GpuPpmOf(shape));
           });
  });
}

namespace {

void Serve(Waiters& waiters, const std::function<SearchOutcome(const WaitingJob&)>& attempt) {
  bool started = false;
  while (!waiters.Empty() && (started || waiters.AnyFeasible())) {
    const WaitingJob job = waiters.Pop();
    const SearchOutcome found = attempt(job);
    if (found == SearchOutcome::kOutOfBudget) return;
    if (found == SearchOutcome::kNothing) waiters.SetAside(job);
    if (found != SearchOutcome::kStarted) continue;
    started = true;
    waiters.PushAgain(job.group);
  }
}

}  // namespace

void ForWaiters(CycleContext& context,
                const WaiterFilter& filter,
                const std::function<SearchOutcome(const WaitingJob&)>& attempt) {
  Waiters waiters(context, filter);
  waiters.PushAll();
  Serve(waiters, attempt);
}

void ForDeferred(CycleContext& context,
                 const std::function<SearchOutcome(const WaitingJob&)>& attempt) {
  const WaiterFilter all;
  Waiters waiters(context, all);
  for (GroupId id : context.deferred) {
    if (context.state.lists.startable[id] > 0) waiters.Push(id);
  }
  Serve(waiters, attempt);
}

Duration MinRuntime(const State& state,
                    QueueId queue,
                    std::optional<Duration> QueueInfo::*setting) {
  for (int depth = 0; queue != kNone && depth < kQueueDepthMax; ++depth) {
    const QueueInfo& info = state.queues[queue].info;
    if (info.*setting) return *(info.*setting);
    queue = state.queues[queue].parent;
  }
  return Duration::zero();
}

bool AnyBelow(const State& state, const GroupState& group) {
  const auto& holders = state.queues[group.queue].holders_by_priority;
  return !holders.empty() && holders.begin()->first < group.priority;
}

std::vector<QueueId> AllQueues(const State& state, QueueId but) {
  std::vector<QueueId> queues;
  for (size_t id = 0; id < state.queues.size(); ++id) {
    if (static_cast<QueueId>(id) != but) queues.push_back(static_cast<QueueId>(id));
  }
  return queues;
}

}  // namespace swell::sched
