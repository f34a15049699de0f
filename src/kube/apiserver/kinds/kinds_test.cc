// What is said about requests as such, and what single kinds do: options, versions on their way
// out, definitions whose names are taken, ports of nodes.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/schema/scheme.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

constexpr char kCrds[] = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

class KindsTest : public ::testing::Test {
 protected:
  KindsTest() { server.Boot(); }
  TestServer server;
};

TEST_F(KindsTest, OptionsAreCheckedInKnownWords) {
  struct Case {
    const char* method;
    const char* query;
    const char* body;
    const char* message;
  };
  const Case cases[] = {
      {"POST", "dryRun=Foo", "{}",
       "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: []string{\"Foo\"}: "
       "supported values: \"All\""},
      {"POST", "fieldValidation=Foo", "{}",
       "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"Foo\": "
       "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""},
      {"POST", "fieldManager=a%0Ab", "{}",
       "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: \"a\\nb\": invalid "
       "character U+000A (at position 1)"},
      {"DELETE", "", R"({"propagationPolicy":"Foo"})",
       "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Foo\": "
       "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""},
      {"DELETE", "", R"({"propagationPolicy":"Orphan","orphanDependents":true})",
       "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"Orphan\": "
       "orphanDependents and deletionPropagation cannot be both set"},
      {"GET", "resourceVersionMatch=Exact", "",
       "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
       "resourceVersionMatch is forbidden unless resourceVersion is provided"},
  };
  for (const Case& c : cases) {
    const Answer answer =
        server.Send(server.Request(c.method, StrCat(kMaps, "?", c.query), c.body));
    EXPECT_EQ(answer.status, 422) << c.message;
    EXPECT_EQ(answer.Message(), c.message);
    EXPECT_EQ(answer.Str({"details", "group"}), "meta.k8s.io");
  }
}

TEST_F(KindsTest, FlagsOfQueriesAreWhateverIsNotANo) {
  for (const char* query : {"watch", "watch=1", "watch=foo"}) {
    EXPECT_EQ(server.Watch(StrCat(kMaps, "?", query)).sink->stream_status, 200) << query;
  }
  for (const char* query : {"watch=0", "watch=False"}) {
    EXPECT_EQ(server.Get(StrCat(kMaps, "?", query)).Str({"kind"}), "ConfigMapList") << query;
  }
}

TEST_F(KindsTest, DocumentsOfOtherTypesAreNamedAsDecodersNameThem) {
  const std::string deployments = "/apis/apps/v1/namespaces/default/deployments";
  EXPECT_EQ(
      server.Post(deployments, R"({"metadata":{"name":"d"},"spec":{"replicas":"3"}})").Message(),
      "Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal "
      "string into Go struct field DeploymentSpec.spec.replicas of type int32");
  server.Post(kMaps, R"({"metadata":{"name":"m"}})");
  const Answer merge = server.Merge(StrCat(kMaps, "/m"), R"({"data":{"k":1}})");
  EXPECT_EQ(merge.status, 422);
  EXPECT_NE(merge.Message().find("json: cannot unmarshal number into Go struct field "
                                 "ConfigMap.data of type string"),
            std::string::npos);
  const Answer strategic = server.Patch(StrCat(kMaps, "/m"), R"({"data":{"k":1}})",
                                        "application/strategic-merge-patch+json");
  EXPECT_EQ(strategic.Message(),
            " \"\" is invalid: patch: Invalid value: \"map[data:map[k:1]]\": cannot convert int64 "
            "to string");
}

TEST_F(KindsTest, VersionsOnTheirWayOutWarn) {
  const Answer old = server.Get("/apis/policy/v1beta1/poddisruptionbudgets");
  ASSERT_EQ(old.warnings.size(), 1U);
  EXPECT_EQ(old.warnings[0],
            "299 - \"policy/v1beta1 PodDisruptionBudget is deprecated in v1.21+, unavailable in "
            "v1.25+; use policy/v1 PodDisruptionBudget\"");
  EXPECT_TRUE(server.Get("/apis/policy/v1/poddisruptionbudgets").warnings.empty());
}

TEST_F(KindsTest, AutoscalersAreOneKindInAllVersions) {
  const std::string v1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
  const Answer made = server.Post(v1, R"({"metadata":{"name":"h"},"spec":{"maxReplicas":5,
      "targetCPUUtilizationPercentage":70,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment",
      "name":"d"}}})");
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(json::GetInt(made.body, {"spec", "targetCPUUtilizationPercentage"}), 70);
  const Answer v2 =
      server.Get("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/h");
  const json::Array& metrics = json::GetArray(v2.body, {"spec", "metrics"});
  ASSERT_EQ(metrics.size(), 1U) << v2.text;
  EXPECT_EQ(json::GetInt(metrics[0], {"resource", "target", "averageUtilization"}), 70);
}

