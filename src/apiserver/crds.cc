// CustomResourceDefinitions: each becomes kinds of the scheme while it is stored. Deleting one
// deletes its objects first.
#include <algorithm>

#include "api/meta.h"
#include "apiserver/delete.h"
#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/hooks.h"
#include "apiserver/prepare.h"
#include "base/log.h"
#include "base/strings.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kCleanup = "customresourcecleanup.apiextensions.k8s.io";
constexpr size_t kBatch = 500;
constexpr auto kPause = std::chrono::milliseconds(100);

std::string StorageVersion(const json::Value& crd) {
  for (const json::Value& version : json::GetArray(crd, {"spec", "versions"})) {
    if (json::GetBool(version, {"storage"})) {
      return std::string(json::GetString(version, {"name"}));
    }
  }
  return {};
}

void FillNames(json::Value& crd) {
  const std::string kind(json::GetString(crd, {"spec", "names", "kind"}));
  if (json::GetString(crd, {"spec", "names", "singular"}).empty()) {
    json::Set(crd, {"spec", "names", "singular"}, json::Value(ToLower(kind)));
  }
  if (json::GetString(crd, {"spec", "names", "listKind"}).empty()) {
    json::Set(crd, {"spec", "names", "listKind"}, json::Value(StrCat(kind, "List")));
  }
}

// What the establishing controller of kube-apiserver writes a moment later.
void FillStatus(json::Value& crd, WallTime now) {
  json::Array conditions = json::GetArray(crd, {"status", "conditions"});
  api::SetCondition(conditions, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now);
  api::SetCondition(conditions, "Established", "True", "InitialNamesAccepted",
                    "the initial names have been accepted", now);
  json::Set(crd, {"status", "conditions"}, std::move(conditions));
  json::Set(crd, {"status", "acceptedNames"}, json::GetObject(crd, {"spec", "names"}));
  json::Array stored = json::GetArray(crd, {"status", "storedVersions"});
  const json::Value version(StorageVersion(crd));
  if (std::find(stored.begin(), stored.end(), version) == stored.end()) stored.push_back(version);
  json::Set(crd, {"status", "storedVersions"}, std::move(stored));
}

std::string GroupOf(const json::Value& crd) {
  return std::string(json::GetString(crd, {"spec", "group"}));
}
std::string PluralOf(const json::Value& crd) {
  return std::string(json::GetString(crd, {"spec", "names", "plural"}));
}

Status CheckCrd(const Admission& admission, const json::Value& crd) {
  const std::string name = StrCat(PluralOf(crd), ".", GroupOf(crd));
  if (admission.name != name) {
    return InvalidError(admission.kind, admission.name,
                        {InvalidValue("metadata.name", admission.name,
                                      StrCat("must be spec.names.plural+\".\"+spec.group"))});
  }
  auto kinds = api::KindsOfCrd(crd);
  if (!kinds.ok()) return kinds.status();
  // A custom kind may not stand where a built-in one is.
  for (const api::CrdVersion& version : *kinds) {
    const auto& gvk = version.kind.gvk;
    const auto taken =
        admission.core.scheme->FindResource(gvk.group, gvk.version, version.kind.plural);
    if (taken && !taken->custom) {
      return ForbiddenError(admission.kind, admission.name,
                            StrCat(gvk.ApiVersion(), " ", gvk.kind, " is a built-in kind"));
    }
  }
  return Status::Ok();
}

void RegisterCrd(Core& core, const json::Value& crd) {
  auto kinds = api::KindsOfCrd(crd);
  if (!kinds.ok()) {
    SWELL_LOG_ERROR("apiserver", "stored CustomResourceDefinition is not served",
                    {"name", std::string(api::Name(crd))}, {"error", kinds.status().ToString()});
    return;
  }
  core.scheme->Unregister(GroupOf(crd), PluralOf(crd));
  for (api::CrdVersion& version : *kinds) {
    core.scheme->Register(std::move(version.kind), version.storage);
  }
}

void RemoveFinalizer(Core& core, const store::Key& key) {
  const auto kind = core.scheme->StorageKind("apiextensions.k8s.io", "customresourcedefinitions");
  const auto entry = core.store.Latest(key);
  if (!kind || !entry) return;
  json::Value crd = *entry->Parsed();
  json::Array kept;
  for (const json::Value& finalizer : json::GetArray(crd, {"metadata", "finalizers"})) {
    if (!IsText(finalizer, kCleanup)) kept.push_back(finalizer);
  }
  const bool last = kept.empty();
  json::Set(crd, {"metadata", "finalizers"}, std::move(kept));
  WriteObject(core, *kind, last ? store::EventType::kDeleted : store::EventType::kModified,
              std::move(crd), [](const Status& status, const store::EntryPtr& written) {
                if (status.ok()) return;
                SWELL_LOG_ERROR("apiserver", "CustomResourceDefinition not removed",
                                {"name", written->key.name}, {"error", status.ToString()});
              });
}

