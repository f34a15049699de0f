#include "sched/victims/victim_index.h"

#include "sched/queues/queue_order.h"

namespace swell::sched {
namespace {

// A job that starts may be moved when it runs; that alone starts no cycle.
constexpr Duration kStartLook = std::chrono::seconds(5);

int64_t At(const std::vector<int64_t>& amounts, int resource) {
  return static_cast<size_t>(resource) < amounts.size() ? amounts[resource] : 0;
}

double OverUse(const Context& context, QueueId id) {
  double most = 0;
  for (int pool : context.state.live_pools) {
    const QueuePool& own = context.state.queues[id].pools[pool];
    const QueueAmounts& fair = context.shares.Fair(pool, id);
    for (int r = 0; r < kQueueResources; ++r) {
      if (own.used[r] <= 0) continue;
      most = std::max(most, static_cast<double>(own.used[r]) /
                                static_cast<double>(std::max<int64_t>(1, fair[r])));
    }
  }
  return most;
}

}  // namespace

void AddLoss(Losses& losses, QueueId queue, const QueueAmounts& amounts, int sign) {
  auto& queues = losses.queues;
  auto entry = std::find_if(queues.begin(), queues.end(),
                            [queue](const auto& loss) { return loss.first == queue; });
  if (entry == queues.end()) entry = queues.insert(queues.end(), {queue, {}});
  for (int r = 0; r < kQueueResources; ++r) entry->second[r] += sign * amounts[r];
}

void Scratch::Reset(const State& state, const NodeState& node, const Shape& shape) {
  state_ = &state;
  node_ = &node;
  shape_ = &shape;
  ppm_ = state.DevicePpm(shape, node);
  for (int r = 0; r < kCoreCount; ++r) {
    free_[r] = node.allocatable[r] - node.used[r] + node.releasing[r] - node.promised[r];
  }
  ext_free_.clear();
  for (const auto& [r, wanted] : shape.extended) {
    ext_free_.push_back(At(node.ext_allocatable, r) - At(node.ext_used, r) +
                        At(node.ext_releasing, r) - At(node.ext_promised, r));
  }
  device_count_ = shape.UsesGpu() ? node.gpu_count : 0;
  for (int i = 0; i < device_count_; ++i) devices_[i] = node.devices[i].FreeInFuture();
}

void Scratch::Move(const PodState& pod, int sign) {
  const Shape& shape = state_->shapes[pod.shape];
  for (int r = 0; r < kCoreCount; ++r) free_[r] += sign * shape.core[r];
  for (size_t i = 0; i < shape_->extended.size(); ++i) {
    for (const auto& [r, amount] : shape.extended) {
      if (r == shape_->extended[i].first) ext_free_[i] += sign * amount;
    }
  }
  if (device_count_ == 0) return;
  const int64_t ppm = state_->DevicePpm(shape, *node_);
  pod.devices.ForEach([&](int i) {
    if (i < device_count_) devices_[i] += sign * ppm;
  });
}

bool Scratch::ShortWithout(const CoreAmounts& amounts) const {
  for (int r = 0; r < kCoreCount; ++r) {
    if (shape_->core[r] > 0 && free_[r] - amounts[r] < shape_->core[r]) return true;
  }
  return false;
}

double Scratch::Missing() const {
  double missing = 0;
  auto add = [&missing](int64_t wanted, int64_t free) {
    if (wanted > 0 && free < wanted) {
      missing += static_cast<double>(wanted - free) / static_cast<double>(wanted);
    }
  };
  for (int r = 0; r < kCoreCount; ++r) add(shape_->core[r], free_[r]);
  for (size_t i = 0; i < ext_free_.size(); ++i) add(shape_->extended[i].second, ext_free_[i]);
  if (!shape_->UsesGpu()) return missing;
  int64_t fitting = 0;
  double nearly = 0;  // parts of devices count a little, so that sharers add up
  for (int i = 0; i < device_count_; ++i) {
    const int64_t free = devices_[i];
    if (free >= ppm_) {
      ++fitting;
    } else if (free > 0) {
      nearly = std::max(nearly, static_cast<double>(free) / static_cast<double>(ppm_));
    }
  }
  const int64_t wanted = shape_->Shares() ? shape_->share_devices : shape_->core[kGpu];
  if (fitting < wanted) {
    missing += (static_cast<double>(wanted - fitting) - 0.5 * nearly) / static_cast<double>(wanted);
  }
  return missing;
}

VictimIndex::VictimIndex(Context& context)
    : context_(context),
      state_(context.state),
      from_(context.state.queues.size()),
      eligible_(context.state.groups.size(), -1),
      facts_(context.state.groups.size()),
      over_rank_(context.state.queues.size()),
      taken_of_(context.state.groups.size()),
      spent_(context.disruptions.size()),
      seen_touched_(context.state.touched.size()) {
  std::vector<std::pair<double, int32_t>> order;
  for (size_t id = 0; id < over_rank_.size(); ++id) {
    order.emplace_back(-OverUse(context, static_cast<QueueId>(id)), static_cast<int32_t>(id));
  }
  std::sort(order.begin(), order.end(), [this](const auto& a, const auto& b) {
    return std::tuple(a.first, -state_.queues[a.second].rank) <
           std::tuple(b.first, -state_.queues[b.second].rank);
  });
  for (size_t rank = 0; rank < order.size(); ++rank) {
    over_rank_[order[rank].second] = static_cast<int32_t>(rank);
  }
}

void VictimIndex::Begin(GroupId group, const VictimPolicy& policy) {
  group_ = group;
  policy_ = &policy;
  guarded_ = false;
  ForgetTaken();
  Expect(policy.from);
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

// What was learned of the nodes holds while no queue is added to those that may lose.
void VictimIndex::Expect(const std::vector<QueueId>& from) {
  const bool more =
      std::any_of(from.begin(), from.end(), [this](QueueId id) { return !from_[id]; });
  if (!more) return;
  tables_.clear();
  eligible_.assign(eligible_.size(), -1);
  for (QueueId id : from) from_[id] = 1;
}

void VictimIndex::CatchUp() {
  changed_.clear();
  marked_.resize(state_.index.by_rank.size());
  for (; seen_touched_ < state_.touched.size(); ++seen_touched_) {
    const int rank = state_.touched[seen_touched_];
    if (marked_[rank]) continue;
    marked_[rank] = 1;
    changed_.push_back(rank);
  }
  for (int rank : changed_) {
    marked_[rank] = 0;
    for (auto& [shape, table] : tables_) Relist(table, state_.index.by_rank[rank]);
  }
}

bool VictimIndex::Eligible(GroupId id) {
  if (id == kNone || id == group_) return false;
  // A group that starts in this cycle is not moved in the same cycle.
  if (policy_->must_move && context_.decided.bound.HasGroup(id)) return false;
  int8_t& known = eligible_[id];
  if (known < 0) {
    const GroupState& group = state_.groups[id];
    known = from_[group.queue] && policy_->eligible(group) && (!policy_->must_move || MayMove(id));
    any_eligible_ |= known > 0;
  }
  return known > 0;
}

bool VictimIndex::MayMove(GroupId id) {
  const GroupState& group = state_.groups[id];
  // To move what nobody makes anew would be to end it.
  const bool ends = std::any_of(group.members.begin(), group.members.end(),
                                [this](PodId pod) { return !state_.pods[pod].comes_back; });
  if (ends) return false;
  const bool starts = std::any_of(group.members.begin(), group.members.end(), [this](PodId pod) {
    return state_.pods[pod].phase == PodPhase::kBound;
  });
  if (starts) {
    context_.WakeAt(context_.now + kStartLook);
    return false;
  }
  const Duration pause = context_.settings.move_pause;
  if (group.moved_at.unix_ns == 0 || context_.now - group.moved_at >= pause) return true;
  context_.WakeAt(group.moved_at + pause);
  return false;
}

VictimIndex::GroupFacts& VictimIndex::FactsOf(GroupId id) {
  GroupFacts& facts = facts_[id];
  const uint32_t change = state_.groups[id].change;
  if (facts.change == change) return facts;
  facts = {};
  facts.change = change;
  for (PodId id_of_pod : state_.groups[id].members) {
    const PodState& pod = state_.pods[id_of_pod];
    if (!pod.Holds()) continue;
    facts.cost += CostOf(id_of_pod);
    facts.last_saved_ns = std::max(facts.last_saved_ns, LastSaved(id_of_pod));
    for (int r = 0; r < kQueueResources; ++r) facts.charge[r] += pod.charge[r];
  }
  return facts;
}

int64_t VictimIndex::CostOfGroup(GroupId id) { return FactsOf(id).cost; }

bool VictimIndex::MayStop(GroupId id) {
  if (policy_->surplus_only) return false;
  const GroupState& group = state_.groups[id];
  GroupFacts& facts = FactsOf(id);
  if (facts.may_stop >= 0) {
    guarded_ |= facts.may_stop == 0;
    return facts.may_stop > 0;
  }
  WallTime earliest{INT64_MAX};
  for (PodId pod : group.members) {
    if (!state_.pods[pod].Holds()) continue;
    const WallTime start = state_.pods[pod].start;
    earliest = std::min(earliest, start.unix_ns != 0 ? start : context_.now);
  }
  facts.may_stop = 1;
  Duration min_runtime = group.min_runtime;
  if (policy_->min_runtime) min_runtime = std::max(min_runtime, policy_->min_runtime(group));
  if (min_runtime > Duration::zero() && context_.now - earliest < min_runtime) {
    facts.may_stop = 0;
    context_.WakeAt(earliest + min_runtime);
  }
  guarded_ |= facts.may_stop == 0;
  return facts.may_stop > 0;
}

int64_t VictimIndex::CostOf(PodId id) const {
  const PodState& pod = state_.pods[id];
  const Shape& shape = state_.shapes[pod.shape];
  double weight = static_cast<double>(pod.charge[kQueueGpu]) / kPpm;
  // Work on CPUs is lost too; a hundred cores weigh as much as a GPU.
  if (weight == 0) weight = static_cast<double>(shape.core[kCpu]) / 100'000;
  const WallTime since = std::max(pod.start, pod.checkpoint);
  double seconds = 0;
  if (pod.start.unix_ns != 0 && context_.now > since) {
    seconds = std::chrono::duration<double>(context_.now - since).count();
  }
  return static_cast<int64_t>((weight * seconds + pod.restart_cost_gpu_s) * 1000);
}

int64_t VictimIndex::LastSaved(PodId id) const {
  const PodState& pod = state_.pods[id];
  if (pod.start.unix_ns == 0) return context_.now.unix_ns;  // it has yet to begin
  return std::max(pod.start, pod.checkpoint).unix_ns;
}

bool VictimIndex::Before(const VictimUnit& a, const VictimUnit& b, bool quantized) const {
  const auto order = [&](const VictimUnit& unit) {
    const GroupState& group = state_.groups[unit.group];
    const int64_t cost = quantized ? QuantizedCost(unit.cost) : unit.cost;
    return VictimOrder{.stops_gang = !unit.surplus,
                       .cost = static_cast<double>(cost) / unit.value,
                       .priority = group.priority,
                       .over_rank = over_rank_[group.queue]};
  };
  const VictimOrder left = order(a);
  const VictimOrder right = order(b);
  return left != right ? left < right : GivesUpFirst(a, b);
}

bool VictimIndex::GivesUpFirst(const VictimUnit& a, const VictimUnit& b) const {
  if (a.last_saved_ns != b.last_saved_ns) return a.last_saved_ns > b.last_saved_ns;
  if (a.group != b.group) return state_.JobBefore(b.group, a.group);
  if (a.pod == kNone || b.pod == kNone) return b.pod == kNone && a.pod != kNone;
  return state_.MemberBefore(b.pod, a.pod);
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
      units.push_back({id, pod, true, CostOf(pod), FactsOf(id).last_saved_ns, 0, i, 1});
      continue;
    }
    if (!MayStop(id)) continue;
    if (group.unit == PreemptUnit::kPod) {
      units.push_back({id, pod, false, CostOf(pod), LastSaved(pod), 0, i, 1});
    } else {
      whole = true;
    }
  }
  for (size_t p = before; p < units.size(); ++p) units[p].charge = ChargeOf(units[p]);
  return whole;
}

