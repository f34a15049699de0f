#include "sched/scheduler.h"

#include <algorithm>
#include <utility>

#include "sched/actions/decide.h"
#include "sched/actions/explain.h"
#include "sched/actions/registry.h"
#include "sched/actions/reservation.h"
#include "sched/actions/stale_gangs.h"
#include "sched/cycle/context.h"
#include "sched/past_use.h"
#include "sched/record/recorder.h"

namespace swell::sched {
namespace {

constexpr Duration kPastUseEvery = std::chrono::minutes(5);
constexpr int kFruitlessMax = 8;
constexpr Duration kFruitlessPause = std::chrono::seconds(1);

// Promises are made anew in each cycle, in job order. So no room is kept for a pod that has a
// better place by now, and none goes to a job of lower rank first.
void LiftPromises(CycleContext& context) {
  State& state = context.state;
  const std::vector<PodId> promised = state.lists.promised.Members();
  for (size_t i = 0; i < promised.size(); ++i) {
    state.PrefetchAt(promised, i);
    const PodId id = promised[i];
    const PodState& pod = state.pods[id];
    if (pod.phase != PodPhase::kPending) continue;
    state.SetHint(id, pod.promise);
    state.SetPromise(id, kNone, {});
  }
}

// Takes away nominations that no promise stands behind any more.
void ClearNominations(CycleContext& context) {
  State& state = context.state;
  std::vector<std::string>& cleared = context.result.nominations_cleared;
  for (PodId id : state.lists.hinted.Members()) {
    const PodState& pod = state.pods[id];
    if (pod.promise != kNone) continue;
    if (pod.ours && pod.phase == PodPhase::kPending) cleared.push_back(pod.key);
    state.SetHint(id, kNone);
  }
  std::sort(cleared.begin(), cleared.end());
}

void RunActions(CycleContext& context, const CycleOptions& options) {
  for (const ActionStep& step : ActionSteps()) {
    if (options.Runs(step.number)) step.action->Run(context);
  }
}

}  // namespace

Scheduler::Scheduler(Settings settings, CycleMemory memory)
    : settings_(settings), memory_(std::move(memory)) {}
Scheduler::~Scheduler() = default;

CycleResult Scheduler::RunCycle(Model& model, WallTime now, const CycleOptions& asked) {
  const CycleOptions options{.actions = asked.actions & AllActionBits(), .explain = asked.explain};
  CycleResult result;
  State& state = model.state();
  ++stats_.cycles;
  const bool due = wake_at_ && now >= *wake_at_;
  if (state.versions.model == seen_version_ && options.actions == seen_actions_ && !due) {
    ++stats_.empty_cycles;
    result.wake_at = wake_at_;
    return result;
  }
  BeginCycle(state, now, due);
  const QueueShares shares(state);
  CycleContext context{.state = state,
                       .settings = settings_,
                       .stats = stats_,
                       .now = now,
                       .result = result,
                       .shares = shares,
                       .searches = {.budget = settings_.search_budget, .failed = failed_searches_},
                       .promised_first = memory_.fruitless > 0};
  // Searches that failed are not repeated; they said when they are to be.
  if (!failed_searches_.empty() && wake_at_) context.WakeAt(*wake_at_);
  Decide(context, options);
  EndCycle(context);
  seen_actions_ = options.actions;
  wake_at_ = result.wake_at;
  if (recorder_ != nullptr) recorder_->AfterCycle(now, options, result);
  return result;
}

void Scheduler::BeginCycle(State& state, WallTime now, bool due) {
  state.Refresh();
  if (failed_version_ != state.versions.model || due) failed_searches_.clear();
  failed_version_ = state.versions.model;
  if (recorder_ != nullptr) {
    recorder_->BeforeCycle(state, settings_, memory_, failed_searches_.empty());
  }
  state.cycle.now = now;
  CountPastUse(state, settings_, memory_.counted_at ? now - *memory_.counted_at : Duration::zero());
  memory_.counted_at = now;
  state.cycle.touched.clear();
  ++state.cycle.number;
  state.ChooseHomes();
}

void Scheduler::Decide(CycleContext& context, const CycleOptions& options) {
  const std::vector<GroupId> newly_stale = NoteStale(context);
  LiftPromises(context);
  context.state.lists.waiting.Settle(context.state);
  context.state.lists.waiting.TakeGone();  // in this cycle nobody has started yet
  Reserve(context);
  RunActions(context, options);
  DropTakenBack(context);
  std::sort(context.result.moved.begin(), context.result.moved.end());
  ClearNominations(context);
  ReportStale(context, newly_stale, memory_.noticed_stale);
  if (options.explain) ExplainWaiting(context);
}

// Decides whether another cycle is due though nothing changes, and when.
void Scheduler::EndCycle(CycleContext& context) {
  CycleResult& result = context.result;
  // Two claims that keep displacing each other must not keep the machine busy.
  const bool nothing_done = std::all_of(
      result.decisions.begin(), result.decisions.end(),
      [](const Decision& decision) { return decision.type == Decision::Type::kNominate; });
  memory_.fruitless = result.more && nothing_done ? memory_.fruitless + 1 : 0;
  if (memory_.fruitless > kFruitlessMax) {
    result.more = false;
    context.WakeAt(context.now + kFruitlessPause);
  }
  // An unfinished cycle leaves something to do though nothing changes.
  seen_version_ = result.more ? 0 : context.state.versions.model;
  // Fair shares change as past use decays, even if nothing else does.
  if (settings_.past_share > 0) context.WakeAt(context.now + kPastUseEvery);
}

}  // namespace swell::sched
