#include "elastic/target_scaler.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"

namespace swell::elastic {
namespace {

constexpr double kReplicasMost = 1e9;

struct Wanted {
  int64_t replicas = 0;
  double value = 0;  // what was compared with the target
};

int64_t Ceil(double number) {
  return static_cast<int64_t>(std::ceil(std::clamp(number, 0.0, kReplicasMost) - 1e-9));
}

// "0.75", "12", "1536".
std::string Number(double number) {
  const int64_t hundredths = std::llround(std::clamp(number, -1e15, 1e15) * 100);
  if (hundredths % 100 == 0) return std::to_string(hundredths / 100);
  const int64_t part = std::abs(hundredths % 100);
  std::string text = StrCat(hundredths < 0 ? "-" : "", std::abs(hundredths / 100), ".",
                            part < 10 ? "0" : "", part);
  if (text.back() == '0') text.pop_back();
  return text;
}

Wanted OfMembers(const MetricLook& metric, const TargetPolicy& policy, int64_t replicas) {
  double sum = 0;
  int64_t known = 0, unknown = 0;
  for (const std::optional<double>& one : metric.of_members) {
    sum += one.value_or(0);
    ++(one ? known : unknown);
  }
  if (known == 0) return {replicas, 0};
  const double average = sum / static_cast<double>(known);
  const double ratio = average / metric.target;
  if (std::abs(ratio - 1) <= policy.tolerance) return {replicas, average};
  if (unknown == 0) return {Ceil(ratio * static_cast<double>(known)), average};
  const double supposed = ratio < 1 ? metric.target : 0;
  const double all = static_cast<double>(known + unknown);
  const double careful = (sum + supposed * static_cast<double>(unknown)) / all / metric.target;
  const bool turned = (ratio < 1) != (careful < 1);
  if (turned || std::abs(careful - 1) <= policy.tolerance) return {replicas, average};
  return {Ceil(careful * all), average};
}

Wanted OfAll(const MetricLook& metric,
             const TargetPolicy& policy,
             int64_t replicas,
             int64_t running) {
  const double value = *metric.of_all;
  const double members =
      static_cast<double>(std::max<int64_t>(1, metric.average ? replicas : running));
  const double compared = metric.average ? value / members : value;
  const double ratio = compared / metric.target;
  if (std::abs(ratio - 1) <= policy.tolerance) return {replicas, compared};
  return {metric.average ? Ceil(value / metric.target) : Ceil(ratio * members), compared};
}

// Shrinks to no less than what was asked for lately, and grows by so much at once.
int64_t Steady(const TargetPolicy& policy,
               WallTime now,
               int64_t replicas,
               int64_t desired,
               TargetState& state) {
  if (!state.since) state.since = now;
  state.asked.emplace_back(now, desired);
  while (now - state.asked.front().first > policy.window) state.asked.pop_front();
  if (desired < replicas) {
    // Before the first window is over it is not known what it would have asked for.
    int64_t most = now - *state.since < policy.window ? replicas : desired;
    for (const auto& [time, number] : state.asked) most = std::max(most, number);
    desired = std::min(most, replicas);
  }
  desired = std::min(desired, std::max(replicas * 2, replicas + 4));
  return std::clamp(desired, policy.replicas_min,
                    std::max(policy.replicas_min, policy.replicas_max));
}

}  // namespace

TargetDecision LookAtTargets(const TargetPolicy& policy,
                             WallTime now,
                             int64_t replicas,
                             int64_t running,
                             const std::vector<MetricLook>& metrics,
                             TargetState& state) {
  TargetDecision decision;
  std::optional<int64_t> most;
  for (const MetricLook& metric : metrics) {
    const bool known =
        metric.of_all || std::any_of(metric.of_members.begin(), metric.of_members.end(),
                                     [](const auto& one) { return one.has_value(); });
    if (!metric.fault.empty() || !known) {
      decision.faults +=
          StrCat(decision.faults.empty() ? "" : "; ", metric.name, ": ",
                 metric.fault.empty() ? std::string("no member has a value of it") : metric.fault);
      continue;
    }
    const Wanted wanted = metric.of_all ? OfAll(metric, policy, replicas, running)
                                        : OfMembers(metric, policy, replicas);
    if (most && wanted.replicas <= *most) continue;
    most = wanted.replicas;
    decision.why =
        StrCat(metric.name, " is ", Number(wanted.value), ", its target ", Number(metric.target));
  }
  if (most && *most < replicas && !decision.faults.empty()) most = replicas;
  decision.desired = Steady(policy, now, replicas, most.value_or(replicas), state);
  return decision;
}

}  // namespace swell::elastic
