// Members of projects have roles where its work is, and only as long as they are members.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/account_keys.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::projects {
namespace {

using client::resources::kProjects;
using manager::TestCluster;
const client::Resource kRoleBindings{"rbac.authorization.k8s.io", "v1", "rolebindings", true};

class ProjectMembersTest : public ::testing::Test {
 protected:
  void SetUp() override { cluster_.StartManager(); }

  // "ROLE: alice ml; ROLE: ..." of a namespace.
  std::string Bound(const std::string& ns) {
    std::string text;
    for (const json::SharedValue& binding : cluster_.List(kRoleBindings, ns)) {
      if (api::Name(*binding) == api::keys::kJobAccountRole) continue;
      text += StrCat(text.empty() ? "" : "; ", json::GetString(*binding, {"roleRef", "name"}), ":");
      for (const json::Value& one : json::GetArray(*binding, {"subjects"})) {
        text += StrCat(" ", json::GetString(one, {"kind"}), " ",
                       json::GetString(one, {"namespace"}), "/", json::GetString(one, {"name"}));
      }
    }
    return text;
  }
  bool Becomes(const std::string& ns, const std::string& text) {
    const bool is = cluster_.Until([&] { return Bound(ns) == text; });
    EXPECT_EQ(Bound(ns), text);
    return is;
  }
  Status SetMembers(const std::string& yaml) {
    return cluster_.Patch(kProjects, "team", "{spec: {members: " + yaml + "}}");
  }

  TestCluster cluster_;
};

TEST_F(ProjectMembersTest, TheirRolesComeChangeAndGoWithThem) {
  cluster_.Create(
      "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: team}, spec: {namespace: work, "
      "members: [{name: alice, role: researcher}, {kind: Group, name: ml, role: researcher}, "
      "{kind: ServiceAccount, name: robot, role: admin}]}}");
  ASSERT_TRUE(Becomes(
      "work", "project-admin: ServiceAccount work/robot; researcher: User /alice Group /ml"));
  ASSERT_TRUE(SetMembers("[{name: alice}, {kind: Group, name: ml, role: researcher}]").ok());
  ASSERT_TRUE(Becomes("work", "researcher: Group /ml; viewer: User /alice"));
  ASSERT_TRUE(cluster_.Patch(kProjects, "team", "{spec: {namespace: elsewhere}}").ok());
  ASSERT_TRUE(Becomes("elsewhere", "researcher: Group /ml; viewer: User /alice"));
  ASSERT_TRUE(Becomes("work", ""));
  ASSERT_TRUE(SetMembers("[]").ok());
  ASSERT_TRUE(Becomes("elsewhere", ""));
}

TEST_F(ProjectMembersTest, ABindingThatSomebodyChangedOrRemovedIsPutRight) {
  cluster_.Create(
      "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: team}, spec: {members: [{name: "
      "alice, role: viewer}]}}");
  ASSERT_TRUE(Becomes("team", "viewer: User /alice"));
  ASSERT_TRUE(
      cluster_
          .Patch(kRoleBindings, "team/swell:members:viewer",
                 "{subjects: [{kind: User, name: eve, apiGroup: rbac.authorization.k8s.io}]}")
          .ok());
  ASSERT_TRUE(Becomes("team", "viewer: User /alice"));
  ASSERT_TRUE(cluster_.Delete(kRoleBindings, "team/swell:members:viewer").ok());
  ASSERT_TRUE(Becomes("team", "viewer: User /alice"));
}

TEST_F(ProjectMembersTest, BindingsOfOthersStayAsTheyAre) {
  cluster_.Create(
      "{apiVersion: v1, kind: Namespace, metadata: {name: team}}\n---\n"
      "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: "
      "'swell:members:viewer', namespace: team, labels: {swell.dev/project: team}}, roleRef: "
      "{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}, subjects: []}\n---\n"
      "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: team}, spec: {members: [{name: "
      "alice, role: viewer}]}}");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Events("MembersNotBound") > 0; }));
  EXPECT_EQ(Bound("team"), "edit:");
  ASSERT_TRUE(SetMembers("[]").ok());
  cluster_.Run(std::chrono::seconds(5));
  EXPECT_EQ(Bound("team"), "edit:");
}

TEST_F(ProjectMembersTest, RolesAndKindsThatThereAreNotAreRefused) {
  cluster_.Create("{apiVersion: swell.dev/v1, kind: Project, metadata: {name: team}, spec: {}}");
  const Status role = SetMembers("[{name: alice, role: king}]");
  EXPECT_EQ(role.code(), Code::kInvalid);
  EXPECT_NE(role.message().find("spec.members[0].role: Unsupported value: \"king\""),
            std::string::npos)
      << role.message();
  EXPECT_EQ(SetMembers("[{kind: Robot, name: alice, role: viewer}]").code(), Code::kInvalid);
}

}  // namespace
}  // namespace swell::projects
