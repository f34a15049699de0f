// Pods and what is around them: deletion, binding, eviction, logs, namespaces, services, events.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

// Answers as a node's kubelet would: with what it was asked.
class FakeNode final : public api::RestHandler {
 public:
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    asked = StrCat(request.method, " ", request.path, "?", request.query);
    sink->OnStreamStart(200, "text/plain");
    sink->OnChunk(api::MakeChunk("line 1\n"));
    if (!stay_open) sink->OnStreamEnd(Status::Ok());
    held = sink;
    return stay_open ? std::make_unique<Open>(this) : nullptr;
  }
  struct Open final : api::RestCall {
    explicit Open(FakeNode* node_in) : node(node_in) { ++node->open; }
    ~Open() override { --node->open; }
    FakeNode* node;
  };
  std::string asked;
  std::shared_ptr<api::RestSink> held;
  bool stay_open = false;
  int open = 0;
};

class PodsTest : public ::testing::Test {
 protected:
  PodsTest() : server(MakeOptions()) {}
  Options MakeOptions() {
    Options options;
    options.node_dialer =
        [this](const std::string& name) -> Result<std::shared_ptr<api::RestHandler>> {
      if (name != "n") return Status(Code::kUnavailable, "no route");
      return std::shared_ptr<api::RestHandler>(node);
    };
    options.http_dialer =
        [this](const HttpTarget& target) -> Result<std::shared_ptr<api::RestHandler>> {
      dialed = target.base_url;
      return handler != nullptr ? handler : node;
    };
    options.bind_check = [](const json::Value&, const std::string& name) {
      return name == "full" ? Status(Code::kConflict, "node is full") : Status::Ok();
    };
    return options;
  }
  void SetUp() override {
    server.Boot();
    ASSERT_TRUE(server.boot.ok()) << server.boot.ToString();
  }
  Answer Bind(const std::string& pod, const std::string& to) {
    return server.Post(StrCat(kPods, "/", pod, "/binding"),
                       StrCat(R"({"metadata":{"name":")", pod,
                              R"(","annotations":{"swell.dev/gpu-devices":"0"}},)",
                              R"("target":{"kind":"Node","name":")", to, "\"}}"));
  }
  // Asks for a path; answers what was dialed and what was asked there, or the error.
  std::string Proxy(const std::string& target) {
    const Answer answer = server.Get(StrCat("/api/v1/namespaces/default/", target));
    return answer.status == 200 ? StrCat(dialed, " ", node->asked)
                                : StrCat(answer.status, " ", answer.Message());
  }
  std::shared_ptr<FakeNode> node = std::make_shared<FakeNode>();
  std::shared_ptr<api::RestHandler> handler;  // of pods; null: the node itself
  std::string dialed;
  TestServer server;
};

TEST_F(PodsTest, SharesOfGpusInKaisWordsAreSwells) {
  const Answer made = server.Post(kPods, R"({"metadata":{"name":"part","annotations":)"
                                         R"({"gpu-fraction":"0.5","gpu-memory":"1"}},)"
                                         R"("spec":{"containers":[{"name":"c","image":"i"}]}})");
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(api::Annotation(made.body, "swell.dev/gpu-fraction"), "0.5");
  EXPECT_EQ(api::Annotation(made.body, "swell.dev/gpu-memory"), "1");
  const Answer both =
      server.Post(kPods, R"({"metadata":{"name":"both","annotations":)"
                         R"({"gpu-fraction":"0.5","swell.dev/gpu-fraction":"0.2"}},)"
                         R"("spec":{"containers":[{"name":"c","image":"i"}]}})");
  EXPECT_EQ(api::Annotation(both.body, "swell.dev/gpu-fraction"), "0.2");
}

