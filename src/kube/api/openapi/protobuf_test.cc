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
