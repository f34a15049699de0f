#include "sched/cycle/cycle.h"

#include "base/strings.h"
#include "sched/state/amount_text.h"

namespace swell::sched {

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

std::string Decision::LostText() const {
  if (lost_gpu_seconds == 0) return "";
  return StrCat(
      "; ", NumberText(lost_gpu_seconds),
      has_saved ? " GPU-seconds since its last checkpoint" : " GPU-seconds since its start");
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
      return StrCat(said, moves_to.empty() ? "" : "; moves to ", moves_to, LostText());
  }
  return "";
}

}  // namespace swell::sched
