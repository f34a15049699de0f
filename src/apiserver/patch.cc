#include "json/patch.h"

#include "api/meta.h"
#include "api/strategic.h"
#include "apiserver/apply.h"
#include "apiserver/codec.h"
#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/output.h"
#include "apiserver/prepare.h"
#include "apiserver/write.h"
#include "base/strings.h"
#include "json/yaml.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kJsonPatch = "application/json-patch+json";
constexpr std::string_view kMergePatch = "application/merge-patch+json";
constexpr std::string_view kStrategicPatch = "application/strategic-merge-patch+json";
constexpr std::string_view kApplyPatch = "application/apply-patch+yaml";
constexpr size_t kMaxDepth = 64;

Status UnsupportedPatch(const api::KindInfo& kind) {
  return Status(Code::kUnsupportedMediaType,
                StrCat("the body of the request was in an unknown format - accepted media types "
                       "include: application/json-patch+json, application/merge-patch+json, ",
                       kind.custom ? "" : "application/strategic-merge-patch+json, ",
                       "application/apply-patch+yaml"));
}

Result<json::Value> DecodePatch(const Core& core, const Call& call, std::string_view media) {
  const size_t limit = core.options.body_limit_bytes;
  if (call.request.body.size() > limit) {
    return Status(Code::kTooLarge, StrCat("Request entity too large: limit is ", limit));
  }
  const json::ParseLimits limits{kMaxDepth, limit};
  if (media == kApplyPatch) {
    SWELL_ASSIGN_OR_RETURN(std::vector<json::Value> documents,
                           json::ParseYaml(call.request.body, limits));
    if (documents.size() != 1 || !documents[0].is_object()) {
      return BadRequestError("error decoding YAML: the apply patch must be one object");
    }
    return std::move(documents[0]);
  }
  auto patch = json::Parse(call.request.body, limits);
  if (!patch.ok()) return patch.status().WithContext("error decoding patch");
  if (media == kJsonPatch ? !patch->is_array() : !patch->is_object()) {
    return BadRequestError(StrCat("error decoding patch: a ", media, " must be a JSON ",
                                  media == kJsonPatch ? "array" : "object"));
  }
  return patch;
}

// The patched document, in the call's version.
Result<json::Value> RunPatch(const api::KindInfo& kind,
                             std::string_view media,
                             const json::Value& document,
                             const json::Value& patch) {
  if (media == kJsonPatch) {
    auto patched = json::ApplyJsonPatch(document, patch);
    if (patched.ok() || patched.status().code() != Code::kInvalid) return patched;
    return Status(Code::kInvalid, StrCat("the server rejected our request due to an error in our "
                                         "request: ",
                                         patched.status().message()));
  }
  json::Value patched = document;
  if (media == kMergePatch) {
    json::ApplyMergePatch(patched, patch);
  } else {
    SWELL_RETURN_IF_ERROR(api::ApplyStrategicMerge(*kind.schema, patched, patch));
  }
  return patched;
}

// Type checks and unknown fields of a patched object, worded about the patch.
Status CheckPatched(Call& call, json::Value& object) {
  SWELL_RETURN_IF_ERROR(CheckMetadataTypes(*call.kind, object));
  const std::string_view name = api::Name(object);
  if (name != call.info.name) {
    return BadRequestError(StrCat("the name of the object (", name,
                                  ") does not match the name on the URL (", call.info.name, ")"));
  }
  if (call.kind->namespaced && api::Namespace(object) != call.info.ns) {
    return BadRequestError(
        "the namespace of the provided object does not match the namespace sent on the request");
  }
  if (json::GetString(object, {"kind"}) != call.kind->gvk.kind ||
      json::GetString(object, {"apiVersion"}) != call.kind->gvk.ApiVersion()) {
    return BadRequestError("a patch may not change apiVersion or kind");
  }
  SWELL_ASSIGN_OR_RETURN(const std::string strict, PruneObject(call, *call.kind, object));
  if (strict.empty()) return Status::Ok();
  return Status(
      Code::kInvalid,
      StrCat(" \"\" is invalid: patch: Invalid value: ", Quote(call.request.body.substr(0, 1024)),
             ": ", strict),
      {"", "", "", "", {{"FieldValueInvalid", "patch", StrCat("Invalid value: ", strict)}}, 0});
}

void RunApply(Core& core, const CallPtr& call, json::Value config) {
  const std::string_view manager = call->query.Get("fieldManager");
  const auto force = call->query.Bool("force");
  if (manager.empty() || !force.ok()) {
    call->Fail(manager.empty()
                   ? Status(Code::kInvalid,
                            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required "
                            "value: is required for apply patch")
                   : force.status());
    return;
  }
  const auto entry = core.store.Latest(KeyFor(*call->storage, call->info.ns, call->info.name));
  if (!entry && !call->info.subresource.empty()) {
    call->Fail(NotFoundError(*call->kind, call->info.name));
    return;
  }
  std::optional<json::Value> live;
  if (entry) {
    auto object = ObjectOf(core, *call, *entry);
    if (!object.ok()) {
      call->Fail(object.status());
      return;
    }
    live = std::move(*object);
  }
  if (api::Name(config).empty()) {
    json::Set(config, {"metadata", "name"}, json::Value(call->info.name));
  }
  if (call->kind->namespaced && api::Namespace(config).empty()) {
    json::Set(config, {"metadata", "namespace"}, json::Value(call->info.ns));
  }
  Status checked = CheckPatched(*call, config);
  auto applied = checked.ok() ? ApplyConfiguration(core, *call, config, live ? &*live : nullptr,
                                                   manager, *force)
                              : Result<json::Value>(checked);
  if (applied.ok()) checked = ToStorage(core, *call, *applied);
  if (!applied.ok() || !checked.ok()) {
    call->Fail(applied.ok() ? checked : applied.status());
    return;
  }
  if (!entry) {
    CreateObject(core, call, std::move(*applied));
    return;
  }
  Admission admission = AdmissionOf(core, *call);
  UpdateObject(core, admission, std::move(*applied), entry, AnswerUpdate(core, call));
}

}  // namespace

// Reading the newest accepted state, patching it and writing it is one synchronous step, so a
// patch meets a conflict only when it names a resourceVersion itself; no retries are needed.
void HandlePatch(Core& core, const CallPtr& call) {
  const std::string media = MediaType(call->request.content_type);
  const bool strategic = media == kStrategicPatch && !call->kind->custom && call->kind->schema;
  if (media != kJsonPatch && media != kMergePatch && media != kApplyPatch && !strategic) {
    call->Fail(UnsupportedPatch(*call->kind));
    return;
  }
  auto patch = DecodePatch(core, *call, media);
  if (!patch.ok()) {
    call->Fail(patch.status());
    return;
  }
  if (media == kApplyPatch) {
    RunApply(core, call, std::move(*patch));
    return;
  }
  const auto entry = core.store.Latest(KeyFor(*call->storage, call->info.ns, call->info.name));
  if (!entry) {
    call->Fail(NotFoundError(*call->kind, call->info.name));
    return;
  }
  auto document = ObjectOf(core, *call, *entry);
  auto patched = document.ok() ? RunPatch(*call->kind, media, *document, *patch)
                               : Result<json::Value>(document.status());
  Status status = patched.ok() ? CheckPatched(*call, *patched) : patched.status();
  if (status.ok()) status = ToStorage(core, *call, *patched);
  if (!status.ok()) {
    call->Fail(status);
    return;
  }
  Admission admission = AdmissionOf(core, *call);
  UpdateObject(core, admission, std::move(*patched), entry, AnswerUpdate(core, call));
}

}  // namespace swell::apiserver
