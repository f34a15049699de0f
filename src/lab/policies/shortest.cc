// Shortest first: jobs hold the GPUs they requested, those with least left to train first. It
// looks ahead: it knows how long each job still trains on those GPUs.
//
// `critical` lets the longest jobs go first when waiting would make them end last. All work needs
// at least as long as its longest job, and as all GPUs together need for it. A job that has nearly
// that much left delays the end by each second that it waits. Shortest-first alone runs the longest
// jobs at the end, when most GPUs are idle.
#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "lab/free_gpus.h"
#include "lab/policies/policies.h"

namespace swell::lab {
namespace {

constexpr double kNearlyAll = 0.9;  // of the least time in which all work can end

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
    critical_s_ = critical_ ? kNearlyAll * EndOfAll(order) : INFINITY;
    std::stable_sort(order.begin(), order.end(), [this](const Waiting& a, const Waiting& b) {
      const bool a_first = a.left_s >= critical_s_, b_first = b.left_s >= critical_s_;
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
    if (left_s >= critical_s_) {
      return StrCat("it would end last if it waited, it has ", std::llround(left_s), " s left");
    }
    return StrCat("least left to train goes first, it has ", std::llround(left_s), " s left");
  }

 private:
  struct Waiting {
    double left_s;
    int number;
    int gpus;
  };

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
  double critical_s_ = INFINITY;  // a job with this much left goes before all others
};

}  // namespace

std::unique_ptr<Policy> MakeShortest(const ClusterShape& shape) {
  return std::make_unique<Shortest>(shape, false);
}

std::unique_ptr<Policy> MakeCritical(const ClusterShape& shape) {
  return std::make_unique<Shortest>(shape, true);
}

}  // namespace swell::lab
