#include "kube/apiserver/hooks.h"

#include <map>

namespace swell::apiserver {
namespace {

using Table = std::map<std::string, ResourceHooks, std::less<>>;

constexpr ResourceHooks kRole{
    .create = CreateRole, .update = UpdateRole, .written = RbacWritten, .create_on_update = true};
constexpr ResourceHooks kRoleBinding{.create = CreateRoleBinding,
                                     .update = UpdateRoleBinding,
                                     .written = RbacWritten,
                                     .create_on_update = true};
constexpr ResourceHooks kCounted{.generation = true};
constexpr ResourceHooks kWebhooks{.written = WebhookConfigurationWritten, .generation = true};

const Table& AllHooks() {
  static const Table table = {
      {"certificatesigningrequests.certificates.k8s.io",
       {.create = CreateSigningRequest, .update = UpdateSigningRequest}},
      {"clusterrolebindings.rbac.authorization.k8s.io", kRoleBinding},
      {"clusterroles.rbac.authorization.k8s.io", kRole},
      {"cronjobs.batch", kCounted},
      {"customresourcedefinitions.apiextensions.k8s.io",
       {.create = CreateCrd,
        .update = UpdateCrd,
        .written = CrdWritten,
        .generation = true,
        .needs_version = true}},
      {"daemonsets.apps",
       {.create = CreateDaemonSet, .update = UpdateDaemonSet, .generation = true}},
      {"deployments.apps", kCounted},
      {"endpoints", {.create_on_update = true}},
      {"endpointslices.discovery.k8s.io", kCounted},
      {"events", {.written = EventWritten, .create_on_update = true}},
      {"ingressclasses.networking.k8s.io", kCounted},
      {"ingresses.networking.k8s.io", kCounted},
      {"jobs.batch", kCounted},
      {"leases.coordination.k8s.io", {.create_on_update = true}},
      {"mutatingwebhookconfigurations.admissionregistration.k8s.io", kWebhooks},
      {"namespaces",
       {.create = CreateNamespace,
        .update = UpdateNamespace,
        .remove = RemoveNamespace,
        .written = NamespaceWritten}},
      {"networkpolicies.networking.k8s.io", kCounted},
      {"nodes", {.create = CreateNode, .keep_status = true}},
      {"persistentvolumeclaims",
       {.create = CreatePvc, .update = UpdatePvc, .answers_deleted = true}},
      {"persistentvolumes", {.create = CreatePv, .answers_deleted = true}},
      {"poddisruptionbudgets.policy", {.generation = true, .needs_version = true}},
      {"pods", {.create = CreatePod, .update = UpdatePod, .answers_deleted = true}},
      {"priorityclasses.scheduling.k8s.io",
       {.create = CreatePriorityClass, .remove = RemovePriorityClass, .generation = true}},
      {"projects.swell.dev",
       {.create = CreateProject,
        .update = UpdateProject,
        .generation = true,
        .needs_version = true}},
      {"replicasets.apps", kCounted},
      {"replicationcontrollers", kCounted},
      {"rolebindings.rbac.authorization.k8s.io", kRoleBinding},
      {"roles.rbac.authorization.k8s.io", kRole},
      {"secrets", {.create = CreateSecret, .update = UpdateSecret}},
      {"serviceaccounts", {.answers_deleted = true}},
      {"services",
       {.create = CreateService,
        .update = UpdateService,
        .written = ServiceWritten,
        .reserve = ReserveService,
        .answers_deleted = true}},
      {"statefulsets.apps", kCounted},
      {"validatingwebhookconfigurations.admissionregistration.k8s.io", kWebhooks},
  };
  return table;
}

constexpr ResourceHooks kCustom{.generation = true, .needs_version = true};
constexpr ResourceHooks kPlain;

}  // namespace

const ResourceHooks& HooksOf(const api::KindInfo& kind) {
  const auto found = AllHooks().find(kind.StoreResource());
  if (found != AllHooks().end()) return found->second;
  return kind.custom ? kCustom : kPlain;
}

Admission AdmissionOf(Core& core, Call& call) {
  return {core,        &call, call.handled(), call.info.ns, call.info.name, call.info.subresource,
          call.dry_run};
}

}  // namespace swell::apiserver
