// What kinds of today's Kubernetes must obey: devices and claims, ranges of addresses, classes of
// volumes, certificates of pods, policies; and what it asks of older kinds beside.
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

class NewerKindsTest : public ::testing::Test {
 protected:
  // With defaults, and by the schema as well as by the kind's own rules: as the server does it.
  std::string Check(const GroupVersionKind& gvk, json::Value object, const json::Value* old) {
    const KindPtr kind = scheme_->FindKind(gvk);
    if (kind == nullptr) return "no such kind";
    ApplyDefaults(*kind->schema, object);
    const std::vector<FieldError> shape = ValidateAgainst(*kind->schema, object);
    DefaultObject(*kind, object);
    std::vector<std::string> out;
    for (const FieldError& e : ValidateObject(*kind, object, old, shape)) {
      out.push_back(StrCat(e.field, ": ", e.message));
    }
    return Join(out, "\n");
  }

  template <size_t N>
  void CheckAll(const GroupVersionKind& gvk, const char* base, const Case (&cases)[N]) {
    EXPECT_EQ(Check(gvk, J(base), nullptr), "") << base;
    for (const Case& c : cases) CheckOne(gvk, base, c, nullptr);
  }

  // The same for updates: the patch makes the new object from the old one.
  template <size_t N>
  void CheckUpdates(const GroupVersionKind& gvk, const char* base, const Case (&cases)[N]) {
    json::Value old = J(base);
    ApplyDefaults(*scheme_->FindKind(gvk)->schema, old);
    DefaultObject(*scheme_->FindKind(gvk), old);
    for (const Case& c : cases) CheckOne(gvk, base, c, &old);
  }

  void CheckOne(const GroupVersionKind& gvk,
                const char* base,
                const Case& c,
                const json::Value* old) {
    json::Value object = J(base);
    json::ApplyMergePatch(object, J(c.patch));
    const std::string got = Check(gvk, object, old);
    const bool fine = *c.error == '\0' ? got.empty() : got.find(c.error) != std::string::npos;
    EXPECT_TRUE(fine) << c.patch << "\n  says:     " << got << "\n  expected: " << c.error;
  }

  std::unique_ptr<Scheme> scheme_ = Scheme::BuiltIn();
};

constexpr char kClaim[] = R"({"metadata":{"name":"c","namespace":"default"},
    "spec":{"devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"gpu"}}]}}})";

TEST_F(NewerKindsTest, AClaimAsksForDevices) {
  const GroupVersionKind gvk{"resource.k8s.io", "v1", "ResourceClaim"};
  const Case cases[] = {
      {R"({"spec":{"devices":{"requests":[]}}})", ""},
      {R"({"spec":{"devices":{"requests":[{"name":"gpu"}]}}})",
       "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is "
       "required"},
      {R"({"spec":{"devices":{"requests":[{"exactly":{"deviceClassName":"gpu"}}]}}})",
       "spec.devices.requests[0].name: Required value"},
      {R"({"spec":{"devices":{"requests":[{"name":"A","exactly":{"deviceClassName":"gpu"}}]}}})",
       "spec.devices.requests[0].name: Invalid value: \"A\""},
      {R"({"spec":{"devices":{"requests":[{"name":"a","exactly":{}}]}}})",
       "spec.devices.requests[0].exactly.deviceClassName: Required value"},
      {R"({"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"g",
          "allocationMode":"Some"}}]}}})",
       "spec.devices.requests[0].exactly.allocationMode: Unsupported value: \"Some\": supported "
       "values: \"All\", \"ExactCount\""},
      {R"({"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"g",
          "allocationMode":"All","count":2}}]}}})",
       "exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'"},
      {R"({"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"g"}},
          {"name":"a","exactly":{"deviceClassName":"g"}}]}}})",
       "spec.devices.requests[1]: Duplicate value: \"a\""},
      {R"({"spec":{"devices":{"constraints":[{"requests":["gpu"],"matchAttribute":"numa"}]}}})",
       "spec.devices.constraints[0].matchAttribute: Invalid value: \"numa\": a fully qualified "
       "name"},
      {R"({"spec":{"devices":{"constraints":[{"requests":["nic"],
          "matchAttribute":"example.com/numa"}]}}})",
       "spec.devices.constraints[0].requests[0]: Invalid value: \"nic\": must be the name of a "
       "request"},
      {R"({"spec":{"devices":{"config":[{"requests":["gpu"]}]}}})",
       "spec.devices.config[0].opaque: Required value"},
      {R"({"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"g",
          "selectors":[{"cel":{"expression":""}}]}}]}}})",
       "selectors[0].cel.expression: Required value"},
      {R"({"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"g",
          "selectors":[{"cel":{"expression":"device.driver == 'd'"}}]}}]}}})",
       ""},
      {R"({"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"g",
          "selectors":[{"cel":{"expression":"device.driver =="}}]}}]}}})",
       "selectors[0].cel.expression: Invalid value: \"device.driver ==\": compilation failed: "},
      {R"({"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"g",
          "selectors":[{"cel":{"expression":"devise.driver == 'd'"}}]}}]}}})",
       "compilation failed: "},
      {R"({"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"g",
          "tolerations":[{"operator":"Exists","value":"x"}]}}]}}})",
       "tolerations[0].value: Invalid value: \"x\": must be empty for operator `Exists`"}};
  CheckAll(gvk, kClaim, cases);
}

