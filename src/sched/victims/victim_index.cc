#include "sched/victims/victim_index.h"

#include <algorithm>

namespace swell::sched {

VictimIndex::VictimIndex(CycleContext& context)
    : context_(context),
      state_(context.state),
      facts_(context),
      seen_touched_(context.state.cycle.touched.size()) {}

void VictimIndex::Begin(GroupId group, const VictimPolicy& policy) {
  pool_ = policy.pool;
  if (facts_.Begin(group, policy)) tables_.clear();
  if (!excluded_.empty()) {
    std::set<std::pair<ShapeId, NodeId>> again;
    again.swap(excluded_);
    for (const auto& [shape, node] : again) {
      auto table = tables_.find(shape);
      if (table != tables_.end()) Relist(table->second, node);
    }
  }
  CatchUp();
}

void VictimIndex::CatchUp() {
  changed_.clear();
  marked_.resize(state_.index.by_rank.size());
  for (; seen_touched_ < state_.cycle.touched.size(); ++seen_touched_) {
    const int rank = state_.cycle.touched[seen_touched_];
    if (marked_[rank]) continue;
    marked_[rank] = 1;
    changed_.push_back(rank);
  }
  for (int rank : changed_) {
    marked_[rank] = 0;
    for (auto& [shape, table] : tables_) Relist(table, state_.index.by_rank[rank]);
  }
}

// The units of one group that can be evicted: surplus members in their order, then the others.
// Returns whether some members can only be evicted with their gang.
bool VictimIndex::AddSingleUnits(GroupId id, int first, int count, std::vector<VictimUnit>& units) {
  const GroupState& group = state_.groups[id];
  std::sort(
      candidates_.begin() + first, candidates_.begin() + first + count,
      [this](const Candidate& a, const Candidate& b) { return state_.MemberBefore(b.pod, a.pod); });
  const size_t before = units.size();
  bool whole = false;
  for (int i = first; i < first + count; ++i) {
    const PodId pod = candidates_[i].pod;
    const int32_t set = state_.pods[pod].set;
    int used = 0;
    for (size_t p = before; p < units.size(); ++p) {
      used += units[p].surplus && state_.pods[units[p].pod].set == set;
    }
    if (used < group.sets[set].Surplus()) {
      // The members with the highest indices go first, whichever started last.
      units.push_back({.group = id,
                       .pod = pod,
                       .surplus = true,
                       .cost = facts_.CostOf(pod),
                       .last_saved_ns = facts_.LastSavedOfGroup(id),
                       .first = i,
                       .count = 1});
      continue;
    }
    if (!facts_.MayStop(id)) continue;
    if (group.unit == PreemptUnit::kPod) {
      units.push_back({.group = id,
                       .pod = pod,
                       .cost = facts_.CostOf(pod),
                       .last_saved_ns = facts_.LastSaved(pod),
                       .first = i,
                       .count = 1});
    } else {
      whole = true;
    }
  }
  for (size_t p = before; p < units.size(); ++p) units[p].charge = facts_.ChargeOf(units[p]);
  return whole;
}

void VictimIndex::AddUnits(GroupId id, int first, int count, std::vector<VictimUnit>& units) {
  const GroupState& group = state_.groups[id];
  const bool singly = group.has_surplus || group.unit == PreemptUnit::kPod;
  const bool whole = singly ? AddSingleUnits(id, first, count, units) : facts_.MayStop(id);
  if (!whole) return;
  VictimUnit pick{.group = id, .cost = facts_.CostOfGroup(id), .first = first, .count = count};
  pick.charge = facts_.ChargeOf(pick);
  for (int i = first; i < first + count; ++i) {
    pick.last_saved_ns = std::max(pick.last_saved_ns, facts_.LastSaved(candidates_[i].pod));
  }
  units.push_back(pick);
}

void VictimIndex::PicksOf(GroupId group, std::vector<VictimUnit>& units) {
  candidates_.clear();
  for (PodId pod : state_.groups[group].members) {
    if (state_.pods[pod].Holds()) candidates_.push_back({group, pod});
  }
  if (!candidates_.empty()) AddUnits(group, 0, static_cast<int>(candidates_.size()), units);
}

void VictimIndex::Add(size_t i) {
  chosen_[i] = 1;
  for (int c = units_[i].first; c < units_[i].first + units_[i].count; ++c) {
    if (going_[c]++ == 0) room_.Move(state_.pods[candidates_[c].pod], +1);
  }
}

void VictimIndex::Drop(size_t i) {
  chosen_[i] = 0;
  for (int c = units_[i].first; c < units_[i].first + units_[i].count; ++c) {
    if (--going_[c] == 0) room_.Move(state_.pods[candidates_[c].pod], -1);
  }
}

// Leaves out what turned out not to be needed, costliest first.
void VictimIndex::Minimize() {
  std::vector<size_t> order;
  for (size_t i = 0; i < chosen_.size(); ++i) {
    if (chosen_[i]) order.push_back(i);
  }
  if (order.size() < 2) return;
  const auto rank = [this](size_t i) { return std::tuple(!units_[i].surplus, units_[i].cost, i); };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) > rank(b); });
  size_t left = order.size();
  for (size_t i : order) {
    Drop(i);
    if (left > 1 && room_.Missing() <= 0) {
      --left;
    } else {
      Add(i);
    }
  }
}

