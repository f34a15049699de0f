// Jobs that move to GPUs of another type, in a whole cluster. Nodes are named after their type, and
// first members report speeds as the SDK does.
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "autoscaling/goodput_scaler.h"
#include "base/strings.h"
#include "kube/api/meta/gpu_type_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::autoscaling {
namespace {

using client::resources::kNodes;
using client::resources::kPods;
using client::resources::kTrainingJobs;
using manager::PyTorchYaml;
using manager::TestCluster;

class GoodputMovesTest : public ::testing::Test {
 protected:
  void SetUp() override { cluster_.StartManager(); }

  void AddNode(const std::string& type, int gpus) {
    cluster_.AddNode(ToLower(type), gpus);
    ASSERT_TRUE(cluster_
                    .Patch(kNodes, ToLower(type),
                           StrCat("metadata: {labels: {nvidia.com/gpu.product: ", type, "}}"))
                    .ok());
  }

  void Create(const std::string& name, const std::string& more = "") {
    cluster_.Create(StrCat(
        "apiVersion: swell.dev/v1\nkind: TrainingJob\nmetadata: {name: ", name,
        ", namespace: default}\nspec:\n  autoscaling: {mode: Goodput, intervalSeconds: 2, "
        "observations: 2}\n  roles: {worker: {replicas: 2, elastic: {minReplicas: 1, maxReplicas: "
        "2}, template: {spec: {",
        more, "containers: [{name: c, image: x, resources: {limits: {nvidia.com/gpu: 1}}}]}}}}\n"));
    Train(name);
  }

  void Train(const std::string& name) {
    cluster_.sim.After(std::chrono::seconds(2), [this, name] {
      cluster_.client->List(kPods, "default", {.label_selector = "swell.dev/job-name=" + name},
                            [this](const Result<client::ObjectList>& list) {
                              if (list.ok()) Report(list->items);
                            });
      Train(name);
    });
  }

  void Report(const std::vector<json::SharedValue>& pods) {
    std::map<std::string, std::string> running;
    for (const json::SharedValue& pod : pods) {
      if (api::StatusPhase(*pod) == "Running" && !api::IsDeleting(*pod)) {
        running.emplace(api::Name(*pod), api::NodeName(*pod));
      }
    }
    if (running.empty()) return;
    const double speed = speeds_[running.begin()->second] * static_cast<double>(running.size());
    const json::Object metrics{{"world", static_cast<int64_t>(running.size())},
                               {"training_step", ++step_},
                               {"steps_per_second", speed / 10},
                               {"records_per_second", speed},
                               {"batch_records", 10}};
    json::Value patch;
    json::Set(patch, {"metadata", "annotations", api::keys::kMetrics}, json::Print(metrics));
    if (saves_) {
      json::Set(patch, {"metadata", "annotations", api::keys::kCheckpointTime},
                api::FormatTime(cluster_.sim.Now()));
    }
    cluster_.client->Patch(kPods, "default", running.begin()->first, client::PatchType::kMerge,
                           patch, {});
  }

  void Cordon(const std::string& node, bool closed) {
    ASSERT_TRUE(
        cluster_
            .Patch(kNodes, node, StrCat("spec: {unschedulable: ", closed ? "true" : "false", "}"))
            .ok());
  }
  void Suspend(const std::string& name, bool suspended) {
    ASSERT_TRUE(cluster_
                    .Patch(kTrainingJobs, "default/" + name,
                           StrCat("spec: {suspend: ", suspended ? "true" : "false", "}"))
                    .ok());
  }
  // It is stopped, and starts again where the other node is closed; then until it is measured.
  void RunOn(const std::string& name, const std::string& node) {
    Suspend(name, true);
    ASSERT_TRUE(cluster_.Until([&] { return NodesOf(name).empty(); }, kLong));
    for (const char* each : {"t4", "a100"}) Cordon(each, each != node);
    Suspend(name, false);
    ASSERT_TRUE(MeasuredOn(name, node)) << Status(name);
  }
  void AddNodes(int t4, int a100) {
    AddNode("T4", t4);
    AddNode("A100", a100);
    Cordon("a100", true);
  }
  // A job that has run on both types, and is on T4 again; A100 is closed.
  void KnowBoth(const std::string& name, int t4 = 2, int a100 = 2) {
    AddNodes(t4, a100);
    Create(name);
    ASSERT_TRUE(MeasuredOn(name, "t4")) << Status(name);
    RunOn(name, "a100");
    RunOn(name, "t4");
  }
  bool MeasuredOn(const std::string& name, const std::string& node) {
    return cluster_.Until(
        [&] {
          const json::SharedValue job = cluster_.Get(kTrainingJobs, "default/" + name);
          const json::Value* goodput = json::Find(*job, {"status", "goodput"});
          return goodput != nullptr && NodesOf(name) == std::set<std::string>{node} &&
                 ToLower(json::GetString(*goodput, {"gpuType"})) == node &&
                 json::GetInt(*goodput, {"measuredAt"}) > 0 &&
                 json::GetInt(*goodput, {"measuredAt"}) == json::GetInt(*goodput, {"members"});
        },
        kLong);
  }

