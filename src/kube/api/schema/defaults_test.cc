#include <gtest/gtest.h>

#include "json/json_test_util.h"
#include "kube/api/schema/scheme.h"

namespace swell::api {
namespace {

using json::J;

class DefaultsTest : public ::testing::Test {
 protected:
  json::Value Default(const GroupVersionKind& gvk, std::string_view text) {
    json::Value object = J(text);
    KindPtr kind = scheme_->FindKind(gvk);
    ApplyDefaults(*kind->schema, object);
    DefaultObject(*kind, object);
    json::Value again = object;
    ApplyDefaults(*kind->schema, again);
    DefaultObject(*kind, again);
    EXPECT_TRUE(json::Equal(object, again)) << "a second time: " << json::Print(again);
    return object;
  }
  void Expect(const GroupVersionKind& gvk, std::string_view text, std::string_view expected) {
    json::Value got = Default(gvk, text);
    EXPECT_TRUE(json::Equal(got, J(expected))) << json::Print(got) << "\ninstead of\n" << expected;
  }
  std::unique_ptr<Scheme> scheme_ = Scheme::BuiltIn();
};

TEST_F(DefaultsTest, Pod) {
  Expect({"", "v1", "Pod"}, R"({"metadata":{"name":"p","creationTimestamp":null},"spec":{
      "containers":[{"name":"a","image":"b:1","command":null,
        "ports":[{"containerPort":80}],
        "resources":{"limits":{"nvidia.com/gpu":1,"cpu":"2"},"requests":{"cpu":"1"}},
        "livenessProbe":{"httpGet":{"port":80}},
        "env":[{"name":"N","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}],
      "volumes":[{"name":"v"},{"name":"c","configMap":{"name":"x"}}],
      "serviceAccountName":"bot"}})",
         R"({"metadata":{"name":"p"},"spec":{
      "containers":[{"name":"a","image":"b:1",
        "ports":[{"containerPort":80,"protocol":"TCP"}],
        "resources":{"limits":{"nvidia.com/gpu":1,"cpu":"2"},
          "requests":{"cpu":"1","nvidia.com/gpu":1}},
        "livenessProbe":{"httpGet":{"port":80,"path":"/","scheme":"HTTP"},"timeoutSeconds":1,
          "periodSeconds":10,"successThreshold":1,"failureThreshold":3},
        "env":[{"name":"N","valueFrom":{"fieldRef":{"fieldPath":"metadata.name",
          "apiVersion":"v1"}}}],
        "terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",
        "imagePullPolicy":"IfNotPresent"}],
      "volumes":[{"name":"v","emptyDir":{}},{"name":"c","configMap":{"name":"x",
        "defaultMode":420}}],
      "serviceAccountName":"bot","serviceAccount":"bot","restartPolicy":"Always",
      "terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},
      "enableServiceLinks":true},"status":{"phase":"Pending"}})");
}

TEST_F(DefaultsTest, PullPolicyFollowsTheTag) {
  struct Case {
    const char* image;
    const char* policy;
  };
  const Case kCases[] = {
      {"busybox", "Always"},
      {"busybox:latest", "Always"},
      {"busybox:1.36", "IfNotPresent"},
      {"host:5000/busybox", "Always"},
      {"host:5000/busybox:1", "IfNotPresent"},
      {"busybox@sha256:abc", "IfNotPresent"},
  };
  for (const Case& c : kCases) {
    json::Value pod = J(R"({"spec":{"containers":[{"name":"a"}]}})");
    json::Set(pod.at("spec").at("containers").get_array()[0], {"image"},
              json::Value(std::string(c.image)));
    json::Value got = Default({"", "v1", "Pod"}, json::Print(pod));
    EXPECT_EQ(json::GetString(json::GetArray(got, {"spec", "containers"})[0], {"imagePullPolicy"}),
              c.policy)
        << c.image;
  }
}

TEST_F(DefaultsTest, SchedulerNameIsLeftAlone) {
  json::Value got = Default({"", "v1", "Pod"}, R"({"spec":{"containers":[]}})");
  EXPECT_EQ(json::Find(got, {"spec", "schedulerName"}), nullptr);
}

TEST_F(DefaultsTest, HostNetworkPorts) {
  json::Value got = Default({"", "v1", "Pod"}, R"({"spec":{"hostNetwork":true,"containers":[
      {"name":"a","image":"b","ports":[{"containerPort":7}]}]}})");
  EXPECT_EQ(
      json::GetInt(json::GetArray(json::GetArray(got, {"spec", "containers"})[0], {"ports"})[0],
                   {"hostPort"}),
      7);
}

