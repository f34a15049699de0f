// Pod groups, endpoints, disruption budgets, the capacity guard, the janitor, projects.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "api/meta.h"
#include "base/strings.h"
#include "controllers/cluster_test_util.h"
#include "controllers/pod_facts.h"
#include "controllers/scheduling/sched_convert.h"

namespace swell::controllers {
namespace {

using client::resources::kEndpoints;
using client::resources::kPodDisruptionBudgets;
using client::resources::kPodGroups;
using client::resources::kPods;

class PartsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-a", 4);
    cluster_.StartManager();
  }
  void Pod(const std::string& name,
           const std::string& labels,
           int gpus = 0,
           const std::string& annotations = "") {
    std::string limits =
        gpus > 0 ? StrCat(", resources: {limits: {nvidia.com/gpu: ", gpus, "}}") : "";
    cluster_.Create(StrCat("apiVersion: v1\nkind: Pod\nmetadata: {name: ", name,
                           ", namespace: default, labels: {", labels, "}, annotations: {",
                           annotations,
                           "}}\nspec: {restartPolicy: Never, containers: [{name: c, image: x",
                           limits, ", ports: [{name: web, containerPort: 8080}]}]}\n"));
  }
  bool UntilRunning(const std::string& name) {
    return cluster_.Until([&] { return cluster_.PodPhase("default/" + name) == "Running"; });
  }
  TestCluster cluster_;
};

TEST_F(PartsTest, LabelledPodsBecomeAGang) {
  Pod("a", "swell.dev/pod-group: gang", 2, "swell.dev/min-member: '2'");
  cluster_.Run(5 * kSecond);
  json::SharedValue group = cluster_.Get(kPodGroups, "default/gang");
  ASSERT_TRUE(group);
  EXPECT_EQ(json::GetInt(*group, {"status", "minMember"}), 2);
  EXPECT_EQ(cluster_.PodPhase("default/a"), "Pending");
  Pod("b", "swell.dev/pod-group: gang", 2);
  ASSERT_TRUE(UntilRunning("a"));
  ASSERT_TRUE(UntilRunning("b"));
  ASSERT_TRUE(cluster_.Until([&] {
    return json::GetString(*cluster_.Get(kPodGroups, "default/gang"), {"status", "phase"}) ==
           "Running";
  }));
  for (const char* pod : {"default/a", "default/b"}) ASSERT_TRUE(cluster_.Delete(kPods, pod).ok());
  EXPECT_TRUE(cluster_.Until([&] { return !cluster_.Get(kPodGroups, "default/gang"); }));
}

TEST_F(PartsTest, AGroupHasSucceededStillWhenItsPodsAreCleanedUp) {
  cluster_.Create(PyTorchYaml{.workers = 0, .run_policy = "cleanPodPolicy: All"}.Text());
  ASSERT_TRUE(UntilRunning("job-master-0"));
  cluster_.agents->Exit("default/job-master-0", 0);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
  cluster_.Run(5 * kSecond);
  EXPECT_EQ(json::GetString(*cluster_.Get(kPodGroups, "default/job"), {"status", "phase"}),
            "Succeeded");
}

TEST_F(PartsTest, BoundPodsSayWhichGpus) {
  Pod("a", "", 2);
  ASSERT_TRUE(UntilRunning("a"));
  json::SharedValue pod = cluster_.Get(kPods, "default/a");
  EXPECT_EQ(api::Annotation(*pod, keys::kGpuDevices), "0,1");
  EXPECT_TRUE(api::ConditionIsTrue(*pod, "PodScheduled"));
  EXPECT_EQ(cluster_.Events("Scheduled", "a"), 1);
}

