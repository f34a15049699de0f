// The API around the objects: discovery, authentication, reviews, custom kinds, tables, apply, and
// what happens to bodies nobody should send.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/yaml.h"
#include "kube/api/rest/sink_capabilities.h"
#include "kube/apiserver/print/table.h"
#include "kube/apiserver/request/request.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

constexpr char kTable[] =
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;"
    "g=meta.k8s.io,application/json";
constexpr char kAggregated[] =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

class ApiTest : public ::testing::Test {
 protected:
  ApiTest() : server(MakeOptions()) {}
  static Options MakeOptions() {
    Options options;
    options.tokens = ParseTokenFile("secret,alice,1,\"devs,ops\"\n").value();
    options.token_key = std::make_shared<TestTokenKey>();
    return options;
  }
  void SetUp() override {
    server.Boot();
    ASSERT_TRUE(server.boot.ok()) << server.boot.ToString();
  }
  TestServer server;
};

TEST_F(ApiTest, DiscoveryInBothForms) {
  EXPECT_EQ(server.Get("/api").Str({"kind"}), "APIVersions");
  const Answer groups = server.Get("/apis");
  EXPECT_EQ(groups.Str({"kind"}), "APIGroupList");
  EXPECT_NE(groups.text.find("\"swell.dev\""), std::string::npos);
  const Answer core = server.Get("/api/v1");
  EXPECT_EQ(core.Str({"kind"}), "APIResourceList");
  for (const char* name : {"\"pods\"", "\"pods/eviction\"", "\"pods/log\"", "\"po\"",
                           "\"namespaces/finalize\"", "\"serviceaccounts/token\""}) {
    EXPECT_NE(core.text.find(name), std::string::npos) << name;
  }
  EXPECT_EQ(server.Get("/apis/apps").Str({"preferredVersion", "groupVersion"}), "apps/v1");
  EXPECT_EQ(server.Get("/apis/apps/v1").Str({"groupVersion"}), "apps/v1");
  EXPECT_EQ(server.Get("/apis/apps/v9").status, 404);
  const Answer aggregated = server.Get("/apis", kAggregated);
  EXPECT_EQ(aggregated.content_type,
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
  EXPECT_EQ(aggregated.Str({"apiVersion"}), "apidiscovery.k8s.io/v2");
  EXPECT_NE(aggregated.text.find("\"resource\":\"podgroups\""), std::string::npos);
  const Answer aggregated_core = server.Get("/api", kAggregated);
  EXPECT_EQ(json::GetArray(aggregated_core.body, {"items"}).size(), 1U);
  EXPECT_EQ(server.Get("/version").Str({"major"}), "1");
  EXPECT_EQ(server.Get("/version").Str({"minor"}), "37");
  EXPECT_EQ(server.Get("/readyz").text, "ok");
  EXPECT_EQ(server.Get("/nope").status, 404);
}

TEST_F(ApiTest, OpenApiIsServed) {
  const Answer v2 = server.Get("/openapi/v2");
  EXPECT_EQ(v2.Str({"swagger"}), "2.0");
  const Answer proto =
      server.Get("/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf");
  EXPECT_EQ(proto.content_type, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
  EXPECT_FALSE(proto.text.empty());
  const Answer index = server.Get("/openapi/v3");
  EXPECT_NE(json::Find(index.body, {"paths", "api/v1"}), nullptr);
  EXPECT_EQ(server.Get("/openapi/v3/api/v1").status, 200);
  EXPECT_EQ(server.Get("/openapi/v3/apis/swell.dev/v1").status, 200);
  EXPECT_EQ(server.Get("/openapi/v3/apis/nope/v1").status, 404);
}

TEST_F(ApiTest, CredentialsAreChecked) {
  api::RestRequest request = server.Request("GET", kPods);
  request.user = {};
  const Answer nobody = server.Send(request);
  EXPECT_EQ(nobody.status, 401);
  EXPECT_EQ(nobody.Reason(), "Unauthorized");
  EXPECT_EQ(nobody.Message(), "Unauthorized");
  request.credentials.bearer_token = "wrong";
  EXPECT_EQ(server.Send(request).status, 401);
  request.credentials.bearer_token = "secret";
  EXPECT_EQ(server.Send(request).status, 200);
  request.credentials = {};
  request.credentials.certificate_common_name = "kubelet";
  EXPECT_EQ(server.Send(request).status, 200);
  EXPECT_FALSE(ParseTokenFile("only,two").ok());
}

TEST_F(ApiTest, ReviewsAnswer) {
  const std::string authz = "/apis/authorization.k8s.io/v1/";
  const Answer can =
      server.Post(authz + "selfsubjectaccessreviews",
                  R"({"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}})");
  EXPECT_EQ(can.status, 201) << can.text;
  EXPECT_TRUE(json::GetBool(can.body, {"status", "allowed"}));
  const Answer rules =
      server.Post(authz + "selfsubjectrulesreviews", R"({"spec":{"namespace":"default"}})");
  EXPECT_EQ(json::GetArray(rules.body, {"status", "resourceRules"}).size(), 1U);
  const Answer who = server.Post("/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}");
  EXPECT_EQ(who.Str({"status", "userInfo", "username"}), "admin") << who.text;
  const Answer token =
      server.Post("/apis/authentication.k8s.io/v1/tokenreviews", R"({"spec":{"token":"secret"}})");
  EXPECT_TRUE(json::GetBool(token.body, {"status", "authenticated"}));
  EXPECT_EQ(token.Str({"status", "user", "username"}), "alice");
}

