#include "sched/victims.h"

#include <set>
#include <tuple>

#include "base/strings.h"
#include "sched/topology.h"

namespace swell::sched {
namespace {

// Something that may be stopped: one pod, or a whole group (pod == kNone).
struct Pick {
  GroupId group = kNone;
  PodId pod = kNone;
  bool surplus = false;
  int64_t cost = 0;         // milli GPU-seconds
  int64_t start_ns = 0;     // youngest first among equals
  double value = 0;         // how much of what is missing it frees here; > 0 once rated
  std::vector<PodId> here;  // its pods on the node in question
};

// What making room on one node would take.
struct Offer {
  bool possible = false;
  bool stops = false;  // takes more than surplus
  int64_t cost = 0;
  int32_t priority = INT32_MIN;  // highest among victims
  int64_t start_ns = 0;          // oldest among victims
  std::vector<Pick> picks;
};

// What was taken, as a unit that may be spared again.
struct Taken {
  GroupId group = kNone;
  bool whole = false;
  int64_t cost = 0;
  std::vector<std::pair<PodId, PodPhase>> pods;
};

// Room on one node as it would be with some pods gone.
class Scratch {
 public:
  Scratch(const State& state, const NodeState& node, const Shape& shape)
      : state_(state), node_(node), shape_(shape), ppm_(state.DevicePpm(shape, node)) {
    for (int r = 0; r < kCoreCount; ++r) {
      free_[r] = node.allocatable[r] - node.used[r] + node.releasing[r] - node.promised[r];
    }
    ext_free_.reserve(shape.extended.size());
    auto at = [](const std::vector<int64_t>& amounts, int r) {
      return static_cast<size_t>(r) < amounts.size() ? amounts[r] : 0;
    };
    for (const auto& [r, wanted] : shape.extended) {
      ext_free_.push_back(at(node.ext_allocatable, r) - at(node.ext_used, r) +
                          at(node.ext_releasing, r) - at(node.ext_promised, r));
    }
    if (shape.UsesGpu()) {
      for (int i = 0; i < node.gpu_count; ++i) {
        devices_.push_back(node.devices[i].FreeInFuture());
      }
    }
  }
  GroupId GroupOf(PodId pod) const { return state_.pods[pod].group; }
  void Move(PodId id, int sign) {  // +1: gone, -1: back
    const PodState& pod = state_.pods[id];
    const Shape& shape = state_.shapes[pod.shape];
    for (int r = 0; r < kCoreCount; ++r) free_[r] += sign * shape.core[r];
    for (size_t i = 0; i < shape_.extended.size(); ++i) {
      for (const auto& [r, amount] : shape.extended) {
        if (r == shape_.extended[i].first) ext_free_[i] += sign * amount;
      }
    }
    const int64_t ppm = state_.DevicePpm(shape, node_);
    pod.devices.ForEach([&](int i) {
      if (static_cast<size_t>(i) < devices_.size()) devices_[i] += sign * ppm;
    });
  }
  // Shares of each wanted resource that are missing: 0 when the pod fits.
  double Missing() const {
    double missing = 0;
    auto add = [&missing](int64_t wanted, int64_t free) {
      if (wanted > 0 && free < wanted) {
        missing += static_cast<double>(wanted - free) / static_cast<double>(wanted);
      }
    };
    for (int r = 0; r < kCoreCount; ++r) add(shape_.core[r], free_[r]);
    for (size_t i = 0; i < ext_free_.size(); ++i) add(shape_.extended[i].second, ext_free_[i]);
    if (shape_.UsesGpu()) {
      int64_t fitting = 0;
      double nearly = 0;  // parts of devices count a little, so that sharers add up
      for (int64_t free : devices_) {
        if (free >= ppm_) {
          ++fitting;
        } else if (free > 0) {
          nearly = std::max(nearly, static_cast<double>(free) / static_cast<double>(ppm_));
        }
      }
      const int64_t wanted = shape_.Shares() ? shape_.share_devices : shape_.core[kGpu];
      if (fitting < wanted) {
        missing +=
            (static_cast<double>(wanted - fitting) - 0.5 * nearly) / static_cast<double>(wanted);
      }
    }
    return missing;
  }

