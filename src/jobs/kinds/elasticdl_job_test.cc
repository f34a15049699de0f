// ElasticDL's jobs on a cluster: the walkthrough's story, floors by fractions, relaunching.
#include "jobs/kinds/elasticdl_job.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::jobs {
namespace {

using manager::kSecond;
using manager::TestCluster;

const client::Resource kJobs{"elasticdl.org", "v1alpha1", "elasticdljobs", true};
using client::resources::kPods;

constexpr std::string_view kClasses = R"(
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high-priority}
value: 1000000
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: low-priority}
value: 1000
)";

std::string Job(const std::string& name, int workers, const std::string& priority) {
  auto role = [](const char* type, int replicas, const std::string& priority, const char* cpu) {
    return StrCat("    ", type, ":\n      replicas: ", replicas, "\n      priorityClassName: '",
                  priority,
                  "'\n      template: {spec: {containers: [{name: main, image: x, "
                  "resources: {requests: {cpu: '",
                  cpu, "'}}}]}}\n");
  };
  return StrCat("apiVersion: elasticdl.org/v1alpha1\nkind: ElasticDLJob\nmetadata: {name: ", name,
                "}\nspec:\n  highPriorityClassName: high-priority\n"
                "  lowPriorityClassName: low-priority\n  elasticdlReplicaSpecs:\n",
                role("Master", 1, "high-priority", "1"), role("Worker", workers, priority, "3"));
}

class ElasticdlJobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* node : {"a", "b", "c"}) cluster_.AddNode(node, 0, "3920m");
    cluster_.StartManager();
    cluster_.Create(kClasses);
  }
  // "master Running, worker-0 Running, worker-1 Pending".
  std::string Pods(const std::string& job) {
    std::string text;
    for (const json::SharedValue& pod : cluster_.List(kPods, "default")) {
      if (api::Label(*pod, "elasticdl_job_name") != job) continue;
      const std::string_view type = api::Label(*pod, "elasticdl-replica-type");
      text +=
          StrCat(text.empty() ? "" : ", ", type,
                 type == "master" ? "" : StrCat("-", api::Label(*pod, "elasticdl-replica-index")),
                 " ", json::GetString(*pod, {"status", "phase"}, "Pending"));
    }
    return text;
  }
  bool Until(const std::string& job, const std::string& pods) {
    const bool reached = cluster_.Until([&] { return Pods(job) == pods; });
    if (!reached) ADD_FAILURE() << job << ": " << Pods(job) << " instead of " << pods;
    return reached;
  }
  bool Is(const std::string& job, std::string_view type) {
    return cluster_.Condition(kJobs, "default/" + job, type);
  }

  TestCluster cluster_;
};

TEST_F(ElasticdlJobTest, TellsTheWalkthroughsStoryAndTheWorkerComesBack) {
  cluster_.Create(Job("low", 2, "low-priority"));
  ASSERT_TRUE(Until("low", "master Running, worker-0 Running, worker-1 Running"));
  EXPECT_NE(cluster_.PodPhase("default/elasticdl-master-low"), "");
  EXPECT_NE(cluster_.PodPhase("default/elasticdl-worker-low-1"), "");
  cluster_.Create(Job("high", 1, "high-priority"));
  ASSERT_TRUE(Until("high", "master Running, worker-0 Running"));
  cluster_.Run(5 * kSecond);
  const std::string pods = Pods("low");
  EXPECT_TRUE(pods == "master Running, worker-0 Running, worker-1 Pending" ||
              pods == "master Running, worker-0 Pending, worker-1 Running")
      << pods;
  EXPECT_TRUE(Is("low", "Running"));
  EXPECT_EQ(cluster_.Events("Preempted"), 1);
  const std::string shrunk = cluster_.EventMessage("Shrunk", "low");
  EXPECT_TRUE(
      shrunk.starts_with("Shrunk from 2 to 1 of 2 members: Preempted by "
                         "default/elasticdl-worker-high-0"))
      << shrunk;
  EXPECT_EQ(cluster_.Events("Shrunk"), 1);
  cluster_.agents->Exit("default/elasticdl-worker-high-0", 0);
  cluster_.agents->Exit("default/elasticdl-master-high", 0);
  ASSERT_TRUE(cluster_.Until([&] { return Is("high", "Succeeded"); }));
  ASSERT_TRUE(Until("low", "master Running, worker-0 Running, worker-1 Running"));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Events("Grown") == 1; }));
  EXPECT_EQ(cluster_.EventMessage("Grown", "low"), "Grew from 1 to 2 of 2 members");
  cluster_.agents->Exit("default/elasticdl-master-low", 0);
  ASSERT_TRUE(cluster_.Until([&] { return Is("low", "Succeeded"); }));
  EXPECT_EQ(cluster_.Int(kJobs, "default/low", {"status", "restarts"}), 0);
}

TEST_F(ElasticdlJobTest, WaitsWhenAllWorkersAreTakenAndGoesOn) {
  cluster_.Create(Job("low", 1, "low-priority"));
  ASSERT_TRUE(Until("low", "master Running, worker-0 Running"));
  cluster_.Create(Job("high", 2, "high-priority"));
  ASSERT_TRUE(Until("low", "master Running, worker-0 Pending"));
  cluster_.Run(600 * kSecond);
  EXPECT_FALSE(Is("low", "Failed"));
  ASSERT_TRUE(cluster_.Delete(kJobs, "default/high").ok());
  ASSERT_TRUE(Until("low", "master Running, worker-0 Running"));
}

