// Kubernetes' own gangs (scheduling.k8s.io) in a whole cluster: placed whole or not at all, stopped
// as they say, and told so.
#include "scheduling/gang_conditions.h"

#include <set>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::scheduling {
namespace {

using client::resources::kCompositeGangs;
using client::resources::kGangs;
using client::resources::kPods;
using manager::kSecond;
using manager::TestCluster;

class GangsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-0", 4);
    cluster_.StartManager();
    cluster_.Create(
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\n"
        "value: 90\n");
  }
  void Gang(const std::string& name, int least, const std::string& more = "") {
    cluster_.Create(
        StrCat("apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: ", name,
               ", namespace: default}\nspec: {schedulingPolicy: {gang: {minCount: ", least, "}}",
               more, "}\n"));
  }
  void Pods(const std::string& gang, int count, int gpus, const std::string& more = "") {
    for (int i = 0; i < count; ++i) {
      cluster_.Create(StrCat("apiVersion: v1\nkind: Pod\nmetadata: {name: ", gang, "-", i,
                             ", namespace: default}\nspec: {schedulerName: swell, restartPolicy: ",
                             "Never, schedulingGroup: {podGroupName: ", gang, "}, ", more,
                             "containers: [{name: c, image: x, resources: {limits: ",
                             "{nvidia.com/gpu: ", gpus, "}}}]}\n"));
    }
  }
  int Running(const std::string& gang) {
    int running = 0;
    for (const json::SharedValue& pod : cluster_.List(kPods, "default")) {
      running += json::GetString(*pod, {"spec", "schedulingGroup", "podGroupName"}) == gang &&
                 api::Phase(*pod) == "Running";
    }
    return running;
  }
  TestCluster cluster_;
};

TEST_F(GangsTest, AGangStartsWholeOrNotAtAll) {
  Gang("big", 3);
  Pods("big", 3, 2);
  ASSERT_TRUE(cluster_.Until([&] {
    return cluster_.Reason(kGangs, "default/big", "PodGroupInitiallyScheduled") == "Unschedulable";
  }));
  EXPECT_EQ(Running("big"), 0);
  Gang("small", 2);
  Pods("small", 2, 2);
  ASSERT_TRUE(cluster_.Until([&] { return Running("small") == 2; }));
  EXPECT_TRUE(cluster_.Until(
      [&] { return cluster_.Condition(kGangs, "default/small", "PodGroupInitiallyScheduled"); }));
  EXPECT_EQ(Running("big"), 0);
  EXPECT_FALSE(cluster_.Condition(kGangs, "default/big", "PodGroupInitiallyScheduled"));
}

TEST_F(GangsTest, PodsWaitForTheirGroupToBeMade) {
  Pods("late", 2, 1);
  cluster_.Run(5 * kSecond);
  EXPECT_EQ(Running("late"), 0);
  Gang("late", 2);
  EXPECT_TRUE(cluster_.Until([&] { return Running("late") == 2; }));
}

TEST_F(GangsTest, AGangThatNeedsFewerStarts) {
  Gang("big", 3);
  Pods("big", 3, 2);
  cluster_.Run(5 * kSecond);
  EXPECT_EQ(Running("big"), 0);
  ASSERT_TRUE(
      cluster_.Patch(kGangs, "default/big", "spec: {schedulingPolicy: {gang: {minCount: 2}}}")
          .ok());
  EXPECT_TRUE(cluster_.Until([&] { return Running("big") == 2; }));
}

TEST_F(GangsTest, AGroupThatIsDisruptedTogetherIsStoppedWhole) {
  Gang("whole", 1, ", disruptionMode: {all: {}}");
  Pods("whole", 2, 2);
  ASSERT_TRUE(cluster_.Until([&] { return Running("whole") == 2; }));
  Gang("urgent", 1, ", priorityClassName: high");
  Pods("urgent", 1, 2, "priorityClassName: high, ");
  ASSERT_TRUE(cluster_.Until([&] { return Running("urgent") == 1; }));
  // Its minimum is one pod: the other is surplus, which goes first.
  EXPECT_EQ(Running("whole"), 1);
  Gang("more", 1, ", priorityClassName: high");
  Pods("more", 1, 2, "priorityClassName: high, ");
  ASSERT_TRUE(cluster_.Until([&] { return Running("more") == 1; }));
  EXPECT_EQ(Running("whole"), 0);
}

