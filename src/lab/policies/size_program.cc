#include "lab/policies/size_program.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <unordered_map>

#include "base/check.h"
#include "lab/policy.h"

namespace swell::lab {
namespace {

using Options = std::vector<SizeOption>;
using InUse = std::array<int, kGroupsMax>;  // GPUs of each group
using Prices = std::vector<double>;         // of a GPU of each group

constexpr int kCutsMax = 2'000;
constexpr size_t kStatesMax = 60'000;          // of one job
constexpr size_t kTrailMax = size_t{1} << 27;  // steps that are remembered, 8 bytes each
constexpr double kSlack = 1e-9;                // of sums, relative to the step

struct InUseHash {
  size_t operator()(const InUse& used) const {
    uint64_t hash = 0;
    for (int gpus : used) hash = (hash ^ static_cast<uint64_t>(gpus)) * 0x9e3779b97f4a7c15ULL;
    return static_cast<size_t>(hash ^ (hash >> 29));
  }
};

// The least cost of a job at these prices: that of its best size, or of nothing.
double LeastOf(const Options& options, const Prices& prices, int* best) {
  double least = 0;
  *best = -1;
  for (size_t i = 0; i < options.size(); ++i) {
    const double cost = options[i].cost + prices[options[i].group] * options[i].gpus;
    if (cost < least) {
      least = cost;
      *best = static_cast<int>(i);
    }
  }
  return least;
}

// The bound at these prices, and the direction in which each price would improve it.
double BoundOf(const std::vector<Options>& jobs,
               const std::vector<int>& capacity,
               const Prices& prices,
               std::vector<double>& slope) {
  double bound = 0;
  for (size_t g = 0; g < capacity.size(); ++g) {
    slope[g] = -static_cast<double>(capacity[g]);
    bound -= prices[g] * capacity[g];
  }
  for (const Options& options : jobs) {
    int best = -1;
    bound += LeastOf(options, prices, &best);
    if (best >= 0) slope[options[best].group] += options[best].gpus;
  }
  return bound;
}

// The prices with the highest bound. The bound is concave in the prices, so each evaluation cuts an
// ellipsoid that contains the best prices in half.
Prices BestPrices(const std::vector<Options>& jobs, std::vector<int> capacity, double step) {
  const size_t groups = capacity.size();
  if (groups == 1) capacity.push_back(0);  // an ellipsoid has two dimensions at least
  const size_t n = capacity.size();
  double most = 0;
  for (const Options& options : jobs) {
    for (const SizeOption& option : options) most = std::max(most, -option.cost / option.gpus);
  }
  Prices centre(n, most / 2), best(n, 0);
  std::vector<double> slope(n), along(n);
  double best_bound = BoundOf(jobs, capacity, best, slope);
  const auto dims = static_cast<double>(n);
  std::vector<std::vector<double>> shape(n, std::vector<double>(n, 0));
  for (size_t i = 0; i < n; ++i) shape[i][i] = dims * most * most / 4 + 1e-12;
  for (int cut = 0; cut < kCutsMax; ++cut) {
    const auto negative =
        std::find_if(centre.begin(), centre.end(), [](double x) { return x < 0; });
    if (negative != centre.end()) {
      std::fill(slope.begin(), slope.end(), 0);
      slope[negative - centre.begin()] = 1;
    } else {
      const double bound = BoundOf(jobs, capacity, centre, slope);
      if (bound > best_bound) {
        best_bound = bound;
        best = centre;
      }
    }
    double width = 0;
    for (size_t i = 0; i < n; ++i) {
      along[i] = 0;
      for (size_t k = 0; k < n; ++k) along[i] += shape[i][k] * slope[k];
      width += slope[i] * along[i];
    }
    if (!(width > 0)) break;
    width = std::sqrt(width);
    if (negative == centre.end() && width < 1e-4 * step) break;
    for (size_t i = 0; i < n; ++i) {
      along[i] /= width;
      centre[i] += along[i] / (dims + 1);
    }
    for (size_t i = 0; i < n; ++i) {
      for (size_t k = 0; k < n; ++k) {
        shape[i][k] =
            dims * dims / (dims * dims - 1) * (shape[i][k] - 2 / (dims + 1) * along[i] * along[k]);
      }
    }
  }
  best.resize(groups);
  return best;
}

// The search among sizes that miss the bound by at most `budget` together.
class Search {
 public:
  Search(const std::vector<Options>& jobs,
         const std::vector<int>& capacity,
         const Prices& prices,
         double step)
      : jobs_(jobs), capacity_(capacity), prices_(prices), slack_(kSlack * step) {
    for (const Options& options : jobs) {
      int best = -1;
      least_.push_back(LeastOf(options, prices, &best));
    }
  }

  // Whether a choice was found; `choice.exact` says whether it is the best one.
  bool Run(double budget, SizeChoice& choice) {
    budget_ = budget + slack_;
    Shortlist();
    exact_ = true;
    states_.assign(1, State{});
    trail_.clear();
    for (size_t i = 0; i < order_.size(); ++i) {
      if (!Extend(i)) return false;
    }
    size_t best = 0;
    for (size_t s = 0; s < states_.size(); ++s) {
      if (Missed(states_[s]) < Missed(states_[best]) - slack_) best = s;
    }
    choice.chosen.assign(jobs_.size(), -1);
    choice.cost = 0;
    choice.exact = exact_;
    for (size_t i = order_.size(); i-- > 0;) {
      const Step& step = trail_[i][best];
      const int job = order_[i];
      choice.chosen[job] = step.option;
      if (step.option >= 0) choice.cost += jobs_[job][step.option].cost;
      best = step.from;
    }
    return true;
  }