TEST_F(ElasticdlJobTest, ARestIsToldOnceWhenItIsOver) {
  cluster_.Create(Job("low", 2, "low-priority"));
  ASSERT_TRUE(Until("low", "master Running, worker-0 Running, worker-1 Running"));
  ASSERT_TRUE(cluster_.Patch(kJobs, "default/low", "spec: {suspend: true}").ok());
  ASSERT_TRUE(Until("low", ""));
  cluster_.Run(10 * kSecond);
  ASSERT_TRUE(cluster_.Patch(kJobs, "default/low", "spec: {suspend: false}").ok());
  ASSERT_TRUE(Until("low", "master Running, worker-0 Running, worker-1 Running"));
  cluster_.Run(30 * kSecond);
  EXPECT_EQ(cluster_.Events("Resumed"), 1);
  EXPECT_TRUE(cluster_.EventMessage("Resumed", "low").starts_with("ElasticDLJob low runs again"));
}

TEST_F(ElasticdlJobTest, AFractionOfTheWorkersIsHighAtAlternatingEnds) {
  cluster_.Create(Job("half", 5, "0.5"));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 6; }));
  std::string classes;
  for (int i = 0; i < 5; ++i) {
    json::SharedValue pod = cluster_.Get(kPods, StrCat("default/elasticdl-worker-half-", i));
    classes += json::GetString(*pod, {"spec", "priorityClassName"})[0];
  }
  EXPECT_EQ(classes, "hhllh");
}

TEST_F(ElasticdlJobTest, KilledWorkersAlwaysComeBackFailedOnesOnce) {
  cluster_.Create(Job("job", 2, "low-priority"));
  ASSERT_TRUE(Until("job", "master Running, worker-0 Running, worker-1 Running"));
  for (int i = 0; i < 3; ++i) {
    const std::string uid = cluster_.PodUid("default/elasticdl-worker-job-0");
    cluster_.agents->Exit("default/elasticdl-worker-job-0", 137);
    ASSERT_TRUE(cluster_.Until([&] {
      return cluster_.PodUid("default/elasticdl-worker-job-0") != uid &&
             cluster_.PodPhase("default/elasticdl-worker-job-0") == "Running";
    }));
  }
  const std::string uid = cluster_.PodUid("default/elasticdl-worker-job-0");
  cluster_.agents->Exit("default/elasticdl-worker-job-0", 1);
  ASSERT_TRUE(cluster_.Until([&] {
    return cluster_.PodUid("default/elasticdl-worker-job-0") != uid &&
           cluster_.PodPhase("default/elasticdl-worker-job-0") == "Running";
  }));
  cluster_.agents->Exit("default/elasticdl-worker-job-0", 1);
  ASSERT_TRUE(Until("job", "master Running, worker-0 Failed, worker-1 Running"));
  cluster_.Run(60 * kSecond);
  EXPECT_FALSE(Is("job", "Failed"));
  // Nobody is left.
  cluster_.agents->Exit("default/elasticdl-worker-job-1", 1);
  ASSERT_TRUE(cluster_.Until([&] { return Is("job", "Failed"); }));
}

TEST_F(ElasticdlJobTest, AKilledMasterIsMadeAnewAndItsFailureIsTheJobs) {
  cluster_.Create(Job("job", 1, "low-priority"));
  ASSERT_TRUE(Until("job", "master Running, worker-0 Running"));
  const std::string uid = cluster_.PodUid("default/elasticdl-master-job");
  cluster_.agents->Exit("default/elasticdl-master-job", 137);
  ASSERT_TRUE(cluster_.Until([&] {
    return cluster_.PodUid("default/elasticdl-master-job") != uid &&
           cluster_.PodPhase("default/elasticdl-master-job") == "Running";
  }));
  EXPECT_EQ(cluster_.PodPhase("default/elasticdl-worker-job-0"), "Running");
  cluster_.agents->Exit("default/elasticdl-master-job", 1);
  ASSERT_TRUE(cluster_.Until([&] { return Is("job", "Failed"); }));
}

TEST_F(ElasticdlJobTest, TheStatusSaysHowManyGradientsWereStale) {
  cluster_.Create(Job("job", 1, "low-priority"));
  ASSERT_TRUE(Until("job", "master Running, worker-0 Running"));
  auto report = [this](const std::string& metrics) {
    return cluster_.Patch(kPods, "default/elasticdl-master-job",
                          StrCat("metadata: {annotations: {swell.dev/metrics: '", metrics, "'}}"));
  };
  auto number = [this](std::string_view field) {
    return cluster_.Int(kJobs, "default/job", {"status", "gradients", field});
  };
  ASSERT_TRUE(report(R"({"accepted_gradients": 300, "stale_gradients": 100})").ok());
  ASSERT_TRUE(cluster_.Until([&] { return number("stalePercentage") == 25; }));
  EXPECT_EQ(number("accepted"), 300);
  EXPECT_EQ(number("stale"), 100);
  ASSERT_TRUE(report(R"({"accepted_gradients": "many", "stale_gradients": -7})").ok());
  ASSERT_TRUE(cluster_.Until([&] { return number("accepted") == 0; }));
  EXPECT_EQ(number("stale"), 0) << "nonsense is nothing";
}

TEST(ElasticdlJob, IsRefusedByField) {
  auto kind = MakeElasticdlJobKind({});
  EXPECT_EQ(kind->Parse(json::Object{}).status().message(),
            "spec.elasticdlReplicaSpecs.Master: Required value");
  json::Value job =
      json::Parse(R"({"spec":{"elasticdlReplicaSpecs":{"Master":{"replicas":2}}}})").value();
  EXPECT_EQ(
      kind->Parse(job).status().message(),
      "spec.elasticdlReplicaSpecs.Master.replicas: Invalid value: 2: there must be one Master");
}

}  // namespace
}  // namespace swell::jobs
