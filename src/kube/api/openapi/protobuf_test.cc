#include "kube/api/openapi/protobuf.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/strings.h"

namespace swell::api {
namespace {

struct Captured {
  const char* base64;
  const char* json;
};

// What kubectl 1.32.4 posts for its generators: create namespace, configmap, secret, quota,
// priorityclass, deployment, job, cronjob, rolebinding, clusterrole, clusterrolebinding,
// serviceaccount, service, pdb, token; auth can-i, can-i --list, whoami; service externalname.
constexpr Captured kCaptured[] = {
    {"azhzAAoPCgJ2MRIJTmFtZXNwYWNlEhkKEQoBeBIAGgAiACoAMgA4AEIAEgAaAgoAGgAiAA==",
     R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x"}})"},
    {"azhzAAoPCgJ2MRIJQ29uZmlnTWFwEiMKEQoBYxIAGgAiACoAMgA4AEIAEgYKAWESATESBgoBYhIBeBoAIgA=",
     R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"1","b":"x"}})"},
    {"azhzAAoMCgJ2MRIGU2VjcmV0EiMKEQoBcxIAGgAiACoAMgA4AEIAEgwKAXASB2h1bnRlcjIaABoAIgA=",
     R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"p":"aHVudGVyMg=="}})"},
    {"azhzAAoTCgJ2MRINUmVzb3VyY2VRdW90YRJNChEKAXESABoAIgAqADIAOABCABI2CgoKA2NwdRIDCgExCg8K"
     "Bm1lbW9yeRIFCgMyR2kKCwoEcG9kcxIDCgEzEgpCZXN0RWZmb3J0GgAaACIA",
     R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q"},"spec":{"hard":{"cpu":"1","memory":"2Gi","pods":"3"},"scopes":["BestEffort"]}})"},
    {"azhzAAolChRzY2hlZHVsaW5nLms4cy5pby92MRINUHJpb3JpdHlDbGFzcxImChQKBGhpZ2gSABoAIgAqADIA"
     "OABCABDoBxgBIgJoaSoFTmV2ZXIaACIA",
     R"({"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"high"},"value":1000,"globalDefault":true,"description":"hi","preemptionPolicy":"Never"})"},
    {"azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50ErIBChsKAWQSABoAIgAqADIAOABCAFoICgNhcHASAWQShAEI"
     "ABIKCggKA2FwcBIBZBpsChoKABIAGgAiACoAMgA4AEIAWggKA2FwcBIBZBJOEjAKBW5naW54EgduZ2lueDox"
     "KgAyCgoAEAAYUCIAKgBCAGoAcgCAAQCIAQCQAQCiAQAaADIAQgBKAFIAWABgAGgAggEAigEAmgEAwgEAIgIK"
     "ACgAOAAaDAgAEAAYACAAKAA4ABoAIgA=",
     R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","labels":{"app":"d"}},"spec":{"replicas":0,"selector":{"matchLabels":{"app":"d"}},"template":{"metadata":{"labels":{"app":"d"}},"spec":{"containers":[{"name":"nginx","image":"nginx:1","ports":[{"containerPort":80}]}]}}}})"},
    {"azhzAAoPCghiYXRjaC92MRIDSm9iEoIBChEKAWoSABoAIgAqADIAOABCABJjMmEKEAoAEgAaACIAKgAyADgA"
     "QgASTRIqCgFqEgdidXN5Ym94GgRlY2hvGgJoaSoAQgBqAHIAgAEAiAEAkAEAogEAGgVOZXZlcjIAQgBKAFIA"
     "WABgAGgAggEAigEAmgEAwgEAGgggACgAMAA6ABoAIgA=",
     R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{"template":{"spec":{"containers":[{"name":"j","image":"busybox","command":["echo","hi"]}],"restartPolicy":"Never"}}}})"},
    {"azhzAAoTCghiYXRjaC92MRIHQ3JvbkpvYhKkAQoSCgJjahIAGgAiACoAMgA4AEIAEosBCgsqLzUgKiAqICog"
     "KhoAKnoKEgoCY2oSABoAIgAqADIAOABCABJkMmIKEAoAEgAaACIAKgAyADgAQgASThInCgJjahIHYnVzeWJv"
     "eBoEZGF0ZSoAQgBqAHIAgAEAiAEAkAEAogEAGglPbkZhaWx1cmUyAEIASgBSAFgAYABoAIIBAIoBAJoBAMIB"
     "ABoAGgAiAA==",
     R"({"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"cj"},"spec":{"schedule":"*/5 * * * *","jobTemplate":{"metadata":{"name":"cj"},"spec":{"template":{"spec":{"containers":[{"name":"cj","image":"busybox","command":["date"]}],"restartPolicy":"OnFailure"}}}}}})"},
    {"azhzAAorChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgtSb2xlQmluZGluZxKIAQoSCgJyYhIAGgAi"
     "ACoAMgA4AEIAEioKBFVzZXISGXJiYWMuYXV0aG9yaXphdGlvbi5rOHMuaW8aBWFsaWNlIgASIAoOU2Vydmlj"
     "ZUFjY291bnQSABoDYm90IgdkZWZhdWx0GiQKGXJiYWMuYXV0aG9yaXphdGlvbi5rOHMuaW8SBFJvbGUaAXIa"
     "ACIA",
     R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"rb"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"alice"},{"kind":"ServiceAccount","name":"bot","namespace":"default"}],"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"}})"},
    {"azhzAAorChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgtDbHVzdGVyUm9sZRIlChIKAmNyEgAaACIA"
     "KgAyADgAQgASDwoDZ2V0KggvaGVhbHRoehoAIgA=",
     R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"cr"},"rules":[{"verbs":["get"],"nonResourceURLs":["/healthz"]}]})"},
    {"azhzAAoyChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEhJDbHVzdGVyUm9sZUJpbmRpbmcSbAoTCgNj"
     "cmISABoAIgAqADIAOABCABInCgVHcm91cBIZcmJhYy5hdXRob3JpemF0aW9uLms4cy5pbxoBZyIAGiwKGXJi"
     "YWMuYXV0aG9yaXphdGlvbi5rOHMuaW8SC0NsdXN0ZXJSb2xlGgJjchoAIgA=",
     R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"crb"},"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"g"}],"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cr"}})"},
    {"azhzAAoUCgJ2MRIOU2VydmljZUFjY291bnQSFAoSCgJzYRIAGgAiACoAMgA4AEIAGgAiAA==",
     R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"sa"}})"},
    {"azhzAAoNCgJ2MRIHU2VydmljZRJpCh8KA3N2YxIAGgAiACoAMgA4AEIAWgoKA2FwcBIDc3ZjEkIKGwoHODAt"
     "ODA4MBIDVENQGFAiBwgAEJA/GgAoABIKCgNhcHASA3N2YxoAIglDbHVzdGVySVA6AEIAUgBaAGAAaAAaAgoA"
     "GgAiAA==",
     R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"svc","labels":{"app":"svc"}},"spec":{"ports":[{"name":"80-8080","protocol":"TCP","port":80,"targetPort":8080}],"selector":{"app":"svc"},"type":"ClusterIP"}})"},
    {"azhzAAogCglwb2xpY3kvdjESE1BvZERpc3J1cHRpb25CdWRnZXQSOAoRCgFwEgAaACIAKgAyADgAQgASFwoJ"
     "CAEQABoDNTAlEgoKCAoDYXBwEgF4GgoIABgAIAAoADAAGgAiAA==",
     R"({"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"p"},"spec":{"minAvailable":"50%","selector":{"matchLabels":{"app":"x"}}},"status":{"disruptionsAllowed":0,
       "currentHealthy":0,"desiredHealthy":0,"expectedPods":0}})"},
    {"azhzAAooChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESDFRva2VuUmVxdWVzdBIaChAKABIAGgAiACoAMgA4"
     "AEIAEgAaBAoAEgAaACIA",
     R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}})"},
    {"azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSPAoQCgAS"
     "ABoAIgAqADIAOABCABIeChwKB2RlZmF1bHQSA2dldBoAIgAqBHBvZHMyADoAGggIABIAGgAgABoAIgA=",
     R"({"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"namespace":"default","verb":"get","resource":"pods"}},
       "status":{"allowed":false}})"},
    {"azhzAAoxChdhdXRob3JpemF0aW9uLms4cy5pby92MRIWU2VsZlN1YmplY3RSdWxlc1JldmlldxIjChAKABIA"
     "GgAiACoAMgA4AEIAEgkKB2RlZmF1bHQaBBgAIgAaACIA",
     R"({"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview","spec":{"namespace":"default"},
       "status":{"incomplete":false}})"},
    {"azhzAAotChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESEVNlbGZTdWJqZWN0UmV2aWV3EhoKEAoAEgAaACIA"
     "KgAyADgAQgASBgoECgASABoAIgA=",
     R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"})"},
    {"azhzAAoNCgJ2MRIHU2VydmljZRJZCh0KAmVuEgAaACIAKgAyADgAQgBaCQoDYXBwEgJlbhI0EgkKA2FwcBIC"
     "ZW4aACIMRXh0ZXJuYWxOYW1lOgBCAFINYS5leGFtcGxlLmNvbVoAYABoABoCCgAaACIA",
     R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"en","labels":{"app":"en"}},"spec":{"selector":{"app":"en"},"type":"ExternalName","externalName":"a.example.com"}})"},
};