TEST_F(PodsTest, ProxiesToPodsAndServices) {
  server.Post(kPods, R"({"metadata":{"name":"web"},"spec":{"containers":[
      {"name":"c","image":"i","ports":[{"containerPort":8080}]}]}})");
  EXPECT_EQ(Proxy("pods/none/proxy/"), "404 pods \"none\" not found");
  EXPECT_EQ(Proxy("pods/web/proxy/"), "400 address not allowed");
  server.Merge(StrCat(kPods, "/web/status"), R"({"status":{"podIP":"10.1.2.3"}})");
  EXPECT_EQ(Proxy("pods/web/proxy"), "http://10.1.2.3:8080 GET /?");
  EXPECT_EQ(Proxy("pods/web:99/proxy/a%20b/c/?x=1"), "http://10.1.2.3:99 GET /a%20b/c/?x=1");
  EXPECT_EQ(Proxy("pods/https:web:99/proxy/"), "https://10.1.2.3:99 GET /?");
  EXPECT_EQ(Proxy("pods/ftp:web:99/proxy/"), "400 invalid pod request \"ftp:web:99\"");
  server.Merge(StrCat(kPods, "/web/status"), R"({"status":{"phase":"Succeeded"}})");
  EXPECT_EQ(Proxy("pods/web/proxy"),
            "400 cannot connect to a completed pod; current phase is Succeeded");

  server.Post("/api/v1/namespaces/default/services",
              R"({"metadata":{"name":"s"},"spec":{"ports":[{"name":"http","port":80}]}})");
  EXPECT_EQ(Proxy("services/s:81/proxy/"), "503 no service port 81 found for service \"s\"");
  server.Post("/api/v1/namespaces/default/endpoints",
              R"({"metadata":{"name":"s"},"subsets":[{"addresses":[{"ip":"10.1.2.3"}],
                  "ports":[{"name":"http","port":8080}]}]})");
  EXPECT_EQ(Proxy("services/s:80/proxy/x"), "http://10.1.2.3:8080 GET /x?");
  EXPECT_EQ(Proxy("services/s:http/proxy/"), "http://10.1.2.3:8080 GET /?");
  EXPECT_EQ(Proxy("services/s/proxy/"), "503 no endpoints available for service \"s\"");
}

// Takes requests, and answers none until it is told to.
class Silent final : public api::RestHandler {
 public:
  std::unique_ptr<api::RestCall> Handle(api::RestRequest,
                                        std::shared_ptr<api::RestSink> sink) override {
    asked.push_back(std::move(sink));
    return std::make_unique<api::RestCall>();
  }
  std::vector<std::shared_ptr<api::RestSink>> asked;
};

TEST_F(PodsTest, AnswersThroughProxiesOfOneUserLeaveRoomForOthers) {
  server.Post(kPods, R"({"metadata":{"name":"web"},"spec":{"containers":[
      {"name":"c","image":"i","ports":[{"containerPort":8080}]}]}})");
  server.Merge(StrCat(kPods, "/web/status"), R"({"status":{"podIP":"10.1.2.3"}})");
  const auto silent = std::make_shared<Silent>();
  handler = silent;
  std::vector<TestWatch> under_way;
  auto ask = [&](const std::string& user) {
    auto request = server.Request("GET", StrCat(kPods, "/web/proxy/"));
    request.user = {user, "", {"system:masters"}};
    TestWatch one;
    one.sink = std::make_shared<TestSink>();
    one.call = server.server->Handle(std::move(request), one.sink);
    server.executor.RunPosted();
    const int status = one.sink->answers == 0 ? 0 : one.sink->answer.status;
    under_way.push_back(std::move(one));
    return status;
  };
  for (int i = 0; i < 32; ++i) ASSERT_EQ(ask("alice"), 0) << i;
  EXPECT_EQ(ask("alice"), 429);
  EXPECT_EQ(ask("bob"), 0);
  // The answer keeps its place until its reader has it.
  api::RestResponse response;
  response.body.push_back(api::MakeChunk("all of it"));
  silent->asked.front()->OnResponse(std::move(response));
  EXPECT_EQ(under_way.front().sink->answer.BodyString(), "all of it");
  EXPECT_EQ(ask("alice"), 429);
  under_way.front().sink->answer.body.clear();
  EXPECT_EQ(ask("alice"), 0);
}

TEST_F(PodsTest, BindingAssignsOnce) {
  server.Post(kPods, PodJson("p"));
  EXPECT_EQ(Bind("x", "n").status, 404);
  const Answer full = Bind("p", "full");
  EXPECT_EQ(full.status, 409);
  EXPECT_EQ(full.Message(), "node is full");
  const Answer bound = Bind("p", "n");
  EXPECT_EQ(bound.status, 201) << bound.text;
  EXPECT_EQ(bound.Str({"status"}), "Success");
  const Answer pod = server.Get(StrCat(kPods, "/p"));
  EXPECT_EQ(pod.Str({"spec", "nodeName"}), "n");
  EXPECT_EQ(pod.Str({"metadata", "annotations", "swell.dev/gpu-devices"}), "0");
  const json::Array& conditions = json::GetArray(pod.body, {"status", "conditions"});
  ASSERT_EQ(conditions.size(), 1U);
  EXPECT_EQ(json::GetString(conditions[0], {"type"}), "PodScheduled");
  const Answer again = Bind("p", "m");
  EXPECT_EQ(again.status, 409);
  EXPECT_EQ(again.Message(),
            "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to "
            "node \"n\"");
}

