// Nodes that speak over the network keep to themselves; deleted users lose what they have open.
#include "kube/apiserver/access/node_restriction.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

class NodeRestrictionTest : public testing::Test {
 protected:
  NodeRestrictionTest()
      : test_(Options{.token_key = std::make_shared<const TestTokenKey>(), .rbac = true}) {
    test_.Boot();
    for (const char* node : {"n1", "n2"}) {
      Must("POST", "/api/v1/nodes", StrCat(R"({"metadata":{"name":")", node, R"("}})"));
      Must("POST", kPods,
           StrCat(R"({"metadata":{"name":"on-)", node, R"("},"spec":{"nodeName":")", node,
                  R"(","volumes":[{"name":"v","secret":{"secretName":"of-)", node,
                  R"("}}],"containers":[{"name":"of-n2","image":"i"}]}})"));
      Must("POST", "/api/v1/namespaces/default/secrets",
           StrCat(R"({"metadata":{"name":"of-)", node, R"("}})"));
    }
  }
  // As the administrator.
  void Must(const char* method, const std::string& target, std::string body) {
    auto request = test_.Request(method, target, std::move(body));
    request.user = {"root", "", {"system:masters"}};
    const Answer answer = test_.Send(std::move(request));
    EXPECT_LT(answer.status, 300) << answer.text;
  }
  // As the node n1, by its certificate.
  int Node(const char* method, const std::string& target, std::string body = {}) {
    auto request = test_.Request(method, target, std::move(body));
    if (request.method == "PATCH") request.content_type = "application/merge-patch+json";
    request.user = {};
    request.credentials.certificate_common_name = "system:node:n1";
    request.credentials.certificate_organizations = {"system:nodes"};
    return test_.Send(std::move(request)).status;
  }

  TestServer test_;
};

TEST_F(NodeRestrictionTest, ANodeChangesItselfAndItsPods) {
  const std::string status = R"({"status":{"phase":"Running"}})";
  EXPECT_EQ(Node("PATCH", StrCat(kPods, "/on-n1/status"), status), 200);
  EXPECT_EQ(Node("PATCH", StrCat(kPods, "/on-n2/status"), status), 403);
  EXPECT_EQ(Node("DELETE", StrCat(kPods, "/on-n2")), 403);
  EXPECT_EQ(Node("PATCH", "/api/v1/nodes/n1/status", "{}"), 200);
  EXPECT_EQ(Node("PATCH", "/api/v1/nodes/n2/status", "{}"), 403);
  EXPECT_EQ(Node("PATCH", "/api/v1/nodes/n1", R"({"metadata":{"labels":{"a":"b"}}})"), 200);
  EXPECT_EQ(Node("PATCH", "/api/v1/nodes/n1",
                 R"({"metadata":{"labels":{"node-restriction.kubernetes.io/a":"b"}}})"),
            403);
  EXPECT_EQ(Node("PATCH", "/api/v1/nodes/n1", R"({"spec":{"taints":[]}})"), 200);
  EXPECT_EQ(Node("PATCH", "/api/v1/nodes/n1",
                 R"({"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}})"),
            403);
  EXPECT_EQ(Node("POST", "/api/v1/nodes", R"({"metadata":{"name":"n3"}})"), 403);
  const std::string lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
  EXPECT_EQ(Node("POST", lease, R"({"metadata":{"name":"n1"}})"), 201);
  EXPECT_EQ(Node("POST", lease, R"({"metadata":{"name":"n2"}})"), 403);
  EXPECT_EQ(Node("DELETE", lease + "/n2"), 403);
}

TEST_F(NodeRestrictionTest, ANodeOffersItsOwnDevices) {
  const std::string slices = "/apis/resource.k8s.io/v1/resourceslices";
  const auto slice = [](const char* name, const char* node) {
    return StrCat(R"({"metadata":{"name":")", name,
                  R"("},"spec":{"driver":"gpu.swell.dev","nodeName":")", node,
                  R"(","pool":{"name":")", node, R"(","generation":1,"resourceSliceCount":1}}})");
  };
  EXPECT_EQ(Node("POST", slices, slice("mine", "n1")), 201);
  EXPECT_EQ(Node("POST", slices, slice("others", "n2")), 403);
  Must("POST", slices, slice("others", "n2"));
  const std::string devices = R"({"spec":{"devices":[{"name":"gpu-0"}]}})";
  EXPECT_EQ(Node("PATCH", slices + "/mine", devices), 200);
  EXPECT_EQ(Node("PATCH", slices + "/others", devices), 403);
  EXPECT_EQ(Node("GET", slices + "/mine"), 200);
}

