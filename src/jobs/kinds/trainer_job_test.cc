// TrainJob: what its nodes are told, the runtimes it is made with, and when it is over.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "jobs/kinds/job_kinds.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::jobs {
namespace {

using client::resources::kPods;
using manager::kSecond;
using manager::TestCluster;

const client::Resource kTrainJobs{"trainer.kubeflow.org", "v1alpha1", "trainjobs", true};

constexpr std::string_view kRuntime = R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: mine, namespace: default}
spec:
  mlPolicy: {numNodes: 2, torch: {numProcPerNode: 3}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          spec:
            template:
              spec:
                containers:
                - {name: node, image: theirs, command: [train], env: [{name: A, value: theirs}]}
)";

std::string Job(std::string_view spec) {
  return StrCat("{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, ",
                "metadata: {name: job, namespace: default}, spec: {", spec, "}}");
}

class TrainJobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-a", 8);
    cluster_.StartManager();
  }
  bool Run(int pods) {
    return cluster_.Until([&] { return cluster_.Pods("Running") == pods; });
  }
  const json::Value& Container(const std::string& pod) {
    pod_ = cluster_.Get(kPods, "default/" + pod);
    static const json::Value kNone;
    return pod_ ? json::GetArray(*pod_, {"spec", "containers"})[0] : kNone;
  }
  std::string CreatedMessage() {
    const json::SharedValue job = cluster_.Get(kTrainJobs, "default/job");
    const auto created = job ? api::FindCondition(*job, "Created") : std::nullopt;
    return created ? std::string(created->message) : "";
  }
  TestCluster cluster_;
  json::SharedValue pod_;
};

TEST_F(TrainJobTest, NodesMeetAsTorchrunExpects) {
  cluster_.Create(kRuntime);
  cluster_.Create(
      Job("runtimeRef: {name: mine, kind: TrainingRuntime}, trainer: {image: ours, "
          "numNodes: 3, env: [{name: A, value: ours}, {name: B, value: b}]}"));
  ASSERT_TRUE(Run(3));
  EXPECT_EQ(json::GetString(Container("job-node-0-2"), {"image"}), "ours");
  EXPECT_EQ(cluster_.Env("default/job-node-0-2", "A"), "ours");
  EXPECT_EQ(cluster_.Env("default/job-node-0-2", "B"), "b");
  EXPECT_EQ(cluster_.Env("default/job-node-0-2", "PET_NNODES"), "3");
  EXPECT_EQ(cluster_.Env("default/job-node-0-2", "PET_NODE_RANK"), "2");
  EXPECT_EQ(cluster_.Env("default/job-node-0-2", "PET_NPROC_PER_NODE"), "3");
  EXPECT_EQ(cluster_.Env("default/job-node-0-2", "PET_MASTER_ADDR"), "job-node-0-0.job");
  EXPECT_EQ(api::Label(*pod_, "jobset.sigs.k8s.io/replicatedjob-name"), "node");
  for (const char* pod : {"job-node-0-0", "job-node-0-1", "job-node-0-2"}) {
    cluster_.agents->Exit(StrCat("default/", pod), 0);
  }
  EXPECT_TRUE(
      cluster_.Until([&] { return cluster_.Condition(kTrainJobs, "default/job", "Complete"); }));
}

// kRuntime with another policy than torch.
std::string RuntimeOf(std::string_view policy) {
  std::string runtime(kRuntime);
  const std::string_view torch = "torch: {numProcPerNode: 3}";
  return runtime.replace(runtime.find(torch), torch.size(), policy);
}

TEST_F(TrainJobTest, NodesMeetAsJaxExpects) {
  cluster_.Create(RuntimeOf("jax: {}"));
  cluster_.Create(Job("runtimeRef: {name: mine, kind: TrainingRuntime}"));
  ASSERT_TRUE(Run(2));
  EXPECT_EQ(cluster_.Env("default/job-node-0-1", "JAX_COORDINATOR_ADDRESS"),
            "job-node-0-0.job:29400");
  EXPECT_EQ(cluster_.Env("default/job-node-0-1", "JAX_NUM_PROCESSES"), "2");
  EXPECT_EQ(cluster_.Env("default/job-node-0-1", "JAX_PROCESS_ID"), "1");
  EXPECT_EQ(cluster_.Env("default/job-node-0-1", "JOB_COMPLETION_INDEX"), "1");
  EXPECT_EQ(cluster_.Env("default/job-node-0-1", "PET_NNODES"), "not set");
}

