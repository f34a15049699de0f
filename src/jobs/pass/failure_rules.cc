#include "jobs/pass/failure_rules.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/objects/pod.h"

namespace swell::jobs {
namespace {

constexpr int64_t kMib = 1 << 20;
constexpr double kMemoryFactor = 1.5;
constexpr double kMemoryFactorMax = 3.375;  // three raises
constexpr size_t kRaisesMax = 64;
constexpr Duration kDelayFirst = std::chrono::seconds(10);
constexpr Duration kHoldFirst = std::chrono::seconds(20);
constexpr Duration kWaitMax = std::chrono::minutes(5);
constexpr Duration kUnstartedFirst = std::chrono::minutes(10);
constexpr Duration kUnstartedMax = std::chrono::hours(1);
// Peers notice the loss of a member within this.
constexpr Duration kPeersNotice = std::chrono::seconds(60);

int64_t Bytes(std::string_view text) {
  const auto amount = api::Quantity::Parse(text);
  return amount.ok() ? amount->Value() : 0;
}

struct Memory {
  std::optional<int64_t> request;
  int64_t limit = 0;  // 0: none
};

// What a container, or a pod as a whole, requests and may have.
Memory MemoryOf(const json::Value& holder) {
  Memory memory;
  memory.limit = Bytes(json::GetString(holder, {"resources", "limits", "memory"}));
  const std::string_view request = json::GetString(holder, {"resources", "requests", "memory"});
  if (!request.empty()) memory.request = Bytes(request);
  return memory;
}

// A request that is as large as the limit stays so.
void RaiseTo(int64_t limit, const Memory& before, json::Value& holder) {
  const std::string text = MemoryText(limit);
  if (before.request && *before.request >= before.limit) {
    json::Set(holder, {"resources", "requests", "memory"}, text);
  }
  json::Set(holder, {"resources", "limits", "memory"}, text);
}

// Twice as long after each failure, from the second one on.
Duration WaitAfter(int64_t crashes, Duration first, Duration most) {
  if (crashes < 2) return Duration::zero();
  const int64_t doublings = std::min<int64_t>(crashes - 2, 8);
  return std::min(first * (1 << doublings), most);
}

}  // namespace

Duration RestartDelay(int64_t crashes) { return WaitAfter(crashes, kDelayFirst, kWaitMax); }

Duration PreemptionHold(int64_t crashes) { return WaitAfter(crashes, kHoldFirst, kWaitMax); }

Duration UnstartedHold(int64_t crashes) {
  return WaitAfter(crashes + 1, kUnstartedFirst, kUnstartedMax);
}

std::optional<ChargedFailure> ChargedFailure::Parse(std::string_view text) {
  const size_t space = text.find(' ');
  const auto time = api::ParseTime(text.substr(0, space));
  if (!time || space == std::string_view::npos) return std::nullopt;
  return ChargedFailure{*time, api::FailureClassOf(text.substr(space + 1))};
}

std::string ChargedFailure::ToString() const {
  return StrCat(api::FormatTime(time), " ", api::FailureClassName(which));
}

bool ChargedFailure::Covers(api::FailureClass other, WallTime created, WallTime now) const {
  if (created > time || now - time > kPeersNotice) return false;
  // One of both is a loss that the other one explains.
  return other == api::FailureClass::kPeerLost || which == api::FailureClass::kPeerLost;
}

MemoryRaises ParseMemoryRaises(std::string_view text) {
  MemoryRaises raises;
  for (std::string_view one : Split(text, ',')) {
    const size_t equals = one.rfind('=');
    if (equals == std::string_view::npos || raises.size() >= kRaisesMax) continue;
    const int64_t bytes = Bytes(one.substr(equals + 1));
    if (bytes > 0) raises[std::string(Trim(one.substr(0, equals)))] = bytes;
  }
  return raises;
}

std::string ToString(const MemoryRaises& raises) {
  std::vector<std::string> parts;
  for (const auto& [place, bytes] : raises) parts.push_back(StrCat(place, "=", MemoryText(bytes)));
  return Join(parts, ",");
}

std::string MemoryText(int64_t bytes) { return StrCat((bytes + kMib - 1) / kMib, "Mi"); }

int64_t NextMemory(int64_t first, int64_t current, int64_t most) {
  if (first <= 0 || current <= 0) return 0;
  const double bound =
      std::min(static_cast<double>(most), static_cast<double>(first) * kMemoryFactorMax);
  const double next = std::min(static_cast<double>(current) * kMemoryFactor, bound);
  // Whole MiB, downwards: the bound holds.
  const int64_t bytes = static_cast<int64_t>(next) / kMib * kMib;
  // A rest of the bound is not worth another start.
  return bytes - current > current / 20 ? bytes : 0;
}

std::string AddAvoidedNode(std::string_view avoided, std::string_view node) {
  std::vector<std::string> nodes{std::string(node)};
  for (std::string_view one : Split(avoided, ',')) {
    if (!one.empty() && one != node && nodes.size() < kAvoidedNodesMost) nodes.emplace_back(one);
  }
  return Join(nodes, ",");
}

void AvoidNodes(json::Value& pod, std::string_view avoided) {
  json::Array fields;
  for (std::string_view node : Split(avoided, ',')) {
    // A person may have written it, and one bad name would have the server refuse the pod.
    if (!api::CheckDnsSubdomain(node).empty() || fields.size() == kAvoidedNodesMost) continue;
    fields.push_back(json::Object{{"key", "metadata.name"},
                                  {"operator", "NotIn"},
                                  {"values", json::Array{boost::json::string_view(node)}}});
  }
  if (fields.empty()) return;
  constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";
  json::Array terms = json::GetArray(pod, {"spec", "affinity", "nodeAffinity", kPreferred});
  terms.push_back(json::Object{{"weight", 100},
                               {"preference", json::Object{{"matchFields", std::move(fields)}}}});
  json::Set(pod, {"spec", "affinity", "nodeAffinity", kPreferred}, std::move(terms));
}

void RaiseMemoryOf(json::Value& pod, std::string_view role, const MemoryRaises& raises) {
  if (raises.empty()) return;
  for (std::string_view list : {"initContainers", "containers"}) {
    json::Value* found = json::FindMutable(pod, {"spec", list});
    if (found == nullptr || !found->is_array()) continue;
    for (json::Value& container : found->get_array()) {
      const auto raise = raises.find(StrCat(role, "/", api::ContainerName(container)));
      if (raise == raises.end()) continue;
      const Memory own = MemoryOf(container);
      const Memory whole = MemoryOf(api::Spec(pod));
      const int64_t limit = own.limit > 0 ? own.limit : whole.limit;
      if (limit >= raise->second) continue;
      if (own.limit > 0 || whole.limit == 0) RaiseTo(raise->second, own, container);
      // The pod's grow by as much, so that its other containers keep what they have.
      if (whole.limit == 0) continue;
      RaiseTo(whole.limit + raise->second - limit, whole, *json::FindMutable(pod, {"spec"}));
    }
  }
}

int64_t MemoryLimitOf(const json::Value& pod, std::string_view container) {
  for (const json::Array* list : {&api::InitContainers(pod), &api::Containers(pod)}) {
    for (const json::Value& one : *list) {
      if (api::ContainerName(one) != container) continue;
      const int64_t own = MemoryOf(one).limit;
      return own > 0 ? own : MemoryOf(api::Spec(pod)).limit;
    }
  }
  return 0;
}

}  // namespace swell::jobs
