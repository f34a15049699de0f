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
//
// Where the shape has projects, each gets the GPUs that quota and weight give it, and what it
// cannot use is lent. Within a project, a higher priority takes all that it can use before a lower
// one.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <queue>

#include "base/decimal.h"
#include "base/strings.h"
#include "lab/free_gpus.h"
#include "lab/policies/policies.h"
#include "lab/tenant_gpus.h"

namespace swell::lab {
namespace {

// Found on workloads 1 to 4 of Pollux at load 1.0 and 1 and 2 at load 2.0; docs/lab.md has the
// figures of all.
constexpr double kServiceUnit = 10'000;   // GPU-seconds after which the weight falls noticeably
constexpr double kServicePower = 0.75;    // how fast it falls then
constexpr double kKeepsAtLeast = 120;     // seconds for which a size is expected to last
constexpr double kKeepsOfRunning = 0.05;  // and longer by this part of the time the job has run

// GPUs that a project's jobs want together: no cluster has as many.
constexpr int kWantedMax = 1'000'000'000;

class Goodput final : public Policy {
 public:
  explicit Goodput(const ClusterShape& shape) : shape_(shape), sizes_(SizesOf(shape)) {}

  Allocations Decide(int64_t, const ActiveJobs& jobs, const Allocations& now) override {
    KeepActive(jobs);
    const int fair = std::max(1, shape_.gpus() / static_cast<int>(jobs.size()));
    plans_.clear();
    for (const ActiveJob& active : jobs) plans_.push_back(PlanOf(active, now, fair));
    while (true) {
      Give(plans_);
      Allocations next;
      if (Place(now, /*anew=*/false, next) >= 0) {
        next.clear();
        const int blocked = Place(now, /*anew=*/true, next);
        if (blocked >= 0) {
          Withdraw(blocked);
          continue;
        }
      }
      return next;
    }
  }

  std::string Reason(const ActiveJob& active) const override {
    const auto plan = std::find_if(plans_.begin(), plans_.end(), [&active](const Plan& one) {
      return one.number == active.number;
    });
    if (plan == plans_.end()) return "it has not been seen";
    char text[96];
    std::snprintf(text, sizeof text, "; its weight is %.2f after %lld GPU-seconds",
                  WeightOf(*active.job), std::llround(active.job->service()));
    return StrCat("a GPU goes where it adds most: ", WorthText(*plan), text);
  }

 private:
  struct Curve {
    uint64_t version = UINT64_MAX;
    int gpus_max = 0;
    std::vector<int> sizes;       // in GPUs, as far as the job may go
    std::vector<double> goodput;  // by size
  };
  struct Plan {
    int number = 0;
    const SimJob* job = nullptr;
    const std::vector<int>* sizes = nullptr;  // of its curve
    int held = 0;                             // GPUs now
    bool moves = false;                       // to fewer nodes, if its size stays and they are free
    int size = -1;                            // to be, in sizes; -1: none
    double last_gain = 0;                     // utility per GPU of the last step to it
    std::vector<double> utility;              // by size, with the cost of a change

    int gpus() const { return size < 0 ? 0 : (*sizes)[size]; }
    bool stays() const { return size >= 0 && gpus() == held; }
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
    curve.sizes = SizesFor(*active.job, most);
    curve.goodput.clear();
    for (int gpus : curve.sizes) {
      curve.goodput.push_back(active.job->EstimatedGoodput(NodesFor(gpus), gpus));
    }
    return curve;
  }

