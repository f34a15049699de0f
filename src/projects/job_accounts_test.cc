// The account of Slurm's jobs is where projects have their work, and goes with them.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/account_keys.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::projects {
namespace {

using client::resources::kProjects;
using client::resources::kServiceAccounts;
using manager::TestCluster;
const client::Resource kRoleBindings{"rbac.authorization.k8s.io", "v1", "rolebindings", true};
const client::Resource kClusterBindings{"rbac.authorization.k8s.io", "v1", "clusterrolebindings",
                                        false};

class JobAccountsTest : public ::testing::Test {
 protected:
  void SetUp() override { cluster_.StartManager(); }

  // "account, role of NS:NAME, reads of NS:NAME": what the namespace's account has.
  std::string Has(const std::string& ns) {
    std::string text = cluster_.Get(kServiceAccounts, ns + "/slurm-job") ? "account" : "";
    const auto add = [&text](std::string_view what, const json::SharedValue& binding) {
      if (!binding) return;
      text += StrCat(", ", what, " ", json::GetString(*binding, {"roleRef", "name"}), " of");
      for (const json::Value& one : json::GetArray(*binding, {"subjects"})) {
        text +=
            StrCat(" ", json::GetString(one, {"namespace"}), "/", json::GetString(one, {"name"}));
      }
    };
    add("there", cluster_.Get(kRoleBindings, ns + "/swell:slurm-job"));
    add("everywhere", cluster_.Get(kClusterBindings, "swell:slurm-job:" + ns));
    return text;
  }
  static std::string All(const std::string& ns) {
    return StrCat("account, there swell:slurm-job of ", ns, "/slurm-job, everywhere ",
                  "cluster-viewer of ", ns, "/slurm-job");
  }
  bool Becomes(const std::string& ns, const std::string& text) {
    const bool is = cluster_.Until([&] { return Has(ns) == text; });
    EXPECT_EQ(Has(ns), text);
    return is;
  }

  TestCluster cluster_;
};

TEST_F(JobAccountsTest, EachNamespaceWithWorkHasOneAsLongAsItsProjectWantsIt) {
  cluster_.Create(
      "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: team}, spec: {namespace: work}}");
  ASSERT_TRUE(Becomes("work", All("work")));
  ASSERT_TRUE(cluster_.Patch(kProjects, "team", "{spec: {namespace: elsewhere}}").ok());
  ASSERT_TRUE(Becomes("elsewhere", All("elsewhere")));
  ASSERT_TRUE(Becomes("work", ""));
  ASSERT_TRUE(
      cluster_.Patch(kProjects, "team", "metadata: {annotations: {swell.dev/slurm-account: none}}")
          .ok());
  ASSERT_TRUE(Becomes("elsewhere", ""));
}

TEST_F(JobAccountsTest, WhatSomebodyChangedIsPutRightAndWhatOthersMadeStays) {
  cluster_.Create(
      "{apiVersion: v1, kind: Namespace, metadata: {name: team}}\n---\n"
      "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: "
      "'swell:slurm-job', namespace: team}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: "
      "ClusterRole, name: view}, subjects: []}\n---\n"
      "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: team}, spec: {}}\n---\n"
      "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: other}, spec: {}}");
  ASSERT_TRUE(
      Becomes("team", "account, there view of, everywhere cluster-viewer of team/slurm-job"));
  ASSERT_TRUE(Becomes("other", All("other")));
  ASSERT_TRUE(cluster_
                  .Patch(kRoleBindings, "other/swell:slurm-job",
                         "{subjects: [{kind: User, name: eve, apiGroup: "
                         "rbac.authorization.k8s.io}]}")
                  .ok());
  ASSERT_TRUE(cluster_.Delete(kServiceAccounts, "other/slurm-job").ok());
  ASSERT_TRUE(Becomes("other", All("other")));
}

}  // namespace
}  // namespace swell::projects
