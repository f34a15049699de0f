// Swell's allocation by goodput on GPUs of several types: like goodput.cc, with the type as one
// more choice.
//
// A job's utility on k GPUs of a group is w · (log(1 + S) − 0.1 · k / f). S is its goodput there,
// relative to its goodput on a fair share of the whole cluster; f is the number of GPUs in that
// share; w is its weight. The second term leaves GPUs idle that hardly add anything. The program of
// size_program.h finds the sizes with the largest sum of utilities. A start, and a change of size,
// is reduced by its cost's part of the time for which the size is expected to last. The sizes that
// a job had before tell that time: one that is stopped often would pay for each start again. The
// weight falls as the job receives service, and rises with its age, which bounds the wait of long
// jobs. The policy does not look ahead.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/strings.h"
#include "lab/free_gpus.h"
#include "lab/policies/policies.h"
#include "lab/policies/size_program.h"

namespace swell::lab {
namespace {

// Found on Helios and newTrace, as Sia has them; docs/lab.md has the figures of all.
constexpr double kServiceUnit = 10'000;  // GPU-seconds after which the weight falls noticeably
constexpr double kServicePower = 0.5;    // how fast it falls then
constexpr double kAgeUnit = 10'000;      // seconds after which the weight rises noticeably
constexpr double kAgePower = 0.2;        // how fast it rises then
constexpr double kKeepsAtLeast = 30;     // seconds for which a size is expected to last
constexpr double kKeepsAsBefore = 0.3;   // plus this part of the time that sizes lasted so far
constexpr double kPriceOfShare = 0.1;    // what the GPUs of a fair share must add at least
constexpr double kStep = 1e-4;           // of utility

class GoodputTypes final : public Policy {
 public:
  explicit GoodputTypes(const ClusterShape& shape) : shape_(shape) {
    for (size_t g = 0; g < shape.groups.size(); ++g) {
      const NodeGroup& group = shape.groups[g];
      capacity_.push_back(group.gpus());
      const int number = static_cast<int>(g);
      for (int gpus = 1; gpus < group.gpus_per_node; gpus *= 2) sizes_.push_back({number, gpus});
      for (int nodes = 1, step = 1; nodes <= group.nodes; nodes += step) {
        sizes_.push_back({number, nodes * group.gpus_per_node});
        if (nodes >= 4 * step) step *= 2;
      }
    }
  }

  Allocations Decide(int64_t now_s, const ActiveJobs& jobs, const Allocations& now) override {
    now_s_ = now_s;
    KeepActive(jobs);
    const int fair = std::max(1, shape_.gpus() / static_cast<int>(jobs.size()));
    std::vector<std::vector<SizeOption>> options;
    for (const ActiveJob& active : jobs) options.push_back(OptionsOf(active, now, fair));
    const SizeChoice choice = ChooseSizes(options, capacity_, kStep);
    std::map<int, GroupSize> sizes;
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (choice.chosen[i] < 0) continue;
      const SizeOption& chosen = options[i][choice.chosen[i]];
      sizes[jobs[i].number] = {chosen.group, chosen.gpus};
    }
    return PlaceSizes(shape_, sizes, now);
  }

  std::string Reason(const ActiveJob& active) const override {
    char weight[32];
    std::snprintf(weight, sizeof weight, "%.2f", WeightOf(*active.job));
    return StrCat("group and size add most utility beside their price, its weight is ", weight,
                  " after ", std::llround(active.job->service()), " GPU-seconds and ",
                  now_s_ - active.job->trace().submitted_s, " s");
  }

 private:
  // A job's goodput on each of sizes_, and on a fair share.
  struct Curve {
    uint64_t version = UINT64_MAX;
    int gpus_max = 0;
    int fair = 0;
    std::vector<double> goodput;  // 0: it may not try that many
    double fair_goodput = 1;
  };

  double WeightOf(const SimJob& job) const {
    const auto age_s = static_cast<double>(now_s_ - job.trace().submitted_s);
    return std::pow(1 + job.service() / kServiceUnit, -kServicePower) *
           std::pow(1 + age_s / kAgeUnit, kAgePower);
  }

  static double KeepsSeconds(const SimJob& job) {
    const double lasted_s = static_cast<double>(job.running_s()) / (job.restarts() + 1);
    return kKeepsAtLeast + kKeepsAsBefore * lasted_s;
  }

  double GoodputOf(const SimJob& job, int group, int gpus) const {
    const int per_node = shape_.groups[group].gpus_per_node;
    return job.EstimatedGoodput(group, (gpus + per_node - 1) / per_node, gpus);
  }

  void KeepActive(const ActiveJobs& jobs) {
    std::map<int, Curve> kept;
    for (const ActiveJob& active : jobs) {
      const auto found = curves_.find(active.number);
      kept[active.number] = found == curves_.end() ? Curve{} : std::move(found->second);
    }
    curves_ = std::move(kept);
  }

  const Curve& CurveOf(const ActiveJob& active, int fair) {
    Curve& curve = curves_.at(active.number);
    const SimJob& job = *active.job;
    const int most = job.GpusMax(shape_.gpus());
    if (curve.version == job.estimate_version() && curve.gpus_max == most && curve.fair == fair) {
      return curve;
    }
    curve.version = job.estimate_version();
    curve.gpus_max = most;
    curve.fair = fair;
    curve.goodput.clear();
    for (const GroupSize& size : sizes_) {
      curve.goodput.push_back(size.gpus > most ? 0 : GoodputOf(job, size.group, size.gpus));
    }
    // A fair share has GPUs of every type.
    curve.fair_goodput = 0;
    for (size_t g = 0; g < shape_.groups.size(); ++g) {
      const int gpus = std::min(fair, shape_.groups[g].gpus());
      curve.fair_goodput +=
          GoodputOf(job, static_cast<int>(g), gpus) * shape_.groups[g].gpus() / shape_.gpus();
    }
    return curve;
  }

  std::vector<SizeOption> OptionsOf(const ActiveJob& active, const Allocations& now, int fair) {
    const SimJob& job = *active.job;
    const auto held = now.find(active.number);
    const int held_gpus = held == now.end() ? 0 : static_cast<int>(held->second.size());
    const int held_group = held_gpus == 0 ? 0 : shape_.GroupOf(held->second.front());
    const double weight = WeightOf(job);
    const double keeps_s = KeepsSeconds(job);
    const double changed = keeps_s / (keeps_s + static_cast<double>(job.options().resize_s));
    const Curve& curve = CurveOf(active, fair);
    std::vector<SizeOption> options;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      const auto [group, gpus] = sizes_[i];
      const bool stays = group == held_group && gpus == held_gpus;
      const double speed = curve.goodput[i] / curve.fair_goodput * (stays ? 1 : changed);
      const double utility = std::log1p(speed) - kPriceOfShare * gpus / fair;
      if (speed > 0 && utility > 0) options.push_back({group, gpus, -weight * utility});
    }
    return options;
  }

  const ClusterShape shape_;
  std::vector<int> capacity_;
  std::vector<GroupSize> sizes_;
  std::map<int, Curve> curves_;
  int64_t now_s_ = 0;  // of the last decision
};

}  // namespace

std::unique_ptr<Policy> MakeGoodputTypes(const ClusterShape& shape) {
  return std::make_unique<GoodputTypes>(shape);
}

}  // namespace swell::lab
