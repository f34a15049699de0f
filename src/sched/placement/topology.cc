#include "sched/placement/topology.h"

#include <map>
#include <set>
#include <tuple>

namespace swell::sched {
namespace {

// A level of the tree that a group's pods form: the group, its subgroups, its pod sets.
struct Unit {
  TopologyConstraint topology;
  std::vector<PodId> pods;     // of leaves
  std::vector<NodeId> places;  // of members that have one or were promised one: they fix the domain
  std::vector<Unit> children;
};

void AddPods(const State& state,
             const GroupState& group,
             int32_t set,
             const std::vector<PodId>& pods,
             Unit& unit) {
  for (PodId pod : pods) {
    if (state.pods[pod].set == set) unit.pods.push_back(pod);
  }
  for (PodId id : group.members) {
    const PodState& pod = state.pods[id];
    if (pod.set != set) continue;
    if (pod.promise != kNone) {
      unit.places.push_back(pod.promise);
    } else if (pod.Holds()) {
      unit.places.push_back(pod.node);
    }
  }
}

void Collect(Unit& unit) {
  for (Unit& child : unit.children) {
    Collect(child);
    unit.places.insert(unit.places.end(), child.places.begin(), child.places.end());
  }
}

bool HasPods(const Unit& unit) {
  return !unit.pods.empty() || std::any_of(unit.children.begin(), unit.children.end(), HasPods);
}

size_t CountPods(const Unit& unit) {
  size_t count = unit.pods.size();
  for (const Unit& child : unit.children) count += CountPods(child);
  return count;
}

// Children of the subgroup `parent` (kNone: of the group itself). Depth is bounded: a subgroup that
// names itself or a descendant as its parent is reached from nowhere.
Unit MakeUnit(const State& state,
              const GroupState& group,
              const std::vector<PodId>& pods,
              int32_t parent,
              int depth) {
  Unit unit;
  const std::vector<SubGroup>& subgroups = group.info->groups;
  unit.topology = parent == kNone ? group.info->topology : subgroups[parent].topology;
  if (depth > 16) return unit;
  const std::string name = parent == kNone ? "" : subgroups[parent].name;
  for (size_t i = 0; i < subgroups.size(); ++i) {
    if (subgroups[i].parent == name && static_cast<int32_t>(i) != parent) {
      unit.children.push_back(MakeUnit(state, group, pods, static_cast<int32_t>(i), depth + 1));
    }
  }
  for (size_t s = 0; s < group.sets.size(); ++s) {
    if (group.sets[s].subgroup != parent) continue;
    Unit leaf;
    leaf.topology = group.sets[s].topology;
    AddPods(state, group, static_cast<int32_t>(s), pods, leaf);
    unit.children.push_back(std::move(leaf));
  }
  return unit;
}

struct Domain {
  int64_t idle_gpus = 0;
  int64_t idle_later = 0;  // GPUs once terminating pods are gone
  int64_t idle_cpu = 0;
  std::vector<NodeId> nodes;  // in name order
};

// A filter that stands for one domain after the other: there may be as many as nodes.
class DomainFilter {
 public:
  DomainFilter(const State& state, const NodeFilter* within) {
    filter_.nodes.resize(state.nodes.size());
    if (within != nullptr) filter_.pool = within->pool;
  }
  const NodeFilter* Of(const Domain& domain) {
    for (NodeId id : filter_.listed) filter_.nodes[id] = 0;
    filter_.listed = domain.nodes;
    for (NodeId id : filter_.listed) filter_.nodes[id] = 1;
    return &filter_;
  }

 private:
  NodeFilter filter_;
};

// One domain per value of the label, those with the least idle room first: what is left over stays
// in large pieces.
std::vector<Domain> Domains(const State& state,
                            const TopologyConstraint& constraint,
                            const std::string& key,
                            const NodeFilter* within,
                            const std::vector<NodeId>& places) {
  // A value means something only below the values of the levels above it.
  std::vector<std::string> keys;
  auto topology = state.topologies.find(constraint.name);
  if (topology != state.topologies.end()) {
    for (const std::string& level : topology->second.levels) {
      keys.push_back(level);
      if (level == key) break;
    }
  }
  if (keys.empty() || keys.back() != key) keys = {key};
  std::map<std::vector<std::string>, Domain> domains;
  for (NodeId id : state.index.by_rank) {
    if (within != nullptr && !(*within)[id]) continue;
    const NodeState& node = state.nodes[id];
    std::vector<std::string> value;
    for (const std::string& level : keys) {
      auto label = node.info.labels.find(level);
      if (label != node.info.labels.end()) value.push_back(label->second);
    }
    if (value.size() != keys.size()) continue;
    Domain& domain = domains[value];
    domain.nodes.push_back(id);
    domain.idle_gpus += node.idle_now;
    domain.idle_later += node.idle_future;
    domain.idle_cpu += node.allocatable[kCpu] - node.used[kCpu];
  }
  using Rank = std::tuple<int64_t, int64_t, const std::vector<std::string>*>;
  std::vector<std::pair<Rank, Domain*>> order;
  for (auto& entry : domains) {
    Domain& domain = entry.second;
    const bool has_all = std::all_of(places.begin(), places.end(), [&domain](NodeId place) {
      return std::count(domain.nodes.begin(), domain.nodes.end(), place) > 0;
    });
    if (has_all) order.push_back({{domain.idle_gpus, domain.idle_cpu, &entry.first}, &domain});
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    const auto& [gpus, cpu, value] = a.first;
    const auto& [other_gpus, other_cpu, other_value] = b.first;
    return std::tie(gpus, cpu, *value) < std::tie(other_gpus, other_cpu, *other_value);
  });
  std::vector<Domain> sorted;
  sorted.reserve(order.size());
  for (auto& [rank, domain] : order) sorted.push_back(std::move(*domain));
  return sorted;
}

// One descent: places the units of a tree, each within a domain that its level asks for.
class Descent {
 public:
  Descent(Statement& trial,
          const State& state,
          const PlacePod& place,
          const PlacePods& together = nullptr)
      : trial_(trial), state_(state), place_(place), together_(together) {}

