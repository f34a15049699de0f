// CustomResourceDefinitions: each becomes kinds of the scheme while it is stored. Deleting one
// deletes its objects first.
#include <algorithm>
#include <set>
#include <tuple>

#include "base/log.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/kinds/handlers.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/webhooks/conversion.h"
#include "kube/apiserver/writing/delete.h"
#include "kube/apiserver/writing/prepare.h"

namespace swell::apiserver {
namespace {

constexpr char kCrds[] = "customresourcedefinitions.apiextensions.k8s.io";
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
  if (!kind.empty() && json::GetString(crd, {"spec", "names", "listKind"}).empty()) {
    json::Set(crd, {"spec", "names", "listKind"}, json::Value(StrCat(kind, "List")));
  }
}

std::string GroupOf(const json::Value& crd) {
  return std::string(json::GetString(crd, {"spec", "group"}));
}
std::string PluralOf(const json::Value& crd) {
  return std::string(json::GetString(crd, {"spec", "names", "plural"}));
}

// The names that other definitions of the group have been given.
struct TakenNames {
  std::set<std::string> resources;  // plural, singular and short names
  std::set<std::string> kinds;      // and kinds of lists
};

TakenNames NamesOfOthers(const Core& core, const json::Value& crd) {
  TakenNames taken;
  const auto crds = core.store.List(kCrds, "");
  if (!crds.ok()) return taken;
  for (const store::EntryPtr& entry : crds->entries) {
    const auto other = entry->Parsed();
    if (entry->key.name == api::Name(crd) || GroupOf(*other) != GroupOf(crd)) continue;
    const json::Value* names = json::Find(*other, {"status", "acceptedNames"});
    if (names == nullptr) continue;
    for (const char* field : {"plural", "singular"}) {
      taken.resources.emplace(json::GetString(*names, {field}));
    }
    for (const json::Value& name : json::GetArray(*names, {"shortNames"})) {
      if (name.is_string()) taken.resources.emplace(json::View(name.get_string()));
    }
    for (const char* field : {"kind", "listKind"}) {
      taken.kinds.emplace(json::GetString(*names, {field}));
    }
  }
  return taken;
}

struct NameVerdict {
  json::Object accepted;
  std::string reason;  // of the last conflict; empty: no conflict
  std::string message;
};

// A name that is taken stays what it was before, or empty.
NameVerdict CheckNames(const json::Value& crd, const TakenNames& taken) {
  NameVerdict verdict;
  verdict.accepted = json::GetObject(crd, {"spec", "names"});
  const auto refuse = [&verdict](std::string_view reason, std::string_view why) {
    verdict.reason = reason;
    verdict.message = why;
  };
  const std::tuple<const char*, const char*, const std::set<std::string>*> rules[] = {
      {"plural", "PluralConflict", &taken.resources},
      {"singular", "SingularConflict", &taken.resources},
      {"kind", "KindConflict", &taken.kinds},
      {"listKind", "ListKindConflict", &taken.kinds}};
  for (const auto& [field, reason, names] : rules) {
    const std::string name(json::GetString(crd, {"spec", "names", field}));
    if (name.empty() || names->count(name) == 0) continue;
    refuse(reason, StrCat(Quote(name), " is already in use"));
    verdict.accepted[field] = json::GetString(crd, {"status", "acceptedNames", field});
  }
  std::vector<std::string> conflicts;
  for (const json::Value& name : json::GetArray(crd, {"spec", "names", "shortNames"})) {
    if (!name.is_string() ||
        taken.resources.count(std::string(json::View(name.get_string()))) == 0) {
      continue;
    }
    conflicts.push_back(StrCat(Quote(json::View(name.get_string())), " is already in use"));
  }
  if (!conflicts.empty()) {
    refuse("ShortNamesConflict", Join(conflicts, ", "));
    verdict.accepted["shortNames"] = json::GetArray(crd, {"status", "acceptedNames", "shortNames"});
  }
  return verdict;
}

bool IsEstablished(const json::Value& crd) { return api::ConditionIsTrue(crd, "Established"); }

// What the naming and establishing controllers of kube-apiserver write a moment later.
void FillStatus(const Core& core, json::Value& crd) {
  const WallTime now = core.clock.Now();
  NameVerdict verdict = CheckNames(crd, NamesOfOthers(core, crd));
  json::Array conditions = json::GetArray(crd, {"status", "conditions"});
  const bool accepted = verdict.reason.empty();
  api::SetCondition(conditions, "NamesAccepted", accepted ? "True" : "False",
                    accepted ? "NoConflicts" : verdict.reason,
                    accepted ? "no conflicts found" : verdict.message, now);
  // Once established, a definition stays so.
  if (accepted || !IsEstablished(crd)) {
    api::SetCondition(
        conditions, "Established", accepted ? "True" : "False",
        accepted ? "InitialNamesAccepted" : "NotAccepted",
        accepted ? "the initial names have been accepted" : "not all names are accepted", now);
  }
  json::Set(crd, {"status", "conditions"}, std::move(conditions));
  json::Set(crd, {"status", "acceptedNames"}, std::move(verdict.accepted));
  json::Array stored = json::GetArray(crd, {"status", "storedVersions"});
  const json::Value version(StorageVersion(crd));
  if (std::find(stored.begin(), stored.end(), version) == stored.end()) stored.push_back(version);
  json::Set(crd, {"status", "storedVersions"}, std::move(stored));
}

// A custom kind may not stand where a built-in one is. Everything else that may be wrong with a
// definition is found when its rules are checked.
Status CheckBuiltIn(const Admission& admission, const json::Value& crd) {
  for (const json::Value& version : json::GetArray(crd, {"spec", "versions"})) {
    const std::string_view name = json::GetString(version, {"name"});
    const auto taken = admission.core.scheme->FindResource(GroupOf(crd), name, PluralOf(crd));
    if (taken && !taken->custom) {
      return ForbiddenError(
          admission.kind, admission.name,
          StrCat(taken->gvk.ApiVersion(), " ", taken->gvk.kind, " is a built-in kind"));
    }
  }
  return Status::Ok();
}

void Unregister(Core& core, const json::Value& crd) {
  core.scheme->Unregister(GroupOf(crd), PluralOf(crd));
  SetConverter(core, StrCat(PluralOf(crd), ".", GroupOf(crd)), nullptr);
}

void RegisterCrd(Core& core, const json::Value& crd) {
  if (!IsEstablished(crd)) return;
  auto kinds = api::KindsOfCrd(crd);
  if (!kinds.ok()) {
    SWELL_LOG_ERROR("apiserver", "stored CustomResourceDefinition is not served",
                    {"name", std::string(api::Name(crd))}, {"error", kinds.status().ToString()});
    return;
  }
  Unregister(core, crd);
  SetConverter(core, StrCat(PluralOf(crd), ".", GroupOf(crd)),
               json::Find(crd, {"spec", "conversion"}));
  const bool defaults = std::any_of(kinds->begin(), kinds->end(), [](const auto& version) {
    return version.kind.schema && api::HasDefaults(*version.kind.schema);
  });
  for (api::CrdVersion& version : *kinds) {
    // Writes that are accepted but not durable yet got the old definition's defaults, too.
    if (defaults) version.kind.defaults_from = core.store.PeekVersion();
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

// The names of a definition that is gone may be what others have waited for.
void RecheckNames(Core& core, const json::Value& gone) {
  const auto kind = core.scheme->StorageKind("apiextensions.k8s.io", "customresourcedefinitions");
  const auto crds = core.store.List(kCrds, "");
  if (!kind || !crds.ok()) return;
  for (const store::EntryPtr& listed : crds->entries) {
    const auto entry = core.store.Latest(listed->key);
    if (!entry || GroupOf(*entry->Parsed()) != GroupOf(gone)) continue;
    json::Value crd = *entry->Parsed();
    FillStatus(core, crd);
    if (json::Equal(crd, *entry->Parsed())) continue;
    WriteObject(core, *kind, store::EventType::kModified, std::move(crd),
                [](const Status& status, const store::EntryPtr& written) {
                  if (status.ok()) return;
                  SWELL_LOG_ERROR("apiserver", "names not checked again",
                                  {"name", written->key.name}, {"error", status.ToString()});
                });
  }
}

// What every definition has that is written: names, a status, and the finalizer that only the
// server's own clean-up takes away.
Status CompleteCrd(Admission& admission, json::Value& object) {
  FillNames(object);
  SWELL_RETURN_IF_ERROR(CheckBuiltIn(admission, object));
  FillStatus(admission.core, object);
  json::Array finalizers = json::GetArray(object, {"metadata", "finalizers"});
  if (std::find(finalizers.begin(), finalizers.end(), json::Value(kCleanup)) == finalizers.end()) {
    finalizers.emplace_back(kCleanup);
    json::Set(object, {"metadata", "finalizers"}, std::move(finalizers));
  }
  return Status::Ok();
}

Status CreateCrd(Admission& admission, json::Value& object) {
  return CompleteCrd(admission, object);
}

Status UpdateCrd(Admission& admission, json::Value& object, const json::Value&) {
  return admission.subresource == "status" ? Status::Ok() : CompleteCrd(admission, object);
}

void CrdWritten(Core& core, store::EventType type, const store::EntryPtr& entry, bool ok) {
  if (!ok) return;
  const auto crd = entry->Parsed();
  if (type == store::EventType::kDeleted) {
    Unregister(core, *crd);
    RecheckNames(core, *crd);
    return;
  }
  RegisterCrd(core, *crd);
  if (api::IsDeleting(*crd)) Cleanup(core, entry->key);
}

}  // namespace

void RegisterCustomKinds(Core& core) {
  core.hooks.Add(kCrds, {.create = CreateCrd,
                         .update = UpdateCrd,
                         .written = CrdWritten,
                         .generation = true,
                         .needs_version = true});
  const auto crds = core.store.List(kCrds, "");
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