// Every binding of many is answered for itself, and the watch tells of every pod.
TEST_F(PodsTest, ManyBindingsAreMadeOneByOne) {
  for (const char* pod : {"a", "b", "c"}) server.Post(kPods, PodJson(pod));
  Bind("b", "n");
  TestWatch watch = server.Watch(StrCat(kPods, "?watch=true&resourceVersion=",
                                        server.Get(kPods).Str({"metadata", "resourceVersion"})));
  auto binding = [](std::string_view pod, std::string_view node) -> json::Value {
    return json::Object{
        {"metadata", json::Object{{"name", pod},
                                  {"namespace", "default"},
                                  {"labels", json::Object{{"rack", "r"}}},
                                  {"annotations", json::Object{{"swell.dev/gpu-devices", "1"}}}}},
        {"target", json::Object{{"kind", "Node"}, {"name", node}}}};
  };
  std::vector<json::Value> bindings;
  for (const char* pod : {"a", "x", "b", "c"}) bindings.push_back(binding(pod, "m"));
  bindings.push_back(binding("c", "full"));
  bindings.push_back(binding("c", ""));
  std::vector<int> answers(bindings.size());
  const api::UserInfo root{"root", "", {"system:masters"}};
  auto calls = server.server->Bind(
      root, bindings,
      [&](size_t i, const api::RestResponse& response) { answers[i] += response.status; });
  EXPECT_EQ(answers, (std::vector<int>{0, 404, 409, 0, 409, 422})) << "before the disk has it";
  server.executor.RunPosted();
  EXPECT_EQ(answers, (std::vector<int>{201, 404, 409, 201, 409, 422}));
  std::vector<std::string> told;
  for (const json::Value& event : watch.Take()) {
    const json::Value& pod = *json::Find(event, {"object"});
    told.push_back(StrCat(json::GetString(event, {"type"}), " ", api::Name(pod), " ",
                          json::GetString(pod, {"spec", "nodeName"}), " ", api::Label(pod, "rack"),
                          " ", api::ResourceVersion(pod)));
  }
  const Answer c = server.Get(StrCat(kPods, "/c"));
  const uint64_t version = api::ResourceVersion(c.body);
  EXPECT_EQ(told, (std::vector<std::string>{StrCat("MODIFIED a m r ", version - 1),
                                            StrCat("MODIFIED c m r ", version)}));
  EXPECT_EQ(c.Str({"metadata", "annotations", "swell.dev/gpu-devices"}), "1");
  EXPECT_EQ(server.Get(StrCat(kPods, "?labelSelector=rack=r&fieldSelector=spec.nodeName=m"))
                .body.at("items")
                .as_array()
                .size(),
            2U);
}

TEST_F(PodsTest, DeletionIsGracefulOnANode) {
  server.Post(kPods, PodJson("p"));
  Bind("p", "n");
  const Answer marked = server.Delete(StrCat(kPods, "/p"), R"({"gracePeriodSeconds":7})");
  EXPECT_EQ(marked.status, 200);
  EXPECT_EQ(marked.Str({"metadata", "deletionTimestamp"}), "2026-01-01T00:00:07Z");
  EXPECT_EQ(json::GetInt(marked.body, {"metadata", "deletionGracePeriodSeconds"}), 7);
  // Longer grace changes nothing; none removes it.
  EXPECT_EQ(server.Delete(StrCat(kPods, "/p")).Str({"metadata", "resourceVersion"}),
            marked.Str({"metadata", "resourceVersion"}));
  EXPECT_EQ(server.Delete(StrCat(kPods, "/p"), R"({"gracePeriodSeconds":0})").status, 200);
  EXPECT_EQ(server.Get(StrCat(kPods, "/p")).status, 404);
}

TEST_F(PodsTest, DeletionIsImmediateWithoutANode) {
  const Answer made = server.Post(kPods, PodJson("p"));
  const Answer gone = server.Delete(StrCat(kPods, "/p"));
  EXPECT_EQ(gone.Str({"metadata", "uid"}), made.Str({"metadata", "uid"}));
  EXPECT_EQ(server.Get(StrCat(kPods, "/p")).status, 404);
  // Other kinds answer with a Status that names what was deleted.
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  server.Post(maps, R"({"metadata":{"name":"c"}})");
  const Answer status = server.Delete(StrCat(maps, "/c"));
  EXPECT_EQ(status.Str({"kind"}), "Status");
  EXPECT_EQ(status.Str({"status"}), "Success");
  EXPECT_EQ(status.Str({"details", "name"}), "c");
  EXPECT_FALSE(status.Str({"details", "uid"}).empty());
}

