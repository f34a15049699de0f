// Projects share a cluster: over quota while others are idle, given back when they are not, with
// the words that people look for.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::projects {
namespace {

using client::resources::kNamespaces;
using client::resources::kNodePools;
using client::resources::kPodGroups;
using client::resources::kPods;
using client::resources::kProjects;
using client::resources::kTrainingJobs;
using manager::kSecond;
using manager::TestCluster;

constexpr std::string_view kTwoProjects = R"(
apiVersion: swell.dev/v1
kind: NodePool
metadata: {name: single-node-pool}
spec: {}
---
apiVersion: swell.dev/v1
kind: Project
metadata: {name: project-a}
spec: {nodePools: [{name: single-node-pool, resources: {gpu: {quota: 4}}}]}
---
apiVersion: swell.dev/v1
kind: Project
metadata: {name: project-b}
spec: {nodePools: [{name: single-node-pool, resources: {gpu: {quota: 4}}}]}
)";

struct JobYaml {
  std::string name, project;
  int workers = 1;
  int gpus = 8;
  std::string priority = "train";
  int workers_min = 0;  // 0: rigid
  std::string restart = "OnFailure";

  std::string Text() const {
    std::string elastic = workers_min > 0 ? StrCat("    elastic: {minReplicas: ", workers_min,
                                                   ", maxReplicas: ", workers, "}\n")
                                          : "";
    return StrCat("apiVersion: swell.dev/v1\nkind: TrainingJob\nmetadata: {name: ", name,
                  ", namespace: ", project, "}\nspec:\n  project: ", project,
                  "\n  priorityClassName: ", priority,
                  "\n  roles:\n   worker:\n    replicas: ", workers,
                  "\n    restartPolicy: ", restart, "\n", elastic,
                  "    template: {spec: {containers: [{name: main, image: img, resources: "
                  "{limits: {nvidia.com/gpu: ",
                  gpus, "}}}]}}\n");
  }
};

// The Run:ai walkthrough's cluster: one node of eight GPUs, two projects of four.
class ProjectsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-1", 8);
    cluster_.StartManager();
    cluster_.Create(kTwoProjects);
    ASSERT_TRUE(cluster_.Until([&] { return cluster_.Get(kNamespaces, "project-b") != nullptr; }));
    ASSERT_TRUE(cluster_.Until([&] { return cluster_.Get(kNamespaces, "project-a") != nullptr; }));
  }
  bool Is(const std::string& job, std::string_view type) {
    return cluster_.Condition(kTrainingJobs, job, type);
  }
  double Usage(const std::string& project, std::string_view what) {
    json::SharedValue object = cluster_.Get(kProjects, project);
    const json::Value* value = json::Find(*object, {"status", "usage", "gpu", what});
    return value != nullptr && value->is_number() ? value->to_number<double>() : -99;
  }
  bool Held(double a, double b) {
    return cluster_.Until([&] {
      return Usage("project-a", "allocated") == a && Usage("project-b", "allocated") == b;
    });
  }
  int Running(const std::string& ns) {
    int running = 0;
    for (const json::SharedValue& pod : cluster_.List(kPods, ns)) {
      running += json::GetString(*pod, {"status", "phase"}) == "Running" && !api::IsDeleting(*pod);
    }
    return running;
  }
  TestCluster cluster_;
};

TEST_F(ProjectsTest, LeavesGetANamespaceAndAStatus) {
  cluster_.Create(
      "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: department}, spec: {}}\n"
      "---\n{apiVersion: swell.dev/v1, kind: Project, metadata: {name: team}, spec: {parent: "
      "department, namespace: elsewhere}}");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Get(kNamespaces, "elsewhere") != nullptr; }));
  EXPECT_EQ(cluster_.Get(kNamespaces, "team"), nullptr);
  EXPECT_EQ(cluster_.Get(kNamespaces, "department"), nullptr);
  EXPECT_EQ(api::Label(*cluster_.Get(kNamespaces, "elsewhere"), api::keys::kProject), "team");
  ASSERT_TRUE(cluster_.Until([&] { return Usage("project-a", "quota") == 4; }));
  EXPECT_EQ(Usage("project-a", "allocated"), 0);
  EXPECT_EQ(cluster_.Int(kNodePools, "single-node-pool", {"status", "gpus"}), 8);
}

