// Hooks: what a resource does beyond what every resource does, in one table. A resource that is not
// in the table is served generically.
//
// Hooks run on the object in its storage version, after its types were checked against the schema
// and before its own rules are validated.
//
// - Threads: core executor only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// One write on its way in.
struct Admission {
  Core& core;
  Call* call;                 // null for writes that the server itself makes
  const api::KindInfo& kind;  // storage version
  std::string ns;
  std::string name;  // empty until a generated name is chosen
  std::string subresource;
  bool dry_run = false;

  void Warn(std::string text) const {
    if (call != nullptr) call->AddWarning(std::move(text));
  }
};

Admission AdmissionOf(Core& core, Call& call);

struct ResourceHooks {
  // Completes a new object, or refuses it.
  Status (*create)(Admission&, json::Value& object) = nullptr;
  // Completes an update, or refuses it.
  Status (*update)(Admission&, json::Value& object, const json::Value& old) = nullptr;
  // May refuse a deletion.
  Status (*remove)(Admission&, const json::Value& object) = nullptr;
  // After a write is durable (`ok`) or has failed.
  void (*written)(Core&, store::EventType, const store::EntryPtr&, bool ok) = nullptr;
  // Takes what an object needs of the server's own: the last step before it is written. `old` is
  // null of a new one.
  Status (*reserve)(Admission&, json::Value& object, const json::Value* old) = nullptr;
  bool generation = false;        // metadata.generation counts spec changes
  bool keep_status = false;       // status of a create request is kept (nodes)
  bool answers_deleted = false;   // DELETE answers with the object, not with a Status
  bool needs_version = false;     // updates must carry resourceVersion
  bool create_on_update = false;  // PUT of an absent object creates it
};

const ResourceHooks& HooksOf(const api::KindInfo& kind);

// Per-resource hooks, by file.
// Chooses the pod's service account and gives it the account's token (pod_account.cc).
Status AdmitServiceAccount(Admission&, json::Value& pod);
Status LimitPod(Admission&, json::Value& pod);  // limit_range.cc
Status LimitClaim(Admission&, const json::Value& claim);
Status CreatePod(Admission&, json::Value& object);  // pods.cc
Status UpdatePod(Admission&, json::Value& object, const json::Value& old);
Status CreateNode(Admission&, json::Value& object);
Status CreateNamespace(Admission&, json::Value& object);  // strategies.cc
Status UpdateNamespace(Admission&, json::Value& object, const json::Value& old);
Status RemoveNamespace(Admission&, const json::Value& object);
void NamespaceWritten(Core&, store::EventType, const store::EntryPtr&, bool ok);
Status CreatePriorityClass(Admission&, json::Value& object);
Status RemovePriorityClass(Admission&, const json::Value& object);
// Completes a secret of a service account with its token (token_request.cc).
void FillAccountSecret(Admission&, json::Value& secret);
Status CreateRole(Admission&, json::Value& object);  // rbac_admission.cc
Status UpdateRole(Admission&, json::Value& object, const json::Value& old);
Status CreateRoleBinding(Admission&, json::Value& object);
Status UpdateRoleBinding(Admission&, json::Value& object, const json::Value& old);
Status CreateProject(Admission&, json::Value& object);
Status UpdateProject(Admission&, json::Value& object, const json::Value& old);
void RbacWritten(Core&, store::EventType, const store::EntryPtr&, bool ok);
Status CreateSecret(Admission&, json::Value& object);
Status UpdateSecret(Admission&, json::Value& object, const json::Value& old);
Status CreateService(Admission&, json::Value& object);
Status UpdateService(Admission&, json::Value& object, const json::Value& old);
Status ReserveService(Admission&, json::Value& object, const json::Value* old);
void ServiceWritten(Core&, store::EventType, const store::EntryPtr&, bool ok);
Status CreateSigningRequest(Admission&, json::Value& object);  // signing_requests.cc
Status UpdateSigningRequest(Admission&, json::Value& object, const json::Value& old);
Status CreatePvc(Admission&, json::Value& object);
Status UpdatePvc(Admission&, json::Value& object, const json::Value& old);
Status CreateDaemonSet(Admission&, json::Value& object);
Status UpdateDaemonSet(Admission&, json::Value& object, const json::Value& old);
Status CreatePv(Admission&, json::Value& object);
void WebhookConfigurationWritten(Core&, store::EventType, const store::EntryPtr&, bool ok);
void EventWritten(Core&, store::EventType, const store::EntryPtr&, bool ok);  // events.cc
Status CreateCrd(Admission&, json::Value& object);                            // crds.cc
Status UpdateCrd(Admission&, json::Value& object, const json::Value& old);
// What the object breaks of its definition's rules (x-kubernetes-validations).
std::vector<api::FieldError> CheckCustomRules(const Core&,
                                              const api::KindInfo& kind,
                                              const json::Value& object,
                                              const json::Value* old);
void CrdWritten(Core&, store::EventType, const store::EntryPtr&, bool ok);

}  // namespace swell::apiserver
