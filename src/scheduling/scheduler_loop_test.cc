// What a bound pod is told, and whose work it is.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "manager/testing/one_node_fixture.h"

namespace swell::scheduling {
namespace {

using client::resources::kPods;
using manager::kSecond;
using manager::OneNodeTest;
using manager::TestCluster;
using SchedulerLoopTest = OneNodeTest;

TEST_F(SchedulerLoopTest, BoundPodsSayWhichGpus) {
  Pod("a", "", 2);
  ASSERT_TRUE(UntilRunning("a"));
  json::SharedValue pod = cluster_.Get(kPods, "default/a");
  EXPECT_EQ(api::Annotation(*pod, api::keys::kGpuDevices), "0,1");
  EXPECT_TRUE(api::ConditionIsTrue(*pod, "PodScheduled"));
  EXPECT_EQ(cluster_.Events("Scheduled", "a"), 1);
}

// An amount of memory is a part of a GPU that depends on the node.
TEST_F(SchedulerLoopTest, BoundPodsSayHowMuchOfAGpuTheirMemoryIs) {
  ASSERT_TRUE(cluster_
                  .Patch(client::resources::kNodes, "node-a",
                         R"({"metadata":{"labels":{"nvidia.com/gpu.memory":"16384"}}})")
                  .ok());
  Pod("a", "", 0, "swell.dev/gpu-memory: '4096', swell.dev/gpu-fraction-devices: '2'");
  Pod("b", "", 0, "swell.dev/gpu-fraction: '0.5'");
  ASSERT_TRUE(UntilRunning("a"));
  ASSERT_TRUE(UntilRunning("b"));
  EXPECT_EQ(api::Annotation(*cluster_.Get(kPods, "default/a"), api::keys::kGpuShare), "0.5");
  EXPECT_EQ(api::Annotation(*cluster_.Get(kPods, "default/b"), api::keys::kGpuShare), "");
}

// More than reach the server in one turn, all decided in one cycle.
TEST(Bindings, ManyAreMadeTogether) {
  constexpr int kPodCount = 600;
  TestCluster cluster;
  for (int i = 0; i < 8; ++i) cluster.AddNode(StrCat("node-", i), 0);
  for (int i = 0; i < kPodCount; ++i) {
    cluster.Create(StrCat("{apiVersion: v1, kind: Pod, metadata: {name: p-", i,
                          ", namespace: default}, spec: {containers: [{name: c, image: x}]}}"));
  }
  cluster.StartManager();
  ASSERT_TRUE(cluster.Until([&] {
    const std::vector<json::SharedValue> pods = cluster.List(kPods);
    return std::all_of(pods.begin(), pods.end(), [](const json::SharedValue& pod) {
      return api::ConditionIsTrue(*pod, "PodScheduled");
    });
  }));
  std::map<std::string, int> on;
  for (const json::SharedValue& pod : cluster.List(kPods)) {
    ++on[std::string(json::GetString(*pod, {"spec", "nodeName"}))];
  }
  EXPECT_FALSE(on.contains(""));
  for (const auto& [node, pods] : on) EXPECT_LE(pods, 110) << node;
}

// A pod that keeps away from other tenants' namespaces stays away as these get and lose the label.
TEST_F(SchedulerLoopTest, TermsFollowTheLabelsOfNamespaces) {
  ASSERT_TRUE(cluster_
                  .Patch(client::resources::kNodes, "node-a",
                         "metadata: {labels: {kubernetes.io/hostname: node-a}}")
                  .ok());
  for (const char* ns : {"own", "other"}) {
    cluster_.Create(StrCat("{apiVersion: v1, kind: Namespace, metadata: {name: ", ns,
                           ", labels: {tenant: ", ns, "}}}"));
  }
  const auto pod = [&](const std::string& ns, const std::string& name) {
    cluster_.Create(StrCat(
        "{apiVersion: v1, kind: Pod, metadata: {name: ", name, ", namespace: ", ns,
        "}, spec: {schedulerName: swell, affinity: {podAntiAffinity: "
        "{requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, "
        "labelSelector: {}, namespaceSelector: {matchExpressions: [{key: tenant, operator: NotIn, "
        "values: [own]}]}}]}}, containers: [{name: c, image: x}]}}"));
  };
  const auto runs = [&](const std::string& key) {
    return cluster_.Until([&] { return cluster_.PodPhase(key) == "Running"; });
  };
  pod("own", "first");
  pod("own", "second");
  EXPECT_TRUE(runs("own/first"));
  EXPECT_TRUE(runs("own/second")) << "its own namespace is not one of the others'";
  pod("other", "third");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Events("FailedScheduling", "third") > 0; }));
  EXPECT_EQ(cluster_.PodPhase("other/third"), "Pending");
  ASSERT_TRUE(
      cluster_.Patch(client::resources::kNamespaces, "other", "metadata: {labels: {tenant: own}}")
          .ok());
  EXPECT_TRUE(runs("other/third"));
}

// The pod that gets the room next does not wait for the hour of grace that another user chose.
TEST_F(SchedulerLoopTest, ADeletedPodKeepsAnothersRoomTenMinutesAtMost) {
  cluster_.agents->stop_after = std::chrono::hours(1);
  cluster_.Create("{apiVersion: v1, kind: Namespace, metadata: {name: other}}");
  auto pod = [](const std::string& ns, const std::string& name, int gpus) {
    return StrCat("{apiVersion: v1, kind: Pod, metadata: {name: ", name, ", namespace: ", ns,
                  "}, spec: {schedulerName: swell, terminationGracePeriodSeconds: 3600, "
                  "containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: ",
                  gpus, "}}}]}}");
  };
  cluster_.Create(pod("other", "a", 4));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  auto grace = [&](const std::string& key) {
    return cluster_.Int(kPods, key, {"metadata", "deletionGracePeriodSeconds"});
  };
  ASSERT_TRUE(cluster_.Delete(kPods, "other/a").ok());
  cluster_.Create(pod("other", "own", 4));
  cluster_.Run(10 * kSecond);
  EXPECT_EQ(grace("other/a"), 3600) << "nobody else waits for it";
  ASSERT_TRUE(cluster_.Delete(kPods, "other/own").ok());
  cluster_.Create(pod("default", "next", 4));
  EXPECT_TRUE(cluster_.Until([&] { return grace("other/a") == 600; }));
}

// Work in a project's namespace is charged to it: beyond its limit it waits.
TEST_F(SchedulerLoopTest, NamespaceChoosesTheProject) {
  cluster_.Create(
      "apiVersion: swell.dev/v1\nkind: Project\nmetadata: {name: team}\n"
      "spec: {namespace: default, resources: {gpu: {quota: 1, limit: 1}}}\n");
  cluster_.Run(kSecond);
  Pod("a", "", 1);
  ASSERT_TRUE(UntilRunning("a"));
  Pod("b", "", 1);
  cluster_.Run(5 * kSecond);
  EXPECT_EQ(cluster_.PodPhase("default/b"), "Pending");
  EXPECT_GE(cluster_.Events("FailedScheduling", "b"), 1);
  json::SharedValue project = cluster_.Get(client::resources::kProjects, "team");
  EXPECT_EQ(json::GetString(*project, {"status", "namespace"}), "default");
  EXPECT_EQ(json::Find(*project, {"status", "usage", "gpu", "allocated"})->to_number<double>(), 1);
  EXPECT_EQ(json::Find(*project, {"status", "usage", "gpu", "requested"})->to_number<double>(), 2);
}

}  // namespace
}  // namespace swell::scheduling
