#include "sched/victims/victims.h"

#include <optional>

#include "base/strings.h"
#include "sched/placement/gang.h"
#include "sched/placement/topology.h"
#include "sched/queues/queue_order.h"
#include "sched/victims/victim_index.h"

namespace swell::sched {
namespace {

// What a move may drag along: more would be a reshuffle, not a defragmentation.
constexpr size_t kMovedUnitsMax = 16;
// Plans larger than this are not polished unit by unit beyond what costs nothing.
constexpr size_t kPolishedUnitsMax = 64;
// Where so few could be stopped, every combination is tried.
constexpr size_t kExactUnitsMax = 11;
constexpr size_t kExactPodsMax = 256;

// What was taken, as a unit that may be spared again.
struct Taken {
  GroupId group = kNone;
  bool whole = false;
  bool surplus = false;
  int64_t cost = 0;
  TakenPods pods;
};

class Search {
 public:
  Search(CycleContext& context,
         Statement& trial,
         GroupId group,
         const std::vector<PodId>& pods,
         VictimIndex& finder,
         const VictimPolicy& policy)
      : context_(context),
        state_(context.state),
        trial_(trial),
        group_(group),
        pods_(pods),
        index_(finder),
        facts_(finder.facts()),
        policy_(policy),
        filter_(context.state.FilterOf(policy.pool)) {}

  VictimPlan Run();

 private:
  void CatchUp();
  void Take(const VictimUnit& pick);
  void MergeIntoGang(Taken& whole);
  void TakeAll(const std::vector<VictimUnit>& units);
  // Units whose evictions were rolled back are no longer taken.
  void DropRolledBack();
  Spot FindPlace(PodId pod, const NodeFilter* filter);
  bool Place(PodId pod, const NodeFilter* filter);
  bool MakeRoom(PodId pod, const NodeFilter* filter);
  bool HasQueueRoom() const;
  bool StaysWithinBounds() const;
  bool MakeQueueRoom();
  bool PlacePods();
  bool Move(const Taken& unit);
  bool Moved(const Taken& unit) const;
  bool MoveTaken();
  bool StartsWithout(const Taken& unit);
  bool RoomHolds(const Taken& unit) const;
  bool NeededWhereItIs(const Taken& unit) const;
  void FetchTaken(size_t i) const;
  void SpareUnneeded();
  bool Justified();
  void MoveVictims();
  std::vector<VictimUnit> AllPicks();
  void AddExactUnits(GroupId group, std::vector<VictimUnit>& units);
  bool TryExact(const std::vector<VictimUnit>& units, uint32_t chosen);
  std::optional<bool> PlaceExactly();
  VictimPlan Plan() const;
  VictimPlan Fail(const Statement::Mark& mark);