TEST_F(ApiTest, ServiceAccountTokensWorkUntilTheyExpire) {
  const Answer made = server.Post("/api/v1/namespaces/default/serviceaccounts/default/token",
                                  R"({"spec":{"expirationSeconds":600}})");
  ASSERT_EQ(made.status, 201) << made.text;
  api::RestRequest request =
      server.Request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}");
  request.user = {};
  request.credentials.bearer_token = made.Str({"status", "token"});
  const Answer who = server.Send(request);
  EXPECT_EQ(who.Str({"status", "userInfo", "username"}), "system:serviceaccount:default:default")
      << who.text;
  request.credentials.bearer_token += "x";
  EXPECT_EQ(server.Send(request).status, 401);
  request.credentials.bearer_token.pop_back();
  server.executor.Advance(std::chrono::seconds(601));
  EXPECT_EQ(server.Send(request).status, 401);
}

constexpr char kCrd[] = R"({"apiVersion":"apiextensions.k8s.io/v1",
  "kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
  "spec":{"group":"example.com","scope":"Namespaced",
  "names":{"plural":"widgets","kind":"Widget","shortNames":["wd"]},
  "versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
  "additionalPrinterColumns":[{"name":"Size","type":"integer","jsonPath":".spec.size"},
  {"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"},
  {"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}],
  "schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",
  "properties":{"size":{"type":"integer","minimum":1},"color":{"type":"string","default":"red"}}},
  "status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}})";

TEST_F(ApiTest, CustomKindsObeyTheRulesOfTheirDefinition) {
  const std::string crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const std::string pairs = "/apis/example.com/v1/namespaces/default/pairs";
  const auto definition = [](std::string_view rule) {
    return StrCat(R"({"metadata":{"name":"pairs.example.com"},"spec":{"group":"example.com",
      "scope":"Namespaced","names":{"plural":"pairs","kind":"Pair"},"versions":[{"name":"v1",
      "served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
      "spec":{"type":"object","x-kubernetes-validations":[{"rule":)",
                  Quote(rule), R"(},{"rule":"self.a >= oldSelf.a"}],
      "properties":{"a":{"type":"integer"},"b":{"type":"integer","default":7}}}}}}}]}})");
  };
  const auto pair = [](int a) {
    return StrCat(
        R"({"apiVersion":"example.com/v1","kind":"Pair","metadata":{"name":"p"},"spec":{"a":)", a,
        "}}");
  };
  const Answer wrong = server.Post(crds, definition("self.c > 1"));
  EXPECT_EQ(wrong.status, 422);
  EXPECT_NE(wrong.Message().find("undefined field 'c'"), std::string::npos) << wrong.Message();
  ASSERT_EQ(server.Post(crds, definition("self.a < self.b")).status, 201);
  EXPECT_EQ(server.Post(pairs, pair(9)).Message(),
            "Pair.example.com \"p\" is invalid: spec: Invalid value: \"object\": failed rule: "
            "self.a < self.b");
  EXPECT_EQ(server.Post(pairs, pair(3)).status, 201);
  EXPECT_EQ(server.Merge(pairs + "/p", R"({"spec":{"a":2}})").Message(),
            "Pair.example.com \"p\" is invalid: spec: Invalid value: \"object\": failed rule: "
            "self.a >= oldSelf.a");
  EXPECT_EQ(server.Merge(pairs + "/p", R"({"spec":{"a":4}})").status, 200);
}

