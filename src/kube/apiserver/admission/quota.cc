#include "kube/apiserver/admission/quota.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "base/timer.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/pod.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

struct Quotas final : CorePart {
  explicit Quotas(Executor& executor) : timer(executor) {}

  std::set<std::string> namespaces;  // that have quotas
  std::set<std::string> recount;     // those to count again
  Timer timer;
};

constexpr char kQuotas[] = "resourcequotas";
constexpr Duration kRecountAfter = std::chrono::milliseconds(200);

api::Quantity One() { return api::Quantity::Parse("1").value(); }

bool IsStandard(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || resource == "ephemeral-storage";
}

api::Amounts PodUsage(const json::Value& pod) {
  api::Amounts usage{{"pods", One()}, {"count/pods", One()}};
  api::Amounts requests = api::PodAmounts(api::Spec(pod), api::AmountField::kRequests);
  const api::Amounts limits = api::PodAmounts(api::Spec(pod), api::AmountField::kLimits);
  requests.insert(limits.begin(), limits.end());
  for (const auto& [name, amount] : requests) {
    if (IsStandard(name)) usage[name] = amount;
    usage["requests." + name] = amount;
  }
  for (const auto& [name, amount] : limits) usage["limits." + name] = amount;
  // Ended pods use nothing any more; they are still objects.
  if (api::HasEnded(pod)) return {{"count/pods", One()}};
  return usage;
}

api::Amounts ServiceUsage(const json::Value& service) {
  api::Amounts usage{{"services", One()}};
  const std::string_view type = json::GetString(service, {"spec", "type"});
  if (type == "LoadBalancer") usage["services.loadbalancers"] = One();
  if (type == "LoadBalancer" || type == "NodePort") {
    const size_t ports = json::GetArray(service, {"spec", "ports"}).size();
    usage["services.nodeports"] = api::Quantity::Parse(std::to_string(ports)).value();
  }
  return usage;
}

api::Amounts ClaimUsage(const json::Value& claim) {
  api::Amounts usage{{"persistentvolumeclaims", One()}};
  const api::Amounts requests = api::ReadAmounts(claim, {"spec", "resources", "requests"});
  const auto storage = requests.find("storage");
  if (storage != requests.end()) usage["requests.storage"] = storage->second;
  const std::string_view storage_class = json::GetString(claim, {"spec", "storageClassName"});
  if (!storage_class.empty()) {
    const std::string prefix = StrCat(storage_class, ".storageclass.storage.k8s.io/");
    usage[prefix + "persistentvolumeclaims"] = One();
    if (storage != requests.end()) usage[prefix + "requests.storage"] = storage->second;
  }
  return usage;
}

// What one object of `resource` ("pods", "jobs.batch") uses, by the names quotas have for it.
api::Amounts UsageOf(const std::string& resource, const json::Value& object) {
  if (resource == "pods") return PodUsage(object);
  api::Amounts usage;
  if (resource == "services") usage = ServiceUsage(object);
  if (resource == "persistentvolumeclaims") usage = ClaimUsage(object);
  if (resource == "secrets" || resource == "configmaps" || resource == "replicationcontrollers" ||
      resource == kQuotas) {
    usage[resource] = One();
  }
  usage["count/" + resource] = One();
  return usage;
}

bool IsBestEffort(const json::Value& pod) {
  for (const auto field : {api::AmountField::kRequests, api::AmountField::kLimits}) {
    for (const auto& [name, amount] : api::PodAmounts(api::Spec(pod), field)) {
      if (IsStandard(name) && !amount.zero()) return false;
    }
  }
  return true;
}

bool MatchesPriority(const json::Value& scope, const json::Value& pod) {
  const std::string_view name = json::GetString(pod, {"spec", "priorityClassName"});
  const std::string_view op = json::GetString(scope, {"operator"}, "Exists");
  if (op == "Exists") return !name.empty();
  if (op == "DoesNotExist") return name.empty();
  const json::Array& values = json::GetArray(scope, {"values"});
  const bool in = std::any_of(values.begin(), values.end(),
                              [name](const json::Value& value) { return IsText(value, name); });
  return op == "In" ? in : !in;
}

bool MatchesScope(std::string_view name, const json::Value& scope, const json::Value& pod) {
  const bool ends = json::Find(pod, {"spec", "activeDeadlineSeconds"}) != nullptr;
  if (name == "Terminating") return ends;
  if (name == "NotTerminating") return !ends;
  if (name == "BestEffort") return IsBestEffort(pod);
  if (name == "NotBestEffort") return !IsBestEffort(pod);
  if (name == "PriorityClass") return MatchesPriority(scope, pod);
  return false;
}

