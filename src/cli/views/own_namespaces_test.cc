// What those see who may not list all namespaces, and the project that work is charged to.
#include "cli/views/own_namespaces.h"

#include "cli/cli_test_util.h"
#include "kube/api/rest/scripted_server_test_util.h"

namespace swell::cli {
namespace {

constexpr std::array<std::string_view, 5> kWhole{"pods", "events", "podgroups", "pytorchjobs",
                                                 "trainingjobs"};

// Serves projects, single namespaces and discovery; refuses lists over all namespaces.
std::optional<api::RestResponse> SingleNamespaces(const api::RestRequest& request) {
  const bool whole = std::any_of(kWhole.begin(), kWhole.end(), [&](std::string_view kind) {
    return request.path.ends_with(StrCat("/", kind)) &&
           request.path.find("/namespaces/") == std::string::npos;
  });
  const bool hidden = request.path.find("/namespaces/team-b/") != std::string::npos;
  if (!whole && !hidden) return std::nullopt;
  return api::Refusal(Code::kForbidden);
}

class OwnNamespacesTest : public CliTest {
 protected:
  void SetUp() override {
    for (const char* team : {"team-a", "team-b"}) {
      Create(StrCat("{apiVersion: v1, kind: Namespace, metadata: {name: ", team, "}}"));
      ASSERT_EQ(Run({"swell", "project", "create", team, "--gpu-quota", "4"}), 0) << err_;
      ASSERT_EQ(Run({"swell", "-n", team, "submit", StrCat("job-of-", team), "--image", "img", "--",
                     "train"}),
                0)
          << err_;
    }
  }
  void AsResearcher() {
    env_.connect = [this](const ClusterFlags&) {
      Connection connection;
      connection.server = std::make_shared<api::ScriptedServer>(*server_.server, SingleNamespaces);
      connection.url = "https://test:6443";
      connection.user = {.name = "ada", .groups = {"system:masters"}};
      connection.ns = "team-a";
      return Result<Connection>(std::move(connection));
    };
  }
};

TEST_F(OwnNamespacesTest, NodesAreTestedWithoutTheRightToSeeAllPods) {
  Create("{apiVersion: v1, kind: Node, metadata: {name: node-1}}");
  AsResearcher();
  EXPECT_EQ(Run({"swell", "node", "check", "node-1"}), 0) << err_;
  EXPECT_NE(out_.find("the node is not ready"), std::string::npos) << out_;
  EXPECT_EQ(err_, "Only pods in namespaces that you can read are counted.\n");
}

TEST_F(OwnNamespacesTest, APlaceInTheQueueIsToldAsFarAsItIsSeen) {
  for (const std::string ns : {"team-a", "default", "team-b"}) {
    for (const std::string name : {"first", "second"}) {
      Create(StrCat("{apiVersion: v1, kind: Pod, metadata: {name: ", name, ", namespace: ", ns,
                    "}, spec: {schedulerName: swell, containers: [{name: c, image: i}]}}"));
      server_.executor.Advance(std::chrono::seconds(1));
    }
  }
  AsResearcher();
  ASSERT_EQ(Run({"swell", "why", "pod/second"}), 0) << err_;
  EXPECT_NE(out_.find("\nQueue:    2nd of 2 that wait in team-a, by priority and age\n"),
            std::string::npos)
      << out_;
  ASSERT_EQ(Run({"swell", "why", "pod/first", "-n", "default"}), 0) << err_;
  EXPECT_NE(out_.find("\nQueue:    1st of 2 that wait without a project, as far as you may see, by "
                      "priority and age\n"),
            std::string::npos)
      << out_;
}

TEST_F(OwnNamespacesTest, ListsOverAllNamespacesShowTheUsersOwnAndSaySo) {
  Create(
      "{apiVersion: v1, kind: Event, metadata: {name: e, namespace: team-a}, reason: Mine, "
      "involvedObject: {kind: Pod, name: p, namespace: team-a}}");
  AsResearcher();
  for (const std::vector<std::string>& words : {std::vector<std::string>{"swell", "list", "-A"},
                                                {"swell", "get", "pytorchjobs", "-A"},
                                                {"swell", "get", "pytorchjobs", "-A", "-o", "json"},
                                                {"swell", "top", "job", "-A"},
                                                {"arena", "list", "-A"},
                                                {"runai", "list", "-A"}}) {
    EXPECT_EQ(Run(words), 0) << err_;
    EXPECT_NE(out_.find("job-of-team-a"), std::string::npos) << Join(words, " ") << "\n" << out_;
    EXPECT_EQ(out_.find("job-of-team-b"), std::string::npos) << Join(words, " ") << "\n" << out_;
    EXPECT_NE(err_.find("of your own namespaces only."), std::string::npos) << err_;
  }
  EXPECT_EQ(Run({"swell", "events", "-A"}), 0) << err_;
  EXPECT_NE(out_.find("Mine"), std::string::npos) << out_;
  EXPECT_TRUE(out_.starts_with("NAMESPACE ")) << out_;
  EXPECT_NE(out_.find("\nteam-a "), std::string::npos) << out_;
  EXPECT_EQ(err_, "You see events of your own namespaces only.\n");
  EXPECT_EQ(Run({"swell", "get", "pods", "-A"}), 0) << err_;
  EXPECT_NE(err_.find("You see pods of your own namespaces only."), std::string::npos) << err_;
  // One that is named and may not be read is an error.
  EXPECT_NE(Run({"swell", "-n", "team-b", "list"}), 0);
}

TEST_F(OwnNamespacesTest, ThingsOfTheWholeClusterAreShownWithWhatTheUserMaySeeOfThem) {
  Create("{apiVersion: v1, kind: Node, metadata: {name: node-1}}");
  for (const char* team : {"team-a", "team-b"}) {
    Create(StrCat("{apiVersion: v1, kind: Pod, metadata: {namespace: ", team, ", name: pod-of-",
                  team, "}, spec: {nodeName: node-1, containers: [{name: c, image: img}]}}"));
  }
  AsResearcher();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"swell", "describe", "node", "node-1"},
        {"swell", "describe", "node", "node-1", "-o", "json"},
        {"runai", "describe", "node", "node-1"}}) {
    EXPECT_EQ(Run(words), 0) << err_;
    EXPECT_NE(out_.find("pod-of-team-a"), std::string::npos) << Join(words, " ") << "\n" << out_;
    EXPECT_EQ(out_.find("pod-of-team-b"), std::string::npos) << Join(words, " ") << "\n" << out_;
    EXPECT_NE(err_.find("You see events of your own namespaces only.\n"), std::string::npos)
        << err_;
  }
  for (const char* command : {"list", "top"}) {
    EXPECT_EQ(Run({"runai", command, "nodes"}), 0) << err_;
    EXPECT_NE(out_.find("\nnode-1 "), std::string::npos) << out_;
    EXPECT_EQ(err_, "Only pods in namespaces that you can read are counted.\n");
  }
  EXPECT_EQ(Run({"swell", "describe", "project", "team-b"}), 0) << err_;
  EXPECT_EQ(Run({"runai", "describe", "project", "team-b"}), 0) << err_;
  EXPECT_NE(out_.find("GPU QUOTA: 4\n"), std::string::npos) << out_;
  EXPECT_TRUE(out_.ends_with("\nWorkloads:\n  you may not see those of namespace team-b\n"))
      << out_;
}