TEST_F(ApiTest, CustomKindsComeAndGo) {
  const std::string crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const std::string widgets = "/apis/example.com/v1/namespaces/default/widgets";
  EXPECT_EQ(server.Get(widgets).status, 404);
  const Answer crd = server.Post(crds, kCrd);
  ASSERT_EQ(crd.status, 201) << crd.text;
  EXPECT_NE(crd.text.find("\"Established\""), std::string::npos);
  const Answer made = server.Post(widgets, R"({"apiVersion":"example.com/v1","kind":"Widget",
      "metadata":{"name":"w"},"spec":{"size":3,"junk":1},"status":{"x":1}})");
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.Str({"spec", "color"}), "red");
  EXPECT_EQ(json::Find(made.body, {"spec", "junk"}), nullptr);
  EXPECT_EQ(json::Find(made.body, {"status"}), nullptr);
  EXPECT_EQ(made.warnings.size(), 1U);
  EXPECT_EQ(server
                .Post(widgets, R"({"apiVersion":"example.com/v1","kind":"Widget",
      "metadata":{"name":"bad"},"spec":{"size":0}})")
                .status,
            422);
  server.Merge(widgets + "/w/status",
               R"({"status":{"conditions":[{"type":"Ready","status":"True"}]}})");
  const Answer table = server.Get(widgets, kTable);
  EXPECT_EQ(json::Print(*json::Find(json::GetArray(table.body, {"rows"})[0], {"cells"})),
            R"(["w",3,"True","0s"])");
  const Answer generation = server.Merge(widgets + "/w", R"({"spec":{"size":4}})");
  EXPECT_EQ(json::GetInt(generation.body, {"metadata", "generation"}), 2);
  // Deleting the definition deletes the objects.
  EXPECT_EQ(server.Delete(crds + "/widgets.example.com").status, 200);
  server.executor.Advance(std::chrono::seconds(1));
  EXPECT_EQ(server.Get(crds + "/widgets.example.com").status, 404);
  EXPECT_EQ(server.Get(widgets).status, 404);
  EXPECT_EQ(server.store->Count("widgets.example.com"), 0U);
}

