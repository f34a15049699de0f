#include "kube/apiserver/access/charged_project.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

constexpr char kProjects[] = "/apis/swell.dev/v1/projects";

class ChargedProjectTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server.Boot();
    ASSERT_TRUE(server.boot.ok()) << server.boot.ToString();
    MakeNamespace("lab");
    MakeProject("lab", "");
  }
  void MakeNamespace(const std::string& name) {
    ASSERT_EQ(server.Post("/api/v1/namespaces", StrCat(R"({"metadata":{"name":")", name, R"("}})"))
                  .status,
              201);
  }
  void MakeProject(const std::string& name, const std::string& spec) {
    const Answer made = server.Post(
        kProjects, StrCat(R"({"apiVersion":"swell.dev/v1","kind":"Project","metadata":{"name":")",
                          name, R"(","finalizers":["swell.dev/in-use"]},"spec":{)", spec, "}}"));
    ASSERT_EQ(made.status, 201) << made.text;
  }
  void Delete(const std::string& project) {
    ASSERT_EQ(server.Delete(StrCat(kProjects, "/", project)).status, 200);
  }
  Answer MakePod(const std::string& ns, const std::string& metadata) {
    return server.Post(StrCat("/api/v1/namespaces/", ns, "/pods"),
                       StrCat(R"({"metadata":{)", metadata,
                              R"(},"spec":{"containers":[{"name":"c","image":"i"}]}})"));
  }
  Answer MakeJob(const std::string& ns, const std::string& name) {
    return server.Post(
        StrCat("/apis/batch/v1/namespaces/", ns, "/jobs"),
        StrCat(R"({"metadata":{"name":")", name,
               R"("},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":)",
               R"([{"name":"c","image":"i"}]}}}})"));
  }
  TestServer server;
};

TEST_F(ChargedProjectTest, AProjectThatIsBeingDeletedTakesNoNewWork) {
  EXPECT_EQ(MakeJob("lab", "before").status, 201);
  Delete("lab");
  const Answer refused = MakeJob("lab", "after");
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.Message(),
            "jobs.batch \"after\" is forbidden: project \"lab\" is being deleted and takes no new "
            "work");
  EXPECT_EQ(MakePod("lab", R"("name":"p")").status, 403);
  // Pods of work that is there, and other objects.
  EXPECT_EQ(MakePod("lab", R"("name":"q","ownerReferences":[{"apiVersion":"batch/v1","kind":"Job",)"
                           R"("name":"before","uid":"u","controller":true}])")
                .status,
            201);
  EXPECT_EQ(server.Post("/api/v1/namespaces/lab/configmaps", R"({"metadata":{"name":"c"}})").status,
            201);
}

TEST_F(ChargedProjectTest, NorDoesItTakeWorkThatNamesItElsewhere) {
  MakeNamespace("desk");
  Delete("lab");
  EXPECT_EQ(MakeJob("desk", "own").status, 201);
  const Answer named = MakePod("desk", R"("name":"p","labels":{"swell.dev/project":"lab"})");
  EXPECT_EQ(named.status, 403);
  EXPECT_NE(named.Message().find("project \"lab\" is being deleted"), std::string::npos);
}

TEST_F(ChargedProjectTest, OneOfTwoThatClaimANamespaceIsItsProject) {
  MakeProject("annex", R"("namespace":"lab")");
  Delete("lab");
  EXPECT_EQ(MakeJob("lab", "charged-to-annex").status, 201);
  Delete("annex");
  EXPECT_EQ(MakeJob("lab", "charged-to-none").status, 403);
}

}  // namespace
}  // namespace swell::apiserver
