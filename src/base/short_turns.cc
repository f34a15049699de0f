#include "base/short_turns.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace swell {
namespace {

// struct sched_attr of the kernel, which libc does not declare.
struct SchedulingWish {
  uint32_t size = sizeof(SchedulingWish);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0;
  uint64_t deadline_ns = 0;
  uint64_t period_ns = 0;
};

constexpr uint32_t kOrdinary = 0;      // SCHED_OTHER
constexpr uint64_t kTurnNs = 100'000;  // the least that the kernel grants

}  // namespace

void AskForShortTurns() {
  SchedulingWish wish;
  if (syscall(SYS_sched_getattr, 0, &wish, sizeof(wish), 0) != 0) return;
  if (wish.policy != kOrdinary) return;
  wish.runtime_ns = kTurnNs;
  (void)syscall(SYS_sched_setattr, 0, &wish, 0);
}

}  // namespace swell
