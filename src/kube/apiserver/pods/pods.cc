// Pods and nodes on their way in: priority, tolerations, service account, first status.
#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/container_list.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/restart_policy.h"
#include "kube/apiserver/access/submitter.h"
#include "kube/apiserver/admission/limit_range.h"
#include "kube/apiserver/admission/pod_security.h"
#include "kube/apiserver/admission/service_account_admission.h"
#include "kube/apiserver/pods/handlers.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr int64_t kTolerationSeconds = 300;
constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready";
constexpr std::string_view kUnreachable = "node.kubernetes.io/unreachable";

// Kubernetes' own two classes exist even before anybody created them.
std::optional<int64_t> SystemPriority(std::string_view name) {
  if (name == "system-cluster-critical") return 2'000'000'000;
  if (name == "system-node-critical") return 2'000'001'000;
  return std::nullopt;
}

constexpr char kClasses[] = "priorityclasses.scheduling.k8s.io";

store::EntryPtr GlobalDefaultClass(const Core& core) {
  const auto classes = core.store.List(
      kClasses, "",
      [](const store::Entry& entry) { return FieldOf(entry, "globalDefault") == "true"; }, 1);
  return classes.ok() && !classes->entries.empty() ? classes->entries[0] : nullptr;
}

Status AdmitPriority(Admission& admission, json::Value& pod) {
  std::string name(json::GetString(pod, {"spec", "priorityClassName"}));
  int64_t priority = 0;
  std::string policy = "PreemptLowerPriority";
  store::EntryPtr found;
  if (name.empty()) {
    found = GlobalDefaultClass(admission.core);
    if (found) name = found->key.name;
  } else {
    found = admission.core.store.Latest({kClasses, "", name});
    const auto system = SystemPriority(name);
    if (!found && !system) {
      return ForbiddenError(admission.kind, admission.name,
                            StrCat("no PriorityClass with name ", name, " was found"));
    }
    priority = system.value_or(0);
  }
  if (found) {
    priority = ParseInt(FieldOf(*found, "value")).value_or(0);
    const std::string own = FieldOf(*found, "preemptionPolicy");
    if (!own.empty()) policy = own;
    json::Set(pod, {"spec", "priorityClassName"}, json::Value(name));
  }
  const json::Value* given = json::Find(pod, {"spec", "priority"});
  if (given != nullptr && !given->is_null() &&
      json::GetInt(pod, {"spec", "priority"}) != priority) {
    return ForbiddenError(
        admission.kind, admission.name,
        StrCat("the integer value of priority (", json::GetInt(pod, {"spec", "priority"}),
               ") must not be provided in pod spec; priority admission controller computed ",
               priority, " from the given PriorityClass name"));
  }
  json::Set(pod, {"spec", "priority"}, json::Value(priority));
  const std::string_view given_policy = json::GetString(pod, {"spec", "preemptionPolicy"});
  if (!given_policy.empty() && given_policy != policy) {
    return ForbiddenError(admission.kind, admission.name,
                          StrCat("the string value of PreemptionPolicy (", given_policy,
                                 ") must not be provided in pod spec; priority admission "
                                 "controller computed ",
                                 policy, " from the given PriorityClass name"));
  }
  json::Set(pod, {"spec", "preemptionPolicy"}, json::Value(policy));
  return Status::Ok();
}

