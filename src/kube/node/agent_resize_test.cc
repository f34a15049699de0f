// Resizes of pods that run, seen from outside: other amounts in the spec, and what the agent makes
// of them.
#include <chrono>

#include "kube/node/agent_fixture.h"

namespace swell::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string Spec(std::string_view cpu, std::string_view more = "") {
  return StrCat(R"({"containers":[{"name":"main","image":"x","resources":{"requests":{"cpu":")",
                cpu, R"(","memory":"1Gi"},"limits":{"memory":"1Gi"}})", more, "}]}");
}

class ResizeTest : public AgentTest {
 protected:
  void Resize(const std::string& name, std::string_view cpu, std::string_view memory = "1Gi") {
    json::Value pod = Pod(name);
    json::Set(json::FindMutable(pod, {"spec", "containers"})->get_array()[0], {"resources"},
              Parse(StrCat(R"({"requests":{"cpu":")", cpu, R"(","memory":")", memory,
                           R"("},"limits":{"memory":")", memory, R"("}})")));
    json::Set(pod, {"metadata", "generation"}, json::GetInt(pod, {"metadata", "generation"}) + 1);
    api_->Put(kPods, pod);
    sim_.Advance(milliseconds(20));
  }
  // The pod as a whole.
  void ResizeWhole(const std::string& name, std::string_view resources) {
    json::Value pod = Pod(name);
    json::Set(pod, {"spec", "resources"}, Parse(resources));
    json::Set(pod, {"metadata", "generation"}, json::GetInt(pod, {"metadata", "generation"}) + 1);
    api_->Put(kPods, pod);
    sim_.Advance(milliseconds(20));
  }
  std::string StatusOfPod(const std::string& name, std::string_view field) {
    const json::Value pod = Pod(name);
    const json::Value* found = json::Find(pod, {"status", field});
    return found == nullptr ? "" : json::Print(*found);
  }
  std::string Allocated(const std::string& name) {
    return std::string(json::GetString(Status(name), {"allocatedResources", "cpu"}));
  }
  std::string InForce(const std::string& name) {
    return std::string(json::GetString(Status(name), {"resources", "requests", "cpu"}));
  }
  std::string Pending(const std::string& name) {
    const json::Value pod = Pod(name);
    const auto condition = api::FindCondition(pod, "PodResizePending");
    return condition ? StrCat(condition->reason, ": ", condition->message) : "";
  }
};

TEST_F(ResizeTest, AmountsChangeWithoutARestart) {
  const std::string uid = Create("a", Spec("1"));
  EXPECT_EQ(Allocated("a"), "1");
  Resize("a", "2500m", "2Gi");
  EXPECT_EQ(Allocated("a"), "2500m");
  EXPECT_EQ(InForce("a"), "2500m");
  EXPECT_EQ(json::GetInt(Status("a"), {"restartCount"}), 0);
  const ContainerSpec* spec = runtime_.SpecOfForTest(uid, "main");
  EXPECT_EQ(spec->cpu_request_milli, 2500);
  EXPECT_EQ(spec->memory_limit_bytes, int64_t{2} << 30);
  EXPECT_TRUE(Saw("ResizeStarted"));
  EXPECT_TRUE(Saw("ResizeCompleted"));
  EXPECT_FALSE(api::FindCondition(Pod("a"), "PodResizeInProgress"));
  // What it has now is what others do not find.
  Create("b", Spec("1500m"));
  EXPECT_EQ(Phase("b"), "Failed");
  EXPECT_EQ(json::GetString(Pod("b"), {"status", "reason"}), "OutOfcpu");
}

TEST_F(ResizeTest, WhatHasNoRoomWaitsAndIsGivenLater) {
  Create("a", Spec("1"));
  Create("b", Spec("2"));
  Resize("a", "3");
  EXPECT_EQ(Pending("a"),
            "Deferred: Node didn't have enough resource: cpu, requested: 3000, used: 2000, "
            "capacity: 3900");
  EXPECT_EQ(Allocated("a"), "1");
  EXPECT_TRUE(Saw("ResizeDeferred"));
  api_->Delete(kPods, "b", 0);
  sim_.Advance(seconds(1));
  EXPECT_EQ(Pending("a"), "");
  EXPECT_EQ(Allocated("a"), "3");
}