void VictimIndex::AddUnits(GroupId id, int first, int count, std::vector<VictimUnit>& units) {
  const GroupState& group = state_.groups[id];
  const bool singly = group.has_surplus || group.unit == PreemptUnit::kPod;
  const bool whole = singly ? AddSingleUnits(id, first, count, units) : MayStop(id);
  if (!whole) return;
  VictimUnit pick{id, kNone, false, CostOfGroup(id), 0, 0, first, count};
  pick.charge = ChargeOf(pick);
  for (int i = first; i < first + count; ++i) {
    pick.last_saved_ns = std::max(pick.last_saved_ns, LastSaved(candidates_[i].pod));
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
    if (going_[c]++ == 0) scratch_.Move(state_.pods[candidates_[c].pod], +1);
  }
}

void VictimIndex::Drop(size_t i) {
  chosen_[i] = 0;
  for (int c = units_[i].first; c < units_[i].first + units_[i].count; ++c) {
    if (--going_[c] == 0) scratch_.Move(state_.pods[candidates_[c].pod], -1);
  }
}

QueueAmounts VictimIndex::ChargeOf(const VictimUnit& pick) {
  return pick.pod != kNone ? state_.pods[pick.pod].charge : FactsOf(pick.group).charge;
}

void VictimIndex::CountTaken(GroupId group, const TakenPods& pods) {
  taken_of_[group] += static_cast<int32_t>(pods.size());
  taken_from_.push_back(group);
  if (context_.disruptions.empty()) return;
  for (const auto& [pod, phase] : pods) {
    for (size_t budget : context_.disruptions.Over(pod)) ++spent_[budget];
  }
}

