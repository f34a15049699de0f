#include "kube/controllers/cluster/node_taints.h"

#include <algorithm>

#include "kube/api/meta/meta.h"
#include "kube/api/objects/node.h"

namespace swell::controllers {
namespace {

constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready";
constexpr std::string_view kUnreachable = "node.kubernetes.io/unreachable";
constexpr std::string_view kUnschedulable = "node.kubernetes.io/unschedulable";
constexpr int64_t kDefaultTolerationSeconds = 300;

bool Is(const json::Value& taint, std::string_view key, std::string_view effect) {
  return json::GetString(taint, {"key"}) == key && json::GetString(taint, {"effect"}) == effect;
}

void Put(
    json::Array& taints, std::string_view key, std::string_view effect, bool wanted, WallTime now) {
  auto it = std::find_if(taints.begin(), taints.end(),
                         [&](const json::Value& taint) { return Is(taint, key, effect); });
  if (it != taints.end()) {
    if (!wanted) taints.erase(it);
  } else if (wanted) {
    taints.push_back(
        json::Object{{"key", key}, {"effect", effect}, {"timeAdded", api::FormatTime(now)}});
  }
}

// How long the toleration holds; nullopt: for ever.
std::optional<Duration> Seconds(const json::Value& toleration, Duration usual_delay) {
  const json::Value* seconds = json::Find(toleration, {"tolerationSeconds"});
  if (seconds == nullptr || !seconds->is_number()) return std::nullopt;
  int64_t value = std::max<int64_t>(0, json::GetInt(toleration, {"tolerationSeconds"}));
  std::string_view key = json::GetString(toleration, {"key"});
  if (value == kDefaultTolerationSeconds && (key == kNotReady || key == kUnreachable)) {
    return usual_delay;
  }
  return std::chrono::seconds(std::min<int64_t>(value, 1'000'000'000));
}

}  // namespace

std::string_view ReadyStatus(const json::Value& node) {
  const std::optional<api::Condition> ready = api::FindCondition(node, "Ready");
  return !ready ? "" : ready->status;
}

json::Value Taints(const json::Value& node) { return json::GetArray(node, {"spec", "taints"}); }

json::Array WantedTaints(const json::Value& node, std::string_view ready, WallTime now) {
  json::Array taints = json::GetArray(node, {"spec", "taints"});
  for (std::string_view effect : {"NoSchedule", "NoExecute"}) {
    Put(taints, kNotReady, effect, ready == "False", now);
    Put(taints, kUnreachable, effect, ready == "Unknown", now);
  }
  Put(taints, kUnschedulable, "NoSchedule", json::GetBool(node, {"spec", "unschedulable"}), now);
  return taints;
}

// Every NoExecute taint must be tolerated; the shortest of the tolerations used counts, from the
// time the taint came.
std::optional<WallTime> ToleratedFor(const json::Value& pod,
                                     const json::Value& node,
                                     Duration usual_delay) {
  std::optional<WallTime> until;
  for (const api::Taint& taint : api::TaintsOf(node)) {
    if (taint.effect != "NoExecute") continue;
    WallTime since = api::ParseTime(taint.time_added).value_or(WallTime{});
    bool tolerated = false;
    std::optional<WallTime> this_until;
    for (const json::Value& toleration : json::GetArray(pod, {"spec", "tolerations"})) {
      if (!api::Tolerates(toleration, taint)) continue;
      tolerated = true;
      auto seconds = Seconds(toleration, usual_delay);
      if (seconds && (!this_until || since + *seconds < *this_until)) this_until = since + *seconds;
    }
    if (!tolerated) this_until = since;
    if (this_until && (!until || *this_until < *until)) until = this_until;
  }
  return until;
}

}  // namespace swell::controllers
