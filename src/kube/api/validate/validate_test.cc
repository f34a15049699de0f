#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/json_test_util.h"
#include "json/patch.h"
#include "kube/api/schema/scheme.h"

namespace swell::api {
namespace {

using json::J;

// A change to a good object, and what is said about the result ("" when it stays good).
struct Case {
  const char* patch;
  const char* error;
};

class ValidateTest : public ::testing::Test {
 protected:
  std::string Check(const GroupVersionKind& gvk,
                    const json::Value& object,
                    const json::Value* old = nullptr) {
    std::string out;
    for (const FieldError& e : ValidateObject(*scheme_->FindKind(gvk), object, old)) {
      if (!out.empty()) out += "\n";
      out += e.field + ": " + e.message;
    }
    return out;
  }

  template <size_t N>
  void CheckAll(const GroupVersionKind& gvk, const char* base, const Case (&cases)[N]) {
    EXPECT_EQ(Check(gvk, J(base)), "") << base;
    for (const Case& c : cases) {
      json::Value object = J(base);
      json::ApplyMergePatch(object, J(c.patch));
      std::string got = Check(gvk, object);
      bool fine = *c.error == '\0' ? got.empty() : got.find(c.error) != std::string::npos;
      EXPECT_TRUE(fine) << c.patch << "\n  says:     " << got << "\n  expected: " << c.error;
    }
  }

  // The same for updates: the patch makes the new object from the old one.
  template <size_t N>
  void CheckUpdates(const GroupVersionKind& gvk, const char* base, const Case (&cases)[N]) {
    json::Value old = J(base);
    EXPECT_EQ(Check(gvk, old, &old), "") << base;
    for (const Case& c : cases) {
      json::Value object = old;
      json::ApplyMergePatch(object, J(c.patch));
      std::string got = Check(gvk, object, &old);
      bool fine = *c.error == '\0' ? got.empty() : got.find(c.error) != std::string::npos;
      EXPECT_TRUE(fine) << c.patch << "\n  says:     " << got << "\n  expected: " << c.error;
    }
  }

  std::unique_ptr<Scheme> scheme_ = Scheme::BuiltIn();
};

const GroupVersionKind kPod = {"", "v1", "Pod"};
constexpr const char* kGoodPod = R"({"apiVersion":"v1","kind":"Pod",
    "metadata":{"name":"p","namespace":"default"},
    "spec":{"restartPolicy":"Always","containers":[{"name":"main","image":"busybox"}]}})";

TEST_F(ValidateTest, MetadataOfEveryKind) {
  const Case kCases[] = {
      {R"({"metadata":{"name":"Upper"}})",
       "metadata.name: Invalid value: \"Upper\": a lowercase RFC 1123 subdomain must consist of"},
      {R"({"metadata":{"name":null}})",
       "metadata.name: Required value: name or generateName is required"},
      {R"({"metadata":{"name":null,"generateName":"job-"}})", ""},
      {R"({"metadata":{"name":null,"generateName":"Job-"}})", "metadata.generateName: Invalid"},
      {R"({"metadata":{"namespace":"a.b"}})", "metadata.namespace: Invalid value: \"a.b\""},
      {R"({"metadata":{"labels":{"a b":"c"}}})", "metadata.labels: Invalid value: \"a b\""},
      {R"({"metadata":{"labels":{"a":"-"}}})", "metadata.labels: Invalid value: \"-\""},
      {R"({"metadata":{"annotations":{"Example.com/Any":"{any text}"}}})", ""},
      {R"({"metadata":{"annotations":{"/x":""}}})", "metadata.annotations: Invalid value"},
      {R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"A","name":"","uid":"u"}]}})",
       "metadata.ownerReferences[0].name: Required value: must not be empty"},
      {R"({"metadata":{"ownerReferences":[{"apiVersion":"a/","kind":"A","name":"a","uid":"u"}]}})",
       "metadata.ownerReferences[0].apiVersion: Invalid value: \"a/\": must be <group>/<version> "
       "or "
       "<version>"},
      {R"({"metadata":{"ownerReferences":[
          {"apiVersion":"v1","kind":"A","name":"a","uid":"u","controller":true},
          {"apiVersion":"v1","kind":"B","name":"b","uid":"v","controller":true}]}})",
       "Only one reference can have Controller set to true. Found \"true\" in references for A/a "
       "and B/b"},
      {R"({"metadata":{"finalizers":["example.com/x","orphan"]}})", ""},
      {R"({"metadata":{"finalizers":["two words"]}})", "metadata.finalizers: Invalid value"},
  };
  CheckAll(kPod, kGoodPod, kCases);
  json::Value big = J(kGoodPod);
  json::Set(big, {"metadata", "annotations", "a"}, json::Value(std::string(256 << 10, 'x')));
  EXPECT_EQ(Check(kPod, big), "metadata.annotations: Too long: must have at most 262144 bytes");
  json::Value node = J(R"({"metadata":{"name":"n","namespace":"x"}})");
  EXPECT_EQ(Check({"", "v1", "Node"}, node),
            "metadata.namespace: Forbidden: not allowed on this type");
}

TEST_F(ValidateTest, MetadataCannotChange) {
  const Case kCases[] = {
      {R"({"metadata":{"labels":{"a":"b"}}})", ""},
      {R"({"metadata":{"uid":"other"}})",
       "metadata.uid: Invalid value: \"other\": field is immutable"},
      {R"({"metadata":{"name":"q"}})", "metadata.name: Invalid value: \"q\": field is immutable"},
      {R"({"metadata":{"uid":null}})", ""},
  };
  CheckUpdates({"", "v1", "ConfigMap"}, R"({"metadata":{"name":"p","uid":"u"}})", kCases);
}

