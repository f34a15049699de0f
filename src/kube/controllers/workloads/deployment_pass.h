// DeploymentPass: one reconcile pass over one Deployment. Private to deployment*.cc.
// - Threads: core executor only.
#pragma once

#include "kube/controllers/workloads/deployment.h"

namespace swell::controllers {

namespace deployment_keys {
inline constexpr std::string_view kHash = "pod-template-hash";
inline constexpr std::string_view kRevision = "deployment.kubernetes.io/revision";
inline constexpr std::string_view kRevisionHistory = "deployment.kubernetes.io/revision-history";
inline constexpr std::string_view kDesired = "deployment.kubernetes.io/desired-replicas";
inline constexpr std::string_view kMost = "deployment.kubernetes.io/max-replicas";
}  // namespace deployment_keys

struct DeploymentController::Pass {
  std::string key;
  json::SharedValue deployment;
  std::shared_ptr<WriteBatch> writes;
  WallTime now;
  int64_t wanted = 0, surge = 0, unavailable = 0;
  bool recreate = false, paused = false;
  json::SharedValue fresh;             // the ReplicaSet of the present template, or null
  std::vector<json::SharedValue> old;  // the others, oldest first
  json::Object annotations;            // to be set on the Deployment
  std::string created;                 // the new ReplicaSet, when this pass has made it
  bool collided = false;

  std::vector<json::SharedValue> All() const {
    std::vector<json::SharedValue> all = old;
    if (fresh) all.push_back(fresh);
    return all;
  }
};

inline int64_t SpecReplicas(const json::Value& set) {
  return json::GetInt(set, {"spec", "replicas"}, 1);
}
inline int64_t StatusOf(const json::Value& set, std::string_view field) {
  return json::GetInt(set, {"status", field});
}
inline int64_t Sum(const std::vector<json::SharedValue>& sets, std::string_view status_field) {
  int64_t sum = 0;
  for (const json::SharedValue& set : sets) sum += StatusOf(*set, status_field);
  return sum;
}
inline int64_t SumSpec(const std::vector<json::SharedValue>& sets) {
  int64_t sum = 0;
  for (const json::SharedValue& set : sets) sum += SpecReplicas(*set);
  return sum;
}

}  // namespace swell::controllers
