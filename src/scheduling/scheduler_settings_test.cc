// What a scheduler says that it is run with, and who goes by it.
#include "scheduling/scheduler_settings.h"

#include <gtest/gtest.h>

#include "base/duration.h"
#include "base/strings.h"
#include "jobs/kinds/training_job.h"
#include "jobs/pass/job_members.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"
#include "scheduling/simulate.h"

namespace swell::scheduling {
namespace {

using client::resources::kConfigMaps;
using client::resources::kPodGroups;
using client::resources::kPods;
using manager::TestCluster;

SchedulerSettings Unusual() {
  SchedulerSettings settings;
  settings.names = {"swell", "default-scheduler"};
  settings.cycle.stale_grace = std::chrono::milliseconds(1500);
  settings.cycle.reserve_after = Duration::zero();
  settings.cycle.move_pause = std::chrono::hours(3);
  settings.cycle.past_share = 0.25;
  settings.cycle.past_half_life = std::chrono::hours(24);
  return settings;
}

TEST(SchedulerSettings, OutliveTheirConfigMap) {
  const json::Value map = ToConfigMap(Unusual(), "somewhere");
  SchedulerSettings read;
  std::vector<std::string> problems;
  ReadConfigMap(map, read, problems);
  EXPECT_TRUE(problems.empty()) << problems[0];
  EXPECT_EQ(json::Print(ToConfigMap(read, "somewhere")), json::Print(map));
  EXPECT_EQ(read.names.size(), 2u);
  EXPECT_EQ(FormatDuration(read.cycle.stale_grace), "1.5s");
  EXPECT_EQ(read.cycle.past_share, 0.25);
}

TEST(SchedulerSettings, ThatCannotBeReadAreToldAndStay) {
  json::Value map = ToConfigMap({}, "swell-system");
  json::Set(map, {"data", "reserveAfter"}, "soon");
  json::Set(map, {"data", "ofAnotherVersion"}, "1");
  SchedulerSettings read = Unusual();
  std::vector<std::string> problems;
  ReadConfigMap(map, read, problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0],
            "ConfigMap swell-system/swell-scheduler: data.reserveAfter \"soon\" is not a duration "
            "such as 90s");
  EXPECT_EQ(read.cycle.reserve_after, Duration::zero());
}

TEST(SchedulerSettings, AreWhatAStateIsJudgedBy) {
  auto read = [](const std::string& more) {
    std::vector<std::string> problems;
    const std::string pod =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\n"
        "spec: {schedulerName: default-scheduler, containers: [{name: c}]}\n";
    StateInputs inputs = ReadState(pod + more, problems);
    EXPECT_TRUE(problems.empty());
    return inputs;
  };
  EXPECT_FALSE(read("").pods[0].ours);
  const StateInputs inputs =
      read("---\n" + json::PrintYaml(ToConfigMap(Unusual(), "swell-system")) +
           "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: a}}\n");
  EXPECT_TRUE(inputs.pods[0].ours);
  EXPECT_EQ(inputs.settings.cycle.move_pause, std::chrono::hours(3));
}

TEST(SchedulerSettings, AreInTheClusterOnceItsSchedulerRuns) {
  TestCluster cluster;
  manager::ManagerOptions options;
  options.own_namespace = "swell-system";
  const auto said = [&] {
    const json::SharedValue map = cluster.Get(kConfigMaps, "swell-system/swell-scheduler");
    return std::string(map ? json::GetString(*map, {"data", "reserveAfter"}) : "");
  };
  for (const int minutes : {5, 7}) {
    options.scheduler.reserve_after = std::chrono::minutes(minutes);
    cluster.StartManager(options);
    EXPECT_TRUE(cluster.Until([&] { return said() == StrCat(minutes, "m0s"); })) << said();
    cluster.StopManager();
  }
}

// What a plan is made of is what the job's controller makes.
TEST(MakeGang, IsWhatTheControllerMakesOfTheJob) {
  const std::string yaml = R"(
apiVersion: swell.dev/v1
kind: TrainingJob
metadata: {name: job, namespace: default}
spec:
  topology: {name: dc, required: example.com/rack}
  preemption: {minRuntimeSeconds: 60}
  roles:
    worker:
      replicas: 3
      elastic: {minReplicas: 2, maxReplicas: 3}
      template: {spec: {containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}}
)";
  TestCluster cluster;
  cluster.StartManager({});
  cluster.Create(yaml);
  ASSERT_TRUE(cluster.Until([&] { return cluster.Pods("") == 3; }));
  const auto job = json::ParseYaml(yaml);
  ASSERT_TRUE(job.ok());
  const auto gang = jobs::MakeGang(*jobs::MakeTrainingJobKind({}), (*job)[0]);
  ASSERT_TRUE(gang.ok()) << gang.status().ToString();
  ASSERT_EQ(gang->size(), 4u);
  const json::SharedValue group = cluster.Get(kPodGroups, "default/job");
  ASSERT_TRUE(group);
  EXPECT_EQ(json::GetString((*gang)[0], {"spec", "topology", "required"}), "example.com/rack");
  for (const auto& [field, value] : json::GetObject((*gang)[0], {"spec"})) {
    const std::string_view name(field);
    EXPECT_EQ(json::Print(*json::Find(*group, {"spec", name})), json::Print(value)) << name;
  }
  for (size_t i = 1; i < gang->size(); ++i) {
    const json::SharedValue pod = cluster.Get(kPods, api::KeyOf((*gang)[i]));
    ASSERT_TRUE(pod) << json::Print((*gang)[i]);
    EXPECT_EQ(json::GetObject(*pod, {"metadata", "labels"}),
              json::GetObject((*gang)[i], {"metadata", "labels"}));
  }
}

}  // namespace
}  // namespace swell::scheduling
