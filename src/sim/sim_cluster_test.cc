// Whole clusters in virtual time: walkthrough 1 in milliseconds, twice with the same trace; crashes
// of the control plane at every possible moment.
#include "sim/sim_cluster.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "base/test_seeds.h"
#include "kube/api/meta/meta.h"

namespace swell::sim {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr const char* kClasses[] = {
    R"({"apiVersion":"scheduling.k8s.io/v1beta1","kind":"PriorityClass",
        "metadata":{"name":"critical"},"value":1100000})",
    R"({"apiVersion":"scheduling.k8s.io/v1beta1","kind":"PriorityClass",
        "metadata":{"name":"medium"},"value":1000000})"};

std::string Replica(int replicas, int gpus, const std::string& priority, int run_seconds) {
  return StrCat(R"({"replicas":)", replicas, R"(,"restartPolicy":"Never","template":{"metadata":{)",
                R"("annotations":{"swell.dev/run-seconds":")", run_seconds,
                R"(","swell.dev/stop-seconds":"1"}},"spec":{"priorityClassName":")", priority,
                R"(","containers":[{"name":"pytorch","image":"pytorch","resources":{"limits":)",
                R"({"nvidia.com/gpu":)", gpus, "}}}]}}}");
}

std::string Job(const std::string& name,
                int workers,
                int gpus,
                const std::string& priority,
                int run_seconds,
                const std::string& on_preemption) {
  std::string worker =
      workers > 1 ? StrCat(R"(,"Worker":)", Replica(workers - 1, gpus, priority, run_seconds)) : "";
  return StrCat(
      R"({"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{"name":")", name,
      R"(","annotations":{"swell.dev/on-preemption":")", on_preemption,
      R"("}},"spec":{"runPolicy":{"cleanPodPolicy":"None"},"pytorchReplicaSpecs":{"Master":)",
      Replica(1, gpus, priority, run_seconds), worker, "}}}");
}

// Every GPU that some pod holds, by node: nobody's twice.
void ExpectNoDeviceHasTwoOwners(const SimCluster& cluster) {
  std::map<std::string, std::string> owners;
  for (const json::SharedValue& pod : cluster.List("pods")) {
    std::string_view phase = json::GetString(*pod, {"status", "phase"});
    if (phase == "Succeeded" || phase == "Failed") continue;
    std::string_view node = json::GetString(*pod, {"spec", "nodeName"});
    for (std::string_view device : Split(api::Annotation(*pod, "swell.dev/gpu-devices"), ',')) {
      std::string slot = StrCat(node, "/", device);
      auto [it, first] = owners.emplace(slot, api::Name(*pod));
      EXPECT_TRUE(first) << slot << " belongs to " << it->second << " and " << api::Name(*pod);
    }
  }
}

std::string PodOf(const std::string& name, int cpus, int sidecar_cpus) {
  const std::string sidecar =
      sidecar_cpus == 0
          ? ""
          : StrCat(R"("initContainers":[{"name":"proxy","image":"x","restartPolicy":"Always",)",
                   R"("resources":{"requests":{"cpu":)", sidecar_cpus, "}}}],");
  return StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name, R"("},"spec":{)",
                sidecar, R"("containers":[{"name":"main","image":"x","resources":{"requests":)",
                R"({"cpu":)", cpus, "}}}]}}");
}

SimOptions Story(uint64_t seed) {
  SimOptions options;
  options.seed = seed;
  options.control_plane_nodes = 3;
  return options;
}

void StartStory(SimCluster& cluster, const std::string& on_preemption) {
  cluster.Boot();
  for (const char* priority_class : kClasses) ASSERT_TRUE(cluster.Apply(priority_class).ok());
  ASSERT_TRUE(cluster.Apply(Job("medium", 3, 4, "medium", 600, on_preemption)).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.JobState("default", "medium") == "Running"; },
                               minutes(1)));
  cluster.Advance(minutes(1));
  ASSERT_TRUE(cluster.Apply(Job("critical", 1, 1, "critical", 60, "Requeue")).ok());
}

// Scheduler and node agent count the same: what one binds the other never refuses.
TEST(Placement, APodWithASidecarWaitsWhereItDoesNotFit) {
  SimOptions options;
  options.nodes = 1;
  options.cpus = "4";
  SimCluster cluster(options);
  cluster.Boot();
  ASSERT_TRUE(cluster.Apply(PodOf("alone", 2, 0)).ok());
  ASSERT_TRUE(cluster.Apply(PodOf("with-sidecar", 2, 1)).ok());
  cluster.Advance(minutes(1));
  EXPECT_EQ(cluster.PodPhase("default", "alone"), "Running");
  EXPECT_EQ(cluster.PodPhase("default", "with-sidecar"), "Pending");
  ASSERT_TRUE(cluster.Delete(client::resources::kPods, "default", "alone").ok());
  EXPECT_TRUE(cluster.RunUntil(
      [&] { return cluster.PodPhase("default", "with-sidecar") == "Running"; }, minutes(2)));
}

