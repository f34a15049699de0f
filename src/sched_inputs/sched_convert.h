// API objects as the scheduler's plain inputs.
// - Threads: pure functions. What cannot be read (a bad quantity that got past validation on
//   another server) counts as zero and never fails a cycle.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/value.h"
#include "kube/api/objects/project.h"
#include "sched/past_use.h"
#include "sched/state/types.h"

namespace swell::sched_inputs {

// Namespace and name of "ns/name"; without a slash it is a name.
std::pair<std::string, std::string> SplitKey(std::string_view key);

// An object by key, or null.
using FindObject = std::function<const json::Value*(std::string_view)>;

sched::NodeInfo ToNodeInfo(const json::Value& node);
// Names of the namespaces with labels that a namespaceSelector matches.
using NamespacesOf = std::function<std::vector<std::string>(const json::Value& selector)>;
// The names of those `namespaces` whose labels the selector matches.
std::vector<std::string> SelectNamespaces(const json::Value& selector,
                                          const std::vector<const json::Value*>& namespaces);
// What is in a project's namespace is charged to that project, whatever it says itself: else
// anybody could use what others are due. Elsewhere it says which. `namespaces` is asked for each
// namespaceSelector that says something; without it such a selector means all of them.
sched::PodInfo ToPodInfo(const json::Value& pod,
                         std::string_view namespace_project = {},
                         const NamespacesOf& namespaces = {});
sched::GroupInfo ToGroupInfo(const json::Value& pod_group,
                             const FindObject& priority_classes,
                             std::string_view namespace_project = {});
// nodeSelectorTerms.
std::vector<sched::NodeSelectorTerm> ToNodeTerms(const json::Array& terms);
// With its priority come the usual rules about who is preemptible.
void SetPriority(sched::PodInfo& pod, int32_t priority);
// What a pod's claims lead to.
struct StorageView {
  FindObject claims;
  FindObject volumes;
  FindObject classes;
  // Names of the claims of a namespace, for a pod that names none of them.
  std::function<std::vector<std::string>(std::string_view ns)> claims_of;
};
// Nodes that the pod's volumes can be used on: those their persistent volumes say; and which of its
// claims no other pod may use with it. What is wrong with the claims of a pod that waits, in
// kube-scheduler's words, is its obstacle.
void AddVolumeTerms(const json::Value& pod, const StorageView& storage, sched::PodInfo& out);
// nullopt for a budget without a selector, which covers no pods.
std::optional<sched::BudgetInfo> ToBudgetInfo(const json::Value& budget);
using api::NamespaceOfProject;
sched::QueueInfo ToQueueInfo(const json::Value& project);
// What its status says it used in the past, and the other way round (field pastUse).
std::vector<sched::PastUse> ToPastUse(const json::Value& project);
json::Value FromPastUse(const std::vector<sched::PastUse>& uses, std::string_view project);
sched::TopologyInfo ToTopologyInfo(const json::Value& topology);
sched::PoolInfo ToPoolInfo(const json::Value& node_pool);

// api::PodAmounts as the scheduler counts them.
sched::Resources PodRequests(const json::Value& pod_spec);
// api::HeldAmounts likewise: of a pod that may be resized while it runs.
sched::Resources HeldRequests(const json::Value& pod);
// Takes out the extended resources that a ResourceClaim of the pod asks for in its place.
void LeaveOutMapped(const json::Value& pod, sched::Resources& requests);

}  // namespace swell::sched_inputs