void VictimIndex::ForgetTaken() {
  for (GroupId group : taken_from_) taken_of_[group] = 0;
  taken_from_.clear();
  spent_.assign(spent_.size(), 0);
}

bool VictimIndex::WithinBudgets(const VictimUnit& pick, Losses& losses) {
  DisruptionLedger& ledger = context_.disruptions;
  if (ledger.empty()) return true;
  std::vector<std::pair<size_t, int64_t>> counts = losses.budgets;
  auto count = [&](PodId pod) {
    for (size_t budget : ledger.Over(pod)) {
      auto known = std::find_if(counts.begin(), counts.end(),
                                [budget](const auto& it) { return it.first == budget; });
      if (known == counts.end()) known = counts.insert(known, {budget, 0});
      ++known->second;
    }
  };
  if (pick.pod != kNone) {
    count(pick.pod);
  } else {
    for (PodId pod : state_.groups[pick.group].members) {
      if (state_.pods[pod].Holds()) count(pod);
    }
  }
  const bool within = std::all_of(counts.begin(), counts.end(), [&](const auto& it) {
    return it.second + spent_[it.first] <= ledger.Left(it.first);
  });
  if (within) losses.budgets = std::move(counts);
  guarded_ |= !within;
  return within;
}

bool VictimIndex::Allowed(const VictimUnit& pick, Losses& losses) {
  if (!WithinBudgets(pick, losses)) return false;
  if (!policy_->allows) return true;
  const QueueId queue = state_.groups[pick.group].queue;
  const QueueAmounts& more = pick.charge;
  if (pick.pod != kNone || !state_.groups[pick.group].has_surplus) {
    if (!policy_->allows(queue, losses, more)) return false;
  } else {
    // Its surplus would go first, and may be all that the queue has to give.
    const QueueAmounts surplus = SurplusCharge(pick.group);
    QueueAmounts core = more;
    for (int r = 0; r < kQueueResources; ++r) core[r] -= surplus[r];
    AddLoss(losses, queue, surplus);
    const bool allowed = policy_->allows(queue, losses, core);
    AddLoss(losses, queue, surplus, -1);
    if (!allowed) return false;
  }
  AddLoss(losses, queue, more);
  return true;
}

