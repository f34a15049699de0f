#include "base/short_turns.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace swell {
namespace {

// struct sched_attr of the kernel, which libc does not declare.
struct SchedulerAttributes {
  uint32_t size = sizeof(SchedulerAttributes);
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
  SchedulerAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  if (attributes.policy != kOrdinary) return;
  attributes.runtime_ns = kTurnNs;
  (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace swell
