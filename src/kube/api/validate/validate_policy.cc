// Rules of roles, budgets, priorities and scalers.
#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/validate/validate_rules.h"

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
    const bool named =
        Name(object) == "system-node-critical" || Name(object) == "system-cluster-critical";
    const int64_t due = Name(object) == "system-node-critical" ? 2000001000 : 2000000000;
    if (!known) {
      errors.push_back(ForbiddenError(
          "metadata.name",
          StrCat("priority class names with 'system-' prefix are reserved for system use only. "
                 "error: ",
                 named ? StrCat("value of ", Name(object), " PriorityClass must be ", due)
                       : StrCat(Name(object), " is not a known system priority class"))));
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
  for (const auto& [rule, at] : ItemsOf(role, "rules", "")) {
    if (json::GetArray(rule, {"verbs"}).empty()) {
      errors.push_back(
          RequiredError(PathField(at, "verbs"), "verbs must contain at least one value"));
    }
    bool urls = !json::GetArray(rule, {"nonResourceURLs"}).empty();
    bool resources = !json::GetArray(rule, {"resources"}).empty();
    bool groups = !json::GetArray(rule, {"apiGroups"}).empty();
    if (urls) {
      if (namespaced) {
        errors.push_back(InvalidTexts(PathField(at, "nonResourceURLs"),
                                      json::GetArray(rule, {"nonResourceURLs"}),
                                      "namespaced rules cannot apply to non-resource URLs"));
      }
      if (resources || groups) {
        errors.push_back(InvalidTexts(
            PathField(at, "nonResourceURLs"), json::GetArray(rule, {"nonResourceURLs"}),
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

void CheckAggregation(const Value& rule, FieldErrors& errors) {
  for (const auto& [selector, at] : ItemsOf(rule, "clusterRoleSelectors", "aggregationRule")) {
    const size_t before = errors.size();
    CheckLabelSelector(selector, at, errors);
    if (errors.size() == before) continue;
    errors.push_back(InvalidError(at, Value(), "invalid label selector."));
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
    if (!name.empty()) CheckText(name, CheckDnsSubdomain, PathField(at, "name"), errors);
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
  if (!namespaced && kind != "ClusterRole") {
    errors.push_back(NotSupportedError("roleRef.kind", kind, {"ClusterRole"}));
  } else if (kind != "Role" && kind != "ClusterRole") {
    errors.push_back(NotSupportedError("roleRef.kind", kind, {"Role", "ClusterRole"}));
  }
  const std::string_view name = TextOf(ref, "name");
  CheckRequired(name, CheckPathSegmentName, "roleRef.name", errors);
  for (const auto& [subject, subject_at] : ItemsOf(binding, "subjects", "")) {
    CheckSubject(subject, subject_at, namespaced, errors);
  }
  if (old != nullptr) {
    const Value* before = MemberOf(*old, "roleRef");
    if (given == nullptr || before == nullptr || !json::Equal(*given, *before)) {
      errors.push_back(
          {"FieldValueInvalid", "roleRef",
           StrCat("Invalid value: rbac.RoleRef{APIGroup:", Quote(TextOf(ref, "apiGroup")),
                  ", Kind:", Quote(kind), ", Name:", Quote(name), "}: cannot change roleRef")});
    }
  }
}

void CheckReferenceNames(const Value& reference, const std::string& path, FieldErrors& errors) {
  for (std::string_view key : {"kind", "name"}) {
    const std::string at = PathField(path, key);
    const std::string_view text = TextOf(reference, key);
    CheckRequired(text, CheckPathSegmentName, at, errors);
  }
}

// What is wrong with the apiVersion of a reference; empty if nothing is.
std::string CheckReferenceVersion(const Value& reference, bool needs_group) {
  const std::string_view version = TextOf(reference, "apiVersion");
  const size_t slash = version.find('/');
  if (version != "/" && slash != version.rfind('/')) {
    return StrCat("unexpected GroupVersion string: ", version);
  }
  const bool has_group = slash != std::string_view::npos && slash > 0;
  return needs_group && !has_group ? "apiVersion must specify API group" : "";
}

// ReplicationControllers alone can be scaled in the core group. What was written before this was
// checked may stay.
void CheckScaleTarget(const Value& spec, const Value* old, FieldErrors& errors) {
  static const Value kNothing = json::Object();
  const std::string at = "spec.scaleTargetRef";
  const Value* given = MemberOf(spec, "scaleTargetRef");
  const Value& target = given == nullptr ? kNothing : *given;
  CheckReferenceNames(target, at, errors);
  if (old != nullptr) {
    auto same = [&](std::string_view key) {
      return json::GetString(*old, {"spec", "scaleTargetRef", key}) == TextOf(target, key);
    };
    if (same("apiVersion") && same("kind")) return;
  }
  const bool needs_group = TextOf(target, "kind") != "ReplicationController";
  if (std::string why = CheckReferenceVersion(target, needs_group); !why.empty()) {
    errors.push_back(InvalidText(PathField(at, "apiVersion"), TextOf(target, "apiVersion"), why));
  }
}

// An object whose metric counts may be of the core group.
void CheckDescribedObject(const Value& source, const std::string& path, FieldErrors& errors) {
  static const Value kNothing = json::Object();
  const std::string at = PathField(path, "describedObject");
  const Value* given = MemberOf(source, "describedObject");
  const Value& object = given == nullptr ? kNothing : *given;
  CheckReferenceNames(object, at, errors);
  if (std::string why = CheckReferenceVersion(object, false); !why.empty()) {
    errors.push_back(InvalidText(PathField(at, "apiVersion"), TextOf(object, "apiVersion"), why));
  }
}

void CheckMetricTarget(const Value* target, const std::string& at, FieldErrors& errors) {
  static const Value kNothing = json::Object();
  const Value& given = target ? *target : kNothing;
  const std::string_view type = TextOf(given, "type");
  if (type.empty()) {
    errors.push_back(RequiredError(PathField(at, "type"), "must specify a metric target type"));
  }
  if (type != "Utilization" && type != "Value" && type != "AverageValue") {
    errors.push_back(InvalidText(PathField(at, "type"), type,
                                 "must be either Utilization, Value, or AverageValue"));
  }
  for (std::string_view key : {"value", "averageValue"}) {
    const Value* amount = MemberOf(given, key);
    Result<Quantity> size = amount ? Quantity::FromJson(*amount) : Quantity();
    if (amount == nullptr || !size.ok() || *size > Quantity()) continue;
    errors.push_back(InvalidQuantity(PathField(at, key), *amount, "must be positive"));
  }
  const Value* percent = MemberOf(given, "averageUtilization");
  if (percent != nullptr && json::GetInt(*percent, {}) < 1) {
    errors.push_back(
        InvalidError(PathField(at, "averageUtilization"), *percent, "must be greater than 0"));
  }
}

// The parts that a metric of one type must have: a name, and amounts that can be its target.
struct MetricType {
  std::string_view type, field;
  bool named;
  std::vector<std::string_view> targets;
  std::string_view told, missing;  // where and how it is told that there is no target
};

void CheckMetric(const Value& metric, const std::string& at, FieldErrors& errors) {
  static const std::vector<MetricType> kTypes = {
      {"Object",
       "object",
       true,
       {"value", "averageValue"},
       "averageValue",
       "must set either a target value or averageValue"},
      {"External",
       "external",
       true,
       {"value", "averageValue"},
       "averageValue",
       "must set either a target value for metric or a per-pod target"},
      {"Pods",
       "pods",
       true,
       {"averageValue"},
       "averageValue",
       "must specify a positive target averageValue"},
      {"Resource",
       "resource",
       false,
       {"averageUtilization", "averageValue"},
       "averageUtilization",
       "must set either a target raw value or a target utilization"}};
  const std::string_view type = TextOf(metric, "type");
  const auto known = std::find_if(kTypes.begin(), kTypes.end(),
                                  [type](const MetricType& t) { return t.type == type; });
  if (type == "ContainerResource") return;
  if (known == kTypes.end()) {
    errors.push_back(
        NotSupportedError(PathField(at, "type"), type,
                          {"ContainerResource", "External", "Object", "Pods", "Resource"}));
    return;
  }
  const std::string source_at = PathField(at, known->field);
  const Value* source = MemberOf(metric, known->field);
  if (source == nullptr) {
    errors.push_back(
        RequiredError(source_at, "must populate information for the given metric source"));
    return;
  }
  if (type == "Object") CheckDescribedObject(*source, source_at, errors);
  if (known->named && json::GetString(*source, {"metric", "name"}).empty()) {
    errors.push_back(
        RequiredError(PathField(source_at, "metric.name"), "must specify a metric name"));
  } else if (!known->named && TextOf(*source, "name").empty()) {
    errors.push_back(RequiredError(PathField(source_at, "name"), "must specify a resource name"));
  }
  const std::string target_at = PathField(source_at, "target");
  CheckMetricTarget(MemberOf(*source, "target"), target_at, errors);
  const bool any =
      std::any_of(known->targets.begin(), known->targets.end(), [source](std::string_view key) {
        return json::Find(*source, {"target", key}) != nullptr;
      });
  if (!any) errors.push_back(RequiredError(PathField(target_at, known->told), known->missing));
}

void CheckMetrics(const Value& spec, bool to_zero, FieldErrors& errors) {
  bool outside = false;
  for (const auto& [metric, metric_at] : ItemsOf(spec, "metrics", "spec")) {
    CheckMetric(metric, metric_at, errors);
    const std::string_view type = TextOf(metric, "type");
    outside = outside || type == "Object" || type == "External";
  }
  // Version 1's field stands for the first metric of those after it.
  const Value* percent = MemberOf(spec, "targetCPUUtilizationPercentage");
  if (percent != nullptr && json::GetInt(*percent, {}) < 1) {
    errors.push_back(InvalidError("spec.metrics[0].resource.target.averageUtilization", *percent,
                                  "must be greater than 0"));
  }
  if (to_zero && !outside) {
    errors.push_back(ForbiddenError("spec.metrics",
                                    "must specify at least one Object or External metric to "
                                    "support scaling to zero replicas"));
  }
}

void CheckScalingRules(const Value& behavior, std::string_view direction, FieldErrors& errors) {
  constexpr int64_t kWindowMax = 3600;
  constexpr int64_t kPeriodMax = 1800;
  const Value* rules = MemberOf(behavior, direction);
  if (rules == nullptr) return;
  const std::string at = PathField("spec.behavior", direction);
  const int64_t window = json::GetInt(*rules, {"stabilizationWindowSeconds"});
  auto invalid = [&](const std::string& where, int64_t value, std::string_view why) {
    errors.push_back(InvalidError(where, Value(value), why));
  };
  if (window < 0) {
    invalid(PathField(at, "stabilizationWindowSeconds"), window,
            "must be greater than or equal to zero");
  } else if (window > kWindowMax) {
    invalid(PathField(at, "stabilizationWindowSeconds"), window,
            StrCat("must be less than or equal to ", kWindowMax));
  }
  CheckOneOf(*rules, "selectPolicy", at, {"Disabled", "Max", "Min"}, errors);
  const json::Array& policies = json::GetArray(*rules, {"policies"});
  if (policies.empty()) {
    errors.push_back(RequiredError(PathField(at, "policies"), "must specify at least one Policy"));
  }
  for (const auto& [policy, policy_at] : ItemsOf(policies, PathField(at, "policies"))) {
    const std::string_view type = TextOf(policy, "type");
    if (type != "Pods" && type != "Percent") {
      errors.push_back(NotSupportedError(PathField(policy_at, "type"), type, {"Percent", "Pods"}));
    }
    const int64_t value = json::GetInt(policy, {"value"});
    const int64_t period = json::GetInt(policy, {"periodSeconds"});
    if (value <= 0) invalid(PathField(policy_at, "value"), value, "must be greater than zero");
    if (period <= 0) {
      invalid(PathField(policy_at, "periodSeconds"), period, "must be greater than zero");
    } else if (period > kPeriodMax) {
      invalid(PathField(policy_at, "periodSeconds"), period,
              StrCat("must be less than or equal to ", kPeriodMax));
    }
  }
}

void CheckScaler(const Value& scaler, const Value* old, FieldErrors& errors) {
  const Value& spec = SpecOf(scaler);
  const int64_t max = json::GetInt(spec, {"maxReplicas"});
  const int64_t min = json::GetInt(spec, {"minReplicas"}, 1);
  if (min < 0) {
    errors.push_back(
        InvalidError("spec.minReplicas", Value(min), "must be greater than or equal to 0"));
  }
  if (max == 0) {
    errors.push_back(RequiredError("spec.maxReplicas", "must be set and greater than 0"));
  } else if (max < 0) {
    errors.push_back(
        InvalidError("spec.maxReplicas", Value(max), "must be greater than or equal to 1"));
  }
  if (max < min) {
    errors.push_back(InvalidError("spec.maxReplicas", Value(max),
                                  "must be greater than or equal to `minReplicas`"));
  }
  CheckScaleTarget(spec, old, errors);
  CheckMetrics(spec, min == 0, errors);
  if (const Value* behavior = MemberOf(spec, "behavior")) {
    CheckScalingRules(*behavior, "scaleUp", errors);
    CheckScalingRules(*behavior, "scaleDown", errors);
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
    if (aggregation != nullptr) CheckAggregation(*aggregation, errors);
  } else if (k == "RoleBinding" || k == "ClusterRoleBinding") {
    CheckBinding(object, old, k == "RoleBinding", errors);
  } else if (k == "HorizontalPodAutoscaler") {
    CheckScaler(object, old, errors);
  } else {
    return false;
  }
  return true;
}

}  // namespace swell::api
