// Sia (SOSP'23): each round, an integer program gives every job one configuration (GPUs of one
// type: powers of two within a node, whole nodes beyond) or none.
//
// A configuration's worth is its goodput relative to the job's smallest one. A configuration that
// means a restart is worth less, the more restarts the job had for its age. The program minimises
// the sum of worth to the power −0.5, which is fair to slow jobs. A job that has not run yet is
// tried on one GPU of any type. A job in the middle of a restart keeps what it has.
//
// Follows the published artefact: estimates by the fitted model with batches up to the requested
// one, worth rounded to hundredths after the power, a limit of twice the GPUs tried so far.
#include <algorithm>
#include <cmath>

#include "base/decimal.h"
#include "base/strings.h"
#include "lab/free_gpus.h"
#include "lab/policies/policies.h"
#include "lab/policies/size_program.h"
#include "sched/state/amount_text.h"

namespace swell::lab {
namespace {

constexpr double kPower = -0.5;
constexpr double kWaits = 110;          // what a job without GPUs costs, in hundredths
constexpr double kWorthLeast = 0.0001;  // a configuration worth less is left out
constexpr double kCostMost = 300'000;   // in hundredths

struct Configuration {
  int group = 0;
  int nodes = 1;
  int gpus = 1;
};

class Sia final : public Policy {
 public:
  explicit Sia(const ClusterShape& shape) : shape_(shape) {
    for (size_t g = 0; g < shape.groups.size(); ++g) {
      const NodeGroup& group = shape.groups[g];
      const int number = static_cast<int>(g);
      for (int gpus = 1; gpus < group.gpus_per_node; gpus *= 2) all_.push_back({number, 1, gpus});
      for (int nodes = 1; nodes <= group.nodes; ++nodes) {
        all_.push_back({number, nodes, nodes * group.gpus_per_node});
      }
    }
  }

  Allocations Decide(int64_t now_s, const ActiveJobs& jobs, const Allocations& now) override {
    std::vector<int> capacity;
    for (const NodeGroup& group : shape_.groups) capacity.push_back(group.gpus());
    std::map<int, GroupSize> sizes;
    std::vector<int> numbers;
    std::vector<std::vector<SizeOption>> options;
    for (const ActiveJob& active : jobs) {
      const GroupSize held = HeldBy(active.number, now);
      if (active.job->resizing() && held.gpus > 0) {
        sizes[active.number] = held;
        capacity[held.group] -= held.gpus;
        continue;
      }
      numbers.push_back(active.number);
      options.push_back(OptionsOf(*active.job, held, now_s));
    }
    const SizeChoice choice = ChooseSizes(options, capacity, 1);
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (choice.chosen[i] < 0) continue;
      const SizeOption& chosen = options[i][choice.chosen[i]];
      sizes[numbers[i]] = {chosen.group, chosen.gpus};
    }
    factors_.clear();
    for (const ActiveJob& active : jobs) {
      factors_[active.number] = RestartFactor(*active.job, now_s);
    }
    return PlaceSizes(shape_, sizes, now);
  }

  std::string Reason(const ActiveJob& active) const override {
    const auto known = factors_.find(active.number);
    const std::string factor = Decimal(known == factors_.end() ? 1.0 : known->second, 2);
    return StrCat("the sum of goodputs to the power -0.5 is least, another configuration counts ",
                  factor, " times its goodput after ",
                  sched::Plural(active.job->restarts(), "restart"));
  }

 private:
  GroupSize HeldBy(int number, const Allocations& now) const {
    const auto held = now.find(number);
    if (held == now.end() || held->second.empty()) return {};
    return {shape_.GroupOf(held->second.front()), static_cast<int>(held->second.size())};
  }

  // The worth of each configuration; 0: the job cannot have it.
  std::vector<double> WorthOf(const SimJob& job) const {
    std::vector<double> worth(all_.size(), 0);
    const int most = job.GpusMax(shape_.gpus(), 1);
    double least = INFINITY;
    for (size_t i = 0; i < all_.size(); ++i) {
      const Configuration& one = all_[i];
      const Profile* profile = job.profile(one.group);
      if (one.gpus > most || (profile != nullptr && one.nodes > profile->nodes_max())) continue;
      if (!job.measured() && one.gpus > 1) continue;
      worth[i] = job.ModelGoodput(one.group, one.nodes, one.gpus, job.trace().batch);
      if (worth[i] > kWorthLeast) least = std::min(least, worth[i]);
    }
    for (double& one : worth) one = one > kWorthLeast ? one / least : 0;
    return worth;
  }

  std::vector<SizeOption> OptionsOf(const SimJob& job, const GroupSize& held, int64_t now_s) {
    const double factor = RestartFactor(job, now_s);
    const std::vector<double> worth = WorthOf(job);
    std::vector<SizeOption> options;
    for (size_t i = 0; i < all_.size(); ++i) {
      const Configuration& one = all_[i];
      const bool changes = held.gpus > 0 && (one.group != held.group || one.gpus != held.gpus);
      const double counted = changes ? worth[i] * factor : worth[i];
      if (!(counted > 0)) continue;
      const double cost = std::min(kCostMost, std::rint(100 * std::pow(counted, kPower)));
      if (cost < kWaits) options.push_back({one.group, one.gpus, cost - kWaits});
    }
    return options;
  }

  static double RestartFactor(const SimJob& job, int64_t now_s) {
    const ApplicationCosts costs = CostsOf(job.options().rules, job.trace().application);
    const auto age = static_cast<double>(now_s - job.trace().submitted_s);
    const auto penalty = static_cast<double>(costs.penalty_s);
    if (age < penalty) return 1;
    return std::max(age - job.restarts() * penalty, 0.0) / (age + penalty);
  }

  const ClusterShape shape_;
  std::vector<Configuration> all_;
  std::map<int, double> factors_;  // of the last decision, by job
};

}  // namespace

std::unique_ptr<Policy> MakeSia(const ClusterShape& shape) { return std::make_unique<Sia>(shape); }

}  // namespace swell::lab