TEST_F(NodeRestrictionTest, ANodeReadsWhatItsPodsNeed) {
  const std::string secrets = "/api/v1/namespaces/default/secrets";
  EXPECT_EQ(Node("GET", secrets + "/of-n1"), 200);
  // A container of that name is not a reference to it.
  EXPECT_EQ(Node("GET", secrets + "/of-n2"), 403);
  EXPECT_EQ(Node("GET", secrets), 403);
  EXPECT_EQ(Node("GET", "/api/v1/secrets"), 403);
  EXPECT_EQ(Node("GET", "/api/v1/namespaces/default/configmaps/x"), 403);
}

TEST_F(NodeRestrictionTest, ANodeIsGivenTokensForItsPods) {
  const std::string token = "/api/v1/namespaces/default/serviceaccounts/default/token";
  auto bound = [](const std::string& pod) {
    return StrCat(R"({"spec":{"boundObjectRef":{"kind":"Pod","name":")", pod, R"("}}})");
  };
  EXPECT_EQ(Node("POST", token, bound("on-n1")), 201);
  EXPECT_EQ(Node("POST", token, bound("on-n2")), 403);
  EXPECT_EQ(Node("POST", token, R"({"spec":{}})"), 403);
}

TEST_F(NodeRestrictionTest, ANodeMakesOnlyMirrorsOfItsOwnPods) {
  auto pod = [](const std::string& node, const std::string& annotations) {
    return StrCat(R"({"metadata":{"name":"m","annotations":{)", annotations,
                  R"(}},"spec":{"nodeName":")", node,
                  R"(","automountServiceAccountToken":false,)"
                  R"("containers":[{"name":"c","image":"i"}]}})");
  };
  EXPECT_EQ(Node("POST", kPods, pod("n1", "")), 403);
  EXPECT_EQ(Node("POST", kPods, pod("n2", R"("kubernetes.io/config.mirror":"x")")), 403);
  EXPECT_EQ(Node("POST", kPods, pod("n1", R"("kubernetes.io/config.mirror":"x")")), 201);
}

