// What an agent makes of the reports of its node's checks.
#include "kube/node/health/node_health.h"

#include <gtest/gtest.h>

#include "kube/api/objects/node_health.h"
#include "kube/node/agent_fixture.h"

namespace swell::node {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// Answers with what the test sets, or not at all.
class SetReports final : public HealthSource {
 public:
  void Check(const std::string&, Done done) override {
    ++rounds;
    if (silent) return;
    done(reports);
  }
  std::vector<HealthReport> reports;
  bool silent = false;
  int rounds = 0;
};

HealthReport Disk(Verdict verdict, std::string message = "it is read-only") {
  return {.type = "DiskHealthy",
          .verdict = verdict,
          .reason = verdict == Verdict::kGood ? "CheckPassed" : "ReadOnly",
          .message = std::move(message)};
}

HealthReport BadGpu(int index, bool certain = false) {
  return {.type = std::string(api::kGpuHealthy),
          .verdict = Verdict::kBad,
          .reason = "XidError79",
          .certain = certain,
          .gpus = {{index, "it has fallen off the bus"}}};
}
const HealthReport kGpusGood{.type = "GpuHealthy", .reason = "CheckPassed", .message = "4 GPUs"};

class NodeHealthTest : public AgentTest {
 protected:
  void SetUp() override {
    source_.reports = {Disk(Verdict::kGood, "fine"), kGpusGood};
    health_source_ = &source_;
    AgentTest::SetUp();
    sim_.Advance(seconds(1));
  }
  json::Value Node() { return api_->Get("/api/v1/nodes", "node-0"); }
  // "DiskHealthy=False ReadOnly".
  std::string Condition(std::string_view type) {
    const json::Value node = Node();
    const auto found = api::FindCondition(node, type);
    return found ? StrCat(found->status, " ", found->reason) : "(none)";
  }
  std::string Gpus() {
    return std::string(json::GetString(Node(), {"status", "allocatable", "nvidia.com/gpu"}));
  }
  void Rounds(int count) {
    const int until = source_.rounds + count;
    for (int i = 0; i < 1000 && source_.rounds < until; ++i) sim_.Advance(seconds(1));
    ASSERT_EQ(source_.rounds, until);
  }
  SetReports source_;
};

TEST_F(NodeHealthTest, AConditionTurnsBadAtTheSecondBadResultAndGoodAtTheThirdGoodOne) {
  EXPECT_EQ(Condition("DiskHealthy"), "True CheckPassed");
  source_.reports[0] = Disk(Verdict::kBad);
  Rounds(1);
  EXPECT_EQ(Condition("DiskHealthy"), "True CheckPassed");
  Rounds(1);
  EXPECT_EQ(Condition("DiskHealthy"), "False ReadOnly");
  EXPECT_EQ(Condition("DiskPressure"), "True KubeletHasDiskPressure");
  EXPECT_TRUE(Saw("HealthCheckFailed"));
  source_.reports[0] = Disk(Verdict::kGood, "fine");
  Rounds(2);
  EXPECT_EQ(Condition("DiskHealthy"), "False ReadOnly");
  Rounds(1);
  EXPECT_EQ(Condition("DiskHealthy"), "True CheckPassed");
  EXPECT_EQ(Condition("DiskPressure"), "False KubeletHasNoDiskPressure");
  EXPECT_TRUE(Saw("HealthCheckPassed"));
}

TEST_F(NodeHealthTest, ResultsThatContradictWhatIsReportedAreAskedAgainSoon) {
  sim_.Advance(minutes(5));
  const int rounds = source_.rounds;
  sim_.Advance(minutes(5));
  EXPECT_EQ(source_.rounds - rounds, 10);
  source_.reports[0] = Disk(Verdict::kBad);
  Rounds(1);
  sim_.Advance(NodeHealth::kInDoubt);
  EXPECT_EQ(Condition("DiskHealthy"), "False ReadOnly");
}

TEST_F(NodeHealthTest, ACheckThatFailsNowAndThenChangesNothing) {
  for (int i = 0; i < 5; ++i) {
    source_.reports[0] = Disk(i % 2 == 0 ? Verdict::kBad : Verdict::kGood, "x");
    Rounds(1);
    EXPECT_EQ(Condition("DiskHealthy"), "True CheckPassed");
  }
  EXPECT_FALSE(Saw("HealthCheckFailed"));
}

TEST_F(NodeHealthTest, OneBadGpuIsNamedAndLeftOutAndRunningPodsStay) {
  Create("before", R"({"containers":[{"name":"main","image":"x",
      "resources":{"limits":{"nvidia.com/gpu":"1"}}}]})");
  ASSERT_EQ(Phase("before"), "Running");
  source_.reports[1] = BadGpu(0, /*certain=*/true);
  Rounds(1);
  EXPECT_EQ(Gpus(), "3");
  EXPECT_EQ(api::UnhealthyGpus(Node()), std::vector<int>{0});
  EXPECT_EQ(Condition("GpuHealthy"), "False XidError79");
  EXPECT_NE(json::Print(Node()).find("GPU 0: it has fallen off the bus"), std::string::npos);
  EXPECT_TRUE(Saw("HealthCheckFailed"));
  const auto faults = api::FaultsOf(Node());
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_FALSE(faults[0].taints);
  EXPECT_EQ(Phase("before"), "Running");
  // A scheduler that did not know yet is refused; one that says no device gets another one.
  Create("there", R"({"containers":[{"name":"main","image":"x",
      "resources":{"limits":{"nvidia.com/gpu":"1"}}}]})",
         R"({"annotations":{"swell.dev/gpu-devices":"0"}})");
  EXPECT_EQ(Phase("there"), "Failed");
  const std::string uid = Create("elsewhere", R"({"containers":[{"name":"main","image":"x",
      "resources":{"limits":{"nvidia.com/gpu":"2"}}}]})");
  EXPECT_EQ(EnvOf(uid, "NVIDIA_VISIBLE_DEVICES"), "1,2");
  source_.reports[1] = kGpusGood;
  Rounds(3);
  EXPECT_EQ(Gpus(), "4");
  EXPECT_EQ(Condition("GpuHealthy"), "True CheckPassed");
  EXPECT_TRUE(api::Annotation(Node(), api::keys::kUnhealthyGpus).empty());
}