TEST_F(PodsTest, FinalizersHoldTheObject) {
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  server.Post(maps, R"({"metadata":{"name":"c","finalizers":["x.io/wait"]}})");
  const Answer marked = server.Delete(StrCat(maps, "/c"));
  EXPECT_FALSE(marked.Str({"metadata", "deletionTimestamp"}).empty()) << marked.text;
  EXPECT_EQ(
      server.Merge(StrCat(maps, "/c"), R"({"metadata":{"finalizers":["x.io/wait","y.io/z"]}})")
          .status,
      422);
  EXPECT_EQ(server.Merge(StrCat(maps, "/c"), R"({"metadata":{"finalizers":null}})").status, 200);
  EXPECT_EQ(server.Get(StrCat(maps, "/c")).status, 404);
  // Propagation policies are finalizers for the garbage collector.
  server.Post(maps, R"({"metadata":{"name":"d"}})");
  const Answer foreground = server.Delete(StrCat(maps, "/d?propagationPolicy=Foreground"));
  ASSERT_EQ(json::GetArray(foreground.body, {"metadata", "finalizers"}).size(), 1U);
  EXPECT_EQ(server.Delete(StrCat(maps, "/d?propagationPolicy=Nonsense")).status, 422);
}

TEST_F(PodsTest, CollectionsAreDeletedBySelector) {
  for (const char* name : {"a", "b", "c"}) {
    server.Post(kPods, PodJson(name, "", *name == 'b' ? "{}" : R"({"del":"yes"})"));
  }
  EXPECT_EQ(server.Delete(StrCat(kPods, "?labelSelector=del%3Dyes")).status, 200);
  const Answer rest = server.Get(kPods);
  ASSERT_EQ(json::GetArray(rest.body, {"items"}).size(), 1U);
}

TEST_F(PodsTest, EvictionAsksTheBudgets) {
  server.Post(kPods, PodJson("p", "", R"({"app":"x"})"));
  Bind("p", "n");
  server.Merge(StrCat(kPods, "/p/status"), R"({"status":{"phase":"Running"}})");
  const std::string budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
  const Answer budget = server.Post(budgets, R"({"metadata":{"name":"b"},"spec":{"minAvailable":1,
      "selector":{"matchLabels":{"app":"x"}}}})");
  ASSERT_EQ(budget.status, 201) << budget.text;
  server.Merge(StrCat(budgets, "/b/status"), R"({"status":{"observedGeneration":1,
      "disruptionsAllowed":0,"currentHealthy":1,"desiredHealthy":1,"expectedPods":1}})");
  const std::string eviction =
      R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}})";
  const Answer refused = server.Post(StrCat(kPods, "/p/eviction"), eviction);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.Message(), "Cannot evict pod as it would violate the pod's disruption budget.");
  EXPECT_NE(refused.text.find("The disruption budget b needs 1 healthy pods and has 1 currently"),
            std::string::npos);
  server.Merge(StrCat(budgets, "/b/status"), R"({"status":{"disruptionsAllowed":1}})");
  EXPECT_EQ(server.Post(StrCat(kPods, "/p/eviction"), eviction).status, 201);
  const Answer pod = server.Get(StrCat(kPods, "/p"));
  EXPECT_FALSE(pod.Str({"metadata", "deletionTimestamp"}).empty());
  EXPECT_NE(pod.text.find("\"DisruptionTarget\""), std::string::npos);
  EXPECT_EQ(
      json::GetInt(server.Get(StrCat(budgets, "/b")).body, {"status", "disruptionsAllowed"}, -1),
      0);
}