  std::set<std::string> NodesOf(const std::string& name) {
    std::set<std::string> nodes;
    for (const json::SharedValue& pod : cluster_.List(kPods, "default")) {
      if (api::Label(*pod, api::keys::kJobName) != name) continue;
      nodes.emplace(api::IsBound(*pod) ? api::NodeName(*pod) : "-");
    }
    return nodes;
  }
  std::string Status(const std::string& name) {
    const json::SharedValue job = cluster_.Get(kTrainingJobs, "default/" + name);
    return json::Print(*json::Find(*job, {"status"}));
  }
  std::string Goodput(const std::string& name, std::string_view field) {
    const json::SharedValue job = cluster_.Get(kTrainingJobs, "default/" + name);
    return std::string(json::GetString(*job, {"status", "goodput", field}));
  }
  std::string Held(const std::string& name) {
    return std::string(
        api::Annotation(*cluster_.Get(kTrainingJobs, "default/" + name), api::keys::kHeldGpuType));
  }
  bool Moves(const std::string& name, Duration within = kLong) {
    return cluster_.Until([&] { return cluster_.Events("Moved", name) > 0; }, within);
  }

  static constexpr Duration kLong = std::chrono::minutes(10);
  TestCluster cluster_;
  std::map<std::string, double> speeds_{{"t4", 10}, {"a100", 16}};  // of a member, by node
  bool saves_ = true;
  int64_t step_ = 0;
};

TEST_F(GoodputMovesTest, AJobMovesWhereItMakesMore) {
  KnowBoth("t");
  Cordon("a100", false);
  ASSERT_TRUE(Moves("t")) << Status("t");
  const std::string told = cluster_.EventMessage("Moved", "t");
  EXPECT_TRUE(told.starts_with("from 2 T4 to 2 A100: +60 % goodput expected, ")) << told;
  EXPECT_TRUE(told.ends_with(" s to restart")) << told;
  ASSERT_TRUE(MeasuredOn("t", "a100")) << Status("t");
  EXPECT_EQ(Held("t"), "A100");
  EXPECT_EQ(Goodput("t", "heldTo"), "A100");
  ASSERT_TRUE(cluster_.Until([&] { return Goodput("t", "typeDecision").starts_with("Moved "); }));
  EXPECT_TRUE(Goodput("t", "typeDecision")
                  .starts_with("Moved from 2 T4 to 2 A100: +60 % goodput measured; the restart "))
      << Goodput("t", "typeDecision");
  const json::SharedValue job = cluster_.Get(kTrainingJobs, "default/t");
  EXPECT_EQ(json::GetInt(*job, {"status", "preemptions"}), 0);
  EXPECT_EQ(json::GetInt(*job, {"status", "restarts"}), 0);
  EXPECT_TRUE(api::ConditionIsTrue(*job, "Running"));
  EXPECT_FALSE(api::ConditionIsTrue(*job, "Restarting"));
  const json::SharedValue pod = cluster_.Get(kPods, "default/t-worker-1");
  EXPECT_EQ(api::Annotation(*pod, api::keys::kHeldGpuType), "A100");
  cluster_.Run(std::chrono::minutes(60));
  EXPECT_EQ(cluster_.Events("Moved", "t"), 1) << "and there it stays";
  EXPECT_EQ(NodesOf("t"), (std::set<std::string>{"a100"}));
}

TEST_F(GoodputMovesTest, AJobStaysWhereTheOtherTypeIsHardlyFaster) {
  speeds_["a100"] = 10.8;
  KnowBoth("t");
  Cordon("a100", false);
  EXPECT_FALSE(Moves("t", std::chrono::minutes(30)));
  EXPECT_EQ(Goodput("t", "typeDecision"),
            "Stays on T4: A100 would make +8 % goodput, but a move pays from +10 % on");
}

TEST_F(GoodputMovesTest, AJobStaysWhileThereIsNoRoom) {
  KnowBoth("t");
  EXPECT_FALSE(Moves("t", std::chrono::minutes(5)));
  EXPECT_EQ(Goodput("t", "typeDecision"),
            "Stays on T4: A100 would make +60 % goodput, but there is no room for it now");
}

TEST_F(GoodputMovesTest, AJobThatNeverSavedStays) {
  saves_ = false;
  KnowBoth("t");
  Cordon("a100", false);
  EXPECT_FALSE(Moves("t", std::chrono::minutes(5)));
  EXPECT_EQ(Goodput("t", "typeDecision"),
            "Stays on T4: A100 would make +60 % goodput, but no member has reported a checkpoint");
}

TEST_F(GoodputMovesTest, AJobThatKnowsNoOtherTypeStays) {
  AddNodes(2, 2);
  Create("t");
  ASSERT_TRUE(MeasuredOn("t", "t4")) << Status("t");
  Cordon("a100", false);
  EXPECT_FALSE(Moves("t", std::chrono::minutes(20)));
  EXPECT_EQ(Goodput("t", "typeDecision"), "");
}

TEST_F(GoodputMovesTest, WhatOthersMeasuredCountsInProportion) {
  KnowBoth("known", 4);
  Create("new");
  ASSERT_TRUE(MeasuredOn("new", "t4")) << Status("new");
  Suspend("known", true);
  Cordon("a100", false);
  ASSERT_TRUE(Moves("new")) << Status("new");
  EXPECT_TRUE(cluster_.EventMessage("Moved", "new").starts_with("from 2 T4 to 2 A100: +60 %"))
      << cluster_.EventMessage("Moved", "new");
  ASSERT_TRUE(MeasuredOn("new", "a100")) << Status("new");
}

TEST_F(GoodputMovesTest, ATypeThatTheTemplateNamesIsKept) {
  KnowBoth("known", 4);
  Create("t", "nodeSelector: {nvidia.com/gpu.product: T4}, ");
  ASSERT_TRUE(MeasuredOn("t", "t4")) << Status("t");
  Suspend("known", true);
  Cordon("a100", false);
  EXPECT_FALSE(Moves("t", std::chrono::minutes(10)));
}

TEST_F(GoodputMovesTest, WorkThatWaitsForTheOtherTypeComesFirst) {
  KnowBoth("t");
  // Half of it would fit, so it waits.
  cluster_.Create(PyTorchYaml{.name = "large", .workers = 3, .gpus = 1}.Text());
  cluster_.Run(std::chrono::seconds(10));
  Cordon("a100", false);
  EXPECT_FALSE(Moves("t", std::chrono::minutes(5)));
  ASSERT_TRUE(cluster_.Delete(client::resources::kPyTorchJobs, "default/large").ok());
  EXPECT_TRUE(Moves("t")) << Status("t");
}

TEST_F(GoodputMovesTest, OneJobMovesAtATime) {
  KnowBoth("a", 4, 4);
  Create("b");
  ASSERT_TRUE(MeasuredOn("b", "t4")) << Status("b");
  cluster_.agents->start_after = std::chrono::minutes(1);
  Cordon("a100", false);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Events("Moved") > 0; }, kLong));
  cluster_.Run(std::chrono::seconds(50));
  EXPECT_EQ(cluster_.Events("Moved"), 1) << Goodput("a", "typeDecision") << "\n"
                                         << Goodput("b", "typeDecision");
  cluster_.agents->start_after = std::chrono::milliseconds(200);
  ASSERT_TRUE(MeasuredOn("a", "a100")) << Status("a");
  ASSERT_TRUE(MeasuredOn("b", "a100")) << Status("b");
}

