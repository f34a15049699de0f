#include "sched_inputs/sched_convert.h"

#include <algorithm>

#include "base/nearest_word.h"
#include "base/strings.h"
#include "json/texts.h"
#include "kube/api/meta/failure_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/selector.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/device_claim.h"
#include "kube/api/objects/node.h"
#include "kube/api/objects/node_health.h"
#include "kube/api/objects/node_pool.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_claims.h"
#include "kube/api/objects/pod_group.h"
#include "kube/api/objects/project.h"
#include "kube/controllers/cluster/volume_match.h"
#include "kube/controllers/context.h"
#include "sched/state/exclusive_claims.h"
#include "sched/state/unhealthy.h"
#include "sched_inputs/goodput_note.h"
#include "sched_inputs/gpu_request.h"

namespace swell::sched_inputs {
namespace {

// With projects, a class below this is preemptible unless the job says otherwise (build = 100).
constexpr int32_t kProjectPreemptibleBelow = 100;
constexpr int32_t kSystemCriticalFrom = 2'000'000'000;

// Amounts below zero count as nothing.
sched::Resources ToResources(const api::Amounts& amounts) {
  sched::Resources out;
  for (const auto& [name, amount] : amounts) {
    if (amount.negative()) continue;
    if (name == "cpu") {
      out.cpu_milli = amount.MilliValue();
    } else if (name == "memory") {
      out.memory_bytes = amount.Value();
    } else if (name == "ephemeral-storage") {
      out.ephemeral_bytes = amount.Value();
    } else if (name == "pods") {
      out.pods = amount.Value();
    } else if (!amount.zero()) {
      out.extended[name] = amount.Value();
    }
  }
  return out;
}

sched::Labels ToLabels(const json::Object& object) {
  sched::Labels labels;
  for (const auto& [key, value] : object) {
    if (value.is_string()) labels[std::string(key)] = json::View(value.get_string());
  }
  return labels;
}

std::optional<sched::TaintEffect> ToEffect(std::string_view text) {
  if (text == "NoSchedule") return sched::TaintEffect::kNoSchedule;
  if (text == "PreferNoSchedule") return sched::TaintEffect::kPreferNoSchedule;
  if (text == "NoExecute") return sched::TaintEffect::kNoExecute;
  return std::nullopt;
}

sched::SelectorOp ToOp(std::string_view op) {
  if (op == "NotIn") return sched::SelectorOp::kNotIn;
  if (op == "Exists") return sched::SelectorOp::kExists;
  if (op == "DoesNotExist") return sched::SelectorOp::kDoesNotExist;
  if (op == "Gt") return sched::SelectorOp::kGt;
  if (op == "Lt") return sched::SelectorOp::kLt;
  return sched::SelectorOp::kIn;
}

std::vector<sched::Requirement> ToRequirements(const json::Array& expressions) {
  std::vector<sched::Requirement> out;
  for (const json::Value& expression : expressions) {
    out.push_back({std::string(json::GetString(expression, {"key"})),
                   ToOp(json::GetString(expression, {"operator"})),
                   json::Texts(json::GetArray(expression, {"values"}))});
  }
  return out;
}

sched::NodeSelectorTerm ToNodeTerm(const json::Value& term) {
  return {ToRequirements(json::GetArray(term, {"matchExpressions"})),
          ToRequirements(json::GetArray(term, {"matchFields"}))};
}

// A requirement that no labels meet. It stands for a selector that is missing.
const sched::Requirement kNoPods{"", sched::SelectorOp::kIn, {}};

std::vector<sched::Requirement> ToPodSelector(const json::Value& holder,
                                              std::string_view field = "labelSelector") {
  if (json::Find(holder, {field}) == nullptr) return {kNoPods};
  auto out = ToRequirements(json::GetArray(holder, {field, "matchExpressions"}));
  for (const auto& [key, value] : ToLabels(json::GetObject(holder, {field, "matchLabels"}))) {
    out.push_back({key, sched::SelectorOp::kIn, {value}});
  }
  return out;
}

// matchLabelKeys and mismatchLabelKeys: the pod's own values of these labels. Newer servers have
// written them into the selector already; a requirement that is there twice changes nothing.
void AddOwnLabels(const json::Value& holder,
                  std::string_view field,
                  sched::SelectorOp op,
                  const sched::Labels& own,
                  std::vector<sched::Requirement>& selector) {
  for (const std::string& key : json::Texts(json::GetArray(holder, {field}))) {
    const auto label = own.find(key);
    if (label == own.end()) continue;
    sched::Requirement wanted{key, op, {label->second}};
    if (std::find(selector.begin(), selector.end(), wanted) == selector.end()) {
      selector.push_back(std::move(wanted));
    }
  }
}

void ReadNamespaces(const json::Value& term,
                    const NamespacesOf& namespaces,
                    sched::PodAffinityTerm& out) {
  out.namespaces = json::Texts(json::GetArray(term, {"namespaces"}));
  const json::Value* selector = json::Find(term, {"namespaceSelector"});
  if (selector == nullptr || !selector->is_object()) return;
  const auto parsed = api::LabelSelector::FromJson(selector);
  out.all_namespaces = !namespaces || (parsed.ok() && parsed->everything());
  if (out.all_namespaces) return;
  for (std::string& name : namespaces(*selector)) out.namespaces.push_back(std::move(name));
  // An empty list would mean the pod's own namespace. No namespace has this name.
  if (out.namespaces.empty()) out.namespaces.emplace_back();
}

sched::PodAffinityTerm ToPodTerm(const json::Value& term,
                                 int32_t weight,
                                 const sched::Labels& own,
                                 const NamespacesOf& namespaces) {
  sched::PodAffinityTerm out;
  out.selector = ToPodSelector(term);
  AddOwnLabels(term, "matchLabelKeys", sched::SelectorOp::kIn, own, out.selector);
  AddOwnLabels(term, "mismatchLabelKeys", sched::SelectorOp::kNotIn, own, out.selector);
  ReadNamespaces(term, namespaces, out);
  out.topology_key = json::GetString(term, {"topologyKey"});
  out.weight = weight;
  return out;
}

void ReadPodAffinity(const json::Value& affinity,
                     const sched::Labels& own,
                     const NamespacesOf& namespaces,
                     std::vector<sched::PodAffinityTerm>& required,
                     std::vector<sched::PodAffinityTerm>& preferred) {
  for (const json::Value& term :
       json::GetArray(affinity, {"requiredDuringSchedulingIgnoredDuringExecution"})) {
    required.push_back(ToPodTerm(term, 0, own, namespaces));
  }
  for (const json::Value& weighted :
       json::GetArray(affinity, {"preferredDuringSchedulingIgnoredDuringExecution"})) {
    if (const json::Value* term = json::Find(weighted, {"podAffinityTerm"})) {
      preferred.push_back(ToPodTerm(
          *term, static_cast<int32_t>(json::GetInt(weighted, {"weight"}, 1)), own, namespaces));
    }
  }
}

void ReadAffinity(const json::Value& spec, const NamespacesOf& namespaces, sched::PodInfo& pod) {
  const json::Value* affinity = json::Find(spec, {"affinity"});
  if (affinity == nullptr) return;
  if (const json::Value* node = json::Find(*affinity, {"nodeAffinity"})) {
    for (const json::Value& term : json::GetArray(
             *node, {"requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"})) {
      pod.required_node_affinity.push_back(ToNodeTerm(term));
    }
    for (const json::Value& preferred :
         json::GetArray(*node, {"preferredDuringSchedulingIgnoredDuringExecution"})) {
      if (const json::Value* term = json::Find(preferred, {"preference"})) {
        pod.preferred_node_affinity.push_back(
            {static_cast<int32_t>(json::GetInt(preferred, {"weight"}, 1)), ToNodeTerm(*term)});
      }
    }
  }
  if (const json::Value* together = json::Find(*affinity, {"podAffinity"})) {
    ReadPodAffinity(*together, pod.labels, namespaces, pod.required_affinity,
                    pod.preferred_affinity);
  }
  if (const json::Value* apart = json::Find(*affinity, {"podAntiAffinity"})) {
    ReadPodAffinity(*apart, pod.labels, namespaces, pod.required_anti_affinity,
                    pod.preferred_anti_affinity);
  }
}

sched::SpreadConstraint ToSpread(const json::Value& constraint, const sched::Labels& own) {
  sched::SpreadConstraint out;
  out.max_skew = static_cast<int32_t>(json::GetInt(constraint, {"maxSkew"}, 1));
  out.topology_key = json::GetString(constraint, {"topologyKey"});
  out.required = json::GetString(constraint, {"whenUnsatisfiable"}) != "ScheduleAnyway";
  out.selector = ToPodSelector(constraint);
  AddOwnLabels(constraint, "matchLabelKeys", sched::SelectorOp::kIn, own, out.selector);
  // Kubernetes counts no pods for an empty selector here, where elsewhere it means every pod.
  if (out.selector.empty()) out.selector.push_back(kNoPods);
  out.min_domains = static_cast<int32_t>(json::GetInt(constraint, {"minDomains"}, 1));
  out.honors_affinity = json::GetString(constraint, {"nodeAffinityPolicy"}) != "Ignore";
  out.honors_taints = json::GetString(constraint, {"nodeTaintsPolicy"}) == "Honor";
  return out;
}

// A sidecar's ports are held for as long as the pod runs; those of other init containers are not.
void AddHostPorts(const json::Value& container, sched::PodInfo& pod) {
  for (const api::ContainerPort& port : api::Ports(container)) {
    if (port.host_port == 0) continue;
    pod.host_ports.push_back({std::string(port.protocol), std::string(port.host_ip),
                              static_cast<int32_t>(port.host_port)});
  }
}

void ReadConstraints(const json::Value& spec, const NamespacesOf& namespaces, sched::PodInfo& pod) {
  pod.node_selector = ToLabels(json::GetObject(spec, {"nodeSelector"}));
  for (const json::Value& toleration : json::GetArray(spec, {"tolerations"})) {
    pod.tolerations.push_back({std::string(json::GetString(toleration, {"key"})),
                               json::GetString(toleration, {"operator"}) == "Exists",
                               std::string(json::GetString(toleration, {"value"})),
                               ToEffect(json::GetString(toleration, {"effect"}))});
  }
  for (const json::Value& container : json::GetArray(spec, {"containers"})) {
    AddHostPorts(container, pod);
  }
  for (const json::Value& container : json::GetArray(spec, {"initContainers"})) {
    if (api::IsSidecar(container)) AddHostPorts(container, pod);
  }
  for (const json::Value& constraint : json::GetArray(spec, {"topologySpreadConstraints"})) {
    pod.spread.push_back(ToSpread(constraint, pod.labels));
  }
  for (const json::Value& gate : json::GetArray(spec, {"schedulingGates"})) {
    pod.scheduling_gates.emplace_back(json::GetString(gate, {"name"}));
  }
  ReadAffinity(spec, namespaces, pod);
}

sched::PodPhase ToPhase(const json::Value& pod, bool bound) {
  std::string_view phase = api::Phase(pod);
  if (phase == "Succeeded") return sched::PodPhase::kSucceeded;
  if (phase == "Failed") return sched::PodPhase::kFailed;
  if (api::IsDeleting(pod) && bound) return sched::PodPhase::kReleasing;
  if (!bound) return sched::PodPhase::kPending;
  return phase == "Running" ? sched::PodPhase::kRunning : sched::PodPhase::kBound;
}

void ReadSharing(const json::Value& pod, sched::PodInfo& out) {
  out.gpu_fraction = ParseGpuFraction(api::Annotation(pod, api::keys::kGpuFraction)).value_or(0);
  out.gpu_memory_mib = ParseInt(api::Annotation(pod, api::keys::kGpuMemory)).value_or(0);
  out.gpu_fraction_devices = static_cast<int32_t>(
      ParseInt(api::Annotation(pod, api::keys::kGpuFractionDevices)).value_or(1));
  for (std::string_view device : Split(api::Annotation(pod, api::keys::kGpuDevices), ',')) {
    if (auto index = ParseInt(device); index && *index >= 0 && *index < 1024) {
      out.gpu_devices.push_back(static_cast<int>(*index));
    }
  }
  if (auto priority = ParseInt(api::Annotation(pod, api::keys::kMemberPriority))) {
    out.member_priority = static_cast<int32_t>(*priority);
  }
}

sched::TopologyConstraint ToTopology(const api::TopologyRequest& request) {
  return {request.name, request.required, request.preferred};
}

sched::QueueLimits ToLimits(const api::ResourceShare& share, const sched::QueueLimits& usual) {
  return {.quota = share.quota.value_or(usual.quota),
          .limit = share.limit.value_or(usual.limit),
          .weight = share.over_quota_weight.value_or(usual.weight),
          .lending_limit = share.lending_limit.value_or(usual.lending_limit)};
}

sched::PlacementStrategy ToPlacement(bool spreads) {
  return spreads ? sched::PlacementStrategy::kSpread : sched::PlacementStrategy::kPack;
}

std::optional<Duration> ToRuntime(std::optional<int64_t> seconds) {
  if (!seconds) return std::nullopt;
  return std::chrono::seconds(std::clamp<int64_t>(*seconds, 0, 1'000'000'000));
}

// In kube-scheduler's words, and what to do.
std::string MissingClaim(std::string_view ns, std::string_view name, const StorageView& storage) {
  constexpr size_t kShown = 5;
  std::vector<std::string> there = storage.claims_of(ns);
  const std::string near = NearestName(name, there);
  const size_t more = there.size() > kShown ? there.size() - kShown : 0;
  there.resize(there.size() - more);
  return StrCat("persistentvolumeclaim ", Quote(name), " not found",
                !near.empty()   ? StrCat("; did you mean ", Quote(near), "? Otherwise")
                : there.empty() ? StrCat("; namespace ", Quote(ns), " has none;")
                                : StrCat("; namespace ", Quote(ns), " has ", Join(there, ", "),
                                         more > 0 ? StrCat(" and ", more, " more") : "", ";"),
                " apply a PersistentVolumeClaim of this name");
}

// In kube-scheduler's words; empty: nothing is the matter.
std::string WhyNotUsable(const json::Value* claim,
                         const json::Value& pod,
                         const api::MountedClaim& mounted,
                         const StorageView& storage) {
  const std::string& name = mounted.name;
  if (mounted.claim_template != nullptr) {
    if (claim == nullptr) {
      return StrCat("waiting for ephemeral volume controller to create the persistentvolumeclaim ",
                    Quote(name));
    }
    if (!api::IsMadeFor(*claim, pod)) return api::NotMadeFor(*claim, pod);
  }
  if (claim == nullptr) return MissingClaim(api::Namespace(pod), name, storage);
  if (api::IsDeleting(*claim)) {
    return StrCat("persistentvolumeclaim ", Quote(name), " is being deleted");
  }
  const std::string_view volume = json::GetString(*claim, {"spec", "volumeName"});
  const std::string_view phase = api::StatusPhase(*claim);
  const bool bound = phase == "Bound" || phase == "Lost" ||
                     !api::Annotation(*claim, "pv.kubernetes.io/bind-completed").empty();
  if (!volume.empty() && bound) {
    if (storage.volumes(volume) != nullptr) return "";
    return "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
  }
  const std::string class_name = controllers::ClassOf(*claim);
  const json::Value* storage_class = class_name.empty() ? nullptr : storage.classes(class_name);
  const bool waits = storage_class != nullptr && controllers::WaitsForConsumer(*storage_class);
  if (!waits || !volume.empty()) {
    return StrCat("pod has unbound immediate PersistentVolumeClaims (", name, ")");
  }
  // Nobody makes its volume; the pod goes where one is, once it is bound.
  if (json::GetString(*storage_class, {"provisioner"}) == controllers::kNoProvisioner) {
    return "node(s) didn't find available persistent volumes to bind";
  }
  return "";
}

// Where a volume that has yet to be made can be: on the node that the claim names, and where its
// class says.
void AddUnmadeVolume(const json::Value& claim, const StorageView& storage, sched::PodInfo& out) {
  const json::Value* storage_class = storage.classes(controllers::ClassOf(claim));
  if (!controllers::AwaitsNode(claim, storage_class)) return;
  if (const std::string node(controllers::SelectedNode(claim)); !node.empty()) {
    sched::NodeSelectorTerm there;
    there.fields.push_back({"metadata.name", sched::SelectorOp::kIn, {node}});
    out.volume_affinity.push_back({std::move(there)});
  }
  std::vector<sched::NodeSelectorTerm> terms;
  for (const json::Value& topology : json::GetArray(*storage_class, {"allowedTopologies"})) {
    sched::NodeSelectorTerm term;
    for (const json::Value& one : json::GetArray(topology, {"matchLabelExpressions"})) {
      term.expressions.push_back({std::string(json::GetString(one, {"key"})),
                                  sched::SelectorOp::kIn,
                                  json::Texts(json::GetArray(one, {"values"}))});
    }
    terms.push_back(std::move(term));
  }
  if (!terms.empty()) out.volume_affinity.push_back(std::move(terms));
}

// Names the devices that are left out of allocatable. The two come by writes of their own: what
// both say together counts.
void LeaveOutUnhealthyGpus(const json::Value& node, sched::NodeInfo& out) {
  out.labels.erase(std::string(sched::kUnhealthyGpus));
  const std::vector<int> unhealthy = api::UnhealthyGpus(node);
  const api::Amounts capacity = api::ReadAmounts(node, {"status", "capacity"});
  const auto devices = capacity.find(sched::kGpuResource);
  if (unhealthy.empty() || devices == capacity.end()) return;
  const auto left = devices->second.Value() - static_cast<int64_t>(unhealthy.size());
  const auto allocatable = out.allocatable.extended.find(std::string(sched::kGpuResource));
  if (allocatable == out.allocatable.extended.end()) return;
  allocatable->second = std::min(allocatable->second, left);
  std::vector<std::string> indices;
  for (const int index : unhealthy) indices.push_back(std::to_string(index));
  out.labels[std::string(sched::kUnhealthyGpus)] = Join(indices, ",");
}

bool MayPreempt(const json::Value& holder) {
  return json::GetString(holder, {"preemptionPolicy"}) != "Never";
}

}  // namespace

std::pair<std::string, std::string> SplitKey(std::string_view key) {
  size_t slash = key.find('/');
  if (slash == std::string_view::npos) return {"", std::string(key)};
  return {std::string(key.substr(0, slash)), std::string(key.substr(slash + 1))};
}

sched::Resources PodRequests(const json::Value& pod_spec) {
  return ToResources(api::PodAmounts(pod_spec, api::AmountField::kRequests));
}

sched::Resources HeldRequests(const json::Value& pod) { return ToResources(api::HeldAmounts(pod)); }

sched::NodeInfo ToNodeInfo(const json::Value& node) {
  sched::NodeInfo out;
  out.name = api::Name(node);
  out.labels = ToLabels(api::Labels(node));
  for (const api::Taint& taint : api::TaintsOf(node)) {
    if (auto effect = ToEffect(taint.effect)) {
      out.taints.push_back({std::string(taint.key), std::string(taint.value), *effect});
    }
  }
  out.allocatable = ToResources(api::ReadAmounts(node, {"status", "allocatable"}));
  out.unschedulable = api::IsUnschedulable(node);
  out.ready = api::ConditionIsTrue(node, "Ready");
  out.gpu_memory_mib = api::GpuMemoryMib(node);
  std::string_view mig = api::Label(node, "nvidia.com/mig.strategy");
  out.gpus_sliced = mig == "single" || mig == "mixed";
  LeaveOutUnhealthyGpus(node, out);
  return out;
}

void LeaveOutMapped(const json::Value& pod, sched::Resources& requests) {
  for (const api::MappedRequest& one : api::MappedRequestsOf(pod)) {
    requests.extended.erase(std::string(one.resource));
  }
}

std::vector<sched::NodeSelectorTerm> ToNodeTerms(const json::Array& terms) {
  std::vector<sched::NodeSelectorTerm> out;
  for (const json::Value& term : terms) out.push_back(ToNodeTerm(term));
  return out;
}

void SetPriority(sched::PodInfo& pod, int32_t priority) {
  pod.priority = priority;
  pod.preemptible = priority < (pod.queue.empty() ? kSystemCriticalFrom : kProjectPreemptibleBelow);
}

void AddVolumeTerms(const json::Value& pod, const StorageView& storage, sched::PodInfo& out) {
  const bool waits = out.node.empty();
  for (const api::MountedClaim& mounted : api::MountedClaims(pod)) {
    const json::Value* claim = storage.claims(StrCat(api::Namespace(pod), "/", mounted.name));
    if (waits && out.obstacle.empty()) out.obstacle = WhyNotUsable(claim, pod, mounted, storage);
    if (claim == nullptr) continue;
    if (api::IsForOnePod(*claim)) sched::UseAlone(mounted.name, out);
    AddUnmadeVolume(*claim, storage, out);
    const json::Value* bound = storage.volumes(json::GetString(*claim, {"spec", "volumeName"}));
    if (bound == nullptr) continue;
    std::vector<sched::NodeSelectorTerm> terms;
    for (const json::Value& term :
         json::GetArray(*bound, {"spec", "nodeAffinity", "required", "nodeSelectorTerms"})) {
      terms.push_back(ToNodeTerm(term));
    }
    if (!terms.empty()) out.volume_affinity.push_back(std::move(terms));
  }
}

std::vector<std::string> SelectNamespaces(const json::Value& selector,
                                          const std::vector<const json::Value*>& namespaces) {
  static const json::Value kNoLabels = json::Object{};
  std::vector<std::string> names;
  const auto parsed = api::LabelSelector::FromJson(&selector);
  if (!parsed.ok()) return names;
  for (const json::Value* each : namespaces) {
    const json::Value* labels = json::Find(*each, {"metadata", "labels"});
    if (parsed->Matches(labels != nullptr ? *labels : kNoLabels)) {
      names.emplace_back(api::Name(*each));
    }
  }
  return names;
}

sched::PodInfo ToPodInfo(const json::Value& pod,
                         std::string_view namespace_project,
                         const NamespacesOf& namespaces) {
  const json::Value& spec = api::Spec(pod);
  sched::PodInfo out;
  out.key = api::KeyOf(pod);
  out.uid = api::Uid(pod);
  out.labels = ToLabels(api::Labels(pod));
  std::string_view group = api::Label(pod, api::keys::kPodGroup);
  if (!group.empty()) out.group = StrCat(api::Namespace(pod), "/", group);
  out.comes_back = !group.empty() || api::ControllerOf(pod).has_value();
  out.pod_set = api::Label(pod, api::keys::kPodSet);
  out.queue = namespace_project.empty() ? api::Label(pod, api::keys::kProject) : namespace_project;
  out.user = api::Annotation(pod, api::keys::kUser);
  out.requests = HeldRequests(pod);
  ReadConstraints(spec, namespaces, out);
  SetPriority(out, static_cast<int32_t>(json::GetInt(spec, {"priority"})));
  // A job that fails again and again takes no places of others for a while; its controller removes
  // the annotation.
  out.may_preempt = MayPreempt(spec) && api::Annotation(pod, api::keys::kPreemptsFrom).empty();
  out.node = api::NodeName(pod);
  out.nominated_node = api::NominatedNode(pod);
  out.phase = ToPhase(pod, !out.node.empty());
  out.creation = api::CreationTime(pod);
  out.start = api::StartTime(pod).value_or(WallTime{});
  out.checkpoint =
      api::ParseTime(api::Annotation(pod, api::keys::kCheckpointTime)).value_or(WallTime{});
  out.ours = api::SchedulerName(pod) == "swell";
  int64_t most = json::GetInt(spec, {"activeDeadlineSeconds"});
  if (most <= 0) most = ParseInt(api::Annotation(pod, api::keys::kMaxRunSeconds)).value_or(0);
  out.max_runtime = std::chrono::seconds(std::clamp<int64_t>(most, 0, 1'000'000'000));
  ReadSharing(pod, out);
  // Without what it asks for it would run without a GPU.
  if (out.phase == sched::PodPhase::kPending) out.obstacle = ValidateGpuRequest(pod).message();
  return out;
}

sched::GroupInfo ToGroupInfo(const json::Value& pod_group,
                             const FindObject& priority_classes,
                             std::string_view namespace_project) {
  const api::PodGroupSpec spec(pod_group);
  sched::GroupInfo out;
  out.key = api::KeyOf(pod_group);
  out.uid = api::Uid(pod_group);
  out.queue = namespace_project.empty() ? spec.project : std::string(namespace_project);
  out.priority_class = spec.priority_class;
  if (const json::Value* it = priority_classes(out.priority_class)) {
    out.priority = static_cast<int32_t>(json::GetInt(*it, {"value"}));
    out.may_preempt = MayPreempt(*it);
  }
  if (!spec.preemptibility.empty()) {
    out.preemptible = spec.preemptibility == "Preemptible";
  } else {
    out.preemptible = out.queue.empty() ? out.priority < kSystemCriticalFrom
                                        : out.priority < kProjectPreemptibleBelow;
  }
  out.creation = api::CreationTime(pod_group);
  for (const api::GroupPartSpec& part : spec.parts) {
    out.groups.push_back({part.name, part.parent, ToTopology(part.topology)});
  }
  for (const api::PodSetSpec& set : spec.pod_sets) {
    out.pod_sets.push_back(
        {set.name, static_cast<int32_t>(set.min_member), set.parent, ToTopology(set.topology)});
  }
  out.topology = ToTopology(spec.topology);
  if (spec.on_preemption == "Fail") out.on_preemption = sched::OnPreemption::kFail;
  if (spec.preempt_unit == "Pod") out.preempt_unit = sched::PreemptUnit::kPod;
  out.min_runtime = std::chrono::seconds(spec.min_runtime_seconds);
  out.stale_since =
      api::ParseTime(json::GetString(pod_group, {"status", "staleSince"})).value_or(WallTime{});
  out.moved_at =
      api::ParseTime(json::GetString(pod_group, {"status", "movedAt"})).value_or(WallTime{});
  out.goodput = ToGoodput(pod_group);
  return out;
}

std::optional<sched::BudgetInfo> ToBudgetInfo(const json::Value& budget) {
  const json::Value* spec = json::Find(budget, {"spec"});
  if (spec == nullptr || json::Find(*spec, {"selector"}) == nullptr) return std::nullopt;
  return sched::BudgetInfo{
      api::KeyOf(budget), ToPodSelector(*spec, "selector"),
      static_cast<int32_t>(std::clamp<int64_t>(
          json::GetInt(budget, {"status", "disruptionsAllowed"}), 0, INT32_MAX))};
}

sched::QueueInfo ToQueueInfo(const json::Value& project) {
  const api::ProjectSpec spec(project);
  const sched::QueueLimits usual = spec.HasQuotaInOtherPools()
                                       ? sched::QueueLimits{}
                                       : sched::QueueLimits{.quota = 0, .limit = 0};
  sched::QueueInfo out;
  out.name = api::Name(project);
  out.parent = spec.parent;
  out.priority = static_cast<int32_t>(spec.priority);
  out.gpu = ToLimits(spec.shares.gpu, usual);
  out.cpu = ToLimits(spec.shares.cpu, usual);
  out.memory = ToLimits(spec.shares.memory, usual);
  for (const api::ProjectPool& pool : spec.pools) {
    out.pools.push_back({pool.name, ToLimits(pool.shares.gpu, {}), ToLimits(pool.shares.cpu, {}),
                         ToLimits(pool.shares.memory, {})});
  }
  out.creation = api::CreationTime(project);
  out.user_gpu_limit = spec.user_gpu_limit.value_or(out.user_gpu_limit);
  out.fair_to_users = spec.fair_to_users;
  out.preempt_min_runtime = ToRuntime(spec.min_runtime_seconds);
  out.reclaim_min_runtime = ToRuntime(spec.reclaim_min_runtime_seconds);
  return out;
}

std::vector<sched::PastUse> ToPastUse(const json::Value& project) {
  const auto past = api::PastUseOf(project);
  if (!past) return {};
  std::vector<sched::PastUse> uses;
  for (const api::PoolPastUse& pool : past->pools) {
    uses.push_back({std::string(api::Name(project)), pool.pool, pool.gpu_hours, pool.cpu_hours,
                    pool.memory_gib_hours, past->as_of});
  }
  return uses;
}

json::Value FromPastUse(const std::vector<sched::PastUse>& uses, std::string_view project) {
  json::Array pools;
  WallTime as_of;
  for (const sched::PastUse& use : uses) {
    if (use.queue != project) continue;
    as_of = use.as_of;
    pools.push_back(json::Object{{"pool", use.pool},
                                 {"gpuHours", use.gpu_hours},
                                 {"cpuHours", use.cpu_hours},
                                 {"memoryGibHours", use.memory_gib_hours}});
  }
  if (pools.empty()) return nullptr;
  return json::Object{{"asOf", api::FormatTime(as_of)}, {"pools", std::move(pools)}};
}

sched::TopologyInfo ToTopologyInfo(const json::Value& topology) {
  return {std::string(api::Name(topology)),
          json::Texts(json::GetArray(topology, {"spec", "levels"}))};
}

sched::PoolInfo ToPoolInfo(const json::Value& node_pool) {
  const api::NodePoolSpec spec(node_pool);
  sched::PoolInfo out;
  out.name = api::Name(node_pool);
  out.node_selector = ToLabels(*spec.node_selector);
  out.gpu = ToPlacement(spec.spreads_gpu);
  out.cpu = ToPlacement(spec.spreads_cpu);
  out.shared_gpu = ToPlacement(spec.spreads_shared_gpu);
  return out;
}

}  // namespace swell::sched_inputs
