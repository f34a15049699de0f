#include "kube/process/background/spares.h"

#include <utility>

namespace swell::process {

Spares::Spares(Options options, IdleWorker& worker)
    : options_(std::move(options)), worker_(worker) {}

void Spares::Refill(size_t wanted) {
  while (options_.there() < static_cast<int64_t>(wanted)) {
    if (!options_.make_one()) return;
  }
  if (options_.there() < static_cast<int64_t>(options_.kept)) RefillInQuiet();
}

void Spares::RefillInQuiet() {
  if (awaits_quiet_) return;
  auto refill = scope_.Wrap([this] {
    awaits_quiet_ = false;
    Refill(options_.kept);
  });
  awaits_quiet_ = worker_.PostIdle([this, refill] { options_.post(refill); });
}

}  // namespace swell::process