TEST_F(PodsTest, AContainersOwnPolicySaysWhetherItsEndIsForGood) {
  const struct {
    std::string name, own;  // policy and rules of the container
    int status;
  } rows[] = {{"always", R"("restartPolicy":"Always")", 200},
              {"never", R"("restartPolicy":"Never")", 422},
              {"rule",
               R"("restartPolicy":"Never","restartPolicyRules":[{"action":"Restart","exitCodes":)"
               R"({"operator":"In","values":[3]}}])",
               200},
              {"other-rule",
               R"("restartPolicy":"Never","restartPolicyRules":[{"action":"Restart",)"
               R"("exitCodes":{"operator":"NotIn","values":[3]}}])",
               422},
              {"all",
               R"("restartPolicy":"Never","restartPolicyRules":[{"action":"RestartAllContainers",)"
               R"("exitCodes":{"operator":"In","values":[9]}}])",
               200}};
  for (const auto& row : rows) {
    // What the pod says does not count.
    const std::string pod_policy = row.status == 200 ? "Never" : "Always";
    ASSERT_EQ(
        server
            .Post(kPods, StrCat(R"({"metadata":{"name":")", row.name,
                                R"("},"spec":{"restartPolicy":")", pod_policy,
                                R"(","containers":[{"name":"c","image":"i",)", row.own, "}]}}"))
            .status,
        201)
        << row.name;
    const std::string path = StrCat(kPods, "/", row.name, "/status");
    const auto report = [&](std::string_view state) {
      return server
          .Merge(path,
                 StrCat(R"({"status":{"containerStatuses":[{"name":"c","state":)", state, "}]}}"))
          .status;
    };
    ASSERT_EQ(report(R"({"terminated":{"exitCode":3}})"), 200);
    EXPECT_EQ(report(R"({"terminated":null,"running":{}})"), row.status) << row.name;
  }
}

TEST_F(PodsTest, WhatEndedForGoodStaysEnded) {
  const auto state = [](const std::string& state) {
    return StrCat(R"({"status":{"containerStatuses":[{"name":"c","state":)", state, "}]}}");
  };
  const auto ended = [](int code) { return StrCat(R"({"terminated":{"exitCode":)", code, "}}"); };
  const struct {
    std::string policy;
    int code;
    int status;
  } rows[] = {{"Never", 0, 422},     {"Never", 1, 422},  {"OnFailure", 0, 422},
              {"OnFailure", 1, 200}, {"Always", 0, 200}, {"Always", 1, 200}};
  for (const auto& row : rows) {
    const std::string name = StrCat(ToLower(row.policy), "-", row.code);
    ASSERT_EQ(
        server
            .Post(kPods, StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"restartPolicy":")",
                                row.policy, R"(","containers":[{"name":"c","image":"i"}]}})"))
            .status,
        201);
    const std::string path = StrCat(kPods, "/", name, "/status");
    ASSERT_EQ(server.Merge(path, state(ended(row.code))).status, 200);
    const Answer back = server.Merge(path, state(R"({"running":{}})"));
    EXPECT_EQ(back.status, row.status) << name << back.text;
    if (row.status == 200) continue;
    EXPECT_EQ(back.Message(), StrCat("Pod \"", name,
                                     "\" is invalid: status.containerStatuses[0].state: "
                                     "Forbidden: may not be transitioned to non-terminated state"));
    // Everything else may still be told.
    EXPECT_EQ(server.Merge(path, R"({"status":{"phase":"Failed"}})").status, 200);
  }
}

TEST_F(PodsTest, LogsComeFromTheNode) {
  server.Post(kPods, PodJson("p"));
  EXPECT_EQ(server.Get(StrCat(kPods, "/p/log")).status, 204);
  EXPECT_EQ(server.Post(StrCat(kPods, "/p/exec?command=ls"), "").Message(),
            "pod p does not have a host assigned");
  Bind("p", "n");
  const Answer log = server.Get(StrCat(kPods, "/p/log?follow&tailLines=3"));
  EXPECT_EQ(log.text, "line 1\n");
  EXPECT_EQ(node->asked, "GET /containerLogs/default/p/c?follow=true&tailLines=3");
  EXPECT_EQ(server.Get(StrCat(kPods, "/p/log?container=z")).Message(),
            "container z is not valid for pod p");
  EXPECT_EQ(server.Get(StrCat(kPods, "/p/log?tailLines=-1")).status, 400);
  server.Merge(StrCat(kPods, "/p/status"), R"({"status":{"containerStatuses":[{"name":"c",
      "ready":false,"restartCount":0,"image":"i","imageID":"",
      "state":{"waiting":{"reason":"ContainerCreating"}}}]}})");
  EXPECT_EQ(server.Get(StrCat(kPods, "/p/log")).Message(),
            "container \"c\" in pod \"p\" is waiting to start: ContainerCreating");
  const std::string ended =
      R"({"terminated":{"exitCode":128,"reason":"StartError","message":"no such file"}})";
  for (const std::string& states :
       {StrCat(R"("state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":)", ended),
        StrCat(R"("state":)", ended)}) {
    server.Merge(StrCat(kPods, "/p/status"),
                 StrCat(R"({"status":{"containerStatuses":[{"name":"c","ready":false,)",
                        R"("restartCount":0,"image":"i","imageID":"",)", states, "}]}}"));
    EXPECT_EQ(server.Get(StrCat(kPods, "/p/log")).Message(),
              "container \"c\" in pod \"p\" did not start: no such file");
  }
}

