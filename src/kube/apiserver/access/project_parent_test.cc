#include "kube/apiserver/access/project_parent.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

constexpr char kProjects[] = "/apis/swell.dev/v1/projects";
constexpr char kGroups[] = "/apis/swell.dev/v1/namespaces/lab/podgroups";

std::string Project(const std::string& name, const std::string& parent) {
  return StrCat(R"({"apiVersion":"swell.dev/v1","kind":"Project","metadata":{"name":")", name,
                R"("},"spec":{"parent":")", parent, R"("}})");
}

class ProjectParentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server.Boot();
    ASSERT_TRUE(server.boot.ok()) << server.boot.ToString();
    ASSERT_EQ(server.Post(kProjects, Project("lab", "")).status, 201);
    ASSERT_EQ(server.Post("/api/v1/namespaces", R"({"metadata":{"name":"lab"}})").status, 201);
  }
  TestServer server;
};

TEST_F(ProjectParentTest, AProjectWithWorkTakesNoneBelowIt) {
  ASSERT_EQ(server
                .Post(kGroups, R"({"apiVersion":"swell.dev/v1","kind":"PodGroup",)"
                               R"("metadata":{"name":"mnist"},"spec":{}})")
                .status,
            201);
  ASSERT_EQ(server
                .Post("/api/v1/namespaces/lab/pods",
                      R"({"metadata":{"name":"desk"},"spec":{"containers":[{"name":"c",)"
                      R"("image":"i"}]}})")
                .status,
            201);
  const Answer refused = server.Post(kProjects, Project("part", "lab"));
  EXPECT_EQ(refused.status, 422);
  EXPECT_EQ(refused.Message(),
            "Project.swell.dev \"part\" is invalid: spec.parent: Invalid value: \"lab\": it still "
            "has work of its own: desk, mnist; delete that first: a project with projects below it "
            "has no work of its own");
  ASSERT_EQ(server.Post(kProjects, Project("part", "")).status, 201);
  EXPECT_EQ(server
                .Patch(StrCat(kProjects, "/part"), R"({"spec":{"parent":"lab"}})",
                       "application/merge-patch+json")
                .status,
            422);
}

TEST_F(ProjectParentTest, WhatHasEndedIsNotInTheWay) {
  ASSERT_EQ(server
                .Post(kGroups, R"({"apiVersion":"swell.dev/v1","kind":"PodGroup",)"
                               R"("metadata":{"name":"mnist"},"spec":{}})")
                .status,
            201);
  ASSERT_EQ(server
                .Patch(StrCat(kGroups, "/mnist/status"), R"({"status":{"phase":"Succeeded"}})",
                       "application/merge-patch+json")
                .status,
            200);
  EXPECT_EQ(server.Post(kProjects, Project("part", "lab")).status, 201);
  EXPECT_EQ(server.Post(kProjects, Project("other", "nobody")).status, 201);
}

TEST_F(ProjectParentTest, ADepartmentTakesMore) {
  ASSERT_EQ(server.Post(kProjects, Project("part", "lab")).status, 201);
  ASSERT_EQ(server
                .Post(kGroups, R"({"apiVersion":"swell.dev/v1","kind":"PodGroup",)"
                               R"("metadata":{"name":"stray"},"spec":{}})")
                .status,
            201);
  EXPECT_EQ(server.Post(kProjects, Project("more", "lab")).status, 201);
  EXPECT_EQ(server
                .Patch(StrCat(kProjects, "/part"), R"({"spec":{"description":"x"}})",
                       "application/merge-patch+json")
                .status,
            200);
}

}  // namespace
}  // namespace swell::apiserver