TEST_F(NewerKindsTest, AVolumeForOnePodHasNoOtherMode) {
  const Case cases[] = {
      {R"({"spec":{"accessModes":["ReadWriteOncePod"]}})", ""},
      {R"({"spec":{"accessModes":["ReadWriteOncePod","ReadWriteOnce"]}})",
       "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"}};
  CheckAll({"", "v1", "PersistentVolumeClaim"}, R"({"metadata":{"name":"c"},"spec":{
      "accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})",
           cases);
}

TEST_F(NewerKindsTest, SuspendedJobsArePlacedAnew) {
  // A queue places a job anew while it is suspended, and what it runs stays.
  const char* const kSuspended = R"({"metadata":{"name":"j"},"spec":{"suspend":true,"template":{
      "spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"b"}]}}},
      "status":{"startTime":"2026-01-01T00:00:00Z",
                "conditions":[{"type":"Suspended","status":"True"}]}})";
  const Case kSuspendedUpdates[] = {
      {R"({"spec":{"template":{"metadata":{"labels":{"a":"b"}},"spec":{"nodeSelector":{"c":"d"},
           "affinity":{"nodeAffinity":{}},"tolerations":[{"operator":"Exists"}]}}}})",
       ""},
      {R"({"spec":{"template":{"spec":{"containers":[{"name":"a","image":"b",
           "resources":{"requests":{"cpu":"1"}}}]}}}})",
       ""},
      {R"({"spec":{"template":{"spec":{"containers":[{"name":"a","image":"c"}]}}}})",
       "spec.template.spec: Invalid value"},
      {R"({"spec":{"template":{"spec":{"nodeSelector":{"c":"d/e"}}}}})", "Invalid value"},
  };
  CheckUpdates({"batch", "v1", "Job"}, kSuspended, kSuspendedUpdates);
}

TEST_F(NewerKindsTest, ContainersHaveRulesOfTheirOwnForRestarts) {
  const Case kCases[] = {
      {R"({"spec":{"containers":[{"name":"a","image":"b","restartPolicy":"Always"}]}})", ""},
      {R"({"spec":{"containers":[{"name":"a","image":"b","restartPolicy":"Sometimes"}]}})",
       "spec.containers[0].restartPolicy: Unsupported value: \"Sometimes\""},
      {R"({"spec":{"initContainers":[{"name":"i","image":"b","restartPolicy":"OnFailure"}]}})", ""},
      {R"({"spec":{"containers":[{"name":"a","image":"b","restartPolicy":"Never",
          "restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In","values":[42]}}]}]}})",
       ""},
      {R"({"spec":{"containers":[{"name":"a","image":"b",
          "restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In","values":[42]}}]}]}})",
       "spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart "
       "rules are used"},
      {R"({"spec":{"containers":[{"name":"a","image":"b","restartPolicy":"Never",
          "restartPolicyRules":[{"action":"Stop","exitCodes":{"operator":"In"}}]}]}})",
       "restartPolicyRules[0].action: Unsupported value: \"Stop\""},
      {R"({"spec":{"containers":[{"name":"a","image":"b","restartPolicy":"Never",
          "restartPolicyRules":[{"action":"Restart"}]}]}})",
       "restartPolicyRules[0].exitCodes: Required value"},
  };
  CheckAll({"", "v1", "Pod"}, R"({"metadata":{"name":"p","namespace":"default"},
      "spec":{"containers":[{"name":"a","image":"b"}]}})",
           kCases);
}

TEST_F(NewerKindsTest, AClaimsDefaultIsOneDevice) {
  const KindPtr kind = scheme_->FindKind({"resource.k8s.io", "v1", "ResourceClaim"});
  json::Value claim = J(kClaim);
  ApplyDefaults(*kind->schema, claim);
  DefaultObject(*kind, claim);
  const json::Value& request = json::GetArray(claim, {"spec", "devices", "requests"})[0];
  EXPECT_EQ(json::GetString(request, {"exactly", "allocationMode"}), "ExactCount");
  EXPECT_EQ(json::GetInt(request, {"exactly", "count"}), 1);
}

TEST_F(NewerKindsTest, AnAllocationIsTakenBackAndNotChanged) {
  const GroupVersionKind gvk{"resource.k8s.io", "v1", "ResourceClaim"};
  const Case fresh[] = {
      {R"({"status":{"allocation":{"devices":{"results":[{"request":"gpu","driver":"d.example.com",
          "pool":"n","device":"gpu-0"}]}}}})",
       ""},
      {R"({"status":{"allocation":{"devices":{"results":[{"request":"nic","driver":"d.example.com",
          "pool":"n","device":"gpu-0"}]}}}})",
       "status.allocation.devices.results[0].request: Invalid value: \"nic\""},
      {R"({"status":{"reservedFor":[{"resource":"pods","name":"p","uid":"u"}]}})",
       "status.reservedFor: Forbidden: may not be specified when `allocated` is not set"},
      {R"({"status":{"devices":[{"driver":"d.example.com","pool":"n","device":"g"}]}})",
       "must be an allocated device in the claim"},
      {R"({"spec":{"devices":{"requests":[]}}})", "spec: Invalid value"}};
  CheckUpdates(gvk, kClaim, fresh);
  const char* allocated = R"({"metadata":{"name":"c","namespace":"default"},
      "spec":{"devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"gpu"}}]}},
      "status":{"allocation":{"devices":{"results":[{"request":"gpu","driver":"d.example.com",
        "pool":"n","device":"gpu-0"}]}}}})";
  const Case later[] = {
      {R"({"status":{"reservedFor":[{"resource":"pods","name":"p","uid":"u"}]}})", ""},
      {R"({"status":{"allocation":null}})", ""},
      {R"({"status":{"allocation":{"devices":{"results":[]}}}})",
       "status.allocation: Invalid value"}};
  CheckUpdates(gvk, allocated, later);
}

