// Shockwave (NSDI'23): looks 20 rounds ahead and gives each job a number of rounds so that the
// product of all progress is high and the longest job is left with little.
//
//   most  Σ priority · log(progress after the window) / (jobs · rounds) − 0.001 · the longest rest
//
// It first asks that each job can still end when it would on an equal share; where that cannot be,
// jobs that are late get a higher priority instead. The published program has a variable for each
// job and round and needs a commercial solver. But its goal counts a job's rounds, not which they
// are: so the rounds together are one capacity, and a number of rounds is a size (size_program.h).
// For a bound on the longest rest each job needs some rounds at least; the best bound is searched.
// Which rounds they are is decided afterwards, the urgent first. A window whose numbers do not fit
// its rounds loses what does not fit; GPUs that are left go to the job with most to do.
//
// It looks ahead: it knows how long each job will train. The published one predicts that from the
// number of epochs, which it knows, and from how batches have grown.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <tuple>

#include "base/strings.h"
#include "lab/free_gpus.h"
#include "lab/policies/policies.h"
#include "lab/policies/size_program.h"

namespace swell::lab {
namespace {

// Those of the published runs on 32 GPUs.
constexpr int kRounds = 20;
constexpr double kRoundSeconds = 120;
constexpr double kOfLongest = 0.001;  // of the goal, by second of the longest rest
constexpr double kLatePower = 12;
constexpr double kLastRoundPower = 100;  // of a late job that one more round completes
constexpr double kPriorityMax = 1e6;     // beyond it, all other jobs together are nothing
constexpr double kMomentum = 0.9;
constexpr std::array kProgress{0.0, 0.2, 0.4, 0.6, 0.8, 1.0};  // between them the log is straight
constexpr double kBegins = 1e-6;                               // stands for no progress
constexpr double kStep = 1e-6;                                 // of the goal

double LogOfProgress(double progress) {
  size_t i = 1;
  while (i + 1 < kProgress.size() && progress > kProgress[i]) ++i;
  const double low = std::log(std::max(kBegins, kProgress[i - 1])), high = std::log(kProgress[i]);
  const double part = (progress - kProgress[i - 1]) / (kProgress[i] - kProgress[i - 1]);
  return low + std::min(part, 1.0) * (high - low);
}

struct Contender {
  int number = 0;
  int gpus = 1;
  double left_s = 0;
  double total_s = 1;
  double priority = 1;
  int rounds_least = 0;  // by the time at which it should end
  int rounds = 0;        // of the window
  bool runs = false;     // now

  double Utility(int more) const {
    const double done_s = std::min(total_s, total_s - left_s + more * kRoundSeconds);
    return priority * LogOfProgress(done_s / total_s);
  }
  double RestAfter(int more) const { return std::max(0.0, left_s - more * kRoundSeconds); }
};

// How many rounds of the window each job gets.
class Window {
 public:
  Window(std::vector<Contender>& jobs, int gpus) : jobs_(jobs), capacity_(gpus * kRounds) {}

  // False: the least numbers do not fit.
  bool Fill() {
    if (!Fits(Longest(0))) return false;
    // The goal is nearly concave in the bound.
    const std::vector<double> bounds = Bounds();
    size_t low = 0, high = bounds.size() - 1;
    while (high - low > 2) {
      const size_t a = low + (high - low) / 3, b = high - (high - low) / 3;
      if (GoalWithin(bounds[a]) >= GoalWithin(bounds[b])) {
        high = b;
      } else {
        low = a;
      }
    }
    size_t best = low;
    for (size_t i = low + 1; i <= high; ++i) {
      if (GoalWithin(bounds[i]) > GoalWithin(bounds[best])) best = i;
    }
    GoalWithin(bounds[best]);
    for (size_t i = 0; i < jobs_.size(); ++i) jobs_[i].rounds = rounds_[i];
    return true;
  }

 private:
  double Longest(int rounds) const {
    double longest = 0;
    for (const Contender& job : jobs_) longest = std::max(longest, job.RestAfter(rounds));
    return longest;
  }

  static int Least(const Contender& job, double bound_s) {
    const double over = std::ceil((job.left_s - bound_s) / kRoundSeconds - 1e-9);
    return std::max(job.rounds_least, static_cast<int>(std::clamp(over, 0.0, kRounds + 1.0)));
  }

  bool Fits(double bound_s) const {
    int64_t needed = 0;
    for (const Contender& job : jobs_) {
      const int least = Least(job, bound_s);
      if (least > kRounds) return false;
      needed += int64_t{least} * job.gpus;
    }
    return needed <= capacity_;
  }

