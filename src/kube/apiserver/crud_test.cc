// Create, get, list, update, patch, delete.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/test_server.h"
#include "kube/store/memory_backend.h"

namespace swell::apiserver {
namespace {

class CrudTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server.Boot();
    ASSERT_TRUE(server.boot.ok()) << server.boot.ToString();
  }
  TestServer server;
};

TEST_F(CrudTest, CreatedPodHasWhatKubernetesGivesIt) {
  const Answer made = server.Post(kPods, PodJson("p"));
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.Str({"metadata", "namespace"}), "default");
  EXPECT_EQ(made.Str({"metadata", "creationTimestamp"}), "2026-01-01T00:00:00Z");
  EXPECT_EQ(made.Str({"metadata", "uid"}).size(), 36U);
  EXPECT_FALSE(made.Str({"metadata", "resourceVersion"}).empty());
  EXPECT_EQ(made.Str({"status", "phase"}), "Pending");
  EXPECT_EQ(made.Str({"status", "qosClass"}), "BestEffort");
  EXPECT_EQ(made.Str({"spec", "schedulerName"}), "swell");
  EXPECT_EQ(made.Str({"spec", "serviceAccountName"}), "default");
  EXPECT_EQ(json::GetInt(made.body, {"spec", "priority"}, -1), 0);
  EXPECT_EQ(json::GetArray(made.body, {"spec", "tolerations"}).size(), 2U);
  const Answer got = server.Get(StrCat(kPods, "/p"));
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.text, made.text);
}

TEST_F(CrudTest, NothingIsWrittenForALeaderWhoseTermIsOver) {
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
  const auto lease = [](const std::string& holder, int transitions) {
    return StrCat(R"({"metadata":{"name":"l"},"spec":{"holderIdentity":")", holder,
                  R"(","leaseTransitions":)", transitions, "}}");
  };
  const std::string uid = server.Post(leases, lease("one", 0)).Str({"metadata", "uid"});
  const auto term = [&](int transitions) {
    return StrCat("?leaseTerm=default/l/", uid, "/", transitions);
  };
  EXPECT_EQ(server.Post(kPods + term(0), PodJson("a")).status, 201);
  EXPECT_EQ(
      server.Merge(leases + "/l", R"({"spec":{"renewTime":"2026-01-01T00:00:01.000000Z"}})").status,
      200);
  EXPECT_EQ(server.Post(kPods + term(0), PodJson("b")).status, 201);
  // The second of two writes that are handed over at once sees the first.
  std::vector<std::shared_ptr<TestSink>> sinks;
  std::vector<std::unique_ptr<api::RestCall>> calls;
  for (const api::RestRequest& request :
       {server.Request("PATCH", leases + "/l", lease("two", 1), "application/merge-patch+json"),
        server.Request("DELETE", StrCat(kPods, "/a", term(0)))}) {
    calls.push_back(server.server->Handle(request, sinks.emplace_back(new TestSink)));
  }
  server.executor.RunPosted();
  EXPECT_EQ(sinks[0]->answer.status, 200);
  EXPECT_EQ(sinks[1]->answer.status, 409) << sinks[1]->answer.BodyString();
  EXPECT_EQ(server.Get(StrCat(kPods, "/a")).status, 200);
  const Answer late = server.Post(kPods + term(0), PodJson("c"));
  EXPECT_EQ(late.status, 409);
  EXPECT_EQ(late.Reason(), "Conflict");
  EXPECT_EQ(late.Message(),
            StrCat("Operation cannot be fulfilled on pods \"\": it was asked for by a holder of "
                   "lease default/l that holds it no more (leaseTerm default/l/",
                   uid, "/0)"));
  EXPECT_EQ(server.Post(kPods + term(1), PodJson("c")).status, 201);
  EXPECT_EQ(server.Get(StrCat(kPods, "/c", term(0))).status, 200);
  EXPECT_EQ(server.Delete(leases + "/l").status, 200);
  EXPECT_EQ(server.Post(kPods + term(1), PodJson("d")).status, 409);
  EXPECT_EQ(server.Post(StrCat(kPods, "?leaseTerm=l"), PodJson("d")).status, 400);
}