TEST_F(NewerKindsTest, ASliceOffersDevices) {
  const GroupVersionKind gvk{"resource.k8s.io", "v1", "ResourceSlice"};
  const char* base = R"({"metadata":{"name":"s"},"spec":{"driver":"gpu.example.com","nodeName":"n1",
      "pool":{"name":"n1","resourceSliceCount":1},
      "devices":[{"name":"gpu-0","attributes":{"model":{"string":"H100"}},
        "capacity":{"memory":{"value":"80Gi"}}}]}})";
  const Case cases[] = {
      {R"({"spec":{"driver":null}})", "spec.driver: Required value"},
      {R"({"spec":{"pool":{"resourceSliceCount":0}}})",
       "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero"},
      {R"({"spec":{"nodeName":null}})",
       "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, "
       "`perDeviceNodeSelection` is required"},
      {R"({"spec":{"allNodes":true}})",
       "spec: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of"},
      {R"({"spec":{"devices":[{"name":"G"}]}})", "spec.devices[0].name: Invalid value: \"G\""},
      {R"({"spec":{"devices":[{"name":"a"},{"name":"a"}]}})",
       "spec.devices[1]: Duplicate value: \"a\""},
      {R"({"spec":{"devices":[{"name":"a","attributes":{"x":{}}}]}})",
       "spec.devices[0].attributes[x]: Invalid value: \"\": exactly one value must be specified"},
      {R"({"spec":{"devices":[{"name":"a","attributes":{"x-y":{"int":1}}}]}})",
       "spec.devices[0].attributes[x-y]: Invalid value: \"x-y\": a valid C identifier"},
      {R"({"spec":{"devices":[{"name":"a","nodeName":"n"}]}})",
       "can only be set if `perDeviceNodeSelection` is set to true"},
      {R"({"spec":{"devices":[{"name":"a","taints":[{"key":"k","effect":"Never"}]}]}})",
       "spec.devices[0].taints[0].effect: Unsupported value: \"Never\""},
      {R"({"spec":{"devices":[{"name":"a","consumesCounters":[{"counterSet":"s"}]}]}})",
       "consumesCounters[0].counters: Required value"}};
  CheckAll(gvk, base, cases);
  const Case updates[] = {{R"({"spec":{"devices":[]}})", ""},
                          {R"({"spec":{"driver":"other.example.com"}})", "spec.driver: Invalid"},
                          {R"({"spec":{"pool":{"name":"n2"}}})", "spec.pool.name: Invalid value"}};
  CheckUpdates(gvk, base, updates);
}

TEST_F(NewerKindsTest, ClassesOfDevicesAndVolumes) {
  const Case devices[] = {
      {R"({"spec":{"config":[{"opaque":{"driver":"d.example.com"}}]}})",
       "spec.config[0].opaque.parameters: Required value"},
      {R"({"spec":{"extendedResourceName":"gpu"}})",
       "spec.extendedResourceName: Invalid value: \"gpu\": must be a valid extended resource name"},
      {R"({"spec":{"extendedResourceName":"example.com/gpu"}})", ""}};
  CheckAll({"resource.k8s.io", "v1", "DeviceClass"}, R"({"metadata":{"name":"gpu"}})", devices);
  const char* volumes = R"({"metadata":{"name":"v"},"driverName":"csi.example.com",
      "parameters":{"iops":"1"}})";
  const Case fresh[] = {{R"({"driverName":null})", "driverName: Required value"},
                        {R"({"parameters":null})", "parameters: Required value"}};
  const Case changed[] = {
      {R"({"metadata":{"labels":{"a":"b"}}})", ""},
      {R"({"parameters":{"iops":"2"}})", "parameters: Forbidden: updates to parameters are"}};
  CheckAll({"storage.k8s.io", "v1", "VolumeAttributesClass"}, volumes, fresh);
  CheckUpdates({"storage.k8s.io", "v1", "VolumeAttributesClass"}, volumes, changed);
  const char* capacity = R"({"metadata":{"name":"c","namespace":"default"},
      "storageClassName":"fast","capacity":"1Gi"})";
  const Case rooms[] = {{R"({"storageClassName":null})", "storageClassName"},
                        {R"({"capacity":"-1"})", "capacity: Invalid value: \"-1\""}};
  CheckAll({"storage.k8s.io", "v1", "CSIStorageCapacity"}, capacity, rooms);
}

