// Amounts of resources: in containers and nodes, in quotas and limit ranges.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>

#include "base/nearest_word.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/validate/validate_rules.h"

namespace swell::api {
namespace {

using json::Value;

constexpr std::string_view kNotNegative = "must be greater than or equal to 0";

// Amounts of time and space: these may be fractions.
constexpr std::string_view kComputeResources[] = {"cpu",
                                                  "memory",
                                                  "ephemeral-storage",
                                                  "requests.cpu",
                                                  "requests.memory",
                                                  "requests.storage",
                                                  "requests.ephemeral-storage",
                                                  "limits.cpu",
                                                  "limits.memory",
                                                  "limits.ephemeral-storage"};
// What is counted.
constexpr std::string_view kObjectResources[] = {"pods",
                                                 "resourcequotas",
                                                 "services",
                                                 "replicationcontrollers",
                                                 "secrets",
                                                 "persistentvolumeclaims",
                                                 "configmaps",
                                                 "services.nodeports",
                                                 "services.loadbalancers"};

template <size_t n>
bool Has(const std::string_view (&list)[n], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

bool IsQuotaResource(std::string_view name) {
  return Has(kComputeResources, name) || Has(kObjectResources, name) || IsHugePages(name) ||
         name.starts_with("requests.hugepages-");
}

bool IsNative(std::string_view name) {
  return name.find('/') == std::string_view::npos ||
         name.find("kubernetes.io/") != std::string_view::npos;
}

bool IsExtended(std::string_view name) {
  return !IsNative(name) && !name.starts_with("requests.") &&
         CheckQualifiedName(StrCat("requests.", name)).empty();
}

bool MayOvercommit(std::string_view name) { return IsNative(name) && !IsHugePages(name); }

std::optional<Quantity> AmountIn(const Value& item, std::string_view list, std::string_view name) {
  const Value* value = json::Find(item, {list, name});
  if (value == nullptr) return std::nullopt;
  Result<Quantity> amount = Quantity::FromJson(*value);
  if (!amount.ok()) return std::nullopt;  // the schema says so
  return *amount;
}

// `list`'s amount is told as wrong, with the value of `shown`.
struct LimitTeller {
  const Value& item;
  std::string_view name;
  const std::string& at;
  FieldErrors& errors;

  void operator()(std::string_view list, std::string_view shown, std::string_view why) const {
    errors.push_back(
        InvalidQuantity(PathKey(PathField(at, list), name), *json::Find(item, {shown, name}), why));
  }
};

void CheckLimitRatio(const LimitTeller& tell,
                     const std::optional<Quantity>& min,
                     const std::optional<Quantity>& max,
                     const Quantity& ratio) {
  constexpr std::string_view kList = "maxLimitRequestRatio";
  if (ratio.MilliValue() < 1000) {
    tell(kList, kList, StrCat("ratio ", ratio.ToString(), " is less than 1"));
  }
  if (!min || !max || min->MilliValue() <= 0) return;
  const double most = static_cast<double>(max->MilliValue()) / min->MilliValue();
  if (static_cast<double>(ratio.MilliValue()) / 1000 <= most) return;
  char text[64];
  (void)std::snprintf(text, sizeof(text), "%f", most);
  tell(kList, kList, StrCat("ratio ", ratio.ToString(), " is greater than max/min = ", text));
}

void CheckLimitsOf(const Value& item,
                   std::string_view name,
                   const std::string& at,
                   FieldErrors& errors) {
  const LimitTeller tell{item, name, at, errors};
  const std::optional<Quantity> min = AmountIn(item, "min", name);
  const std::optional<Quantity> max = AmountIn(item, "max", name);
  const std::optional<Quantity> limit = AmountIn(item, "default", name);
  const std::optional<Quantity> request = AmountIn(item, "defaultRequest", name);
  auto above = [](const std::optional<Quantity>& a, const std::optional<Quantity>& b) {
    return a && b && *a > *b;
  };
  auto text = [](std::string_view what, const Quantity& a, std::string_view than,
                 const Quantity& b) {
    return StrCat(what, " value ", a.ToString(), " is greater than ", than, " value ",
                  b.ToString());
  };
  if (above(min, max)) tell("min", "min", text("min", *min, "max", *max));
  if (above(min, request)) {
    tell("defaultRequest", "defaultRequest", text("min", *min, "default request", *request));
  }
  if (above(request, max)) {
    tell("defaultRequest", "defaultRequest", text("default request", *request, "max", *max));
  }
  if (above(request, limit)) {
    tell("defaultRequest", "defaultRequest",
         text("default request", *request, "default limit", *limit));
  }
  if (above(min, limit)) tell("default", "min", text("min", *min, "default", *limit));
  if (above(limit, max)) tell("default", "max", text("default", *limit, "max", *max));
  if (const std::optional<Quantity> ratio = AmountIn(item, "maxLimitRequestRatio", name)) {
    CheckLimitRatio(tell, min, max, *ratio);
  }
  if (!MayOvercommit(name) && limit && request && *limit != *request) {
    tell("defaultRequest", "defaultRequest",
         StrCat("default value ", limit->ToString(), " must equal to defaultRequest value ",
                request->ToString(), " in ", name));
  }
}

void CheckLimitType(std::string_view type, const std::string& at, FieldErrors& errors) {
  const size_t before = errors.size();
  CheckQualified(type, at, errors);
  if (errors.size() == before && type != "Pod" && type != "Container" &&
      type != "PersistentVolumeClaim" && type.find('/') == std::string_view::npos) {
    errors.push_back(InvalidText(at, type, "must be a standard limit type or fully qualified"));
  }
}

void CheckLimitItem(const Value& item, const std::string& at, FieldErrors& errors) {
  const std::string_view type = TextOf(item, "type");
  std::set<std::string> names;
  for (std::string_view list :
       {"max", "min", "default", "defaultRequest", "maxLimitRequestRatio"}) {
    const json::Object& amounts = json::GetObject(item, {list});
    if (type == "Pod" && list.starts_with("default")) {
      if (amounts.empty()) continue;
      errors.push_back(
          ForbiddenError(PathField(at, list), "may not be specified when `type` is 'Pod'"));
      continue;
    }
    if (list == "maxLimitRequestRatio" && type == "PersistentVolumeClaim" &&
        json::Find(item, {"min", "storage"}) == nullptr &&
        json::Find(item, {"max", "storage"}) == nullptr) {
      errors.push_back(RequiredError(PathField(at, "limits"),
                                     "either minimum or maximum storage value is required, but "
                                     "neither was provided"));
    }
    for (const auto& amount : amounts) {
      const std::string_view name = amount.key();
      names.emplace(name);
      const std::string where = PathKey(PathField(at, list), name);
      if (type == "Pod" || type == "Container") {
        CheckContainerResourceName(name, where, errors);
      } else {
        CheckResourceName(name, where, errors);
      }
    }
  }
  for (const std::string& name : names) CheckLimitsOf(item, name, at, errors);
}

// Whether a scope can tell which objects of a resource it means.
bool ScopeFits(std::string_view scope, std::string_view resource) {
  const bool compute = resource == "cpu" || resource == "memory" || resource == "limits.cpu" ||
                       resource == "limits.memory" || resource == "requests.cpu" ||
                       resource == "requests.memory";
  if (scope == "BestEffort") return resource == "pods";
  if (scope == "Terminating" || scope == "NotTerminating" || scope == "NotBestEffort" ||
      scope == "PriorityClass") {
    return resource == "pods" || compute;
  }
  return true;
}

bool IsScope(std::string_view name) {
  return name == "Terminating" || name == "NotTerminating" || name == "BestEffort" ||
         name == "NotBestEffort" || name == "PriorityClass" || name == "CrossNamespacePodAffinity";
}

// How many of the quota's resources the scope has nothing to say about.
size_t Misfits(const Value& quota, std::string_view scope) {
  size_t out = 0;
  for (const auto& amount : json::GetObject(quota, {"spec", "hard"})) {
    const std::string_view name = amount.key();
    out += IsQuotaResource(name) && !ScopeFits(scope, name) ? 1 : 0;
  }
  return out;
}

bool Conflict(const std::set<std::string_view>& scopes) {
  return (scopes.contains("Terminating") && scopes.contains("NotTerminating")) ||
         (scopes.contains("BestEffort") && scopes.contains("NotBestEffort"));
}

std::set<std::string_view> ScopesOf(const Value& quota) {
  std::set<std::string_view> out;
  for (const Value& scope : json::GetArray(quota, {"spec", "scopes"})) out.insert(TextIn(scope));
  return out;
}

FieldError InvalidScopes(const Value& quota, std::string_view why) {
  std::vector<std::string> shown;
  for (const Value& scope : json::GetArray(quota, {"spec", "scopes"})) {
    shown.push_back(Quote(TextIn(scope)));
  }
  return {"FieldValueInvalid", "spec.scopes",
          StrCat("Invalid value: []core.ResourceQuotaScope{", Join(shown, ", "), "}: ", why)};
}

void CheckQuotaScopes(const Value& quota, FieldErrors& errors) {
  for (const Value& scope : json::GetArray(quota, {"spec", "scopes"})) {
    if (!IsScope(TextIn(scope))) errors.push_back(InvalidScopes(quota, "unsupported scope"));
    for (size_t n = Misfits(quota, TextIn(scope)); n > 0; --n) {
      errors.push_back(InvalidScopes(quota, "unsupported scope applied to resource"));
    }
  }
  if (Conflict(ScopesOf(quota))) errors.push_back(InvalidScopes(quota, "conflicting scopes"));
}

// The list's elements are told without their place, as Kubernetes does.
void CheckScopeSelector(const Value& quota, FieldErrors& errors) {
  const Value* selector = json::Find(quota, {"spec", "scopeSelector"});
  if (selector == nullptr || !selector->is_object()) return;
  const std::string at = "spec.scopeSelector.matchExpressions";
  std::set<std::string_view> has;
  for (const Value& term : json::GetArray(*selector, {"matchExpressions"})) {
    const std::string_view scope = TextOf(term, "scopeName");
    const std::string_view op = TextOf(term, "operator");
    const json::Array& values = json::GetArray(term, {"values"});
    if (!IsScope(scope)) {
      errors.push_back(InvalidText(PathField(at, "scopeName"), scope, "unsupported scope"));
    }
    for (size_t n = Misfits(quota, scope); n > 0; --n) {
      errors.push_back(InvalidError(at, *selector, "unsupported scope applied to resource"));
    }
    if (IsScope(scope) && scope != "PriorityClass" && scope != "CrossNamespacePodAffinity" &&
        op != "Exists") {
      errors.push_back(InvalidText(
          PathField(at, "operator"), op,
          "must be 'Exist' only operator when scope is any of ResourceQuotaScopeTerminating, "
          "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort and "
          "ResourceQuotaScopeNotBestEffort"));
    }
    if (op == "In" || op == "NotIn") {
      if (values.empty()) {
        errors.push_back(RequiredError(PathField(at, "values"),
                                       "must be at least one value when `operator` is 'In' or "
                                       "'NotIn' for scope selector"));
      }
    } else if (op != "Exists" && op != "DoesNotExist") {
      errors.push_back(InvalidText(PathField(at, "operator"), op, "not a valid selector operator"));
    } else if (!values.empty()) {
      errors.push_back(InvalidTexts(PathField(at, "values"), values,
                                    "must be no value when `operator` is 'Exist' or "
                                    "'DoesNotExist' for scope selector"));
    }
    has.insert(scope);
  }
  if (Conflict(has)) errors.push_back(InvalidError(at, *selector, "conflicting scopes"));
}

}  // namespace

void CheckResourceName(std::string_view name, const std::string& at, FieldErrors& errors) {
  const size_t before = errors.size();
  CheckQualified(name, at, errors);
  if (errors.size() > before || name.find('/') != std::string_view::npos) return;
  if (!Has(kComputeResources, name) && !Has(kObjectResources, name) && !IsHugePages(name) &&
      name != "storage") {
    errors.push_back(InvalidText(at, name, "must be a standard resource type or fully qualified"));
  }
}

void CheckContainerResourceName(std::string_view name, const std::string& at, FieldErrors& errors) {
  CheckResourceName(name, at, errors);
  if (name.find('/') == std::string_view::npos) {
    if (name == "cpu" || name == "memory" || name == "ephemeral-storage" || IsHugePages(name)) {
      return;
    }
    const std::string meant = NearestName(name, {"cpu", "memory", "nvidia.com/gpu"});
    errors.push_back(InvalidText(
        at, name, StrCat("must be a standard resource for containers", DidYouMean(meant))));
  } else if (!IsNative(name) && !IsExtended(name)) {
    errors.push_back(InvalidText(at, name, "doesn't follow extended resource name standard"));
  }
}

void CheckQuantity(std::string_view name,
                   const Value& value,
                   const std::string& at,
                   FieldErrors& errors) {
  Result<Quantity> amount = Quantity::FromJson(value);
  if (!amount.ok()) return;  // the schema says so
  if (amount->negative()) errors.push_back(InvalidText(at, amount->ToString(), kNotNegative));
  if ((IsExtended(name) || Has(kObjectResources, name)) && amount->MilliValue() % 1000 != 0) {
    errors.push_back(InvalidQuantity(at, value, "must be an integer"));
  }
}

namespace {

using NameCheck = void(std::string_view name, const std::string& at, FieldErrors& errors);

void CheckRequirements(const Value& resources,
                       NameCheck* check_name,
                       const std::string& path,
                       FieldErrors& errors) {
  const std::string limits_at = PathField(path, "limits");
  const std::string requests_at = PathField(path, "requests");
  const json::Object& limits = json::GetObject(resources, {"limits"});
  bool huge_pages = false;
  bool compute = false;
  for (std::string_view list : {"limits", "requests"}) {
    for (const auto& member : json::GetObject(resources, {list})) {
      huge_pages = huge_pages || IsHugePages(member.key());
      compute = compute || member.key() == "cpu" || member.key() == "memory";
    }
  }
  for (const auto& limit : limits) {
    check_name(limit.key(), PathKey(limits_at, limit.key()), errors);
    CheckQuantity(limit.key(), limit.value(), PathKey(limits_at, limit.key()), errors);
  }
  for (const auto& request : json::GetObject(resources, {"requests"})) {
    const std::string_view name = request.key();
    check_name(name, PathKey(requests_at, name), errors);
    CheckQuantity(name, request.value(), PathKey(requests_at, name), errors);
    const Value* limit = limits.if_contains(name);
    if (limit == nullptr) {
      if (!MayOvercommit(name)) {
        errors.push_back(
            RequiredError(limits_at, "Limit must be set for non overcommitable resources"));
      }
      continue;
    }
    Result<Quantity> wanted = Quantity::FromJson(request.value());
    Result<Quantity> most = Quantity::FromJson(*limit);
    if (!wanted.ok() || !most.ok()) continue;
    if (!MayOvercommit(name) && *wanted != *most) {
      errors.push_back(InvalidText(requests_at, wanted->ToString(),
                                   StrCat("must be equal to ", name, " limit")));
    } else if (*wanted > *most) {
      errors.push_back(InvalidText(requests_at, wanted->ToString(),
                                   StrCat("must be less than or equal to ", name, " limit")));
    }
  }
  if (huge_pages && !compute) {
    errors.push_back(ForbiddenError(path, "HugePages require cpu or memory"));
  }
}

void CheckWholePodName(std::string_view name, const std::string& at, FieldErrors& errors) {
  const size_t before = errors.size();
  CheckResourceName(name, at, errors);
  if (errors.size() > before || IsOfWholePod(name)) return;
  errors.push_back(NotSupportedError(at, name, {"cpu", "hugepages-", "memory"}));
}

// What the containers request together is no more than the pod's amounts; each limit by itself.
void CheckContainersFit(const Value& spec, const std::string& path, FieldErrors& errors) {
  const Amounts requests = ReadAmounts(spec, {"resources", "requests"});
  const Amounts limits = ReadAmounts(spec, {"resources", "limits"});
  auto fit = [&errors, &path](const Amounts& all, const Amounts& most, std::string_view field) {
    for (const auto& [name, amount] : all) {
      const auto found = most.find(name);
      if (found == most.end() || amount <= found->second) continue;
      if (field == "limits" && !IsHugePages(name)) continue;  // they may share
      errors.push_back(InvalidText(PathKey(PathField(path, field), name), found->second.ToString(),
                                   StrCat("must be greater than or equal to aggregate container ",
                                          field, " of ", amount.ToString())));
    }
  };
  fit(ContainersAmounts(spec, AmountField::kRequests), requests, "requests");
  fit(ContainersAmounts(spec, AmountField::kLimits), limits, "limits");
  for (const auto& [container, container_at] : ItemsOf(spec, "containers", path)) {
    for (const auto& [name, amount] : ContainerAmounts(container, AmountField::kLimits)) {
      const auto found = limits.find(name);
      if (found == limits.end() || amount <= found->second) continue;
      // Kubernetes' own path, which is none of the container's.
      errors.push_back(InvalidText(
          PathField(PathKey(container_at, name), "limits"), amount.ToString(),
          StrCat("must be less than or equal to pod limits of ", found->second.ToString())));
    }
  }
}

}  // namespace

void CheckResources(const Value& resources, const std::string& path, FieldErrors& errors) {
  CheckRequirements(resources, CheckContainerResourceName, path, errors);
}

void CheckWholePod(const Value& spec, const std::string& path, FieldErrors& errors) {
  const Value* resources = MemberOf(spec, "resources");
  if (resources == nullptr) return;
  if (json::GetString(spec, {"os", "name"}) == "windows") {
    errors.push_back(ForbiddenError(path, "may not be set for a windows pod"));
    return;
  }
  if (MemberOf(*resources, "claims") != nullptr) {
    errors.push_back(ForbiddenError(PathField(path, "claims"),
                                    "claims may not be set for Resources at pod-level"));
  }
  CheckRequirements(*resources, CheckWholePodName, path, errors);
  CheckContainersFit(spec, path, errors);
}

std::vector<FieldError> ValidatePodAmounts(const Value& pod_spec) {
  FieldErrors errors;
  for (std::string_view list : {"containers", "initContainers"}) {
    const json::Array& containers = json::GetArray(pod_spec, {list});
    for (size_t i = 0; i < containers.size(); ++i) {
      const Value* resources = MemberOf(containers[i], "resources");
      if (resources == nullptr) continue;
      CheckResources(*resources, StrCat("spec.", list, "[", i, "].resources"), errors);
    }
  }
  CheckWholePod(pod_spec, "spec.resources", errors);
  return errors;
}

void CheckQuota(const Value& quota, const Value* old, FieldErrors& errors) {
  for (const auto& member : json::GetObject(quota, {"spec", "hard"})) {
    const std::string_view name = member.key();
    const std::string at = PathKey("spec.hard", name);
    CheckResourceName(name, at, errors);
    if (name.find('/') == std::string_view::npos && !IsQuotaResource(name)) {
      errors.push_back(InvalidText(at, name, "must be a standard resource for quota"));
    }
    CheckQuantity(name, member.value(), at, errors);
  }
  CheckQuotaScopes(quota, errors);
  CheckScopeSelector(quota, errors);
  if (old != nullptr && ScopesOf(quota) != ScopesOf(*old)) {
    errors.push_back(InvalidScopes(quota, "field is immutable"));
  }
}

void CheckLimitRange(const Value& object, FieldErrors& errors) {
  const json::Array& limits = json::GetArray(object, {"spec", "limits"});
  std::set<std::string> types;
  for (const auto& [limit, at] : ItemsOf(limits, "spec.limits")) {
    std::string type(TextOf(limit, "type"));
    CheckLimitType(type, PathField(at, "type"), errors);
    if (!types.insert(type).second) {
      errors.push_back(DuplicateError(PathField(at, "type"), Value(type)));
    }
    CheckLimitItem(limit, at, errors);
  }
}

}  // namespace swell::api