// A client that hears AlreadyExists takes the object for created, and does not retry.
TEST_F(CrudTest, WhatIsNotDurableIsNotSaidToExist) {
  const auto disk = std::make_shared<store::MemoryDisk>();
  server.server.reset();
  server.store = std::move(store::Store::Open(server.executor,
                                              store::MakeFaultyBackend(server.executor, disk)))
                     .value();
  server.server =
      ApiServer::Create(server.executor, server.executor, server.random, *server.store, {});
  server.Boot();
  ASSERT_TRUE(server.boot.ok()) << server.boot.ToString();
  const auto create_twice = [&] {
    std::vector<std::shared_ptr<TestSink>> sinks;
    std::vector<std::unique_ptr<api::RestCall>> calls;
    for (int i = 0; i < 2; ++i) {
      calls.push_back(server.server->Handle(server.Request("POST", kPods, PodJson("p")),
                                            sinks.emplace_back(new TestSink)));
    }
    server.executor.RunPosted();
    return std::pair(sinks[0]->answer.status, sinks[1]->answer.status);
  };
  disk->failing_commits = 1;
  EXPECT_EQ(create_twice(), std::pair(507, 507));
  EXPECT_EQ(server.Get(StrCat(kPods, "/p")).status, 404);
  EXPECT_EQ(create_twice(), std::pair(201, 409));
}

TEST_F(CrudTest, GeneratedNamesDiffer) {
  const std::string body =
      R"({"metadata":{"generateName":"job-"},"spec":{"containers":[{"name":"c","image":"i"}]}})";
  const std::string first = server.Post(kPods, body).Str({"metadata", "name"});
  const std::string second = server.Post(kPods, body).Str({"metadata", "name"});
  EXPECT_EQ(first.size(), 9U);
  EXPECT_EQ(first.rfind("job-", 0), 0U);
  EXPECT_NE(first, second);
}

struct ErrorCase {
  const char* method;
  std::string target;
  std::string body;
  int status;
  std::string message;  // begins with
};

TEST_F(CrudTest, ErrorsAreWordedAsKubernetesWordsThem) {
  ASSERT_EQ(server.Post(kPods, PodJson("p")).status, 201);
  const std::string pods = kPods;
  const ErrorCase cases[] = {
      {"GET", pods + "/x", "", 404, "pods \"x\" not found"},
      {"POST", pods, PodJson("p"), 409, "pods \"p\" already exists"},
      {"POST", "/api/v1/namespaces/nope/pods", PodJson("p"), 404, "namespaces \"nope\" not found"},
      {"GET", "/api/v1/nothings", "", 404, "the server could not find the requested resource"},
      {"GET", "/apis/apps/v7/x", "", 404, "the server could not find the requested resource"},
      {"PUT", pods, "{}", 405, "the server does not allow this method on the requested resource"},
      {"POST", pods + "/p", "{}", 405, "the server does not allow this method"},
      {"PUT", pods + "/p", PodJson("q"), 400,
       "the name of the object (q) does not match the name on the URL (p)"},
      {"PUT", pods + "/x", PodJson("x"), 404, "pods \"x\" not found"},
      {"POST", pods, R"({"metadata":{"name":"x","namespace":"kube-system"}})", 400,
       "the namespace of the provided object does not match the namespace sent on the request"},
      {"POST", pods, R"({"apiVersion":"v2","kind":"Pod"})", 400,
       "the API version in the data (v2) does not match the expected API version (v1)"},
      {"POST", pods, R"({"metadata":{"name":"x"},"spec":{"containers":[]}})", 422,
       "Pod \"x\" is invalid: spec.containers: Required value"},
      {"POST", pods, R"({"metadata":{},"spec":{"containers":[{"name":"c","image":"i"}]}})", 422,
       "Pod \"\" is invalid: metadata.name: Required value: name or generateName is required"},
      {"POST", pods, PodJson("x", R"("priorityClassName":"y")"), 403,
       "pods \"x\" is forbidden: no PriorityClass with name y was found"},
      {"DELETE", "/api/v1/namespaces/default", "", 403,
       "namespaces \"default\" is forbidden: this namespace may not be deleted"},
      {"GET", pods + "?labelSelector=a%3D%3D%3Db%3D", "", 400, ""},
      {"GET", pods + "?fieldSelector=spec.foo%3Dx", "", 400, "field label not supported: spec.foo"},
      {"GET", pods + "?limit=x", "", 400, "strconv.ParseInt: parsing \"x\": invalid syntax"},
      {"DELETE", pods + "/p", R"({"preconditions":{"uid":"other"}})", 409,
       "Operation cannot be fulfilled on Pod \"p\": the UID in the precondition (other)"},
  };
  for (const ErrorCase& c : cases) {
    const Answer answer = server.Send(server.Request(c.method, c.target, c.body));
    EXPECT_EQ(answer.status, c.status) << c.method << " " << c.target << "\n" << answer.text;
    EXPECT_EQ(answer.Message().substr(0, c.message.size()), c.message) << c.target;
    EXPECT_EQ(answer.Str({"kind"}), "Status") << answer.text;
    EXPECT_EQ(json::GetInt(answer.body, {"code"}), c.status);
  }
  const Answer nobody = server.Send(server.Request("GET", "/apis/nope.io/v1/x", ""));
  EXPECT_EQ(nobody.status, 404);
  EXPECT_EQ(nobody.text, "404 page not found\n") << "no API is there that could say more";
}

