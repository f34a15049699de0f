#include "kube/api/schema/scheme.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/schema/kinds.h"

namespace swell::api {
namespace {

// Kubernetes' order of its own groups; the others follow by name. Swell's own comes before the one
// that has kinds of the same names, so that `kubectl get podgroups` means Swell's.
constexpr std::string_view kGroupOrder[] = {
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "swell.dev",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "storagemigration.k8s.io",
};

size_t GroupRank(std::string_view group) {
  return static_cast<size_t>(std::find(std::begin(kGroupOrder), std::end(kGroupOrder), group) -
                             std::begin(kGroupOrder));
}

// v2 before v1 before v1beta2 before v1alpha1 before any other word.
struct VersionRank {
  int stage = 0;  // 3: stable, 2: beta, 1: alpha, 0: not of that form
  int64_t major = 0;
  int64_t minor = 0;
};

VersionRank RankVersion(std::string_view version) {
  VersionRank rank;
  if (version.size() < 2 || version[0] != 'v') return rank;
  std::string_view rest = version.substr(1);
  size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  std::optional<int64_t> major = ParseInt(rest.substr(0, digits));
  if (!major) return rank;
  rest = rest.substr(digits);
  int stage = rest.empty() ? 3 : rest.starts_with("beta") ? 2 : rest.starts_with("alpha") ? 1 : 0;
  if (stage == 0) return rank;
  if (stage < 3) {
    std::optional<int64_t> minor = ParseInt(rest.substr(stage == 2 ? 4 : 5));
    if (!minor) return rank;
    rank.minor = *minor;
  }
  rank.stage = stage;
  rank.major = *major;
  return rank;
}

bool PreferVersion(const std::string& a, const std::string& b) {
  VersionRank x = RankVersion(a);
  VersionRank y = RankVersion(b);
  if (x.stage != y.stage) return x.stage > y.stage;
  if (x.major != y.major) return x.major > y.major;
  if (x.minor != y.minor) return x.minor > y.minor;
  return a < b;
}

// Event's fields under their core and their events.k8s.io names.
constexpr std::pair<std::string_view, std::string_view> kEventFields[] = {
    {"involvedObject", "regarding"},
    {"message", "note"},
    {"source", "deprecatedSource"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"count", "deprecatedCount"},
    {"reportingComponent", "reportingController"},
};

// An autoscaler of v1 knows one metric, the processors' use, as a number of its own.
void ConvertAutoscaler(json::Value& object, bool to_v1) {
  json::Value* spec = json::FindMutable(object, {"spec"});
  if (spec == nullptr || !spec->is_object()) return;
  if (!to_v1) {
    const json::Value* percent = json::Find(*spec, {"targetCPUUtilizationPercentage"});
    if (percent != nullptr && !percent->is_null()) {
      json::Object target{{"type", "Utilization"}, {"averageUtilization", *percent}};
      json::Object resource{{"name", "cpu"}, {"target", std::move(target)}};
      json::Object metric{{"type", "Resource"}, {"resource", std::move(resource)}};
      json::Set(*spec, {"metrics"}, json::Array{std::move(metric)});
    }
    json::Remove(*spec, {"targetCPUUtilizationPercentage"});
    const json::Value* use = json::Find(object, {"status", "currentCPUUtilizationPercentage"});
    if (use != nullptr && !use->is_null()) {
      json::Object resource{{"name", "cpu"}, {"current", {{"averageUtilization", *use}}}};
      json::Object metric{{"type", "Resource"}, {"resource", std::move(resource)}};
      json::Set(object, {"status", "currentMetrics"}, json::Array{std::move(metric)});
    }
    json::Remove(object, {"status", "currentCPUUtilizationPercentage"});
    return;
  }
  const json::Array metrics = json::GetArray(*spec, {"metrics"});
  json::Remove(*spec, {"metrics"});
  json::Remove(*spec, {"behavior"});
  for (const json::Value& metric : metrics) {
    const json::Value* use = json::Find(metric, {"resource", "target", "averageUtilization"});
    if (use == nullptr || json::GetString(metric, {"resource", "name"}) != "cpu") continue;
    json::Set(*spec, {"targetCPUUtilizationPercentage"}, *use);
  }
  for (const json::Value& metric : json::GetArray(object, {"status", "currentMetrics"})) {
    const json::Value* use = json::Find(metric, {"resource", "current", "averageUtilization"});
    if (use == nullptr || json::GetString(metric, {"resource", "name"}) != "cpu") continue;
    const json::Value copy = *use;
    json::Set(object, {"status", "currentCPUUtilizationPercentage"}, copy);
    break;
  }
  json::Remove(object, {"status", "currentMetrics"});
  json::Remove(object, {"status", "conditions"});
}

// What v1beta1 keeps in one map of an endpoint has fields of its own in v1.
void ConvertEndpoints(json::Value& slice, bool to_beta) {
  constexpr std::string_view kZone = "topology.kubernetes.io/zone";
  constexpr std::string_view kHost = "kubernetes.io/hostname";
  json::Value* list = json::FindMutable(slice, {"endpoints"});
  if (list == nullptr || !list->is_array()) return;
  for (json::Value& endpoint : list->get_array()) {
    if (!endpoint.is_object()) continue;
    json::Object labels = json::GetObject(endpoint, {to_beta ? "deprecatedTopology" : "topology"});
    const std::string zone(json::GetString(endpoint, {"zone"}));
    const std::string node(json::GetString(endpoint, {"nodeName"}));
    for (const char* field : {"deprecatedTopology", "topology", "zone"}) {
      json::Remove(endpoint, {field});
    }
    if (to_beta) {
      if (!zone.empty()) labels[kZone] = zone;
      if (!node.empty()) labels[kHost] = node;
      if (!labels.empty()) json::Set(endpoint, {"topology"}, std::move(labels));
      continue;
    }
    const auto take = [&labels](std::string_view key) {
      const json::Value* value = labels.if_contains(key);
      json::Value taken = value == nullptr ? json::Value() : *value;
      json::StableErase(labels, key);
      return taken;
    };
    const json::Value in_zone = take(kZone);
    const json::Value on_node = take(kHost);
    if (in_zone.is_string()) json::Set(endpoint, {"zone"}, in_zone);
    if (on_node.is_string() && node.empty()) json::Set(endpoint, {"nodeName"}, on_node);
    if (!labels.empty()) json::Set(endpoint, {"deprecatedTopology"}, std::move(labels));
  }
}

void RenameEventFields(json::Value& event, bool to_core) {
  json::Object* object = event.if_object();
  if (object == nullptr) return;
  for (const auto& [core, fresh] : kEventFields) {
    std::string_view from = to_core ? fresh : core;
    json::Value* value = object->if_contains(from);
    if (value == nullptr) continue;
    json::Value moved = std::move(*value);
    json::StableErase(*object, from);
    (*object)[to_core ? core : fresh] = std::move(moved);
  }
}

}  // namespace

GroupVersionKind ParseGvk(std::string_view api_version, std::string_view kind) {
  size_t slash = api_version.find('/');
  if (slash == std::string_view::npos) return {"", std::string(api_version), std::string(kind)};
  return {std::string(api_version.substr(0, slash)), std::string(api_version.substr(slash + 1)),
          std::string(kind)};
}

GroupVersionKind GvkOf(const json::Value& object) {
  return ParseGvk(json::GetString(object, {"apiVersion"}), json::GetString(object, {"kind"}));
}

std::string KindInfo::StoreResource() const {
  // Both event kinds are views of the same objects.
  if (gvk.group.empty() || (gvk.group == "events.k8s.io" && !custom)) return plural;
  return StrCat(plural, ".", gvk.group);
}

std::string KindInfo::GroupResource() const {
  return gvk.group.empty() ? plural : StrCat(plural, ".", gvk.group);
}

std::unique_ptr<Scheme> Scheme::BuiltIn() {
  auto scheme = std::make_unique<Scheme>();
  SchemaLibrary library(EmbeddedSchemas());
  for (BuiltInKind& row : BuiltInKinds(library)) {
    scheme->kinds_.emplace_back(std::make_shared<const KindInfo>(std::move(row.kind)), row.storage);
  }
  return scheme;
}

const Schema& PodTemplateSchema() {
  static const SchemaPtr schema = [] {
    SchemaLibrary library(EmbeddedSchemas());
    return library.Find("io.k8s.api.core.v1.PodTemplateSpec");
  }();
  return *schema;
}

KindPtr Scheme::FindKind(const GroupVersionKind& gvk) const {
  for (const auto& [kind, storage] : kinds_) {
    if (kind->gvk == gvk) return kind;
  }
  return nullptr;
}

KindPtr Scheme::FindResource(std::string_view group,
                             std::string_view version,
                             std::string_view plural) const {
  for (const auto& [kind, storage] : kinds_) {
    if (kind->plural == plural && kind->gvk.group == group && kind->gvk.version == version) {
      return kind;
    }
  }
  return nullptr;
}

std::vector<KindPtr> Scheme::Versions(std::string_view group, std::string_view plural) const {
  std::string store_resource;
  for (const auto& [kind, storage] : kinds_) {
    if (kind->plural == plural && kind->gvk.group == group) {
      store_resource = kind->StoreResource();
      break;
    }
  }
  std::vector<KindPtr> out;
  if (store_resource.empty()) return out;
  for (const auto& [kind, storage] : kinds_) {
    if (kind->StoreResource() != store_resource) continue;
    if (storage) {
      out.insert(out.begin(), kind);
    } else {
      out.push_back(kind);
    }
  }
  return out;
}

KindPtr Scheme::StorageKind(std::string_view group, std::string_view plural) const {
  std::vector<KindPtr> versions = Versions(group, plural);
  return versions.empty() ? nullptr : versions.front();
}

std::vector<Scheme::Group> Scheme::Groups() const {
  std::map<std::pair<size_t, std::string>, std::vector<std::string>> groups;
  for (const auto& [kind, storage] : kinds_) {
    if (!kind->served) continue;
    std::vector<std::string>& versions = groups[{GroupRank(kind->gvk.group), kind->gvk.group}];
    if (std::find(versions.begin(), versions.end(), kind->gvk.version) == versions.end()) {
      versions.push_back(kind->gvk.version);
    }
  }
  std::vector<Group> out;
  for (auto& [key, versions] : groups) {
    std::sort(versions.begin(), versions.end(), PreferVersion);
    out.push_back({key.second, std::move(versions)});
  }
  return out;
}

std::vector<KindPtr> Scheme::KindsOf(std::string_view group, std::string_view version) const {
  std::vector<KindPtr> out;
  for (const auto& [kind, storage] : kinds_) {
    if (kind->served && kind->gvk.group == group && kind->gvk.version == version) {
      out.push_back(kind);
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const KindPtr& a, const KindPtr& b) { return a->plural < b->plural; });
  return out;
}

void Scheme::Register(KindInfo kind, bool storage) {
  ++generation_;
  auto entry = std::make_shared<const KindInfo>(std::move(kind));
  for (auto& [old, old_storage] : kinds_) {
    if (old->gvk.group == entry->gvk.group && old->gvk.version == entry->gvk.version &&
        old->plural == entry->plural) {
      old = std::move(entry);
      old_storage = storage;
      return;
    }
  }
  kinds_.emplace_back(std::move(entry), storage);
}

void Scheme::Unregister(std::string_view group, std::string_view plural) {
  size_t removed = std::erase_if(kinds_, [&](const auto& entry) {
    return entry.first->custom && entry.first->gvk.group == group && entry.first->plural == plural;
  });
  if (removed > 0) ++generation_;
}

Status Scheme::Convert(json::Value& object, const KindInfo& to) const {
  GroupVersionKind from = GvkOf(object);
  if (from.kind != to.gvk.kind) {
    return Status(Code::kInternal, StrCat("cannot convert ", from.ApiVersion(), " ", from.kind,
                                          " to ", to.gvk.ApiVersion(), " ", to.gvk.kind));
  }
  if (to.gvk.kind == "Event" && !to.custom && from.group != to.gvk.group) {
    RenameEventFields(object, to.gvk.group.empty());
  }
  if (to.gvk.group == "autoscaling" && (from.version == "v1") != (to.gvk.version == "v1")) {
    ConvertAutoscaler(object, to.gvk.version == "v1");
  }
  if (to.gvk.group == "discovery.k8s.io" && from.version != to.gvk.version) {
    ConvertEndpoints(object, to.gvk.version == "v1beta1");
  }
  json::Set(object, {"apiVersion"}, json::Value(to.gvk.ApiVersion()));
  return Status::Ok();
}

}  // namespace swell::api
