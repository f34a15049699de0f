// Pods of other operators in a whole cluster: who they belong to is found, and they are placed as
// gangs.
#include "scheduling/pod_grouper.h"

#include <functional>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::scheduling {
namespace {

using client::resources::kPodGroups;
using client::resources::kPods;
using manager::PyTorchYaml;
using manager::TestCluster;

const client::Resource kRayClusters{"ray.io", "v1", "rayclusters", true};
const client::Resource kThings{"example.com", "v1", "things", true};

// A server that answers nobody's question about an owner before it is told to.
class HeldOwners final : public api::RestHandler {
 public:
  explicit HeldOwners(std::shared_ptr<api::RestHandler> server) : server_(std::move(server)) {}
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    if (request.path.find("/jobs/") == std::string::npos) {
      return server_->Handle(std::move(request), std::move(sink));
    }
    held.push_back([this, request = std::move(request), sink = std::move(sink)] {
      calls_.push_back(server_->Handle(request, sink));
    });
    return nullptr;
  }
  std::vector<std::function<void()>> held;

 private:
  std::shared_ptr<api::RestHandler> server_;
  std::vector<std::unique_ptr<api::RestCall>> calls_;
};

class PodGrouperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-0", 4);
    Define("ray.io", "v1", "RayCluster", "rayclusters");
    Define("example.com", "v1", "Thing", "things");
    cluster_.Create("{apiVersion: v1, kind: Namespace, metadata: {name: swell-system}}");
  }
  void Start() { cluster_.StartManager({.grouping_namespace = "swell-system"}); }
  void Define(std::string_view group,
              std::string_view version,
              std::string_view kind,
              std::string_view plural) {
    cluster_.Create(StrCat(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: ",
        plural, ".", group, "}\nspec:\n  group: ", group, "\n  scope: Namespaced\n  names: {kind: ",
        kind, ", plural: ", plural, "}\n  versions: [{name: ", version,
        ", served: true, storage: true, schema: {openAPIV3Schema: {type: object, "
        "x-kubernetes-preserve-unknown-fields: true}}}]\n"));
    cluster_.Run(std::chrono::seconds(1));
  }
  // A pod with a GPU, as the operator of that owner makes it.
  void MakePod(const std::string& name,
               const client::Resource& resource,
               const std::string& owner,
               std::string_view labels) {
    json::SharedValue object = cluster_.Get(resource, StrCat("default/", owner));
    ASSERT_TRUE(object) << owner;
    cluster_.Create(StrCat(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: ", name,
        "\n  namespace: default\n  labels: {", labels, "}\n  ownerReferences: [{apiVersion: ",
        resource.ApiVersion(), ", kind: ", json::GetString(*object, {"kind"}), ", name: ", owner,
        ", uid: ", api::Uid(*object),
        ", controller: true}]\nspec: {schedulerName: swell, containers: [{name: main, image: i, "
        "resources: {limits: {nvidia.com/gpu: 1}}}]}\n"));
  }
  void MakeRay(int workers) {
    cluster_.Create(
        StrCat("apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: ray, namespace: "
               "default}\nspec: {workerGroupSpecs: [{groupName: w, replicas: ",
               workers, "}]}\n"));
  }
  void MakeWorker(int index) {
    MakePod(StrCat("ray-w-", index), kRayClusters, "ray",
            "ray.io/node-type: worker, ray.io/group: w");
  }

  // Takes the whole node, which has four.
  void MakeUrgent(int gpus = 4) {
    cluster_.Create(
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: "
        "1000}");
    cluster_.Create(
        StrCat("apiVersion: v1\nkind: Pod\nmetadata: {name: urgent, namespace: default}\nspec: "
               "{schedulerName: swell, priorityClassName: high, containers: [{name: main, image: "
               "i, resources: {limits: {nvidia.com/gpu: ",
               gpus, "}}}]}\n"));
  }

  TestCluster cluster_;
};

