// What the scheduler is told and what it decides, described for codec.h: each struct's members in
// order. A change here changes the format: recorder.h counts its versions.
// - Threads: pure functions.
#pragma once

#include "sched/cycle/cycle.h"
#include "sched/record/codec.h"
#include "sched/state/types.h"

namespace swell::sched {

inline TaintEffect EnumMax(TaintEffect) { return TaintEffect::kNoExecute; }
inline SelectorOp EnumMax(SelectorOp) { return SelectorOp::kLt; }
inline PodPhase EnumMax(PodPhase) { return PodPhase::kFailed; }
inline OnPreemption EnumMax(OnPreemption) { return OnPreemption::kFail; }
inline PreemptUnit EnumMax(PreemptUnit) { return PreemptUnit::kPod; }
inline PlacementStrategy EnumMax(PlacementStrategy) { return PlacementStrategy::kSpread; }
inline Decision::Type EnumMax(Decision::Type) { return Decision::Type::kEvict; }

template <class C, Is<Resources> T>
void Fields(C& c, T& r) {
  c(r.cpu_milli, r.memory_bytes, r.ephemeral_bytes, r.pods, r.extended);
}
template <class C, Is<Taint> T>
void Fields(C& c, T& t) {
  c(t.key, t.value, t.effect);
}
template <class C, Is<Toleration> T>
void Fields(C& c, T& t) {
  c(t.key, t.exists, t.value, t.effect);
}
template <class C, Is<Requirement> T>
void Fields(C& c, T& r) {
  c(r.key, r.op, r.values);
}
template <class C, Is<NodeSelectorTerm> T>
void Fields(C& c, T& t) {
  c(t.expressions, t.fields);
}
template <class C, Is<PreferredNodeTerm> T>
void Fields(C& c, T& t) {
  c(t.weight, t.term);
}
template <class C, Is<PodAffinityTerm> T>
void Fields(C& c, T& t) {
  c(t.selector, t.namespaces, t.all_namespaces, t.topology_key, t.weight);
}
template <class C, Is<SpreadConstraint> T>
void Fields(C& c, T& s) {
  c(s.max_skew, s.topology_key, s.required, s.selector, s.min_domains, s.honors_affinity,
    s.honors_taints);
}
template <class C, Is<HostPort> T>
void Fields(C& c, T& p) {
  c(p.protocol, p.host_ip, p.port);
}
template <class C, Is<NodeInfo> T>
void Fields(C& c, T& n) {
  c.Shared(n.name);
  c(n.labels, n.taints, n.allocatable, n.unschedulable, n.ready, n.gpu_memory_mib, n.gpus_sliced);
}

// A pod in three parts: what it asks and what it is labelled are shared by many.
template <class C, Is<PodInfo> T>
void SpecFields(C& c, T& p) {
  c(p.requests, p.node_selector, p.required_node_affinity, p.preferred_node_affinity,
    p.volume_affinity, p.tolerations, p.host_ports, p.required_affinity, p.required_anti_affinity,
    p.preferred_affinity, p.preferred_anti_affinity, p.spread, p.gpu_fraction, p.gpu_memory_mib,
    p.gpu_fraction_devices);
}
template <class C, Is<PodInfo> T>
void LabelFields(C& c, T& p) {
  c(p.labels);
}
template <class C, Is<PodInfo> T>
void OwnFields(C& c, T& p) {
  c.Shared(p.group);
  c.Shared(p.queue);
  c.Shared(p.user);
  c.Shared(p.node);
  c(p.key, p.uid, p.pod_set, p.scheduling_gates, p.priority, p.preemptible, p.nominated_node,
    p.phase, p.creation, p.start, p.checkpoint, p.restart_cost_gpu_s, p.max_runtime, p.ours,
    p.gpu_devices, p.member_priority, p.obstacle, p.may_preempt, p.comes_back);
}
template <class C, Is<PodInfo> T>
void Fields(C& c, T& p) {
  OwnFields(c, p);
  c.Part([&p](auto& part) { LabelFields(part, p); });
  c.Part([&p](auto& part) { SpecFields(part, p); });
}

template <class C, Is<TopologyConstraint> T>
void Fields(C& c, T& t) {
  c(t.name, t.required, t.preferred);
}
template <class C, Is<SubGroup> T>
void Fields(C& c, T& g) {
  c(g.name, g.parent, g.topology);
}
template <class C, Is<PodSet> T>
void Fields(C& c, T& s) {
  c(s.name, s.min_member, s.parent, s.topology);
}
template <class C, Is<goodput::CurvePoint> T>
void Fields(C& c, T& p) {
  c(p.members, p.goodput);
}
template <class C, Is<GoodputInfo> T>
void Fields(C& c, T& g) {
  c(g.pod_set, g.curve, g.measured_at, g.resize_cost);
}
template <class C, Is<GroupInfo> T>
void Fields(C& c, T& g) {
  c(g.key, g.uid, g.queue, g.priority, g.priority_class, g.preemptible, g.creation, g.groups,
    g.pod_sets, g.topology, g.on_preemption, g.preempt_unit, g.min_runtime, g.stale_since,
    g.moved_at, g.may_preempt, g.goodput);
}
template <class C, Is<BudgetInfo> T>
void Fields(C& c, T& b) {
  c(b.key, b.selector, b.allowed);
}
template <class C, Is<QueueLimits> T>
void Fields(C& c, T& l) {
  c(l.quota, l.limit, l.weight, l.lending_limit);
}
template <class C, Is<QueuePoolInfo> T>
void Fields(C& c, T& p) {
  c(p.pool, p.gpu, p.cpu, p.memory);
}
template <class C, Is<QueueInfo> T>
void Fields(C& c, T& q) {
  c(q.name, q.parent, q.priority, q.gpu, q.cpu, q.memory, q.pools, q.creation,
    q.preempt_min_runtime, q.reclaim_min_runtime, q.user_gpu_limit, q.fair_to_users);
}
template <class C, Is<PoolInfo> T>
void Fields(C& c, T& p) {
  c(p.name, p.node_selector, p.gpu, p.cpu, p.shared_gpu);
}
template <class C, Is<TopologyInfo> T>
void Fields(C& c, T& t) {
  c(t.name, t.levels);
}
template <class C, Is<Settings> T>
void Fields(C& c, T& s) {
  c(s.stale_grace, s.reserve_after, s.move_pause, s.past_share, s.past_half_life, s.search_budget,
    s.binds_per_cycle_max);
}

}  // namespace swell::sched