std::pair<bool, int64_t> VictimIndex::ChosenCost() const {
  std::pair<bool, int64_t> cost{false, 0};
  for (size_t i = 0; i < units_.size(); ++i) {
    if (!chosen_[i]) continue;
    cost.first |= !units_[i].surplus;
    cost.second += units_[i].cost;
  }
  return cost;
}

// Greedily, by loss for what is freed.
bool VictimIndex::Choose(double missing, bool quantized) {
  std::sort(units_.begin(), units_.end(), [&](const VictimUnit& a, const VictimUnit& b) {
    return facts_.Before(a, b, quantized);
  });
  for (size_t c = 0; c < candidates_.size(); ++c) {
    if (going_[c] > 0) room_.Move(state_.pods[candidates_[c].pod], -1);
  }
  going_.assign(candidates_.size(), 0);
  chosen_.assign(units_.size(), 0);
  Losses losses;
  for (size_t i = 0; i < units_.size() && (missing <= 0 || room_.Missing() > 0); ++i) {
    if (facts_.Allowed(units_[i], losses)) Add(i);
  }
  if (room_.Missing() > 0) return false;
  if (missing > 0) Minimize();
  return true;
}

// Chooses all, and answers whether the node lacks room as soon as any one of them stays: there is
// nothing to choose among then.
bool VictimIndex::AllNeeded() {
  for (size_t i = 0; i < units_.size(); ++i) Add(i);
  bool all = true;
  for (size_t i = 0; i < units_.size() && all; ++i) {
    CoreAmounts its{};  // that nobody else frees
    for (int c = units_[i].first; c < units_[i].first + units_[i].count; ++c) {
      if (going_[c] != 1) continue;
      const Shape& shape = state_.ShapeOf(candidates_[c].pod);
      for (int r = 0; r < kCoreCount; ++r) its[r] += shape.core[r];
    }
    if (room_.ShortWithout(its)) continue;
    Drop(i);
    all = room_.Missing() > 0;
    Add(i);
  }
  return all;
}

bool VictimIndex::StillHolds(const NodeEvictionPlan& plan) {
  context_.searches.budget -= 1;
  for (const VictimUnit& pick : plan.units) {
    __builtin_prefetch(&state_.groups[pick.group]);
    __builtin_prefetch(&state_.groups[pick.group].change);
  }
  // More losses never help: what was not allowed before is not now.
  return std::all_of(plan.units.begin(), plan.units.end(),
                     [this](const VictimUnit& pick) {
                       return facts_.Eligible(pick.group) &&
                              state_.groups[pick.group].change == pick.change;
                     }) &&
         facts_.AllAllowed(plan.units);
}

// The one pick that is enough and costs less than those chosen.
void VictimIndex::ChooseOne(double missing) {
  std::pair<bool, int64_t> cost = ChosenCost();
  for (size_t i = 0; i < units_.size(); ++i) {
    const VictimUnit& pick = units_[i];
    const bool enough = pick.value >= missing - 1e-9;
    if (!enough || std::pair(!pick.surplus, pick.cost) >= cost) continue;
    Losses losses;
    if (!facts_.Allowed(pick, losses)) continue;
    for (size_t j = 0; j < units_.size(); ++j) {
      if (chosen_[j]) Drop(j);
    }
    Add(i);
    cost = {!pick.surplus, pick.cost};
  }
}

// What may be stopped on the node, in groups.
void VictimIndex::CollectCandidates(const NodeState& node) {
  candidates_.clear();
  units_.clear();
  for (PodId other : node.pods) {
    const PodState& held = state_.pods[other];
    if (held.Holds() && facts_.Eligible(held.group)) candidates_.push_back({held.group, other});
  }
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return std::pair(a.group, a.pod) < std::pair(b.group, b.pod);
  });
  for (size_t i = 0; i < candidates_.size();) {
    size_t j = i + 1;
    while (j < candidates_.size() && candidates_[j].group == candidates_[i].group) ++j;
    AddUnits(candidates_[i].group, static_cast<int>(i), static_cast<int>(j - i), units_);
    i = j;
  }
}

