// The pieces of ValidateObject, by area. Each appends to `errors`, with Kubernetes' wording.
// - Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "kube/api/schema/field_rules.h"
#include "kube/api/schema/scheme.h"

namespace swell::api {

void CheckMetadata(const KindInfo& kind,
                   const json::Value& object,
                   const json::Value* old,
                   FieldErrors& errors);
// What is counted in a container, a pod or a claim; a quantity that is not negative, and whole
// where it counts devices.
void CheckContainerResourceName(std::string_view name, const std::string& at, FieldErrors& errors);
void CheckResourceName(std::string_view name, const std::string& at, FieldErrors& errors);
void CheckQuantity(std::string_view name,
                   const json::Value& value,
                   const std::string& at,
                   FieldErrors& errors);
void CheckResources(const json::Value& resources, const std::string& path, FieldErrors& errors);
// The amounts of a pod as a whole, in its spec: `path` is theirs.
void CheckWholePod(const json::Value& spec, const std::string& path, FieldErrors& errors);
void CheckQuota(const json::Value& quota, const json::Value* old, FieldErrors& errors);
void CheckLimitRange(const json::Value& object, FieldErrors& errors);

void CheckPod(const json::Value& pod, FieldErrors& errors);
void CheckPodSpec(const json::Value& spec, const std::string& path, FieldErrors& errors);
void CheckVolumes(const json::Value& spec, const std::string& path, FieldErrors& errors);
// The fields of a volume's source of that name, in a pod or a PersistentVolume.
void CheckVolumeFields(std::string_view source,
                       const json::Value& fields,
                       const std::string& path,
                       FieldErrors& errors);
void CheckDriverName(std::string_view name, const std::string& at, FieldErrors& errors);
bool GoesUp(std::string_view path);
// A path that stays below where it starts.
void CheckDescendingPath(std::string_view target, const std::string& at, FieldErrors& errors);
// The fields of its pod that a variable can have as its value, besides one label or annotation.
const std::vector<std::string>& FieldsForVariables();
// References to fields and resources of the pod; `known` are the fields that may be named here.
void CheckFieldRef(const json::Value& ref,
                   const std::vector<std::string>& known,
                   const std::string& at,
                   FieldErrors& errors);
void CheckResourceRef(const json::Value& ref,
                      bool volume,
                      const std::string& at,
                      FieldErrors& errors);
// A user's or a group's number.
void CheckId(const json::Value& holder,
             std::string_view key,
             const std::string& at,
             FieldErrors& errors);
// The name of a signer of certificates: "example.com/signer".
void CheckSignerName(std::string_view signer, const std::string& at, FieldErrors& errors);
inline constexpr int64_t kShortestPodCertificateSeconds = 3600;
int64_t LongestPodCertificateSeconds(std::string_view signer);
void CheckPodSecurity(const json::Value& spec, const std::string& path, FieldErrors& errors);
void CheckContainerSecurity(const json::Value& container,
                            const std::string& path,
                            FieldErrors& errors);
void CheckSecurityAnnotations(const json::Value& pod, FieldErrors& errors);
void CheckTolerations(const json::Array& tolerations, const std::string& path, FieldErrors& errors);
void CheckNodeSelectorTerms(const json::Value& selector,
                            const std::string& path,
                            FieldErrors& errors);
void CheckAffinity(const json::Value& spec, const std::string& path, FieldErrors& errors);
void CheckLifecycle(const json::Value& container, const std::string& path, FieldErrors& errors);
// The container's probe of that name, when it has one.
void CheckProbe(const json::Value& container,
                std::string_view key,
                const std::string& path,
                FieldErrors& errors);
void CheckPodUpdate(const json::Value& pod, const json::Value& old, FieldErrors& errors);
// Containers added to look into a running pod: those that were there stay as they were.
void CheckEphemeralContainers(const json::Value& spec, const json::Value& old, FieldErrors& errors);
// The spec of a claim to a volume that is made, or of a template of such.
void CheckNewClaim(const json::Value& spec, const std::string& path, FieldErrors& errors);
void CheckPodTemplate(const json::Value& holder, const std::string& path, FieldErrors& errors);

// The rules of an area's kinds. False: the kind is of another.
bool CheckWorkload(const KindInfo& kind,
                   const json::Value& object,
                   const json::Value* old,
                   FieldErrors& errors);
bool CheckNetwork(const KindInfo& kind,
                  const json::Value& object,
                  const json::Value* old,
                  FieldErrors& errors);
bool CheckStorage(const KindInfo& kind,
                  const json::Value& object,
                  const json::Value* old,
                  FieldErrors& errors);
bool CheckConfig(const KindInfo& kind,
                 const json::Value& object,
                 const json::Value* old,
                 FieldErrors& errors);
// What admits requests: webhooks and policies.
bool CheckAdmission(const KindInfo& kind, const json::Value& object, FieldErrors& errors);
// Nodes, and what is registered with a cluster.
bool CheckRegistered(const KindInfo& kind,
                     const json::Value& object,
                     const json::Value* old,
                     FieldErrors& errors);
bool CheckPolicy(const KindInfo& kind,
                 const json::Value& object,
                 const json::Value* old,
                 FieldErrors& errors);
// What resource.k8s.io's kinds must obey beyond their schemas, which still say what is required.
void CheckDeviceKinds(const KindInfo& kind,
                      const json::Value& object,
                      const json::Value* old,
                      FieldErrors& errors);
// What failures and successes of pods mean to a job, and who manages it, in its spec.
void CheckJobPolicies(const json::Value& spec, const std::string& path, FieldErrors& errors);
// How a job's pods are placed as a group, in its spec; `before` may be null.
void CheckJobScheduling(const json::Value& spec,
                        const json::Value* before,
                        const std::string& path,
                        FieldErrors& errors);
// The same of Kubernetes' own gangs.
void CheckGroupKinds(const KindInfo& kind,
                     const json::Value& object,
                     const json::Value* old,
                     FieldErrors& errors);

}  // namespace swell::api