QueueAmounts VictimIndex::SurplusCharge(GroupId id) const {
  const GroupState& group = state_.groups[id];
  QueueAmounts sum{};
  std::vector<int32_t> left;
  for (const SetState& set : group.sets) left.push_back(set.Surplus());
  for (auto it = group.members.rbegin(); it != group.members.rend(); ++it) {
    const PodState& pod = state_.pods[*it];
    if (!pod.Holds() || left[pod.set] == 0) continue;
    --left[pod.set];
    for (int r = 0; r < kQueueResources; ++r) sum[r] += pod.charge[r];
  }
  return sum;
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
    if (left > 1 && scratch_.Missing() <= 0) {
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
  std::sort(units_.begin(), units_.end(),
            [&](const VictimUnit& a, const VictimUnit& b) { return Before(a, b, quantized); });
  for (size_t c = 0; c < candidates_.size(); ++c) {
    if (going_[c] > 0) scratch_.Move(state_.pods[candidates_[c].pod], -1);
  }
  going_.assign(candidates_.size(), 0);
  chosen_.assign(units_.size(), 0);
  Losses losses;
  for (size_t i = 0; i < units_.size() && (missing <= 0 || scratch_.Missing() > 0); ++i) {
    if (Allowed(units_[i], losses)) Add(i);
  }
  if (scratch_.Missing() > 0) return false;
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
    if (scratch_.ShortWithout(its)) continue;
    Drop(i);
    all = scratch_.Missing() > 0;
    Add(i);
  }
  return all;
}

