// PlanCurve: how long a step takes on each placement under an execution plan, as the authors of
// Rubick measured it (docs/lab.md). The batch is the same on all placements.
//
// A plan says how a model is spread over GPUs. Three digits are the degrees of pipeline, tensor and
// data parallelism ("524": 40 GPUs); a job with such a plan may change the last one. Other plans
// ("ga", "gc", "zero-dp", "zero-offload") are data parallel on any number of GPUs that was
// measured.
//
// - Threads: plain values.
// - Invariants: at least one size; times are finite and positive.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace swell::lab {

using Placement = std::vector<int>;  // GPUs on each node, see profile.h

struct PlanStep {
  std::string plan;
  Placement placement;
  double step_s = 0;
};

class PlanCurve {
 public:
  // What `plan` may use of these measurements; an empty plan: the fastest on each placement.
  PlanCurve(const std::vector<PlanStep>& steps, std::string_view plan);

  // The numbers of GPUs that were measured, in ascending order; empty: the plan was not.
  const std::vector<int>& sizes() const { return sizes_; }
  // The sizes() that have a placement on nodes with `gpus_per_node` GPUs.
  std::vector<int> SizesOn(int gpus_per_node) const;
  // A model whose tensors or pipelines are split needs a placement that was measured: the fastest
  // one for one of SizesOn(). Empty: any placement will do.
  Placement NeededPlacement(int gpus, int gpus_per_node) const;
  // A placement that was not measured takes as long as those of as many GPUs on the next larger
  // number of nodes, or on the largest. If a number of GPUs was not measured, only the next smaller
  // one that was is used, and the other GPUs are idle. If all that were measured are larger, GPUs
  // do in turns what the least of these do at once. No GPUs: infinite.
  double StepSeconds(const Placement& placement) const;
  double StepSeconds(int nodes, int gpus) const;
  // Whether a GPU may hold only a part of what training needs to continue.
  bool splits_state() const { return splits_state_; }

 private:
  struct Mean {
    double sum_s = 0;
    int count = 0;
  };

  std::map<Placement, double> measured_;        // GPUs of nodes in descending order
  std::map<std::pair<int, int>, Mean> shapes_;  // by GPUs and nodes
  std::vector<int> sizes_;
  std::vector<int> anywhere_;  // of sizes_, those with a data parallel plan
  bool splits_state_ = false;
};

// APPLICATION/placements.csv of Rubick: exec_plan, placement, iter_time and more.
Result<std::vector<PlanStep>> ReadPlanSteps(const std::string& path);

}  // namespace swell::lab
