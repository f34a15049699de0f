// Reservations: what keeps large jobs from starving.
//
// A job that has waited long and cannot start holds the nodes on which it would start soonest. What
// comes after it may run there only if it will be out of the way: preemptible work that the job can
// stop when the rest is free, or work whose time limit ends before the last of the held nodes can
// be free. One job per pool holds nodes at a time, so nobody waits for more than one hole.
//
// The choice is made anew in every cycle from what the cluster shows: held nodes only drain, so
// they stay the nearest ones.
#include "sched/actions/reservation.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "sched/placement/gang.h"
#include "sched/queues/queue_order.h"
#include "sched/state/amount_text.h"
#include "sched/state/statement.h"

namespace swell::sched {
namespace {

// Jobs for which nodes are looked through in one cycle; they come in job order.
constexpr int kLooksMax = 64;

// When everything on the node will have ended by its own limits; nullopt: nobody knows.
std::optional<WallTime> EndOf(const State& state, const NodeState& node, WallTime now) {
  WallTime end = now;
  for (PodId id : node.pods) {
    const PodState& pod = state.pods[id];
    if (!pod.Holds()) continue;
    if (pod.max_runtime == Duration::zero()) return std::nullopt;
    const WallTime start = pod.start.unix_ns == 0 ? now : pod.start;
    end = std::max(end, start + pod.max_runtime);
  }
  return end;
}

struct Place {
  int64_t lacks = 0;  // GPUs, else milli-CPU, until one pod fits
  int rank = 0;
  NodeId node = kNone;
};

// The nearest one last: a heap's order, since mostly few are taken of many.
bool Farther(const Place& a, const Place& b) {
  return std::pair(a.lacks, a.rank) > std::pair(b.lacks, b.rank);
}

// How far each node is from taking a pod of the shape, as a heap with the nearest on top.
std::vector<Place> PlacesFor(State& state, ShapeId shape_id, int pool) {
  std::vector<Place> places;
  for (NodeId id : state.index.by_rank) {
    const NodeState& node = state.nodes[id];
    if (pool != kNone && node.pool != pool) continue;
    if (state.VerdictOf(shape_id, id).unfit != Unfit::kNone) continue;
    const Shape& shape = state.shapes[shape_id];
    bool large = true;
    for (int r = 0; r < kCoreCount; ++r) large &= shape.core[r] <= node.allocatable[r];
    if (!large) continue;
    const int64_t gpus = std::max<int64_t>(0, shape.core[kGpu] - node.idle_future);
    const int64_t cpu = node.allocatable[kCpu] - node.used[kCpu] + node.releasing[kCpu];
    const int64_t lacks =
        shape.core[kGpu] > 0 ? gpus : std::max<int64_t>(0, shape.core[kCpu] - cpu);
    places.push_back({lacks, node.rank, id});
  }
  std::make_heap(places.begin(), places.end(), Farther);
  return places;
}

// How many pods of the shape an empty node takes.
int64_t Capacity(const Shape& shape, const NodeState& node) {
  int64_t pods = INT64_MAX;
  for (int r = 0; r < kCoreCount; ++r) {
    if (shape.core[r] > 0) pods = std::min(pods, node.allocatable[r] / shape.core[r]);
  }
  return pods;
}

// Nodes on which the pods would start soonest, and when those are free.
struct Hole {
  std::vector<NodeId> nodes;  // empty: they fit nowhere, not even in an empty cluster
  WallTime free_at;           // at the latest; zero: not known
};

// Whether its project is due that much in all; else no hole is looked for.
bool MayEverBeDue(CycleContext& context, GroupId id, const QueueAmounts& need) {
  State& state = context.state;
  if (state.counts.known_queues == 0) return true;
  const QueueAmounts& due = context.shares.Due(state.PoolOf(id), state.groups[id].queue);
  return std::equal(need.begin(), need.end(), due.begin(), std::less_equal<>());
}

// Whether it is within limits, quotas and what its project is due.
bool IsDue(CycleContext& context, GroupId id, const Needed& needed, int pool) {
  State& state = context.state;
  const GroupState& group = state.groups[id];
  if (!FitsQueues(state, group, needed.pods, pool, Tense::kFuture)) return false;
  if (state.counts.known_queues == 0) return true;
  const int p = state.PoolOf(id);
  const QueueAmounts need = NeedOf(state, needed.pods);
  for (int r = 0; r < kQueueResources; ++r) {
    const int64_t used = state.queues[group.queue].pools[p].used[r];
    if (need[r] > 0 && used + need[r] > context.shares.Due(p, group.queue)[r]) return false;
  }
  return true;
}

// The same once the work of its own project is gone from the hole, which it waits for.
bool Deserves(CycleContext& context,
              GroupId id,
              const Needed& needed,
              int pool,
              const std::vector<NodeId>& hole) {
  if (IsDue(context, id, needed, pool)) return true;
  State& state = context.state;
  Statement trial(state);  // takes everything back
  for (NodeId node : hole) {
    const std::vector<PodId> here = state.nodes[node].pods;
    for (PodId pod : here) {
      const GroupId group = state.pods[pod].group;
      if (group == kNone || state.groups[group].queue != state.groups[id].queue) continue;
      if (state.pods[pod].Holds()) trial.Evict(pod);
    }
  }
  return IsDue(context, id, needed, pool);
}

Hole FindHole(State& state, WallTime now, ShapeId shape_id, int64_t pods, int pool) {
  const Shape& shape = state.shapes[shape_id];
  int64_t left = pods;
  WallTime free_at = now;
  bool known = true;
  Hole hole;
  std::vector<Place> places = PlacesFor(state, shape_id, pool);
  while (left > 0 && !places.empty()) {
    std::pop_heap(places.begin(), places.end(), Farther);
    const NodeState& node = state.nodes[places.back().node];
    hole.nodes.push_back(places.back().node);
    places.pop_back();
    left -= std::max<int64_t>(1, Capacity(shape, node));
    const std::optional<WallTime> end = EndOf(state, node, now);
    known &= end.has_value();
    if (end) free_at = std::max(free_at, *end);
  }
  if (left > 0) return {};
  if (known) hole.free_at = free_at;
  return hole;
}

// The holes of one cycle: jobs that ask for the same share what was found.
class Holes {
 public:
  explicit Holes(CycleContext& context) : context_(context) {}

