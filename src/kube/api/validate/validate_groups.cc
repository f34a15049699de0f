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
                FieldErrors& errors) {
  std::vector<std::string> all;
  std::vector<std::string> set;
  for (std::string_view member : members) {
    all.push_back(StrCat("`", member, "`"));
    if (IsSet(of, member)) set.emplace_back(member);
  }
  if (set.size() == 1) return;
  if (set.empty()) {
    errors.push_back(InvalidText(at, "", StrCat("must specify one of: ", Join(all, ", "))));
  } else {
    errors.push_back(InvalidText(at, StrCat("{", Join(set, ", "), "}"),
                                 StrCat("must specify exactly one of: ", Join(all, ", "))));
  }
}

void CheckGroupClaims(const Value& spec, const std::string& path, FieldErrors& errors) {
  const json::Array& claims = json::GetArray(spec, {"resourceClaims"});
  const std::string at = PathField(path, "resourceClaims");
  if (claims.size() > kMaxClaims) errors.push_back(TooManyError(at, claims.size(), kMaxClaims));
  for (size_t i = 0; i < std::min(claims.size(), kMaxClaims); ++i) {
    const std::string one = PathIndex(at, i);
    CheckName(claims[i], "name", CheckDnsLabel, one, errors);
    CheckUnion(claims[i], {"resourceClaimName", "resourceClaimTemplateName"}, one, errors);
  }
}

// The fields that groups, their templates and jobs share. A job need not name a policy.
void CheckGroupSpec(const Value& spec,
                    const std::string& path,
                    bool optional_policy,
                    FieldErrors& errors) {
  if (!optional_policy || IsSet(spec, "schedulingPolicy")) {
    CheckUnion(Part(spec, "schedulingPolicy"), {"basic", "gang"},
               PathField(path, "schedulingPolicy"), errors);
  }
  const json::Array& topology = json::GetArray(spec, {"schedulingConstraints", "topology"});
  const std::string at = PathField(PathField(path, "schedulingConstraints"), "topology");
  if (topology.size() > 1) errors.push_back(TooManyError(at, topology.size(), 1));
  for (const auto& [level, level_at] : ItemsOf(topology, at)) {
    CheckQualified(TextOf(level, "key"), PathField(level_at, "key"), errors);
  }
  if (IsSet(spec, "disruptionMode")) {
    CheckUnion(Part(spec, "disruptionMode"), {"single", "all"}, PathField(path, "disruptionMode"),
               errors);
  }
  CheckSubdomain(spec, "priorityClassName", path, errors);
  CheckGroupClaims(spec, path, errors);
}

void CheckStaysSet(const Value& now,
                   const Value& before,
                   std::string_view key,
                   const std::string& path,
                   FieldErrors& errors) {
  if (IsSet(now, key) == IsSet(before, key)) return;
  const std::string at = PathField(path, key);
  errors.push_back(IsSet(now, key)
                       ? InvalidError(at, Part(now, key), "field cannot be set once created")
                       : InvalidError(at, Value(nullptr), "field cannot be cleared once set"));
}

// Everything but how many pods are the least.
void CheckGroupUpdate(const Value& spec, const Value& before, FieldErrors& errors) {
  for (std::string_view key :
       {"parentCompositePodGroupName", "workloadRef", "schedulingConstraints", "resourceClaims",
        "disruptionMode", "priorityClassName", "priority", "preemptionPolicy"}) {
    CheckImmutable(MemberOf(spec, key), MemberOf(before, key), PathField("spec", key), errors);
  }
  for (std::string_view key : {"basic", "gang"}) {
    CheckStaysSet(Part(spec, "schedulingPolicy"), Part(before, "schedulingPolicy"), key,
                  "spec.schedulingPolicy", errors);
  }
}

