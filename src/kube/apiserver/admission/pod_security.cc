#include "kube/apiserver/admission/pod_security.h"

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/user.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/access/charged_project.h"
#include "kube/apiserver/access/submitter.h"
#include "kube/apiserver/access/work.h"
#include "kube/apiserver/admission/pod_security_checks.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

namespace keys = api::keys;

constexpr std::string_view kLabel = "pod-security.kubernetes.io/";
constexpr std::string_view kPrivileged = "privileged";
constexpr std::string_view kSystemNamespace = "kube-system";
// Pods that are read where a namespace's level becomes stricter.
constexpr size_t kPodsChecked = 3000;
constexpr size_t kWarningsMax = 20;

// A level that cannot be read is the strictest: it was meant to be one. `label` finds a label of
// the namespace.
template <class Label>
PodSecurityPolicy PolicyOf(const Label& label, std::string_view mode) {
  PodSecurityPolicy policy;
  const std::string key = StrCat(kLabel, mode);
  const std::string_view level = label(key);
  if (level.empty()) return policy;
  policy.level = ParsePodSecurityLevel(level).value_or(PodSecurityLevel::kRestricted);
  const std::string_view version = label(key + "-version");
  if (!version.empty()) {
    policy.minor = ParsePodSecurityVersion(version).value_or(PodSecurityPolicy::kLatest);
  }
  return policy;
}

PodSecurityPolicy PolicyOf(const json::Value& ns, std::string_view mode) {
  return PolicyOf([&ns](std::string_view key) { return api::Label(ns, key); }, mode);
}

// What a namespace says of its pods.
struct NamespaceRules {
  std::string name;
  PodSecurityPolicy enforce, audit, warn;
};

NamespaceRules RulesOf(const Core& core, const std::string& ns) {
  NamespaceRules rules{ns, {}, {}, {}};
  const auto entry = core.store.Latest({"namespaces", "", ns});
  if (!entry) return rules;
  const api::StringPairs& labels = entry->attributes.labels;
  auto label = [&labels](std::string_view key) { return labels.Find(key).value_or(""); };
  rules.enforce = PolicyOf(label, "enforce");
  rules.audit = PolicyOf(label, "audit");
  rules.warn = PolicyOf(label, "warn");
  return rules;
}

// Also true of what the server itself writes.
bool MayExceed(const Admission& admission) {
  return admission.call == nullptr ||
         MayExceedPodSecurity(admission.core, admission.call->user, admission.ns);
}

bool IsStamped(const json::Value& object) {
  return api::Annotation(object, keys::kPodSecurity) == kPrivileged;
}

void Stamp(json::Value& object, bool stamped) {
  if (stamped) {
    json::Set(object, {"metadata", "annotations", keys::kPodSecurity}, json::Value(kPrivileged));
  } else if (json::Find(object, {"metadata", "annotations", keys::kPodSecurity}) != nullptr) {
    json::Remove(object, {"metadata", "annotations", keys::kPodSecurity});
  }
}

std::string CleanPath(std::string_view path) {
  while (path.size() > 1 && path.ends_with("/")) path.remove_suffix(1);
  return std::string(path);
}

// Every mount of the volume says readOnly.
bool IsOnlyRead(const json::Value& pod, std::string_view volume) {
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const json::Value& container : json::GetArray(pod, {"spec", list})) {
      for (const json::Value& mount : json::GetArray(container, {"volumeMounts"})) {
        const bool of_it = json::GetString(mount, {"name"}) == volume;
        if (of_it && !json::GetBool(mount, {"readOnly"})) return false;
      }
    }
  }
  return true;
}

// The list of the project whose namespace it is. A path counts as it is written and no deeper:
// below it a member could have made a link that leads elsewhere.
json::Array HostPathsOf(const Core& core, const std::string& ns) {
  const json::SharedValue project = ProjectOfNamespace(core, ns);
  return project ? json::GetArray(*project, {"spec", "allowedHostPaths"}) : json::Array();
}

