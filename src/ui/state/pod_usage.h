// PodUsage: what pods were last measured to use, and since when their GPUs have been idle.
//
// A virtual GPU has no counters: it is as busy as its pod keeps the processors that it asked for.
// - Threads: plain values.
// - Invariants: knows pods of the last measurement only.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "json/value.h"

namespace swell::ui {

class PodUsage {
 public:
  // Below this a GPU is idle.
  static constexpr double kIdlePart = 0.05;

  struct Use {
    double cores = 0;
    double memory = 0;  // bytes
  };

  // An answer of metrics.k8s.io: one row per pod that was measured.
  void Measure(const json::Value& list);
  void Clear() { pods_.clear(); }
  // Remembers of each pod with GPUs since when they have been idle, and forgets other pods.
  void NoteIdle(const std::map<std::string, json::SharedValue, std::less<>>& pods, WallTime now);

  const Use* Find(const json::Value& pod) const;
  // The part of its GPUs' time that a pod uses, 0 to 1; none: it was not measured, or has no GPUs.
  std::optional<double> GpuPart(const json::Value& pod) const;
  std::optional<WallTime> IdleSince(const json::Value& pod) const;
  bool empty() const { return pods_.empty(); }

 private:
  std::map<std::string, Use, std::less<>> pods_;             // by "namespace/name"
  std::map<std::string, WallTime, std::less<>> idle_since_;  // by uid
};

}  // namespace swell::ui