TEST(Walkthrough1, AsTheDocumentHasIt) {
  SimCluster cluster(Story(1));
  StartStory(cluster, "Fail");
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.JobState("default", "critical") == "Running"; },
                               seconds(10)));
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.JobState("default", "medium") == "Failed"; },
                               seconds(10)));
  cluster.Advance(seconds(35));
  int survivors = 0;
  std::string gone;
  for (const char* pod : {"medium-master-0", "medium-worker-0", "medium-worker-1"}) {
    std::string phase = cluster.PodPhase("default", pod);
    if (phase == "Failed") ++survivors;
    if (phase.empty()) gone = pod;
    if (phase != "Failed" && !phase.empty()) ADD_FAILURE() << pod << " is " << phase;
  }
  EXPECT_EQ(survivors, 2);
  ASSERT_FALSE(gone.empty());
  auto told = cluster.Events(gone, "Preempted");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("default/critical-master-0"), std::string::npos) << told[0];
  ExpectNoDeviceHasTwoOwners(cluster);
}

TEST(Walkthrough1, RequeueComesBackByItself) {
  SimCluster cluster(Story(1));
  StartStory(cluster, "Requeue");
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.JobState("default", "critical") == "Running"; },
                               seconds(10)));
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.JobState("default", "medium") == "Preempted"; },
                               seconds(10)));
  ExpectNoDeviceHasTwoOwners(cluster);
  ASSERT_TRUE(cluster.RunUntil(
      [&] { return cluster.JobState("default", "critical") == "Succeeded"; }, minutes(2)));
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.JobState("default", "medium") == "Running"; },
                               seconds(30)));
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.Events("medium", "Resumed").size() == 1; },
                               seconds(5)));
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.JobState("default", "medium") == "Succeeded"; },
                               minutes(15)));
}

TEST(Walkthrough1, SameSeedSameTrace) {
  auto play = [](uint64_t seed) {
    SimCluster cluster(Story(seed));
    StartStory(cluster, "Requeue");
    cluster.Advance(minutes(15));
    EXPECT_EQ(cluster.JobState("default", "medium"), "Succeeded");
    return cluster.trace_hash();
  };
  EXPECT_EQ(play(42), play(42));
  EXPECT_NE(play(42), play(43));
}

// The control plane dies at a random moment, again and again; jobs still end, nothing is placed
// twice, nothing is lost.
void PlayWithCrashes(uint64_t seed) {
  SCOPED_TRACE(StrCat("seed ", seed, "; replay with SWELL_SEED=", seed));
  SimCluster cluster(Story(seed));
  cluster.Boot();
  for (const char* priority_class : kClasses) ASSERT_TRUE(cluster.Apply(priority_class).ok());
  ASSERT_TRUE(cluster.Apply(Job("medium", 3, 4, "medium", 200, "Requeue")).ok());
  ASSERT_TRUE(cluster.Apply(Job("critical", 1, 1, "critical", 30, "Requeue")).ok());
  Random random(seed ^ 0x5eed);
  for (int crash = 0; crash < 5; ++crash) {
    // Short and long steps: in the middle of a write, and in the middle of a run.
    int64_t most_us = random.OneIn(2) ? 20'000 : 40'000'000;
    cluster.Advance(std::chrono::microseconds(random.Below(static_cast<uint64_t>(most_us))));
    cluster.Crash();
    cluster.Restart();
    ExpectNoDeviceHasTwoOwners(cluster);
  }
  EXPECT_TRUE(cluster.RunUntil(
      [&] {
        return cluster.JobState("default", "medium") == "Succeeded" &&
               cluster.JobState("default", "critical") == "Succeeded";
      },
      minutes(60)))
      << "medium " << cluster.JobState("default", "medium") << ", critical "
      << cluster.JobState("default", "critical");
  ExpectNoDeviceHasTwoOwners(cluster);
}

TEST(Crashes, JobsEndAllTheSame) {
  const TestSeeds seeds = TestSeeds::FromEnvironment(24);
  for (uint64_t i = 0; i < seeds.count; ++i) PlayWithCrashes(seeds.first + i);
}

}  // namespace
}  // namespace swell::sim
