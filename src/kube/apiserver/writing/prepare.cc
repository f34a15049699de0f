#include "kube/apiserver/writing/prepare.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/api/schema/decode_problem.h"
#include "kube/apiserver/access/charged_project.h"
#include "kube/apiserver/access/node_restriction.h"
#include "kube/apiserver/access/runtime_author.h"
#include "kube/apiserver/access/submitter.h"
#include "kube/apiserver/access/system_marks.h"
#include "kube/apiserver/admission/admission_webhooks.h"
#include "kube/apiserver/admission/machine_ports.h"
#include "kube/apiserver/admission/pod_security.h"
#include "kube/apiserver/codec.h"
#include "kube/apiserver/fields/apply.h"
#include "kube/apiserver/print/output.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/webhooks/conversion.h"

namespace swell::apiserver {
namespace {

constexpr size_t kGeneratedSuffix = 5;
constexpr size_t kMaxGeneratedBase = 63 - kGeneratedSuffix;
constexpr int kGenerateAttempts = 8;

void CopyOrRemove(json::Value& to, const json::Value& from, json::Path path) {
  const json::Value* value = json::Find(from, path);
  if (value == nullptr) {
    json::Remove(to, path);
    return;
  }
  const json::Value* has = json::Find(to, path);
  const bool same = has != nullptr && value->is_string() && *has == *value;
  if (!same) json::Set(to, path, *value);
}

// Gives the containers and the pod the amounts that a resize asks for. If the lists of containers
// differ, takes the new lists as they are: the check of the resize refuses them.
void TakeAmounts(json::Value& pod, const json::Value& wanted) {
  for (const std::string_view list : {"containers", "initContainers"}) {
    const json::Array& source = json::GetArray(wanted, {"spec", list});
    if (!api::SameContainers(source, json::GetArray(pod, {"spec", list}))) {
      json::Set(pod, {"spec", list}, source);
      continue;
    }
    for (size_t i = 0; i < source.size(); ++i) {
      json::Value& target = json::FindMutable(pod, {"spec", list})->get_array()[i];
      CopyOrRemove(target, source[i], {"resources"});
      CopyOrRemove(target, source[i], {"resizePolicy"});
    }
  }
  // Clients that do not know the field leave it out.
  const json::Value* whole = json::Find(wanted, {"spec", "resources"});
  if (whole != nullptr) json::Set(pod, {"spec", "resources"}, *whole);
}

Status CheckRules(const Admission& admission,
                  const json::Value& object,
                  const json::Value* old,
                  const std::vector<api::FieldError>& schema_errors = {}) {
  json::Value resized;  // amounts change by the resize subresource alone, which checks them itself
  if (old != nullptr && admission.subresource == "resize") {
    resized = *old;
    TakeAmounts(resized, object);
    old = &resized;
  }
  const auto errors = api::ValidateObject(admission.kind, object, old, schema_errors);
  if (errors.empty()) return Status::Ok();
  return InvalidError(admission.kind, admission.name, errors);
}

// The schema's own errors are split as kube-apiserver splits them: a wrong type cannot be decoded
// (400), a wrong value is invalid (422) and told together with what the rules say. Completes the
// object on its way.
Status CheckSchema(const Admission& admission, json::Value& object, const json::Value* old) {
  const api::KindInfo& kind = admission.kind;
  std::vector<api::FieldError> errors;
  if (kind.schema) {
    api::ApplyDefaults(*kind.schema, object);
    errors = api::ValidateAgainst(*kind.schema, object);
  }
  if (!errors.empty() && !kind.custom) {
    const std::string problem = api::FindDecodeProblem(*kind.schema, object);
    const bool patch = admission.call != nullptr && admission.call->request.method == "PATCH" &&
                       admission.call->kind->schema == kind.schema;
    if (!problem.empty() && patch) return UndecodablePatch(*admission.call, object);
    if (!problem.empty()) return DecodeError(kind, problem);
  }
  api::DefaultObject(admission.kind, object);
  if (errors.empty() && kind.rules) {
    errors = kind.rules(object, old);
  }
  const ObjectRules& rules = admission.core.options.object_rules;
  if (errors.empty() && rules && admission.subresource != "status") {
    errors = rules(kind, object, old);
  }
  return errors.empty() ? Status::Ok() : CheckRules(admission, object, old, errors);
}

// Whether the write is one whose author becomes the manager of what it changed.
bool IsTracked(const Admission& admission) {
  if (admission.call == nullptr || admission.kind.read_only) return false;
  const std::string& sub = admission.subresource;
  return sub != "binding" && sub != "eviction" && sub != "finalize" &&
         admission.call->handled().gvk == admission.kind.gvk;
}

// What the object asks for, once it is complete, as its author may ask for it.
Status CheckAsked(const Admission& admission, const json::Value& object, const json::Value* old) {
  SWELL_RETURN_IF_ERROR(CheckRules(admission, object, old));
  SWELL_RETURN_IF_ERROR(CheckNodeWrite(admission, object, old));
  SWELL_RETURN_IF_ERROR(CheckNodeName(admission, object, old));
  SWELL_RETURN_IF_ERROR(CheckMachinePorts(admission, object, old));
  SWELL_RETURN_IF_ERROR(CheckRunAsOfWork(admission, object, old));
  SWELL_RETURN_IF_ERROR(CheckRuntimeAuthor(admission, object, old));
  return CheckPodSecurity(admission, object, old);
}

Status ChooseName(Admission& admission, json::Value& object) {
  const std::string name(api::Name(object));
  if (!name.empty()) {
    admission.name = name;
    return Status::Ok();
  }
  std::string base(json::GetString(object, {"metadata", "generateName"}));
  if (base.empty()) return Status::Ok();  // told with all else that is wrong
  base.resize(std::min(base.size(), kMaxGeneratedBase));
  for (int attempt = 0; attempt < kGenerateAttempts; ++attempt) {
    admission.name = StrCat(base, admission.core.random.NameSuffix(kGeneratedSuffix));
    const auto key = KeyFor(admission.kind, admission.ns, admission.name);
    if (!admission.core.store.Latest(key)) {
      json::Set(object, {"metadata", "name"}, json::Value(admission.name));
      return Status::Ok();
    }
  }
  return AlreadyExistsError(admission.kind, admission.name);
}

void StampNew(Admission& admission, json::Value& object) {
  json::Value& metadata = *json::FindMutable(object, {"metadata"});
  json::Object& fields = metadata.get_object();
  for (const char* field : {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink",
                            "generation", "resourceVersion"}) {
    json::StableErase(fields, field);
  }
  if (admission.kind.namespaced) {
    fields["namespace"] = admission.ns;
  } else {
    json::StableErase(fields, "namespace");
  }
  fields["uid"] = admission.core.random.Uuid();
  KeepSystemMarks(admission, object, nullptr);
  StampSubmitter(admission, object);
  // One time for all that one call makes, however often it comes again.
  const WallTime now =
      admission.call != nullptr ? admission.call->received : admission.core.clock.Now();
  fields["creationTimestamp"] = api::FormatTime(now);
  if (admission.core.hooks.Of(admission.kind).generation) fields["generation"] = 1;
}

}  // namespace

Status ToHandled(Core& core, Call& call, json::Value& object) {
  if (call.kind->gvk == call.handled().gvk) return Status::Ok();
  if (call.kind->schema) api::ApplyDefaults(*call.kind->schema, object);
  return ConvertObject(core, call, object, call.handled());
}

Status ToStored(Core& core, Call& call, json::Value& object) {
  const api::KindInfo& stored = *call.storage;
  if (!stored.custom || call.handled().gvk == stored.gvk) return Status::Ok();
  SWELL_RETURN_IF_ERROR(ConvertObject(core, call, object, stored));
  // What the stored version does not know is nowhere.
  if (stored.schema) {
    api::PruneUnknown(*stored.schema, object);
    api::ApplyDefaults(*stored.schema, object);
  }
  return Status::Ok();
}

Result<json::SharedValue> HandledObject(Core& core, Call& call, const store::Entry& entry) {
  if (!call.storage->custom) return entry.Parsed();
  return SharedObjectOf(core, call, entry);
}

Status CheckNamespace(Admission& admission) {
  if (!admission.kind.namespaced || admission.kind.read_only) return Status::Ok();
  const auto kind = admission.core.scheme->FindResource("", "v1", "namespaces");
  if (!kind) return Status::Ok();
  const auto entry = admission.core.store.Latest(KeyFor(*kind, "", admission.ns));
  if (!entry) return NotFoundError(*kind, admission.ns);
  if (FieldOf(*entry, "status.phase") != "Terminating") return Status::Ok();
  const Status refused = ForbiddenError(admission.kind, admission.name,
                                        StrCat("unable to create new content in namespace ",
                                               admission.ns, " because it is being terminated"));
  StatusDetails details = refused.details();
  details.causes.push_back({"NamespaceTerminating", "metadata.namespace",
                            StrCat("namespace ", admission.ns, " is being terminated")});
  return refused.WithDetails(std::move(details));
}

Status PrepareCreate(Admission& admission, json::Value& object) {
  const api::KindInfo& kind = admission.kind;
  if (!json::FindMutable(object, {"metadata"}) ||
      !json::FindMutable(object, {"metadata"})->is_object()) {
    json::Set(object, {"metadata"}, json::Object());
  }
  const std::string_view version = json::GetString(object, {"metadata", "resourceVersion"});
  if (!version.empty() && version != "0") {
    return BadRequestError("resourceVersion should not be set on objects to be created");
  }
  SWELL_RETURN_IF_ERROR(ChooseName(admission, object));
  SWELL_RETURN_IF_ERROR(CheckNamespace(admission));
  SWELL_RETURN_IF_ERROR(CheckProjectTakesWork(admission, object));
  StampNew(admission, object);
  const ResourceHooks& hooks = admission.core.hooks.Of(kind);
  if (kind.has_status && !hooks.keep_status && !kind.read_only) {
    // Kubernetes' own kinds always have one, if only an empty one.
    if (kind.custom) {
      json::Remove(object, {"status"});
    } else {
      json::Set(object, {"status"}, json::Object());
    }
  }
  SWELL_RETURN_IF_ERROR(CheckSchema(admission, object, nullptr));
  if (IsTracked(admission)) TrackManager(*admission.call, object, nullptr);
  StampPodSecurity(admission, object, nullptr);
  if (hooks.create != nullptr) SWELL_RETURN_IF_ERROR(hooks.create(admission, object));
  auto complete = [&admission, &hooks](json::Value& changed) {
    SWELL_RETURN_IF_ERROR(CheckSchema(admission, changed, nullptr));
    StampPodSecurity(admission, changed, nullptr);
    return hooks.create != nullptr ? hooks.create(admission, changed) : Status::Ok();
  };
  auto check = [&admission, &object, &hooks] {
    if (hooks.settle != nullptr) SWELL_RETURN_IF_ERROR(hooks.settle(admission, object));
    return CheckAsked(admission, object, nullptr);
  };
  if (!AsksWebhooks(admission)) return check();
  const Reviewed reviewed{"CREATE", &object, nullptr, nullptr,
                          WriteOptionsOf(*admission.call, "CreateOptions")};
  SWELL_RETURN_IF_ERROR(AskMutating(admission, object, reviewed, complete));
  SWELL_RETURN_IF_ERROR(check());
  return AskValidating(admission, reviewed);
}

namespace {

// Restores what a writer may not change: identity and the marks of creation. Marks of deletion are
// left for the validation to refuse (kube/api/validate).
void KeepIdentity(json::Value& object, const json::Value& old) {
  for (const char* field :
       {"name", "namespace", "uid", "creationTimestamp", "generation", "selfLink"}) {
    CopyOrRemove(object, old, {"metadata", field});
  }
  if (api::IsDeleting(old) || !api::IsDeleting(object)) {
    CopyOrRemove(object, old, {"metadata", "deletionTimestamp"});
  }
  const json::Value* grace = json::Find(object, {"metadata", "deletionGracePeriodSeconds"});
  if (grace == nullptr || grace->is_null()) {
    CopyOrRemove(object, old, {"metadata", "deletionGracePeriodSeconds"});
  }
  if (json::GetString(object, {"metadata", "generateName"}).empty()) {
    CopyOrRemove(object, old, {"metadata", "generateName"});
  }
}

// The status subresource changes status alone; of built-in kinds also labels and annotations, as
// kubelets and controllers rely on.
void KeepAllButStatus(const api::KindInfo& kind, json::Value& object, const json::Value& old) {
  json::Value merged = old;
  CopyOrRemove(merged, object, {"status"});
  CopyOrRemove(merged, object, {"metadata", "resourceVersion"});
  CopyOrRemove(merged, object, {"metadata", "managedFields"});
  if (!kind.custom) {
    CopyOrRemove(merged, object, {"metadata", "labels"});
    CopyOrRemove(merged, object, {"metadata", "annotations"});
    CopyOrRemove(merged, object, {"metadata", "finalizers"});
  }
  object = std::move(merged);
}

// Whether anything but metadata and status differs.
bool SpecChanged(const json::Value& a, const json::Value& b, bool has_status) {
  auto ignored = [has_status](std::string_view key) {
    return key == "metadata" || key == "apiVersion" || key == "kind" ||
           (has_status && key == "status");
  };
  auto covers = [&ignored](const json::Object& from, const json::Object& in) {
    for (const auto& [key, value] : from) {
      if (ignored({key.data(), key.size()})) continue;
      const json::Value* other = in.if_contains(key);
      if (other == nullptr || !json::Equal(value, *other)) return false;
    }
    return true;
  };
  return !covers(a.get_object(), b.get_object()) || !covers(b.get_object(), a.get_object());
}

// No finalizer may be added to an object that is on its way out.
Status CheckFinalizers(const Admission& admission,
                       const json::Value& object,
                       const json::Value& old) {
  if (!api::IsDeleting(old)) return Status::Ok();
  const json::Array& before = json::GetArray(old, {"metadata", "finalizers"});
  std::string added;
  for (const json::Value& finalizer : json::GetArray(object, {"metadata", "finalizers"})) {
    if (std::find(before.begin(), before.end(), finalizer) != before.end()) continue;
    if (finalizer.is_string()) {
      added += StrCat(added.empty() ? "" : ", ", Quote(json::View(finalizer.get_string())));
    }
  }
  if (added.empty()) return Status::Ok();
  return InvalidError(
      admission.kind, admission.name,
      {ForbiddenValue("metadata.finalizers",
                      StrCat("no new finalizers can be added if the object is being deleted, "
                             "found new finalizers []string{",
                             added, "}"))});
}

// What this write may not change stays as it was.
void KeepOthersParts(const Admission& admission, json::Value& object, const json::Value& old) {
  KeepIdentity(object, old);
  KeepSystemMarks(admission, object, &old);
  KeepSubmitter(admission, object, old);
  const bool pod = admission.kind.gvk.group.empty() && admission.kind.plural == "pods";
  if (admission.subresource == "status" || admission.subresource == "approval") {
    KeepAllButStatus(admission.kind, object, old);
  } else if (admission.subresource == "ephemeralcontainers" || admission.subresource == "resize") {
    json::Value merged = old;
    if (admission.subresource == "resize") {
      TakeAmounts(merged, object);
    } else {
      CopyOrRemove(merged, object, {"spec", "ephemeralContainers"});
    }
    CopyOrRemove(merged, object, {"metadata", "resourceVersion"});
    CopyOrRemove(merged, object, {"metadata", "managedFields"});
    object = std::move(merged);
  } else if (admission.kind.has_status) {
    CopyOrRemove(object, old, {"status"});
    if (pod) CopyOrRemove(object, old, {"spec", "ephemeralContainers"});
  }
  StampPodSecurity(admission, object, &old);
}

}  // namespace

Status PrepareUpdate(Admission& admission, json::Value& object, const json::Value& old) {
  const api::KindInfo& kind = admission.kind;
  if (!json::FindMutable(object, {"metadata"}) ||
      !json::FindMutable(object, {"metadata"})->is_object()) {
    json::Set(object, {"metadata"}, json::Object());
  }
  KeepOthersParts(admission, object, old);
  const ResourceHooks& hooks = admission.core.hooks.Of(kind);
  SWELL_RETURN_IF_ERROR(CheckSchema(admission, object, &old));
  if (IsTracked(admission)) TrackManager(*admission.call, object, &old);
  if (hooks.update != nullptr) SWELL_RETURN_IF_ERROR(hooks.update(admission, object, old));
  auto complete = [&admission, &hooks, &old](json::Value& changed) {
    KeepOthersParts(admission, changed, old);
    SWELL_RETURN_IF_ERROR(CheckSchema(admission, changed, &old));
    return hooks.update != nullptr ? hooks.update(admission, changed, old) : Status::Ok();
  };
  const bool asks = AsksWebhooks(admission);
  const Reviewed reviewed{
      "UPDATE", &object, &old, nullptr,
      asks ? WriteOptionsOf(*admission.call, "UpdateOptions") : json::Value(nullptr)};
  if (asks) SWELL_RETURN_IF_ERROR(AskMutating(admission, object, reviewed, complete));
  SWELL_RETURN_IF_ERROR(CheckAsked(admission, object, &old));
  SWELL_RETURN_IF_ERROR(CheckFinalizers(admission, object, old));
  if (hooks.generation && admission.subresource != "status" &&
      SpecChanged(object, old, kind.has_status)) {
    json::Set(object, {"metadata", "generation"},
              json::Value(json::GetInt(old, {"metadata", "generation"}) + 1));
  }
  return asks ? AskValidating(admission, reviewed) : Status::Ok();
}

void CreateInternally(Core& core,
                      std::string_view group,
                      std::string_view plural,
                      json::Value object,
                      std::function<void(const Status&)> done) {
  const api::KindPtr kind = core.scheme->StorageKind(group, plural);
  auto finish = [&core, &done](const Status& status) {
    core.executor.Post([done = std::move(done), status] { done(status); });
  };
  if (!kind) {
    finish(NoSuchResourceError().WithContext(StrCat("creating ", plural)));
    return;
  }
  Admission admission{core, nullptr, *kind, std::string(api::Namespace(object)), "", "", false};
  if (core.store.Latest(KeyFor(*kind, admission.ns, api::Name(object)))) {
    finish(Status::Ok());
    return;
  }
  Status prepared = PrepareCreate(admission, object);
  const auto reserve = core.hooks.Of(*kind).reserve;
  if (prepared.ok() && reserve != nullptr) prepared = reserve(admission, object, nullptr);
  if (!prepared.ok()) {
    finish(prepared.WithContext(StrCat("creating ", plural, " ", Quote(admission.name))));
    return;
  }
  WriteObject(
      core, *kind, store::EventType::kAdded, std::move(object),
      [done = std::move(done)](const Status& status, const store::EntryPtr&) { done(status); });
}

}  // namespace swell::apiserver
