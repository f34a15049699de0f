#include "elastic/replica_pace.h"

#include <algorithm>
#include <limits>

namespace swell::elastic {
namespace {

using Limit = PacedReplicas::Limit;
using Select = PaceRules::Select;

void ForgetBefore(std::deque<std::pair<WallTime, int64_t>>& moments, WallTime time) {
  while (!moments.empty() && moments.front().first < time) moments.pop_front();
}

// What the windows make of the newest proposal.
int64_t Stable(
    const Pace& pace, WallTime now, int64_t replicas, int64_t desired, PaceState& state) {
  if (!state.since) state.since = now;
  state.asked.emplace_back(now, desired);
  ForgetBefore(state.asked, now - std::max(pace.up.window, pace.down.window));
  int64_t least = desired;
  int64_t most = desired;
  for (const auto& [time, number] : state.asked) {
    if (now - time <= pace.up.window) least = std::min(least, number);
    if (now - time <= pace.down.window) most = std::max(most, number);
  }
  // Before the first window is over it is not known what it would have asked for.
  if (now - *state.since < pace.up.window) least = std::min(least, replicas);
  if (now - *state.since < pace.down.window) most = std::max(most, replicas);
  return std::min(std::max(replicas, least), most);
}

// The number that the policies allow from where the period began.
int64_t Reach(
    const PaceRules& rules, bool up, WallTime now, int64_t replicas, const PaceState& state) {
  if (rules.select == Select::kDisabled) return replicas;
  if (rules.policies.empty()) return up ? std::numeric_limits<int32_t>::max() : 0;
  std::optional<int64_t> farthest, nearest;
  for (const PacePolicy& policy : rules.policies) {
    int64_t start = replicas;
    for (const auto& [time, by] : state.changes) {
      if (now - time < policy.period) start -= by;
    }
    int64_t reach = 0;
    if (!policy.percent) {
      reach = up ? start + policy.value : start - policy.value;
    } else if (up) {
      reach = (start * (100 + policy.value) + 99) / 100;
    } else {
      reach = start * std::max<int64_t>(0, 100 - policy.value) / 100;
    }
    const bool farther = up ? reach > farthest.value_or(reach) : reach < farthest.value_or(reach);
    if (!farthest || farther) farthest = reach;
    if (!nearest || (up ? reach < *nearest : reach > *nearest)) nearest = reach;
  }
  const int64_t reach = rules.select == Select::kMin ? *nearest : *farthest;
  // What was changed lately may go beyond what is allowed now: that is not a reason to turn back.
  return up ? std::max(reach, replicas) : std::min(reach, replicas);
}

}  // namespace

std::vector<PacePolicy> UsualGrowth(Duration period) {
  return {{.percent = false, .value = 4, .period = period},
          {.percent = true, .value = 100, .period = period}};
}

PacedReplicas Follow(
    const Pace& pace, WallTime now, int64_t replicas, int64_t desired, PaceState& state) {
  const int64_t stable = Stable(pace, now, replicas, desired, state);
  PacedReplicas paced{.replicas = stable, .stable = stable};
  const int64_t highest = std::max(pace.replicas_min, pace.replicas_max);
  if (stable > replicas) {
    const int64_t reach = Reach(pace.up, true, now, replicas, state);
    if (stable > reach) paced = {.replicas = reach, .stable = stable, .limit = Limit::kUpRate};
  } else if (stable < replicas) {
    const int64_t reach = Reach(pace.down, false, now, replicas, state);
    if (stable < reach) paced = {.replicas = reach, .stable = stable, .limit = Limit::kDownRate};
  }
  if (paced.replicas > highest) {
    paced = {.replicas = highest, .stable = stable, .limit = Limit::kMaximum};
  }
  if (paced.replicas < pace.replicas_min) {
    paced = {.replicas = pace.replicas_min, .stable = stable, .limit = Limit::kMinimum};
  }
  return paced;
}

void NoteChange(const Pace& pace, WallTime now, int64_t by, PaceState& state) {
  Duration longest{0};
  for (const PaceRules* rules : {&pace.up, &pace.down}) {
    for (const PacePolicy& policy : rules->policies) longest = std::max(longest, policy.period);
  }
  state.changes.emplace_back(now, by);
  ForgetBefore(state.changes, now - longest);
}

}  // namespace swell::elastic
