// What a user without a role in a namespace is told.
#include "cli/no_role.h"

#include "cli/access/users.h"
#include "cli/cli_test_util.h"
#include "cli/session.h"
#include "kube/api/rest/scripted_server_test_util.h"

namespace swell::cli {
namespace {

// The one of three namespaces that stands in the text, between two of `mark`.
std::string_view RefusedNamespace(std::string_view text, char mark) {
  for (std::string_view ns : {"team-a", "kube-system", "swell-system"}) {
    if (text.find(StrCat(mark, ns, mark)) != std::string_view::npos) return ns;
  }
  return "";
}

api::RestResponse Review(bool allowed) {
  return api::Answer(201, StrCat(R"({"status":{"allowed":)", allowed ? "true" : "false", "}}"));
}

// Refuses everything in three namespaces, as a server that checks roles does for jane.
std::optional<api::RestResponse> RefusesThreeNamespaces(const api::RestRequest& request) {
  if (request.path.ends_with("/selfsubjectaccessreviews")) {
    return Review(RefusedNamespace(request.body, '"').empty());
  }
  const std::string_view ns = RefusedNamespace(request.path, '/');
  if (ns.empty()) return std::nullopt;
  const std::string resource = request.path.substr(request.path.rfind('/') + 1);
  return api::Refusal(Code::kForbidden,
                      StrCat(resource, R"( is forbidden: User "jane" cannot list resource ")",
                             resource, R"(" in API group "" in the namespace ")", ns, "\""));
}

// Lets everybody read, and nobody write pods and jobs, as a server that checks roles does for a
// viewer.
std::optional<api::RestResponse> ForReading(const api::RestRequest& request) {
  if (request.method == "GET") return std::nullopt;
  if (request.path.ends_with("/selfsubjectaccessreviews")) {
    return Review(request.body.find(R"("verb":"list")") != std::string::npos);
  }
  return api::Refusal(Code::kForbidden,
                      R"(pods "p" is forbidden: User "jane" cannot delete resource "pods" in API )"
                      R"(group "" in the namespace "team-a")");
}

// Keeps the audit log for others.
std::optional<api::RestResponse> RefusesTheAuditLog(const api::RestRequest& request) {
  return api::Refusal(Code::kForbidden,
                      StrCat(R"(forbidden: User "jane" cannot get path ")", request.path, "\""));
}

// Lets nobody read what has no namespace, as a server of that version.
std::optional<api::RestResponse> KeepsTheClusterToItself(const api::RestRequest& request,
                                                         std::string_view version) {
  if (request.path == "/version") {
    return api::Answer(200, StrCat(R"({"gitVersion":")", version, R"("})"));
  }
  const std::string resource = request.path.substr(request.path.rfind('/') + 1);
  if (resource != "projects" && resource != "nodes") return std::nullopt;
  return api::Refusal(Code::kForbidden,
                      StrCat(resource, R"( is forbidden: User "jane" cannot list resource ")",
                             resource, R"(" in API group "" at the cluster scope)"));
}

std::optional<api::RestResponse> OnKubernetes(const api::RestRequest& request) {
  return KeepsTheClusterToItself(request, "v1.37.2");
}

std::optional<api::RestResponse> OnOurs(const api::RestRequest& request) {
  return KeepsTheClusterToItself(request, "v1.37.2+swell");
}

class NoRoleTest : public CliTest {
 protected:
  NoRoleTest() {
    for (const char* team : {"team-a", "team-b"}) {
      Create(StrCat("{apiVersion: swell.dev/v1, kind: Project, metadata: {name: ", team, "}}"));
    }
    Behind(RefusesThreeNamespaces);
  }
  void Behind(const api::ScriptedServer::Script& script) {
    env_.connect = [this, script](const ClusterFlags&) {
      Connection connection;
      connection.server = std::make_shared<api::ScriptedServer>(*server_.server, script);
      connection.url = "https://test:6443";
      connection.user = {.name = "jane", .groups = {"system:masters"}};
      connection.ns = "team-b";
      return Result<Connection>(std::move(connection));
    };
  }
};

TEST_F(NoRoleTest, TheNamespaceAndTheWayToARoleAreNamed) {
  EXPECT_EQ(Run({"swell", "get", "pods", "-n", "team-a"}), 1);
  EXPECT_TRUE(err_.starts_with(
      "swell: you have no role in namespace \"team-a\", so you cannot list pods there\n"
      "  You have one in team-b: add -n team-b\n"
      "  An administrator of the cluster gives you one: swell project edit team-a --member "
      "jane=researcher\n"
      "  The server said: pods is forbidden: "))
      << err_;
}

TEST_F(NoRoleTest, AnotherNamespaceIsNoHelpWhereTheCommandReadsOneOfItsOwn) {
  EXPECT_EQ(Run({"swell", "report"}), 1);
  EXPECT_EQ(err_,
            "swell: the use of all projects is for administrators to read; of your own jobs: swell "
            "describe JOB, sacct (configmaps is forbidden: User \"jane\" cannot list resource "
            "\"configmaps\" in API group \"\" in the namespace \"swell-system\")\n");
}

