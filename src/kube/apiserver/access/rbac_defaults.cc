#include "kube/apiserver/access/rbac_defaults.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/strings.h"
#include "kube/api/crd/definitions.h"
#include "kube/api/meta/account_keys.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kApiVersion = "rbac.authorization.k8s.io/v1";
constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

// A rule as "verbs | groups | resources [| names]", or "verbs | paths" when it starts with a slash
// or is for paths; lists with commas. "core" is the group without a name.
struct RoleRow {
  std::string_view name;
  std::string_view label;       // "admin": aggregated into that role
  std::string_view aggregates;  // "admin": made of the roles labelled so
  std::vector<std::string> rules;
};

constexpr std::string_view kRead = "get,list,watch";
constexpr std::string_view kWrite = "create,delete,deletecollection,patch,update";

const std::vector<RoleRow>& UserRoles() {
  static const std::vector<RoleRow> rows = {
      {"cluster-admin", "", "", {"*|*|*", "*|/*"}},
      {"system:discovery",
       "",
       "",
       {"get|/api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/version,"
        "/version/"}},
      {"system:monitoring",
       "",
       "",
       {"get|/flagz,/healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,/readyz,/readyz/*,"
        "/statusz",
        "get|core|nodes/metrics"}},
      {"system:basic-user",
       "",
       "",
       {"create|authorization.k8s.io|selfsubjectaccessreviews,selfsubjectrulesreviews",
        "create|authentication.k8s.io|selfsubjectreviews"}},
      {"system:public-info-viewer", "", "", {"get|/healthz,/livez,/readyz,/version,/version/"}},
      {"system:service-account-issuer-discovery",
       "",
       "",
       {"get|/.well-known/openid-configuration,/.well-known/openid-configuration/,"
        "/openid/v1/jwks,/openid/v1/jwks/"}},
      {"admin", "", "admin", {}},
      {"edit", "admin", "edit", {}},
      {"view", "edit", "view", {}},
      {"system:aggregate-to-admin",
       "admin",
       "",
       {"create|authorization.k8s.io|localsubjectaccessreviews",
        "READ,WRITE|rbac.authorization.k8s.io|roles,rolebindings"}},
      {"system:aggregate-to-edit",
       "edit",
       "",
       {"READ|core|pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy",
        "impersonate|core|serviceaccounts",
        "WRITE|core|pods,pods/attach,pods/exec,pods/portforward,pods/proxy",
        "create|core|pods/eviction",
        "WRITE|core|configmaps,persistentvolumeclaims,replicationcontrollers,"
        "replicationcontrollers/scale,secrets,serviceaccounts,services,services/proxy",
        "create|core|serviceaccounts/token", "WRITE|core,events.k8s.io|events",
        "WRITE|apps|daemonsets,deployments,deployments/rollback,deployments/scale,replicasets,"
        "replicasets/scale,statefulsets,statefulsets/scale",
        "WRITE|autoscaling|horizontalpodautoscalers", "WRITE|batch|cronjobs,jobs",
        "WRITE|extensions|daemonsets,deployments,deployments/rollback,deployments/scale,ingresses,"
        "networkpolicies,replicasets,replicasets/scale,replicationcontrollers/scale",
        "WRITE|policy|poddisruptionbudgets", "WRITE|networking.k8s.io|ingresses,networkpolicies",
        "WRITE|resource.k8s.io|resourceclaims,resourceclaimtemplates",
        "READ,WRITE|coordination.k8s.io|leases",
        "WRITE|swell.dev|podgroups,trainingjobs,trainingjobs/scale",
        StrCat("WRITE|", api::JobGroups(), "|", api::JobResources())}},
      {"system:aggregate-to-view",
       "view",
       "",
       {"READ|core|configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/status,pods,"
        "replicationcontrollers,replicationcontrollers/scale,serviceaccounts,services,"
        "services/status",
        "READ|core|bindings,limitranges,namespaces/status,pods/log,pods/status,"
        "replicationcontrollers/status,resourcequotas,resourcequotas/status",
        "READ|core|namespaces", "READ|core,events.k8s.io|events",
        "READ|discovery.k8s.io|endpointslices",
        "READ|apps|controllerrevisions,daemonsets,daemonsets/status,deployments,"
        "deployments/scale,deployments/status,replicasets,replicasets/scale,replicasets/status,"
        "statefulsets,statefulsets/scale,statefulsets/status",
        "READ|autoscaling|horizontalpodautoscalers,horizontalpodautoscalers/status",
        "READ|batch|cronjobs,cronjobs/status,jobs,jobs/status",
        "READ|extensions|daemonsets,daemonsets/status,deployments,deployments/scale,"
        "deployments/status,ingresses,ingresses/status,networkpolicies,replicasets,"
        "replicasets/scale,replicasets/status,replicationcontrollers/scale",
        "READ|policy|poddisruptionbudgets,poddisruptionbudgets/status",
        "READ|networking.k8s.io|ingresses,ingresses/status,networkpolicies",
        "READ|resource.k8s.io|resourceclaims,resourceclaims/status,resourceclaimtemplates",
        "READ|swell.dev|podgroups,trainingjobs,trainingjobs/scale",
        StrCat("READ|", api::JobGroups(), "|*")}},
      {"system:aggregated-metrics-reader", "view", "", {"READ|metrics.k8s.io|nodes,pods"}},
  };
  return rows;
}

