#include "ops/install/install_objects.h"

#include "base/check.h"
#include "base/strings.h"
#include "json/yaml.h"
#include "kube/api/crd/crds.h"
#include "kube/api/crd/definitions.h"
#include "kube/api/meta/meta.h"
#include "kube/api/schema/scheme.h"

namespace swell::ops {
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
  std::string groups;
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
       // The SSH keys of MPIJobs.
       {"", "secrets", "create"},
       {"", "bindings,pods/binding,pods/eviction", "create"},
       {"", "nodes,persistentvolumes,persistentvolumeclaims,serviceaccounts", "get,list,watch"},
       // Taints of unhealthy nodes, and what failed there.
       {"", "nodes", "patch"},
       // The node that a claim waits for is named in it.
       {"", "persistentvolumeclaims", "patch"},
       {"", "namespaces", "get,list,watch,create"},
       // Isolated projects have one.
       {"networking.k8s.io", "networkpolicies", "get,list,watch,create,delete"},
       {",events.k8s.io", "events", "create,patch,update"},
       // The pages show events, and ask whose a token is.
       {"", "events", "get,list,watch"},
       {"authentication.k8s.io", "tokenreviews", "create"},
       {"scheduling.k8s.io", "priorityclasses", "get,list,watch"},
       {"scheduling.k8s.io", "podgroups,compositepodgroups", "get,list,watch"},
       {"scheduling.k8s.io", "podgroups/status,compositepodgroups/status", "patch"},
       {"policy", "poddisruptionbudgets", "get,list,watch"},
       {"storage.k8s.io", "storageclasses", "get,list,watch"},
       // Devices by claims, where the cluster has them: who offers them, and whose they become.
       {"resource.k8s.io", "resourceslices,devicetaintrules", "get,list,watch"},
       {"resource.k8s.io", "deviceclasses", "get,list,watch,create"},
       {"resource.k8s.io", "resourceclaims", "get,list,watch,create,update"},
       {"resource.k8s.io", "resourceclaims/status", "update"},
       {"resource.k8s.io", "resourceclaims/binding", "update"},
       {"apiextensions.k8s.io", "customresourcedefinitions", "get,list,watch"},
       // Owners of pods, for grouping and scaling.
       {"batch", "jobs", "get"},
       {"apps", "replicasets,deployments,statefulsets", "get"},
       // The pages show servers.
       {"apps", "deployments", "list,watch"},
       {"ray.io,jobset.x-k8s.io,leaderworkerset.x-k8s.io,scheduling.volcano.sh,scheduling.x-k8s.io",
        "*", "get"},
       {"metrics.k8s.io,custom.metrics.k8s.io,external.metrics.k8s.io", "*", "get,list"},
       {StrCat("swell.dev,", api::JobGroups()), "*", "*"}});
}

Value AgentRole() {
  return ClusterRole("swell-agent",
                     {{"", "nodes", "get,list,watch,create,update,patch"},
                      {"", "nodes/status,pods/status", "update,patch"},
                      {"", "pods", "get,list,watch,update,patch,delete"},
                      {"", "services,endpoints", "get,list,watch"},
                      {"discovery.k8s.io", "endpointslices", "get,list,watch"},
                      {"resource.k8s.io", "resourceslices", "get,create,patch"},
                      {"resource.k8s.io", "resourceclaims", "get"},
                      {"", "configmaps,secrets,persistentvolumeclaims,persistentvolumes", "get"},
                      {"node.k8s.io", "runtimeclasses", "get"},
                      // NetworkPolicies choose pods by the labels of their namespaces, too.
                      {"", "namespaces", "get,list,watch"},
                      {"networking.k8s.io", "networkpolicies", "get,list,watch"},
                      {"", "serviceaccounts/token", "create"},
                      {",events.k8s.io", "events", "create,patch,update"},
                      {"coordination.k8s.io", "leases", "get,create,update,patch"}});
}

