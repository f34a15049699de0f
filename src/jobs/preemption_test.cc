// Which pods are preempted, what happens to their job, and which events are recorded.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "jobs/kinds/kubedl_job.h"
#include "jobs/kinds/last_preemption.h"
#include "jobs/kinds/pytorch_job.h"
#include "jobs/kinds/training_job.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "manager/testing/arena_fixture.h"

namespace swell::jobs {
namespace {

using manager::ArenaTest;
using manager::kSecond;
using manager::PyTorchYaml;

using PreemptionTest = ArenaTest;
using client::resources::kPodGroups;
using client::resources::kPods;
using client::resources::kPyTorchJobs;

// Walkthrough 1: the medium job FAILED, one instance gone, two listed as FAILED, the event says
// why.
TEST_F(PreemptionTest, FailTellsTheArenaStory) {
  FillWithMedium("Fail");
  SubmitCritical();
  ASSERT_TRUE(cluster_.Until([&] { return Is("critical", "Running"); }));
  ASSERT_TRUE(cluster_.Until([&] { return Is("medium", "Failed"); }));
  EXPECT_EQ(cluster_.Reason(kPyTorchJobs, "default/medium", "Failed"), "Preempted");
  cluster_.Run(30 * kSecond);
  int failed = 0;
  std::string victim;
  for (const char* pod : {"medium-master-0", "medium-worker-0", "medium-worker-1"}) {
    std::string phase = cluster_.PodPhase(StrCat("default/", pod));
    if (phase == "Failed") ++failed;
    if (phase.empty()) victim = pod;
  }
  EXPECT_EQ(failed, 2);
  ASSERT_FALSE(victim.empty());
  std::string message = cluster_.EventMessage("Preempted", victim);
  EXPECT_TRUE(message.starts_with("Preempted")) << message;
  EXPECT_NE(message.find("default/critical-master-0"), std::string::npos) << message;
  EXPECT_EQ(cluster_.Pods("Running"), 1);
  EXPECT_EQ(cluster_.Pods(""), 3);
}

TEST_F(PreemptionTest, RequeueStopsTheGangAndBringsItBack) {
  FillWithMedium("");
  SubmitCritical();
  ASSERT_TRUE(cluster_.Until([&] { return Is("critical", "Running"); }));
  ASSERT_TRUE(
      cluster_.Until([&] { return Is("medium", "Preempted") && cluster_.Pods("Pending") == 3; }));
  EXPECT_FALSE(Is("medium", "Failed"));
  EXPECT_FALSE(Is("medium", "Running"));
  json::SharedValue group = cluster_.Get(kPodGroups, "default/medium");
  EXPECT_EQ(json::GetString(*group, {"status", "phase"}), "Preempted");
  EXPECT_EQ(json::GetInt(*group, {"status", "preemptions"}), 1);
  EXPECT_EQ(json::GetString(*group, {"status", "lastPreemption", "by"}),
            "default/critical-master-0");
  EXPECT_EQ(json::GetString(*group, {"status", "lastPreemption", "rule"}), "preempt");
  EXPECT_GE(cluster_.Events("Preempted", "medium"), 1);

  cluster_.agents->Exit("default/critical-master-0", 0);
  ASSERT_TRUE(cluster_.Until([&] { return Is("medium", "Running"); }));
  EXPECT_FALSE(Is("medium", "Preempted"));
  EXPECT_EQ(cluster_.Reason(kPyTorchJobs, "default/medium", "Preempted"), "Resumed");
  EXPECT_EQ(cluster_.Events("Resumed", "medium"), 1);
  EXPECT_EQ(cluster_.Int(kPyTorchJobs, "default/medium", {"status", "preemptions"}), 1);
  // A preemption is not held against the job.
  EXPECT_LE(cluster_.Int(kPyTorchJobs, "default/medium", {"status", "restarts"}), 0);
}

// Peers crash when a member goes; that is the preemption's doing, not theirs.
TEST_F(PreemptionTest, PeersFailingInItsWakeDoNotCount) {
  FillWithMedium("");
  cluster_.agents->stop_after = 10 * kSecond;
  SubmitCritical();
  ASSERT_TRUE(cluster_.Until([&] { return Is("medium", "Preempted"); }));
  for (const char* pod : {"default/medium-master-0", "default/medium-worker-0"}) {
    if (cluster_.PodPhase(pod) == "Running") cluster_.agents->Exit(pod, 1);
  }
  ASSERT_TRUE(cluster_.Until([&] { return Is("critical", "Running"); }));
  cluster_.agents->Exit("default/critical-master-0", 0);
  EXPECT_TRUE(cluster_.Until([&] { return Is("medium", "Running"); }));
  EXPECT_FALSE(Is("medium", "Failed"));
}

TEST_F(PreemptionTest, SecondPreemptionIsToldAgain) {
  FillWithMedium("");
  for (int round = 1; round <= 2; ++round) {
    std::string name = StrCat("critical-", round);
    cluster_.Create(
        PyTorchYaml{.name = name, .workers = 0, .gpus = 1, .priority = "critical"}.Text());
    ASSERT_TRUE(cluster_.Until([&] { return Is(name, "Running"); }));
    ASSERT_TRUE(cluster_.Until([&] { return Is("medium", "Preempted"); }));
    EXPECT_EQ(cluster_.Int(kPyTorchJobs, "default/medium", {"status", "preemptions"}), round);
    cluster_.agents->Exit(StrCat("default/", name, "-master-0"), 0);
    ASSERT_TRUE(cluster_.Until([&] { return Is("medium", "Running"); }));
    cluster_.Run(5 * kSecond);
  }
  EXPECT_EQ(cluster_.Int(kPodGroups, "default/medium", {"status", "preemptions"}), 2);
}

// The controller is away while it happens, and finds only what is left.
TEST_F(PreemptionTest, RestartInTheMiddleOfAPreemption) {
  FillWithMedium("");
  cluster_.agents->stop_after = 5 * kSecond;
  SubmitCritical();
  ASSERT_TRUE(cluster_.Until([&] {
    for (const json::SharedValue& pod : cluster_.List(kPods)) {
      if (api::IsDeleting(*pod)) return true;
    }
    return false;
  }));
  cluster_.StopManager();
  cluster_.Run(20 * kSecond);
  cluster_.StartManager();
  ASSERT_TRUE(cluster_.Until([&] { return Is("critical", "Running"); }));
  EXPECT_FALSE(Is("medium", "Failed"));
  cluster_.agents->Exit("default/critical-master-0", 0);
  EXPECT_TRUE(cluster_.Until([&] { return Is("medium", "Running"); }));
}

// New pods that crash on their own after a preemption are failures like any other.
TEST_F(PreemptionTest, FailureAfterTheReturnCounts) {
  FillWithMedium("");
  SubmitCritical();
  ASSERT_TRUE(cluster_.Until([&] { return Is("critical", "Running"); }));
  cluster_.Run(10 * kSecond);
  cluster_.agents->Exit("default/critical-master-0", 0);
  ASSERT_TRUE(
      cluster_.Until([&] { return cluster_.PodPhase("default/medium-worker-0") == "Running"; }));
  cluster_.agents->Exit("default/medium-worker-0", 1);
  EXPECT_TRUE(cluster_.Until([&] { return Is("medium", "Failed"); }));
  EXPECT_EQ(cluster_.Reason(kPyTorchJobs, "default/medium", "Failed"), "PyTorchJobFailed");
}

json::Value StatusOf(int64_t preemptions) {
  json::Value status = json::Object{
      {"conditions", json::Array{json::Object{{"type", "Preempted"},
                                              {"status", "True"},
                                              {"lastTransitionTime", "2026-01-01T00:00:05Z"}}}}};
  if (preemptions > 0) json::Set(status, {"preemptions"}, preemptions);
  return status;
}

PodAge AgeAt(std::string_view time, int64_t preemptions_before) {
  return {*api::ParseTime(time), preemptions_before};
}

TEST(LastPreemption, PodsMadeInItsSecondAreNewIfTheySaySo) {
  const LastPreemption last = LastPreemption::Of(StatusOf(2));
  EXPECT_TRUE(last.Stopped(AgeAt("2026-01-01T00:00:04Z", 1)));
  EXPECT_TRUE(last.Stopped(AgeAt("2026-01-01T00:00:05Z", 1)));
  EXPECT_FALSE(last.Stopped(AgeAt("2026-01-01T00:00:05Z", 2)));
  // The controller's clock is ahead of the server's.
  EXPECT_FALSE(last.Stopped(AgeAt("2026-01-01T00:00:01Z", 2)));
  // The job was read before its preemption was written.
  EXPECT_FALSE(last.Stopped(AgeAt("2026-01-01T00:00:06Z", 1)));
}

TEST(LastPreemption, GoesByTimeAloneWhereTheStatusHasNoCount) {
  const LastPreemption last = LastPreemption::Of(StatusOf(0));
  EXPECT_TRUE(last.Stopped(AgeAt("2026-01-01T00:00:05Z", 0)));
  EXPECT_FALSE(last.Stopped(AgeAt("2026-01-01T00:00:06Z", 0)));
  EXPECT_FALSE(LastPreemption::Of(json::Object{}).Stopped(AgeAt("2026-01-01T00:00:05Z", 0)));
}

// Twice within a second, and before it runs.
TEST_F(PreemptionTest, CountsAPreemptionBeforeTheJobRunsAgain) {
  FillWithMedium("");
  for (int round = 1; round <= 2; ++round) {
    const std::string name = StrCat("critical-", round);
    cluster_.Create(
        PyTorchYaml{.name = name, .workers = 0, .gpus = 1, .priority = "critical"}.Text());
    ASSERT_TRUE(cluster_.Until([&] { return Is(name, "Running"); }));
    ASSERT_TRUE(cluster_.Until([&] {
      return cluster_.Int(kPyTorchJobs, "default/medium", {"status", "preemptions"}) == round;
    })) << round;
    cluster_.agents->Exit(StrCat("default/", name, "-master-0"), 0);
    ASSERT_TRUE(cluster_.Until([&] {
      const json::SharedValue pod = cluster_.Get(kPods, "default/medium-worker-0");
      return pod && !json::GetString(*pod, {"spec", "nodeName"}).empty() &&
             !api::IsDeleting(*pod) && !controllers::WasPreempted(*pod);
    }));
  }
  ASSERT_TRUE(cluster_.Until([&] { return Is("medium", "Running"); }));
  EXPECT_EQ(api::Annotation(*cluster_.Get(kPods, "default/medium-worker-0"),
                            api::keys::kPreemptionsBefore),
            "2");
}

TEST_F(PreemptionTest, ShrinksAreCountedApartFromPreemptions) {
  cluster_.Create(PyTorchYaml{.name = "elastic",
                              .workers = 12,
                              .priority = "medium",
                              .more_spec = "  elasticPolicy: {minReplicas: 2, maxReplicas: 12}\n",
                              .master = false}
                      .Text());
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 12; }));
  const auto count = [&](std::string_view of) {
    return of == "shrinks"
               ? cluster_.Int(kPyTorchJobs, "default/elastic", {"status", "elastic", of})
               : cluster_.Int(kPodGroups, "default/elastic", {"status", of});
  };
  const auto take_a_node = [&](const std::string& name, int running_after) {
    cluster_.Create(
        PyTorchYaml{.name = name, .workers = 0, .gpus = 4, .priority = "critical"}.Text());
    ASSERT_TRUE(cluster_.Until([&] { return Is(name, "Running"); })) << name;
    cluster_.Run(10 * kSecond);
    ASSERT_EQ(cluster_.Pods("Running"), running_after) << name;
  };
  // However many members go at once, it is one shrink.
  take_a_node("first", 1 + 8);
  EXPECT_EQ(count("shrinks"), 1);
  take_a_node("second", 2 + 4);
  EXPECT_EQ(count("shrinks"), 2);
  EXPECT_EQ(count("preemptions"), 0);
  take_a_node("third", 3);
  EXPECT_EQ(count("shrinks"), 2);
  EXPECT_EQ(count("preemptions"), 1);
}