  CycleContext& context_;
  State& state_;
  Statement& trial_;
  const GroupId group_;
  const std::vector<PodId>& pods_;
  VictimIndex& index_;
  VictimFacts& facts_;
  const VictimPolicy& policy_;
  const NodeFilter* filter_;
  std::vector<Taken> taken_;
  size_t log_size_ = 0;  // of the trial when taken_ was last known to be true
  // Shapes that fitted nowhere without evictions, with the ranks that changed since.
  std::map<ShapeId, std::set<int>> fresh_;
};

void Search::CatchUp() {
  index_.CatchUp();
  for (auto& [shape, ranks] : fresh_) {
    ranks.insert(index_.changed().begin(), index_.changed().end());
  }
}

void Search::DropRolledBack() {
  if (trial_.size() >= log_size_) return;
  for (Taken& taken : taken_) {
    std::erase_if(taken.pods, [this](const auto& pod) {
      return state_.pods[pod.first].phase != PodPhase::kReleasing;
    });
  }
  std::erase_if(taken_, [](const Taken& taken) { return taken.pods.empty(); });
  facts_.ForgetTaken();
  for (const Taken& taken : taken_) facts_.CountTaken(taken.group, taken.pods);
  fresh_.clear();
  log_size_ = trial_.size();
  CatchUp();
}

void Search::Take(const VictimUnit& pick) {
  Taken taken;
  taken.group = pick.group;
  taken.whole = pick.pod == kNone;
  taken.surplus = pick.surplus;
  taken.cost = pick.cost;
  if (taken.whole) {
    for (PodId pod : state_.groups[pick.group].members) {
      if (state_.pods[pod].Holds()) taken.pods.emplace_back(pod, state_.pods[pod].phase);
    }
  } else if (state_.pods[pick.pod].Holds()) {
    taken.pods.emplace_back(pick.pod, state_.pods[pick.pod].phase);
  }
  if (taken.pods.empty()) return;
  for (const auto& [pod, phase] : taken.pods) trial_.Evict(pod);
  facts_.CountTaken(taken.group, taken.pods);
  if (taken.whole) MergeIntoGang(taken);
  taken_.push_back(std::move(taken));
  log_size_ = trial_.size();
}

// What was taken of a group before is part of stopping it whole: to spare it would leave the gang
// half alive.
void Search::MergeIntoGang(Taken& whole) {
  if (facts_.TakenOf(whole.group) == static_cast<int>(whole.pods.size())) return;
  std::erase_if(taken_, [&whole](const Taken& taken) {
    if (taken.group != whole.group) return false;
    whole.pods.insert(whole.pods.end(), taken.pods.begin(), taken.pods.end());
    whole.cost += taken.cost;
    return true;
  });
}

void Search::TakeAll(const std::vector<VictimUnit>& units) {
  for (const VictimUnit& pick : units) {
    __builtin_prefetch(state_.groups[pick.group].members.data());
    __builtin_prefetch(state_.groups[pick.group].sets.data());
  }
  for (const VictimUnit& pick : units) {
    for (PodId pod : state_.groups[pick.group].members) {
      __builtin_prefetch(&state_.pods[pod].phase);
      __builtin_prefetch(&state_.pods[pod].charge);
    }
  }
  for (const VictimUnit& pick : units) {
    // Its gang goes whole.
    const bool included = pick.pod != kNone &&
                          std::any_of(units.begin(), units.end(), [&pick](const VictimUnit& other) {
                            return other.group == pick.group && other.pod == kNone;
                          });
    if (!included) Take(pick);
  }
  CatchUp();
}

Spot Search::FindPlace(PodId pod, const NodeFilter* filter) {
  const Shape& shape = state_.ShapeOf(pod);
  const bool plain = !shape.DependsOnPods() && shape.anti_affinity.empty() &&
                     !shape.HasPreferences() && state_.terms.empty();
  auto known = plain ? fresh_.find(state_.pods[pod].shape) : fresh_.end();
  if (known == fresh_.end()) {
    context_.searches.budget -= static_cast<int64_t>(state_.index.by_rank.size()) / 8 + 1;
    const Spot spot = FindSpot(state_, pod, Tense::kFuture, filter);
    if (!spot && plain && filter == filter_) fresh_[state_.pods[pod].shape];
    return spot;
  }
  std::set<int>& ranks = known->second;
  for (auto it = ranks.begin(); it != ranks.end();) {
    const NodeId node = state_.index.by_rank[*it];
    if (filter != nullptr && !(*filter)[node]) {
      ++it;
      continue;
    }
    if (Fits(state_, pod, node, Tense::kFuture)) {
      return {node, ChooseDevices(state_, state_.ShapeOf(pod), state_.nodes[node], Tense::kFuture)};
    }
    it = ranks.erase(it);
  }
  return {};
}

// Promises the unit's pods another place; false leaves some of them promised.
bool Search::Move(const Taken& unit) {
  std::vector<PodId> pods;
  for (const auto& [pod, phase] : unit.pods) {
    if (state_.pods[pod].promise != kNone) trial_.DropPromise(pod);  // it was to move alone before
    pods.push_back(pod);
  }
  std::sort(pods.begin(), pods.end(),
            [this](PodId a, PodId b) { return state_.MemberBefore(a, b); });
  for (int pool : state_.PoolsFor(unit.group)) {
    if (!FitsQueues(state_, state_.groups[unit.group], pods, pool, Tense::kFuture)) continue;
    if (PlaceAll(trial_, state_, unit.group, pods, Tense::kFuture, state_.FilterOf(pool))) {
      return true;
    }
  }
  return false;
}

bool Search::MoveTaken() {
  if (taken_.size() > kMovedUnitsMax) return false;
  return std::all_of(taken_.begin(), taken_.end(),
                     [this](const Taken& unit) { return Moved(unit) || Move(unit); });
}

// Evicts on the cheapest node that then fits the pod, and promises it.
bool Search::MakeRoom(PodId pod, const NodeFilter* filter) {
  NodeEvictionPlan plan;
  while (context_.searches.budget > 0) {
    const NodeId node = index_.Best(pod, filter, plan);
    if (node == kNone) return false;
    const Statement::Mark mark = trial_.Checkpoint();
    TakeAll(plan.units);
    if (Fits(state_, pod, node, Tense::kFuture)) {
      trial_.Promise(
          pod, node,
          ChooseDevices(state_, state_.ShapeOf(pod), state_.nodes[node], Tense::kFuture));
      if (!policy_.must_move || MoveTaken()) {
        log_size_ = trial_.size();
        CatchUp();
        return true;
      }
    }
    // Something other than room is in the way (another pod's anti-affinity, say).
    trial_.Rollback(mark);
    DropRolledBack();
    index_.Exclude(pod, node);
  }
  return false;
}

bool Search::Place(PodId pod, const NodeFilter* filter) {
  DropRolledBack();
  const Spot spot = FindPlace(pod, filter);
  if (!spot) return MakeRoom(pod, filter);
  trial_.Promise(pod, spot.node, spot.devices);
  log_size_ = trial_.size();
  CatchUp();
  return true;
}

// Whether the queue may hold the pods, which have no places yet.
bool Search::HasQueueRoom() const {
  return FitsQueues(state_, state_.groups[group_], pods_, policy_.pool, Tense::kFuture) &&
         (!policy_.may_hold || policy_.may_hold(pods_));
}

// The same once they have places, and count.
bool Search::StaysWithinBounds() const {
  return WithinLimits(state_, state_.groups[group_], policy_.pool) &&
         (!policy_.may_hold || policy_.may_hold({}));
}

// A queue that holds all it may has room for the pods once enough of its own lesser work is gone.
bool Search::MakeQueueRoom() {
  if (HasQueueRoom()) return true;
  if (policy_.must_move) return false;  // what is moved still counts
  std::vector<VictimUnit> units = AllPicks();
  if (policy_.may_hold) {
    std::erase_if(units, [this](const VictimUnit& unit) {
      return state_.groups[unit.group].queue != state_.groups[group_].queue;
    });
  }
  for (VictimUnit& pick : units) {
    pick.value = 1e-6;
    for (PodId pod : state_.groups[pick.group].members) {
      if ((pick.pod != kNone && pick.pod != pod) || !state_.pods[pod].Holds()) continue;
      const QueueAmounts& charge = state_.pods[pod].charge;
      pick.value += static_cast<double>(charge[kQueueGpu]) / kPpm +
                    static_cast<double>(charge[kQueueCpu]) / 100'000;
    }
  }
  std::sort(units.begin(), units.end(),
            [this](const VictimUnit& a, const VictimUnit& b) { return facts_.Before(a, b, true); });
  for (VictimUnit& pick : units) {
    if (pick.pod != kNone && !state_.pods[pick.pod].Holds()) continue;
    pick.charge = facts_.ChargeOf(pick);
    Losses losses;
    if (!facts_.Allowed(pick, losses)) continue;
    TakeAll({pick});
    if (HasQueueRoom()) return true;
  }
  return false;
}

bool Search::PlacePods() {
  if (!MakeQueueRoom()) return false;
  log_size_ = trial_.size();
  if (HasTopology(state_.groups[group_])) {
    const PlacePod place = [this](PodId pod, const NodeFilter* filter) {
      return Place(pod, filter);
    };
    const bool placed = PlaceInTopology(trial_, state_, group_, pods_, place, nullptr, filter_);
    DropRolledBack();
    return placed;
  }
  return std::all_of(pods_.begin(), pods_.end(), [this](PodId pod) { return Place(pod, filter_); });
}

// Whether the unit's nodes hold what they promised even if it stays.
bool Search::RoomHolds(const Taken& unit) const {
  auto fits = [](const NodeState& node) {
    for (int r = 0; r < kCoreCount; ++r) {
      if (node.used[r] - node.releasing[r] + node.promised[r] > node.allocatable[r]) return false;
    }
    for (size_t r = 0; r < node.ext_promised.size(); ++r) {
      auto at = [r](const std::vector<int64_t>& v) { return r < v.size() ? v[r] : 0; };
      if (node.ext_promised[r] == 0) continue;
      if (at(node.ext_used) - at(node.ext_releasing) + node.ext_promised[r] >
          at(node.ext_allocatable)) {
        return false;
      }
    }
    return std::all_of(node.devices.begin(), node.devices.end(),
                       [](const Device& device) { return device.FreeInFuture() >= 0; });
  };
  return std::all_of(unit.pods.begin(), unit.pods.end(), [&](const auto& pod) {
    const NodeState& node = state_.nodes[state_.pods[pod.first].node];
    return fits(node) && node.port_pods == 0;
  });
}

// With one unit spared, finds other room for the pods that were to have its place.
bool Search::StartsWithout(const Taken& unit) {
  for (const auto& [pod, phase] : unit.pods) {
    if (state_.pods[pod].promise != kNone) trial_.DropPromise(pod);
    trial_.Unevict(pod, phase);
  }
  if (!StaysWithinBounds()) return false;
  if (state_.terms.empty() && RoomHolds(unit)) return true;
  if (taken_.size() > kPolishedUnitsMax) return false;
  if (HasTopology(state_.groups[group_])) {  // moving one pod may mean moving all
    for (PodId pod : pods_) trial_.DropPromise(pod);
    return HasQueueRoom() && PlaceAll(trial_, state_, group_, pods_, Tense::kFuture, filter_);
  }
  std::vector<PodId> moved;
  for (PodId pod : pods_) {
    const NodeId node = state_.pods[pod].promise;
    const bool touched = std::any_of(unit.pods.begin(), unit.pods.end(), [&](const auto& spared) {
      return state_.pods[spared.first].node == node;
    });
    if (!touched) continue;
    moved.push_back(pod);
    trial_.DropPromise(pod);
  }
  context_.searches.budget -=
      static_cast<int64_t>(moved.size() * (state_.index.by_rank.size() / 8 + 1));
  for (PodId pod : moved) {
    const Spot spot = FindSpot(state_, pod, Tense::kFuture, filter_);
    if (!spot) return false;
    trial_.Promise(pod, spot.node, spot.devices);
  }
  return StaysWithinBounds();
}

// Whether sparing the unit would leave a node without the room it promised; then only other places
// could help.
bool Search::NeededWhereItIs(const Taken& unit) const {
  return std::any_of(unit.pods.begin(), unit.pods.end(), [this](const auto& taken) {
    const PodState& pod = state_.pods[taken.first];
    const NodeState& node = state_.nodes[pod.node];
    const Shape& shape = state_.shapes[pod.shape];
    for (int r = 0; r < kCoreCount; ++r) {
      const int64_t staying = node.used[r] - node.releasing[r] + node.promised[r];
      if (staying + shape.core[r] > node.allocatable[r]) return true;
    }
    return false;
  });
}

// As State::PrefetchAt, for what was taken.
void Search::FetchTaken(size_t i) const {
  if (i + 16 < taken_.size()) __builtin_prefetch(taken_[i + 16].pods.data());
  if (i + 8 >= taken_.size()) return;
  for (const auto& [pod, phase] : taken_[i + 8].pods) __builtin_prefetch(&state_.pods[pod]);
}

// Choosing node by node may have taken what a later choice made needless.
void Search::SpareUnneeded() {
  if (taken_.size() < 2) return;
  const bool polished = taken_.size() <= kPolishedUnitsMax;
  std::vector<std::pair<int64_t, size_t>> order;  // the costliest first
  for (size_t i = 0; i < taken_.size(); ++i) {
    FetchTaken(i);
    if (polished || !NeededWhereItIs(taken_[i])) order.emplace_back(taken_[i].cost, i);
  }
  std::sort(order.rbegin(), order.rend());
  std::set<size_t> spared;
  for (const auto& [cost, i] : order) {
    if (context_.searches.budget <= 0 || spared.size() + 1 == taken_.size()) break;
    // A pod that was spared before may have made this one needed.
    if (!polished && !spared.empty() && NeededWhereItIs(taken_[i])) continue;
    const Statement::Mark mark = trial_.Checkpoint();
    if (StartsWithout(taken_[i])) {
      spared.insert(i);
    } else {
      trial_.Rollback(mark);
    }
  }
  log_size_ = trial_.size();
  if (spared.empty()) return;
  std::vector<Taken> needed;
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (!spared.contains(i)) needed.push_back(std::move(taken_[i]));
  }
  taken_ = std::move(needed);
}

bool Search::Moved(const Taken& unit) const {
  return state_.pods[unit.pods.front().first].promise != kNone;
}

// Whether nobody loses what the rule, looking at what is left, would have spared.
bool Search::Justified() {
  if (!policy_.protects) return true;
  size_t next = 0;
  return std::all_of(taken_.begin(), taken_.end(), [&](const Taken& unit) {
    FetchTaken(next++);
    QueueAmounts charge{};
    for (const auto& [pod, phase] : unit.pods) {
      const QueueAmounts its = state_.ChargeOf(state_.ShapeOf(pod), state_.pods[pod].node);
      for (int r = 0; r < kQueueResources; ++r) charge[r] += its[r];
    }
    if (!policy_.protects(state_.groups[unit.group].queue, charge)) return true;
    return taken_.size() <= kMovedUnitsMax && Move(unit);
  });
}

// A victim may find room elsewhere: it then restarts there instead of waiting.
void Search::MoveVictims() {
  if (policy_.must_move || taken_.size() > kPolishedUnitsMax) return;
  std::vector<const Taken*> order;
  for (const Taken& taken : taken_) order.push_back(&taken);
  std::sort(order.begin(), order.end(), [this](const Taken* a, const Taken* b) {
    if (a->group != b->group) return state_.JobBefore(a->group, b->group);
    return state_.MemberBefore(a->pods.front().first, b->pods.front().first);
  });
  for (const Taken* taken : order) {
    if (Moved(*taken)) continue;
    const Statement::Mark mark = trial_.Checkpoint();
    if (!Move(*taken)) trial_.Rollback(mark);
  }
}

std::vector<VictimUnit> Search::AllPicks() {
  std::vector<VictimUnit> units;
  for (size_t id = 0; id < state_.groups.size(); ++id) {
    const GroupId victim = static_cast<GroupId>(id);
    if (state_.groups[id].live && facts_.Eligible(victim)) index_.PicksOf(victim, units);
  }
  if (policy_.pool == kNone) return units;
  std::erase_if(units, [this](const VictimUnit& pick) {
    const std::vector<PodId>& members = state_.groups[pick.group].members;
    return std::none_of(members.begin(), members.end(), [this](PodId pod) {
      return state_.pods[pod].Holds() && state_.nodes[state_.pods[pod].node].pool == policy_.pool;
    });
  });
  return units;
}

// What a group may give up, any member standing for the surplus.
void Search::AddExactUnits(GroupId id, std::vector<VictimUnit>& units) {
  const GroupState& group = state_.groups[id];
  VictimUnit whole{.group = id};
  for (PodId pod : group.members) {
    if (!state_.pods[pod].Holds()) continue;
    const int64_t safe = facts_.LastSaved(pod);
    const int64_t cost = facts_.CostOf(pod);
    whole.cost += cost;
    whole.last_saved_ns = std::max(whole.last_saved_ns, safe);
    const bool surplus = group.sets[state_.pods[pod].set].Surplus() > 0;
    if (!surplus && (group.unit != PreemptUnit::kPod || !facts_.MayStop(id))) continue;
    units.push_back({.group = id,
                     .pod = pod,
                     .surplus = surplus,
                     .cost = cost,
                     .last_saved_ns = safe,
                     .value = 1});
  }
  whole.value = 1;
  if (group.unit == PreemptUnit::kGang && facts_.MayStop(id)) units.push_back(whole);
  for (VictimUnit& pick : units) {
    if (pick.group != id) continue;
    pick.charge = facts_.ChargeOf(pick);
    pick.last_saved_ns =
        whole.last_saved_ns;  // groups come in one order, and members in theirs within
  }
}

// Takes the chosen units and starts the pods, or leaves the trial as it was.
bool Search::TryExact(const std::vector<VictimUnit>& units, uint32_t chosen) {
  const Statement::Mark mark = trial_.Checkpoint();
  std::vector<const VictimUnit*> order;
  for (size_t i = 0; i < units.size(); ++i) {
    if ((chosen >> i) & 1u) order.push_back(&units[i]);
  }
  // What others may lose is judged by what the job's own queue still holds, and by what they have
  // before: the largest last.
  const auto rank = [this](const VictimUnit* unit) {
    return std::pair(state_.groups[unit->group].queue != state_.groups[group_].queue, unit->cost);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&rank](const VictimUnit* a, const VictimUnit* b) { return rank(a) < rank(b); });
  bool works = true;
  for (const VictimUnit* pick : order) {
    Losses losses;
    const bool holds = pick->pod == kNone || state_.pods[pick->pod].Holds();
    const bool left =
        !pick->surplus || state_.groups[pick->group].sets[state_.pods[pick->pod].set].Surplus() > 0;
    works = holds && left && facts_.Allowed(*pick, losses);
    if (!works) break;
    Take(*pick);
  }
  context_.searches.budget -= static_cast<int64_t>(pods_.size() + order.size());
  works = works && HasQueueRoom() &&
          PlaceAll(trial_, state_, group_, pods_, Tense::kFuture, filter_) &&
          (policy_.must_move ? MoveTaken() : Justified());
  if (works) return true;
  trial_.Rollback(mark);
  taken_.clear();
  facts_.ForgetTaken();
  return false;
}

