// From a Pod object to what a runtime is told: resources, environment, volumes, containers.
// - Threads: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "kube/api/objects/amounts.h"
#include "kube/node/runtime/runtime.h"
#include "kube/node/spec/pod_sources.h"

namespace swell::node {

using api::kGpuResource;

// Amounts by resource name: CPU in thousandths, everything else in whole units.
using Amounts = std::map<std::string, int64_t, std::less<>>;

// api::PodAmounts in whole numbers.
Amounts PodRequests(const json::Value& pod);
Amounts ReadAmounts(const json::Value* resource_list);
std::string FormatAmount(std::string_view resource, int64_t amount);
int64_t GraceSeconds(const json::Value& pod);  // of spec, 30 when absent

// "namespace/group-ownerprefix": where all incarnations of a pod's job keep checkpoints.
std::string CheckpointKey(const json::Value& pod);
// The uid of the job whose member the pod is; empty for pods of Kubernetes' own workloads.
std::string JobUid(const json::Value& pod);

using EnvList = std::vector<std::pair<std::string, std::string>>;

// What the environment may refer to beyond the sources.
struct EnvContext {
  const json::Value& pod;
  const PodSources& sources;
  std::string pod_ip;
  std::string host_ip;
  Amounts allocatable;  // limits that neither a container nor its pod sets read as the node's
  EnvList service_env;  // Docker-style service variables, first and weakest
};

// $(NAME) of earlier variables, $$ for a dollar; unknown names stay as they are.
std::string ExpandVariables(std::string_view text, const EnvList& env);
// kNotFound names the missing, not optional source.
Result<EnvList> ContainerEnv(const EnvContext& context, const json::Value& container);

// Everything about a container but its volumes' content and GPU variables.
Result<ContainerSpec> MakeContainerSpec(const EnvContext& context,
                                        const json::Value& container,
                                        int attempt);

// From requests and limits of a container.
CpuAndMemory CpuAndMemoryOf(const json::Value& resources);
// A container's requests and limits, with the limits of its pod where it has none of its own. As
// the kubelet has it, what it does not request then weighs as much, too.
json::Value WithPodLimits(json::Value resources, const json::Value* of_pod);
// What the containers of the pod may use together, with overhead; none where the spec says nothing
// of it.
std::optional<CpuAndMemory> WholePod(const json::Value& pod_spec);

// The pod's volumes with their content; kNotFound or kInvalid names volume and source.
Result<std::vector<VolumeSpec>> ResolveVolumes(const json::Value& pod,
                                               const PodSources& sources,
                                               const EnvContext& context);

// One sentence for each claim whose volume nodes do not mount: a directory stands in for it.
std::vector<std::string> FindStandIns(const json::Value& pod, const PodSources& sources);

// "metadata.labels['a']", "spec.nodeName", …; kInvalid for what Kubernetes does not offer.
Result<std::string> FieldRef(const EnvContext& context, std::string_view path);
Result<std::string> ResourceFieldRef(const EnvContext& context,
                                     const json::Value& ref,
                                     const json::Value* container);

// That of the pod as a whole, or the sum of the memory limits of its main containers; 0 where one
// has none.
int64_t PodMemoryLimit(const json::Value& pod);
// A container of any list by name, or nullptr.
const json::Value* FindContainer(const json::Value& pod, std::string_view name);

}  // namespace swell::node
