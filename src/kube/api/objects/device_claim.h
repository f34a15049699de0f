// DeviceClaim: claims to devices (resource.k8s.io) and what pods say of them, read in one place.
// - Threads: pure functions.
// - Ownership: texts are the documents' own, valid while those live, where a struct does not say
//   std::string.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "kube/api/meta/quantity.h"

namespace swell::api {

// The driver of the GPUs of Swell's own nodes, and the class of them all.
inline constexpr std::string_view kGpuDriver = "gpu.swell.dev";
// Keeps a claim until its devices are given back; kube-controller-manager knows it by this name.
inline constexpr std::string_view kDeviceClaimFinalizer =
    "resource.kubernetes.io/delete-protection";
// On a claim that was made from a template: the pod's name for it.
inline constexpr std::string_view kPodClaimName = "resource.kubernetes.io/pod-claim-name";

// On the claim to what a pod requests as extended resources: "true".
inline constexpr std::string_view kExtendedClaim = "resource.kubernetes.io/extended-resource-claim";
// The name that such a claim has among the pod's own. Nobody can write it into a pod.
inline constexpr std::string_view kExtendedClaimName = "<extended-resources>";

// One of the claims that a pod's containers can use.
struct PodClaim {
  std::string_view name;           // the pod's own name for it
  std::string_view claim;          // the ResourceClaim; empty: none was made yet, or none is needed
  std::string_view template_name;  // from which it is made; empty: somebody else makes it
  bool needless = false;           // the template asks for nothing: there is no claim
};
bool HasDeviceClaims(const json::Value& pod);
std::vector<PodClaim> DeviceClaimsOf(const json::Value& pod);

// Which request of the pod's claim to extended resources serves which container.
struct MappedRequest {
  std::string_view container, resource, request;
};
bool HasExtendedClaim(const json::Value& pod);
std::vector<MappedRequest> MappedRequestsOf(const json::Value& pod);

// Amounts of a device's capacities, by name.
using DeviceAmounts = std::map<std::string, Quantity, std::less<>>;

// A toleration of taints of devices.
struct DeviceToleration {
  std::string key;      // empty: every key
  bool exists = false;  // whatever the value is
  std::string value;
  std::string effect;              // empty: every effect
  std::optional<int64_t> seconds;  // for how long NoExecute is tolerated; empty: for ever
  const json::Value* document = nullptr;

  bool Tolerates(const json::Value& taint) const;
};

std::vector<DeviceToleration> TolerationsOfDevices(const json::Value& holder);
// Whether a DeviceTaintRule taints the device.
bool RuleTaints(const json::Value& rule,
                std::string_view driver,
                std::string_view pool,
                std::string_view device);

// Devices of one class. A request that names several of these wants the first that can be had.
struct DeviceAlternative {
  std::string request;  // as allocations name it: "gpu", or "gpu/large" of several
  std::string_view device_class;
  std::vector<std::string_view> selectors;  // conditions in CEL
  bool all = false;                         // of the node, instead of `count`
  int64_t count = 1;
  bool admin = false;     // to look after devices that others use
  DeviceAmounts amounts;  // of each device
  std::vector<DeviceToleration> tolerations;
};
struct ClaimRequest {
  std::string_view name;
  std::vector<DeviceAlternative> alternatives;  // best first
};
// What devices of several requests have in common.
struct DeviceMatch {
  std::string_view attribute;
  std::vector<std::string_view> requests;  // empty: all
  bool distinct = false;                   // the attribute differs for each instead
};
struct ClaimAsks {
  explicit ClaimAsks(const json::Value& claim);
  std::vector<ClaimRequest> requests;
  std::vector<DeviceMatch> matches;
};
// The conditions of a class.
std::vector<std::string_view> ClassSelectors(const json::Value& device_class);

struct AllocatedDevice {
  std::string_view request, driver, pool, device;
  bool admin = false;
  const json::Value* document = nullptr;
};
bool IsAllocated(const json::Value& claim);
std::vector<AllocatedDevice> AllocatedDevices(const json::Value& claim);

// A user of a claim.
struct ClaimConsumer {
  std::string_view resource, name, uid;
};
std::vector<ClaimConsumer> ConsumersOf(const json::Value& claim);
bool IsReservedFor(const json::Value& claim, std::string_view uid);
// The uid of the pod for which it was made; empty: for no single pod.
std::string PodOfClaim(const json::Value& claim);

// The devices of a pod that a container uses: its requests of the claim, or all of them.
struct ContainerClaim {
  std::string_view claim;    // the pod's name for it
  std::string_view request;  // empty: all
};
std::vector<ContainerClaim> ContainerClaims(const json::Value& container);
// Whether devices that were allocated for `request` are meant by `asked`, which may name the
// request of several ways.
bool IsOfRequest(std::string_view request, std::string_view asked);

}  // namespace swell::api
