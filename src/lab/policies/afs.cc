// AFS (NSDI'21), the variant that does not look ahead: GPUs are given one by one to the winner of a
// tournament. The shorter one of two jobs wins, unless the longer one would make more of the GPU.
// The service that a job has received so far stands for its length. Jobs train with the batch they
// requested, and their true speeds are known.
#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "lab/free_gpus.h"
#include "lab/policies/policies.h"

namespace swell::lab {
namespace {

class Afs final : public Policy {
 public:
  explicit Afs(const ClusterShape& shape) : shape_(shape) {}

  Allocations Decide(int64_t, const ActiveJobs& jobs, const Allocations& now) override {
    std::vector<Plan> plans;
    for (const ActiveJob& active : jobs) {
      plans.push_back({active.number, active.job, 0, active.job->service(), {}});
    }
    for (int left = shape_.gpus(); left > 0; --left) {
      Plan* winner = nullptr;
      for (Plan& plan : plans) {
        if (Speed(plan, plan.gpus + 1) <= Speed(plan, plan.gpus)) continue;  // no use for it
        winner = winner == nullptr ? &plan : &Winner(*winner, plan);
      }
      if (winner == nullptr) break;
      ++winner->gpus;
    }
    return Placed(plans, now);
  }

  std::string Reason(const ActiveJob& active) const override {
    return StrCat("the shorter job goes first, it has received ",
                  std::llround(active.job->service()), " GPU-seconds");
  }

 private:
  struct Plan {
    int number;
    const SimJob* job;
    int gpus;
    double length;              // GPU-seconds received
    std::vector<double> speed;  // by GPUs, as far as computed
  };

  int GpusMax(const SimJob& job) const {
    if (job.profile() == nullptr) return job.GpusMax(shape_.gpus());
    if (job.trace().application == "ncf") return 1;
    return static_cast<int>(
        std::min<int64_t>(job.trace().batch / job.profile()->limits().local_min, shape_.gpus()));
  }

  double Speed(Plan& plan, int gpus) const {
    if (gpus > GpusMax(*plan.job)) return 0;
    while (static_cast<int>(plan.speed.size()) <= gpus) {
      const int next = static_cast<int>(plan.speed.size());
      plan.speed.push_back(plan.job->TrueGoodput(TightPlacement(next, shape_.gpus_per_node())));
    }
    return plan.speed[gpus];
  }

  Plan& Winner(Plan& one, Plan& other) const {
    // Time to repeat what each received, at what it would have now.
    auto time = [this](Plan& plan) { return plan.length / Speed(plan, std::max(plan.gpus, 1)); };
    Plan& shorter = time(other) < time(one) ? other : one;
    Plan& longer = &shorter == &one ? other : one;
    if (shorter.gpus == 0) return shorter;
    if (longer.gpus == 0) return longer;
    const double more = Speed(longer, longer.gpus + 1);
    const double longer_gain = (more - Speed(longer, longer.gpus)) / more;
    const double have = Speed(shorter, shorter.gpus);
    const double shorter_gain = (Speed(shorter, shorter.gpus + 1) - have) / have;
    return longer_gain > shorter_gain ? longer : shorter;
  }

  Allocations Placed(std::vector<Plan>& plans, const Allocations& now) const {
    Allocations next;
    for (const Plan& plan : plans) {
      const auto held = now.find(plan.number);
      if (held != now.end() && static_cast<int>(held->second.size()) == plan.gpus) {
        next.insert(*held);
      }
    }
    std::stable_sort(plans.begin(), plans.end(),
                     [](const Plan& a, const Plan& b) { return a.gpus > b.gpus; });
    FreeGpus free(shape_, next);
    for (const Plan& plan : plans) {
      if (plan.gpus > 0 && !next.contains(plan.number)) {
        next[plan.number] = free.TakeTightly(plan.gpus);
      }
    }
    return next;
  }

  const ClusterShape& shape_;
};

}  // namespace

std::unique_ptr<Policy> MakeAfs(const ClusterShape& shape) { return std::make_unique<Afs>(shape); }

}  // namespace swell::lab
