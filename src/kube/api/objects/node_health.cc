#include "kube/api/objects/node_health.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/strings.h"
#include "json/texts.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/amounts.h"

namespace swell::api {
namespace {

constexpr size_t kTextMax = 64 << 10;
constexpr size_t kSaidMax = 160;
constexpr size_t kFaultsNamed = 4;

constexpr std::array<std::string_view, 5> kOfKubelet = {"Ready", "MemoryPressure", "DiskPressure",
                                                        "PIDPressure", "NetworkUnavailable"};
// Conditions of others that are good when they are True.
constexpr std::array<std::string_view, 5> kGoodWhenTrue = {"Ready", "Available", "Voter", "Synced",
                                                           "Succeeded"};

int64_t GpusIn(const json::Value& node, std::string_view field) {
  const Amounts amounts = ReadAmounts(node, {"status", field});
  const auto gpus = amounts.find(kGpuResource);
  return gpus == amounts.end() ? 0 : gpus->second.Value();
}

bool IsFault(const Condition& condition) {
  if (condition.type.ends_with("Healthy")) return condition.status == "False";
  if (condition.status != "True") return false;
  return std::none_of(kGoodWhenTrue.begin(), kGoodWhenTrue.end(),
                      [&](std::string_view end) { return condition.type.ends_with(end); });
}

// A clock that was set is told, but work runs on after it. A single GPU is left out by itself.
bool Taints(const json::Value& node, const Condition& condition) {
  if (condition.type == "ClockHealthy") return false;
  if (condition.type != kGpuHealthy && condition.reason != kGpuUnhealthyReason) return true;
  const int64_t capacity = GpusIn(node, "capacity");
  return capacity > 0 && static_cast<int64_t>(UnhealthyGpus(node).size()) >= capacity;
}

template <class Said>
std::string TextOf(const std::vector<NodeFault>& faults, const Said& said) {
  // GpuHealthy repeats what a script says of a GPU.
  const bool sums_up = std::any_of(faults.begin(), faults.end(),
                                   [](const auto& one) { return one.type == kGpuHealthy; });
  std::vector<std::string> parts;
  for (const NodeFault& one : faults) {
    if (sums_up && one.type != kGpuHealthy && one.reason == kGpuUnhealthyReason) continue;
    parts.push_back(said(one));
  }
  if (parts.size() <= kFaultsNamed) return Join(parts, "; ");
  const size_t more = parts.size() - kFaultsNamed;
  parts.resize(kFaultsNamed);
  return StrCat(Join(parts, "; "), "; and ", more, " more");
}

}  // namespace

std::vector<NodeFault> FaultsOf(const json::Value& node) {
  std::set<std::string, std::less<>> ignored;
  for (std::string_view one : Split(Annotation(node, keys::kIgnoredConditions), ',')) {
    ignored.emplace(Trim(one));
  }
  std::vector<NodeFault> faults;
  for (const Condition& condition : Conditions(node)) {
    const bool kubelet =
        std::find(kOfKubelet.begin(), kOfKubelet.end(), condition.type) != kOfKubelet.end();
    if (kubelet || ignored.contains(condition.type) || !IsFault(condition)) continue;
    faults.push_back({std::string(condition.type), std::string(condition.reason),
                      std::string(condition.message), Taints(node, condition)});
  }
  return faults;
}

bool IsBrokenCheck(std::string_view reason) {
  return reason == kCheckNotRun || reason == kCheckUnsafe || reason == kCheckNoSuchGpu;
}

std::vector<NodeFault> TaintingFaultsOf(const json::Value& node) {
  std::vector<NodeFault> faults = FaultsOf(node);
  std::erase_if(faults, [](const NodeFault& fault) { return !fault.taints; });
  return faults;
}

std::vector<std::string> BrokenChecksOf(const json::Value& node) {
  std::vector<std::string> types;
  for (const Condition& one : Conditions(node)) {
    if (one.status == "Unknown" && IsBrokenCheck(one.reason)) types.emplace_back(one.type);
  }
  return types;
}

std::string FaultsText(const std::vector<NodeFault>& faults) {
  return TextOf(faults, [](const NodeFault& one) {
    return StrCat(one.type, " (", one.reason, "): ", one.message);
  });
}

std::string FaultsSaid(const std::vector<NodeFault>& faults) {
  return TextOf(faults, [](const NodeFault& one) {
    return one.message.empty() ? StrCat(one.type, " (", one.reason, ")") : one.message;
  });
}

std::vector<int> UnhealthyGpus(const json::Value& node) {
  const int64_t capacity = GpusIn(node, "capacity");
  std::set<int> indices;
  for (std::string_view part : Split(Annotation(node, keys::kUnhealthyGpus), ',')) {
    const auto index = ParseInt(Trim(part));
    if (index && *index >= 0 && *index < capacity) indices.insert(static_cast<int>(*index));
  }
  return {indices.begin(), indices.end()};
}

std::vector<NodeFailure> NodeFailuresOf(const json::Value& node) {
  std::vector<NodeFailure> failures;
  const std::string_view text = Annotation(node, keys::kNodeFailures);
  if (text.empty()) return failures;
  const auto list = json::Parse(text, {.depth = 8, .bytes = kTextMax});
  if (!list.ok() || !list->is_array()) return failures;
  for (const json::Value& one : list->get_array()) {
    const auto time = ParseTime(json::GetString(one, {"time"}));
    if (!time || failures.size() == kNodeFailuresKept) continue;
    const double number = json::GetDouble(one, {"weight"});
    failures.push_back({*time, std::string(json::GetString(one, {"pod"})),
                        std::string(json::GetString(one, {"uid"})),
                        FailureClassOf(json::GetString(one, {"class"})),
                        std::isfinite(number) ? std::clamp(number, 0.0, 1.0) : 0,
                        std::string(json::GetString(one, {"message"}))});
  }
  return failures;
}

std::string NodeFailuresText(const std::vector<NodeFailure>& failures) {
  json::Array list;
  for (const NodeFailure& one : failures) {
    list.push_back(json::Object{{"time", FormatTime(one.time)},
                                {"pod", one.pod},
                                {"uid", one.uid},
                                {"class", FailureClassName(one.which)},
                                {"weight", one.weight},
                                {"message", one.said}});
  }
  return json::Print(std::move(list));
}

double NodeScore(const std::vector<NodeFailure>& failures, WallTime now) {
  double score = 0;
  for (const NodeFailure& one : failures) {
    const Duration age = std::max(now - one.time, Duration(0));
    if (age >= kNodeFailureWindow) continue;
    const double lives = std::chrono::duration<double>(age) / kNodeFailureHalfLife;
    score += one.weight * std::exp2(-lives);
  }
  return score;
}

bool AddNodeFailure(std::vector<NodeFailure>& failures, NodeFailure failure) {
  const auto same = [&failure](const NodeFailure& one) {
    return one.uid == failure.uid && FormatTime(one.time) == FormatTime(failure.time);
  };
  if (std::any_of(failures.begin(), failures.end(), same)) return false;
  if (failure.said.size() > kSaidMax) {
    size_t end = kSaidMax;
    while (end > 0 && (static_cast<unsigned char>(failure.said[end]) & 0xC0) == 0x80) --end;
    failure.said.resize(end);
  }
  if (failures.size() == kNodeFailuresKept && failure.time <= failures.back().time) return false;
  const auto place =
      std::find_if(failures.begin(), failures.end(),
                   [&failure](const NodeFailure& one) { return one.time < failure.time; });
  failures.insert(place, std::move(failure));
  if (failures.size() > kNodeFailuresKept) failures.pop_back();
  return true;
}

}  // namespace swell::api
