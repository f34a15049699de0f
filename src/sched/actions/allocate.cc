// allocate: starts what fits into free room, gangs whole or not at all; then places elastic
// members. Queues take turns by fairness. A limit bounds a queue, its fair share does not.
#include "sched/actions/place.h"
#include "sched/actions/registry.h"
#include "sched/placement/gang.h"
#include "sched/queues/queue_order.h"

namespace swell::sched {
namespace {

// Surplus members that others gave way to: no waiting minimum takes that from them.
void PushPromised(const State& state, GroupId id, QueueOrder& turns) {
  if (state.lists.hinted.empty()) return;
  int32_t turn = 0;
  for (PodId pod : ElasticPods(state, id)) {
    if (state.pods[pod].hint == kNone) continue;
    const std::vector<PodId> one{pod};
    turns.Push({id, one, NeedOf(state, one), true, ++turn});
  }
}

class Allocate final : public Action {
 public:
  std::string_view Name() const override { return "allocate"; }
  void Run(CycleContext& context) const override {
    State& state = context.state;
    context.result.decisions.reserve(context.order.size());
    QueueOrder turns(state, context.shares, context.promised_first);
    for (GroupId id : context.order) {
      if (state.lists.startable[id] == 0 || !Schedulable(state, state.groups[id])) continue;
      Needed needed = NeededPods(state, id);
      if (needed.met) {
        PushPromised(state, id, turns);
        continue;
      }
      if (needed.pods.empty()) continue;
      const QueueAmounts need = NeedOf(state, needed.pods);
      turns.Push({id, std::move(needed.pods), need, false});
    }
    while (!turns.Empty()) {
      if (context.Full()) {
        context.result.more = true;
        return;
      }
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
