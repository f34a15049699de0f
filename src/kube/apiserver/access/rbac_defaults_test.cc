// The default roles and bindings are Kubernetes' own, but for Swell's kinds.
#include "kube/apiserver/access/rbac_defaults.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/crd/definitions.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/access/rbac_rules.h"

namespace swell::apiserver {
namespace {

// What kube-apiserver 1.37.2 makes, as `kubectl get clusterroles -o json` showed it. Rules of the
// same verbs, groups and names are one here.
// "verbs | groups | resources [| names]", or "verbs | paths".
struct Recorded {
  std::string_view role;
  std::string_view rules[28];
};
constexpr Recorded kRecordedRoles[] = {
    {"cluster-admin", {"*|*|*", "*|*"}},
    {"system:aggregate-to-admin",
     {"create|authorization.k8s.io|localsubjectaccessreviews",
      "READ,WRITE|rbac.authorization.k8s.io|rolebindings,roles"}},
    {"system:aggregate-to-edit",
     {"READ|core|pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy",
      "impersonate|core|serviceaccounts",
      "WRITE|core|configmaps,persistentvolumeclaims,pods,pods/attach,pods/exec,"
      "pods/portforward,pods/proxy,replicationcontrollers,replicationcontrollers/scale,"
      "secrets,serviceaccounts,services,services/proxy",
      "create|core|pods/eviction,serviceaccounts/token", "WRITE|core,events.k8s.io|events",
      "WRITE|apps|daemonsets,deployments,deployments/rollback,deployments/scale,"
      "replicasets,replicasets/scale,statefulsets,statefulsets/scale",
      "WRITE|autoscaling|horizontalpodautoscalers", "WRITE|batch|cronjobs,jobs",
      "WRITE|extensions|daemonsets,deployments,deployments/rollback,deployments/scale,"
      "ingresses,networkpolicies,replicasets,replicasets/scale,replicationcontrollers/scale",
      "WRITE|policy|poddisruptionbudgets", "WRITE|networking.k8s.io|ingresses,networkpolicies",
      "READ,WRITE|coordination.k8s.io|leases",
      "WRITE|resource.k8s.io|resourceclaims,resourceclaimtemplates"}},
    {"system:aggregate-to-view",
     {"READ|core|bindings,configmaps,endpoints,limitranges,namespaces,namespaces/status,"
      "persistentvolumeclaims,persistentvolumeclaims/status,pods,pods/log,pods/status,"
      "replicationcontrollers,replicationcontrollers/scale,replicationcontrollers/status,"
      "resourcequotas,resourcequotas/status,serviceaccounts,services,services/status",
      "READ|core,events.k8s.io|events", "READ|discovery.k8s.io|endpointslices",
      "READ|apps|controllerrevisions,daemonsets,daemonsets/status,deployments,"
      "deployments/scale,deployments/status,replicasets,replicasets/scale,"
      "replicasets/status,statefulsets,statefulsets/scale,statefulsets/status",
      "READ|autoscaling|horizontalpodautoscalers,horizontalpodautoscalers/status",
      "READ|batch|cronjobs,cronjobs/status,jobs,jobs/status",
      "READ|extensions|daemonsets,daemonsets/status,deployments,deployments/scale,"
      "deployments/status,ingresses,ingresses/status,networkpolicies,replicasets,"
      "replicasets/scale,replicasets/status,replicationcontrollers/scale",
      "READ|policy|poddisruptionbudgets,poddisruptionbudgets/status",
      "READ|networking.k8s.io|ingresses,ingresses/status,networkpolicies",
      "READ|resource.k8s.io|resourceclaims,resourceclaims/status,resourceclaimtemplates"}},
    {"system:auth-delegator",
     {"create|authentication.k8s.io|tokenreviews",
      "create|authorization.k8s.io|subjectaccessreviews"}},
    {"system:basic-user",
     {"create|authorization.k8s.io|selfsubjectaccessreviews,selfsubjectrulesreviews",
      "create|authentication.k8s.io|selfsubjectreviews"}},
    {"system:discovery",
     {"get|/api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/version,"
      "/version/"}},
    {"system:kube-controller-manager",
     {"create,patch,update|core,events.k8s.io|events", "create|coordination.k8s.io|leases",
      "get,update|coordination.k8s.io|leases|kube-controller-manager",
      "create|core|secrets,serviceaccounts,serviceaccounts/token", "delete|core|secrets",
      "get|core|configmaps,namespaces,secrets,serviceaccounts",
      "update|core|secrets,serviceaccounts", "create|authentication.k8s.io|tokenreviews",
      "create|authorization.k8s.io|subjectaccessreviews", "list,watch|*|*"}},
    {"system:kube-scheduler",
     {"create,patch,update|core,events.k8s.io|events", "create|coordination.k8s.io|leases",
      "READ,update|coordination.k8s.io|leases|kube-scheduler",
      "READ,WRITE|coordination.k8s.io|leasecandidates",
      "READ|core|namespaces,nodes,persistentvolumeclaims,persistentvolumes,"
      "replicationcontrollers,services",
      "READ,delete|core|pods", "create|core|bindings,pods/binding", "patch,update|core|pods/status",
      "READ|apps,extensions|replicasets", "READ|apps|statefulsets",
      "READ|policy|poddisruptionbudgets", "create|authentication.k8s.io|tokenreviews",
      "create|authorization.k8s.io|subjectaccessreviews",
      "READ|storage.k8s.io|csidrivers,csinodes,csistoragecapacities,volumeattachments",
      "READ|resource.k8s.io|deviceclasses,devicetaintrules,resourceslices",
      "READ,patch,update|resource.k8s.io|resourceclaims,resourceclaims/status",
      "update|core|pods/finalizers", "create,delete|resource.k8s.io|resourceclaims",
      "patch,update|resource.k8s.io|resourceclaims/binding"}},
    {"system:kubelet-api-admin",
     {"READ|core|nodes", "proxy|core|nodes",
      "*|core|nodes/configz,nodes/healthz,nodes/log,nodes/metrics,nodes/pods,nodes/proxy,"
      "nodes/stats"}},
    {"system:monitoring",
     {"get|/flagz,/healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,/readyz,"
      "/readyz/*,/statusz",
      "get|core|nodes/metrics"}},
    {"system:node",
     {"create|authentication.k8s.io|tokenreviews",
      "create|authorization.k8s.io|localsubjectaccessreviews,subjectaccessreviews",
      "READ|core|configmaps,pods,secrets,services", "READ,create|core|nodes",
      "patch,update|core|nodes,nodes/status,pods/status",
      "create,patch,update|core,events.k8s.io|events", "create,delete|core|pods",
      "create|core|pods/eviction,serviceaccounts/token",
      "get|core|endpoints,persistentvolumeclaims,persistentvolumes,serviceaccounts",
      "READ,create|certificates.k8s.io|certificatesigningrequests,podcertificaterequests",
      "create,delete,get,patch,update|coordination.k8s.io|leases",
      "get|storage.k8s.io|volumeattachments", "get,patch,update|core|persistentvolumeclaims/status",
      "READ|storage.k8s.io|csidrivers", "create,delete,get,patch,update|storage.k8s.io|csinodes",
      "READ|node.k8s.io|runtimeclasses", "get|resource.k8s.io|resourceclaims",
      "deletecollection|resource.k8s.io|resourceslices",
      "READ|certificates.k8s.io|clustertrustbundles"}},
    {"system:node-problem-detector",
     {"get|core|nodes", "patch|core|nodes/status",
      "create,patch,update|core,events.k8s.io|events"}},
    {"system:persistent-volume-provisioner",
     {"READ,create,delete|core|persistentvolumes", "READ,update|core|persistentvolumeclaims",
      "READ|storage.k8s.io|storageclasses", "watch|core|events",
      "create,patch,update|core,events.k8s.io|events"}},
    {"system:public-info-viewer", {"get|/healthz,/livez,/readyz,/version,/version/"}},
    {"system:service-account-issuer-discovery",
     {"get|/.well-known/openid-configuration,/.well-known/openid-configuration/,"
      "/openid/v1/jwks,/openid/v1/jwks/"}},
    {"system:volume-scheduler",
     {"READ,patch,update|core|persistentvolumeclaims,persistentvolumes",
      "READ|storage.k8s.io|storageclasses"}}};

// "binding | role | subjects".
constexpr std::string_view kRecordedBindings[] = {
    "cluster-admin|cluster-admin|Group system:masters",
    "system:basic-user|system:basic-user|Group system:authenticated",
    "system:discovery|system:discovery|Group system:authenticated",
    "system:kube-controller-manager|system:kube-controller-manager|User "
    "system:kube-controller-manager",
    "system:kube-scheduler|system:kube-scheduler|User system:kube-scheduler",
    "system:monitoring|system:monitoring|Group system:monitoring",
    "system:public-info-viewer|system:public-info-viewer|Group system:authenticated,Group "
    "system:unauthenticated",
    "system:service-account-issuer-discovery|system:service-account-issuer-discovery|Group "
    "system:serviceaccounts",
    "system:volume-scheduler|system:volume-scheduler|User system:kube-scheduler"};

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  for (std::string_view one : Split(text, ',')) {
    if (one == "READ") {
      words.insert(words.end(), {"get", "list", "watch"});
    } else if (one == "WRITE") {
      words.insert(words.end(), {"create", "delete", "deletecollection", "patch", "update"});
    } else {
      words.emplace_back(one == "core" ? std::string_view() : one);
    }
  }
  return words;
}

PolicyRules RulesOf(const Recorded& recorded) {
  PolicyRules rules;
  for (std::string_view text : recorded.rules) {
    if (text.empty()) break;
    const auto parts = Split(text, '|');
    PolicyRule& rule = rules.emplace_back();
    rule.verbs = Words(parts[0]);
    if (parts.size() == 2) {
      rule.paths = Words(parts[1]);
      continue;
    }
    rule.groups = Words(parts[1]);
    rule.resources = Words(parts[2]);
    if (parts.size() > 3) rule.names = Words(parts[3]);
  }
  return rules;
}

// Without rules for Swell's own kinds.
std::map<std::string, PolicyRules> DefaultRoles() {
  std::set<std::string> own = {"swell.dev"};
  const std::string groups = api::JobGroups();
  for (std::string_view group : Split(groups, ',')) own.emplace(group);
  std::map<std::string, PolicyRules> roles;
  for (const json::Value& role : MakeDefaultRbac().cluster_roles) {
    PolicyRules& rules = roles[std::string(api::Name(role))] = ReadRules(role);
    std::erase_if(rules, [&own](const PolicyRule& rule) {
      return rule.paths.empty() &&
             std::all_of(rule.groups.begin(), rule.groups.end(),
                         [&own](const std::string& group) { return own.count(group) > 0; });
    });
  }
  return roles;
}

TEST(DefaultRbac, RolesAllowWhatKubernetesAllows) {
  auto roles = DefaultRoles();
  for (const Recorded& recorded : kRecordedRoles) {
    if (recorded.role == "system:node") continue;
    const PolicyRules& ours = roles[std::string(recorded.role)];
    const PolicyRules theirs = RulesOf(recorded);
    ASSERT_FALSE(ours.empty()) << recorded.role;
    EXPECT_EQ(Describe(Uncovered(ours, theirs)), "") << recorded.role << " lacks it";
    EXPECT_EQ(Describe(Uncovered(theirs, ours)), "") << recorded.role << " has more";
  }
}

// Kubernetes' role of nodes is bound to nobody: its node authorizer decides object by object.
TEST(DefaultRbac, TheRoleOfNodesIsSmallerThanThatOfKubernetes) {
  const auto recorded = std::find_if(std::begin(kRecordedRoles), std::end(kRecordedRoles),
                                     [](const auto& one) { return one.role == "system:node"; });
  ASSERT_NE(recorded, std::end(kRecordedRoles));
  const PolicyRules ours = DefaultRoles()["system:node"];
  EXPECT_EQ(Describe(Uncovered(RulesOf(*recorded), ours)),
            "{APIGroups:[\"resource.k8s.io\"], Resources:[\"resourceslices\"], "
            "Verbs:[\"create\" \"get\" \"patch\"]}")
      << "what the authorizer adds there";
}

TEST(DefaultRbac, BindingsAreThoseOfKubernetes) {
  std::map<std::string, std::string> bindings;
  for (const json::Value& binding : MakeDefaultRbac().cluster_role_bindings) {
    std::vector<std::string> subjects;
    for (const json::Value& one : json::GetArray(binding, {"subjects"})) {
      subjects.push_back(
          StrCat(json::GetString(one, {"kind"}), " ", json::GetString(one, {"name"})));
    }
    bindings[std::string(api::Name(binding))] =
        StrCat(api::Name(binding), "|", json::GetString(binding, {"roleRef", "name"}), "|",
               Join(subjects, ","));
  }
  for (std::string_view recorded : kRecordedBindings) {
    const std::string name(Split(recorded, '|')[0]);
    EXPECT_EQ(bindings[name], recorded);
    bindings.erase(name);
  }
  std::vector<std::string> others;
  for (const auto& [name, text] : bindings) others.push_back(text);
  EXPECT_EQ(Join(others, "\n"),
            "cluster-viewer|cluster-viewer|Group swell:users\n"
            "swell:pages|swell:pages|Group system:authenticated\n"
            "system:node|system:node|Group system:nodes");
}

}  // namespace
}  // namespace swell::apiserver