TEST_F(GoodputMovesTest, WhenTheRoomIsGoneTheJobComesBackAtOnce) {
  KnowBoth("t");
  Cordon("a100", false);
  ASSERT_TRUE(Moves("t")) << Status("t");
  Cordon("a100", true);
  ASSERT_TRUE(cluster_.Until(
      [&] { return NodesOf("t") == std::set<std::string>{"t4"} && Held("t").empty(); },
      std::chrono::seconds(15)))
      << Status("t");
  ASSERT_TRUE(MeasuredOn("t", "t4")) << Status("t");
  EXPECT_EQ(cluster_.EventMessage("MoveGivenUp", "t"),
            "No room on A100 GPUs any more: it starts where it can");
  // It has room again, and the job waits for a while before it tries once more.
  Cordon("a100", false);
  cluster_.Run(std::chrono::minutes(5));
  EXPECT_EQ(cluster_.Events("Moved", "t"), 1);
  EXPECT_EQ(Goodput("t", "typeDecision"),
            "Stays on T4: A100 would make +60 % goodput, but it stays for 10 min after a move");
  ASSERT_TRUE(MeasuredOn("t", "a100")) << Status("t");
}

TEST_F(GoodputMovesTest, AnotherControllerContinuesAMove) {
  KnowBoth("t");
  Cordon("a100", false);
  ASSERT_TRUE(Moves("t")) << Status("t");
  cluster_.StopManager();
  cluster_.Run(std::chrono::seconds(5));
  cluster_.StartManager();
  ASSERT_TRUE(MeasuredOn("t", "a100")) << Status("t");
  EXPECT_EQ(Goodput("t", "heldTo"), "A100");
  ASSERT_TRUE(cluster_.Until([&] { return Goodput("t", "typeDecision").starts_with("Moved "); }))
      << Goodput("t", "typeDecision");
}

TEST_F(GoodputMovesTest, WithoutTheModeTheHoldEnds) {
  KnowBoth("t");
  Cordon("a100", false);
  ASSERT_TRUE(Moves("t"));
  ASSERT_TRUE(MeasuredOn("t", "a100")) << Status("t");
  const std::string uid = cluster_.PodUid("default/t-worker-0");
  ASSERT_TRUE(cluster_.Patch(kTrainingJobs, "default/t", "spec: {autoscaling: {mode: None}}").ok());
  ASSERT_TRUE(cluster_.Until([&] { return Held("t").empty(); }));
  cluster_.Run(std::chrono::minutes(1));
  EXPECT_EQ(cluster_.PodUid("default/t-worker-0"), uid) << "it was not restarted";
}

}  // namespace
}  // namespace swell::autoscaling
