// Nodes that are unhealthy, or on which work failed often.
#include "scheduling/node_health.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/node.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::scheduling {
namespace {

using client::resources::kNodes;
using client::resources::kPods;
using manager::kSecond;
using manager::PyTorchYaml;
using manager::TestCluster;
using std::chrono::hours;
using std::chrono::minutes;

class NodeHealthTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-a", 4);
    cluster_.AddNode("node-b", 4);
    cluster_.StartManager();
    cluster_.Run(kSecond);
  }
  void Condition(const std::string& type, const std::string& status) {
    json::Array conditions =
        json::GetArray(*cluster_.Get(kNodes, "node-a"), {"status", "conditions"});
    api::SetCondition(conditions, type, status, "Test", "said by the test", cluster_.sim.Now());
    const json::Value patch =
        json::Object{{"status", json::Object{{"conditions", std::move(conditions)}}}};
    ASSERT_TRUE(cluster_.Patch(kNodes, "node-a", json::Print(patch), "status").ok());
    cluster_.Run(kSecond);
  }
  // "swell.dev/unhealthy:NoSchedule".
  std::string Taints(const std::string& node = "node-a") {
    std::vector<std::string> taints;
    const json::SharedValue object = cluster_.Get(kNodes, node);
    for (const api::Taint& one : api::TaintsOf(*object)) {
      if (one.key.starts_with("swell.dev/")) taints.push_back(StrCat(one.key, ":", one.effect));
    }
    return Join(taints, " ");
  }
  // A pod of node-a that failed in these words.
  void Failed(const std::string& name, const std::string& said, const std::string& group = "") {
    cluster_.Create(StrCat("apiVersion: v1\nkind: Pod\nmetadata: {name: ", name,
                           ", namespace: default, labels: {",
                           group.empty() ? "" : StrCat("swell.dev/pod-group: ", group),
                           "}}\nspec: {nodeName: node-a, restartPolicy: Never, containers: [{name: "
                           "c, image: x}]}\n"));
    ASSERT_TRUE(cluster_.Until([&] { return cluster_.PodPhase("default/" + name) == "Running"; }));
    const json::Value patch = json::Object{
        {"status",
         json::Object{
             {"phase", "Failed"},
             {"containerStatuses",
              json::Array{json::Object{
                  {"name", "c"},
                  {"image", "x"},
                  {"imageID", ""},
                  {"ready", false},
                  {"restartCount", 0},
                  {"state",
                   json::Object{
                       {"terminated",
                        json::Object{{"exitCode", 3},
                                     {"reason", "Error"},
                                     {"message", said},
                                     {"startedAt", api::FormatTime(cluster_.sim.Now())},
                                     {"finishedAt", api::FormatTime(cluster_.sim.Now())}}}}}}}}}}};
    ASSERT_TRUE(cluster_.Patch(kPods, "default/" + name, json::Print(patch), "status").ok());
  }
  std::vector<api::NodeFailure> Failures() {
    return api::NodeFailuresOf(*cluster_.Get(kNodes, "node-a"));
  }
  TestCluster cluster_;
};

TEST_F(NodeHealthTest, AnUnhealthyNodeGetsNoNewPodsUntilItIsWellForAMinute) {
  Condition("DiskHealthy", "False");
  EXPECT_EQ(Taints(), "swell.dev/unhealthy:NoSchedule");
  EXPECT_EQ(cluster_.EventMessage("NodeUnhealthy", "node-a"),
            "Node node-a gets no new pods: DiskHealthy (Test): said by the test. What runs there "
            "runs on.");
  cluster_.Run(minutes(5));
  Condition("DiskHealthy", "True");
  cluster_.Run(50 * kSecond);
  EXPECT_EQ(Taints(), "swell.dev/unhealthy:NoSchedule");
  Condition("DiskHealthy", "False");
  Condition("DiskHealthy", "True");
  cluster_.Run(50 * kSecond);
  EXPECT_EQ(Taints(), "swell.dev/unhealthy:NoSchedule") << "counted from its last fault";
  cluster_.Run(12 * kSecond);
  EXPECT_EQ(Taints(), "");
  EXPECT_EQ(cluster_.Events("NodeRecovered", "node-a"), 1);
}

