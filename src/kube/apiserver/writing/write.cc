#include "kube/apiserver/writing/write.h"

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/admission/object_counts.h"
#include "kube/apiserver/admission/quota.h"
#include "kube/apiserver/codec.h"
#include "kube/apiserver/print/output.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/writing/handlers.h"
#include "kube/apiserver/writing/prepare.h"

namespace swell::apiserver {
namespace {

// Name and namespace of the URL and of the object must agree; the URL fills in the namespace.
Status FitToPath(const Call& call, json::Value& object) {
  if (!call.info.name.empty()) SWELL_RETURN_IF_ERROR(CheckNames(call, object));
  if (!call.kind->namespaced) return Status::Ok();
  const std::string_view ns = api::Namespace(object);
  if (!ns.empty() && ns != call.info.ns) {
    return BadRequestError(
        "the namespace of the provided object does not match the namespace sent on the request");
  }
  json::Set(object, {"metadata", "namespace"}, json::Value(call.info.ns));
  return Status::Ok();
}

// Decoded, fitted to the URL, in the version in which it is handled.
Result<json::Value> DecodeForWrite(Core& core, Call& call) {
  SWELL_ASSIGN_OR_RETURN(json::Value object,
                         DecodeObject(call, *call.kind, core.options.body_limit_bytes));
  SWELL_RETURN_IF_ERROR(FitToPath(call, object));
  SWELL_RETURN_IF_ERROR(ToHandled(core, call, object));
  return object;
}

Status Exists(const Call& call, std::string_view name, const store::Entry& there) {
  Status exists = AlreadyExistsError(*call.kind, name);
  if (!api::IsDeleting(*there.Parsed())) return exists;
  return Status(exists.code(), StrCat("object is being deleted: ", exists.message()),
                exists.details());
}

}  // namespace

Status CheckNames(const Call& call, const json::Value& object) {
  const std::string_view name = api::Name(object);
  if (name.empty()) {
    return BadRequestError(StrCat("the name of the object (", call.info.name,
                                  " based on URL) was undeterminable: name must be provided"));
  }
  if (name != call.info.name) {
    return BadRequestError(StrCat("the name of the object (", name,
                                  ") does not match the name on the URL (", call.info.name, ")"));
  }
  const std::string_view ns = api::Namespace(object);
  if (call.kind->namespaced && !ns.empty() && ns != call.info.ns) {
    return BadRequestError(
        "the namespace of the provided object does not match the namespace sent on the request");
  }
  return Status::Ok();
}

void CreateObject(Core& core, const CallPtr& call, json::Value object) {
  Admission admission = AdmissionOf(core, *call);
  const Status prepared = PrepareCreate(admission, object);
  if (!prepared.ok()) {
    call->Fail(prepared);
    return;
  }
  call->object_name = admission.name;
  if (const auto there = core.store.Latest(KeyFor(*call->storage, admission.ns, admission.name))) {
    // The client will take the object for created, so it must be durable.
    core.store.WhenDurable(
        [call, exists = Exists(*call, admission.name, *there)](const Status& durable) {
          call->Fail(durable.ok() ? exists : durable);
        });
    return;
  }
  const auto reserve = admission.core.hooks.Of(admission.kind).reserve;
  Status status = ToStored(core, *call, object);
  if (status.ok() && reserve != nullptr) status = reserve(admission, object, nullptr);
  if (status.ok()) status = CheckObjectCount(admission);
  if (status.ok()) status = ChargeQuota(admission, object);
  if (!status.ok()) {
    call->Fail(status);
    return;
  }
  if (call->dry_run) {
    RespondObject(core, *call, 201, std::move(object));
    return;
  }
  CountObject(admission);
  WriteObject(
      core, *call->storage, store::EventType::kAdded, std::move(object),
      [weak = core.weak_from_this(), call](const Status& status, const store::EntryPtr& entry) {
        const auto alive = weak.lock();
        if (!alive) return;
        if (status.ok()) {
          RespondEntry(*alive, *call, 201, *entry);
        } else {
          call->Fail(status);
        }
      });
}

void HandleCreate(Core& core, const CallPtr& call) {
  if (call->kind->namespaced && call->info.ns.empty()) {
    call->Fail(BadRequestError("an empty namespace may not be set during creation"));
    return;
  }
  auto object = DecodeForWrite(core, *call);
  if (!object.ok()) {
    call->Fail(object.status());
    return;
  }
  CreateObject(core, call, std::move(*object));
}

Status CheckPreconditions(const Admission& admission,
                          const json::Value& object,
                          const json::Value& old) {
  const std::string_view uid = api::Uid(object);
  if (!uid.empty() && uid != api::Uid(old)) {
    // A patch is about the object that is there; a replacement was meant for another one.
    if (admission.call != nullptr && admission.call->request.method == "PATCH") {
      return InvalidError(admission.kind, admission.name,
                          {InvalidValue("metadata.uid", uid, "field is immutable")});
    }
    const std::string group =
        admission.kind.gvk.group.empty() ? "" : StrCat(admission.kind.gvk.group, "/");
    const std::string ns = admission.ns.empty() ? "" : StrCat(admission.ns, "/");
    return ConflictError(
        admission.kind, admission.name,
        StrCat("StorageError: invalid object, Code: 4, Key: /registry/", group,
               admission.kind.plural, "/", ns, admission.name,
               ", ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
               "precondition: ",
               uid, ", UID in object meta: ", api::Uid(old)));
  }
  const std::string_view version = json::GetString(object, {"metadata", "resourceVersion"});
  if (version.empty() || version == "0") {
    if (!admission.core.hooks.Of(admission.kind).needs_version) return Status::Ok();
    // Said about the resource, for once, and not about the kind.
    api::KindInfo resource;
    resource.gvk = {admission.kind.gvk.group, "", admission.kind.plural};
    return InvalidError(resource, admission.name,
                        {{"FieldValueInvalid", "metadata.resourceVersion",
                          "Invalid value: 0x0: must be specified for an update"}});
  }
  if (!ParseUint(version)) {
    return BadRequestError(
        StrCat("metadata.resourceVersion: ", Quote(version), " is not a resource version"));
  }
  if (version != json::GetString(old, {"metadata", "resourceVersion"})) {
    return ModifiedError(admission.kind, admission.name);
  }
  return Status::Ok();
}

namespace {

// Whether the update leaves an object that only waited for its finalizers.
bool Finished(const json::Value& object) {
  return api::IsDeleting(object) &&
         json::GetInt(object, {"metadata", "deletionGracePeriodSeconds"}) == 0 &&
         json::GetArray(object, {"metadata", "finalizers"}).empty() &&
         (json::GetString(object, {"kind"}) != "Namespace" ||
          json::GetArray(object, {"spec", "finalizers"}).empty());
}

bool SameButVersion(json::Value& object, const json::Value& old) {
  json::Set(object, {"metadata", "resourceVersion"},
            json::Value(json::GetString(old, {"metadata", "resourceVersion"})));
  return json::Equal(object, old);
}

// Whether a change can use more of a quota: a pod is resized, a claim grows, a Service gets another
// type.
bool MayUseMore(const Admission& admission) {
  if (admission.subresource == "resize") return true;
  if (!admission.subresource.empty() || !admission.kind.gvk.group.empty()) return false;
  return admission.kind.plural == "persistentvolumeclaims" || admission.kind.plural == "services";
}

}  // namespace

void UpdateObject(Core& core,
                  Admission& admission,
                  json::Value object,
                  const store::EntryPtr& old,
                  UpdateDone done) {
  Call& call = *admission.call;
  const auto handled = HandledObject(core, call, *old);
  if (!handled.ok()) {
    done(handled.status());
    return;
  }
  const json::SharedValue& before = *handled;
  Status status = CheckPreconditions(admission, object, *before);
  if (status.ok()) status = PrepareUpdate(admission, object, *before);
  const auto reserve = admission.core.hooks.Of(admission.kind).reserve;
  if (status.ok() && reserve != nullptr) status = reserve(admission, object, before.get());
  // A new version to store it in is a change, too.
  const bool same = status.ok() && SameButVersion(object, *before) &&
                    (!admission.kind.custom || StoredIn(core, *call.storage, *old));
  if (status.ok() && !same) status = ToStored(core, call, object);
  if (status.ok() && !same && MayUseMore(admission)) {
    status = ChargeQuota(admission, object, before.get());
  }
  if (status.ok() && !same) status = CheckObjectGrowth(admission, object, *old);
  if (!status.ok()) {
    done(status);
    return;
  }
  if (admission.dry_run) {
    done(UpdateResult{nullptr, std::move(object)});
    return;
  }
  const bool finished = Finished(object);
  // Nothing to write. The old state may still be on its way to the disk: then write again rather
  // than acknowledge what a crash could take back.
  const bool durable = core.store.Get(old->key) == old;
  if (same && !finished && durable) {
    done(UpdateResult{old, json::Value()});
    return;
  }
  WriteObject(core, *call.storage,
              finished ? store::EventType::kDeleted : store::EventType::kModified,
              std::move(object),
              [done = std::move(done)](const Status& written, const store::EntryPtr& entry) {
                if (written.ok()) {
                  done(UpdateResult{entry, json::Value()});
                } else {
                  done(written);
                }
              });
}

UpdateDone AnswerUpdate(Core& core, const CallPtr& call) {
  return [weak = core.weak_from_this(), call](const Result<UpdateResult>& result) {
    const auto alive = weak.lock();
    if (!alive) return;
    if (!result.ok()) {
      call->Fail(result.status());
    } else if (result->entry) {
      RespondEntry(*alive, *call, 200, *result->entry);
    } else {
      RespondObject(*alive, *call, 200, result->object);
    }
  };
}

void HandleUpdate(Core& core, const CallPtr& call) {
  auto object = DecodeForWrite(core, *call);
  if (!object.ok()) {
    call->Fail(object.status());
    return;
  }
  const auto old = core.store.Latest(KeyFor(*call->storage, call->info.ns, call->info.name));
  if (!old) {
    const bool may_create = call->info.subresource.empty() &&
                            core.hooks.Of(*call->storage).create_on_update &&
                            api::Uid(*object).empty() && api::ResourceVersion(*object) == 0;
    if (may_create) {
      CreateObject(core, call, std::move(*object));
    } else {
      call->Fail(NotFoundError(*call->kind, call->info.name));
    }
    return;
  }
  Admission admission = AdmissionOf(core, *call);
  UpdateObject(core, admission, std::move(*object), old, AnswerUpdate(core, call));
}

}  // namespace swell::apiserver