TEST_F(ResizeTest, ARestartWhileItWaitsGivesWhatItHad) {
  const std::string uid = Create(
      "a", R"({"containers":[{"name":"main","image":"x","resources":{"requests":{"cpu":"1"}}}]})",
      R"({"annotations":{"swell.dev/simulate":""}})");
  Create("b", Spec("2"));
  Resize("a", "3");
  runtime_.Signal({uid, "main", 0}, 9);
  sim_.Advance(seconds(1));
  EXPECT_EQ(json::GetInt(Status("a"), {"restartCount"}), 1);
  EXPECT_EQ(runtime_.SpecOfForTest(uid, "main")->cpu_request_milli, 1000);
}

TEST_F(ResizeTest, MoreThanTheNodeHasIsNeverGiven) {
  Create("a", Spec("1"));
  Resize("a", "5");
  EXPECT_EQ(Pending("a"),
            "Infeasible: Node didn't have enough capacity: cpu, requested: 5000, capacity: 3900");
  EXPECT_TRUE(Saw("ResizeInfeasible"));
  Resize("a", "1");  // taken back
  EXPECT_EQ(Pending("a"), "");
  EXPECT_EQ(Allocated("a"), "1");
}

TEST_F(ResizeTest, WhatIsGivenBackGoesToThoseWhoWait) {
  Create("a", Spec("2"));
  Create("b", Spec("1"));
  Resize("b", "3");
  EXPECT_EQ(Allocated("b"), "1");
  Resize("a", "500m");
  EXPECT_EQ(Allocated("a"), "500m");
  EXPECT_EQ(Allocated("b"), "3");
}

TEST_F(ResizeTest, APolicyMayAskForARestart) {
  const std::string uid = Create(
      "a",
      Spec("1", R"(,"resizePolicy":[{"resourceName":"cpu","restartPolicy":"RestartContainer"}])"));
  Resize("a", "1", "2Gi");  // memory alone changes in place
  EXPECT_EQ(json::GetInt(Status("a"), {"restartCount"}), 0);
  Resize("a", "2", "2Gi");
  sim_.Advance(seconds(2));
  EXPECT_EQ(json::GetInt(Status("a"), {"restartCount"}), 1);
  EXPECT_EQ(State("a"), "running");
  EXPECT_EQ(runtime_.SpecOfForTest(uid, "main")->cpu_request_milli, 2000);
  EXPECT_FALSE(Saw("BackOff"));
  EXPECT_TRUE(Saw("ResizeCompleted"));
}

TEST_F(ResizeTest, ARestartedAgentKnowsWhatItsPodsHave) {
  Create("a", Spec("1"));
  Create("b", Spec("2"));
  Resize("a", "3");
  agent_.reset();
  Boot();
  sim_.Advance(milliseconds(50));
  EXPECT_EQ(Allocated("a"), "1");
  EXPECT_NE(Pending("a"), "");
  // It holds 1 and not 3.
  Create("c", Spec("900m"));
  EXPECT_EQ(Phase("c"), "Running");
}

constexpr std::string_view kWhole =
    R"({"resources":{"requests":{"cpu":"1"},"limits":{"cpu":"2"}},"containers":[
        {"name":"main","image":"x"},
        {"name":"side","image":"x","resources":{"limits":{"cpu":"500m"}}}]})";

TEST_F(ResizeTest, AmountsOfAWholePodChangeWithoutARestart) {
  const std::string uid = Create("a", std::string(kWhole));
  EXPECT_EQ(StatusOfPod("a", "allocatedResources"), R"({"cpu":"1"})");
  // The pod's quota grows before that of the container that has none of its own, ...
  ResizeWhole("a", R"({"requests":{"cpu":"3"},"limits":{"cpu":"4"}})");
  const ContainerSpec* spec = runtime_.SpecOfForTest(uid, "main");
  EXPECT_EQ(spec->whole_pod->cpu_request_milli, 3000);
  EXPECT_EQ(spec->whole_pod->cpu_limit_milli, 4000);
  EXPECT_EQ(spec->cpu_limit_milli, 4000);
  EXPECT_EQ(runtime_.SpecOfForTest(uid, "side")->cpu_limit_milli, 500);
  EXPECT_EQ(StatusOfPod("a", "allocatedResources"), R"({"cpu":"3"})");
  EXPECT_EQ(StatusOfPod("a", "resources"), R"({"requests":{"cpu":"3"},"limits":{"cpu":"4"}})");
  // ... and what it has now is what others do not find.
  Create("b", Spec("1"));
  EXPECT_EQ(json::GetString(Pod("b"), {"status", "reason"}), "OutOfcpu");
  // It shrinks after that container's.
  ResizeWhole("a", R"({"requests":{"cpu":"500m"},"limits":{"cpu":"1"}})");
  spec = runtime_.SpecOfForTest(uid, "main");
  EXPECT_EQ(spec->whole_pod->cpu_limit_milli, 1000);
  EXPECT_EQ(spec->cpu_limit_milli, 1000);
  EXPECT_FALSE(Saw("ResizeError"));
  EXPECT_TRUE(Saw("ResizeCompleted"));
  EXPECT_FALSE(api::FindCondition(Pod("a"), "PodResizeInProgress"));
  EXPECT_EQ(json::GetInt(Status("a"), {"restartCount"}), 0);
}