  bool Place(const Unit& unit, const NodeFilter* within) {
    const std::string& key = unit.topology.required;
    if (key.empty()) return PlacePreferred(unit, within);
    const std::vector<Domain> domains = Domains(state_, unit.topology, key, within, unit.places);
    DomainFilter filter(state_, within);
    // A domain that also satisfies the preference beats one that does not.
    if (!unit.topology.preferred.empty()) {
      for (const Domain& domain : domains) {
        if (PlaceInOneOf(unit, unit.topology.preferred, filter.Of(domain))) return true;
      }
    }
    return std::any_of(domains.begin(), domains.end(),
                       [&](const Domain& domain) { return PlaceInside(unit, filter.Of(domain)); });
  }

 private:
  bool PlacePreferred(const Unit& unit, const NodeFilter* within) {
    const std::string& key = unit.topology.preferred;
    if (!key.empty() && PlaceInOneOf(unit, key, within)) return true;
    return PlaceInside(unit, within);
  }

  bool PlaceInOneOf(const Unit& unit, const std::string& key, const NodeFilter* within) {
    DomainFilter filter(state_, within);
    for (const Domain& domain : Domains(state_, unit.topology, key, within, unit.places)) {
      if (PlaceInside(unit, filter.Of(domain))) return true;
    }
    return false;
  }

  bool PlaceInside(const Unit& unit, const NodeFilter* within) {
    const Statement::Mark mark = trial_.Checkpoint();
    if (!PlaceOwn(unit, within)) {
      trial_.Rollback(mark);
      return false;
    }
    for (const Unit& child : unit.children) {
      if (HasPods(child) && !Place(child, within)) {
        trial_.Rollback(mark);
        return false;
      }
    }
    return true;
  }

  // The pods of the unit itself.
  bool PlaceOwn(const Unit& unit, const NodeFilter* within) {
    const std::optional<bool> placed =
        together_ ? together_(unit.pods, within) : std::optional<bool>();
    if (placed) return *placed;
    return std::all_of(unit.pods.begin(), unit.pods.end(),
                       [&](PodId pod) { return place_(pod, within); });
  }

  Statement& trial_;
  const State& state_;
  const PlacePod& place_;
  const PlacePods together_;  // may be null
};

// Labels of which all pods have to share a value, since they require each other near.
std::vector<std::string> NearKeys(const State& state, const std::vector<PodId>& pods) {
  std::set<TermId> terms;
  std::set<LabelSetId> labels;
  for (PodId pod : pods) {
    const std::vector<TermId>& own = state.ShapeOf(pod).affinity;
    terms.insert(own.begin(), own.end());
    labels.insert(state.pods[pod].labels);
  }
  std::vector<std::string> keys;
  for (TermId term : terms) {
    const bool each_other = std::any_of(
        labels.begin(), labels.end(), [&](LabelSetId id) { return state.terms.Matches(term, id); });
    if (each_other) keys.push_back(state.terms.term(term).topology_key);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

}  // namespace

bool PlaceOne(Statement& trial, State& state, PodId pod, Tense tense, const NodeFilter* filter) {
  const Spot spot = FindSpot(state, pod, tense, filter);
  if (!spot) return false;
  if (tense == Tense::kNow) {
    trial.Bind(pod, spot.node, spot.devices);
  } else {
    trial.Promise(pod, spot.node, spot.devices);
  }
  return true;
}

bool PlaceInTopology(Statement& trial,
                     const State& state,
                     GroupId id,
                     const std::vector<PodId>& pods,
                     const PlacePod& place,
                     const PlacePods& together,
                     const NodeFilter* within) {
  const GroupState& group = state.groups[id];
  Unit root = MakeUnit(state, group, pods, kNone, 0);
  Collect(root);
  if (CountPods(root) != pods.size()) {  // subgroups that are each other's parents: unreachable
    root = Unit{};
    root.topology = group.info->topology;
    root.pods = pods;
  }
  return Descent(trial, state, place, together).Place(root, within);
}

bool PlaceNear(Statement& trial,
               const State& state,
               GroupId id,
               const std::vector<PodId>& pods,
               Tense tense,
               const PlacePod& place,
               const NodeFilter* within) {
  if (pods.size() < 2) return false;
  int64_t gpus = 0;
  for (PodId pod : pods) gpus += state.ShapeOf(pod).core[kGpu];
  Unit unit;
  unit.pods = pods;
  for (PodId pod : state.groups[id].members) {
    if (state.pods[pod].Holds()) unit.places.push_back(pod);
  }
  Descent descent(trial, state, place);
  for (const std::string& key : NearKeys(state, pods)) {
    DomainFilter filter(state, within);
    for (const Domain& domain : Domains(state, unit.topology, key, within, unit.places)) {
      if (gpus > (tense == Tense::kNow ? domain.idle_gpus : domain.idle_later)) continue;
      if (descent.Place(unit, filter.Of(domain))) return true;
    }
  }
  return false;
}

}  // namespace swell::sched