TEST_F(ProjectsTest, TheStatusHasTheUseOfEachPool) {
  cluster_.Create(
      "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: free}, spec: {resources: {gpu: "
      "{quota: 2}}}}");
  auto pools = [this](const std::string& project) {
    return json::GetArray(*cluster_.Get(kProjects, project), {"status", "pools"});
  };
  ASSERT_TRUE(
      cluster_.Until([&] { return !pools("project-a").empty() && !pools("free").empty(); }));
  const json::Array own = pools("project-a");
  ASSERT_EQ(own.size(), 1u);
  EXPECT_EQ(json::GetString(own[0], {"name"}), "single-node-pool");
  EXPECT_EQ(json::GetInt(own[0], {"usage", "gpu", "quota"}, -9), 4);
  EXPECT_EQ(json::Find(pools("free")[0], {"usage", "gpu", "quota"}), nullptr)
      << "it counts in all pools";
  EXPECT_EQ(json::GetInt(*cluster_.Get(kProjects, "free"), {"status", "usage", "gpu", "quota"}), 2);
}

TEST_F(ProjectsTest, ANewProjectCanBeWorkedInAtOnce) {
  cluster_.Create("{apiVersion: swell.dev/v1, kind: Project, metadata: {name: fresh}, spec: {}}");
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Get(kNamespaces, "fresh") != nullptr; },
                             std::chrono::milliseconds(300)));
}

TEST_F(ProjectsTest, AnIsolatedProjectHasAPolicyAsLongAsItIs) {
  const client::Resource& policies = client::resources::kNetworkPolicies;
  auto policy = [&] { return cluster_.Get(policies, "apart/project-isolated"); };
  cluster_.Create(
      "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: apart}, spec: {isolated: true}}");
  ASSERT_TRUE(cluster_.Until([&] { return policy() != nullptr; }));
  const json::SharedValue made = policy();
  const auto wanted = json::Parse(R"({"podSelector":{},"policyTypes":["Ingress"],)"
                                  R"("ingress":[{"from":[{"podSelector":{}}]}]})");
  EXPECT_EQ(*json::Find(*made, {"spec"}), *wanted);
  EXPECT_EQ(api::ControllerOf(*made)->name, "apart");
  EXPECT_EQ(cluster_.Get(policies, "project-a/project-isolated"), nullptr);
}

TEST_F(ProjectsTest, AMissingParentIsSaid) {
  cluster_.Create(
      "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: lost}, spec: {parent: nobody}}");
  ASSERT_TRUE(cluster_.Until([&] {
    return json::GetString(*cluster_.Get(kProjects, "lost"), {"status", "phase"}) == "Invalid";
  }));
  EXPECT_EQ(json::GetString(*cluster_.Get(kProjects, "lost"), {"status", "message"}),
            "spec.parent: Not found: \"nobody\"");
}

TEST_F(ProjectsTest, WorkOfAProjectThatGetsOthersBelowItIsSaid) {
  cluster_.Create(
      "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: part}, spec: {parent: "
      "project-a}}");
  cluster_.Create(JobYaml{.name = "work", .project = "project-a", .gpus = 4}.Text());
  ASSERT_TRUE(cluster_.Until([&] {
    return json::GetString(*cluster_.Get(kProjects, "project-a"), {"status", "phase"}) == "Invalid";
  }));
  EXPECT_EQ(
      json::GetString(*cluster_.Get(kProjects, "project-a"), {"status", "message"}),
      "work in namespace project-a (pod work-worker-0) counts for no quota or limit: projects "
      "are below this one (part), and work belongs to one of those");
  ASSERT_TRUE(cluster_.Delete(kProjects, "part").ok());
  EXPECT_TRUE(cluster_.Until([&] {
    return json::GetString(*cluster_.Get(kProjects, "project-a"), {"status", "phase"}) == "Ready";
  }));
}

