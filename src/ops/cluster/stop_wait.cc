#include "ops/cluster/stop_wait.h"

#include <utility>

#include "base/strings.h"

namespace swell::ops {
namespace {

// Pods have 30 s to save; their removal and the store's last commit follow.
constexpr Duration kLimit = std::chrono::seconds(60);
constexpr Duration kTellInterval = std::chrono::seconds(10);

std::string Describe(const process::SavingStates& saving) {
  if (!saving.delay.empty()) {
    return StrCat("A state that a pod left in memory is not on disk yet: ", saving.delay,
                  ". It is lost in ", saving.seconds_left,
                  " s; to give it up now: swell down --now");
  }
  return StrCat("The cluster writes what pods left in memory to disk: ", saving.written >> 20,
                " of ", saving.bytes >> 20, " MiB");
}

}  // namespace

StopWait::StopWait(Clock& clock, std::string data_dir)
    : clock_(clock), data_dir_(std::move(data_dir)), until_(clock.Steady() + kLimit) {}

std::string StopWait::Look() {
  const SteadyTime now = clock_.Steady();
  auto saving = process::ReadSaving(data_dir_);
  if (saving && saving != saving_) until_ = now + kLimit;
  saving_ = std::move(saving);
  if (!saving_ || (told_ && now - *told_ < kTellInterval)) return {};
  told_ = now;
  return Describe(*saving_);
}

}  // namespace swell::ops
