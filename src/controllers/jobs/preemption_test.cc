// Who is taken away, what becomes of the job, and what people are told.
#include <gtest/gtest.h>

#include "api/meta.h"
#include "base/strings.h"
#include "controllers/cluster_test_util.h"
#include "controllers/pod_facts.h"

namespace swell::controllers {
namespace {

using client::resources::kPodGroups;
using client::resources::kPods;
using client::resources::kPyTorchJobs;

constexpr std::string_view kClasses = R"(
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: critical}
value: 1100000
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: medium}
value: 1000000
)";

// The Arena walkthrough's cluster: three nodes of four GPUs.
class PreemptionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* node : {"node-a", "node-b", "node-c"}) cluster_.AddNode(node, 4);
    cluster_.StartManager();
    cluster_.Create(kClasses);
  }
  bool Is(const std::string& job, std::string_view type) {
    return cluster_.Condition(kPyTorchJobs, "default/" + job, type);
  }
  void FillWithMedium(const std::string& on_preemption) {
    cluster_.Create(PyTorchYaml{
        .name = "medium",
        .workers = 2,
        .gpus = 4,
        .priority = "medium",
        .annotations = on_preemption.empty() ? "" : "swell.dev/on-preemption: " + on_preemption}
                        .Text());
    ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 3; }));
    cluster_.Run(20 * kSecond);
  }
  void SubmitCritical() {
    cluster_.Create(
        PyTorchYaml{.name = "critical", .workers = 0, .gpus = 1, .priority = "critical"}.Text());
  }
  TestCluster cluster_;
};

// Walkthrough 1: the medium job FAILED, one instance gone, two listed as FAILED, the event says
// why.
TEST_F(PreemptionTest, FailTellsTheArenaStory) {
  FillWithMedium("Fail");
  SubmitCritical();
  ASSERT_TRUE(cluster_.Until([&] { return Is("critical", "Running"); }));
  ASSERT_TRUE(cluster_.Until([&] { return Is("medium", "Failed"); }));
  EXPECT_EQ(cluster_.Reason(kPyTorchJobs, "default/medium", "Failed"), "Preempted");
  cluster_.Run(30 * kSecond);
  int failed = 0;
  std::string victim;
  for (const char* pod : {"medium-master-0", "medium-worker-0", "medium-worker-1"}) {
    std::string phase = cluster_.PodPhase(StrCat("default/", pod));
    if (phase == "Failed") ++failed;
    if (phase.empty()) victim = pod;
  }
  EXPECT_EQ(failed, 2);
  ASSERT_FALSE(victim.empty());
  std::string message = cluster_.EventMessage("Preempted", victim);
  EXPECT_TRUE(message.starts_with("Preempted")) << message;
  EXPECT_NE(message.find("default/critical-master-0"), std::string::npos) << message;
  EXPECT_EQ(cluster_.Pods("Running"), 1);
  EXPECT_EQ(cluster_.Pods(""), 3);
}

TEST_F(PreemptionTest, RequeueStopsTheGangAndBringsItBack) {
  FillWithMedium("");
  SubmitCritical();
  ASSERT_TRUE(cluster_.Until([&] { return Is("critical", "Running"); }));
  ASSERT_TRUE(
      cluster_.Until([&] { return Is("medium", "Preempted") && cluster_.Pods("Pending") == 3; }));
  EXPECT_FALSE(Is("medium", "Failed"));
  EXPECT_FALSE(Is("medium", "Running"));
  json::SharedValue group = cluster_.Get(kPodGroups, "default/medium");
  EXPECT_EQ(json::GetString(*group, {"status", "phase"}), "Preempted");
  EXPECT_EQ(json::GetInt(*group, {"status", "preemptions"}), 1);
  EXPECT_EQ(json::GetString(*group, {"status", "lastPreemption", "by"}),
            "default/critical-master-0");
  EXPECT_EQ(json::GetString(*group, {"status", "lastPreemption", "rule"}), "preempt");
  EXPECT_GE(cluster_.Events("Preempted", "medium"), 1);

  cluster_.agents->Exit("default/critical-master-0", 0);
  ASSERT_TRUE(cluster_.Until([&] { return Is("medium", "Running"); }));
  EXPECT_FALSE(Is("medium", "Preempted"));
  EXPECT_EQ(cluster_.Reason(kPyTorchJobs, "default/medium", "Preempted"), "Resumed");
  EXPECT_EQ(cluster_.Events("Resumed", "medium"), 1);
  EXPECT_EQ(cluster_.Int(kPyTorchJobs, "default/medium", {"status", "preemptions"}), 1);
  // A preemption is not held against the job.
  EXPECT_LE(cluster_.Int(kPyTorchJobs, "default/medium", {"status", "restarts"}), 0);
}

