#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "kube/api/meta/meta.h"
#include "kube/node/agent_fixture.h"

namespace swell::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kOnce = R"({"restartPolicy":"Never","containers":[
    {"name":"main","image":"x"}]})";

// A member of a job whose init container fetches its code.
constexpr std::string_view kMember = R"({"restartPolicy":"OnFailure","initContainers":[
    {"name":"code","image":"x"}],"containers":[{"name":"main","image":"x"}]})";
constexpr std::string_view kOfJob = R"({"ownerReferences":[{"apiVersion":"kubeflow.org/v1",
    "kind":"PyTorchJob","name":"j","uid":"u","controller":true}]})";

class ShutdownTest : public AgentTest {
 protected:
  // The state of the pod's one init container, as the API has it.
  json::Value InitState(const std::string& name) {
    const json::Value pod = Pod(name);
    const json::Array& list = json::GetArray(pod, {"status", "initContainerStatuses"});
    const json::Value* state = list.size() == 1 ? json::Find(list[0], {"state"}) : nullptr;
    return state == nullptr ? json::Value() : *state;
  }
  // As the API server: an init container that has succeeded stays so.
  void RefuseInitThatWaits() {
    api_->fail = [](const api::RestRequest& request) {
      return request.method == "PATCH" && request.body.find("PodInitializing") != std::string::npos;
    };
  }
  void StopPods(Duration limit) {
    agent_->StopPods(limit, [this] { ++stopped_; });
  }

  int stopped_ = 0;
};

TEST_F(ShutdownTest, PodsAreToldAndTheApiHearsOfItFromTheNextAgent) {
  const std::string uid =
      Create("a", std::string(kOnce), R"({"annotations":{"swell.dev/stop-seconds":"2"}})");
  StopPods(seconds(30));
  sim_.Advance(seconds(1));
  EXPECT_EQ(json::GetString(Parse(runtime_.NoticeOfForTest(uid)), {"reason"}), "NodeShutdown");
  EXPECT_EQ(runtime_.running(), 1u);
  EXPECT_EQ(stopped_, 0);
  sim_.Advance(milliseconds(1100));
  EXPECT_EQ(stopped_, 1);
  EXPECT_EQ(Phase("a"), "Running");
  EXPECT_EQ(runtime_.SandboxOfForTest(uid), nullptr);
  agent_.reset();
  Boot();
  sim_.Advance(milliseconds(50));
  EXPECT_EQ(Phase("a"), "Failed");
  EXPECT_EQ(json::GetString(Pod("a"), {"status", "reason"}), "NodeShutdown");
  const json::Value pod = Pod("a");
  const auto target = api::FindCondition(pod, "DisruptionTarget");
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->reason, "TerminationByKubelet");
}

TEST_F(ShutdownTest, WhoDoesNotEndIsKilledAtTheLimit) {
  Create("a", std::string(kOnce), R"({"annotations":{"swell.dev/stop-seconds":"1000"}})");
  StopPods(seconds(10));
  sim_.Advance(milliseconds(9900));
  EXPECT_EQ(stopped_, 0);
  sim_.Advance(milliseconds(200));
  EXPECT_EQ(stopped_, 1);
  EXPECT_EQ(runtime_.running(), 0u);
}

TEST_F(ShutdownTest, NoPodStartsMeanwhile) {
  StopPods(seconds(10));
  EXPECT_EQ(stopped_, 1);
  Create("a", std::string(kOnce));
  sim_.Advance(seconds(1));
  EXPECT_EQ(runtime_.running(), 0u);
}

// As after any restart of a node.
TEST_F(ShutdownTest, APodOfItsOwnThatRestartsComesBackInPlace) {
  Create("a", R"({"containers":[{"name":"main","image":"x"}]})");
  StopPods(seconds(30));
  sim_.Advance(seconds(31));
  agent_.reset();
  Boot();
  sim_.Advance(seconds(1));
  EXPECT_EQ(State("a"), "running");
  EXPECT_EQ(json::GetInt(Status("a"), {"restartCount"}), 1);
}

