// Nodes that die, come back, are drained; and what becomes of their pods and jobs.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/cluster/node_taints.h"
#include "kube/controllers/pod_facts.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::controllers {
namespace {

using client::resources::kNodes;
using client::resources::kPods;
using client::resources::kPyTorchJobs;
using manager::kSecond;
using manager::PyTorchYaml;
using manager::TestCluster;

json::Value Parsed(std::string_view text) {
  auto value = json::Parse(text);
  SWELL_CHECK(value.ok());
  return *value;
}

TEST(NodeTaints, FollowTheReadyCondition) {
  WallTime now{1'767'225'600'000'000'000};
  json::Value node = Parsed(R"({"spec":{"taints":[{"key":"own","effect":"NoSchedule"}]}})");
  json::Array lost = WantedTaints(node, "Unknown", now);
  ASSERT_EQ(lost.size(), 3u);
  EXPECT_EQ(json::GetString(lost[1], {"key"}), "node.kubernetes.io/unreachable");
  json::Set(node, {"spec", "taints"}, lost);
  EXPECT_TRUE(
      json::Equal(json::Value(WantedTaints(node, "Unknown", now + kSecond)), json::Value(lost)));
  EXPECT_EQ(WantedTaints(node, "True", now).size(), 1u);
  json::Set(node, {"spec", "unschedulable"}, true);
  EXPECT_EQ(WantedTaints(node, "False", now).size(), 4u);
}

TEST(NodeTaints, TheShortestTolerationCounts) {
  json::Value node = Parsed(R"({"spec":{"taints":[
      {"key":"node.kubernetes.io/unreachable","effect":"NoExecute",
       "timeAdded":"2026-01-01T00:00:00Z"}]}})");
  WallTime added = *api::ParseTime("2026-01-01T00:00:00Z");
  auto until = [&](std::string_view tolerations) {
    json::Value pod = json::Object{{"spec", json::Object{{"tolerations", Parsed(tolerations)}}}};
    return ToleratedFor(pod, node, 30 * kSecond);
  };
  EXPECT_EQ(until("[]"), added);
  EXPECT_EQ(until(R"([{"operator":"Exists"}])"), std::nullopt);
  EXPECT_EQ(until(R"([{"key":"other","operator":"Exists"}])"), added);
  EXPECT_EQ(until(R"([{"key":"node.kubernetes.io/unreachable","operator":"Exists",
                       "effect":"NoExecute","tolerationSeconds":77}])"),
            added + 77 * kSecond);
  // The API server's default stands for "not said".
  EXPECT_EQ(until(R"([{"key":"node.kubernetes.io/unreachable","operator":"Exists",
                       "effect":"NoExecute","tolerationSeconds":300}])"),
            added + 30 * kSecond);
  EXPECT_EQ(until(R"([{"key":"node.kubernetes.io/unreachable","operator":"Exists",
                       "effect":"NoSchedule"}])"),
            added);
}

class NodeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* node : {"node-a", "node-b", "node-c"}) cluster_.AddNode(node, 4);
    cluster_.StartManager({.eviction_delay = 30 * kSecond});
  }
  std::string NodeOf(const std::string& pod) {
    json::SharedValue found = cluster_.Get(kPods, pod);
    return found ? std::string(json::GetString(*found, {"spec", "nodeName"})) : "";
  }
  std::string Ready(const std::string& node) {
    return std::string(ReadyStatus(*cluster_.Get(kNodes, node)));
  }
  bool Tainted(const std::string& node, std::string_view key) {
    json::SharedValue object = cluster_.Get(kNodes, node);
    for (const json::Value& taint : json::GetArray(*object, {"spec", "taints"})) {
      if (json::GetString(taint, {"key"}) == key) return true;
    }
    return false;
  }
  TestCluster cluster_;
};

TEST_F(NodeTest, SilentNodeIsLostAfterFortySecondsAndWelcomeBack) {
  cluster_.Run(100 * kSecond);
  EXPECT_EQ(Ready("node-a"), "True");
  cluster_.agents->Kill("node-a");
  cluster_.Run(28 * kSecond);
  EXPECT_EQ(Ready("node-a"), "True");
  cluster_.Run(14 * kSecond);
  EXPECT_EQ(Ready("node-a"), "Unknown");
  EXPECT_TRUE(Tainted("node-a", "node.kubernetes.io/unreachable"));
  EXPECT_EQ(Ready("node-b"), "True");
  EXPECT_GE(cluster_.Events("NodeNotReady", "node-a"), 1);
  cluster_.agents->Revive("node-a");
  cluster_.Run(5 * kSecond);
  EXPECT_EQ(Ready("node-a"), "True");
  EXPECT_FALSE(Tainted("node-a", "node.kubernetes.io/unreachable"));
  cluster_.Run(100 * kSecond);
  EXPECT_EQ(Ready("node-a"), "True");
}