// The class's nodes are the pod's, too.
Status TakeNodes(const Admission& admission, const json::Value& scheduling, json::Value& pod) {
  for (const auto& [key, value] : json::GetObject(scheduling, {"nodeSelector"})) {
    const std::string_view label(key.data(), key.size());
    const json::Value* own = json::Find(pod, {"spec", "nodeSelector", label});
    if (own != nullptr && *own != value) {
      return ForbiddenError(admission.kind, admission.name,
                            StrCat("conflict: runtimeClass.scheduling.nodeSelector[", label,
                                   "] = ", json::GetString(scheduling, {"nodeSelector", label}),
                                   "; pod.spec.nodeSelector[", label,
                                   "] = ", json::GetString(pod, {"spec", "nodeSelector", label})));
    }
    json::Set(pod, {"spec", "nodeSelector", label}, value);
  }
  json::Array tolerations = json::GetArray(pod, {"spec", "tolerations"});
  for (const json::Value& toleration : json::GetArray(scheduling, {"tolerations"})) {
    if (std::find(tolerations.begin(), tolerations.end(), toleration) == tolerations.end()) {
      tolerations.push_back(toleration);
    }
  }
  if (!tolerations.empty()) json::Set(pod, {"spec", "tolerations"}, std::move(tolerations));
  return Status::Ok();
}

// What the pod's runtime takes beyond its containers, and where it runs.
Status AdmitRuntimeClass(const Admission& admission, json::Value& pod) {
  auto rejected = [&admission](std::string_view why) {
    return ForbiddenError(admission.kind, admission.name, StrCat("pod rejected: ", why));
  };
  const std::string name(json::GetString(pod, {"spec", "runtimeClassName"}));
  const bool has_overhead = json::Find(pod, {"spec", "overhead"}) != nullptr;
  json::SharedValue found;
  if (!name.empty()) {
    const auto entry = admission.core.store.Latest({"runtimeclasses.node.k8s.io", "", name});
    if (!entry) return rejected(StrCat("RuntimeClass ", Quote(name), " not found"));
    found = entry->Parsed();
  }
  const api::Amounts asked = api::ReadAmounts(pod, {"spec", "overhead"});
  if (found == nullptr || json::Find(*found, {"overhead"}) == nullptr) {
    // api::Amounts that cannot be are the rules' to refuse.
    const bool sound = std::all_of(asked.begin(), asked.end(), [](const auto& amount) {
      return amount.second >= api::Quantity();
    });
    if (has_overhead && sound) {
      return rejected("Pod Overhead set without corresponding RuntimeClass defined Overhead");
    }
  } else {
    if (has_overhead && asked != api::ReadAmounts(*found, {"overhead", "podFixed"})) {
      return rejected("Pod's Overhead doesn't match RuntimeClass's defined Overhead");
    }
    json::Set(pod, {"spec", "overhead"}, json::GetObject(*found, {"overhead", "podFixed"}));
  }
  const json::Value* scheduling = found ? json::Find(*found, {"scheduling"}) : nullptr;
  return scheduling ? TakeNodes(admission, *scheduling, pod) : Status::Ok();
}

bool Tolerates(const json::Array& tolerations, std::string_view taint) {
  return std::any_of(tolerations.begin(), tolerations.end(), [taint](const json::Value& one) {
    const std::string_view key = json::GetString(one, {"key"});
    const std::string_view effect = json::GetString(one, {"effect"});
    return (key.empty() || key == taint) && (effect.empty() || effect == "NoExecute");
  });
}

// A pod stays on a node that went away for five minutes, unless it says otherwise.
void AddDefaultTolerations(json::Value& pod) {
  json::Array tolerations = json::GetArray(pod, {"spec", "tolerations"});
  const size_t before = tolerations.size();
  for (std::string_view taint : {kNotReady, kUnreachable}) {
    if (Tolerates(tolerations, taint)) continue;
    json::Object toleration;
    toleration["key"] = taint;
    toleration["operator"] = "Exists";
    toleration["effect"] = "NoExecute";
    toleration["tolerationSeconds"] = kTolerationSeconds;
    tolerations.push_back(std::move(toleration));
  }
  if (tolerations.size() != before) {
    json::Set(pod, {"spec", "tolerations"}, std::move(tolerations));
  }
}

void SetSchedulingGatedCondition(json::Value& pod, WallTime now) {
  if (json::GetArray(pod, {"spec", "schedulingGates"}).empty()) return;
  json::Array conditions;
  api::SetCondition(conditions, "PodScheduled", "False", "SchedulingGated",
                    "Scheduling is blocked due to non-empty scheduling gates", now);
  json::Set(pod, {"status", "conditions"}, std::move(conditions));
}

