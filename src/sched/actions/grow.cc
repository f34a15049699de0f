// grow: places elastic members again, after other actions have made room.
#include "sched/actions/place.h"
#include "sched/actions/registry.h"

namespace swell::sched {
namespace {

class Grow final : public Action {
 public:
  std::string_view Name() const override { return "grow"; }
  void Run(CycleContext& context) const override { PlaceElastic(context, *this); }
};

}  // namespace

const Action& GrowAction() {
  static const Grow action;
  return action;
}

}  // namespace swell::sched
