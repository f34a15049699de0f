// Amounts: what a pod requests or may use, by resource name.
//
// The scheduler, the node agent, admission, quotas and the command line all sum a pod with
// PodAmounts, so that they agree about it.
// - Threads: pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "json/value.h"
#include "kube/api/meta/quantity.h"

namespace swell::api {

inline constexpr std::string_view kGpuResource = "nvidia.com/gpu";

using Amounts = std::map<std::string, Quantity, std::less<>>;

// {cpu: "1", memory: 2Gi}; null is empty. Values that are not quantities are left out.
Amounts ReadAmounts(const json::Value* list);
Amounts ReadAmounts(const json::Value& object, json::Path path);
void Add(Amounts& to, const Amounts& more);
json::Object ToJson(const Amounts& amounts);

enum class AmountField { kRequests, kLimits };

// A container's requests or limits. A limit without a request counts as a request.
Amounts ContainerAmounts(const json::Value& container, AmountField field);

// The sum of a pod's containers and sidecars, or what an init container needs beside the sidecars
// started before it where that is more (Kubernetes' KEP 753).
Amounts ContainersAmounts(const json::Value& pod_spec, AmountField field);

// Amounts of a pod as a whole (spec.resources, KEP 2837), which its containers share.
struct WholePodAmounts {
  Amounts requests, limits;
  bool empty() const { return requests.empty() && limits.empty(); }
};
bool IsHugePages(std::string_view resource);
// CPU, memory and huge pages: what a pod as a whole may have.
bool IsOfWholePod(std::string_view resource);
// Requests and limits are complete. A missing request is the sum of the containers' requests, or
// else the limit. A missing limit is the sum of the containers' limits, if each of them has one.
// Empty if the spec has neither.
WholePodAmounts ReadWholePod(const json::Value& pod_spec);
// Writes into spec.resources what ReadWholePod adds to it.
void CompleteWholePod(json::Value& pod_spec);

// What a pod needs to run, from its spec: ContainersAmounts; amounts of the pod as a whole in their
// place; plus overhead.
Amounts PodAmounts(const json::Value& pod_spec, AmountField field);

// What a pod holds of its node, or is about to hold. For each container, and for a pod with amounts
// as a whole, that is the larger of the request and of what the node gave. So a resize that waits
// for room counts with the larger amount. A resize that the node can never give counts with what
// the pod has (KEP 1287).
Amounts HeldAmounts(const json::Value& pod);

// Guaranteed where limits of CPU and memory equal the requests in all containers, BestEffort where
// there are neither anywhere, else Burstable. Amounts of the pod as a whole decide alone.
std::string_view QosClass(const json::Value& pod);

// An init container that keeps running beside the pod's containers.
bool IsSidecar(const json::Value& init_container);

}  // namespace swell::api