 private:
  const State& state_;
  const NodeState& node_;
  const Shape& shape_;
  const int64_t ppm_;
  CoreAmounts free_{};
  std::vector<int64_t> ext_free_;
  std::vector<int64_t> devices_;
};

class Search {
 public:
  Search(Context& context,
         Statement& trial,
         GroupId group,
         const std::vector<PodId>& pods,
         const VictimPolicy& policy)
      : context_(context),
        state_(context.state),
        trial_(trial),
        group_(group),
        pods_(pods),
        policy_(policy),
        eligible_(context.state.groups.size(), -1) {}

  VictimPlan Run();

 private:
  using OfferKey = std::tuple<bool, int64_t, int32_t, int64_t, int>;  // last: node rank
  struct Offers {
    std::vector<OfferKey> key_of;  // by rank; valid where listed
    std::vector<uint8_t> listed;
    std::set<OfferKey> order;
  };

  bool Eligible(GroupId group);
  bool MayStop(GroupId group);
  int64_t CostOf(PodId pod) const;
  int64_t CostOfGroup(GroupId group) const;
  int64_t StartOf(PodId pod) const { return state_.pods[pod].start.unix_ns; }
  int SurplusLeft(GroupId group, int32_t set) const;
  void AddPicks(GroupId group, std::vector<PodId> here, std::vector<Pick>& picks);
  std::vector<Pick> PicksOn(NodeId node);
  Offer Evaluate(PodId pod, NodeId node);
  static bool Before(const State& state, const Pick& a, const Pick& b);
  Offers& OffersFor(PodId pod);
  void Relist(Offers& offers, PodId pod, NodeId node);
  void Refresh(NodeId node);
  void Take(const std::vector<Pick>& picks);
  bool MakeRoom(PodId pod, const NodeFilter* filter, Spot& spot);
  bool MakeQueueRoom();
  bool PlacePods(const NodeFilter* filter);
  bool StartsWithout(const Taken& unit);
  void SpareUnneeded();
  VictimPlan Fail(const Statement::Mark& mark);

