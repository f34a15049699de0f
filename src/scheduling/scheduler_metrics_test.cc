// What a cluster's numbers say of it: shares, nodes, jobs, waits, preemptions.
#include "scheduling/scheduler_metrics.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::scheduling {
namespace {

using manager::kSecond;
using manager::TestCluster;

constexpr std::string_view kProjects = R"(
apiVersion: swell.dev/v1
kind: Project
metadata: {name: red}
spec: {resources: {gpu: {quota: 4}}}
---
apiVersion: swell.dev/v1
kind: Project
metadata: {name: blue}
spec: {resources: {gpu: {quota: 4}}}
)";

std::string Job(std::string_view name, std::string_view project, int gpus) {
  return StrCat(R"(
apiVersion: swell.dev/v1
kind: TrainingJob
metadata: {name: )",
                name, ", namespace: ", project, R"(}
spec:
  project: )",
                project, R"(
  priorityClassName: train
  roles:
    worker:
      replicas: 1
      restartPolicy: OnFailure
      template: {spec: {containers: [{name: main, image: i, resources: {limits: {nvidia.com/gpu: )",
                gpus, "}}}]}}\n");
}

class SchedulerMetricsTest : public testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-1", 8);
    cluster_.StartManager();
    cluster_.Create(kProjects);
    ASSERT_TRUE(cluster_.Until([&] {
      return cluster_.Get(client::resources::kNamespaces, "red") != nullptr &&
             cluster_.Get(client::resources::kNamespaces, "blue") != nullptr;
    }));
  }

  std::string Metric(const std::string& series) {
    const std::string page = cluster_.metrics.Print();
    const size_t at = page.find(StrCat("\n", series, " "));
    if (at == std::string::npos) return "none";
    const size_t value = at + series.size() + 2;
    return page.substr(value, page.find('\n', value) - value);
  }
  std::string Project(const std::string& what, const std::string& project) {
    return Metric(StrCat("swell_project_", what, "{project=\"", project,
                         "\",pool=\"default\",resource=\"gpu\"}"));
  }

  TestCluster cluster_;
};

TEST_F(SchedulerMetricsTest, FollowsAReclaimFromBeginningToEnd) {
  cluster_.Create(Job("greedy", "red", 8));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  EXPECT_EQ(Project("allocated", "red"), "8");
  EXPECT_EQ(Project("quota", "red"), "4");
  EXPECT_EQ(Metric("swell_node_gpus{node=\"node-1\",pool=\"default\"}"), "8");
  EXPECT_EQ(Metric("swell_node_gpus_idle{node=\"node-1\",pool=\"default\"}"), "0");
  const std::string greedy = R"(namespace="red",job="greedy",project="red")";
  EXPECT_EQ(Metric(StrCat("swell_job_gpus{", greedy, "}")), "8");
  EXPECT_EQ(Metric(StrCat("swell_job_members{", greedy, ",state=\"holding\"}")), "1");
  EXPECT_EQ(Metric(R"(swell_project_jobs{project="red",state="running"})"), "1");
  EXPECT_EQ(Metric(R"(swell_scheduler_wait_seconds_count{project="red"})"), "1");

  // Rates need a series that exists before it grows.
  const std::string reclaimed =
      R"(swell_scheduler_preempted_pods_total{rule="reclaim",project="red"})";
  EXPECT_EQ(Metric(reclaimed), "0");

  cluster_.Run(60 * kSecond);
  cluster_.Create(Job("due", "blue", 4));
  ASSERT_TRUE(cluster_.Until([&] { return Project("allocated", "blue") == "4"; }));
  const std::string waiting = R"(swell_project_jobs{project="red",state="waiting"})";
  ASSERT_TRUE(cluster_.Until([&] { return Metric(waiting) == "1"; }));
  ASSERT_TRUE(cluster_.Until([&] { return Metric("swell_scheduler_binds_total") == "2"; }));
  EXPECT_EQ(Metric(reclaimed), "1");
  const auto lost =
      Metric(R"(swell_scheduler_preempted_gpu_seconds_total{rule="reclaim",project="red"})");
  EXPECT_GE(std::stod(lost), 8 * 60.0);
  EXPECT_EQ(Metric("swell_scheduler_evictions_total"), "1");
  EXPECT_NE(Metric("swell_scheduler_cycle_duration_seconds_count"), "0");
}

TEST_F(SchedulerMetricsTest, TellsOfQueuesAndCaches) {
  EXPECT_EQ(Metric("workqueue_depth{name=\"projects\"}"), "0");
  EXPECT_NE(Metric("workqueue_adds_total{name=\"projects\"}"), "0");
  EXPECT_EQ(Metric("swell_informer_objects{resource=\"nodes\"}"), "1");
  EXPECT_EQ(Metric("swell_informer_objects{resource=\"projects.swell.dev\"}"), "2");
}

// Prometheus refuses a page on which a series is twice.
TEST_F(SchedulerMetricsTest, NoSeriesIsTwice) {
  cluster_.Create(Job("one", "red", 1));
  cluster_.Create(Job("two", "red", 1));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 2; }));
  std::set<std::string_view> seen;
  const std::string page = cluster_.metrics.Print();
  for (std::string_view line : Split(page, '\n')) {
    if (line.empty() || line.starts_with("#")) continue;
    const std::string_view series = line.substr(0, line.rfind(' '));
    EXPECT_TRUE(seen.insert(series).second) << series;
  }
  EXPECT_GT(seen.size(), 100u);
}

TEST_F(SchedulerMetricsTest, EndsWithTheManager) {
  EXPECT_NE(Metric("swell_scheduler_binds_total"), "none");
  cluster_.StopManager();
  EXPECT_EQ(Metric("swell_scheduler_binds_total"), "none");
  EXPECT_EQ(Metric("workqueue_depth{name=\"projects\"}"), "none");
}

}  // namespace
}  // namespace swell::scheduling
