#include "sched/cycle/cycle.h"

#include <array>

#include "base/strings.h"
#include "sched/state/words.h"

namespace swell::sched {
namespace {

constexpr std::array<std::string_view, kActionCount> kActionNames = {
    "allocate", "shrink", "consolidate", "reclaim", "preempt", "stale-gangs", "grow"};

}  // namespace

std::string_view ActionName(Action action) { return kActionNames[static_cast<size_t>(action)]; }

std::optional<Action> ActionFromName(std::string_view name) {
  for (size_t i = 0; i < kActionNames.size(); ++i) {
    if (kActionNames[i] == name) return static_cast<Action>(i);
  }
  return std::nullopt;
}

std::string_view DecisionTypeName(Decision::Type type) {
  switch (type) {
    case Decision::Type::kBind:
      return "bind";
    case Decision::Type::kNominate:
      return "nominate";
    case Decision::Type::kEvict:
      return "evict";
  }
  return "";
}

CycleOptions CycleOptions::Only(std::initializer_list<Action> list) {
  CycleOptions options;
  options.actions = 0;
  for (Action action : list) options.actions |= 1u << static_cast<int>(action);
  return options;
}

std::string Decision::Reason() const {
  const std::string_view said = words ? std::string_view(*words) : std::string_view();
  switch (type) {
    case Type::kBind:
      if (gpus < 0) return StrCat(said, " on ", node);
      return StrCat(said, " on ", node, "; ", gpus_idle, " of its ", gpus, " GPUs stay free");
    case Type::kNominate:
      return StrCat(said, " on ", node,
                    " promised to it; it starts when terminating pods are gone");
    case Type::kEvict:
      return StrCat(said, moves_to.empty() ? "" : "; moves to ", moves_to, "; ",
                    NumberText(lost_gpu_seconds), " GPU-seconds since its last checkpoint");
  }
  return "";
}

}  // namespace swell::sched
