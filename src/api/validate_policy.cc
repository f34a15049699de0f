// Rules of roles, budgets, priorities and scalers.
#include "api/meta.h"
#include "api/validate_rules.h"
#include "base/strings.h"

namespace swell::api {
namespace {

using json::Value;

void CheckPriorityClass(const Value& object, const Value* old, FieldErrors& errors) {
  constexpr int64_t kHighestUser = 1000000000;
  int64_t value = json::GetInt(object, {"value"});
  bool system = Name(object).starts_with("system-");
  if (system) {
    bool known = (Name(object) == "system-node-critical" && value == 2000001000) ||
                 (Name(object) == "system-cluster-critical" && value == 2000000000);
    if (!known) {
      errors.push_back(ForbiddenError(
          "metadata.name", StrCat("priority class names with 'system-' prefix are "
                                  "reserved for system use only. error: ",
                                  Name(object), " is not a known system priority class")));
    }
  } else if (value > kHighestUser) {
    errors.push_back(ForbiddenError(
        "value", StrCat("maximum allowed value of a user defined priority is ", kHighestUser)));
  }
  CheckOneOf(object, "preemptionPolicy", "", {"PreemptLowerPriority", "Never"}, errors);
  if (old == nullptr) return;
  if (json::GetInt(*old, {"value"}) != value) {
    errors.push_back(ForbiddenError("value", "may not be changed in an update."));
  }
  std::string_view policy = TextOf(object, "preemptionPolicy");
  std::string_view before = TextOf(*old, "preemptionPolicy");
  if (!policy.empty() && !before.empty() && policy != before) {
    errors.push_back(InvalidText("preemptionPolicy", policy, "field is immutable"));
  }
}

void CheckBudget(const Value& object, FieldErrors& errors) {
  const Value* spec = &SpecOf(object);
  const Value* least = MemberOf(*spec, "minAvailable");
  const Value* most = MemberOf(*spec, "maxUnavailable");
  if (least && most) {
    errors.push_back(
        InvalidError("spec", *spec, "minAvailable and maxUnavailable cannot be both set"));
  }
  for (std::string_view key : {"minAvailable", "maxUnavailable"}) {
    CheckIntOrPercent(*spec, key, "spec", errors);
    CheckNotAbove100Percent(*spec, key, "spec", errors);
  }
  if (const Value* selector = MemberOf(*spec, "selector")) {
    CheckLabelSelector(*selector, "spec.selector", errors);
  }
}

void CheckRules(const Value& role, bool namespaced, FieldErrors& errors) {
  const json::Array& rules = json::GetArray(role, {"rules"});
  for (size_t i = 0; i < rules.size(); ++i) {
    std::string at = PathIndex("rules", i);
    if (json::GetArray(rules[i], {"verbs"}).empty()) {
      errors.push_back(
          RequiredError(PathField(at, "verbs"), "verbs must contain at least one value"));
    }
    bool urls = !json::GetArray(rules[i], {"nonResourceURLs"}).empty();
    bool resources = !json::GetArray(rules[i], {"resources"}).empty();
    bool groups = !json::GetArray(rules[i], {"apiGroups"}).empty();
    if (urls) {
      if (namespaced) {
        errors.push_back(InvalidTexts(PathField(at, "nonResourceURLs"),
                                      json::GetArray(rules[i], {"nonResourceURLs"}),
                                      "namespaced rules cannot apply to non-resource URLs"));
      }
      if (resources || groups) {
        errors.push_back(InvalidTexts(
            PathField(at, "nonResourceURLs"), json::GetArray(rules[i], {"nonResourceURLs"}),
            "rules cannot apply to both regular resources and non-resource URLs"));
      }
      continue;
    }
    if (!groups) {
      errors.push_back(RequiredError(PathField(at, "apiGroups"),
                                     "resource rules must supply at least one api group"));
    }
    if (!resources) {
      errors.push_back(RequiredError(PathField(at, "resources"),
                                     "resource rules must supply at least one resource"));
    }
  }
}

void CheckSubject(const Value& subject,
                  const std::string& at,
                  bool namespaced,
                  FieldErrors& errors) {
  const std::string_view kind = TextOf(subject, "kind");
  const std::string_view name = TextOf(subject, "name");
  const std::string_view group = TextOf(subject, "apiGroup");
  if (name.empty()) errors.push_back(RequiredError(PathField(at, "name")));
  if (kind == "ServiceAccount") {
    if (std::string why = name.empty() ? std::string() : CheckDnsSubdomain(name); !why.empty()) {
      errors.push_back(InvalidText(PathField(at, "name"), name, why));
    }
    if (!group.empty()) errors.push_back(NotSupportedError(PathField(at, "apiGroup"), group, {""}));
    if (!namespaced && TextOf(subject, "namespace").empty()) {
      errors.push_back(RequiredError(PathField(at, "namespace")));
    }
  } else if (kind == "User" || kind == "Group") {
    CheckOneOf(subject, "apiGroup", at, {"rbac.authorization.k8s.io"}, errors);
  } else {
    errors.push_back(
        NotSupportedError(PathField(at, "kind"), kind, {"ServiceAccount", "User", "Group"}));
  }
}

void CheckBinding(const Value& binding, const Value* old, bool namespaced, FieldErrors& errors) {
  static const Value kNothing = json::Object();
  const Value* given = MemberOf(binding, "roleRef");
  const Value& ref = given ? *given : kNothing;
  CheckOneOf(ref, "apiGroup", "roleRef", {"rbac.authorization.k8s.io"}, errors);
  const std::string_view kind = TextOf(ref, "kind");
  if (kind != "Role" && kind != "ClusterRole") {
    errors.push_back(NotSupportedError("roleRef.kind", kind, {"Role", "ClusterRole"}));
  }
  const std::string_view name = TextOf(ref, "name");
  if (name.empty()) {
    errors.push_back(RequiredError("roleRef.name"));
  } else if (std::string why = CheckPathSegmentName(name); !why.empty()) {
    errors.push_back(InvalidText("roleRef.name", name, why));
  }
  const json::Array& subjects = json::GetArray(binding, {"subjects"});
  for (size_t i = 0; i < subjects.size(); ++i) {
    CheckSubject(subjects[i], PathIndex("subjects", i), namespaced, errors);
  }
  if (old != nullptr) {
    CheckImmutable(given, MemberOf(*old, "roleRef"), "roleRef", errors, "cannot change roleRef");
  }
}

void CheckScaleTarget(const Value& spec, FieldErrors& errors) {
  for (std::string_view key : {"kind", "name"}) {
    const std::string at = PathField("spec.scaleTargetRef", key);
    const std::string_view text = json::GetString(spec, {"scaleTargetRef", key});
    if (text.empty()) {
      errors.push_back(RequiredError(at));
    } else if (std::string why = CheckPathSegmentName(text); !why.empty()) {
      errors.push_back(InvalidText(at, text, why));
    }
  }
}

void CheckScaler(const Value& scaler, FieldErrors& errors) {
  const Value& spec = SpecOf(scaler);
  const int64_t max = json::GetInt(spec, {"maxReplicas"});
  const int64_t min = json::GetInt(spec, {"minReplicas"}, 1);
  if (min < 1) {
    errors.push_back(
        InvalidError("spec.minReplicas", Value(min), "must be greater than or equal to 1"));
  }
  if (max < 1) {
    errors.push_back(InvalidError("spec.maxReplicas", Value(max), "must be greater than 0"));
  }
  if (max < min) {
    errors.push_back(InvalidError("spec.maxReplicas", Value(max),
                                  "must be greater than or equal to `minReplicas`"));
  }
  CheckScaleTarget(spec, errors);
  const Value* percent = MemberOf(spec, "targetCPUUtilizationPercentage");
  if (percent != nullptr && json::GetInt(*percent, {}) < 1) {
    // Version 1's field stands for the first metric of those after it.
    errors.push_back(InvalidError("spec.metrics[0].resource.target.averageUtilization", *percent,
                                  "must be greater than 0"));
  }
}

}  // namespace

bool CheckPolicy(const KindInfo& kind, const Value& object, const Value* old, FieldErrors& errors) {
  const std::string& k = kind.gvk.kind;
  if (k == "PriorityClass") {
    CheckPriorityClass(object, old, errors);
  } else if (k == "PodDisruptionBudget") {
    CheckBudget(object, errors);
  } else if (k == "Role" || k == "ClusterRole") {
    CheckRules(object, k == "Role", errors);
    const Value* aggregation = MemberOf(object, "aggregationRule");
    if (aggregation && json::GetArray(*aggregation, {"clusterRoleSelectors"}).empty()) {
      errors.push_back(
          RequiredError("aggregationRule.clusterRoleSelectors",
                        "at least one clusterRoleSelector required if aggregationRule is non-nil"));
    }
  } else if (k == "RoleBinding" || k == "ClusterRoleBinding") {
    CheckBinding(object, old, k == "RoleBinding", errors);
  } else if (k == "HorizontalPodAutoscaler") {
    CheckScaler(object, errors);
  } else {
    return false;
  }
  return true;
}

}  // namespace swell::api
