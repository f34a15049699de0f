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
// jobs. Projects with quotas get what they are due of each type first, jobs of higher priority in a
// project before others. The policy does not look ahead.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "base/decimal.h"
#include "base/strings.h"
#include "lab/free_gpus.h"
#include "lab/policies/policies.h"
#include "lab/policies/size_program.h"
#include "lab/tenant_gpus.h"

namespace swell::lab {
namespace {

// Found on Helios and newTrace, as Sia has them; docs/lab.md has the figures of all.
constexpr double kServiceUnit = 10'000;  // GPU-seconds after which the weight falls noticeably
constexpr double kServicePower = 0.4;    // how fast it falls then
constexpr double kAgeUnit = 10'000;      // seconds after which the weight rises noticeably
constexpr double kAgePower = 0.2;        // how fast it rises then
constexpr double kKeepsAtLeast = 30;     // seconds for which a size is expected to last
constexpr double kKeepsAsBefore = 0.3;   // plus this part of the time that sizes lasted so far
constexpr double kPriceOfShare = 0.1;    // what the GPUs of a fair share must add at least
constexpr double kStep = 1e-4;           // of utility
constexpr double kStarts = 1e-3;         // the least utility of the smallest size

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
    std::vector<Plan> plans;
    for (const ActiveJob& active : jobs) {
      plans.push_back({&active.job->trace(), OptionsOf(active, now, fair)});
    }
    Give(plans);
    std::map<int, GroupSize> sizes;
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (plans[i].chosen < 0) continue;
      const SizeOption& chosen = plans[i].options[plans[i].chosen];
      sizes[jobs[i].number] = {chosen.group, chosen.gpus};
    }
    return PlaceSizes(shape_, sizes, now);
  }

  std::string Reason(const ActiveJob& active) const override {
    return StrCat("group and size add most utility beside their price, its weight is ",
                  Decimal(WeightOf(*active.job), 2), " after ", std::llround(active.job->service()),
                  " GPU-seconds and ", now_s_ - active.job->trace().submitted_s, " s");
  }

 private:
  struct Plan {
    const TraceJob* job = nullptr;
    std::vector<SizeOption> options;
    int chosen = -1;  // of options; -1: none
  };
  // By priority, the highest first: the numbers of plans.
  using Lanes = std::map<int, std::vector<size_t>, std::greater<>>;

  // A job's goodput on each of its sizes, and on a fair share.
  struct Curve {
    uint64_t version = UINT64_MAX;
    int gpus_max = 0;
    int fair = 0;
    std::vector<GroupSize> sizes;
    std::vector<double> goodput;
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

  // Each project gets what it is due of each type, the higher priority first; what cannot be used
  // there is lent.
  void Give(std::vector<Plan>& plans) const {
    Lanes all;
    std::map<std::string, Lanes> projects;
    for (size_t i = 0; i < plans.size(); ++i) {
      all[plans[i].job->priority].push_back(i);
      if (!shape_.tenants.empty())
        projects[plans[i].job->tenant][plans[i].job->priority].push_back(i);
    }
    std::vector<int> left = capacity_;
    for (auto& [tenant, due] : DueOf(plans)) {
      for (size_t g = 0; g < left.size(); ++g) left[g] -= due[g];
      GiveDownwards(plans, projects.at(tenant), due);
      for (size_t g = 0; g < left.size(); ++g) left[g] += due[g];
    }
    GiveDownwards(plans, all, left);
  }

  // GPUs of each type, by project. A quota of the cluster is one of each type, in proportion.
  std::map<std::string, std::vector<int>> DueOf(const std::vector<Plan>& plans) const {
    std::map<std::string, std::vector<int>> due;
    if (shape_.tenants.empty()) return due;
    for (size_t g = 0; g < capacity_.size(); ++g) {
      std::map<std::string, TenantShare> shares = shape_.tenants;
      for (auto& [tenant, share] : shares) share.quota *= 1.0 * capacity_[g] / shape_.gpus();
      std::map<std::string, int> wanted;
      for (const Plan& plan : plans) {
        int most = 0;
        for (const SizeOption& option : plan.options) {
          if (option.group == static_cast<int>(g)) most = std::max(most, option.gpus);
        }
        int& sum = wanted[plan.job->tenant];
        sum = std::min(sum + most, capacity_[g]);
      }
      for (const auto& [tenant, gpus] : TenantGpus(capacity_[g], shares, wanted)) {
        due.try_emplace(tenant, capacity_.size(), 0).first->second[g] = gpus;
      }
    }
    return due;
  }

  static void GiveDownwards(std::vector<Plan>& plans, const Lanes& lanes, std::vector<int>& left) {
    for (const auto& [priority, lane] : lanes) GiveAmong(plans, lane, left);
  }

  // To jobs that have a size already: more of the same type.
  static void GiveAmong(std::vector<Plan>& plans,
                        const std::vector<size_t>& lane,
                        std::vector<int>& left) {
    std::vector<std::vector<SizeOption>> more;
    std::vector<std::vector<int>> numbers;  // of the plan's options
    for (size_t at : lane) {
      const Plan& plan = plans[at];
      const SizeOption has = plan.chosen < 0 ? SizeOption{-1, 0, 0} : plan.options[plan.chosen];
      more.emplace_back();
      numbers.emplace_back();
      for (size_t i = 0; i < plan.options.size(); ++i) {
        const SizeOption& option = plan.options[i];
        const bool other = has.group >= 0 && option.group != has.group;
        const int gpus = option.gpus - has.gpus;
        if (other || gpus <= 0 || gpus > left[option.group]) continue;
        more.back().push_back({option.group, gpus, option.cost - has.cost});
        numbers.back().push_back(static_cast<int>(i));
      }
    }
    const SizeChoice choice = ChooseSizes(more, left, kStep);
    for (size_t i = 0; i < lane.size(); ++i) {
      if (choice.chosen[i] < 0) continue;
      const SizeOption& chosen = more[i][choice.chosen[i]];
      left[chosen.group] -= chosen.gpus;
      plans[lane[i]].chosen = numbers[i][choice.chosen[i]];
    }
  }

  void KeepActive(const ActiveJobs& jobs) {
    std::map<int, Curve> kept;
    for (const ActiveJob& active : jobs) {
      const auto found = curves_.find(active.number);
      kept[active.number] = found == curves_.end() ? Curve{} : std::move(found->second);
    }
    curves_ = std::move(kept);
  }

  // A job of which only the duration is known has sizes of its own beside the usual ones.
  std::vector<GroupSize> SizesFor(const SimJob& job, int most) const {
    const int least = job.GpusMin();
    std::set<std::pair<int, int>> all;
    for (const GroupSize& size : sizes_) all.emplace(size.group, size.gpus);
    for (size_t g = 0; g < capacity_.size() && job.profile() == nullptr; ++g) {
      for (int gpus : {least, job.trace().gpus, most}) {
        if (gpus <= capacity_[g]) all.emplace(static_cast<int>(g), gpus);
      }
    }
    std::vector<GroupSize> sizes;
    for (const auto& [group, gpus] : all) {
      if (gpus >= least && gpus <= most) sizes.push_back({group, gpus});
    }
    return sizes;
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
    curve.sizes = SizesFor(job, most);
    curve.goodput.clear();
    for (const GroupSize& size : curve.sizes) {
      curve.goodput.push_back(GoodputOf(job, size.group, size.gpus));
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
    int smallest = INT32_MAX;
    for (const GroupSize& size : curve.sizes) smallest = std::min(smallest, size.gpus);
    std::vector<SizeOption> options;
    for (size_t i = 0; i < curve.sizes.size(); ++i) {
      const auto [group, gpus] = curve.sizes[i];
      const bool stays = group == held_group && gpus == held_gpus;
      const double speed = curve.goodput[i] / curve.fair_goodput * (stays ? 1 : changed);
      double utility = std::log1p(speed) - kPriceOfShare * gpus / fair;
      // However much a start costs, a job does not wait beside idle GPUs.
      if (gpus == smallest) utility = std::max(utility, kStarts);
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