  // All that the longest rest can be and that fit, from the least on.
  std::vector<double> Bounds() const {
    std::vector<double> bounds{Longest(0)};
    for (const Contender& job : jobs_) {
      for (int n = 0; n <= kRounds; ++n) bounds.push_back(job.RestAfter(n));
    }
    std::sort(bounds.begin(), bounds.end());
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    const auto first = std::partition_point(bounds.begin(), bounds.end(),
                                            [this](double bound_s) { return !Fits(bound_s); });
    bounds.erase(bounds.begin(), first);
    return bounds;
  }

  // The most with a longest rest of no more; rounds_ is what gives it.
  double GoalWithin(double bound_s) {
    const auto scale = static_cast<double>(jobs_.size() * kRounds);
    int left = capacity_;
    double goal = -kOfLongest * bound_s;
    std::vector<std::vector<SizeOption>> options(jobs_.size());
    rounds_.assign(jobs_.size(), 0);
    for (size_t i = 0; i < jobs_.size(); ++i) {
      const Contender& job = jobs_[i];
      rounds_[i] = Least(job, bound_s);
      left -= rounds_[i] * job.gpus;
      goal += job.Utility(rounds_[i]) / scale;
    }
    for (size_t i = 0; i < jobs_.size(); ++i) {
      const Contender& job = jobs_[i];
      for (int more = 1; rounds_[i] + more <= kRounds && more * job.gpus <= left; ++more) {
        const double gain = job.Utility(rounds_[i] + more) - job.Utility(rounds_[i]);
        if (gain > 0) options[i].push_back({0, more * job.gpus, -gain / scale});
      }
    }
    const SizeChoice choice = ChooseSizes(options, {left}, kStep);
    for (size_t i = 0; i < jobs_.size(); ++i) {
      if (choice.chosen[i] < 0) continue;
      rounds_[i] += options[i][choice.chosen[i]].gpus / jobs_[i].gpus;
    }
    return goal - choice.cost;
  }

  std::vector<Contender>& jobs_;
  const int capacity_;  // GPUs times rounds
  std::vector<int> rounds_;
};

class Shockwave final : public Policy {
 public:
  explicit Shockwave(const ClusterShape& shape) : shape_(shape) {}

  Allocations Decide(int64_t now_s, const ActiveJobs& jobs, const Allocations& now) override {
    if (KeepActive(now_s, jobs) || planned_.empty()) Plan(now_s, jobs, now);
    const std::vector<int> chosen = std::move(planned_.front());
    planned_.erase(planned_.begin());
    std::map<int, GroupSize> sizes;
    for (int number : chosen) sizes[number] = {0, states_.at(number).gpus};
    return PlaceSizes(shape_, sizes, now);
  }

  std::string Reason(const ActiveJob& active) const override {
    const auto known = states_.find(active.number);
    if (known == states_.end()) return "it has not been seen";
    char priority[32];
    std::snprintf(priority, sizeof priority, "%.3g", known->second.priority);
    return StrCat("rounds by progress and the longest rest, it has ", known->second.rounds, " of ",
                  kRounds, " rounds, ",
                  std::llround(active.job->RemainingSeconds(PlacementFor(*active.job))),
                  " s left, priority ", priority);
  }

 private:
  struct State {
    int gpus = 1;
    double total_s = 1;
    // When it should end; that changes with the number of jobs.
    double first_s = -1;  // since when that is known; below zero: not yet
    double since_s = 0;   // since when it is end_s
    double end_s = 0;
    double before = 0;  // earlier ones, each times how long it was so
    double priority = 1;
    int rounds = 0;
  };

  Placement PlacementFor(const SimJob& job) const {
    return TightPlacement(job.trace().gpus, shape_.gpus_per_node());
  }

  double Share(size_t jobs) const {
    return std::min(1.0, shape_.gpus() / static_cast<double>(jobs));
  }