TEST_F(OwnNamespacesTest, AJobIsShownUnderTheProjectThatItIsChargedTo) {
  server_.Send(server_.Request(
      "PATCH", "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs/job-of-team-a",
      R"({"metadata":{"labels":{"swell.dev/project":"team-b"}}})", "application/merge-patch+json"));
  EXPECT_EQ(Run({"swell", "-n", "team-a", "list"}), 0) << err_;
  EXPECT_NE(out_.find(" team-a "), std::string::npos) << out_;
  EXPECT_EQ(out_.find(" team-b "), std::string::npos) << out_;
  EXPECT_EQ(Run({"swell", "-n", "team-a", "describe", "job-of-team-a"}), 0) << err_;
  EXPECT_NE(out_.find("Project:          team-a"), std::string::npos) << out_;
}

TEST_F(OwnNamespacesTest, AnotherProjectsNameIsRefusedInAProjectsNamespace) {
  EXPECT_EQ(Run({"swell", "-n", "team-a", "submit", "x", "--project", "team-b", "--image", "img",
                 "--", "train"}),
            1);
  EXPECT_EQ(err_,
            "swell: --project: \"team-b\": namespace team-a is project team-a's, and work there is "
            "charged to it; for project team-b: -n team-b\n");
  EXPECT_EQ(Run({"arena", "-n", "team-a", "submit", "pytorch", "--name=x", "--queue", "team-b",
                 "--image=img", "train"}),
            1);
  EXPECT_NE(err_.find("work there is charged to it"), std::string::npos) << err_;
  EXPECT_EQ(Run({"swell", "submit", "x", "--project", "team-b", "--image", "img", "--", "train"}),
            0)
      << err_;
}

}  // namespace
}  // namespace swell::cli