// Scopes speak of pods alone.
bool Covers(const json::Value& quota, const std::string& resource, const json::Value& object) {
  const json::Array& scopes = json::GetArray(quota, {"spec", "scopes"});
  const json::Array& more = json::GetArray(quota, {"spec", "scopeSelector", "matchExpressions"});
  if (scopes.empty() && more.empty()) return true;
  if (resource != "pods") return false;
  static const json::Value kNone = json::Object{};
  for (const json::Value& scope : scopes) {
    if (!scope.is_string() || !MatchesScope(json::View(scope.get_string()), kNone, object)) {
      return false;
    }
  }
  return std::all_of(more.begin(), more.end(), [&object](const json::Value& scope) {
    return MatchesScope(json::GetString(scope, {"scopeName"}), scope, object);
  });
}

// Of `usage`, what the quota limits.
api::Amounts Limited(const api::Amounts& usage, const api::Amounts& hard) {
  api::Amounts limited;
  for (const auto& [name, amount] : usage) {
    if (hard.contains(name)) limited.emplace(name, amount);
  }
  return limited;
}

std::string Listed(const api::Amounts& amounts) {
  std::string text;
  for (const auto& [name, amount] : amounts) {
    text += StrCat(text.empty() ? "" : ",", name, "=", amount.ToString());
  }
  return text;
}

// The amounts that a pod must name because a quota limits them, and the containers that do not.
// The amounts of a pod as a whole suffice.
std::string Unspecified(const json::Value& pod, const api::Amounts& hard) {
  if (!api::ReadWholePod(api::Spec(pod)).empty()) return "";
  std::vector<std::string> missing;
  for (const auto& [name, amount] : hard) {
    const bool limits = name.starts_with("limits.");
    std::string plain = name;
    if (limits) plain = name.substr(7);
    if (name.starts_with("requests.")) plain = name.substr(9);
    if (!IsStandard(plain) || plain == "ephemeral-storage") continue;
    std::set<std::string> containers;
    for (const json::Value& container : json::GetArray(pod, {"spec", "containers"})) {
      const bool has_limit = json::Find(container, {"resources", "limits", plain}) != nullptr;
      const bool has =
          limits ? has_limit
                 : has_limit || json::Find(container, {"resources", "requests", plain}) != nullptr;
      if (!has) containers.emplace(json::GetString(container, {"name"}));
    }
    if (containers.empty()) continue;
    missing.push_back(StrCat(name, " for: ", Join({containers.begin(), containers.end()}, ",")));
  }
  return Join(missing, "; ");
}

// Everything in the namespace that the quota counts.
api::Amounts Count(Core& core, const json::Value& quota, const api::Amounts& hard) {
  api::Amounts used;
  const std::string ns(api::Namespace(quota));
  std::set<std::string> resources;
  for (const auto& [name, amount] : hard) {
    used.emplace(name, api::Quantity());
    if (name.starts_with("count/")) {
      resources.insert(name.substr(6));
    } else if (name.find("persistentvolumeclaims") != std::string::npos ||
               name.ends_with("requests.storage")) {
      resources.insert("persistentvolumeclaims");
    } else if (name.starts_with("services")) {
      resources.insert("services");
    } else if (name == "secrets" || name == "configmaps" || name == "replicationcontrollers" ||
               name == kQuotas) {
      resources.insert(name);
    } else {
      resources.insert("pods");
    }
  }
  for (const std::string& resource : resources) {
    const auto listing = core.store.List(resource, ns);
    if (!listing.ok()) continue;
    for (const store::EntryPtr& durable : listing->entries) {
      const auto entry = core.store.Latest(durable->key);
      if (!entry || !Covers(quota, resource, *entry->Parsed())) continue;
      api::Add(used, Limited(UsageOf(resource, *entry->Parsed()), hard));
    }
  }
  return used;
}

void WriteStatus(Core& core,
                 json::Value quota,
                 const api::Amounts& hard,
                 const api::Amounts& used) {
  const json::Value status = json::Object{{"hard", api::ToJson(hard)}, {"used", api::ToJson(used)}};
  const json::Value* known = json::Find(quota, {"status"});
  if (known != nullptr && json::Equal(*known, status)) return;
  const auto kind = core.scheme->StorageKind("", kQuotas);
  if (!kind) return;
  json::Set(quota, {"status"}, status);
  WriteObject(core, *kind, store::EventType::kModified, std::move(quota),
              [](const Status&, const store::EntryPtr&) {});
}