TEST_F(CrudTest, UpdateNeedsTheNewestVersion) {
  Answer made = server.Post("/api/v1/namespaces/default/configmaps",
                            R"({"metadata":{"name":"c"},"data":{"a":"1"}})");
  ASSERT_EQ(made.status, 201) << made.text;
  const std::string path = "/api/v1/namespaces/default/configmaps/c";
  json::Value first = made.body;
  json::Set(first, {"data", "a"}, json::Value("2"));
  EXPECT_EQ(server.Put(path, json::Print(first)).status, 200);
  const Answer stale = server.Put(path, json::Print(first));
  EXPECT_EQ(stale.status, 409);
  EXPECT_EQ(stale.Message(),
            "Operation cannot be fulfilled on configmaps \"c\": the object has been modified; "
            "please apply your changes to the latest version and try again");
  EXPECT_EQ(stale.Reason(), "Conflict");
  // Without a version it is unconditional.
  EXPECT_EQ(server.Put(path, R"({"metadata":{"name":"c"},"data":{"a":"3"}})").status, 200);
}

TEST_F(CrudTest, UpdateThatChangesNothingWritesNothing) {
  const Answer made = server.Post(kPods, PodJson("p"));
  const Answer same = server.Put(StrCat(kPods, "/p"), made.text);
  EXPECT_EQ(same.status, 200) << same.text;
  EXPECT_EQ(same.Str({"metadata", "resourceVersion"}), made.Str({"metadata", "resourceVersion"}));
}

TEST_F(CrudTest, StatusAndSpecHaveTheirOwnDoors) {
  ASSERT_EQ(server.Post(kPods, PodJson("p")).status, 201);
  const Answer main = server.Merge(
      StrCat(kPods, "/p"), R"({"status":{"phase":"Running"},"metadata":{"labels":{"a":"b"}}})");
  ASSERT_EQ(main.status, 200) << main.text;
  EXPECT_EQ(main.Str({"status", "phase"}), "Pending");
  EXPECT_EQ(main.Str({"metadata", "labels", "a"}), "b");
  const Answer status = server.Merge(StrCat(kPods, "/p/status"),
                                     R"({"status":{"phase":"Running"},"spec":{"nodeName":"n"}})");
  ASSERT_EQ(status.status, 200) << status.text;
  EXPECT_EQ(status.Str({"status", "phase"}), "Running");
  EXPECT_EQ(status.Str({"spec", "nodeName"}), "");
}