void CheckPodGroup(const Value& object, const Value* old, FieldErrors& errors) {
  const Value& spec = SpecOf(object);
  CheckGroupSpec(spec, "spec", false, errors);
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

// All fields but the least number of groups.
void CheckComposite(const Value& object, const Value* old, FieldErrors& errors) {
  const Value& spec = SpecOf(object);
  CheckGroupSpec(spec, "spec", false, errors);
  CheckSubdomain(spec, "parentCompositePodGroupName", "spec", errors);
  const Value& workload = Part(spec, "workloadRef");
  CheckName(workload, "workloadName", CheckDnsSubdomain, "spec.workloadRef", errors);
  CheckName(workload, "templateName", CheckDnsLabel, "spec.workloadRef", errors);
  if (old != nullptr) CheckGroupUpdate(spec, SpecOf(*old), errors);
}

void CheckTemplates(const Value& spec, std::set<std::string_view>& names, FieldErrors& errors) {
  const std::string path = "spec.podGroupTemplates";
  const json::Array& templates = json::GetArray(spec, {"podGroupTemplates"});
  if (templates.size() > kMaxTemplates) {
    errors.push_back(TooManyError(path, templates.size(), kMaxTemplates));
    return;
  }
  for (const auto& [one, at] : ItemsOf(templates, path)) {
    CheckName(one, "name", CheckDnsLabel, at, errors);
    CheckGroupSpec(one, at, false, errors);
    if (!names.insert(TextOf(one, "name")).second) {
      errors.push_back(DuplicateError(at, one));
    }
  }
}

void CheckGangWorkload(const Value& object, const Value* old, FieldErrors& errors) {
  const Value& spec = SpecOf(object);
  CheckUnion(spec, {"podGroupTemplates", "compositePodGroupTemplates"}, "spec", errors);
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

void CheckJobScheduling(const Value& spec,
                        const Value* before,
                        const std::string& path,
                        FieldErrors& errors) {
  const std::string at = PathField(path, "scheduling");
  if (before != nullptr) CheckStaysSet(spec, *before, "scheduling", path, errors);
  if (!IsSet(spec, "scheduling")) return;
  const Value& said = Part(spec, "scheduling");
  const Value& policy = Part(said, "schedulingPolicy");
  CheckGroupSpec(said, at, true, errors);
  const int64_t parallelism = json::GetInt(spec, {"parallelism"}, 1);
  const Value* least = MemberOf(Part(policy, "gang"), "minCount");
  if (least != nullptr && json::GetInt(policy, {"gang", "minCount"}) > parallelism) {
    errors.push_back(
        InvalidError(PathField(PathField(PathField(at, "schedulingPolicy"), "gang"), "minCount"),
                     *least, StrCat("must not be greater than parallelism (", parallelism, ")")));
  }
  if (!IsSet(policy, "gang") && IsSet(Part(said, "disruptionMode"), "all")) {
    errors.push_back(
        InvalidText(PathField(at, "disruptionMode"), "",
                    "the disruptionMode `all` is not supported with the Basic scheduling policy"));
  }
  if (before == nullptr || !IsSet(*before, "scheduling")) return;
  const Value& was = Part(*before, "scheduling");
  CheckStaysSet(said, was, "schedulingPolicy", at, errors);
  const Value& old_policy = Part(was, "schedulingPolicy");
  if (IsSet(said, "schedulingPolicy") && IsSet(was, "schedulingPolicy") &&
      IsSet(policy, "basic") != IsSet(old_policy, "basic")) {
    errors.push_back(InvalidError(PathField(at, "schedulingPolicy"), Value(nullptr),
                                  "the basic/gang policy variant is immutable after creation; only "
                                  "schedulingPolicy.gang.minCount may be updated"));
  }
  for (std::string_view key : {"schedulingConstraints", "disruptionMode", "resourceClaims"}) {
    CheckImmutable(MemberOf(said, key), MemberOf(was, key), PathField(at, key), errors);
  }
}

void CheckGroupKinds(const KindInfo& kind,
                     const Value& object,
                     const Value* old,
                     FieldErrors& errors) {
  if (kind.gvk.group != "scheduling.k8s.io") return;
  if (kind.gvk.kind == "PodGroup") CheckPodGroup(object, old, errors);
  if (kind.gvk.kind == "CompositePodGroup") CheckComposite(object, old, errors);
  if (kind.gvk.kind == "Workload") CheckGangWorkload(object, old, errors);
}

}  // namespace swell::api