// Peers crash when a member goes; that is the preemption's doing, not theirs.
TEST_F(PreemptionTest, PeersFailingInItsWakeDoNotCount) {
  FillWithMedium("");
  cluster_.agents->stop_after = 10 * kSecond;
  SubmitCritical();
  ASSERT_TRUE(cluster_.Until([&] { return Is("medium", "Preempted"); }));
  for (const char* pod : {"default/medium-master-0", "default/medium-worker-0"}) {
    if (cluster_.PodPhase(pod) == "Running") cluster_.agents->Exit(pod, 1);
  }
  ASSERT_TRUE(cluster_.Until([&] { return Is("critical", "Running"); }));
  cluster_.agents->Exit("default/critical-master-0", 0);
  EXPECT_TRUE(cluster_.Until([&] { return Is("medium", "Running"); }));
  EXPECT_FALSE(Is("medium", "Failed"));
}

TEST_F(PreemptionTest, SecondPreemptionIsToldAgain) {
  FillWithMedium("");
  for (int round = 1; round <= 2; ++round) {
    std::string name = StrCat("critical-", round);
    cluster_.Create(
        PyTorchYaml{.name = name, .workers = 0, .gpus = 1, .priority = "critical"}.Text());
    ASSERT_TRUE(cluster_.Until([&] { return Is(name, "Running"); }));
    ASSERT_TRUE(cluster_.Until([&] { return Is("medium", "Preempted"); }));
    EXPECT_EQ(cluster_.Int(kPyTorchJobs, "default/medium", {"status", "preemptions"}), round);
    cluster_.agents->Exit(StrCat("default/", name, "-master-0"), 0);
    ASSERT_TRUE(cluster_.Until([&] { return Is("medium", "Running"); }));
    cluster_.Run(5 * kSecond);
  }
  EXPECT_EQ(cluster_.Int(kPodGroups, "default/medium", {"status", "preemptions"}), 2);
}

// The controller is away while it happens, and finds only what is left.
TEST_F(PreemptionTest, RestartInTheMiddleOfAPreemption) {
  FillWithMedium("");
  cluster_.agents->stop_after = 5 * kSecond;
  SubmitCritical();
  ASSERT_TRUE(cluster_.Until([&] {
    for (const json::SharedValue& pod : cluster_.List(kPods)) {
      if (api::IsDeleting(*pod)) return true;
    }
    return false;
  }));
  cluster_.StopManager();
  cluster_.Run(20 * kSecond);
  cluster_.StartManager();
  ASSERT_TRUE(cluster_.Until([&] { return Is("critical", "Running"); }));
  EXPECT_FALSE(Is("medium", "Failed"));
  cluster_.agents->Exit("default/critical-master-0", 0);
  EXPECT_TRUE(cluster_.Until([&] { return Is("medium", "Running"); }));
}

// A server whose store went away: writes of one kind wait in it, and are made when it is back,
// although who asked was told that they are lost. Or one that refuses them.
class SlowWrites final : public api::RestHandler {
 public:
  explicit SlowWrites(std::shared_ptr<api::RestHandler> server) : server_(std::move(server)) {}

  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    if (!slow || request.method != method || !request.path.ends_with(kind)) {
      return server_->Handle(std::move(request), std::move(sink));
    }
    api::RestResponse lost;
    lost.status = refuses ? 429 : 503;
    sink->OnResponse(std::move(lost));
    if (!refuses) waiting.push_back(std::move(request));
    return nullptr;
  }
  void MakeThem() {
    slow = false;
    for (api::RestRequest& request : std::exchange(waiting, {})) {
      server_->Handle(std::move(request), std::make_shared<Nobody>());
    }
  }

  bool slow = false;
  bool refuses = false;  // what is slow
  std::string method = "POST";
  std::string kind = "/binding";
  std::vector<api::RestRequest> waiting;

 private:
  class Nobody final : public api::RestSink {
   public:
    void OnResponse(api::RestResponse) override {}
    void OnStreamStart(int, std::string) override {}
    bool OnChunk(const api::Chunk&) override { return false; }
    void OnStreamEnd(const Status&) override {}
  };
  std::shared_ptr<api::RestHandler> server_;
};