TEST_F(ApiTest, PartialMetadata) {
  server.Post(kPods, PodJson("p"));
  const Answer one = server.Get(StrCat(kPods, "/p"),
                                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
  EXPECT_EQ(one.Str({"kind"}), "PartialObjectMetadata");
  EXPECT_EQ(json::Find(one.body, {"spec"}), nullptr);
  const Answer list =
      server.Get(kPods, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
  EXPECT_EQ(list.Str({"kind"}), "PartialObjectMetadataList");
}

struct StatusWord {
  const char* status;  // of the pod
  const char* cells;   // READY STATUS RESTARTS
};

TEST_F(ApiTest, PodTableSaysWhatKubectlSays) {
  const StatusWord words[] = {
      {R"({"phase":"Pending"})", R"("0/1","Pending","0")"},
      {R"({"phase":"Running","containerStatuses":[{"name":"c","ready":true,"restartCount":0,
          "image":"i","imageID":"","state":{"running":{}}}]})",
       R"("1/1","Running","0")"},
      {R"({"phase":"Running","containerStatuses":[{"name":"c","ready":false,"restartCount":3,
          "image":"i","imageID":"","state":{"waiting":{"reason":"CrashLoopBackOff"}},
          "lastState":{"terminated":{"exitCode":1,"finishedAt":"2025-12-31T23:59:00Z"}}}]})",
       R"x("0/1","CrashLoopBackOff","3 (60s ago)")x"},
      {R"({"phase":"Failed","containerStatuses":[{"name":"c","ready":false,"restartCount":0,
          "image":"i","imageID":"","state":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]})",
       R"("0/1","OOMKilled","0")"},
      {R"({"phase":"Succeeded","containerStatuses":[{"name":"c","ready":false,"restartCount":0,
          "image":"i","imageID":"","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]})",
       R"("0/1","Completed","0")"},
      {R"({"phase":"Failed","containerStatuses":[{"name":"c","ready":false,"restartCount":0,
          "image":"i","imageID":"","state":{"terminated":{"exitCode":3}}}]})",
       R"("0/1","ExitCode:3","0")"},
      {R"({"phase":"Failed","reason":"Evicted"})", R"("0/1","Evicted","0")"},
      {R"({"phase":"Pending","initContainerStatuses":[{"name":"i","ready":false,"restartCount":0,
          "image":"i","imageID":"","state":{"running":{}}}]})",
       R"("0/1","Init:0/1","0")"},
  };
  int number = 0;
  for (const StatusWord& word : words) {
    const std::string name = StrCat("p", number++);
    ASSERT_EQ(
        server.Post(kPods, PodJson(name, R"("initContainers":[{"name":"i","image":"i"}])")).status,
        201);
    const Answer set =
        server.Merge(StrCat(kPods, "/", name, "/status"), StrCat("{\"status\":", word.status, "}"));
    ASSERT_EQ(set.status, 200) << set.text;
    const Answer table = server.Get(StrCat(kPods, "/", name), kTable);
    const json::Array& rows = json::GetArray(table.body, {"rows"});
    ASSERT_EQ(rows.size(), 1U) << table.text;
    EXPECT_EQ(
        json::Print(*json::Find(rows[0], {"cells"})),
        StrCat("[\"", name, "\",", word.cells, R"(,"0s","<none>","<none>","<none>","<none>"])"));
  }
}

TEST_F(ApiTest, EveryListHasATable) {
  struct Golden {
    const char* path;
    const char* columns;
  };
  const Golden goldens[] = {
      {"/api/v1/pods", "Name Ready Status Restarts Age IP Node Nominated Node Readiness Gates "},
      {"/api/v1/nodes",
       "Name Status Roles Age Version Internal-IP External-IP OS-Image Kernel-Version "
       "Container-Runtime "},
      {"/api/v1/events",
       "Last Seen Type Reason Object Subobject Source Message First Seen Count Name "},
      {"/api/v1/services", "Name Type Cluster-IP External-IP Port(s) Age Selector "},
      {"/api/v1/namespaces", "Name Status Age "},
      {"/api/v1/configmaps", "Name Data Age "},
      {"/api/v1/secrets", "Name Type Data Age "},
      {"/api/v1/serviceaccounts", "Name Secrets Age "},
      {"/apis/scheduling.k8s.io/v1/priorityclasses",
       "Name Value Global-Default Age PreemptionPolicy "},
      {"/apis/batch/v1/jobs", "Name Status Completions Duration Age Containers Images Selector "},
      {"/apis/apps/v1/deployments",
       "Name Ready Up-to-date Available Age Containers Images Selector "},
      {"/apis/coordination.k8s.io/v1/leases", "Name Holder Age "},
      {"/apis/policy/v1/poddisruptionbudgets",
       "Name Min Available Max Unavailable Allowed Disruptions Age "},
      {"/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
       "Name Scope Versions Created At Group Kind ShortNames Established "},
  };
  for (const Golden& golden : goldens) {
    const Answer table = server.Get(golden.path, kTable);
    std::string columns;
    for (const json::Value& column : json::GetArray(table.body, {"columnDefinitions"})) {
      columns += StrCat(json::GetString(column, {"name"}), " ");
    }
    EXPECT_EQ(columns, golden.columns) << golden.path;
  }
  const Answer classes =
      server.Get("/apis/scheduling.k8s.io/v1/priorityclasses?includeObject=None", kTable);
  const json::Array& rows = json::GetArray(classes.body, {"rows"});
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(json::Print(rows[5]),
            R"({"cells":["train",50,false,"0s","PreemptLowerPriority"],"object":null})");
}

