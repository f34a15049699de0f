#include "jobs/pass/failure_rules.h"

#include <gtest/gtest.h>

#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/test_document.h"

namespace swell::jobs {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;
const WallTime kNow = *api::ParseTime("2026-01-01T12:00:00Z");

TEST(FailureRules, AHoldGrowsAndIsBounded) {
  const auto seconds = [](int64_t crashes) {
    return std::chrono::duration_cast<std::chrono::seconds>(PreemptionHold(crashes)).count();
  };
  EXPECT_EQ(seconds(-1), 0);
  EXPECT_EQ(seconds(1), 0);
  EXPECT_EQ(seconds(2), 20);
  EXPECT_EQ(seconds(3), 40);
  EXPECT_EQ(seconds(6), 300);
  EXPECT_EQ(seconds(1'000'000), 300);
}

TEST(FailureRules, AJobThatCouldNotStartIsHeldFromTheFirstTimeOn) {
  const auto minutes = [](int64_t crashes) {
    return std::chrono::duration_cast<std::chrono::minutes>(UnstartedHold(crashes)).count();
  };
  EXPECT_EQ(minutes(0), 0);
  EXPECT_EQ(minutes(1), 10);
  EXPECT_EQ(minutes(2), 20);
  EXPECT_EQ(minutes(4), 60);
  EXPECT_EQ(minutes(1'000'000), 60);
}

TEST(FailureRules, TheNextStartWaitsAsLongAsANodesDoes) {
  const auto seconds = [](int64_t crashes) {
    return std::chrono::duration_cast<std::chrono::seconds>(RestartDelay(crashes)).count();
  };
  EXPECT_EQ(seconds(1), 0);
  EXPECT_EQ(seconds(2), 10);
  EXPECT_EQ(seconds(4), 40);
  EXPECT_EQ(seconds(7), 300);
  EXPECT_EQ(seconds(1'000'000), 300);
}

TEST(FailureRules, PeersThatLostAMemberBelongToItsFailure) {
  const auto cause = ChargedFailure::Parse("2026-01-01T12:00:00Z Unknown");
  ASSERT_TRUE(cause.has_value());
  EXPECT_EQ(cause->ToString(), "2026-01-01T12:00:00Z Unknown");
  const WallTime before = kNow - std::chrono::minutes(5);
  const WallTime soon = kNow + std::chrono::seconds(10);
  EXPECT_TRUE(cause->Covers(api::FailureClass::kPeerLost, before, soon));
  EXPECT_FALSE(cause->Covers(api::FailureClass::kUnknown, before, soon));
  // A pod that was made after it lost a peer for another reason.
  EXPECT_FALSE(cause->Covers(api::FailureClass::kPeerLost, kNow + std::chrono::seconds(1), soon));
  EXPECT_FALSE(cause->Covers(api::FailureClass::kPeerLost, before, kNow + std::chrono::minutes(2)));
  // The peer was reported first.
  const ChargedFailure peer{kNow, api::FailureClass::kPeerLost};
  EXPECT_TRUE(peer.Covers(api::FailureClass::kUnknown, before, soon));
  for (const char* text : {"", "x", "2026-01-01T12:00:00Z", "Unknown 2026-01-01T12:00:00Z"}) {
    EXPECT_FALSE(ChargedFailure::Parse(text).has_value()) << text;
  }
}

TEST(FailureRules, MemoryGrowsByHalfThreeTimesWithinItsBound) {
  int64_t limit = kGib;
  std::vector<std::string> limits;
  while ((limit = NextMemory(kGib, limit, 64 * kGib)) != 0) limits.push_back(MemoryText(limit));
  EXPECT_EQ(limits, (std::vector<std::string>{"1536Mi", "2304Mi", "3456Mi"}));
  EXPECT_EQ(NextMemory(kGib, kGib, kGib + kGib / 4), kGib + kGib / 4);
  EXPECT_EQ(NextMemory(kGib, kGib, kGib), 0);
  EXPECT_EQ(NextMemory(kGib, kGib, kGib + kGib / 64), 0);
  EXPECT_EQ(NextMemory(kGib, kGib, 0), 0);
  EXPECT_EQ(NextMemory(0, 0, kGib), 0);
}

TEST(FailureRules, RaisesAreReadAsFarAsTheyCanBe) {
  const MemoryRaises raises = ParseMemoryRaises("worker/main=1536Mi,x,=,y=z,master/main=-1");
  EXPECT_EQ(ToString(raises), "worker/main=1536Mi");
  EXPECT_TRUE(ParseMemoryRaises("").empty());
}

TEST(FailureRules, ARaiseReachesItsContainerAndLowersNothing) {
  json::Value pod = api::Document(
      "{spec: {containers: [{name: main, resources: {limits: {memory: 1Gi}, requests: {memory: "
      "1Gi}}}, {name: side, resources: {limits: {memory: 1Gi}}}]}}");
  RaiseMemoryOf(pod, "worker", ParseMemoryRaises("worker/main=1536Mi,master/side=2Gi"));
  EXPECT_EQ(MemoryLimitOf(pod, "main"), kGib * 3 / 2);
  EXPECT_EQ(MemoryLimitOf(pod, "side"), kGib);
  EXPECT_EQ(json::GetString(api::Containers(pod)[0], {"resources", "requests", "memory"}),
            "1536Mi");
  RaiseMemoryOf(pod, "worker", ParseMemoryRaises("worker/main=1Gi"));
  EXPECT_EQ(MemoryLimitOf(pod, "main"), kGib * 3 / 2);
  EXPECT_EQ(MemoryLimitOf(pod, "none"), 0);
}

TEST(FailureRules, ALimitOfTheWholePodGrowsWithItsContainers) {
  json::Value pod = api::Document(
      "{spec: {resources: {limits: {memory: 2Gi}, requests: {memory: 1Gi}}, containers: ["
      "{name: main}, {name: side, resources: {limits: {memory: 1Gi}}}]}}");
  EXPECT_EQ(MemoryLimitOf(pod, "main"), 2 * kGib);
  RaiseMemoryOf(pod, "worker", ParseMemoryRaises("worker/main=3Gi"));
  EXPECT_EQ(MemoryLimitOf(pod, "main"), 3 * kGib);
  EXPECT_EQ(json::Find(api::Containers(pod)[0], {"resources"}), nullptr);
  RaiseMemoryOf(pod, "worker", ParseMemoryRaises("worker/side=1536Mi"));
  EXPECT_EQ(MemoryLimitOf(pod, "side"), kGib * 3 / 2);
  EXPECT_EQ(json::Print(*json::Find(pod, {"spec", "resources"})),
            R"({"limits":{"memory":"3584Mi"},"requests":{"memory":"1Gi"}})");
}

}  // namespace
}  // namespace swell::jobs