TEST_F(CrudTest, PodSpecCannotBeRewritten) {
  ASSERT_EQ(server.Post(kPods, PodJson("p")).status, 201);
  EXPECT_EQ(server.Merge(StrCat(kPods, "/p"), R"({"spec":{"nodeName":"n"}})").status, 422);
  EXPECT_EQ(server
                .Patch(StrCat(kPods, "/p"), R"({"spec":{"containers":[{"name":"c","image":"j"}]}})",
                       "application/strategic-merge-patch+json")
                .status,
            200);
}

TEST_F(CrudTest, PatchesOfEveryKind) {
  const std::string deployments = "/apis/apps/v1/namespaces/default/deployments";
  const Answer made = server.Post(deployments, R"({"metadata":{"name":"d"},"spec":{"replicas":2,
      "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
      "spec":{"containers":[{"name":"c","image":"i"},{"name":"e","image":"k"}]}}}})");
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(json::GetInt(made.body, {"metadata", "generation"}), 1);
  const std::string path = deployments + "/d";
  const Answer strategic = server.Patch(
      path, R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"new"}]}}}})",
      "application/strategic-merge-patch+json");
  ASSERT_EQ(strategic.status, 200) << strategic.text;
  EXPECT_EQ(json::GetArray(strategic.body, {"spec", "template", "spec", "containers"}).size(), 2U);
  EXPECT_EQ(json::GetInt(strategic.body, {"metadata", "generation"}), 2);
  const Answer json_patch =
      server.Patch(path, R"([{"op":"replace","path":"/spec/replicas","value":5}])",
                   "application/json-patch+json");
  EXPECT_EQ(json::GetInt(json_patch.body, {"spec", "replicas"}), 5) << json_patch.text;
  EXPECT_EQ(server
                .Patch(path, R"([{"op":"test","path":"/spec/replicas","value":6}])",
                       "application/json-patch+json")
                .status,
            422);
  EXPECT_EQ(server.Patch(path, "{}", "text/plain").status, 415);
  const Answer scale = server.Merge(path + "/scale", R"({"spec":{"replicas":7}})");
  ASSERT_EQ(scale.status, 200) << scale.text;
  EXPECT_EQ(scale.Str({"kind"}), "Scale");
  EXPECT_EQ(json::GetInt(scale.body, {"spec", "replicas"}), 7);
  EXPECT_EQ(scale.Str({"status", "selector"}), "a=b");
  EXPECT_EQ(json::GetInt(server.Get(path).body, {"spec", "replicas"}), 7);
}

TEST_F(CrudTest, CustomKindsRefuseStrategicPatches) {
  ASSERT_EQ(server
                .Post("/apis/swell.dev/v1/projects",
                      R"({"apiVersion":"swell.dev/v1","kind":"Project",
                            "metadata":{"name":"team"},"spec":{}})")
                .status,
            201);
  const Answer answer = server.Patch("/apis/swell.dev/v1/projects/team", "{}",
                                     "application/strategic-merge-patch+json");
  EXPECT_EQ(answer.status, 415);
  EXPECT_EQ(answer.Reason(), "UnsupportedMediaType");
}

TEST_F(CrudTest, DryRunWritesNothing) {
  const Answer made = server.Post(StrCat(kPods, "?dryRun=All"), PodJson("p"));
  EXPECT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(server.Get(StrCat(kPods, "/p")).status, 404);
  ASSERT_EQ(server.Post(kPods, PodJson("p")).status, 201);
  const Answer patched =
      server.Merge(StrCat(kPods, "/p?dryRun=All"), R"({"metadata":{"labels":{"x":"y"}}})");
  EXPECT_EQ(patched.Str({"metadata", "labels", "x"}), "y") << patched.text;
  EXPECT_EQ(server.Get(StrCat(kPods, "/p")).Str({"metadata", "labels", "x"}), "");
  EXPECT_EQ(server.Delete(StrCat(kPods, "/p?dryRun=All")).status, 200);
  EXPECT_EQ(server.Get(StrCat(kPods, "/p")).status, 200);
  EXPECT_EQ(server.Post(StrCat(kPods, "?dryRun=Some"), PodJson("q")).status, 422);
}