// Whether a later pick differs for the rule in nothing but what goes before it, which is more: if
// it may go, this one may.
bool VictimIndex::LaterSpeaksFor(const std::vector<VictimUnit>& units, size_t i) const {
  if (!policy_->allows || !context_.disruptions.empty()) return false;
  const auto plain = [this](const VictimUnit& pick) {
    return pick.pod != kNone || !state_.groups[pick.group].has_surplus;
  };
  const auto alike = [&](const VictimUnit& later) {
    if (!plain(later) || state_.groups[later.group].queue != state_.groups[units[i].group].queue) {
      return false;
    }
    for (int r = 0; r < kQueueResources; ++r) {
      if ((later.charge[r] > 0) != (units[i].charge[r] > 0)) return false;
    }
    return true;
  };
  return plain(units[i]) &&
         std::any_of(units.begin() + static_cast<std::ptrdiff_t>(i) + 1, units.end(), alike);
}

bool VictimIndex::AllAllowed(const std::vector<VictimUnit>& units) {
  Losses losses;
  for (size_t i = 0; i < units.size(); ++i) {
    if (LaterSpeaksFor(units, i)) {
      AddLoss(losses, state_.groups[units[i].group].queue, units[i].charge);
    } else if (!Allowed(units[i], losses)) {
      return false;
    }
  }
  return true;
}

bool VictimIndex::StillHolds(const NodeEvictionPlan& offer) {
  context_.searches.budget -= 1;
  for (const VictimUnit& pick : offer.units) {
    __builtin_prefetch(&state_.groups[pick.group]);
    __builtin_prefetch(&state_.groups[pick.group].change);
  }
  // More losses never help: what was not allowed before is not now.
  return std::all_of(offer.units.begin(), offer.units.end(),
                     [this](const VictimUnit& pick) {
                       return Eligible(pick.group) &&
                              state_.groups[pick.group].change == pick.change;
                     }) &&
         AllAllowed(offer.units);
}

// The one pick that is enough and costs less than those chosen.
void VictimIndex::ChooseOne(double missing) {
  std::pair<bool, int64_t> cost = ChosenCost();
  for (size_t i = 0; i < units_.size(); ++i) {
    const VictimUnit& pick = units_[i];
    const bool enough = pick.value >= missing - 1e-9;
    if (!enough || std::pair(!pick.surplus, pick.cost) >= cost) continue;
    Losses losses;
    if (!Allowed(pick, losses)) continue;
    for (size_t j = 0; j < units_.size(); ++j) {
      if (chosen_[j]) Drop(j);
    }
    Add(i);
    cost = {!pick.surplus, pick.cost};
  }
}

