#include "bin/install_objects.h"

#include "api/crds.h"
#include "api/scheme.h"
#include "base/strings.h"

namespace swell {
namespace {

using json::Array;
using json::Object;
using json::Value;

constexpr std::string_view kRbac = "rbac.authorization.k8s.io";
constexpr std::string_view kRbacVersion = "rbac.authorization.k8s.io/v1";

Array Words(std::string_view words) {
  Array out;
  if (words.empty()) out.emplace_back("");
  for (std::string_view word : Split(words, ',')) out.emplace_back(word);
  return out;
}

// Words with commas between them; the core group is "".
struct Rule {
  std::string_view groups;
  std::string_view resources;
  std::string_view verbs;
};

Value RuleObject(const Rule& rule) {
  return Object{{"apiGroups", Words(rule.groups)},
                {"resources", Words(rule.resources)},
                {"verbs", Words(rule.verbs)}};
}

Value ClusterRole(std::string_view name, std::initializer_list<Rule> rules, Object labels = {}) {
  Array list;
  for (const Rule& rule : rules) list.push_back(RuleObject(rule));
  return Object{{"apiVersion", kRbacVersion},
                {"kind", "ClusterRole"},
                {"metadata", Object{{"name", name}, {"labels", std::move(labels)}}},
                {"rules", std::move(list)}};
}

// The account NAME of the namespace, and the cluster role of the same name for it.
void AddAccount(std::string_view name, const std::string& ns, std::vector<Value>& out) {
  out.push_back(Object{{"apiVersion", "v1"},
                       {"kind", "ServiceAccount"},
                       {"metadata", Object{{"name", name}, {"namespace", ns}}}});
  out.push_back(Object{
      {"apiVersion", kRbacVersion},
      {"kind", "ClusterRoleBinding"},
      {"metadata", Object{{"name", name}}},
      {"roleRef", Object{{"apiGroup", kRbac}, {"kind", "ClusterRole"}, {"name", name}}},
      {"subjects", Array{Object{{"kind", "ServiceAccount"}, {"name", name}, {"namespace", ns}}}}});
}

Value ControllerRole() {
  return ClusterRole(
      "swell-controller",
      {{"", "pods,services,configmaps,endpoints", "get,list,watch,create,update,patch,delete"},
       {"", "pods/status", "update,patch"},
       {"", "pods/log", "get"},
       {"", "bindings,pods/binding,pods/eviction", "create"},
       {"", "nodes,persistentvolumes,persistentvolumeclaims,serviceaccounts", "get,list,watch"},
       {"", "namespaces", "get,list,watch,create"},
       {",events.k8s.io", "events", "create,patch,update"},
       {"scheduling.k8s.io", "priorityclasses", "get,list,watch"},
       {"policy", "poddisruptionbudgets", "get,list,watch"},
       {"apiextensions.k8s.io", "customresourcedefinitions", "get,list,watch"},
       {"swell.dev,kubeflow.org,training.kubedl.io,elasticdl.org", "*", "*"}});
}

Value AgentRole() {
  return ClusterRole("swell-agent",
                     {{"", "nodes", "get,list,watch,create,update,patch"},
                      {"", "nodes/status,pods/status", "update,patch"},
                      {"", "pods", "get,list,watch,update,patch,delete"},
                      {"", "services,endpoints", "get,list,watch"},
                      {"", "configmaps,secrets,persistentvolumeclaims,persistentvolumes", "get"},
                      {"", "serviceaccounts/token", "create"},
                      {",events.k8s.io", "events", "create,patch,update"},
                      {"coordination.k8s.io", "leases", "get,create,update,patch"}});
}

// Which replica of the controller leads is written down beside its account.
void AddElectionRole(const std::string& ns, std::vector<Value>& out) {
  constexpr std::string_view kName = "swell-leader-election";
  const Object metadata{{"name", kName}, {"namespace", ns}};
  out.push_back(
      Object{{"apiVersion", kRbacVersion},
             {"kind", "Role"},
             {"metadata", metadata},
             {"rules", Array{RuleObject({"coordination.k8s.io", "leases", "get,create,update"})}}});
  out.push_back(Object{{"apiVersion", kRbacVersion},
                       {"kind", "RoleBinding"},
                       {"metadata", metadata},
                       {"roleRef", Object{{"apiGroup", kRbac}, {"kind", "Role"}, {"name", kName}}},
                       {"subjects", Array{Object{{"kind", "ServiceAccount"},
                                                 {"name", "swell-controller"},
                                                 {"namespace", ns}}}}});
}

// What people who may edit or look at a namespace may do with Swell's kinds there.
void AddPeoplesRoles(std::vector<Value>& out) {
  constexpr std::string_view kAggregate = "rbac.authorization.k8s.io/aggregate-to-";
  auto key = [&](std::string_view role) { return std::string(kAggregate).append(role); };
  out.push_back(ClusterRole("swell-edit",
                            {{"kubeflow.org,training.kubedl.io,elasticdl.org", "*", "*"},
                             {"swell.dev", "trainingjobs,trainingjobs/scale,podgroups", "*"}},
                            Object{{key("edit"), "true"}, {key("admin"), "true"}}));
  out.push_back(ClusterRole(
      "swell-view",
      {{"swell.dev,kubeflow.org,training.kubedl.io,elasticdl.org", "*", "get,list,watch"}},
      Object{{key("view"), "true"}}));
}

}  // namespace

std::vector<Value> InstallObjects(const std::string& ns) {
  std::vector<Value> out = api::SwellCrds();
  for (Value& object : api::SwellPriorityClasses()) out.push_back(std::move(object));
  out.push_back(
      Object{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", Object{{"name", ns}}}});
  out.push_back(ControllerRole());
  out.push_back(AgentRole());
  AddPeoplesRoles(out);
  AddAccount("swell-controller", ns, out);
  AddElectionRole(ns, out);
  AddAccount("swell-agent", ns, out);
  for (Value& object : out) {
    json::Set(object, {"metadata", "labels", kManagedByLabel}, Value(kManagedBy));
  }
  return out;
}

}  // namespace swell
