// ValidateObject: metadata for every kind, then the kind's own rules.

#include <algorithm>
#include <limits>
#include <set>

#include "base/strings.h"
#include "kube/api/crd/crd_schema.h"
#include "kube/api/meta/meta.h"
#include "kube/api/validate/validate_rules.h"

namespace swell::api {

using json::Value;

namespace {

std::string CheckObjectName(const KindInfo& kind, std::string_view name) {
  const std::string& k = kind.gvk.kind;
  if (!kind.custom) {
    if (k == "Namespace" || k == "Service" || k == "StatefulSet") return CheckDnsLabel(name);
    if (k == "IPAddress") return CheckIp(name);
    if (kind.gvk.group == "rbac.authorization.k8s.io") {
      return CheckPathSegmentName(name);
    }
  }
  return CheckDnsSubdomain(name);
}

void CheckNames(const KindInfo& kind, const Value& object, FieldErrors& errors) {
  std::string name(Name(object));
  std::string_view generate = json::GetString(object, {"metadata", "generateName"});
  if (!generate.empty()) {
    std::string probe(generate);
    if (probe.back() == '-') probe.back() = 'a';  // a suffix follows
    if (std::string why = CheckObjectName(kind, probe); !why.empty()) {
      errors.push_back(InvalidText("metadata.generateName", generate, why));
    }
  }
  if (name.empty()) {
    if (generate.empty() && !kind.read_only) {
      errors.push_back(RequiredError("metadata.name", "name or generateName is required"));
    }
    return;
  }
  if (std::string why = CheckObjectName(kind, name); !why.empty()) {
    errors.push_back(InvalidText("metadata.name", name, why));
  }
}

void CheckOwners(const Value& object, FieldErrors& errors) {
  const json::Array& owners = json::GetArray(object, {"metadata", "ownerReferences"});
  std::string controller;
  for (const auto& [owner, at] : ItemsOf(owners, "metadata.ownerReferences")) {
    for (std::string_view key : {"apiVersion", "kind", "name", "uid"}) {
      if (TextOf(owner, key).empty()) {
        errors.push_back(RequiredError(PathField(at, key), "must not be empty"));
      }
    }
    const std::string_view version = TextOf(owner, "apiVersion");
    if (version.ends_with('/') || version.find('/') != version.rfind('/')) {
      errors.push_back(InvalidText(PathField(at, "apiVersion"), version,
                                   "must be <group>/<version> or <version>"));
    }
    if (TextOf(owner, "apiVersion") == "v1" && TextOf(owner, "kind") == "Event") {
      errors.push_back(
          InvalidError(at, owner, "/v1, Kind=Event is disallowed from being an owner"));
    }
    if (!json::GetBool(owner, {"controller"})) continue;
    const std::string name = StrCat(TextOf(owner, "kind"), "/", TextOf(owner, "name"));
    if (!controller.empty()) {
      errors.push_back(InvalidError(
          "metadata.ownerReferences", *json::Find(object, {"metadata", "ownerReferences"}),
          StrCat("Only one reference can have Controller set to true. Found \"true\" in "
                 "references for ",
                 controller, " and ", name)));
      continue;
    }
    controller = name;
  }
}

// Only Kubernetes' own kinds insist on a domain: CRDs and their objects take any qualified name.
void CheckFinalizers(const KindInfo& kind, const Value& object, FieldErrors& errors) {
  const bool needs_domain = !kind.custom && kind.gvk.group != "apiextensions.k8s.io";
  const json::Array& list = json::GetArray(object, {"metadata", "finalizers"});
  std::set<std::string_view> names;
  for (const Value& item : list) {
    CheckQualified(TextIn(item), "metadata.finalizers", errors);
    names.insert(TextIn(item));
  }
  if (names.contains("orphan") && names.contains("foregroundDeletion")) {
    errors.push_back(InvalidTexts("metadata.finalizers", list,
                                  "finalizer orphan and foregroundDeletion cannot be both set"));
  }
  for (size_t i = 0; needs_domain && i < list.size(); ++i) {
    const std::string_view name = TextIn(list[i]);
    const bool standard = name == "orphan" || name == "foregroundDeletion" || name == "kubernetes";
    if (standard || name.find('/') != std::string_view::npos) continue;
    errors.push_back(
        InvalidText(PathIndex("metadata.finalizers", i), name,
                    "name is neither a standard finalizer name nor is it fully qualified"));
  }
}

// Only a deletion sets these.
void CheckDeletion(const Value& metadata, const Value& old, FieldErrors& errors) {
  const Value* time = MemberOf(metadata, "deletionTimestamp");
  if (time != nullptr && !IsDeleting(old)) {
    errors.push_back({"FieldValueInvalid", "metadata.deletionTimestamp",
                      StrCat("Invalid value: ", ShowTime(TextIn(*time)), ": field is immutable")});
  }
  if (const Value* grace = MemberOf(metadata, "deletionGracePeriodSeconds")) {
    CheckImmutable(grace, json::Find(old, {"metadata", "deletionGracePeriodSeconds"}),
                   "metadata.deletionGracePeriodSeconds", errors);
  }
}

}  // namespace

void CheckMetadata(const KindInfo& kind,
                   const Value& object,
                   const Value* old,
                   FieldErrors& errors) {
  const Value* metadata = json::Find(object, {"metadata"});
  if (metadata == nullptr || !metadata->is_object()) {
    if (!kind.read_only) errors.push_back(RequiredError("metadata"));
    return;
  }
  if (old == nullptr) CheckNames(kind, object, errors);
  std::string_view ns = Namespace(object);
  if (!kind.namespaced && !ns.empty()) {
    errors.push_back(ForbiddenError("metadata.namespace", "not allowed on this type"));
  } else if (!ns.empty()) {
    CheckText(ns, CheckDnsLabel, "metadata.namespace", errors);
  }
  CheckNonNegative(*metadata, "generation", "metadata", errors);
  if (const Value* labels = MemberOf(*metadata, "labels")) {
    CheckLabels(*labels, "metadata.labels", errors);
  }
  if (const Value* annotations = MemberOf(*metadata, "annotations")) {
    CheckAnnotations(*annotations, "metadata.annotations", errors);
  }
  CheckOwners(object, errors);
  CheckFinalizers(kind, object, errors);
  if (old == nullptr) return;
  CheckDeletion(*metadata, *old, errors);
  for (std::string_view key : {"name", "namespace", "uid", "creationTimestamp"}) {
    const Value* now = MemberOf(*metadata, key);
    const Value* before = json::Find(*old, {"metadata", key});
    // Absent means unchanged: the server fills these in.
    if (now != nullptr && before != nullptr && !(now->is_string() && now->get_string().empty())) {
      CheckImmutable(now, before, PathField("metadata", key), errors);
    }
  }
}

namespace {

// A field without the places in lists on the way to it: rules name some of them otherwise than a
// schema does, or not at all.
std::string Bare(std::string_view field) {
  std::string out;
  int depth = 0;
  for (char c : field) {
    depth += c == '[' ? 1 : 0;
    if (depth == 0) out += c;
    depth -= c == ']' ? 1 : 0;
  }
  return out;
}

// Whether a rule that names `told` speaks of a field, of what is below it, or of the part of a spec
// that it belongs to.
bool Covers(std::string_view told, std::string_view field) {
  const bool below =
      told.starts_with(field) && (told.size() == field.size() || told[field.size()] == '.');
  const bool whole =
      told.find('.') != std::string_view::npos && field.substr(0, field.rfind('.')) == told;
  return below || whole;
}

// What lies at a path such as ".spec.replicas"; null if nothing does. A part that is not an object
// ends the way there, and is what is found.
const Value* FindAt(const Value& object, std::string_view path) {
  const Value* at = &object;
  for (std::string_view step : Split(path, '.')) {
    if (step.empty()) continue;
    if (!at->is_object()) return at;
    at = MemberOf(*at, step);
    if (at == nullptr) return nullptr;
  }
  return at;
}

// Custom objects that can be scaled have numbers of replicas where their definition says so, and
// maybe a selector. Told in addition to what the schema says of them.
void CheckScaleFields(const KindInfo& kind, const Value& object, FieldErrors& errors) {
  if (kind.scale_spec_path.empty()) return;
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  for (const std::string& path : {kind.scale_spec_path, kind.scale_status_path}) {
    const Value* found = FindAt(object, path);
    if (found == nullptr) continue;
    if (!found->is_int64() && !found->is_uint64()) {
      errors.push_back(
          InvalidError(path, Value(0), StrCat(path, " accessor error: expected int64")));
    } else if (found->is_int64() && found->get_int64() < 0) {
      errors.push_back(InvalidError(path, *found, "should be a non-negative integer"));
    } else if (found->is_uint64() || found->get_int64() > kMax) {
      errors.push_back(
          InvalidError(path, *found, StrCat("should be less than or equal to ", kMax)));
    }
  }
  const Value* selector = FindAt(object, kind.scale_selector_path);
  if (!kind.scale_selector_path.empty() && selector != nullptr && !selector->is_string()) {
    errors.push_back(
        InvalidError(kind.scale_selector_path, Value(""),
                     StrCat(kind.scale_selector_path, " accessor error: expected string")));
  }
}

// Whether the kind has rules of its own, which are then all that it must obey.
bool CheckKind(const KindInfo& kind, const Value& object, const Value* old, FieldErrors& errors) {
  const std::string& k = kind.gvk.kind;
  if (k == "Pod") {
    // What was once accepted stays: an update checks what changed.
    if (old == nullptr) CheckPod(object, errors);
    if (old != nullptr) CheckPodUpdate(object, *old, errors);
    return true;
  }
  if (k == "CustomResourceDefinition") {
    CheckCrd(object, errors);
    if (old == nullptr) return true;
    for (std::string_view key : {"group", "scope"}) {
      CheckImmutable(json::Find(object, {"spec", key}), json::Find(*old, {"spec", key}),
                     PathField("spec", key), errors);
    }
    // Once it is served its objects are of this kind.
    if (ConditionIsTrue(*old, "Established")) {
      CheckImmutable(json::Find(object, {"spec", "names", "kind"}),
                     json::Find(*old, {"spec", "names", "kind"}), "spec.names.kind", errors);
    }
    return true;
  }
  CheckDeviceKinds(kind, object, old, errors);
  CheckGroupKinds(kind, object, old, errors);
  return CheckWorkload(kind, object, old, errors) || CheckNetwork(kind, object, old, errors) ||
         CheckStorage(kind, object, old, errors) || CheckConfig(kind, object, old, errors) ||
         CheckPolicy(kind, object, old, errors) || CheckAdmission(kind, object, errors) ||
         CheckRegistered(kind, object, old, errors);
}

}  // namespace

std::vector<FieldError> ValidateObject(const KindInfo& kind,
                                       const Value& object,
                                       const Value* old,
                                       const std::vector<FieldError>& schema_errors) {
  constexpr size_t kMaxErrors = 100;
  FieldErrors errors;
  CheckMetadata(kind, object, old, errors);
  if (kind.custom) CheckScaleFields(kind, object, errors);
  const bool ruled = !kind.custom && CheckKind(kind, object, old, errors);
  std::vector<std::string> told;
  for (const FieldError& error : errors) told.push_back(Bare(error.field));
  for (const FieldError& error : schema_errors) {
    // Kubernetes' types have no required fields: an absent one is empty, and the rules say whether
    // it may be.
    if (ruled && error.reason == "FieldValueRequired") continue;
    const bool known = std::any_of(told.begin(), told.end(), [&](const std::string& field) {
      return Covers(field, Bare(error.field));
    });
    if (!known) errors.push_back(error);
  }
  if (errors.size() > kMaxErrors) errors.resize(kMaxErrors);
  return errors;
}

}  // namespace swell::api
