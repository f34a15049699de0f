// Webhooks: admission and conversion, with servers that live in the test.
#include "kube/apiserver/webhooks/webhook.h"

#include <map>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

using Reply = std::function<json::Value(const json::Value& request)>;

// A webhook: it is asked, and answers a moment later; by default, it allows.
class Hook final : public api::RestHandler {
 public:
  explicit Hook(Executor& executor) : executor_(executor) {}

  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    paths.push_back(request.query.empty() ? request.path
                                          : StrCat(request.path, "?", request.query));
    auto review = json::Parse(request.body);
    EXPECT_TRUE(review.ok());
    if (!review.ok()) return nullptr;
    asked.push_back(*json::Find(*review, {"request"}));
    if (silent) return nullptr;
    executor_.Post([this, sink, review = *review] {
      if (before_reply) std::exchange(before_reply, nullptr)();
      api::RestResponse response;
      response.status = status;
      response.body.push_back(api::MakeChunk(json::Print(Review(review))));
      sink->OnResponse(std::move(response));
    });
    return nullptr;
  }

  json::Value Review(const json::Value& review) {
    const json::Value& request = *json::Find(review, {"request"});
    json::Value response = reply ? reply(request) : json::Value(json::Object{{"allowed", true}});
    json::Set(response, {"uid"}, json::Value(json::GetString(request, {"uid"})));
    return json::Object{{"kind", json::GetString(review, {"kind"})},
                        {"apiVersion", json::GetString(review, {"apiVersion"})},
                        {"response", std::move(response)}};
  }

  std::vector<std::string> paths;
  std::vector<json::Value> asked;
  Reply reply;
  std::function<void()> before_reply;
  bool silent = false;
  int status = 200;

 private:
  Executor& executor_;
};

json::Value Denied(const std::string& message, int64_t code = 0) {
  json::Object result{{"message", message}};
  if (code != 0) result["code"] = code;
  return json::Object{{"allowed", false}, {"status", std::move(result)}};
}

json::Value Patched(const std::string& patch) {
  return json::Object{
      {"allowed", true}, {"patchType", "JSONPatch"}, {"patch", Base64Encode(patch)}};
}

constexpr char kBindings[] = R"("operations":["CREATE"],"resources":["pods/binding"])";
constexpr char kEvictions[] = R"("operations":["CREATE"],"resources":["pods/eviction"])";
constexpr char kScales[] = R"("operations":["UPDATE"],"resources":["replicasets/scale"])";
constexpr char kReplicaSet[] =
    R"({"metadata":{"name":"r"},"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},)"
    R"("template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})";

class WebhookTest : public ::testing::Test {
 protected:
  WebhookTest() : server(MakeOptions()) {}

  Options MakeOptions() {
    Options options;
    options.http_dialer =
        [this](const HttpTarget& target) -> Result<std::shared_ptr<api::RestHandler>> {
      targets.push_back(target);
      const auto found = hooks.find(target.base_url);
      if (found == hooks.end()) return Status(Code::kUnavailable, "no such host");
      return std::shared_ptr<api::RestHandler>(found->second);
    };
    return options;
  }

  void SetUp() override {
    server.Boot();
    ASSERT_TRUE(server.boot.ok()) << server.boot.ToString();
  }