TEST_F(PodsTest, TheLogOfAPodThatIsGoneComesFromItsNode) {
  const Answer log =
      server.Get(StrCat(kPods, "/p/log/some-uid?node=n&container=c&tailLines=3&restart=1"));
  EXPECT_EQ(log.text, "line 1\n");
  EXPECT_EQ(node->asked, "GET /containerLogs/default/p/c?tailLines=3&restart=1&podUID=some-uid");
  EXPECT_EQ(server.Get(StrCat(kPods, "/p/log/some-uid?container=c")).status, 400);
  EXPECT_EQ(server.Get(StrCat(kPods, "/p/log/some-uid?node=n&container=c&tailLines=x")).status,
            400);
}

TEST_F(PodsTest, AFollowedLogEndsWithItsReader) {
  server.Post(kPods, PodJson("p"));
  Bind("p", "n");
  node->stay_open = true;
  TestWatch log = server.Watch(StrCat(kPods, "/p/log?follow=true"));
  EXPECT_EQ(log.sink->stream, "line 1\n");
  EXPECT_EQ(node->open, 1);
  EXPECT_TRUE(node->held->OnChunk(api::MakeChunk("line 2\n")));
  EXPECT_EQ(log.sink->stream, "line 1\nline 2\n");
  log.call.reset();
  server.executor.RunPosted();
  EXPECT_EQ(node->open, 0);
  EXPECT_FALSE(node->held->OnChunk(api::MakeChunk("late\n")));
}

TEST_F(PodsTest, OneOfSeveralContainersMustBeNamed) {
  server.Post(kPods, R"({"metadata":{"name":"m"},"spec":{"containers":[
      {"name":"a","image":"i"},{"name":"b","image":"i"}]}})");
  EXPECT_EQ(server.Get(StrCat(kPods, "/m/log")).Message(),
            "a container name must be specified for pod m, choose one of: [a b]");
}

TEST_F(PodsTest, PriorityComesFromTheClass) {
  const Answer pod = server.Post(kPods, PodJson("p", R"("priorityClassName":"build")"));
  EXPECT_EQ(json::GetInt(pod.body, {"spec", "priority"}), 100) << pod.text;
  EXPECT_EQ(pod.Str({"spec", "preemptionPolicy"}), "PreemptLowerPriority");
  const Answer wrong = server.Post(kPods, PodJson("q", R"("priority":5)"));
  EXPECT_EQ(wrong.status, 403) << wrong.text;
  const std::string classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
  EXPECT_EQ(
      server.Post(classes, R"({"metadata":{"name":"d"},"value":7,"globalDefault":true})").status,
      201);
  EXPECT_EQ(
      server.Post(classes, R"({"metadata":{"name":"e"},"value":8,"globalDefault":true})").status,
      403);
  const Answer by_default = server.Post(kPods, PodJson("r"));
  EXPECT_EQ(json::GetInt(by_default.body, {"spec", "priority"}), 7);
  EXPECT_EQ(by_default.Str({"spec", "priorityClassName"}), "d");
}

TEST_F(PodsTest, NamespacesTerminateThroughTheirFinalizer) {
  const Answer made = server.Post("/api/v1/namespaces", R"({"metadata":{"name":"team"}})");
  EXPECT_EQ(made.Str({"status", "phase"}), "Active") << made.text;
  EXPECT_EQ(server.Get("/api/v1/namespaces/team/serviceaccounts/default").status, 200);
  const Answer marked = server.Delete("/api/v1/namespaces/team");
  EXPECT_EQ(marked.Str({"status", "phase"}), "Terminating");
  const Answer refused = server.Post("/api/v1/namespaces/team/pods", PodJson("p"));
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.Message(),
            "pods \"p\" is forbidden: unable to create new content in namespace team because it "
            "is being terminated");
  EXPECT_EQ(server
                .Put("/api/v1/namespaces/team/finalize",
                     R"({"metadata":{"name":"team"},"spec":{"finalizers":[]}})")
                .status,
            200);
  EXPECT_EQ(server.Get("/api/v1/namespaces/team").status, 404);
}