TEST_F(NodeHealthTest, ConditionsOfTheProblemDetectorCountAndRunningPodsStay) {
  cluster_.Create(PyTorchYaml{.name = "job", .workers = 1, .gpus = 4}.Text());
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 2; }));
  Condition("KernelDeadlock", "True");
  EXPECT_EQ(Taints(), "swell.dev/unhealthy:NoSchedule");
  cluster_.Run(minutes(10));
  EXPECT_EQ(cluster_.Pods("Running"), 2);
  EXPECT_EQ(Taints("node-b"), "");
}

TEST_F(NodeHealthTest, FailuresWithoutAUsersErrorMakeANodeSuspectForAWhile) {
  for (int i = 0; i < 3; ++i) Failed(StrCat("user-", i), "ValueError: shape");
  cluster_.Run(15 * kSecond);
  EXPECT_TRUE(Failures().empty());
  for (int i = 0; i < 2; ++i) Failed(StrCat("bad-", i), "CUDA error: uncorrectable ECC error");
  cluster_.Run(15 * kSecond);
  EXPECT_EQ(Failures().size(), 2U);
  EXPECT_EQ(Taints(), "");
  for (int i = 2; i < 4; ++i) Failed(StrCat("bad-", i), "CUDA error: uncorrectable ECC error");
  cluster_.Run(15 * kSecond);
  EXPECT_EQ(Taints(), "swell.dev/suspect:PreferNoSchedule");
  EXPECT_NE(cluster_.EventMessage("NodeSuspect", "node-a").find("4 pods failed there"),
            std::string::npos)
      << cluster_.EventMessage("NodeSuspect", "node-a");
  cluster_.Run(hours(7));
  EXPECT_EQ(Taints(), "swell.dev/suspect:PreferNoSchedule") << "more than half is left";
  cluster_.Run(hours(2));
  EXPECT_EQ(Taints(), "");
  EXPECT_EQ(cluster_.Events("NodeTrusted", "node-a"), 1);
}

TEST_F(NodeHealthTest, ALostPeerCountsLittleAndNothingWhereAnotherMemberSaysWhy) {
  Failed("cause", "ValueError: shape", "explained");
  Failed("peer", "RuntimeError: Connection reset by peer", "explained");
  cluster_.Run(15 * kSecond);
  EXPECT_TRUE(Failures().empty());
  Failed("lone", "RuntimeError: Connection reset by peer", "unexplained");
  cluster_.Run(15 * kSecond);
  ASSERT_EQ(Failures().size(), 1U);
  EXPECT_EQ(Failures()[0].pod, "default/lone");
  EXPECT_NEAR(api::NodeScore(Failures(), cluster_.sim.Now()), 1.0 / 3, 0.01);
}

TEST_F(NodeHealthTest, ANodeThatFallsSilentUnderAPodHasFailedOnce) {
  cluster_.Create(PyTorchYaml{.name = "job", .workers = 1, .gpus = 4}.Text());
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 2; }));
  cluster_.agents->Kill("node-a");
  cluster_.Run(minutes(2));
  ASSERT_EQ(Failures().size(), 1U);
  EXPECT_EQ(Failures()[0].said, "the node fell silent");
}

TEST_F(NodeHealthTest, AnotherLeaderCountsNoFailureTwice) {
  for (int i = 0; i < 2; ++i) Failed(StrCat("bad-", i), "NVRM: Xid 79");
  cluster_.Run(15 * kSecond);
  cluster_.StopManager();
  cluster_.StartManager();
  cluster_.Run(15 * kSecond);
  EXPECT_EQ(Failures().size(), 2U);
}

}  // namespace
}  // namespace swell::scheduling
