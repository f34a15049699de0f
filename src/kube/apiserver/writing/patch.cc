#include "json/patch.h"

#include "base/strings.h"
#include "json/duplicates.h"
#include "kube/api/meta/meta.h"
#include "kube/api/patch/strategic.h"
#include "kube/api/schema/decode_problem.h"
#include "kube/apiserver/codec.h"
#include "kube/apiserver/fields/apply.h"
#include "kube/apiserver/fields/field_set.h"
#include "kube/apiserver/print/output.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/writing/handlers.h"
#include "kube/apiserver/writing/prepare.h"
#include "kube/apiserver/writing/write.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kJsonPatch = "application/json-patch+json";
constexpr std::string_view kMergePatch = "application/merge-patch+json";
constexpr std::string_view kStrategicPatch = "application/strategic-merge-patch+json";

Status UnsupportedPatch(const api::KindInfo& kind) {
  return Status(Code::kUnsupportedMediaType,
                StrCat("the body of the request was in an unknown format - accepted media types "
                       "include: application/json-patch+json, application/merge-patch+json, ",
                       kind.custom ? "" : "application/strategic-merge-patch+json, ",
                       "application/apply-patch+yaml"));
}

constexpr size_t kMaxShownPatch = 1024;

// 422 about the patch, which has no name and is of no kind.
Status InvalidPatch(std::string_view shown, std::string_view why) {
  const std::string text = StrCat("Invalid value: ", Quote(shown), ": ", why);
  return Status(Code::kInvalid, StrCat(" \"\" is invalid: patch: ", text),
                {"", "", "", "", {{"FieldValueInvalid", "patch", text}}, 0});
}

std::string_view JsonTypeName(const json::Value& value) {
  if (value.is_object()) return "object";
  if (value.is_array()) return "array";
  if (value.is_string()) return "string";
  return value.is_bool() ? "bool" : "number";
}

Status MalformedPatch(std::string_view media, const json::Value& patch) {
  const bool steps = media == kJsonPatch;
  return BadRequestError(StrCat(steps ? "error decoding patch: " : "", "json: cannot unmarshal ",
                                JsonTypeName(patch), " into Go value of type ",
                                steps ? "[]handlers.jsonPatchOp" : "map[string]interface {}"));
}

Result<json::Value> DecodePatch(const Core& core,
                                const Call& call,
                                std::string_view media,
                                Duplicates& duplicates) {
  const size_t limit = core.options.body_limit_bytes;
  if (call.request.body.size() > limit) {
    return Status(Code::kTooLarge, StrCat("Request entity too large: limit is ", limit));
  }
  if (media == kApplyPatch) {
    SWELL_ASSIGN_OR_RETURN(std::vector<json::Value> documents,
                           json::ParseYamlNoting(call.request.body, BodyLimits(limit), duplicates));
    if (documents.size() != 1 || !documents[0].is_object()) {
      return BadRequestError("error decoding YAML: the apply patch must be one object");
    }
    return std::move(documents[0]);
  }
  auto patch = DecodeJson(call.request.body, limit, &duplicates);
  if (!patch.ok()) return patch.status().WithContext("error decoding patch");
  if (media == kJsonPatch ? !patch->is_array() : !patch->is_object()) {
    return MalformedPatch(media, *patch);
  }
  return patch;
}

// The patched document, in the call's version.
Result<json::Value> RunPatch(const api::KindInfo& kind,
                             std::string_view media,
                             json::Value document,
                             const json::Value& patch) {
  if (media == kJsonPatch) {
    auto patched = json::ApplyJsonPatch(document, patch);
    if (patched.ok()) return patched;
    return Status(Code::kInvalid, "the server rejected our request due to an error in our request");
  }
  if (media == kMergePatch) {
    json::ApplyMergePatch(document, patch);
  } else {
    SWELL_RETURN_IF_ERROR(api::ApplyStrategicMerge(*kind.schema, document, patch));
  }
  return document;
}