TEST_F(NewerKindsTest, RangesAndAddressesOfServices) {
  const char* range = R"({"metadata":{"name":"r"},"spec":{"cidrs":["10.0.0.0/16"]}})";
  const Case ranges[] = {
      {R"({"spec":{"cidrs":[]}})", "spec.cidrs: Required value: at least one CIDR required"},
      {R"({"spec":{"cidrs":["10.0.0.0"]}})", "spec.cidrs[0]: Invalid value: \"10.0.0.0\""},
      {R"({"spec":{"cidrs":["10.0.0.0/16","10.1.0.0/16"]}})",
       "may specify no more than one IP for each IP family"},
      {R"({"spec":{"cidrs":["10.0.0.0/16","fd00::/64"]}})", ""}};
  CheckAll({"networking.k8s.io", "v1", "ServiceCIDR"}, range, ranges);
  const Case changes[] = {
      {R"({"spec":{"cidrs":["10.0.0.0/16","fd00::/64"]}})", ""},
      {R"({"spec":{"cidrs":["10.1.0.0/16"]}})", "spec.cidrs[0]: Invalid value: \"10.1.0.0/16\""}};
  CheckUpdates({"networking.k8s.io", "v1", "ServiceCIDR"}, range, changes);
  const Case addresses[] = {
      {R"({"metadata":{"name":"fd00::1"}})", ""},
      {R"({"metadata":{"name":"ten"}})", "metadata.name: Invalid value: \"ten\""},
      {R"({"spec":{"parentRef":null}})", "spec.parentRef: Required value"},
      {R"({"spec":{"parentRef":{"name":null}}})", "spec.parentRef.name: Required value"}};
  CheckAll({"networking.k8s.io", "v1", "IPAddress"},
           R"({"metadata":{"name":"10.0.0.1"},
               "spec":{"parentRef":{"resource":"services","namespace":"d","name":"s"}}})",
           addresses);
}

TEST_F(NewerKindsTest, CertificatesOfPodsAndMigrations) {
  const char* request = R"({"metadata":{"name":"r","namespace":"default"},
      "spec":{"signerName":"example.com/s","podName":"p","podUID":"1","serviceAccountName":"a",
        "serviceAccountUID":"2","nodeName":"n","nodeUID":"3","stubPKCS10Request":"MIIB"}})";
  const Case requests[] = {
      {R"({"spec":{"signerName":"s"}})", "spec.signerName: Invalid value: \"s\""},
      {R"({"spec":{"podUID":""}})", "spec.podUID: Invalid value: \"\": must not be empty"},
      {R"({"spec":{"maxExpirationSeconds":60}})",
       "spec.maxExpirationSeconds: Invalid value: 60: must be in the range [3600, 7862400]"},
      {R"({"spec":{"signerName":"kubernetes.io/s","maxExpirationSeconds":90000}})",
       "must be in the range [3600, 86400]"},
      {R"({"spec":{"stubPKCS10Request":null}})", "spec.stubPKCS10Request: Required value"}};
  CheckAll({"certificates.k8s.io", "v1", "PodCertificateRequest"}, request, requests);
  const char* migration = R"({"metadata":{"name":"m"},
      "spec":{"resource":{"group":"apps","resource":"deployments"}},
      "status":{"conditions":[{"type":"Succeeded","status":"True","reason":"R","message":"",
        "lastTransitionTime":"2026-01-02T03:04:05Z"}]}})";
  const Case fresh[] = {
      {R"({"spec":{"resource":{"resource":""}}})", "spec.resource.resource: Required value"}};
  const Case changes[] = {
      {R"({"metadata":{"labels":{"a":"b"}}})", ""},
      {R"({"spec":{"resource":{"resource":"pods"}}})", "spec: Invalid value"},
      {R"({"status":{"conditions":[]}})", "Success condition cannot be set to false"}};
  for (const char* version : {"v1", "v1beta1"}) {
    const GroupVersionKind gvk{"storagemigration.k8s.io", version, "StorageVersionMigration"};
    CheckAll(gvk, migration, fresh);
    CheckUpdates(gvk, migration, changes);
  }
}

constexpr char kPolicy[] = R"({"metadata":{"name":"p.example.com"},"spec":{
    "matchConstraints":{"resourceRules":[{"operations":["CREATE"],"apiGroups":[""],
      "apiVersions":["v1"],"resources":["pods"]}]},
    "variables":[{"name":"n","expression":"size(object.spec.containers) "}],
    "validations":[{"expression":"variables.n < 3"}]}})";

TEST_F(NewerKindsTest, APolicyIsRefusedWhoseExpressionsCannotRun) {
  const Case cases[] = {
      {R"({"spec":{"matchConstraints":null}})", "spec.matchConstraints: Required value"},
      {R"({"spec":{"matchConstraints":{"resourceRules":[{"operations":["EAT"],"apiGroups":[""],
          "apiVersions":["v1"],"resources":["pods"]}]}}})",
       "resourceRules[0].operations[0]: Unsupported value: \"EAT\""},
      {R"({"spec":{"validations":null}})",
       "spec.validations: Required value: validations or auditAnnotations must contain at least "
       "one item"},
      {R"({"spec":{"validations":[{"expression":" "}]}})",
       "spec.validations[0].expression: Required value: expression is not specified"},
      {R"({"spec":{"validations":[{"expression":"object."}]}})",
       "spec.validations[0].expression: Invalid value: \"object.\": compilation failed"},
      {R"({"spec":{"validations":[{"expression":"authorizer.path('/x').check('get').allowed() "}]}})",
       ""},
      {R"({"spec":{"validations":[{"expression":"true","messageExpression":"authorizer.path('/x') "}]}})",
       "spec.validations[0].messageExpression: Invalid value"},
      {R"({"spec":{"validations":[{"expression":"params.x > 1"}]}})",
       "undeclared reference to 'params'"},
      {R"({"spec":{"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},
          "validations":[{"expression":"params.x > 1"}]}})",
       ""},
      {R"({"spec":{"validations":[{"expression":"variables.other > 1"}]}})",
       "undefined field 'other'"},
      {R"({"spec":{"variables":[{"name":"a","expression":"variables.n"},
          {"name":"n","expression":"1"}]}})",
       "spec.variables[0].expression: Invalid value: \"variables.n\""},
      {R"({"spec":{"validations":[{"expression":"true","reason":"Because"}]}})",
       "spec.validations[0].reason: Unsupported value: \"Because\""},
      {R"({"spec":{"validations":[{"expression":"true","message":"a\nb"}]}})",
       "spec.validations[0].message: Invalid value"},
      {R"({"spec":{"failurePolicy":"Perhaps"}})", "spec.failurePolicy: Unsupported value"}};
  CheckAll({"admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy"}, kPolicy, cases);
}