// Pods written for KAI or Run:ai get the part of a GPU that they ask for.
void TakeSharesOfKai(json::Value& pod) {
  for (const auto& [theirs, ours] : api::SharesOfKai()) {
    const std::string asked(api::Annotation(pod, theirs));
    if (asked.empty() || !api::Annotation(pod, ours).empty()) continue;
    json::Set(pod, {"metadata", "annotations", ours}, asked);
  }
}

Status CreatePod(Admission& admission, json::Value& pod) {
  TakeSharesOfKai(pod);
  SWELL_RETURN_IF_ERROR(AdmitPriority(admission, pod));
  AddDefaultTolerations(pod);
  SWELL_RETURN_IF_ERROR(AdmitRuntimeClass(admission, pod));
  SWELL_RETURN_IF_ERROR(AdmitServiceAccount(admission, pod));
  SWELL_RETURN_IF_ERROR(AdmitRunAs(admission, pod));
  SWELL_RETURN_IF_ERROR(MarkChosenIds(admission, pod));
  SWELL_RETURN_IF_ERROR(LimitPod(admission, pod));
  const std::string_view scheduler = api::SchedulerName(pod);
  if (scheduler.empty()) {
    json::Set(pod, {"spec", "schedulerName"},
              json::Value(admission.core.options.default_scheduler));
  }
  json::Set(pod, {"status"}, json::Object{{"phase", "Pending"}});
  SetSchedulingGatedCondition(pod, admission.core.clock.Now());
  return Status::Ok();
}

// A webhook may have added containers, which count towards the pod's amounts.
Status SettlePod(Admission& admission, json::Value& pod) {
  if (!json::GetObject(pod, {"spec", "resources"}).empty()) {
    json::Value& spec = *json::FindMutable(pod, {"spec"});
    api::CompleteWholePod(spec);
    const auto errors = api::ValidatePodAmounts(spec);
    if (!errors.empty()) return InvalidError(admission.kind, admission.name, errors);
  }
  json::Set(pod, {"status", "qosClass"}, api::QosClass(pod));
  return CheckLimits(admission, pod);
}

// The parts of a pod's spec that may change while it lives.
void CopyMutable(json::Value& to, const json::Value& from) {
  for (const char* field : {"activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations",
                            "schedulingGates", "nodeSelector", "affinity", "ephemeralContainers"}) {
    const json::Value* value = json::Find(from, {"spec", field});
    if (value != nullptr) {
      json::Set(to, {"spec", field}, *value);
    } else {
      json::Remove(to, {"spec", field});
    }
  }
  for (const char* list : {"containers", "initContainers"}) {
    json::Value* target = json::FindMutable(to, {"spec", list});
    const json::Array& source = json::GetArray(from, {"spec", list});
    if (target == nullptr || !target->is_array()) continue;
    json::Array& containers = target->get_array();
    if (containers.size() != source.size()) continue;
    for (size_t i = 0; i < containers.size(); ++i) {
      const json::Value* image = json::Find(source[i], {"image"});
      if (image != nullptr && containers[i].is_object()) {
        json::Set(containers[i], {"image"}, *image);
      }
    }
  }
}

// Empty for one that the spec does not have.
const json::Value& SpecOf(const json::Value& pod, std::string_view list, std::string_view name) {
  static const json::Value kNone;
  const json::Value* found = api::ContainerIn(json::GetArray(pod, {"spec", list}), name);
  return found == nullptr ? kNone : *found;
}

