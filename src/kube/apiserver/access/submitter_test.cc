// The submitter of pods, jobs and workloads, and the uid with which they run.
#include "kube/apiserver/access/submitter.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

constexpr char kPods[] = "/api/v1/namespaces/default/pods";
constexpr char kDeployments[] = "/apis/apps/v1/namespaces/default/deployments";
const api::UserInfo kAlice{"alice", "", {"system:authenticated"}};
const api::UserInfo kBob{"bob", "", {"system:authenticated"}};
const api::UserInfo kMaster{"root", "", {"system:masters"}};
const api::UserInfo kController{"system:swell", "", {"system:masters"}};

class SubmitterTest : public testing::Test {
 protected:
  SubmitterTest() : test_(Options{.rbac = true}) {
    test_.Boot();
    EXPECT_TRUE(test_.boot.ok());
    for (const char* name : {"alice", "bob"}) {
      Must(kMaster, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
           StrCat(R"({"metadata":{"name":")", name,
                  R"("},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole",)",
                  R"("name":"cluster-admin"},"subjects":[{"kind":"User","name":")", name,
                  R"(","apiGroup":"rbac.authorization.k8s.io"}]})"));
    }
  }

  Answer As(const api::UserInfo& user,
            std::string method,
            const std::string& target,
            std::string body) {
    auto request = test_.Request(std::move(method), target, std::move(body));
    request.user = user;
    if (request.method == "PATCH") request.content_type = "application/merge-patch+json";
    return test_.Send(std::move(request));
  }
  json::Value Must(const api::UserInfo& user,
                   const char* method,
                   const char* to,
                   std::string body) {
    const Answer answer = As(user, method, to, std::move(body));
    EXPECT_LT(answer.status, 300) << answer.text;
    return answer.body;
  }
  void RunAliceAs(const std::string& text) {
    Must(kMaster, "POST", "/api/v1/namespaces/kube-system/secrets",
         StrCat(R"({"metadata":{"name":"swell-user-a","labels":{"swell.dev/user-secret":"x"}},)",
                R"("type":"swell.dev/user","stringData":{"username":"alice","runAs":")", text,
                R"("}})"));
  }
  static std::string Pod(const std::string& name,
                         const std::string& pod_context,
                         const std::string& container_context = "{}") {
    return StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"securityContext":)", pod_context,
                  R"(,"containers":[{"name":"c","image":"i","securityContext":)", container_context,
                  "}]}}");
  }
  static std::string Context(const json::Value& pod) {
    const json::Value* context = json::Find(pod, {"spec", "securityContext"});
    return context != nullptr ? json::Print(*context) : "";
  }

  TestServer test_;
};

TEST(ParseRunAs, ReadsNumbers) {
  auto one = ParseRunAs("1500");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->uid, 1500);
  EXPECT_EQ(one->gids, (std::vector<int64_t>{1500}));
  auto more = ParseRunAs("1500:100,44");
  ASSERT_TRUE(more.ok());
  EXPECT_EQ(more->gids, (std::vector<int64_t>{100, 44}));
  for (const char* wrong : {"", "x", "-1", "1:", "1:x", "1:2,", "2147483648", "1:2:3"}) {
    EXPECT_FALSE(ParseRunAs(wrong).ok()) << wrong;
  }
}

TEST_F(SubmitterTest, PodsRunAsTheirUsersNumbers) {
  RunAliceAs("1500:100,44");
  EXPECT_EQ(Context(Must(kAlice, "POST", kPods, Pod("a", "{}"))),
            R"({"runAsUser":1500,"runAsGroup":100,"supplementalGroups":[44]})");
  EXPECT_EQ(Context(Must(kAlice, "POST", kPods, Pod("b", R"({"fsGroup":44,"runAsGroup":44})"))),
            R"({"fsGroup":44,"runAsGroup":44,"runAsUser":1500,"supplementalGroups":[44]})");
  EXPECT_EQ(Context(Must(kAlice, "POST", kPods, Pod("d", R"({"supplementalGroups":[100]})"))),
            R"({"supplementalGroups":[100],"runAsUser":1500,"runAsGroup":100})");
  EXPECT_EQ(Context(Must(kBob, "POST", kPods, Pod("c", R"({"runAsUser":7})"))),
            R"({"runAsUser":7})");
}

