// The longer parts of a pod's spec: probes, affinity; and what an update may change.
#include <algorithm>
#include <cctype>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/validate/validate_rules.h"

namespace swell::api {
namespace {

using json::Value;

bool IsHeaderName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return isalnum(static_cast<unsigned char>(c)) || c == '-';
  });
}

void CheckHandler(const Value& handler, const std::string& path, FieldErrors& errors) {
  bool first = true;
  for (std::string_view key : {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}) {
    const Value* action = MemberOf(handler, key);
    if (action == nullptr) continue;
    const std::string at = PathField(path, key);
    if (!first) {
      errors.push_back(ForbiddenError(at, "may not specify more than 1 handler type"));
      continue;
    }
    first = false;
    if (key == "exec" && json::GetArray(*action, {"command"}).empty()) {
      errors.push_back(RequiredError(PathField(at, "command")));
    }
    if (const Value* port = MemberOf(*action, "port")) {
      CheckPortOrName(*port, PathField(at, "port"), errors);
    }
    if (key != "httpGet") continue;
    CheckOneOf(*action, "scheme", at, {"HTTP", "HTTPS"}, errors);
    for (const Value& header : json::GetArray(*action, {"httpHeaders"})) {
      const std::string_view name = TextOf(header, "name");
      if (IsHeaderName(name)) continue;
      errors.push_back(InvalidText(PathField(at, "httpHeaders"), name,
                                   "a valid HTTP header must consist of alphanumeric characters or "
                                   "'-' (e.g. 'X-Header-Name', regex used for validation is "
                                   "'[-A-Za-z0-9]+')"));
    }
  }
  if (first) errors.push_back(RequiredError(path, "must specify a handler type"));
}

