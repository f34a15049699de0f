#include "scheduling/state_file.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "jobs/job_rules.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/meta/selector.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/device_claim.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/project.h"
#include "kube/api/schema/decode_problem.h"
#include "kube/api/schema/scheme.h"
#include "kube/controllers/context.h"
#include "kube/controllers/workloads/disruption.h"
#include "sched/cycle/disruptions.h"
#include "sched_inputs/device_catalog.h"
#include "sched_inputs/sched_convert.h"

namespace swell::scheduling {
namespace {

// The items of one kind by "apiGroup/Kind".
using ByKind = std::map<std::string, std::vector<const json::Value*>, std::less<>>;

constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
    {"", "Namespace"},
    {"", "Node"},
    {"", "Pod"},
    {"", "PersistentVolume"},
    {"", "PersistentVolumeClaim"},
    {"scheduling.k8s.io", "PriorityClass"},
    {"policy", "PodDisruptionBudget"},
    {"storage.k8s.io", "StorageClass"},
    {"resource.k8s.io", "DeviceClass"},
    {"resource.k8s.io", "ResourceClaim"},
    {"resource.k8s.io", "DeviceTaintRule"},
    {"resource.k8s.io", "ResourceSlice"},
    {"swell.dev", "NodePool"},
    {"swell.dev", "PodGroup"},
    {"swell.dev", "Project"},
    {"swell.dev", "Topology"},
};

std::string_view GroupOf(std::string_view api_version) {
  size_t slash = api_version.find('/');
  return slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
}

// What the objects of a state are held against.
const api::Scheme& Kinds() {
  static const std::unique_ptr<api::Scheme> scheme = [] {
    std::unique_ptr<api::Scheme> all = api::Scheme::BuiltIn();
    for (const json::Value& crd : api::SwellCrds()) {
      Result<std::vector<api::CrdVersion>> versions = api::KindsOfCrd(crd);
      if (!versions.ok()) continue;
      for (api::CrdVersion& version : *versions) {
        all->Register(std::move(version.kind), version.storage);
      }
    }
    return all;
  }();
  return *scheme;
}

// kWritten: by anybody, so that its form is looked at; kServed: an API server did that.
enum class Origin { kWritten, kServed };

class Reader {
 public:
  Reader(Origin origin, std::vector<std::string>& problems)
      : origin_(origin), problems_(problems) {}

  void Add(const json::Value& item, size_t number) {
    if (!item.is_object()) {
      return Problem(StrCat("item ", number), "", "is not an object");
    }
    std::string_view kind = api::KindOf(item);
    if (kind.empty()) return Problem(StrCat("item ", number), "kind", "is missing");
    if (kind == "List" || json::Find(item, {"items"}) != nullptr) return AddList(item);
    std::string_view group = GroupOf(api::ApiVersionOf(item));
    const bool known =
        std::find(std::begin(kKinds), std::end(kKinds), std::pair(group, kind)) != std::end(kKinds);
    if (!known && !IsSettingsMap(item)) return;
    std::string name = StrCat(kind, " ", api::KeyOf(item));
    if (api::Name(item).empty()) {
      return Problem(StrCat("item ", number, ", a ", kind), "metadata.name", "is missing");
    }
    if ((kind == "Pod" || kind == "PodGroup") && api::Namespace(item).empty()) {
      return Problem(name, "metadata.namespace", "is missing");
    }
    if (!seen_.insert(name).second) return Problem(name, "metadata.name", "occurs twice");
    CheckTimes(name, item);
    by_kind_[std::string(kind)].push_back(&item);
  }

  StateInputs Finish() {
    StateInputs out;
    for (const json::Value* it : by_kind_["ConfigMap"]) ReadConfigMap(*it, out.settings, problems_);
    for (const json::Value* node : by_kind_["Node"]) {
      CheckQuantities(NameOf(*node), "status.allocatable",
                      json::GetObject(*node, {"status", "allocatable"}));
      out.nodes.push_back(sched_inputs::ToNodeInfo(*node));
    }
    for (const json::Value* it : by_kind_["NodePool"])
      out.pools.push_back(sched_inputs::ToPoolInfo(*it));
    for (const json::Value* it : by_kind_["Topology"]) {
      out.topologies.push_back(sched_inputs::ToTopologyInfo(*it));
    }
    ReadProjects(out);
    ReadGroups(out);
    ReadDevices();
    ReadPods(out);
    for (sched::NodeInfo& node : out.nodes) devices_.AddToNode(node);
    if (origin_ == Origin::kWritten) CheckForms();
    return out;
  }

