// ReplicaPace: how fast a number of replicas may follow what metrics propose, as the `behavior` of
// Kubernetes' HorizontalPodAutoscaler says it (kubernetes.io, "Horizontal Pod Autoscaling", scaling
// policies and stabilization window).
//
// Within a direction's window the number follows the smallest step that was proposed: the highest
// number when it shrinks, the lowest when it grows. Then policies bound what a period may change;
// no policies: nothing does. Bounds of the number itself come last.
//
// - Threads: pure; the caller keeps the state. One that starts anew shrinks no sooner than a whole
//   window later.
// - Invariants: min <= what Pace answers <= max.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace swell::elastic {

struct PacePolicy {
  bool percent = false;  // value is a percentage; else it is a number of replicas
  int64_t value = 0;
  Duration period{0};
};

// Kubernetes' default policies of growth: 4 replicas, or as many again, in a period.
std::vector<PacePolicy> UsualGrowth(Duration period);

struct PaceRules {
  enum class Select { kMax, kMin, kDisabled };  // the policy that allows most, least; none at all
  Duration window{0};
  Select select = Select::kMax;
  std::vector<PacePolicy> policies;
};

struct PaceState {
  std::deque<std::pair<WallTime, int64_t>> asked;    // within the longer window, oldest first
  std::deque<std::pair<WallTime, int64_t>> changes;  // by how many, within the longest period
  std::optional<WallTime> since;                     // of the first look
};

struct Pace {
  int64_t replicas_min = 1;
  int64_t replicas_max = 1;
  PaceRules up, down;
};

struct PacedReplicas {
  enum class Limit { kNone, kMaximum, kMinimum, kUpRate, kDownRate };
  int64_t replicas = 0;
  int64_t stable = 0;  // what the windows make of the proposal, before policies and bounds
  Limit limit = Limit::kNone;
};

// `replicas`: the present number in the spec. `desired`: the number that metrics ask for.
PacedReplicas Follow(
    const Pace& pace, WallTime now, int64_t replicas, int64_t desired, PaceState& state);

// A change that was made, so that the policies know of it.
void NoteChange(const Pace& pace, WallTime now, int64_t by, PaceState& state);

}  // namespace swell::elastic
