#include "kube/apiserver/writing/delete.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/apiserver/admission/admission_webhooks.h"
#include "kube/apiserver/codec.h"
#include "kube/apiserver/print/output.h"
#include "kube/apiserver/reading/selection.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/writing/handlers.h"
#include "kube/apiserver/writing/write.h"
#include "kube/apiserver/writing/write_options.h"

namespace swell::apiserver {
namespace {

constexpr int64_t kDefaultPodGraceS = 30;
constexpr std::string_view kForegroundFinalizer = "foregroundDeletion";
constexpr std::string_view kOrphanFinalizer = "orphan";

}  // namespace

Result<DeleteOptions> DeleteOptions::Parse(const json::Value* body, const Query* query) {
  DeleteOptions options;
  if (body != nullptr && body->is_object()) {
    const json::Value* grace = json::Find(*body, {"gracePeriodSeconds"});
    if (grace != nullptr && !grace->is_null()) {
      if (!grace->is_int64() && !grace->is_uint64()) {
        return BadRequestError("DeleteOptions: gracePeriodSeconds: must be an integer");
      }
      options.grace_s = json::GetInt(*body, {"gracePeriodSeconds"});
    }
    options.propagation = json::GetString(*body, {"propagationPolicy"});
    const json::Value* orphan = json::Find(*body, {"orphanDependents"});
    if (orphan != nullptr && orphan->is_bool()) {
      if (!options.propagation.empty()) {
        return OptionsError(
            "DeleteOptions",
            InvalidValue("propagationPolicy", options.propagation,
                         "orphanDependents and deletionPropagation cannot be both set"));
      }
      options.propagation = orphan->get_bool() ? "Orphan" : "Background";
    }
    options.uid = json::GetString(*body, {"preconditions", "uid"});
    options.version = json::GetString(*body, {"preconditions", "resourceVersion"});
  }
  if (query != nullptr) {
    if (const auto text = query->Find("gracePeriodSeconds"); text && !text->empty()) {
      const auto grace = ParseInt(*text);
      if (!grace) return BadRequestError("gracePeriodSeconds must be an integer");
      options.grace_s = *grace;
    }
    if (const auto orphan = query->Find("orphanDependents"); orphan && !orphan->empty()) {
      options.propagation = *orphan == "false" || *orphan == "0" ? "Background" : "Orphan";
    }
    if (const auto policy = query->Find("propagationPolicy")) options.propagation = *policy;
  }
  const std::string& policy = options.propagation;
  if (!policy.empty() && policy != "Background" && policy != "Foreground" && policy != "Orphan") {
    return OptionsError("DeleteOptions",
                        UnsupportedValue("propagationPolicy", policy,
                                         {"Foreground", "Background", "Orphan", "nil"}));
  }
  return options;
}

Result<DeleteOptions> DecodeDeleteOptions(Core& core, Call& call) {
  if (call.request.body.empty()) return DeleteOptions::Parse(nullptr, &call.query);
  SWELL_ASSIGN_OR_RETURN(const json::Value body,
                         DecodeBody(call.request, core.options.body_limit_bytes));
  if (!body.is_object() && !body.is_null()) {
    return BadRequestError("the request body must be a DeleteOptions object");
  }
  std::vector<std::string_view> dry_run;
  for (const json::Value& mode : json::GetArray(body, {"dryRun"})) {
    dry_run.push_back(mode.is_string() ? json::View(mode.get_string()) : std::string_view());
  }
  SWELL_RETURN_IF_ERROR(ReadDryRun(call, dry_run, "DeleteOptions"));
  return DeleteOptions::Parse(&body, &call.query);
}

namespace {

// These name the kind where every other conflict names the resource.
Status PreconditionError(const Admission& admission, std::string_view why) {
  StatusDetails details = ConflictError(admission.kind, admission.name, why).details();
  details.kind = admission.kind.gvk.kind;
  return Status(Code::kConflict,
                StrCat("Operation cannot be fulfilled on ", admission.kind.gvk.kind,
                       admission.kind.gvk.group.empty() ? "" : ".", admission.kind.gvk.group, " ",
                       Quote(admission.name), ": ", why),
                std::move(details));
}

Status CheckPreconditions(const Admission& admission,
                          const DeleteOptions& options,
                          const json::Value& object) {
  if (!options.uid.empty() && options.uid != api::Uid(object)) {
    return PreconditionError(
        admission,
        StrCat("the UID in the precondition (", options.uid, ") does not match the UID in record (",
               api::Uid(object), "). The object might have been deleted and then recreated"));
  }
  const std::string_view version = json::GetString(object, {"metadata", "resourceVersion"});
  if (!options.version.empty() && options.version != version) {
    return PreconditionError(admission,
                             StrCat("the ResourceVersion in the precondition (", options.version,
                                    ") does not match the ResourceVersion in record (", version,
                                    "). The object might have been modified"));
  }
  return Status::Ok();
}

// Seconds an object is given to end by itself. Only pods that run somewhere are.
int64_t GraceOf(const api::KindInfo& kind,
                const json::Value& object,
                const DeleteOptions& options) {
  if (!kind.gvk.group.empty() || kind.plural != "pods") return 0;
  if (!api::IsBound(object) || api::HasEnded(object)) return 0;
  const int64_t grace = options.grace_s.value_or(
      json::GetInt(object, {"spec", "terminationGracePeriodSeconds"}, kDefaultPodGraceS));
  return grace < 0 ? 1 : grace;
}

bool IsJob(const api::KindInfo& kind) { return kind.gvk.group == "batch" && kind.plural == "jobs"; }

// The finalizers by which the garbage collector is asked to see to the dependents first.
void SetPolicyFinalizers(const Admission& admission,
                         const DeleteOptions& options,
                         json::Value& object) {
  std::string policy = options.propagation;
  if (policy.empty() && IsJob(admission.kind)) {
    policy = "Orphan";
    admission.Warn(
        "child pods are preserved by default when jobs are deleted; set "
        "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress "
        "this warning");
  }
  if (policy.empty()) return;
  json::Array kept;
  for (const json::Value& finalizer : json::GetArray(object, {"metadata", "finalizers"})) {
    if (!IsText(finalizer, kForegroundFinalizer) && !IsText(finalizer, kOrphanFinalizer)) {
      kept.push_back(finalizer);
    }
  }
  if (policy == "Foreground") kept.emplace_back(kForegroundFinalizer);
  if (policy == "Orphan") kept.emplace_back(kOrphanFinalizer);
  if (kept.empty()) {
    json::Remove(object, {"metadata", "finalizers"});
  } else {
    json::Set(object, {"metadata", "finalizers"}, std::move(kept));
  }
}

bool IsNamespace(const api::KindInfo& kind) {
  return kind.gvk.group.empty() && kind.plural == "namespaces";
}

struct Plan {
  bool write = true;  // else the object stays exactly as it is
  bool remove = false;
};

// Marks `object` as its deletion asks; says whether it goes at once.
Plan PlanDeletion(const Admission& admission, const DeleteOptions& options, json::Value& object) {
  const bool deleting = api::IsDeleting(object);
  SetPolicyFinalizers(admission, options, object);
  const bool held =
      !json::GetArray(object, {"metadata", "finalizers"}).empty() ||
      (IsNamespace(admission.kind) && !json::GetArray(object, {"spec", "finalizers"}).empty());
  int64_t grace = GraceOf(admission.kind, object, options);
  if (deleting) {
    const int64_t before = json::GetInt(object, {"metadata", "deletionGracePeriodSeconds"});
    if (!options.grace_s) grace = before;
    if (grace >= before && (before > 0 || held)) return {.write = false};
  }
  const bool remove = grace == 0 && !held;
  if (!remove) {
    const WallTime until = admission.core.clock.Now() + std::chrono::seconds(grace);
    json::Set(object, {"metadata", "deletionTimestamp"}, json::Value(api::FormatTime(until)));
    // A namespace ends when it is empty, however long that takes.
    if (!IsNamespace(admission.kind)) {
      json::Set(object, {"metadata", "deletionGracePeriodSeconds"}, json::Value(grace));
    }
  }
  if (admission.core.hooks.Of(admission.kind).generation && !deleting && !remove) {
    json::Set(object, {"metadata", "generation"},
              json::Value(json::GetInt(object, {"metadata", "generation"}) + 1));
  }
  if (IsNamespace(admission.kind) && !remove) {
    json::Set(object, {"status", "phase"}, json::Value("Terminating"));
  }
  return {.write = true, .remove = remove};
}

}  // namespace

void DeleteObject(Core& core,
                  Admission& admission,
                  const store::EntryPtr& entry,
                  const DeleteOptions& options,
                  std::function<void(const Result<Deletion>&)> done) {
  json::Value object = *StoredObject(core, admission.kind, *entry);
  Status status = CheckPreconditions(admission, options, object);
  const auto may_remove = admission.core.hooks.Of(admission.kind).remove;
  if (status.ok() && may_remove != nullptr) status = may_remove(admission, object);
  if (!status.ok()) {
    done(status);
    return;
  }
  const Plan plan = PlanDeletion(admission, options, object);
  // What is told must be durable; an earlier deletion of it may be on its way to the disk.
  const bool durable = core.store.Get(entry->key) == entry;
  if (admission.dry_run || (!plan.write && durable)) {
    done(Deletion{entry, plan.remove});
    return;
  }
  WriteObject(core, admission.call != nullptr ? *admission.call->storage : admission.kind,
              plan.remove ? store::EventType::kDeleted : store::EventType::kModified,
              std::move(object),
              [done = std::move(done), gone = plan.remove](const Status& written,
                                                           const store::EntryPtr& last) {
                if (written.ok()) {
                  done(Deletion{last, gone});
                } else {
                  done(written);
                }
              });
}

namespace {

// Lets webhooks refuse it.
Status AskAboutDeletion(Admission& admission,
                        const store::Entry& entry,
                        const DeleteOptions& options) {
  if (!AsksWebhooks(admission)) return Status::Ok();
  json::Value shown = WriteOptionsOf(*admission.call, "DeleteOptions");
  json::Remove(shown, {"fieldManager"});
  if (options.grace_s) json::Set(shown, {"gracePeriodSeconds"}, json::Value(*options.grace_s));
  if (!options.propagation.empty()) {
    json::Set(shown, {"propagationPolicy"}, json::Value(options.propagation));
  }
  if (!options.uid.empty()) json::Set(shown, {"preconditions", "uid"}, json::Value(options.uid));
  if (!options.version.empty()) {
    json::Set(shown, {"preconditions", "resourceVersion"}, json::Value(options.version));
  }
  const json::SharedValue old = StoredObject(admission.core, admission.kind, entry);
  return AskBoth(admission, {"DELETE", nullptr, old.get(), nullptr, std::move(shown)});
}

}  // namespace

void HandleDelete(Core& core, const CallPtr& call) {
  const auto options = DecodeDeleteOptions(core, *call);
  if (!options.ok()) {
    call->Fail(options.status());
    return;
  }
  const auto key = KeyFor(*call->storage, call->info.ns, call->info.name);
  const auto entry = core.store.Latest(key);
  if (!entry) {
    const Status missing = NotFoundError(*call->kind, call->info.name);
    if (!core.store.Get(key)) return call->Fail(missing);
    // Somebody else's deletion is on its way to the disk: until then a reader would still find it.
    core.store.WhenDurable(
        [call, missing](const Status& durable) { call->Fail(durable.ok() ? missing : durable); });
    return;
  }
  Admission admission = AdmissionOf(core, *call);
  const Status asked = AskAboutDeletion(admission, *entry, *options);
  if (!asked.ok()) {
    call->Fail(asked);
    return;
  }
  DeleteObject(core, admission, entry, *options,
               [weak = core.weak_from_this(), call](const Result<Deletion>& result) {
                 const auto alive = weak.lock();
                 if (!alive) return;
                 if (!result.ok()) {
                   call->Fail(result.status());
                 } else if (result->gone && !alive->hooks.Of(*call->storage).answers_deleted) {
                   RespondDocument(*call, 200,
                                   SuccessStatus(*call->kind, result->entry->key.name,
                                                 result->entry->attributes.uid));
                 } else {
                   RespondEntry(*alive, *call, 200, *result->entry);
                 }
               });
}

namespace {

// A collection under deletion: answers with what was deleted when the last write is durable.
struct Collection {
  CallPtr call;
  std::vector<store::EntryPtr> deleted;
  size_t pending = 1;  // one for the loop that starts the deletions
  Status first_error;