// Its clock is ten minutes behind the server's.
class SlowClock final : public Clock {
 public:
  explicit SlowClock(const SimExecutor& executor) : executor_(executor) {}
  WallTime Now() const override { return executor_.Now() - std::chrono::minutes(10); }
  SteadyTime Steady() const override { return executor_.Steady(); }

 private:
  const SimExecutor& executor_;
};

// The marks of one preemption come one after the other, and the second is in a younger pod.
TEST_F(PreemptionTest, ASlowClockCountsAPreemptionOnce) {
  SlowClock slow(cluster_.sim);
  cluster_.StopManager();
  cluster_.manager_clock = &slow;
  cluster_.StartManager();
  SubmitCritical();
  ASSERT_TRUE(cluster_.Until([&] { return Is("critical", "Running"); }));
  cluster_.Create(
      PyTorchYaml{.name = "medium", .workers = 2, .gpus = 4, .priority = "medium"}.Text());
  const std::string older = "default/medium-worker-0", younger = "default/medium-worker-1";
  ASSERT_TRUE(cluster_.Until([&] { return !cluster_.PodUid(younger).empty(); }));
  cluster_.Run(5 * kSecond);
  ASSERT_TRUE(cluster_.Delete(kPods, younger, {.grace_seconds = 0}).ok());
  cluster_.agents->Exit("default/critical-master-0", 0);
  ASSERT_TRUE(cluster_.Until([&] { return Is("medium", "Running"); }));
  ASSERT_LT(api::CreationTime(*cluster_.Get(kPods, older)),
            api::CreationTime(*cluster_.Get(kPods, younger)));

  cluster_.agents->stop_after = 10 * kSecond;
  const auto mark = [this](const std::string& pod) {
    return cluster_.Patch(kPods, pod, "{metadata: {annotations: {swell.dev/preempted-by: x}}}");
  };
  ASSERT_TRUE(mark(older).ok());
  ASSERT_TRUE(cluster_.Until([&] { return Is("medium", "Preempted"); }));
  ASSERT_TRUE(mark(younger).ok());
  cluster_.Run(kSecond);
  ASSERT_TRUE(cluster_.Until([&] { return Is("medium", "Running"); }));
  EXPECT_EQ(cluster_.Int(kPyTorchJobs, "default/medium", {"status", "preemptions"}), 1);
}