TEST_F(GangsTest, APreemptedGangIsTold) {
  Gang("rigid", 2, ", disruptionMode: {all: {}}");
  Pods("rigid", 2, 2);
  ASSERT_TRUE(cluster_.Until([&] { return Running("rigid") == 2; }));
  Gang("urgent", 1, ", priorityClassName: high");
  Pods("urgent", 1, 1, "priorityClassName: high, ");
  ASSERT_TRUE(cluster_.Until([&] { return Running("urgent") == 1; }));
  EXPECT_EQ(Running("rigid"), 0);
  ASSERT_TRUE(cluster_.Until(
      [&] { return cluster_.Condition(kGangs, "default/rigid", "DisruptionTarget"); }));
  EXPECT_EQ(cluster_.Reason(kGangs, "default/rigid", "DisruptionTarget"), "PreemptionByScheduler");
  EXPECT_TRUE(cluster_.Condition(kGangs, "default/rigid", "PodGroupInitiallyScheduled"));
  // That its new pods wait, and for what, is another matter.
  Pods("rigid", 2, 2);
  cluster_.Run(10 * kSecond);
  const json::SharedValue gang = cluster_.Get(kGangs, "default/rigid");
  const auto told = api::FindCondition(*gang, "DisruptionTarget");
  ASSERT_TRUE(told && told->IsTrue());
  EXPECT_TRUE(told->message.starts_with("Preempted by default/urgent")) << told->message;
}

TEST_F(GangsTest, APodOfAGroupThatIsDisruptedOneByOneGoesAlone) {
  Gang("loose", 2);
  Pods("loose", 2, 2);
  ASSERT_TRUE(cluster_.Until([&] { return Running("loose") == 2; }));
  Gang("urgent", 1, ", priorityClassName: high");
  Pods("urgent", 1, 2, "priorityClassName: high, ");
  ASSERT_TRUE(cluster_.Until([&] { return Running("urgent") == 1; }));
  EXPECT_EQ(Running("loose"), 1);
}

TEST_F(GangsTest, TheTopologyOfAGangHoldsItTogether) {
  cluster_.AddNode("node-1", 2);
  cluster_.AddNode("node-2", 2);
  for (const auto& [node, rack] : {std::pair("node-0", "a"), {"node-1", "b"}, {"node-2", "b"}}) {
    ASSERT_TRUE(cluster_
                    .Patch(client::resources::kNodes, node,
                           StrCat("metadata: {labels: {example.com/rack: ", rack, "}}"))
                    .ok());
  }
  const std::string topology = ", schedulingConstraints: {topology: [{key: example.com/rack}]}";
  Gang("first", 3, topology);
  Pods("first", 3, 1);
  ASSERT_TRUE(cluster_.Until([&] { return Running("first") == 3; }));
  Gang("wide", 3, topology);
  Pods("wide", 3, 1);
  ASSERT_TRUE(cluster_.Until([&] { return Running("wide") == 3; }));
  // One GPU is free in each rack.
  Gang("last", 2, topology);
  Pods("last", 2, 1);
  cluster_.Run(10 * kSecond);
  EXPECT_EQ(Running("last"), 0);
  std::set<std::string> racks;
  for (const json::SharedValue& pod : cluster_.List(kPods, "default")) {
    if (!api::Name(*pod).starts_with("wide-")) continue;
    racks.insert(api::NodeName(*pod) == "node-0" ? "a" : "b");
  }
  EXPECT_EQ(racks.size(), 1u);
}

