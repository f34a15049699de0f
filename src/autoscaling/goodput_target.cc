#include "autoscaling/goodput_target.h"

#include <algorithm>
#include <vector>

#include "base/strings.h"
#include "kube/api/objects/job.h"
#include "kube/controllers/wrong_field.h"

namespace swell::autoscaling {
namespace {

constexpr int64_t kObservationsMax = 1000;
constexpr int64_t kIntervalSecondsMax = int64_t{24} * 3600;

// A number, or a word such as "gpu", of which it is not known what the launcher makes.
int64_t RanksPerMember(const json::Value& job) {
  const json::Value* said = json::Find(job, {"spec", "rendezvous", "nprocPerNode"});
  if (said == nullptr) return 1;
  const std::string_view text = json::GetString(job, {"spec", "rendezvous", "nprocPerNode"});
  const int64_t ranks = said->is_string()
                            ? ParseInt(text).value_or(0)
                            : json::GetInt(job, {"spec", "rendezvous", "nprocPerNode"}, 1);
  return std::clamp<int64_t>(ranks, 0, 1'000'000);
}

bool CanChange(const json::Value& role) {
  const json::Value* elastic = json::Find(role, {"elastic"});
  if (elastic == nullptr) return false;
  const api::ReplicaBounds bounds(*elastic);
  return bounds.most && bounds.least < *bounds.most;
}

// The role that a default scales: the one that the job names, `worker`, or the only elastic one.
// Empty: none, or it is not clear which.
std::string RoleByDefault(const json::Value& job, const json::Value& scaling) {
  std::string named(json::GetString(scaling, {"role"}));
  std::vector<std::string> elastic;
  for (const auto& role : json::GetObject(job, {"spec", "roles"})) {
    if (CanChange(role.value())) elastic.emplace_back(role.key());
  }
  for (const std::string& role : elastic) {
    if (role == (named.empty() ? "worker" : named)) return role;
  }
  return named.empty() && elastic.size() == 1 ? elastic.front() : "";
}

}  // namespace

Result<std::optional<GoodputRole>> TrainingGoodputRole(const json::Value& job,
                                                       const ScalingDefault& by_default) {
  static const json::Value kSaysNothing = json::Object{};
  const json::Value* said = json::Find(job, {"spec", "autoscaling"});
  const json::Value* scaling = said == nullptr ? &kSaysNothing : said;
  const std::string_view mode = json::GetString(*scaling, {"mode"});
  GoodputRole target;
  if (mode.empty()) {
    // Metrics without a mode are somebody's own plan for the job.
    if (!by_default.goodput() || !json::GetArray(*scaling, {"metrics"}).empty()) {
      return std::optional<GoodputRole>();
    }
    target.default_of = by_default.said_by;
    target.role = RoleByDefault(job, *scaling);
    if (target.role.empty()) return std::optional<GoodputRole>();
  } else if (mode != "Goodput") {
    return std::optional<GoodputRole>();
  }
  if (!json::GetArray(*scaling, {"metrics"}).empty()) {
    return controllers::WrongField(
        "spec.autoscaling.metrics",
        "Forbidden: mode Goodput measures throughput itself; remove metrics, or use "
        "mode Metric");
  }
  if (target.role.empty()) target.role = json::GetString(*scaling, {"role"}, "worker");
  const json::Value* role = json::Find(job, {"spec", "roles", target.role});
  const json::Value* elastic = role != nullptr ? json::Find(*role, {"elastic"}) : nullptr;
  if (elastic == nullptr) {
    return controllers::WrongText("spec.autoscaling.role", target.role,
                                  "must be a role with elastic.minReplicas and maxReplicas");
  }
  target.path = {"spec", "roles", target.role, "replicas"};
  target.replicas = api::ReplicasOf(*role);
  for (const auto& other : json::GetObject(job, {"spec", "roles"})) {
    if (other.key() != target.role) target.others += api::ReplicasOf(other.value());
  }
  const api::ReplicaBounds bounds(*elastic);
  target.bounds.least = static_cast<int>(std::clamp<int64_t>(bounds.least, 1, INT32_MAX));
  target.bounds.most = static_cast<int>(
      std::clamp<int64_t>(bounds.most.value_or(target.replicas), target.bounds.least, INT32_MAX));
  target.ranks_per_member = RanksPerMember(job);
  const std::string_view batch = json::GetString(job, {"spec", "batch", "effective"});
  if (batch == "PerReplica") target.batch = goodput::BatchRule::kPerMember;
  if (batch == "Goodput") target.batch = goodput::BatchRule::kChosen;
  target.interval = std::chrono::seconds(
      std::clamp<int64_t>(json::GetInt(*scaling, {"intervalSeconds"}, 10), 1, kIntervalSecondsMax));
  target.observations = static_cast<int>(std::clamp<int64_t>(
      json::GetInt(*scaling, {"observations"}, target.observations), 1, kObservationsMax));
  SWELL_RETURN_IF_ERROR(ReadScaleTime(job, kScaleInterval, kScaleIntervalMin, target.interval));
  return std::optional<GoodputRole>(std::move(target));
}

}  // namespace swell::autoscaling