// A container that has ended and is not to be restarted stays so, whatever a report says that was
// late.
Status CheckEndedStayEnded(const Admission& admission,
                           const json::Value& object,
                           const json::Value& old) {
  if (api::MayRestartTogether(old)) return Status::Ok();
  std::vector<api::FieldError> errors;
  for (const auto& [list, specs] : {std::pair("containerStatuses", "containers"),
                                    std::pair("initContainerStatuses", "initContainers")}) {
    const json::Array& before = json::GetArray(old, {"status", list});
    for (size_t i = 0; i < before.size(); ++i) {
      const json::Value* end = json::Find(before[i], {"state", "terminated"});
      const std::string_view name = json::GetString(before[i], {"name"});
      if (end == nullptr) continue;
      if (api::RestartsAfter(old, SpecOf(old, specs, name), json::GetInt(*end, {"exitCode"}))) {
        continue;
      }
      for (const json::Value& now : json::GetArray(object, {"status", list})) {
        if (json::GetString(now, {"name"}) != name) continue;
        if (json::Find(now, {"state", "terminated"}) != nullptr) continue;
        errors.push_back(ForbiddenValue(StrCat("status.", list, "[", i, "].state"),
                                        "may not be transitioned to non-terminated state"));
      }
    }
  }
  return errors.empty() ? Status::Ok() : InvalidError(admission.kind, admission.name, errors);
}

// Running pods cannot be rewritten: what may change is copied over the old spec, and anything that
// still differs was not allowed to.
Status UpdatePod(Admission& admission, json::Value& object, const json::Value& old) {
  if (admission.subresource == "status") return CheckEndedStayEnded(admission, object, old);
  if (admission.subresource == "resize") return CheckResize(admission, object, old);
  if (admission.subresource == "ephemeralcontainers") {
    SWELL_RETURN_IF_ERROR(AdmitNewContainers(admission, object));
  }
  AddDefaultTolerations(object);
  std::vector<api::FieldError> errors;
  for (const char* list : {"containers", "initContainers"}) {
    const size_t count = json::GetArray(object, {"spec", list}).size();
    if (count == json::GetArray(old, {"spec", list}).size()) continue;
    const std::string field = StrCat("spec.", list);
    if (count == 0 && field == "spec.containers") errors.push_back(RequiredValue(field));
    errors.push_back(ForbiddenValue(field, "pod updates may not add or remove containers"));
  }
  if (!errors.empty()) return InvalidError(admission.kind, admission.name, errors);
  // Clients that do not know the field leave it out.
  const json::Value* whole = json::Find(old, {"spec", "resources"});
  if (whole != nullptr && json::Find(object, {"spec", "resources"}) == nullptr) {
    json::Set(object, {"spec", "resources"}, *whole);
  }
  json::Value allowed = old;
  CopyMutable(allowed, object);
  const json::Value* want = json::Find(object, {"spec"});
  const json::Value* may = json::Find(allowed, {"spec"});
  if (want != nullptr && may != nullptr && json::Equal(*want, *may)) return Status::Ok();
  return InvalidError(
      admission.kind, admission.name,
      {ForbiddenValue("spec",
                      "pod updates may not change fields other than "
                      "`spec.containers[*].image`,`spec.initContainers[*].image`,"
                      "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
                      "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 "
                      "if it was previously negative)")});
}

Status CreateNode(Admission&, json::Value& object) {
  const json::Value* capacity = json::Find(object, {"status", "capacity"});
  // As kube-apiserver defaults it: a node that does not say otherwise can give all it has.
  if (capacity != nullptr && json::Find(object, {"status", "allocatable"}) == nullptr) {
    const json::Value copy = *capacity;
    json::Set(object, {"status", "allocatable"}, copy);
  }
  return Status::Ok();
}

}  // namespace

void RegisterPods(Core& core) {
  core.hooks.Add("pods", {.create = CreatePod,
                          .settle = SettlePod,
                          .update = UpdatePod,
                          .generation = true,
                          .answers_deleted = true});
  core.hooks.Add("nodes", {.create = CreateNode, .keep_status = true});
  RegisterHttpProxies(core);
}

}  // namespace swell::apiserver