TEST_F(GangsTest, GangsOfOneCompositeGroupStartTogether) {
  cluster_.AddNode("node-1", 4);
  const std::string parent =
      ", parentCompositePodGroupName: job, workloadRef: {workloadName: w, templateName: t}";
  Gang("driver", 1, parent);
  Pods("driver", 1, 1);
  cluster_.Run(10 * kSecond);
  EXPECT_EQ(Running("driver"), 0);
  cluster_.Create(
      "apiVersion: scheduling.k8s.io/v1alpha3\nkind: CompositePodGroup\nmetadata: {name: job, "
      "namespace: default}\nspec: {schedulingPolicy: {gang: {minGroupCount: 2}}, workloadRef: "
      "{workloadName: w, templateName: t}}\n");
  cluster_.Run(10 * kSecond);
  EXPECT_EQ(Running("driver"), 0);
  const json::SharedValue waiting = cluster_.Get(kPods, "default/driver-0");
  EXPECT_EQ(api::FindCondition(*waiting, "PodScheduled")->message,
            "waits for 2 groups of CompositePodGroup \"job\", of which 1 is there");
  Gang("workers", 2, parent);
  cluster_.Run(10 * kSecond);
  EXPECT_EQ(Running("driver"), 0) << "workers has no pods";
  Pods("workers", 2, 5);
  const auto told = [this](std::string_view reason, bool holds) {
    constexpr std::string_view kType = "PodGroupInitiallyScheduled";
    const std::string of_all = StrCat("Composite", kType);
    return cluster_.Reason(kGangs, "default/driver", kType) == reason &&
           cluster_.Reason(kGangs, "default/workers", kType) == reason &&
           cluster_.Reason(kCompositeGangs, "default/job", of_all) == reason &&
           cluster_.Condition(kCompositeGangs, "default/job", of_all) == holds;
  };
  EXPECT_TRUE(cluster_.Until([&] { return told("Unschedulable", false); }));
  for (const char* name : {"workers-0", "workers-1"}) {
    ASSERT_TRUE(cluster_.Delete(kPods, StrCat("default/", name)).ok());
  }
  Pods("workers", 2, 3);
  EXPECT_TRUE(cluster_.Until([&] { return told("Scheduled", true); }));
  EXPECT_TRUE(cluster_.Until([&] { return Running("workers") == 2 && Running("driver") == 1; }));
  const json::SharedValue group =
      cluster_.Get(client::resources::kPodGroups, "default/compositepodgroup.job");
  ASSERT_TRUE(group);
  EXPECT_EQ(json::GetArray(*group, {"spec", "podSets"}).size(), 2u);
}

TEST_F(GangsTest, WhatIsNoGroupIsRefused) {
  const struct {
    const char* spec;
    const char* field;
  } kCases[] = {
      {"{}", "spec.schedulingPolicy"},
      {"{schedulingPolicy: {}}", "spec.schedulingPolicy"},
      {"{schedulingPolicy: {basic: {}, gang: {minCount: 1}}}", "spec.schedulingPolicy"},
      {"{schedulingPolicy: {gang: {minCount: 0}}}", "spec.schedulingPolicy.gang.minCount"},
      {"{schedulingPolicy: {basic: {}}, disruptionMode: {}}", "spec.disruptionMode"},
      {"{schedulingPolicy: {basic: {}}, workloadRef: {workloadName: w}}",
       "spec.workloadRef.templateName"},
  };
  for (const auto& c : kCases) {
    auto documents = json::ParseYaml(
        StrCat("apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: g, "
               "namespace: default}\nspec: ",
               c.spec, "\n"));
    ASSERT_TRUE(documents.ok());
    const Status status = cluster_.TryCreate(documents->front());
    EXPECT_FALSE(status.ok()) << c.spec;
    EXPECT_NE(status.message().find(c.field), std::string::npos) << status.message();
  }
  Gang("g", 2, ", disruptionMode: {all: {}}");
  EXPECT_TRUE(
      cluster_.Patch(kGangs, "default/g", "spec: {schedulingPolicy: {gang: {minCount: 3}}}").ok());
  EXPECT_FALSE(cluster_.Patch(kGangs, "default/g", "spec: {disruptionMode: null}").ok());
  EXPECT_FALSE(
      cluster_.Patch(kGangs, "default/g", "spec: {schedulingPolicy: {gang: null, basic: {}}}")
          .ok());
}

}  // namespace
}  // namespace swell::scheduling
