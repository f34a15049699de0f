// POST pods/x/binding and POST bindings: a pod gets its node, once.
#include <utility>
#include <vector>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/patch/edit_text.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/access/request_log.h"
#include "kube/apiserver/admission/admission_webhooks.h"
#include "kube/apiserver/codec.h"
#include "kube/apiserver/pods/handlers.h"
#include "kube/apiserver/print/output.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/writing/prepare.h"
#include "kube/apiserver/writing/write.h"

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

Status CheckPod(const store::Entry& entry, const json::Value& pod, const json::Value& binding) {
  const std::string& name = entry.key.name;
  const std::string_view uid = api::Uid(binding);
  if (!uid.empty() && uid != entry.attributes.uid) {
    return BindConflict(name, StrCat("Precondition failed: UID in precondition: ", uid,
                                     ", UID in object meta: ", entry.attributes.uid));
  }
  if (api::IsDeleting(pod)) {
    return BindConflict(name, StrCat("pod ", name,
                                     " is being deleted, cannot be assigned to a "
                                     "host"));
  }
  const std::string node = FieldOf(entry, "spec.nodeName");
  if (!node.empty()) {
    return BindConflict(name, StrCat("pod ", name, " is already assigned to node ", Quote(node)));
  }
  if (!json::GetArray(pod, {"spec", "schedulingGates"}).empty()) {
    return BindConflict(name, StrCat("pod ", name, " has non-empty .spec.schedulingGates"));
  }
  return Status::Ok();
}

api::StringPairs WithField(const api::StringPairs& fields,
                           std::string_view field,
                           std::string_view value) {
  std::vector<api::StringPairs::Pair> pairs;
  for (const auto& [name, old] : fields) pairs.emplace_back(name, name == field ? value : old);
  return api::StringPairs::Of(pairs);
}

struct AssignedPod {
  store::EntryPtr entry;      // null: the pod is stored as no object
  json::SharedValue content;  // the entry's, for as long as this is held
};

// The pod with its node, as the store's next version. Watchers need its document: to change a copy
// of the last version's costs less than to parse the text again.
AssignedPod Assign(Core& core,
                   const store::Entry& entry,
                   const json::Value& pod,
                   const json::Value& binding) {
  const uint64_t version = core.store.PeekVersion();
  const std::string_view node = json::GetString(binding, {"target", "name"});
  json::Value content(pod);
  store::Attributes attributes = entry.attributes;
  attributes.fields = WithField(attributes.fields, "spec.nodeName", node);
  std::vector<api::TextEdit> edits;
  auto set = [&content, &edits](const char* part, const char* key, json::Value value) {
    edits.push_back({part, key, json::Print(value)});
    json::Set(content, {part, key}, std::move(value));
  };
  set("metadata", "resourceVersion", json::Value(std::to_string(version)));
  set("spec", "nodeName", json::Value(node));
  for (const char* map : {"annotations", "labels"}) {
    const json::Object& more = json::GetObject(binding, {"metadata", map});
    if (more.empty()) continue;
    json::Object all = json::GetObject(content, {"metadata", map});
    for (const auto& [key, value] : more) all[key] = value;
    if (std::string_view(map) == "labels") attributes.labels = LabelPairs(all);
    set("metadata", map, std::move(all));
  }
  json::Value* conditions = json::FindMutable(content, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) {
    conditions = &json::Set(content, {"status", "conditions"}, json::Array());
  }
  api::SetCondition(conditions->get_array(), "PodScheduled", "True", "", "", core.clock.Now());
  edits.push_back({"status", "conditions", json::Print(*conditions)});
  auto text = api::EditText(*entry.text, edits);
  if (!text) return {};
  AssignedPod next{std::make_shared<const store::Entry>(entry.key, version, std::move(*text),
                                                        std::move(attributes)),
                   std::make_shared<const json::Value>(std::move(content))};
  next.entry->PrimeContent(next.content);
  return next;
}

Status CheckFit(Core& core, const json::Value& pod, const json::Value& binding) {
  if (!core.options.bind_check) return Status::Ok();
  return core.options.bind_check(pod, std::string(json::GetString(binding, {"target", "name"})));
}

void RespondCreated(Call& call) {
  static const json::Value status = json::Object{{"kind", "Status"},
                                                 {"apiVersion", "v1"},
                                                 {"metadata", json::Object()},
                                                 {"status", "Success"},
                                                 {"code", 201}};
  static const api::Chunk text = api::MakeChunk(json::Print(status));
  if (!call.form.raw()) return RespondDocument(call, 201, status);
  api::RestResponse response;
  response.status = 201;
  response.body.push_back(text);
  call.Respond(std::move(response));
}