TEST_F(ValidateTest, PodContainers) {
  const Case kCases[] = {
      {R"({"spec":null})", "spec.containers: Required value"},
      {R"({"spec":{"containers":[]}})", "spec.containers: Required value"},
      {R"({"spec":{"containers":[{"name":"a"}]}})", "spec.containers[0].image: Required value"},
      {R"({"spec":{"containers":[{"name":"a","image":" b"}]}})",
       "must not have leading or trailing whitespace"},
      {R"({"spec":{"containers":[{"name":"A","image":"b"}]}})",
       "spec.containers[0].name: Invalid value: \"A\": a lowercase RFC 1123 label must consist"},
      {R"({"spec":{"containers":[{"name":"a","image":"b"},{"name":"a","image":"b"}]}})",
       "spec.containers[1].name: Duplicate value: \"a\""},
      {R"({"spec":{"initContainers":[{"name":"main","image":"b"}]}})",
       "spec.initContainers[0].name: Duplicate value: \"main\""},
      {R"({"spec":{"containers":[{"name":"a","image":"b","ports":[{"containerPort":0}]}]}})",
       "spec.containers[0].ports[0].containerPort: Required value"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","ports":[{"containerPort":70000}]}]}})",
       "Invalid value: 70000: must be between 1 and 65535, inclusive"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","ports":[
          {"name":"web","containerPort":1},{"name":"web","containerPort":2}]}]}})",
       "spec.containers[0].ports[1].name: Duplicate value: \"web\""},
      {R"({"spec":{"containers":[{"name":"a","image":"b","ports":[
          {"name":"much-too-long-a-name","containerPort":1}]}]}})",
       "must be no more than 15 characters"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","ports":[
          {"containerPort":1,"hostPort":5},{"containerPort":2,"hostPort":5}]}]}})",
       "hostPort: Duplicate value"},
      {R"({"spec":{"hostNetwork":true,"containers":[{"name":"a","image":"b","ports":[
          {"containerPort":1,"hostPort":5}]}]}})",
       "ports[0].hostPort: Invalid value: 5: must match `containerPort` when `hostNetwork` is "
       "true"},
      {R"({"spec":{"initContainers":[{"name":"a","image":"b","restartPolicy":"Always"}]}})", ""},
  };
  CheckAll(kPod, kGoodPod, kCases);
}

TEST_F(ValidateTest, ContainersOfAPodAreBounded) {
  auto check = [this](std::string_view list, int count) {
    json::Value pod = J(
        R"({"metadata":{"name":"p","namespace":"d"},"spec":{"containers":[{"name":"a","image":"i"}]}})");
    json::Array many;
    for (int i = 0; i < count; ++i) {
      many.push_back(json::Object{{"name", StrCat("c", i)}, {"image", "i"}});
    }
    json::Set(pod, {"spec", list}, many);
    return Check({"", "v1", "Pod"}, pod);
  };
  for (const char* list : {"containers", "initContainers"}) {
    EXPECT_EQ(check(list, 1000), "");
    EXPECT_EQ(check(list, 1001),
              StrCat("spec.", list, ": Too many: 1001: must have at most 1000 items"));
  }
}

TEST_F(ValidateTest, PodEnvironmentAndResources) {
  const Case kCases[] = {
      {R"({"spec":{"containers":[{"name":"a","image":"b","env":[{"name":""}]}]}})",
       "spec.containers[0].env[0].name: Required value"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","env":[{"name":"1 a"}]}]}})", ""},
      {R"({"spec":{"containers":[{"name":"a","image":"b","env":[{"name":"A=B"}]}]}})",
       "a valid environment variable name must consist only of printable ASCII characters"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","env":[{"name":"X","value":"1",
          "valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}]}})",
       "may not be specified when `value` is not empty"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","env":[{"name":"X",
          "valueFrom":{"fieldRef":{"fieldPath":"spec.tolerations"}}}]}]}})",
       "valueFrom.fieldRef.fieldPath: Invalid value: \"spec.tolerations\": error converting"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","env":[{"name":"X",
          "valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['a']"}}}]}]}})",
       ""},
      {R"({"spec":{"containers":[{"name":"a","image":"b","env":[{"name":"X",
          "valueFrom":{}}]}]}})",
       "must specify one of: `fieldRef`"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","envFrom":[{}]}]}})",
       "must specify one of: `configMapRef` or `secretRef`"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","resources":{
          "requests":{"cpu":"2"},"limits":{"cpu":"1"}}}]}})",
       "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal "
       "to cpu limit"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","resources":{
          "limits":{"nvidia.com/gpu":1}}}]}})",
       ""},
      {R"({"spec":{"containers":[{"name":"a","image":"b","resources":{
          "limits":{"nvidia.com/gpu":2},"requests":{"nvidia.com/gpu":1}}}]}})",
       "must be equal to nvidia.com/gpu limit"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","resources":{
          "requests":{"nvidia.com/gpu":1}}}]}})",
       "Limit must be set for non overcommitable resources"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","resources":{
          "limits":{"nvidia.com/gpu":"500m"}}}]}})",
       "scale:-3}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:\"500m\", "
       "Format:\"DecimalSI\"}: must be an integer"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","resources":{
          "limits":{"memory":"-1Gi"}}}]}})",
       "must be greater than or equal to 0"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","resources":{
          "limits":{"gpu":"1"}}}]}})",
       "must be a standard resource for containers; did you mean nvidia.com/gpu?"},
  };
  CheckAll(kPod, kGoodPod, kCases);
}

TEST_F(ValidateTest, WhatTheSchemaFindsIsToldWithTheRest) {
  const KindPtr pod = scheme_->FindKind(kPod);
  const json::Value object = J(R"({"metadata":{"name":"p"},"spec":{"restartPolicy":"Sometimes",
      "containers":[{"name":"a"},{"image":"i","resizePolicy":[{"restartPolicy":"X",
      "resourceName":"cpu"}]}]}})");
  std::vector<std::string> fields;
  for (const FieldError& error :
       ValidateObject(*pod, object, nullptr, ValidateAgainst(*pod->schema, object))) {
    fields.push_back(error.field);
  }
  EXPECT_EQ(Join(fields, " "),
            "spec.containers[0].image spec.containers[1].name spec.restartPolicy "
            "spec.containers[1].resizePolicy[0].restartPolicy");
}

