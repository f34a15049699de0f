// The scale subresource: autoscaling/v1 Scale over a field of any kind.
#include "base/strings.h"
#include "json/patch.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/selector.h"
#include "kube/apiserver/admission/admission_webhooks.h"
#include "kube/apiserver/codec.h"
#include "kube/apiserver/fields/apply.h"
#include "kube/apiserver/print/output.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/writing/handlers.h"
#include "kube/apiserver/writing/prepare.h"
#include "kube/apiserver/writing/write.h"

namespace swell::apiserver {
namespace {

// ".spec.replicas" and the like, as a value of the object.
const json::Value* FindPath(const json::Value& object, std::string_view path) {
  const json::Value* value = &object;
  for (std::string_view step : Split(path, '.')) {
    if (step.empty()) continue;
    if (!value->is_object()) return nullptr;
    value = value->get_object().if_contains(step);
    if (value == nullptr) return nullptr;
  }
  return value;
}

void SetPath(json::Value& object, std::string_view path, json::Value value) {
  json::Value* at = &object;
  for (std::string_view step : Split(path, '.')) {
    if (step.empty()) continue;
    if (!at->is_object()) *at = json::Object();
    at = &at->get_object()[step];
  }
  *at = std::move(value);
}

struct ScalePaths {
  std::string spec = ".spec.replicas";
  std::string status = ".status.replicas";
  std::string selector;  // a string in the object
};

ScalePaths PathsOf(const api::KindInfo& kind) {
  ScalePaths paths;
  if (!kind.scale_spec_path.empty()) paths.spec = kind.scale_spec_path;
  if (!kind.scale_status_path.empty()) paths.status = kind.scale_status_path;
  paths.selector = kind.scale_selector_path;
  return paths;
}

int64_t NumberAt(const json::Value& object, std::string_view path) {
  const json::Value* value = FindPath(object, path);
  if (value == nullptr) return 0;
  if (value->is_int64()) return value->get_int64();
  return value->is_uint64() ? static_cast<int64_t>(value->get_uint64()) : 0;
}

std::string SelectorText(const api::KindInfo& kind, const json::Value& object) {
  const ScalePaths paths = PathsOf(kind);
  if (!paths.selector.empty()) {
    const json::Value* value = FindPath(object, paths.selector);
    if (value != nullptr && value->is_string()) return std::string(json::View(value->get_string()));
    if (kind.custom) return {};
  }
  const json::Value* selector = json::Find(object, {"spec", "selector"});
  if (selector == nullptr) return {};
  const auto parsed = api::LabelSelector::FromJson(selector);
  return parsed.ok() ? parsed->ToString() : std::string();
}

json::Value MakeScale(const api::KindInfo& kind, const json::Value& object) {
  const ScalePaths paths = PathsOf(kind);
  json::Object metadata;
  for (const char* field : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    const json::Value* value = json::Find(object, {"metadata", field});
    if (value != nullptr) metadata[field] = *value;
  }
  json::Object status;
  status["replicas"] = NumberAt(object, paths.status);
  const std::string selector = SelectorText(kind, object);
  if (!selector.empty()) status["selector"] = selector;
  json::Object scale;
  scale["kind"] = "Scale";
  scale["apiVersion"] = "autoscaling/v1";
  scale["metadata"] = std::move(metadata);
  // autoscaling/v1 leaves a zero out here, and nowhere else.
  const int64_t wanted = NumberAt(object, paths.spec);
  scale["spec"] = wanted == 0 ? json::Object() : json::Object{{"replicas", wanted}};
  scale["status"] = std::move(status);
  return scale;
}

api::KindInfo ScaleKind() {
  api::KindInfo kind;
  kind.gvk = {"autoscaling", "v1", "Scale"};
  kind.plural = "scales";
  return kind;
}

// The Scale that a PUT or PATCH asks for.
Result<json::Value> WantedScale(Core& core, const Call& call, const json::Value& current) {
  if (call.request.method == "PUT") {
    return DecodeBody(call.request, core.options.body_limit_bytes);
  }
  const std::string media = MediaType(call.request.content_type);
  if (call.request.body.size() > core.options.body_limit_bytes) {
    return Status(Code::kTooLarge, "Request entity too large");
  }
  SWELL_ASSIGN_OR_RETURN(const json::Value patch,
                         media == kApplyPatch
                             ? DecodeYaml(call.request.body, core.options.body_limit_bytes)
                             : json::Parse(call.request.body));
  if (media == "application/json-patch+json") return json::ApplyJsonPatch(current, patch);
  if (media == "application/merge-patch+json" ||
      media == "application/strategic-merge-patch+json" || media == kApplyPatch) {
    json::Value scale = current;
    json::ApplyMergePatch(scale, patch);
    return scale;
  }
  return Status(Code::kUnsupportedMediaType,
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json-patch+json, application/merge-patch+json, "
                "application/strategic-merge-patch+json, application/apply-patch+yaml");
}

// The object with so many replicas. Where they are applied, they are the one field of the object
// that the manager has by its Scale.
Result<json::Value> WithReplicas(const Call& call,
                                 const json::Value& object,
                                 const std::string& path,
                                 int64_t replicas) {
  json::Value changed = object;
  if (MediaType(call.request.content_type) == kApplyPatch) {
    json::Value config = json::Object{{"metadata", json::Object{{"name", call.info.name}}}};
    SetPath(config, path, json::Value(replicas));
    SWELL_ASSIGN_OR_RETURN(changed,
                           ApplyConfiguration(call, config, &object, call.query.Get("fieldManager"),
                                              call.query.Bool("force")));
  }
  SetPath(changed, path, json::Value(replicas));
  return changed;
}

Result<int64_t> WantedReplicas(const Call& call, const json::Value& scale) {
  const api::KindInfo kind = ScaleKind();
  SWELL_RETURN_IF_ERROR(CheckMetadataTypes(kind, scale));
  const json::Value* replicas = json::Find(scale, {"spec", "replicas"});
  if (replicas != nullptr && !replicas->is_int64() && !replicas->is_uint64() &&
      !replicas->is_null()) {
    return DecodeError(kind, "spec.replicas: must be an integer");
  }
  const int64_t wanted = json::GetInt(scale, {"spec", "replicas"});
  // A custom kind's own schema says what is right.
  if (!call.kind->custom && (wanted < 0 || wanted > INT32_MAX)) {
    return InvalidError(
        kind, call.info.name,
        {{"FieldValueInvalid", "spec.replicas",
          StrCat("Invalid value: ", wanted, ": must be greater than or equal to 0")}});
  }
  return wanted;
}

// The Scale of an object that has been written.
void AnswerScale(Core& core, const CallPtr& call, const UpdateResult& result) {
  if (!result.entry) {
    RespondDocument(*call, 200, MakeScale(call->handled(), result.object));
    return;
  }
  call->retry = [weak = core.weak_from_this(), result](const CallPtr& again) {
    if (const auto alive = weak.lock()) AnswerScale(*alive, again, result);
  };
  const auto object = HandledObject(core, *call, *result.entry);
  if (object.ok()) {
    RespondDocument(*call, 200, MakeScale(call->handled(), **object));
  } else {
    call->Fail(object.status());
  }
}

}  // namespace

void HandleScale(Core& core, const CallPtr& call) {
  const bool read = call->request.method == "GET" || call->request.method == "HEAD";
  const auto key = KeyFor(*call->storage, call->info.ns, call->info.name);
  const auto entry = read ? core.store.Get(key) : core.store.Latest(key);
  if (!entry) {
    call->Fail(NotFoundError(*call->kind, call->info.name));
    return;
  }
  const auto handled = HandledObject(core, *call, *entry);
  if (!handled.ok()) {
    call->Fail(handled.status());
    return;
  }
  const api::KindInfo& kind = call->handled();
  const json::Value current = MakeScale(kind, **handled);
  if (read) {
    RespondDocument(*call, 200, current);
    return;
  }
  const auto wanted = WantedScale(core, *call, current);
  const auto replicas =
      wanted.ok() ? WantedReplicas(*call, *wanted) : Result<int64_t>(wanted.status());
  if (!replicas.ok()) {
    call->Fail(replicas.status());
    return;
  }
  const std::string spec_path = PathsOf(kind).spec;
  auto changed = WithReplicas(*call, **handled, spec_path, *replicas);
  if (!changed.ok()) {
    call->Fail(changed.status());
    return;
  }
  json::Value object = std::move(*changed);
  const std::string_view version = json::GetString(*wanted, {"metadata", "resourceVersion"});
  if (!version.empty()) {
    json::Set(object, {"metadata", "resourceVersion"}, json::Value(version));
  }
  Admission admission = AdmissionOf(core, *call);
  const api::KindInfo of = ScaleKind();
  json::Value scaled = MakeScale(kind, object);
  auto take_replicas = [&] {
    SWELL_ASSIGN_OR_RETURN(const int64_t decided, WantedReplicas(*call, scaled));
    SetPath(object, spec_path, json::Value(decided));
    return Status::Ok();
  };
  const Status asked = AskAbout(
      admission, scaled, {"UPDATE", nullptr, &current, &of, WriteOptionsOf(*call, "UpdateOptions")},
      take_replicas);
  if (!asked.ok()) {
    call->Fail(asked);
    return;
  }
  UpdateObject(core, admission, std::move(object), entry,
               [weak = core.weak_from_this(), call](const Result<UpdateResult>& result) {
                 const auto alive = weak.lock();
                 if (!alive) return;
                 if (result.ok()) {
                   AnswerScale(*alive, call, *result);
                 } else {
                   call->Fail(result.status());
                 }
               });
}

}  // namespace swell::apiserver
