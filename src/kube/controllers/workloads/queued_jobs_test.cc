#include "kube/controllers/workloads/queued_jobs.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::controllers {
namespace {

using client::resources::kJobs;
using manager::TestCluster;

class QueuedJobsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-a", 4);
    cluster_.StartManager();
  }
  void Submit(std::string_view metadata, int pods = 1) {
    cluster_.Create(StrCat(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, namespace: default, ", metadata,
        "}\nspec: {suspend: true, parallelism: ", pods, ", completions: ", pods,
        ", template: {spec: {schedulerName: swell, restartPolicy: Never, containers: [{name: main, "
        "image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}}}\n"));
  }
  bool AllRun(int pods) {
    return cluster_.Until([&] { return cluster_.Pods("Running") == pods; });
  }
  TestCluster cluster_;
};

constexpr std::string_view kQueued = "labels: {kueue.x-k8s.io/queue-name: team}";
constexpr std::string_view kTemplate =
    "template: {spec: {containers: [{name: pytorch, image: i, resources: {limits: {nvidia.com/gpu: "
    "1}}}]}}";

TEST_F(QueuedJobsTest, AJobThatWaitsForKueueIsLetGoWhereThereIsNoneAndIsAGang) {
  Submit(kQueued, 5);
  cluster_.Run(std::chrono::seconds(5));
  EXPECT_EQ(cluster_.Pods("Pending"), 5) << "four GPUs are too few";
  EXPECT_EQ(cluster_.Events("Released"), 1);
  ASSERT_TRUE(cluster_.Delete(kJobs, "default/j", {.propagation = "Background"}).ok());
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
  Submit(
      "labels: {kueue.x-k8s.io/queue-name: team}, annotations: "
      "{kueue.x-k8s.io/job-min-parallelism: '2'}",
      5);
  EXPECT_TRUE(AllRun(4)) << "it says that two are enough";
}

TEST_F(QueuedJobsTest, OneThatPeopleSuspendLaterRests) {
  Submit(kQueued);
  ASSERT_TRUE(AllRun(1));
  ASSERT_TRUE(cluster_.Patch(kJobs, "default/j", "spec: {suspend: true}").ok());
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
  cluster_.Run(std::chrono::seconds(30));
  EXPECT_EQ(cluster_.Pods(""), 0);
}

TEST_F(QueuedJobsTest, OneThatIsSuspendedOnlyAfterItsStartRestsToo) {
  cluster_.Create(StrCat(
      "apiVersion: swell.dev/v1\nkind: TrainingJob\nmetadata: {name: t, namespace: default, ",
      kQueued, "}\nspec: {roles: {worker: {replicas: 1, ", kTemplate, "}}}\n"));
  ASSERT_TRUE(AllRun(1));
  ASSERT_TRUE(
      cluster_.Patch(client::resources::kTrainingJobs, "default/t", "spec: {suspend: true}").ok());
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
  cluster_.Run(std::chrono::seconds(30));
  EXPECT_EQ(cluster_.Pods(""), 0);
}

TEST_F(QueuedJobsTest, JobsOfAllKindsAreLetGo) {
  const auto make = [&](std::string_view version, std::string_view kind, std::string_view spec) {
    cluster_.Create(StrCat("apiVersion: ", version, "\nkind: ", kind,
                           "\nmetadata: {name: ", ToLower(kind), ", namespace: default, ", kQueued,
                           "}\nspec: {", spec, "}\n"));
  };
  make("swell.dev/v1", "TrainingJob",
       StrCat("suspend: true, roles: {worker: {replicas: 1, ", kTemplate, "}}"));
  make("kubeflow.org/v1", "PyTorchJob",
       StrCat("runPolicy: {suspend: true}, pytorchReplicaSpecs: {Master: {replicas: 1, ", kTemplate,
              "}}"));
  make("trainer.kubeflow.org/v1alpha1", "TrainJob",
       "suspend: true, runtimeRef: {name: torch-distributed}, trainer: {command: [x]}");
  make("batch.volcano.sh/v1alpha1", "Job",
       StrCat("suspend: true, tasks: [{name: a, replicas: 1, ", kTemplate, "}]"));
  EXPECT_TRUE(AllRun(4));
  EXPECT_EQ(cluster_.Events("Released"), 4);
}

TEST_F(QueuedJobsTest, JobsThatAnotherControllerRunsOrThatWaitForOthersStaySuspended) {
  const auto make = [&](std::string_view name, std::string_view metadata, std::string_view spec) {
    cluster_.Create(StrCat("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: ", name,
                           ", namespace: default, ", kQueued, metadata,
                           "}\nspec: {runPolicy: {suspend: true", spec,
                           "}, pytorchReplicaSpecs: {Master: {replicas: 1, ", kTemplate, "}}}\n"));
  };
  make("theirs", "", ", managedBy: kueue.x-k8s.io/multikueue");
  make("held", ", annotations: {swell.dev/held: user}", "");
  cluster_.Run(std::chrono::seconds(10));
  EXPECT_EQ(cluster_.Pods(""), 0);
  EXPECT_EQ(cluster_.Events("Released"), 0);
}

TEST_F(QueuedJobsTest, OthersStaySuspended) {
  Submit("labels: {app: x}");
  cluster_.Run(std::chrono::seconds(10));
  EXPECT_EQ(cluster_.Pods(""), 0);
}

TEST_F(QueuedJobsTest, KueueStartsItsJobsWhereItIs) {
  cluster_.Create(
      "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: "
      "workloads.kueue.x-k8s.io}\nspec:\n  group: kueue.x-k8s.io\n  scope: Namespaced\n  names: "
      "{kind: Workload, plural: workloads}\n  versions: [{name: v1beta1, served: true, storage: "
      "true, schema: {openAPIV3Schema: {type: object}}}]\n");
  Submit(kQueued);
  cluster_.Create(StrCat(
      "apiVersion: swell.dev/v1\nkind: TrainingJob\nmetadata: {name: t, namespace: default, ",
      kQueued, "}\nspec: {suspend: true, roles: {worker: {replicas: 1, ", kTemplate, "}}}\n"));
  cluster_.Run(std::chrono::seconds(10));
  EXPECT_EQ(cluster_.Pods(""), 0);
}

}  // namespace
}  // namespace swell::controllers