// Tries combinations from the cheapest on, where there are few enough; nullopt where there are not.
std::optional<bool> Search::PlaceExactly() {
  if (state_.ids.pods.size() > kExactPodsMax) return std::nullopt;
  std::vector<VictimUnit> units;
  for (size_t id = 0; id < state_.groups.size(); ++id) {
    const GroupId victim = static_cast<GroupId>(id);
    if (!state_.groups[id].live || !facts_.Eligible(victim)) continue;
    AddExactUnits(victim, units);
  }
  if (units.size() > kExactUnitsMax) return std::nullopt;
  std::sort(units.begin(), units.end(), [this](const VictimUnit& a, const VictimUnit& b) {
    const auto order = [this](GroupId group) {
      return VictimOrder{.priority = state_.groups[group].priority,
                         .over_rank = facts_.OverRank(state_.groups[group].queue)};
    };
    const VictimOrder left = order(a.group);
    const VictimOrder right = order(b.group);
    return left != right ? left < right : facts_.GivesUpFirst(a, b);
  });
  std::vector<VictimOrder> subsets;
  // None first: others may have left room for it in this very cycle.
  for (uint32_t chosen = 0; chosen < (1u << units.size()); ++chosen) {
    VictimOrder order{.priority = INT32_MIN, .number = static_cast<int32_t>(chosen)};
    int64_t cost = 0;
    std::set<GroupId> whole;
    bool doubled = false;
    for (size_t i = 0; i < units.size(); ++i) {
      if (((chosen >> i) & 1u) == 0) continue;
      order.stops_gang |= !units[i].surplus;
      cost += units[i].cost;
      order.priority = std::max(order.priority, state_.groups[units[i].group].priority);
      if (units[i].pod == kNone) whole.insert(units[i].group);
    }
    for (size_t i = 0; i < units.size(); ++i) {
      doubled |= ((chosen >> i) & 1u) && units[i].pod != kNone && whole.contains(units[i].group);
    }
    order.cost = static_cast<double>(QuantizedCost(cost));
    if (!doubled) subsets.push_back(order);
  }
  std::sort(subsets.begin(), subsets.end());
  return std::any_of(subsets.begin(), subsets.end(), [&](const VictimOrder& order) {
    return context_.searches.budget > 0 && TryExact(units, static_cast<uint32_t>(order.number));
  });
}