// Deletes the instances of a CRD on its way out, some at a time, until none is left. Instances
// with finalizers of their own are waited for.
void Cleanup(Core& core, const store::Key& key) {
  const auto entry = core.store.Latest(key);
  if (!entry || !api::IsDeleting(*entry->Parsed())) return;
  const auto crd = entry->Parsed();
  const auto kind = core.scheme->StorageKind(GroupOf(*crd), PluralOf(*crd));
  const std::string resource = StrCat(PluralOf(*crd), ".", GroupOf(*crd));
  const auto listing = core.store.List(resource, "", {}, kBatch);
  if (!kind || !listing.ok() || listing->entries.empty()) {
    RemoveFinalizer(core, key);
    return;
  }
  for (const store::EntryPtr& listed : listing->entries) {
    const auto instance = core.store.Latest(listed->key);
    if (!instance || api::IsDeleting(*instance->Parsed())) continue;
    Admission admission{core, nullptr, *kind, instance->key.ns, instance->key.name, "", false};
    DeleteOptions options;
    options.propagation = "Background";
    DeleteObject(core, admission, instance, options, [](const Result<Deletion>&) {});
  }
  core.executor.After(kPause, [weak = core.weak_from_this(), key] {
    if (const auto alive = weak.lock()) Cleanup(*alive, key);
  });
}

}  // namespace

Status CreateCrd(Admission& admission, json::Value& object) {
  FillNames(object);
  SWELL_RETURN_IF_ERROR(CheckCrd(admission, object));
  FillStatus(object, admission.core.clock.Now());
  json::Array finalizers = json::GetArray(object, {"metadata", "finalizers"});
  if (std::find(finalizers.begin(), finalizers.end(), json::Value(kCleanup)) == finalizers.end()) {
    finalizers.emplace_back(kCleanup);
  }
  json::Set(object, {"metadata", "finalizers"}, std::move(finalizers));
  return Status::Ok();
}

Status UpdateCrd(Admission& admission, json::Value& object, const json::Value& old) {
  if (admission.subresource == "status") return Status::Ok();
  FillNames(object);
  if (GroupOf(object) != GroupOf(old) || PluralOf(object) != PluralOf(old) ||
      json::GetString(object, {"spec", "scope"}) != json::GetString(old, {"spec", "scope"})) {
    return InvalidError(
        admission.kind, admission.name,
        {InvalidValue("spec", admission.name, "group, names.plural and scope are immutable")});
  }
  SWELL_RETURN_IF_ERROR(CheckCrd(admission, object));
  FillStatus(object, admission.core.clock.Now());
  // Only the server's own clean-up takes its finalizer away.
  json::Array finalizers = json::GetArray(object, {"metadata", "finalizers"});
  if (std::find(finalizers.begin(), finalizers.end(), json::Value(kCleanup)) == finalizers.end()) {
    finalizers.emplace_back(kCleanup);
    json::Set(object, {"metadata", "finalizers"}, std::move(finalizers));
  }
  return Status::Ok();
}

void CrdWritten(Core& core, store::EventType type, const store::EntryPtr& entry, bool ok) {
  if (!ok) return;
  const auto crd = entry->Parsed();
  if (type == store::EventType::kDeleted) {
    core.scheme->Unregister(GroupOf(*crd), PluralOf(*crd));
    return;
  }
  RegisterCrd(core, *crd);
  if (api::IsDeleting(*crd)) Cleanup(core, entry->key);
}

void RegisterStoredCrds(Core& core) {
  const auto crds = core.store.List("customresourcedefinitions.apiextensions.k8s.io", "");
  if (!crds.ok()) return;
  for (const store::EntryPtr& entry : crds->entries) {
    const auto crd = entry->Parsed();
    RegisterCrd(core, *crd);
    if (!api::IsDeleting(*crd)) continue;
    core.executor.Post([weak = core.weak_from_this(), key = entry->key] {
      if (const auto alive = weak.lock()) Cleanup(*alive, key);
    });
  }
}

}  // namespace swell::apiserver
