// WhyFacts: what `swell why` has read about a job and its cluster.
// - Threads: plain values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/views/goodput_view.h"
#include "cli/views/job_view.h"
#include "cli/views/node_view.h"
#include "cli/views/project_view.h"

namespace swell::cli {

struct WhyFacts {
  JobView job;  // a pod or a pod group counts as a job of its pods
  ProjectTree tree;
  std::vector<NodeView> nodes;
  bool hidden = false;  // the user cannot read the whole cluster
  std::string trouble;  // the last warning about a job without pods
  WallTime now;
  std::optional<GoodputView> goodput;  // of a job that is scaled by it
  std::vector<GoodputView> others;     // of other such jobs of its namespace

  bool Waits() const;
  bool Podless() const;
  // Its members start again and again, or cannot start.
  bool Fails() const;
  bool IsPod() const;
  std::string_view PodNode() const;
  // The other scheduler that is responsible for a pod; empty if it is Swell.
  std::string_view OtherScheduler() const;
  // True if it waits for Swell's scheduler.
  bool WaitsForScheduler() const;
  // The scheduler ignores a pod until its group exists.
  bool LacksGroup() const;
  // The first pod without a node; null if there is no such pod.
  const json::Value* WaitingPod() const;
  // The name that the scheduler uses. A batch Job has no group; then it is that of a pod.
  std::string Group() const;
  const ProjectView* Project() const;
};

}  // namespace swell::cli