void Bind(Core& core,
          const CallPtr& call,
          const std::string& ns,
          const std::string& name,
          json::Value binding) {
  const api::KindPtr kind =
      call->info.resource == "pods" ? call->storage : core.scheme->StorageKind("", "pods");
  const auto entry = kind ? core.store.Latest(KeyFor(*kind, ns, name)) : nullptr;
  if (!entry) {
    call->Fail(kind ? NotFoundError(*kind, name) : NoSuchResourceError());
    return;
  }
  Admission admission = AdmissionOf(core, *call);
  admission.name = name;
  static const api::KindInfo of = BindingKind();
  Reviewed reviewed{"CREATE", nullptr, nullptr, &of, nullptr};
  if (HasAdmissionWebhooks(core)) reviewed.options = WriteOptionsOf(*call, "CreateOptions");
  Status status = AskAbout(admission, binding, std::move(reviewed), [&] {
    return api::Name(binding) == name ? CheckBinding(binding, name) : OtherName();
  });
  const json::SharedValue pod = entry->Content();
  if (status.ok()) status = CheckPod(*entry, *pod, binding);
  if (status.ok()) status = CheckFit(core, *pod, binding);
  if (!status.ok()) {
    call->Fail(status);
    return;
  }
  if (call->dry_run) {
    RespondCreated(*call);
    return;
  }
  const AssignedPod next = Assign(core, *entry, *pod, binding);
  if (!next.entry) {
    call->Fail(Status(Code::kInternal, StrCat("pod ", name, " is stored as no object")));
    return;
  }
  // Watches hear of it before the writer does.
  WriteEntry(core, *kind, store::EventType::kModified, next.entry,
             [call, content = next.content](const Status& written, const store::EntryPtr&) {
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

namespace {

// Tells which of many was answered.
class NumberedSink final : public api::RestSink {
 public:
  NumberedSink(size_t number, std::shared_ptr<const api::Bound> bound)
      : number_(number), bound_(std::move(bound)) {}
  void OnResponse(api::RestResponse response) override { (*bound_)(number_, response); }
  // Bindings are not answered by streams.
  void OnStreamStart(int, std::string) override {}
  bool OnChunk(const api::Chunk&) override { return false; }
  void OnStreamEnd(const Status&) override {}

 private:
  const size_t number_;
  const std::shared_ptr<const api::Bound> bound_;
};

class ManyCalls final : public api::RestCall {
 public:
  explicit ManyCalls(std::vector<CallPtr> calls) : calls_(std::move(calls)) {}
  ~ManyCalls() override {
    for (const CallPtr& call : calls_) call->Cancel();
  }

 private:
  const std::vector<CallPtr> calls_;
};

RequestInfo PodBindings() {
  RequestInfo info;
  info.is_resource = true;
  info.version = "v1";
  info.resource = "pods";
  info.subresource = "binding";
  return info;
}

// What a POST to pods/NAME/binding would be after it was routed.
CallPtr CallFor(Core& core,
                const api::UserInfo& user,
                const Core::Target& pods,
                const json::Value& binding,
                std::shared_ptr<api::RestSink> sink) {
  auto call = std::make_shared<Call>(std::move(sink));
  call->request.method = "POST";
  call->request.user = user;
  call->user = user;
  call->observer = core.observer;
  core.observer->Received(*call);
  call->info = PodBindings();
  call->info.ns = api::Namespace(binding);
  call->info.name = api::Name(binding);
  call->kind = pods.kind;
  call->storage = pods.storage;
  core.observer->Routed(*call, "create");
  return call;
}

}  // namespace

std::unique_ptr<api::RestCall> BindAll(Core& core,
                                       const api::UserInfo& user,
                                       std::vector<json::Value> bindings,
                                       const api::Bound& bound) {
  const auto shared = std::make_shared<const api::Bound>(bound);
  const bool master = IsMaster(user);
  const bool asks = HasAdmissionWebhooks(core);
  const Core::Target pods = core.FindTarget(PodBindings());
  std::vector<CallPtr> calls;
  calls.reserve(bindings.size());
  for (json::Value& binding : bindings) {
    CallPtr call =
        CallFor(core, user, pods, binding, std::make_shared<NumberedSink>(calls.size(), shared));
    calls.push_back(call);
    const Status allowed =
        master ? Status::Ok() : CheckAccess(core, user, AttributesOf(*call, call->verb));
    if (!allowed.ok()) {
      call->Fail(allowed);
      continue;
    }
    if (asks) {
      call->retry = [weak = core.weak_from_this(), binding](const CallPtr& again) {
        const auto alive = weak.lock();
        if (alive) Bind(*alive, again, again->info.ns, again->info.name, binding);
      };
    }
    Bind(core, call, call->info.ns, call->info.name, std::move(binding));
  }
  return std::make_unique<ManyCalls>(std::move(calls));
}

}  // namespace swell::apiserver
