// Optimus (EuroSys'18) as the authors of Pollux simulate it, with an oracle: it knows the steps a
// job has left and the true time of a step on any number of GPUs.
#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "lab/free_gpus.h"
#include "lab/policies/policies.h"

namespace swell::lab {
namespace {

class Optimus final : public Policy {
 public:
  explicit Optimus(const ClusterShape& shape) : shape_(shape) {}

  Allocations Decide(int64_t, const ActiveJobs& jobs, const Allocations& now) override {
    std::vector<Plan> plans = FirstGpus(jobs);
    GiveRest(plans);
    Allocations next;
    for (const Plan& plan : plans) {
      const auto held = now.find(plan.number);
      if (held != now.end() && static_cast<int>(held->second.size()) == plan.gpus) {
        next.insert(*held);
      }
    }
    std::stable_sort(plans.begin(), plans.end(),
                     [](const Plan& a, const Plan& b) { return a.gpus < b.gpus; });
    FreeGpus free(shape_, next);
    for (const Plan& plan : plans) {
      if (plan.gpus > 0 && !next.contains(plan.number)) {
        next[plan.number] = free.TakeFromFreest(plan.gpus);
      }
    }
    return next;
  }

  std::string Reason(const ActiveJob& active) const override {
    const char* unit = active.job->profile() == nullptr ? " s of work" : " steps";
    return StrCat("a GPU goes where it saves most seconds, it has ",
                  std::llround(StepsLeft(*active.job)), unit, " left");
  }

 private:
  struct Plan {
    int number = 0;
    const SimJob* job = nullptr;
    int gpus = 0;
    double left = 0;  // steps, or seconds of work
    double gain = 0;  // seconds that one more GPU saves
  };

  std::vector<Plan> FirstGpus(const ActiveJobs& jobs) {
    std::vector<Plan> plans;
    left_ = shape_.gpus();
    for (const ActiveJob& active : jobs) {
      Plan& plan = plans.emplace_back();
      plan.number = active.number;
      plan.job = active.job;
      plan.left = StepsLeft(*active.job);
      if (left_ < 1) continue;
      plan.gpus = 1;
      --left_;
      plan.gain = left_ < 1 ? 0 : Gain(plan);
    }
    return plans;
  }

  void GiveRest(std::vector<Plan>& plans) {
    while (left_ > 0) {
      const auto most = std::max_element(
          plans.begin(), plans.end(), [](const Plan& a, const Plan& b) { return a.gain < b.gain; });
      if (most == plans.end() || most->gain <= 0) return;
      ++most->gpus;
      --left_;
      most->gain = Gain(*most);
    }
  }

  double Gain(const Plan& plan) const {
    if (plan.gpus + 1 > GpusMax(*plan.job)) return 0;
    return (StepTimeOn(*plan.job, plan.gpus) - StepTimeOn(*plan.job, plan.gpus + 1)) * plan.left;
  }

  int GpusMax(const SimJob& job) const {
    if (job.profile() == nullptr) return job.GpusMax(shape_.gpus());
    if (job.trace().application == "ncf") return 1;
    return static_cast<int>(job.trace().batch / job.profile()->limits().local_min);
  }

  static double StepsLeft(const SimJob& job) {
    const Profile* profile = job.profile();
    if (profile == nullptr) return job.RemainingSeconds({job.trace().gpus});
    const int last = profile->epochs() - 1;
    const int64_t batch = job.trace().batch;
    if (last <= job.epoch()) return 1;
    return profile->Steps(batch, last) - profile->Steps(batch, job.epoch());
  }

  double StepTimeOn(const SimJob& job, int gpus) const {
    if (job.profile() == nullptr) return 1 / job.TrueGoodput({gpus});
    const BatchLimits& limits = job.profile()->limits();
    // The published code accumulates on one GPU whatever the batch.
    BatchChoice split = SplitBatch(limits, job.trace().batch, gpus);
    if (gpus == 1 && split.passes_before == 0) {
      split.passes_before = 1;
      split.local_batch = (job.trace().batch + 1) / 2;
    }
    const int64_t parts = int64_t{gpus} * (split.passes_before + 1);
    split.local_batch = std::min(split.local_batch, limits.max / parts);
    const StepTime time =
        job.profile()->Step(TightPlacement(gpus, shape_.gpus_per_node()), split.local_batch);
    return time.step_s + (time.step_s - time.sync_s) * split.passes_before;
  }

  const ClusterShape& shape_;
  int left_ = 0;
};

}  // namespace

std::unique_ptr<Policy> MakeOptimus(const ClusterShape& shape) {
  return std::make_unique<Optimus>(shape);
}

}  // namespace swell::lab
