// HorizontalPodAutoscalers in a whole cluster whose metrics API is played here.
#include "autoscaling/pod_autoscaler.h"

#include <gtest/gtest.h>

#include "autoscaling/resource_use.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::autoscaling {
namespace {

using client::resources::kDeployments;
using client::resources::kPodAutoscalers;
using client::resources::kPods;
using manager::MetricsServer;
using manager::TestCluster;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr char kWeb[] = R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      schedulerName: swell
      containers: [{name: c, image: web, resources: {requests: {cpu: '1', memory: 100M}}}]
)";

class PodAutoscalerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    metrics_ = std::make_shared<MetricsServer>(cluster_.server);
    metrics_->answer = [this](const std::string&) { return Usage(); };
    cluster_.between = metrics_;
    cluster_.AddNode("n0", 0, "100");
    cluster_.StartManager();
    cluster_.Create(kWeb);
    ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 2; }));
  }
  void Autoscale(std::string_view spec) {
    cluster_.Create(
        StrCat("apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\n"
               "spec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n  ",
               spec, "\n"));
  }
  static std::string ByCpu(std::string_view more) {
    return StrCat(more,
                  "\n  metrics: [{type: Resource, resource: {name: cpu, target: {type: "
                  "Utilization, averageUtilization: 50}}}]");
  }
  // As much for each pod that runs.
  std::string Usage() {
    json::Array items;
    for (const json::SharedValue& pod : cluster_.List(kPods, "default")) {
      if (api::Phase(*pod) != "Running") continue;
      json::Object usage{{"cpu", cpu_}, {"memory", memory_}};
      items.push_back(json::Object{
          {"metadata", json::Object{{"name", api::Name(*pod)}}},
          {"timestamp", api::FormatTime(cluster_.sim.Now())},
          {"window", "10s"},
          {"containers", json::Array{json::Object{{"name", "c"}, {"usage", std::move(usage)}}}}});
    }
    return json::Print(json::Object{{"items", std::move(items)}});
  }
  int64_t Replicas() { return cluster_.Int(kDeployments, "default/web", {"spec", "replicas"}); }
  bool Becomes(int64_t replicas, Duration limit = seconds(60)) {
    return cluster_.Until([&] { return Replicas() == replicas; }, limit);
  }
  std::string Reason(std::string_view condition) {
    const bool is = cluster_.Condition(kPodAutoscalers, "default/web", condition);
    return StrCat(is ? "" : "not ", cluster_.Reason(kPodAutoscalers, "default/web", condition));
  }
  std::string Measured() {
    const json::SharedValue found = cluster_.Get(kPodAutoscalers, "default/web");
    const json::Value* metrics = json::Find(*found, {"status", "currentMetrics"});
    return metrics == nullptr ? "" : json::Print(*metrics);
  }

  std::string cpu_ = "750m";
  std::string memory_ = "50M";
  TestCluster cluster_;
  std::shared_ptr<MetricsServer> metrics_;
};

TEST_F(PodAutoscalerTest, TheUseOfProcessorsDecides) {
  Autoscale(ByCpu("maxReplicas: 6"));
  ASSERT_TRUE(Becomes(3)) << "75 of 50 percent, two pods";
  EXPECT_EQ(cluster_.EventMessage("SuccessfulRescale"),
            "New size: 3; reason: cpu resource utilization (percentage of request) above target");
  EXPECT_EQ(Measured(), R"([{"type":"Resource","resource":{"name":"cpu","current":)"
                        R"({"averageUtilization":75,"averageValue":"750m"}}}])");
  EXPECT_EQ(Reason("AbleToScale"), "SucceededRescale");
  EXPECT_EQ(Reason("ScalingActive"), "ValidMetricFound");
  EXPECT_EQ(Reason("ScalingLimited"), "not DesiredWithinRange");
  cpu_ = "2";
  ASSERT_TRUE(Becomes(6)) << "no more than the most, even if nine were asked for";
  cluster_.Run(seconds(30));
  EXPECT_EQ(Reason("ScalingLimited"), "TooManyReplicas");
  cpu_ = "540m";
  cluster_.Run(minutes(10));
  EXPECT_EQ(Replicas(), 6) << "within a tenth of the target";
  EXPECT_EQ(Reason("AbleToScale"), "ReadyForNewScale");
  cpu_ = "100m";
  cluster_.Run(minutes(4));
  EXPECT_EQ(Replicas(), 6);
  EXPECT_EQ(Reason("AbleToScale"), "ScaleDownStabilized");
  ASSERT_TRUE(Becomes(2, minutes(3))) << "10 of 50 percent, six pods";
  EXPECT_EQ(cluster_.Int(kPodAutoscalers, "default/web", {"status", "desiredReplicas"}), 2);
}