TEST_F(NodeHealthTest, AllGpusBadMakeTheNodeBad) {
  HealthReport all = BadGpu(0, true);
  for (int i = 1; i < 4; ++i) all.gpus.push_back({i, "the driver does not answer"});
  source_.reports[1] = all;
  Rounds(1);
  EXPECT_EQ(Gpus(), "0");
  const auto faults = api::FaultsOf(Node());
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_TRUE(faults[0].taints);
}

TEST_F(NodeHealthTest, ABadGpuStaysBadAcrossARestartAndWhileItsCheckKnowsNothing) {
  source_.reports[1] = BadGpu(2, true);
  Rounds(1);
  agent_.reset();
  Boot();
  sim_.Advance(seconds(1));
  EXPECT_EQ(Gpus(), "3");
  source_.reports[1] = {.type = "GpuHealthy", .verdict = Verdict::kUnknown, .reason = "NoAnswer"};
  Rounds(5);
  EXPECT_EQ(Gpus(), "3");
  EXPECT_EQ(api::UnhealthyGpus(Node()), std::vector<int>{2});
}

// What a script says of a GPU.
HealthReport HeatOf(int index, Verdict verdict) {
  HealthReport heat{.type = "GpuHeatHealthy", .verdict = verdict, .reason = "CheckPassed"};
  if (verdict == Verdict::kUnknown) heat.reason = "CheckUnknown";
  if (verdict != Verdict::kBad) return heat;
  heat.reason = api::kGpuUnhealthyReason;
  heat.message = StrCat("gpu ", index, ": too hot");
  heat.gpus = {{index, "too hot"}};
  return heat;
}

TEST_F(NodeHealthTest, AGpuHealsWhileChecksThatDidNotBlameItKnowNothing) {
  const HealthReport broken{.type = "OtherHealthy",
                            .verdict = Verdict::kUnknown,
                            .reason = std::string(api::kCheckNotRun),
                            .message = "other is not run"};
  source_.reports = {HeatOf(1, Verdict::kBad), broken};
  Rounds(2);
  EXPECT_EQ(Gpus(), "3");
  EXPECT_EQ(Condition("GpuHealthy"), "False GpuUnhealthy");
  // The check that blamed it must know.
  source_.reports[0] = HeatOf(1, Verdict::kUnknown);
  Rounds(4);
  EXPECT_EQ(Gpus(), "3");
  source_.reports[0] = HeatOf(1, Verdict::kGood);
  Rounds(3);
  EXPECT_EQ(Condition("GpuHeatHealthy"), "True CheckPassed");
  EXPECT_EQ(Condition("GpuHealthy"), "True CheckPassed");
  EXPECT_EQ(Gpus(), "4");
  EXPECT_TRUE(api::Annotation(Node(), api::keys::kUnhealthyGpus).empty());
}

