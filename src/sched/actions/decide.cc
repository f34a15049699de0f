#include "sched/actions/decide.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "sched/state/amount_text.h"

namespace swell::sched {
namespace {

// As State::PrefetchAt, for the names of victims.
void FetchWordsAhead(const State& state, const std::vector<PodId>& victims, size_t i) {
  constexpr size_t kToGroups = 8;
  constexpr size_t kToWords = 4;
  if (i + kToGroups < victims.size()) {
    __builtin_prefetch(&state.groups[state.pods[victims[i + kToGroups]].group].key);
  }
  if (i + kToWords >= victims.size()) return;
  const PodState& pod = state.pods[victims[i + kToWords]];
  for (const std::string* word : {&pod.key, &pod.uid, &state.groups[pod.group].key}) {
    __builtin_prefetch(word->data());
  }
}

// What the reasons of one plan share: thousands of victims may have a few sentences between them.
struct PlanWords {
  std::string beneficiary_group;
  std::vector<std::pair<NodeId, PodId>> comes_to;              // a beneficiary by node, sorted
  std::map<std::pair<QueueId, int32_t>, std::string> rule_of;  // by the loser's queue and priority
  // The sentence told last, and of what it depends.
  PodId needs = kNone;
  NodeId node = kNone;
  const std::string* rule = nullptr;
  std::shared_ptr<const std::string> sentence;
  std::shared_ptr<const Decision::Beneficiary> beneficiary;
};

// "Preempted by b/x-0, which needs 2 GPUs on n1: ...".
void DescribeBeneficiary(const CycleContext& context,
                         const Action& action,
                         const EvictionPlan& evictions,
                         PodId victim,
                         PlanWords& words,
                         Decision& decision) {
  const State& state = context.state;
  const NodeId node = state.pods[victim].node;
  const auto comes_here =
      std::lower_bound(words.comes_to.begin(), words.comes_to.end(), std::pair(node, PodId{kNone}));
  const bool here = comes_here != words.comes_to.end() && comes_here->first == node;
  const PodId needs = here ? comes_here->second : evictions.beneficiaries.front();
  const GroupState& loser = state.groups[state.pods[victim].group];
  auto [rule, fresh] = words.rule_of.try_emplace({loser.queue, loser.priority});
  if (fresh) rule->second = action.Reason(context, evictions, victim);
  const NodeId where = here ? node : kNone;
  const NodeId target = here ? node : state.pods[needs].promise;
  if (words.needs != needs || words.node != where || words.rule != &rule->second) {
    words.needs = needs;
    words.node = where;
    words.rule = &rule->second;
    words.beneficiary = std::make_shared<const Decision::Beneficiary>(
        Decision::Beneficiary{state.pods[needs].key, words.beneficiary_group});
    words.sentence = std::make_shared<const std::string>(StrCat(
        "Preempted by ", state.pods[needs].key, ", which needs ",
        RequestText(state, needs, state.pods[needs].promise),
        target == kNone ? std::string(" elsewhere") : StrCat(" on ", state.nodes[target].info.name),
        ": ", rule->second, here ? "" : "; stopped with the rest of its gang"));
  }
  decision.words = words.sentence;
  decision.beneficiary = words.beneficiary;
  const NodeId moves_to = state.pods[victim].promise;
  if (moves_to != kNone) decision.moves_to = state.nodes[moves_to].info.name;
}

// What the pod asks for, in words that decisions about its like share.
std::shared_ptr<const std::string> AskWords(CycleContext& context, PodId pod, NodeId node) {
  const State& state = context.state;
  auto make = [&] { return std::make_shared<const std::string>(RequestText(state, pod, node)); };
  // A part by memory is another part on each kind of node.
  if (state.ShapeOf(pod).share_mib > 0) return make();
  const auto shape = static_cast<size_t>(state.pods[pod].shape);
  if (context.decided.request_words.size() <= shape)
    context.decided.request_words.resize(state.shapes.size());
  std::shared_ptr<const std::string>& words = context.decided.request_words[shape];
  if (!words) words = make();
  return words;
}

Decision& Add(
    CycleContext& context, const Action& action, PodId id, Decision::Type type, NodeId node) {
  const State& state = context.state;
  const PodState& pod = state.pods[id];
  Decision& decision = context.result.decisions.emplace_back();
  decision.type = type;
  decision.pod = pod.key;
  decision.pod_uid = pod.uid;
  if (pod.group != kNone) decision.group = state.GroupName(state.groups[pod.group]);
  decision.node = state.nodes[node].info.name;
  decision.rule = action.Name();
  return decision;
}

// Whether the pod is a member of an elastic job that continues without it, so no
// work is lost.
bool LeavesItsWork(const State& state, const PodState& pod) {
  if (pod.member_priority == INT64_MIN || pod.group == kNone) return false;
  const std::vector<SetState>& sets = state.groups[pod.group].sets;
  return std::all_of(sets.begin(), sets.end(), [](const SetState& set) {
    return set.holding > 0 && set.holding >= set.Minimum();
  });
}

// GPU-seconds since the last checkpoint or the start.
double LostGpuSeconds(const State& state, PodId id, WallTime now) {
  const PodState& pod = state.pods[id];
  if (LeavesItsWork(state, pod)) return 0;
  const WallTime since = state.SavedAt(pod);
  if (pod.start.unix_ns == 0 || now <= since || pod.node == kNone) return 0;
  const double gpus =
      static_cast<double>(state.ChargeOf(state.ShapeOf(id), pod.node)[kQueueGpu]) / kPpm;
  return gpus * std::chrono::duration<double>(now - since).count();
}

}  // namespace

void DecideBinds(CycleContext& context, const Action& action, const std::vector<PodId>& pods) {
  State& state = context.state;
  for (PodId id : pods) {
    PodState& pod = state.pods[id];
    pod.assumed = true;
    context.decided.bound.Add(id, pod.group, context.result.decisions.size());
    Decision& decision = Add(context, action, id, Decision::Type::kBind, pod.node);
    decision.gpu_devices = pod.devices.ToVector();
    decision.words = AskWords(context, id, pod.node);
    if (!state.ShapeOf(id).UsesGpu()) continue;
    const NodeState& node = state.nodes[pod.node];
    decision.gpus_idle = node.idle_now;
    decision.gpus = static_cast<int>(node.allocatable[kGpu]);
  }
  context.decided.binds += static_cast<int32_t>(pods.size());
}

void DecideNominations(CycleContext& context,
                       const Action& action,
                       const std::vector<PodId>& pods) {
  State& state = context.state;
  for (PodId id : pods) {
    const PodState& pod = state.pods[id];
    if (pod.hint == pod.promise) continue;  // it is nominated there already
    Decision& decision = Add(context, action, id, Decision::Type::kNominate, pod.promise);
    decision.gpu_devices = pod.promise_devices.ToVector();
    decision.words = AskWords(context, id, pod.promise);
    state.SetHint(id, pod.promise);
  }
}

void DecideEvictions(CycleContext& context, const Action& action, const EvictionPlan& evictions) {
  const std::vector<PodId>& victims = evictions.victims;
  State& state = context.state;
  PlanWords words;
  LargeVector<Decision>& decisions = context.result.decisions;
  const size_t wanted = decisions.size() + victims.size() + evictions.beneficiaries.size();
  if (wanted > decisions.capacity()) decisions.reserve(std::max(wanted, 2 * decisions.capacity()));
  std::shared_ptr<const std::string> nobodys;
  if (evictions.beneficiary == kNone) {
    nobodys = std::make_shared<const std::string>(
        StrCat("Preempted: ", action.Reason(context, evictions, victims.front())));
  } else {
    words.beneficiary_group = state.GroupName(state.groups[evictions.beneficiary]);
  }
  for (PodId pod : evictions.beneficiaries)
    words.comes_to.emplace_back(state.pods[pod].promise, pod);
  std::stable_sort(words.comes_to.begin(), words.comes_to.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < victims.size(); ++i) {
    state.PrefetchAt(victims, i);
    FetchWordsAhead(state, victims, i);
    const PodId id = victims[i];
    PodState& pod = state.pods[id];
    if (const std::optional<size_t> bind = context.decided.bound.Take(id)) {
      context.decided.taken_back.push_back(*bind);
      state.SetPlace(id, PodPhase::kPending, kNone, {});
      pod.assumed = false;
      // Its room is free at once, so those it was promised to can start without waiting.
      context.result.more = true;
      continue;
    }
    pod.assumed = true;
    context.disruptions.Spend(id);
    DisruptionLedger::MarkStopped(state, id);
    Decision& decision = Add(context, action, id, Decision::Type::kEvict, pod.node);
    decision.gpu_devices = pod.devices.ToVector();
    decision.lost_gpu_seconds = LostGpuSeconds(state, id, context.now);
    decision.has_saved = state.SavedAt(pod) > pod.start;
    if (evictions.beneficiary == kNone) {
      decision.words = nobodys;
    } else {
      DescribeBeneficiary(context, action, evictions, id, words, decision);
    }
  }
}

void DropTakenBack(CycleContext& context) {
  LargeVector<Decision>& decisions = context.result.decisions;
  std::sort(context.decided.taken_back.begin(), context.decided.taken_back.end());
  size_t next = 0;
  size_t kept = 0;
  for (size_t i = 0; i < decisions.size(); ++i) {
    if (next < context.decided.taken_back.size() && context.decided.taken_back[next] == i) {
      ++next;
      continue;
    }
    if (kept != i) decisions[kept] = std::move(decisions[i]);
    ++kept;
  }
  decisions.resize(kept);
}

}  // namespace swell::sched