// alice, a user with a token, beside root.
class OpenStreamsTest : public testing::Test {
 protected:
  explicit OpenStreamsTest(size_t of_user_max = 2000)
      : test_(Options{.token_key = std::make_shared<const TestTokenKey>(),
                      .rbac = true,
                      .streams_of_user_max = of_user_max}) {
    test_.Boot();
    const Answer secret =
        AsRoot("POST", "/api/v1/namespaces/kube-system/secrets",
               R"({"metadata":{"name":"swell-user-a","labels":{"swell.dev/user-secret":"x"}},)"
               R"("type":"swell.dev/user","stringData":{"username":"alice"}})");
    EXPECT_EQ(secret.status, 201) << secret.text;
    const std::string subjects =
        R"([{"kind":"User","name":"alice"},)"
        R"({"kind":"ServiceAccount","name":"default","namespace":"default"}])";
    const Answer bound = AsRoot(
        "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        StrCat(R"({"metadata":{"name":"b"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",)",
               R"("kind":"ClusterRole","name":"cluster-admin"},"subjects":)", subjects, "}"));
    EXPECT_EQ(bound.status, 201) << bound.text;
    const Answer made = AsRoot(
        "POST", "/swell/v1/users/swell-user-a/credentials",
        StrCat(R"({"expirationSeconds":600,"uid":")", secret.Str({"metadata", "uid"}), R"("})"));
    EXPECT_EQ(made.status, 201) << made.text;
    token_ = made.Str({"token"});
  }
  Answer AsRoot(const char* method, const std::string& target, std::string body = {}) {
    auto request = test_.Request(method, target, std::move(body));
    request.user = {"root", "", {"system:masters"}};
    return test_.Send(std::move(request));
  }
  // By root where there is no token.
  TestWatch Watch(const std::string& token) {
    auto request = test_.Request("GET", StrCat(kPods, "?watch=true"));
    request.user = {};
    if (token.empty()) request.user = {"root", "", {"system:masters"}};
    request.credentials.bearer_token = token;
    TestWatch watch;
    watch.sink = std::make_shared<TestSink>();
    watch.call = test_.server->Handle(std::move(request), watch.sink);
    test_.executor.RunPosted();
    return watch;
  }

  TestServer test_;
  std::string token_;
};

TEST_F(OpenStreamsTest, ADeletedUserLosesWhatTheyHaveOpen) {
  const TestWatch hers = Watch(token_);
  const TestWatch ours = Watch("");
  EXPECT_EQ(hers.sink->stream_status, 200);
  EXPECT_EQ(ours.sink->stream_status, 200);
  EXPECT_EQ(AsRoot("DELETE", "/api/v1/namespaces/kube-system/secrets/swell-user-a").status, 200);
  test_.executor.RunPosted();
  EXPECT_EQ(hers.sink->ends, 1);
  EXPECT_EQ(hers.sink->end.code(), Code::kUnauthorized);
  EXPECT_EQ(ours.sink->ends, 0);
}

class FewStreamsTest : public OpenStreamsTest {
 protected:
  FewStreamsTest() : OpenStreamsTest(3) {}
};

TEST_F(FewStreamsTest, OneUserLeavesPlacesToTheOthers) {
  std::vector<TestWatch> hers;
  for (int i = 0; i < 3; ++i) hers.push_back(Watch(token_));
  EXPECT_EQ(hers.back().sink->stream_status, 200);
  EXPECT_EQ(Watch(token_).sink->answer.status, 429);
  EXPECT_EQ(Watch("").sink->stream_status, 200);
  // A token of an account that she asked for gives her no further place.
  auto request = test_.Request("POST", "/api/v1/namespaces/default/serviceaccounts/default/token",
                               R"({"spec":{}})");
  request.user = {};
  request.credentials.bearer_token = token_;
  const Answer account = test_.Send(std::move(request));
  ASSERT_EQ(account.status, 201) << account.text;
  const std::string token = account.Str({"status", "token"});
  EXPECT_EQ(Watch(token).sink->answer.status, 429);
  hers.pop_back();
  test_.executor.RunPosted();
  EXPECT_EQ(Watch(token).sink->stream_status, 200);
}

// Users of a token file may have names only.
TEST_F(FewStreamsTest, AUserWithoutAUidHasNoMorePlaces) {
  auto watch_as = [this](const api::UserInfo& user) {
    auto request = test_.Request("GET", StrCat(kPods, "?watch=true"));
    request.user = user;
    TestWatch watch;
    watch.sink = std::make_shared<TestSink>();
    watch.call = test_.server->Handle(std::move(request), watch.sink);
    test_.executor.RunPosted();
    return watch;
  };
  const api::UserInfo bob{"bob", "", {"team"}};
  const Answer bound = AsRoot(
      "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
      R"({"metadata":{"name":"team"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",)"
      R"("kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"Group","name":"team"}]})");
  ASSERT_EQ(bound.status, 201) << bound.text;
  std::vector<TestWatch> his;
  for (int i = 0; i < 3; ++i) his.push_back(watch_as(bob));
  EXPECT_EQ(his.back().sink->stream_status, 200);
  const TestWatch refused = watch_as(bob);
  EXPECT_EQ(refused.sink->answer.status, 429);
  EXPECT_NE(refused.sink->answer.BodyString().find("bob"), std::string::npos);
  EXPECT_EQ(watch_as({"jim", "", {"team"}}).sink->stream_status, 200);
  his.pop_back();
  test_.executor.RunPosted();
  EXPECT_EQ(watch_as(bob).sink->stream_status, 200);
  // The system's own have all that they need.
  std::vector<TestWatch> ours;
  for (int i = 0; i < 5; ++i) ours.push_back(watch_as({"system:kube-scheduler", "", {"team"}}));
  EXPECT_EQ(ours.back().sink->stream_status, 200);
}

TEST(TokenLivesTest, LivesOfTokensAreBounded) {
  Options options{.token_key = std::make_shared<const TestTokenKey>()};
  options.token_life_max = std::chrono::hours(2);
  TestServer test(std::move(options));
  test.Boot();
  const Answer cut = test.Post("/api/v1/namespaces/default/serviceaccounts/default/token",
                               R"({"spec":{"expirationSeconds":100000000}})");
  EXPECT_EQ(cut.status, 201) << cut.text;
  EXPECT_EQ(json::GetInt(cut.body, {"spec", "expirationSeconds"}), 7200);
  ASSERT_EQ(cut.warnings.size(), 1u);
  EXPECT_NE(cut.warnings[0].find("expires after 7200 seconds"), std::string::npos);
}

}  // namespace
}  // namespace swell::apiserver
