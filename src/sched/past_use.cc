#include "sched/past_use.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sched/model.h"
#include "sched/state/state.h"

namespace swell::sched {
namespace {

// What is counted in seconds of a resource's smallest part, per hour of what people name.
constexpr double kSecondsPerHour = 3600;
constexpr std::array<double, kQueueResources> kParts = {static_cast<double>(kPpm), 1000,
                                                        1024.0 * 1024 * 1024};

double Kept(const Settings& settings, Duration passed) {
  const double seconds = std::chrono::duration<double>(passed).count();
  const double half_life = std::chrono::duration<double>(settings.past_half_life).count();
  return half_life > 0 ? std::exp2(-seconds / half_life) : 0;
}

}  // namespace

void CountPastUse(State& state, const Settings& settings, Duration passed) {
  state.past_share = settings.past_share;
  if (settings.past_share <= 0 || passed <= Duration::zero()) return;
  const double seconds = std::chrono::duration<double>(passed).count();
  const double kept = Kept(settings, passed);
  for (QueueState& queue : state.queues) {
    for (QueuePool& pool : queue.pools) {
      for (int r = 0; r < kQueueResources; ++r) {
        pool.past[r] = pool.past[r] * kept + static_cast<double>(pool.used[r]) * seconds;
      }
    }
  }
}

std::vector<PastUse> PastUses(const Model& model) {
  const State& state = model.state();
  std::vector<PastUse> uses;
  for (const QueueState& queue : state.queues) {
    if (!queue.known || queue.name.empty()) continue;
    for (size_t i = 0; i < queue.pools.size(); ++i) {
      std::array<double, kQueueResources> hours{};
      for (int r = 0; r < kQueueResources; ++r) {
        hours[r] = queue.pools[i].past[r] / kParts[r] / kSecondsPerHour;
      }
      if (hours == std::array<double, kQueueResources>{}) continue;
      uses.push_back({queue.name, state.pools[i].name, hours[kQueueGpu], hours[kQueueCpu],
                      hours[kQueueMemory], state.cycle.now});
    }
  }
  return uses;
}

void AddPastUses(Model& model,
                 const Settings& settings,
                 const std::vector<PastUse>& notes,
                 WallTime now) {
  State& state = model.state();
  for (const PastUse& note : notes) {
    const std::array<double, kQueueResources> hours = {note.gpu_hours, note.cpu_hours,
                                                       note.memory_gib_hours};
    const bool sane = std::all_of(hours.begin(), hours.end(),
                                  [](double h) { return std::isfinite(h) && h >= 0; });
    const auto pool = std::find_if(state.pools.begin(), state.pools.end(),
                                   [&note](const PoolInfo& it) { return it.name == note.pool; });
    if (!sane || note.queue.empty() || pool == state.pools.end()) continue;
    // A note of the future is one of another clock: it counts whole.
    const double kept = now > note.as_of ? Kept(settings, now - note.as_of) : 1;
    QueueState& queue = state.queues[state.EnsureQueue(note.queue)];
    QueuePool& own = queue.pools[static_cast<size_t>(pool - state.pools.begin())];
    for (int r = 0; r < kQueueResources; ++r) {
      own.past[r] += hours[r] * kParts[r] * kSecondsPerHour * kept;
    }
  }
  ++state.versions.model;
}

}  // namespace swell::sched
