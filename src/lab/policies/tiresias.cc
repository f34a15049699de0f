// Tiresias (NSDI'19) as the authors of Pollux simulate it: two queues by attained service, first
// come first served inside a queue, preemption, no promotion.
#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "lab/free_gpus.h"
#include "lab/policies/policies.h"

namespace swell::lab {
namespace {

constexpr int64_t kThreshold =
    int64_t{16} * 3600;  // GPU-seconds until a job moves to the second queue

class Tiresias final : public Policy {
 public:
  explicit Tiresias(const ClusterShape& shape) : shape_(shape) {}

  Allocations Decide(int64_t now_s, const ActiveJobs& jobs, const Allocations& now) override {
    Drop(jobs);
    for (const ActiveJob& active : jobs) Account(now_s, active);
    Allocations next = now;
    int left = shape_.gpus();
    for (const std::vector<int>& queue : queues_) {
      for (int number : queue) {
        State& state = states_.at(number);
        state.runs = state.gpus <= left;
        if (state.runs) {
          left -= state.gpus;
        } else {
          next.erase(number);
        }
      }
    }
    FreeGpus free(shape_, next);
    for (const std::vector<int>& queue : queues_) {
      for (int number : queue) {
        const State& state = states_.at(number);
        if (state.runs && !next.contains(number)) next[number] = free.TakeFromFreest(state.gpus);
      }
    }
    return next;
  }

  std::string Reason(const ActiveJob& active) const override {
    const auto& first = queues_[0];
    const bool is_first = std::find(first.begin(), first.end(), active.number) != first.end();
    const State& state = states_.at(active.number);
    return StrCat("queue ", is_first ? 1 : 2, " of 2, it has received ",
                  state.executed_s * state.gpus, " GPU-seconds (queue 1: below ", kThreshold, ")");
  }

 private:
  struct State {
    int gpus = 0;
    bool runs = false;
    int64_t checked_s = 0;
    int64_t executed_s = 0;
  };

  void Drop(const ActiveJobs& jobs) {
    std::map<int, State> kept;
    for (const ActiveJob& active : jobs) {
      const auto found = states_.find(active.number);
      if (found != states_.end()) kept.insert(*found);
    }
    states_ = std::move(kept);
    for (std::vector<int>& queue : queues_) {
      std::erase_if(queue, [this](int number) { return !states_.contains(number); });
    }
  }

  void Account(int64_t now_s, const ActiveJob& active) {
    const auto [found, added] = states_.try_emplace(active.number);
    State& state = found->second;
    if (added) {
      state.gpus = active.job->trace().gpus;
      queues_[0].push_back(active.number);
    }
    if (state.runs) {
      state.executed_s += now_s - state.checked_s;
      const auto at = std::find(queues_[0].begin(), queues_[0].end(), active.number);
      if (at != queues_[0].end() && state.executed_s * state.gpus >= kThreshold) {
        queues_[0].erase(at);
        queues_[1].push_back(active.number);
      }
    }
    state.checked_s = now_s;
  }

  const ClusterShape& shape_;
  std::map<int, State> states_;
  std::vector<int> queues_[2];
};

}  // namespace

std::unique_ptr<Policy> MakeTiresias(const ClusterShape& shape) {
  return std::make_unique<Tiresias>(shape);
}

}  // namespace swell::lab
