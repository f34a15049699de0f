// Shortest first: jobs hold the GPUs they requested, those with least left to train first. It
// looks ahead: it knows how long each job still trains on those GPUs.
#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "lab/free_gpus.h"
#include "lab/policies/policies.h"

namespace swell::lab {
namespace {

class Shortest final : public Policy {
 public:
  explicit Shortest(const ClusterShape& shape) : shape_(shape) {}

  Allocations Decide(int64_t, const ActiveJobs& jobs, const Allocations& now) override {
    struct Waiting {
      double left_s;
      int number;
      int gpus;
    };
    std::vector<Waiting> order;
    for (const ActiveJob& active : jobs) {
      const int gpus = active.job->trace().gpus;
      const Placement placement = TightPlacement(gpus, shape_.gpus_per_node());
      order.push_back({active.job->RemainingSeconds(placement), active.number, gpus});
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Waiting& a, const Waiting& b) { return a.left_s < b.left_s; });
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
    return StrCat("least left to train goes first, it has ",
                  std::llround(active.job->RemainingSeconds(placement)), " s left");
  }

 private:
  const ClusterShape shape_;
};

}  // namespace

std::unique_ptr<Policy> MakeShortest(const ClusterShape& shape) {
  return std::make_unique<Shortest>(shape);
}

}  // namespace swell::lab