TEST(ResourceUse, IsComparedWithTheRequestOfTheWholePod) {
  const auto pod = std::make_shared<const json::Value>(*json::Parse(
      R"({"metadata":{"name":"p"},"spec":{"resources":{"requests":{"cpu":"2"}},
          "containers":[{"name":"a","resources":{"requests":{"cpu":"500m"}}},{"name":"b"}]}})"));
  const json::Value metrics = *json::Parse(
      R"({"items":[{"metadata":{"name":"p"},"containers":[
          {"name":"a","usage":{"cpu":"400m"}},{"name":"b","usage":{"cpu":"600m"}}]}]})");
  auto percent = [&](const std::string& container) {
    MetricSpec spec;
    spec.name = "cpu";
    spec.container = container;
    spec.utilization = true;
    elastic::MetricSample look;
    look.of_members.resize(1);
    TakeUse(metrics, spec, {pod}, look);
    EXPECT_EQ(look.fault, "");
    return look.of_members[0];
  };
  EXPECT_EQ(percent(""), 50);
  EXPECT_EQ(percent("a"), 80);
}

TEST_F(PodAutoscalerTest, OfSeveralMetricsTheOneThatAsksForMostCounts) {
  cpu_ = "100m";
  memory_ = "120M";
  Autoscale(
      "maxReplicas: 6\n  metrics: [{type: Resource, resource: {name: cpu, target: {type: "
      "Utilization, averageUtilization: 50}}}, {type: Resource, resource: {name: memory, target: "
      "{type: AverageValue, averageValue: 60M}}}]");
  ASSERT_TRUE(Becomes(4));
  EXPECT_EQ(cluster_.EventMessage("SuccessfulRescale"),
            "New size: 4; reason: memory resource above target");
}

TEST_F(PodAutoscalerTest, BehaviorBoundsHowFastItGoes) {
  cpu_ = "2";
  Autoscale(
      ByCpu("maxReplicas: 20\n  behavior: {scaleUp: {policies: [{type: Pods, value: 1, "
            "periodSeconds: 60}]}, scaleDown: {selectPolicy: Disabled}}"));
  ASSERT_TRUE(Becomes(3));
  cluster_.Run(seconds(30));
  EXPECT_EQ(Replicas(), 3);
  EXPECT_EQ(Reason("ScalingLimited"), "ScaleUpLimit");
  ASSERT_TRUE(Becomes(4, seconds(60)));
  cpu_ = "10m";
  cluster_.Run(minutes(20));
  EXPECT_EQ(Replicas(), 4);
  EXPECT_EQ(Reason("ScalingLimited"), "ScaleDownLimit");
}

TEST_F(PodAutoscalerTest, BoundsHoldWithoutAnyMetric) {
  metrics_->answer = nullptr;
  Autoscale(ByCpu("minReplicas: 3\n  maxReplicas: 6"));
  ASSERT_TRUE(Becomes(3));
  EXPECT_EQ(cluster_.EventMessage("SuccessfulRescale"),
            "New size: 3; reason: Current number of replicas below Spec.MinReplicas");
  cluster_.Run(minutes(1));
  EXPECT_EQ(Replicas(), 3);
  EXPECT_EQ(Reason("ScalingActive"), "not FailedGetResourceMetric");
  EXPECT_EQ(Measured(), R"([{"type":"Resource"}])");
  EXPECT_GE(cluster_.Events("FailedGetResourceMetric"), 1);
}

TEST_F(PodAutoscalerTest, WhatCannotBeMeasuredStopsShrinkingButNotGrowth) {
  const std::string queue =
      "\n  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, "
      "averageUtilization: 50}}}, {type: External, external: {metric: {name: queue}, target: "
      "{type: Value, value: 1}}}]";
  Autoscale("maxReplicas: 6" + queue);
  ASSERT_TRUE(Becomes(3));
  cpu_ = "10m";
  cluster_.Run(minutes(20));
  EXPECT_EQ(Replicas(), 3);
  EXPECT_EQ(Reason("ScalingActive"), "not FailedGetExternalMetric");
}

TEST_F(PodAutoscalerTest, AMissingTargetAndOneScaledToZeroAreLeftAlone) {
  ASSERT_TRUE(cluster_.Patch(kDeployments, "default/web", "spec: {replicas: 0}").ok());
  Autoscale(ByCpu("maxReplicas: 6"));
  ASSERT_TRUE(cluster_.Until([&] { return Reason("ScalingActive") == "not ScalingDisabled"; }));
  EXPECT_EQ(Replicas(), 0);
  ASSERT_TRUE(cluster_.Delete(kDeployments, "default/web").ok());
  ASSERT_TRUE(cluster_.Until([&] { return Reason("AbleToScale") == "not FailedGetScale"; }));
}

}  // namespace
}  // namespace swell::autoscaling