// A caller among others: what is left of its answer waits for its turn.
class TurnTaker final : public api::RestSink, public api::TurnSink {
 public:
  api::SinkCapabilities capabilities() override { return {.turns = this}; }
  void OnResponse(api::RestResponse response) override { text = response.BodyString(); }
  void OnStreamStart(int /*status*/, std::string /*content_type*/) override {}
  bool OnChunk(const api::Chunk& /*chunk*/) override { return false; }
  void OnStreamEnd(const Status& /*why*/) override {}
  void InTurn(std::function<void()> one) override {
    ASSERT_EQ(rest, nullptr);
    rest = std::move(one);
  }
  bool TakeTurn() {
    const auto one = std::exchange(rest, nullptr);
    if (one) one();
    return one != nullptr;
  }

  std::function<void()> rest;
  std::string text;
};

TEST_F(ApiTest, LongListsAreMadeInTurns) {
  for (int i = 0; i < 45; ++i) server.Post(kPods, PodJson(StrCat("p-", i)));
  const std::string table = "application/json;as=Table;v=v1;g=meta.k8s.io";
  for (const std::string& accept :
       {table, std::string("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
        std::string("application/yaml")}) {
    const Answer at_once = server.Get(kPods, accept);
    ASSERT_EQ(at_once.status, 200);
    auto sink = std::make_shared<TurnTaker>();
    const auto call = server.server->Handle(server.Request("GET", kPods, {}, {}, accept), sink);
    int turns = 1;
    while (sink->TakeTurn()) {
      // What is deleted and made meanwhile is not in it.
      if (turns == 2) {
        server.Delete(StrCat(kPods, "/p-44?gracePeriodSeconds=0"));
        server.Post(kPods, PodJson("p-44"));
      }
      ++turns;
    }
    EXPECT_EQ(turns, 5) << accept;
    EXPECT_EQ(sink->text, at_once.text) << accept;
  }
  // Piece by piece they look as the whole would.
  const json::Value whole = server.Get(kPods).body;
  EXPECT_EQ(server.Get(kPods, "application/yaml").text, json::PrintYaml(whole));
  const json::Value rows = server.Get(kPods, table).body;
  EXPECT_EQ(json::GetArray(rows, {"rows"}).size(), 45u);
  EXPECT_EQ(server.Get(StrCat(kPods, "?pretty=true")).text, json::PrintPretty(whole, 2) + "\n");
  EXPECT_EQ(server.Get(StrCat(kPods, "?pretty=1"), table).text, json::PrintPretty(rows, 2) + "\n");
  // Whole stored objects cost little each.
  auto sink = std::make_shared<TurnTaker>();
  EXPECT_EQ(server.server->Handle(server.Request("GET", kPods), sink), nullptr);
  EXPECT_EQ(sink->rest, nullptr);
  EXPECT_EQ(sink->text, server.Get(kPods).text);
}

TEST_F(ApiTest, LongListsAreFoundInTurnsAndAllOfOneMoment) {
  for (int i = 0; i < 600; ++i) server.Post(kPods, PodJson(StrCat("p-", i)));
  const Answer at_once = server.Get(kPods);
  const auto sink = std::make_shared<TurnTaker>();
  const auto call = server.server->Handle(server.Request("GET", kPods), sink);
  ASSERT_NE(sink->rest, nullptr);
  server.Delete(StrCat(kPods, "/p-0?gracePeriodSeconds=0"));
  server.Delete(StrCat(kPods, "/p-599?gracePeriodSeconds=0"));
  server.Post(kPods, PodJson("p-600"));
  int turns = 1;
  while (sink->TakeTurn()) ++turns;
  EXPECT_EQ(turns, 5);
  EXPECT_EQ(sink->text, at_once.text);
}

TEST_F(ApiTest, WhoGivesUpNeedsNoMoreTurns) {
  for (int i = 0; i < 25; ++i) server.Post(kPods, PodJson(StrCat("p-", i)));
  auto sink = std::make_shared<TurnTaker>();
  auto call = server.server->Handle(
      server.Request("GET", kPods, {}, {}, "application/json;as=Table;v=v1;g=meta.k8s.io"), sink);
  ASSERT_NE(call, nullptr);
  EXPECT_TRUE(sink->TakeTurn());
  call.reset();
  EXPECT_TRUE(sink->TakeTurn());
  EXPECT_FALSE(sink->TakeTurn());
  EXPECT_EQ(sink->text, "");
}

TEST_F(ApiTest, ServerSideApplyKnowsWhoOwnsWhat) {
  const std::string path = "/apis/apps/v1/namespaces/default/deployments/d";
  auto config = [](int replicas, const std::string& image) {
    return StrCat(R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},
        "spec":{"replicas":)",
                  replicas, R"(,"selector":{"matchLabels":{"a":"b"}},"template":{
        "metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":")",
                  image, R"("}]}}}})");
  };
  constexpr char kApply[] = "application/apply-patch+yaml";
  const Answer made = server.Patch(path + "?fieldManager=one", config(1, "x"), kApply);
  ASSERT_EQ(made.status, 201) << made.text;
  ASSERT_EQ(json::GetArray(made.body, {"metadata", "managedFields"}).size(), 1U);
  // Applying the same again writes nothing.
  const Answer again = server.Patch(path + "?fieldManager=one", config(1, "x"), kApply);
  EXPECT_EQ(again.Str({"metadata", "resourceVersion"}), made.Str({"metadata", "resourceVersion"}));
  const Answer conflict = server.Patch(path + "?fieldManager=two", config(1, "y"), kApply);
  ASSERT_EQ(conflict.status, 409) << conflict.text;
  const json::Array& causes = json::GetArray(conflict.body, {"details", "causes"});
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_EQ(json::GetString(causes[0], {"reason"}), "FieldManagerConflict");
  EXPECT_EQ(json::GetString(causes[0], {"field"}),
            ".spec.template.spec.containers[name=\"c\"].image");
  const Answer forced = server.Patch(path + "?fieldManager=two&force=true", config(1, "y"), kApply);
  EXPECT_EQ(forced.status, 200) << forced.text;
  // A field given up by its only owner goes; one that another manager still sets stays.
  auto image_only = [](const std::string& labels) {
    return StrCat(R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","labels":)",
                  labels, R"(},"spec":{"template":{"spec":{"containers":[{"name":"c",
                  "image":"y"}]}}}})");
  };
  const Answer less = server.Patch(path + "?fieldManager=two", image_only(R"({"l":"m"})"), kApply);
  ASSERT_EQ(less.status, 200) << less.text;
  EXPECT_EQ(json::GetInt(less.body, {"spec", "replicas"}), 1);
  EXPECT_EQ(less.Str({"metadata", "labels", "l"}), "m");
  const Answer none = server.Patch(path + "?fieldManager=two", image_only("{}"), kApply);
  EXPECT_EQ(none.status, 200) << none.text;
  EXPECT_EQ(none.Str({"metadata", "labels", "l"}), "");
  // A plain update takes a field over.
  server.Merge(path + "?fieldManager=edit", R"({"spec":{"replicas":4}})");
  const Answer after = server.Patch(path + "?fieldManager=one", config(1, "y"), kApply);
  EXPECT_EQ(after.status, 409) << after.text;
  EXPECT_EQ(server.Patch(path, config(1, "x"), kApply).status, 422);
}