// Type checks and unknown fields of a patched object, worded about the patch.
Status CheckPatched(Call& call, json::Value& object, const Duplicates& duplicates) {
  const Status types = CheckMetadataTypes(*call.kind, object);
  if (!types.ok()) return object.is_object() ? UndecodablePatch(call, object) : types;
  SWELL_RETURN_IF_ERROR(CheckNames(call, object));
  if (call.kind->namespaced)
    json::Set(object, {"metadata", "namespace"}, json::Value(call.info.ns));
  const std::string kind(json::GetString(object, {"kind"}));
  const std::string version(json::GetString(object, {"apiVersion"}));
  if (kind != call.kind->gvk.kind || version != call.kind->gvk.ApiVersion()) {
    return InvalidPatch(
        json::Print(object),
        StrCat("converting (", version, ", Kind=", kind, ") to (", call.kind->gvk.ApiVersion(),
               ", Kind=", call.kind->gvk.kind, "): unknown conversion"));
  }
  SWELL_ASSIGN_OR_RETURN(const std::string strict,
                         PruneObject(call, *call.kind, object, duplicates));
  if (strict.empty()) return Status::Ok();
  return InvalidPatch(call.request.body.substr(0, kMaxShownPatch), strict);
}

std::string_view TypeForApply(api::SchemaType type) {
  switch (type) {
    case api::SchemaType::kObject:
    case api::SchemaType::kMap:
      return "map";
    case api::SchemaType::kArray:
      return "list";
    case api::SchemaType::kInteger:
    case api::SchemaType::kNumber:
      return "numeric (int or float)";
    case api::SchemaType::kBoolean:
      return "boolean";
    case api::SchemaType::kString:
    case api::SchemaType::kTime:
    case api::SchemaType::kMicroTime:
      return "string";
    case api::SchemaType::kIntOrString:
    case api::SchemaType::kQuantity:
    case api::SchemaType::kAny:
      break;
  }
  return {};
}

bool HasType(const json::Value& value, std::string_view type) {
  if (type == "map") return value.is_object();
  if (type == "list") return value.is_array();
  if (type == "boolean") return value.is_bool();
  return type == "string" ? value.is_string() : type.empty() || value.is_number();
}

// The first field, by name, of a configuration that its type does not declare, or declares
// otherwise; or the first element of a list that is there twice.
std::string UntypedField(const json::Value& value,
                         const api::Schema* schema,
                         const std::string& path) {
  if (schema == nullptr || value.is_null() || schema->type == api::SchemaType::kAny) return {};
  const std::string_view type = TypeForApply(schema->type);
  if (!HasType(value, type)) {
    return StrCat(path, ": expected ", type, ", got &{", api::GoText(value), "}");
  }
  const std::string twice = ElementThereTwice(value, schema);
  if (!twice.empty()) {
    return StrCat(path, ": duplicate entries for key ", PathText("", twice));
  }
  for (const Part& part : PartsOf(value, schema)) {
    const std::string at = PathText(path, part.element);
    if (part.schema == nullptr && !schema->preserve_unknown) {
      return at + ": field not declared in schema";
    }
    std::string problem = UntypedField(*part.value, part.schema, at);
    if (!problem.empty()) return problem;
  }
  return {};
}

// Checks that the configuration names this kind and version, and fits its type. If not, answers the
// call and returns false.
bool IsApplicable(const CallPtr& call, const json::Value& config, const Duplicates& duplicates) {
  if (!duplicates.empty() && call->query.Get("fieldValidation") == "Strict") {
    call->Fail(NamedTwice(duplicates));
    return false;
  }
  const api::GroupVersionKind& gvk = call->kind->gvk;
  const std::string version(json::GetString(config, {"apiVersion"}));
  if (version != gvk.ApiVersion()) {
    call->Fail(
        BadRequestError(StrCat("Incorrect version specified in apply patch. Specified patch "
                               "version: ",
                               version, ", expected: ", gvk.ApiVersion())));
    return false;
  }
  if (json::GetString(config, {"kind"}) != gvk.kind) {
    call->Fail(BadRequestError(StrCat("no corresponding type for ", version,
                                      ", Kind=", json::GetString(config, {"kind"}))));
    return false;
  }
  const std::string untyped = UntypedField(config, call->kind->schema.get(), "");
  if (untyped.empty()) return true;
  const std::string ns = call->info.ns.empty() ? "" : StrCat(call->info.ns, "/");
  call->Respond(UnnamedErrorResponse(
      StrCat("failed to create typed patch object (", ns, call->info.name, "; ", call->info.group,
             "/", call->info.version, ", Kind=", gvk.kind, "): ", untyped)));
  return false;
}