TEST_F(NewerKindsTest, ABindingSaysWhatHappens) {
  const char* base = R"({"metadata":{"name":"b"},
      "spec":{"policyName":"p","validationActions":["Deny"]}})";
  const Case cases[] = {
      {R"({"spec":{"policyName":null}})", "spec.policyName: Required value"},
      {R"({"spec":{"validationActions":[]}})", "spec.validationActions: Required value"},
      {R"({"spec":{"validationActions":["Deny","Warn"]}})", "must not contain both Deny and Warn"},
      {R"({"spec":{"validationActions":["Shout"]}})",
       "spec.validationActions[0]: Unsupported value: \"Shout\": supported values: \"Audit\", "
       "\"Deny\", \"Warn\""},
      {R"({"spec":{"paramRef":{"name":"x"}}})",
       "spec.paramRef.parameterNotFoundAction: Required value"},
      {R"({"spec":{"paramRef":{"parameterNotFoundAction":"Deny"}}})",
       "spec.paramRef: Required value: one of name or selector must be specified"}};
  CheckAll({"admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding"}, base, cases);
}

constexpr char kStatefulSet[] = R"({"metadata":{"name":"w"},"spec":{"serviceName":"s",
    "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
      "spec":{"containers":[{"name":"c","image":"i"}]}}}})";

TEST_F(NewerKindsTest, StatefulSetsKeepWhatTheirPodsAreFoundBy) {
  const GroupVersionKind kind{"apps", "v1", "StatefulSet"};
  const Case cases[] = {
      {R"({"spec":{"minReadySeconds":-1}})", "spec.minReadySeconds: Invalid value: -1"},
      {R"({"spec":{"ordinals":{"start":-1}}})", "spec.ordinals.start: Invalid value: -1"},
      {R"({"spec":{"persistentVolumeClaimRetentionPolicy":{"whenScaled":"X"}}})",
       "whenScaled: Unsupported value: \"X\""},
      {R"({"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":0}}}})",
       "rollingUpdate.maxUnavailable: Invalid value: "},
      {R"({"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":"20%"}}}})", ""},
      {R"({"spec":{"volumeClaimTemplates":[{"metadata":{"name":"d"},"spec":{}}]}})",
       "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value"}};
  CheckAll(kind, kStatefulSet, cases);
  const Case updates[] = {
      {R"({"spec":{"serviceName":"t"}})", "spec.serviceName: Invalid value: \"t\": field is immut"},
      {R"({"spec":{"podManagementPolicy":"Parallel"}})", "spec.podManagementPolicy: Invalid value"},
      {R"({"spec":{"replicas":3,"minReadySeconds":1,"revisionHistoryLimit":2}})", ""}};
  CheckUpdates(kind, kStatefulSet, updates);
}

TEST_F(NewerKindsTest, DaemonSetsReplacePodsInOneOfTwoWays) {
  const Case cases[] = {
      {R"({"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":0}}}})",
       "maxUnavailable: Required value: cannot be 0 when maxSurge is 0"},
      {R"({"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":"0%","maxSurge":"0%"}}}})",
       "maxUnavailable: Required value"},
      {R"({"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":1,"maxSurge":1}}}})",
       "maxSurge: Invalid value: "},
      {R"({"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":0,"maxSurge":"x"}}}})",
       "maxSurge: Invalid value: "},
      {R"({"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":0,"maxSurge":"20%"}}}})",
       ""}};
  CheckAll({"apps", "v1", "DaemonSet"}, R"({"metadata":{"name":"w"},"spec":{
      "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
        "spec":{"containers":[{"name":"c","image":"i"}]}}}})",
           cases);
}

TEST_F(NewerKindsTest, ScalersNameTheGroupOfTheirTarget) {
  const GroupVersionKind kind{"autoscaling", "v2", "HorizontalPodAutoscaler"};
  const char* base = R"({"metadata":{"name":"h"},"spec":{"maxReplicas":3,
      "scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}})";
  const Case cases[] = {
      {R"({"spec":{"scaleTargetRef":{"apiVersion":"v1"}}})", "must specify API group"},
      {R"({"spec":{"scaleTargetRef":{"apiVersion":"a/b/c"}}})", "unexpected GroupVersion string"},
      {R"({"spec":{"scaleTargetRef":{"apiVersion":"v1","kind":"ReplicationController"}}})", ""}};
  CheckAll(kind, base, cases);
  // What was written before this was asked may be changed otherwise.
  const char* old = R"({"metadata":{"name":"h"},"spec":{"maxReplicas":3,
      "scaleTargetRef":{"kind":"Deployment","name":"d"}}})";
  const Case updates[] = {{R"({"spec":{"maxReplicas":4}})", ""},
                          {R"({"spec":{"scaleTargetRef":{"kind":"ReplicaSet"}}})", "API group"}};
  CheckUpdates(kind, old, updates);
}