struct BadBody {
  const char* what;
  std::string body;
  int status;
};

TEST_F(ApiTest, BadBodiesAreRefused) {
  std::string deep = R"({"metadata":{"name":"x"},"spec":)";
  for (int i = 0; i < 100'000; ++i) deep += "[";
  std::string nested =
      R"({"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i"}],"x":)";
  for (int i = 0; i < 200; ++i) nested += R"({"a":)";
  const BadBody bodies[] = {
      {"nothing", "", 400},
      {"blanks", "  ", 400},
      {"no JSON", "{", 400},
      {"trailing bytes", "{} {}", 400},
      {"a list", "[]", 400},
      {"a number", "7", 400},
      {"null", "null", 400},
      {"bad UTF-8", "{\"metadata\":{\"name\":\"\xff\"}}", 400},
      {"deep", deep, 400},
      {"deep but closed", nested + "1" + std::string(200, '}') + "}}", 400},
      {"metadata a string", R"({"metadata":"x"})", 400},
      {"name a number", R"({"metadata":{"name":7}})", 400},
      {"labels a list", R"({"metadata":{"name":"x","labels":[]}})", 400},
      {"label a number", R"({"metadata":{"name":"x","labels":{"a":1}}})", 400},
      {"owners a string", R"({"metadata":{"name":"x","ownerReferences":"y"}})", 400},
      {"finalizer a number", R"({"metadata":{"name":"x","finalizers":[1]}})", 400},
      {"kind a number", R"({"kind":7,"metadata":{"name":"x"}})", 400},
      {"another kind", R"({"kind":"Node","apiVersion":"v1","metadata":{"name":"x"}})", 400},
      {"spec a string", R"({"metadata":{"name":"x"},"spec":"y"})", 400},
      {"containers a map", R"({"metadata":{"name":"x"},"spec":{"containers":{}}})", 400},
      {"container a string", R"({"metadata":{"name":"x"},"spec":{"containers":["c"]}})", 400},
      {"priority a string",
       R"({"metadata":{"name":"x"},"spec":{"priority":"1","containers":[{"name":"c","image":"i"}]}})",
       400},
      {"bad name",
       R"({"metadata":{"name":"A_B"},"spec":{"containers":[{"name":"c","image":"i"}]}})", 422},
      {"long name",
       StrCat(R"({"metadata":{"name":")", std::string(300, 'a'),
              R"("},"spec":{"containers":[{"name":"c","image":"i"}]}})"),
       422},
      {"bad label",
       R"({"metadata":{"name":"x","labels":{"a b":"c"}},"spec":{"containers":[{"name":"c","image":"i"}]}})",
       422},
      {"absurd quantity",
       R"({"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i",
       "resources":{"requests":{"cpu":"1e9e9"}}}]}})",
       400},
      {"negative quantity",
       R"({"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i",
       "resources":{"requests":{"cpu":"-1"}}}]}})",
       422},
      {"two containers of one name",
       R"({"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i"},
       {"name":"c","image":"i"}]}})",
       422},
      {"too large", std::string(4 << 20, ' ') + "{}", 413},
  };
  for (const BadBody& bad : bodies) {
    const Answer answer = server.Post(kPods, bad.body);
    // A quantity that cannot be read may be refused as a wrong type or as a wrong value.
    const bool fine = answer.status == bad.status ||
                      (std::string_view(bad.what) == "absurd quantity" && answer.status == 422);
    EXPECT_TRUE(fine) << bad.what << ": " << answer.status << " " << answer.text.substr(0, 500);
    EXPECT_EQ(answer.Str({"kind"}), "Status") << bad.what;
    EXPECT_FALSE(answer.Message().empty()) << bad.what;
  }
  EXPECT_EQ(server.Post(kPods, "a: [\n", "application/yaml").status, 400);
  EXPECT_EQ(server.Post(kPods, "a: 1\n---\nb: 2\n", "application/yaml").status, 400);
  EXPECT_EQ(server.Post(kPods, "x", "application/vnd.kubernetes.protobuf").status, 400);
  EXPECT_EQ(server.Post(kPods, "{}", "text/html").status, 415);
  EXPECT_EQ(json::GetArray(server.Get(kPods).body, {"items"}).size(), 0U);
}