TEST_F(PodsTest, ServicesGetTheirAddress) {
  const std::string services = "/api/v1/namespaces/default/services";
  auto body = [](const std::string& name, const std::string& ip) {
    return StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"clusterIP":")", ip,
                  R"(","selector":{"a":"b"},"ports":[{"port":80}]}})");
  };
  const Answer first = server.Post(services, body("one", ""));
  EXPECT_EQ(first.Str({"spec", "clusterIP"}), "10.96.0.2") << first.text;
  EXPECT_EQ(server.Post(services, body("none", "None")).Str({"spec", "clusterIP"}), "None");
  EXPECT_EQ(server.Post(services, body("two", "10.96.0.2")).status, 422);
  EXPECT_EQ(server.Post(services, body("two", "192.168.0.1")).status, 422);
  EXPECT_EQ(server.Post(services, body("two", "10.96.0.9")).status, 201);
  EXPECT_EQ(server.Merge(StrCat(services, "/one"), R"({"spec":{"clusterIP":"10.96.0.7"}})").status,
            422);
  EXPECT_EQ(server.Delete(StrCat(services, "/one")).status, 200);
  EXPECT_EQ(server.Post(services, body("three", "10.96.0.2")).status, 201);
}

TEST_F(PodsTest, SecretsTakePlainText) {
  const Answer made = server.Post("/api/v1/namespaces/default/secrets",
                                  R"({"metadata":{"name":"s"},"stringData":{"k":"value"}})");
  EXPECT_EQ(made.Str({"data", "k"}), "dmFsdWU=") << made.text;
  EXPECT_EQ(made.Str({"type"}), "Opaque");
  EXPECT_EQ(json::Find(made.body, {"stringData"}), nullptr);
}

TEST_F(PodsTest, EventsAreOneStoreAndExpire) {
  const std::string core = "/api/v1/namespaces/default/events";
  const std::string fresh = "/apis/events.k8s.io/v1/namespaces/default/events";
  ASSERT_EQ(server
                .Post(core, R"({"metadata":{"name":"e"},"reason":"Scheduled","message":"m",
      "involvedObject":{"kind":"Pod","name":"p","namespace":"default"},"type":"Normal",
      "lastTimestamp":"2026-01-01T00:00:00Z"})")
                .status,
            201);
  const Answer seen = server.Get(StrCat(fresh, "/e"));
  EXPECT_EQ(seen.Str({"note"}), "m") << seen.text;
  EXPECT_EQ(seen.Str({"regarding", "name"}), "p");
  EXPECT_EQ(seen.Str({"apiVersion"}), "events.k8s.io/v1");
  const Answer selected = server.Get(
      StrCat(core, "?fieldSelector=involvedObject.name%3Dp%2CinvolvedObject.kind%3DPod"));
  EXPECT_EQ(json::GetArray(selected.body, {"items"}).size(), 1U);
  ASSERT_EQ(server
                .Post(fresh, R"({"metadata":{"name":"f"},"reason":"Told","action":"Tell",
      "regarding":{"kind":"Pod","name":"p","namespace":"default"},"type":"Normal",
      "reportingController":"teller","reportingInstance":"one",
      "eventTime":"2026-01-01T00:00:00.000000Z"})")
                .status,
            201);
  const Answer by_source = server.Get(StrCat(core, "?fieldSelector=source%3Dteller"));
  EXPECT_EQ(json::GetArray(by_source.body, {"items"}).size(), 1U) << by_source.text;
  const Answer by_new_name = server.Get(StrCat(fresh, "?fieldSelector=regarding.name%3Dq"));
  EXPECT_EQ(json::GetArray(by_new_name.body, {"items"}).size(), 0U) << by_new_name.text;
  server.executor.Advance(std::chrono::minutes(50));
  EXPECT_EQ(server.Get(StrCat(core, "/e")).status, 200);
  server.executor.Advance(std::chrono::minutes(15));
  EXPECT_EQ(server.Get(StrCat(core, "/e")).status, 404);
}

