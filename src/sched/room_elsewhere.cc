#include "sched/room_elsewhere.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sched/placement/gang.h"
#include "sched/state/state.h"
#include "sched/state/statement.h"

namespace swell::sched {
namespace {

// Pods have shapes without requirements of one label while it exists.
class Unbound {
 public:
  Unbound(State& state, const std::vector<PodId>& pods, const std::string& label) : state_(state) {
    for (PodId pod : pods) {
      Shape shape = state_.shapes[state_.pods[pod].shape];
      if (!Relax(shape, label)) continue;
      // What was found out about the other shape does not hold for this one.
      shape.verdicts.clear();
      shape.suits.clear();
      shape.pools_epoch = 0;
      shape.full_now_epoch = shape.full_future_epoch = 0;
      shape.misfits = {};
      before_.emplace_back(pod, state_.pods[pod].shape);
      // The amounts are the same, so nothing that is counted changes.
      state_.pods[pod].shape = state_.shapes.Acquire(std::move(shape));
    }
  }
  ~Unbound() {
    for (const auto& [pod, shape] : before_) {
      state_.shapes.Release(std::exchange(state_.pods[pod].shape, shape));
    }
  }
  Unbound(const Unbound&) = delete;
  Unbound& operator=(const Unbound&) = delete;

 private:
  static bool Relax(Shape& shape, const std::string& label) {
    bool changed = false;
    std::vector<NodeSelectorTerm> terms;
    for (NodeSelectorTerm& term : shape.required) {
      const bool said = std::erase_if(term.expressions, [&](const Requirement& requirement) {
                          return requirement.key == label;
                        }) > 0;
      changed = changed || said;
      // A term that says nothing else holds for every node, and with it the list.
      if (said && term.expressions.empty() && term.fields.empty()) {
        terms.clear();
        break;
      }
      terms.push_back(std::move(term));
    }
    if (changed) shape.required = std::move(terms);
    return changed;
  }

  State& state_;
  std::vector<std::pair<PodId, ShapeId>> before_;
};

class Elsewhere {
 public:
  Elsewhere(State& state, GroupId group, const std::string& label)
      : state_(state), id_(group), label_(label) {}

  std::vector<RoomElsewhere> Find() {
    std::vector<RoomElsewhere> rooms;
    if (!Settled() || !ReadMembers()) return rooms;
    std::map<std::string, std::vector<NodeId>> kinds;
    for (NodeId node : state_.index.by_rank) {
      const auto value = state_.nodes[node].info.labels.find(label_);
      if (value == state_.nodes[node].info.labels.end() || value->second.empty()) continue;
      kinds[value->second].push_back(node);
    }
    for (const auto& [value, nodes] : kinds) {
      if (value == home_ || SomebodyWaitsFor(nodes)) continue;
      const int32_t members = MembersOn(nodes);
      if (members > 0) rooms.push_back({value, members});
    }
    return rooms;
  }

 private:
  const GroupState& group() const { return state_.groups[id_]; }

  bool Settled() const {
    if (!Schedulable(state_, group()) || !group().preemptible || group().curve.empty()) {
      return false;
    }
    return std::all_of(group().sets.begin(), group().sets.end(), [](const SetState& set) {
      return set.releasing == 0 && set.promised == 0 && set.holding >= set.Minimum();
    });
  }

  // Members without devices may stay where they are. False: the others are not all at home on one
  // kind of nodes.
  bool ReadMembers() {
    std::vector<int32_t> needed;
    for (const SetState& set : group().sets) needed.push_back(set.Minimum());
    std::set<std::string> homes;
    for (PodId pod : group().members) {
      const PodState& member = state_.pods[pod];
      if (!member.Holds() && !member.Waits()) continue;
      if (!state_.ShapeOf(pod).UsesDevices()) continue;
      if (member.Holds()) {
        const Labels& labels = state_.nodes[member.node].info.labels;
        const auto value = labels.find(label_);
        homes.insert(value == labels.end() ? "" : value->second);
        placed_.push_back(pod);
      }
      const bool first = needed[member.set]-- > 0;
      if (first) {
        minimum_.push_back(pod);
      } else if (member.set == group().curve_set) {
        surplus_.push_back(pod);
      }
    }
    if (homes.size() != 1 || homes.begin()->empty()) return false;
    home_ = *homes.begin();
    return !minimum_.empty() || !surplus_.empty();
  }

