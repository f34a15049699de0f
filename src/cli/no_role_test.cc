// What a user without a role in a namespace is told.
#include "cli/cli_test_util.h"

namespace swell::cli {
namespace {

// Refuses everything in team-a, as a server that checks roles does for jane.
class RefusesTeamA final : public api::RestHandler {
 public:
  explicit RefusesTeamA(api::RestHandler& server) : server_(server) {}
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    api::RestResponse response;
    if (request.path.ends_with("/selfsubjectaccessreviews")) {
      const bool allowed = request.body.find("team-a") == std::string::npos;
      response.status = 201;
      response.body.push_back(
          api::MakeChunk(StrCat(R"({"status":{"allowed":)", allowed ? "true" : "false", "}}")));
    } else if (request.path.find("/namespaces/team-a/") != std::string::npos) {
      response.status = 403;
      response.body.push_back(api::MakeChunk(
          R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden",)"
          R"("code":403,"message":"pods is forbidden: User \"jane\" cannot list resource )"
          R"(\"pods\" in API group \"\" in the namespace \"team-a\""})"));
    } else {
      return server_.Handle(std::move(request), std::move(sink));
    }
    sink->OnResponse(std::move(response));
    return nullptr;
  }

 private:
  api::RestHandler& server_;
};

class NoRoleTest : public CliTest {
 protected:
  NoRoleTest() {
    for (const char* team : {"team-a", "team-b"}) {
      Create(StrCat("{apiVersion: swell.dev/v1, kind: Project, metadata: {name: ", team, "}}"));
    }
    env_.connect = [this](const ClusterFlags&) {
      Connection connection;
      connection.server = std::make_shared<RefusesTeamA>(*server_.server);
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
