// The ephemeralcontainers subresource of pods: containers that are added to a running pod to look
// into it. It takes and gives the pod; before Kubernetes 1.22 it was a kind of its own,
// EphemeralContainers, which kubectl of that time still asks for.
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/codec.h"
#include "kube/apiserver/pods/handlers.h"
#include "kube/apiserver/print/output.h"
#include "kube/apiserver/reading/handlers.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/writing/handlers.h"
#include "kube/apiserver/writing/write.h"

namespace swell::apiserver {
namespace {

constexpr char kOldKind[] = "EphemeralContainers";
constexpr int64_t kFirstMinorWithPods = 22;

// A GET says nowhere which form it wants; the client's version does.
bool IsOldClient(std::string_view user_agent) {
  constexpr std::string_view kPrefix = "kubectl/v1.";
  if (!user_agent.starts_with(kPrefix)) return false;
  const std::string_view rest = user_agent.substr(kPrefix.size());
  const auto minor = ParseInt(rest.substr(0, rest.find_first_not_of("0123456789")));
  return minor && *minor < kFirstMinorWithPods;
}

json::Value OldForm(const json::Value& pod) {
  json::Object metadata;
  for (const char* field : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    if (const json::Value* value = json::Find(pod, {"metadata", field})) metadata[field] = *value;
  }
  return json::Object{
      {"kind", kOldKind},
      {"apiVersion", "v1"},
      {"metadata", std::move(metadata)},
      {"ephemeralContainers", json::GetArray(pod, {"spec", "ephemeralContainers"})}};
}

void UpdateOldForm(Core& core, const CallPtr& call, const json::Value& body) {
  const auto entry = core.store.Latest(KeyFor(*call->storage, call->info.ns, call->info.name));
  if (!entry) {
    call->Fail(NotFoundError(*call->kind, call->info.name));
    return;
  }
  json::Value pod = *entry->Parsed();
  const json::Array& wanted = json::GetArray(body, {"ephemeralContainers"});
  if (wanted.empty()) {
    json::Remove(pod, {"spec", "ephemeralContainers"});
  } else {
    json::Set(pod, {"spec", "ephemeralContainers"}, wanted);
  }
  for (const char* field : {"uid", "resourceVersion"}) {
    const std::string_view value = json::GetString(body, {"metadata", field});
    if (!value.empty()) json::Set(pod, {"metadata", field}, json::Value(value));
  }
  Admission admission = AdmissionOf(core, *call);
  UpdateObject(core, admission, std::move(pod), entry, [call](const Result<UpdateResult>& result) {
    if (!result.ok()) {
      call->Fail(result.status());
      return;
    }
    RespondDocument(*call, 200, OldForm(result->entry ? *result->entry->Parsed() : result->object));
  });
}

}  // namespace

void HandleEphemeralContainers(Core& core, const CallPtr& call) {
  const std::string& method = call->request.method;
  if (method == "PATCH") return HandlePatch(core, call);
  if (method != "PUT") {
    if (!IsOldClient(call->request.user_agent)) return HandleGet(core, call);
    const auto entry = core.store.Get(KeyFor(*call->storage, call->info.ns, call->info.name));
    if (entry) return RespondDocument(*call, 200, OldForm(*entry->Parsed()));
    call->Fail(NotFoundError(*call->kind, call->info.name));
    return;
  }
  const auto body = DecodeBody(call->request, core.options.body_limit_bytes);
  if (!body.ok() || json::GetString(*body, {"kind"}) != kOldKind) {
    return HandleUpdate(core, call);  // which also says what is wrong with a body
  }
  const Status types = CheckMetadataTypes(*call->kind, *body);
  if (types.ok()) {
    UpdateOldForm(core, call, *body);
  } else {
    call->Fail(types);
  }
}

}  // namespace swell::apiserver
