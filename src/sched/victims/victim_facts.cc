#include "sched/victims/victim_facts.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace swell::sched {
namespace {

// A job that starts may be moved when it runs; that alone starts no cycle.
constexpr Duration kStartLook = std::chrono::seconds(5);

double OverUse(const CycleContext& context, QueueId id) {
  double most = 0;
  for (int pool : context.state.pool_facts.live) {
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

VictimFacts::VictimFacts(CycleContext& context)
    : context_(context),
      state_(context.state),
      from_(context.state.queues.size()),
      eligible_(context.state.groups.size(), -1),
      place_of_(context.state.groups.size(), kNone),
      over_rank_(context.state.queues.size()),
      spent_(context.disruptions.size()) {
  size_t holders = 0;
  for (const QueueState& queue : state_.queues) holders += queue.holders.size();
  facts_.reserve(holders);  // all of them may have to go
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

VictimFacts::GroupFacts& VictimFacts::At(GroupId group) {
  int32_t& at = place_of_[group];
  if (at == kNone) {
    at = static_cast<int32_t>(facts_.size());
    facts_.emplace_back();
  }
  return facts_[at];
}

bool VictimFacts::Begin(GroupId group, const VictimPolicy& policy) {
  group_ = group;
  policy_ = &policy;
  guarded_ = false;
  ForgetTaken();
  // What was learned holds while no queue is added to those that may lose.
  const bool more = std::any_of(policy.from.begin(), policy.from.end(),
                                [this](QueueId id) { return !from_[id]; });
  if (!more) return false;
  eligible_.assign(eligible_.size(), -1);
  for (QueueId id : policy.from) from_[id] = 1;
  return true;
}

bool VictimFacts::Eligible(GroupId id) {
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

bool VictimFacts::MayMove(GroupId id) {
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

VictimFacts::GroupFacts& VictimFacts::FactsOf(GroupId id) {
  GroupFacts& facts = At(id);
  const uint32_t change = state_.groups[id].change;
  if (facts.change == change) return facts;
  facts = {.change = change, .taken = facts.taken};
  for (PodId id_of_pod : state_.groups[id].members) {
    const PodState& pod = state_.pods[id_of_pod];
    if (!pod.Holds()) continue;
    facts.cost += CostOf(id_of_pod);
    facts.last_saved_ns = std::max(facts.last_saved_ns, LastSaved(id_of_pod));
    for (int r = 0; r < kQueueResources; ++r) facts.charge[r] += pod.charge[r];
  }
  return facts;
}

bool VictimFacts::MayStop(GroupId id) {
  if (policy_->surplus_only) return false;
  const GroupState& group = state_.groups[id];
  GroupFacts& facts = FactsOf(id);
  if (facts.may_stop >= 0) {
    guarded_ |= facts.may_stop == 0;
    return facts.may_stop > 0;
  }
  std::optional<WallTime> earliest;  // nothing, where no member holds room any more
  for (PodId pod : group.members) {
    if (!state_.pods[pod].Holds()) continue;
    const WallTime start = state_.pods[pod].start;
    const WallTime since = start.unix_ns != 0 ? start : context_.now;
    earliest = std::min(earliest.value_or(since), since);
  }
  facts.may_stop = 1;
  Duration min_runtime = TakesBackFrom(id) ? Duration::zero() : group.min_runtime;
  if (policy_->min_runtime) min_runtime = std::max(min_runtime, policy_->min_runtime(group));
  if (earliest && min_runtime > Duration::zero() && context_.now - *earliest < min_runtime) {
    facts.may_stop = 0;
    context_.WakeAt(*earliest + min_runtime);
  }
  guarded_ |= facts.may_stop == 0;
  return facts.may_stop > 0;
}

int64_t VictimFacts::CostOf(PodId id) const {
  const PodState& pod = state_.pods[id];
  const Shape& shape = state_.shapes[pod.shape];
  double weight = static_cast<double>(pod.charge[kQueueGpu]) / kPpm;
  // Work on CPUs is lost too; a hundred cores weigh as much as a GPU.
  if (weight == 0) weight = static_cast<double>(shape.core[kCpu]) / 100'000;
  const WallTime since = state_.SavedAt(pod);
  double seconds = 0;
  if (pod.start.unix_ns != 0 && context_.now > since) {
    seconds = std::chrono::duration<double>(context_.now - since).count();
  }
  return static_cast<int64_t>((weight * seconds + pod.restart_cost_gpu_s) * 1000);
}

int64_t VictimFacts::LastSaved(PodId id) const {
  const PodState& pod = state_.pods[id];
  if (pod.start.unix_ns == 0) return context_.now.unix_ns;  // it has yet to begin
  return state_.SavedAt(pod).unix_ns;
}

bool VictimFacts::Before(const VictimUnit& a, const VictimUnit& b, bool quantized) const {
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

bool VictimFacts::GivesUpFirst(const VictimUnit& a, const VictimUnit& b) const {
  if (a.last_saved_ns != b.last_saved_ns) return a.last_saved_ns > b.last_saved_ns;
  if (a.group != b.group) return state_.JobBefore(b.group, a.group);
  if (a.pod == kNone || b.pod == kNone) return b.pod == kNone && a.pod != kNone;
  return state_.MemberBefore(b.pod, a.pod);
}

QueueAmounts VictimFacts::ChargeOf(const VictimUnit& unit) {
  return unit.pod != kNone ? state_.pods[unit.pod].charge : FactsOf(unit.group).charge;
}

void VictimFacts::CountTaken(GroupId group, const TakenPods& pods) {
  At(group).taken += static_cast<int32_t>(pods.size());
  taken_from_.push_back(group);
  if (context_.disruptions.empty()) return;
  for (const auto& [pod, phase] : pods) {
    for (size_t budget : context_.disruptions.Over(pod)) ++spent_[budget];
  }
}

void VictimFacts::ForgetTaken() {
  for (GroupId group : taken_from_) At(group).taken = 0;
  taken_from_.clear();
  spent_.assign(spent_.size(), 0);
}

bool VictimFacts::WithinBudgets(const VictimUnit& unit, Losses& losses) {
  DisruptionLedger& ledger = context_.disruptions;
  if (ledger.empty() || TakesBackFrom(unit.group)) return true;
  std::vector<std::pair<size_t, int64_t>> counts = losses.budgets;
  auto count = [&](PodId pod) {
    for (size_t budget : ledger.Over(pod)) {
      auto known = std::find_if(counts.begin(), counts.end(),
                                [budget](const auto& it) { return it.first == budget; });
      if (known == counts.end()) known = counts.insert(known, {budget, 0});
      ++known->second;
    }
  };
  if (unit.pod != kNone) {
    count(unit.pod);
  } else {
    for (PodId pod : state_.groups[unit.group].members) {
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

bool VictimFacts::Allowed(const VictimUnit& unit, Losses& losses) {
  if (!WithinBudgets(unit, losses)) return false;
  if (!policy_->allows) return true;
  const QueueId queue = state_.groups[unit.group].queue;
  const QueueAmounts& more = unit.charge;
  if (unit.pod != kNone || !state_.groups[unit.group].has_surplus) {
    if (!policy_->allows(queue, losses, more)) return false;
  } else {
    // Its surplus would go first, and may be all that the queue has to give.
    const QueueAmounts surplus = SurplusCharge(unit.group);
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

QueueAmounts VictimFacts::SurplusCharge(GroupId id) const {
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

// Whether a later unit differs for the rule in nothing but what goes before it, which is more: if
// it may go, this one may.
bool VictimFacts::LaterSpeaksFor(const std::vector<VictimUnit>& units, size_t i) const {
  if (!policy_->allows || !context_.disruptions.empty()) return false;
  const auto plain = [this](const VictimUnit& unit) {
    return unit.pod != kNone || !state_.groups[unit.group].has_surplus;
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

bool VictimFacts::AllAllowed(const std::vector<VictimUnit>& units) {
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

}  // namespace swell::sched