TEST_F(KindsTest, ComponentsAreMadeUpAndReadOnly) {
  EXPECT_EQ(json::GetArray(server.Get("/api/v1/componentstatuses").body, {"items"}).size(), 3U);
  EXPECT_EQ(server.Get("/api/v1/componentstatuses/scheduler").status, 200);
  EXPECT_EQ(server.Get("/api/v1/componentstatuses/nope").status, 404);
  EXPECT_EQ(server.Post("/api/v1/componentstatuses", "{}").status, 405);
  EXPECT_EQ(server.Delete("/api/v1/namespaces").status, 405);
}

TEST_F(KindsTest, ApiServicesAreTheGroupsThisServerServesItself) {
  const std::string services = "/apis/apiregistration.k8s.io/v1/apiservices";
  const Answer apps = server.Get(services + "/v1.apps");
  EXPECT_EQ(apps.Str({"spec", "group"}), "apps");
  EXPECT_EQ(apps.Str({"metadata", "labels", "kube-aggregator.kubernetes.io/automanaged"}),
            "onstart");
  EXPECT_EQ(server.Get(services + "/v1.").status, 200);
  EXPECT_EQ(server.Get(services + "/v1.apiregistration.k8s.io").status, 404);
}

TEST_F(KindsTest, EventsOfUsersAreFewAndSmall) {
  const std::string events = "/api/v1/namespaces/default/events";
  auto send = [&](const api::UserInfo& user, int i, const std::string& message) {
    auto request = server.Request(
        "POST", events,
        StrCat(R"({"metadata":{"name":"e)", i, R"("},"involvedObject":{"namespace":"default"},)",
               R"("reason":"R","message":")", message, "\"}"));
    request.user = user;
    return server.Send(std::move(request));
  };
  const api::UserInfo alice{"alice", "", {"system:authenticated"}};
  const api::UserInfo swell{"system:swell", "", {"system:masters"}};
  const Answer large = send(alice, 0, std::string(20'000, 'x'));
  EXPECT_EQ(large.status, 413) << large.text;
  EXPECT_EQ(large.Message(), "an event has at most 16 KiB");
  EXPECT_EQ(send(swell, 0, std::string(20'000, 'x')).status, 201);
  for (int i = 1; i <= 2000; ++i) ASSERT_EQ(send(alice, i, "m").status, 201) << i;
  const Answer many = send(alice, 2001, "m");
  EXPECT_EQ(many.status, 429);
  EXPECT_EQ(many.Message(),
            "limit reached on type Namespace for key default: users may make 2,000 events at once, "
            "and then two in a second");
  // What the cluster reports is heard all the same.
  EXPECT_EQ(send(swell, 2002, "m").status, 201);
  server.executor.Advance(std::chrono::seconds(1));
  EXPECT_EQ(send(alice, 2003, "m").status, 201);
  EXPECT_EQ(send(alice, 2004, "m").status, 201);
  EXPECT_EQ(send(alice, 2005, "m").status, 429);
}

TEST_F(KindsTest, ServicesGetPortsOfNodes) {
  const std::string services = "/api/v1/namespaces/default/services";
  const auto port = [](const Answer& answer) {
    const json::Array& ports = json::GetArray(answer.body, {"spec", "ports"});
    return ports.empty() ? 0 : json::GetInt(ports[0], {"nodePort"});
  };
  const Answer made = server.Post(
      services, R"({"metadata":{"name":"a"},"spec":{"type":"NodePort","ports":[{"port":80}]}})");
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_GE(port(made), 30000);
  const Answer patched =
      server.Merge(StrCat(services, "/a"), R"({"spec":{"ports":[{"port":80,"name":"x"}]}})");
  EXPECT_EQ(port(patched), port(made)) << patched.text;
  const Answer taken = server.Post(
      services, StrCat(R"({"metadata":{"name":"b"},"spec":{"type":"NodePort","ports":[{"port":80,)",
                       "\"nodePort\":", port(made), "}]}}"));
  EXPECT_EQ(taken.Message(),
            StrCat("Service \"b\" is invalid: spec.ports[0].nodePort: Invalid value: ", port(made),
                   ": provided port is already allocated"));
}

std::string Definition(const std::string& plural, const std::string& kind) {
  return StrCat(R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
      "metadata":{"name":")",
                plural, R"(.example.com"},"spec":{"group":"example.com",
      "scope":"Namespaced","names":{"plural":")",
                plural, R"(","kind":")", kind, R"("},
      "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{
      "type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}})");
}

std::string ConditionOf(const Answer& crd, std::string_view type) {
  for (const json::Value& condition : json::GetArray(crd.body, {"status", "conditions"})) {
    if (json::GetString(condition, {"type"}) != type) continue;
    return StrCat(json::GetString(condition, {"status"}), " ",
                  json::GetString(condition, {"reason"}), ": ",
                  json::GetString(condition, {"message"}));
  }
  return {};
}

TEST_F(KindsTest, DefinitionsWaitForNamesThatAreTaken) {
  ASSERT_EQ(server.Post(kCrds, Definition("things", "Thing")).status, 201);
  const Answer second = server.Post(kCrds, Definition("stuff", "Thing"));
  ASSERT_EQ(second.status, 201) << second.text;
  EXPECT_EQ(ConditionOf(second, "NamesAccepted").rfind("False ", 0), 0U);
  EXPECT_EQ(ConditionOf(second, "Established"), "False NotAccepted: not all names are accepted");
  EXPECT_EQ(server.Get("/apis/example.com/v1/stuff").status, 404);
  ASSERT_EQ(server.Delete(StrCat(kCrds, "/things.example.com")).status, 200);
  server.executor.Advance(std::chrono::seconds(1));
  EXPECT_EQ(ConditionOf(server.Get(StrCat(kCrds, "/stuff.example.com")), "Established"),
            "True InitialNamesAccepted: the initial names have been accepted");
  EXPECT_EQ(server.Get("/apis/example.com/v1/stuff").status, 200);
}

// A new definition's schema: `spec` has these properties.
std::string Versions(std::string_view properties) {
  return StrCat(R"({"spec":{"versions":[{"name":"v1","served":true,"storage":true,
      "subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{
      "spec":{"type":"object","properties":{)",
                properties, R"(}},"status":{"type":"object","properties":{
      "phase":{"type":"string"}}}}}}}]}})");
}