AllowsVolume AllowedVolumes(const Core& core, const std::string& ns, const json::Value& pod) {
  const json::Array& volumes = json::GetArray(pod, {"spec", "volumes"});
  const bool any = std::any_of(volumes.begin(), volumes.end(), [](const json::Value& volume) {
    return json::Find(volume, {"hostPath"}) != nullptr;
  });
  json::Array paths = any ? HostPathsOf(core, ns) : json::Array();
  if (paths.empty()) return {};
  return [paths = std::move(paths), &pod](const json::Value& volume) {
    const std::string path = CleanPath(json::GetString(volume, {"hostPath", "path"}));
    // Root would make what is not there.
    if (json::GetString(volume, {"hostPath", "type"}).ends_with("OrCreate")) return false;
    return std::any_of(paths.begin(), paths.end(), [&](const json::Value& allowed) {
      return CleanPath(json::GetString(allowed, {"path"})) == path &&
             (!json::GetBool(allowed, {"readOnly"}) ||
              IsOnlyRead(pod, json::GetString(volume, {"name"})));
    });
  };
}

// What people can do about a directory of the node that they may not mount; empty: it is no
// project's namespace.
std::string HostPathAdvice(const Core& core, const std::string& ns, const json::Value& volume) {
  const json::SharedValue own = ProjectOfNamespace(core, ns);
  if (!own) return "";
  const std::string project(api::Name(*own));
  const std::string path = CleanPath(json::GetString(volume, {"hostPath", "path"}));
  for (const json::Value& allowed : json::GetArray(*own, {"spec", "allowedHostPaths"})) {
    const std::string there = CleanPath(json::GetString(allowed, {"path"}));
    if (there == path) {
      const bool creates = json::GetString(volume, {"hostPath", "type"}).ends_with("OrCreate");
      return StrCat("; project ", project, " allows ", path,
                    creates ? " only with a hostPath.type that creates nothing"
                            : " only to mounts that say readOnly: true");
    }
    if (path.starts_with(there + "/")) {
      return StrCat("; project ", project, " allows ", there, ": mount that, with subPath");
    }
  }
  return StrCat(
      "; an administrator can allow it in spec.allowedHostPaths of the project: swell "
      "project edit ",
      project, " --allow-host-path ", path);
}

// For the first directory of the node that a pod of the object may not mount.
std::string AdviceOnHostPaths(const Core& core,
                              const std::string& ns,
                              Work work,
                              const json::Value& object) {
  std::vector<const json::Value*> pods{&object};
  if (work != Work::kPod) pods = TemplatesOf(work, object);
  const std::vector<json::Value> changes = SpecChangesOf(work, object);
  for (const json::Value& change : changes) pods.push_back(&change);
  for (const json::Value* pod : pods) {
    const AllowsVolume allows = AllowedVolumes(core, ns, *pod);
    for (const json::Value& volume : json::GetArray(*pod, {"spec", "volumes"})) {
      if (json::Find(volume, {"hostPath"}) == nullptr) continue;
      if (!allows || !allows(volume)) return HostPathAdvice(core, ns, volume);
    }
  }
  return "";
}

// What is wrong with the first pod of the object that goes beyond the policy; empty: nothing.
std::string Violations(const Core& core,
                       const NamespaceRules& rules,
                       const PodSecurityPolicy& policy,
                       Work work,
                       const json::Value& object) {
  if (policy.level == PodSecurityLevel::kPrivileged) return "";
  PodSecurityPolicy held = policy;
  // What "restricted" wants a pod to say, the runtime may say for it: its pods are judged whole.
  if (TakesRuntime(work, object)) held.level = PodSecurityLevel::kBaseline;
  auto check = [&](const json::Value& pod) {
    return Describe(CheckPodSecurity(held, pod, AllowedVolumes(core, rules.name, pod)));
  };
  if (work == Work::kPod) return check(object);
  for (const json::Value* one : TemplatesOf(work, object)) {
    if (std::string wrong = check(*one); !wrong.empty()) return wrong;
  }
  for (const json::Value& change : SpecChangesOf(work, object)) {
    if (std::string wrong = check(change); !wrong.empty()) return wrong;
  }
  for (const MadePod& made : MadePodsOf(work, object)) {
    if (std::string wrong = check(made.pod); !wrong.empty()) return wrong;
  }
  return "";
}