TEST_F(TrainJobTest, NodesMeetAsXgboostExpectsWithAWorkerForEachGpu) {
  cluster_.Create(RuntimeOf("xgboost: {}"));
  cluster_.Create(
      Job("runtimeRef: {name: mine, kind: TrainingRuntime}, "
          "trainer: {resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}"));
  ASSERT_TRUE(Run(2));
  EXPECT_EQ(cluster_.Env("default/job-node-0-1", "DMLC_TRACKER_URI"), "job-node-0-0.job");
  EXPECT_EQ(cluster_.Env("default/job-node-0-1", "DMLC_TRACKER_PORT"), "29400");
  EXPECT_EQ(cluster_.Env("default/job-node-0-1", "DMLC_NUM_WORKER"), "8");
  EXPECT_EQ(cluster_.Env("default/job-node-0-1", "DMLC_TASK_ID"), "1");
}

TEST_F(TrainJobTest, APolicyThatIsNotKnownIsRefused) {
  cluster_.Create(RuntimeOf("flux: {numProcPerNode: 2}"));
  cluster_.Create(Job("runtimeRef: {name: mine, kind: TrainingRuntime}"));
  EXPECT_TRUE(
      cluster_.Until([&] { return cluster_.Condition(kTrainJobs, "default/job", "Failed"); }));
  EXPECT_EQ(cluster_.Pods(""), 0);
}

TEST_F(TrainJobTest, WaitsForItsRuntime) {
  cluster_.Create(Job("runtimeRef: {name: mine, kind: TrainingRuntime}"));
  cluster_.Run(kSecond * 20);
  EXPECT_EQ(cluster_.Pods(""), 0);
  EXPECT_EQ(cluster_.EventMessage("ReferenceNotFound"),
            "spec.runtimeRef: the TrainingRuntime \"mine\" does not exist; the job waits for it");
  EXPECT_EQ(
      CreatedMessage(),
      "TrainJob job is created. spec.runtimeRef: the TrainingRuntime \"mine\" does not exist; "
      "the job waits for it.");
  cluster_.Create(kRuntime);
  EXPECT_TRUE(Run(2));
  EXPECT_EQ(CreatedMessage(), "TrainJob job is created.");
}

TEST_F(TrainJobTest, KubeflowsOwnRuntimeIsThere) {
  cluster_.Create(
      Job("runtimeRef: {name: torch-distributed}, trainer: {command: [x], "
          "resourcesPerNode: {requests: {cpu: 2}}}"));
  ASSERT_TRUE(Run(1));
  EXPECT_EQ(cluster_.Env("default/job-node-0-0", "PET_NPROC_PER_NODE"), "2");
}

TEST_F(TrainJobTest, KubeflowsOwnRuntimeMayBeEdited) {
  const client::Resource runtimes{"trainer.kubeflow.org", "v1alpha1", "clustertrainingruntimes",
                                  false};
  ASSERT_TRUE(
      cluster_.Patch(runtimes, "torch-distributed", "{spec: {mlPolicy: {numNodes: 2}}}").ok());
  cluster_.Create(Job("runtimeRef: {name: torch-distributed}, trainer: {command: [x]}"));
  ASSERT_TRUE(Run(2));
  ASSERT_TRUE(cluster_.Delete(runtimes, "torch-distributed").ok());
  cluster_.Run(kSecond);
  cluster_.Create(
      "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: usual, "
      "namespace: default}, spec: {runtimeRef: {name: torch-distributed}}}");
  EXPECT_TRUE(Run(3)) << "as on a cluster without it";
}

TEST_F(TrainJobTest, ChangesItsRuntimesPods) {
  cluster_.Create(kRuntime);
  ASSERT_TRUE(
      cluster_.Patch(client::resources::kNodes, "node-a", "{metadata: {labels: {gpu: new}}}").ok());
  cluster_.Create(Job(
      "runtimeRef: {name: mine, kind: TrainingRuntime}, trainer: {image: ours}, "
      "podTemplateOverrides: [{targetJobs: [{name: node}], metadata: {labels: {team: a}}, spec: "
      "{tolerations: [{key: gpu, operator: Exists}], volumes: [{name: data, emptyDir: {}}], "
      "containers: [{name: node, volumeMounts: [{name: data, mountPath: /data}]}]}}], "
      "runtimePatches: [{manager: me, trainingRuntimeSpec: {template: {spec: {replicatedJobs: "
      "[{name: node, template: {spec: {template: {spec: {nodeSelector: {gpu: new}}}}}}]}}}}]"));
  ASSERT_TRUE(Run(2));
  const json::Value container = Container("job-node-0-1");
  EXPECT_EQ(json::GetString(container, {"image"}), "ours");
  EXPECT_EQ(cluster_.Env("default/job-node-0-1", "A"), "theirs")
      << "what no patch names stays the runtime's";
  EXPECT_EQ(json::GetString(json::GetArray(container, {"volumeMounts"})[0], {"mountPath"}),
            "/data");
  EXPECT_EQ(api::Label(*pod_, "team"), "a");
  EXPECT_EQ(json::GetString(*pod_, {"spec", "nodeSelector", "gpu"}), "new");
  EXPECT_EQ(json::GetString(json::GetArray(*pod_, {"spec", "tolerations"})[0], {"key"}), "gpu");
}

