// Max-min fairness over time, as Gavel (OSDI'20) defines it for GPUs of one type. Jobs get equal
// parts of all GPU time, so a job on many GPUs has them for less of the time. What a job cannot use
// goes to the others. In each round, the job that is furthest behind its part goes first.
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
    const double equal = EqualGpus(jobs);
    struct Turn {
      double lag;
      int number;
      int gpus;
    };
    std::vector<Turn> order;
    for (const ActiveJob& active : jobs) {
      double& due_s = due_s_.at(active.number);
      const double part = std::min(1.0, equal / active.job->trace().gpus);
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

  // The average number of GPUs that each job can have, if none has more than it requested.
  double EqualGpus(const ActiveJobs& jobs) const {
    std::vector<int> requested;
    for (const ActiveJob& active : jobs) requested.push_back(active.job->trace().gpus);
    std::sort(requested.begin(), requested.end());
    double left = shape_.gpus();
    for (size_t i = 0; i < requested.size(); ++i) {
      const double equal = left / static_cast<double>(requested.size() - i);
      if (equal < requested[i]) return equal;
      left -= requested[i];
    }
    return shape_.gpus();
  }

  const ClusterShape& shape_;
  std::map<int, double> due_s_;  // seconds of training that each job's part amounts to
  int64_t since_s_ = 0;
};

}  // namespace

std::unique_ptr<Policy> MakeMaxMin(const ClusterShape& shape) {
  if (shape.groups.size() > 1) return MakeMaxMinTypes(shape);
  return std::make_unique<MaxMin>(shape);
}

}  // namespace swell::lab