TEST_F(PodsTest, EphemeralContainersAreAddedAndStay) {
  ASSERT_EQ(server.Post(kPods, PodJson("p")).status, 201);
  const std::string path = StrCat(kPods, "/p/ephemeralcontainers");
  const std::string strategic = "application/strategic-merge-patch+json";
  // A pod's own update leaves them as they are.
  Answer answer =
      server.Patch(StrCat(kPods, "/p"),
                   R"({"spec":{"ephemeralContainers":[{"name":"d","image":"i"}]}})", strategic);
  EXPECT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(json::Find(answer.body, {"spec", "ephemeralContainers"}), nullptr);
  answer = server.Patch(
      path, R"({"spec":{"ephemeralContainers":[{"name":"d","image":"i","stdin":true}]}})",
      strategic);
  ASSERT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(answer.Str({"kind"}), "Pod");
  const json::Array& list = json::GetArray(answer.body, {"spec", "ephemeralContainers"});
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(json::GetString(list[0], {"terminationMessagePolicy"}), "File");
  // As kubectl before 1.22 does it.
  api::RestRequest old = server.Request("GET", path);
  old.user_agent = "kubectl/v1.20.2 (linux/amd64) kubernetes/faecb19";
  answer = server.Send(old);
  EXPECT_EQ(answer.Str({"kind"}), "EphemeralContainers");
  json::Value wanted = answer.body;
  json::FindMutable(wanted, {"ephemeralContainers"})
      ->get_array()
      .push_back(json::Object{{"name", "e"}, {"image", "i"}, {"targetContainerName", "c"}});
  answer = server.Put(path, json::Print(wanted));
  ASSERT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(json::GetArray(answer.body, {"ephemeralContainers"}).size(), 2u);
  EXPECT_EQ(server.Put(path, json::Print(wanted)).status, 409);
}

TEST_F(PodsTest, WhatAnEphemeralContainerMayNotBe) {
  ASSERT_EQ(server.Post(kPods, PodJson("p")).status, 201);
  auto refused = [&](const std::string& container) {
    const Answer answer =
        server.Patch(StrCat(kPods, "/p/ephemeralcontainers"),
                     StrCat(R"({"spec":{"ephemeralContainers":[)", container, "]}}"),
                     "application/strategic-merge-patch+json");
    EXPECT_EQ(answer.status, 422) << answer.text;
    return answer.Message();
  };
  const std::string is = "Pod \"p\" is invalid: spec.ephemeralContainers[0]";
  EXPECT_EQ(refused(R"({"name":"c","image":"i"})"), is + ".name: Duplicate value: \"c\"");
  EXPECT_EQ(refused(R"({"name":"d"})"), is + ".image: Required value");
  EXPECT_EQ(refused(R"({"name":"d","image":"i","targetContainerName":"x"})"),
            is + ".targetContainerName: Not found: \"x\"");
  EXPECT_EQ(refused(R"({"name":"d","image":"i","ports":[{"containerPort":80}]})"),
            is + ".ports: Forbidden: cannot be set for an Ephemeral Container");
}

TEST_F(PodsTest, ARuntimeClassGivesItsOverheadAndItsNodes) {
  ASSERT_EQ(server
                .Post("/apis/node.k8s.io/v1/runtimeclasses",
                      R"({"metadata":{"name":"vm"},"handler":"kata","overhead":{"podFixed":
                      {"cpu":"250m"}},"scheduling":{"nodeSelector":{"vm":"yes"},
                      "tolerations":[{"key":"vm","operator":"Exists"}]}})")
                .status,
            201);
  auto pod = [](const std::string& name, const std::string& more) {
    return StrCat(R"({"metadata":{"name":")", name,
                  R"("},"spec":{"containers":[{"name":"c","image":"i"}],)", more, "}}");
  };
  const Answer made = server.Post(kPods, pod("p", R"("runtimeClassName":"vm")"));
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.Str({"spec", "overhead", "cpu"}), "250m");
  EXPECT_EQ(made.Str({"spec", "nodeSelector", "vm"}), "yes");
  EXPECT_EQ(json::GetArray(made.body, {"spec", "tolerations"}).size(), 3u);
  const std::string forbidden = "pods \"q\" is forbidden: ";
  EXPECT_EQ(server.Post(kPods, pod("q", R"("overhead":{"cpu":"1"})")).Message(),
            forbidden +
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined "
                "Overhead");
  EXPECT_EQ(
      server.Post(kPods, pod("q", R"("runtimeClassName":"vm","overhead":{"cpu":"1"})")).Message(),
      forbidden + "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
  EXPECT_EQ(server.Post(kPods, pod("q", R"("runtimeClassName":"vm","nodeSelector":{"vm":"no"})"))
                .Message(),
            forbidden +
                "conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; "
                "pod.spec.nodeSelector[vm] = no");
}

}  // namespace
}  // namespace swell::apiserver