void RunApply(Core& core, const CallPtr& call, json::Value config, const Duplicates& duplicates) {
  if (!IsApplicable(call, config, duplicates)) return;
  const std::string_view manager = call->query.Get("fieldManager");
  const auto entry = core.store.Latest(KeyFor(*call->storage, call->info.ns, call->info.name));
  if (!entry && !call->info.subresource.empty()) {
    call->Fail(NotFoundError(*call->kind, call->info.name));
    return;
  }
  if (const std::string_view uid = api::Uid(config); !entry && !uid.empty()) {
    call->Fail(ConflictError(*call->kind, call->info.name,
                             StrCat("uid mismatch: the provided object specified uid ", uid,
                                    ", and no existing object was found")));
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
  Status checked = CheckPatched(*call, config, duplicates);
  auto applied = checked.ok() ? ApplyConfiguration(*call, config, live ? &*live : nullptr, manager,
                                                   call->query.Bool("force"))
                              : Result<json::Value>(checked);
  if (applied.ok()) checked = ToHandled(core, *call, *applied);
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

Status UndecodablePatch(const Call& call, const json::Value& object) {
  const bool strategic = MediaType(call.request.content_type) == kStrategicPatch;
  const std::string problem = api::FindDecodeProblem(
      *call.kind->schema, object, strategic ? api::DecodeForm::kConverted : api::DecodeForm::kJson);
  if (!strategic) return InvalidPatch(json::Print(object), problem);
  const auto patch = json::Parse(call.request.body);
  return InvalidPatch(patch.ok() ? api::GoText(*patch) : "", problem);
}

// Reading the newest accepted state, patching it and writing it is one synchronous step, so a
// patch meets a conflict only when it names a resourceVersion itself; no retries are needed.
void HandlePatch(Core& core, const CallPtr& call) {
  const std::string media = MediaType(call->request.content_type);
  const bool strategic = media == kStrategicPatch && !call->kind->custom && call->kind->schema;
  if (media != kJsonPatch && media != kMergePatch && media != kApplyPatch && !strategic) {
    call->Fail(UnsupportedPatch(*call->kind));
    return;
  }
  Duplicates duplicates;
  auto patch = DecodePatch(core, *call, media, duplicates);
  if (!patch.ok()) {
    call->Fail(patch.status());
    return;
  }
  if (media == kApplyPatch) {
    RunApply(core, call, std::move(*patch), duplicates);
    return;
  }
  const auto entry = core.store.Latest(KeyFor(*call->storage, call->info.ns, call->info.name));
  if (!entry) {
    call->Fail(NotFoundError(*call->kind, call->info.name));
    return;
  }
  const json::SharedValue stored = entry->Parsed();  // for all who ask for it until it is written
  auto document = ObjectOf(core, *call, *entry);
  auto patched = document.ok() ? RunPatch(*call->kind, media, std::move(*document), *patch)
                               : Result<json::Value>(document.status());
  if (strategic && patched.status().code() == Code::kInternal) {
    call->Respond(UnnamedErrorResponse(std::string(patched.status().message())));
    return;
  }
  Status status = patched.ok() ? CheckPatched(*call, *patched, duplicates) : patched.status();
  if (status.ok()) status = ToHandled(core, *call, *patched);
  if (!status.ok()) {
    call->Fail(status);
    return;
  }
  Admission admission = AdmissionOf(core, *call);
  UpdateObject(core, admission, std::move(*patched), entry, AnswerUpdate(core, call));
}

}  // namespace swell::apiserver