// How many first members the others cannot continue without, of an elastic job with this command.
int64_t VitalOf(const JobKind& kind,
                std::string_view roles,
                std::string_view command,
                std::string_view more) {
  const auto job = json::Parse(StrCat(
      R"({"metadata":{"name":"t"},"spec":{)", more, roles,
      R"({"template":{"spec":{"containers":[{"name":"main","command":)", command, "}]}}}}}}"));
  EXPECT_TRUE(job.ok()) << job.status().message();
  const auto spec = kind.Parse(*job);
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  return spec.ok() ? spec->replicas.front().vital : -1;
}

TEST(VitalMembers, TheFirstIsOneWhereItsLauncherKeepsTheRendezvous) {
  constexpr std::string_view kWorkers = R"("pytorchReplicaSpecs":{"Worker":)";
  constexpr std::string_view kPolicy = R"("elasticPolicy":{"minReplicas":1,"maxReplicas":3},)";
  constexpr std::string_view kScript = R"(["python3","train.py"])";
  constexpr std::string_view kShell = R"(["sh","-c","python3 -m swell.launch train.py"])";
  constexpr std::string_view kTorchrun = R"(["/usr/bin/torchrun","train.py"])";
  const auto kubeflow = MakePyTorchJobKind({});
  EXPECT_EQ(VitalOf(*kubeflow, kWorkers, kScript, kPolicy), 0);
  EXPECT_EQ(VitalOf(*kubeflow, kWorkers, kShell, kPolicy), 1);
  EXPECT_EQ(VitalOf(*kubeflow, kWorkers, kTorchrun, kPolicy), 1);
  EXPECT_EQ(VitalOf(*kubeflow, kWorkers, kTorchrun, ""), 0) << "a rigid job stops whole anyway";
  EXPECT_EQ(VitalOf(*kubeflow, kWorkers, kTorchrun,
                    R"("elasticPolicy":{"minReplicas":1,"maxReplicas":3,"rdzvBackend":"etcd"},)"),
            0);
  // The launcher is the entry point of its images.
  EXPECT_EQ(VitalOf(*MakeKubedlJobKind({}), kWorkers, kScript,
                    R"("enableElastic":true,"elasticPolicy":{"minReplicas":1,"maxReplicas":3},)"),
            1);
  constexpr std::string_view kRole =
      R"("roles":{"worker":{"replicas":2,"elastic":{"minReplicas":1,"maxReplicas":3},"template":)";
  const auto training = [kRole](std::string_view command) {
    const auto job = json::Parse(StrCat(R"({"metadata":{"name":"t"},"spec":{)", kRole,
                                        R"({"spec":{"containers":[{"name":"main","command":)",
                                        command, "}]}}}}}}"));
    EXPECT_TRUE(job.ok()) << job.status().message();
    const auto spec = MakeTrainingJobKind({})->Parse(*job);
    EXPECT_TRUE(spec.ok()) << spec.status().message();
    return spec.ok() ? spec->replicas.front().vital : -1;
  };
  EXPECT_EQ(training(kScript), 0);
  EXPECT_EQ(training(kShell), 1);
}

}  // namespace
}  // namespace swell::jobs
