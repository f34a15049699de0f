#include "lab/model/plan_curve.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "base/strings.h"
#include "lab/trace/csv.h"

namespace swell::lab {
namespace {

constexpr double kStepMax = 1e6;  // seconds
constexpr size_t kNodesMax = 64;

bool IsModelParallel(std::string_view plan) {
  return plan.size() == 3 && plan.find_first_not_of("123456789") == std::string_view::npos;
}

// Accumulation and checkpointing of gradients leave model and optimizer whole on each GPU.
bool SplitsState(std::string_view plan) { return plan != "ga" && plan != "gc"; }

// Whether a job that names `wanted` may train as `plan` says.
bool MayUse(std::string_view wanted, std::string_view plan) {
  if (wanted.empty() || wanted == plan) return true;
  return IsModelParallel(wanted) && IsModelParallel(plan) &&
         wanted.substr(0, 2) == plan.substr(0, 2);
}

Placement Sorted(Placement placement) {
  std::sort(placement.begin(), placement.end(), std::greater<>());
  return placement;
}

}  // namespace

PlanCurve::PlanCurve(const std::vector<PlanStep>& steps, std::string_view plan) {
  std::map<int, bool> anywhere;  // by size
  for (const PlanStep& step : steps) {
    if (!MayUse(plan, step.plan)) continue;
    const Placement placement = Sorted(step.placement);
    const auto [known, added] = measured_.try_emplace(placement, step.step_s);
    known->second = std::min(known->second, step.step_s);
    const int gpus = std::accumulate(placement.begin(), placement.end(), 0);
    anywhere[gpus] |= !IsModelParallel(step.plan);
    splits_state_ |= SplitsState(step.plan);
  }
  for (const auto& [placement, step_s] : measured_) {
    const int gpus = std::accumulate(placement.begin(), placement.end(), 0);
    Mean& mean = shapes_[{gpus, static_cast<int>(placement.size())}];
    mean.sum_s += step_s;
    ++mean.count;
  }
  for (const auto& [gpus, any] : anywhere) {
    sizes_.push_back(gpus);
    if (any) anywhere_.push_back(gpus);
  }
}

std::vector<int> PlanCurve::SizesOn(int gpus_per_node) const {
  std::vector<int> sizes = anywhere_;
  for (const auto& [placement, step_s] : measured_) {
    if (placement.front() > gpus_per_node) continue;
    sizes.push_back(std::accumulate(placement.begin(), placement.end(), 0));
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

Placement PlanCurve::NeededPlacement(int gpus, int gpus_per_node) const {
  Placement fastest;
  if (std::binary_search(anywhere_.begin(), anywhere_.end(), gpus)) return fastest;
  double least_s = std::numeric_limits<double>::infinity();
  for (const auto& [placement, step_s] : measured_) {
    if (placement.front() > gpus_per_node || step_s >= least_s ||
        std::accumulate(placement.begin(), placement.end(), 0) != gpus) {
      continue;
    }
    fastest = placement;
    least_s = step_s;
  }
  return fastest;
}

double PlanCurve::StepSeconds(const Placement& placement) const {
  const auto found = measured_.find(Sorted(placement));
  if (found != measured_.end()) return found->second;
  return StepSeconds(static_cast<int>(placement.size()),
                     std::accumulate(placement.begin(), placement.end(), 0));
}

double PlanCurve::StepSeconds(int nodes, int gpus) const {
  if (gpus <= 0) return std::numeric_limits<double>::infinity();
  const auto above = std::upper_bound(sizes_.begin(), sizes_.end(), gpus);
  const int size = above == sizes_.begin() ? sizes_.front() : *std::prev(above);
  auto at = shapes_.lower_bound({size, nodes});
  if (at == shapes_.end() || at->first.first != size) --at;
  const double step_s = at->second.sum_s / at->second.count;
  return gpus < size ? step_s * size / gpus : step_s;
}

Result<std::vector<PlanStep>> ReadPlanSteps(const std::string& path) {
  SWELL_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Read(path));
  SWELL_ASSIGN_OR_RETURN(const size_t plan, table.Column("exec_plan"));
  SWELL_ASSIGN_OR_RETURN(const size_t placement, table.Column("placement"));
  SWELL_ASSIGN_OR_RETURN(const size_t time, table.Column("iter_time"));
  std::vector<PlanStep> steps;
  for (size_t row = 0; row < table.rows(); ++row) {
    PlanStep& step = steps.emplace_back();
    step.plan = table.Text(row, plan);
    if (step.plan.empty()) return table.Wrong(row, plan, "expected a name");
    const std::string_view nodes = table.Text(row, placement);
    if (nodes.empty() || nodes.size() > kNodesMax ||
        nodes.find_first_not_of("123456789") != std::string_view::npos) {
      return table.Wrong(row, placement, "expected GPUs on each node as digits");
    }
    for (char digit : nodes) step.placement.push_back(digit - '0');
    SWELL_ASSIGN_OR_RETURN(step.step_s, table.Number(row, time));
    if (step.step_s <= 0 || step.step_s > kStepMax) {
      return table.Wrong(row, time, "expected seconds, more than 0");
    }
  }
  if (steps.empty()) return Status(Code::kInvalid, StrCat(path, ": has no rows"));
  return steps;
}

}  // namespace swell::lab