// Which replica of the controller leads is written down beside its account.
void AddElectionRole(const std::string& ns, std::vector<Value>& out) {
  constexpr std::string_view kName = "swell-leader-election";
  const Object metadata{{"name", kName}, {"namespace", ns}};
  out.push_back(Object{
      {"apiVersion", kRbacVersion},
      {"kind", "Role"},
      {"metadata", metadata},
      {"rules", Array{RuleObject({"coordination.k8s.io", "leases", "get,create,update,patch"})}}});
  out.push_back(Object{{"apiVersion", kRbacVersion},
                       {"kind", "RoleBinding"},
                       {"metadata", metadata},
                       {"roleRef", Object{{"apiGroup", kRbac}, {"kind", "Role"}, {"name", kName}}},
                       {"subjects", Array{Object{{"kind", "ServiceAccount"},
                                                 {"name", "swell-controller"},
                                                 {"namespace", ns}}}}});
}

// Two replicas on different machines, one of which leads. Nothing in it is newer than Kubernetes
// 1.20 but the PodDisruptionBudget's version.
constexpr std::string_view kControllerYaml = R"(
apiVersion: apps/v1
kind: Deployment
metadata:
  name: swell-controller
  labels: {app.kubernetes.io/name: swell, app.kubernetes.io/component: controller}
spec:
  replicas: 2
  selector:
    matchLabels: {app.kubernetes.io/name: swell, app.kubernetes.io/component: controller}
  strategy:
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  template:
    metadata:
      labels: {app.kubernetes.io/name: swell, app.kubernetes.io/component: controller}
    spec:
      serviceAccountName: swell-controller
      priorityClassName: system-cluster-critical
      terminationGracePeriodSeconds: 15
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 100
            podAffinityTerm:
              topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  app.kubernetes.io/name: swell
                  app.kubernetes.io/component: controller
      tolerations:
      - {key: node-role.kubernetes.io/control-plane, operator: Exists, effect: NoSchedule}
      - {key: node-role.kubernetes.io/master, operator: Exists, effect: NoSchedule}
      containers:
      - name: controller
        image: swell
        imagePullPolicy: IfNotPresent
        command: [swell]
        args: [controller, '--metrics-address=0.0.0.0:10290']
        ports:
        - {name: metrics, containerPort: 10290, protocol: TCP}
        livenessProbe:
          httpGet: {path: /livez, port: metrics}
          periodSeconds: 10
          failureThreshold: 6
        readinessProbe:
          httpGet: {path: /readyz, port: metrics}
          periodSeconds: 2
        resources:
          requests: {cpu: 100m, memory: 128Mi}
          limits: {memory: 2Gi}
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities: {drop: [ALL]}
---
apiVersion: v1
kind: Service
metadata:
  name: swell-controller-metrics
  labels: {app.kubernetes.io/name: swell, app.kubernetes.io/component: controller}
spec:
  clusterIP: None
  selector: {app.kubernetes.io/name: swell, app.kubernetes.io/component: controller}
  ports:
  - {name: metrics, port: 10290, targetPort: metrics, protocol: TCP}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: swell-controller
  labels: {app.kubernetes.io/name: swell, app.kubernetes.io/component: controller}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {app.kubernetes.io/name: swell, app.kubernetes.io/component: controller}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: swell-controller
  labels: {app.kubernetes.io/name: swell, app.kubernetes.io/component: controller}
spec:
  podSelector:
    matchLabels: {app.kubernetes.io/name: swell, app.kubernetes.io/component: controller}
  # At which address and port the API server answers differs from cluster to cluster.
  policyTypes: [Ingress]
  ingress:
  - from: [{namespaceSelector: {}}]
    ports: [{port: metrics, protocol: TCP}]
)";

// A browser stays with the replica that knows its session.
constexpr std::string_view kPagesYaml = R"(
apiVersion: v1
kind: Service
metadata:
  name: swell-pages
  labels: {app.kubernetes.io/name: swell, app.kubernetes.io/component: pages}
spec:
  sessionAffinity: ClientIP
  selector: {app.kubernetes.io/name: swell, app.kubernetes.io/component: controller}
  ports:
  - {name: https, port: 443, targetPort: pages, protocol: TCP}
)";

Value PortFromAnywhere(int port) {
  return Object{{"ports", Array{Object{{"port", port}, {"protocol", "TCP"}}}}};
}