// An amount of memory is a part of a GPU that depends on the node.
TEST_F(PartsTest, BoundPodsSayHowMuchOfAGpuTheirMemoryIs) {
  ASSERT_TRUE(cluster_
                  .Patch(client::resources::kNodes, "node-a",
                         R"({"metadata":{"labels":{"nvidia.com/gpu.memory":"16384"}}})")
                  .ok());
  Pod("a", "", 0, "swell.dev/gpu-memory: '4096', swell.dev/gpu-fraction-devices: '2'");
  Pod("b", "", 0, "swell.dev/gpu-fraction: '0.5'");
  ASSERT_TRUE(UntilRunning("a"));
  ASSERT_TRUE(UntilRunning("b"));
  EXPECT_EQ(api::Annotation(*cluster_.Get(kPods, "default/a"), keys::kGpuShare), "0.5");
  EXPECT_EQ(api::Annotation(*cluster_.Get(kPods, "default/b"), keys::kGpuShare), "");
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

TEST_F(PartsTest, EndpointsFollowTheReadyPods) {
  cluster_.Create(
      "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: default}\n"
      "spec: {selector: {app: x}, ports: [{port: 80, targetPort: web}]}\n");
  Pod("a", "app: x");
  Pod("b", "app: other");
  ASSERT_TRUE(UntilRunning("a"));
  ASSERT_TRUE(UntilRunning("b"));
  cluster_.Run(kSecond);
  json::SharedValue endpoints = cluster_.Get(kEndpoints, "default/s");
  ASSERT_TRUE(endpoints);
  const json::Array& subsets = json::GetArray(*endpoints, {"subsets"});
  ASSERT_EQ(subsets.size(), 1u);
  ASSERT_EQ(json::GetArray(subsets[0], {"addresses"}).size(), 1u);
  EXPECT_EQ(json::GetString(json::GetArray(subsets[0], {"addresses"})[0], {"targetRef", "name"}),
            "a");
  EXPECT_EQ(json::GetInt(json::GetArray(subsets[0], {"ports"})[0], {"port"}), 8080);
  cluster_.agents->Exit("default/a", 0);
  EXPECT_TRUE(cluster_.Until([&] {
    json::SharedValue now = cluster_.Get(kEndpoints, "default/s");
    return now && json::GetArray(*now, {"subsets"}).empty();
  }));
  ASSERT_TRUE(cluster_.Delete(client::resources::kServices, "default/s").ok());
  EXPECT_TRUE(cluster_.Until([&] { return !cluster_.Get(kEndpoints, "default/s"); }));
}

TEST_F(PartsTest, BudgetCountsHealthyPods) {
  for (const char* pod : {"a", "b", "c"}) Pod(pod, "app: x");
  cluster_.Create(
      "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b, namespace: default}\n"
      "spec: {minAvailable: 2, selector: {matchLabels: {app: x}}}\n");
  ASSERT_TRUE(cluster_.Until([&] {
    return cluster_.Int(kPodDisruptionBudgets, "default/b", {"status", "disruptionsAllowed"}) == 1;
  }));
  EXPECT_EQ(cluster_.Int(kPodDisruptionBudgets, "default/b", {"status", "currentHealthy"}), 3);
  EXPECT_EQ(cluster_.Int(kPodDisruptionBudgets, "default/b", {"status", "expectedPods"}), 3);
  cluster_.agents->Exit("default/a", 1);
  EXPECT_TRUE(cluster_.Until([&] {
    return cluster_.Int(kPodDisruptionBudgets, "default/b", {"status", "disruptionsAllowed"}) == 0;
  }));
}

TEST_F(PartsTest, BudgetAsPercentage) {
  for (const char* pod : {"a", "b", "c", "d"}) Pod(pod, "app: x");
  cluster_.Create(
      "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b, namespace: default}\n"
      "spec: {maxUnavailable: 50%, selector: {matchLabels: {app: x}}}\n");
  EXPECT_TRUE(cluster_.Until([&] {
    return cluster_.Int(kPodDisruptionBudgets, "default/b", {"status", "disruptionsAllowed"}) == 2;
  }));
}

TEST_F(PartsTest, GuardRefusesWhatDoesNotFit) {
  Pod("a", "", 3);
  ASSERT_TRUE(UntilRunning("a"));
  Pod("b", "", 2);
  cluster_.Run(2 * kSecond);
  json::SharedValue pod = cluster_.Get(kPods, "default/b");
  Status status = cluster_.manager->CheckBind(*pod, "node-a");
  EXPECT_EQ(status.code(), Code::kConflict);
  EXPECT_EQ(status.message(),
            "pod \"default/b\" asks for 2 nvidia.com/gpu, node \"node-a\" has 1 free");
  EXPECT_TRUE(cluster_.manager->CheckBind(*pod, "node-unknown").ok());
  // What was let through counts before the watch shows it.
  json::Value one = *pod;
  json::Set(one, {"metadata", "uid"}, "x");
  json::Set(one, {"metadata", "name"}, "x");
  json::Set(one, {"spec", "containers"},
            json::Array{json::Object{
                {"resources", json::Object{{"limits", json::Object{{"nvidia.com/gpu", "1"}}}}}}});
  EXPECT_TRUE(cluster_.manager->CheckBind(one, "node-a").ok());
  EXPECT_TRUE(cluster_.manager->CheckBind(one, "node-a").ok());
  json::Set(one, {"metadata", "uid"}, "y");
  EXPECT_FALSE(cluster_.manager->CheckBind(one, "node-a").ok());
  cluster_.Run(11 * kSecond);
  EXPECT_TRUE(cluster_.manager->CheckBind(one, "node-a").ok());
}

TEST_F(PartsTest, GuardForgetsAPodThatCameAndWent) {
  Pod("a", "", 4);
  ASSERT_TRUE(UntilRunning("a"));
  ASSERT_TRUE(cluster_.Delete(kPods, "default/a").ok());
  ASSERT_TRUE(cluster_.Until([&] { return !cluster_.Get(kPods, "default/a"); }));
  Pod("b", "", 4);
  cluster_.Run(kSecond);
  json::SharedValue pod = cluster_.Get(kPods, "default/b");
  ASSERT_TRUE(pod);
  EXPECT_EQ(json::GetString(*pod, {"spec", "nodeName"}), "node-a");
}

TEST_F(PartsTest, JanitorRemovesTheOldestEndedPods) {
  cluster_.StopManager();
  cluster_.StartManager({.ended_pods_max = 2});
  for (const char* pod : {"a", "b", "c", "d"}) {
    Pod(pod, "");
    ASSERT_TRUE(UntilRunning(pod));
    cluster_.agents->Exit(StrCat("default/", pod), 0);
    cluster_.Run(2 * kSecond);
  }
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 2; }));
  EXPECT_EQ(cluster_.PodPhase("default/a"), "");
  EXPECT_EQ(cluster_.PodPhase("default/d"), "Succeeded");
}