TEST_F(ValidateTest, PodVolumesAndMounts) {
  const Case kCases[] = {
      {R"({"spec":{"volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"a","image":"b",
          "volumeMounts":[{"name":"v","mountPath":"/v"}]}]}})",
       ""},
      {R"({"spec":{"containers":[{"name":"a","image":"b",
          "volumeMounts":[{"name":"v","mountPath":"/v"}]}]}})",
       "spec.containers[0].volumeMounts[0].name: Not found: \"v\""},
      {R"({"spec":{"volumes":[{"name":"v","emptyDir":{}},{"name":"v","emptyDir":{}}]}})",
       "spec.volumes[1].name: Duplicate value: \"v\""},
      {R"({"spec":{"volumes":[{"name":"v","emptyDir":{},"secret":{"secretName":"s"}}]}})",
       "may not specify more than 1 volume type"},
      {R"({"spec":{"volumes":[{"name":"v","secret":{}}]}})",
       "spec.volumes[0].secret.secretName: Required value"},
      {R"({"spec":{"volumes":[{"name":"v","configMap":{"name":"c","defaultMode":1000}}]}})",
       "must be a number between 0 and 0777 (octal), both inclusive"},
      {R"({"spec":{"volumes":[{"name":"v","configMap":{"name":"c",
          "items":[{"key":"k","path":"../x"}]}}]}})",
       "must not contain '..'"},
      {R"({"spec":{"volumes":[{"name":"v","hostPath":{"path":"/a","type":"Folder"}}]}})",
       "spec.volumes[0].hostPath.type: Unsupported value: \"Folder\""},
      {R"({"spec":{"volumes":[{"name":"v","persistentVolumeClaim":{}}]}})",
       "spec.volumes[0].persistentVolumeClaim.claimName: Required value"},
      {R"({"spec":{"volumes":[{"name":"v","ephemeral":{}}]}})",
       "spec.volumes[0].ephemeral.volumeClaimTemplate: Required value"},
      {R"({"spec":{"volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{"spec":{}}}}]}})",
       "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Required value: "
       "at least 1 access mode is required\n"
       "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value"},
      {R"({"spec":{"volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"a","image":"b",
          "volumeMounts":[{"name":"v","mountPath":"/v"},{"name":"v","mountPath":"/v"}]}]}})",
       "spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/v\": must be unique"},
      {R"({"spec":{"volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"a","image":"b",
          "volumeMounts":[{"name":"v","mountPath":"/v","subPath":"/abs"}]}]}})",
       "must be a relative path"},
  };
  CheckAll(kPod, kGoodPod, kCases);
}

TEST_F(ValidateTest, PodSchedulingFields) {
  const Case kCases[] = {
      {R"({"spec":{"tolerations":[{"key":"a","operator":"Exists","effect":"NoExecute",
          "tolerationSeconds":5}]}})",
       ""},
      {R"({"spec":{"tolerations":[{"operator":"Equal","value":"x"}]}})",
       "operator must be Exists when `key` is empty"},
      {R"({"spec":{"tolerations":[{"key":"a","operator":"Exists","value":"x"}]}})",
       "value must be empty when `operator` is 'Exists'"},
      {R"({"spec":{"tolerations":[{"key":"a","operator":"Like"}]}})",
       "spec.tolerations[0].operator: Unsupported value: \"Like\""},
      {R"({"spec":{"tolerations":[{"key":"a","effect":"NoSchedule","tolerationSeconds":5}]}})",
       "effect must be 'NoExecute' when `tolerationSeconds` is set"},
      {R"({"spec":{"nodeSelector":{"bad key":"x"}}})", "spec.nodeSelector: Invalid value"},
      {R"({"spec":{"affinity":{"nodeAffinity":{
          "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[]}}}}})",
       "must have at least one node selector term"},
      {R"({"spec":{"affinity":{"nodeAffinity":{
          "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
          {"matchExpressions":[{"key":"a","operator":"In"}]}]}}}}})",
       "values: Required value: must be specified when `operator` is 'In' or 'NotIn'"},
      {R"({"spec":{"affinity":{"podAntiAffinity":{
          "preferredDuringSchedulingIgnoredDuringExecution":[
          {"weight":200,"podAffinityTerm":{"topologyKey":"h"}}]}}}})",
       "Invalid value: 200: must be in the range 1-100"},
      {R"({"spec":{"affinity":{"podAffinity":{
          "requiredDuringSchedulingIgnoredDuringExecution":[{"labelSelector":{}}]}}}})",
       "topologyKey: Required value: can not be empty"},
      {R"({"spec":{"topologySpreadConstraints":[{"maxSkew":0,"topologyKey":"h",
          "whenUnsatisfiable":"DoNotSchedule"}]}})",
       "maxSkew: Invalid value: 0: must be greater than zero"},
      {R"({"spec":{"schedulingGates":[{"name":"a"},{"name":"a"}]}})",
       "spec.schedulingGates[1]: Duplicate value: \"a\""},
      {R"({"spec":{"activeDeadlineSeconds":0}})", "must be between 1 and 2147483647, inclusive"},
      {R"({"spec":{"terminationGracePeriodSeconds":-1}})", ""},  // the shortest that there is
      {R"({"spec":{"hostname":"a.b"}})", "spec.hostname: Invalid value: \"a.b\""},
      {R"({"spec":{"containers":[{"name":"a","image":"b","livenessProbe":{}}]}})",
       "livenessProbe: Required value: must specify a handler type"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","livenessProbe":
          {"exec":{"command":["x"]},"tcpSocket":{"port":1}}}]}})",
       "may not specify more than 1 handler type"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","livenessProbe":
          {"exec":{"command":["x"]},"successThreshold":2}}]}})",
       "successThreshold: Invalid value: 2: must be 1"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","securityContext":
          {"runAsUser":-1}}]}})",
       "must be between 0 and 2147483647, inclusive"},
  };
  CheckAll(kPod, kGoodPod, kCases);
}

