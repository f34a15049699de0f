#include "kube/api/objects/project.h"

#include <gtest/gtest.h>

namespace swell::api {
namespace {

TEST(Project, NamespaceIsItsNameUnlessItSaysOtherwise) {
  const json::Object metadata{{"name", "vision"}};
  EXPECT_EQ(NamespaceOfProject(json::Object{{"metadata", metadata}}), "vision");
  const json::Value project =
      json::Object{{"metadata", metadata},
                   {"spec", json::Object{{"namespace", "vision-ns"}, {"parent", "research"}}}};
  EXPECT_EQ(NamespaceOfProject(project), "vision-ns");
  EXPECT_EQ(ParentOfProject(project), "research");
}

TEST(Project, ARootHasNoParent) { EXPECT_EQ(ParentOfProject(json::Object{}), ""); }

TEST(Project, MembersAreViewersUnlessTheyHaveARole) {
  EXPECT_EQ(ClusterRoleOfMember(json::Object{}), "viewer");
  EXPECT_EQ(ClusterRoleOfMember(json::Object{{"role", "admin"}}), "project-admin");
  EXPECT_EQ(ClusterRoleOfMember(json::Object{{"role", "editor"}}), "editor");
}

}  // namespace
}  // namespace swell::api