  // Whether the jobs are others than before: then each should end at another time, too.
  bool KeepActive(int64_t now_s, const ActiveJobs& jobs) {
    std::map<int, State> kept;
    bool differ = jobs.size() != states_.size();
    for (const ActiveJob& active : jobs) {
      const auto found = states_.find(active.number);
      if (found != states_.end()) {
        kept.emplace(active.number, found->second);
        continue;
      }
      differ = true;
      State& state = kept[active.number];
      state.gpus = active.job->trace().gpus;
      state.total_s = active.job->RemainingSeconds(PlacementFor(*active.job));
    }
    states_ = std::move(kept);
    if (!differ) return false;
    for (const ActiveJob& active : jobs) {
      State& state = states_.at(active.number);
      const auto now_at = static_cast<double>(now_s);
      if (state.first_s < 0) state.first_s = state.since_s = now_at;
      state.before += state.end_s * (now_at - state.since_s);
      state.since_s = now_at;
      state.end_s =
          static_cast<double>(active.job->trace().submitted_s) + state.total_s / Share(jobs.size());
    }
    return true;
  }

  // What was expected over time, and a little of what is expected now.
  static double ShouldEnd(const State& state, double now_s) {
    if (now_s <= state.first_s) return state.end_s;
    const double sum = state.before + state.end_s * (now_s - state.since_s);
    return kMomentum * sum / (now_s - state.first_s) + (1 - kMomentum) * state.end_s;
  }

  void Plan(int64_t now_s, const ActiveJobs& jobs, const Allocations& now) {
    const auto now_at = static_cast<double>(now_s);
    const double window_end = now_at + kRounds * kRoundSeconds;
    const double share = Share(jobs.size());
    std::vector<Contender> contenders;
    bool in_time = true;
    for (const ActiveJob& active : jobs) {
      const State& state = states_.at(active.number);
      const double end = ShouldEnd(state, now_at);
      Contender& job = contenders.emplace_back();
      job.number = active.number;
      job.gpus = state.gpus;
      job.total_s = state.total_s;
      job.left_s = active.job->RemainingSeconds(PlacementFor(*active.job));
      job.runs = now.contains(active.number);
      in_time &= end >= window_end;
      const double over = std::ceil((job.left_s - (end - window_end) * share) / kRoundSeconds);
      job.rounds_least = static_cast<int>(std::clamp(over, 0.0, kRounds + 1.0));
    }
    if (!in_time || !Window(contenders, shape_.gpus()).Fill()) {
      for (Contender& job : contenders) {
        job.rounds_least = 0;
        job.priority = PriorityOf(job, ShouldEnd(states_.at(job.number), now_at), now_at, share);
      }
      Window(contenders, shape_.gpus()).Fill();
    }
    for (const Contender& job : contenders) {
      states_.at(job.number).priority = job.priority;
      states_.at(job.number).rounds = job.rounds;
    }
    planned_ = Arranged(std::move(contenders));
  }

  static double PriorityOf(const Contender& job, double end, double now_s, double share) {
    const double late = (now_s + job.left_s / share) / end;
    if (late <= 1) return 1;
    return std::min(kPriorityMax,
                    std::pow(late, job.left_s < kRoundSeconds ? kLastRoundPower : kLatePower));
  }

  // The jobs of each round: those that cannot wait any more, then the urgent, then those that run.
  std::vector<std::vector<int>> Arranged(std::vector<Contender> jobs) const {
    std::vector<std::vector<int>> rounds;
    for (int to_come = kRounds; to_come > 0; --to_come) {
      std::stable_sort(jobs.begin(), jobs.end(), [to_come](const Contender& a, const Contender& b) {
        auto key = [to_come](const Contender& job) {
          return std::tuple(job.rounds < to_come, -job.priority, !job.runs, job.number);
        };
        return key(a) < key(b);
      });
      int left = shape_.gpus();
      std::vector<Contender*> idle;
      std::vector<int>& chosen = rounds.emplace_back();
      auto take = [&](Contender& job) {
        job.runs = job.gpus <= left;
        if (!job.runs) return;
        left -= job.gpus;
        job.left_s -= kRoundSeconds;
        job.rounds = std::max(0, job.rounds - 1);
        chosen.push_back(job.number);
      };
      for (Contender& job : jobs) {
        if (job.rounds > 0) take(job);
        if (job.rounds == 0 && (chosen.empty() || chosen.back() != job.number)) {
          idle.push_back(&job);
        }
      }
      std::stable_sort(idle.begin(), idle.end(), [](const Contender* a, const Contender* b) {
        return a->left_s > b->left_s;
      });
      for (Contender* job : idle) take(*job);
    }
    return rounds;
  }

  const ClusterShape shape_;
  std::map<int, State> states_;
  std::vector<std::vector<int>> planned_;  // jobs of the rounds to come
};

}  // namespace

std::unique_ptr<Policy> MakeShockwave(const ClusterShape& shape) {
  return std::make_unique<Shockwave>(shape);
}

}  // namespace swell::lab