TEST_F(NewerKindsTest, ClassesOfRuntimesTolerateOnce) {
  const Case cases[] = {{R"({"handler":""})", "handler: Required value"},
                        {R"({"scheduling":{"tolerations":[{"key":"a","operator":"Exists"},
          {"key":"a","operator":"Exists"}]}})",
                         "scheduling.tolerations[1]: Duplicate value"},
                        {R"({"scheduling":{"tolerations":[{"operator":"X"}]}})",
                         "scheduling.tolerations[0].operator: Unsupported value"}};
  CheckAll({"node.k8s.io", "v1", "RuntimeClass"}, R"({"metadata":{"name":"a"},"handler":"h"})",
           cases);
}

TEST_F(NewerKindsTest, AFailurePolicyFitsItsJob) {
  const GroupVersionKind gvk{"batch", "v1", "Job"};
  const Case cases[] = {
      {R"({"spec":{"template":{"spec":{"restartPolicy":"OnFailure"}}}})",
       "spec.template.spec.restartPolicy: Invalid value: \"OnFailure\": only \"Never\" is "
       "supported when podFailurePolicy is specified"},
      {R"({"spec":{"podReplacementPolicy":"TerminatingOrFailed"}})",
       "spec.podReplacementPolicy: Unsupported value: \"TerminatingOrFailed\": supported values: "
       "\"Failed\""},
      {R"({"spec":{"podFailurePolicy":{"rules":[{"action":"FailIndex",
          "onExitCodes":{"operator":"In","values":[1]}}]}}})",
       "spec.podFailurePolicy.rules[0].action: Invalid value: \"FailIndex\": requires the "
       "backoffLimitPerIndex to be set"},
      {R"({"spec":{"completionMode":"Indexed","completions":2,"backoffLimitPerIndex":1,
          "podFailurePolicy":{"rules":[{"action":"FailIndex",
          "onExitCodes":{"operator":"In","values":[1]}}]}}})",
       ""},
      {R"({"spec":{"podFailurePolicy":{"rules":[{"action":"FailJob",
          "onExitCodes":{"operator":"In","values":[0,3,1,3]}}]}}})",
       "rules[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator\n"
       "spec.podFailurePolicy.rules[0].onExitCodes.values[3]: Duplicate value: 3\n"
       "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [0,3,1,3]: must be "
       "ordered"},
      {R"({"spec":{"podFailurePolicy":{"rules":[{"action":"FailJob",
          "onExitCodes":{"operator":"NotIn","values":[0]}}]}}})",
       ""},
      {R"({"spec":{"podFailurePolicy":{"rules":[{"action":"FailJob",
          "onExitCodes":{"containerName":"x","values":[]}}]}}})",
       "onExitCodes.operator: Required value: valid values: [\"In\" \"NotIn\"]\n"
       "spec.podFailurePolicy.rules[0].onExitCodes.containerName: Invalid value: \"x\": must be "
       "one of the container or initContainer names in the pod template\n"
       "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: []: at least one value"},
      {R"({"spec":{"podFailurePolicy":{"rules":[{"action":"Ignore"}]}}})",
       "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and "
       "OnPodConditions is required"},
      {R"({"spec":{"podFailurePolicy":{"rules":[{"action":"Ignore",
          "onExitCodes":{"operator":"In","values":[1]},"onPodConditions":[{"type":"A"}]}]}}})",
       "specifying both OnExitCodes and OnPodConditions is not supported"},
      {R"({"spec":{"podFailurePolicy":{"rules":[{"onPodConditions":[
          {"type":"a b","status":"Maybe"}]}]}}})",
       "spec.podFailurePolicy.rules[0].action: Required value"},
      {R"({"spec":{"podFailurePolicy":{"rules":[{"action":"Count","onPodConditions":[
          {"type":"a","status":"Maybe"}]}]}}})",
       "rules[0].onPodConditions[0].status: Unsupported value: \"Maybe\""},
      {R"({"spec":{"podFailurePolicy":{"rules":[{"action":"Count","onPodConditions":[
          {"type":"a b"}]}]}}})",
       "rules[0].onPodConditions[0].type: Invalid value: \"a b\""},
      {R"({"spec":{"managedBy":"kueue"}})",
       "spec.managedBy: Invalid value: \"kueue\": must be a domain-prefixed path"},
      {R"({"spec":{"managedBy":"A_/b"}})", "spec.managedBy: Invalid value: \"A_\": "},
      {R"({"spec":{"managedBy":"kueue.x-k8s.io/multikueue"}})", ""}};
  CheckAll(gvk, R"({"metadata":{"name":"j"},"spec":{
      "podFailurePolicy":{"rules":[{"action":"Ignore",
        "onPodConditions":[{"type":"DisruptionTarget"}]}]},
      "template":{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"b"}]}}}})",
           cases);
}

TEST_F(NewerKindsTest, AFailurePolicysConditionsAreTrueByDefault) {
  const KindPtr kind = scheme_->FindKind({"batch", "v1", "Job"});
  json::Value job = J(R"({"metadata":{"name":"j"},"spec":{"podFailurePolicy":{"rules":[
      {"action":"Ignore","onPodConditions":[{"type":"A"},{"type":"B","status":"False"}]}]}}})");
  DefaultObject(*kind, job);
  EXPECT_EQ(*json::Find(job, {"spec", "podFailurePolicy"}),
            J(R"({"rules":[{"action":"Ignore","onPodConditions":[
                {"type":"A","status":"True"},{"type":"B","status":"False"}]}]})"));
}

