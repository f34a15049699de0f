// Decisions written down: the only place where a cycle makes strings of what it did.
#include <cstdio>

#include "base/strings.h"
#include "sched/context.h"

namespace swell::sched {
namespace {

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.1f" : "%.0f", value);
  return text;
}

std::string Gpus(const State& state, PodId pod, NodeId node) {
  const Shape& shape = state.ShapeOf(pod);
  if (shape.core[kGpu] > 0) {
    return StrCat(shape.core[kGpu], shape.core[kGpu] == 1 ? " GPU" : " GPUs");
  }
  if (shape.Shares()) {
    char text[64];
    std::snprintf(text, sizeof text, "%g of a GPU",
                  static_cast<double>(state.DevicePpm(shape, state.nodes[node])) / kPpm);
    return text;
  }
  if (!shape.extended.empty()) {
    return StrCat(shape.extended[0].second, " ", state.resource_names[shape.extended[0].first]);
  }
  return StrCat(shape.core[kCpu], "m CPU");
}

Decision Start(const State& state, PodId id, Decision::Type type, NodeId node, Action rule) {
  const PodState& pod = state.pods[id];
  Decision decision;
  decision.type = type;
  decision.pod = pod.key;
  decision.pod_uid = pod.uid;
  if (pod.group != kNone) decision.group = state.GroupName(state.groups[pod.group]);
  decision.node = state.nodes[node].info.name;
  decision.rule = ActionName(rule);
  return decision;
}

}  // namespace

double LostGpuSeconds(const State& state, PodId id, WallTime now) {
  const PodState& pod = state.pods[id];
  const WallTime since = std::max(pod.start, pod.checkpoint);
  if (pod.start.unix_ns == 0 || now <= since || pod.node == kNone) return 0;
  const double gpus =
      static_cast<double>(state.ChargeOf(state.ShapeOf(id), pod.node)[kQueueGpu]) / kPpm;
  return gpus * std::chrono::duration<double>(now - since).count();
}

void DecideBinds(Context& context, const std::vector<PodId>& pods, Action rule) {
  State& state = context.state;
  for (PodId id : pods) {
    PodState& pod = state.pods[id];
    pod.assumed = true;
    Decision decision = Start(state, id, Decision::Type::kBind, pod.node, rule);
    decision.gpu_devices = pod.devices.ToVector();
    const NodeState& node = state.nodes[pod.node];
    if (state.ShapeOf(id).UsesGpu()) {
      decision.reason = StrCat(Gpus(state, id, pod.node), " on ", decision.node, "; ",
                               node.idle_now, " of its ", node.gpu_count, " GPUs stay free");
    } else {
      decision.reason = StrCat(Gpus(state, id, pod.node), " on ", decision.node);
    }
    context.bound[id] = context.result.decisions.size();
    context.bound_groups.insert(pod.group);
    context.result.decisions.push_back(std::move(decision));
  }
  context.binds += static_cast<int32_t>(pods.size());
}

void DecideNominations(Context& context, const std::vector<PodId>& pods, Action rule) {
  State& state = context.state;
  for (PodId id : pods) {
    const PodState& pod = state.pods[id];
    if (pod.hint == pod.promise) continue;  // it is nominated there already
    Decision decision = Start(state, id, Decision::Type::kNominate, pod.promise, rule);
    decision.gpu_devices = pod.promise_devices.ToVector();
    decision.reason = StrCat(Gpus(state, id, pod.promise), " on ", decision.node,
                             " are promised to it; terminating pods still hold them");
    context.result.decisions.push_back(std::move(decision));
    state.SetHint(id, pod.promise);
  }
}

void DecideEvictions(Context& context,
                     const std::vector<PodId>& victims,
                     const EvictionCause& cause) {
  State& state = context.state;
  for (PodId id : victims) {
    PodState& pod = state.pods[id];
    auto fresh = context.bound.find(id);
    if (fresh != context.bound.end()) {
      context.taken_back.push_back(fresh->second);
      context.bound.erase(fresh);
      state.SetPlace(id, PodPhase::kPending, kNone, {});
      pod.assumed = false;
      // Its room is free at once, so those it was promised to can start without waiting.
      context.result.more = true;
      continue;
    }
    pod.assumed = true;
    Decision decision = Start(state, id, Decision::Type::kEvict, pod.node, cause.rule);
    decision.gpu_devices = pod.devices.ToVector();
    decision.lost_gpu_seconds = LostGpuSeconds(state, id, context.now);
    const GroupState& group = state.groups[pod.group];
    if (cause.beneficiary == kNone) {
      decision.reason = StrCat("Preempted: ", cause.why);
    } else {
      const GroupState& winner = state.groups[cause.beneficiary];
      PodId needs = kNone;  // the pod that comes to this node, if any
      for (PodId candidate : cause.beneficiaries) {
        if (state.pods[candidate].promise == pod.node) {
          needs = candidate;
          break;
        }
      }
      const bool here = needs != kNone;
      if (!here) needs = cause.beneficiaries.front();
      decision.beneficiary = state.pods[needs].key;
      decision.beneficiary_group = state.GroupName(winner);
      decision.reason = StrCat(
          "Preempted by ", decision.beneficiary, ", which needs ",
          Gpus(state, needs, state.pods[needs].promise),
          here ? StrCat(" on ", decision.node) : std::string(" elsewhere"), ": ",
          cause.why.empty() ? StrCat("priority ", winner.priority, " is above ", group.priority)
                            : cause.why);
      if (!here) decision.reason += "; stopped with the rest of its gang";
    }
    decision.reason +=
        StrCat("; ", Number(decision.lost_gpu_seconds), " GPU-seconds since its last checkpoint");
    context.result.decisions.push_back(std::move(decision));
  }
}

void DropTakenBack(Context& context) {
  std::vector<Decision>& decisions = context.result.decisions;
  std::sort(context.taken_back.begin(), context.taken_back.end());
  size_t next = 0;
  size_t kept = 0;
  for (size_t i = 0; i < decisions.size(); ++i) {
    if (next < context.taken_back.size() && context.taken_back[next] == i) {
      ++next;
      continue;
    }
    if (kept != i) decisions[kept] = std::move(decisions[i]);
    ++kept;
  }
  decisions.resize(kept);
}

}  // namespace swell::sched
