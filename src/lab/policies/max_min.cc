// Max-min fairness over time, as Gavel (OSDI'20) has it for GPUs of one type: each job gets an
// equal part of the time on the GPUs it requested, what a job cannot use goes to the others, and
// the job that lags most behind its part goes first in each round.
#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "lab/free_gpus.h"
#include "lab/policies/policies.h"

namespace swell::lab {
namespace {

class MaxMin final : public Policy {
 public:
  explicit MaxMin(const ClusterShape& shape) : shape_(shape) {}

  Allocations Decide(int64_t now_s, const ActiveJobs& jobs, const Allocations& now) override {
    KeepActive(jobs);
    const double part = EqualPart(jobs);
    struct Turn {
      double lag;
      int number;
      int gpus;
    };
    std::vector<Turn> order;
    for (const ActiveJob& active : jobs) {
      double& due_s = due_s_.at(active.number);
      due_s += part * static_cast<double>(now_s - since_s_);
      // Parts received over parts due; a job that received nothing comes first.
      const double had = static_cast<double>(active.job->running_s());
      order.push_back({had / std::max(due_s, 1.0), active.number, active.job->trace().gpus});
    }
    since_s_ = now_s;
    std::stable_sort(order.begin(), order.end(),
                     [](const Turn& a, const Turn& b) { return a.lag < b.lag; });
    Allocations next;
    std::vector<Turn> chosen;
    int left = shape_.gpus();
    for (const Turn& turn : order) {
      if (turn.gpus > left) continue;
      left -= turn.gpus;
      chosen.push_back(turn);
      const auto held = now.find(turn.number);
      if (held != now.end()) next.insert(*held);
    }
    FreeGpus free(shape_, next);
    for (const Turn& turn : chosen) {
      if (!next.contains(turn.number)) next[turn.number] = free.TakeTightly(turn.gpus);
    }
    return next;
  }

  std::string Reason(const ActiveJob& active) const override {
    const auto due = due_s_.find(active.number);
    return StrCat("the job that lags most goes first, it has run ", active.job->running_s(),
                  " s of ", due == due_s_.end() ? 0 : std::llround(due->second), " s due");
  }

 private:
  void KeepActive(const ActiveJobs& jobs) {
    std::map<int, double> kept;
    for (const ActiveJob& active : jobs) {
      const auto found = due_s_.find(active.number);
      kept[active.number] = found == due_s_.end() ? 0 : found->second;
    }
    due_s_ = std::move(kept);
  }

  // The largest part of the time, at most 1, that every job can have on its GPUs.
  double EqualPart(const ActiveJobs& jobs) const {
    int64_t requested = 0;
    for (const ActiveJob& active : jobs) requested += active.job->trace().gpus;
    return std::min(1.0, static_cast<double>(shape_.gpus()) / static_cast<double>(requested));
  }

  const ClusterShape shape_;
  std::map<int, double> due_s_;  // seconds of training that each job's part amounts to
  int64_t since_s_ = 0;
};

}  // namespace

std::unique_ptr<Policy> MakeMaxMin(const ClusterShape& shape) {
  return std::make_unique<MaxMin>(shape);
}

}  // namespace swell::lab
