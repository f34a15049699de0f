// Jobs that say how they are scheduled, in a whole cluster of virtual time.
#include "kube/controllers/workloads/job_gang.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::controllers {
namespace {

using client::resources::kGangs;
using client::resources::kJobs;
using client::resources::kPods;
using client::resources::kWorkloads;
using manager::kSecond;
using manager::TestCluster;

class JobGangTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-a", 4);
    cluster_.StartManager();
  }
  static std::string Job(const std::string& name,
                         int pods,
                         const std::string& scheduling,
                         const std::string& more = "") {
    return StrCat("apiVersion: batch/v1\nkind: Job\nmetadata: {name: ", name,
                  ", namespace: default}\nspec: {parallelism: ", pods, ", completions: ", pods,
                  ", completionMode: Indexed, ", more,
                  scheduling.empty() ? "" : StrCat("scheduling: ", scheduling, ", "),
                  "template: {spec: {schedulerName: swell, restartPolicy: Never, containers: ",
                  "[{name: c, image: x, resources: {limits: {nvidia.com/gpu: 1}}}]}}}\n");
  }
  json::SharedValue Only(const client::Resource& resource) {
    const auto all = cluster_.List(resource, "default");
    return all.size() == 1 ? all[0] : nullptr;
  }
  int Running(const std::string& job) {
    int running = 0;
    for (const json::SharedValue& pod : cluster_.List(kPods, "default")) {
      running += api::Label(*pod, "job-name") == job && api::Phase(*pod) == "Running";
    }
    return running;
  }
  std::string Refused(const std::string& yaml) {
    auto documents = json::ParseYaml(yaml);
    if (!documents.ok()) return documents.status().message();
    const Status status = cluster_.TryCreate(documents->front());
    return status.ok() ? "" : status.message();
  }
  TestCluster cluster_;
};

TEST_F(JobGangTest, AJobIsAGangOfItsParallelism) {
  cluster_.Create(Job("j", 3, "{schedulingPolicy: {gang: {}}, disruptionMode: {all: {}}}"));
  ASSERT_TRUE(cluster_.Until([&] { return Running("j") == 3; }));
  const json::SharedValue workload = Only(kWorkloads);
  const json::SharedValue group = Only(kGangs);
  ASSERT_TRUE(workload && group);
  EXPECT_EQ(json::GetString(*workload, {"spec", "controllerRef", "name"}), "j");
  EXPECT_EQ(json::GetInt(*group, {"spec", "schedulingPolicy", "gang", "minCount"}), 3);
  EXPECT_EQ(json::GetString(*group, {"spec", "workloadRef", "workloadName"}), api::Name(*workload));
  EXPECT_EQ(api::Owners(*group).size(), 2u);
  for (const json::SharedValue& pod : cluster_.List(kPods, "default")) {
    EXPECT_EQ(json::GetString(*pod, {"spec", "schedulingGroup", "podGroupName"}),
              api::Name(*group));
    EXPECT_EQ(api::ControllerOf(*pod)->kind, "Job");
  }
  // What would be the fifth GPU is not there: not one of its pods starts.
  cluster_.Create(Job("k", 2, "{schedulingPolicy: {gang: {}}}"));
  cluster_.Run(20 * kSecond);
  EXPECT_EQ(Running("k"), 0);
  // All of it goes with the job.
  ASSERT_TRUE(cluster_.Delete(kJobs, "default/j", {.propagation = "Background"}).ok());
  EXPECT_TRUE(cluster_.Until([&] { return Running("k") == 2; }));
  EXPECT_TRUE(cluster_.Until([&] { return Only(kWorkloads) != nullptr && Only(kGangs); }));
}

TEST_F(JobGangTest, AJobThatSaysNothingHasNoObjects) {
  cluster_.Create(Job("p", 1, ""));
  ASSERT_TRUE(cluster_.Until([&] { return Running("p") == 1; }));
  EXPECT_TRUE(cluster_.List(kWorkloads).empty());
  EXPECT_TRUE(cluster_.List(kGangs).empty());
}

TEST_F(JobGangTest, TheLeastNumberOfPodsFollowsTheJob) {
  cluster_.Create(Job("j", 6, "{schedulingPolicy: {gang: {minCount: 5}}}"));
  cluster_.Run(20 * kSecond);
  EXPECT_EQ(Running("j"), 0);
  ASSERT_TRUE(cluster_
                  .Patch(kJobs, "default/j",
                         "spec: {scheduling: {schedulingPolicy: {gang: {minCount: 2}}}}")
                  .ok());
  EXPECT_TRUE(cluster_.Until([&] { return Running("j") == 4; }));
  EXPECT_EQ(json::GetInt(*Only(kGangs), {"spec", "schedulingPolicy", "gang", "minCount"}), 2);
  EXPECT_EQ(json::GetInt(json::GetArray(*Only(kWorkloads), {"spec", "podGroupTemplates"})[0],
                         {"schedulingPolicy", "gang", "minCount"}),
            2);
}

TEST_F(JobGangTest, ASuspendedJobGetsItsGroupAndItsPodsLater) {
  cluster_.Create(Job("j", 2, "{schedulingPolicy: {gang: {}}}", "suspend: true, "));
  ASSERT_TRUE(cluster_.Until([&] { return Only(kGangs) != nullptr; }));
  EXPECT_TRUE(cluster_.List(kPods, "default").empty());
  ASSERT_TRUE(cluster_.Patch(kJobs, "default/j", "spec: {suspend: false}").ok());
  EXPECT_TRUE(cluster_.Until([&] { return Running("j") == 2; }));
  EXPECT_FALSE(json::GetString(*cluster_.List(kPods, "default")[0],
                               {"spec", "schedulingGroup", "podGroupName"})
                   .empty());
}

TEST_F(JobGangTest, WhatNoGroupCanBeIsRefused) {
  const struct {
    const char* scheduling;
    const char* message;
  } kCases[] = {
      {"{schedulingPolicy: {}}", "must specify one of: `basic`, `gang`"},
      {"{schedulingPolicy: {gang: {minCount: 3}}}", "must not be greater than parallelism (2)"},
      {"{disruptionMode: {all: {}}}", "not supported with the Basic scheduling policy"},
      {"{schedulingConstraints: {topology: [{key: a}, {key: b}]}}",
       "spec.scheduling.schedulingConstraints.topology"},
  };
  for (const auto& [scheduling, message] : kCases) {
    const std::string refused = Refused(Job("j", 2, scheduling));
    EXPECT_NE(refused.find(message), std::string::npos) << scheduling << ": " << refused;
  }
  cluster_.Create(Job("j", 2, "{schedulingPolicy: {gang: {}}}"));
  for (const char* change :
       {"spec: {scheduling: null}", "spec: {scheduling: {disruptionMode: {all: {}}}}",
        "spec: {scheduling: {schedulingPolicy: {gang: null, basic: {}}}}"}) {
    EXPECT_FALSE(cluster_.Patch(kJobs, "default/j", change).ok()) << change;
  }
}

}  // namespace
}  // namespace swell::controllers
