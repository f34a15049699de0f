// Interactive work whose GPUs are idle is warned, then suspended, in virtual time.
#include "projects/idle_rules.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::projects {
namespace {

using client::resources::kPyTorchJobs;
using client::resources::kTrainingJobs;
using manager::MetricsServer;
using manager::PyTorchYaml;
using manager::TestCluster;
using std::chrono::minutes;

class IdleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    metrics_ = std::make_shared<MetricsServer>(cluster_.server);
    metrics_->answer = [this](const std::string&) { return Usage(); };
    cluster_.between = metrics_;
    cluster_.AddNode("n0", 8);
    cluster_.StartManager();
  }
  void Submit(std::string_view labels, std::string_view annotations) {
    cluster_.Create(
        StrCat("apiVersion: swell.dev/v1\nkind: TrainingJob\nmetadata: {name: desk, namespace: "
               "default, labels: {",
               labels, "}, annotations: {", annotations,
               "}}\nspec:\n  roles:\n    worker:\n      replicas: 1\n      template: {spec: "
               "{containers: [{name: main, image: i, resources: {limits: {nvidia.com/gpu: 1, cpu: "
               "2}}}]}}\n"));
    ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  }
  std::string Usage() {
    if (cpu_.empty()) return "";
    std::string items;
    for (const json::SharedValue& pod : cluster_.List(client::resources::kPods)) {
      items += StrCat(items.empty() ? "" : ",", R"({"metadata":{"name":")", api::Name(*pod),
                      R"("},"containers":[{"name":"main","usage":{"cpu":")", cpu_, R"("}}]})");
    }
    return StrCat(R"({"items":[)", items, "]}");
  }
  bool Suspended() { return cluster_.Condition(kTrainingJobs, "default/desk", "Suspended"); }

  std::string cpu_ = "10m";
  TestCluster cluster_;
  std::shared_ptr<MetricsServer> metrics_;
};

TEST_F(IdleTest, AnIdleJobIsWarnedThenSuspended) {
  Submit("", "swell.dev/idle-timeout: 1h");
  cluster_.Run(minutes(54));
  EXPECT_EQ(cluster_.Events("Idle", "desk"), 0);
  cluster_.Run(minutes(3));
  EXPECT_EQ(cluster_.Events("Idle", "desk"), 1);
  EXPECT_FALSE(Suspended());
  cluster_.Run(minutes(5));
  EXPECT_TRUE(Suspended());
  EXPECT_EQ(cluster_.Pods(""), 0);
  EXPECT_TRUE(cluster_.EventMessage("IdleStopped", "desk")
                  .ends_with("Start it again with: swell resume desk -n default"))
      << cluster_.EventMessage("IdleStopped", "desk");
}

TEST_F(IdleTest, UseStartsTheTimeAnew) {
  Submit("", "swell.dev/idle-timeout: 1h");
  cluster_.Run(minutes(57));
  cpu_ = "500m";
  cluster_.Run(minutes(2));
  cpu_ = "10m";
  cluster_.Run(minutes(50));
  EXPECT_FALSE(Suspended());
  cluster_.Run(minutes(15));
  EXPECT_TRUE(Suspended());
}

TEST_F(IdleTest, WhatIsNotMeasuredIsNotIdle) {
  cpu_ = "";
  Submit("", "swell.dev/idle-timeout: 10m");
  cluster_.Run(minutes(60));
  EXPECT_FALSE(Suspended());
}

TEST_F(IdleTest, AProjectsTimeHoldsForItsInteractiveWorkAlone) {
  cluster_.Create(
      "apiVersion: swell.dev/v1\nkind: Project\nmetadata: {name: red, annotations: "
      "{swell.dev/idle-timeout: 10m}}\nspec: {namespace: default}\n");
  Submit("swell.dev/project: red", "");
  cluster_.Run(minutes(30));
  EXPECT_FALSE(Suspended());
  ASSERT_TRUE(cluster_.Delete(kTrainingJobs, "default/desk").ok());
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
  Submit("swell.dev/project: red, swell.dev/workload: interactive", "");
  cluster_.Run(minutes(11));
  EXPECT_TRUE(Suspended());
}

TEST_F(IdleTest, NonsenseIsNoTimeout) {
  Submit("swell.dev/workload: interactive", "swell.dev/idle-timeout: soon");
  cluster_.Run(minutes(90));
  EXPECT_FALSE(Suspended());
}

TEST_F(IdleTest, KindsAreSuspendedWhereTheirFieldIs) {
  cluster_.Create(PyTorchYaml{.workers = 0, .annotations = "swell.dev/idle-timeout: 5m"}.Text());
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  cluster_.Run(minutes(7));
  EXPECT_TRUE(cluster_.Condition(kPyTorchJobs, "default/job", "Suspended"));
}

}  // namespace
}  // namespace swell::projects
