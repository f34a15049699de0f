// Pods that become gangs, and what their groups say.
#include "scheduling/pod_group.h"

#include <gtest/gtest.h>

#include "manager/testing/one_node_fixture.h"

namespace swell::scheduling {
namespace {

using client::resources::kPodGroups;
using client::resources::kPods;
using manager::kSecond;
using manager::OneNodeTest;
using manager::PyTorchYaml;
using PodGroupTest = OneNodeTest;

// Counts what is written to the status of PodGroups, and may tell late what became of them.
class CountingServer final : public api::RestHandler {
 public:
  CountingServer(std::shared_ptr<api::RestHandler> server, Executor& executor)
      : server_(std::move(server)), executor_(executor) {}
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    const bool counts = request.method == "PATCH" && request.path.ends_with("/status") &&
                        request.path.find("/podgroups/") != std::string::npos;
    if (counts) ++writes;
    const bool watch = request.query.find("watch=") != std::string::npos;
    if (watch && request.path.ends_with("/podgroups")) {
      sink = std::make_shared<LateSink>(*this, std::move(sink));
    }
    return server_->Handle(std::move(request), std::move(sink));
  }
  api::HandlerCapabilities capabilities() override { return server_->capabilities(); }

  int writes = 0;
  Duration late{0};

 private:
  class LateSink final : public api::RestSink {
   public:
    LateSink(CountingServer& server, std::shared_ptr<api::RestSink> to)
        : server_(server), to_(std::move(to)) {}
    void OnResponse(api::RestResponse response) override { to_->OnResponse(std::move(response)); }
    void OnStreamStart(int status, std::string type) override {
      to_->OnStreamStart(status, std::move(type));
    }
    bool OnChunk(const api::Chunk& chunk) override {
      server_.executor_.After(server_.late, [to = to_, chunk] { to->OnChunk(chunk); });
      return true;
    }
    void OnStreamEnd(const Status& why) override {
      server_.executor_.After(server_.late, [to = to_, why] { to->OnStreamEnd(why); });
    }

   private:
    CountingServer& server_;
    std::shared_ptr<api::RestSink> to_;
  };

  std::shared_ptr<api::RestHandler> server_;
  Executor& executor_;
};

class GangWritesTest : public OneNodeTest {
 protected:
  void SetUp() override {
    counting_ = std::make_shared<CountingServer>(cluster_.server, cluster_.sim);
    cluster_.between = counting_;
    OneNodeTest::SetUp();
  }
  void MakeGroup(int members) {
    cluster_.Create(
        StrCat("apiVersion: swell.dev/v1\nkind: PodGroup\n"
               "metadata: {name: gang, namespace: default}\n"
               "spec: {podSets: [{name: default, minMember: ",
               members, "}]}\n"));
  }
  std::string Phase() { return Status("phase"); }
  std::string Message() { return Status("message"); }
  std::shared_ptr<CountingServer> counting_;

