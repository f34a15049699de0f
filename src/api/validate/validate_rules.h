// The pieces of ValidateObject, by area. Each appends to `errors`, with Kubernetes' wording.
// Thread-safety: pure functions.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "api/scheme.h"
#include "api/validate/field_errors.h"

namespace swell::api {

using FieldErrors = std::vector<FieldError>;

// The member as text; "" when it is absent or something else.
std::string_view TextOf(const json::Value& parent, std::string_view key);
const json::Value* MemberOf(const json::Value& parent, std::string_view key);
// The value as text; "" when it is something else.
std::string_view TextIn(const json::Value& value);
// The object's spec; an absent one is an empty one, as to a server that has types.
const json::Value& SpecOf(const json::Value& object);

// Name rules used by several areas. Empty answer: fine.
std::string CheckDns1035Label(std::string_view name);
std::string CheckPathSegmentName(std::string_view name);
std::string CheckConfigMapKey(std::string_view key);
std::string CheckIp(std::string_view ip);
bool IsCidr(std::string_view range);  // "10.0.0.0/8"
std::string CheckPort(int64_t port);
std::string CheckEnvVarName(std::string_view name);

// A key as labels have it; told under `path`, with all that is wrong.
void CheckQualified(std::string_view key,
                    const std::string& path,
                    FieldErrors& errors,
                    bool any_case = false);
void CheckMetadata(const KindInfo& kind,
                   const json::Value& object,
                   const json::Value* old,
                   FieldErrors& errors);
void CheckLabels(const json::Value& labels, const std::string& path, FieldErrors& errors);
void CheckAnnotations(const json::Value& annotations, const std::string& path, FieldErrors& errors);
void CheckLabelSelector(const json::Value& selector, const std::string& path, FieldErrors& errors);
void CheckNonNegative(const json::Value& parent,
                      std::string_view key,
                      const std::string& path,
                      FieldErrors& errors);
// One of the values, or nothing where a default is meant.
void CheckOneOf(const json::Value& parent,
                std::string_view key,
                const std::string& path,
                const std::vector<std::string>& supported,
                FieldErrors& errors);
// A DNS subdomain, or nothing.
void CheckSubdomain(const json::Value& parent,
                    std::string_view key,
                    const std::string& path,
                    FieldErrors& errors);
// The name of a container or volume: a DNS label that `names`, those before it, have not.
void CheckItemName(const json::Value& item,
                   const std::string& at,
                   std::set<std::string>& names,
                   FieldErrors& errors);
// An IANA service name. Answers whether it is one.
bool CheckPortName(std::string_view name, const std::string& path, FieldErrors& errors);
// A number of a port, or the name of one.
void CheckPortOrName(const json::Value& port, const std::string& path, FieldErrors& errors);
// A count, or a share of all: "25%".
void CheckIntOrPercent(const json::Value& parent,
                       std::string_view key,
                       const std::string& path,
                       FieldErrors& errors);
void CheckNotAbove100Percent(const json::Value& parent,
                             std::string_view key,
                             const std::string& path,
                             FieldErrors& errors);
// Invalid values that are shown as Go shows their types.
FieldError InvalidIntOrText(std::string path, const json::Value& value, std::string_view detail);
FieldError InvalidQuantity(std::string path, const json::Value& amount, std::string_view detail);
FieldError InvalidTexts(std::string path, const json::Array& texts, std::string_view detail);
// What is counted in a container, a pod or a claim; a quantity that is not negative, and whole
// where it counts devices.
void CheckContainerResourceName(std::string_view name, const std::string& at, FieldErrors& errors);
void CheckResourceName(std::string_view name, const std::string& at, FieldErrors& errors);
void CheckQuantity(std::string_view name,
                   const json::Value& value,
                   const std::string& at,
                   FieldErrors& errors);
// A map of resource names to quantities.
void CheckResourceList(const json::Value& list, const std::string& path, FieldErrors& errors);
void CheckResources(const json::Value& resources, const std::string& path, FieldErrors& errors);
void CheckQuota(const json::Value& quota, const json::Value* old, FieldErrors& errors);
void CheckLimitRange(const json::Value& object, FieldErrors& errors);
// `path`'s value changed although it may not.
void CheckImmutable(const json::Value* now,
                    const json::Value* before,
                    const std::string& path,
                    FieldErrors& errors,
                    std::string_view detail = "field is immutable");

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
// References to fields and resources of the pod; `known` are the fields that may be named here.
void CheckFieldRef(const json::Value& ref,
                   const std::vector<std::string>& known,
                   const std::string& at,
                   FieldErrors& errors);
void CheckResourceRef(const json::Value& ref,
                      bool volume,
                      const std::string& at,
                      FieldErrors& errors);
void CheckPodSecurity(const json::Value& spec, const std::string& path, FieldErrors& errors);
void CheckContainerSecurity(const json::Value& container,
                            const std::string& path,
                            FieldErrors& errors);
void CheckSecurityAnnotations(const json::Value& pod, FieldErrors& errors);
void CheckTolerations(const json::Value& spec, const std::string& path, FieldErrors& errors);
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
// Where a webhook is: a URL or a service; and the versions of reviews that it knows.
void CheckHookClient(const json::Value* client, const std::string& at, FieldErrors& errors);
void CheckReviewVersions(const json::Array& versions,
                         const std::string& at,
                         FieldErrors& errors,
                         std::string_view missing = {});
// Nodes, and what is registered with a cluster.
bool CheckRegistered(const KindInfo& kind,
                     const json::Value& object,
                     const json::Value* old,
                     FieldErrors& errors);
bool CheckPolicy(const KindInfo& kind,
                 const json::Value& object,
                 const json::Value* old,
                 FieldErrors& errors);

}  // namespace swell::api