// Whether the object needs the right: it goes beyond what is usual, or beyond what holds here.
bool Exceeds(const Admission& admission, Work work, const json::Value& object) {
  if (admission.ns != kSystemNamespace && !SystemClassIn(work, object).empty()) return true;
  if (NamesIdsOfMachine(work, object)) return true;
  const NamespaceRules rules = RulesOf(admission.core, admission.ns);
  PodSecurityPolicy policy = rules.enforce;
  if (policy.level == PodSecurityLevel::kPrivileged) policy.level = PodSecurityLevel::kBaseline;
  return !Violations(admission.core, rules, policy, work, object).empty();
}

bool IsRelevant(const Admission& admission, Work work) {
  return work != Work::kNone && work != Work::kRuntime && admission.subresource != "status";
}

Status RefuseSystemClass(const Admission& admission,
                         std::string_view field,
                         std::string_view found) {
  return ForbiddenError(admission.kind, admission.name,
                        StrCat(field, ": ", Quote(found), ": only pods in ", kSystemNamespace,
                               " and administrators may use it"));
}

Status CheckSystemClass(const Admission& admission, Work work, const json::Value& object) {
  const std::string found = SystemClassIn(work, object);
  if (found.empty() || admission.ns == kSystemNamespace) return Status::Ok();
  return RefuseSystemClass(
      admission, work == Work::kPod ? "spec.priorityClassName" : "priorityClassName", found);
}

// Schedulers place the pods of a group by the group's class, whatever theirs is.
Status CheckClassOfGroup(const Admission& admission,
                         const json::Value& group,
                         const json::Value* old) {
  const std::string_view found = json::GetString(group, {"spec", "priorityClassName"});
  const bool same = old != nullptr && json::GetString(*old, {"spec", "priorityClassName"}) == found;
  if (same || !IsSystemClass(found)) return Status::Ok();
  if (admission.ns == kSystemNamespace || MayExceed(admission)) return Status::Ok();
  return RefuseSystemClass(admission, "spec.priorityClassName", found);
}

void Note(const Admission& admission, std::string key, std::string text) {
  if (admission.call == nullptr) return;
  auto& notes = admission.call->audit_annotations;
  key = StrCat(kLabel, key);
  // A handler that waited for a webhook comes here again.
  for (const auto& [known, value] : notes) {
    if (known == key) return;
  }
  notes.emplace_back(std::move(key), std::move(text));
}

// The annotations by which a container chooses its profile.
std::map<std::string_view, json::Value> ProfilesIn(const json::Value& pod) {
  std::map<std::string_view, json::Value> profiles;
  for (const auto& [key, value] : api::Annotations(pod)) {
    const std::string_view name(key.data(), key.size());
    if (name.starts_with("container.apparmor.")) profiles.emplace(name, value);
  }
  return profiles;
}

// The images of all containers, in order.
std::vector<std::string_view> ImagesIn(const json::Value& pod) {
  std::vector<std::string_view> images;
  for (const char* list : {"initContainers", "containers"}) {
    for (const json::Value& container : json::GetArray(pod, {"spec", list})) {
      images.push_back(json::GetString(container, {"image"}));
    }
  }
  return images;
}

// An update of a pod matters where it changes what is checked: containers are added, or a profile;
// and where it changes what runs with the rights that the pod has.
bool PodChanged(const Admission& admission, const json::Value& object, const json::Value& old) {
  return admission.subresource == "ephemeralcontainers" || ProfilesIn(object) != ProfilesIn(old) ||
         ImagesIn(object) != ImagesIn(old);
}