 private:
  void AddList(const json::Value& list) {
    const json::Value* items = json::Find(list, {"items"});
    if (items == nullptr || items->is_null()) return;
    if (!items->is_array()) return Problem("the list", "items", "is not a list");
    size_t number = 0;
    for (const json::Value& item : items->get_array()) Add(item, ++number);
  }

  void Problem(std::string_view object, std::string_view field, std::string_view what) {
    problems_.push_back(StrCat(object, ": ", field, field.empty() ? "" : " ", what));
    troubled_.emplace(object);
  }

  // Whether every object is what its kind's schema says, where nothing else was found wrong.
  void CheckForms() {
    for (const auto& [kind, items] : by_kind_) {
      for (const json::Value* item : items) {
        const std::string name = NameOf(*item);
        const api::KindPtr known = Kinds().FindKind(api::ParseGvk(api::ApiVersionOf(*item), kind));
        if (known && !troubled_.contains(name)) CheckForm(name, *known, *item);
      }
    }
  }

  void CheckForm(const std::string& name, const api::KindInfo& kind, const json::Value& item) {
    if (kind.custom) {
      CheckSpec(name, kind, item);
    } else if (const std::string wrong = api::FindDecodeProblem(*kind.schema, item);
               !wrong.empty()) {
      return Problem(name, "", wrong);
    }
    // The scheduler copes with a project whose limit is below its quota; the project reports it.
    if (kind.plural == "projects") return;
    static const jobs::JobRules rules;
    for (const api::FieldError& error : rules.CheckWrite(kind, item, nullptr)) {
      Problem(name, StrCat(error.field, ":"), error.message);
    }
  }

  void CheckSpec(const std::string& name, const api::KindInfo& kind, const json::Value& item) {
    const api::SchemaField* field = kind.schema->Field("spec");
    const json::Value* spec = json::Find(item, {"spec"});
    if (field == nullptr || spec == nullptr) return;
    for (const api::FieldError& error : api::ValidateAgainst(*field->schema, *spec, "spec")) {
      // A project's amounts may be written like "64Gi" too (CheckShares).
      if (error.field.find("resources.") != std::string::npos) continue;
      Problem(name, StrCat(error.field, ":"), error.message);
    }
  }

  static std::string NameOf(const json::Value& object) {
    return StrCat(api::KindOf(object), " ", api::KeyOf(object));
  }

  void CheckTimes(const std::string& name, const json::Value& item) {
    auto check = [&](json::Path path, std::string_view field) {
      const json::Value* value = json::Find(item, path);
      if (value == nullptr || value->is_null()) return;
      if (!value->is_string() || !api::ParseTime(json::View(value->get_string()))) {
        Problem(name, field, StrCat("is not a time: ", json::Print(*value)));
      }
    };
    check({"metadata", "creationTimestamp"}, "metadata.creationTimestamp");
    check({"metadata", "deletionTimestamp"}, "metadata.deletionTimestamp");
    check({"status", "startTime"}, "status.startTime");
    check({"status", "staleSince"}, "status.staleSince");
    check({"status", "movedAt"}, "status.movedAt");
  }

  void CheckQuantities(const std::string& name, std::string_view field, const json::Object& list) {
    for (const auto& [resource, value] : list) {
      auto quantity = api::Quantity::FromJson(value);
      const bool amount = quantity.ok() && !quantity->negative();
      const bool countable = resource.find('/') != std::string_view::npos;
      if (amount && (!countable || Whole(*quantity))) continue;
      Problem(name, StrCat(field, ".", std::string_view(resource)),
              StrCat("is not ", amount ? "a whole number: " : "an amount: ", json::Print(value)));
    }
  }

  static bool Whole(const api::Quantity& quantity) {
    return api::Quantity::Parse(std::to_string(quantity.Value())).value() == quantity;
  }

