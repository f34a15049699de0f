// Jobs with mode Goodput in a whole cluster. Their first members report speeds as the SDK does.
#include "autoscaling/goodput_scaler.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"
#include "sched_inputs/goodput_note.h"

namespace swell::autoscaling {
namespace {

using client::resources::kPodGroups;
using client::resources::kPods;
using client::resources::kTrainingJobs;
using manager::TestCluster;

class GoodputScalerTest : public ::testing::Test {
 protected:
  void SetUp() override { cluster_.StartManager(); }

  // Without a mode, the default of its project or the cluster holds.
  void Create(const std::string& name,
              int least,
              int most,
              const std::string& mode = "Goodput",
              const std::string& batch = "Constant") {
    cluster_.Create(
        StrCat("apiVersion: swell.dev/v1\nkind: TrainingJob\nmetadata: {name: ", name,
               ", namespace: default}\nspec:\n  batch: {effective: ", batch, "}\n  autoscaling: {",
               mode.empty() ? "" : "mode: ", mode, mode.empty() ? "" : ", ",
               "intervalSeconds: 2, observations: 2}\n  roles: {worker: {replicas: ", least,
               ", elastic: {minReplicas: ", least, ", maxReplicas: ", most,
               "}, template: {spec: {containers: [{name: c, image: x, resources: {limits: "
               "{nvidia.com/gpu: 1}}}]}}}}\n"));
  }

  // From now on the job's first running member reports every two seconds; so much of a step is not
  // shared by the members.
  void Train(const std::string& name, double serial) {
    cluster_.sim.After(every_, [this, name, serial] {
      cluster_.client->List(kPods, "default", {.label_selector = "swell.dev/job-name=" + name},
                            [this, name, serial](const Result<client::ObjectList>& list) {
                              if (list.ok()) Report(list->items, serial);
                            });
      Train(name, serial);
    });
  }

  void Report(const std::vector<json::SharedValue>& pods, double serial) {
    std::vector<std::string> running;
    for (const json::SharedValue& pod : pods) {
      if (api::StatusPhase(*pod) == "Running" && !api::IsDeleting(*pod)) {
        running.emplace_back(api::Name(*pod));
      }
    }
    if (running.empty()) return;
    const auto members = static_cast<double>(running.size());
    const double speed = 10 / (serial + (1 - serial) / members);
    const double batch = batch_ * (of_member_ ? members : 1);
    json::Object metrics{{"world", static_cast<int64_t>(running.size())},
                         {"training_step", ++step_},
                         {"steps_per_second", speed / batch},
                         {"records_per_second", speed},
                         {"batch_records", batch},
                         {"last_resize_seconds", resize_s_}};
    if (noise_ > 0) metrics["gradient_noise_records"] = noise_;
    json::Value patch;
    json::Set(patch, {"metadata", "annotations", api::keys::kMetrics}, json::Print(metrics));
    cluster_.client->Patch(kPods, "default", *std::min_element(running.begin(), running.end()),
                           client::PatchType::kMerge, patch, {});
  }

  int64_t Replicas(const std::string& name) {
    return cluster_.Int(kTrainingJobs, "default/" + name, {"spec", "roles", "worker", "replicas"});
  }
  int64_t Running(const std::string& name) {
    return cluster_.Int(kTrainingJobs, "default/" + name, {"status", "elastic", "replicas"});
  }
  int64_t MeasuredAt(const std::string& name) {
    return cluster_.Int(kTrainingJobs, "default/" + name, {"status", "goodput", "measuredAt"});
  }
  std::string Decision(const std::string& name) {
    const json::SharedValue job = cluster_.Get(kTrainingJobs, "default/" + name);
    return std::string(json::GetString(*job, {"status", "goodput", "decision"}));
  }
  std::string DefaultOf(const std::string& name) {
    const json::SharedValue job = cluster_.Get(kTrainingJobs, "default/" + name);
    return std::string(json::GetString(*job, {"status", "goodput", "defaultOf"}));
  }
  // Messages of events with this reason, about any object.
  std::string Told(std::string_view reason) {
    std::string told;
    for (const json::SharedValue& event : cluster_.List(client::resources::kEvents)) {
      if (json::GetString(*event, {"reason"}) != reason) continue;
      told += StrCat(json::GetString(*event, {"involvedObject", "name"}), ": ",
                     json::GetString(*event, {"message"}), "\n");
    }
    return told;
  }