// Work in a project's namespace is charged to it: beyond its limit it waits.
TEST_F(PartsTest, NamespaceChoosesTheProject) {
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

TEST_F(PartsTest, LeafProjectsGetANamespace) {
  cluster_.Create(
      "apiVersion: swell.dev/v1\nkind: Project\nmetadata: {name: dept}\nspec: {}\n---\n"
      "apiVersion: swell.dev/v1\nkind: Project\nmetadata: {name: team}\nspec: {parent: dept}\n");
  cluster_.Run(5 * kSecond);
  json::SharedValue ns = cluster_.Get(client::resources::kNamespaces, "team");
  ASSERT_TRUE(ns);
  EXPECT_EQ(api::Label(*ns, keys::kProject), "team");
  EXPECT_FALSE(cluster_.Get(client::resources::kNamespaces, "dept"));
}

TEST(SchedConvert, PodRequestsFollowKubernetes) {
  auto spec = json::Parse(R"({"containers":[
      {"resources":{"requests":{"cpu":"500m","memory":"1Gi"}}},
      {"resources":{"limits":{"cpu":"1","nvidia.com/gpu":"2"}}}],
    "initContainers":[{"resources":{"requests":{"cpu":"2","memory":"1Mi"}}}],
    "overhead":{"cpu":"100m"}})");
  ASSERT_TRUE(spec.ok());
  sched::Resources requests = PodRequests(*spec);
  EXPECT_EQ(requests.cpu_milli, 2100);
  EXPECT_EQ(requests.memory_bytes, 1LL << 30);
  EXPECT_EQ(requests.extended["nvidia.com/gpu"], 2);
}

TEST(SchedConvert, BadQuantitiesCountAsNothing) {
  auto spec = json::Parse(
      R"({"containers":[{"resources":{"requests":{"cpu":"lots","memory":-5,"x/y":{}}}}]})");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(PodRequests(*spec), sched::Resources{});
}

TEST(SchedConvert, PhasesOfPods) {
  auto phase = [](std::string_view text) {
    auto pod = json::Parse(text);
    SWELL_CHECK(pod.ok());
    return ToPodInfo(*pod).phase;
  };
  EXPECT_EQ(phase(R"({"status":{"phase":"Pending"}})"), sched::PodPhase::kPending);
  EXPECT_EQ(phase(R"({"spec":{"nodeName":"n"},"status":{"phase":"Pending"}})"),
            sched::PodPhase::kBound);
  EXPECT_EQ(phase(R"({"spec":{"nodeName":"n"},"status":{"phase":"Running"}})"),
            sched::PodPhase::kRunning);
  EXPECT_EQ(phase(R"({"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},
                      "spec":{"nodeName":"n"},"status":{"phase":"Running"}})"),
            sched::PodPhase::kReleasing);
  EXPECT_EQ(phase(R"({"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},
                      "spec":{"nodeName":"n"},"status":{"phase":"Failed"}})"),
            sched::PodPhase::kFailed);
}

}  // namespace
}  // namespace swell::controllers