 private:
  // How a state came about: all that is remembered of it once the next job has its states.
  struct Step {
    int option = -1;    // of the last job
    uint32_t from = 0;  // which state of the job before
  };
  struct State {
    InUse used{};
    double missed = 0;  // by the jobs so far
    Step step;
  };
  struct Listed {
    int option = -1;
    double missed = 0;
  };

  double MissedBy(int job, int option) const {
    if (option < 0) return -least_[job];
    const SizeOption& size = jobs_[job][option];
    return size.cost + prices_[size.group] * size.gpus - least_[job];
  }

  // Jobs with one size left go first: they add no states.
  void Shortlist() {
    listed_.assign(jobs_.size(), {});
    for (size_t job = 0; job < jobs_.size(); ++job) {
      for (int option = -1; option < static_cast<int>(jobs_[job].size()); ++option) {
        const double missed = MissedBy(static_cast<int>(job), option);
        if (missed <= budget_) listed_[job].push_back({option, missed});
      }
    }
    order_.resize(jobs_.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [this](int a, int b) { return listed_[a].size() < listed_[b].size(); });
    // The least and the most that this job and the following ones can use.
    rest_least_.assign(jobs_.size() + 1, std::vector<int>(capacity_.size(), 0));
    rest_most_ = rest_least_;
    for (size_t i = jobs_.size(); i-- > 0;) {
      for (size_t g = 0; g < capacity_.size(); ++g) {
        int least = INT32_MAX, most = 0;
        for (const Listed& one : listed_[order_[i]]) {
          const SizeOption* size = one.option < 0 ? nullptr : &jobs_[order_[i]][one.option];
          const int gpus = size != nullptr && size->group == static_cast<int>(g) ? size->gpus : 0;
          least = std::min(least, gpus);
          most = std::max(most, gpus);
        }
        rest_least_[i][g] = rest_least_[i + 1][g] + least;
        rest_most_[i][g] = rest_most_[i + 1][g] + most;
      }
    }
  }

  // With the least that idle GPUs miss, whatever the jobs from `next` on take.
  double MissedAtLeast(const State& state, size_t next) const {
    double missed = state.missed;
    for (size_t g = 0; g < capacity_.size(); ++g) {
      if (state.used[g] + rest_least_[next][g] > capacity_[g]) return INFINITY;
      missed += prices_[g] * std::max(0, capacity_[g] - state.used[g] - rest_most_[next][g]);
    }
    return missed;
  }

  double Missed(const State& state) const { return MissedAtLeast(state, order_.size()); }

  bool Extend(size_t i) {
    const int job = order_[i];
    std::vector<State> next;
    std::unordered_map<InUse, size_t, InUseHash> seen;  // looked up only
    for (size_t from = 0; from < states_.size(); ++from) {
      for (const Listed& one : listed_[job]) {
        State state = states_[from];
        state.missed += one.missed;
        state.step = {one.option, static_cast<uint32_t>(from)};
        if (one.option >= 0)
          state.used[jobs_[job][one.option].group] += jobs_[job][one.option].gpus;
        if (MissedAtLeast(state, i + 1) > budget_) continue;
        const auto [at, added] = seen.try_emplace(state.used, next.size());
        if (added) {
          next.push_back(state);
        } else if (state.missed < next[at->second].missed - slack_) {
          next[at->second] = state;
        }
      }
    }
    const size_t most = std::clamp<size_t>(kTrailMax / order_.size(), 1, kStatesMax);
    if (next.size() > most) {
      exact_ = false;
      std::stable_sort(next.begin(), next.end(), [this, i](const State& a, const State& b) {
        return MissedAtLeast(a, i + 1) < MissedAtLeast(b, i + 1);
      });
      next.resize(most);
    }
    if (next.empty()) return false;
    std::vector<Step>& steps = trail_.emplace_back();
    steps.reserve(next.size());
    for (const State& state : next) steps.push_back(state.step);
    states_ = std::move(next);
    return true;
  }

  const std::vector<Options>& jobs_;
  const std::vector<int>& capacity_;
  const Prices& prices_;
  const double slack_;
  double budget_ = 0;
  bool exact_ = true;
  std::vector<double> least_;                // by job
  std::vector<std::vector<Listed>> listed_;  // by job
  std::vector<int> order_;
  std::vector<std::vector<int>> rest_least_, rest_most_;
  std::vector<State> states_;             // after the last job that was looked at
  std::vector<std::vector<Step>> trail_;  // of each job in order_
};

}  // namespace

SizeChoice ChooseSizes(const std::vector<Options>& jobs,
                       const std::vector<int>& capacity,
                       double step) {
  SizeChoice choice;
  choice.chosen.assign(jobs.size(), -1);
  if (jobs.empty()) return choice;
  SWELL_CHECK(capacity.size() <= kGroupsMax);
  const Prices prices = BestPrices(jobs, capacity, step);
  std::vector<double> slope(capacity.size());
  choice.bound = BoundOf(jobs, capacity, prices, slope);
  Search search(jobs, capacity, prices, step);
  for (double budget = step; !search.Run(budget, choice); budget *= 2) {
  }
  return choice;
}

}  // namespace swell::lab
