// POST pods/x/binding and POST bindings: a pod gets its node, once.
#include <utility>

#include "api/meta.h"
#include "apiserver/admission_webhooks.h"
#include "apiserver/codec.h"
#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/output.h"
#include "apiserver/prepare.h"
#include "apiserver/write.h"
#include "base/strings.h"

namespace swell::apiserver {
namespace {

api::KindInfo BindingKind() {
  api::KindInfo kind;
  kind.gvk = {"", "v1", "Binding"};
  kind.plural = "bindings";
  return kind;
}

// `Operation cannot be fulfilled on pods/binding "x": why`.
Status BindConflict(std::string_view name, std::string_view why) {
  return Status(Code::kConflict,
                StrCat("Operation cannot be fulfilled on pods/binding ", Quote(name), ": ", why),
                {std::string(name), "", "pods/binding", "", {}, 0});
}

Status OtherName() { return BadRequestError("name in URL does not match name in Binding object"); }

Status CheckBinding(const json::Value& binding, std::string_view pod_name) {
  std::vector<api::FieldError> errors;
  const std::string_view kind = json::GetString(binding, {"target", "kind"});
  if (!kind.empty() && kind != "Node") {
    errors.push_back(UnsupportedValue("target.kind", kind, {"Node", "<empty>"}));
  }
  if (json::GetString(binding, {"target", "name"}).empty()) {
    errors.push_back(RequiredValue("target.name"));
  }
  if (errors.empty()) return Status::Ok();
  return InvalidError(BindingKind(), pod_name, errors);
}

Status CheckPod(const json::Value& pod, const json::Value& binding) {
  const std::string_view name = api::Name(pod);
  const std::string_view uid = api::Uid(binding);
  if (!uid.empty() && uid != api::Uid(pod)) {
    return BindConflict(name, StrCat("Precondition failed: UID in precondition: ", uid,
                                     ", UID in object meta: ", api::Uid(pod)));
  }
  if (api::IsDeleting(pod)) {
    return BindConflict(name, StrCat("pod ", name,
                                     " is being deleted, cannot be assigned to a "
                                     "host"));
  }
  const std::string_view node = json::GetString(pod, {"spec", "nodeName"});
  if (!node.empty()) {
    return BindConflict(name, StrCat("pod ", name, " is already assigned to node ", Quote(node)));
  }
  if (!json::GetArray(pod, {"spec", "schedulingGates"}).empty()) {
    return BindConflict(name, StrCat("pod ", name, " has non-empty .spec.schedulingGates"));
  }
  return Status::Ok();
}

void Assign(json::Value& pod, const json::Value& binding, WallTime now) {
  json::Set(pod, {"spec", "nodeName"}, json::Value(json::GetString(binding, {"target", "name"})));
  for (const char* map : {"annotations", "labels"}) {
    for (const auto& [key, value] : json::GetObject(binding, {"metadata", map})) {
      json::Set(pod, {"metadata", map, std::string_view(key.data(), key.size())}, value);
    }
  }
  json::Array conditions = json::GetArray(pod, {"status", "conditions"});
  api::SetCondition(conditions, "PodScheduled", "True", "", "", now);
  json::Set(pod, {"status", "conditions"}, std::move(conditions));
}

Status SuccessOrError(Core& core, const json::Value& pod, const json::Value& binding) {
  SWELL_RETURN_IF_ERROR(CheckPod(pod, binding));
  if (!core.options.bind_check) return Status::Ok();
  return core.options.bind_check(pod, std::string(json::GetString(binding, {"target", "name"})));
}

void RespondCreated(Call& call) {
  json::Object status;
  status["kind"] = "Status";
  status["apiVersion"] = "v1";
  status["metadata"] = json::Object();
  status["status"] = "Success";
  status["code"] = 201;
  RespondDocument(call, 201, status);
}

void Bind(Core& core,
          const CallPtr& call,
          const std::string& ns,
          const std::string& name,
          json::Value binding) {
  const api::KindPtr kind = core.scheme->StorageKind("", "pods");
  const auto entry = kind ? core.store.Latest(KeyFor(*kind, ns, name)) : nullptr;
  if (!entry) {
    call->Fail(kind ? NotFoundError(*kind, name) : NoSuchResourceError());
    return;
  }
  Admission admission = AdmissionOf(core, *call);
  admission.name = name;
  const api::KindInfo of = BindingKind();
  Status status = AskAbout(
      admission, binding, {"CREATE", nullptr, nullptr, &of, WriteOptionsOf(*call, "CreateOptions")},
      [&] { return api::Name(binding) == name ? CheckBinding(binding, name) : OtherName(); });
  json::Value pod = *entry->Parsed();
  if (status.ok()) status = SuccessOrError(core, pod, binding);
  if (!status.ok()) {
    call->Fail(status);
    return;
  }
  if (call->dry_run) {
    RespondCreated(*call);
    return;
  }
  Assign(pod, binding, core.clock.Now());
  WriteObject(core, *kind, store::EventType::kModified, std::move(pod),
              [call](const Status& written, const store::EntryPtr&) {
                if (written.ok()) {
                  RespondCreated(*call);
                } else {
                  call->Fail(written);
                }
              });
}

Result<json::Value> DecodeBinding(Core& core, Call& call) {
  SWELL_ASSIGN_OR_RETURN(json::Value binding,
                         DecodeBody(call.request, core.options.body_limit_bytes));
  SWELL_RETURN_IF_ERROR(CheckMetadataTypes(BindingKind(), binding));
  return binding;
}

}  // namespace

void HandleBinding(Core& core, const CallPtr& call) {
  auto binding = DecodeBinding(core, *call);
  if (!binding.ok()) {
    call->Fail(binding.status());
    return;
  }
  const std::string_view name = api::Name(*binding);
  if (name != call->info.name) {
    call->Fail(OtherName());
    return;
  }
  Bind(core, call, call->info.ns, call->info.name, std::move(*binding));
}

void HandleBindingsResource(Core& core, const CallPtr& call) {
  auto binding = DecodeBinding(core, *call);
  if (!binding.ok()) {
    call->Fail(binding.status());
    return;
  }
  const std::string name(api::Name(*binding));
  if (name.empty()) {
    call->Fail(InvalidError(BindingKind(), "", {RequiredValue("metadata.name")}));
    return;
  }
  Bind(core, call, call->info.ns, name, std::move(*binding));
}

}  // namespace swell::apiserver