NodeEvictionPlan VictimIndex::Evaluate(PodId pod, NodeId node_id) {
  NodeEvictionPlan offer;
  const NodeState& node = state_.nodes[node_id];
  context_.searches.budget -= 1 + static_cast<int64_t>(node.pods.size()) / 8;
  if (policy_->pool != kNone && node.pool != policy_->pool) return offer;
  const ShapeId shape_id = state_.pods[pod].shape;
  if (state_.VerdictOf(shape_id, node_id).unfit != Unfit::kNone) return offer;
  if (!excluded_.empty() && excluded_.contains({shape_id, node_id})) return offer;
  const Shape& shape = state_.shapes[shape_id];
  for (int r = 0; r < kCoreCount; ++r) {
    if (shape.core[r] > node.allocatable[r]) return offer;
  }
  candidates_.clear();
  for (PodId other : node.pods) {
    const PodState& held = state_.pods[other];
    if (held.Holds() && Eligible(held.group)) candidates_.push_back({held.group, other});
  }
  if (candidates_.empty()) return offer;
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return std::pair(a.group, a.pod) < std::pair(b.group, b.pod);
  });
  units_.clear();
  for (size_t i = 0; i < candidates_.size();) {
    size_t j = i + 1;
    while (j < candidates_.size() && candidates_[j].group == candidates_[i].group) ++j;
    AddUnits(candidates_[i].group, static_cast<int>(i), static_cast<int>(j - i), units_);
    i = j;
  }
  if (units_.empty()) return offer;
  scratch_.Reset(state_, node, shape);
  const double missing = scratch_.Missing();
  for (VictimUnit& pick : units_) {
    for (int c = pick.first; c < pick.first + pick.count; ++c) {
      scratch_.Move(state_.pods[candidates_[c].pod], +1);
    }
    // Nothing missing but room: ports or affinity are in the way, and anyone may be the cause.
    pick.value = missing > 0 ? missing - scratch_.Missing() : 1;
    if (pick.value <= 0) pick.value = 1e-6;  // may help together with others
    for (int c = pick.first; c < pick.first + pick.count; ++c) {
      scratch_.Move(state_.pods[candidates_[c].pod], -1);
    }
  }
  going_.assign(candidates_.size(), 0);
  chosen_.assign(units_.size(), 0);
  if (missing > 0 && AllNeeded()) {
    std::sort(units_.begin(), units_.end(),
              [&](const VictimUnit& a, const VictimUnit& b) { return Before(a, b, true); });
    if (scratch_.Missing() > 0 || !AllAllowed(units_)) return offer;
  } else {
    if (!Choose(missing, true)) return offer;
    if (missing > 0 && ChosenCost().second >= kLossFloor) {
      if (!Choose(missing, false)) Choose(missing, true);
      ChooseOne(missing);
    }
  }
  offer.possible = true;
  offer.last_saved_ns = INT64_MAX;
  for (size_t i = 0; i < units_.size(); ++i) {
    if (!chosen_[i]) continue;
    const GroupState& group = state_.groups[units_[i].group];
    offer.stops |= !units_[i].surplus;
    offer.cost += units_[i].cost;
    offer.priority = std::max(offer.priority, group.priority);
    offer.over_rank = std::max(offer.over_rank, over_rank_[group.queue]);
    offer.last_saved_ns = std::min(offer.last_saved_ns, units_[i].last_saved_ns);
    if (units_[i].surplus) {
      offer.member = std::max(offer.member, state_.pods[units_[i].pod].member_priority);
    }
    offer.units.push_back(units_[i]);
    offer.units.back().change = group.change;
  }
  return offer;
}

VictimOrder VictimIndex::OrderOf(const NodeEvictionPlan& offer, int rank) const {
  return {.stops_gang = offer.stops,
          .cost = static_cast<double>(QuantizedCost(offer.cost)),
          .priority = offer.priority,
          .over_rank = offer.over_rank,
          .age_ns = -offer.last_saved_ns,
          .member_priority = offer.member,
          .number = rank};
}

void VictimIndex::Relist(Table& table, NodeId node) {
  const int rank = state_.nodes[node].rank;
  if (rank == kNone) return;
  if (table.listed[rank]) table.order.erase(table.key_of[rank]);
  table.listed[rank] = 0;
  NodeEvictionPlan& offer = table.offers[rank];
  offer = Evaluate(table.example, node);
  if (!offer.possible) return;
  table.key_of[rank] = OrderOf(offer, rank);
  table.listed[rank] = 1;
  table.order.insert(table.key_of[rank]);
}

VictimIndex::Table* VictimIndex::TableFor(PodId pod) {
  auto [it, added] = tables_.try_emplace(state_.pods[pod].shape);
  Table& table = it->second;
  if (!added) return &table;
  table.example = pod;
  table.key_of.resize(state_.index.by_rank.size());
  table.offers.resize(state_.index.by_rank.size());
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
  for (size_t queue = 0; queue < from_.size(); ++queue) {
    if (from_[queue]) holders += state_.queues[queue].holders.size();
  }
  // Where the jobs are more than the nodes, asking the nodes is the shorter way.
  const bool many = holders > has.size();
  for (size_t rank = 0; many && rank < has.size(); ++rank) {
    has[rank] = !state_.nodes[state_.index.by_rank[rank]].pods.empty();
  }
  std::vector<PodId> held;
  for (size_t queue = 0; !many && queue < from_.size(); ++queue) {
    if (!from_[queue]) continue;
    for (GroupId id : state_.queues[queue].holders) {
      if (!Eligible(id)) continue;
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

NodeId VictimIndex::Best(PodId pod, const NodeFilter* filter, NodeEvictionPlan& offer) {
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
    if (StillHolds(table->offers[rank])) {
      offer = table->offers[rank];
      return node;
    }
    Relist(*table, node);
    if (table->listed[rank] && table->key_of[rank] == key) {
      offer = table->offers[rank];
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
