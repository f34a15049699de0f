#include "sched/record/keyframe.h"

#include <array>
#include <utility>

namespace swell::sched {
namespace {

class KeyframeWriter {
 public:
  KeyframeWriter(Packer& out, const State& state) : out_(out), state_(state) {}
  void Queues();
  void Nodes();
  void Groups();
  void Pods();
  void Notes(const CycleMemory& memory);

 private:
  const std::string& NodeName(NodeId id) const {
    static const std::string kNowhere;
    return id == kNone ? kNowhere : state_.nodes[id].info.name;
  }
  PodAffinityTerm TermOf(TermId id, int32_t weight) const;
  PodInfo Asked(ShapeId id) const;
  void SetOwn(const PodState& pod, PodInfo& own) const;
  bool IsPlain(const PodState& pod) const;
  template <class Fn>
  void Part(std::vector<uint32_t>& numbers, int32_t id, Fn&& fields);

  Packer& out_;
  const State& state_;
  SharedOut parts_;  // parts share nothing inside
};

void KeyframeWriter::Queues() {
  std::vector<PoolInfo> pools(state_.pools.begin(), state_.pools.end() - 1);
  std::vector<TopologyInfo> topologies;
  for (const auto& [name, topology] : state_.topologies) topologies.push_back(topology);
  std::vector<QueueInfo> queues;
  std::vector<QueuePast> pasts;
  for (const QueueState& queue : state_.queues) {
    if (queue.known) {
      queues.push_back(queue.info);
      // A circle was cut where it was closed last.
      if (queue.parent == kNone) queues.back().parent.clear();
    }
    QueuePast past{queue.name, {}};
    for (const QueuePool& pool : queue.pools) past.by_pool.push_back(pool.past);
    pasts.push_back(std::move(past));
  }
  std::vector<BudgetInfo> budgets;
  for (const auto& [key, budget] : state_.budgets) budgets.push_back(budget);
  out_(pools, topologies, queues, pasts, budgets);
}

void KeyframeWriter::Nodes() {
  std::vector<const NodeInfo*> nodes;
  for (const NodeState& node : state_.nodes) {
    if (node.present) nodes.push_back(&node.info);
  }
  out_(nodes.size());
  for (const NodeInfo* node : nodes) out_(*node);
}

void KeyframeWriter::Groups() {
  std::vector<const GroupInfo*> groups;
  for (const GroupState& group : state_.groups) {
    if (group.live && group.info) groups.push_back(group.info.get());
  }
  out_(groups.size());
  for (const GroupInfo* group : groups) out_(*group);
}

PodAffinityTerm KeyframeWriter::TermOf(TermId id, int32_t weight) const {
  const Term& term = state_.terms.term(id);
  return {term.selector, term.namespaces, term.all_namespaces, term.topology_key, weight};
}

PodInfo KeyframeWriter::Asked(ShapeId id) const {
  const Shape& shape = state_.shapes[id];
  PodInfo pod;
  pod.requests.cpu_milli = shape.core[kCpu];
  pod.requests.memory_bytes = shape.core[kMemory];
  pod.requests.ephemeral_bytes = shape.core[kEphemeral];
  for (const auto& [resource, amount] : shape.extended) {
    pod.requests.extended[state_.resource_names[resource]] = amount;
  }
  if (shape.core[kGpu] > 0) pod.requests.extended[kGpuResource] = shape.core[kGpu];
  if (shape.Shares()) {
    pod.gpu_fraction = static_cast<double>(shape.share_ppm) / kPpm;
    pod.gpu_memory_mib = shape.share_mib;
    pod.gpu_fraction_devices = shape.share_devices;
  }
  pod.node_selector = shape.node_selector;
  pod.required_node_affinity = shape.required;
  pod.preferred_node_affinity = shape.preferred;
  pod.volume_affinity = shape.volumes;
  pod.tolerations = shape.tolerations;
  pod.host_ports = shape.ports;
  for (TermId term : shape.affinity) pod.required_affinity.push_back(TermOf(term, 0));
  for (TermId term : shape.anti_affinity) pod.required_anti_affinity.push_back(TermOf(term, 0));
  for (const WeightedTerm& term : shape.preferred_terms) {
    auto& to = term.weight < 0 ? pod.preferred_anti_affinity : pod.preferred_affinity;
    to.push_back(TermOf(term.term, std::abs(term.weight)));
  }
  for (const SpreadTerm& spread : shape.spread) {
    const Term& term = state_.terms.term(spread.term);
    pod.spread.push_back({spread.max_skew, term.topology_key, spread.required, term.selector,
                          spread.min_domains, spread.honors_affinity, spread.honors_taints});
  }
  return pod;
}

// Everything of `own` that OwnFields tells is set anew.
void KeyframeWriter::SetOwn(const PodState& pod, PodInfo& own) const {
  own.key = pod.key;
  own.uid = pod.uid;
  own.pod_set = pod.pod_set;
  own.scheduling_gates.assign(pod.gated ? 1 : 0, "gated");
  own.obstacle = pod.obstacle;
  own.may_preempt = pod.may_preempt;
  own.comes_back = pod.comes_back;
  own.group.clear();
  own.queue.clear();
  own.user.clear();
  own.priority = 0;
  own.preemptible = true;
  if (pod.group != kNone) {
    const GroupState& group = state_.groups[pod.group];
    own.group = state_.GroupName(group);
    own.user = state_.users[group.user];
    if (!group.info) {
      own.queue = group.queue_name;
      own.priority = group.priority;
      own.preemptible = group.preemptible;
    }
  }
  own.phase = pod.seen_phase;
  own.node = NodeName(pod.seen_node);
  own.gpu_devices.clear();
  if (!pod.implicit_devices) {
    pod.seen_devices.ForEach([&own](int device) { own.gpu_devices.push_back(device); });
  }
  own.creation = pod.creation;
  own.start = pod.start;
  own.checkpoint = pod.checkpoint;
  own.restart_cost_gpu_s = pod.restart_cost_gpu_s;
  own.max_runtime = pod.max_runtime;
  own.ours = pod.ours;
  own.member_priority.reset();
  if (pod.member_priority != INT64_MIN) {
    own.member_priority = static_cast<int32_t>(pod.member_priority);
  }
}

bool KeyframeWriter::IsPlain(const PodState& pod) const {
  return pod.phase == pod.seen_phase && pod.node == pod.seen_node &&
         pod.devices == pod.seen_devices && !pod.implicit_devices && !pod.assumed && !pod.stopped &&
         pod.promise == kNone && pod.hint == kNone;
}

// What a pod is labelled or asks for, written whole when it comes first.
template <class Fn>
void KeyframeWriter::Part(std::vector<uint32_t>& numbers, int32_t id, Fn&& fields) {
  if (numbers.size() <= static_cast<size_t>(id)) numbers.resize(id + 1);
  if (numbers[id] != 0) return out_.Again(numbers[id]);
  Packer part(parts_);
  fields(part);
  numbers[id] = out_.Shared(part.bytes());
}

void KeyframeWriter::Pods() {
  std::vector<uint32_t> labelled;
  std::vector<uint32_t> asked;
  std::vector<PodPlace> places;
  PodInfo own;
  out_(state_.ids.pods.size());
  for (const PodState& pod : state_.pods) {
    if (pod.key.empty()) continue;
    SetOwn(pod, own);
    OwnFields(out_, std::as_const(own));
    Part(labelled, pod.labels, [&](Packer& part) {
      PodInfo info;
      info.labels = state_.terms.labels(pod.labels).labels;
      LabelFields(part, std::as_const(info));
    });
    Part(asked, pod.shape, [&](Packer& part) {
      const PodInfo info = Asked(pod.shape);
      SpecFields(part, info);
    });
    if (IsPlain(pod)) continue;
    places.push_back({pod.key, pod.phase, pod.implicit_devices, pod.assumed, pod.stopped,
                      NodeName(pod.node), NodeName(pod.promise), NodeName(pod.hint), pod.devices,
                      pod.promise_devices, pod.seen_devices});
  }
  out_(places);
}

void KeyframeWriter::Notes(const CycleMemory& memory) {
  std::vector<GroupNote> notes;
  for (size_t id = 0; id < state_.groups.size(); ++id) {
    const GroupState& group = state_.groups[id];
    const bool noticed = memory.noticed_stale.contains(static_cast<GroupId>(id));
    const bool blank =
        group.stale_since.unix_ns == 0 && group.moved_at.unix_ns == 0 && group.reason_hash == 0;
    if (!group.live || (blank && !noticed)) continue;
    notes.push_back({group.key, group.stale_since, group.moved_at, group.reason_hash, noticed});
  }
  out_(notes, memory.counted_at, memory.fruitless);
}

}  // namespace

void WriteKeyframe(Packer& out,
                   const State& state,
                   const Settings& settings,
                   const CycleMemory& memory) {
  out(settings);
  KeyframeWriter writer(out, state);
  writer.Queues();
  writer.Nodes();
  writer.Groups();
  writer.Pods();
  writer.Notes(memory);
}

}  // namespace swell::sched