TEST_F(KindsTest, StoredObjectsHaveTheDefaultsThatTheirDefinitionGained) {
  const std::string crd = StrCat(kCrds, "/things.example.com");
  const std::string things = "/apis/example.com/v1/namespaces/default/things";
  ASSERT_EQ(server.Post(kCrds, Definition("things", "Thing")).status, 201);
  ASSERT_EQ(server.Merge(crd, Versions(R"("mode":{"type":"string"})")).status, 200);
  for (const char* name : {"a", "b", "c"}) {
    const Answer made = server.Post(
        things, StrCat(R"({"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":")",
                       name, R"("},"spec":{}})"));
    ASSERT_EQ(made.status, 201) << made.text;
    EXPECT_EQ(json::Find(made.body, {"spec", "mode"}), nullptr);
  }
  for (const char* mode : {"fast", "slow"}) {
    const std::string gained = StrCat(R"("mode":{"type":"string","default":")", mode, R"("})");
    ASSERT_EQ(server.Merge(crd, Versions(gained)).status, 200);
    EXPECT_EQ(json::GetString(server.Get(things + "/a").body, {"spec", "mode"}), mode);
    const Answer list = server.Get(things);
    ASSERT_EQ(json::GetArray(list.body, {"items"}).size(), 3U) << list.text;
    for (const json::Value& item : json::GetArray(list.body, {"items"})) {
      EXPECT_EQ(json::GetString(item, {"spec", "mode"}), mode);
    }
    TestWatch watch = server.Watch(things + "?watch=1");
    const std::vector<json::Value> events = watch.Take();
    ASSERT_EQ(events.size(), 3U);
    EXPECT_EQ(json::GetString(events[0], {"object", "spec", "mode"}), mode);
  }
  // A write of any part stores the default, even one that changes nothing else.
  const Answer status = server.Merge(things + "/a/status", R"({"status":{"phase":"ok"}})");
  EXPECT_EQ(json::GetString(status.body, {"spec", "mode"}), "slow") << status.text;
  const std::string before(
      json::GetString(server.Get(things + "/b").body, {"metadata", "resourceVersion"}));
  const Answer same = server.Merge(things + "/b", "{}");
  EXPECT_NE(json::GetString(same.body, {"metadata", "resourceVersion"}), before);
  ASSERT_EQ(server.Merge(crd, Versions(R"("mode":{"type":"string"})")).status, 200);
  EXPECT_EQ(json::GetString(server.Get(things + "/a").body, {"spec", "mode"}), "slow");
  EXPECT_EQ(json::GetString(server.Get(things + "/b").body, {"spec", "mode"}), "slow");
  EXPECT_EQ(json::Find(server.Get(things + "/c").body, {"spec", "mode"}), nullptr);
}

