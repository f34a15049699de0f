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
#include "cli/views/queue_places.h"

namespace swell::cli {

struct WhyFacts {
  JobView job;  // a pod or a pod group counts as a job of its pods
  ProjectTree tree;
  std::vector<NodeView> nodes;
  std::vector<PoolView> pools;  // of a job that waits for Swell's scheduler
  std::optional<QueuePlace> queue;
  bool hidden = false;  // the user cannot read the whole cluster
  // The last warning about a job that lacks pods; the last event of a pod that its node has not
  // started.
  std::string trouble;
  // The volume for which a placed pod waits: its claim, its node and who makes it. Empty: none.
  std::string awaited_volume;
  WallTime now;
  std::optional<GoodputView> goodput;  // of a job that is scaled by it
  std::vector<GoodputView> others;     // of other such jobs of its namespace

  bool Waits() const;
  bool Podless() const;
  // Some that it needs to start could not be made.
  bool LacksPods() const;
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
  // The pod without a node that asks for the most GPUs; null if there is no such pod.
  const json::Value* WaitingPod() const;
  // The first pod that has a node and does not run yet; null if there is no such pod, or one waits
  // for a node.
  const json::Value* StartingPod() const;
  // The name that the scheduler uses. A batch Job has no group; then it is that of a pod.
  std::string Group() const;
  const ProjectView* Project() const;
};

}  // namespace swell::cli