  void ReadProjects(StateInputs& out) {
    const std::vector<const json::Value*>& projects = by_kind_["Project"];
    std::map<std::string_view, std::string_view> parent_of;
    for (const json::Value* it : projects) {
      parent_of[api::Name(*it)] = api::ParentOfProject(*it);
    }
    for (const json::Value* it : projects) {
      std::string_view parent = parent_of[api::Name(*it)];
      if (!parent.empty() && !parent_of.contains(parent)) {
        Problem(NameOf(*it), "spec.parent", StrCat("names no project: ", Quote(parent)));
      }
      size_t steps = 0;
      for (std::string_view up = parent; !up.empty() && parent_of.contains(up);
           up = parent_of[up]) {
        if (++steps <= parent_of.size()) continue;
        Problem(NameOf(*it), "spec.parent", StrCat("leads back to itself: ", Quote(parent)));
        break;
      }
      if (const json::Value* spec = json::Find(*it, {"spec"})) CheckShares(*it, *spec, "spec");
      size_t number = 0;
      for (const json::Value& pool : json::GetArray(*it, {"spec", "nodePools"})) {
        CheckShares(*it, pool, StrCat("spec.nodePools[", number++, "]"));
      }
      out.queues.push_back(sched_inputs::ToQueueInfo(*it));
      for (sched::PastUse& use : sched_inputs::ToPastUse(*it))
        out.past_uses.push_back(std::move(use));
    }
    project_of_ = api::ProjectsByNamespace(projects);
  }

  // `holder` is the project's spec, or one of its pools.
  void CheckShares(const json::Value& project, const json::Value& holder, std::string_view path) {
    for (std::string_view resource : {"gpu", "cpu", "memory"}) {
      for (std::string_view field : {"quota", "limit", "overQuotaWeight"}) {
        const json::Value* value = json::Find(holder, {"resources", resource, field});
        if (value == nullptr) continue;
        auto amount = api::Quantity::FromJson(*value);
        const bool unlimited = field != "overQuotaWeight" && amount.ok() && amount->Value() == -1;
        if (amount.ok() && (!amount->negative() || unlimited)) continue;
        Problem(NameOf(project), StrCat(path, ".resources.", resource, ".", field),
                StrCat("is not an amount: ", json::Print(*value)));
      }
    }
  }

  void ReadGroups(StateInputs& out) {
    priority_classes_ = Index(by_kind_["PriorityClass"]);
    for (const json::Value* it : by_kind_["PodGroup"]) {
      std::string_view class_name = api::PriorityClassName(*it);
      if (!class_name.empty() && priority_classes_(class_name) == nullptr) {
        Problem(NameOf(*it), "spec.priorityClassName",
                StrCat("names no priority class: ", Quote(class_name)));
      }
      out.groups.push_back(
          sched_inputs::ToGroupInfo(*it, priority_classes_, ProjectOf(api::Namespace(*it))));
    }
  }

  void ReadDevices() {
    // The objects are somebody else's, and outlive the reader.
    const auto borrow = [](const json::Value* it) {
      return json::SharedValue(it, [](const json::Value*) {});
    };
    for (const json::Value* it : by_kind_["DeviceClass"]) devices_.SetClass(borrow(it));
    for (const json::Value* it : by_kind_["DeviceTaintRule"]) devices_.SetTaintRule(borrow(it));
    for (const json::Value* it : by_kind_["ResourceSlice"]) devices_.SetSlice(borrow(it));
    for (const json::Value* it : by_kind_["Pod"]) {
      for (const api::PodClaim& claim : api::DeviceClaimsOf(*it)) {
        users_[StrCat(api::Namespace(*it), "/", claim.claim)].push_back(borrow(it));
      }
    }
    claims_.claims = Index(by_kind_["ResourceClaim"]);
    claims_.pods = Index(by_kind_["Pod"]);
    claims_.users = [this](const std::string& claim) { return users_[claim]; };
  }

