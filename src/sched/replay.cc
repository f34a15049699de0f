#include "sched/replay.h"

#include "base/strings.h"
#include "sched/cycle/disruptions.h"
#include "sched/record/keyframe.h"
#include "sched/state/state.h"

namespace swell::sched {
namespace {

struct Head {
  uint64_t version = 0;
  uint64_t next_cycle = 0;
  bool begins = false;
};

bool ReadHead(Unpacker& in, Head& head) {
  in(head.version, head.next_cycle, head.begins);
  return in.ok();
}

std::string Words(const DecisionMark& mark) {
  std::vector<std::string> devices;
  for (int device : mark.devices) devices.push_back(std::to_string(device));
  std::string text = StrCat(DecisionTypeName(mark.type), " ", mark.pod,
                            mark.type == Decision::Type::kEvict ? " from " : " to ", mark.node);
  if (!devices.empty()) text += StrCat(" [", Join(devices, ","), "]");
  text += StrCat(" (", mark.rule, ")");
  if (!mark.beneficiary.empty()) text += StrCat(" for ", mark.beneficiary);
  return text;
}

std::string Difference(const CycleMark& was, const CycleMark& is) {
  const size_t both = std::min(was.decisions.size(), is.decisions.size());
  for (size_t i = 0; i < both; ++i) {
    DecisionMark then = was.decisions[i];
    const DecisionMark& now = is.decisions[i];
    if (then == now) continue;
    then.words = now.words;
    if (then == now) {
      return StrCat("decision ", i + 1, ", ", Words(now), ": the reasons differ");
    }
    return StrCat("decision ", i + 1, ": recorded ", Words(then), "; replayed ", Words(now));
  }
  if (was.decisions.size() > both) {
    return StrCat("recorded ", was.decisions.size(), " decisions, replayed ", both,
                  "; the first missing: ", Words(was.decisions[both]));
  }
  if (is.decisions.size() > both) {
    return StrCat("recorded ", both, " decisions, replayed ", is.decisions.size(),
                  "; the first too many: ", Words(is.decisions[both]));
  }
  return was.rest == is.rest ? ""
                             : "the decisions are equal; the explanations of waiting groups differ";
}

template <class Info, class Fn>
void ReadEach(Unpacker& in, Fn&& each) {
  size_t left = 0;
  for (in(left); left > 0 && in.ok(); --left) {
    Info info;
    in(info);
    if (in.ok()) each(info);
  }
}

void Put(State& state, const PodPlace& place) {
  const PodId id = state.FindPod(place.pod);
  if (id == kNone) return;
  auto node = [&state](const std::string& name) {
    return name.empty() ? kNone : state.EnsureNode(name);
  };
  const NodeId at = node(place.node);
  const NodeId promise = node(place.promise);
  const NodeId hint = node(place.hint);
  state.Count(id, -1);
  PodState& pod = state.pods[id];
  pod.phase = place.phase;
  pod.node = at;
  pod.devices = place.devices;
  pod.implicit_devices = place.implicit;
  pod.assumed = place.assumed;
  if (place.stopped) DisruptionLedger::MarkStopped(state, id);
  pod.promise = promise;
  pod.promise_devices = place.promise_devices;
  pod.seen_devices = place.seen_devices;
  state.Count(id, +1);
  state.SetHint(id, hint);
}

void ReadNotes(Unpacker& in, State& state, CycleMemory& memory) {
  std::vector<GroupNote> notes;
  in(notes, memory.counted_at, memory.fruitless);
  for (const GroupNote& note : notes) {
    const GroupId id = state.FindGroup(note.group);
    if (id == kNone) continue;
    state.groups[id].stale_since = note.stale_since;
    state.groups[id].moved_at = note.moved_at;
    state.groups[id].reason_hash = note.reason_hash;
    if (note.noticed) memory.noticed_stale.insert(id);
  }
}

// Fills a new model. What makes no sense fails `in`.
void ReadKeyframe(Unpacker& in, Model& model, Settings& settings, CycleMemory& memory) {
  in(settings);
  std::vector<PoolInfo> pools;
  std::vector<TopologyInfo> topologies;
  std::vector<QueueInfo> queues;
  std::vector<QueuePast> pasts;
  std::vector<BudgetInfo> budgets;
  in(pools, topologies, queues, pasts, budgets);
  for (const BudgetInfo& budget : budgets) model.UpsertBudget(budget);
  for (const PoolInfo& pool : pools) model.UpsertPool(pool);
  for (const TopologyInfo& topology : topologies) model.UpsertTopology(topology);
  for (const QueueInfo& queue : queues) model.UpsertQueue(queue);
  State& state = model.state();
  ReadEach<NodeInfo>(in, [&](const NodeInfo& node) { model.UpsertNode(node); });
  ReadEach<GroupInfo>(in, [&](const GroupInfo& group) { model.UpsertGroup(group); });
  ReadEach<PodInfo>(in, [&](const PodInfo& pod) { model.UpsertPod(pod); });
  std::vector<PodPlace> places;
  in(places);
  for (const PodPlace& place : places) Put(state, place);
  ReadNotes(in, state, memory);
  for (const QueuePast& past : pasts) {
    QueueState& queue = state.queues[state.EnsureQueue(past.queue)];
    for (size_t i = 0; i < std::min(queue.pools.size(), past.by_pool.size()); ++i) {
      queue.pools[i].past = past.by_pool[i];
    }
  }
}

}  // namespace

std::optional<uint64_t> NextCycleOf(std::string_view record) {
  SharedIn shared;
  Unpacker in(record, shared);
  Head head;
  if (!ReadHead(in, head) || head.version != kRecordVersion) return std::nullopt;
  return head.next_cycle;
}

bool BeginsSegment(std::string_view record) {
  SharedIn shared;
  Unpacker in(record, shared);
  Head head;
  return ReadHead(in, head) && head.begins;
}

Status Replay::Begin(Unpacker& in) {
  model_ = std::make_unique<Model>();
  Settings settings;
  CycleMemory memory;
  ReadKeyframe(in, *model_, settings, memory);
  if (!in.ok()) return Status(Code::kInvalid, "the record's keyframe makes no sense");
  scheduler_ = std::make_unique<Scheduler>(settings, std::move(memory));
  return Status::Ok();
}

void Replay::Apply(Unpacker& in, Tape tag) {
  auto apply = [&in](auto info, auto&& fn) {
    in(info);
    if (in.ok()) fn(info);
  };
  const std::string name;
  Model& model = *model_;
  switch (tag) {
    case Tape::kNode:
      return apply(NodeInfo{}, [&](const NodeInfo& it) { model.UpsertNode(it); });
    case Tape::kNodeGone:
      return apply(name, [&](const std::string& it) { model.RemoveNode(it); });
    case Tape::kPod:
      return apply(PodInfo{}, [&](const PodInfo& it) { model.UpsertPod(it); });
    case Tape::kPodGone:
      return apply(name, [&](const std::string& it) { model.RemovePod(it); });
    case Tape::kGroup:
      return apply(GroupInfo{}, [&](const GroupInfo& it) { model.UpsertGroup(it); });
    case Tape::kGroupGone:
      return apply(name, [&](const std::string& it) { model.RemoveGroup(it); });
    case Tape::kQueue:
      return apply(QueueInfo{}, [&](const QueueInfo& it) { model.UpsertQueue(it); });
    case Tape::kQueueGone:
      return apply(name, [&](const std::string& it) { model.RemoveQueue(it); });
    case Tape::kPool:
      return apply(PoolInfo{}, [&](const PoolInfo& it) { model.UpsertPool(it); });
    case Tape::kPoolGone:
      return apply(name, [&](const std::string& it) { model.RemovePool(it); });
    case Tape::kTopology:
      return apply(TopologyInfo{}, [&](const TopologyInfo& it) { model.UpsertTopology(it); });
    case Tape::kTopologyGone:
      return apply(name, [&](const std::string& it) { model.RemoveTopology(it); });
    case Tape::kBudget:
      return apply(BudgetInfo{}, [&](const BudgetInfo& it) { model.UpsertBudget(it); });
    case Tape::kBudgetGone:
      return apply(name, [&](const std::string& it) { model.RemoveBudget(it); });
    case Tape::kAssumeEvicted:
      return apply(name, [&](const std::string& it) { model.AssumeEvicted(it); });
    case Tape::kLiftPromise:
      return apply(name, [&](const std::string& it) { model.LiftPromise(it); });
    case Tape::kForget:
      return apply(name, [&](const std::string& it) { model.Forget(it); });
    case Tape::kAssumeBound: {
      std::string pod;
      std::string node;
      std::vector<int> devices;
      in(pod, node, devices);
      if (in.ok()) model.AssumeBound(pod, node, devices);
      return;
    }
    case Tape::kEnd:
    case Tape::kCycle:
      return in.Fail();
  }
}

Result<std::optional<ReplayedCycle>> Replay::Next(std::string_view record) {
  Head head;
  Unpacker in(record, shared_);
  if (!ReadHead(in, head)) return Status(Code::kInvalid, "not a record of scheduling cycles");
  if (head.version != kRecordVersion) {
    return Status(Code::kInvalid, StrCat("a record of format ", head.version, "; this swell reads ",
                                         kRecordVersion, " only"));
  }
  if (head.begins) {
    shared_.texts.clear();
    SWELL_RETURN_IF_ERROR(Begin(in));
  }
  if (!model_) return Status(Code::kInvalid, "the record's segment has no beginning");
  Tape tag = Tape::kEnd;
  for (in(tag); in.ok() && tag != Tape::kEnd && tag != Tape::kCycle; in(tag)) Apply(in, tag);
  CycleMark was;
  if (tag == Tape::kCycle) in(was);
  if (!in.ok() || !in.done()) return Status(Code::kInvalid, "the record makes no sense");
  if (tag == Tape::kEnd) return std::optional<ReplayedCycle>();
  CycleOptions options;
  options.actions = was.actions;
  ReplayedCycle cycle{was.number, was.now, scheduler_->RunCycle(*model_, was.now, options), ""};
  cycle.difference = Difference(was, MarkOf(cycle.result));
  return std::optional<ReplayedCycle>(std::move(cycle));
}

}  // namespace swell::sched