TEST_F(ValidateTest, PodUpdates) {
  const Case kCases[] = {
      {R"({"spec":{"containers":[{"name":"main","image":"new"}]}})", ""},
      {R"({"spec":{"containers":[{"name":"main","image":""}]}})",
       "spec.containers[0].image: Required value"},
      {R"({"spec":{"containers":[{"name":"main","image":"b"},{"name":"c","image":"d"}]}})",
       "spec.containers: Forbidden: pod updates may not add or remove containers"},
      {R"({"spec":{"activeDeadlineSeconds":50}})", ""},
      {R"({"spec":{"activeDeadlineSeconds":150}})", "must be less than or equal to previous value"},
      {R"({"spec":{"activeDeadlineSeconds":null}})",
       "must not update from a positive integer to nil value"},
      {R"({"spec":{"tolerations":[{"key":"a","operator":"Exists"},
          {"key":"b","operator":"Exists"}]}})",
       ""},
      {R"({"spec":{"tolerations":[]}})", "spec.tolerations: Forbidden: existing toleration"},
      {R"({"spec":{"schedulingGates":[]}})", ""},
      {R"({"spec":{"schedulingGates":[{"name":"g"},{"name":"h"}]}})",
       "only deletion is allowed, but found new scheduling gate \"h\""},
      {R"({"spec":{"nodeSelector":{"a":"b"}}})", ""},
      {R"({"spec":{"hostNetwork":true}})",
       "spec: Forbidden: pod updates may not change fields other than "
       "`spec.containers[*].image`"},
      {R"({"metadata":{"labels":{"a":"b"}},"status":{"phase":"Running"}})", ""},
  };
  CheckUpdates(kPod, R"({"metadata":{"name":"p"},"spec":{"activeDeadlineSeconds":100,
      "tolerations":[{"key":"a","operator":"Exists"}],"schedulingGates":[{"name":"g"}],
      "containers":[{"name":"main","image":"old"}]}})",
               kCases);
}

TEST_F(ValidateTest, Workloads) {
  const char* const kJob = R"({"metadata":{"name":"j"},"spec":{"template":{"spec":{
      "restartPolicy":"Never","containers":[{"name":"a","image":"b"}]}}}})";
  const Case kJobs[] = {
      {R"({"spec":{"template":{"spec":{"restartPolicy":"Always"}}}})",
       "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""},
      {R"({"spec":{"parallelism":-1}})", "must be greater than or equal to 0"},
      {R"({"spec":{"completionMode":"Indexed"}})",
       "spec.completions: Required value: when completion mode is Indexed"},
      {R"({"spec":{"maxFailedIndexes":1}})",
       "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified"},
      {R"({"spec":{"backoffLimitPerIndex":1}})",
       "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"},
      {R"({"spec":{"template":{"spec":{"containers":[{"name":"a"}]}}}})",
       "spec.template.spec.containers[0].image: Required value"},
  };
  CheckAll({"batch", "v1", "Job"}, kJob, kJobs);
  const Case kJobUpdates[] = {
      {R"({"spec":{"parallelism":5}})", ""},
      {R"({"spec":{"completions":5}})", "spec.completions: Invalid value: 5: field is immutable"},
      {R"({"spec":{"template":{"spec":{"hostNetwork":true}}}})", "spec.template: Invalid value"},
  };
  CheckUpdates({"batch", "v1", "Job"}, kJob, kJobUpdates);
  const Case kCron[] = {
      {R"({"spec":{"schedule":"@hourly"}})", ""},
      {R"({"spec":{"schedule":"* * *"}})", "Expected exactly 5 fields, found 3: * * *"},
      {R"({"spec":{"schedule":""}})", "spec.schedule: Required value"},
  };
  CheckAll({"batch", "v1", "CronJob"}, R"({"metadata":{"name":"c"},"spec":{
      "schedule":"*/5 * * * *","jobTemplate":{"spec":{"template":{"spec":{
      "restartPolicy":"Never","containers":[{"name":"a","image":"b"}]}}}}}})",
           kCron);
  const char* const kDeployment = R"({"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{
      "a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"restartPolicy":"Always",
      "containers":[{"name":"a","image":"b"}]}}}})";
  const Case kDeployments[] = {
      {R"({"spec":{"selector":{"matchLabels":{"a":"c"}}}})",
       "`selector` does not match template `labels`"},
      {R"({"spec":{"selector":{"matchLabels":{"a":null}}}})",
       "empty selector is invalid for deployment"},
      {R"({"spec":{"replicas":-1}})", "spec.replicas: Invalid value: -1"},
      {R"({"spec":{"strategy":{"type":"Recreate","rollingUpdate":{}}}})",
       "may not be specified when strategy `type` is 'Recreate'"},
      {R"({"spec":{"template":{"spec":{"restartPolicy":"Never"}}}})",
       "supported values: \"Always\""},
  };
  CheckAll({"apps", "v1", "Deployment"}, kDeployment, kDeployments);
  const Case kDeploymentUpdates[] = {
      {R"({"spec":{"replicas":3}})", ""},
      {R"({"spec":{"selector":{"matchLabels":{"a":"b","c":"d"}},
          "template":{"metadata":{"labels":{"c":"d"}}}}})",
       "spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{\"a\":\"b\", "
       "\"c\":\"d\"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: field is immutable"},
  };
  CheckUpdates({"apps", "v1", "Deployment"}, kDeployment, kDeploymentUpdates);
}