TEST_F(PodGrouperTest, AGangWaitsForAllOfItsPods) {
  Start();
  MakeRay(3);
  MakePod("ray-head", kRayClusters, "ray", "ray.io/node-type: head");
  MakeWorker(0);
  MakeWorker(1);
  cluster_.Run(std::chrono::seconds(20));
  EXPECT_EQ(cluster_.Pods("Running"), 0) << "three workers are its least";
  json::SharedValue group = cluster_.Get(kPodGroups, "default/raycluster.ray");
  ASSERT_TRUE(group);
  EXPECT_EQ(json::Print(*json::Find(*group, {"spec", "podSets"})),
            R"([{"name":"head","minMember":1},{"name":"w","minMember":3}])");
  EXPECT_EQ(api::Owners(*group).at(0).name, "ray");
  MakeWorker(2);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 4; }));
  json::SharedValue pod = cluster_.Get(kPods, "default/ray-w-2");
  EXPECT_EQ(api::Label(*pod, api::keys::kPodGroup), "raycluster.ray");
  EXPECT_EQ(api::Label(*pod, api::keys::kPodSet), "w");
  EXPECT_EQ(api::Annotation(*pod, kGroupedBy), "ray-cluster");
  // Its operator makes it smaller: what is left is enough, and is not stopped.
  ASSERT_TRUE(cluster_
                  .Patch(kRayClusters, "default/ray",
                         "spec: {workerGroupSpecs: [{groupName: w, replicas: 1}]}")
                  .ok());
  ASSERT_TRUE(cluster_.Delete(kPods, "default/ray-w-1").ok());
  ASSERT_TRUE(cluster_.Delete(kPods, "default/ray-w-2").ok());
  cluster_.Run(std::chrono::seconds(180));
  EXPECT_EQ(cluster_.Pods("Running"), 2);
  group = cluster_.Get(kPodGroups, "default/raycluster.ray");
  EXPECT_EQ(json::GetInt(json::GetArray(*group, {"spec", "podSets"}).at(1), {"minMember"}), 1);
  for (const char* name : {"default/ray-head", "default/ray-w-0"}) {
    ASSERT_TRUE(cluster_.Delete(kPods, name).ok());
  }
  EXPECT_TRUE(cluster_.Until(
      [&] { return cluster_.Get(kPodGroups, "default/raycluster.ray") == nullptr; }));
}

// As JobSet makes its Jobs anew after a preemption.
TEST_F(PodGrouperTest, AnOwnerThatIsMadeAnewUnderItsNameIsNotTheOneBefore) {
  Start();
  MakeRay(1);
  MakePod("head-before", kRayClusters, "ray", "ray.io/node-type: head");
  cluster_.Run(std::chrono::milliseconds(500));
  ASSERT_TRUE(cluster_.Delete(kPods, "default/head-before").ok());
  ASSERT_TRUE(cluster_.Delete(kRayClusters, "default/ray").ok());
  MakeRay(1);
  MakePod("head", kRayClusters, "ray", "ray.io/node-type: head");
  cluster_.Run(std::chrono::seconds(5));
  EXPECT_EQ(api::Label(*cluster_.Get(kPods, "default/head"), api::keys::kPodGroup),
            "raycluster.ray");
  EXPECT_EQ(cluster_.Pods("Running"), 0) << "its worker is missing";
}

// As of a replica that stood by with warm informers, and leads now.
TEST_F(PodGrouperTest, PodsThatWereKnownBeforeItAreGrouped) {
  MakeRay(1);
  MakePod("ray-head", kRayClusters, "ray", "ray.io/node-type: head");
  const api::UserInfo admin{"system:admin", "", {"system:masters"}};
  Random random(1);
  controllers::Informers informers(cluster_.sim, cluster_.server, admin, 1);
  for (const client::Resource& resource :
       {kPods, kPodGroups, client::resources::kProjects, client::resources::kGangs,
        client::resources::kCompositeGangs}) {
    informers.Of(resource);
  }
  informers.Start();
  ASSERT_TRUE(cluster_.Until([&] { return informers.synced(); }));
  const PodGrouper grouper(
      controllers::Context{cluster_.sim, cluster_.sim, random, cluster_.server, admin, informers},
      {});
  EXPECT_TRUE(cluster_.Until([&] {
    return api::Label(*cluster_.Get(kPods, "default/ray-head"), api::keys::kPodGroup) ==
           "raycluster.ray";
  }));
}

