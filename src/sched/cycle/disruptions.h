// DisruptionLedger: what disruption budgets still let go in the cycle under way.
//
// A budget says how many of its pods may be stopped, as of when its controller looked last. Pods
// that were stopped since and are not gone count against it.
//
// - Threads: none. Lives for one cycle; the budgets do not change meanwhile.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "sched/state/state.h"

namespace swell::sched {

bool Covers(const BudgetInfo& budget, std::string_view name_space, const Labels& labels);
bool Covers(const BudgetInfo& budget, const PodInfo& pod);

class DisruptionLedger {
 public:
  explicit DisruptionLedger(const State& state);
  bool empty() const { return budgets_.empty(); }
  size_t size() const { return budgets_.size(); }
  // The budgets over a pod, by number.
  const std::vector<size_t>& Over(PodId pod);
  int64_t Left(size_t budget) const { return left_[budget]; }
  // It is decided that the pod is stopped.
  void Spend(PodId pod);
  static void MarkStopped(State& state, PodId pod);
  static void Unmark(State& state, PodId pod);
  // The budget was looked at again.
  static void ForgetStopped(State& state, const BudgetInfo& budget);

 private:
  const State& state_;
  std::vector<const BudgetInfo*> budgets_;
  std::vector<int64_t> left_;
  std::map<LabelSetId, std::vector<size_t>> over_;
};

}  // namespace swell::sched