  // Work that could start on one of these nodes comes first, whatever else it lacks.
  bool SomebodyWaitsFor(const std::vector<NodeId>& nodes) {
    std::set<std::pair<ShapeId, int>> refused;
    const auto waits_for = [&](GroupId id) {
      if (id == id_ || !Schedulable(state_, state_.groups[id])) return false;
      const std::vector<int> pools = state_.PoolsFor(id);
      for (PodId pod : state_.groups[id].members) {
        const PodState& member = state_.pods[pod];
        if (!member.Waits() || !state_.ShapeOf(pod).UsesDevices()) continue;
        for (int pool : pools) {
          if (refused.contains({member.shape, pool})) continue;
          if (Suits(member.shape, nodes, pool)) return true;
          refused.insert({member.shape, pool});
        }
      }
      return false;
    };
    WaitingLines& waiting = state_.lists.waiting;
    waiting.Settle(state_);
    return std::any_of(waiting.alone().begin(), waiting.alone().end(), waits_for) ||
           std::any_of(waiting.lines().begin(), waiting.lines().end(),
                       [&](const WaitingLine& line) {
                         return !line.jobs.empty() && waits_for(line.jobs.front());
                       });
  }

  bool Suits(ShapeId shape, const std::vector<NodeId>& nodes, int pool) {
    return std::any_of(nodes.begin(), nodes.end(), [&](NodeId node) {
      return (pool == kNone || state_.nodes[node].pool == pool) &&
             state_.VerdictOf(shape, node).unfit == Unfit::kNone;
    });
  }

  bool WithinQuotas(int pool) {
    const auto p = static_cast<size_t>(pool == kNone ? state_.pool_facts.live.front() : pool);
    bool within = true;
    state_.ForQueues(group().queue, [&](QueueState& queue) {
      for (int r = 0; r < kQueueResources; ++r) {
        const int64_t quota = queue.QuotaIn(p, r);
        if (quota >= 0 && queue.Counted(&QueuePool::used, p, r) > quota) within = false;
      }
    });
    return within;
  }

  int32_t MembersOn(const std::vector<NodeId>& nodes) {
    std::vector<PodId> all = minimum_;
    all.insert(all.end(), surplus_.begin(), surplus_.end());
    // A place that others cannot take back is not given up for one that they can.
    keeps_quotas_ = WithinQuotas(state_.nodes[state_.pods[placed_.front()].node].pool);
    const Unbound unbound(state_, all, label_);
    Statement trial(state_);
    for (PodId pod : placed_) trial.Evict(pod);
    int32_t most = 0;
    for (int pool : state_.PoolsFor(id_)) {
      const Statement::Mark mark = trial.Checkpoint();
      most = std::max(most, PlaceOn(trial, nodes, pool));
      trial.Rollback(mark);
    }
    return most;
  }

  int32_t PlaceOn(Statement& trial, const std::vector<NodeId>& nodes, int pool) {
    NodeFilter filter{.pool = pool};
    filter.nodes.resize(state_.nodes.size());
    for (NodeId id : nodes) {
      const NodeState& node = state_.nodes[id];
      if (pool != kNone && node.pool != pool) continue;
      if (node.releasing_pods > 0 || (node.held_for != kNone && node.held_for != id_)) continue;
      filter.nodes[id] = 1;
      filter.listed.push_back(id);
    }
    if (filter.listed.empty() || !Place(trial, minimum_, pool, filter)) return 0;
    const int32_t curve_set = group().curve_set;
    auto members =
        static_cast<int32_t>(std::count_if(minimum_.begin(), minimum_.end(), [&](PodId pod) {
          return state_.pods[pod].set == curve_set;
        }));
    for (PodId pod : surplus_) {
      if (!Place(trial, {pod}, pool, filter)) break;
      ++members;
    }
    return members;
  }

  bool Place(Statement& trial, const std::vector<PodId>& pods, int pool, const NodeFilter& filter) {
    const Statement::Mark mark = trial.Checkpoint();
    if (FitsQueues(state_, group(), pods, pool, Tense::kFuture) &&
        PlaceAll(trial, state_, id_, pods, Tense::kFuture, &filter) &&
        (!keeps_quotas_ || WithinQuotas(pool))) {
      return true;
    }
    trial.Rollback(mark);
    return false;
  }

  State& state_;
  const GroupId id_;
  const std::string& label_;
  bool keeps_quotas_ = false;
  std::string home_;            // the kind of the nodes that it is on
  std::vector<PodId> placed_;   // on them
  std::vector<PodId> minimum_;  // members without which it is of no use
  std::vector<PodId> surplus_;  // further ones of the curve's set, in member order
};

}  // namespace

std::vector<RoomElsewhere> RoomsElsewhere(Model& model,
                                          std::string_view group,
                                          const std::string& label) {
  State& state = model.state();
  state.Refresh();
  const GroupId id = state.FindGroup(group);
  if (id == kNone) return {};
  return Elsewhere(state, id, label).Find();
}

}  // namespace swell::sched