TEST_F(DefaultsTest, Job) {
  json::Value got = Default({"batch", "v1", "Job"}, R"({"metadata":{"name":"j","uid":"u1"},
      "spec":{"template":{"spec":{"containers":[{"name":"a","image":"b:1"}],
      "restartPolicy":"Never"}}}})");
  EXPECT_EQ(json::GetInt(got, {"spec", "completions"}), 1);
  EXPECT_EQ(json::GetInt(got, {"spec", "parallelism"}), 1);
  EXPECT_EQ(json::GetInt(got, {"spec", "backoffLimit"}), 6);
  EXPECT_EQ(json::GetString(got, {"spec", "completionMode"}), "NonIndexed");
  EXPECT_EQ(json::GetString(
                got, {"spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid"}),
            "u1");
  EXPECT_EQ(json::GetString(got, {"spec", "template", "metadata", "labels", "job-name"}), "j");
  got = Default({"batch", "v1", "Job"},
                R"({"metadata":{"name":"j"},"spec":{"parallelism":3,"template":{}}})");
  EXPECT_EQ(json::Find(got, {"spec", "completions"}), nullptr);
  EXPECT_EQ(json::Find(got, {"spec", "selector"}), nullptr);
}

TEST_F(DefaultsTest, Workloads) {
  json::Value got = Default({"apps", "v1", "Deployment"}, R"({"spec":{"template":{"spec":{
      "containers":[{"name":"a","image":"b"}]}}}})");
  EXPECT_TRUE(json::Equal(*json::Find(got, {"spec", "strategy"}),
                          J(R"({"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%",
                          "maxSurge":"25%"}})")));
  EXPECT_EQ(json::GetInt(got, {"spec", "replicas"}), 1);
  EXPECT_EQ(json::GetInt(got, {"spec", "progressDeadlineSeconds"}), 600);
  EXPECT_EQ(json::GetString(json::GetArray(got, {"spec", "template", "spec", "containers"})[0],
                            {"imagePullPolicy"}),
            "Always");
  EXPECT_EQ(json::Find(got, {"spec", "template", "spec", "enableServiceLinks"}), nullptr);
  got = Default({"apps", "v1", "StatefulSet"}, R"({"spec":{"serviceName":"s"}})");
  EXPECT_EQ(json::GetInt(got, {"spec", "updateStrategy", "rollingUpdate", "partition"}, -1), 0);
  got = Default({"apps", "v1", "DaemonSet"}, R"({"spec":{}})");
  EXPECT_EQ(json::GetInt(got, {"spec", "updateStrategy", "rollingUpdate", "maxUnavailable"}), 1);
  got = Default({"", "v1", "ReplicationController"},
                R"({"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}})");
  EXPECT_EQ(json::GetString(got, {"spec", "selector", "a"}), "b");
}

TEST_F(DefaultsTest, Services) {
  Expect({"", "v1", "Service"}, R"({"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}})",
         R"({"metadata":{"name":"s"},"spec":{"ports":[{"port":80,"protocol":"TCP",
         "targetPort":80}],"type":"ClusterIP","sessionAffinity":"None",
         "internalTrafficPolicy":"Cluster","ipFamilyPolicy":"SingleStack","ipFamilies":["IPv4"]},
         "status":{"loadBalancer":{}}})");
  json::Value got = Default({"", "v1", "Service"},
                            R"({"spec":{"type":"LoadBalancer","sessionAffinity":"ClientIP"}})");
  EXPECT_EQ(json::GetString(got, {"spec", "externalTrafficPolicy"}), "Cluster");
  EXPECT_TRUE(json::GetBool(got, {"spec", "allocateLoadBalancerNodePorts"}));
  EXPECT_EQ(json::GetInt(got, {"spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds"}),
            10800);
}