// The simulation's seed 43128: a pod that was bound meanwhile was told as it had been, and its
// device given away again.
TEST_F(PodGrouperTest, WhatIsInNoGroupIsToldAsItIsAndNotAsItWas) {
  cluster_.Create(
      "{apiVersion: batch/v1, kind: Job, metadata: {name: job, namespace: default}, spec: "
      "{template: "
      "{spec: {restartPolicy: Never, containers: [{name: main, image: i}]}}}}");
  MakePod("bound", client::resources::kJobs, "job", "");
  MakePod("gone", client::resources::kJobs, "job", "");
  const api::UserInfo admin{"system:admin", "", {"system:masters"}};
  Random random(1);
  const auto server = std::make_shared<HeldOwners>(cluster_.server);
  controllers::Informers informers(cluster_.sim, server, admin, 1);
  std::vector<std::string> told;
  const PodGrouper grouper(
      controllers::Context{cluster_.sim, cluster_.sim, random, server, admin, informers},
      {.release = [&told](const json::Value& pod) {
        told.push_back(StrCat(api::Name(pod), " on ", json::GetString(pod, {"spec", "nodeName"})));
      }});
  informers.Start();
  ASSERT_TRUE(cluster_.Until([&] { return !server->held.empty(); }));
  const json::Value binding =
      json::Object{{"metadata", json::Object{{"name", "bound"}}},
                   {"target", json::Object{{"kind", "Node"}, {"name", "node-0"}}}};
  cluster_.client->CreateSubresource(kPods, "default", "bound", "binding", binding,
                                     [](const Result<json::SharedValue>& bound) {
                                       EXPECT_TRUE(bound.ok()) << bound.status().ToString();
                                     });
  ASSERT_TRUE(cluster_.Delete(kPods, "default/gone", {.grace_seconds = 0}).ok());
  cluster_.Run(std::chrono::seconds(1));
  for (const auto& answer : std::exchange(server->held, {})) answer();
  cluster_.Run(std::chrono::seconds(1));
  EXPECT_EQ(told, std::vector<std::string>{"bound on node-0"});
}

TEST_F(PodGrouperTest, RulesOfAConfigMapHoldWithoutARestart) {
  Start();
  cluster_.Create(
      "{apiVersion: example.com/v1, kind: Thing, metadata: {name: x, namespace: "
      "default}, spec: {size: 2}}");
  MakePod("x-0", kThings, "x", "a: b");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.PodPhase("default/x-0") == "Running"; }))
      << "no rule knows its owner";
  cluster_.Create(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: swell-grouping, namespace: swell-system}\n"
      "data:\n  rules.yaml: |\n    rules:\n"
      "    - {name: things, owner: {group: example.com, kind: Thing}, minMember: spec.size}\n"
      "    - {name: broken, owner: {group: example.com, kind: Thing}, minMember: -2}\n");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Events("InvalidGroupingRule") == 1; }));
  EXPECT_EQ(cluster_.EventMessage("InvalidGroupingRule"),
            "rule \"broken\": minMember: Invalid value: -2: must be between 0 and 1000000");
  cluster_.Create(
      "{apiVersion: example.com/v1, kind: Thing, metadata: {name: z, namespace: "
      "default}, spec: {size: 2}}");
  MakePod("z-0", kThings, "z", "a: b");
  cluster_.Run(std::chrono::seconds(10));
  EXPECT_EQ(cluster_.PodPhase("default/z-0"), "Pending");
  MakePod("z-1", kThings, "z", "a: b");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 3; }));
  EXPECT_EQ(cluster_.PodPhase("default/x-0"), "Running");
  // Nobody waits for members that run already.
  MakePod("x-1", kThings, "x", "a: b");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 4; }));
  EXPECT_EQ(api::Label(*cluster_.Get(kPods, "default/x-0"), api::keys::kPodGroup), "thing.x");
}

TEST_F(PodGrouperTest, APreemptedGroupIsKnownWhileItsOperatorMakesItsPodsAnew) {
  Start();
  const std::string key = "default/raycluster.ray";
  auto make = [this] {
    MakePod("ray-head", kRayClusters, "ray", "ray.io/node-type: head");
    MakeWorker(0);
  };
  auto phase = [&] {
    const json::SharedValue group = cluster_.Get(kPodGroups, key);
    return std::string(json::GetString(*group, {"status", "phase"}));
  };
  MakeRay(1);
  make();
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 2; }));
  MakeUrgent();
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.PodPhase("default/urgent") == "Running"; }));
  EXPECT_EQ(cluster_.Pods(""), 1);
  cluster_.Run(std::chrono::minutes(2));
  ASSERT_TRUE(cluster_.Get(kPodGroups, key));
  EXPECT_EQ(phase(), "Preempted");
  make();
  cluster_.Run(std::chrono::seconds(5));
  EXPECT_EQ(phase(), "Preempted");
  ASSERT_TRUE(cluster_.Delete(kPods, "default/urgent").ok());
  ASSERT_TRUE(cluster_.Until([&] { return phase() == "Running"; }));
  EXPECT_EQ(cluster_.Int(kPodGroups, key, {"status", "preemptions"}), 1);
}