Status CheckPolicies(const Admission& admission, Work work, const json::Value& object) {
  const NamespaceRules policies = RulesOf(admission.core, admission.ns);
  auto violations = [&](const PodSecurityPolicy& policy) {
    return Violations(admission.core, policies, policy, work, object);
  };
  const std::string enforced = violations(policies.enforce);
  if (policies.enforce.level != PodSecurityLevel::kPrivileged) {
    Note(admission, "enforce-policy", policies.enforce.ToString());
  }
  auto would = [](const PodSecurityPolicy& policy, const std::string& what) {
    return StrCat("would violate PodSecurity ", Quote(policy.ToString()), ": ", what);
  };
  if (const std::string wrong = violations(policies.audit); !wrong.empty()) {
    Note(admission, "audit-violations", would(policies.audit, wrong));
  }
  // A job's pods are all that it is; of a workload Kubernetes refuses the pods alone.
  const bool refuses = work == Work::kPod || work == Work::kJob || work == Work::kCronWorkload;
  if (!enforced.empty() && refuses) {
    return ForbiddenError(
        admission.kind, admission.name,
        StrCat("violates PodSecurity ", Quote(policies.enforce.ToString()), ": ", enforced,
               AdviceOnHostPaths(admission.core, admission.ns, work, object)));
  }
  if (const std::string wrong = violations(policies.warn); !wrong.empty()) {
    admission.Warn(would(policies.warn, wrong));
  }
  return Status::Ok();
}

}  // namespace

namespace {

// Whether the author of what the object asks for may exceed the level, where that is needed.
bool AuthorMayExceed(const Admission& admission, Work work, const json::Value& object) {
  // A controller of somebody's own has no author that is known.
  if (api::ControllerOf(object)) return false;
  // Nor is it the author of what others write into its runtime.
  if (TakesRuntime(work, object)) return false;
  return Exceeds(admission, work, object) && MayExceed(admission);
}

}  // namespace

void StampPodSecurity(const Admission& admission, json::Value& object, const json::Value* old) {
  const Work work = WorkOf(admission.kind);
  if (work == Work::kNone || admission.call == nullptr) return;
  // What the system's controllers make of others' work carries what that work carries.
  if (IsSystem(admission.call->user) && api::ControllerOf(object)) return;
  if (work == Work::kPod) {
    // A pod that people bring is judged once, now; it needs no mark for later.
    const bool stamped = old != nullptr && IsStamped(*old);
    if (stamped != IsStamped(object)) Stamp(object, stamped);
    return;
  }
  // A report changes nothing of what there is to run.
  if (admission.subresource == "status") return;
  const bool same = old != nullptr && !PodsDiffer(work, object, *old);
  if (work == Work::kCronWorkload) {
    for (json::Value* one : TemplatesOf(work, object)) Stamp(*one, false);
  }
  // The mark is in its template.
  json::Value* job = work == Work::kCronTemplate ? JobTemplateOf(work, object) : nullptr;
  if (job != nullptr) Stamp(*job, false);
  if (work == Work::kTemplate || work == Work::kCronTemplate || work == Work::kCronWorkload) {
    json::Value* is = TemplateOf(work, object);
    const json::Value* was = same ? TemplateOf(work, *old) : nullptr;
    if (is == nullptr) return;
    Stamp(*is, same ? was != nullptr && IsStamped(*was) : AuthorMayExceed(admission, work, object));
    return;
  }
  for (json::Value* one : TemplatesOf(work, object)) Stamp(*one, false);
  if (work == Work::kRuntime) return;
  Stamp(object, same ? IsStamped(*old) : AuthorMayExceed(admission, work, object));
}

namespace {

bool IsExempt(const Admission& admission,
              Work work,
              const json::Value& object,
              const json::Value* old) {
  if (work != Work::kPod) {
    const json::Value* pods = TemplateOf(work, object);
    return IsStamped(pods != nullptr ? *pods : object);
  }
  // A pod that an administrator runs does not let others add containers to it.
  if (old != nullptr) return MayExceed(admission);
  return IsStamped(object) || (!api::ControllerOf(object) && MayExceed(admission));
}

// A person who may exceed the level is told what others would be refused.
void WarnOfExemption(const Admission& admission, Work work, const json::Value& object) {
  const std::string& person = admission.call->user.name;
  if (person.empty() || person.starts_with("system:")) return;
  const NamespaceRules rules = RulesOf(admission.core, admission.ns);
  const std::string wrong = Violations(admission.core, rules, rules.enforce, work, object);
  if (wrong.empty()) return;
  admission.Warn(StrCat("violates PodSecurity ", Quote(rules.enforce.ToString()), ": ", wrong,
                        "; taken, because user ", Quote(person), " may exceed the level"));
}

}  // namespace