std::string Varint(size_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>((value & 127) | 128);
  out += static_cast<char>(value);
  return out;
}

std::string Field(int number, std::string_view bytes) {
  return Varint(number << 3 | 2) + Varint(bytes.size()) + std::string(bytes);
}

std::string Number(int number, int value) { return Varint(number << 3) + Varint(value); }

std::string Body(std::string_view api_version, std::string_view kind, std::string_view raw) {
  return std::string("k8s\0", 4) + Field(1, Field(1, api_version) + Field(2, kind)) + Field(2, raw);
}

TEST(ProtobufTest, ReadsWhatKubectlPosts) {
  for (const Captured& c : kCaptured) {
    std::optional<std::string> body = Base64Decode(c.base64);
    ASSERT_TRUE(body.has_value()) << c.json;
    Result<json::Value> decoded = DecodeKubernetesProtobuf(*body);
    ASSERT_TRUE(decoded.ok()) << decoded.status().ToString() << " for " << c.json;
    EXPECT_TRUE(json::Equal(*decoded, *json::Parse(c.json)))
        << json::Print(*decoded) << "\ninstead of\n"
        << c.json;
  }
}

// Bodies that k8s.io/api 0.37.2 writes of the kinds that its schedulers and controllers use.
constexpr Captured kNewer[] = {
    {"azhzAAohChJyZXNvdXJjZS5rOHMuaW8vdjESC0RldmljZUNsYXNzEnkKEwoDZ3B1EgAaACIAKgAyADgAQgASYgomCi"
     "QKImRldmljZS5kcml2ZXIgPT0gJ2dwdS5leGFtcGxlLmNvbScSJwolCiMKD2dwdS5leGFtcGxlLmNvbRIQCg57Im1v"
     "ZGUiOiJtaWcifSIPZXhhbXBsZS5jb20vZ3B1GgAiAA==",
     R"({"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"gpu"},"spe)"
     R"(c":{"selectors":[{"cel":{"expression":"device.driver == 'gpu.example.com'"}}],"config")"
     R"(:[{"opaque":{"driver":"gpu.example.com","parameters":{"mode":"mig"}}}],"extendedResour)"
     R"(ceName":"example.com/gpu"}})"},
    {"azhzAAojChJyZXNvdXJjZS5rOHMuaW8vdjESDVJlc291cmNlQ2xhaW0SqQMKGAoBYxIAGgdkZWZhdWx0IgAqADIAOA"
     "BCABKsAQqpAQpOCgNncHUSRwoDZ3B1GgpFeGFjdENvdW50IAIoADIcCgNvbGQSBkV4aXN0cxoAIglOb0V4ZWN1dGUo"
     "ADoSChAKBm1lbW9yeRIGCgQxMEdpChcKA25pYxoQCgRmYXN0EgRyZG1hIgAoABIXCgNncHUSEGV4YW1wbGUuY29tL2"
     "51bWEaJQoDZ3B1Eh4KHAoPZ3B1LmV4YW1wbGUuY29tEgkKB3siYSI6MX0a3QEKiAEKaQozCgNncHUSD2dwdS5leGFt"
     "cGxlLmNvbRoCbjEiBWdwdS0wUhAKBm1lbW9yeRIGCgQxMEdpEjIKCUZyb21DbGFzcxIDZ3B1GiAKHgoPZ3B1LmV4YW"
     "1wbGUuY29tEgsKCXsiYiI6WzJdfRobChkSFwoNbWV0YWRhdGEubmFtZRICSW4aAm4xEg4KABoEcG9kcyIBcCoBdSJA"
     "Cg9ncHUuZXhhbXBsZS5jb20SAm4xGgVncHUtMCoLCgl7IngiOiJ5In0yFQoEZXRoMRILMTAuMC4wLjEvMjQaABoAIg"
     "A=",
     R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c","name)"
     R"(space":"default"},"spec":{"devices":{"requests":[{"name":"gpu","exactly":{"deviceClass)"
     R"(Name":"gpu","allocationMode":"ExactCount","count":2,"adminAccess":false,"tolerations":)"
     R"([{"key":"old","operator":"Exists","effect":"NoExecute","tolerationSeconds":0}],"capaci)"
     R"(ty":{"requests":{"memory":"10Gi"}}}},{"name":"nic","firstAvailable":[{"name":"fast","d)"
     R"(eviceClassName":"rdma"}]}],"constraints":[{"requests":["gpu"],"matchAttribute":"exampl)"
     R"(e.com/numa"}],"config":[{"requests":["gpu"],"opaque":{"driver":"gpu.example.com","para)"
     R"(meters":{"a":1}}}]}},"status":{"allocation":{"devices":{"results":[{"request":"gpu","d)"
     R"(river":"gpu.example.com","pool":"n1","device":"gpu-0","consumedCapacity":{"memory":"10)"
     R"(Gi"}}],"config":[{"source":"FromClass","requests":["gpu"],"opaque":{"driver":"gpu.exam)"
     R"(ple.com","parameters":{"b":[2]}}}]},"nodeSelector":{"nodeSelectorTerms":[{"matchFields)"
     R"(":[{"key":"metadata.name","operator":"In","values":["n1"]}]}]}},"reservedFor":[{"resou)"
     R"(rce":"pods","name":"p","uid":"u"}],"devices":[{"driver":"gpu.example.com","pool":"n1",)"
     R"("device":"gpu-0","data":{"x":"y"},"networkData":{"interfaceName":"eth1","ips":["10.0.0)"
     R"(.1/24"]}}]}})"},
    {"azhzAAorChJyZXNvdXJjZS5rOHMuaW8vdjESFVJlc291cmNlQ2xhaW1UZW1wbGF0ZRJFChEKAXQSABoAIgAqADIAOA"
     "BCABIwChgKABIAGgAiACoAMgA4AEIAWgYKAWESAWISFAoSChAKA2dwdRIJCgNncHUaACAAGgAiAA==",
     R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate","metadata":{"name":")"
     R"(t"},"spec":{"metadata":{"labels":{"a":"b"}},"spec":{"devices":{"requests":[{"name":"gp)"
     R"(u","exactly":{"deviceClassName":"gpu"}}]}}}})"},
    {"azhzAAojChJyZXNvdXJjZS5rOHMuaW8vdjESDVJlc291cmNlU2xpY2UStwIKEQoBcxIAGgAiACoAMgA4AEIAEqECCg"
     "9ncHUuZXhhbXBsZS5jb20SCAoCbjEQABgBGgJuMTL8AQoFZ3B1LTASEQoGZHJpdmVyEgcqBTEuMi4zEg0KBWZsYWdz"
     "EgQ4ATgAEgsKBWluZGV4EgIQABIJCgNtaWcSAhgAEg8KBW1vZGVsEgYiBEgxMDASDwoHbnVtYmVycxIEMAEwAhIPCg"
     "V3b3JkcxIGQgFhQgFiGisKBm1lbW9yeRIhCgYKBDgwR2kSFwoFCgMxR2kiDgoFCgMxR2kaBQoDMUdpIhkKA3NldBIS"
     "CgZtZW1vcnkSCAoGCgQ0MEdpQh0KA29sZBIAGgpOb1NjaGVkdWxlIggIpevcygYQAEgBUgFhWgFiYAFyFQoDY3B1Eg"
     "4aBRoDCgEyIgUKAwoBMVIBKhoAIgA=",
     R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"s"},"spe)"
     R"(c":{"driver":"gpu.example.com","pool":{"name":"n1","generation":0,"resourceSliceCount")"
     R"(:1},"nodeName":"n1","devices":[{"name":"gpu-0","attributes":{"index":{"int":0},"mig":{)"
     R"("bool":false},"model":{"string":"H100"},"driver":{"version":"1.2.3"},"numbers":{"ints")"
     R"(:[1,2]},"flags":{"bools":[true,false]},"words":{"strings":["a","b"]}},"capacity":{"mem)"
     R"(ory":{"value":"80Gi","requestPolicy":{"default":"1Gi","validRange":{"min":"1Gi","step")"
     R"(:"1Gi"}}}},"consumesCounters":[{"counterSet":"set","counters":{"memory":{"value":"40Gi)"
     R"("}}}],"taints":[{"key":"old","effect":"NoSchedule","timeAdded":"2026-01-02T03:04:05Z"})"
     R"(],"bindsToNode":true,"bindingConditions":["a"],"bindingFailureConditions":["b"],"allow)"
     R"(MultipleAllocations":true,"nodeAllocatableResources":{"cpu":{"mapping":{"deviceMultipl)"
     R"(ier":"2"},"overhead":{"perPod":"1"}}}}],"skipNodeOperations":["*"]}})"},
    {"azhzAAolChJyZXNvdXJjZS5rOHMuaW8vdjESD0RldmljZVRhaW50UnVsZRJsChEKAXISABoAIgAqADIAOABCABI4Ch"
     "wSD2dwdS5leGFtcGxlLmNvbRoCbjEiBWdwdS0wEhgKBmJyb2tlbhIDeWVzGglOb0V4ZWN1dGUaHQobCgFUEgRUcnVl"
     "GAMiCAil69zKBhAAKgFSMgFtGgAiAA==",
     R"({"apiVersion":"resource.k8s.io/v1","kind":"DeviceTaintRule","metadata":{"name":"r"},"s)"
     R"(pec":{"deviceSelector":{"driver":"gpu.example.com","pool":"n1","device":"gpu-0"},"tain)"
     R"(t":{"key":"broken","value":"yes","effect":"NoExecute"}},"status":{"conditions":[{"type)"
     R"(":"T","status":"True","observedGeneration":3,"lastTransitionTime":"2026-01-02T03:04:05)"
     R"(Z","reason":"R","message":"m"}]}})"},
    {"azhzAAonChFzdG9yYWdlLms4cy5pby92MRISQ1NJU3RvcmFnZUNhcGFjaXR5EjwKGAoBcxIAGgdkZWZhdWx0IgAqAD"
     "IAOABCABILCgkKBHpvbmUSAWEaBGZhc3QiBgoEMTBHaSoFCgMxR2kaACIA",
     R"({"apiVersion":"storage.k8s.io/v1","kind":"CSIStorageCapacity","metadata":{"name":"s",")"
     R"(namespace":"default"},"nodeTopology":{"matchLabels":{"zone":"a"}},"storageClassName":")"
     R"(fast","capacity":"10Gi","maximumVolumeSize":"1Gi"})"},
    {"azhzAAoqChFzdG9yYWdlLms4cy5pby92MRIVVm9sdW1lQXR0cmlidXRlc0NsYXNzEjEKEQoBdhIAGgAiACoAMgA4AE"
     "IAEg9jc2kuZXhhbXBsZS5jb20aCwoEaW9wcxIDMTAwGgAiAA==",
     R"({"apiVersion":"storage.k8s.io/v1","kind":"VolumeAttributesClass","metadata":{"name":"v)"
     R"("},"driverName":"csi.example.com","parameters":{"iops":"100"}})"},
    {"azhzAAojChRuZXR3b3JraW5nLms4cy5pby92MRILU2VydmljZUNJRFISTwoRCgFzEgAaACIAKgAyADgAQgASGAoLMT"
     "AuMC4wLjAvMTYKCWZkMDA6Oi82NBogCh4KBVJlYWR5EgRUcnVlGAAiCAil69zKBhAAKgAyAW0aACIA",
     R"({"apiVersion":"networking.k8s.io/v1","kind":"ServiceCIDR","metadata":{"name":"s"},"spe)"
     R"(c":{"cidrs":["10.0.0.0/16","fd00::/64"]},"status":{"conditions":[{"type":"Ready","stat)"
     R"(us":"True","lastTransitionTime":"2026-01-02T03:04:05Z","message":"m"}]}})"},
    {"azhzAAohChRuZXR3b3JraW5nLms4cy5pby92MRIJSVBBZGRyZXNzEj8KGAoIMTAuMC4wLjESABoAIgAqADIAOABCAB"
     "IjCiEKABIIc2VydmljZXMaB2RlZmF1bHQiCmt1YmVybmV0ZXMaACIA",
     R"({"apiVersion":"networking.k8s.io/v1","kind":"IPAddress","metadata":{"name":"10.0.0.1"})"
     R"(,"spec":{"parentRef":{"resource":"services","namespace":"default","name":"kubernetes"})"
     R"(}})"},
    {"azhzAAo1ChpzdG9yYWdlbWlncmF0aW9uLms4cy5pby92MRIXU3RvcmFnZVZlcnNpb25NaWdyYXRpb24SMAoRCgFtEg"
     "AaACIAKgAyADgAQgASFQoTCgRhcHBzEgtkZXBsb3ltZW50cxoEEgIxNxoAIgA=",
     R"({"apiVersion":"storagemigration.k8s.io/v1","kind":"StorageVersionMigration","metadata")"
     R"(:{"name":"m"},"spec":{"resource":{"group":"apps","resource":"deployments"}},"status":{)"
     R"("resourceVersion":"17"}})"},
    {"azhzAAovChZjZXJ0aWZpY2F0ZXMuazhzLmlvL3YxEhVQb2RDZXJ0aWZpY2F0ZVJlcXVlc3QSawoYCgFwEgAaB2RlZm"
     "F1bHQiACoAMgA4AEIAEj4KDWV4YW1wbGUuY29tL3MSAXAaATEiAnNhKgEyMgFuOgEzQJAcWhIKDWV4YW1wbGUuY29t"
     "L2ESAWJiAzCCARoPEgNQRU0iCAil69zKBhAAGgAiAA==",
     R"({"apiVersion":"certificates.k8s.io/v1","kind":"PodCertificateRequest","metadata":{"nam)"
     R"(e":"p","namespace":"default"},"spec":{"signerName":"example.com/s","podName":"p","podU)"
     R"(ID":"1","serviceAccountName":"sa","serviceAccountUID":"2","nodeName":"n","nodeUID":"3")"
     R"(,"maxExpirationSeconds":3600,"unverifiedUserAnnotations":{"example.com/a":"b"},"stubPK)"
     R"(CS10Request":"MIIB"},"status":{"certificateChain":"PEM","notBefore":"2026-01-02T03:04:)"
     R"(05Z"}})"},
    {"azhzAAo8Ch9hZG1pc3Npb25yZWdpc3RyYXRpb24uazhzLmlvL3YxEhlWYWxpZGF0aW5nQWRtaXNzaW9uUG9saWN5Et"
     "MBChEKAXASABoAIgAqADIAOABCABKvAQoPCgJ2MRIJQ29uZmlnTWFwEl4KCAoGCgFhEgFiEgAaLwoBeBIqCgZDUkVB"
     "VEUKBlVQREFURRIYCgASAnYxGgRwb2RzIgpOYW1lc3BhY2VkIhMSEQoBKhIMCgRhcHBzEgEqGgEqOgpFcXVpdmFsZW"
     "50GhkKBHRydWUSAW0aCUZvcmJpZGRlbiIDJ20nIgRGYWlsKggKAWsSAyd2JzIJCgFjEgR0cnVlOgYKAXYSATEaDAgB"
     "EggKBhIBZhoBdxoAIgA=",
     R"({"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","me)"
     R"(tadata":{"name":"p"},"spec":{"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},"match)"
     R"(Constraints":{"namespaceSelector":{"matchLabels":{"a":"b"}},"objectSelector":{},"resou)"
     R"(rceRules":[{"resourceNames":["x"],"operations":["CREATE","UPDATE"],"apiGroups":[""],"a)"
     R"(piVersions":["v1"],"resources":["pods"],"scope":"Namespaced"}],"excludeResourceRules":)"
     R"([{"operations":["*"],"apiGroups":["apps"],"apiVersions":["*"],"resources":["*"]}],"mat)"
     R"(chPolicy":"Equivalent"},"validations":[{"expression":"true","message":"m","reason":"Fo)"
     R"(rbidden","messageExpression":"'m'"}],"failurePolicy":"Fail","auditAnnotations":[{"key")"
     R"(:"k","valueExpression":"'v'"}],"matchConditions":[{"name":"c","expression":"true"}],"v)"
     R"(ariables":[{"name":"v","expression":"1"}]},"status":{"observedGeneration":1,"typeCheck)"
     R"(ing":{"expressionWarnings":[{"fieldRef":"f","warning":"w"}]}}})"},
    {"azhzAApDCh9hZG1pc3Npb25yZWdpc3RyYXRpb24uazhzLmlvL3YxEiBWYWxpZGF0aW5nQWRtaXNzaW9uUG9saWN5Qm"
     "luZGluZxJMChEKAWISABoAIgAqADIAOABCABI3CgFwEhIKAWMSB2RlZmF1bHQiBERlbnkaEQoICgYKAWESAWI6BUV4"
     "YWN0IgREZW55IgVBdWRpdBoAIgA=",
     R"({"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBindi)"
     R"(ng","metadata":{"name":"b"},"spec":{"policyName":"p","paramRef":{"name":"c","namespace)"
     R"(":"default","parameterNotFoundAction":"Deny"},"matchResources":{"namespaceSelector":{")"
     R"(matchLabels":{"a":"b"}},"matchPolicy":"Exact"},"validationActions":["Deny","Audit"]}})"},
};