TEST_F(DefaultsTest, TheRest) {
  Expect({"", "v1", "Secret"},
         R"({"metadata":{"name":"s"},"stringData":{"a":"hi"},"data":{"b":"eA=="}})",
         R"({"metadata":{"name":"s"},"data":{"a":"aGk=","b":"eA=="},"type":"Opaque"})");
  Expect({"", "v1", "Namespace"}, R"({"metadata":{"name":"n"}})",
         R"({"metadata":{"name":"n","labels":{"kubernetes.io/metadata.name":"n"}},
         "status":{"phase":"Active"}})");
  Expect({"", "v1", "ConfigMap"}, R"({"metadata":{"name":"c"},"data":{"k":null}})",
         R"({"metadata":{"name":"c"},"data":{"k":""}})");
  Expect({"", "v1", "Node"},
         R"({"metadata":{"name":"n"},"status":{"capacity":{"cpu":"4"},"conditions":[]}})",
         R"({"metadata":{"name":"n"},"status":{"capacity":{"cpu":"4"},
         "allocatable":{"cpu":"4"}},"spec":{}})");
  Expect({"scheduling.k8s.io", "v1beta1", "PriorityClass"},
         R"({"metadata":{"name":"p"},"value":5})",
         R"({"metadata":{"name":"p"},"value":5,"preemptionPolicy":"PreemptLowerPriority"})");
  Expect({"rbac.authorization.k8s.io", "v1", "RoleBinding"},
         R"({"metadata":{"name":"b"},"roleRef":{"kind":"Role","name":"r"},
         "subjects":[{"kind":"User","name":"u"},{"kind":"ServiceAccount","name":"s",
         "namespace":"d"}]})",
         R"({"metadata":{"name":"b"},"roleRef":{"kind":"Role","name":"r",
         "apiGroup":"rbac.authorization.k8s.io"},"subjects":[{"kind":"User","name":"u",
         "apiGroup":"rbac.authorization.k8s.io"},{"kind":"ServiceAccount","name":"s",
         "namespace":"d"}]})");
  Expect({"", "v1", "LimitRange"},
         R"({"metadata":{"name":"l"},"spec":{"limits":[{"type":"Container",
         "max":{"cpu":"2"}}]}})",
         R"({"metadata":{"name":"l"},"spec":{"limits":[{"type":"Container","max":{"cpu":"2"},
         "default":{"cpu":"2"},"defaultRequest":{"cpu":"2"}}]}})");
  json::Value crd = Default({"apiextensions.k8s.io", "v1", "CustomResourceDefinition"},
                            R"({"spec":{"names":{"kind":"Thing","plural":"things"}}})");
  EXPECT_EQ(json::GetString(crd, {"spec", "names", "singular"}), "thing");
  EXPECT_EQ(json::GetString(crd, {"spec", "names", "listKind"}), "ThingList");
  EXPECT_EQ(json::GetString(crd, {"spec", "conversion", "strategy"}), "None");
}

TEST_F(DefaultsTest, ZeroIsAbsenceWhereGoHasNoPointer) {
  const GroupVersionKind deployment{"apps", "v1", "Deployment"};
  json::Value got = Default(deployment, R"({"metadata":{"name":"d","generateName":""},"spec":{
      "replicas":0,"minReadySeconds":0,"paused":false,"template":{"spec":{"hostNetwork":false,
      "automountServiceAccountToken":false,"containers":[{"name":"a","image":"b",
      "env":[{"name":"E","value":""}],"livenessProbe":{"timeoutSeconds":0}}]}}}})");
  const json::Object spec = json::GetObject(got, {"spec"});
  EXPECT_TRUE(spec.contains("replicas"));
  for (const char* gone : {"minReadySeconds", "paused"}) EXPECT_FALSE(spec.contains(gone)) << gone;
  const json::Object pod = json::GetObject(got, {"spec", "template", "spec"});
  EXPECT_TRUE(pod.contains("automountServiceAccountToken"));
  EXPECT_FALSE(pod.contains("hostNetwork"));
  const json::Value& container = json::GetArray(got, {"spec", "template", "spec", "containers"})[0];
  EXPECT_EQ(json::GetArray(container, {"env"})[0], J(R"({"name":"E"})"));
  EXPECT_EQ(json::GetInt(container, {"livenessProbe", "timeoutSeconds"}), 1);
  EXPECT_FALSE(json::GetObject(got, {"metadata"}).contains("generateName"));
}

TEST_F(DefaultsTest, AutoscalersSayHowTheyScaleWhenAskedAboutPartOfIt) {
  const GroupVersionKind autoscaler{"autoscaling", "v2", "HorizontalPodAutoscaler"};
  json::Value got = Default(autoscaler, R"({"spec":{"behavior":{"scaleDown":{
      "stabilizationWindowSeconds":60,"policies":[{"type":"Pods","value":4,"periodSeconds":60}]}}}})");
  EXPECT_EQ(*json::Find(got, {"spec", "behavior"}),
            J(R"({"scaleDown":{"stabilizationWindowSeconds":60,"selectPolicy":"Max",
                "policies":[{"type":"Pods","value":4,"periodSeconds":60}]},
              "scaleUp":{"stabilizationWindowSeconds":0,"selectPolicy":"Max","policies":[
                {"type":"Pods","value":4,"periodSeconds":15},
                {"type":"Percent","value":100,"periodSeconds":15}]}})"));
  EXPECT_EQ(json::Find(Default(autoscaler, R"({"spec":{}})"), {"spec", "behavior"}), nullptr);
}

TEST_F(DefaultsTest, ClaimTemplatesAndNodesAreCompleted) {
  json::Value set = Default({"apps", "v1", "StatefulSet"},
                            R"({"spec":{"volumeClaimTemplates":[{"metadata":{"name":"c"}}]}})");
  EXPECT_EQ(json::GetString(json::GetArray(set, {"spec", "volumeClaimTemplates"})[0], {"kind"}),
            "PersistentVolumeClaim");
  json::Value node = Default({"", "v1", "Node"}, R"({"spec":{"podCIDR":"10.5.0.0/24"}})");
  EXPECT_EQ(*json::Find(node, {"spec", "podCIDRs"}), J(R"(["10.5.0.0/24"])"));
}

}  // namespace
}  // namespace swell::api