Status CheckPodSecurity(const Admission& admission,
                        const json::Value& object,
                        const json::Value* old) {
  const std::string& plural = admission.kind.plural;
  if (plural == "podgroups" || plural == "compositepodgroups") {
    return CheckClassOfGroup(admission, object, old);
  }
  const Work work = WorkOf(admission.kind);
  if (!IsRelevant(admission, work) || admission.call == nullptr) return Status::Ok();
  if (old != nullptr && (work == Work::kPod ? !PodChanged(admission, object, *old)
                                            : !PodsDiffer(work, object, *old))) {
    return Status::Ok();
  }
  if (IsExempt(admission, work, object, old)) {
    Note(admission, "exempt", "user");
    WarnOfExemption(admission, work, object);
    return Status::Ok();
  }
  SWELL_RETURN_IF_ERROR(CheckSystemClass(admission, work, object));
  // A new image or container is one more way to act in the pod.
  if (work == Work::kPod && old != nullptr) {
    SWELL_RETURN_IF_ERROR(CheckSameNumbers(admission.core, *admission.call, object));
  }
  SWELL_RETURN_IF_ERROR(CheckIdsOfWork(admission, work, object));
  return CheckPolicies(admission, work, object);
}

Status MarkChosenIds(const Admission& admission, json::Value& pod) {
  bool matters = false;
  for (const json::Value& volume : json::GetArray(pod, {"spec", "volumes"})) {
    matters = matters || json::Find(volume, {"hostPath"}) != nullptr;
  }
  for (const char* list : {"initContainers", "containers"}) {
    for (const json::Value& container : json::GetArray(pod, {"spec", list})) {
      matters = matters || json::Find(container, {"securityContext", "runAsUser"}) != nullptr;
    }
  }
  matters = matters || json::Find(pod, {"spec", "securityContext", "runAsUser"}) != nullptr;
  if (!matters || admission.call == nullptr) return Status::Ok();
  if (IsExempt(admission, Work::kPod, pod, nullptr)) return Status::Ok();
  SWELL_ASSIGN_OR_RETURN(const bool given, HasGivenNumbers(admission, pod));
  if (!given) json::Set(pod, {"metadata", "annotations", api::kIdsChosen}, json::Value("true"));
  return Status::Ok();
}

namespace {

// A container that runs work of an author who may exceed the level, and asks in that author's name.
// A token that somebody else asked for names that other.
bool IsOfSuchAuthor(const Core& core, const Call& call) {
  const auto account = ParseAccountUser(call.user.name);
  if (!account || account->ns != call.info.ns) return false;
  const auto extra = [&call](std::string_view key) -> std::string {
    for (const auto& [name, values] : call.user.extra) {
      if (name == key && !values.empty()) return values.front();
    }
    return "";
  };
  const auto entry =
      core.store.Latest({"pods", account->ns, extra("authentication.kubernetes.io/pod-name")});
  if (!entry || entry->attributes.uid != extra("authentication.kubernetes.io/pod-uid")) {
    return false;
  }
  const json::SharedValue pod = entry->Parsed();
  return IsStamped(*pod) && SubmitterOf(core, call) == api::Annotation(*pod, keys::kUser);
}

}  // namespace