TEST_F(PodGrouperTest, AClusterThatScalesGivesWorkersAwayAndGoesOn) {
  Start();
  cluster_.Create(
      "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: ray, namespace: default}\nspec: "
      "{enableInTreeAutoscaling: true, workerGroupSpecs: [{groupName: w, replicas: 3, minReplicas: "
      "1, maxReplicas: 3}]}\n");
  MakePod("ray-head", kRayClusters, "ray", "ray.io/node-type: head");
  for (int i = 0; i < 3; ++i) MakeWorker(i);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 4; }));
  MakeUrgent(2);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.PodPhase("default/urgent") == "Running"; }));
  EXPECT_EQ(cluster_.Pods("Running"), 3);
  EXPECT_EQ(cluster_.PodPhase("default/ray-head"), "Running");
  EXPECT_EQ(
      json::GetString(*cluster_.Get(kPodGroups, "default/raycluster.ray"), {"status", "phase"}),
      "Running");
}

// As Kubeflow's TrainJob makes them: training starts when the data are there.
TEST_F(PodGrouperTest, JobsThatWaitForOthersStartOneAfterTheOther) {
  Start();
  Define("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets");
  cluster_.Create(
      "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: t, namespace: "
      "default}\nspec: {replicatedJobs: [{name: data}, {name: node, dependsOn: [{name: data, "
      "status: Complete}], template: {spec: {parallelism: 2}}}]}\n");
  const client::Resource sets{"jobset.x-k8s.io", "v1alpha2", "jobsets", true};
  MakePod("t-data-0", sets, "t", "jobset.sigs.k8s.io/replicatedjob-name: data");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.PodPhase("default/t-data-0") == "Running"; }));
  MakePod("t-node-0", sets, "t", "jobset.sigs.k8s.io/replicatedjob-name: node");
  cluster_.Run(std::chrono::seconds(10));
  EXPECT_EQ(cluster_.PodPhase("default/t-node-0"), "Pending") << "its job is a gang of two";
  MakePod("t-node-1", sets, "t", "jobset.sigs.k8s.io/replicatedjob-name: node");
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 3; }));
}

TEST_F(PodGrouperTest, WhatOthersCallAQueueIsChargedToTheProjectOfThatName) {
  Start();
  cluster_.Create("{apiVersion: swell.dev/v1, kind: Project, metadata: {name: team}, spec: {}}");
  MakeRay(0);
  MakePod("ray-head", kRayClusters, "ray", "ray.io/node-type: head, kai.scheduler/queue: team");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  EXPECT_EQ(
      json::GetString(*cluster_.Get(kPodGroups, "default/raycluster.ray"), {"spec", "project"}),
      "team");
  EXPECT_TRUE(cluster_.Until([&] {
    return cluster_.Int(client::resources::kProjects, "team",
                        {"status", "usage", "gpu", "allocated"}) == 1;
  })) << "it is charged";
}

TEST_F(PodGrouperTest, APreemptedGroupWhosePodsNobodyMakesGoes) {
  Start();
  MakeRay(1);
  MakePod("ray-head", kRayClusters, "ray", "ray.io/node-type: head");
  MakeWorker(0);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 2; }));
  MakeUrgent();
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 1; }));
  cluster_.Run(std::chrono::minutes(9));
  EXPECT_TRUE(cluster_.Get(kPodGroups, "default/raycluster.ray"));
  cluster_.Run(std::chrono::minutes(2));
  EXPECT_FALSE(cluster_.Get(kPodGroups, "default/raycluster.ray"));
}

