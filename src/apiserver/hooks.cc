#include "apiserver/hooks.h"

#include <map>

namespace swell::apiserver {
namespace {

using Table = std::map<std::string, ResourceHooks, std::less<>>;

ResourceHooks WithGeneration() {
  ResourceHooks hooks;
  hooks.generation = true;
  return hooks;
}

ResourceHooks RbacKind(bool binding) {
  ResourceHooks hooks;
  hooks.create = binding ? CreateRoleBinding : CreateRole;
  hooks.update = binding ? UpdateRoleBinding : UpdateRole;
  hooks.written = RbacWritten;
  hooks.create_on_update = true;
  return hooks;
}

void AddCore(Table& table) {
  ResourceHooks& pods = table["pods"];
  pods.create = CreatePod;
  pods.update = UpdatePod;
  pods.answers_deleted = true;
  ResourceHooks& nodes = table["nodes"];
  nodes.create = CreateNode;
  nodes.keep_status = true;
  ResourceHooks& namespaces = table["namespaces"];
  namespaces.create = CreateNamespace;
  namespaces.update = UpdateNamespace;
  namespaces.remove = RemoveNamespace;
  namespaces.written = NamespaceWritten;
  ResourceHooks& secrets = table["secrets"];
  secrets.create = CreateSecret;
  secrets.update = UpdateSecret;
  ResourceHooks& services = table["services"];
  services.create = CreateService;
  services.update = UpdateService;
  services.written = ServiceWritten;
  services.answers_deleted = true;
  ResourceHooks& claims = table["persistentvolumeclaims"];
  claims.create = CreatePvc;
  claims.answers_deleted = true;
  ResourceHooks& volumes = table["persistentvolumes"];
  volumes.create = CreatePv;
  volumes.answers_deleted = true;
  table["serviceaccounts"].answers_deleted = true;
  table["events"].written = EventWritten;
  table["events"].create_on_update = true;
  table["endpoints"].create_on_update = true;
}

void AddGroups(Table& table) {
  ResourceHooks& classes = table["priorityclasses.scheduling.k8s.io"];
  classes.create = CreatePriorityClass;
  classes.remove = RemovePriorityClass;
  classes.generation = true;
  ResourceHooks& crds = table["customresourcedefinitions.apiextensions.k8s.io"];
  crds.create = CreateCrd;
  crds.update = UpdateCrd;
  crds.written = CrdWritten;
  crds.generation = true;
  crds.needs_version = true;
  for (const char* name :
       {"deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps",
        "replicationcontrollers", "jobs.batch", "cronjobs.batch",
        "networkpolicies.networking.k8s.io", "ingresses.networking.k8s.io"}) {
    table[name] = WithGeneration();
  }
  table["poddisruptionbudgets.policy"] = WithGeneration();
  table["poddisruptionbudgets.policy"].needs_version = true;
  table["leases.coordination.k8s.io"].create_on_update = true;
  table["roles.rbac.authorization.k8s.io"] = RbacKind(false);
  table["clusterroles.rbac.authorization.k8s.io"] = RbacKind(false);
  table["rolebindings.rbac.authorization.k8s.io"] = RbacKind(true);
  table["clusterrolebindings.rbac.authorization.k8s.io"] = RbacKind(true);
}

Table MakeTable() {
  Table table;
  AddCore(table);
  AddGroups(table);
  return table;
}

ResourceHooks CustomKind() {
  ResourceHooks hooks;
  hooks.generation = true;
  hooks.needs_version = true;
  return hooks;
}

}  // namespace

const ResourceHooks& HooksOf(const api::KindInfo& kind) {
  static const Table table = MakeTable();
  static const ResourceHooks custom = CustomKind();
  static const ResourceHooks plain;
  if (kind.custom) return custom;
  const auto found = table.find(kind.StoreResource());
  return found == table.end() ? plain : found->second;
}

}  // namespace swell::apiserver
