// Resizes of pods whose projects have limits.
#include "kube/apiserver/access/project_limits.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

constexpr char kProjects[] = "/apis/swell.dev/v1/projects";
constexpr char kMerge[] = "application/merge-patch+json";

class ProjectLimitsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server.Boot();
    ASSERT_TRUE(server.boot.ok()) << server.boot.ToString();
    Made("/api/v1/namespaces", R"({"metadata":{"name":"lab"}})");
    Made("/api/v1/nodes", R"({"metadata":{"name":"n","labels":{"type":"fast"}}})");
  }
  void Made(const std::string& path, const std::string& body) {
    const Answer made = server.Post(path, body);
    ASSERT_EQ(made.status, 201) << made.text;
  }
  // As the scheduler reports what it holds.
  void Project(const std::string& name, const std::string& spec, const std::string& status) {
    Made(kProjects, StrCat(R"({"apiVersion":"swell.dev/v1","kind":"Project","metadata":{"name":")",
                           name, R"("},"spec":{)", spec, "}}"));
    const Answer told = server.Patch(StrCat(kProjects, "/", name, "/status"),
                                     StrCat(R"({"status":{)", status, "}}"), kMerge);
    ASSERT_EQ(told.status, 200) << told.text;
  }
  // With one CPU and 1Gi.
  void Pod(const std::string& ns, const std::string& more, const std::string& labels = "") {
    Made(StrCat("/api/v1/namespaces/", ns, "/pods"),
         StrCat(R"({"metadata":{"name":"p","labels":{)", labels,
                R"(}},"spec":{"containers":[{"name":"c","image":"i","resources":)",
                R"({"requests":{"cpu":"1","memory":"1Gi"}}}])", more, "}}"));
  }
  Answer Resize(const std::string& ns, const std::string& requests) {
    return server.Patch(
        StrCat("/api/v1/namespaces/", ns, "/pods/p/resize"),
        StrCat(R"({"spec":{"containers":[{"name":"c","resources":{"requests":)", requests, "}}]}}"),
        "application/strategic-merge-patch+json");
  }
  static constexpr char kPlaced[] = R"(,"nodeName":"n")";
  TestServer server;
};

TEST_F(ProjectLimitsTest, AResizeStaysWithinTheLimitOfItsProject) {
  Project("lab", R"("resources":{"cpu":{"limit":4},"memory":{"limit":4294967296}})",
          R"("usage":{"cpu":{"allocated":3},"memory":{"allocated":1073741824}})");
  Pod("lab", kPlaced);
  EXPECT_EQ(Resize("lab", R"({"cpu":"2"})").status, 200);
  const Answer refused = Resize("lab", R"({"cpu":"3500m"})");
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.Message(),
            "pods \"p\" is forbidden: project \"lab\" holds 3 of cpu and may hold 4; the resize "
            "adds 1500m");
  EXPECT_EQ(Resize("lab", R"({"memory":"5Gi"})").Message(),
            "pods \"p\" is forbidden: project \"lab\" holds 1Gi of memory and may hold 4Gi; the "
            "resize adds 4Gi");
  EXPECT_EQ(Resize("lab", R"({"cpu":"500m"})").status, 200) << "less is always possible";
}

TEST_F(ProjectLimitsTest, LimitsOfTheProjectAboveCountToo) {
  Project("all", R"("resources":{"cpu":{"limit":8}})", R"("usage":{"cpu":{"allocated":8}})");
  Project("lab", R"("parent":"all")", R"("usage":{"cpu":{"allocated":1}})");
  Pod("lab", kPlaced);
  EXPECT_NE(Resize("lab", R"({"cpu":"2"})").Message().find("project \"all\" holds 8 of cpu"),
            std::string::npos);
}

TEST_F(ProjectLimitsTest, ALimitOfAPoolIsForThePodsOfThatPool) {
  Made(
      "/apis/swell.dev/v1/nodepools",
      R"({"apiVersion":"swell.dev/v1","kind":"NodePool","metadata":{"name":"fast"},"spec":{"nodeSelector":{"type":"fast"}}})");
  Project("lab", R"("nodePools":[{"name":"fast","resources":{"cpu":{"limit":2}}}])",
          R"("usage":{"cpu":{"allocated":9}},"pools":[{"name":"fast","usage":{"cpu":)"
          R"({"allocated":1}}},{"name":"","usage":{"cpu":{"allocated":8}}}])");
  Pod("lab", kPlaced);
  EXPECT_EQ(Resize("lab", R"({"cpu":"2"})").status, 200);
  EXPECT_NE(Resize("lab", R"({"cpu":"4"})").Message().find("in pool \"fast\" and may hold 2;"),
            std::string::npos);
}

TEST_F(ProjectLimitsTest, AGroupNamesTheProjectWhereTheNamespaceHasNone) {
  Project("lab", R"("resources":{"cpu":{"limit":1}})", R"("usage":{"cpu":{"allocated":1}})");
  Made(
      "/apis/swell.dev/v1/namespaces/default/podgroups",
      R"({"apiVersion":"swell.dev/v1","kind":"PodGroup","metadata":{"name":"g"},"spec":{"project":"lab","podSets":[{"name":"s"}]}})");
  Pod("default", kPlaced, R"("swell.dev/pod-group":"g")");
  EXPECT_EQ(Resize("default", R"({"cpu":"2"})").status, 403);
}

TEST_F(ProjectLimitsTest, APodThatWaitsIsAskedWhenItIsPlaced) {
  Project("lab", R"("resources":{"cpu":{"limit":1}})", R"("usage":{"cpu":{"allocated":1}})");
  Pod("lab", "");
  EXPECT_EQ(Resize("lab", R"({"cpu":"2"})").status, 200);
}

}  // namespace
}  // namespace swell::apiserver
