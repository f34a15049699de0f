// Gavel (OSDI'20) on GPUs of several types: a linear program says which part of its time each job
// should spend in which group, and rounds follow those parts.
//
// A job holds the GPUs it requested or none. `max-min` makes the least of the jobs' throughputs
// most, each relative to what the job would have if all had equal parts of all GPUs, and counts a
// job on many GPUs as many times. `max-sum` makes the sum of all throughputs most, in steps a
// second; Sia's authors compare with that one. In each round the jobs go first whose part of the
// time so far lags most behind the part they should have; GPUs that are left go to the others.
//
// Throughputs are true ones, as in the published simulators. Follows Sia's artefact.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>

#include "base/strings.h"
#include "lab/free_gpus.h"
#include "lab/policies/linear_program.h"
#include "lab/policies/policies.h"

namespace swell::lab {
namespace {

class Gavel final : public Policy {
 public:
  Gavel(const ClusterShape& shape, bool max_min)
      : shape_(shape), max_min_(max_min), group_s_(shape.groups.size(), 0) {}

  Allocations Decide(int64_t now_s, const ActiveJobs& jobs, const Allocations& now) override {
    Account(now_s);
    if (KeepActive(jobs)) FillParts(jobs);
    chosen_ = ChosenFrom(jobs);
    return PlaceSizes(shape_, chosen_, now);
  }

  std::string Reason(const ActiveJob& active) const override {
    const auto known = states_.find(active.number);
    if (known == states_.end()) return "it has not been seen";
    std::vector<std::string> words;
    for (size_t g = 0; g < group_s_.size(); ++g) {
      char text[96];
      std::snprintf(text, sizeof text, " %.2f of its time, it had %lld s", known->second.parts[g],
                    static_cast<long long>(known->second.had_s[g]));
      const std::string& type = shape_.groups[g].type;
      words.push_back(StrCat(type.empty() ? "GPUs" : type, text));
    }
    return StrCat("who lags most behind its part goes first: ", Join(words, "; "));
  }

 private:
  struct State {
    std::vector<double> speed;  // by group; 0: it does not fit
    std::vector<double> parts;  // by group, of its time
    std::vector<double> had_s;  // by group
  };
  struct Turn {
    double lag = 0;
    double part = 0;
    int number = 0;
    int group = 0;
    int gpus = 0;
  };

  // A job begins as if it had been half a round in each group, so that parts can be compared.
  static constexpr double kBeginsWithSeconds = 180;

  void Account(int64_t now_s) {
    const auto passed = static_cast<double>(now_s - since_s_);
    since_s_ = now_s;
    for (const auto& [number, size] : chosen_) {
      states_.at(number).had_s[size.group] += passed;
      group_s_[size.group] += passed;
    }
  }

  double SpeedOf(const SimJob& job, int group) const {
    const NodeGroup& nodes = shape_.groups[group];
    const int gpus = job.trace().gpus;
    if (gpus > nodes.gpus()) return 0;
    return job.RequestedSpeed(group, TightPlacement(gpus, nodes.gpus_per_node));
  }

  // Whether the jobs are others than before.
  bool KeepActive(const ActiveJobs& jobs) {
    std::map<int, State> kept;
    bool differ = jobs.size() != states_.size();
    for (const ActiveJob& active : jobs) {
      const auto found = states_.find(active.number);
      if (found != states_.end()) {
        kept.emplace(active.number, std::move(found->second));
        continue;
      }
      differ = true;
      State& state = kept[active.number];
      for (size_t g = 0; g < group_s_.size(); ++g) {
        state.speed.push_back(SpeedOf(*active.job, static_cast<int>(g)));
        group_s_[g] += kBeginsWithSeconds;
      }
      state.parts.assign(group_s_.size(), 0);
      state.had_s.assign(group_s_.size(), kBeginsWithSeconds);
    }
    states_ = std::move(kept);
    return differ;
  }