  // A job with an execution plan has sizes of its own instead of the usual ones. A job of which
  // only the duration is known has some in addition.
  std::vector<int> SizesFor(const SimJob& job, int most) const {
    std::vector<int> sizes = job.sizes() != nullptr ? *job.sizes() : sizes_;
    const int least = job.GpusMin();
    if (job.profile() == nullptr && job.sizes() == nullptr) {
      sizes.insert(sizes.end(), {least, job.trace().gpus, most});
      std::sort(sizes.begin(), sizes.end());
      sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    }
    std::erase_if(sizes, [&](int gpus) { return gpus < least || gpus > most; });
    return sizes;
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
    // A job that lost a node pays for a change, whatever its size becomes.
    const bool pays = plan.held != active.job->gpus();
    const Curve& curve = CurveOf(active);
    plan.sizes = &curve.sizes;
    for (size_t i = 0; i < curve.goodput.size(); ++i) {
      const double speed = curve.goodput[i] / fair_goodput;
      const double changed = speed * keeps_s / (keeps_s + cost_s);
      const double kept =
          curve.sizes[i] == plan.held && !pays ? SpeedHeld(active) / fair_goodput : 0;
      plan.moves |= curve.sizes[i] == plan.held && changed > kept;
      plan.utility.push_back(weight * std::log1p(std::max(changed, kept)));
    }
    return plan;
  }

  // Where it is: on more nodes than it needs, perhaps.
  static double SpeedHeld(const ActiveJob& active) {
    const int nodes = static_cast<int>(active.job->placement().size());
    return active.job->EstimatedGoodput(nodes, active.job->gpus());
  }

  // "4 GPUs here add 0.412 each, 4 more would add 0.031 each; the least elsewhere is 0.046".
  std::string WorthText(const Plan& plan) const {
    auto worth = [](double gain) { return Decimal(gain, 3); };
    auto gpus = [](int count) { return StrCat(count, count == 1 ? " GPU" : " GPUs"); };
    std::vector<std::string> words;
    if (plan.size >= 0) {
      words.push_back(StrCat(gpus(plan.gpus()), " here add ",
                             worth(plan.utility[plan.size] / plan.gpus()), " each"));
    }
    const Step next = NextStep(plans_, &plan - plans_.data(), shape_.gpus());
    if (next.to >= 0) {
      words.push_back(StrCat(gpus((*plan.sizes)[next.to] - plan.gpus()),
                             plan.size < 0 ? " here would add " : " more would add ",
                             worth(next.gain), " each"));
    } else {
      words.emplace_back("more would add nothing");
    }
    double least = INFINITY;
    for (const Plan& other : plans_) {
      if (&other != &plan && other.size >= 0) least = std::min(least, other.last_gain);
    }
    if (least < INFINITY)
      words.push_back(StrCat("the least that one adds elsewhere is ", worth(least)));
    return Join(words, ", ");
  }

  // The best way to give a job more: most utility per GPU over all larger sizes that fit.
  Step NextStep(const std::vector<Plan>& plans, size_t number, int left) const {
    const Plan& plan = plans[number];
    const double base = plan.size < 0 ? 0 : plan.utility[plan.size];
    Step best;
    best.plan = number;
    for (int to = plan.size + 1; to < static_cast<int>(plan.utility.size()); ++to) {
      const int more = (*plan.sizes)[to] - plan.gpus();
      if (more > left) break;
      const double gain = (plan.utility[to] - base) / more;
      if (gain > best.gain) {
        best.gain = gain;
        best.to = to;
      }
    }
    return best;
  }

  // By priority, the highest first: the numbers of plans.
  using Lanes = std::map<int, std::vector<size_t>, std::greater<>>;

  // Each project gets what it is due, the higher priority first; what cannot be used there is lent.
  void Give(std::vector<Plan>& plans) const {
    Lanes all;
    std::map<std::string, Lanes> projects;
    std::map<std::string, int> wanted;
    for (size_t i = 0; i < plans.size(); ++i) {
      const TraceJob& job = plans[i].job->trace();
      all[job.priority].push_back(i);
      if (shape_.tenants.empty() || plans[i].utility.empty()) continue;
      projects[job.tenant][job.priority].push_back(i);
      int& sum = wanted[job.tenant];
      sum = std::min(sum, kWantedMax) + plans[i].sizes->back();
    }
    int left = shape_.gpus();
    for (const auto& [tenant, due] : TenantGpus(left, shape_.tenants, wanted)) {
      left -= due - GiveDownwards(plans, projects.at(tenant), due);
    }
    GiveDownwards(plans, all, left);
  }

