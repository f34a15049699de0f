#include "sched_inputs/project_shares.h"

#include <utility>

#include "base/strings.h"
#include "kube/api/objects/project.h"

namespace swell::sched_inputs {
namespace {

std::optional<ProjectFault> CheckShares(std::string_view field, const api::ResourceShares& shares) {
  const std::pair<std::string_view, const api::ResourceShare*> all[] = {
      {"gpu", &shares.gpu}, {"cpu", &shares.cpu}, {"memory", &shares.memory}};
  for (const auto& [name, share] : all) {
    if (!share->limit || !share->quota || *share->limit < 0) continue;
    if (*share->quota <= *share->limit) continue;
    return ProjectFault{StrCat("spec.", field, ".", name, ".limit"),
                        StrCat("Invalid value: ", json::Print(*share->limit),
                               ": is below the quota of ", json::Print(*share->quota))};
  }
  return std::nullopt;
}

// Work beside Kubernetes' own would have that work's rights, and be charged for it.
std::optional<ProjectFault> CheckNamespace(const json::Value& project) {
  const std::string_view ns = api::NamespaceOfProject(project);
  if (!ns.starts_with("kube-")) return std::nullopt;
  const bool named = !json::GetString(project, {"spec", "namespace"}).empty();
  return ProjectFault{named ? "spec.namespace" : "metadata.name",
                      StrCat("Invalid value: ", Quote(ns),
                             ": namespaces that begin with \"kube-\" are Kubernetes' own; choose "
                             "another for the project's work",
                             named ? "" : " in spec.namespace, or another name")};
}

}  // namespace

std::optional<ProjectFault> FindProjectFault(const json::Value& project) {
  if (auto fault = CheckNamespace(project)) return fault;
  const api::ProjectSpec spec(project);
  if (auto fault = CheckShares("resources", spec.shares)) return fault;
  for (size_t i = 0; i < spec.pools.size(); ++i) {
    if (auto fault = CheckShares(StrCat("nodePools[", i, "].resources"), spec.pools[i].shares)) {
      return fault;
    }
  }
  return std::nullopt;
}

}  // namespace swell::sched_inputs
