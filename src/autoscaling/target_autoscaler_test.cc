// Jobs whose members are kept at the targets of metrics, in a whole cluster whose metrics APIs are
// played here.
#include "autoscaling/target_autoscaler.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::autoscaling {
namespace {

using client::resources::kPods;
using client::resources::kPyTorchJobs;
using client::resources::kTrainingJobs;
using manager::MetricsServer;
using manager::PyTorchYaml;
using manager::TestCluster;

class TargetAutoscalerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    metrics_ = std::make_shared<MetricsServer>(cluster_.server);
    cluster_.between = metrics_;
    cluster_.AddNode("node-0", 16);
    cluster_.StartManager();
  }
  static std::string PyTorch(std::string_view policy) {
    PyTorchYaml yaml{.workers = 2, .gpus = 0};
    yaml.more_spec = StrCat("  elasticPolicy: {", policy, "}\n");
    return yaml.Text();
  }
  // As much CPU for each pod of the cluster.
  std::string Usage(std::string_view cpu) {
    json::Array items;
    for (const json::SharedValue& pod : cluster_.List(kPods, "default")) {
      items.push_back(json::Object{
          {"metadata", json::Object{{"name", api::Name(*pod)}}},
          {"containers",
           json::Array{json::Object{{"name", "pytorch"}, {"usage", json::Object{{"cpu", cpu}}}}}}});
    }
    return json::Print(json::Object{{"items", std::move(items)}});
  }
  int64_t Workers() {
    return cluster_.Int(kPyTorchJobs, "default/job",
                        {"spec", "pytorchReplicaSpecs", "Worker", "replicas"});
  }

  TestCluster cluster_;
  std::shared_ptr<MetricsServer> metrics_;
};

TEST_F(TargetAutoscalerTest, KubeflowsMetricsScaleByUseOfCpu) {
  std::string cpu = "750m";
  metrics_->answer = [&](const std::string& path) {
    return path.find("/metrics.k8s.io/") != std::string::npos ? Usage(cpu) : "";
  };
  cluster_.Create(PyTorch(
      "minReplicas: 1, maxReplicas: 6, metrics: [{type: Resource, resource: {name: cpu, target: "
      "{type: Utilization, averageUtilization: 50}}}]"));
  // 75 of 50 percent, two workers: three; then five, and six are the most.
  ASSERT_TRUE(cluster_.Until([&] { return Workers() == 3; })) << Workers();
  EXPECT_EQ(metrics_->asked,
            "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods?labelSelector="
            "swell.dev%2Fpod-group%3Djob%2Cswell.dev%2Fpod-set%3Dworker");
  EXPECT_EQ(cluster_.EventMessage("Grown"), "Worker grows from 2 to 3: cpu is 75, its target 50");
  EXPECT_EQ(cluster_.Events("Grown"), 1);
  ASSERT_TRUE(cluster_.Until([&] { return Workers() == 6 && cluster_.Pods("Running") == 7; }));
  cpu = "525m";
  cluster_.Run(std::chrono::seconds(600));
  EXPECT_EQ(Workers(), 6) << "within a tenth of the target";
  cpu = "200m";
  cluster_.Run(std::chrono::seconds(200));
  EXPECT_EQ(Workers(), 6) << "it may be needed again";
  ASSERT_TRUE(cluster_.Until([&] { return Workers() == 1; }, std::chrono::seconds(1500)));
  json::SharedValue job = cluster_.Get(kPyTorchJobs, "default/job");
  EXPECT_EQ(json::GetString(*job, {"status", "elasticScaling", "Worker", "elasticCondition"}),
            "Target");
}

TEST_F(TargetAutoscalerTest, ExternalMetricsAndTheFaultOfOne) {
  metrics_->answer = [](const std::string& path) {
    return path.find("/external.metrics.k8s.io/") != std::string::npos
               ? R"({"items":[{"value":"20"},{"value":"10"}]})"
               : "";
  };
  cluster_.Create(
      "apiVersion: swell.dev/v1\nkind: TrainingJob\nmetadata: {name: t, namespace: default}\n"
      "spec:\n  roles:\n    worker:\n      replicas: 2\n"
      "      elastic: {minReplicas: 1, maxReplicas: 8}\n"
      "      template: {spec: {containers: [{name: main, image: i}]}}\n"
      "  autoscaling:\n    mode: Metric\n    metrics:\n"
      "    - {type: External, external: {metric: {name: queue, selector: {matchLabels: {q: a}}}, "
      "target: {type: AverageValue, averageValue: 6}}}\n"
      "    - {type: Pods, pods: {metric: {name: rate}, target: {type: AverageValue, averageValue: "
      "100m}}}\n");
  auto replicas = [&] {
    return cluster_.Int(kTrainingJobs, "default/t", {"spec", "roles", "worker", "replicas"});
  };
  ASSERT_TRUE(cluster_.Until([&] { return replicas() == 5; })) << replicas();
  EXPECT_EQ(cluster_.EventMessage("Grown"), "worker grows from 2 to 5: queue is 15, its target 6");
  EXPECT_EQ(cluster_.EventMessage("FailedGetMetrics")
                .find("rate: no member pushes it; nothing at custom.metrics.k8s.io"),
            0u)
      << cluster_.EventMessage("FailedGetMetrics");
  // Pushed as the SDK does.
  for (int i = 0; i < 5; ++i) {
    const std::string pod = StrCat("default/t-worker-", i);
    ASSERT_TRUE(cluster_.Until([&] { return cluster_.PodPhase(pod) == "Running"; }));
    ASSERT_TRUE(
        cluster_
            .Patch(kPods, pod, "metadata: {annotations: {swell.dev/metrics: '{\"rate\": 0.14}'}}")
            .ok());
  }
  ASSERT_TRUE(cluster_.Until([&] { return replicas() == 7; })) << replicas();
}