TEST(ProtobufTest, ReadsWhatTodaysClientsWrite) {
  for (const Captured& c : kNewer) {
    const Result<json::Value> decoded =
        DecodeKubernetesProtobuf(Base64Decode(c.base64).value_or(""));
    ASSERT_TRUE(decoded.ok()) << decoded.status().ToString() << " for " << c.json;
    EXPECT_TRUE(json::Equal(*decoded, *json::Parse(c.json)))
        << json::Print(*decoded) << "\ninstead of\n"
        << c.json;
  }
}

TEST(ProtobufTest, ReadsNestedPodFields) {
  // A volume's source and a probe's handler are one level deeper on the wire than in JSON.
  std::string empty_dir = Field(1, Field(1, "scratch") + Field(2, Field(2, "")));
  std::string probe =
      Field(10, Field(1, Field(2, Field(1, "/z") + Field(2, Number(1, 0) + Number(2, 80)))) +
                    Number(4, 7));
  std::string limits = Field(8, Field(1, Field(1, "nvidia.com/gpu") + Field(2, Field(1, "4"))));
  std::string container = Field(2, Field(1, "main") + limits + probe);
  std::string grace = Number(4, 0);
  Result<json::Value> pod = DecodeKubernetesProtobuf(
      Body("v1", "Pod",
           Field(1, Field(1, "p") + Field(8, "")) + Field(2, empty_dir + container + grace)));
  ASSERT_TRUE(pod.ok()) << pod.status().ToString();
  EXPECT_TRUE(json::Equal(*pod, *json::Parse(R"({"apiVersion":"v1","kind":"Pod",
      "metadata":{"name":"p"},"spec":{"volumes":[{"name":"scratch","emptyDir":{}}],
      "containers":[{"name":"main","resources":{"limits":{"nvidia.com/gpu":"4"}},
      "livenessProbe":{"httpGet":{"path":"/z","port":80},"periodSeconds":7}}],
      "terminationGracePeriodSeconds":0}})")))
      << json::Print(*pod);
}

TEST(ProtobufTest, ReadsTimesAndDeleteOptions) {
  std::string time = Field(4, Number(1, 5) + Number(2, 0));
  Result<json::Value> lease = DecodeKubernetesProtobuf(
      Body("coordination.k8s.io/v1", "Lease", Field(2, Field(1, "me") + time)));
  ASSERT_TRUE(lease.ok()) << lease.status().ToString();
  EXPECT_EQ(json::GetString(*lease, {"spec", "renewTime"}), "1970-01-01T00:00:05.000000Z");
  // Go's year 1, and beyond what JSON can say.
  for (const auto& [seconds, text] :
       {std::pair(int64_t{-62'135'596'795}, "0001-01-01T00:00:05.000000Z"),
        std::pair(int64_t{253'402'300'799}, "9999-12-31T23:59:59.000000Z"),
        std::pair(int64_t{253'402'300'800}, "")}) {
    time = Field(4, Varint(1 << 3) + Varint(static_cast<uint64_t>(seconds)));
    lease = DecodeKubernetesProtobuf(Body("coordination.k8s.io/v1", "Lease", Field(2, time)));
    EXPECT_EQ(lease.ok() ? json::GetString(*lease, {"spec", "renewTime"}) : "", text);
  }
  Result<json::Value> options = DecodeKubernetesProtobuf(
      Body("policy/v1", "DeleteOptions", Number(1, 0) + Field(4, "Foreground")));
  ASSERT_TRUE(options.ok()) << options.status().ToString();
  EXPECT_EQ(json::GetString(*options, {"propagationPolicy"}), "Foreground");
  EXPECT_TRUE(json::Find(*options, {"gracePeriodSeconds"}) != nullptr);
}

// What client-go sends for an operator that installs its own definition.
TEST(ProtobufTest, ReadsDefinitionsOfCustomKinds) {
  const std::string texts = Field(5, "array") + Field(24, Field(1, Field(5, "string")));
  const std::string open = Field(5, "object") + Field(30, Number(1, 1));
  const std::string typed = Field(5, "object") + Field(30, Field(2, Field(5, "integer")));
  const std::string count = Field(5, "integer") + std::string("\x59\0\0\0\0\0\0\xf0\x3f", 9) +
                            Field(8, Field(1, "3")) + Field(20, Field(1, "3"));
  std::string properties;
  for (const auto& [name, schema] : std::map<std::string, std::string>{
           {"count", count}, {"open", open}, {"texts", texts}, {"typed", typed}}) {
    properties += Field(29, Field(1, name) + Field(2, schema));
  }
  const std::string schema =
      Field(1, Field(5, "object") + properties + Number(38, 1) +
                   Field(44, Field(1, "self.count > 0") + Field(2, "no count")));
  const std::string version = Field(1, "v1") + Number(2, 1) + Number(3, 0) + Field(4, schema) +
                              Field(5, Field(1, "") + Field(2, Field(1, ".spec.n")));
  const Result<json::Value> got = DecodeKubernetesProtobuf(
      Body("apiextensions.k8s.io/v1", "CustomResourceDefinition",
           Field(1, Field(1, "foos.example.com")) +
               Field(2, Field(1, "example.com") + Field(3, Field(1, "foos") + Field(4, "Foo")) +
                            Field(4, "Namespaced") + Field(7, version))));
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_TRUE(json::Equal(*got, *json::Parse(R"({"apiVersion":"apiextensions.k8s.io/v1",
      "kind":"CustomResourceDefinition","metadata":{"name":"foos.example.com"},
      "spec":{"group":"example.com","names":{"plural":"foos","kind":"Foo"},"scope":"Namespaced",
        "versions":[{"name":"v1","served":true,"storage":false,"schema":{"openAPIV3Schema":{
          "type":"object","properties":{
            "count":{"type":"integer","minimum":1.0,"default":3,"enum":[3]},
            "open":{"type":"object","additionalProperties":true},
            "texts":{"type":"array","items":{"type":"string"}},
            "typed":{"type":"object","additionalProperties":{"type":"integer"}}},
          "x-kubernetes-preserve-unknown-fields":true,
          "x-kubernetes-validations":[{"rule":"self.count > 0","message":"no count"}]}},
          "subresources":{"status":{},"scale":{"specReplicasPath":".spec.n"}}}]}})")))
      << json::Print(*got);
}

TEST(ProtobufTest, FieldsOfNewerVersionsAreSkipped) {
  Result<json::Value> got =
      DecodeKubernetesProtobuf(Body("v1", "Namespace", Field(1, Field(1, "x")) + Field(15, "?")));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(json::GetString(*got, {"metadata", "name"}), "x");
}

// A number that is larger than any in the texts stands for no message inside a message.
TEST(ProtobufTest, NumbersThatAreTooLargeAreSkipped) {
  const std::string rule = Field(2, Field(131'074, Field(1, "pods")) + Field(1, "CREATE"));
  const Result<json::Value> got =
      DecodeKubernetesProtobuf(Body("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy",
                                    Field(1, Field(1, "p")) + Field(2, Field(2, Field(3, rule)))));
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_EQ(json::Print(*json::Find(*got, {"spec", "matchConstraints", "resourceRules"})),
            R"([{"operations":["CREATE"]}])");
}

TEST(ProtobufTest, RefusesUnknownKinds) {
  for (const char* kind : {"Nothing", "ObjectMeta", "PodSpec"}) {
    EXPECT_EQ(DecodeKubernetesProtobuf(Body("v1", kind, "")).status().code(),
              Code::kUnsupportedMediaType)
        << kind;
  }
}

TEST(ProtobufTest, WhatIsEmbeddedIsAsDeepAsADocumentMayBe) {
  auto revision = [](int depth) {
    return DecodeKubernetesProtobuf(
        Body("apps/v1", "ControllerRevision",
             Field(2, Field(1, std::string(depth, '[') + std::string(depth, ']')))));
  };
  ASSERT_TRUE(revision(63).ok()) << revision(63).status().ToString();
  EXPECT_TRUE(json::Parse(json::Print(*revision(63))).ok());
  EXPECT_EQ(revision(64).status().code(), Code::kBadRequest);
}

TEST(ProtobufTest, RefusesEveryCutAndFlippedBody) {
  EXPECT_EQ(DecodeKubernetesProtobuf("").status().code(), Code::kBadRequest);
  EXPECT_EQ(DecodeKubernetesProtobuf("{}").status().code(), Code::kBadRequest);
  for (const Captured& c : {kCaptured[0], kCaptured[5]}) {
    std::string whole = *Base64Decode(c.base64);
    for (size_t n = 0; n < whole.size(); ++n) {
      (void)DecodeKubernetesProtobuf(whole.substr(0, n)).ok();  // any answer, no harm
      std::string flipped = whole;
      flipped[n] = static_cast<char>(flipped[n] ^ 0x5A);
      (void)DecodeKubernetesProtobuf(flipped).ok();
    }
  }
  std::string bad_text = Body("v1", "Namespace", Field(1, Field(1, "\xff\xfe")));
  EXPECT_EQ(DecodeKubernetesProtobuf(bad_text).status().code(), Code::kBadRequest);
}

}  // namespace
}  // namespace swell::api