class LostWriteTest : public PreemptionTest {
 protected:
  void SetUp() override {
    writes_ = std::make_shared<SlowWrites>(cluster_.server);
    cluster_.between = writes_;
    PreemptionTest::SetUp();
  }
  // What two pods hold at once.
  std::string Twice() {
    std::map<std::string, std::string> holders;
    for (const json::SharedValue& pod : cluster_.List(kPods)) {
      std::string_view node = json::GetString(*pod, {"spec", "nodeName"});
      if (HasEnded(*pod) || node.empty()) continue;
      for (std::string_view device : Split(api::Annotation(*pod, keys::kGpuDevices), ',')) {
        std::string& holder = holders[StrCat(node, "/", device)];
        if (!holder.empty()) return StrCat(holder, " and ", api::Name(*pod), " on ", node);
        holder = api::Name(*pod);
      }
    }
    return "";
  }
  std::shared_ptr<SlowWrites> writes_;
};

TEST_F(LostWriteTest, ABindingThatIsMadeLateKeepsItsPlace) {
  writes_->slow = true;
  cluster_.Create(
      PyTorchYaml{.name = "medium", .workers = 2, .gpus = 4, .priority = "medium"}.Text());
  ASSERT_TRUE(cluster_.Until([&] { return writes_->waiting.size() == 3; }));
  SubmitCritical();
  cluster_.Run(20 * kSecond);
  // Who is about to be bound is not taken away before it is known whether it was.
  EXPECT_EQ(cluster_.Pods(""), 4);
  writes_->MakeThem();
  for (int look = 0; look < 200; ++look) {
    cluster_.Run(std::chrono::milliseconds(100));
    ASSERT_EQ(Twice(), "") << look;
  }
  EXPECT_TRUE(Is("critical", "Running"));
}

TEST_F(LostWriteTest, PodsThatAreThereBeforeTheirGroupWaitForIt) {
  writes_->kind = "/podgroups";
  writes_->slow = true;
  cluster_.Create(
      PyTorchYaml{.name = "medium", .workers = 2, .gpus = 4, .priority = "medium"}.Text());
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 3; }));
  cluster_.Run(5 * kSecond);
  for (const json::SharedValue& pod : cluster_.List(kPods)) {
    EXPECT_EQ(json::GetString(*pod, {"spec", "nodeName"}), "") << api::Name(*pod);
  }
  writes_->MakeThem();
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 3; }));
}

// kube-apiserver 1.20 does not look at a binding's uid.
TEST_F(LostWriteTest, ABindingThatHitsTheNextPodOfTheNameTakesNoPlaceTwice) {
  auto create = [&](const std::string& name) {
    cluster_.Create("{apiVersion: v1, kind: Pod, metadata: {name: " + name +
                    "}, spec: {schedulerName: swell, containers: "
                    "[{name: c, image: x, resources: {limits: {nvidia.com/gpu: 4}}}]}}");
  };
  for (const char* name : {"a", "b"}) create(name);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 2; }));
  writes_->slow = true;
  create("one");
  ASSERT_TRUE(cluster_.Until([&] { return writes_->waiting.size() == 1; }));
  ASSERT_TRUE(cluster_.Delete(kPods, "default/one", {.grace_seconds = 0}).ok());
  create("two");
  create("one");
  cluster_.Run(5 * kSecond);
  EXPECT_EQ(writes_->waiting.size(), 1u);
  json::Value binding = *json::Parse(writes_->waiting[0].body);
  json::Remove(binding, {"metadata", "uid"});
  writes_->waiting[0].body = json::Print(binding);
  writes_->MakeThem();
  for (int look = 0; look < 600; ++look) {
    cluster_.Run(std::chrono::milliseconds(100));
    ASSERT_EQ(Twice(), "") << look;
  }
  EXPECT_EQ(cluster_.PodPhase("default/one"), "Running");
  EXPECT_EQ(cluster_.PodPhase("default/two"), "Pending");
}