  // A job that has tried a second member, which does nothing, and has gone back to one.
  void TryInVain() {
    cluster_.AddNode("node-a", 8);
    Create("t", 1, 6);
    Train("t", 0.99);
    ASSERT_TRUE(Tries()) << Decision("t");
    ASSERT_TRUE(cluster_.Until([&] { return MeasuredAt("t") == 1 && Replicas("t") == 1; }, kLong));
  }
  bool Tries(Duration within = kLong) {
    return cluster_.Until([&] { return Decision("t").starts_with("Tries 2 members"); }, within);
  }

  static constexpr Duration kLong = std::chrono::minutes(10);
  TestCluster cluster_;
  Duration every_ = std::chrono::seconds(2);  // between two reports
  double batch_ = 10;                         // records of a step
  bool of_member_ = false;                    // batch_ is that of each member
  double noise_ = 0;                          // the noise scale; 0: it is not reported
  double resize_s_ = 0.3;
  int64_t step_ = 0;
};

TEST_F(GoodputScalerTest, AJobThatScalesGrowsToItsMaximum) {
  cluster_.AddNode("node-a", 8);
  Create("t", 1, 6);
  Train("t", 0.02);
  ASSERT_TRUE(cluster_.Until([&] { return MeasuredAt("t") == 6; }, kLong)) << Decision("t");
  EXPECT_EQ(Replicas("t"), 6);
  const json::SharedValue job = cluster_.Get(kTrainingJobs, "default/t");
  const json::Value* goodput = json::Find(*job, {"status", "goodput"});
  ASSERT_NE(goodput, nullptr);
  EXPECT_EQ(json::GetString(*goodput, {"unit"}), "records");
  EXPECT_EQ(json::GetArray(*goodput, {"points"}).size(), 4u) << "1, 2, 4 and 6";
  EXPECT_EQ(json::GetArray(*goodput, {"curve"}).size(), 6u);
  EXPECT_EQ(Decision("t"), "Grew from 4 to 6: +45 % goodput measured; the resize took 0.3 s");
  EXPECT_NE(Told("GoodputMeasured").find("t: Grew from 1 to 2: +96 % goodput measured"),
            std::string::npos)
      << Told("GoodputMeasured");
  const sched::GoodputInfo note = sched_inputs::ToGoodput(*cluster_.Get(kPodGroups, "default/t"));
  EXPECT_EQ(note.pod_set, "worker");
  EXPECT_EQ(note.measured_at, 6);
  EXPECT_EQ(note.curve.size(), 6u);
  EXPECT_EQ(note.resize_cost, std::chrono::milliseconds(300));
  // Members that came later are given up earlier, whatever the size was when they came.
  int64_t above = INT64_MAX;
  for (int i = 0; i < 6; ++i) {
    const json::SharedValue pod = cluster_.Get(kPods, StrCat("default/t-worker-", i));
    const int64_t priority =
        ParseInt(api::Annotation(*pod, api::keys::kMemberPriority)).value_or(-1);
    EXPECT_LT(priority, above) << i;
    above = priority;
  }
}

TEST_F(GoodputScalerTest, AJobThatDoesNotScaleGivesBackWhatItDoesNotNeed) {
  cluster_.AddNode("node-a", 8);
  Create("t", 1, 6);
  Train("t", 0.99);
  ASSERT_TRUE(cluster_.Until([&] { return MeasuredAt("t") == 2; }, kLong));
  ASSERT_TRUE(cluster_.Until([&] { return Running("t") == 1; }, kLong)) << Decision("t");
  cluster_.Run(std::chrono::minutes(5));
  EXPECT_EQ(Replicas("t"), 1) << "and it does not try again";
  // Nothing changes, so nothing is written.
  const json::SharedValue before = cluster_.Get(kTrainingJobs, "default/t");
  cluster_.Run(std::chrono::minutes(5));
  EXPECT_EQ(
      json::Print(*json::Find(*before, {"status", "goodput"})),
      json::Print(*json::Find(*cluster_.Get(kTrainingJobs, "default/t"), {"status", "goodput"})));
}

TEST_F(GoodputScalerTest, AJobWithOneMemberTriesASecondAndSaysSo) {
  TryInVain();
  EXPECT_EQ(
      Decision("t"),
      "Goes back from 2 members to 1, because 2 made 1 % more goodput; it tries more again when "
      "its batch or the type of its GPUs changes, or after 6h");
  EXPECT_NE(Told("GoodputMeasured").find("t: Grew from 1 to 2: +1 % goodput measured"),
            std::string::npos)
      << Told("GoodputMeasured");
}

TEST_F(GoodputScalerTest, WhatDidNotPayIsTriedAgainAfterALongTime) {
  TryInVain();
  every_ = std::chrono::minutes(1);
  cluster_.Run(std::chrono::minutes(5 * 60 + 50));
  EXPECT_EQ(Replicas("t"), 1);
  EXPECT_TRUE(Tries(std::chrono::minutes(20))) << Decision("t");
  every_ = std::chrono::seconds(2);
  ASSERT_TRUE(cluster_.Until([&] { return Decision("t").starts_with("Goes back"); }, kLong));
  EXPECT_NE(Decision("t").find("after 12h"), std::string::npos) << Decision("t");
}

TEST_F(GoodputScalerTest, WhatDidNotPayIsTriedAgainWithAnotherBatch) {
  TryInVain();
  batch_ = 11;
  EXPECT_FALSE(Tries()) << "a little more is noise";
  batch_ = 40;
  ASSERT_TRUE(cluster_.Until([&] { return Decision("t").starts_with("Measures anew"); }, kLong));
  EXPECT_EQ(Decision("t"), "Measures anew: a step has 40 records now, and had 10");
  EXPECT_TRUE(Tries()) << Decision("t");
}

TEST_F(GoodputScalerTest, WhatWasMeasuredHoldsInProportionOnOtherGpus) {
  TryInVain();
  const auto label = [this](const std::string& type) {
    return cluster_.Patch(client::resources::kNodes, "node-a",
                          StrCat("metadata: {labels: {nvidia.com/gpu.product: ", type, "}}"));
  };
  ASSERT_TRUE(label("T4").ok());
  EXPECT_FALSE(Tries()) << "it was not known before";
  ASSERT_TRUE(label("A100").ok());
  ASSERT_TRUE(cluster_.Until([&] { return Decision("t").starts_with("Measures anew"); }, kLong));
  EXPECT_EQ(Decision("t"), "Measures anew: its GPUs are A100 now, and were T4");
  ASSERT_TRUE(cluster_.Until([&] { return MeasuredAt("t") == 1; }, kLong)) << Decision("t");
  EXPECT_FALSE(Tries()) << "a second member did nothing on T4: " << Decision("t");
  const json::SharedValue job = cluster_.Get(kTrainingJobs, "default/t");
  const json::Array& curve = json::GetArray(*job, {"status", "goodput", "curve"});
  ASSERT_GE(curve.size(), 2u);
  EXPECT_EQ(json::GetString(curve[0], {"source"}), "Measured");
  EXPECT_EQ(json::GetString(curve[1], {"source"}), "OtherType");
  const json::Array& others = json::GetArray(*job, {"status", "goodput", "otherTypes"});
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(json::GetString(others[0], {"gpuType"}), "T4");
}

TEST_F(GoodputScalerTest, ALargerBatchCountsByTheNoiseOfItsGradients) {
  of_member_ = true;
  noise_ = 2;
  cluster_.AddNode("node-a", 8);
  Create("t", 1, 6, "Goodput", "PerReplica");
  Train("t", 0.02);
  ASSERT_TRUE(cluster_.Until([&] { return MeasuredAt("t") == 2; }, kLong)) << Decision("t");
  // Twice the records in the same time, and each is worth (2 + 10) / (2 + 20).
  EXPECT_EQ(Decision("t"), "Grew from 1 to 2: +7 % goodput measured; the resize took 0.3 s");
  cluster_.Run(std::chrono::minutes(5));
  EXPECT_EQ(Replicas("t"), 2) << "a batch of 40 is worth hardly more than one of 20";
  const json::SharedValue job = cluster_.Get(kTrainingJobs, "default/t");
  EXPECT_EQ(json::GetInt(*job, {"status", "goodput", "noiseRecords"}), 2);
  const json::Array& curve = json::GetArray(*job, {"status", "goodput", "curve"});
  ASSERT_EQ(curve.size(), 4u);
  EXPECT_EQ(json::GetInt(curve[1], {"efficiencyPercent"}), 55);
  EXPECT_EQ(json::GetInt(curve[3], {"efficiencyPercent"}), 29);
  // While the model learns, the noise grows.
  noise_ = 500;
  ASSERT_TRUE(cluster_.Until([&] { return MeasuredAt("t") == 6; }, kLong)) << Decision("t");
}

TEST_F(GoodputScalerTest, ASizeIsNotLeftBeforeTheNoiseIsKnown) {
  // A second member adds nothing, and only two members can measure the noise.
  for (const char* batch : {"PerReplica", "Goodput, max: 40"}) {
    const std::string name = batch[0] == 'P' ? "t" : "chosen";
    cluster_.AddNode("node-" + name, 4);
    noise_ = 0;
    Create(name, 1, 4, "Goodput", batch);
    Train(name, 1);
    ASSERT_TRUE(cluster_.Until(
        [&] { return Decision(name).starts_with("Waits for the noise of the gradient"); }, kLong))
        << Decision(name);
    cluster_.Run(std::chrono::minutes(1));
    EXPECT_EQ(Replicas(name), 2) << Decision(name);
    EXPECT_NE(MeasuredAt(name), 2);
    noise_ = 20;
    ASSERT_TRUE(cluster_.Until([&] { return Replicas(name) == 1; }, kLong)) << Decision(name);
    const json::SharedValue job = cluster_.Get(kTrainingJobs, "default/" + name);
    EXPECT_EQ(json::GetInt(*job, {"status", "goodput", "noiseRecords"}), 20);
  }
}

TEST_F(GoodputScalerTest, AScriptWithoutNoiseIsNotWaitedForForEver) {
  cluster_.AddNode("node-a", 8);
  Create("t", 1, 6, "Goodput", "PerReplica");
  Train("t", 1);
  ASSERT_TRUE(cluster_.Until([&] { return MeasuredAt("t") == 2; }, 2 * kLong)) << Decision("t");
}

TEST_F(GoodputScalerTest, WithoutNoiseALargerBatchIsWorthNothing) {
  of_member_ = true;
  noise_ = 0.5;
  cluster_.AddNode("node-a", 8);
  Create("t", 1, 6, "Goodput", "PerReplica");
  Train("t", 0.02);
  ASSERT_TRUE(cluster_.Until([&] { return MeasuredAt("t") == 2; }, kLong)) << Decision("t");
  ASSERT_TRUE(cluster_.Until([&] { return Running("t") == 1; }, kLong)) << Decision("t");
  EXPECT_TRUE(
      Decision("t").starts_with("Goes back from 2 members to 1, because 2 made no more goodput;"))
      << Decision("t");
  // One member alone cannot measure it anew, so it is forgotten together with the size.
  every_ = std::chrono::minutes(1);
  EXPECT_TRUE(Tries(std::chrono::hours(8))) << Decision("t");
}

TEST_F(GoodputScalerTest, AConstantBatchCountsInFullWhateverTheNoise) {
  noise_ = 0.5;
  cluster_.AddNode("node-a", 8);
  Create("t", 1, 6);
  Train("t", 0.02);
  ASSERT_TRUE(cluster_.Until([&] { return MeasuredAt("t") == 6; }, kLong)) << Decision("t");
}

TEST_F(GoodputScalerTest, ATryWaitsUntilItsResizesAreWorthIt) {
  resize_s_ = 150;
  cluster_.AddNode("node-a", 8);
  Create("t", 1, 2);
  Train("t", 0.02);
  ASSERT_TRUE(cluster_.Until([&] { return Decision("t").starts_with("Stays"); }, kLong));
  EXPECT_EQ(Decision("t"),
            "Stays at 1 member: to try 2 it would stand still for 300 s; it tries when it has run "
            "for 60m");
  every_ = std::chrono::minutes(1);
  cluster_.Run(std::chrono::minutes(50));
  EXPECT_EQ(Replicas("t"), 1);
  ASSERT_TRUE(cluster_.Until([&] { return MeasuredAt("t") == 2; }, std::chrono::minutes(30)))
      << Decision("t");
}

TEST_F(GoodputScalerTest, GpusGoToTheJobThatMakesMostOfThem) {
  cluster_.AddNode("node-a", 5);
  Create("flat", 1, 4);
  Train("flat", 0.7);
  ASSERT_TRUE(cluster_.Until([&] { return MeasuredAt("flat") == 4; }, kLong)) << Decision("flat");
  Create("scales", 1, 4);
  Train("scales", 0);
  ASSERT_TRUE(cluster_.Until([&] { return Running("scales") == 4 && Running("flat") == 1; }, kLong))
      << Decision("scales") << "\n"
      << Decision("flat");
  EXPECT_NE(Told("Shrunk").find("goodput expected"), std::string::npos) << Told("Shrunk");
  EXPECT_NE(Told("Grown").find("gave up: flat -"), std::string::npos) << Told("Grown");
  cluster_.Run(std::chrono::minutes(10));
  EXPECT_EQ(Running("scales"), 4) << "and there they stay";
  EXPECT_EQ(Running("flat"), 1);
}

TEST_F(GoodputScalerTest, AnotherControllerContinuesFromTheStatus) {
  cluster_.AddNode("node-a", 8);
  Create("t", 1, 4);
  Train("t", 0.02);
  ASSERT_TRUE(cluster_.Until([&] { return MeasuredAt("t") == 4; }, kLong));
  const auto points = [&] {
    return json::GetArray(*cluster_.Get(kTrainingJobs, "default/t"),
                          {"status", "goodput", "points"})
        .size();
  };
  EXPECT_EQ(points(), 3u);
  cluster_.StopManager();
  cluster_.StartManager();
  cluster_.Run(std::chrono::minutes(2));
  EXPECT_EQ(points(), 3u);
  EXPECT_EQ(Replicas("t"), 4);
}

TEST_F(GoodputScalerTest, ANumberThatSomebodyElseSetsStays) {
  cluster_.AddNode("node-a", 8);
  Create("t", 1, 6);
  Train("t", 0.02);
  ASSERT_TRUE(cluster_.Until([&] { return MeasuredAt("t") == 6; }, kLong));
  ASSERT_TRUE(
      cluster_.Patch(kTrainingJobs, "default/t", "spec: {roles: {worker: {replicas: 3}}}").ok());
  cluster_.Run(std::chrono::minutes(5));
  EXPECT_EQ(Replicas("t"), 3);
  EXPECT_EQ(Decision("t"),
            "3 members were asked for by somebody else, and stay; without the annotation "
            "swell.dev/elastic-scaling goodput decides again");
  ASSERT_TRUE(cluster_
                  .Patch(kTrainingJobs, "default/t",
                         "metadata: {annotations: {swell.dev/elastic-scaling: null}}")
                  .ok());
  ASSERT_TRUE(cluster_.Until([&] { return Replicas("t") == 6; }, kLong)) << Decision("t");
}

TEST_F(GoodputScalerTest, WithoutTheModeTheSchedulerIsToldNothing) {
  cluster_.AddNode("node-a", 8);
  Create("t", 1, 4);
  Train("t", 0.02);
  const auto told = [&] {
    return !sched_inputs::ToGoodput(*cluster_.Get(kPodGroups, "default/t")).curve.empty();
  };
  ASSERT_TRUE(cluster_.Until(told, kLong));
  ASSERT_TRUE(cluster_.Patch(kTrainingJobs, "default/t", "spec: {autoscaling: {mode: None}}").ok());
  ASSERT_TRUE(cluster_.Until([&] { return !told(); }, kLong));
}

TEST_F(GoodputScalerTest, TheNearestProjectThatHasADefaultDecides) {
  cluster_.AddNode("node-a", 8);
  cluster_.Create(
      "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: lab}}\n---\n"
      "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: team}, spec: {parent: lab, "
      "namespace: default}}\n");
  Create("t", 1, 4, "");
  Create("own", 1, 4, "None");
  Create("rigid", 1, 1, "");
  Train("t", 0.02);
  cluster_.Run(std::chrono::minutes(2));
  ASSERT_EQ(Running("t"), 1);
  const json::SharedValue before = cluster_.Get(kTrainingJobs, "default/t");
  EXPECT_EQ(json::Find(*before, {"status", "goodput"}), nullptr) << "nobody has said anything";
  const std::string pod(api::Uid(*cluster_.Get(kPods, "default/t-worker-0")));
  using client::resources::kProjects;
  ASSERT_TRUE(cluster_.Patch(kProjects, "lab", "spec: {autoscaling: {default: Goodput}}").ok());
  ASSERT_TRUE(cluster_.Until([&] { return MeasuredAt("t") == 4; }, kLong)) << Decision("t");
  EXPECT_EQ(DefaultOf("t"), "project lab");
  EXPECT_EQ(api::Uid(*cluster_.Get(kPods, "default/t-worker-0")), pod) << "it was not restarted";
  EXPECT_EQ(Replicas("own"), 1) << "a job that names a mode keeps it";
  EXPECT_EQ(Told("InvalidAutoscaling"), "") << "jobs that cannot change are left alone";
  ASSERT_TRUE(cluster_.Patch(kProjects, "team", "spec: {autoscaling: {default: None}}").ok());
  ASSERT_TRUE(cluster_.Until([&] { return DefaultOf("t").empty(); }, kLong));
  ASSERT_TRUE(cluster_.Until(
      [&] { return sched_inputs::ToGoodput(*cluster_.Get(kPodGroups, "default/t")).curve.empty(); },
      kLong));
  EXPECT_EQ(Replicas("t"), 4) << "what it has stays";
}

TEST_F(GoodputScalerTest, TheClusterDecidesWhereNoProjectHasADefault) {
  cluster_.StopManager();
  cluster_.StartManager({.autoscaling_default = "Goodput"});
  cluster_.AddNode("node-a", 8);
  Create("t", 1, 2, "");
  Train("t", 0.02);
  ASSERT_TRUE(cluster_.Until([&] { return MeasuredAt("t") == 2; }, kLong)) << Decision("t");
  EXPECT_EQ(DefaultOf("t"), "the cluster");
}

TEST_F(GoodputScalerTest, SaysWhatCannotBe) {
  cluster_.AddNode("node-a", 8);
  cluster_.Create(
      "apiVersion: swell.dev/v1\nkind: TrainingJob\nmetadata: {name: t, namespace: default}\n"
      "spec: {autoscaling: {mode: Goodput}, roles: {worker: {replicas: 1, template: {spec: "
      "{containers: [{name: c, image: x}]}}}}}\n");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Events("InvalidAutoscaling", "t") == 1; }));
  EXPECT_EQ(cluster_.EventMessage("InvalidAutoscaling", "t"),
            "spec.autoscaling.role: Invalid value: \"worker\": must be a role with "
            "elastic.minReplicas and maxReplicas");
}

}  // namespace
}  // namespace swell::autoscaling