TEST_F(ApiTest, BadPatchesAreRefused) {
  ASSERT_EQ(server.Post(kPods, PodJson("p")).status, 201);
  const std::string path = StrCat(kPods, "/p");
  const std::tuple<const char*, const char*, int> patches[] = {
      {"application/json-patch+json", "{}", 400},
      {"application/json-patch+json", R"([{"op":"fly","path":"/a"}])", 422},
      {"application/json-patch+json", R"([{"op":"remove","path":"/nothing"}])", 422},
      {"application/json-patch+json", R"([{"op":"replace","path":"","value":7}])", 400},
      {"application/json-patch+json", R"([{"op":"remove","path":"/metadata"}])", 400},
      {"application/merge-patch+json", "[]", 400},
      {"application/merge-patch+json", "7", 400},
      {"application/merge-patch+json", R"({"metadata":null})", 400},
      {"application/merge-patch+json", R"({"metadata":{"name":"q"}})", 400},
      {"application/merge-patch+json", R"({"kind":"Node"})", 422},
      {"application/merge-patch+json", R"({"metadata":{"labels":7}})", 422},
      {"application/merge-patch+json", R"({"metadata":{"resourceVersion":"1"}})", 409},
      {"application/merge-patch+json", R"({"metadata":{"uid":"x"}})", 422},
      {"application/strategic-merge-patch+json", R"({"spec":{"containers":[{"image":"i"}]}})", 500},
      {"application/apply-patch+yaml", "a: [", 400},
      {"application/apply-patch+yaml", "- 1", 400},
  };
  for (const auto& [type, body, status] : patches) {
    const Answer answer = server.Patch(StrCat(path, "?fieldManager=m"), body, type);
    EXPECT_EQ(answer.status, status) << type << " " << body << "\n" << answer.text;
  }
}

