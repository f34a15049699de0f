#include "kube/api/objects/project.h"

#include <algorithm>
#include <set>

#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"

namespace swell::api {
namespace {

std::optional<double> NumberAt(const json::Value& holder, json::Path path) {
  const json::Value* value = json::Find(holder, path);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

// A number, or a quantity as text.
std::optional<double> AmountAt(const json::Value& holder, json::Path path) {
  const json::Value* value = json::Find(holder, path);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return value->to_number<double>();
  const auto quantity = Quantity::FromJson(*value);
  if (!quantity.ok()) return std::nullopt;
  return static_cast<double>(quantity->MilliValue()) / 1000.0;
}

ResourceShare ReadShare(const json::Value& holder, std::string_view resource) {
  return {.quota = AmountAt(holder, {"resources", resource, "quota"}),
          .limit = AmountAt(holder, {"resources", resource, "limit"}),
          .lending_limit = AmountAt(holder, {"resources", resource, "lendingLimit"}),
          .over_quota_weight = AmountAt(holder, {"resources", resource, "overQuotaWeight"})};
}

// `holder` has `resources`: a project's spec, or one of its pools.
ResourceShares ReadShares(const json::Value& holder) {
  return {.gpu = ReadShare(holder, "gpu"),
          .cpu = ReadShare(holder, "cpu"),
          .memory = ReadShare(holder, "memory")};
}

std::optional<int64_t> SecondsAt(const json::Value& spec, std::string_view field) {
  const json::Value* value = json::Find(spec, {field});
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return json::GetInt(spec, {field});
}

}  // namespace

ProjectSpec::ProjectSpec(const json::Value& project)
    : parent(ParentOfProject(project)), ns(NamespaceOfProject(project)) {
  const json::Value& spec = Spec(project);
  description = json::GetString(spec, {"description"});
  priority = json::GetInt(spec, {"priority"}, priority);
  has_shares = json::Find(spec, {"resources"}) != nullptr;
  shares = ReadShares(spec);
  for (const json::Value& pool : json::GetArray(spec, {"nodePools"})) {
    pools.push_back({std::string(json::GetString(pool, {"name"})), ReadShares(pool)});
  }
  min_runtime_seconds = SecondsAt(spec, "minRuntimeSeconds");
  reclaim_min_runtime_seconds = SecondsAt(spec, "reclaimMinRuntimeSeconds");
  user_gpu_limit = AmountAt(spec, {"users", "gpuLimit"});
  fair_to_users = json::GetBool(spec, {"users", "fairShare"});
  autoscaling_default = json::GetString(spec, {"autoscaling", "default"});
  pod_security = json::GetString(spec, {"podSecurity"});
}

ResourceShare ProjectSpec::Whole(ResourceShare ResourceShares::*resource) const {
  constexpr double kUnlimited = -1;
  const auto add = [](std::optional<double>& sum, double more) {
    sum = *sum < 0 || more < 0 ? kUnlimited : *sum + more;
  };
  const double usual = HasQuotaInOtherPools() ? kUnlimited : 0;
  ResourceShare whole = shares.*resource;
  whole.quota = whole.quota.value_or(usual);
  whole.limit = whole.limit.value_or(usual);
  for (const ProjectPool& pool : pools) {
    const ResourceShare& more = pool.shares.*resource;
    add(whole.quota, more.quota.value_or(kUnlimited));
    add(whole.limit, more.limit.value_or(kUnlimited));
    if (!whole.over_quota_weight) whole.over_quota_weight = more.over_quota_weight;
  }
  return whole;
}

namespace {

// `holder` has `usage`: a project's status, or one of its pools.
ResourceUsage ReadUsage(const json::Value& holder, std::string_view resource) {
  return {.allocated = NumberAt(holder, {"usage", resource, "allocated"}).value_or(0),
          .requested = NumberAt(holder, {"usage", resource, "requested"}).value_or(0),
          .fair_share = NumberAt(holder, {"usage", resource, "fairShare"})};
}

}  // namespace

ResourceUsage UsageOf(const json::Value& project, std::string_view resource) {
  const json::Value* status = FindStatus(project);
  return status == nullptr ? ResourceUsage{} : ReadUsage(*status, resource);
}

std::vector<PoolUsage> PoolUsageOf(const json::Value& project, std::string_view resource) {
  std::vector<PoolUsage> pools;
  for (const json::Value& pool : json::GetArray(project, {"status", "pools"})) {
    pools.push_back({.pool = std::string(json::GetString(pool, {"name"})),
                     .quota = NumberAt(pool, {"usage", resource, "quota"}),
                     .usage = ReadUsage(pool, resource)});
  }
  return pools;
}

std::optional<ProjectPastUse> PastUseOf(const json::Value& project) {
  const auto as_of = ParseTime(json::GetString(project, {"status", "pastUse", "asOf"}));
  if (!as_of) return std::nullopt;
  ProjectPastUse past{.as_of = *as_of};
  for (const json::Value& pool : json::GetArray(project, {"status", "pastUse", "pools"})) {
    past.pools.push_back({.pool = std::string(json::GetString(pool, {"pool"})),
                          .gpu_hours = NumberAt(pool, {"gpuHours"}).value_or(0),
                          .cpu_hours = NumberAt(pool, {"cpuHours"}).value_or(0),
                          .memory_gib_hours = NumberAt(pool, {"memoryGibHours"}).value_or(0)});
  }
  return past;
}

ProjectMember::ProjectMember(const json::Value& document)
    : kind(json::GetString(document, {"kind"}, "User")),
      name(json::GetString(document, {"name"})),
      ns(json::GetString(document, {"namespace"})),
      role(json::GetString(document, {"role"}, "viewer")) {}

const json::Array& MembersOf(const json::Value& project) {
  return json::GetArray(project, {"spec", "members"});
}

std::string_view NamespaceOfProject(const json::Value& project) {
  const std::string_view ns = json::GetString(project, {"spec", "namespace"});
  return ns.empty() ? Name(project) : ns;
}

std::string_view ParentOfProject(const json::Value& project) {
  return json::GetString(project, {"spec", "parent"});
}

std::map<std::string, std::string, std::less<>> ProjectsByNamespace(
    const std::vector<const json::Value*>& projects) {
  std::set<std::string_view> parents;
  for (const json::Value* it : projects) parents.insert(ParentOfProject(*it));
  std::vector<const json::Value*> leaves;
  for (const json::Value* it : projects) {
    if (!parents.contains(Name(*it))) leaves.push_back(it);
  }
  std::sort(leaves.begin(), leaves.end(),
            [](const json::Value* a, const json::Value* b) { return Name(*a) < Name(*b); });
  std::map<std::string, std::string, std::less<>> found;
  for (const json::Value* it : leaves) {
    found.try_emplace(std::string(NamespaceOfProject(*it)), Name(*it));
  }
  return found;
}

}  // namespace swell::api