// "Pod Terminating for ever, job hangs": not here.
TEST_F(NodeTest, JobOnADeadNodeRunsAgainElsewhere) {
  cluster_.Create(PyTorchYaml{.name = "job", .workers = 1, .gpus = 4}.Text());
  ASSERT_TRUE(cluster_.Until([&] {
    return cluster_.Condition(kPyTorchJobs, "default/job", "Running") &&
           cluster_.Pods("Running") == 2;
  }));
  std::string dead = NodeOf("default/job-worker-0");
  std::string uid = cluster_.PodUid("default/job-worker-0");
  cluster_.agents->Kill(dead);
  ASSERT_TRUE(cluster_.Until(
      [&] {
        return cluster_.PodUid("default/job-worker-0") != uid &&
               cluster_.Condition(kPyTorchJobs, "default/job", "Running") &&
               cluster_.PodPhase("default/job-worker-0") == "Running";
      },
      std::chrono::minutes(4)));
  EXPECT_NE(NodeOf("default/job-worker-0"), dead);
  EXPECT_FALSE(cluster_.Condition(kPyTorchJobs, "default/job", "Failed"));
  EXPECT_GE(cluster_.Events("TaintManagerEviction", "job-worker-0"), 1);
  EXPECT_LE(cluster_.Int(kPyTorchJobs, "default/job", {"status", "restarts"}), 0);
}

TEST_F(NodeTest, PodThatToleratesStays) {
  cluster_.Create(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\n"
      "spec: {containers: [{name: c, image: x}], tolerations: [{operator: Exists}]}\n");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.PodPhase("default/p") == "Running"; }));
  cluster_.agents->Kill(NodeOf("default/p"));
  cluster_.Run(std::chrono::minutes(10));
  json::SharedValue pod = cluster_.Get(kPods, "default/p");
  ASSERT_TRUE(pod);
  EXPECT_FALSE(api::IsDeleting(*pod));
  EXPECT_FALSE(api::ConditionIsTrue(*pod, "Ready"));
}

TEST_F(NodeTest, NoExecuteTaintDrainsARunningNode) {
  cluster_.Create(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\n"
      "spec: {containers: [{name: c, image: x}]}\n");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.PodPhase("default/p") == "Running"; }));
  ASSERT_TRUE(cluster_
                  .Patch(kNodes, NodeOf("default/p"),
                         "{spec: {taints: [{key: maintenance, effect: NoExecute}]}}")
                  .ok());
  EXPECT_TRUE(cluster_.Until([&] { return !cluster_.Get(kPods, "default/p"); }));
}

TEST_F(NodeTest, PodsOfARemovedNodeGo) {
  cluster_.Create(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\n"
      "spec: {containers: [{name: c, image: x}]}\n");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.PodPhase("default/p") == "Running"; }));
  std::string node = NodeOf("default/p");
  cluster_.agents->Kill(node);
  ASSERT_TRUE(cluster_.Delete(kNodes, node).ok());
  cluster_.Run(30 * kSecond);
  EXPECT_TRUE(cluster_.Get(kPods, "default/p"));
  EXPECT_TRUE(cluster_.Until([&] { return !cluster_.Get(kPods, "default/p"); }));
}

TEST_F(NodeTest, CordonedNodeCarriesTheTaint) {
  ASSERT_TRUE(cluster_.Patch(kNodes, "node-a", "{spec: {unschedulable: true}}").ok());
  EXPECT_TRUE(
      cluster_.Until([&] { return Tainted("node-a", "node.kubernetes.io/unschedulable"); }));
  ASSERT_TRUE(cluster_.Patch(kNodes, "node-a", "{spec: {unschedulable: null}}").ok());
  EXPECT_TRUE(
      cluster_.Until([&] { return !Tainted("node-a", "node.kubernetes.io/unschedulable"); }));
}

// A new controller gives every node its full grace again: its own absence is not evidence.
TEST_F(NodeTest, RestartedControllerDoesNotPanic) {
  cluster_.StopManager();
  cluster_.Run(std::chrono::minutes(5));
  cluster_.StartManager();
  cluster_.Run(60 * kSecond);
  for (const char* node : {"node-a", "node-b", "node-c"}) EXPECT_EQ(Ready(node), "True") << node;
}

}  // namespace
}  // namespace swell::controllers
