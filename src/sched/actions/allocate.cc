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

std::vector<WaitingJob> JobsToPlace(const CycleContext& context) {
  const State& state = context.state;
  std::vector<WaitingJob> jobs;
  for (GroupId id : context.order) {
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

class Allocate final : public Action {
 public:
  std::string_view Name() const override { return "allocate"; }
  void Run(CycleContext& context) const override {
    State& state = context.state;
    context.result.decisions.reserve(context.order.size());
    std::vector<WaitingJob> jobs = JobsToPlace(context);
    int64_t least_ppm = INT64_MAX;
    for (const WaitingJob& job : jobs) least_ppm = std::min(least_ppm, GpuPpmOf(state, job.pods));
    // Once no job's GPUs are free, a long queue needs no look at each job in its turn.
    const auto room = [&] { return state.FreeGpuPpm(kNone) >= least_ppm; };
    QueueOrder turns(state, context.shares, context.promised_first);
    if (room()) {
      for (WaitingJob& job : jobs) turns.Push(std::move(job));
    }
    while (!turns.Empty()) {
      if (context.Full()) {
        context.result.more = true;
        return;
      }
      if (!room()) break;
      const WaitingJob job = turns.Pop();
      TryPlaceNowOrLater(context, *this, job.group, job.pods);
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
