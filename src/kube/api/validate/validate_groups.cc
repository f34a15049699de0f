// Rules of Kubernetes' own gangs (scheduling.k8s.io/v1beta1): groups of pods, and workloads, which
// are templates of groups.
#include <algorithm>
#include <initializer_list>
#include <set>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/validate/validate_rules.h"

namespace swell::api {
namespace {

using json::Value;

constexpr size_t kMaxTemplates = 8;
constexpr size_t kMaxClaims = 4;

const Value& Part(const Value& parent, std::string_view key) {
  static const Value none = json::Object();
  const Value* found = MemberOf(parent, key);
  return found == nullptr ? none : *found;
}

bool IsSet(const Value& parent, std::string_view key) {
  const Value* value = MemberOf(parent, key);
  return value != nullptr && !value->is_null();
}

// One of the members is set; none may be where `optional`.
void CheckUnion(const Value& of,
                std::initializer_list<std::string_view> members,
                const std::string& at,
                bool optional,
                FieldErrors& errors) {
  std::vector<std::string> all;
  std::vector<std::string> set;
  for (std::string_view member : members) {
    all.push_back(StrCat("`", member, "`"));
    if (IsSet(of, member)) set.emplace_back(member);
  }
  if (set.size() == 1 || (set.empty() && optional)) return;
  if (set.empty()) {
    errors.push_back(InvalidText(at, "", StrCat("must specify one of: ", Join(all, ", "))));
  } else {
    errors.push_back(InvalidText(at, StrCat("{", Join(set, ", "), "}"),
                                 StrCat("must specify exactly one of: ", Join(all, ", "))));
  }
}

void CheckName(const Value& holder,
               std::string_view key,
               std::string (*check)(std::string_view),
               const std::string& path,
               FieldErrors& errors) {
  const std::string_view name = TextOf(holder, key);
  if (name.empty()) {
    errors.push_back(RequiredError(PathField(path, key)));
  } else if (std::string why = check(name); !why.empty()) {
    errors.push_back(InvalidText(PathField(path, key), name, why));
  }
}

void CheckGroupClaims(const Value& spec, const std::string& path, FieldErrors& errors) {
  const json::Array& claims = json::GetArray(spec, {"resourceClaims"});
  const std::string at = PathField(path, "resourceClaims");
  if (claims.size() > kMaxClaims) errors.push_back(TooManyError(at, claims.size(), kMaxClaims));
  for (size_t i = 0; i < std::min(claims.size(), kMaxClaims); ++i) {
    const std::string one = PathIndex(at, i);
    CheckName(claims[i], "name", CheckDnsLabel, one, errors);
    CheckUnion(claims[i], {"resourceClaimName", "resourceClaimTemplateName"}, one, false, errors);
  }
}

// What groups and their templates have in common.
void CheckGroupSpec(const Value& spec, const std::string& path, FieldErrors& errors) {
  CheckUnion(Part(spec, "schedulingPolicy"), {"basic", "gang"}, PathField(path, "schedulingPolicy"),
             false, errors);
  const json::Array& topology = json::GetArray(spec, {"schedulingConstraints", "topology"});
  const std::string at = PathField(PathField(path, "schedulingConstraints"), "topology");
  if (topology.size() > 1) errors.push_back(TooManyError(at, topology.size(), 1));
  for (size_t i = 0; i < topology.size(); ++i) {
    CheckQualified(TextOf(topology[i], "key"), PathField(PathIndex(at, i), "key"), errors);
  }
  if (IsSet(spec, "disruptionMode")) {
    CheckUnion(Part(spec, "disruptionMode"), {"single", "all"}, PathField(path, "disruptionMode"),
               false, errors);
  }
  CheckSubdomain(spec, "priorityClassName", path, errors);
  CheckGroupClaims(spec, path, errors);
}

// Everything but how many pods are the least.
void CheckGroupUpdate(const Value& spec, const Value& before, FieldErrors& errors) {
  for (std::string_view key :
       {"parentCompositePodGroupName", "workloadRef", "schedulingConstraints", "resourceClaims",
        "disruptionMode", "priorityClassName", "priority", "preemptionPolicy"}) {
    CheckImmutable(MemberOf(spec, key), MemberOf(before, key), PathField("spec", key), errors);
  }
  const Value& policy = Part(spec, "schedulingPolicy");
  const Value& was = Part(before, "schedulingPolicy");
  for (std::string_view key : {"basic", "gang"}) {
    if (IsSet(policy, key) == IsSet(was, key)) continue;
    const std::string at = PathField("spec.schedulingPolicy", key);
    errors.push_back(IsSet(policy, key)
                         ? InvalidError(at, Part(policy, key), "field cannot be set once created")
                         : InvalidError(at, Value(nullptr), "field cannot be cleared once set"));
  }
}

void CheckPodGroup(const Value& object, const Value* old, FieldErrors& errors) {
  const Value& spec = SpecOf(object);
  CheckGroupSpec(spec, "spec", errors);
  if (IsSet(spec, "workloadRef")) {
    const Value& workload = Part(spec, "workloadRef");
    CheckName(workload, "workloadName", CheckDnsSubdomain, "spec.workloadRef", errors);
    CheckName(workload, "templateName", CheckDnsLabel, "spec.workloadRef", errors);
  } else if (IsSet(spec, "parentCompositePodGroupName")) {
    errors.push_back(
        RequiredError("spec.workloadRef", "must be set when parentCompositePodGroupName is set"));
  }
  if (old != nullptr) CheckGroupUpdate(spec, SpecOf(*old), errors);
}

void CheckTemplates(const Value& spec, std::set<std::string_view>& names, FieldErrors& errors) {
  const std::string path = "spec.podGroupTemplates";
  const json::Array& templates = json::GetArray(spec, {"podGroupTemplates"});
  if (templates.size() > kMaxTemplates) {
    errors.push_back(TooManyError(path, templates.size(), kMaxTemplates));
    return;
  }
  for (size_t i = 0; i < templates.size(); ++i) {
    const std::string at = PathIndex(path, i);
    CheckName(templates[i], "name", CheckDnsLabel, at, errors);
    CheckGroupSpec(templates[i], at, errors);
    if (!names.insert(TextOf(templates[i], "name")).second) {
      errors.push_back(DuplicateError(at, templates[i]));
    }
  }
}

void CheckGangWorkload(const Value& object, const Value* old, FieldErrors& errors) {
  const Value& spec = SpecOf(object);
  CheckUnion(spec, {"podGroupTemplates", "compositePodGroupTemplates"}, "spec", false, errors);
  std::set<std::string_view> names;
  CheckTemplates(spec, names, errors);
  const json::Array& groups = json::GetArray(spec, {"compositePodGroupTemplates"});
  if (groups.size() > kMaxTemplates) {
    errors.push_back(TooManyError("spec.compositePodGroupTemplates", groups.size(), kMaxTemplates));
  }
  if (IsSet(spec, "controllerRef")) {
    const Value& owner = Part(spec, "controllerRef");
    CheckSubdomain(owner, "apiGroup", "spec.controllerRef", errors);
    CheckName(owner, "kind", CheckPathSegmentName, "spec.controllerRef", errors);
    CheckName(owner, "name", CheckPathSegmentName, "spec.controllerRef", errors);
  }
  if (old == nullptr) return;
  const Value& before = SpecOf(*old);
  CheckImmutable(MemberOf(spec, "controllerRef"), MemberOf(before, "controllerRef"),
                 "spec.controllerRef", errors);
  std::set<std::string_view> had;
  for (const Value& one : json::GetArray(before, {"podGroupTemplates"})) {
    had.insert(TextOf(one, "name"));
  }
  if (had != names) {
    errors.push_back(ForbiddenError("spec.podGroupTemplates",
                                    "templates may not be added or removed after creation"));
  }
}

}  // namespace

void CheckGroupKinds(const KindInfo& kind,
                     const Value& object,
                     const Value* old,
                     FieldErrors& errors) {
  if (kind.gvk.group != "scheduling.k8s.io") return;
  if (kind.gvk.kind == "PodGroup") CheckPodGroup(object, old, errors);
  if (kind.gvk.kind == "Workload") CheckGangWorkload(object, old, errors);
}

}  // namespace swell::api