// How much of what is missing each unit frees.
void VictimIndex::ValueUnits(double missing) {
  for (VictimUnit& pick : units_) {
    for (int c = pick.first; c < pick.first + pick.count; ++c) {
      room_.Move(state_.pods[candidates_[c].pod], +1);
    }
    // Nothing missing but room: ports or affinity are in the way, and anyone may be the cause.
    pick.value = missing > 0 ? missing - room_.Missing() : 1;
    if (pick.value <= 0) pick.value = 1e-6;  // may help together with others
    for (int c = pick.first; c < pick.first + pick.count; ++c) {
      room_.Move(state_.pods[candidates_[c].pod], -1);
    }
  }
}

// False: no units that may end make room.
bool VictimIndex::ChooseUnits(double missing) {
  going_.assign(candidates_.size(), 0);
  chosen_.assign(units_.size(), 0);
  if (missing > 0 && AllNeeded()) {
    std::sort(units_.begin(), units_.end(),
              [&](const VictimUnit& a, const VictimUnit& b) { return facts_.Before(a, b, true); });
    return room_.Missing() <= 0 && facts_.AllAllowed(units_);
  }
  if (!Choose(missing, true)) return false;
  if (missing > 0 && ChosenCost().second >= kLossFloor) {
    if (!Choose(missing, false)) Choose(missing, true);
    ChooseOne(missing);
  }
  return true;
}

NodeEvictionPlan VictimIndex::PlanOfChosen() const {
  NodeEvictionPlan plan;
  plan.possible = true;
  plan.last_saved_ns = INT64_MAX;
  for (size_t i = 0; i < units_.size(); ++i) {
    if (!chosen_[i]) continue;
    const GroupState& group = state_.groups[units_[i].group];
    plan.stops_gang |= !units_[i].surplus;
    plan.cost += units_[i].cost;
    plan.priority = std::max(plan.priority, group.priority);
    plan.over_rank = std::max(plan.over_rank, facts_.OverRank(group.queue));
    plan.last_saved_ns = std::min(plan.last_saved_ns, units_[i].last_saved_ns);
    if (units_[i].surplus) {
      plan.member_priority =
          std::max(plan.member_priority, state_.pods[units_[i].pod].member_priority);
    }
    plan.units.push_back(units_[i]);
    plan.units.back().change = group.change;
  }
  return plan;
}

NodeEvictionPlan VictimIndex::Evaluate(PodId pod, NodeId node_id) {
  const NodeState& node = state_.nodes[node_id];
  context_.searches.budget -= 1 + static_cast<int64_t>(node.pods.size()) / 8;
  if (pool_ != kNone && node.pool != pool_) return {};
  const ShapeId shape_id = state_.pods[pod].shape;
  if (state_.VerdictOf(shape_id, node_id).unfit != Unfit::kNone) return {};
  if (!excluded_.empty() && excluded_.contains({shape_id, node_id})) return {};
  const Shape& shape = state_.shapes[shape_id];
  for (int r = 0; r < kCoreCount; ++r) {
    if (shape.core[r] > node.allocatable[r]) return {};
  }
  CollectCandidates(node);
  if (units_.empty()) return {};
  room_.Reset(state_, node, shape);
  const double missing = room_.Missing();
  ValueUnits(missing);
  return ChooseUnits(missing) ? PlanOfChosen() : NodeEvictionPlan();
}

VictimOrder VictimIndex::OrderOf(const NodeEvictionPlan& plan, int rank) const {
  return {.stops_gang = plan.stops_gang,
          .cost = static_cast<double>(QuantizedCost(plan.cost)),
          .priority = plan.priority,
          .over_rank = plan.over_rank,
          .age_ns = -plan.last_saved_ns,
          .member_priority = plan.member_priority,
          .number = rank};
}

void VictimIndex::Relist(Table& table, NodeId node) {
  const int rank = state_.nodes[node].rank;
  if (rank == kNone) return;
  if (table.listed[rank]) table.order.erase(table.key_of[rank]);
  table.listed[rank] = 0;
  NodeEvictionPlan& plan = table.plans[rank];
  plan = Evaluate(table.example, node);
  if (!plan.possible) return;
  table.key_of[rank] = OrderOf(plan, rank);
  table.listed[rank] = 1;
  table.order.insert(table.key_of[rank]);
}

