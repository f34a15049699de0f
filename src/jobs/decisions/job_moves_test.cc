// Jobs that are held to a type of GPU.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "jobs/gpus/gpu_hold.h"
#include "kube/api/meta/gpu_type_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::jobs {
namespace {

using client::resources::kNodes;
using client::resources::kPods;
using client::resources::kTrainingJobs;
using manager::PyTorchYaml;
using manager::TestCluster;

json::Value Pod(const std::string& spec) {
  return *json::Parse(StrCat("{\"metadata\":{\"name\":\"p\"},\"spec\":", spec, "}"));
}

std::string TermsOf(const json::Value& pod) {
  return json::Print(
      json::GetArray(pod, {"spec", "affinity", "nodeAffinity",
                           "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"}));
}

TEST(GpuHold, AddsToWhatThePodRequires) {
  constexpr const char* kGpu =
      R"("containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"1"}}}])";
  constexpr const char* kHeld =
      R"({"key":"nvidia.com/gpu.product","operator":"In","values":["A100"]})";
  json::Value plain = Pod(StrCat("{", kGpu, "}"));
  HoldToGpuType(plain, "A100");
  EXPECT_EQ(TermsOf(plain), StrCat(R"([{"matchExpressions":[)", kHeld, "]}]"));
  EXPECT_EQ(api::Annotation(plain, api::keys::kHeldGpuType), "A100");
  // Any of the terms is enough for Kubernetes, so each of them has it. An empty one suits no node.
  json::Value choosy = Pod(StrCat(
      R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)",
      R"({"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"Exists"}]},{}]}}},)",
      kGpu, "}"));
  HoldToGpuType(choosy, "A100");
  EXPECT_EQ(TermsOf(choosy), StrCat(R"([{"matchExpressions":[{"key":"zone","operator":"Exists"},)",
                                    kHeld, "]},{}]"));
}

TEST(GpuHold, LeavesPodsWithoutGpusAndNonsenseAlone) {
  json::Value pod = Pod(R"({"containers":[{"name":"c"}]})");
  HoldToGpuType(pod, "A100");
  EXPECT_EQ(TermsOf(pod), "[]");
  EXPECT_EQ(api::Annotation(pod, api::keys::kHeldGpuType), "A100") << "it belongs to the job";
  HoldToGpuType(pod, "no label!");
  EXPECT_EQ(api::Annotation(pod, api::keys::kHeldGpuType), "");
}

class JobMovesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.StartManager();
    for (const char* type : {"t4", "a100"}) {
      cluster_.AddNode(type, 2);
      Patch(kNodes, type, StrCat("metadata: {labels: {nvidia.com/gpu.product: ", type, "}}"));
    }
    Patch(kNodes, "a100", "spec: {unschedulable: true}");
    cluster_.Create(
        "apiVersion: swell.dev/v1\nkind: TrainingJob\nmetadata: {name: t, namespace: default}\n"
        "spec: {roles: {master: {replicas: 1, template: {spec: {containers: [{name: c, image: x}]}}"
        "}, worker: {replicas: 2, template: {spec: {containers: [{name: c, image: x, resources: "
        "{limits: {nvidia.com/gpu: 1}}}]}}}}}\n");
    ASSERT_TRUE(WorkersOn("t4"));
    Patch(kNodes, "a100", "spec: {unschedulable: false}");
  }

  void Patch(const client::Resource& resource, const std::string& key, const std::string& yaml) {
    ASSERT_TRUE(cluster_.Patch(resource, key, yaml).ok());
  }
  void Hold(const std::string& type) {
    Patch(kTrainingJobs, "default/t",
          StrCat("metadata: {annotations: {swell.dev/held-gpu-type: ", type, "}}"));
  }
  std::string Held() {
    return std::string(
        api::Annotation(*cluster_.Get(kTrainingJobs, "default/t"), api::keys::kHeldGpuType));
  }
  bool WorkersOn(const std::string& node, Duration limit = std::chrono::seconds(60)) {
    return cluster_.Until(
        [&] {
          for (const char* name : {"default/t-worker-0", "default/t-worker-1"}) {
            const json::SharedValue pod = cluster_.Get(kPods, name);
            if (!pod || api::NodeName(*pod) != node || api::IsDeleting(*pod)) return false;
            if (api::StatusPhase(*pod) != "Running") return false;
          }
          return cluster_.Condition(kTrainingJobs, "default/t", "Running");
        },
        limit);
  }

  TestCluster cluster_;
};

TEST_F(JobMovesTest, AHoldMovesAllMembersAtOnce) {
  const std::string master = cluster_.PodUid("default/t-master-0");
  Hold("a100");
  ASSERT_TRUE(WorkersOn("a100"));
  EXPECT_NE(cluster_.PodUid("default/t-master-0"), master) << "all start together";
  EXPECT_EQ(cluster_.Reason(kTrainingJobs, "default/t", "Restarting"), "TrainingJobRunning");
  EXPECT_EQ(cluster_.Int(kTrainingJobs, "default/t", {"status", "restarts"}), 0);
  Hold("null");
  cluster_.Run(std::chrono::seconds(30));
  EXPECT_TRUE(WorkersOn("a100")) << "members that run stay where they are";
}

TEST_F(JobMovesTest, ATypeWithoutRoomIsNotWaitedFor) {
  Hold("h100");
  ASSERT_TRUE(cluster_.Until([&] { return Held().empty(); }, std::chrono::seconds(10)));
  ASSERT_TRUE(
      cluster_.Until([&] { return cluster_.Condition(kTrainingJobs, "default/t", "Running"); },
                     std::chrono::seconds(10)));
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Events("MoveGivenUp", "t") == 1; }));
}

TEST_F(JobMovesTest, AHoldEndsWithASuspension) {
  Hold("a100");
  ASSERT_TRUE(WorkersOn("a100"));
  Patch(kTrainingJobs, "default/t", "spec: {suspend: true}");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
  EXPECT_EQ(Held(), "");
  Patch(kNodes, "a100", "spec: {unschedulable: true}");
  Patch(kTrainingJobs, "default/t", "spec: {suspend: false}");
  EXPECT_TRUE(WorkersOn("t4"));
}

TEST_F(JobMovesTest, AHoldEndsWithAPreemption) {
  Hold("a100");
  ASSERT_TRUE(WorkersOn("a100"));
  Patch(kNodes, "t4", "spec: {unschedulable: true}");
  cluster_.Create(
      "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: urgent}, value: "
      "90}\n");
  cluster_.Create(
      PyTorchYaml{.name = "urgent", .workers = 1, .gpus = 1, .priority = "urgent"}.Text());
  ASSERT_TRUE(cluster_.Until([&] {
    return cluster_.Int(kTrainingJobs, "default/t", {"status", "preemptions"}) == 1;
  }));
  ASSERT_TRUE(cluster_.Until([&] {
    return Held().empty() &&
           cluster_.Condition(client::resources::kPyTorchJobs, "default/urgent", "Running");
  }));
  Patch(kNodes, "t4", "spec: {unschedulable: false}");
  EXPECT_TRUE(WorkersOn("t4"));
}

}  // namespace
}  // namespace swell::jobs