  // The variables are each job's part in each group, job by job; with max-min, one more is the
  // least throughput.
  void FillParts(const ActiveJobs& jobs) {
    const size_t groups = group_s_.size(), parts = jobs.size() * groups;
    const size_t variables = parts + (max_min_ ? 1 : 0);
    std::vector<LinearRow> rows;
    std::vector<double> gains(variables, 0);
    for (size_t g = 0; g < groups; ++g) {
      LinearRow& row = rows.emplace_back();
      row.limit = shape_.groups[g].gpus();
      row.coefficients.assign(variables, 0);
      for (size_t i = 0; i < jobs.size(); ++i) {
        row.coefficients[i * groups + g] = jobs[i].job->trace().gpus;
      }
    }
    for (size_t i = 0; i < jobs.size(); ++i) {
      const std::vector<double>& speed = states_.at(jobs[i].number).speed;
      LinearRow time;
      time.limit = 1;
      time.coefficients.assign(variables, 0);
      for (size_t g = 0; g < groups; ++g) {
        time.coefficients[i * groups + g] = 1;
        if (!max_min_) gains[i * groups + g] = speed[g];
      }
      rows.push_back(std::move(time));
      if (max_min_) rows.push_back(LeastRow(jobs, i, variables));
    }
    if (max_min_) gains.back() = 1;
    const std::vector<double> values = MaximizeWithin(gains, rows);
    for (size_t i = 0; i < jobs.size(); ++i) {
      State& state = states_.at(jobs[i].number);
      for (size_t g = 0; g < groups; ++g) {
        state.parts[g] = state.speed[g] > 0 ? values[i * groups + g] : 0;
      }
    }
  }

  // The least throughput is no more than this job's.
  LinearRow LeastRow(const ActiveJobs& jobs, size_t i, size_t variables) const {
    const std::vector<double>& speed = states_.at(jobs[i].number).speed;
    double equal = 0;  // its throughput with an equal part of all GPUs, up to a common factor
    for (size_t g = 0; g < speed.size(); ++g) equal += speed[g] * shape_.groups[g].gpus();
    LinearRow row;
    row.coefficients.assign(variables, 0);
    row.coefficients.back() = 1;
    for (size_t g = 0; g < speed.size(); ++g) {
      row.coefficients[i * speed.size() + g] = -speed[g] * jobs[i].job->trace().gpus / equal;
    }
    return row;
  }

  std::map<int, GroupSize> ChosenFrom(const ActiveJobs& jobs) const {
    std::vector<Turn> turns;
    std::vector<int> left;
    for (size_t g = 0; g < group_s_.size(); ++g) {
      left.push_back(shape_.groups[g].gpus());
      for (const ActiveJob& active : jobs) {
        const State& state = states_.at(active.number);
        if (state.speed[g] <= 0) continue;
        const double lag = state.parts[g] / (state.had_s[g] / group_s_[g]);
        turns.push_back(
            {lag, state.parts[g], active.number, static_cast<int>(g), active.job->trace().gpus});
      }
    }
    std::stable_sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) {
      return std::tie(a.lag, a.part) > std::tie(b.lag, b.part);
    });
    std::map<int, GroupSize> chosen;
    for (const Turn& turn : turns) {
      if (turn.gpus > left[turn.group] || chosen.contains(turn.number)) continue;
      left[turn.group] -= turn.gpus;
      chosen[turn.number] = {turn.group, turn.gpus};
    }
    return chosen;
  }

  const ClusterShape shape_;
  const bool max_min_;
  std::map<int, State> states_;
  std::map<int, GroupSize> chosen_;  // in the last decision
  std::vector<double> group_s_;      // that jobs have had together, by group
  int64_t since_s_ = 0;
};

// The program's rows, and the table that is made of them.
double BytesOfProgram(double rows, double variables) {
  return sizeof(double) * rows * (2 * variables + rows);
}

}  // namespace

double BytesOfMaxMin(const ClusterShape& shape, size_t jobs) {
  const auto groups = static_cast<double>(shape.groups.size()), all = static_cast<double>(jobs);
  return groups > 1 ? BytesOfProgram(groups + 2 * all, groups * all + 1) : 0;
}

double BytesOfMaxSum(const ClusterShape& shape, size_t jobs) {
  const auto groups = static_cast<double>(shape.groups.size()), all = static_cast<double>(jobs);
  return BytesOfProgram(groups + all, groups * all);
}

std::unique_ptr<Policy> MakeMaxMinTypes(const ClusterShape& shape) {
  return std::make_unique<Gavel>(shape, true);
}

std::unique_ptr<Policy> MakeMaxSum(const ClusterShape& shape) {
  return std::make_unique<Gavel>(shape, false);
}

}  // namespace swell::lab