  void Finish(const std::shared_ptr<Core>& core) {
    if (--pending > 0) return;
    if (!first_error.ok()) {
      call->Fail(first_error);
    } else {
      RespondList(*core, *call, deleted, {core->store.Version(), "", std::nullopt});
    }
  }
};

}  // namespace

void HandleDeleteCollection(Core& core, const CallPtr& call) {
  const auto options = DecodeDeleteOptions(core, *call);
  auto selection = Selection::Parse(*call);
  if (!options.ok() || !selection.ok()) {
    call->Fail(options.ok() ? selection.status() : options.status());
    return;
  }
  auto listing = core.store.List(
      call->storage->StoreResource(), call->info.ns,
      [&selection](const store::Entry& entry) { return selection->Matches(entry); });
  if (!listing.ok()) {
    call->Fail(listing.status());
    return;
  }
  auto collection = std::make_shared<Collection>();
  collection->call = call;
  // Webhooks are asked about all of them before the first is deleted.
  Status refused;
  for (const store::EntryPtr& listed : listing->entries) {
    Admission admission = AdmissionOf(core, *call);
    admission.ns = listed->key.ns;
    admission.name = listed->key.name;
    const Status asked = AskAboutDeletion(admission, *listed, *options);
    if (refused.ok()) refused = asked;
  }
  if (!refused.ok()) {
    call->Fail(refused);
    return;
  }
  bool overtaken = false;  // by somebody else's deletion, which is not durable yet
  for (const store::EntryPtr& listed : listing->entries) {
    const auto entry = core.store.Latest(listed->key);
    if (!entry) {
      overtaken = true;
      continue;
    }
    Admission admission = AdmissionOf(core, *call);
    admission.ns = entry->key.ns;
    admission.name = entry->key.name;
    ++collection->pending;
    DeleteObject(core, admission, entry, *options,
                 [weak = core.weak_from_this(), collection](const Result<Deletion>& result) {
                   const auto alive = weak.lock();
                   if (!alive) return;
                   if (result.ok()) {
                     collection->deleted.push_back(result->entry);
                   } else if (collection->first_error.ok()) {
                     collection->first_error = result.status();
                   }
                   collection->Finish(alive);
                 });
  }
  if (!overtaken) return collection->Finish(core.shared_from_this());
  core.store.WhenDurable([weak = core.weak_from_this(), collection](const Status& durable) {
    if (collection->first_error.ok()) collection->first_error = durable;
    if (const auto alive = weak.lock()) collection->Finish(alive);
  });
}

}  // namespace swell::apiserver