void CheckNodeRequirement(const Value& term, const std::string& at, FieldErrors& errors) {
  const std::string_view op = TextOf(term, "operator");
  const size_t values = json::GetArray(term, {"values"}).size();
  if (op == "In" || op == "NotIn") {
    if (values == 0) {
      errors.push_back(RequiredError(PathField(at, "values"),
                                     "must be specified when `operator` is 'In' or 'NotIn'"));
    }
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (values > 0) {
      errors.push_back(
          ForbiddenError(PathField(at, "values"),
                         "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
    }
  } else if (op == "Gt" || op == "Lt") {
    if (values != 1) {
      errors.push_back(
          RequiredError(PathField(at, "values"),
                        "must be specified single value when `operator` is 'Lt' or 'Gt'"));
    }
  } else {
    errors.push_back(InvalidText(PathField(at, "operator"), op, "not a valid selector operator"));
  }
  CheckQualified(TextOf(term, "key"), PathField(at, "key"), errors);
}

// metadata.name is the only node field that a term may select by.
void CheckNodeField(const Value& term, const std::string& at, FieldErrors& errors) {
  const std::string_view op = TextOf(term, "operator");
  const std::string_view key = TextOf(term, "key");
  const json::Array& values = json::GetArray(term, {"values"});
  if (op != "In" && op != "NotIn") {
    errors.push_back(InvalidText(PathField(at, "operator"), op, "not a valid selector operator"));
  } else if (values.size() != 1) {
    errors.push_back(RequiredError(PathField(at, "values"),
                                   "must be only one value when `operator` is 'In' or 'NotIn' for "
                                   "node field selector"));
  }
  if (key != "metadata.name") {
    errors.push_back(InvalidText(PathField(at, "key"), key, "not a valid field selector key"));
    return;
  }
  for (const auto& [one, item_at] : ItemsOf(values, PathField(at, "values"))) {
    CheckText(TextIn(one), CheckDnsSubdomain, item_at, errors);
  }
}

void CheckNodeRequirements(const Value& term, const std::string& path, FieldErrors& errors) {
  for (const auto& [label, label_at] : ItemsOf(term, "matchExpressions", path)) {
    CheckNodeRequirement(label, label_at, errors);
  }
  for (const auto& [field, field_at] : ItemsOf(term, "matchFields", path)) {
    CheckNodeField(field, field_at, errors);
  }
}

void CheckWeight(const Value& term, const std::string& at, FieldErrors& errors) {
  const int64_t value = json::GetInt(term, {"weight"});
  if (value < 1 || value > 100) {
    errors.push_back(
        InvalidError(PathField(at, "weight"), Value(value), "must be in the range 1-100"));
  }
}

void CheckPodTerm(const Value& term, const std::string& at, FieldErrors& errors) {
  // Kubernetes has another name for the first.
  for (const auto& [selector, told] : {std::pair{"labelSelector", "matchExpressions"},
                                       std::pair{"namespaceSelector", "namespaceSelector"}}) {
    if (const Value* s = MemberOf(term, selector)) {
      CheckLabelSelector(*s, PathField(at, told), errors);
    }
  }
  for (const Value& name : json::GetArray(term, {"namespaces"})) {
    CheckText(TextIn(name), CheckDnsLabel, PathField(at, "namespace"), errors);
  }
  std::string_view key = TextOf(term, "topologyKey");
  if (key.empty()) {
    errors.push_back(RequiredError(PathField(at, "topologyKey"), "can not be empty"));
  }
  CheckQualified(key, PathField(at, "topologyKey"), errors);
}

constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

void CheckNodeAffinity(const Value& affinity, const std::string& path, FieldErrors& errors) {
  if (const Value* required = MemberOf(affinity, kRequired)) {
    CheckNodeSelectorTerms(*required, PathField(path, kRequired), errors);
  }
  for (const auto& [preference, at] : ItemsOf(affinity, kPreferred, path)) {
    CheckWeight(preference, at, errors);
    if (const Value* term = MemberOf(preference, "preference")) {
      CheckNodeRequirements(*term, PathField(at, "preference"), errors);
    }
  }
}

}  // namespace

void CheckNodeSelectorTerms(const Value& selector, const std::string& path, FieldErrors& errors) {
  const json::Array& terms = json::GetArray(selector, {"nodeSelectorTerms"});
  const std::string at = PathField(path, "nodeSelectorTerms");
  if (terms.empty()) {
    errors.push_back(RequiredError(at, "must have at least one node selector term"));
  }
  for (const auto& [term, term_at] : ItemsOf(terms, at)) {
    CheckNodeRequirements(term, term_at, errors);
  }
}

void CheckProbe(const Value& container,
                std::string_view key,
                const std::string& path,
                FieldErrors& errors) {
  const Value* probe = MemberOf(container, key);
  if (probe == nullptr) return;
  std::string at = PathField(path, key);
  CheckHandler(*probe, at, errors);
  for (std::string_view number : {"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                                  "successThreshold", "failureThreshold"}) {
    CheckNonNegative(*probe, number, at, errors);
  }
  const Value* success = MemberOf(*probe, "successThreshold");
  if (key != "readinessProbe" && success && json::GetInt(*probe, {"successThreshold"}) != 1) {
    errors.push_back(InvalidError(PathField(at, "successThreshold"), *success, "must be 1"));
  }
  const Value* grace = MemberOf(*probe, "terminationGracePeriodSeconds");
  if (grace != nullptr && key == "readinessProbe") {
    errors.push_back(InvalidError(PathField(at, "terminationGracePeriodSeconds"), *grace,
                                  "must not be set for readinessProbes"));
  } else if (grace != nullptr && json::GetInt(*probe, {"terminationGracePeriodSeconds"}) <= 0) {
    errors.push_back(InvalidError(PathField(at, "terminationGracePeriodSeconds"), *grace,
                                  "must be greater than 0"));
  }
}

void CheckLifecycle(const Value& container, const std::string& path, FieldErrors& errors) {
  for (std::string_view key : {"postStart", "preStop"}) {
    if (const Value* hook = json::Find(container, {"lifecycle", key}); hook && hook->is_object()) {
      CheckHandler(*hook, PathField(PathField(path, "lifecycle"), key), errors);
    }
  }
}

void CheckAffinity(const Value& spec, const std::string& path, FieldErrors& errors) {
  static const Value kNothing = json::Object();
  const Value* affinity = MemberOf(spec, "affinity");
  if (affinity == nullptr) return;
  std::string at = PathField(path, "affinity");
  if (const Value* node = MemberOf(*affinity, "nodeAffinity")) {
    CheckNodeAffinity(*node, PathField(at, "nodeAffinity"), errors);
  }
  for (std::string_view key : {"podAffinity", "podAntiAffinity"}) {
    const json::Array& required = json::GetArray(*affinity, {key, kRequired});
    for (const auto& [term, term_at] :
         ItemsOf(required, PathField(PathField(at, key), kRequired))) {
      CheckPodTerm(term, term_at, errors);
    }
    const json::Array& preferred = json::GetArray(*affinity, {key, kPreferred});
    for (const auto& [preference, term_path] :
         ItemsOf(preferred, PathField(PathField(at, key), kPreferred))) {
      CheckWeight(preference, term_path, errors);
      const Value* term = MemberOf(preference, "podAffinityTerm");
      CheckPodTerm(term ? *term : kNothing, PathField(term_path, "podAffinityTerm"), errors);
    }
  }
}

namespace {

// Takes out of both specs what an update may change, having checked how it changed.
void TakeMutable(Value& spec, Value& old, FieldErrors& errors) {
  for (std::string_view key : {"containers", "initContainers"}) {
    Value* now = json::FindMutable(spec, {key});
    Value* before = json::FindMutable(old, {key});
    if (!now || !before || !now->is_array() || !before->is_array()) continue;
    size_t n = std::min(now->get_array().size(), before->get_array().size());
    for (size_t i = 0; i < n; ++i) {
      std::string image(TextOf(now->get_array()[i], "image"));
      if (image.empty()) {
        errors.push_back(RequiredError(PathField(PathIndex(PathField("spec", key), i), "image")));
      }
      json::Remove(now->get_array()[i], {"image"});
      json::Remove(before->get_array()[i], {"image"});
    }
  }
  // A deadline may be set and shortened.
  const Value* now = MemberOf(spec, "activeDeadlineSeconds");
  const Value* before = MemberOf(old, "activeDeadlineSeconds");
  if (before != nullptr && now == nullptr) {
    errors.push_back(InvalidError("spec.activeDeadlineSeconds", *before,
                                  "must not update from a positive integer to nil value"));
  } else if (before != nullptr && json::GetInt(spec, {"activeDeadlineSeconds"}) >
                                      json::GetInt(old, {"activeDeadlineSeconds"})) {
    errors.push_back(InvalidError("spec.activeDeadlineSeconds", *now,
                                  "must be less than or equal to previous value"));
  } else if (now != nullptr && json::GetInt(spec, {"activeDeadlineSeconds"}) < 0) {
    errors.push_back(
        InvalidError("spec.activeDeadlineSeconds", *now, "must be greater than or equal to 0"));
  }
  for (std::string_view key :
       {"activeDeadlineSeconds", "tolerations", "schedulingGates", "ephemeralContainers"}) {
    json::Remove(spec, {key});
    json::Remove(old, {key});
  }
  if (json::GetInt(old, {"terminationGracePeriodSeconds"}) < 0 &&
      json::GetInt(spec, {"terminationGracePeriodSeconds"}) == 1) {
    json::Remove(spec, {"terminationGracePeriodSeconds"});
    json::Remove(old, {"terminationGracePeriodSeconds"});
  }
}

bool Contains(const json::Array& list, const Value& item) {
  for (const Value& v : list) {
    if (json::Equal(v, item)) return true;
  }
  return false;
}

void CheckAdditions(const Value& spec, const Value& old, FieldErrors& errors) {
  const json::Array& tolerations = json::GetArray(spec, {"tolerations"});
  for (const Value& before : json::GetArray(old, {"tolerations"})) {
    bool kept = Contains(tolerations, before);
    // tolerationSeconds alone may change.
    for (const Value& now : tolerations) {
      Value a = now;
      Value b = before;
      json::Remove(a, {"tolerationSeconds"});
      json::Remove(b, {"tolerationSeconds"});
      kept = kept || json::Equal(a, b);
    }
    if (!kept) {
      errors.push_back(ForbiddenError("spec.tolerations",
                                      "existing toleration can not be modified except its "
                                      "tolerationSeconds"));
      break;
    }
  }
  for (const auto& [gate, gate_at] : ItemsOf(spec, "schedulingGates", "spec")) {
    if (!Contains(json::GetArray(old, {"schedulingGates"}), gate)) {
      errors.push_back(
          ForbiddenError(gate_at, "only deletion is allowed, but found new scheduling gate " +
                                      Quote(TextOf(gate, "name"))));
    }
  }
}

}  // namespace

void CheckPodUpdate(const Value& pod, const Value& old_pod, FieldErrors& errors) {
  const Value* now = json::Find(pod, {"spec"});
  const Value* before = json::Find(old_pod, {"spec"});
  if (now == nullptr || before == nullptr || json::Equal(*now, *before)) return;
  size_t containers = json::GetArray(*now, {"containers"}).size();
  if (containers != json::GetArray(*before, {"containers"}).size()) {
    errors.push_back(
        ForbiddenError("spec.containers", "pod updates may not add or remove containers"));
    return;
  }
  if (!json::Equal(json::Value(json::GetArray(*now, {"ephemeralContainers"})),
                   json::Value(json::GetArray(*before, {"ephemeralContainers"})))) {
    CheckEphemeralContainers(*now, *before, errors);
  }
  CheckAdditions(*now, *before, errors);
  bool gated = !json::GetArray(*before, {"schedulingGates"}).empty();
  Value spec = *now;
  Value old = *before;
  TakeMutable(spec, old, errors);
  if (gated) {  // while gated, where the pod may go can still be narrowed
    for (std::string_view key : {"nodeSelector", "affinity"}) {
      json::Remove(spec, {key});
      json::Remove(old, {key});
    }
  }
  // The bind subresource sets the node; a client that sends it again unchanged is fine.
  if (!json::Equal(spec, old)) {
    errors.push_back(ForbiddenError(
        "spec",
        "pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
        "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to "
        "be set to 1 if it was previously negative)"));
  }
}

}  // namespace swell::api