  const Hole& For(const Needed& needed, int pool) {
    State& state = context_.state;
    const PodId hardest =
        *std::max_element(needed.pods.begin(), needed.pods.end(), [&](PodId a, PodId b) {
          const CoreAmounts& left = state.ShapeOf(a).core;
          const CoreAmounts& right = state.ShapeOf(b).core;
          return std::pair(left[kGpu], left[kCpu]) < std::pair(right[kGpu], right[kCpu]);
        });
    const ShapeId shape = state.pods[hardest].shape;
    const auto pods = static_cast<int64_t>(needed.pods.size());
    const std::tuple key(shape, pods, pool);
    if (auto known = found_.find(key); known != found_.end()) return known->second;
    return found_.emplace(key, FindHole(state, context_.now, shape, pods, pool)).first->second;
  }

 private:
  CycleContext& context_;
  std::map<std::tuple<ShapeId, int64_t, int>, Hole> found_;
};

void Hold(State& state, GroupId id, const Hole& hole) {
  for (NodeId node : hole.nodes) {
    state.nodes[node].held_for = id;
    state.nodes[node].held_until = hole.free_at;
    state.held_nodes.push_back(node);
  }
}

// Jobs that have waited long, of one line, or one that stands alone.
struct Patient {
  GroupId next = kNone;
  const WaitingLine* line = nullptr;  // null: the job stands alone
  size_t at = 0;                      // of `next` in its line
  int pool = kNone;                   // where `next` would start
  bool undeserving = false;           // known of the jobs before
};

bool FitsNow(State& state, GroupId id, const Needed& needed, int pool) {
  Statement trial(state);  // takes everything back
  return PlaceAll(trial, state, id, needed.pods, Tense::kNow, state.FilterOf(pool));
}

// Looks through the jobs in job order, those of a line as one.
class Reservations {
 public:
  Reservations(CycleContext& context, Duration patience)
      : context_(context), state_(context.state), patience_(patience), holes_(context) {}

  void Make() {
    state_.lists.waiting.Settle(state_);
    for (const WaitingLine& line : state_.lists.waiting.lines()) AddLine(line);
    for (GroupId id : state_.lists.waiting.alone()) AddAlone(id);
    const auto later = [this](const Patient& a, const Patient& b) {
      return state_.lists.waiting.Before(state_, b.next, a.next);
    };
    std::make_heap(patient_.begin(), patient_.end(), later);
    while (!patient_.empty() && last_ == kNone && !AllTaken()) {
      std::pop_heap(patient_.begin(), patient_.end(), later);
      if (!Look(patient_.back())) {
        ineligible_.push_back(patient_.back());
        patient_.pop_back();
      } else if (!Advance(patient_.back())) {
        patient_.pop_back();
      } else {
        std::push_heap(patient_.begin(), patient_.end(), later);
      }
    }
    WakeForTheImpatient();
  }

 private:
  bool HasPatience(GroupId id) const {
    return context_.now - state_.groups[id].creation >= patience_;
  }

  void AddLine(const WaitingLine& line) {
    const JobQueue& jobs = line.jobs;
    if (jobs.empty() || !Schedulable(state_, state_.groups[jobs.front()])) return;
    // Jobs of one line have one priority: the oldest come first.
    if (HasPatience(jobs.front())) {
      patient_.push_back({.next = jobs.front(), .line = &line});
    } else {
      impatient_.push_back(jobs.front());
    }
  }

  void AddAlone(GroupId id) {
    if (!Schedulable(state_, state_.groups[id])) return;
    if (HasPatience(id)) {
      patient_.push_back({.next = id});
    } else {
      impatient_.push_back(id);
    }
  }