TEST_F(ValidateTest, Services) {
  const char* const kService = R"({"metadata":{"name":"s"},"spec":{"type":"ClusterIP",
      "clusterIP":"10.0.0.1","ports":[{"port":80,"targetPort":8080,"protocol":"TCP"}]}})";
  const Case kCases[] = {
      {R"({"metadata":{"name":"1s"}})", ""},
      {R"({"metadata":{"name":"s_"}})",
       "metadata.name: Invalid value: \"s_\": a lowercase RFC 1123 label"},
      {R"({"spec":{"ports":[]}})", "spec.ports: Required value"},
      {R"({"spec":{"ports":[],"clusterIP":"None"}})", ""},
      {R"({"spec":{"ports":[{"port":0}]}})", "must be between 1 and 65535, inclusive"},
      {R"({"spec":{"ports":[{"port":1,"name":"a"},{"port":2}]}})",
       "spec.ports[1].name: Required value"},
      {R"({"spec":{"ports":[{"port":1,"name":"a","protocol":"TCP"},
          {"port":1,"name":"b","protocol":"TCP"}]}})",
       "spec.ports[1]: Duplicate value: core.ServicePort{Name:\"\", Protocol:\"TCP\", "},
      {R"({"spec":{"clusterIP":"300.1.1.1"}})", "must be a valid IP address"},
      {R"({"spec":{"ports":[{"port":1,"nodePort":30000}]}})",
       "may not be used when `type` is 'ClusterIP'"},
      {R"({"spec":{"type":"ExternalName"}})", "spec.externalName: Required value"},
      {R"({"spec":{"type":"NodePort","clusterIP":"None"}})", "may not be set to 'None'"},
      {R"({"spec":{"type":"LoadBalancer","loadBalancerSourceRanges":["10.0.0.0/8"," fd00::/8 "]}})",
       ""},
      {R"({"spec":{"type":"LoadBalancer","loadBalancerSourceRanges":["10.0.0.0/8","10.0.0.1/8"]}})",
       "spec.LoadBalancerSourceRanges[1]: Invalid value: \"10.0.0.1/8\": must not have bits set"},
      {R"({"spec":{"externalTrafficPolicy":"Local"}})",
       "spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for externally"},
      {R"({"spec":{"externalIPs":["1.2.3.4"],"externalTrafficPolicy":"Local"}})", ""},
      {R"({"spec":{"type":"NodePort","externalTrafficPolicy":"X"}})",
       "spec.externalTrafficPolicy: Unsupported value: \"X\""},
      {R"({"spec":{"type":"LoadBalancer","externalTrafficPolicy":"Local",
          "healthCheckNodePort":30100}})",
       ""},
      {R"({"spec":{"type":"LoadBalancer","healthCheckNodePort":30100}})",
       "spec.healthCheckNodePort: Invalid value: 30100: may only be set when"},
  };
  CheckAll({"", "v1", "Service"}, kService, kCases);
  const Case kUpdates[] = {
      {R"({"spec":{"clusterIP":"10.0.0.2"}})",
       "spec.clusterIP: Invalid value: \"10.0.0.2\": may not change once set"},
  };
  CheckUpdates({"", "v1", "Service"}, kService, kUpdates);
}

TEST_F(ValidateTest, ConfigurationAndStorage) {
  const Case kConfig[] = {
      {R"({"data":{"a/b":"x"}})", "data[a/b]: Invalid value: \"a/b\": a valid config key"},
      {R"({"data":{"..":"x"}})", "must not be '..'"},
      {R"({"binaryData":{"k":"eA=="}})", "duplicate of key present in binaryData"},
  };
  CheckAll({"", "v1", "ConfigMap"}, R"({"metadata":{"name":"c"},"data":{"k":"v"}})", kConfig);
  const Case kFrozen[] = {
      {R"({"data":{"k":"w"}})", "data: Forbidden: field is immutable when `immutable` is set"},
      {R"({"immutable":false})", "immutable: Forbidden: field is immutable"},
      {R"({"metadata":{"labels":{"a":"b"}}})", ""},
  };
  CheckUpdates({"", "v1", "ConfigMap"},
               R"({"metadata":{"name":"c"},"immutable":true,"data":{"k":"v"}})", kFrozen);
  const Case kSecret[] = {
      {R"({"type":"kubernetes.io/tls"})", "data[tls.crt]: Required value"},
  };
  CheckAll({"", "v1", "Secret"}, R"({"metadata":{"name":"s"},"type":"Opaque"})", kSecret);
  const char* const kClaim = R"({"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],
      "resources":{"requests":{"storage":"5Gi"}}}})";
  const Case kClaims[] = {
      {R"({"spec":{"accessModes":[]}})", "at least 1 access mode is required"},
      {R"({"spec":{"accessModes":["Any"]}})", "spec.accessModes: Unsupported value: \"Any\""},
      {R"({"spec":{"resources":null}})", "spec.resources[storage]: Required value"},
      {R"({"spec":{"resources":{"requests":{"storage":"0"}}}})", "must be greater than zero"},
  };
  CheckAll({"", "v1", "PersistentVolumeClaim"}, kClaim, kClaims);
  const Case kClaimUpdates[] = {
      {R"({"spec":{"volumeName":"pv"}})", ""},
      {R"({"spec":{"resources":{"requests":{"storage":"6Gi"}}}})",
       "spec: Forbidden: spec is immutable after creation except resources.requests for bound"},
      {R"({"spec":{"storageClassName":"fast"}})", ""},
      {R"({"spec":{"accessModes":["ReadOnlyMany"]}})", "spec is immutable after creation"},
  };
  CheckUpdates({"", "v1", "PersistentVolumeClaim"}, kClaim, kClaimUpdates);
  const Case kBoundUpdates[] = {
      {R"({"spec":{"resources":{"requests":{"storage":"6Gi"}}}})", ""},
      {R"({"spec":{"resources":{"requests":{"storage":"4Gi"}}}})",
       "field can not be less than previous value"},
      {R"({"spec":{"resources":{"limits":{"storage":"9Gi"}}}})",
       "spec is immutable after creation"},
  };
  CheckUpdates({"", "v1", "PersistentVolumeClaim"}, R"({"metadata":{"name":"c"},
      "spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"5Gi"}}},
      "status":{"phase":"Bound"}})",
               kBoundUpdates);
  const Case kVolume[] = {
      {R"({"spec":{"capacity":null}})", "spec.capacity: Required value"},
      {R"({"spec":{"hostPath":null}})", "must specify a volume type"},
      {R"({"spec":{"nfs":{"server":"a","path":"/b"}}})", "may not specify more than 1 volume type"},
  };
  CheckAll({"", "v1", "PersistentVolume"}, R"({"metadata":{"name":"v"},"spec":{
      "capacity":{"storage":"5Gi"},"accessModes":["ReadWriteMany"],
      "hostPath":{"path":"/a"}}})",
           kVolume);
}