  // A webhook at https://NAME, with its configuration of `kind`.
  Hook& Add(const std::string& kind,
            const std::string& name,
            const std::string& more = {},
            const std::string& rule = R"("operations":["*"],"resources":["pods","pods/*"])") {
    auto& hook = hooks[StrCat("https://", name, ":443")];
    if (!hook) hook = std::make_shared<Hook>(server.executor);
    const std::string plural = ToLower(kind) + "webhookconfigurations";
    const Answer made = server.Post(
        StrCat("/apis/admissionregistration.k8s.io/v1/", plural),
        StrCat(R"({"metadata":{"name":")", name, R"("},"webhooks":[{"name":")", name,
               R"(.example.com","clientConfig":{"url":"https://)", name,
               R"(:443/hook"},"rules":[{"apiGroups":["*"],)",
               rule.find("apiVersions") == std::string::npos ? R"("apiVersions":["*"],)" : "", rule,
               R"(}],"admissionReviewVersions":["v1"])",
               more.find("sideEffects") == std::string::npos ? R"(,"sideEffects":"None")" : "",
               more.empty() ? "" : "," + more, "}]}"));
    EXPECT_EQ(made.status, 201) << made.text;
    return *hook;
  }
  Hook& AddMutating(const std::string& name, const std::string& more = {}) {
    return Add("Mutating", name, more);
  }
  Hook& AddValidating(const std::string& name, const std::string& more = {}) {
    return Add("Validating", name, more);
  }

  std::vector<std::unique_ptr<api::RestCall>> kept;
  std::vector<HttpTarget> targets;
  std::map<std::string, std::shared_ptr<Hook>> hooks;
  TestServer server;
};

TEST_F(WebhookTest, AMutatingWebhookChangesWhatIsCreated) {
  Hook& hook = AddMutating("sidecar");
  hook.reply = [](const json::Value&) {
    return Patched(R"([{"op":"add","path":"/metadata/labels/by","value":"hook"},)"
                   R"({"op":"add","path":"/spec/containers/-","value":{"name":"s","image":"i"}}])");
  };
  const Answer made = server.Post(kPods, PodJson("p", {}, R"({"app":"x"})"));
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.Str({"metadata", "labels", "by"}), "hook");
  const json::Array& containers = json::GetArray(made.body, {"spec", "containers"});
  ASSERT_EQ(containers.size(), 2u);
  // Defaults come over what webhooks add, too.
  EXPECT_EQ(json::GetString(containers[1], {"terminationMessagePath"}), "/dev/termination-log");
  ASSERT_EQ(hook.asked.size(), 1u);
  const json::Value& asked = hook.asked[0];
  EXPECT_EQ(json::GetString(asked, {"operation"}), "CREATE");
  EXPECT_EQ(json::GetString(asked, {"namespace"}), "default");
  EXPECT_EQ(json::GetString(asked, {"name"}), "p");
  EXPECT_EQ(json::GetString(asked, {"userInfo", "username"}), "admin");
  EXPECT_EQ(json::GetString(asked, {"requestKind", "kind"}), "Pod");
  EXPECT_EQ(json::GetString(asked, {"options", "kind"}), "CreateOptions");
  EXPECT_EQ(json::Find(asked, {"object", "metadata", "uid"}), nullptr);
  EXPECT_TRUE(json::Find(asked, {"oldObject"})->is_null());
  EXPECT_EQ(hook.paths[0], "/hook?timeout=10s");
}

TEST_F(WebhookTest, AmountsOfAWholePodCountTheContainersThatAWebhookAdds) {
  Hook& hook = AddMutating("sidecar");
  hook.reply = [](const json::Value&) {
    return Patched(R"([{"op":"add","path":"/spec/containers/-","value":{"name":"s","image":"i",)"
                   R"("resources":{"requests":{"cpu":"100m"}}}}])");
  };
  const Answer made = server.Post(
      kPods, R"({"metadata":{"name":"p"},"spec":{"resources":{"limits":{"cpu":"2"}},"containers":[
          {"name":"c","image":"i","resources":{"requests":{"cpu":"500m"}}}]}})");
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.Str({"spec", "resources", "requests", "cpu"}), "600m");
  ASSERT_EQ(hook.asked.size(), 1u);
  EXPECT_EQ(json::Find(hook.asked[0], {"object", "spec", "resources", "requests"}), nullptr);
}

TEST_F(WebhookTest, WhatWebhooksMakeWrongIsInvalid) {
  AddMutating("bad").reply = [](const json::Value&) {
    return Patched(R"([{"op":"add","path":"/spec/containers/-","value":{"name":"s"}}])");
  };
  const Answer made = server.Post(kPods, PodJson("p"));
  EXPECT_EQ(made.status, 422) << made.text;
  EXPECT_NE(made.Message().find("spec.containers[1].image: Required value"), std::string::npos);
}

TEST_F(WebhookTest, ARefusalIsToldInTheWebhooksWords) {
  Hook& hook = AddValidating("policy");
  hook.reply = [](const json::Value&) { return Denied("no root"); };
  const Answer refused = server.Post(kPods, PodJson("p"));
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.Reason(), "");
  EXPECT_EQ(refused.Message(),
            "admission webhook \"policy.example.com\" denied the request: no root");
  hook.reply = [](const json::Value&) { return Denied("never", 403); };
  EXPECT_EQ(server.Post(kPods, PodJson("p")).status, 403);
  hook.reply = [](const json::Value&) { return json::Object{{"allowed", false}}; };
  EXPECT_EQ(server.Post(kPods, PodJson("p")).Message(),
            "admission webhook \"policy.example.com\" denied the request without explanation");
  EXPECT_EQ(server.Get(StrCat(kPods, "/p")).status, 404);
}

TEST_F(WebhookTest, AValidatingWebhookSeesTheWholeObjectAndWarns) {
  Hook& hook = AddValidating("look");
  hook.reply = [](const json::Value&) {
    return json::Object{{"allowed", true}, {"warnings", json::Array{"old image"}}};
  };
  const Answer made = server.Post(kPods, R"({"metadata":{"generateName":"p-"},)"
                                         R"("spec":{"containers":[{"name":"c","image":"i"}]}})");
  ASSERT_EQ(made.status, 201) << made.text;
  ASSERT_EQ(made.warnings.size(), 1u);
  EXPECT_EQ(made.warnings[0], "299 - \"old image\"");
  ASSERT_EQ(hook.asked.size(), 1u);
  // The name that was generated for the first look is the one that is written.
  EXPECT_EQ(json::GetString(hook.asked[0], {"object", "metadata", "name"}),
            made.Str({"metadata", "name"}));
  EXPECT_EQ(json::GetString(hook.asked[0], {"object", "metadata", "uid"}),
            made.Str({"metadata", "uid"}));
}

TEST_F(WebhookTest, FailurePolicyDecidesWhenNobodyAnswers) {
  Hook& hook = AddValidating("gone", R"("timeoutSeconds":3)");
  hook.silent = true;
  auto sink = std::make_shared<TestSink>();
  auto call = server.server->Handle(server.Request("POST", kPods, PodJson("p")), sink);
  server.executor.RunPosted();
  EXPECT_EQ(sink->answers, 0);
  server.executor.Advance(std::chrono::seconds(4));
  ASSERT_EQ(sink->answers, 1);
  const auto answer = json::Parse(sink->answer.BodyString());
  EXPECT_EQ(sink->answer.status, 500);
  EXPECT_EQ(json::GetString(*answer, {"reason"}), "InternalError");
  EXPECT_EQ(json::GetString(*answer, {"message"}),
            "Internal error occurred: failed calling webhook \"gone.example.com\": Post "
            "\"https://gone:443/hook?timeout=3s\": context deadline exceeded");
  hook.silent = false;
  hook.status = 503;
  EXPECT_EQ(server.Post(kPods, PodJson("p")).Message(),
            "Internal error occurred: failed calling webhook \"gone.example.com\": the server is "
            "currently unable to handle the request");
  ASSERT_EQ(server
                .Merge("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/gone",
                       R"({"webhooks":[{"name":"gone.example.com","failurePolicy":"Ignore",)"
                       R"("clientConfig":{"url":"https://gone:443/hook"},"sideEffects":"None",)"
                       R"("admissionReviewVersions":["v1"],"rules":[{"operations":["CREATE"],)"
                       R"("apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]}]})")
                .status,
            200);
  EXPECT_EQ(server.Post(kPods, PodJson("p")).status, 201);
}

TEST_F(WebhookTest, SelectorsDecideWhoIsAsked) {
  Hook& labels = AddMutating("labels", R"("objectSelector":{"matchLabels":{"ask":"me"}})");
  Hook& spaces = AddMutating("spaces", R"("namespaceSelector":{"matchLabels":{"ask":"me"}})");
  ASSERT_EQ(server.Post(kPods, PodJson("p")).status, 201);
  EXPECT_EQ(labels.asked.size() + spaces.asked.size(), 0u);
  ASSERT_EQ(server.Post(kPods, PodJson("q", "", R"({"ask":"me"})")).status, 201);
  EXPECT_EQ(labels.asked.size(), 1u);
  ASSERT_EQ(
      server.Merge("/api/v1/namespaces/default", R"({"metadata":{"labels":{"ask":"me"}}})").status,
      200);
  ASSERT_EQ(server.Post(kPods, PodJson("r")).status, 201);
  EXPECT_EQ(spaces.asked.size(), 1u);
}

TEST_F(WebhookTest, DryRunsAreForWebhooksWithoutSideEffects) {
  Hook& hook = AddValidating("pure");
  ASSERT_EQ(server.Post(StrCat(kPods, "?dryRun=All"), PodJson("p")).status, 201);
  EXPECT_TRUE(json::GetBool(hook.asked[0], {"dryRun"}));
  EXPECT_EQ(server.Get(StrCat(kPods, "/p")).status, 404);
  hooks.at("https://pure:443")->asked.clear();
  ASSERT_EQ(
      server
          .Patch("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/pure",
                 R"([{"op":"replace","path":"/webhooks/0/sideEffects","value":"NoneOnDryRun"},)"
                 R"({"op":"replace","path":"/webhooks/0/rules/0/operations","value":["DELETE"]}])",
                 "application/json-patch+json")
          .status,
      200);
  ASSERT_EQ(server.Post(kPods, PodJson("p")).status, 201);
  EXPECT_TRUE(hook.asked.empty());
  ASSERT_EQ(server.Delete(StrCat(kPods, "/p?dryRun=All")).status, 200);
  EXPECT_EQ(hook.asked.size(), 1u);
}

TEST_F(WebhookTest, ConditionsDecideWhetherItIsAsked) {
  Hook& hook =
      AddValidating("some", R"("matchConditions":[{"name":"not-me","expression":)"
                            R"("object.metadata.name != 'q' && request.operation == 'CREATE'"}])");
  ASSERT_EQ(server.Post(kPods, PodJson("q")).status, 201);
  EXPECT_TRUE(hook.asked.empty());
  ASSERT_EQ(server.Post(kPods, PodJson("p")).status, 201);
  EXPECT_EQ(hook.asked.size(), 1u);
  AddValidating("odd", R"("matchConditions":[{"name":"n","expression":"object.spec.nope > 1"}])");
  const Answer refused = server.Post(kPods, PodJson("r"));
  EXPECT_EQ(refused.status, 403);
  EXPECT_NE(refused.Message().find("no such key: nope"), std::string::npos) << refused.Message();
}

TEST_F(WebhookTest, ConditionsMayAskForRights) {
  const std::string allowed = "authorizer.requestResource.check('create').allowed()";
  const auto condition = [](const std::string& expression) {
    return StrCat(R"("matchConditions":[{"name":"n","expression":")", expression, "\"}]");
  };
  Hook& with = AddValidating("with", condition(allowed));
  Hook& without = AddValidating("without", condition(StrCat("!", allowed)));
  ASSERT_EQ(server.Post(kPods, PodJson("p")).status, 201);
  EXPECT_EQ(with.asked.size(), 1u);
  EXPECT_TRUE(without.asked.empty());
}

TEST_F(WebhookTest, WhoChangesAfterMeMakesMeLookAgain) {
  Hook& first = AddMutating("a-first", R"("reinvocationPolicy":"IfNeeded")");
  Hook& second = AddMutating("b-second");
  second.reply = [](const json::Value&) {
    return Patched(R"([{"op":"add","path":"/metadata/labels/second","value":"yes"}])");
  };
  first.reply = [](const json::Value& request) {
    const bool seen = !json::GetString(request, {"object", "metadata", "labels", "second"}).empty();
    if (!seen) return json::Value(json::Object{{"allowed", true}});
    return Patched(R"([{"op":"add","path":"/metadata/labels/first","value":"saw"}])");
  };
  const Answer made = server.Post(kPods, PodJson("p", {}, R"({"app":"x"})"));
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.Str({"metadata", "labels", "first"}), "saw");
  EXPECT_EQ(first.asked.size(), 2u);
  EXPECT_EQ(second.asked.size(), 1u);
}

TEST_F(WebhookTest, APatchMeetsTheStateThatIsThereWhenTheWebhookHasAnswered) {
  ASSERT_EQ(server.Post(kPods, PodJson("p")).status, 201);
  Hook& hook = AddValidating("slow");
  hook.before_reply = [this] {
    auto sink = std::make_shared<TestSink>();
    auto request =
        server.Request("PATCH", StrCat(kPods, "/p/status"), R"({"status":{"message":"meanwhile"}})",
                       "application/merge-patch+json");
    // Asks the same webhook, which answers behind the first one.
    kept.push_back(server.server->Handle(std::move(request), sink));
  };
  const Answer patched = server.Merge(StrCat(kPods, "/p"), R"({"metadata":{"labels":{"a":"b"}}})");
  ASSERT_EQ(patched.status, 200) << patched.text;
  const Answer now = server.Get(StrCat(kPods, "/p"));
  EXPECT_EQ(now.Str({"metadata", "labels", "a"}), "b");
  EXPECT_EQ(now.Str({"status", "message"}), "meanwhile");
}

TEST_F(WebhookTest, DeletionsConnectionsAndScalesAreAskedAbout) {
  ASSERT_EQ(server.Post(kPods, PodJson("p")).status, 201);
  Hook& hook = AddValidating("guard");
  hook.reply = [](const json::Value& request) {
    return json::GetString(request, {"operation"}) == "DELETE"
               ? Denied("protected")
               : json::Value(json::Object{{"allowed", true}});
  };
  const Answer refused = server.Delete(StrCat(kPods, "/p"));
  EXPECT_EQ(refused.Message(),
            "admission webhook \"guard.example.com\" denied the request: protected");
  EXPECT_EQ(json::GetString(hook.asked[0], {"oldObject", "metadata", "name"}), "p");
  EXPECT_TRUE(json::Find(hook.asked[0], {"object"})->is_null());
  EXPECT_EQ(server.Delete(kPods).status, 400);
  EXPECT_EQ(server.Get(StrCat(kPods, "/p")).status, 200);
  server.Post(StrCat(kPods, "/p/eviction"), R"({"metadata":{"name":"p"}})");
  EXPECT_EQ(json::GetString(hook.asked.back(), {"requestSubResource"}), "eviction");
  EXPECT_EQ(json::GetString(hook.asked.back(), {"kind", "kind"}), "Eviction");
}

TEST_F(WebhookTest, BindingsEvictionsAndScalesAreWrittenAsWebhooksLeftThem) {
  ASSERT_EQ(server.Post(kPods, PodJson("p")).status, 201);
  Hook& binding = Add("Mutating", "bindings", {}, kBindings);
  binding.reply = [](const json::Value&) {
    return Patched(R"([{"op":"replace","path":"/target/name","value":"n2"},)"
                   R"({"op":"add","path":"/metadata/annotations","value":{"by":"hook"}}])");
  };
  const std::string to = R"({"metadata":{"name":"p"},"target":{"kind":"Node","name":"n1"}})";
  Answer answer = server.Post(StrCat(kPods, "/p/binding"), to);
  ASSERT_EQ(answer.status, 201) << answer.text;
  answer = server.Get(StrCat(kPods, "/p"));
  EXPECT_EQ(answer.Str({"spec", "nodeName"}), "n2");
  EXPECT_EQ(answer.Str({"metadata", "annotations", "by"}), "hook");
  binding.reply = [](const json::Value&) {
    return Patched(R"([{"op":"remove","path":"/target/name"}])");
  };
  ASSERT_EQ(server.Post(kPods, PodJson("q")).status, 201);
  answer = server.Post(StrCat(kPods, "/q/binding"),
                       R"({"metadata":{"name":"q"},"target":{"name":"n1"}})");
  EXPECT_EQ(answer.status, 422) << answer.text;

  Hook& eviction = Add("Mutating", "evictions", {}, kEvictions);
  eviction.reply = [](const json::Value&) {
    return Patched(R"([{"op":"replace","path":"/metadata/name","value":"r"}])");
  };
  answer = server.Post(StrCat(kPods, "/q/eviction"), R"({"metadata":{"name":"q"}})");
  EXPECT_EQ(answer.Message(), "name in URL does not match name in Eviction object");
  eviction.reply = nullptr;
  EXPECT_EQ(server.Post(StrCat(kPods, "/q/eviction"), R"({"metadata":{"name":"q"}})").status, 201);

  const std::string sets = "/apis/apps/v1/namespaces/default/replicasets";
  ASSERT_EQ(server.Post(sets, kReplicaSet).status, 201);
  Hook& first = Add("Mutating", "scales", R"("reinvocationPolicy":"IfNeeded")", kScales);
  Hook& second = Add("Mutating", "scales-too", {}, kScales);
  first.reply = [](const json::Value& request) {
    const int64_t wanted = json::GetInt(request, {"object", "spec", "replicas"});
    return wanted > 7 ? Patched(R"([{"op":"replace","path":"/spec/replicas","value":7}])")
                      : json::Value(json::Object{{"allowed", true}});
  };
  second.reply = [](const json::Value&) {
    return Patched(R"([{"op":"replace","path":"/spec/replicas","value":9}])");
  };
  answer = server.Merge(StrCat(sets, "/r/scale"), R"({"spec":{"replicas":3}})");
  ASSERT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(first.asked.size(), 2u);  // once more, for somebody else has changed it since
  EXPECT_EQ(json::GetInt(answer.body, {"spec", "replicas"}), 7);
  EXPECT_EQ(json::GetInt(server.Get(StrCat(sets, "/r")).body, {"spec", "replicas"}), 7);
  second.reply = [](const json::Value&) {
    return Patched(R"([{"op":"replace","path":"/spec/replicas","value":-1}])");
  };
  EXPECT_EQ(server.Merge(StrCat(sets, "/r/scale"), R"({"spec":{"replicas":2}})").status, 422);
}

TEST_F(WebhookTest, AValidatingWebhookMayNotPatchAndUidsMustMatch) {
  Hook& hook = AddValidating("odd");
  hook.reply = [](const json::Value&) { return Patched("[]"); };
  EXPECT_EQ(server.Post(kPods, PodJson("p")).Message(),
            "Internal error occurred: failed calling webhook \"odd.example.com\": validating "
            "webhook may not return response.patch");
}

TEST_F(WebhookTest, ServicesGetTheirAddressesOnce) {
  Hook& hook = Add("Validating", "services", {}, R"("operations":["CREATE"],"resources":["*"])");
  const std::string services = "/api/v1/namespaces/default/services";
  const std::string body = R"({"metadata":{"name":"a"},"spec":{"ports":[{"port":80}]}})";
  hook.reply = [](const json::Value&) { return Denied("no"); };
  EXPECT_EQ(server.Post(services, body).status, 400);
  hook.reply = nullptr;
  const Answer first = server.Post(services, body);
  ASSERT_EQ(first.status, 201) << first.text;
  EXPECT_EQ(first.Str({"spec", "clusterIP"}), "10.96.0.2");
}

// --- Conversion ----------------------------------------------------------------------------------

constexpr char kThings[] = "/apis/example.com/v1/namespaces/default/things";
constexpr char kNewThings[] = "/apis/example.com/v2/namespaces/default/things";

class ConversionTest : public WebhookTest {
 protected:
  void SetUp() override {
    WebhookTest::SetUp();
    hook = std::make_shared<Hook>(server.executor);
    hooks["https://convert:443"] = hook;
    hook->reply = [](const json::Value& request) { return ConvertAll(request); };
    const Answer made =
        server.Post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                    R"({"metadata":{"name":"things.example.com"},"spec":{"group":"example.com",
            "scope":"Namespaced","names":{"plural":"things","kind":"Thing"},
            "conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],
              "clientConfig":{"url":"https://convert:443/crd"}}},
            "versions":[
             {"name":"v1","served":true,"storage":false,"subresources":{"status":{}},
              "schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",
                "required":["host"],"properties":{"host":{"type":"string"},
                "port":{"type":"integer","default":80}}},"status":{"type":"object",
                "x-kubernetes-preserve-unknown-fields":true}}}}},
             {"name":"v2","served":true,"storage":true,"subresources":{"status":{}},
              "schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",
                "required":["address"],"properties":{"address":{"type":"string"}}},
                "status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}})");
    ASSERT_EQ(made.status, 201) << made.text;
  }

  // {host, port} of v1 is {address: "host:port"} of v2.
  static json::Value ConvertAll(const json::Value& request) {
    const std::string desired(json::GetString(request, {"desiredAPIVersion"}));
    json::Array converted;
    for (json::Value object : json::GetArray(request, {"objects"})) {
      json::Object spec;
      if (desired == "example.com/v2") {
        spec["address"] = StrCat(json::GetString(object, {"spec", "host"}), ":",
                                 json::GetInt(object, {"spec", "port"}));
      } else {
        const std::string address(json::GetString(object, {"spec", "address"}));
        const size_t colon = address.find(':');
        spec["host"] = address.substr(0, colon);
        spec["port"] = ParseInt(address.substr(colon + 1)).value_or(0);
      }
      json::Set(object, {"spec"}, std::move(spec));
      json::Set(object, {"apiVersion"}, json::Value(desired));
      converted.push_back(std::move(object));
    }
    return json::Object{{"result", json::Object{{"status", "Success"}}},
                        {"convertedObjects", std::move(converted)}};
  }

  static std::string Thing(const std::string& name, const std::string& version = "v1") {
    return StrCat(R"({"apiVersion":"example.com/)", version, R"(","kind":"Thing","metadata":)",
                  R"({"name":")", name, R"("},"spec":)",
                  version == "v1" ? R"({"host":"h"})" : R"({"address":"h:1"})", "}");
  }

  std::shared_ptr<Hook> hook;
};

TEST_F(ConversionTest, ObjectsAreStoredInOneVersionAndShownInAll) {
  const Answer made = server.Post(kThings, Thing("a"));
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.Str({"apiVersion"}), "example.com/v1");
  EXPECT_EQ(json::GetInt(made.body, {"spec", "port"}), 80);  // of the version that was asked for
  EXPECT_EQ(server.Get(StrCat(kNewThings, "/a")).Str({"spec", "address"}), "h:80");
  EXPECT_EQ(server.Get(StrCat(kThings, "/a")).Str({"spec", "host"}), "h");
  const Answer patched = server.Merge(StrCat(kThings, "/a"), R"({"spec":{"port":90}})");
  ASSERT_EQ(patched.status, 200) << patched.text;
  EXPECT_EQ(json::GetInt(patched.body, {"spec", "port"}), 90);
  EXPECT_EQ(json::GetInt(patched.body, {"metadata", "generation"}), 2);
  EXPECT_EQ(server.Get(StrCat(kNewThings, "/a")).Str({"spec", "address"}), "h:90");
  const Answer status = server.Merge(StrCat(kThings, "/a/status"), R"({"status":{"ok":true}})");
  ASSERT_EQ(status.status, 200) << status.text;
  EXPECT_EQ(json::GetInt(status.body, {"spec", "port"}), 90);
  EXPECT_EQ(server.Delete(StrCat(kThings, "/a")).status, 200);
}

TEST_F(ConversionTest, AListIsOneReview) {
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_EQ(server.Post(kNewThings, Thing(name, "v2")).status, 201);
  }
  EXPECT_TRUE(hook->asked.empty());
  const Answer list = server.Get(kThings);
  ASSERT_EQ(list.status, 200) << list.text;
  ASSERT_EQ(json::GetArray(list.body, {"items"}).size(), 3u);
  for (const json::Value& item : json::GetArray(list.body, {"items"})) {
    EXPECT_EQ(json::GetString(item, {"spec", "host"}), "h");
  }
  ASSERT_EQ(hook->asked.size(), 1u);
  EXPECT_EQ(json::GetArray(hook->asked[0], {"objects"}).size(), 3u);
}

TEST_F(ConversionTest, AWatchConvertsInOrder) {
  ASSERT_EQ(server.Post(kNewThings, Thing("a", "v2")).status, 201);
  TestWatch watch = server.Watch(StrCat(kThings, "?watch=1"));
  for (const char* name : {"b", "c"}) {
    ASSERT_EQ(server.Post(kNewThings, Thing(name, "v2")).status, 201);
  }
  ASSERT_EQ(server.Delete(StrCat(kNewThings, "/a")).status, 200);
  std::string seen;
  for (const json::Value& event : watch.Take()) {
    seen += StrCat(json::GetString(event, {"type"}), " ",
                   json::GetString(event, {"object", "metadata", "name"}), " ",
                   json::GetString(event, {"object", "spec", "host"}), "\n");
  }
  EXPECT_EQ(seen, "ADDED a h\nADDED b h\nADDED c h\nDELETED a h\n");
}

TEST_F(ConversionTest, WhatIsWrongWithAnAnswerIsToldInKubernetesWords) {
  ASSERT_EQ(server.Post(kNewThings, Thing("a", "v2")).status, 201);
  const std::string about = "conversion webhook for example.com/v2, Kind=Thing";
  hook->reply = [](const json::Value&) {
    return json::Object{{"result", json::Object{{"status", "Failure"}, {"message", "too new"}}}};
  };
  const Answer failed = server.Get(StrCat(kThings, "/a"));
  EXPECT_EQ(failed.status, 500);
  EXPECT_EQ(failed.Reason(), "");
  EXPECT_EQ(failed.Message(), about + " failed: too new");
  hook->reply = [](const json::Value&) {
    return json::Object{{"result", json::Object{{"status", "Success"}}}};
  };
  EXPECT_EQ(server.Get(StrCat(kThings, "/a")).Message(), about + " returned 0 objects, expected 1");
  hook->reply = [](const json::Value& request) {
    json::Value all = ConvertAll(request);
    json::Set(json::FindMutable(all, {"convertedObjects"})->get_array()[0], {"metadata", "name"},
              json::Value("other"));
    return all;
  };
  EXPECT_EQ(server.Get(StrCat(kThings, "/a")).Message(),
            about + " returned invalid object: must have the same name: a != other");
  hook->status = 404;
  EXPECT_EQ(server.Get(StrCat(kThings, "/a")).Message(),
            about + " failed: the server could not find the requested resource");
}

TEST_F(ConversionTest, AdmissionWebhooksAreAskedInTheVersionTheyWant) {
  Hook& admit = Add("Mutating", "v2-only", {},
                    R"("operations":["CREATE"],"resources":["things"],"apiVersions":["v2"])");
  admit.reply = [](const json::Value& request) {
    EXPECT_EQ(json::GetString(request, {"object", "spec", "address"}), "h:80");
    return Patched(R"([{"op":"replace","path":"/spec/address","value":"h:81"}])");
  };
  const Answer made = server.Post(kThings, Thing("a"));
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(json::GetInt(made.body, {"spec", "port"}), 81);
}

TEST_F(ConversionTest, AServiceIsReachedByItsEndpoints) {
  ASSERT_EQ(server
                .Post("/api/v1/namespaces/default/services",
                      R"({"metadata":{"name":"convert"},"spec":{"ports":[{"port":443}]}})")
                .status,
            201);
  ASSERT_EQ(server
                .Post("/api/v1/namespaces/default/endpoints",
                      R"({"metadata":{"name":"convert"},"subsets":[{"addresses":[{"ip":)"
                      R"("10.0.0.7"}],"ports":[{"port":8443}]}]})")
                .status,
            201);
  hooks["https://10.0.0.7:8443"] = hook;
  ASSERT_EQ(server
                .Merge("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com",
                       R"({"spec":{"conversion":{"webhook":{"clientConfig":{"url":null,)"
                       R"("caBundle":"Q0E=","service":{"namespace":"default","name":"convert",)"
                       R"("path":"/c"}}}}}})")
                .status,
            200);
  ASSERT_EQ(server.Post(kThings, Thing("a")).status, 201);
  EXPECT_EQ(targets.back().server_name, "convert.default.svc");
  EXPECT_EQ(targets.back().ca_pem, "CA");
  EXPECT_TRUE(targets.back().verify);
  EXPECT_EQ(hook->paths.back(), "/c");
}

}  // namespace
}  // namespace swell::apiserver
