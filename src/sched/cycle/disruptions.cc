#include "sched/cycle/disruptions.h"

namespace swell::sched {

namespace {

bool IsStopped(const PodState& pod) { return pod.stopped && pod.phase == PodPhase::kReleasing; }

}  // namespace

bool Covers(const BudgetInfo& budget, std::string_view name_space, const Labels& labels) {
  return std::string_view(budget.key).substr(0, budget.key.find('/')) == name_space &&
         MatchesAll(labels, budget.selector);
}

bool Covers(const BudgetInfo& budget, const PodInfo& pod) {
  return Covers(budget, std::string_view(pod.key).substr(0, pod.key.find('/')), pod.labels);
}

DisruptionLedger::DisruptionLedger(const State& state) : state_(state) {
  for (const auto& [key, budget] : state.budgets) {
    budgets_.push_back(&budget);
    left_.push_back(budget.allowed);
  }
  if (budgets_.empty()) return;
  for (PodId id : state.lists.stopped) {
    if (IsStopped(state.pods[id])) Spend(id);
  }
}

const std::vector<size_t>& DisruptionLedger::Over(PodId pod) {
  const LabelSetId id = state_.pods[pod].labels;
  auto [it, added] = over_.try_emplace(id);
  if (!added) return it->second;
  const LabelSet& labels = state_.terms.labels(id);
  for (size_t i = 0; i < budgets_.size(); ++i) {
    if (Covers(*budgets_[i], labels.name_space, labels.labels)) it->second.push_back(i);
  }
  return it->second;
}

void DisruptionLedger::MarkStopped(State& state, PodId pod) {
  if (state.budgets.empty() || state.pods[pod].stopped) return;
  state.pods[pod].stopped = true;
  state.lists.stopped.push_back(pod);
}

void DisruptionLedger::Unmark(State& state, PodId pod) {
  if (!state.pods[pod].stopped) return;
  state.pods[pod].stopped = false;
  std::erase(state.lists.stopped, pod);
}

void DisruptionLedger::ForgetStopped(State& state, const BudgetInfo& budget) {
  std::erase_if(state.lists.stopped, [&](PodId id) {
    PodState& pod = state.pods[id];
    if (!IsStopped(pod)) {
      pod.stopped = false;
      return true;
    }
    const LabelSet& labels = state.terms.labels(pod.labels);
    if (!Covers(budget, labels.name_space, labels.labels)) return false;
    pod.stopped = false;
    return true;
  });
}

void DisruptionLedger::Spend(PodId pod) {
  if (budgets_.empty()) return;
  for (size_t budget : Over(pod)) --left_[budget];
}

}  // namespace swell::sched