std::vector<json::Value> QuotasOf(Core& core, const std::string& ns) {
  std::vector<json::Value> quotas;
  const auto listing = core.store.List(kQuotas, ns);
  if (!listing.ok()) return quotas;
  for (const store::EntryPtr& durable : listing->entries) {
    if (const auto entry = core.store.Latest(durable->key)) quotas.push_back(*entry->Parsed());
  }
  return quotas;
}

void Recount(Core& core) {
  for (const std::string& ns : std::exchange(core.Get<Quotas>().recount, {})) {
    for (json::Value& quota : QuotasOf(core, ns)) {
      const api::Amounts hard = api::ReadAmounts(quota, {"spec", "hard"});
      const api::Amounts used = Count(core, quota, hard);
      WriteStatus(core, std::move(quota), hard, used);
    }
  }
}

void RecountSoon(Core& core, const std::string& ns) {
  auto& quotas = core.Get<Quotas>();
  quotas.recount.insert(ns);
  if (quotas.timer.pending()) return;
  quotas.timer.Start(kRecountAfter, [&core] { Recount(core); });
}

void ObjectWritten(Core& core, store::EventType type, const store::EntryPtr& entry, bool ok) {
  auto& quotas = core.Get<Quotas>();
  const store::Key& key = entry->key;
  if (key.resource == kQuotas) {
    if (ok && type == store::EventType::kAdded) quotas.namespaces.insert(key.ns);
    // A change of the limits themselves; a status alone leads to no other.
    if (ok && type != store::EventType::kDeleted) RecountSoon(core, key.ns);
    return;
  }
  if (!quotas.namespaces.contains(key.ns)) return;
  const bool gone = type == store::EventType::kDeleted || !ok;
  if (gone || (key.resource == "pods" && api::HasEnded(*entry->Parsed())))
    RecountSoon(core, key.ns);
}

}  // namespace

Status ChargeQuota(Admission& admission, const json::Value& object, const json::Value* old) {
  Core& core = admission.core;
  if (!core.Get<Quotas>().namespaces.contains(admission.ns)) return Status::Ok();
  const std::string resource = admission.kind.StoreResource();
  api::Amounts usage = UsageOf(resource, object);
  if (old != nullptr) {
    for (const auto& [name, amount] : UsageOf(resource, *old)) usage[name] -= amount;
    std::erase_if(usage, [](const auto& item) { return item.second.zero(); });
  }
  struct Charge {
    json::Value quota;
    api::Amounts hard, used;
  };
  std::vector<Charge> charges;
  for (json::Value& quota : QuotasOf(core, admission.ns)) {
    const api::Amounts hard = api::ReadAmounts(quota, {"spec", "hard"});
    const api::Amounts requested = Limited(usage, hard);
    if (!Covers(quota, resource, object)) continue;
    if (resource == "pods") {
      const std::string missing = Unspecified(object, hard);
      if (!missing.empty()) {
        return ForbiddenError(
            admission.kind, admission.name,
            StrCat("failed quota: ", api::Name(quota), ": must specify ", missing));
      }
    }
    if (requested.empty()) continue;
    api::Amounts used = api::ReadAmounts(quota, {"status", "used"});
    api::Amounts over_requested, over_used, over_hard;
    for (const auto& [name, amount] : requested) {
      const api::Quantity before = used[name];
      used[name] += amount;
      if (amount.negative() || used[name] <= hard.at(name)) continue;
      over_requested.emplace(name, amount);
      over_used.emplace(name, before);
      over_hard.emplace(name, hard.at(name));
    }
    if (!over_requested.empty()) {
      return ForbiddenError(
          admission.kind, admission.name,
          StrCat("exceeded quota: ", api::Name(quota), ", requested: ", Listed(over_requested),
                 ", used: ", Listed(over_used), ", limited: ", Listed(over_hard)));
    }
    charges.push_back({std::move(quota), hard, std::move(used)});
  }
  if (admission.dry_run) return Status::Ok();
  for (Charge& charge : charges) {
    WriteStatus(core, std::move(charge.quota), charge.hard, charge.used);
  }
  return Status::Ok();
}

void RegisterQuotas(Core& core) {
  auto& quotas = core.Add(std::make_unique<Quotas>(core.executor));
  core.hooks.AddWritten(ObjectWritten);
  const auto listing = core.store.List(kQuotas, "");
  if (!listing.ok()) return;
  for (const store::EntryPtr& entry : listing->entries) {
    quotas.namespaces.insert(entry->key.ns);
    RecountSoon(core, entry->key.ns);
  }
}

}  // namespace swell::apiserver