TEST_F(TrainJobTest, ChangesItsRuntimesPodsInTheWordsOfVersion20) {
  cluster_.Create(kRuntime);
  cluster_.Create(
      Job("runtimeRef: {name: mine, kind: TrainingRuntime}, podSpecOverrides: [{targetJobs: "
          "[{name: node}], tolerations: [{key: gpu, operator: Exists}], volumes: [{name: data, "
          "emptyDir: {}}], containers: [{name: node, volumeMounts: [{name: data, mountPath: "
          "/data}]}]}]"));
  ASSERT_TRUE(Run(2));
  const json::Value container = Container("job-node-0-1");
  EXPECT_EQ(cluster_.Env("default/job-node-0-1", "A"), "theirs")
      << "what no patch names stays the runtime's";
  EXPECT_EQ(json::GetString(json::GetArray(container, {"volumeMounts"})[0], {"mountPath"}),
            "/data");
  EXPECT_EQ(json::GetString(json::GetArray(*pod_, {"spec", "tolerations"})[0], {"key"}), "gpu");
}

TEST_F(TrainJobTest, AContainerThatTheRuntimeHasNotIsTold) {
  cluster_.Create(kRuntime);
  cluster_.Create(
      Job("runtimeRef: {name: mine, kind: TrainingRuntime}, podTemplateOverrides: [{targetJobs: "
          "[{name: node}], spec: {containers: [{name: side, env: [{name: A, value: a}]}]}}]"));
  EXPECT_TRUE(
      cluster_.Until([&] { return cluster_.Condition(kTrainJobs, "default/job", "Failed"); }));
  EXPECT_EQ(cluster_.Pods(""), 0);
}

TEST_F(TrainJobTest, IsSuspendedAndResumed) {
  cluster_.Create(Job("suspend: true, runtimeRef: {name: torch-distributed}"));
  ASSERT_TRUE(
      cluster_.Until([&] { return cluster_.Condition(kTrainJobs, "default/job", "Suspended"); }));
  EXPECT_EQ(cluster_.Pods(""), 0);
  ASSERT_TRUE(cluster_.Patch(kTrainJobs, "default/job", "{spec: {suspend: false}}").ok());
  EXPECT_TRUE(Run(1));
}

// The runtime with a restart policy, a Job's backoffLimit and a JobSet's maxRestarts.
std::string Retrying(std::string_view policy, int backoff, int restarts) {
  json::Value runtime = json::ParseYaml(kRuntime)->front();
  json::Value& set = *json::FindMutable(runtime, {"spec", "template", "spec"});
  json::Set(set, {"failurePolicy", "maxRestarts"}, restarts);
  json::Value& node = json::FindMutable(set, {"replicatedJobs"})->get_array().front();
  json::Set(node, {"template", "spec", "backoffLimit"}, backoff);
  json::Set(node, {"template", "spec", "template", "spec", "restartPolicy"}, policy);
  return json::Print(runtime);
}

class RetriesTest : public TrainJobTest {
 protected:
  void Start(int backoff, int restarts) {
    cluster_.Create(Retrying("Never", backoff, restarts));
    cluster_.Create(Job("runtimeRef: {name: mine, kind: TrainingRuntime}"));
    ASSERT_TRUE(Run(2));
  }
  std::string Uid(const std::string& pod) {
    const json::SharedValue found = cluster_.Get(kPods, "default/" + pod);
    return found ? std::string(api::Uid(*found)) : "";
  }
  // The second node fails; true once both run again, in a pod of its own anew.
  bool ComesBack() {
    const std::string before = Uid("job-node-0-1");
    cluster_.agents->Exit("default/job-node-0-1", 3);
    return cluster_.Until(
        [&] { return Uid("job-node-0-1") != before && cluster_.Pods("Running") == 2; });
  }
  bool Fails() {
    cluster_.agents->Exit("default/job-node-0-1", 3);
    return cluster_.Until([&] { return cluster_.Condition(kTrainJobs, "default/job", "Failed"); });
  }
};