VictimIndex::Table* VictimIndex::TableFor(PodId pod) {
  auto [it, added] = tables_.try_emplace(state_.pods[pod].shape);
  Table& table = it->second;
  if (!added) return &table;
  table.example = pod;
  table.key_of.resize(state_.index.by_rank.size());
  table.plans.resize(state_.index.by_rank.size());
  table.listed.resize(state_.index.by_rank.size());
  const std::vector<int> ranks = RanksWithCandidates();
  for (size_t i = 0; i < ranks.size(); ++i) {
    PrefetchAt(ranks, i);
    const int rank = ranks[i];
    if (context_.searches.budget <= 0) {  // half a table would mislead the next search
      tables_.erase(it);
      return nullptr;
    }
    Relist(table, state_.index.by_rank[rank]);
  }
  return &table;
}

// As State::PrefetchAt, for nodes whose pods are gone through.
void VictimIndex::PrefetchAt(const std::vector<int>& ranks, size_t i) const {
  const auto node = [&](size_t ahead) -> const NodeState* {
    return i + ahead < ranks.size() ? &state_.nodes[state_.index.by_rank[ranks[i + ahead]]]
                                    : nullptr;
  };
  if (const NodeState* far = node(6)) far->Prefetch();
  if (const NodeState* near = node(4)) {
    __builtin_prefetch(near->pods.data());
    __builtin_prefetch(near->devices.data());
  }
  if (const NodeState* soon = node(2)) {
    for (PodId pod : soon->pods) __builtin_prefetch(&state_.pods[pod]);
  }
  if (const NodeState* next = node(1)) {
    for (PodId pod : next->pods) {
      const GroupId group = state_.pods[pod].group;
      if (group == kNone) continue;
      __builtin_prefetch(&state_.groups[group].members);
      __builtin_prefetch(&state_.groups[group].change);
    }
  }
}

// Where anything may run that may be stopped, in order: the other nodes have nothing to offer.
std::vector<int> VictimIndex::RanksWithCandidates() {
  std::vector<uint8_t> has(state_.index.by_rank.size());
  size_t holders = 0;
  for (size_t queue = 0; queue < state_.queues.size(); ++queue) {
    if (facts_.MayLose(static_cast<QueueId>(queue))) holders += state_.queues[queue].holders.size();
  }
  // Where the jobs are more than the nodes, asking the nodes is the shorter way.
  const bool many = holders > has.size();
  for (size_t rank = 0; many && rank < has.size(); ++rank) {
    has[rank] = !state_.nodes[state_.index.by_rank[rank]].pods.empty();
  }
  std::vector<PodId> held;
  for (size_t queue = 0; !many && queue < state_.queues.size(); ++queue) {
    if (!facts_.MayLose(static_cast<QueueId>(queue))) continue;
    for (GroupId id : state_.queues[queue].holders) {
      if (!facts_.Eligible(id)) continue;
      const std::vector<PodId>& members = state_.groups[id].members;
      held.insert(held.end(), members.begin(), members.end());
    }
  }
  for (size_t i = 0; i < held.size(); ++i) {
    state_.PrefetchAt(held, i);
    const PodState& pod = state_.pods[held[i]];
    if (pod.Holds() && state_.nodes[pod.node].rank != kNone) has[state_.nodes[pod.node].rank] = 1;
  }
  std::vector<int> ranks;
  for (size_t rank = 0; rank < has.size(); ++rank) {
    if (has[rank]) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

NodeId VictimIndex::Best(PodId pod, const NodeFilter* filter, NodeEvictionPlan& plan) {
  Table* table = TableFor(pod);
  if (table == nullptr) return kNone;
  for (auto it = table->order.begin(); it != table->order.end() && context_.searches.budget > 0;) {
    const VictimOrder key = *it;
    const int rank = key.number;
    const NodeId node = state_.index.by_rank[rank];
    if (filter != nullptr && !(*filter)[node]) {
      ++it;
      continue;
    }
    if (StillHolds(table->plans[rank])) {
      plan = table->plans[rank];
      return node;
    }
    Relist(*table, node);
    if (table->listed[rank] && table->key_of[rank] == key) {
      plan = table->plans[rank];
      return node;
    }
    it = table->order.begin();
  }
  return kNone;
}

void VictimIndex::Exclude(PodId pod, NodeId node) {
  const ShapeId shape = state_.pods[pod].shape;
  excluded_.insert({shape, node});
  auto table = tables_.find(shape);
  if (table != tables_.end()) Relist(table->second, node);
}

}  // namespace swell::sched