TEST_F(ResizeTest, AWholePodWaitsForRoomAndARestartedAgentKnowsWhatItHas) {
  const std::string uid = Create("a", std::string(kWhole));
  Create("b", Spec("2"));
  ResizeWhole("a", R"({"requests":{"cpu":"3"},"limits":{"cpu":"4"}})");
  EXPECT_EQ(Pending("a"),
            "Deferred: Node didn't have enough resource: cpu, requested: 3000, used: 2000, "
            "capacity: 3900");
  EXPECT_EQ(StatusOfPod("a", "resources"), R"({"requests":{"cpu":"1"},"limits":{"cpu":"2"}})");
  agent_.reset();
  Boot();
  sim_.Advance(milliseconds(50));
  EXPECT_EQ(StatusOfPod("a", "allocatedResources"), R"({"cpu":"1"})");
  EXPECT_NE(Pending("a"), "");
  Create("c", Spec("900m"));
  EXPECT_EQ(Phase("c"), "Running") << "it holds 1 and not 3";
  api_->Delete(kPods, "c", 0);
  api_->Delete(kPods, "b", 0);
  sim_.Advance(seconds(1));
  EXPECT_EQ(StatusOfPod("a", "allocatedResources"), R"({"cpu":"3"})");
  EXPECT_EQ(runtime_.SpecOfForTest(uid, "main")->cpu_limit_milli, 4000);
}

TEST_F(ResizeTest, AWholePodsNewLimitMayRestartTheContainersThatHaveNone) {
  const std::string uid = Create("a", R"({"resources":{"limits":{"cpu":"2"}},"containers":[
      {"name":"main","image":"x","resizePolicy":[
        {"resourceName":"cpu","restartPolicy":"RestartContainer"}]},
      {"name":"side","image":"x"}]})");
  ResizeWhole("a", R"({"limits":{"cpu":"3"}})");
  sim_.Advance(seconds(2));
  EXPECT_EQ(json::GetInt(Status("a", 0), {"restartCount"}), 1);
  EXPECT_EQ(json::GetInt(Status("a", 1), {"restartCount"}), 0);
  for (const char* name : {"main", "side"}) {
    EXPECT_EQ(runtime_.SpecOfForTest(uid, name)->cpu_limit_milli, 3000);
    EXPECT_EQ(runtime_.SpecOfForTest(uid, name)->whole_pod->cpu_limit_milli, 3000);
  }
  EXPECT_TRUE(Saw("ResizeCompleted"));
}

TEST_F(ResizeTest, AmountsOfAWholePodAreNotAddedWhileItRuns) {
  Create("a", Spec("1"));
  ResizeWhole("a", R"({"requests":{"cpu":"2"}})");
  EXPECT_EQ(Pending("a"),
            "Infeasible: spec.resources cannot be added to a pod that started without it");
  EXPECT_EQ(StatusOfPod("a", "allocatedResources"), R"({"cpu":"1","memory":"1Gi"})");
  EXPECT_EQ(StatusOfPod("a", "resources"), "{}");
  agent_.reset();
  Boot();
  sim_.Advance(milliseconds(50));
  EXPECT_NE(Pending("a"), "") << "a restarted agent knows it, too";
  EXPECT_EQ(StatusOfPod("a", "allocatedResources"), R"({"cpu":"1","memory":"1Gi"})");
}

}  // namespace
}  // namespace swell::node
