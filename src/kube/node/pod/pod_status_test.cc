// The status that a pod's worker reports, and what a slow or faulty API makes of it.
#include <algorithm>

#include "kube/node/agent_fixture.h"

namespace swell::node {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// The sink of a client that has given its request up.
struct NullSink final : api::RestSink {
  void OnResponse(api::RestResponse) override {}
  void OnStreamStart(int, std::string) override {}
  bool OnChunk(const api::Chunk&) override { return false; }
  void OnStreamEnd(const Status&) override {}
};

TEST_F(AgentTest, ReportsBecomeAnnotations) {
  std::string uid = Create("a", R"({"containers":[{"name":"main","image":"x"}]})");
  size_t before = api_->requests.size();
  for (int step = 1; step <= 50; ++step) {
    runtime_.ReportForTest(uid, StrCat(R"({"step":)", step,
                                       R"(,"checkpointTime":"2026-01-01T00:00:01.000000Z",
                                       "epoch":2,"metrics":{"loss":0.5}})"));
  }
  runtime_.ReportForTest(uid, "not json");
  sim_.Advance(seconds(3));
  EXPECT_EQ(api::Annotation(Pod("a"), "swell.dev/step"), "50");
  EXPECT_EQ(api::Annotation(Pod("a"), "swell.dev/checkpoint-time"), "2026-01-01T00:00:01.000000Z");
  EXPECT_EQ(api::Annotation(Pod("a"), "swell.dev/epoch"), "2");
  EXPECT_LE(api_->requests.size() - before, 6u);
}

TEST_F(AgentTest, StatusIsRetriedUntilTheApiIsBack) {
  bool down = true;
  api_->fail = [&](const api::RestRequest& request) {
    return down && request.path.ends_with("/status");
  };
  Create("a", R"({"containers":[{"name":"main","image":"x"}]})");
  EXPECT_EQ(Phase("a"), "");
  down = false;
  sim_.Advance(seconds(2));
  EXPECT_EQ(Phase("a"), "Running");
}

TEST_F(AgentTest, WhatOthersSetOverItsStatusIsPutRight) {
  Create("a", R"({"containers":[{"name":"main","image":"x"}]})");
  ASSERT_TRUE(api::ConditionIsTrue(Pod("a"), "Ready"));
  json::Value pod = Pod("a");
  json::Array conditions = json::GetArray(pod, {"status", "conditions"});
  api::SetCondition(conditions, "Ready", "False", "NodeNotReady", "", sim_.Now());
  api::SetCondition(conditions, "Other", "True", "", "", sim_.Now());
  json::Set(pod, {"status", "conditions"}, json::Value(conditions));
  api_->Put(kPods, pod);
  size_t before = api_->requests.size();
  sim_.Advance(seconds(9));
  EXPECT_FALSE(api::ConditionIsTrue(Pod("a"), "Ready"));
  sim_.Advance(seconds(2));
  EXPECT_TRUE(api::ConditionIsTrue(Pod("a"), "Ready"));
  EXPECT_TRUE(api::ConditionIsTrue(Pod("a"), "Other"));
  sim_.Advance(minutes(1));
  EXPECT_EQ(std::count(api_->requests.begin() + static_cast<ptrdiff_t>(before),
                       api_->requests.end(), StrCat("PATCH ", kPods, "/a/status")),
            1);
}

// The network may deliver a request long after its sender gave it up: the pod's end stays.
TEST_F(AgentTest, AStatusThatArrivesLateTakesNothingBack) {
  std::vector<api::RestRequest> late;
  api_->fail = [&](const api::RestRequest& request) {
    if (!request.path.ends_with("/status") || request.body.find("Running") == std::string::npos) {
      return false;
    }
    late.push_back(request);
    return true;
  };
  // Told to stop, it may start again for all that its containers say.
  Create("a", R"({"restartPolicy":"OnFailure","containers":[{"name":"main","image":"x"}]})");
  json::Value pod = Pod("a");
  json::Set(pod, {"metadata", "annotations", "swell.dev/stop-requested"}, "a peer failed");
  api_->Put(kPods, pod);
  sim_.Advance(minutes(1));
  ASSERT_EQ(Phase("a"), "Failed");
  ASSERT_FALSE(late.empty());
  api_->fail = nullptr;
  for (const api::RestRequest& request : late) {
    api_->Handle(request, std::make_shared<NullSink>());
  }
  EXPECT_EQ(Phase("a"), "Failed");
  EXPECT_EQ(State("a"), "terminated");
}

// An agent's last word comes late, when the machine has lost the pod and runs it again.
TEST_F(AgentTest, APodThatIsOverForTheApiStopsAndRefusesNobody) {
  const std::string spec = R"({"restartPolicy":"OnFailure","containers":[{"name":"main",
      "image":"x","resources":{"limits":{"nvidia.com/gpu":4}}}]})";
  Create("a", spec, R"({"annotations":{"swell.dev/stop-seconds":"3"}})");
  json::Value pod = Pod("a");
  json::Set(pod, {"status", "phase"}, "Succeeded");
  api_->Put(kPods, pod);
  Create("b", spec);
  EXPECT_EQ(Phase("b"), "Pending");
  sim_.Advance(seconds(4));
  EXPECT_EQ(Phase("b"), "Running");
  EXPECT_EQ(Phase("a"), "Succeeded");
}

// Somebody else's write comes between the agent's knowledge and its own, three times.
TEST_F(AgentTest, StatusIsMadeAnewWhereThePodHasChanged) {
  int others = 0;
  api_->fail = [&](const api::RestRequest& request) {
    if (request.method != "PATCH" || !request.path.ends_with("/a/status") || others == 3) {
      return false;
    }
    json::Value pod = Pod("a");
    json::Set(pod, {"metadata", "labels", "others"}, std::to_string(++others));
    api_->Put(kPods, pod);
    return false;
  };
  const std::string uid = Create("a", R"({"containers":[{"name":"main","image":"x"}]})");
  EXPECT_EQ(others, 3);
  EXPECT_EQ(Phase("a"), "Running");
  runtime_.ReportForTest(uid, R"({"step":7})");
  sim_.Advance(seconds(1));
  EXPECT_EQ(api::Annotation(Pod("a"), "swell.dev/step"), "7");
  EXPECT_EQ(api::Label(Pod("a"), "others"), "3");
}

// A write that is not durable refuses others before anybody can read it.
TEST_F(AgentTest, AWriteThatNobodyCanReadYetIsWaitedFor) {
  const WallTime durable = sim_.Now() + std::chrono::milliseconds(50);
  size_t refused = 0;
  api_->conflict = [&](const api::RestRequest& request) {
    if (request.method != "PATCH" || !request.path.ends_with("/a/status")) return false;
    if (sim_.Now() >= durable) return false;
    ++refused;
    return true;
  };
  Create("a", R"({"containers":[{"name":"main","image":"x"}]})");
  sim_.Advance(seconds(1));
  EXPECT_EQ(Phase("a"), "Running");
  EXPECT_GT(refused, 0U);
  EXPECT_LE(refused, 20U);
}

}  // namespace
}  // namespace swell::node
