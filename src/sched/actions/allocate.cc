// allocate: starts what fits into free room, gangs whole or not at all; then places elastic
// members. Queues take turns by fairness. A limit bounds a queue, its fair share does not.
#include <algorithm>
#include <utility>

#include "sched/actions/place.h"
#include "sched/actions/registry.h"
#include "sched/placement/gang.h"
#include "sched/queues/queue_order.h"

namespace swell::sched {
namespace {

// Surplus members that others gave way to: no waiting minimum takes that from them.
void AddPromised(const State& state, GroupId id, std::vector<WaitingJob>& jobs) {
  if (state.lists.hinted.empty()) return;
  int32_t turn = 0;
  for (PodId pod : ElasticPods(state, id)) {
    if (state.pods[pod].hint == kNone) continue;
    const std::vector<PodId> one{pod};
    jobs.push_back({id, one, NeedOf(state, one), true, ++turn});
  }
}

// Those that stand in no line.
std::vector<WaitingJob> JobsAlone(const State& state) {
  std::vector<WaitingJob> jobs;
  for (GroupId id : state.lists.waiting.alone()) {
    if (state.lists.startable[id] == 0 || !Schedulable(state, state.groups[id])) continue;
    Needed needed = NeededPods(state, id);
    if (needed.met) {
      AddPromised(state, id, jobs);
      continue;
    }
    if (needed.pods.empty()) continue;
    const QueueAmounts need = NeedOf(state, needed.pods);
    jobs.push_back({id, std::move(needed.pods), need, false});
  }
  return jobs;
}

std::vector<const WaitingLine*> LinesToPlace(const State& state) {
  std::vector<const WaitingLine*> lines;
  for (const WaitingLine& line : state.lists.waiting.lines()) {
    if (line.jobs.empty() || !line.need.complete) continue;
    if (Schedulable(state, state.groups[line.jobs.front()])) lines.push_back(&line);
  }
  return lines;
}

// Whether the rest of the job's line will not be placed either, in what is left after others. Where
// nodes are held for somebody, pods that differ may fit once less is free, or the line's own job
// may be the one for which they are held.
bool SpeaksForItsLine(const State& state, const WaitingJob& job) {
  if (state.held_nodes.empty()) return true;
  const ShapeId shape = state.pods[job.pods.front()].shape;
  if (state.shapes[shape].Shares()) return false;
  if (std::any_of(job.pods.begin(), job.pods.end(),
                  [&](PodId pod) { return state.pods[pod].shape != shape; })) {
    return false;
  }
  const WaitingLines& waiting = state.lists.waiting;
  return std::none_of(state.held_nodes.begin(), state.held_nodes.end(), [&](NodeId node) {
    return waiting.LineOf(state.nodes[node].held_for) == waiting.LineOf(job.group);
  });
}

// Thousands may wait for one free GPU: reserving room for a decision about each would cost more
// than the decisions.
size_t StartsAtMost(const State& state, int64_t least_ppm) {
  const size_t waiting = state.lists.waiting.size();
  if (least_ppm <= 0) return waiting;
  return std::min(waiting, static_cast<size_t>(state.FreeGpuPpm(kNone) / least_ppm));
}

const std::set<GroupId> kNobody;

class Allocate final : public Action {
 public:
  std::string_view Name() const override { return "allocate"; }
  void Run(CycleContext& context) const override {
    State& state = context.state;
    state.lists.waiting.Settle(state);
    std::vector<WaitingJob> jobs = JobsAlone(state);
    const std::vector<const WaitingLine*> lines = LinesToPlace(state);
    int64_t least_ppm = INT64_MAX;
    for (const WaitingLine* line : lines) least_ppm = std::min(least_ppm, line->need.gpu_ppm);
    for (const WaitingJob& job : jobs) least_ppm = std::min(least_ppm, GpuPpmOf(state, job.pods));
    // Once no job's GPUs are free, a long queue needs no look at each job in its turn.
    const auto room = [&] { return state.FreeGpuPpm(kNone) >= least_ppm; };
    QueueOrder turns(state, context.shares, context.promised_first);
    if (room()) {
      context.result.decisions.reserve(StartsAtMost(state, least_ppm));
      for (WaitingJob& job : jobs) turns.Push(std::move(job));
      for (const WaitingLine* line : lines) turns.PushLine(*line, kNobody);
    }
    while (!turns.Empty()) {
      if (context.Full()) {
        context.result.more = true;
        return;
      }
      if (!room()) break;
      WaitingJob job = turns.Pop();
      if (job.pods.empty()) job.pods = NeededPods(state, job.group).pods;
      if (TryPlaceNowOrLater(context, *this, job.group, job.pods)) {
        turns.Started();
      } else if (job.more_alike && SpeaksForItsLine(state, job)) {
        turns.SetAside();
      }
    }
    PlaceElastic(context, *this);
  }
};

}  // namespace

const Action& AllocateAction() {
  static const Allocate action;
  return action;
}

}  // namespace swell::sched