TEST(RequestTest, PathsAndAcceptHeaders) {
  const auto info = ParsePath("/apis/apps/v1/namespaces/a%2Db/deployments/d/scale");
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->group + "|" + info->ns + "|" + info->resource + "|" + info->name + "|" +
                info->subresource,
            "apps|a-b|deployments|d|scale");
  EXPECT_EQ(ParsePath("/api/v1/namespaces/x")->resource, "namespaces");
  EXPECT_EQ(ParsePath("/api/v1/namespaces/x/finalize")->subresource, "finalize");
  EXPECT_FALSE(ParsePath("/api/v1/%zz").ok());
  EXPECT_FALSE(ParsePath("/" + std::string(5000, 'a')).ok());
  const auto clauses = ParseAccept("text/html;q=0.5, application/json;as=Table");
  ASSERT_EQ(clauses.size(), 2U);
  EXPECT_EQ(clauses[0].Parameter("as"), "Table");
}

TEST(JsonPathTest, ReadsWhatColumnsUse) {
  const json::Value value =
      json::Parse(R"({"a":{"b.c":1,"list":[{"t":"x","v":2},{"t":"y","v":3}]}})").value();
  EXPECT_EQ(json::Print(PathValue(value, ".a.list[1].v")), "3");
  EXPECT_EQ(json::Print(PathValue(value, "{.a['b.c']}")), "1");
  EXPECT_EQ(json::Print(PathValue(value, ".a.b\\.c")), "1");
  EXPECT_EQ(json::Print(PathValue(value, ".a.list[?(@.t==\"y\")].v")), "3");
  EXPECT_EQ(json::Print(PathValue(value, ".a.list[*].v")), "2");
  EXPECT_TRUE(PathValue(value, ".nope[0].x").is_null());
  EXPECT_TRUE(PathValue(value, ".a.list[").is_null());
}

}  // namespace
}  // namespace swell::apiserver
