// rebalance: moves members beyond their minima from jobs that lose least to jobs that gain most.
//
// Only jobs of one queue and priority give to each other, so neither fair shares nor priorities
// change, and only jobs whose goodput was measured at the size that they have: a job that has just
// been resized is measured first. A move must be worth more than it costs: the resizes of both
// jobs, as measured, spread over the time for which the new sizes can be expected to last, and a
// margin for noise. No job goes below its minimum or changes before its minimum run time, and
// disruption budgets hold.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "sched/actions/decide.h"
#include "sched/actions/make_room.h"
#include "sched/actions/registry.h"
#include "sched/placement/gang.h"
#include "sched/queues/goodput_turns.h"
#include "sched/state/statement.h"

namespace swell::sched {
namespace {

using goodput::kUtilityOne;

constexpr int kMovesMax = 64;    // of one cycle
constexpr int kTriesMax = 256;   // of one cycle
constexpr int kVictimsMax = 16;  // of one move
constexpr int64_t kMargin = kUtilityOne / 32;
// No move is waited for until sizes last longer than now by more than this.
constexpr std::chrono::milliseconds kWaitMax = std::chrono::hours(1);
// Standing still costs all of the goodput: 1 / ln 2 of a job's utility for each unit of time.
constexpr int64_t kStandstill = kUtilityOne * 14427 / 10000;

struct Party {
  GroupId group = kNone;
  std::vector<PodId> waiting;  // members of the curve's set, the next one last
  WallTime oldest;             // when its first member started
  bool gives = false;          // it has members to give
  bool resized = false;        // it has given or taken in this cycle
  bool gave = false;
};

int64_t Milliseconds(Duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

class Rebalancing {
 public:
  Rebalancing(CycleContext& context, const Action& action)
      : context_(context), state_(context.state), action_(action) {}

  void Run() {
    std::map<std::tuple<int32_t, int32_t, QueueId>, std::vector<GroupId>> lanes;
    for (GroupId id : state_.lists.curved) {
      const GroupState& group = state_.groups[id];
      if (!Schedulable(state_, group) || !Settled(group)) continue;
      lanes[{state_.queues[group.queue].rank, -group.priority, group.queue}].push_back(id);
    }
    for (auto& [key, groups] : lanes) {
      if (groups.size() < 2) continue;
      std::sort(groups.begin(), groups.end(),
                [this](GroupId a, GroupId b) { return state_.JobBefore(a, b); });
      RunLane(groups);
    }
  }

 private:
  // Nothing of it is under way, and its goodput was measured at this size.
  static bool Settled(const GroupState& group) {
    for (const SetState& set : group.sets) {
      if (set.releasing > 0 || set.promised > 0 || set.holding < set.Minimum()) return false;
    }
    const int32_t holding = group.sets[group.curve_set].holding;
    return holding > 0 && group.curve_measured_at == holding;
  }

  Party PartyOf(GroupId id) const {
    const GroupState& group = state_.groups[id];
    Party party{.group = id};
    for (PodId pod : group.members) {
      const PodState& member = state_.pods[pod];
      if (member.set != group.curve_set) continue;
      if (member.Waits()) party.waiting.push_back(pod);
      if (!member.Holds() || member.start.unix_ns == 0) continue;
      if (party.oldest.unix_ns == 0 || member.start < party.oldest) party.oldest = member.start;
    }
    std::reverse(party.waiting.begin(), party.waiting.end());
    if (!MayPreempt(state_, id, party.waiting)) party.waiting.clear();
    party.gives = group.preemptible && group.sets[group.curve_set].Surplus() > 0 && MayGive(party);
    return party;
  }

  bool MayGive(const Party& party) const {
    const GroupState& group = state_.groups[party.group];
    const Duration least = std::max(
        group.min_runtime, MinRuntime(state_, group.queue, &QueueInfo::preempt_min_runtime));
    if (context_.now - party.oldest >= least) return true;
    context_.WakeAt(party.oldest + least);
    return false;
  }

  void RunLane(const std::vector<GroupId>& groups) {
    std::vector<Party> parties;
    for (GroupId id : groups) parties.push_back(PartyOf(id));
    while (moves_ < kMovesMax && tries_ < kTriesMax) {
      Party* taker = MostWorth(parties);
      if (taker == nullptr) return;
      if (!TakeFromSomebody(*taker, parties)) taker->waiting.clear();
    }
  }

  Party* MostWorth(std::vector<Party>& parties) const {
    Party* best = nullptr;
    int64_t worth = 0;
    for (Party& party : parties) {
      if (party.waiting.empty() || party.gave) continue;
      const int64_t its = WorthOf(state_, party.group, party.waiting.back());
      if (its <= worth) continue;
      worth = its;
      best = &party;
    }
    return best;
  }

  // The parties with members to give, those that lose least by one first.
  std::vector<Party*> Givers(const Party& taker, std::vector<Party>& parties) const {
    std::vector<std::pair<int64_t, Party*>> order;
    for (Party& party : parties) {
      const GroupState& group = state_.groups[party.group];
      const bool took = party.resized && !party.gave;
      if (!party.gives || took || &party == &taker) continue;
      const SetState& set = group.sets[group.curve_set];
      if (set.Surplus() > 0) order.emplace_back(group.curve.Loss(set.holding, 1), &party);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Party*> givers;
    for (const auto& [loss, party] : order) givers.push_back(party);
    return givers;
  }

  bool TakeFromSomebody(Party& taker, std::vector<Party>& parties) {
    const GroupState& group = state_.groups[taker.group];
    const int64_t gain = group.curve.Gain(CurveMembers(state_, taker.group));
    for (Party* giver : Givers(taker, parties)) {
      const GroupState& loser = state_.groups[giver->group];
      const int64_t loss = loser.curve.Loss(loser.sets[loser.curve_set].holding, 1);
      if (!Pays(taker, *giver, gain, loss)) return false;
      if (++tries_ > kTriesMax) return false;
      if (!Move(taker, *giver, gain)) continue;
      taker.waiting.pop_back();
      taker.resized = giver->resized = giver->gave = true;
      ++moves_;
      return true;
    }
    return false;
  }

  Duration Lasts(const Party& party) const {
    if (party.oldest.unix_ns == 0) return goodput::LastsFor(Duration::zero());
    return goodput::LastsFor(context_.now - party.oldest);
  }

  bool Pays(const Party& taker, const Party& giver, int64_t gain, int64_t loss) {
    const int64_t over = gain - std::max<int64_t>(0, loss) * 11 / 10 - kMargin;
    if (over <= 0) return false;
    Duration cost{0};
    for (const Party* party : {&taker, &giver}) {
      if (!party->resized) cost += state_.groups[party->group].resize_cost;
    }
    const int64_t lasts = Milliseconds(std::min(Lasts(taker), Lasts(giver)));
    const int64_t must_last =
        kStandstill / over * Milliseconds(cost) + kStandstill % over * Milliseconds(cost) / over;
    if (lasts >= must_last) return true;
    // Sizes last longer the longer the jobs have run.
    const std::chrono::milliseconds longer{std::min(must_last - lasts, kWaitMax.count()) + 1};
    const Duration wait = goodput::RunUntilLasts(goodput::LastsFor(Duration::zero()) + longer);
    context_.WakeAt(context_.now + wait);
    return false;
  }

  // The last members of the giver that hold room, until the taker's next pod finds a place.
  bool Move(const Party& taker, const Party& giver, int64_t gain) {
    // What this cycle placed is not stopped by it.
    if (context_.decided.bound.HasGroup(giver.group)) return false;
    const GroupState& loser = state_.groups[giver.group];
    const SetState& set = loser.sets[loser.curve_set];
    const int32_t before = set.holding;
    const int32_t most = std::min<int32_t>(set.Surplus(), kVictimsMax);
    const std::vector<PodId> pods{taker.waiting.back()};
    std::vector<PodId> victims;
    Statement trial(state_);
    for (auto it = loser.members.rbegin(); it != loser.members.rend(); ++it) {
      if (static_cast<int32_t>(victims.size()) == most) return false;
      const PodState& member = state_.pods[*it];
      if (member.set != loser.curve_set || !member.Holds() || !member.comes_back) continue;
      if (!BudgetsAllow(*it, victims)) continue;
      victims.push_back(*it);
      trial.Evict(*it);
      const auto count = static_cast<int64_t>(victims.size());
      if (!Pays(taker, giver, gain, loser.curve.Loss(before, count))) return false;
      if (!Place(trial, taker.group, pods)) continue;
      trial.Commit();
      DecideEvictions(context_, action_,
                      {.victims = victims, .beneficiary = taker.group, .beneficiaries = pods});
      DecideNominations(context_, action_, pods);
      return true;
    }
    return false;
  }

  bool Place(Statement& trial, GroupId group, const std::vector<PodId>& pods) {
    for (int pool : state_.PoolsFor(group)) {
      if (!FitsQueues(state_, state_.groups[group], pods, pool, Tense::kFuture)) continue;
      if (PlaceAll(trial, state_, group, pods, Tense::kFuture, state_.FilterOf(pool))) return true;
    }
    return false;
  }

  bool BudgetsAllow(PodId pod, const std::vector<PodId>& victims) {
    if (context_.disruptions.empty()) return true;
    for (size_t budget : context_.disruptions.Over(pod)) {
      int64_t left = context_.disruptions.Left(budget);
      for (PodId victim : victims) {
        const std::vector<size_t>& over = context_.disruptions.Over(victim);
        left -= std::count(over.begin(), over.end(), budget);
      }
      if (left < 1) return false;
    }
    return true;
  }

  CycleContext& context_;
  State& state_;
  const Action& action_;
  int moves_ = 0;
  int tries_ = 0;
};

// The size for which members are added: up to there each adds most on average.
int64_t AimOf(const goodput::Curve& curve, int64_t members) {
  for (int64_t to = members + 1; to <= curve.members_max(); ++to) {
    const int64_t each = (curve.Utility(to) - curve.Utility(members)) / (to - members);
    if (each >= curve.Gain(members)) return to;
  }
  return members + 1;
}

class Rebalance final : public Action {
 public:
  std::string_view Name() const override { return "rebalance"; }
  std::string_view Event() const override { return "Preempted"; }
  std::string Reason(const CycleContext& context,
                     const EvictionPlan& evictions,
                     PodId victim) const override {
    const State& state = context.state;
    const GroupState& winner = state.groups[evictions.beneficiary];
    const GroupState& loser = state.groups[state.pods[victim].group];
    const int64_t before = CurveMembers(state, evictions.beneficiary) - 1;
    const int64_t aim = AimOf(winner.curve, before);
    const int64_t left = loser.sets[loser.curve_set].holding;
    const auto gave = static_cast<int64_t>(evictions.victims.size());
    return StrCat("a member adds more there: ", ChangeText(winner.curve, before, aim),
                  " goodput with ", aim, " members, against ",
                  ChangeText(loser.curve, left + gave, left), " here with ", left);
  }
  void Run(CycleContext& context) const override {
    if (context.state.lists.curved.size() < 2) return;
    Rebalancing(context, *this).Run();
  }
};

}  // namespace

const Action& RebalanceAction() {
  static const Rebalance action;
  return action;
}

}  // namespace swell::sched