const std::vector<RoleRow>& SwellRoles() {
  static const std::vector<RoleRow> rows = {
      // What `swell user create --role` binds in projects: Kubernetes' own three under the names
      // that people have here, and what everybody sees of the cluster.
      {"project-admin", "", "admin", {}},
      {"researcher", "", "edit", {}},
      {"viewer", "", "view", {}},
      {"cluster-viewer",
       "",
       "",
       {"READ|core|namespaces,nodes", "READ|swell.dev|nodepools,projects,topologies",
        "READ|scheduling.k8s.io|priorityclasses", "READ|storage.k8s.io|storageclasses",
        "READ|resource.k8s.io|deviceclasses,devicetaintrules,resourceslices",
        "READ|apiextensions.k8s.io|customresourcedefinitions"}},
      // What a script of a Slurm job may do in its namespace: submit, show, change and end jobs. A
      // part of a researcher's rights, without Secrets and commands in pods.
      {api::keys::kJobAccountRole,
       "",
       "",
       {"READ|core|events,pods", "get|core|pods/log,serviceaccounts",
        "READ,create,delete,patch|core|configmaps", "READ|batch|jobs", "READ|swell.dev|podgroups",
        "READ,create,delete,patch|swell.dev|trainingjobs",
        "READ,create,delete,patch|kubeflow.org|mpijobs", StrCat("READ|", api::JobGroups(), "|*")}},
      // Everybody may open the pages: there they see what they may see.
      {"swell:pages", "", "", {"post|/swell/v1/pages/codes"}},
  };
  return rows;
}

