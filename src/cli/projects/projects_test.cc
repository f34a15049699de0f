// `swell project` and `swell nodepool` as people type them.
#include "base/file.h"
#include "base/temp_dir.h"
#include "cli/runai/runai_test_util.h"

namespace swell::cli {
namespace {

using ProjectsTest = RunaiTest;

TEST_F(ProjectsTest, TheUseOfEachPoolIsShown) {
  Cluster();
  ASSERT_EQ(Run({"swell", "project", "list", "--pools"}), 0) << err_;
  EXPECT_EQ(err_,
            "The cluster has no node pools. Create one with: swell nodepool create "
            "NAME --all-nodes\n");
  Status("/apis/swell.dev/v1/projects/project-a",
         R"({"status":{"usage":{"gpu":{"quota":6,"allocated":6,"requested":7,"fairShare":6}},)"
         R"("pools":[{"name":"a100","usage":{"gpu":{"quota":4,"allocated":2,"requested":2,)"
         R"("fairShare":2}}},{"usage":{"gpu":{"quota":2,"allocated":4,"requested":5,)"
         R"("fairShare":4}}}]}})");
  Status("/apis/swell.dev/v1/projects/project-b",
         R"({"status":{"pools":[{"name":"a100","usage":{"gpu":{"allocated":1,"requested":1}}}]}})");
  ASSERT_EQ(Run({"swell", "project", "list", "--pools"}), 0) << err_;
  EXPECT_EQ(out_,
            "NAME        NODE POOL   GPU (held/quota)   FAIR SHARE   REQUESTED   OVER QUOTA   "
            "CPU (held/quota)   MEMORY (held/quota)\n"
            "project-a   a100        2/4                2            2           -            "
            "0/unlimited        0/unlimited\n"
            "project-a   (no pool)   4/2                4            5           +2           "
            "0/unlimited        0/unlimited\n"
            "project-b   a100        1/shared           -            1           -            "
            "0/shared           0/shared\n");
  ASSERT_EQ(Run({"swell", "project", "list", "project-a", "--no-headers"}), 0) << err_;
  EXPECT_NE(out_.find("   +2   "), std::string::npos) << "over in one of its pools: " << out_;
}

TEST_F(ProjectsTest, RulesBetweenUsersByCommand) {
  Cluster();
  const auto users = [this] {
    EXPECT_EQ(
        Run({"swell", "project", "list", "project-a", "-o", "jsonpath={.items[0].spec.users}"}), 0)
        << err_;
    return out_;
  };
  ASSERT_EQ(Run({"swell", "project", "edit", "project-a", "--user-gpu-limit", "2.5",
                 "--user-fair-share"}),
            0)
      << err_;
  EXPECT_EQ(users(), R"({"fairShare":true,"gpuLimit":2.5})");
  ASSERT_EQ(Run({"swell", "project", "edit", "project-a", "--pod-security", "privileged"}), 0);
  ASSERT_EQ(
      Run({"swell", "project", "list", "project-a", "-o", "jsonpath={.items[0].spec.podSecurity}"}),
      0);
  EXPECT_EQ(out_, "privileged");
  ASSERT_EQ(Run({"swell", "project", "edit", "project-a", "--max-objects", "300"}), 0) << err_;
  ASSERT_EQ(Run({"swell", "project", "list", "project-a", "-o",
                 "jsonpath={.items[0].spec.maxObjectsPerKind}"}),
            0);
  EXPECT_EQ(out_, "300");
  EXPECT_EQ(Run({"swell", "project", "edit", "project-a", "--max-objects", "0"}), 2);
  ASSERT_EQ(Run({"swell", "project", "edit", "project-a", "--max-objects-mib", "64"}), 0) << err_;
  ASSERT_EQ(Run({"swell", "project", "list", "project-a", "-o",
                 "jsonpath={.items[0].spec.maxObjectsMib}"}),
            0);
  EXPECT_EQ(out_, "64");
  EXPECT_EQ(Run({"swell", "project", "edit", "project-a", "--max-objects-mib", "many"}), 2);
  EXPECT_NE(err_.find("--max-objects-mib \"many\": expected an integer from 1 to"),
            std::string::npos)
      << err_;
  EXPECT_EQ(Run({"swell", "project", "list", "-o", "wide"}), 0) << err_;
  EXPECT_NE(out_.find("2.5 GPUs at most, fair share\n"), std::string::npos) << out_;
  ASSERT_EQ(Run({"swell", "project", "edit", "project-a", "--user-gpu-limit", "unlimited"}), 0)
      << err_;
  EXPECT_EQ(users(), R"({"fairShare":true,"gpuLimit":-1})");
  ASSERT_EQ(Run({"swell", "project", "edit", "project-a", "--no-user-fair-share"}), 0) << err_;
  EXPECT_EQ(users(), R"({"fairShare":false,"gpuLimit":-1})");
  EXPECT_EQ(Run({"swell", "project", "edit", "project-a", "--user-gpu-limit", "many"}), 2);
  EXPECT_NE(err_.find("--user-gpu-limit \"many\""), std::string::npos) << err_;
  EXPECT_EQ(
      Run({"swell", "project", "edit", "project-a", "--user-fair-share", "--no-user-fair-share"}),
      2);
  EXPECT_NE(err_.find("exclude each other"), std::string::npos) << err_;
}

TEST_F(ProjectsTest, DefaultOfAutoscalingByCommand) {
  Cluster();
  const auto said = [this] {
    EXPECT_EQ(Run({"swell", "project", "list", "project-a", "-o",
                   "jsonpath={.items[0].spec.autoscaling}"}),
              0)
        << err_;
    return out_;
  };
  ASSERT_EQ(Run({"swell", "project", "edit", "project-a", "--autoscaling", "Goodput"}), 0) << err_;
  EXPECT_EQ(said(), R"({"default":"Goodput"})");
  ASSERT_EQ(Run({"swell", "project", "edit", "project-a", "--autoscaling", "inherit"}), 0) << err_;
  EXPECT_EQ(said(), "");
  EXPECT_EQ(Run({"swell", "project", "edit", "project-a", "--autoscaling", "Metric"}), 2);
  ASSERT_EQ(Run({"swell", "project", "create", "new", "--autoscaling", "inherit"}), 0) << err_;
  ASSERT_EQ(Run({"swell", "project", "create", "fixed", "--autoscaling", "None"}), 0) << err_;
}

TEST_F(ProjectsTest, ProjectsAndPoolsByCommand) {
  Cluster();
  auto project =
      json::Parse(
          server_.Send(server_.Request("GET", "/apis/swell.dev/v1/projects/project-a")).text)
          .value();
  EXPECT_EQ(json::Print(*json::Find(project, {"spec", "nodePools"})),
            R"([{"name":"single-node-pool","resources":{"gpu":{"quota":4}}}])");
  ASSERT_EQ(Run({"swell", "project", "edit", "project-a", "--gpu-limit", "6", "--priority", "200"}),
            0)
      << err_;
  EXPECT_EQ(out_, "project.swell.dev/project-a edited\n");
  ASSERT_EQ(Run({"swell", "project", "list", "project-a", "-o",
                 "jsonpath={.items[0].spec.nodePools[0].resources.gpu}"}),
            0)
      << err_;
  EXPECT_EQ(out_, R"({"quota":4,"limit":6})") << "what was said before stays";
  ASSERT_EQ(Run({"swell", "project", "edit", "project-a", "--gpu-lending-limit", "1"}), 0) << err_;
  ASSERT_EQ(Run({"swell", "project", "list", "project-a", "-o", "wide"}), 0) << err_;
  EXPECT_NE(out_.find("LENDING LIMIT\n"), std::string::npos) << out_;
  EXPECT_NE(out_.find("   1 in single-node-pool\n"), std::string::npos) << out_;
  EXPECT_EQ(Run({"swell", "project", "edit", "project-a", "--gpu-limit", "2"}), 2);
  EXPECT_NE(err_.find("--gpu-limit: the gpu limit of project \"project-a\" in pool "
                      "\"single-node-pool\" would be 2, below its quota of 4"),
            std::string::npos)
      << err_;
  EXPECT_EQ(Run({"swell", "project", "edit", "project-a", "--gpu-quota", "7"}), 2) << out_;
  Usage("project-a", 8, 8, 8);
  ASSERT_EQ(Run({"swell", "project", "list"}), 0) << err_;
  EXPECT_EQ(out_,
            "NAME        GPU (held/quota)   FAIR SHARE   REQUESTED   OVER QUOTA   CPU (held/quota)"
            "   MEMORY (held/quota)   AGE\n"
            "project-a   8/4                8            8           +4           0/unlimited"
            "        0/unlimited           0s\n"
            "project-b   0/4                -            0           -            0/unlimited"
            "        0/unlimited           0s\n");
  ASSERT_EQ(Run({"swell", "nodepool", "list"}), 0) << err_;
  EXPECT_EQ(out_,
            "NAME               NODES   GPUS (held/all)   PLACEMENT   SELECTOR    AGE\n"
            "single-node-pool   1       0/8               Pack        all nodes   0s\n");
}

TEST_F(ProjectsTest, WhatOthersWriteOfAProjectMeanwhileStays) {
  Cluster();
  const std::string path = "/apis/swell.dev/v1/projects/project-a";
  int others = 1;
  before_ = [&](const api::RestRequest& request) {
    if (request.method != "PATCH" || others-- <= 0) return;
    server_.Send(server_.Request(
        "PATCH", path, R"({"spec":{"members":[{"kind":"User","name":"bob","role":"viewer"}]}})",
        "application/merge-patch+json"));
  };
  ASSERT_EQ(Run({"swell", "project", "edit", "project-a", "--member", "alice=researcher"}), 0)
      << err_;
  EXPECT_EQ(out_, "project.swell.dev/project-a edited\n");
  ASSERT_EQ(Run({"swell", "get", "project", "project-a", "-o", "jsonpath={.spec.members[*].name}"}),
            0)
      << err_;
  EXPECT_EQ(out_, "bob alice");
  ASSERT_EQ(Run({"swell", "project", "edit", "project-a", "--member", "alice=researcher"}), 0);
  EXPECT_EQ(out_, "project.swell.dev/project-a unchanged\n");
}

TEST_F(ProjectsTest, ProjectMistakesNameObjectFieldAndValue) {
  Cluster();
  EXPECT_EQ(Run({"swell", "project", "create", "x", "--parent", "projct-a"}), 1);
  EXPECT_NE(err_.find("--parent: project \"projct-a\" not found; did you mean project-a?"),
            std::string::npos)
      << err_;
  EXPECT_EQ(Run({"swell", "project", "create", "x", "--gpu-quota", "many"}), 2);
  EXPECT_NE(err_.find("--gpu-quota \"many\""), std::string::npos) << err_;
  EXPECT_EQ(Run({"swell", "project", "create", "x", "--gpu-quota", "4", "--gpu-limit", "2"}), 2);
  EXPECT_EQ(Run({"swell", "project", "create", "Not_A_Name"}), 2);
  EXPECT_EQ(Run({"swell", "project", "create", "project-a", "--gpu-quota", "4"}), 1);
  EXPECT_EQ(err_,
            "swell: project \"project-a\" already exists; to change it: swell project edit "
            "project-a\n");
  EXPECT_EQ(Run({"swell", "project", "create", "x", "--node-pool", "nowhere"}), 1);
  EXPECT_NE(err_.find("--node-pool: node pool \"nowhere\" not found"), std::string::npos);
  EXPECT_EQ(Run({"swell", "project", "edit", "project-a"}), 2);
  EXPECT_EQ(Run({"swell", "project", "edit", "project-a", "--parent", "project-a"}), 2);
  EXPECT_EQ(Run({"swell", "nodepool", "create", "p"}), 2);
  EXPECT_EQ(Run({"swell", "nodepool", "create", "p", "--all-nodes", "--placement", "heap"}), 2);
}

TEST_F(ProjectsTest, DeletionIsGuarded) {
  Cluster();
  EXPECT_EQ(Run({"swell", "nodepool", "delete", "single-node-pool"}), 1);
  EXPECT_NE(err_.find("still has quotas of projects: project-a, project-b"), std::string::npos);
  ASSERT_EQ(Submit({"--gpu", "8"}), 0) << err_;
  EXPECT_EQ(Run({"swell", "project", "delete", "project-a"}), 1);
  EXPECT_NE(err_.find("still has 1 job: large-training-job"), std::string::npos) << err_;
  ASSERT_EQ(Run({"swell", "project", "create", "team", "--parent", "project-b"}), 0) << err_;
  EXPECT_EQ(Run({"swell", "project", "delete", "project-b"}), 1);
  EXPECT_NE(err_.find("still has projects in it: team"), std::string::npos) << err_;
  ASSERT_EQ(Run({"swell", "project", "delete", "team", "project-b"}), 0) << err_;
  // Its controller guards it between the look and the deletion.
  before_ = [&](const api::RestRequest& request) {
    if (request.method != "DELETE") return;
    server_.Send(server_.Request("PATCH", request.path,
                                 R"({"metadata":{"finalizers":["swell.dev/in-use"]}})",
                                 "application/merge-patch+json"));
  };
  ASSERT_EQ(Run({"swell", "project", "delete", "project-a", "--force"}), 0) << err_;
  ASSERT_EQ(Run({"swell", "get", "projects", "-o", "name"}), 0) << err_;
  EXPECT_EQ(out_, "");
}

TEST_F(ProjectsTest, QuotasInCommands) {
  Cluster();
  Usage("project-a", 8, 8, 8);
  ASSERT_EQ(Run({"runai", "get", "resources", "--project", "project-a"}), 0) << err_;
  EXPECT_TRUE(
      out_.starts_with("PROJECT: project-a, 8/4 GPUs (over quota)\n"
                       "NODE POOLS: single-node-pool\n"
                       "\n"
                       "RESOURCE   ALLOCATED/QUOTA   FAIR SHARE   REQUESTED   LIMIT       "
                       "STATE\n"
                       "GPU        8/4               8            8           unlimited   "
                       "over quota\n"))
      << out_;
  ASSERT_EQ(Run({"runai", "describe", "project", "project-b"}), 0) << err_;
  EXPECT_NE(out_.find("GPU QUOTA: 4\nGPU USAGE: 0/4 GPUs (under quota)\n"), std::string::npos)
      << out_;
  ASSERT_EQ(Run({"runai", "get", "node-pools"}), 0) << err_;
  EXPECT_NE(out_.find("single-node-pool   project-a   4           unlimited   1\n"),
            std::string::npos)
      << out_;
  ASSERT_EQ(Run({"runai", "cluster-info"}), 0) << err_;
  EXPECT_NE(out_.find("GPUS: 0 allocated of 8, 8 free\n"), std::string::npos) << out_;
  ASSERT_EQ(Run({"swell", "top", "project"}), 0) << err_;
  EXPECT_NE(out_.find("single-node-pool   project-a\n"), std::string::npos) << out_;
}

TEST_F(ProjectsTest, ANewPoolReportsItsNodesAndWhoseTheyWere) {
  Cluster();
  ASSERT_EQ(Run({"swell", "nodepool", "create", "all", "--all-nodes"}), 0) << err_;
  EXPECT_EQ(out_, "nodepool.swell.dev/all created\n");
  EXPECT_EQ(err_,
            "It has 1 node with 8 GPUs.\n"
            "Warning: these nodes leave other node pools: node-1 (single-node-pool)\n"
            "A node that several node pools select is in the first of them by name.\n");
  ASSERT_EQ(Run({"swell", "nodepool", "create", "later", "--all-nodes"}), 0) << err_;
  EXPECT_EQ(err_,
            "It has 0 nodes with 0 GPUs.\n"
            "Warning: these nodes stay in other node pools: node-1 (all)\n"
            "A node that several node pools select is in the first of them by name.\n");
  ASSERT_EQ(Run({"swell", "nodepool", "list"}), 0) << err_;
  EXPECT_NE(out_.find("all                1 "), std::string::npos) << out_;
  EXPECT_NE(out_.find("single-node-pool   0 "), std::string::npos) << out_;
}

TEST_F(ProjectsTest, TheDefaultProjectSaysWhoElseFollowsIt) {
  Cluster();
  TempDir folder;
  const std::string path = folder.File("kubeconfig");
  ASSERT_TRUE(WriteFileAtomically(path,
                                  "current-context: swell\n"
                                  "contexts: [{name: swell, context: {cluster: c, user: u}}]\n")
                  .ok());
  const auto connect = env_.connect;
  env_.connect = [&](const ClusterFlags& flags) {
    auto connection = connect(flags);
    connection->kubeconfig = path;
    return connection;
  };
  ASSERT_EQ(Run({"runai", "config", "project", "project-a"}), 0) << err_;
  EXPECT_EQ(out_, StrCat("Project project-a has been set as default project\n"
                         "kubectl, swell and arena now use namespace project-a, too (",
                         path, "). To unset it: kubectl config unset contexts.swell.namespace\n"));
  const auto written = ReadFile(path, 4096);
  ASSERT_TRUE(written.ok());
  EXPECT_NE(written->find("namespace: project-a"), std::string::npos) << *written;
}

}  // namespace
}  // namespace swell::cli