TEST_F(ValidateTest, PoliciesAndRoles) {
  const char* const kClass = R"({"metadata":{"name":"high"},"value":1000})";
  const Case kClasses[] = {
      {R"({"value":1000000001})",
       "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"},
      {R"({"metadata":{"name":"system-x"}})", "metadata.name: Forbidden: priority class names"},
  };
  CheckAll({"scheduling.k8s.io", "v1", "PriorityClass"}, kClass, kClasses);
  const Case kClassUpdates[] = {
      {R"({"value":5})", "value: Forbidden: may not be changed in an update."},
      {R"({"description":"x"})", ""},
  };
  CheckUpdates({"scheduling.k8s.io", "v1", "PriorityClass"}, kClass, kClassUpdates);
  const Case kBudgets[] = {
      {R"({"spec":{"maxUnavailable":1}})", "minAvailable and maxUnavailable cannot be both set"},
      {R"({"spec":{"minAvailable":"half"}})", "a valid percent string must be a numeric string"},
      {R"({"spec":{"minAvailable":"150%"}})", "must not be greater than 100%"},
      {R"({"spec":{"minAvailable":-1}})", "must be greater than or equal to 0"},
  };
  CheckAll({"policy", "v1", "PodDisruptionBudget"},
           R"({"metadata":{"name":"b"},"spec":{"minAvailable":"50%"}})", kBudgets);
  const Case kRoles[] = {
      {R"({"rules":[{"apiGroups":[""],"resources":["pods"]}]})",
       "rules[0].verbs: Required value: verbs must contain at least one value"},
      {R"({"rules":[{"verbs":["get"],"nonResourceURLs":["/x"]}]})",
       "namespaced rules cannot apply to non-resource URLs"},
      {R"({"rules":[{"verbs":["get"],"resources":["pods"]}]})",
       "resource rules must supply at least one api group"},
  };
  CheckAll({"rbac.authorization.k8s.io", "v1", "Role"},
           R"({"metadata":{"name":"system:r"},"rules":[{"verbs":["get"],"apiGroups":[""],
           "resources":["pods"]}]})",
           kRoles);
  const char* const kBinding = R"({"metadata":{"name":"b"},
      "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"},
      "subjects":[{"kind":"User","name":"u"}]})";
  const Case kBindings[] = {
      {R"({"subjects":[{"kind":"ServiceAccount","name":"u"}]})", ""},
      {R"({"subjects":[{"kind":"User","name":"u","apiGroup":"x"}]})",
       "subjects[0].apiGroup: Unsupported value: \"x\": supported values: "},
      {R"({"subjects":[{"kind":"Robot","name":"u"}]})",
       "subjects[0].kind: Unsupported value: \"Robot\""},
  };
  CheckAll({"rbac.authorization.k8s.io", "v1", "RoleBinding"}, kBinding, kBindings);
  const Case kBindingUpdates[] = {{R"({"roleRef":{"name":"s"}})", "cannot change roleRef"}};
  CheckUpdates({"rbac.authorization.k8s.io", "v1", "RoleBinding"}, kBinding, kBindingUpdates);
  const Case kLeases[] = {
      {R"({"spec":{"leaseDurationSeconds":0}})",
       "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"},
  };
  CheckAll({"coordination.k8s.io", "v1", "Lease"},
           R"({"metadata":{"name":"l"},"spec":{"leaseDurationSeconds":15}})", kLeases);
  const Case kNodes[] = {
      {R"({"spec":{"taints":[{"key":"a","effect":"NoSchedule"},
          {"key":"a","effect":"NoSchedule"}]}})",
       "metadata.taints[1]: Duplicate value"},
  };
  CheckAll({"", "v1", "Node"}, R"({"metadata":{"name":"n.example"}})", kNodes);
}

TEST_F(ValidateTest, CustomResourceDefinitions) {
  const char* const kCrd =
      R"({"metadata":{"name":"things.example.com"},"spec":{"group":"example.com",
      "scope":"Namespaced","names":{"plural":"things","singular":"thing","kind":"Thing",
      "listKind":"ThingList"},"versions":[{"name":"v1","served":true,"storage":true,
      "schema":{"openAPIV3Schema":{"type":"object"}}}]}})";
  const Case kCases[] = {
      {R"({"metadata":{"name":"thing.example.com"}})",
       "must be spec.names.plural+\".\"+spec.group"},
      {R"({"spec":{"names":{"plural":"Things"}}})", "spec.names.plural: Invalid value: \"Things\""},
      {R"({"spec":{"names":{"listKind":"Thing"}}})", "kind and listKind may not be the same"},
      {R"({"metadata":{"name":"things.example"},"spec":{"group":"example"}})",
       "should be a domain with at least one dot"},
      {R"({"metadata":{"name":"things.x.k8s.io"},"spec":{"group":"x.k8s.io"}})",
       "protected groups must have approval annotation"},
      {R"({"spec":{"versions":[{"name":"v1","served":true,"storage":false,
          "schema":{"openAPIV3Schema":{"type":"object"}}}]}})",
       "must have exactly one version marked as storage version"},
      {R"({"spec":{"versions":[{"name":"v1","served":true,"storage":true}]}})",
       "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"},
      {R"({"spec":{"versions":[{"name":"V_1","served":true,"storage":true,
          "schema":{"openAPIV3Schema":{"type":"object"}}}]}})",
       "spec.versions[0].name: Invalid value: \"V_1\""},
      {R"({"spec":{"versions":[{"name":"v1","served":true,"storage":true,
          "additionalPrinterColumns":[{"name":"a","type":"text","jsonPath":"x"}],
          "schema":{"openAPIV3Schema":{"type":"object"}}}]}})",
       "additionalPrinterColumns[0].type: Invalid value: \"text\": must be one of "
       "boolean,date,integer,number,string"},
      {R"({"spec":{"versions":[{"name":"v1","served":true,"storage":true,
          "subresources":{"scale":{"specReplicasPath":".x","statusReplicasPath":".status.n"}},
          "schema":{"openAPIV3Schema":{"type":"object"}}}]}})",
       "should be a json path under .spec"},
      {R"({"spec":{"versions":[{"name":"v1","served":true,"storage":true,
          "schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{}}}}}]}})",
       "spec.validation.openAPIV3Schema.properties[a].type: Required value"},
      {R"({"spec":{"preserveUnknownFields":true}})", "cannot set to true"},
  };
  const GroupVersionKind kind = {"apiextensions.k8s.io", "v1", "CustomResourceDefinition"};
  CheckAll(kind, kCrd, kCases);
  const Case kUpdates[] = {
      {R"({"spec":{"scope":"Cluster"}})", "spec.scope: Invalid value: \"Cluster\""},
      {R"({"spec":{"names":{"shortNames":["t"]}}})", ""},
      {R"({"spec":{"names":{"kind":"Object"}}})", ""},
  };
  CheckUpdates(kind, kCrd, kUpdates);
  json::Value served = J(kCrd);
  json::Set(served, {"status", "conditions"}, J(R"([{"type":"Established","status":"True"}])"));
  const Case kServedUpdates[] = {
      {R"({"spec":{"names":{"kind":"Object"}}})",
       "spec.names.kind: Invalid value: \"Object\": field is immutable"},
      {R"({"spec":{"names":{"shortNames":["t"]}}})", ""},
  };
  CheckUpdates(kind, json::Print(served).c_str(), kServedUpdates);
}