TEST_F(PodGrouperTest, TheTopmostOwnerWithARuleCounts) {
  Start();
  Define("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets");
  cluster_.Create(
      "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: s, namespace: "
      "default}\n"
      "spec: {replicatedJobs: [{name: a, template: {spec: {parallelism: 1}}}, {name: b, replicas: "
      "1, template: {spec: {parallelism: 2}}}]}\n");
  const client::Resource sets{"jobset.x-k8s.io", "v1alpha2", "jobsets", true};
  json::SharedValue set = cluster_.Get(sets, "default/s");
  ASSERT_TRUE(set);
  auto job = [&](std::string_view name, int pods) {
    cluster_.Create(StrCat(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: s-", name,
        "-0, namespace: default, "
        "ownerReferences: [{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: s, uid: ",
        api::Uid(*set), ", controller: true}]}\nspec: {parallelism: ", pods, ", completions: ",
        pods, ", template: {metadata: {labels: {jobset.sigs.k8s.io/replicatedjob-name: ", name,
        "}}, spec: {schedulerName: swell, restartPolicy: Never, containers: [{name: main, image: "
        "i, "
        "resources: {limits: {nvidia.com/gpu: 1}}}]}}}\n"));
  };
  job("a", 1);
  cluster_.Run(std::chrono::seconds(10));
  EXPECT_EQ(cluster_.Pods("Running"), 0);
  job("b", 2);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 3; }));
  EXPECT_TRUE(cluster_.Get(kPodGroups, "default/jobset.s"));
  for (const json::SharedValue& pod : cluster_.List(kPods)) {
    EXPECT_EQ(api::Annotation(*pod, api::keys::kGroupOwner), api::Uid(*set)) << "of all its Jobs";
  }
  // A Job of nobody's is not a gang.
  cluster_.Create(
      "apiVersion: batch/v1\nkind: Job\nmetadata: {name: alone, namespace: default}\nspec: "
      "{template: "
      "{spec: {schedulerName: swell, restartPolicy: Never, containers: [{name: main, image: "
      "i}]}}}\n");
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 4; }));
  EXPECT_EQ(cluster_.List(kPodGroups).size(), 1u);
}

TEST_F(PodGrouperTest, WhoNamesAnObjectThatIsNotThereWaitsForIt) {
  Start();
  Define("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups");
  cluster_.Create(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: v, namespace: default, annotations: "
      "{scheduling.k8s.io/group-name: g}}\nspec: {schedulerName: swell, containers: [{name: main, "
      "image: i}]}\n");
  cluster_.Run(std::chrono::seconds(5));
  EXPECT_EQ(cluster_.PodPhase("default/v"), "Pending");
  const json::SharedValue pod = cluster_.Get(kPods, "default/v");
  const std::optional<api::Condition> told = api::FindCondition(*pod, "PodScheduled");
  ASSERT_TRUE(told);
  EXPECT_EQ(told->reason, "GroupMissing");
  EXPECT_EQ(
      told->message,
      "waits for its PodGroup.scheduling.volcano.sh \"g\", which is not there; it is named by "
      "the pod's annotation scheduling.k8s.io/group-name");
  cluster_.Create(
      "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g, namespace: "
      "default}, spec: {minMember: 1}}");
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.PodPhase("default/v") == "Running"; }));
  EXPECT_TRUE(cluster_.Get(kPodGroups, "default/podgroup.g"));
}

TEST_F(PodGrouperTest, KubeflowsOperatorMakesItsPodsWhereItIs) {
  cluster_.StartManager({.others_jobs = {"pytorchjobs.kubeflow.org"}});
  cluster_.Create(PyTorchYaml{.workers = 1, .gpus = 1}.Text());
  cluster_.Run(std::chrono::seconds(5));
  EXPECT_EQ(cluster_.Pods(""), 0) << "they are not made here";
  const client::Resource& jobs = client::resources::kPyTorchJobs;
  MakePod("job-master-0", jobs, "job", "training.kubeflow.org/replica-type: master");
  cluster_.Run(std::chrono::seconds(5));
  EXPECT_EQ(cluster_.Pods("Running"), 0);
  MakePod("job-worker-0", jobs, "job", "training.kubeflow.org/replica-type: worker");
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 2; }));
}

TEST_F(PodGrouperTest, ServersOfAProjectAreInference) {
  Start();
  cluster_.Create(
      "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: team}, spec: "
      "{namespace: team}}");
  auto deploy = [&](std::string_view ns) {
    cluster_.Create(StrCat(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: ", ns,
        "}\nspec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: "
        "{app: web}}, spec: {schedulerName: swell, containers: [{name: main, image: i, resources: "
        "{limits: {nvidia.com/gpu: 1}}}]}}}\n"));
  };
  ASSERT_TRUE(cluster_.Until(
      [&] { return cluster_.Get(client::resources::kNamespaces, "team") != nullptr; }));
  deploy("team");
  deploy("default");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 2; }));
  const std::vector<json::SharedValue> groups = cluster_.List(kPodGroups);
  ASSERT_EQ(groups.size(), 1u) << "without projects priorities are plain";
  EXPECT_EQ(json::GetString(*groups[0], {"spec", "priorityClassName"}), "inference");
  EXPECT_EQ(api::Namespace(*groups[0]), "team");
}

}  // namespace
}  // namespace swell::scheduling