TEST_F(RetriesTest, AFailedPodIsMadeAnewUpToTheBackoffLimit) {
  Start(1, 0);
  const std::string first = Uid("job-node-0-0");
  EXPECT_TRUE(ComesBack());
  EXPECT_EQ(Uid("job-node-0-0"), first) << "the others continue";
  EXPECT_TRUE(Fails());
}

TEST_F(RetriesTest, WithoutABackoffLimitTheFirstFailureEndsTheJob) {
  Start(0, 0);
  EXPECT_TRUE(Fails());
}

TEST_F(RetriesTest, AJobSetsRestartMakesAllPodsAnew) {
  Start(0, 1);
  const std::string first = Uid("job-node-0-0");
  EXPECT_TRUE(ComesBack());
  EXPECT_NE(Uid("job-node-0-0"), first);
  EXPECT_TRUE(Fails());
}

std::string Override(std::string_view pod) {
  return StrCat(
      "runtimeRef: {name: x}, podTemplateOverrides: [{targetJobs: [{name: node}], spec: {", pod,
      "}}]");
}

TEST(TrainJobRules, WhatCannotBeFollowedIsRefusedByItsField) {
  struct Case {
    std::string spec, message;
  };
  const std::vector<Case> cases = {
      {"trainer: {}", "spec.runtimeRef.name: Required value"},
      {"runtimeRef: {name: x, kind: Pod}", "spec.runtimeRef.kind: Invalid value: \"Pod\""},
      {"runtimeRef: {name: x}, initializer: {model: {storageUri: a}}",
       "spec.initializer: Forbidden"},
      {"runtimeRef: {name: x}, podSpecOverrides: [{}]",
       "spec.podSpecOverrides[0].targetJobs: Required value"},
      {"runtimeRef: {name: x}, podSpecOverrides: [{targetJobs: [{name: node}], hostPID: true}]",
       "spec.podSpecOverrides[0].hostPID: Forbidden: write a runtime of your own"},
      {"runtimeRef: {name: x}, podSpecOverrides: [{targetJobs: [{name: node}], containers: [{name: "
       "node, env: [{name: A}]}]}]",
       "spec.podSpecOverrides[0].containers[0].env: Forbidden: the trainer's variables are in "
       "spec.trainer.env"},
      {"runtimeRef: {name: x}, podTemplateOverrides: [{}]",
       "spec.podTemplateOverrides[0].targetJobs: Required value"},
      {"runtimeRef: {name: x}, podTemplateOverrides: [{targetJobs: [{name: launcher}]}]",
       "spec.podTemplateOverrides[0].targetJobs[0].name: Invalid value: \"launcher\""},
      {Override("hostNetwork: true"),
       "spec.podTemplateOverrides[0].spec.hostNetwork: Forbidden: write a runtime of your own"},
      {Override("containers: [{name: node, image: x}]"),
       "spec.podTemplateOverrides[0].spec.containers[0].image: Forbidden"},
      {Override("containers: [{name: node, env: [{name: A}]}]"),
       "spec.podTemplateOverrides[0].spec.containers[0].env: Forbidden: the trainer's variables "
       "are in spec.trainer.env"},
      {Override("volumes: [{name: a, emptydir: {}}]"),
       "spec.podTemplateOverrides[0].spec.volumes[0].emptydir: Forbidden: a pod has no such field"},
      {Override("nodeSelector: {$patch: replace, zone: a}"),
       "spec.podTemplateOverrides[0].spec.nodeSelector.$patch: Forbidden: entries are added to the "
       "runtime's, which stay"},
      {Override("tolerations: [{key: 3}]"),
       "spec.podTemplateOverrides[0].spec.tolerations[0].key: "},
      {"runtimeRef: {name: x}, runtimePatches: [{manager: m, trainingRuntimeSpec: {template: "
       "{spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {nodeName: "
       "n}}}}}]}}}}]",
       "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec."
       "template.spec.nodeName: Forbidden"},
      {"runtimeRef: {name: x}, trainer: {numNodes: 0}", "spec.trainer.numNodes: Invalid value: 0"},
  };
  for (const JobKindEntry& entry : MakeJobKinds({})) {
    if (entry.kind->resource().plural != "trainjobs") continue;
    for (const Case& one : cases) {
      const auto documents = json::ParseYaml(Job(one.spec));
      ASSERT_TRUE(documents.ok()) << one.spec;
      const auto spec = entry.kind->Parse(documents->front());
      ASSERT_FALSE(spec.ok()) << one.spec;
      EXPECT_TRUE(spec.status().message().starts_with(one.message)) << spec.status().message();
    }
  }
}

}  // namespace
}  // namespace swell::jobs