TEST_F(ValidateTest, PodVolumeSources) {
  const Case kCases[] = {
      {R"({"spec":{"volumes":[{"name":"a","csi":{"driver":"A_"}}]}})",
       "spec.volumes[0].csi.driver: Invalid value: \"A_\""},
      {R"({"spec":{"volumes":[{"name":"a","rbd":{}}]}})",
       "spec.volumes[0].rbd.monitors: Required value\nspec.volumes[0].rbd.image: Required value"},
      {R"({"spec":{"volumes":[{"name":"a","downwardAPI":{"items":[{"path":"p"}]}}]}})",
       "spec.volumes[0].downwardAPI: Required value: one of fieldRef and resourceFieldRef"},
      {R"({"spec":{"volumes":[{"name":"a","downwardAPI":{"items":[
          {"path":"p","fieldRef":{"fieldPath":"metadata.labels"}}]}}]}})",
       ""},
      {R"({"spec":{"volumes":[{"name":"a","projected":{"sources":[
          {"serviceAccountToken":{"path":"t","expirationSeconds":5}}]}}]}})",
       "may not specify a duration less than 10 minutes"},
      {R"({"spec":{"volumes":[{"name":"a","projected":{"sources":[
          {"configMap":{"name":"x","items":[{"key":"k","path":"p"}]}},
          {"secret":{"name":"y","items":[{"key":"k","path":"p"}]}}]}}]}})",
       "spec.volumes[0].projected: Invalid value: \"y\": conflicting duplicate paths"},
      {R"({"spec":{"hostAliases":[{"ip":"10.0.0.1","hostnames":["a","b_"]}]}})",
       "spec.hostAliases[0].hostnames[1]: Invalid value: \"b_\""},
      {R"({"spec":{"dnsConfig":{"searches":["_a.b_c","."]}}})", ""},
      {R"({"spec":{"dnsConfig":{"searches":["a_.b"]}}})",
       "spec.dnsConfig.searches[0]: Invalid value: \"a_.b\""},
      {R"({"spec":{"containers":[{"name":"a","image":"b","volumeDevices":[
          {"name":"none","devicePath":"/a/../b"}]}]}})",
       "spec.containers[0].volumeDevices[0].name: Not found: \"none\"\n"
       "spec.containers[0].volumeDevices[0].devicePath: Invalid value: \"/a/../b\": can not "
       "contain backsteps ('..')"},
  };
  CheckAll(kPod, kGoodPod, kCases);
}

TEST_F(ValidateTest, SecurityContexts) {
  const Case kCases[] = {
      {R"({"spec":{"securityContext":{"sysctls":[{"name":"a b"}]}}})",
       "spec.securityContext.sysctls[0].name: Invalid value: \"a b\": must have at most 253"},
      {R"({"spec":{"securityContext":{"sysctls":[{"name":"net.x"},{"name":"net.x"}]}}})",
       "spec.securityContext.sysctls[1].name: Duplicate value: \"net.x\""},
      {R"({"spec":{"securityContext":{"seccompProfile":{"type":"Localhost"}}}})",
       "seccompProfile.localhostProfile: Required value: must be set when seccomp type is"},
      {R"({"spec":{"hostPID":true,"shareProcessNamespace":true,"securityContext":{}}})",
       "spec.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot "
       "both be enabled"},
      {R"({"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/x":"y"}}})",
       "\"x\": container not found"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","securityContext":{
          "windowsOptions":{"runAsUserName":""}}}]}})",
       "runAsUserName cannot be an empty string"},
  };
  CheckAll(kPod, kGoodPod, kCases);
}

TEST_F(ValidateTest, AmountsOfAWholePod) {
  const Case kCases[] = {
      {R"({"spec":{"resources":{"limits":{"nvidia.com/gpu":"1"}}}})",
       "spec.resources.limits[nvidia.com/gpu]: Unsupported value: \"nvidia.com/gpu\": supported "
       "values: \"cpu\", \"hugepages-\", \"memory\""},
      {R"({"spec":{"resources":{"requests":{"cpu":"2"},"limits":{"cpu":"1"}}}})",
       "spec.resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit"},
      {R"({"spec":{"resources":{"requests":{"cpu":"-1"}}}})",
       "spec.resources.requests[cpu]: Invalid value: \"-1\""},
      {R"({"spec":{"resources":{"limits":{"hugepages-2Mi":"2Mi"}}}})",
       "spec.resources: Forbidden: HugePages require cpu or memory"},
      {R"({"spec":{"resources":{"claims":[{"name":"x"}]}}})",
       "spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level"},
      {R"({"spec":{"os":{"name":"windows"},"resources":{"limits":{"cpu":"1"}}}})",
       "spec.resources: Forbidden: may not be set for a windows pod"},
      {R"({"spec":{"resources":{"requests":{"cpu":"1"}},"containers":[
          {"name":"a","image":"b","resources":{"requests":{"cpu":"700m"}}},
          {"name":"c","image":"b","resources":{"requests":{"cpu":"700m"}}}]}})",
       "spec.resources.requests[cpu]: Invalid value: \"1\": must be greater than or equal to "
       "aggregate container requests of 1400m"},
      {R"({"spec":{"resources":{"limits":{"memory":"1Gi"}},"containers":[
          {"name":"a","image":"b","resources":{"limits":{"memory":"2Gi"}}}]}})",
       "spec.resources.containers[0][memory].limits: Invalid value: \"2Gi\": must be less than or "
       "equal to pod limits of 1Gi"},
  };
  CheckAll(kPod, kGoodPod, kCases);
}

