// Submissions into a namespace whose Pod Security level is `restricted`, by a user whom the level
// holds.
#include "cli/jobs/restricted_pods.h"

#include "base/temp_dir.h"
#include "cli/cli_test_util.h"
#include "kube/api/rest/scripted_server_test_util.h"

namespace swell::cli {
namespace {

constexpr char kJobs[] = "/apis/kubeflow.org/v1/namespaces/lab/pytorchjobs";
constexpr char kNote[] =
    "namespace lab enforces Pod Security \"restricted\": the pods run as user 1000 (--run-as-user "
    "names another), without capabilities, and gain no privileges";

class RestrictedPodsTest : public CliTest {
 protected:
  RestrictedPodsTest() {
    strict_.Boot();
    Ask("POST", "/api/v1/namespaces",
        R"({"metadata":{"name":"lab","labels":{"pod-security.kubernetes.io/enforce":)"
        R"("restricted"}}})");
    Ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        R"({"metadata":{"name":"work"},"rules":[{"apiGroups":["*"],"verbs":["*"],)"
        R"("resources":["pods","configmaps","pytorchjobs","trainingjobs","crons","projects",)"
        R"("priorityclasses","namespaces","deployments","services","elasticdljobs","nodes",)"
        R"("nodepools"]}]})");
    Ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        R"({"metadata":{"name":"alice"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",)"
        R"("kind":"ClusterRole","name":"work"},"subjects":[{"kind":"User","name":"alice",)"
        R"("apiGroup":"rbac.authorization.k8s.io"}]})");
    env_.loop = &strict_loop_;
    env_.clock = &strict_.executor;
    env_.connect = [this](const ClusterFlags&) {
      Connection connection;
      connection.server = std::make_shared<Shared>(*strict_.server, before_);
      connection.url = url_;
      connection.user = {.name = "alice", .groups = {"system:authenticated"}};
      return Result<Connection>(std::move(connection));
    };
  }

  json::Value Ask(const std::string& method, const std::string& target, std::string body = {}) {
    auto request = strict_.Request(method, target, std::move(body));
    if (method == "PATCH") request.content_type = "application/merge-patch+json";
    request.user = {.name = "root", .groups = {"system:masters"}};
    const auto answer = strict_.Send(std::move(request));
    EXPECT_LT(answer.status, 300) << answer.text;
    return answer.body;
  }
  // The pod of a role.
  json::Value PodOf(const std::string& job, std::string_view role = "Master") {
    const json::Value made = Ask("GET", StrCat(kJobs, "/", job));
    const json::Value* pod =
        json::Find(made, {"spec", "pytorchReplicaSpecs", role, "template", "spec"});
    EXPECT_NE(pod, nullptr) << json::Print(made);
    return pod == nullptr ? json::Value() : *pod;
  }
  int Submit(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"swell", "submit", "-n", "lab", "j", "--image", "i"};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--", "python", "a.py"});
    return Run(words);
  }

  apiserver::TestServer strict_{apiserver::Options{.rbac = true}};
  SimLoop strict_loop_{strict_.executor};
};

TEST_F(RestrictedPodsTest, AJobThatSaysNothingIsMadeAsTheLevelDemands) {
  ASSERT_EQ(Submit({"--workers", "2"}), 0) << err_;
  EXPECT_EQ(out_, "pytorchjob.kubeflow.org/j created\n");
  EXPECT_EQ(err_, StrCat("swell: ", kNote, "\n"));
  for (const char* role : {"Master", "Worker"}) {
    const json::Value pod = PodOf("j", role);
    EXPECT_EQ(json::Print(*json::Find(pod, {"securityContext"})),
              R"({"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"},)"
              R"("runAsUser":1000,"runAsGroup":1000,"fsGroup":1000})");
    EXPECT_EQ(json::Print(*json::Find(json::GetArray(pod, {"containers"})[0], {"securityContext"})),
              R"({"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}})");
  }
}

TEST_F(RestrictedPodsTest, AUserThatWasNamedStays) {
  ASSERT_EQ(Submit({"--run-as-user", "1500:100,44"}), 0) << err_;
  EXPECT_NE(err_.find("the pods run as user 1500, without capabilities"), std::string::npos)
      << err_;
  EXPECT_EQ(json::Print(*json::Find(PodOf("j"), {"securityContext"})),
            R"({"runAsUser":1500,"runAsGroup":100,"supplementalGroups":[44],)"
            R"("runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}})");
  EXPECT_EQ(Submit({"--run-as-user", "bob"}), 2);
  EXPECT_NE(err_.find("--run-as-user \"bob\": expected UID[:GID"), std::string::npos) << err_;
}

TEST_F(RestrictedPodsTest, WhatTheLevelStillRefusesIsNamed) {
  EXPECT_EQ(Submit({"--run-as-user", "0"}), 1);
  EXPECT_NE(err_.find("violates PodSecurity \"restricted:latest\": runAsUser=0"), std::string::npos)
      << err_;
  EXPECT_EQ(err_.find("allowPrivilegeEscalation"), std::string::npos) << err_;
  EXPECT_EQ(Submit({"-v", "/srv/data:/data"}), 1);
  EXPECT_NE(err_.find("restricted volume type"), std::string::npos) << err_;
}

