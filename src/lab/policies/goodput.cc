// Swell's allocation by goodput: each GPU goes where it adds most to the sum of the jobs'
// utilities.
//
// A job's utility on k GPUs is w · log(1 + S(k)): S is its goodput relative to that on a fair share
// of the cluster, so one GPU more counts by the part that it adds. The weight w falls as the job
// receives service: in all traces known, a job that has run for long has long to run, and one that
// just began is most likely short. The curve S comes from the job's own measurements. A start, too,
// costs what a resize takes out of the time for which the job is expected to keep its size, so a
// job changes when that pays, and one that waits takes the place of another only where it makes
// that much more of it. The policy does not look ahead.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <queue>

#include "base/strings.h"
#include "lab/free_gpus.h"
#include "lab/policies/policies.h"

namespace swell::lab {
namespace {

// Found on workloads 1 to 4 of Pollux at load 1.0 and 1 and 2 at load 2.0; docs/lab.md has the
// figures of all.
constexpr double kServiceUnit = 10'000;   // GPU-seconds after which the weight falls noticeably
constexpr double kServicePower = 0.75;    // how fast it falls then
constexpr double kKeepsAtLeast = 120;     // seconds for which a size is expected to last
constexpr double kKeepsOfRunning = 0.05;  // and longer by this part of the time the job has run

class Goodput final : public Policy {
 public:
  explicit Goodput(const ClusterShape& shape) : shape_(shape), sizes_(SizesOf(shape)) {}

  Allocations Decide(int64_t, const ActiveJobs& jobs, const Allocations& now) override {
    KeepActive(jobs);
    const int fair = std::max(1, shape_.gpus() / static_cast<int>(jobs.size()));
    std::vector<Plan> plans;
    for (const ActiveJob& active : jobs) plans.push_back(PlanOf(active, now, fair));
    Give(plans);
    return Placed(plans, now);
  }

  std::string Reason(const ActiveJob& active) const override {
    char weight[32];
    std::snprintf(weight, sizeof weight, "%.2f", WeightOf(*active.job));
    return StrCat("a GPU goes where it adds most utility, its weight is ", weight, " after ",
                  std::llround(active.job->service()), " GPU-seconds");
  }

 private:
  struct Curve {
    uint64_t version = UINT64_MAX;
    std::vector<double> goodput;  // by size, as far as the job may go
    int gpus_max = 0;
  };
  struct Plan {
    int number = 0;
    const SimJob* job = nullptr;
    int held = 0;                 // GPUs now
    bool moves = false;           // to fewer nodes, if its size stays and they are free
    int size = -1;                // to be, in sizes_; -1: none
    std::vector<double> utility;  // by size, with the cost of a change
  };
  struct Step {
    double gain = 0;  // utility per GPU
    size_t plan = 0;
    int to = -1;
    bool operator<(const Step& other) const {
      if (gain != other.gain) return gain < other.gain;
      return plan > other.plan;  // the earlier job first
    }
  };

  // Powers of two within a node, so that no node keeps a GPU that nobody can use; whole nodes
  // beyond, in steps of at most a half.
  static std::vector<int> SizesOf(const ClusterShape& shape) {
    std::vector<int> sizes;
    for (int gpus = 1; gpus < shape.gpus_per_node(); gpus *= 2) sizes.push_back(gpus);
    for (int nodes = 1, step = 1; nodes <= shape.nodes(); nodes += step) {
      sizes.push_back(nodes * shape.gpus_per_node());
      if (nodes >= 4 * step) step *= 2;
    }
    return sizes;
  }

  static double WeightOf(const SimJob& job) {
    return std::pow(1 + job.service() / kServiceUnit, -kServicePower);
  }

  int NodesFor(int gpus) const {
    return (gpus + shape_.gpus_per_node() - 1) / shape_.gpus_per_node();
  }

  void KeepActive(const ActiveJobs& jobs) {
    std::map<int, Curve> kept;
    for (const ActiveJob& active : jobs) {
      const auto found = curves_.find(active.number);
      if (found == curves_.end()) {
        kept.try_emplace(active.number);
      } else {
        kept.emplace(active.number, std::move(found->second));
      }
    }
    curves_ = std::move(kept);
  }

  const Curve& CurveOf(const ActiveJob& active) {
    Curve& curve = curves_.at(active.number);
    const int most = active.job->GpusMax(shape_.gpus());
    const uint64_t version = active.job->estimate_version();
    if (curve.version == version && curve.gpus_max == most) return curve;
    curve.version = version;
    curve.gpus_max = most;
    curve.goodput.clear();
    for (int gpus : sizes_) {
      if (gpus > most) break;
      curve.goodput.push_back(active.job->EstimatedGoodput(NodesFor(gpus), gpus));
    }
    return curve;
  }

