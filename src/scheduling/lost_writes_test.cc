// Writes of the scheduler whose fate is not known, or that are refused.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "manager/testing/arena_fixture.h"

namespace swell::scheduling {
namespace {

using client::resources::kPods;
using manager::ArenaTest;
using manager::kSecond;
using manager::PyTorchYaml;
using manager::TestCluster;

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

class LostWriteTest : public ArenaTest {
 protected:
  void SetUp() override {
    writes_ = std::make_shared<SlowWrites>(cluster_.server);
    cluster_.between = writes_;
    ArenaTest::SetUp();
  }
  // What two pods hold at once.
  std::string Twice() {
    std::map<std::string, std::string> holders;
    for (const json::SharedValue& pod : cluster_.List(kPods)) {
      std::string_view node = json::GetString(*pod, {"spec", "nodeName"});
      if (api::HasEnded(*pod) || node.empty()) continue;
      for (std::string_view device : Split(api::Annotation(*pod, api::keys::kGpuDevices), ',')) {
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
  // A pod whose binding is open is not evicted before its outcome is known.
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
  EXPECT_EQ(
      api::Annotation(*cluster_.Get(kPods, "default/medium-master-0"), api::keys::kPreemptedBy),
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
// left something to do is not a reason to ask without a pause.
TEST(RefusedWriteTest, WhatIsRefusedAtOnceIsDecidedAgainLater) {
  TestCluster cluster;
  const auto writes = std::make_shared<SlowWrites>(cluster.server);
  cluster.between = writes;
  for (const char* node : {"node-a", "node-b"}) cluster.AddNode(node, 8);
  manager::ManagerOptions options;
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

}  // namespace
}  // namespace swell::scheduling
