#include "sched/actions/registry.h"

#include <algorithm>

namespace swell::sched {

const std::vector<ActionStep>& ActionSteps() {
  static const std::vector<ActionStep> kSteps = {
      {0, &AllocateAction()},   {1, &ShrinkAction()},  {2, &ConsolidateAction()},
      {3, &ReclaimAction()},    {4, &PreemptAction()}, {2, &ConsolidateDeferredAction()},
      {5, &StaleGangsAction()}, {6, &GrowAction()},    {7, &RebalanceAction()},
  };
  return kSteps;
}

std::vector<std::string> ActionNames() {
  std::vector<std::string> names;
  for (const ActionStep& step : ActionSteps()) {
    const std::string_view name = step.action->Name();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  }
  return names;
}

const Action* FindAction(std::string_view name) {
  for (const ActionStep& step : ActionSteps()) {
    if (step.action->Name() == name) return step.action;
  }
  return nullptr;
}

uint32_t ActionBit(std::string_view name) {
  for (const ActionStep& step : ActionSteps()) {
    if (step.action->Name() == name) return 1u << step.number;
  }
  return 0;
}

uint32_t AllActionBits() {
  uint32_t bits = 0;
  for (const ActionStep& step : ActionSteps()) bits |= 1u << step.number;
  return bits;
}

}  // namespace swell::sched
