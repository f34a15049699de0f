// Rules of configuration, nodes and what limits a namespace.
#include <algorithm>
#include <set>

#include "api/meta.h"
#include "api/quantity.h"
#include "api/validate_rules.h"
#include "base/strings.h"

namespace swell::api {
namespace {

using json::Value;

// What a base64 text stands for.
size_t DecodedBytes(std::string_view text) {
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  return text.size() / 4 * 3 - std::min(padding, text.size() / 4 * 3);
}

void CheckDataKeys(const Value& object, bool secret, FieldErrors& errors) {
  constexpr size_t kMaxBytes = 1 << 20;
  size_t bytes = 0;
  for (std::string_view field : {"data", "binaryData"}) {
    for (const auto& member : json::GetObject(object, {field})) {
      std::string_view key = member.key();
      if (std::string why = CheckConfigMapKey(key); !why.empty()) {
        errors.push_back(InvalidText(PathKey(field, key), key, why));
      }
      if (field == "binaryData" && json::GetObject(object, {"data"}).contains(key)) {
        errors.push_back(InvalidText(PathKey("data", key), key,
                                     "duplicate of key present in "
                                     "binaryData"));
      }
      const std::string_view text = TextIn(member.value());
      bytes += secret || field == "binaryData" ? DecodedBytes(text) : text.size();
    }
  }
  // What holds for the whole has no name there.
  if (bytes > kMaxBytes) errors.push_back(TooLongError(secret ? "data" : "[]", kMaxBytes));
}

void CheckImmutableData(const Value& object, const Value& old, FieldErrors& errors) {
  if (!json::GetBool(old, {"immutable"})) return;
  constexpr std::string_view kWhy = "field is immutable when `immutable` is set";
  if (!json::GetBool(object, {"immutable"})) {
    errors.push_back(ForbiddenError("immutable", kWhy));
  }
  for (std::string_view key : {"data", "binaryData"}) {
    const Value* a = MemberOf(object, key);
    const Value* b = MemberOf(old, key);
    if (!json::Equal(a ? *a : Value(), b ? *b : Value())) {
      errors.push_back(ForbiddenError(std::string(key), kWhy));
    }
  }
}

// Secret types promise keys.
void CheckSecretType(const Value& secret, FieldErrors& errors) {
  static constexpr std::pair<std::string_view, std::string_view> kKeys[] = {
      {"kubernetes.io/dockercfg", ".dockercfg"},
      {"kubernetes.io/dockerconfigjson", ".dockerconfigjson"},
      {"kubernetes.io/ssh-auth", "ssh-privatekey"},
      {"kubernetes.io/tls", "tls.crt"},
      {"kubernetes.io/tls", "tls.key"},
  };
  std::string_view type = TextOf(secret, "type");
  const json::Object& data = json::GetObject(secret, {"data"});
  for (const auto& [of, key] : kKeys) {
    if (of == type && !data.contains(key)) {
      errors.push_back(RequiredError(PathKey("data", key)));
    }
  }
  if (type == "kubernetes.io/basic-auth" && !data.contains("username") &&
      !data.contains("password")) {
    errors.push_back(RequiredError("data[username]"));
    errors.push_back(RequiredError("data[password]"));
  }
  for (std::string_view key : {".dockercfg", ".dockerconfigjson"}) {
    const Value* text = type.starts_with("kubernetes.io/docker") ? data.if_contains(key) : nullptr;
    if (text == nullptr || !text->is_string()) continue;
    const std::optional<std::string> config = Base64Decode(json::View(text->get_string()));
    if (config && !json::Parse(*config).ok()) {
      const std::string_view start = Trim(*config);
      errors.push_back(InvalidText(PathKey("data", key), "<secret contents redacted>",
                                   start.empty() || start.starts_with('{')
                                       ? "unexpected end of JSON input"
                                       : StrCat("invalid character '", start.substr(0, 1),
                                                "' looking for beginning of value")));
    }
  }
  if (type == "kubernetes.io/service-account-token" &&
      Annotation(secret, "kubernetes.io/service-account.name").empty()) {
    errors.push_back(RequiredError("metadata.annotations[kubernetes.io/service-account.name]"));
  }
}

void CheckTaints(const Value& node, FieldErrors& errors) {
  std::set<std::string> seen;
  const json::Array& taints = json::GetArray(node, {"spec", "taints"});
  for (size_t i = 0; i < taints.size(); ++i) {
    const std::string at = PathIndex("metadata.taints", i);  // not spec: as Kubernetes says it
    const std::string_view key = TextOf(taints[i], "key");
    const std::string_view value = TextOf(taints[i], "value");
    const std::string_view effect = TextOf(taints[i], "effect");
    if (std::string why = CheckQualifiedName(key); !why.empty()) {
      errors.push_back(InvalidText(PathField(at, "key"), key, why));
    }
    if (std::string why = CheckLabelValue(value); !why.empty()) {
      errors.push_back(InvalidText(PathField(at, "value"), value, why));
    }
    if (effect.empty()) errors.push_back(RequiredError(PathField(at, "effect")));
    CheckOneOf(taints[i], "effect", at, {"NoSchedule", "PreferNoSchedule", "NoExecute"}, errors);
    if (!seen.insert(StrCat(key, ":", effect)).second) {
      errors.push_back(
          {"FieldValueDuplicate", at,
           StrCat("Duplicate value: core.Taint{Key:", Quote(key), ", Value:", Quote(value),
                  ", Effect:", Quote(effect),
                  ", TimeAdded:<nil>}: taints must be unique by key and effect pair")});
    }
  }
}

void CheckNode(const Value& node, const Value* old, FieldErrors& errors) {
  CheckTaints(node, errors);
  if (old == nullptr) return;
  std::string_view before = json::GetString(*old, {"spec", "providerID"});
  if (!before.empty() && json::GetString(node, {"spec", "providerID"}) != before) {
    errors.push_back(ForbiddenError(
        "spec.providerID", "node updates may not change providerID except from \"\" to valid"));
  }
}

constexpr std::string_view kQuotaResources[] = {"cpu",
                                                "memory",
                                                "ephemeral-storage",
                                                "requests.cpu",
                                                "requests.memory",
                                                "requests.storage",
                                                "requests.ephemeral-storage",
                                                "limits.cpu",
                                                "limits.memory",
                                                "limits.ephemeral-storage",
                                                "pods",
                                                "resourcequotas",
                                                "services",
                                                "replicationcontrollers",
                                                "secrets",
                                                "persistentvolumeclaims",
                                                "configmaps",
                                                "services.nodeports",
                                                "services.loadbalancers"};
constexpr size_t kAmounts = 10;  // of the above may be fractions

void CheckQuotaAmount(std::string_view name, const Value& value, FieldErrors& errors) {
  const std::string at = PathKey("spec.hard", name);
  const auto* known = std::find(std::begin(kQuotaResources), std::end(kQuotaResources), name);
  const bool standard = known != std::end(kQuotaResources) || name.starts_with("hugepages-") ||
                        name.starts_with("requests.hugepages-");
  const bool qualified = name.find('/') != std::string_view::npos;
  if (std::string why = CheckQualifiedName(name); !why.empty()) {
    errors.push_back(InvalidText(at, name, why));
  } else if (!standard && !qualified && name != "storage") {
    errors.push_back(InvalidText(at, name, "must be a standard resource type or fully qualified"));
  }
  if (!standard && !qualified) {
    errors.push_back(InvalidText(at, name, "must be a standard resource for quota"));
  }
  Result<Quantity> amount = Quantity::FromJson(value);
  if (!amount.ok()) return;
  if (amount->negative()) {
    errors.push_back(InvalidText(at, amount->ToString(), "must be greater than or equal to 0"));
  }
  const bool whole =
      qualified ||
      (standard && known - std::begin(kQuotaResources) >= static_cast<std::ptrdiff_t>(kAmounts) &&
       known != std::end(kQuotaResources));
  if (whole && amount->MilliValue() % 1000 != 0) {
    errors.push_back(InvalidText(at, amount->ToString(), "must be an integer"));
  }
}

void CheckQuotaScopes(const Value& quota, FieldErrors& errors) {
  const json::Array& scopes = json::GetArray(quota, {"spec", "scopes"});
  std::vector<std::string> shown;
  std::set<std::string_view> has;
  bool known = true;
  for (const Value& scope : scopes) {
    const std::string_view name = TextIn(scope);
    shown.push_back(Quote(name));
    has.insert(name);
    known = known && (name == "Terminating" || name == "NotTerminating" || name == "BestEffort" ||
                      name == "NotBestEffort" || name == "PriorityClass" ||
                      name == "CrossNamespacePodAffinity");
  }
  const std::string list = StrCat("Invalid value: []core.ResourceQuotaScope{", Join(shown, ", "));
  if (!known) {
    errors.push_back({"FieldValueInvalid", "spec.scopes", StrCat(list, "}: unsupported scope")});
  }
  if ((has.contains("Terminating") && has.contains("NotTerminating")) ||
      (has.contains("BestEffort") && has.contains("NotBestEffort"))) {
    errors.push_back({"FieldValueInvalid", "spec.scopes", StrCat(list, "}: conflicting scopes")});
  }
}

// `smaller` of a limit may not be above `larger`, for each resource that has both.
void CheckOrder(const Value& limit,
                std::string_view smaller,
                std::string_view larger,
                std::string_view what,
                const std::string& at,
                FieldErrors& errors) {
  for (const auto& member : json::GetObject(limit, {smaller})) {
    const Value* other = json::Find(limit, {larger, std::string_view(member.key())});
    if (other == nullptr) continue;
    Result<Quantity> least = Quantity::FromJson(member.value());
    Result<Quantity> most = Quantity::FromJson(*other);
    if (!least.ok() || !most.ok() || *least <= *most) continue;
    const std::string_view than = larger == "max" ? "max" : "default limit";
    errors.push_back(InvalidText(PathKey(PathField(at, smaller), std::string_view(member.key())),
                                 least->ToString(),
                                 StrCat(what, " value ", least->ToString(), " is greater than ",
                                        than, " value ", most->ToString())));
  }
}

void CheckLimits(const Value& object, FieldErrors& errors) {
  const json::Array& limits = json::GetArray(object, {"spec", "limits"});
  std::set<std::string> types;
  for (size_t i = 0; i < limits.size(); ++i) {
    const std::string at = PathIndex("spec.limits", i);
    std::string type(TextOf(limits[i], "type"));
    if (std::string why = CheckQualifiedName(type); !why.empty()) {
      errors.push_back(InvalidText(PathField(at, "type"), type, why));
    } else if (type != "Pod" && type != "Container" && type != "PersistentVolumeClaim" &&
               type.find('/') == std::string::npos) {
      errors.push_back(InvalidText(PathField(at, "type"), type,
                                   "must be a standard limit type or fully qualified"));
    }
    if (!types.insert(type).second) {
      errors.push_back(DuplicateError(PathField(at, "type"), Value(type)));
    }
    for (std::string_view key : {"default", "defaultRequest"}) {
      if (type != "Pod" || json::GetObject(limits[i], {key}).empty()) continue;
      errors.push_back(
          ForbiddenError(PathField(at, key), "may not be specified when `type` is 'Pod'"));
    }
    CheckOrder(limits[i], "min", "max", "min", at, errors);
    CheckOrder(limits[i], "defaultRequest", "max", "default request", at, errors);
    CheckOrder(limits[i], "defaultRequest", "default", "default request", at, errors);
    CheckOrder(limits[i], "default", "max", "default", at, errors);
    for (const auto& ratio : json::GetObject(limits[i], {"maxLimitRequestRatio"})) {
      Result<Quantity> amount = Quantity::FromJson(ratio.value());
      if (!amount.ok() || amount->MilliValue() >= 1000) continue;
      errors.push_back(
          InvalidText(PathKey(PathField(at, "maxLimitRequestRatio"), std::string_view(ratio.key())),
                      amount->ToString(), StrCat("ratio ", amount->ToString(), " is less than 1")));
    }
  }
}

void CheckLease(const Value& object, FieldErrors& errors) {
  const Value* seconds = json::Find(object, {"spec", "leaseDurationSeconds"});
  if (seconds && seconds->is_int64() && seconds->get_int64() <= 0) {
    errors.push_back(InvalidError("spec.leaseDurationSeconds", *seconds, "must be greater than 0"));
  }
  const Value* transitions = json::Find(object, {"spec", "leaseTransitions"});
  if (transitions && transitions->is_int64() && transitions->get_int64() < 0) {
    errors.push_back(
        InvalidError("spec.leaseTransitions", *transitions, "must be greater than or equal to 0"));
  }
}

void CheckEvent(const Value& event, FieldErrors& errors) {
  const std::string_view about = json::GetString(event, {"involvedObject", "namespace"});
  if (!about.empty() && about != Namespace(event)) {
    errors.push_back(
        InvalidText("involvedObject.namespace", about, "does not match event.namespace"));
  }
}

}  // namespace

bool CheckConfig(const KindInfo& kind, const Value& object, const Value* old, FieldErrors& errors) {
  const std::string& k = kind.gvk.kind;
  if (k == "ConfigMap" || k == "Secret") {
    CheckDataKeys(object, k == "Secret", errors);
    if (old != nullptr) CheckImmutableData(object, *old, errors);
    if (k == "Secret") CheckSecretType(object, errors);
    if (k == "Secret" && old != nullptr) {
      CheckImmutable(MemberOf(object, "type"), MemberOf(*old, "type"), "type", errors);
    }
  } else if (k == "Node") {
    CheckNode(object, old, errors);
  } else if (k == "ResourceQuota") {
    for (const auto& member : json::GetObject(object, {"spec", "hard"})) {
      CheckQuotaAmount(member.key(), member.value(), errors);
    }
    CheckQuotaScopes(object, errors);
  } else if (k == "LimitRange") {
    CheckLimits(object, errors);
  } else if (k == "Lease") {
    CheckLease(object, errors);
  } else if (k == "Event" && kind.gvk.group.empty()) {
    CheckEvent(object, errors);
  } else {
    return false;
  }
  return true;
}

}  // namespace swell::api