// A container's own policy stands before the pod's.
TEST_F(ShutdownTest, TheContainersOwnPoliciesSayWhatComesBack) {
  const auto create = [this](const std::string& name, std::string_view pod_policy,
                             std::string_view of_main, std::string_view of_other) {
    Create(name, StrCat(R"({"restartPolicy":")", pod_policy,
                        R"(","containers":[{"name":"main","image":"x",)", of_main,
                        R"(},{"name":"other","image":"x",)", of_other, "}]}"));
  };
  const std::string always = R"("restartPolicy":"Always")";
  const std::string never = R"("restartPolicy":"Never")";
  create("comes-back", "Never", always, never);
  create("ends", "Always", never, never);
  create("rule", "Never", never,
         R"("restartPolicy":"Never","restartPolicyRules":[{"action":"Restart","exitCodes":)"
         R"({"operator":"In","values":[137]}}])");
  sim_.Advance(seconds(1));
  StopPods(seconds(30));
  sim_.Advance(seconds(31));
  agent_.reset();
  Boot();
  sim_.Advance(seconds(1));
  EXPECT_EQ(State("comes-back"), "running");
  EXPECT_EQ(State("comes-back", 1), "terminated");
  EXPECT_EQ(json::GetString(Pod("comes-back"), {"status", "reason"}), "");
  EXPECT_EQ(Phase("ends"), "Failed");
  EXPECT_EQ(json::GetString(Pod("ends"), {"status", "reason"}), "NodeShutdown");
  EXPECT_EQ(State("rule"), "terminated");
  EXPECT_EQ(State("rule", 1), "running");
}

// Its peers are gone too: the job makes all of them anew.
TEST_F(ShutdownTest, AMemberOfAJobEndsWithItsNodeWhateverItsPolicy) {
  const std::string uid =
      Create("a", R"({"containers":[{"name":"main","image":"x"}]})", std::string(kOfJob));
  LoseMachine(uid);
  EXPECT_EQ(Phase("a"), "Failed");
  EXPECT_EQ(json::GetString(Pod("a"), {"status", "reason"}), "NodeShutdown");
}

TEST_F(ShutdownTest, AnInitContainerThatSucceededStaysSoWhenItsPodEndsWithTheNode) {
  const std::string uid = Create("a", std::string(kMember), std::string(kOfJob));
  ASSERT_EQ(State("a"), "running");
  const json::Value before = InitState("a");
  ASSERT_NE(json::Find(before, {"terminated"}), nullptr);
  LoseMachine(uid);
  EXPECT_EQ(Phase("a"), "Failed");
  EXPECT_EQ(json::Print(InitState("a")), json::Print(before));
}

TEST_F(ShutdownTest, APodThatWasBeingDeletedGoesWithItsInitContainers) {
  const std::string uid = Create("a", std::string(kMember), std::string(kOfJob));
  ASSERT_EQ(State("a"), "running");
  RefuseInitThatWaits();
  agent_.reset();
  api_->Delete(kPods, "a", 30);
  LoseMachine(uid);
  EXPECT_FALSE(api_->Has(kPods, "a"));
}

// The new sandbox has nothing of what they did.
TEST_F(ShutdownTest, APodThatComesBackRunsItsInitContainersAgain) {
  const std::string uid = Create("a", std::string(kMember));
  ASSERT_EQ(State("a"), "running");
  LoseMachine(uid);
  EXPECT_EQ(State("a"), "running");
  const json::Value pod = Pod("a");
  const json::Array& init = json::GetArray(pod, {"status", "initContainerStatuses"});
  ASSERT_EQ(init.size(), 1u);
  EXPECT_EQ(json::GetInt(init[0], {"restartCount"}), 1);
  EXPECT_NE(json::Find(init[0], {"lastState", "terminated"}), nullptr);
  EXPECT_TRUE(json::GetBool(init[0], {"ready"}));
}

// The program's own end counts, if it came first.
TEST_F(ShutdownTest, WhatEndedBeforeKeepsItsEnd) {
  const std::string uid = Create("a", std::string(kOnce));
  runtime_.ExitForTest(uid, "main", 3);
  sim_.Advance(milliseconds(50));
  StopPods(seconds(30));
  EXPECT_EQ(stopped_, 1);
  agent_.reset();
  Boot();
  sim_.Advance(milliseconds(50));
  EXPECT_EQ(Phase("a"), "Failed");
  EXPECT_EQ(json::GetString(Pod("a"), {"status", "reason"}), "");
}

}  // namespace
}  // namespace swell::node