TEST_F(ValidateTest, AmountsOfResources) {
  const Case kCases[] = {
      {R"({"spec":{"containers":[{"name":"a","image":"b","resources":{
          "limits":{"nvidia.com/gpu":"1.5"}}}]}})",
       "limits[nvidia.com/gpu]: Invalid value: resource.Quantity{i:resource.int64Amount{value:15, "
       "scale:-1}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:\"\", Format:\"DecimalSI\"}: "
       "must be an integer"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","resources":{"limits":{"pods":"1"}}}]}})",
       "limits[pods]: Invalid value: \"pods\": must be a standard resource for containers"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","resources":{
          "limits":{"hugepages-2Mi":"2Mi"}}}]}})",
       "spec.containers[0].resources: Forbidden: HugePages require cpu or memory"},
      {R"({"spec":{"overhead":{"cpu":"-1"}}})", "spec.overhead.limits[cpu]: Invalid value: \"-1\""},
  };
  CheckAll(kPod, kGoodPod, kCases);
  const Case kLimits[] = {
      {R"({"spec":{"limits":[{"type":"PersistentVolumeClaim"}]}})",
       "spec.limits[0].limits: Required value: either minimum or maximum storage value"},
      {R"({"spec":{"limits":[{"type":"Container","max":{"cpu":"1"},"min":{"cpu":"1"},
          "maxLimitRequestRatio":{"cpu":"2"}}]}})",
       "ratio 2 is greater than max/min = 1.000000"},
      {R"({"spec":{"limits":[{"type":"Container","min":{"foo":"1"}}]}})",
       "spec.limits[0].min[foo]: Invalid value: \"foo\": must be a standard resource type or"},
  };
  CheckAll({"", "v1", "LimitRange"}, R"({"metadata":{"name":"l"},"spec":{"limits":[]}})", kLimits);
  const Case kQuotas[] = {
      {R"({"spec":{"hard":{"cpu":"1"},"scopes":["BestEffort"]}})",
       "unsupported scope applied to resource"},
      {R"({"spec":{"scopeSelector":{"matchExpressions":[
          {"scopeName":"PriorityClass","operator":"In"}]}}})",
       "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value"},
  };
  CheckAll({"", "v1", "ResourceQuota"}, R"({"metadata":{"name":"q"},"spec":{"hard":{"pods":"1"}}})",
           kQuotas);
  const Case kScopes[] = {
      {R"({"spec":{"scopes":["Terminating"]}})",
       "spec.scopes: Invalid value: []core.ResourceQuotaScope{\"Terminating\"}: field is "
       "immutable"},
      {R"({"spec":{"scopes":["NotTerminating","BestEffort"],"hard":{"pods":"2"}}})", ""},
  };
  CheckUpdates({"", "v1", "ResourceQuota"}, R"({"metadata":{"name":"q"},"spec":{
      "hard":{"pods":"1"},"scopes":["BestEffort","NotTerminating"]}})",
               kScopes);
}

TEST_F(ValidateTest, WhatIsRegisteredWithACluster) {
  const Case kNodes[] = {
      {R"({"spec":{"podCIDR":"x","podCIDRs":["x"]}})",
       "spec.podCIDRs[0]: Invalid value: []string{\"x\"}: must be valid CIDR"},
      {R"({"status":{"capacity":{"cpu":"-1"}}})", "status.capacity.cpu: Invalid value: \"-1\""},
  };
  CheckAll({"", "v1", "Node"}, R"({"metadata":{"name":"n"}})", kNodes);
  const Case kHooks[] = {
      {R"({"webhooks":[{"name":"x"}]})",
       "webhooks[0].name: Invalid value: \"x\": should be a domain with at least three segments"},
      {R"({"webhooks":[{"name":"a.b.c","sideEffects":"None","admissionReviewVersions":["v9"],
          "clientConfig":{}}]})",
       "clientConfig: Required value: exactly one of url or service is required\n"
       "webhooks[0].admissionReviewVersions: Invalid value: []string{\"v9\"}: must include at "
       "least one of v1, v1beta1"},
      {R"({"webhooks":[{"name":"a.b.c","sideEffects":"None","admissionReviewVersions":["v1"],
          "clientConfig":{"url":"https://u@h/x?a=b#c"}}]})",
       "clientConfig.url: Invalid value: \"u\": user information is not permitted in the URL\n"
       "webhooks[0].clientConfig.url: Invalid value: \"c\": fragments are not permitted in the "
       "URL\n"
       "webhooks[0].clientConfig.url: Invalid value: \"a=b\": query parameters are not permitted "
       "in the URL"},
      {R"({"webhooks":[{"name":"a.b.c","sideEffects":"None","admissionReviewVersions":["v1"],
          "clientConfig":{"service":{"name":"s","path":"x//"}}}]})",
       "clientConfig.service.namespace: Required value: service namespace is required\n"
       "webhooks[0].clientConfig.service.path: Invalid value: \"x//\": must start with a '/'\n"
       "webhooks[0].clientConfig.service.path: Invalid value: \"x//\": segment[0] may not be "
       "empty"},
      {R"({"webhooks":[{"name":"a.b.c","sideEffects":"None","admissionReviewVersions":["v1"],
          "clientConfig":{"url":"https://h"},"rules":[{"operations":["*"],"apiGroups":["*"],
          "apiVersions":["*"],"resources":["*/*","pods"]}]}]})",
       "resources: Invalid value: []string{\"*/*\", \"pods\"}: if '*/*' is present, must not "
       "specify other resources"},
  };
  CheckAll({"admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"},
           R"({"metadata":{"name":"h"}})", kHooks);
  const Case kScalers[] = {
      {R"({"spec":{"minReplicas":-1}})", "must be greater than or equal to 0"},
      {R"({"spec":{"maxReplicas":0}})", "spec.maxReplicas: Required value"},
      {R"({"spec":{"metrics":[{"type":"X"}]}})", "spec.metrics[0].type: Unsupported value: \"X\""},
      {R"({"spec":{"behavior":{"scaleDown":{"policies":[]}}}})",
       "spec.behavior.scaleDown.policies: Required value: must specify at least one Policy"},
  };
  CheckAll({"autoscaling", "v2", "HorizontalPodAutoscaler"},
           R"({"metadata":{"name":"h"},"spec":{"maxReplicas":3,
               "scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}})",
           kScalers);
}

}  // namespace
}  // namespace swell::api