VictimPlan Search::Plan() const {
  VictimPlan plan;
  plan.outcome = VictimPlan::Outcome::kPlan;
  for (const Taken& taken : taken_) {
    const size_t first = plan.victims.size();
    for (const auto& [pod, phase] : taken.pods) plan.victims.push_back(pod);
    std::sort(plan.victims.begin() + static_cast<std::ptrdiff_t>(first), plan.victims.end(),
              [this](PodId a, PodId b) { return state_.MemberBefore(a, b); });
  }
  return plan;
}

VictimPlan Search::Fail(const Statement::Mark& mark) {
  trial_.Rollback(mark);
  VictimPlan plan;
  if (context_.searches.budget <= 0) {
    plan.outcome = VictimPlan::Outcome::kBudgetSpent;
    plan.because = "the search for pods to stop is too large for one cycle";
    ++context_.stats.searches_out_of_budget;
  } else if (policy_.from.empty()) {
    plan.because = "no other project holds more than its fair share";
  } else if (!facts_.any_eligible()) {
    plan.because = "there is nothing of lower priority to stop";
  } else if (facts_.guarded()) {
    plan.because = StrCat("the work that it could preempt is protected by a minimum run time",
                          policy_.takes_back ? " of its project" : " or a disruption budget");
  } else {
    plan.because = "stopping all work that it may preempt would not free enough room";
  }
  return plan;
}

VictimPlan Search::Run() {
  const Statement::Mark mark = trial_.Checkpoint();
  const std::optional<bool> exact = PlaceExactly();
  if (exact ? !*exact : !PlacePods()) return Fail(mark);
  if (!exact) {
    SpareUnneeded();
    if (!Justified()) return Fail(mark);
  }
  MoveVictims();
  return Plan();
}

}  // namespace

VictimPlan FindVictims(CycleContext& context,
                       Statement& trial,
                       GroupId group,
                       const std::vector<PodId>& pods,
                       const SearcherKey& searcher,
                       const VictimPolicy& policy) {
  ++context.stats.searches;
  std::shared_ptr<VictimIndex>& finder = context.searches.indexes[searcher];
  // What others may lose grows with what the job's own queue gives up: nothing listed before holds.
  if (!finder || policy.may_hold) finder = std::make_shared<VictimIndex>(context);
  finder->Begin(group, policy);
  context.state.cycle.served = group;
  VictimPlan plan = Search(context, trial, group, pods, *finder, policy).Run();
  context.state.cycle.served = kNone;
  return plan;
}

}  // namespace swell::sched
