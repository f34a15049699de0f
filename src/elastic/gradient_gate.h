// GradientGate: which gradients make the next update of a model, from any worker.
//
// `grads_to_wait` counts gradients, not workers: one worker alone contributes them all, so the
// effective batch stays the same while workers come and go. A gradient taken at an older version of
// the model is refused when it is more than `version_tolerance` behind; its worker computes it
// again.
//
// - Threads: not thread-safe; a plain value.
#pragma once

#include <cstdint>

namespace swell::elastic {

struct GateOptions {
  int64_t grads_to_wait = 1;
  int64_t version_tolerance = 0;
};

class GradientGate {
 public:
  explicit GradientGate(GateOptions options) : options_(options) {}

  enum class Verdict { kStale, kSummed, kComplete };
  // kComplete: the sum makes an update now, and the model has the next version.
  Verdict Offer(int64_t version) {
    if (version > version_ || version_ - version > options_.version_tolerance) {
      ++stale_;
      return Verdict::kStale;
    }
    ++summed_;
    if (summed_ < options_.grads_to_wait) return Verdict::kSummed;
    return Complete();
  }
  // Ends a sum that no more gradients will come to.
  Verdict Complete() {
    if (summed_ == 0) return Verdict::kSummed;
    last_sum_ = summed_;
    summed_ = 0;
    ++version_;
    return Verdict::kComplete;
  }

  void Restore(int64_t version, int64_t summed, int64_t stale) {
    version_ = version;
    summed_ = summed;
    stale_ = stale;
  }

  const GateOptions& options() const { return options_; }
  int64_t version() const { return version_; }
  int64_t summed() const { return summed_; }      // gradients in the sum so far
  int64_t last_sum() const { return last_sum_; }  // of the last update
  int64_t stale() const { return stale_; }        // refused so far

 private:
  GateOptions options_;
  int64_t version_ = 0;
  int64_t summed_ = 0;
  int64_t last_sum_ = 0;
  int64_t stale_ = 0;
};

}  // namespace swell::elastic