 private:
  std::string Status(std::string_view field) {
    return std::string(
        json::GetString(*cluster_.Get(kPodGroups, "default/gang"), {"status", field}));
  }
};

TEST_F(GangWritesTest, AGangThatStartsAtOnceIsWorthOneWrite) {
  MakeGroup(8);
  cluster_.Run(20 * kSecond);
  EXPECT_EQ(counting_->writes, 0);
  for (int i = 0; i < 8; ++i) {
    Pod(StrCat("p", i), "swell.dev/pod-group: gang");
    cluster_.Run(std::chrono::milliseconds(100));
  }
  ASSERT_TRUE(cluster_.Until([&] { return Phase() == "Running"; }));
  cluster_.Run(10 * kSecond);
  EXPECT_EQ(cluster_.Int(kPodGroups, "default/gang", {"status", "running"}), 8);
  EXPECT_EQ(cluster_.Int(kPodGroups, "default/gang", {"status", "total"}), 8);
  EXPECT_EQ(counting_->writes, 1);
}

TEST_F(GangWritesTest, AGangWhosePodsStartSlowlyIsWorthTwoWrites) {
  MakeGroup(4);
  cluster_.agents->start_after = 100 * kSecond;
  for (int i = 0; i < 4; ++i) Pod(StrCat("p", i), "swell.dev/pod-group: gang");
  cluster_.Run(4 * kSecond);
  EXPECT_EQ(Phase(), "Scheduled");
  EXPECT_EQ(counting_->writes, 1);
  for (int i = 0; i < 4; ++i) {
    const std::string running = "status: {phase: Running}";
    ASSERT_TRUE(cluster_.Patch(kPods, StrCat("default/p", i), running, "status").ok());
    cluster_.Run(2 * kSecond);
  }
  EXPECT_EQ(Phase(), "Running");
  EXPECT_EQ(counting_->writes, 2);
}

// Neither a busy server nor a slow node causes a second write.
TEST_F(GangWritesTest, AGangWhosePodsRunTwoSecondsLaterIsWorthOneWrite) {
  MakeGroup(4);
  cluster_.agents->start_after = 2 * kSecond;
  for (int i = 0; i < 4; ++i) Pod(StrCat("p", i), "swell.dev/pod-group: gang");
  ASSERT_TRUE(cluster_.Until([&] { return Phase() == "Running"; }));
  cluster_.Run(10 * kSecond);
  EXPECT_EQ(counting_->writes, 1);
}

TEST_F(GangWritesTest, WhatTheWatchDoesNotShowYetIsNotWrittenAgain) {
  MakeGroup(2);
  cluster_.Run(kSecond);
  counting_->late = 3 * kSecond;
  Pod("a", "swell.dev/pod-group: gang");
  Pod("b", "swell.dev/pod-group: gang");
  ASSERT_TRUE(UntilRunning("a"));
  for (int i = 0; i < 20; ++i) {
    const std::string mark = StrCat("metadata: {annotations: {look: '", i, "'}}");
    ASSERT_TRUE(cluster_.Patch(kPods, "default/a", mark).ok());
    cluster_.Run(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(counting_->writes, 1);
  cluster_.agents->Exit("default/a", 0);
  cluster_.agents->Exit("default/b", 0);
  EXPECT_TRUE(cluster_.Until([&] { return Phase() == "Succeeded"; }));
}

TEST_F(GangWritesTest, AGangThatWaitsSaysWhyAndHowMuchOfItIsThereInOneWrite) {
  MakeGroup(2);
  Pod("a", "swell.dev/pod-group: gang", 4);
  Pod("b", "swell.dev/pod-group: gang", 4);
  cluster_.Run(kSecond);
  EXPECT_EQ(Phase(), "Pending");
  EXPECT_NE(Message(), "");
  EXPECT_EQ(cluster_.Int(kPodGroups, "default/gang", {"status", "total"}), 2);
  EXPECT_EQ(counting_->writes, 1);
  cluster_.AddNode("node-b", 4);
  ASSERT_TRUE(cluster_.Until([&] { return Phase() == "Running"; }));
  cluster_.Run(10 * kSecond);
  EXPECT_EQ(Message(), "");
  EXPECT_EQ(counting_->writes, 2);
}

TEST_F(GangWritesTest, AMissingMemberIsNamedWithinASecond) {
  MakeGroup(2);
  Pod("a", "swell.dev/pod-group: gang");
  cluster_.Run(2 * kSecond);
  EXPECT_EQ(Message(),
            "pod set default has 1 of the 2 pods it needs to start. Would start with: 1 "
            "more pod in the set");
}

TEST_F(GangWritesTest, AGroupWithoutPodsIsPendingAfterAMinute) {
  MakeGroup(2);
  cluster_.Run(50 * kSecond);
  EXPECT_EQ(counting_->writes, 0);
  cluster_.Run(20 * kSecond);
  EXPECT_EQ(Phase(), "Pending");
  EXPECT_EQ(counting_->writes, 1);
}

// Counts that change and change are not put off for ever.
TEST_F(GangWritesTest, CountsOfAGangThatStartsSlowlyFollow) {
  MakeGroup(20);
  cluster_.agents->start_after = 30 * kSecond;
  for (int i = 0; i < 20; ++i) {
    Pod(StrCat("p", i), "swell.dev/pod-group: gang");
    cluster_.Run(std::chrono::milliseconds(500));
  }
  cluster_.Run(4 * kSecond);
  EXPECT_EQ(cluster_.Int(kPodGroups, "default/gang", {"status", "scheduled"}), 20);
  EXPECT_EQ(Phase(), "Scheduled");
  EXPECT_LE(counting_->writes, 6);
}

TEST_F(PodGroupTest, LabelledPodsBecomeAGang) {
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

TEST_F(PodGroupTest, AGroupHasSucceededStillWhenItsPodsAreCleanedUp) {
  cluster_.Create(PyTorchYaml{.workers = 0, .run_policy = "cleanPodPolicy: All"}.Text());
  ASSERT_TRUE(UntilRunning("job-master-0"));
  cluster_.agents->Exit("default/job-master-0", 0);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
  cluster_.Run(5 * kSecond);
  EXPECT_EQ(json::GetString(*cluster_.Get(kPodGroups, "default/job"), {"status", "phase"}),
            "Succeeded");
}

TEST_F(PodGroupTest, AGroupHasFailedStillWhenItsPodsAreCleanedUp) {
  cluster_.Create(
      PyTorchYaml{.workers = 0, .run_policy = "cleanPodPolicy: All, backoffLimit: 0"}.Text());
  ASSERT_TRUE(UntilRunning("job-master-0"));
  cluster_.agents->Exit("default/job-master-0", 1);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
  cluster_.Run(5 * kSecond);
  EXPECT_EQ(json::GetString(*cluster_.Get(kPodGroups, "default/job"), {"status", "phase"}),
            "Failed");
}

TEST(PodGroupStatusTest, HowPodsEndThatWereToldToStopSaysNothingOfTheRun) {
  const auto pod = [](std::string_view phase, bool deleted) {
    json::Value made = json::Object{{"status", json::Object{{"phase", phase}}}};
    json::Set(made, {"spec", "nodeName"}, "node-a");
    if (deleted) json::Set(made, {"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z");
    return std::make_shared<const json::Value>(std::move(made));
  };
  const auto phase = [](std::string_view before, const std::vector<json::SharedValue>& pods) {
    const json::Value group = json::Object{{"status", json::Object{{"phase", before}}}};
    const json::Object status = PodGroupStatus(group, PodGroupCounts(pods), WallTime{});
    return std::string(json::GetString(status, {"phase"}));
  };
  EXPECT_EQ(phase("Running", {pod("Succeeded", true), pod("Running", true)}), "Running");
  EXPECT_EQ(phase("Running", {pod("Succeeded", true), pod("Succeeded", true)}), "Pending");
  EXPECT_EQ(phase("Running", {pod("Failed", true), pod("Succeeded", true)}), "Pending");
  EXPECT_EQ(phase("Running", {pod("Failed", false), pod("Succeeded", true)}), "Failed");
  EXPECT_EQ(phase("Running", {pod("Succeeded", false), pod("Failed", true)}), "Succeeded");
  EXPECT_EQ(phase("Succeeded", {pod("Succeeded", true), pod("Succeeded", true)}), "Succeeded");
}

}  // namespace
}  // namespace swell::scheduling