TEST_F(CrudTest, FieldValidation) {
  const std::string body = PodJson("p", R"("imagee":"x")");
  const Answer strict = server.Post(StrCat(kPods, "?fieldValidation=Strict"), body);
  EXPECT_EQ(strict.status, 400);
  EXPECT_EQ(strict.Message(),
            "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown "
            "field \"spec.imagee\"");
  const Answer both = server.Post(StrCat(kPods, "?fieldValidation=Strict"),
                                  PodJson("p", R"("hostNetwork":true,"hostNetwork":false,"x":1)"));
  EXPECT_TRUE(both.Message().ends_with(
      "strict decoding error: unknown field \"spec.x\", duplicate field \"spec.hostNetwork\""))
      << both.Message();
  const Answer warned = server.Post(StrCat(kPods, "?fieldValidation=Warn"), body);
  EXPECT_EQ(warned.status, 201);
  ASSERT_EQ(warned.warnings.size(), 1U);
  EXPECT_EQ(warned.warnings[0], R"(299 - "unknown field \"spec.imagee\"")");
  EXPECT_EQ(json::Find(warned.body, {"spec", "imagee"}), nullptr);
  const Answer ignored =
      server.Post(StrCat(kPods, "?fieldValidation=Ignore"), PodJson("q", R"("imagee":"x")"));
  EXPECT_EQ(ignored.status, 201);
  EXPECT_TRUE(ignored.warnings.empty());
}

TEST_F(CrudTest, FieldsOfSwellsKindsSayWhereTheyBelong) {
  const std::string groups = "/apis/swell.dev/v1/namespaces/default/podgroups";
  const std::string body =
      R"({"apiVersion":"swell.dev/v1","kind":"PodGroup","metadata":{"name":"g"},)"
      R"("spec":{"minMember":2,"projekt":"a","podSets":[{"name":"w","topologie":{}}],"other":1}})";
  const Answer strict = server.Post(StrCat(groups, "?fieldValidation=Strict"), body);
  EXPECT_EQ(strict.status, 400);
  EXPECT_NE(
      strict.Message().find(R"(unknown field "spec.minMember": it belongs in spec.podSets[])"),
      std::string::npos)
      << strict.Message();
  const Answer warned = server.Post(StrCat(groups, "?fieldValidation=Warn"), body);
  EXPECT_EQ(warned.status, 201);
  EXPECT_EQ(warned.warnings,
            (std::vector<std::string>{
                R"(299 - "unknown field \"spec.minMember\": it belongs in spec.podSets[]")",
                R"(299 - "unknown field \"spec.projekt\": did you mean project?")",
                R"(299 - "unknown field \"spec.podSets[0].topologie\": did you mean topology?")",
                R"(299 - "unknown field \"spec.other\"")"}));
  // The roles of a job have names that its user chooses.
  const Answer job = server.Post(
      "/apis/swell.dev/v1/namespaces/default/trainingjobs?fieldValidation=Strict",
      R"({"apiVersion":"swell.dev/v1","kind":"TrainingJob","metadata":{"name":"t"},"spec":{)"
      R"("replicas":1,"roles":{"worker":{"replicas":1,"templat":{}}}}})");
  EXPECT_NE(job.Message().find(R"(unknown field "spec.replicas": it belongs in spec.roles.NAME)"),
            std::string::npos)
      << job.Message();
  EXPECT_NE(
      job.Message().find(R"(unknown field "spec.roles.worker.templat": did you mean template?)"),
      std::string::npos)
      << job.Message();
}