  Context& context_;
  State& state_;
  Statement& trial_;
  const GroupId group_;
  const std::vector<PodId>& pods_;
  const VictimPolicy& policy_;
  std::vector<int8_t> eligible_;  // by GroupId; -1: not asked yet
  bool any_eligible_ = false;
  bool protected_ = false;  // someone would be eligible but for a min runtime or a budget
  std::vector<Taken> taken_;
  std::map<ShapeId, Offers> offers_;
  std::map<ShapeId, PodId> example_;             // a pod of each shape in offers_
  std::set<std::pair<ShapeId, NodeId>> barred_;  // room was made and the pod still did not fit
};

bool Search::Eligible(GroupId id) {
  if (id == kNone || id == group_) return false;
  int8_t& known = eligible_[id];
  if (known < 0) {
    known = policy_.eligible(state_.groups[id]);
    any_eligible_ |= known > 0;
  }
  return known > 0;
}

bool Search::MayStop(GroupId id) {
  if (policy_.surplus_only) return false;
  const GroupState& group = state_.groups[id];
  int32_t holding = 0;
  WallTime earliest{INT64_MAX};
  for (PodId pod : group.members) {
    if (!state_.pods[pod].Holds()) continue;
    ++holding;
    const WallTime start = state_.pods[pod].start;
    earliest = std::min(earliest, start.unix_ns != 0 ? start : context_.now);
  }
  const int32_t most = group.unit == PreemptUnit::kPod ? 1 : holding;
  if (group.disruptions_allowed < most) {
    protected_ = true;
    return false;
  }
  if (group.min_runtime > Duration::zero() && context_.now - earliest < group.min_runtime) {
    protected_ = true;
    context_.WakeAt(earliest + group.min_runtime);
    return false;
  }
  return true;
}

int64_t Search::CostOf(PodId id) const {
  const PodState& pod = state_.pods[id];
  const Shape& shape = state_.shapes[pod.shape];
  double weight = static_cast<double>(state_.ChargeOf(shape, pod.node)[kQueueGpu]) / kPpm;
  // Work on CPUs is lost too; a hundred cores weigh as much as a GPU.
  if (weight == 0) weight = static_cast<double>(shape.core[kCpu]) / 100'000;
  const WallTime since = std::max(pod.start, pod.checkpoint);
  double seconds = 0;
  if (pod.start.unix_ns != 0 && context_.now > since) {
    seconds = std::chrono::duration<double>(context_.now - since).count();
  }
  return static_cast<int64_t>((weight * seconds + pod.restart_cost_gpu_s) * 1000);
}

int64_t Search::CostOfGroup(GroupId id) const {
  int64_t cost = 0;
  for (PodId pod : state_.groups[id].members) {
    if (state_.pods[pod].Holds()) cost += CostOf(pod);
  }
  return cost;
}

int Search::SurplusLeft(GroupId id, int32_t set) const {
  const GroupState& group = state_.groups[id];
  int taken = 0;
  for (const Taken& t : taken_) {
    if (t.group == id) taken += static_cast<int>(t.pods.size());
  }
  return std::min(group.sets[set].Surplus(), std::max(0, group.disruptions_allowed - taken));
}

// What of one group can be given up here: surplus members in give-up order, then the rest.
void Search::AddPicks(GroupId id, std::vector<PodId> here, std::vector<Pick>& picks) {
  const GroupState& group = state_.groups[id];
  std::sort(here.begin(), here.end(),
            [this](PodId a, PodId b) { return state_.MemberBefore(b, a); });
  std::vector<int> surplus(group.sets.size());
  for (size_t s = 0; s < surplus.size(); ++s) surplus[s] = SurplusLeft(id, static_cast<int32_t>(s));
  bool may_stop_known = false;
  bool may_stop = false;
  Pick whole;
  for (PodId pod : here) {
    int& left = surplus[state_.pods[pod].set];
    const bool is_surplus = left > 0;
    if (is_surplus) {
      --left;
      picks.push_back({id, pod, true, CostOf(pod), StartOf(pod), 0, {pod}});
      continue;
    }
    if (!may_stop_known) may_stop = MayStop(id), may_stop_known = true;
    if (!may_stop) continue;
    if (group.unit == PreemptUnit::kPod) {
      picks.push_back({id, pod, false, CostOf(pod), StartOf(pod), 0, {pod}});
    } else {
      whole.group = id;
    }
  }
  if (whole.group == kNone) return;
  whole.cost = CostOfGroup(id);
  whole.here = here;
  for (PodId pod : here) whole.start_ns = std::max(whole.start_ns, StartOf(pod));
  picks.push_back(std::move(whole));
}

std::vector<Pick> Search::PicksOn(NodeId node) {
  std::vector<std::pair<GroupId, PodId>> candidates;
  for (PodId pod : state_.nodes[node].pods) {
    if (state_.pods[pod].Holds() && Eligible(state_.pods[pod].group)) {
      candidates.emplace_back(state_.pods[pod].group, pod);
    }
  }
  std::sort(candidates.begin(), candidates.end());
  std::vector<Pick> picks;
  for (size_t i = 0; i < candidates.size();) {
    std::vector<PodId> here;
    size_t j = i;
    for (; j < candidates.size() && candidates[j].first == candidates[i].first; ++j) {
      here.push_back(candidates[j].second);
    }
    AddPicks(candidates[i].first, std::move(here), picks);
    i = j;
  }
  return picks;
}

// Surplus first, then least work lost for what it frees, lowest priority, youngest.
bool Search::Before(const State& state, const Pick& a, const Pick& b) {
  if (a.surplus != b.surplus) return a.surplus;
  const double left = static_cast<double>(a.cost) / a.value;
  const double right = static_cast<double>(b.cost) / b.value;
  if (left != right) return left < right;
  const int32_t priority_a = state.groups[a.group].priority;
  const int32_t priority_b = state.groups[b.group].priority;
  if (priority_a != priority_b) return priority_a < priority_b;
  if (a.value != b.value) return a.value > b.value;
  if (a.start_ns != b.start_ns) return a.start_ns > b.start_ns;
  if (a.group != b.group) return state.JobBefore(b.group, a.group);
  if (a.pod == kNone || b.pod == kNone) return b.pod == kNone && a.pod != kNone;
  return state.MemberBefore(b.pod, a.pod);
}

// Picks chosen on one node, with the room that their going makes. Picks may overlap (a surplus
// member is also part of its whole gang), so a pod is gone while any chosen pick has it.
class Choice {
 public:
  Choice(Scratch& scratch, const std::vector<Pick>& picks)
      : scratch_(scratch), picks_(picks), chosen_(picks.size()) {}
  void Add(size_t i) {
    chosen_[i] = 1;
    for (PodId pod : picks_[i].here) {
      if (Holders(pod) == 1) scratch_.Move(pod, +1);
    }
  }
  void Drop(size_t i) {
    for (PodId pod : picks_[i].here) {
      if (Holders(pod) == 1) scratch_.Move(pod, -1);
    }
    chosen_[i] = 0;
  }
  bool Has(size_t i) const { return chosen_[i] != 0; }
  // Leaves out what turned out not to be needed, costliest first.
  void Minimize() {
    std::vector<size_t> order;
    for (size_t i = 0; i < chosen_.size(); ++i) {
      if (chosen_[i]) order.push_back(i);
    }
    if (order.size() < 2) return;
    const auto rank = [this](size_t i) {
      return std::tuple(!picks_[i].surplus, picks_[i].cost, i);
    };
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

 private:
  int Holders(PodId pod) const {
    int holders = 0;
    for (size_t i = 0; i < chosen_.size(); ++i) {
      if (!chosen_[i] || picks_[i].group != group_of(pod)) continue;
      holders += std::count(picks_[i].here.begin(), picks_[i].here.end(), pod) > 0;
    }
    return holders;
  }
  GroupId group_of(PodId pod) const { return scratch_.GroupOf(pod); }

  Scratch& scratch_;
  const std::vector<Pick>& picks_;
  std::vector<uint8_t> chosen_;
};

Offer Search::Evaluate(PodId pod, NodeId node_id) {
  Offer offer;
  const NodeState& node = state_.nodes[node_id];
  context_.budget -= 1 + static_cast<int64_t>(node.pods.size()) / 8;
  const ShapeId shape = state_.pods[pod].shape;
  if (state_.VerdictOf(shape, node_id).unfit != Unfit::kNone) return offer;
  if (!barred_.empty() && barred_.contains({shape, node_id})) return offer;
  std::vector<Pick> picks = PicksOn(node_id);
  if (picks.empty()) return offer;
  Scratch scratch(state_, node, state_.shapes[shape]);
  const double missing = scratch.Missing();
  for (Pick& pick : picks) {
    for (PodId victim : pick.here) scratch.Move(victim, +1);
    // Nothing missing but room: ports or affinity are in the way, and anyone may be the cause.
    pick.value = missing > 0 ? missing - scratch.Missing() : 1;
    if (pick.value <= 0) pick.value = 1e-6;  // may help together with others
    for (PodId victim : pick.here) scratch.Move(victim, -1);
  }
  std::sort(picks.begin(), picks.end(),
            [this](const Pick& a, const Pick& b) { return Before(state_, a, b); });
  Choice choice(scratch, picks);
  for (size_t i = 0; i < picks.size() && (missing <= 0 || scratch.Missing() > 0); ++i) {
    choice.Add(i);
  }
  if (scratch.Missing() > 0) return offer;
  if (missing > 0) choice.Minimize();
  offer.possible = true;
  offer.start_ns = INT64_MAX;
  for (size_t i = 0; i < picks.size(); ++i) {
    if (!choice.Has(i)) continue;
    offer.stops |= !picks[i].surplus;
    offer.cost += picks[i].cost;
    offer.priority = std::max(offer.priority, state_.groups[picks[i].group].priority);
    offer.start_ns = std::min(offer.start_ns, picks[i].start_ns);
    offer.picks.push_back(std::move(picks[i]));
  }
  return offer;
}

void Search::Relist(Offers& offers, PodId pod, NodeId node) {
  const int rank = state_.nodes[node].rank;
  if (rank == kNone) return;
  if (offers.listed[rank]) offers.order.erase(offers.key_of[rank]);
  offers.listed[rank] = 0;
  const Offer offer = Evaluate(pod, node);
  if (!offer.possible) return;
  offers.key_of[rank] = {offer.stops, offer.cost, offer.priority, -offer.start_ns, rank};
  offers.listed[rank] = 1;
  offers.order.insert(offers.key_of[rank]);
}

Search::Offers& Search::OffersFor(PodId pod) {
  const ShapeId shape = state_.pods[pod].shape;
  auto [it, added] = offers_.try_emplace(shape);
  if (added) {
    example_[shape] = pod;
    it->second.key_of.resize(state_.index.by_rank.size());
    it->second.listed.resize(state_.index.by_rank.size());
    for (NodeId node : state_.index.by_rank) {
      if (context_.budget <= 0) break;
      Relist(it->second, pod, node);
    }
  }
  return it->second;
}

void Search::Refresh(NodeId node) {
  for (auto& [shape, offers] : offers_) Relist(offers, example_[shape], node);
}

void Search::Take(const std::vector<Pick>& picks) {
  std::set<NodeId> touched;
  std::set<GroupId> whole;
  for (const Pick& pick : picks) {
    if (pick.pod == kNone) whole.insert(pick.group);
  }
  for (const Pick& pick : picks) {
    if (pick.pod != kNone && whole.contains(pick.group)) continue;
    Taken taken;
    taken.group = pick.group;
    taken.whole = pick.pod == kNone;
    taken.cost = pick.cost;
    if (taken.whole) {  // swallows what was taken of the group before
      for (Taken& t : taken_) {
        if (t.group != pick.group) continue;
        taken.pods.insert(taken.pods.end(), t.pods.begin(), t.pods.end());
        taken.cost += t.cost;
      }
      std::erase_if(taken_, [&](const Taken& t) { return t.group == pick.group; });
    }
    const std::vector<PodId> members = state_.groups[pick.group].members;
    for (PodId pod : members) {
      if (state_.pods[pod].Holds()) touched.insert(state_.pods[pod].node);
      if (!state_.pods[pod].Holds() || (!taken.whole && pod != pick.pod)) continue;
      taken.pods.emplace_back(pod, state_.pods[pod].phase);
      trial_.Evict(pod);
    }
    taken_.push_back(std::move(taken));
  }
  for (NodeId node : touched) Refresh(node);
}

// Evicts on the cheapest node that then fits the pod.
bool Search::MakeRoom(PodId pod, const NodeFilter* filter, Spot& spot) {
  const ShapeId shape = state_.pods[pod].shape;
  while (context_.budget > 0) {
    Offers& offers = OffersFor(pod);
    NodeId node = kNone;
    for (const OfferKey& key : offers.order) {
      const NodeId id = state_.index.by_rank[std::get<4>(key)];
      if (filter != nullptr && !(*filter)[id]) continue;
      node = id;
      break;
    }
    if (node == kNone) return false;
    const Offer offer = Evaluate(pod, node);
    const Statement::Mark mark = trial_.Checkpoint();
    const std::vector<Taken> before = taken_;
    Take(offer.picks);
    if (Fits(state_, pod, node, Tense::kFuture)) {
      spot = {node,
              ChooseDevices(state_, state_.shapes[shape], state_.nodes[node], Tense::kFuture)};
      return true;
    }
    // Something other than room is in the way (another pod's anti-affinity, say).
    trial_.Rollback(mark);
    std::set<NodeId> touched{node};
    for (const Pick& pick : offer.picks) {
      for (PodId member : state_.groups[pick.group].members) {
        if (state_.pods[member].Holds()) touched.insert(state_.pods[member].node);
      }
    }
    taken_ = before;
    barred_.insert({shape, node});
    for (NodeId id : touched) Refresh(id);
  }
  return false;
}

// A queue at its limit has room for the pods once enough of its own lesser work is gone.
bool Search::MakeQueueRoom() {
  const GroupState& group = state_.groups[group_];
  if (FitsQueues(state_, group, pods_)) return true;
  std::vector<Pick> picks;
  for (size_t id = 0; id < state_.groups.size(); ++id) {
    const GroupId victim = static_cast<GroupId>(id);
    if (!state_.groups[id].live || !Eligible(victim)) continue;
    std::vector<PodId> holding;
    for (PodId pod : state_.groups[id].members) {
      if (state_.pods[pod].Holds()) holding.push_back(pod);
    }
    if (!holding.empty()) AddPicks(victim, std::move(holding), picks);
  }
  for (Pick& pick : picks) {
    pick.value = 1e-6;
    for (PodId pod : pick.here) {
      const QueueAmounts charge = state_.ChargeOf(state_.ShapeOf(pod), state_.pods[pod].node);
      pick.value += static_cast<double>(charge[kQueueGpu]) / kPpm +
                    static_cast<double>(charge[kQueueCpu]) / 100'000;
    }
  }
  std::sort(picks.begin(), picks.end(),
            [this](const Pick& a, const Pick& b) { return Before(state_, a, b); });
  for (const Pick& pick : picks) {
    if (pick.pod != kNone && !state_.pods[pick.pod].Holds()) continue;
    Take({pick});
    if (FitsQueues(state_, group, pods_)) return true;
  }
  return false;
}

bool Search::PlacePods(const NodeFilter* filter) {
  if (!MakeQueueRoom()) return false;
  for (PodId pod : pods_) {
    context_.budget -= static_cast<int64_t>(state_.index.by_rank.size()) / 8 + 1;
    Spot spot = FindSpot(state_, pod, Tense::kFuture, filter);
    if (!spot && !MakeRoom(pod, filter, spot)) return false;
    trial_.Promise(pod, spot.node, spot.devices);
    Refresh(spot.node);
  }
  return true;
}

// With one unit spared, finds other room for the pods that were to have its place.
bool Search::StartsWithout(const Taken& unit) {
  for (const auto& [pod, phase] : unit.pods) trial_.Spare(pod, phase);
  if (HasTopology(state_.groups[group_])) {  // moving one pod may mean moving all
    for (PodId pod : pods_) trial_.DropPromise(pod);
    return FitsQueues(state_, state_.groups[group_], pods_) &&
           PlaceAll(trial_, state_, group_, pods_, Tense::kFuture);
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
  context_.budget -= static_cast<int64_t>(moved.size() * (state_.index.by_rank.size() / 8 + 1));
  for (PodId pod : moved) {
    const Spot spot = FindSpot(state_, pod, Tense::kFuture);
    if (!spot) return false;
    trial_.Promise(pod, spot.node, spot.devices);
  }
  // The promises count in the queues by now.
  return WithinLimits(state_, state_.groups[group_]);
}

// Choosing node by node may have taken what a later choice made needless.
void Search::SpareUnneeded() {
  if (taken_.size() < 2) return;
  std::vector<size_t> order(taken_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [this](size_t a, size_t b) {
    return std::tuple(taken_[a].cost, a) > std::tuple(taken_[b].cost, b);
  });
  std::set<size_t> spared;
  for (size_t i : order) {
    if (context_.budget <= 0 || spared.size() + 1 == taken_.size()) break;
    const Statement::Mark mark = trial_.Checkpoint();
    if (StartsWithout(taken_[i])) {
      spared.insert(i);
    } else {
      trial_.Rollback(mark);
    }
  }
  std::vector<Taken> needed;
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (!spared.contains(i)) needed.push_back(std::move(taken_[i]));
  }
  taken_ = std::move(needed);
}

VictimPlan Search::Fail(const Statement::Mark& mark) {
  trial_.Rollback(mark);
  VictimPlan plan;
  if (context_.budget <= 0) {
    plan.outcome = VictimPlan::Outcome::kBudgetSpent;
    plan.because = "the search for pods to stop is too large for one cycle";
    ++context_.stats.searches_out_of_budget;
  } else if (!any_eligible_) {
    plan.because = "there is nothing of lower priority to stop";
  } else if (protected_) {
    plan.because =
        "what could be stopped for it is protected by a minimum run time or a disruption budget";
  } else {
    plan.because = "stopping all that may be stopped for it would not make enough room";
  }
  return plan;
}

VictimPlan Search::Run() {
  const Statement::Mark mark = trial_.Checkpoint();
  const bool bounded =
      state_.groups[group_].info && !state_.groups[group_].info->topology.required.empty();
  bool placed = false;
  if (bounded) {
    for (const NodeFilter& domain : RequiredDomains(state_, group_)) {
      placed = PlacePods(&domain);
      if (placed) break;
      trial_.Rollback(mark);
      taken_.clear();
      offers_.clear();
      barred_.clear();
    }
  } else {
    placed = PlacePods(nullptr);
  }
  if (!placed) return Fail(mark);
  SpareUnneeded();
  if (taken_.empty() || (policy_.acceptable && !policy_.acceptable())) return Fail(mark);
  VictimPlan plan;
  plan.outcome = VictimPlan::Outcome::kPlan;
  for (const Taken& taken : taken_) {
    std::vector<PodId> pods;
    for (const auto& [pod, phase] : taken.pods) pods.push_back(pod);
    std::sort(pods.begin(), pods.end(),
              [this](PodId a, PodId b) { return state_.MemberBefore(a, b); });
    plan.victims.insert(plan.victims.end(), pods.begin(), pods.end());
  }
  return plan;
}

}  // namespace

VictimPlan FindVictims(Context& context,
                       Statement& trial,
                       GroupId group,
                       const std::vector<PodId>& pods,
                       const VictimPolicy& policy) {
  ++context.stats.searches;
  return Search(context, trial, group, pods, policy).Run();
}

}  // namespace swell::sched
