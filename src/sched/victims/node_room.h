// NodeRoom: the room on one node as it would be with some pods gone.
// - Threads: none.
// - Ownership: refers to the node and the shape that Reset was told.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sched/state/state.h"

namespace swell::sched {

class NodeRoom {
 public:
  void Reset(const State& state, const NodeState& node, const Shape& shape);
  void Move(const PodState& pod, int sign);  // +1: gone, -1: back
  // Shares of each wanted resource that are missing: 0 when the pod fits, and where kinds of
  // devices are in each other's way.
  double Missing() const;
  // True if the pod surely does not fit once `amounts` of what was taken away are given back.
  bool ShortWithout(const CoreAmounts& amounts) const;

 private:
  double MissingKinds() const;

  const State* state_ = nullptr;
  const NodeState* node_ = nullptr;
  const Shape* shape_ = nullptr;
  int64_t ppm_ = 0;
  CoreAmounts free_{};
  std::vector<int64_t> ext_free_;
  std::vector<DeviceWants> kinds_;  // that the shape asks for
  std::vector<int64_t> counters_;   // what is left of the node's; empty: the kinds take from none
  int device_count_ = 0;
  std::array<int64_t, kDevicesMax> devices_{};
};

}  // namespace swell::sched