  Plan PlanOf(const ActiveJob& active, const Allocations& now, int fair) {
    Plan plan;
    plan.number = active.number;
    plan.job = active.job;
    const auto held = now.find(active.number);
    plan.held = held == now.end() ? 0 : static_cast<int>(held->second.size());
    const double weight = WeightOf(*active.job);
    const double keeps_s =
        kKeepsAtLeast + kKeepsOfRunning * static_cast<double>(active.job->running_s());
    const double cost_s = static_cast<double>(active.job->options().resize_s);
    const double fair_goodput = active.job->EstimatedGoodput(NodesFor(fair), fair);
    const Curve& curve = CurveOf(active);
    for (size_t i = 0; i < curve.goodput.size(); ++i) {
      const double speed = curve.goodput[i] / fair_goodput;
      const double changed = speed * keeps_s / (keeps_s + cost_s);
      const double kept = sizes_[i] == plan.held ? SpeedHeld(active) / fair_goodput : 0;
      plan.moves |= sizes_[i] == plan.held && changed > kept;
      plan.utility.push_back(weight * std::log1p(std::max(changed, kept)));
    }
    return plan;
  }

  // Where it is: on more nodes than it needs, perhaps.
  static double SpeedHeld(const ActiveJob& active) {
    const int nodes = static_cast<int>(active.job->placement().size());
    return active.job->EstimatedGoodput(nodes, active.job->gpus());
  }

  // The best way to give a job more: most utility per GPU over all larger sizes that fit.
  Step NextStep(const std::vector<Plan>& plans, size_t number, int left) const {
    const Plan& plan = plans[number];
    const double base = plan.size < 0 ? 0 : plan.utility[plan.size];
    const int has = plan.size < 0 ? 0 : sizes_[plan.size];
    Step best;
    best.plan = number;
    for (int to = plan.size + 1; to < static_cast<int>(plan.utility.size()); ++to) {
      const int more = sizes_[to] - has;
      if (more > left) break;
      const double gain = (plan.utility[to] - base) / more;
      if (gain > best.gain) {
        best.gain = gain;
        best.to = to;
      }
    }
    return best;
  }

  void Give(std::vector<Plan>& plans) const {
    int left = shape_.gpus();
    std::priority_queue<Step> steps;
    auto offer = [&](size_t plan) {
      const Step step = NextStep(plans, plan, left);
      if (step.to >= 0) steps.push(step);
    };
    for (size_t i = 0; i < plans.size(); ++i) offer(i);
    while (!steps.empty() && left > 0) {
      const Step step = steps.top();
      steps.pop();
      Plan& plan = plans[step.plan];
      const int more = sizes_[step.to] - (plan.size < 0 ? 0 : sizes_[plan.size]);
      if (more <= left) {
        plan.size = step.to;
        left -= more;
      }
      offer(step.plan);  // what remains may be too little for the step, but not for a smaller one
    }
  }

  // Jobs that keep their size keep their place; large ones choose first.
  Allocations Placed(const std::vector<Plan>& plans, const Allocations& now) const {
    Allocations next;
    std::vector<const Plan*> changed;
    for (const Plan& plan : plans) {
      if (plan.size < 0) continue;
      if (sizes_[plan.size] == plan.held) {
        next.insert(*now.find(plan.number));
      } else {
        changed.push_back(&plan);
      }
    }
    std::stable_sort(changed.begin(), changed.end(),
                     [](const Plan* a, const Plan* b) { return a->size > b->size; });
    FreeGpus free(shape_, next);
    for (const Plan* plan : changed) {
      next[plan->number] = PlaceWell(*plan, free);
    }
    for (const Plan& plan : plans) {
      if (plan.moves && plan.size >= 0 && sizes_[plan.size] == plan.held) {
        Move(next.at(plan.number), free);
      }
    }
    return next;
  }

  // The planned size, or a smaller one where the free GPUs lie so scattered that it trains faster.
  Allocation PlaceWell(const Plan& plan, FreeGpus& free) const {
    Allocation best;
    double best_goodput = 0;
    for (int size = plan.size; size >= 0; --size) {
      Allocation tried = free.TakeTightly(sizes_[size]);
      const int nodes = static_cast<int>(PlacementOf(tried).size());
      const double goodput = plan.job->EstimatedGoodput(nodes, sizes_[size]);
      free.Give(tried);
      if (goodput > best_goodput) {
        best_goodput = goodput;
        best = std::move(tried);
      }
      if (nodes <= NodesFor(sizes_[size])) break;  // a smaller one is no less scattered
    }
    free.Take(best);
    return best;
  }

  static void Move(Allocation& allocation, FreeGpus& free) {
    free.Give(allocation);
    Allocation moved = free.TakeTightly(static_cast<int>(allocation.size()));
    if (PlacementOf(moved).size() < PlacementOf(allocation).size()) {
      allocation = std::move(moved);
    } else {
      free.Give(moved);
      free.Take(allocation);
    }
  }

  const ClusterShape shape_;
  const std::vector<int> sizes_;
  std::map<int, Curve> curves_;
};

}  // namespace

std::unique_ptr<Policy> MakeGoodput(const ClusterShape& shape) {
  if (shape.groups.size() > 1) return MakeGoodputTypes(shape);
  return std::make_unique<Goodput>(shape);
}

}  // namespace swell::lab