TEST_F(NoRoleTest, OfSeveralRefusedObjectsTheFirstSaysTheWayToARole) {
  stdin_ =
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: team-a}}\n---\n"
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: team-a}}";
  EXPECT_EQ(Run({"swell", "create", "-f", "-"}), 1);
  const size_t first =
      err_.find("\n  An administrator of the cluster gives you one: swell project");
  EXPECT_NE(first, std::string::npos) << err_;
  EXPECT_EQ(err_.find("\n  An administrator", first + 1), std::string::npos) << err_;
  EXPECT_NE(err_.find("swell: standard input, document 2: "), std::string::npos) << err_;
}

TEST_F(NoRoleTest, WhatHasNoNamespaceIsReadThroughAClusterRole) {
  Behind(OnKubernetes);
  for (const auto& [command, resource] :
       {std::pair(std::vector<std::string>{"runai", "list"}, "projects"),
        std::pair(std::vector<std::string>{"swell", "top", "node"}, "nodes")}) {
    EXPECT_EQ(Run(command), 1);
    EXPECT_EQ(err_, StrCat(command[0], ": you may not read the cluster's ", resource,
                           "\n  An administrator can let all users read them: kubectl create "
                           "clusterrolebinding swell-users --clusterrole=swell-cluster-viewer "
                           "--group=system:authenticated\n  The server said: ",
                           resource, " is forbidden: User \"jane\" cannot list resource \"",
                           resource, "\" in API group \"\" at the cluster scope\n"));
  }
  Behind(OnOurs);
  EXPECT_EQ(Run({"runai", "list"}), 1);
  EXPECT_NE(err_.find("--clusterrole=cluster-viewer "), std::string::npos) << err_;
}

TEST_F(NoRoleTest, TheAuditLogIsSaidToBeForAdministrators) {
  Behind(RefusesTheAuditLog);
  EXPECT_EQ(Run({"swell", "audit"}), 1);
  EXPECT_EQ(err_,
            "swell: the audit log is for administrators to read: forbidden: User \"jane\" cannot "
            "get path \"/swell/v1/audit\"\n");
}

TEST_F(NoRoleTest, UsersAreSaidToBeForAdministrators) {
  const Command root;
  Session session(env_, {}, root);
  const auto api = session.Server();
  ASSERT_TRUE(api.ok()) << api.status().message();
  const std::string refused =
      "users are for administrators to see and to change: secrets is forbidden: User \"jane\" "
      "cannot list resource \"secrets\" in API group \"\" in the namespace \"kube-system\"";
  EXPECT_EQ(ListUsers(**api).status().message(), refused);
  api::RegisteredUser eve;
  eve.name = "eve";
  eve.role = "admin";
  EXPECT_EQ(CreateUser(**api, eve).status().message(), refused);
  EXPECT_EQ(WithRoleHint(session, ListUsers(**api).status()).message(), refused);
}

TEST_F(NoRoleTest, AProjectOfAnotherNamespaceIsNamedWithoutAFlagThatWouldNotChangeIt) {
  EXPECT_EQ(Run({"swell", "cp", "team-a/p:/from", "/tmp/to"}), 1);
  EXPECT_NE(err_.find("\n  You have one in team-b\n  An administrator"), std::string::npos) << err_;
}

TEST_F(NoRoleTest, RunaiNamesAProject) {
  Create("{apiVersion: v1, kind: Namespace, metadata: {name: team-a}}");
  EXPECT_EQ(Run({"runai", "submit", "w", "-p", "team-a", "-i", "img"}), 1);
  EXPECT_NE(err_.find("\n  You have one in team-b: add -p team-b\n"), std::string::npos) << err_;
}

TEST_F(NoRoleTest, AViewerIsToldWhichRoleWouldDo) {
  Behind(ForReading);
  EXPECT_EQ(Run({"swell", "delete", "pod", "p", "-n", "team-a"}), 1);
  EXPECT_TRUE(err_.starts_with(
      "swell: your role in namespace \"team-a\" is for reading\n"
      "  An administrator of the cluster gives you another: swell project edit team-a --member "
      "jane=researcher\n"
      "  The server said: pods \"p\" is forbidden: "))
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

TEST_F(NoRoleTest, CredentialsThatNobodyKnowsAreAnsweredWithTheWayToNewOnes) {
  Behind([](const api::RestRequest&) { return api::Refusal(Code::kUnauthorized, "Unauthorized"); });
  EXPECT_EQ(Run({"swell", "list"}), 1);
  EXPECT_EQ(
      err_,
      "swell: Unauthorized\nThe server does not accept the credentials of the kubeconfig. On a "
      "cluster of swell up, an administrator makes new ones: swell user kubeconfig NAME\n");
}

TEST_F(NoRoleTest, WhatOthersThanTheServerRefuseIsNoMatterOfTheKubeconfig) {
  env_.connect = [](const ClusterFlags&) -> Result<Connection> {
    return swell::Status(Code::kUnauthorized, "get-token: exited with 1");
  };
  EXPECT_EQ(Run({"swell", "list"}), 1);
  EXPECT_EQ(err_, "swell: get-token: exited with 1\n");
}

}  // namespace
}  // namespace swell::cli
