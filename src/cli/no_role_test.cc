// What a user without a role in a namespace is told.
#include "cli/cli_test_util.h"

namespace swell::cli {
namespace {

class NoRoleTest : public CliTest {
 protected:
  NoRoleTest() {
    for (const char* team : {"team-a", "team-b"}) {
      Create(StrCat("{apiVersion: v1, kind: Namespace, metadata: {name: ", team, "}}"));
      Create(StrCat("{apiVersion: swell.dev/v1, kind: Project, metadata: {name: ", team, "}}"));
    }
    Create(R"(
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: sees-projects}
rules: [{apiGroups: [swell.dev], resources: [projects], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: all-see-projects}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: sees-projects}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:authenticated"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: jane, namespace: team-b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}]
)");
    env_.connect = [this](const ClusterFlags&) {
      Connection connection;
      connection.server = std::make_shared<Shared>(*server_.server, before_);
      connection.url = "https://test:6443";
      connection.user = {.name = "jane", .groups = {"system:authenticated"}};
      connection.ns = "team-b";
      return Result<Connection>(std::move(connection));
    };
  }
};

TEST_F(NoRoleTest, TheNamespaceAndTheWayToARoleAreNamed) {
  EXPECT_EQ(Run({"swell", "get", "pods", "-n", "team-a"}), 1);
  EXPECT_EQ(err_,
            "swell: you have no role in namespace \"team-a\", so you cannot list pods there\n"
            "  You have one in team-b: add -n team-b\n"
            "  An administrator of the cluster gives you one: swell project edit team-a --member "
            "jane=researcher\n"
            "  The server said: pods is forbidden: User \"jane\" cannot list resource \"pods\" in "
            "API group \"\" in the namespace \"team-a\"\n");
}

TEST_F(NoRoleTest, WhoHasARoleHearsWhatItLacks) {
  EXPECT_EQ(Run({"swell", "delete", "pod", "p", "-n", "team-b"}), 1);
  EXPECT_TRUE(err_.starts_with("swell: pods \"p\" is forbidden: User \"jane\" cannot delete"))
      << err_;
}

TEST_F(NoRoleTest, AProjectWithoutARoleIsNoDefault) {
  EXPECT_EQ(Run({"runai", "config", "project", "team-a"}), 1);
  EXPECT_NE(err_.find("you have no role in project team-a (namespace team-a)"), std::string::npos)
      << err_;
  // One with a role is stored, where there is a kubeconfig: here there is none.
  EXPECT_EQ(Run({"runai", "config", "project", "team-b"}), 1);
  EXPECT_NE(err_.find("there is no kubeconfig to store it in"), std::string::npos) << err_;
}

}  // namespace
}  // namespace swell::cli