// Plants a member under a key of its own in every object of the document.
json::Value Plant(const json::Value& value, Random& random) {
  if (value.is_array()) {
    json::Array out;
    for (const json::Value& item : value.get_array()) out.push_back(Plant(item, random));
    return out;
  }
  if (!value.is_object()) return value;
  json::Object out;
  for (const auto& member : value.get_object()) out[member.key()] = Plant(member.value(), random);
  const auto number = static_cast<int64_t>(random.Below(1000));
  out[StrCat("planted-", number)] = json::Object{{"deep", json::Array{number, nullptr, "x"}}};
  return out;
}

TEST_F(KindsTest, WhatIsUnknownAtEveryLevelIsKeptWhereTheSchemaKeepsIt) {
  ASSERT_EQ(server.Post(kCrds, Definition("things", "Thing")).status, 201);
  const std::string things = "/apis/example.com/v1/namespaces/default/things";
  const auto seed = json::Parse(
      R"({"a":{"b":[{"c":{"d":1.5}},{"e":[[{"f":"g"}]]}]},"h":{"i":{"j":{"k":true}}}})");
  ASSERT_TRUE(seed.ok());
  for (int round = 0; round < 20; ++round) {
    const json::Value spec = Plant(*seed, server.random);
    json::Object object;
    object["apiVersion"] = "example.com/v1";
    object["kind"] = "Thing";
    object["metadata"] = json::Object{{"name", StrCat("t", round)}};
    object["spec"] = spec;
    const Answer made = server.Post(things, json::Print(json::Value(object)));
    ASSERT_EQ(made.status, 201) << made.text;
    EXPECT_EQ(json::Print(*json::Find(made.body, {"spec"})), json::Print(spec));
    const Answer read = server.Get(StrCat(things, "/t", round));
    EXPECT_EQ(json::Print(*json::Find(read.body, {"spec"})), json::Print(spec));
    const Answer touched =
        server.Merge(StrCat(things, "/t", round), R"({"metadata":{"labels":{"a":"b"}}})");
    EXPECT_EQ(json::Print(*json::Find(touched.body, {"spec"})), json::Print(spec));
  }
}

