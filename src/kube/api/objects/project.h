// Project: a share of the cluster and the people who use it, read from its document in one place.
// - Threads: pure functions.
// - Ownership: the structs own their texts; other texts are the document's, valid while it lives.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "json/value.h"

namespace swell::api {

// The most ancestors that a project has. A longer chain counts as a cycle.
inline constexpr int kProjectDepthMax = 64;

// What a project may have of one resource, in GPUs, cores or bytes. Below zero: no bound. Absent:
// the document does not say.
struct ResourceShare {
  std::optional<double> quota, limit, lending_limit, over_quota_weight;
};

struct ResourceShares {
  ResourceShare gpu, cpu, memory;
};

struct ProjectPool {
  std::string name;
  ResourceShares shares;
};

struct ProjectSpec {
  explicit ProjectSpec(const json::Value& project);

  std::string parent;  // the project that this one is a part of; empty for a root
  std::string ns;      // the namespace of its workloads
  std::string description;
  int64_t priority = 100;
  bool has_shares = false;  // spec.resources is given
  ResourceShares shares;
  std::vector<ProjectPool> pools;
  // Absent: the scheduler's own bounds.
  std::optional<int64_t> min_runtime_seconds, reclaim_min_runtime_seconds;
  // spec.users: how many GPUs the work of one user may hold, and whether the work of who holds less
  // goes first.
  std::optional<double> user_gpu_limit;
  bool fair_to_users = false;
  // The mode of elastic jobs that name none (spec.autoscaling.default); empty: as the parent's.
  std::string autoscaling_default;
  std::string pod_security;  // of its namespace; empty: the namespace's own, or the usual one

  // A project that lists pools has no quota in other pools unless it gives one for all.
  bool HasQuotaInOtherPools() const { return has_shares || pools.empty(); }
  // Its quota and limit of all pools together. A project that lists no pools has one of each, which
  // counts wherever its work runs.
  ResourceShare Whole(ResourceShare ResourceShares::*resource) const;
};

// What the scheduler last reported of one resource.
struct ResourceUsage {
  double allocated = 0, requested = 0;
  std::optional<double> fair_share;
};
ResourceUsage UsageOf(const json::Value& project, std::string_view resource);

// The same of one node pool. The quota is absent where one quota counts in all pools.
struct PoolUsage {
  std::string pool;  // empty: nodes of no pool
  std::optional<double> quota;
  ResourceUsage usage;
};
// Empty if the cluster has no pools.
std::vector<PoolUsage> PoolUsageOf(const json::Value& project, std::string_view resource);

// What the project used before, as the scheduler counts it against it.
struct PoolPastUse {
  std::string pool;
  double gpu_hours = 0, cpu_hours = 0, memory_gib_hours = 0;
};
struct ProjectPastUse {
  WallTime as_of;
  std::vector<PoolPastUse> pools;
};
std::optional<ProjectPastUse> PastUseOf(const json::Value& project);

struct ProjectMember {
  explicit ProjectMember(const json::Value& document);
  explicit ProjectMember(const json::Value&&) = delete;

  std::string_view kind;  // User, Group, ServiceAccount
  std::string_view name;
  std::string_view ns;  // of a ServiceAccount; empty: the project's namespace
  std::string_view role;

  // Its ClusterRole in the project's namespace. The API server checks that the writer may give this
  // role; a controller creates the role binding.
  std::string_view ClusterRole() const { return role == "admin" ? "project-admin" : role; }
  bool SameSubject(const ProjectMember& other) const {
    return kind == other.kind && name == other.name && ns == other.ns;
  }
};
const json::Array& MembersOf(const json::Value& project);

// Two facts of the spec for code that needs no others.
std::string_view NamespaceOfProject(const json::Value& project);
std::string_view ParentOfProject(const json::Value& project);

// The project of each namespace: work belongs to the leaf whose namespace it is in.
std::map<std::string, std::string, std::less<>> ProjectsByNamespace(
    const std::vector<const json::Value*>& projects);

}  // namespace swell::api
