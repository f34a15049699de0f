#include "kube/controllers/pod_facts.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

bool WasPreempted(const json::Value& pod) {
  if (!api::Annotation(pod, api::keys::kPreemptedBy).empty()) return true;
  const std::optional<api::Condition> target = api::FindCondition(pod, api::kDisruptionTarget);
  return target && target->IsTrue() && target->reason == "PreemptionByScheduler";
}

bool WasDisrupted(const json::Value& pod) {
  return WasPreempted(pod) || api::ConditionIsTrue(pod, api::kDisruptionTarget);
}

std::string PreemptionMessage(const json::Value& pod) {
  std::string message(api::Annotation(pod, api::keys::kPreemptedMessage));
  if (!message.empty()) return message;
  if (const auto target = api::FindCondition(pod, api::kDisruptionTarget)) {
    message = target->message;
  }
  if (message.empty() && WasPreempted(pod)) {
    message = StrCat("Preempted by ", api::Annotation(pod, api::keys::kPreemptedBy));
  }
  return message;
}

std::optional<WallTime> PreemptionTime(const json::Value& pod) {
  const std::optional<api::Condition> target = api::FindCondition(pod, api::kDisruptionTarget);
  if (!target || !WasPreempted(pod)) return std::nullopt;
  return target->Since();
}

namespace {

// It was evicted because it wrote more than its own limits allow, in the kubelet's words; its next
// pod would do the same. Else its node ran short of something.
bool OutgrewItsDisk(const json::Value& pod) {
  const std::string_view said = api::StatusMessage(pod);
  return said.find(" exceeds the limit ") != std::string_view::npos ||
         said.find(" exceeds the total limit of containers ") != std::string_view::npos ||
         said.find(" exceeded its local ephemeral storage limit ") != std::string_view::npos;
}

}  // namespace

bool FailedByCluster(const json::Value& pod) {
  static constexpr std::array<std::string_view, 8> kReasons = {
      "Evicted",  "NodeLost",   "NodeShutdown", "Preempting", "UnexpectedAdmissionError",
      "Shutdown", "Terminated", "NodeAffinity"};
  std::string_view reason = json::GetString(pod, {"status", "reason"});
  if (reason == "Evicted" && OutgrewItsDisk(pod)) return false;
  return reason.starts_with("OutOf") ||
         std::find(kReasons.begin(), kReasons.end(), reason) != kReasons.end();
}

std::optional<int64_t> ExitCode(const json::Value& pod) {
  for (std::string_view list : {"containerStatuses", "initContainerStatuses"}) {
    for (const json::Value& container : json::GetArray(pod, {"status", list})) {
      const json::Value* code = json::Find(container, {"state", "terminated", "exitCode"});
      if (code == nullptr) continue;
      int64_t value = json::GetInt(container, {"state", "terminated", "exitCode"});
      if (value != 0) return value;
    }
  }
  return std::nullopt;
}

std::string_view JobUidLabel(const json::Value& pod) {
  const std::string_view uid = api::Label(pod, "batch.kubernetes.io/controller-uid");
  return uid.empty() ? api::Label(pod, "controller-uid") : uid;
}

int64_t ReportedWorld(const json::Value& pod) {
  std::string_view text = api::Annotation(pod, api::keys::kMetrics);
  if (text.empty()) return -1;
  auto metrics = json::Parse(text, {.depth = 4, .bytes = 16 << 10});
  return metrics.ok() && metrics->is_object() ? json::GetInt(*metrics, {"world"}, -1) : -1;
}

}  // namespace swell::controllers