  void ReadPods(StateInputs& out) {
    std::map<std::string_view, const sched::GroupInfo*> groups;
    for (const sched::GroupInfo& group : out.groups) groups[group.key] = &group;
    std::map<std::string_view, const sched::NodeInfo*> nodes;
    for (const sched::NodeInfo& node : out.nodes) nodes[node.name] = &node;
    sched_inputs::StorageView storage;
    storage.claims = Index(by_kind_["PersistentVolumeClaim"]);
    storage.volumes = Index(by_kind_["PersistentVolume"]);
    storage.classes = Index(by_kind_["StorageClass"]);
    storage.claims_of = [this](std::string_view ns) {
      std::vector<std::string> names;
      for (const json::Value* claim : by_kind_["PersistentVolumeClaim"]) {
        if (api::Namespace(*claim) == ns) names.emplace_back(api::Name(*claim));
      }
      return names;
    };
    for (const json::Value* it : by_kind_["Pod"]) {
      for (const json::Value& container : api::Containers(*it)) {
        for (std::string_view list : {"requests", "limits"}) {
          CheckQuantities(
              NameOf(*it),
              StrCat("spec.containers[", api::ContainerName(container), "].resources.", list),
              json::GetObject(container, {"resources", list}));
        }
      }
      sched::PodInfo pod =
          sched_inputs::ToPodInfo(*it, ProjectOf(api::Namespace(*it)), NamespacesOfState());
      pod.ours = out.settings.names.contains(api::SchedulerName(*it));
      TakePriority(*it, pod);
      const auto group = groups.find(pod.group);
      if (!pod.group.empty() && group == groups.end()) {
        Problem(NameOf(*it), "metadata.labels[swell.dev/pod-group]",
                StrCat("names no pod group: ", Quote(pod.group)));
      }
      if (origin_ == Origin::kWritten) {
        if (group != groups.end()) CheckPodSet(*it, pod, *group->second);
        const auto node = nodes.find(pod.node);
        const bool claims = api::HasDeviceClaims(*it);
        if (node != nodes.end() && !claims) CheckDevices(*it, pod, *node->second);
      }
      if (api::HasDeviceClaims(*it)) devices_.AddToPod(*it, claims_, pod);
      sched_inputs::AddVolumeTerms(*it, storage, pod);
      out.pods.push_back(std::move(pod));
    }
    for (const json::Value* it : by_kind_["PodDisruptionBudget"]) ReadBudget(*it, out);
  }

  // A state that somebody wrote may have pods and no namespaces.
  sched_inputs::NamespacesOf NamespacesOfState() {
    const std::vector<const json::Value*>& all = by_kind_["Namespace"];
    if (all.empty()) return {};
    return [&all](const json::Value& selector) {
      return sched_inputs::SelectNamespaces(selector, all);
    };
  }

  void CheckPodSet(const json::Value& object,
                   const sched::PodInfo& pod,
                   const sched::GroupInfo& group) {
    if (pod.pod_set.empty()) return;
    const bool known = std::any_of(group.pod_sets.begin(), group.pod_sets.end(),
                                   [&](const auto& set) { return set.name == pod.pod_set; });
    if (known) return;
    Problem(NameOf(object), StrCat("metadata.labels[", api::keys::kPodSet, "]"),
            StrCat("names no pod set of pod group ", group.key, ": ", Quote(pod.pod_set)));
  }

  // The devices that a placed pod says it has: each is one of its node's, and they are as many as
  // it asks for.
  void CheckDevices(const json::Value& object,
                    const sched::PodInfo& pod,
                    const sched::NodeInfo& node) {
    const std::string_view text = api::Annotation(object, api::keys::kGpuDevices);
    if (text.empty()) return;
    auto wrong = [&](std::string_view what) {
      Problem(NameOf(object), StrCat("metadata.annotations[", api::keys::kGpuDevices, "]"),
              StrCat(what, ": ", Quote(text)));
    };
    const int64_t there = GpusIn(node.allocatable);
    std::set<int64_t> devices;
    for (std::string_view one : Split(text, ',')) {
      const auto index = ParseInt(one);
      if (!index || *index < 0) return wrong("is not a list of device indices such as 0,2");
      if (*index >= there) {
        return wrong(StrCat("names device ", *index, " of node ", node.name, ", which has ", there,
                            " GPUs"));
      }
      if (!devices.insert(*index).second) return wrong(StrCat("names device ", *index, " twice"));
    }
    const bool shares = pod.gpu_fraction > 0 || pod.gpu_memory_mib > 0;
    const int64_t asked = shares ? pod.gpu_fraction_devices : GpusIn(pod.requests);
    if (static_cast<int64_t>(devices.size()) == asked) return;
    wrong(StrCat("names ", devices.size(), " devices, and the pod asks for ", asked));
  }

  static int64_t GpusIn(const sched::Resources& resources) {
    const auto gpus = resources.extended.find(sched::kGpuResource);
    return gpus == resources.extended.end() ? 0 : gpus->second;
  }

  // A pod from a file may lack the priority that the API server would have filled in.
  void TakePriority(const json::Value& object, sched::PodInfo& pod) const {
    const json::Value* it = priority_classes_(api::PriorityClassName(object));
    if (it == nullptr) return;
    if (json::Find(object, {"spec", "priority"}) == nullptr) {
      sched_inputs::SetPriority(pod, static_cast<int32_t>(json::GetInt(*it, {"value"})));
    }
    if (json::Find(object, {"spec", "preemptionPolicy"}) == nullptr) {
      pod.may_preempt = json::GetString(*it, {"preemptionPolicy"}) != "Never";
    }
  }