TEST_F(CrudTest, MembersNamedTwice) {
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  const std::string body = R"({"metadata":{"name":"m"},"data":{"a":"1","b":"2","a":"3"}})";
  const Answer strict = server.Post(StrCat(maps, "?fieldValidation=Strict"), body);
  EXPECT_EQ(strict.status, 400);
  EXPECT_EQ(strict.Message(),
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: "
            "duplicate field \"data.a\"");
  // The last one counts.
  const Answer warned = server.Post(maps, body);
  EXPECT_EQ(warned.status, 201) << warned.text;
  ASSERT_EQ(warned.warnings.size(), 1U);
  EXPECT_EQ(warned.warnings[0], R"(299 - "duplicate field \"data.a\"")");
  EXPECT_EQ(warned.Str({"data", "a"}), "3");
  const std::string one = StrCat(maps, "/m");
  const std::string patch = R"({"data":{"c":"1","c":"2"}})";
  const std::string merge = "application/merge-patch+json";
  const Answer refused = server.Patch(StrCat(one, "?fieldValidation=Strict"), patch, merge);
  EXPECT_EQ(refused.status, 422);
  EXPECT_NE(refused.Message().find("strict decoding error: duplicate field \"data.c\""),
            std::string::npos)
      << refused.text;
  const Answer ignored = server.Patch(StrCat(one, "?fieldValidation=Ignore"), patch, merge);
  EXPECT_EQ(ignored.Str({"data", "c"}), "2");
  EXPECT_TRUE(ignored.warnings.empty());
}

TEST_F(CrudTest, MembersNamedTwiceInAnAppliedConfiguration) {
  const std::string one = "/api/v1/namespaces/default/configmaps/m?fieldManager=t";
  const std::string type = "application/apply-patch+yaml";
  const std::string body =
      "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\ndata:\n  a: '1'\n  a: '2'\n";
  const Answer strict = server.Patch(StrCat(one, "&fieldValidation=Strict"), body, type);
  EXPECT_EQ(strict.status, 400);
  EXPECT_EQ(strict.Message(),
            "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n"
            "  line 7: key \"a\" already set in map");
  const Answer warned = server.Patch(one, body, type);
  EXPECT_EQ(warned.status, 201) << warned.text;
  EXPECT_EQ(warned.Str({"data", "a"}), "2");
  ASSERT_EQ(warned.warnings.size(), 1U);
  EXPECT_EQ(warned.warnings[0], R"(299 - "line 7: key \"a\" already set in map")");
}

TEST_F(CrudTest, PagesShowOneVersion) {
  for (int i = 0; i < 10; ++i) ASSERT_EQ(server.Post(kPods, PodJson(StrCat("p", i))).status, 201);
  const Answer first = server.Get(StrCat(kPods, "?limit=4"));
  EXPECT_EQ(json::GetArray(first.body, {"items"}).size(), 4U);
  EXPECT_EQ(json::GetInt(first.body, {"metadata", "remainingItemCount"}), 6);
  server.Delete(StrCat(kPods, "/p5"));
  server.Post(kPods, PodJson("p55"));
  std::string names;
  std::string token = first.Str({"metadata", "continue"});
  while (!token.empty()) {
    const Answer page = server.Get(StrCat(kPods, "?limit=4&continue=", api::EscapeQuery(token)));
    ASSERT_EQ(page.status, 200) << page.text;
    EXPECT_EQ(page.Str({"metadata", "resourceVersion"}),
              first.Str({"metadata", "resourceVersion"}));
    for (const json::Value& item : json::GetArray(page.body, {"items"})) {
      names += StrCat(json::GetString(item, {"metadata", "name"}), " ");
    }
    token = page.Str({"metadata", "continue"});
  }
  EXPECT_EQ(names, "p4 p5 p6 p7 p8 p9 ");
  EXPECT_EQ(server.Get(StrCat(kPods, "?limit=4&continue=garbage")).status, 400);
}