  // What is left.
  int GiveDownwards(std::vector<Plan>& plans, const Lanes& lanes, int left) const {
    for (const auto& [priority, lane] : lanes) left = GiveAmong(plans, lane, left);
    return left;
  }

  int GiveAmong(std::vector<Plan>& plans, const std::vector<size_t>& lane, int left) const {
    std::priority_queue<Step> steps;
    auto offer = [&](size_t plan) {
      const Step step = NextStep(plans, plan, left);
      if (step.to >= 0) steps.push(step);
    };
    for (size_t plan : lane) offer(plan);
    while (!steps.empty() && left > 0) {
      const Step step = steps.top();
      steps.pop();
      Plan& plan = plans[step.plan];
      const int more = (*plan.sizes)[step.to] - plan.gpus();
      if (more <= left) {
        plan.size = step.to;
        plan.last_gain = step.gain;
        left -= more;
      }
      offer(step.plan);  // what remains may be too little for the step, but not for a smaller one
    }
    return left;
  }

  // The job may not have this size or a larger one. The sizes of all jobs are to be decided again.
  void Withdraw(int blocked) {
    Plan& withdrawn = plans_[blocked];
    withdrawn.utility.resize(withdrawn.size);
    for (Plan& plan : plans_) {
      plan.size = -1;
      plan.last_gain = 0;
    }
  }

  // Jobs that keep their size keep their place, unless all are placed anew; large ones choose
  // first. Returns the plan of a job that finds no placement on which it trains, else -1.
  int Place(const Allocations& now, bool anew, Allocations& next) const {
    std::vector<const Plan*> changed;
    for (const Plan& plan : plans_) {
      if (plan.size < 0) continue;
      if (plan.stays() && !anew) {
        next.insert(*now.find(plan.number));
      } else {
        changed.push_back(&plan);
      }
    }
    std::stable_sort(changed.begin(), changed.end(),
                     [](const Plan* a, const Plan* b) { return a->gpus() > b->gpus(); });
    FreeGpus free(shape_, next);
    for (const Plan* plan : changed) {
      Allocation placed = PlaceWell(*plan, free);
      if (placed.empty()) return static_cast<int>(plan - plans_.data());
      next[plan->number] = std::move(placed);
    }
    for (const Plan& plan : plans_) {
      if (plan.moves && plan.stays() && !anew) Move(next.at(plan.number), free);
    }
    return -1;
  }

  // The planned size, or a smaller one where the free GPUs lie so scattered that it trains faster.
  // Empty: the job's model is split, and the placement that it needs is not free.
  Allocation PlaceWell(const Plan& plan, FreeGpus& free) const {
    const Placement needed = plan.job->NeededPlacement(plan.gpus(), shape_.gpus_per_node());
    if (!needed.empty()) return free.TakeShape(needed);
    Allocation best;
    double best_goodput = 0;
    for (int size = plan.size; size >= 0; --size) {
      const int gpus = (*plan.sizes)[size];
      if (!plan.job->NeededPlacement(gpus, shape_.gpus_per_node()).empty()) continue;
      Allocation tried = free.TakeTightly(gpus);
      const int nodes = static_cast<int>(PlacementOf(tried).size());
      const double goodput = plan.job->EstimatedGoodput(nodes, gpus);
      free.Give(tried);
      if (goodput > best_goodput) {
        best_goodput = goodput;
        best = std::move(tried);
      }
      if (nodes <= NodesFor(gpus)) break;  // a smaller one is no less scattered
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

  const ClusterShape& shape_;
  const std::vector<int> sizes_;
  std::map<int, Curve> curves_;
  std::vector<Plan> plans_;  // of the last decision
};

}  // namespace

std::unique_ptr<Policy> MakeGoodput(const ClusterShape& shape) {
  if (shape.groups.size() > 1) return MakeGoodputTypes(shape);
  return std::make_unique<Goodput>(shape);
}

}  // namespace swell::lab
