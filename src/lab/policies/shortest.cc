// Shortest first: jobs hold the GPUs they requested, those with least left to train first. It
// looks ahead: it knows how long each job still trains on those GPUs.
//
// `critical` lets the longest jobs go first when waiting would make them end last. All work needs
// at least as long as its longest job, and as all GPUs together need for it. A job that has nearly
// that much left delays the end by each second that it waits. Shortest-first alone runs the longest
// jobs at the end, when most GPUs are idle.
//
// A job that trains keeps that place until it has clearly less left. With one limit for all, it
// would lose its place as soon as it trains and win it back as soon as it waits, and pay for a
// start each time.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/strings.h"
#include "lab/free_gpus.h"
#include "lab/policies/policies.h"

namespace swell::lab {
namespace {

// Both are parts of the least time in which all work can end.
constexpr double kNearlyAll = 0.9;
constexpr double kStillNearlyAll = 0.8;  // for a job that trains

class Shortest final : public Policy {
 public:
  Shortest(const ClusterShape& shape, bool critical) : shape_(shape), critical_(critical) {}

  Allocations Decide(int64_t, const ActiveJobs& jobs, const Allocations& now) override {
    std::vector<Waiting> order;
    for (const ActiveJob& active : jobs) {
      const int gpus = active.job->trace().gpus;
      const Placement placement = TightPlacement(gpus, shape_.gpus_per_node());
      order.push_back({active.job->RemainingSeconds(placement), active.number, gpus});
    }
    if (critical_) ChooseFirst(order, now);
    std::stable_sort(order.begin(), order.end(), [this](const Waiting& a, const Waiting& b) {
      const bool a_first = first_.contains(a.number), b_first = first_.contains(b.number);
      if (a_first != b_first) return a_first;
      return a_first ? a.left_s > b.left_s : a.left_s < b.left_s;
    });
    std::vector<Waiting> chosen;
    int left = shape_.gpus();
    for (const Waiting& waiting : order) {
      if (waiting.gpus > left) continue;
      left -= waiting.gpus;
      chosen.push_back(waiting);
    }
    Allocations next;
    for (const Waiting& waiting : chosen) {
      const auto held = now.find(waiting.number);
      if (held != now.end()) next.insert(*held);
    }
    FreeGpus free(shape_, next);
    for (const Waiting& waiting : chosen) {
      if (!next.contains(waiting.number)) next[waiting.number] = free.TakeTightly(waiting.gpus);
    }
    return next;
  }

  std::string Reason(const ActiveJob& active) const override {
    const Placement placement = TightPlacement(active.job->trace().gpus, shape_.gpus_per_node());
    const double left_s = active.job->RemainingSeconds(placement);
    if (first_.contains(active.number)) {
      return StrCat("it would end last if it waited, it has ", std::llround(left_s), " s left");
    }
    const std::string_view others = first_.empty() ? "" : "after jobs that would end last, ";
    return StrCat(others, "least left to train goes first, it has ", std::llround(left_s),
                  " s left");
  }

 private:
  struct Waiting {
    double left_s;
    int number;
    int gpus;
  };

  void ChooseFirst(const std::vector<Waiting>& jobs, const Allocations& now) {
    const double end_s = EndOfAll(jobs);
    first_.clear();
    for (const Waiting& job : jobs) {
      const double part = now.contains(job.number) ? kStillNearlyAll : kNearlyAll;
      if (job.left_s >= part * end_s) first_.insert(job.number);
    }
  }

  // The least time in which all work can end: that of the longest job, or of all GPUs for all work.
  double EndOfAll(const std::vector<Waiting>& jobs) const {
    double longest_s = 0, gpu_s = 0;
    for (const Waiting& job : jobs) {
      longest_s = std::max(longest_s, job.left_s);
      gpu_s += job.left_s * job.gpus;
    }
    return std::max(longest_s, gpu_s / shape_.gpus());
  }

  const ClusterShape& shape_;
  const bool critical_;
  std::set<int> first_;  // jobs that go before all others
};

}  // namespace

std::unique_ptr<Policy> MakeShortest(const ClusterShape& shape) {
  return std::make_unique<Shortest>(shape, false);
}

std::unique_ptr<Policy> MakeCritical(const ClusterShape& shape) {
  return std::make_unique<Shortest>(shape, true);
}

}  // namespace swell::lab