TEST_F(KindsTest, ANameThatOnlyTheOtherGroupHasMeansTheOther) {
  const std::string kubeflow = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs";
  const std::string kubedl = "/apis/training.kubedl.io/v1alpha1/namespaces/default/pytorchjobs";
  auto job = [](std::string_view api_version) {
    return StrCat(R"({"apiVersion":")", api_version, R"(","kind":"PyTorchJob",)",
                  R"("metadata":{"name":"resnet"},"spec":{"pytorchReplicaSpecs":{"Worker":)",
                  R"({"template":{"spec":{"containers":[{"name":"c","image":"x"}]}}}}}})");
  };
  const std::string table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
  EXPECT_EQ(server.Get(kubeflow + "/resnet").status, 404);
  ASSERT_EQ(server.Post(kubedl, job("training.kubedl.io/v1alpha1")).status, 201);
  EXPECT_EQ(server.Get(kubeflow + "/resnet").Str({"apiVersion"}), "training.kubedl.io/v1alpha1");
  EXPECT_EQ(server.Get(kubeflow + "/other").status, 404);
  auto rows = [&](const std::string& path) {
    api::RestRequest request = server.Request("GET", path);
    request.accept = table;
    return json::GetArray(server.Send(request).body, {"rows"}).size();
  };
  EXPECT_EQ(rows(kubeflow), 1u);
  const Answer one = server.Get(kubeflow + "?fieldSelector=metadata.name%3Dresnet");
  EXPECT_EQ(json::GetArray(one.body, {"items"}).size(), 1u) << "as kubectl wait asks";
  EXPECT_TRUE(json::GetArray(server.Get(kubeflow).body, {"items"}).empty())
      << "programs see theirs";
  ASSERT_EQ(server.Post(kubeflow, job("kubeflow.org/v1")).status, 201);
  EXPECT_EQ(server.Get(kubeflow + "/resnet").Str({"apiVersion"}), "kubeflow.org/v1");
  EXPECT_EQ(server.Send(server.Request("DELETE", kubeflow + "/resnet")).status, 200);
  EXPECT_EQ(server.Get(kubedl + "/resnet").status, 200) << "each is deleted by itself";
  EXPECT_EQ(server.Send(server.Request("DELETE", kubeflow + "/resnet")).status, 200);
  EXPECT_EQ(server.Get(kubedl + "/resnet").status, 404);
}

TEST_F(KindsTest, AnElasticDLJobOfKubedlsIsFoundByThePlainWord) {
  const std::string own = "/apis/elasticdl.org/v1alpha1/namespaces/default/elasticdljobs";
  const std::string kubedl = "/apis/training.kubedl.io/v1alpha1/namespaces/default/elasticdljobs";
  ASSERT_EQ(
      server
          .Post(kubedl, R"({"apiVersion":"training.kubedl.io/v1alpha1","kind":"ElasticDLJob",)"
                        R"("metadata":{"name":"mnist"},"spec":{"elasticdlReplicaSpecs":{"Master":)"
                        R"({"template":{"spec":{"containers":[{"name":"c","image":"x"}]}}}}}})")
          .status,
      201);
  EXPECT_EQ(server.Get(own + "/mnist").Str({"apiVersion"}), "training.kubedl.io/v1alpha1");
}

TEST(Bootstrap, RolesOfAnEarlierVersionGetTheRulesThatTheyLack) {
  const std::string path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-viewer";
  TestServer server;
  server.Boot();
  const json::Value whole = server.Get(path).body;
  const size_t rules = json::GetArray(whole, {"rules"}).size();
  ASSERT_GT(rules, 1u);
  const auto own = R"({"apiGroups":["example.com"],"resources":["toys"],"verbs":["get"]})";
  ASSERT_EQ(server.Merge(path, StrCat(R"({"rules":[)", own, "]}")).status, 200);
  server.Boot();
  ASSERT_TRUE(server.boot.ok()) << server.boot.ToString();
  const json::Value merged = server.Get(path).body;
  EXPECT_EQ(json::GetArray(merged, {"rules"}).size(), rules + 1);
  EXPECT_TRUE(json::Equal(json::GetArray(merged, {"rules"})[0], *json::Parse(own)));
  const char* stay = R"({"metadata":{"annotations":)"
                     R"({"rbac.authorization.kubernetes.io/autoupdate":"false"}},"rules":[]})";
  ASSERT_EQ(server.Merge(path, stay).status, 200);
  server.Boot();
  EXPECT_TRUE(json::GetArray(server.Get(path).body, {"rules"}).empty());
}