// Nodes have system:node here, so it is smaller than Kubernetes' role of that name: there the
// role is nobody's, and an authorizer looks at each object.
const std::vector<RoleRow>& SystemRoles() {
  static const std::vector<RoleRow> rows = {
      {"system:node",
       "",
       "",
       {"create|authentication.k8s.io|tokenreviews",
        "create|authorization.k8s.io|localsubjectaccessreviews,subjectaccessreviews",
        "READ|core|services",
        "create,get,list,watch|core|nodes",
        "patch,update|core|nodes/status",
        "patch,update|core|nodes",
        "create,patch,update|core,events.k8s.io|events",
        "READ|core|pods",
        "create,delete|core|pods",
        "patch,update|core|pods/status",
        "create|core|pods/eviction",
        "READ|core|configmaps,secrets",
        "get|core|persistentvolumeclaims,persistentvolumes",
        "get|core|endpoints",
        "create,delete,get,patch,update|coordination.k8s.io|leases",
        "create|core|serviceaccounts/token",
        "READ|node.k8s.io|runtimeclasses",
        "get|resource.k8s.io|resourceclaims",
        "create,deletecollection,get,patch|resource.k8s.io|resourceslices",
        "create,get,list,watch|certificates.k8s.io|podcertificaterequests"}},
      {"system:node-problem-detector",
       "",
       "",
       {"get|core|nodes", "patch|core|nodes/status",
        "create,patch,update|core,events.k8s.io|events"}},
      {"system:kubelet-api-admin",
       "",
       "",
       {"READ|core|nodes", "proxy|core|nodes",
        "*|core|nodes/configz,nodes/healthz,nodes/log,nodes/metrics,nodes/pods,nodes/proxy,"
        "nodes/stats"}},
      {"system:auth-delegator",
       "",
       "",
       {"create|authentication.k8s.io|tokenreviews",
        "create|authorization.k8s.io|subjectaccessreviews"}},
      {"system:kube-controller-manager",
       "",
       "",
       {"create,patch,update|core,events.k8s.io|events", "create|coordination.k8s.io|leases",
        "get,update|coordination.k8s.io|leases|kube-controller-manager",
        "create|core|secrets,serviceaccounts", "delete|core|secrets",
        "get|core|configmaps,namespaces,secrets,serviceaccounts",
        "update|core|secrets,serviceaccounts", "create|authentication.k8s.io|tokenreviews",
        "create|authorization.k8s.io|subjectaccessreviews", "list,watch|*|*",
        "create|core|serviceaccounts/token"}},
      {"system:kube-scheduler",
       "",
       "",
       {"create,patch,update|core,events.k8s.io|events",
        "create|coordination.k8s.io|leases",
        "READ,update|coordination.k8s.io|leases|kube-scheduler",
        "READ,WRITE|coordination.k8s.io|leasecandidates",
        "READ|core|nodes",
        "delete,get,list,watch|core|pods",
        "create|core|bindings,pods/binding",
        "patch,update|core|pods/status",
        "READ|core|replicationcontrollers,services",
        "READ|apps,extensions|replicasets",
        "READ|apps|statefulsets",
        "READ|policy|poddisruptionbudgets",
        "READ|core|persistentvolumeclaims,persistentvolumes",
        "create|authentication.k8s.io|tokenreviews",
        "create|authorization.k8s.io|subjectaccessreviews",
        "READ|core|namespaces",
        "READ|storage.k8s.io|csidrivers,csinodes,csistoragecapacities,volumeattachments",
        "READ|resource.k8s.io|deviceclasses,devicetaintrules,resourceslices",
        "READ,create,delete,patch,update|resource.k8s.io|resourceclaims",
        "READ,patch,update|resource.k8s.io|resourceclaims/status",
        "patch,update|resource.k8s.io|resourceclaims/binding",
        "update|core|pods/finalizers"}},
      {"system:persistent-volume-provisioner",
       "",
       "",
       {"create,delete,get,list,watch|core|persistentvolumes",
        "get,list,update,watch|core|persistentvolumeclaims", "READ|storage.k8s.io|storageclasses",
        "watch|core|events", "create,patch,update|core,events.k8s.io|events"}},
      {"system:volume-scheduler",
       "",
       "",
       {"READ,patch,update|core|persistentvolumes", "READ|storage.k8s.io|storageclasses",
        "READ,patch,update|core|persistentvolumeclaims"}},
  };
  return rows;
}

struct BindingRow {
  std::string_view name;
  std::string_view role;
  std::string_view kind;      // of every subject
  std::string_view subjects;  // with commas
};
constexpr BindingRow kBindings[] = {
    {"cluster-admin", "cluster-admin", "Group", "system:masters"},
    {"system:monitoring", "system:monitoring", "Group", "system:monitoring"},
    {"system:discovery", "system:discovery", "Group", "system:authenticated"},
    {"system:basic-user", "system:basic-user", "Group", "system:authenticated"},
    {"system:public-info-viewer", "system:public-info-viewer", "Group",
     "system:authenticated,system:unauthenticated"},
    {"system:service-account-issuer-discovery", "system:service-account-issuer-discovery", "Group",
     "system:serviceaccounts"},
    {"cluster-viewer", "cluster-viewer", "Group", "swell:users"},
    {"swell:pages", "swell:pages", "Group", "system:authenticated"},
    {"system:node", "system:node", "Group", "system:nodes"},
    {"system:kube-controller-manager", "system:kube-controller-manager", "User",
     "system:kube-controller-manager"},
    {"system:kube-scheduler", "system:kube-scheduler", "User", "system:kube-scheduler"},
    {"system:volume-scheduler", "system:volume-scheduler", "User", "system:kube-scheduler"},
};

json::Array List(std::string_view text) {
  json::Array list;
  for (std::string_view one : Split(text, ',')) {
    if (one == "READ" || one == "WRITE") {
      for (json::Value& verb : List(one == "READ" ? kRead : kWrite)) {
        list.push_back(std::move(verb));
      }
    } else {
      list.emplace_back(one == "core" ? std::string_view() : one);
    }
  }
  return list;
}

json::Value Rule(std::string_view text) {
  const auto parts = Split(text, '|');
  json::Object rule;
  if (parts[1].starts_with("/")) {
    rule["nonResourceURLs"] = parts[1] == "/*" ? json::Array{"*"} : List(parts[1]);
  } else {
    rule["apiGroups"] = List(parts[1]);
    rule["resources"] = List(parts[2]);
    if (parts.size() > 3) rule["resourceNames"] = List(parts[3]);
  }
  rule["verbs"] = List(parts[0]);
  return rule;
}