TEST_F(ProjectsTest, AMissingNodePoolIsSaid) {
  cluster_.Create(
      "apiVersion: swell.dev/v1\nkind: Project\nmetadata: {name: p}\n"
      "spec: {nodePools: [{name: a100, resources: {gpu: {quota: 2}}}]}\n");
  auto phase = [this] {
    return std::string(json::GetString(*cluster_.Get(kProjects, "p"), {"status", "phase"}));
  };
  EXPECT_TRUE(cluster_.Until([&] { return phase() == "Invalid"; }));
  EXPECT_EQ(json::GetString(*cluster_.Get(kProjects, "p"), {"status", "message"}),
            "spec.nodePools[0].name: Not found: \"a100\": no node pool has this name, so these "
            "quotas and limits have no effect");
  const std::string pool =
      "apiVersion: swell.dev/v1\nkind: NodePool\nmetadata: {name: a100}\n"
      "spec: {nodeSelector: {gpu: a100}}\n";
  cluster_.Create(pool);
  EXPECT_TRUE(cluster_.Until([&] { return phase() == "Ready"; }));
  EXPECT_EQ(json::GetString(*cluster_.Get(kProjects, "p"), {"status", "message"}), "");
  EXPECT_TRUE(cluster_.Delete(client::resources::kNodePools, "a100").ok());
  EXPECT_TRUE(cluster_.Until([&] { return phase() == "Invalid"; }));
}

TEST_F(ProjectsTest, ALimitBelowTheQuotaAndANamespaceOfAnotherAreSaid) {
  cluster_.Create(
      "apiVersion: swell.dev/v1\nkind: Project\nmetadata: {name: tight}\n"
      "spec: {resources: {gpu: {quota: 4, limit: 2}}}\n---\n"
      "apiVersion: swell.dev/v1\nkind: Project\nmetadata: {name: twin}\n"
      "spec: {namespace: project-a}\n---\n"
      "apiVersion: swell.dev/v1\nkind: Project\nmetadata: {name: odd}\n"
      "spec: {namespace: Foo_}\n");
  auto said = [this](const std::string& name) {
    return std::string(json::GetString(*cluster_.Get(kProjects, name), {"status", "message"}));
  };
  ASSERT_TRUE(cluster_.Until([&] { return !said("twin").empty() && !said("odd").empty(); }));
  EXPECT_EQ(said("tight"), "spec.resources.gpu.limit: Invalid value: 2: is below the quota of 4");
  EXPECT_EQ(said("twin"),
            "spec.namespace: Invalid value: \"project-a\": it is project project-a's, which what "
            "runs there is charged to");
  EXPECT_TRUE(said("odd").starts_with("spec.namespace: Invalid value: \"Foo_\": a lowercase"))
      << said("odd");
  EXPECT_EQ(said("project-a"), "");
}

TEST_F(ProjectsTest, ATrainingJobRunsAndSucceeds) {
  cluster_.Create(JobYaml{.name = "t", .project = "project-a", .workers = 2, .gpus = 1}.Text());
  ASSERT_TRUE(cluster_.Until([&] { return Is("project-a/t", "Running"); }));
  json::SharedValue pod = cluster_.Get(kPods, "project-a/t-worker-1");
  EXPECT_EQ(api::Label(*pod, api::keys::kJobName), "t");
  cluster_.agents->Exit("project-a/t-worker-0", 0);
  cluster_.agents->Exit("project-a/t-worker-1", 0);
  ASSERT_TRUE(cluster_.Until([&] { return Is("project-a/t", "Succeeded"); }));
  json::SharedValue job = cluster_.Get(kTrainingJobs, "project-a/t");
  EXPECT_EQ(json::GetString(*job, {"status", "phase"}), "Succeeded");
}

TEST_F(ProjectsTest, ABadRoleIsNamedWithFieldAndValue) {
  cluster_.Create(
      "apiVersion: swell.dev/v1\nkind: TrainingJob\nmetadata: {name: bad, namespace: "
      "project-a}\nspec: {roles: {worker: {elastic: {minReplicas: 9, maxReplicas: 2}, template: "
      "{spec: {containers: [{name: a, image: i}]}}}}}");
  ASSERT_TRUE(cluster_.Until([&] { return Is("project-a/bad", "Failed"); }));
  json::SharedValue job = cluster_.Get(kTrainingJobs, "project-a/bad");
  const std::optional<api::Condition> failed = api::FindCondition(*job, "Failed");
  std::string message(failed->message);
  EXPECT_NE(message.find("spec.roles.worker.elastic.minReplicas: Invalid value: 9"),
            std::string::npos)
      << message;
}