TEST_F(LostWriteTest, AMarkThatIsMadeLateIsNotOfTheNextPodOfTheName) {
  FillWithMedium("");
  writes_->method = "PATCH";
  writes_->kind = "/pods/medium-master-0/status";
  writes_->slow = true;
  SubmitCritical();
  ASSERT_TRUE(cluster_.Until([&] { return !writes_->waiting.empty(); }));
  auto uid = [&] {
    const json::SharedValue pod = cluster_.Get(kPods, "default/medium-master-0");
    return pod ? std::string(api::Uid(*pod)) : "";
  };
  const std::string victim = uid();
  ASSERT_TRUE(cluster_.Delete(kPods, "default/medium-master-0", {.grace_seconds = 0}).ok());
  ASSERT_TRUE(cluster_.Until([&] { return !uid().empty() && uid() != victim; }));
  writes_->MakeThem();
  EXPECT_EQ(api::Annotation(*cluster_.Get(kPods, "default/medium-master-0"), keys::kPreemptedBy),
            "");
}

TEST_F(LostWriteTest, ABindingThatIsLostForGoodIsDecidedAgain) {
  writes_->slow = true;
  cluster_.Create(
      PyTorchYaml{.name = "medium", .workers = 2, .gpus = 4, .priority = "medium"}.Text());
  ASSERT_TRUE(cluster_.Until([&] { return writes_->waiting.size() == 3; }));
  SubmitCritical();
  writes_->waiting.clear();
  writes_->slow = false;
  cluster_.Run(30 * kSecond);
  EXPECT_EQ(cluster_.Pods("Running"), 0);
  EXPECT_TRUE(cluster_.Until([&] { return Is("critical", "Running"); }));
  EXPECT_EQ(Twice(), "");
}

// As by the gate of a replica that leads no more: at once, and as long as it takes. A cycle that
// left something to do is no reason to ask without a pause.
TEST(RefusedWriteTest, WhatIsRefusedAtOnceIsDecidedAgainLater) {
  TestCluster cluster;
  const auto writes = std::make_shared<SlowWrites>(cluster.server);
  cluster.between = writes;
  for (const char* node : {"node-a", "node-b"}) cluster.AddNode(node, 8);
  ManagerOptions options;
  options.scheduler.binds_per_cycle_max = 1;
  cluster.StartManager(options);
  cluster.Run(kSecond);
  writes->slow = writes->refuses = true;
  for (int i = 0; i < 16; ++i) {
    cluster.Create(StrCat("{apiVersion: v1, kind: Pod, metadata: {name: p", i,
                          "}, spec: {schedulerName: swell, containers: "
                          "[{name: c, image: x, resources: {limits: {nvidia.com/gpu: 1}}}]}}"));
  }
  const int64_t before = cluster.manager->scheduler().stats().refused;
  cluster.Run(60 * kSecond);
  const int64_t refused = cluster.manager->scheduler().stats().refused - before;
  EXPECT_GT(refused, 5);
  EXPECT_LT(refused, 200);
  EXPECT_EQ(cluster.Pods("Running"), 0);
  writes->slow = false;
  EXPECT_TRUE(cluster.Until([&] { return cluster.Pods("Running") == 16; }));
}

// New pods that crash on their own after a preemption are failures like any other.
TEST_F(PreemptionTest, FailureAfterTheReturnCounts) {
  FillWithMedium("");
  SubmitCritical();
  ASSERT_TRUE(cluster_.Until([&] { return Is("critical", "Running"); }));
  cluster_.Run(10 * kSecond);
  cluster_.agents->Exit("default/critical-master-0", 0);
  ASSERT_TRUE(
      cluster_.Until([&] { return cluster_.PodPhase("default/medium-worker-0") == "Running"; }));
  cluster_.agents->Exit("default/medium-worker-0", 1);
  EXPECT_TRUE(cluster_.Until([&] { return Is("medium", "Failed"); }));
  EXPECT_EQ(cluster_.Reason(kPyTorchJobs, "default/medium", "Failed"), "PyTorchJobFailed");
}

}  // namespace
}  // namespace swell::controllers