  // One that no controller has looked at yet allows what its spec does of the pods in the state.
  void ReadBudget(const json::Value& budget, StateInputs& out) {
    auto selector = api::LabelSelector::FromJson(json::Find(budget, {"spec", "selector"}));
    if (!selector.ok()) {
      return Problem(NameOf(budget), "spec.selector", selector.status().message());
    }
    std::optional<sched::BudgetInfo> info = sched_inputs::ToBudgetInfo(budget);
    if (!info) return;
    if (json::Find(budget, {"status", "disruptionsAllowed"}) == nullptr) {
      int64_t expected = 0;
      int64_t healthy = 0;
      for (const sched::PodInfo& pod : out.pods) {
        if (!sched::Covers(*info, pod)) continue;
        ++expected;
        healthy += pod.phase == sched::PodPhase::kRunning;
      }
      info->allowed = static_cast<int32_t>(
          std::max<int64_t>(0, healthy - controllers::DesiredHealthy(budget, expected)));
    }
    out.budgets.push_back(*std::move(info));
  }

  static sched_inputs::FindObject Index(const std::vector<const json::Value*>& objects) {
    std::map<std::string, const json::Value*, std::less<>> by_key;
    for (const json::Value* it : objects) by_key[api::KeyOf(*it)] = it;
    return [by_key = std::move(by_key)](std::string_view key) -> const json::Value* {
      auto it = by_key.find(key);
      return it == by_key.end() ? nullptr : it->second;
    };
  }

  std::string_view ProjectOf(std::string_view ns) const {
    auto it = project_of_.find(ns);
    return it == project_of_.end() ? std::string_view() : std::string_view(it->second);
  }

  const Origin origin_;
  std::vector<std::string>& problems_;
  std::set<std::string, std::less<>> troubled_;  // objects with a problem
  ByKind by_kind_;
  std::set<std::string> seen_;
  std::map<std::string, std::string, std::less<>> project_of_;
  sched_inputs::FindObject priority_classes_;
  sched_inputs::DeviceCatalog devices_;
  sched_inputs::DeviceCatalog::View claims_;
  std::map<std::string, std::vector<json::SharedValue>> users_;  // pods that name a claim
};

}  // namespace

StateInputs ReadStateItems(const std::vector<const json::Value*>& items,
                           std::vector<std::string>& problems) {
  Reader reader(Origin::kServed, problems);
  size_t number = 0;
  for (const json::Value* item : items) reader.Add(*item, ++number);
  return reader.Finish();
}

StateInputs ReadState(std::string_view text, std::vector<std::string>& problems) {
  constexpr json::ParseLimits kLimits{.depth = 64, .bytes = size_t{1} << 30};
  std::string_view trimmed = Trim(text);
  Result<std::vector<json::Value>> documents = std::vector<json::Value>{};
  if (trimmed.starts_with('{')) {
    Result<json::Value> one = json::Parse(trimmed, kLimits);
    documents = one.ok() ? Result<std::vector<json::Value>>(std::vector{std::move(*one)})
                         : Result<std::vector<json::Value>>(one.status());
  } else {
    documents = json::ParseYaml(text, kLimits);
  }
  if (!documents.ok()) {
    problems.push_back(documents.status().message());
    return {};
  }
  if (documents->empty()) {
    problems.emplace_back("the state is empty: a v1 List is wanted");
    return {};
  }
  Reader reader(Origin::kWritten, problems);
  size_t number = 0;
  for (const json::Value& document : *documents) reader.Add(document, ++number);
  return reader.Finish();
}

void FillModel(const StateInputs& inputs, sched::Model& model) {
  for (const auto& it : inputs.pools) model.UpsertPool(it);
  for (const auto& it : inputs.topologies) model.UpsertTopology(it);
  for (const auto& it : inputs.nodes) model.UpsertNode(it);
  for (const auto& it : inputs.queues) model.UpsertQueue(it);
  for (const auto& it : inputs.budgets) model.UpsertBudget(it);
  for (const auto& it : inputs.groups) model.UpsertGroup(it);
  for (const auto& it : inputs.pods) model.UpsertPod(it);
}

}  // namespace swell::scheduling