TEST_F(SubmitterTest, OtherNumbersAreRefused) {
  RunAliceAs("1500:100,44");
  const Answer root = As(kAlice, "POST", kPods, Pod("a", R"({"runAsUser":0})"));
  EXPECT_EQ(root.status, 403);
  EXPECT_EQ(
      root.Message(),
      "pods \"a\" is forbidden: spec.securityContext.runAsUser: 0: pods of user \"alice\" run "
      "as user 1500, group 100");
  for (const char* context :
       {R"({"runAsGroup":0})", R"({"fsGroup":0})", R"({"supplementalGroups":[44,7]})"}) {
    EXPECT_EQ(As(kAlice, "POST", kPods, Pod("a", context)).status, 403) << context;
  }
  const Answer inner = As(kAlice, "POST", kPods, Pod("a", "{}", R"({"runAsUser":0})"));
  EXPECT_EQ(inner.status, 403);
  EXPECT_NE(inner.Message().find("spec.containers[0].securityContext.runAsUser: 0"),
            std::string::npos);
  // Nor later.
  Must(kAlice, "POST", kPods, Pod("a", "{}"));
  const Answer debug = As(
      kAlice, "PATCH", StrCat(kPods, "/a/ephemeralcontainers"),
      R"({"spec":{"ephemeralContainers":[{"name":"d","image":"i","securityContext":{"runAsUser":0}}]}})");
  EXPECT_EQ(debug.status, 403) << debug.text;
}

TEST_F(SubmitterTest, ANamespaceSaysItForWhoeverHasNoNumbers) {
  RunAliceAs("1500");
  Must(kMaster, "PATCH", "/api/v1/namespaces/default",
       R"({"metadata":{"annotations":{"swell.dev/run-as-user":"2000"}}})");
  EXPECT_EQ(Context(Must(kAlice, "POST", kPods, Pod("a", "{}"))),
            R"({"runAsUser":1500,"runAsGroup":1500})");
  EXPECT_EQ(Context(Must(kBob, "POST", kPods, Pod("b", "{}"))),
            R"({"runAsUser":2000,"runAsGroup":2000})");
  EXPECT_EQ(As(kBob, "POST", kPods, Pod("c", R"({"runAsUser":0})")).status, 403);
  Must(kMaster, "PATCH", "/api/v1/namespaces/default",
       R"({"metadata":{"annotations":{"swell.dev/run-as-user":"root"}}})");
  const Answer unreadable = As(kBob, "POST", kPods, Pod("d", "{}"));
  EXPECT_EQ(unreadable.status, 403);
  EXPECT_NE(
      unreadable.Message().find("swell.dev/run-as-user of namespace \"default\": \"root\": UID"),
      std::string::npos)
      << unreadable.Message();
}

TEST_F(SubmitterTest, WorkloadsCarryTheirAuthorToTheirPods) {
  RunAliceAs("1500");
  const std::string forged =
      R"({"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":)"
      R"({"metadata":{"labels":{"a":"b"},"annotations":{"swell.dev/user":"bob"}},)"
      R"("spec":{"containers":[{"name":"c","image":"i"}]}}}})";
  auto author = [](const json::Value& object) {
    return json::GetString(object,
                           {"spec", "template", "metadata", "annotations", "swell.dev/user"});
  };
  const json::Value made = Must(kAlice, "POST", kDeployments, forged);
  EXPECT_EQ(author(made), "alice");
  EXPECT_EQ(api::Annotation(made, "swell.dev/user"), "alice");
  // What a controller makes of the template runs as alice.
  const json::Value* pods = json::Find(made, {"spec", "template"});
  json::Value pod = *pods;
  json::Set(pod, {"metadata", "name"}, "d-1");
  EXPECT_EQ(Context(Must(kController, "POST", kPods, json::Print(pod))),
            R"({"runAsUser":1500,"runAsGroup":1500})");
  // A change that is none of the template's leaves it; who changes the template answers for it.
  const std::string one = StrCat(kDeployments, "/d");
  EXPECT_EQ(author(Must(kBob, "PATCH", one.c_str(), R"({"spec":{"replicas":2}})")), "alice");
  const json::Value changed = Must(
      kBob, "PATCH", one.c_str(),
      R"({"spec":{"template":{"metadata":{"annotations":{"swell.dev/user":"alice","x":"y"}}}}})");
  EXPECT_EQ(author(changed), "bob");
  EXPECT_EQ(api::Annotation(changed, "swell.dev/user"), "alice");
  constexpr const char* kCronJobs = "/apis/batch/v1/namespaces/default/cronjobs";
  const json::Value cron = Must(
      kAlice, "POST", kCronJobs,
      R"({"metadata":{"name":"c"},"spec":{"schedule":"@daily","jobTemplate":{"spec":{"template":)"
      R"({"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}}})");
  const json::Value forger =
      Must(kBob, "PATCH", StrCat(kCronJobs, "/c").c_str(),
           R"({"spec":{"jobTemplate":{"metadata":{"annotations":{"swell.dev/user":"bob"}}}}})");
  for (const json::Value* one : {&cron, &forger}) {
    const json::Value* jobs = json::Find(*one, {"spec", "jobTemplate"});
    EXPECT_EQ(api::Annotation(*jobs, "swell.dev/user"), "alice");
    EXPECT_EQ(api::Annotation(*json::Find(*jobs, {"spec", "template"}), "swell.dev/user"), "alice");
  }
}

}  // namespace
}  // namespace swell::apiserver
