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

Wanted OfMembers(const MetricSample& metric, double tolerance, int64_t replicas) {
  double sum = 0;
  int64_t known = 0, unknown = 0;
  for (const std::optional<double>& one : metric.of_members) {
    sum += one.value_or(0);
    ++(one ? known : unknown);
  }
  if (known == 0) return {replicas, 0};
  const double average = sum / static_cast<double>(known);
  const double ratio = average / metric.target;
  if (std::abs(ratio - 1) <= tolerance) return {replicas, average};
  if (ratio > 1) unknown += metric.unready;
  if (unknown == 0) return {Ceil(ratio * static_cast<double>(known)), average};
  const double supposed = ratio < 1 ? metric.target : 0;
  const double all = static_cast<double>(known + unknown);
  const double careful = (sum + supposed * static_cast<double>(unknown)) / all / metric.target;
  const bool turned = (ratio < 1) != (careful < 1);
  if (turned || std::abs(careful - 1) <= tolerance) return {replicas, average};
  const int64_t wanted = Ceil(careful * all);
  // Those that are counted may be more or fewer than are wanted now.
  if ((careful < 1) != (wanted < replicas)) return {replicas, average};
  return {wanted, average};
}

Wanted OfAll(const MetricSample& metric, double tolerance, int64_t replicas, int64_t running) {
  const double value = *metric.of_all;
  const double members =
      static_cast<double>(std::max<int64_t>(1, metric.average ? replicas : running));
  const double compared = metric.average ? value / members : value;
  const double ratio = compared / metric.target;
  if (std::abs(ratio - 1) <= tolerance) return {replicas, compared};
  return {metric.average ? Ceil(value / metric.target) : Ceil(ratio * members), compared};
}

// Growth is bounded per look, shrinking by its window.
Pace PaceOf(const TargetPolicy& policy) {
  Pace pace{.replicas_min = policy.replicas_min, .replicas_max = policy.replicas_max};
  pace.up.policies = UsualGrowth(policy.interval);
  pace.down.window = policy.window;
  return pace;
}

}  // namespace

TargetProposal ProposeReplicas(double tolerance,
                               int64_t replicas,
                               int64_t running,
                               const std::vector<MetricSample>& metrics) {
  TargetProposal proposal;
  for (size_t i = 0; i < metrics.size(); ++i) {
    const MetricSample& metric = metrics[i];
    const bool known =
        metric.of_all || std::any_of(metric.of_members.begin(), metric.of_members.end(),
                                     [](const auto& one) { return one.has_value(); });
    if (!metric.fault.empty() || !known) {
      proposal.faults +=
          StrCat(proposal.faults.empty() ? "" : "; ", metric.name, ": ",
                 metric.fault.empty() ? std::string("no member has a value of it") : metric.fault);
      if (!proposal.faulty) proposal.faulty = i;
      continue;
    }
    const Wanted wanted = metric.of_all ? OfAll(metric, tolerance, replicas, running)
                                        : OfMembers(metric, tolerance, replicas);
    if (proposal.metric && wanted.replicas <= proposal.replicas) continue;
    proposal.replicas = wanted.replicas;
    proposal.value = wanted.value;
    proposal.metric = i;
  }
  if (!proposal.metric) proposal.replicas = replicas;
  return proposal;
}

TargetDecision DecideByTargets(const TargetPolicy& policy,
                               WallTime now,
                               int64_t replicas,
                               int64_t running,
                               const std::vector<MetricSample>& metrics,
                               TargetState& state) {
  const TargetProposal proposal = ProposeReplicas(policy.tolerance, replicas, running, metrics);
  TargetDecision decision;
  decision.faults = proposal.faults;
  if (proposal.metric) {
    const MetricSample& metric = metrics[*proposal.metric];
    decision.why =
        StrCat(metric.name, " is ", Number(proposal.value), ", its target ", Number(metric.target));
  }
  int64_t desired = proposal.replicas;
  if (desired < replicas && !proposal.faults.empty()) desired = replicas;
  decision.desired = Follow(PaceOf(policy), now, replicas, desired, state).replicas;
  return decision;
}

}  // namespace swell::elastic