TEST_F(CrudTest, ListsSelect) {
  server.Post(kPods, PodJson("a", R"("nodeName":"n1")", R"({"app":"x"})"));
  server.Post(kPods, PodJson("b", "", R"({"app":"y"})"));
  auto names = [this](const std::string& query) {
    std::string text;
    const Answer answer = server.Get(StrCat(kPods, "?", query));
    EXPECT_EQ(answer.status, 200) << answer.text;
    for (const json::Value& item : json::GetArray(answer.body, {"items"})) {
      text += json::GetString(item, {"metadata", "name"});
    }
    return text;
  };
  EXPECT_EQ(names("labelSelector=app%3Dx"), "a");
  EXPECT_EQ(names("labelSelector=app+in+%28x,y%29"), "ab");
  EXPECT_EQ(names("fieldSelector=metadata.name%3Db"), "b");
  EXPECT_EQ(names("fieldSelector=spec.nodeName%3Dn1"), "a");
  EXPECT_EQ(names("fieldSelector=spec.nodeName%3D"), "b");
  EXPECT_EQ(names("fieldSelector=status.phase%21%3DPending"), "");
  EXPECT_EQ(names("fieldSelector=spec.hostNetwork%3Dfalse"), "ab");
  EXPECT_EQ(names("fieldSelector=spec.hostNetwork%3Dtrue"), "");
  EXPECT_EQ(json::GetArray(server.Get("/api/v1/pods").body, {"items"}).size(), 2U);
}

// What kubectl's generators write: nulls, empty objects, numbers where quantities are meant.
TEST_F(CrudTest, GeneratedManifests) {
  const Answer made =
      server.Post("/apis/apps/v1/namespaces/default/deployments?fieldValidation=Strict",
                  R"({"kind":"Deployment","apiVersion":"apps/v1","metadata":{
      "name":"d","creationTimestamp":null,"labels":{"app":"d"}},"spec":{"replicas":1,
      "selector":{"matchLabels":{"app":"d"}},"template":{"metadata":{"creationTimestamp":null,
      "labels":{"app":"d"}},"spec":{"containers":[{"name":"n","image":"i","resources":{}}]}},
      "strategy":{}},"status":{}})");
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(json::Find(made.body, {"spec", "template", "metadata", "creationTimestamp"}), nullptr);
  const Answer pod =
      server.Post(kPods, R"({"metadata":{"name":"q","creationTimestamp":null},"spec":{
      "containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":4,"memory":"1Gi"},
      "limits":{"nvidia.com/gpu":1}}}]}})");
  ASSERT_EQ(pod.status, 201) << pod.text;
  EXPECT_EQ(
      json::Print(json::GetArray(pod.body, {"spec", "containers"})[0].at("resources")),
      R"({"requests":{"cpu":"4","memory":"1Gi","nvidia.com/gpu":"1"},"limits":{"nvidia.com/gpu":"1"}})");
}

// As clients written in Go send what they have nothing of.
TEST_F(CrudTest, NullIsAnEmptyListWhereThereMustBeOne) {
  const Answer slice = server.Post(
      "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
      R"({"metadata":{"name":"s"},"addressType":"IPv4","endpoints":null,"ports":null})");
  EXPECT_EQ(slice.status, 201) << slice.text;
  EXPECT_EQ(json::GetArray(slice.body, {"endpoints"}).size(), 0U);
}

TEST_F(CrudTest, YamlBodiesAndAnswers) {
  const Answer made = server.Post(
      kPods,
      "apiVersion: v1\nkind: Pod\nmetadata:\n  name: yam\nspec:\n  containers:\n  - name: c\n"
      "    image: i\n",
      "application/yaml");
  EXPECT_EQ(made.status, 201) << made.text;
  const Answer yaml = server.Get(StrCat(kPods, "/yam"), "application/yaml");
  EXPECT_EQ(yaml.content_type, "application/yaml");
  EXPECT_NE(yaml.text.find("kind: Pod\n"), std::string::npos);
  EXPECT_EQ(server.Get(StrCat(kPods, "/yam"), "application/vnd.kubernetes.protobuf").status, 406);
  EXPECT_EQ(
      server.Get(StrCat(kPods, "/yam"), "application/vnd.kubernetes.protobuf,application/json")
          .status,
      200);
}

}  // namespace
}  // namespace swell::apiserver