// Walkthrough 2, once with a gang that cannot shrink.
TEST_F(ProjectsTest, ARigidJobIsReclaimedWholeAndComesBack) {
  cluster_.Create(JobYaml{.name = "large", .project = "project-a"}.Text());
  ASSERT_TRUE(cluster_.Until([&] { return Is("project-a/large", "Running"); }));
  ASSERT_TRUE(Held(8, 0)) << "over quota, while the other is idle";
  cluster_.Run(20 * kSecond);
  cluster_.Create(
      JobYaml{.name = "workspace", .project = "project-b", .gpus = 4, .priority = "interactive"}
          .Text());
  ASSERT_TRUE(cluster_.Until([&] { return Is("project-b/workspace", "Running"); }));
  ASSERT_TRUE(cluster_.Until([&] { return Is("project-a/large", "Preempted"); }));
  EXPECT_FALSE(Is("project-a/large", "Failed"));
  ASSERT_TRUE(Held(0, 4));
  std::string message = cluster_.EventMessage("Reclaimed", "large-worker-0");
  EXPECT_TRUE(message.starts_with("Preempted")) << message;
  EXPECT_NE(message.find("project-b/workspace"), std::string::npos) << message;
  json::SharedValue group = cluster_.Get(kPodGroups, "project-a/large");
  EXPECT_EQ(json::GetString(*group, {"status", "phase"}), "Preempted");
  EXPECT_EQ(json::GetString(*group, {"status", "lastPreemption", "rule"}), "reclaim");

  cluster_.Run(60 * kSecond);
  EXPECT_EQ(cluster_.Int(kPodGroups, "project-a/large", {"status", "preemptions"}), 1)
      << "no churn while the quota is in use";
  ASSERT_TRUE(cluster_.Delete(kTrainingJobs, "project-b/workspace").ok());
  ASSERT_TRUE(cluster_.Until([&] { return Is("project-a/large", "Running"); }));
  ASSERT_TRUE(Held(8, 0));
  EXPECT_EQ(cluster_.Events("Resumed", "large"), 1);
}

// And once with one that can.
TEST_F(ProjectsTest, AnElasticJobShrinksToItsQuotaAndGrowsBack) {
  cluster_.Create(
      JobYaml{.name = "large", .project = "project-a", .workers = 8, .gpus = 1, .workers_min = 2}
          .Text());
  ASSERT_TRUE(cluster_.Until([&] { return Running("project-a") == 8; }));
  ASSERT_TRUE(Held(8, 0));
  std::string first = cluster_.PodUid("project-a/large-worker-0");
  cluster_.Run(20 * kSecond);
  cluster_.Create(
      JobYaml{.name = "workspace", .project = "project-b", .gpus = 4, .priority = "interactive"}
          .Text());
  bool stopped = false;
  ASSERT_TRUE(cluster_.Until([&] {
    stopped = stopped || !Is("project-a/large", "Running");
    return Is("project-b/workspace", "Running");
  }));
  ASSERT_TRUE(Held(4, 4));
  cluster_.Run(30 * kSecond);
  EXPECT_FALSE(stopped);
  EXPECT_TRUE(Is("project-a/large", "Running"));
  EXPECT_FALSE(Is("project-a/large", "Preempted"));
  EXPECT_EQ(Running("project-a"), 4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(cluster_.PodPhase(StrCat("project-a/large-worker-", i)), "Running")
        << "the first members are given up last";
  }
  EXPECT_EQ(cluster_.Events("Shrunk", "large"), 1);
  EXPECT_EQ(cluster_.EventMessage("Shrunk", "large"),
            "Preempted 4 of 8 members for project-b/workspace-worker-0; 4 continue");
  std::string pod_says = cluster_.EventMessage("Shrunk", "large-worker-7");
  EXPECT_TRUE(pod_says.starts_with("Preempted")) << pod_says;

  ASSERT_TRUE(cluster_.Delete(kTrainingJobs, "project-b/workspace").ok());
  ASSERT_TRUE(cluster_.Until([&] { return Running("project-a") == 8; }));
  ASSERT_TRUE(Held(8, 0));
  EXPECT_EQ(cluster_.EventMessage("Grown", "large"), "Grew from 4 to 8 of 8 members");
  EXPECT_EQ(cluster_.PodUid("project-a/large-worker-0"), first) << "it never stopped";
}