TEST_F(NodeHealthTest, BlameOfAGpuThatTheNodeDoesNotHaveIsTheChecksMistake) {
  source_.reports.push_back(HeatOf(9, Verdict::kBad));
  Rounds(3);
  EXPECT_EQ(Gpus(), "4");
  EXPECT_EQ(Condition("GpuHeatHealthy"), "Unknown CheckNoSuchGpu");
  EXPECT_EQ(Condition("GpuHealthy"), "True CheckPassed");
  EXPECT_NE(json::Print(Node()).find("the check blames GPU 9 (too hot), but the node has GPUs 0 "
                                     "to 3; correct the check"),
            std::string::npos);
  EXPECT_TRUE(api::Annotation(Node(), api::keys::kUnhealthyGpus).empty());
  EXPECT_TRUE(Saw("HealthCheckBroken"));
}

TEST_F(NodeHealthTest, ACheckThatCannotRunIsToldOnce) {
  source_.reports.push_back({.type = "OddHealthy",
                             .verdict = Verdict::kUnknown,
                             .reason = std::string(api::kCheckNotRun),
                             .message = "odd.sh is not run"});
  Rounds(3);
  const std::vector<std::string> reasons = EventReasons();
  EXPECT_EQ(std::count(reasons.begin(), reasons.end(), "HealthCheckBroken"), 1);
  EXPECT_EQ(api::BrokenChecksOf(Node()), std::vector<std::string>{"OddHealthy"});
  EXPECT_TRUE(api::FaultsOf(Node()).empty());
}

TEST_F(NodeHealthTest, WhatAScriptSaidOfGpusGoesWithTheScript) {
  source_.reports = {Disk(Verdict::kGood, "fine"), HeatOf(0, Verdict::kBad)};
  Rounds(2);
  EXPECT_EQ(Condition("GpuHealthy"), "False GpuUnhealthy");
  source_.reports.pop_back();
  agent_.reset();
  Boot();
  sim_.Advance(minutes(6));
  EXPECT_EQ(Condition("GpuHealthy"), "(none)");
  EXPECT_EQ(Condition("GpuHeatHealthy"), "(none)");
  EXPECT_EQ(Gpus(), "4");
  // An agent without any check forgets it, too.
  source_.reports.push_back(HeatOf(0, Verdict::kBad));
  agent_.reset();
  Boot();
  sim_.Advance(minutes(1));
  EXPECT_EQ(Condition("GpuHealthy"), "False GpuUnhealthy");
  health_source_ = nullptr;
  agent_.reset();
  Boot();
  sim_.Advance(minutes(6));
  EXPECT_EQ(Condition("GpuHealthy"), "(none)");
  EXPECT_TRUE(api::Annotation(Node(), api::keys::kUnhealthyGpus).empty());
  EXPECT_EQ(Gpus(), "4");
}

TEST_F(NodeHealthTest, ChecksThatDoNotEndAreUnknownAndAreNotAskedAgain) {
  source_.silent = true;
  Rounds(1);
  const int rounds = source_.rounds;
  sim_.Advance(minutes(10));
  EXPECT_EQ(Condition("DiskHealthy"), "Unknown CheckTimedOut");
  EXPECT_EQ(source_.rounds, rounds);
}

TEST_F(NodeHealthTest, TheConditionOfACheckThatIsGoneGoes) {
  source_.reports.push_back(
      {.type = "CableHealthy", .verdict = Verdict::kBad, .reason = "CheckFailed"});
  Rounds(2);
  EXPECT_EQ(Condition("CableHealthy"), "False CheckFailed");
  source_.reports.pop_back();
  agent_.reset();
  Boot();
  sim_.Advance(minutes(6));
  EXPECT_EQ(Condition("CableHealthy"), "(none)");
  EXPECT_EQ(Condition("DiskHealthy"), "True CheckPassed");
}

}  // namespace
}  // namespace swell::node