constexpr char kIndexedJob[] = R"({"metadata":{"name":"j"},"spec":{
    "completionMode":"Indexed","completions":5,
    "successPolicy":{"rules":[{"succeededIndexes":"0,2-4","succeededCount":4}]},
    "template":{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"b"}]}}}})";

TEST_F(NewerKindsTest, ASuccessPolicyNamesIndexesThatThereAre) {
  const GroupVersionKind gvk{"batch", "v1", "Job"};
  const Case cases[] = {
      {R"({"spec":{"completionMode":"NonIndexed"}})",
       "spec.successPolicy: Invalid value: {\"rules\":"},
      {R"({"spec":{"successPolicy":{"rules":[]}}})",
       "spec.successPolicy.rules: Required value: at least one rules must be specified"},
      {R"({"spec":{"successPolicy":{"rules":[{}]}}})",
       "spec.successPolicy.rules[0]: Required value: at least one of succeededCount or"},
      {R"({"spec":{"successPolicy":{"rules":[{"succeededIndexes":"0-5"}]}}})",
       "rules[0].succeededIndexes: Invalid value: \"0-5\": error parsing succeededIndexes: too "
       "large index: \"5\""},
      {R"({"spec":{"successPolicy":{"rules":[{"succeededIndexes":"1,x"}]}}})",
       "cannot convert string to integer for index: \"x\""},
      {R"({"spec":{"successPolicy":{"rules":[{"succeededIndexes":"3-1"}]}}})",
       "non-increasing order, previous: 3, current: 1"},
      {R"({"spec":{"successPolicy":{"rules":[{"succeededIndexes":"0-2,2"}]}}})",
       "non-increasing order, previous: 2, current: 2"},
      {R"({"spec":{"successPolicy":{"rules":[{"succeededIndexes":"0-1-2"}]}}})",
       "the fragment \"0-1-2\" violates"},
      {R"({"spec":{"successPolicy":{"rules":[{"succeededIndexes":"0-1","succeededCount":6}]}}})",
       "succeededCount: Invalid value: 6: must be less than or equal to 5 (the number of specified "
       "completions)\nspec.successPolicy.rules[0].succeededCount: Invalid value: 6: must be less "
       "than or equal to 2 (the number of indexes in the specified succeededIndexes field)"},
      {R"({"spec":{"successPolicy":{"rules":[{"succeededCount":-1}]}}})",
       "rules[0].succeededCount: Invalid value: -1: must be greater than or equal to 0"},
      {R"({"spec":{"backoffLimitPerIndex":1,"maxFailedIndexes":6}})",
       "spec.maxFailedIndexes: Invalid value: 6: must be less than or equal to completions"}};
  CheckAll(gvk, kIndexedJob, cases);
  const Case updates[] = {
      {R"({"spec":{"successPolicy":{"rules":[{"succeededCount":1}]}}})",
       "spec.successPolicy: Invalid value: {\"rules\":[{\"succeededCount\":1}]}: field is "
       "immutable"},
      {R"({"spec":{"backoffLimit":-1}})", "spec.backoffLimit: Invalid value: -1: must be greater"},
      {R"({"spec":{"backoffLimit":1,"activeDeadlineSeconds":10}})", ""}};
  CheckUpdates(gvk, kIndexedJob, updates);
}

TEST_F(NewerKindsTest, ACronJobsZoneHasAFieldOfItsOwn) {
  const GroupVersionKind gvk{"batch", "v1", "CronJob"};
  const char* base = R"({"metadata":{"name":"c"},"spec":{"schedule":"* * * * *",
      "timeZone":"Asia/Tokyo","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never",
      "containers":[{"name":"a","image":"b"}]}}}}}})";
  const Case cases[] = {
      {R"({"spec":{"schedule":"CRON_TZ=UTC * * * * *"}})",
       "spec.schedule: Invalid value: \"CRON_TZ=UTC * * * * *\": cannot use TZ or CRON_TZ in "
       "schedule, use timeZone field instead"},
      {R"({"spec":{"schedule":"TZ=UTC * * * * *"}})", "use timeZone field instead"}};
  CheckAll(gvk, base, cases);
}

TEST_F(NewerKindsTest, PortRangesOfNetworkPoliciesBeginWithANumber) {
  const Case cases[] = {
      {R"({"spec":{"ingress":[{"ports":[{"port":80,"endPort":79}]}]}})",
       "spec.ingress[0].ports[0].endPort: Invalid value: 79: must be greater than or equal to "
       "`port`"},
      {R"({"spec":{"ingress":[{"ports":[{"port":80,"endPort":70000}]}]}})",
       "spec.ingress[0].ports[0].endPort: Invalid value: 70000: must be between 1 and 65535"},
      {R"({"spec":{"ingress":[{"ports":[{"port":"http","endPort":90}]}]}})",
       "endPort: Invalid value: 90: may not be specified when `port` is non-numeric"},
      {R"({"spec":{"ingress":[{"ports":[{"endPort":90}]}]}})",
       "endPort: Invalid value: 90: may not be specified when `port` is not specified"},
      {R"({"spec":{"ingress":[{"ports":[{"port":80,"endPort":80}]}]}})", ""}};
  CheckAll({"networking.k8s.io", "v1", "NetworkPolicy"},
           R"({"metadata":{"name":"n"},"spec":{"podSelector":{}}})", cases);
}