TEST(Bootstrap, ARuleOfAnEarlierVersionThatAllowedTooMuchIsTakenAway) {
  const std::string path =
      "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:aggregate-to-edit";
  const auto rule = [](std::string_view groups, std::string_view verbs) {
    return StrCat(R"({"apiGroups":[)", groups, R"(],"resources":["*"],"verbs":[)", verbs, "]}");
  };
  constexpr std::string_view kWrite = R"("create","delete","deletecollection","patch","update")";
  const std::string old = rule(R"("elasticdl.org","kubeflow.org","training.kubedl.io")", kWrite);
  const std::string foreign = rule(R"("kubeflow.org","example.com")", kWrite);
  const std::string other = rule(R"("kubeflow.org")", R"("update")");
  const std::string rules = StrCat(R"("rules":[)", old, ",", foreign, ",", other, "]");
  TestServer server;
  server.Boot();
  const size_t defaults = json::GetArray(server.Get(path).body, {"rules"}).size();
  ASSERT_EQ(server.Merge(path, StrCat("{", rules, "}")).status, 200);
  server.Boot();
  ASSERT_TRUE(server.boot.ok()) << server.boot.ToString();
  const json::Value renewed = server.Get(path).body;
  const json::Array& left = json::GetArray(renewed, {"rules"});
  ASSERT_EQ(left.size(), defaults + 2);
  EXPECT_TRUE(json::Equal(left[0], *json::Parse(foreign))) << json::Print(left[0]);
  EXPECT_TRUE(json::Equal(left[1], *json::Parse(other))) << json::Print(left[1]);
  const std::string stay = StrCat(
      R"({"metadata":{"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}},)",
      rules, "}");
  ASSERT_EQ(server.Merge(path, stay).status, 200);
  server.Boot();
  EXPECT_EQ(json::GetArray(server.Get(path).body, {"rules"}).size(), 3u);
}

TEST(Bootstrap, KubeflowsTrainingRuntimeIsMadeWhereItIsMissing) {
  const std::string path =
      "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes/torch-distributed";
  TestServer server;
  server.Boot();
  ASSERT_TRUE(server.boot.ok()) << server.boot.ToString();
  ASSERT_EQ(server.Get(path).status, 200);
  ASSERT_EQ(server.Merge(path, R"({"spec":{"mlPolicy":{"numNodes":3}}})").status, 200);
  server.Boot();
  EXPECT_EQ(json::GetInt(server.Get(path).body, {"spec", "mlPolicy", "numNodes"}), 3)
      << "an edit stays";
  ASSERT_EQ(server.Delete(path).status, 200);
  server.Boot();
  EXPECT_EQ(json::GetInt(server.Get(path).body, {"spec", "mlPolicy", "numNodes"}), 1);
}

// A program of before made the definitions that a new one finds.
TEST(Bootstrap, DefinitionsOfAnEarlierVersionAreRenewedUnlessSomebodyChangedThem) {
  const std::string path = StrCat(kCrds, "/projects.swell.dev");
  json::Value old;
  for (json::Value& crd : api::SwellCrds()) {
    if (api::Name(crd) == "projects.swell.dev") old = std::move(crd);
  }
  const auto spec_of = [](const json::Value& crd) {
    return json::Find(json::GetArray(crd, {"spec", "versions"})[0],
                      {"schema", "openAPIV3Schema", "properties", "spec", "properties"});
  };
  json::Value& version = json::FindMutable(old, {"spec", "versions"})->get_array()[0];
  json::Remove(version,
               {"schema", "openAPIV3Schema", "properties", "spec", "properties", "parent"});
  ASSERT_EQ(json::Find(*spec_of(old), {"parent"}), nullptr);
  for (const bool changed : {false, true}) {
    TestServer server;
    ASSERT_EQ(server.Post(kCrds, json::Print(old)).status, 201);
    if (changed) {
      const Answer patched = server.Merge(path, R"({"spec":{"names":{"shortNames":["pj"]}}})");
      ASSERT_EQ(patched.status, 200) << patched.text;
    }
    server.Boot();
    ASSERT_TRUE(server.boot.ok()) << server.boot.ToString();
    const Answer now = server.Get(path);
    EXPECT_EQ(json::Find(*spec_of(now.body), {"parent"}) != nullptr, !changed);
    EXPECT_EQ(json::GetInt(now.body, {"metadata", "generation"}), changed ? 2 : 1);
    const std::string version_then = now.Str({"metadata", "resourceVersion"});
    server.Boot();
    EXPECT_EQ(server.Get(path).Str({"metadata", "resourceVersion"}), version_then)
        << "the next start writes nothing";
  }
}

}  // namespace
}  // namespace swell::apiserver