json::Value Named(std::string_view kind, std::string_view name) {
  return json::Object{
      {"apiVersion", kApiVersion},
      {"kind", kind},
      {"metadata",
       json::Object{{"name", name},
                    {"labels", json::Object{{"kubernetes.io/bootstrapping", "rbac-defaults"}}},
                    {"annotations",
                     json::Object{{"rbac.authorization.kubernetes.io/autoupdate", "true"}}}}}};
}

std::string AggregationLabel(std::string_view role) {
  return StrCat("rbac.authorization.k8s.io/aggregate-to-", role);
}

json::Value MakeRole(const RoleRow& row) {
  json::Value role = Named("ClusterRole", row.name);
  if (!row.label.empty()) {
    json::Set(role, {"metadata", "labels", AggregationLabel(row.label)}, "true");
  }
  json::Array rules;
  for (std::string_view rule : row.rules) rules.push_back(Rule(rule));
  if (!row.aggregates.empty()) {
    json::Object selector;
    selector["matchLabels"] = json::Object{{AggregationLabel(row.aggregates), "true"}};
    json::Set(role, {"aggregationRule", "clusterRoleSelectors"}, json::Array{std::move(selector)});
  } else {
    json::Set(role, {"rules"}, std::move(rules));
  }
  return role;
}

json::Value MakeBinding(const BindingRow& row) {
  json::Value binding = Named("ClusterRoleBinding", row.name);
  json::Set(binding, {"roleRef"},
            json::Object{{"apiGroup", kGroup}, {"kind", "ClusterRole"}, {"name", row.role}});
  json::Array subjects;
  for (std::string_view subject : Split(row.subjects, ',')) {
    subjects.push_back(json::Object{{"apiGroup", kGroup}, {"kind", row.kind}, {"name", subject}});
  }
  json::Set(binding, {"subjects"}, std::move(subjects));
  return binding;
}

// The scheduler and the controller manager find out in kube-system whom extra servers may trust.
void AddKubeSystem(DefaultRbac& defaults) {
  json::Value role = Named("Role", "extension-apiserver-authentication-reader");
  json::Set(role, {"metadata", "namespace"}, "kube-system");
  json::Set(role, {"rules"},
            json::Array{Rule("READ|core|configmaps|extension-apiserver-authentication")});
  defaults.roles.push_back(std::move(role));
  json::Value binding = Named("RoleBinding", "system::extension-apiserver-authentication-reader");
  json::Set(binding, {"metadata", "namespace"}, "kube-system");
  json::Set(binding, {"roleRef"},
            json::Object{{"apiGroup", kGroup},
                         {"kind", "Role"},
                         {"name", "extension-apiserver-authentication-reader"}});
  json::Array subjects;
  for (std::string_view name : {"system:kube-controller-manager", "system:kube-scheduler"}) {
    subjects.push_back(json::Object{{"apiGroup", kGroup}, {"kind", "User"}, {"name", name}});
  }
  json::Set(binding, {"subjects"}, std::move(subjects));
  defaults.role_bindings.push_back(std::move(binding));
}

bool AreWords(const json::Value& rule, std::string_view field, std::string_view words) {
  return json::Equal(json::Value(json::GetArray(rule, {field})), json::Value(List(words)));
}

}  // namespace

bool IsRetiredRule(std::string_view role, const json::Value& rule) {
  if (role != "system:aggregate-to-edit") return false;
  if (!AreWords(rule, "verbs", "WRITE") || !AreWords(rule, "resources", "*")) return false;
  if (json::Find(rule, {"resourceNames"}) != nullptr) return false;
  const json::Array groups = json::GetArray(rule, {"apiGroups"});
  const json::Array own = List(api::JobGroups());
  return !groups.empty() &&
         std::all_of(groups.begin(), groups.end(), [&own](const json::Value& group) {
           return std::find(own.begin(), own.end(), group) != own.end();
         });
}

DefaultRbac MakeDefaultRbac() {
  DefaultRbac defaults;
  for (const auto* rows : {&UserRoles(), &SwellRoles(), &SystemRoles()}) {
    for (const RoleRow& row : *rows) defaults.cluster_roles.push_back(MakeRole(row));
  }
  for (const BindingRow& row : kBindings) {
    defaults.cluster_role_bindings.push_back(MakeBinding(row));
  }
  AddKubeSystem(defaults);
  return defaults;
}

}  // namespace swell::apiserver