Status CheckPodConnection(Core& core, const Call& call, const json::Value& pod) {
  // A program's port is open to the other pods of the project anyway.
  if (call.info.subresource != "proxy") {
    Status same = CheckSameNumbers(core, call, pod);
    if (!same.ok() && !MayExceedPodSecurity(core, call.user, call.info.ns)) return same;
  }
  const NamespaceRules rules = RulesOf(core, call.info.ns);
  PodSecurityPolicy policy = rules.enforce;
  if (policy.level == PodSecurityLevel::kPrivileged) return Status::Ok();
  policy.level = PodSecurityLevel::kBaseline;
  const std::string wrong = Violations(core, rules, policy, Work::kPod, pod);
  if (wrong.empty() && !IsStamped(pod)) return Status::Ok();
  if (MayExceedPodSecurity(core, call.user, call.info.ns) || IsOfSuchAuthor(core, call)) {
    return Status::Ok();
  }
  const std::string why =
      wrong.empty() ? StrCat("it belongs to work that exceeds the level ",
                             Quote(rules.enforce.ToString()), " of its namespace")
                    : StrCat("it violates PodSecurity ", Quote(policy.ToString()), ": ", wrong);
  return ForbiddenError(*call.kind, call.info.name,
                        StrCat(call.info.subresource,
                               " needs the right to exceed the Pod Security "
                               "level, as the pod does: ",
                               why));
}

namespace {

// Pods that are there already and that the new level would refuse, as Kubernetes warns of them.
void WarnOfPods(const Admission& admission, const PodSecurityPolicy& policy) {
  const auto pods = admission.core.store.List("pods", admission.name, {}, kPodsChecked);
  if (!pods.ok()) return;
  std::map<std::string, std::vector<std::string>> found;  // what is wrong → pods
  for (const store::EntryPtr& entry : pods->entries) {
    const json::SharedValue pod = entry->Parsed();
    if (IsStamped(*pod)) continue;
    std::string reasons;
    for (const auto& one :
         CheckPodSecurity(policy, *pod, AllowedVolumes(admission.core, admission.name, *pod))) {
      reasons += StrCat(reasons.empty() ? "" : ", ", one.reason);
    }
    if (!reasons.empty()) found[reasons].push_back(entry->key.name);
  }
  if (found.empty()) return;
  admission.Warn(StrCat("existing pods in namespace ", Quote(admission.name),
                        " violate the new PodSecurity enforce level ", Quote(policy.ToString())));
  size_t count = 0;
  for (const auto& [reasons, names] : found) {
    if (++count > kWarningsMax) return;
    const size_t others = names.size() - 1;
    const std::string more =
        others == 0 ? "" : StrCat(" (and ", others, " other ", others == 1 ? "pod" : "pods", ")");
    admission.Warn(StrCat(names.front(), more, ": ", reasons));
  }
}

}  // namespace

Status CheckPodSecurityLabels(const Admission& admission,
                              const json::Value& ns,
                              const json::Value* old) {
  std::vector<api::FieldError> errors;
  for (std::string_view mode : {"enforce", "audit", "warn"}) {
    const std::string level = StrCat(kLabel, mode);
    const std::string version = level + "-version";
    for (const std::string& key : {level, version}) {
      const json::Value* value = json::Find(ns, {"metadata", "labels", key});
      if (value == nullptr || !value->is_string()) continue;
      const std::string_view text = json::View(value->get_string());
      const std::string field = StrCat("metadata.labels[", key, "]");
      if (key == level && !ParsePodSecurityLevel(text)) {
        errors.push_back(
            InvalidValue(field, text, "must be one of privileged, baseline, restricted"));
      } else if (key == version && !ParsePodSecurityVersion(text)) {
        errors.push_back(InvalidValue(field, text, R"(must be "latest" or "v1.x")"));
      }
    }
  }
  if (!errors.empty()) return InvalidError(admission.kind, admission.name, errors);
  if (old == nullptr) return Status::Ok();
  const PodSecurityPolicy now = PolicyOf(ns, "enforce");
  const PodSecurityPolicy before = PolicyOf(*old, "enforce");
  if (now.level > before.level || (now.level == before.level && now.minor > before.minor)) {
    WarnOfPods(admission, now);
  }
  return Status::Ok();
}

}  // namespace swell::apiserver