TEST_F(ProjectsTest, AJobThatKeepsOneMemberSaysSo) {
  cluster_.Create(
      JobYaml{.name = "large", .project = "project-a", .workers = 2, .gpus = 4, .workers_min = 1}
          .Text());
  ASSERT_TRUE(cluster_.Until([&] { return Running("project-a") == 2; }));
  cluster_.Create(
      JobYaml{.name = "workspace", .project = "project-b", .gpus = 4, .priority = "interactive"}
          .Text());
  ASSERT_TRUE(cluster_.Until([&] { return Is("project-b/workspace", "Running"); }));
  EXPECT_EQ(cluster_.EventMessage("Shrunk", "large"),
            "Preempted 1 of 2 members for project-b/workspace-worker-0; 1 continues");
}

// Members that found no place have missed the end.
TEST_F(ProjectsTest, AnElasticJobEndsWithoutItsMissingMembers) {
  cluster_.Create(
      JobYaml{.name = "wide", .project = "project-a", .workers = 12, .gpus = 1, .workers_min = 1}
          .Text());
  ASSERT_TRUE(cluster_.Until([&] { return Running("project-a") == 8; }));
  for (int i = 0; i < 8; ++i) cluster_.agents->Exit(StrCat("project-a/wide-worker-", i), 0);
  ASSERT_TRUE(cluster_.Until([&] { return Is("project-a/wide", "Succeeded"); }));
  EXPECT_FALSE(Is("project-a/wide", "Failed"));
}

TEST_F(ProjectsTest, AProjectInUseStaysUntilItsWorkIsGone) {
  cluster_.Create(JobYaml{.name = "work", .project = "project-a", .gpus = 4}.Text());
  ASSERT_TRUE(cluster_.Until([&] { return Running("project-a") == 1; }));
  ASSERT_TRUE(Held(4, 0));
  ASSERT_TRUE(cluster_.Delete(kProjects, "project-a").ok());
  ASSERT_TRUE(cluster_.Delete(kProjects, "project-b").ok());
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Get(kProjects, "project-b") == nullptr; }));
  EXPECT_TRUE(cluster_.Until([&] {
    json::SharedValue project = cluster_.Get(kProjects, "project-a");
    return project && json::GetString(*project, {"status", "phase"}) == "Terminating";
  }));
  EXPECT_NE(json::GetString(*cluster_.Get(kProjects, "project-a"), {"status", "message"})
                .find("held or waited for"),
            std::string_view::npos);
  cluster_.Run(std::chrono::seconds(30));
  EXPECT_EQ(Running("project-a"), 1);
  ASSERT_TRUE(cluster_.Delete(kTrainingJobs, "project-a/work").ok());
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Get(kProjects, "project-a") == nullptr; }));
}

TEST_F(ProjectsTest, PastUseOutlivesTheScheduler) {
  cluster_.StopManager();
  manager::ManagerOptions options;
  options.scheduler.past_share = 1;
  cluster_.StartManager(options);
  cluster_.Create(JobYaml{.name = "work", .project = "project-a", .gpus = 4}.Text());
  ASSERT_TRUE(cluster_.Until([&] { return Running("project-a") == 1; }));
  cluster_.Run(std::chrono::minutes(31));
  json::SharedValue project = cluster_.Get(kProjects, "project-a");
  const json::Array& noted = json::GetArray(*project, {"status", "pastUse", "pools"});
  ASSERT_EQ(noted.size(), 1u) << json::Print(*project);
  EXPECT_EQ(json::GetString(noted[0], {"pool"}), "single-node-pool");
  EXPECT_NEAR(json::Find(noted[0], {"gpuHours"})->to_number<double>(), 2, 0.4);
  EXPECT_EQ(json::Find(*cluster_.Get(kProjects, "project-b"), {"status", "pastUse"}), nullptr);
  cluster_.StopManager();
  cluster_.StartManager(options);
  ASSERT_TRUE(cluster_.Until([&] { return !cluster_.manager->scheduler().past_use().empty(); }));
  EXPECT_NEAR(cluster_.manager->scheduler().past_use()[0].gpu_hours, 2, 0.4);
}

}  // namespace
}  // namespace swell::projects