  // False: no other job of its line has waited long.
  bool Advance(Patient& patient) {
    if (patient.line == nullptr) return false;
    const JobQueue& jobs = patient.line->jobs;
    if (++patient.at == jobs.size()) return false;
    patient.next = jobs[patient.at];
    if (HasPatience(patient.next)) return true;
    impatient_.push_back(patient.next);
    return false;
  }

  bool AllTaken() const { return taken_.size() == state_.pool_facts.live.size(); }

  bool MayHaveHole(const Patient& patient) const {
    if (patient.line != nullptr) {
      const LineNeed& need = patient.line->need;
      return need.complete && MayEverBeDue(context_, patient.next, need.amounts);
    }
    const std::vector<PodId> pods = NeededPods(state_, patient.next).pods;
    return !pods.empty() && MayEverBeDue(context_, patient.next, NeedOf(state_, pods));
  }

  // False: neither this job nor others of its line may have a hole.
  bool Look(Patient& patient) {
    const GroupId id = patient.next;
    // What is known of a line's first job is known of the others.
    const bool first = patient.at == 0;
    if (first) patient.pool = state_.PoolsFor(id).front();
    const int pool = patient.pool;
    if (taken_.contains(pool) || (first && !MayHaveHole(patient))) return false;
    if (++looked_ > kLooksMax) {
      last_ = id;
      return true;
    }
    if (patient.undeserving) return true;
    const Needed needed = NeededPods(state_, id);
    const Hole& hole = holes_.For(needed, pool);
    if (hole.nodes.empty() || !Deserves(context_, id, needed, pool, hole.nodes)) {
      patient.undeserving = true;
      return true;
    }
    // What fits at once needs no hole.
    taken_.insert(pool);
    taker_ = id;
    if (!FitsNow(state_, id, needed, pool)) Hold(state_, id, hole);
    return true;
  }

  // The first patient job after the one that took the last pool.
  GroupId NextAfterTaker() const {
    const WaitingLines& waiting = state_.lists.waiting;
    GroupId next = kNone;
    const auto take = [&](GroupId id) {
      if (!waiting.Before(state_, taker_, id)) return;
      if (next == kNone || waiting.Before(state_, id, next)) next = id;
    };
    for (const Patient& patient : patient_) take(patient.next);
    for (const Patient& patient : ineligible_) {
      if (patient.line == nullptr) {
        take(patient.next);
        continue;
      }
      const JobQueue& jobs = patient.line->jobs;
      const size_t at = waiting.FirstAfter(state_, jobs, taker_);
      if (at < jobs.size() && HasPatience(jobs[at])) take(jobs[at]);
    }
    return next;
  }

  // Others would be looked at before the last job that was.
  void WakeForTheImpatient() {
    if (AllTaken() && last_ == kNone) last_ = NextAfterTaker();
    // A line that was left early has a next job after the last one looked at. A line of which no
    // job was to be looked at has none.
    for (const Patient& patient : ineligible_) {
      if (patient.line == nullptr) continue;
      const JobQueue& jobs = patient.line->jobs;
      const auto first = std::partition_point(jobs.begin(), jobs.end(),
                                              [this](GroupId id) { return HasPatience(id); });
      if (first != jobs.end()) impatient_.push_back(*first);
    }
    for (GroupId id : impatient_) {
      if (last_ != kNone && !state_.lists.waiting.Before(state_, id, last_)) continue;
      context_.WakeAt(state_.groups[id].creation + patience_);
    }
  }

  CycleContext& context_;
  State& state_;
  const Duration patience_;
  Holes holes_;
  std::vector<Patient> patient_;  // a heap, the first in job order on top
  std::vector<Patient> ineligible_;
  std::vector<GroupId> impatient_;  // the first of each line that was looked through
  std::set<int> taken_;             // pools for which somebody was found
  int looked_ = 0;
  GroupId taker_ = kNone;  // of the last pool
  GroupId last_ = kNone;   // where it ended; kNone: all were looked at
};

}  // namespace

void Reserve(CycleContext& context) {
  State& state = context.state;
  const std::vector<NodeId> before = std::move(state.held_nodes);
  state.held_nodes.clear();
  for (NodeId node : before) state.nodes[node].held_for = kNone;
  const Duration patience = context.settings.reserve_after;
  if (patience <= Duration::zero()) return;
  Reservations(context, patience).Make();
  if (state.held_nodes != before) ++state.versions.room;
}

bool MayUseHeld(const State& state, const PodState& pod, const NodeState& node) {
  if (pod.group == node.held_for || pod.group == kNone) return true;
  // A pod that is moved to make room for it is not in its way.
  if (state.cycle.served == node.held_for) return true;
  if (pod.hint != kNone && &state.nodes[pod.hint] == &node) return true;  // promised before
  const GroupState& group = state.groups[pod.group];
  const GroupState& holder = state.groups[node.held_for];
  const bool stoppable = group.preemptible && group.queue == holder.queue && holder.may_preempt;
  if (group.priority > holder.priority || (stoppable && group.priority < holder.priority)) {
    return true;
  }
  return pod.max_runtime > Duration::zero() && node.held_until.unix_ns != 0 &&
         state.cycle.now + pod.max_runtime <= node.held_until;
}

}  // namespace swell::sched