TEST_F(TargetAutoscalerTest, AnObjectsMetricIsAskedOfIt) {
  struct Case {
    const char* object;
    const char* path;
  };
  const Case cases[] = {
      {"{apiVersion: v1, kind: Service, name: front}", "namespaces/default/services/front/hits"},
      {"{apiVersion: networking.k8s.io/v1, kind: Ingress, name: main}",
       "namespaces/default/ingresses.networking.k8s.io/main/hits"},
      {"{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, name: main}",
       "namespaces/default/networkpolicies.networking.k8s.io/main/hits"},
      {"{apiVersion: v1, kind: Namespace, name: shop}", "namespaces/shop/metrics/hits"},
      {"{apiVersion: v1, kind: Node, name: n1}", "nodes/n1/hits"},
  };
  metrics_->answer = [](const std::string& path) {
    return path.find("/custom.metrics.k8s.io/") != std::string::npos
               ? R"({"items":[{"value":"90"}]})"
               : "";
  };
  for (const Case& c : cases) {
    cluster_.Create(PyTorch(StrCat(
        "minReplicas: 1, maxReplicas: 8, metrics: [{type: Object, object: {describedObject: ",
        c.object, ", metric: {name: hits, selector: {matchLabels: {verb: GET}}}, target: ",
        "{type: Value, value: 60}}}]")));
    // Half more than the target, however many share it.
    ASSERT_TRUE(cluster_.Until([&] { return Workers() == 3; })) << c.object << Workers();
    EXPECT_EQ(metrics_->asked, StrCat("/apis/custom.metrics.k8s.io/v1beta1/", c.path,
                                      "?metricLabelSelector=verb%3DGET"));
    ASSERT_TRUE(cluster_.Delete(kPyTorchJobs, "default/job").ok());
    ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
  }
}

TEST_F(TargetAutoscalerTest, WhatCanNotBeReadNamesTheField) {
  struct Case {
    const char* policy;
    const char* says;
  };
  const Case cases[] = {
      {"maxReplicas: 4, metrics: [{resource: {name: cpu}}]",
       "spec.elasticPolicy.metrics[0].type: Required value"},
      {"maxReplicas: 4, metrics: [{type: Objects}]",
       "spec.elasticPolicy.metrics[0].type: Unsupported value: \"Objects\": supported values: "
       "\"Resource\", \"ContainerResource\", \"Pods\", \"Object\", \"External\""},
      {"maxReplicas: 4, metrics: [{type: Object}]",
       "spec.elasticPolicy.metrics[0].object: Required value"},
      {"maxReplicas: 4, metrics: [{type: Object, object: {metric: {name: rate}}}]",
       "spec.elasticPolicy.metrics[0].object.describedObject: Required value"},
      {"maxReplicas: 4, metrics: [{type: Object, object: {describedObject: {kind: Service}}}]",
       "spec.elasticPolicy.metrics[0].object.describedObject.name: Required value"},
      {"maxReplicas: 4, metrics: [{type: Resource, resource: {name: gpu}}]",
       "spec.elasticPolicy.metrics[0].resource.name: Unsupported value: \"gpu\": supported values: "
       "\"cpu\", \"memory\""},
      {"maxReplicas: 4, metrics: [{type: Resource, resource: {name: cpu, target: {type: "
       "Utilization}}}]",
       "spec.elasticPolicy.metrics[0].resource.target.averageUtilization: Required value"},
      {"maxReplicas: 4, metrics: [{type: Pods, pods: {metric: {name: a}, target: {type: "
       "AverageValue, averageValue: lots}}}]",
       "spec.elasticPolicy.metrics[0].pods.target.averageValue: Invalid value: \"lots\": must be a "
       "quantity"},
      {"metrics: [{type: External, external: {metric: {name: a}, target: {type: Value, value: "
       "1}}}]",
       "spec.elasticPolicy.maxReplicas: Required value"},
  };
  for (const Case& one : cases) {
    auto parsed = json::ParseYaml(PyTorch(one.policy));
    ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
    auto role = PyTorchTargetRole(parsed->front());
    ASSERT_FALSE(role.ok()) << one.policy;
    EXPECT_EQ(role.status().message(), one.says);
  }
  cluster_.Create(PyTorch(cases[1].policy));
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Events("InvalidAutoscaling") == 1; }));
  EXPECT_EQ(cluster_.EventMessage("InvalidAutoscaling"), cases[1].says);
  EXPECT_TRUE(cluster_.Condition(kPyTorchJobs, "default/job", "Running")) << "it trains unscaled";
}

}  // namespace
}  // namespace swell::autoscaling
