// NodeHealth: what makes a node or one of its GPUs unhealthy, as conditions and annotations of the
// Node say it, and how often work failed there.
// - Threads: pure functions.
// - Invariants: anybody may write conditions and annotations, so every reader copes with nonsense.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "json/value.h"
#include "kube/api/objects/failure_class.h"

namespace swell::api {

namespace keys {
// Taints: the node is unhealthy; work failed there often.
inline constexpr std::string_view kUnhealthyTaint = "swell.dev/unhealthy";
inline constexpr std::string_view kSuspectTaint = "swell.dev/suspect";
// On nodes, written by their agent: the GPUs that get no new work, "1,3".
inline constexpr std::string_view kUnhealthyGpus = "swell.dev/unhealthy-gpus";
// On nodes, written by the controller: the latest failures there, as JSON.
inline constexpr std::string_view kNodeFailures = "swell.dev/failures";
// On nodes, written by people: condition types that say nothing of the node's health, "A,B".
inline constexpr std::string_view kIgnoredConditions = "swell.dev/ignored-conditions";
}  // namespace keys

// The condition that speaks of single GPUs, and the reason of other conditions that do.
inline constexpr std::string_view kGpuHealthy = "GpuHealthy";
inline constexpr std::string_view kGpuUnhealthyReason = "GpuUnhealthy";
// Reasons of checks that say nothing until somebody mends them: the program cannot be run, is not
// run because anybody may write to it, or blames a GPU that the node does not have.
inline constexpr std::string_view kCheckNotRun = "CheckNotRun";
inline constexpr std::string_view kCheckUnsafe = "CheckUnsafe";
inline constexpr std::string_view kCheckNoSuchGpu = "CheckNoSuchGpu";
bool IsBrokenCheck(std::string_view reason);

// A condition that says that something of the node is unhealthy.
struct NodeFault {
  std::string type, reason, message;
  bool taints = true;  // the whole node gets no new work; else it is only reported
};
// Swell's own conditions (…Healthy) count when they are False, those of node-problem-detector when
// they are True. The kubelet's, which have taints of their own, do not count.
std::vector<NodeFault> FaultsOf(const json::Value& node);
// "DiskHealthy (ReadOnly): …; …". What several conditions say of single GPUs is told once.
std::string FaultsText(const std::vector<NodeFault>& faults);
// The messages alone: "GPU 1: too hot; …".
std::string FaultsSaid(const std::vector<NodeFault>& faults);
// Those that keep new work off the whole node.
std::vector<NodeFault> TaintingFaultsOf(const json::Value& node);
// Types of conditions whose checks do not work.
std::vector<std::string> BrokenChecksOf(const json::Value& node);

// Indices of GPUs, below the node's capacity, in ascending order.
std::vector<int> UnhealthyGpus(const json::Value& node);

// A failure without a user's error, of a pod on the node.
struct NodeFailure {
  WallTime time;
  std::string pod;  // "ns/name"
  std::string uid;
  FailureClass which = FailureClass::kUnknown;
  double weight = 1;
  std::string said;
};
inline constexpr size_t kNodeFailuresKept = 16;
inline constexpr Duration kNodeFailureHalfLife = std::chrono::hours(6);
inline constexpr Duration kNodeFailureWindow = std::chrono::hours(24);
// A node is suspect from this score on, until the score is below half of it.
inline constexpr double kSuspectScore = 3;

std::vector<NodeFailure> NodeFailuresOf(const json::Value& node);
std::string NodeFailuresText(const std::vector<NodeFailure>& failures);
// The sum of weights; each halves in kNodeFailureHalfLife and ends with kNodeFailureWindow.
double NodeScore(const std::vector<NodeFailure>& failures, WallTime now);
// Adds one, unless that failure is known; the newest are kept. Whether it is new.
bool AddNodeFailure(std::vector<NodeFailure>& failures, NodeFailure failure);

}  // namespace swell::api