TEST_F(NewerKindsTest, PodsAreSpreadOverAtLeastOneDomain) {
  const Case cases[] = {
      {R"({"spec":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"a",
          "whenUnsatisfiable":"ScheduleAnyway","minDomains":2}]}})",
       "spec.topologySpreadConstraints[0].minDomains: Invalid value: 2: can only use minDomains if "
       "whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"},
      {R"({"spec":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"a",
          "whenUnsatisfiable":"DoNotSchedule","minDomains":0}]}})",
       "minDomains: Invalid value: 0: must be greater than zero"},
      {R"({"spec":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"a",
          "whenUnsatisfiable":"DoNotSchedule","minDomains":2}]}})",
       ""},
      {R"({"spec":{"volumes":[{"name":"t","projected":{"sources":[
          {"serviceAccountToken":{"path":"../t"}}]}}]}})",
       "spec.volumes[0].projected.path: Invalid value: \"../t\": must not contain '..'"}};
  CheckAll({"", "v1", "Pod"},
           R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"a","image":"b"}]}})", cases);
}

constexpr const char* kPodWithVolumes = R"({"metadata":{"name":"a","namespace":"ns"},"spec":{
    "containers":[{"name":"a","image":"i"}],
    "volumes":[{"name":"e","emptyDir":{}},{"name":"c","configMap":{"name":"m"}}]}})";

TEST_F(NewerKindsTest, AVariableOfAFileNamesAnEmptyDirAndAPathBelowIt) {
  const auto says = [this](const char* ref) {
    json::Value pod = J(kPodWithVolumes);
    const std::string patch =
        StrCat(R"({"spec":{"containers":[{"name":"a","image":"i","env":[{"name":"X",)",
               R"("valueFrom":{"fileKeyRef":)", ref, "}}]}]}}");
    json::ApplyMergePatch(pod, J(patch));
    return Check({"", "v1", "Pod"}, pod, nullptr);
  };
  const std::string at = "spec.containers[0].env[0].valueFrom.fileKeyRef.";
  EXPECT_EQ(says(R"({"volumeName":"e","path":"d/env","key":"A B","optional":true})"), "");
  EXPECT_EQ(says(R"({"volumeName":"c","path":"../env","key":"A=B"})"),
            StrCat(at,
                   "key: Invalid value: \"A=B\": a valid environment variable name must "
                   "consist only of printable ASCII characters other than '='\n",
                   at,
                   "volumeName: Invalid value: \"c\": referenced volume must be of type "
                   "emptyDir\n",
                   at, "path: Invalid value: \"../env\": must not contain '..'"));
  EXPECT_EQ(says(R"({"volumeName":"x","path":"p","key":"K"})"),
            StrCat(at, "volumeName: Not found: \"x\""));
  EXPECT_EQ(says(R"({"volumeName":"e","path":"","key":"K"})"), StrCat(at, "path: Required value"));
}

TEST_F(NewerKindsTest, AVariableMayHoldAllAddressesOfTheNode) {
  const Case cases[] = {{R"({"spec":{"containers":[{"name":"a","image":"i","env":[{"name":"X",
      "valueFrom":{"fieldRef":{"fieldPath":"status.hostIPs"}}}]}]}})",
                         ""}};
  CheckAll({"", "v1", "Pod"}, kPodWithVolumes, cases);
}

TEST_F(NewerKindsTest, ACertificateOfThePodSaysWhoSignsItAndWhereItIsPut) {
  const auto says = [this](const char* source) {
    json::Value pod = J(kPodWithVolumes);
    const std::string patch =
        StrCat(R"({"spec":{"volumes":[{"name":"p","projected":{"sources":[)",
               R"({"secret":{"name":"s","items":[{"key":"k","path":"taken"}]}},)",
               R"({"podCertificate":)", source, "}]}}]}}");
    json::ApplyMergePatch(pod, J(patch));
    return Check({"", "v1", "Pod"}, pod, nullptr);
  };
  const std::string at = "spec.volumes[0].projected.sources[1].podCertificate";
  EXPECT_EQ(says(R"({"signerName":"a.b/c","keyType":"ED25519","credentialBundlePath":"b",
                "maxExpirationSeconds":7200,"userAnnotations":{"a.b/c":"d"},"user":1000})"),
            "");
  EXPECT_EQ(
      says(R"({"signerName":"abc","keyType":"RSA","keyPath":"taken","user":-1})"),
      StrCat(at,
             ".signerName: Invalid value: \"abc\": must be a fully qualified domain and "
             "path of the form 'example.com/signer-name'\n",
             at, ".user: Invalid value: -1: must be between 0 and 2147483647, inclusive\n", at,
             ".keyType: Unsupported value: \"RSA\": supported values: \"RSA3072\", \"RSA4096\", "
             "\"ECDSAP256\", \"ECDSAP384\", \"ECDSAP521\", \"ED25519\"\n",
             "spec.volumes[0].projected: Invalid value: \"taken\": conflicting duplicate "
             "paths"));
  EXPECT_EQ(says(R"({"signerName":"kubernetes.io/c","keyType":"ED25519",
                "maxExpirationSeconds":86401})"),
            StrCat(at,
                   ".maxExpirationSeconds: Invalid value: 86401: if provided, "
                   "maxExpirationSeconds must be <= 86400\n",
                   at,
                   ": Required value: specify at least one of credentialBundlePath, keyPath, "
                   "and certificateChainPath"));
}

}  // namespace
}  // namespace swell::api