// A port of the controller's container, with the flag that opens it.
void OpenPort(Value& container, std::string_view name, int port, const std::string& flag) {
  json::FindMutable(container, {"args"})->get_array().emplace_back(flag);
  json::FindMutable(container, {"ports"})
      ->get_array()
      .push_back(Object{{"name", name}, {"containerPort", port}, {"protocol", "TCP"}});
}

// What people who may edit or look at a namespace may do with Swell's kinds there.
void AddPeoplesRoles(std::vector<Value>& out) {
  constexpr std::string_view kAggregate = "rbac.authorization.k8s.io/aggregate-to-";
  auto key = [&](std::string_view role) { return std::string(kAggregate).append(role); };
  out.push_back(ClusterRole("swell-edit",
                            {{api::JobGroups(), api::JobResources(), "*"},
                             {"swell.dev", "trainingjobs,trainingjobs/scale,podgroups", "*"}},
                            Object{{key("edit"), "true"}, {key("admin"), "true"}}));
  out.push_back(ClusterRole("swell-view",
                            {{StrCat("swell.dev,", api::JobGroups()), "*", "get,list,watch"}},
                            Object{{key("view"), "true"}}));
  // Roles of a namespace do not reach these. Nobody has this one until an administrator binds it.
  out.push_back(ClusterRole("swell-cluster-viewer",
                            {{"", "nodes", "get,list,watch"},
                             {"swell.dev", "projects,nodepools,topologies", "get,list,watch"},
                             {"trainer.kubeflow.org", "clustertrainingruntimes", "get,list,watch"},
                             {"scheduling.k8s.io", "priorityclasses", "get,list,watch"}}));
}

}  // namespace

std::vector<Value> ControllerObjects(const ControllerDeployment& deployment) {
  auto parsed = json::ParseYaml(kControllerYaml);
  SWELL_CHECK_MSG(parsed.ok(), parsed.status().message());
  std::vector<Value> out = std::move(*parsed);
  if (deployment.pages) {
    auto service = json::ParseYaml(kPagesYaml);
    SWELL_CHECK_MSG(service.ok(), service.status().message());
    if (deployment.programs) {
      json::FindMutable(service->front(), {"spec", "ports"})
          ->get_array()
          .push_back(Object{{"name", "programs"},
                            {"port", kProgramsPort},
                            {"targetPort", "programs"},
                            {"protocol", "TCP"}});
    }
    out.push_back(std::move(service->front()));
  }
  for (Value& object : out) {
    json::Set(object, {"metadata", "namespace"}, deployment.ns);
    MarkAsOurs(object);
    const std::string_view kind = api::KindOf(object);
    if (kind == "NetworkPolicy") {
      Array& ingress = json::FindMutable(object, {"spec", "ingress"})->get_array();
      // The API server and browsers may be anywhere.
      if (deployment.webhook) ingress.push_back(PortFromAnywhere(kWebhookPort));
      if (deployment.pages) ingress.push_back(PortFromAnywhere(kPagesPort));
      if (deployment.programs) ingress.push_back(PortFromAnywhere(kProgramsPort));
    }
    if (kind == "PodDisruptionBudget" && !deployment.policy_v1) {
      json::Set(object, {"apiVersion"}, "policy/v1beta1");
    }
    if (kind != "Deployment") continue;
    json::Set(object, {"spec", "replicas"}, deployment.replicas);
    Value& container =
        json::FindMutable(object, {"spec", "template", "spec", "containers"})->get_array()[0];
    json::Set(container, {"image"}, deployment.image);
    if (deployment.webhook) {
      OpenPort(container, "webhook", kWebhookPort, StrCat("--webhook-port=", kWebhookPort));
    }
    if (deployment.pages) {
      OpenPort(container, "pages", kPagesPort, StrCat("--ui-address=0.0.0.0:", kPagesPort));
    }
    if (deployment.programs) {
      OpenPort(container, "programs", kProgramsPort,
               StrCat("--ui-programs-address=0.0.0.0:", kProgramsPort));
    }
  }
  return out;
}

void MarkAsOurs(Value& object) {
  json::Set(object, {"metadata", "labels", kManagedByLabel}, Value(kManagedBy));
  json::Set(object, {"metadata", "labels", kPartOfLabel}, Value(kPartOf));
}

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
  for (Value& object : out) MarkAsOurs(object);
  return out;
}

}  // namespace swell::ops