TEST_F(RestrictedPodsTest, PodsOfAUserWithANumberRunAsThatOne) {
  Ask("PATCH", "/api/v1/namespaces/lab",
      R"({"metadata":{"annotations":{"swell.dev/run-as-user":"1700"}}})");
  ASSERT_EQ(Submit(), 0) << err_;
  EXPECT_NE(err_.find("the pods run as a user other than root, without"), std::string::npos)
      << err_;
  EXPECT_EQ(json::Print(*json::Find(PodOf("j"), {"securityContext"})),
            R"({"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}})");
}

TEST_F(RestrictedPodsTest, ArenasWorkingDirectoryIsOneThatTheUserMayEnter) {
  ASSERT_EQ(Run({"arena", "submit", "pytorch", "-n", "lab", "--name=j", "--image=i",
                 "--sync-mode=git", "--sync-source=https://host/net.git", "python a.py"}),
            0)
      << err_;
  EXPECT_NE(StrCat(out_, err_).find("the pods run as user 1000"), std::string::npos) << err_;
  const json::Value pod = PodOf("j");
  const json::Value& container = json::GetArray(pod, {"containers"})[0];
  EXPECT_EQ(json::GetString(container, {"workingDir"}), "/tmp");
  std::vector<std::string> mounts;
  for (const json::Value& mount : json::GetArray(container, {"volumeMounts"})) {
    mounts.emplace_back(json::GetString(mount, {"mountPath"}));
  }
  EXPECT_EQ(mounts, (std::vector<std::string>{"/dev/shm", "/tmp/code"}));
  const json::Value& init = json::GetArray(pod, {"initContainers"})[0];
  EXPECT_EQ(json::GetBool(init, {"securityContext", "allowPrivilegeEscalation"}, true), false);
}

TEST_F(RestrictedPodsTest, ServersStartAsTheLevelDemands) {
  ASSERT_EQ(Run({"arena", "serve", "custom", "-n", "lab", "--name=s", "--version=1", "--image=i",
                 "python app.py"}),
            0)
      << err_;
  EXPECT_NE(err_.find("WARN[0000] namespace lab enforces Pod Security \"restricted\": the pods run "
                      "as user 1000, without capabilities, and gain no privileges\n"),
            std::string::npos)
      << err_;
  const json::Value made =
      Ask("GET", "/apis/apps/v1/namespaces/lab/deployments/s-1-custom-serving");
  EXPECT_EQ(json::GetInt(made, {"spec", "template", "spec", "securityContext", "runAsUser"}), 1000);
  // The pod that asked was not kept.
  EXPECT_EQ(json::GetArray(Ask("GET", "/api/v1/namespaces/lab/pods"), {"items"}).size(), 0U);
  EXPECT_EQ(Run({"arena", "serve", "custom", "-n", "lab", "--name=s", "--version=2", "--image=i",
                 "--data-dir=/srv", "python app.py"}),
            1);
  EXPECT_NE(err_.find("restricted volume type"), std::string::npos) << err_;
}

TEST_F(RestrictedPodsTest, ElasticDlsAndSlurmsJobsAreMadeAsTheLevelDemands) {
  const TempDir models;
  ASSERT_EQ(Run({"elasticdl", "zoo", "init", "--model_zoo=" + models.path()}), 0) << err_;
  ASSERT_EQ(Run({"elasticdl", "train", "-n", "lab", "--job_name=e", "--image_name=i",
                 "--training_data=/data", "--model_def=model.custom_model",
                 "--model_zoo=" + models.path()}),
            0)
      << err_;
  EXPECT_NE(err_.find("the pods run as user 1000, without"), std::string::npos) << err_;
  ASSERT_EQ(Run({"sbatch", "-n", "1", "--namespace=lab", "--no-container-mount-home", "--chdir=/",
                 "--container-image=i", "--wrap=true"}),
            0)
      << err_;
  EXPECT_NE(err_.find("sbatch: warning: namespace lab enforces Pod Security"), std::string::npos)
      << err_;
}

TEST_F(RestrictedPodsTest, AnotherServerWouldRefuseThePodsOnly) {
  env_.connect = [this](const ClusterFlags&) {
    Connection connection;
    connection.server = std::make_shared<api::ScriptedServer>(
        *strict_.server, [](const api::RestRequest& request) -> std::optional<api::RestResponse> {
          if (request.path != "/version") return std::nullopt;
          return api::Answer(200, R"({"gitVersion":"v1.37.2"})");
        });
    connection.url = url_;
    // One whom the embedded server's level does not hold.
    connection.user = {.name = "root", .groups = {"system:masters"}};
    return Result<Connection>(std::move(connection));
  };
  ASSERT_EQ(Submit(), 0) << err_;
  EXPECT_EQ(err_, StrCat("swell: ", kNote, "\n"));
  EXPECT_EQ(json::GetInt(PodOf("j"), {"securityContext", "runAsUser"}), 1000);
}

TEST_F(RestrictedPodsTest, AnAdministratorsJobStaysAsItIs) {
  env_.connect = [this](const ClusterFlags&) {
    Connection connection;
    connection.server = std::make_shared<Shared>(*strict_.server, before_);
    connection.url = url_;
    connection.user = {.name = "root", .groups = {"system:masters"}};
    return Result<Connection>(std::move(connection));
  };
  ASSERT_EQ(Submit(), 0) << err_;
  EXPECT_EQ(json::Find(PodOf("j"), {"securityContext"}), nullptr);
}

}  // namespace
}  // namespace swell::cli
