// What a job does about its members' failures depends on their class.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "jobs/pass/failure_rules.h"
#include "kube/api/meta/failure_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/progress.h"
#include "manager/testing/cluster_test_util.h"
#include "sched_inputs/sched_convert.h"

namespace swell::jobs {
namespace {

using client::resources::kPods;
using client::resources::kPyTorchJobs;
using manager::kSecond;
using manager::PyTorchYaml;
using manager::TestCluster;

class FailureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-a", 4);
    cluster_.StartManager();
  }
  void SubmitAndRun(const PyTorchYaml& yaml) {
    std::string text = yaml.Text();
    const std::string gpu = "nvidia.com/gpu: 1";
    for (size_t at = 0; (at = text.find(gpu, at)) != std::string::npos; at += gpu.size()) {
      text.insert(at, "memory: 1Gi, ");
      at += gpu.size();
    }
    cluster_.Create(text);
    ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == yaml.workers + 1; }));
  }
  bool Is(std::string_view type) { return cluster_.Condition(kPyTorchJobs, "default/job", type); }
  std::string JobAnnotation(std::string_view key) {
    return std::string(api::Annotation(*cluster_.Get(kPyTorchJobs, "default/job"), key));
  }
  // The pod's container ends for good.
  void End(const std::string& pod, int code, std::string_view reason, std::string_view said) {
    const WallTime now = cluster_.sim.Now();
    const WallTime start = api::StartTime(*cluster_.Get(kPods, "default/" + pod)).value_or(now);
    const Status patched = cluster_.Patch(
        kPods, "default/" + pod,
        StrCat("{status: {phase: Failed, containerStatuses: [{name: pytorch, image: x, imageID: x, "
               "ready: false, restartCount: 0, state: {terminated: {exitCode: ",
               code, ", reason: ", reason, ", message: '", said, "', startedAt: '",
               api::FormatTime(start), "', finishedAt: '", api::FormatTime(now), "'}}}]}}"),
        "status");
    ASSERT_TRUE(patched.ok()) << patched.ToString();
  }
  // The next pod of that name runs.
  bool RunsAgain(const std::string& pod, const std::string& uid) {
    return cluster_.Until([&] {
      return cluster_.PodPhase("default/" + pod) == "Running" &&
             cluster_.PodUid("default/" + pod) != uid;
    });
  }
  // The pod's container ended, and `state` follows in its place: "running" or why it waits.
  void EndInPlace(const std::string& pod,
                  int restarts,
                  int code,
                  std::string_view reason,
                  std::string_view said,
                  std::string_view follows) {
    const std::string now = api::FormatTime(cluster_.sim.Now());
    const std::string state = follows == "running" ? StrCat("{running: {startedAt: '", now, "'}}")
                                                   : StrCat("{waiting: {reason: ", follows, "}}");
    const Status patched = cluster_.Patch(
        kPods, "default/" + pod,
        StrCat("{status: {containerStatuses: [{name: pytorch, image: x, imageID: x, ready: false, "
               "restartCount: ",
               restarts, ", state: ", state, ", lastState: {terminated: {exitCode: ", code,
               ", reason: ", reason, ", message: '", said, "', startedAt: '", now,
               "', finishedAt: '", now, "'}}}]}}"),
        "status");
    ASSERT_TRUE(patched.ok()) << patched.ToString();
  }
  // The node cannot start the pod's container.
  void CannotStart(const std::string& pod, std::string_view reason) {
    const Status patched = cluster_.Patch(
        kPods, "default/" + pod,
        StrCat("{status: {phase: Pending, containerStatuses: [{name: pytorch, image: x, imageID: "
               "'', ready: false, restartCount: 0, state: {waiting: {reason: ",
               reason, ", message: not found}}}]}}"),
        "status");
    ASSERT_TRUE(patched.ok()) << patched.ToString();
  }
  std::string Message(std::string_view type) {
    const json::SharedValue job = cluster_.Get(kPyTorchJobs, "default/job");
    const auto found = api::FindCondition(*job, type);
    return found ? std::string(found->message) : "";
  }
  // The user corrects the job's image in place.
  void CorrectImage(std::string_view image) {
    json::Value job = *cluster_.Get(kPyTorchJobs, "default/job");
    json::Array& containers = json::FindMutable(job, {"spec", "pytorchReplicaSpecs", "Master",
                                                      "template", "spec", "containers"})
                                  ->get_array();
    json::Set(containers[0], {"image"}, image);
    const json::Value patch = json::Object{
        {"spec",
         json::Object{{"pytorchReplicaSpecs", *json::Find(job, {"spec", "pytorchReplicaSpecs"})}}}};
    const Status patched = cluster_.Patch(kPyTorchJobs, "default/job", json::Print(patch));
    ASSERT_TRUE(patched.ok()) << patched.ToString();
  }
  void FailAndRunAgain(const std::string& pod, int code, std::string_view said = "") {
    const std::string uid = cluster_.PodUid("default/" + pod);
    End(pod, code, "Error", said);
    ASSERT_TRUE(RunsAgain(pod, uid));
  }
  TestCluster cluster_;
};

TEST_F(FailureTest, AnErrorThatEveryStartRepeatsEndsTheJobAtItsSecondTime) {
  SubmitAndRun({.workers = 1, .restart = "ExitCode"});
  FailAndRunAgain("job-worker-0", 255, "ModuleNotFoundError: No module named trainer");
  EXPECT_FALSE(Is("Failed"));
  cluster_.Run(kSecond);
  End("job-worker-0", 255, "Error", "ModuleNotFoundError: No module named trainer");
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
  EXPECT_EQ(cluster_.Reason(kPyTorchJobs, "default/job", "Failed"), "UserError");
  EXPECT_TRUE(cluster_.EventMessage("UserError")
                  .starts_with("PyTorchJob job failed because starting it again cannot help. "
                               "job-worker-0 failed: container pytorch exited with 255"))
      << cluster_.EventMessage("UserError");
}

TEST_F(FailureTest, AProgramThatIsNotThereEndsTheJobAtItsSecondTime) {
  SubmitAndRun({.workers = 1, .restart = "ExitCode"});
  for (int i = 0; i < 2; ++i) {
    const std::string uid = cluster_.PodUid("default/job-worker-0");
    End("job-worker-0", 128, "StartError", "executable file not found in $PATH");
    ASSERT_TRUE(cluster_.Until([&] {
      return Is("Failed") || (cluster_.PodPhase("default/job-worker-0") == "Running" &&
                              cluster_.PodUid("default/job-worker-0") != uid);
    }));
    EXPECT_EQ(Is("Failed"), i == 1);
    cluster_.Run(kSecond);
  }
}

TEST_F(FailureTest, AStartAfterTheFirstErrorIsNoSecondError) {
  SubmitAndRun({.workers = 1, .restart = "OnFailure"});
  const std::string said = "ModuleNotFoundError: No module named trainer";
  EndInPlace("job-worker-0", 0, 1, "Error", said, "CrashLoopBackOff");
  cluster_.Run(2 * kSecond);
  EndInPlace("job-worker-0", 1, 1, "Error", said, "ContainerCreating");
  cluster_.Run(2 * kSecond);
  EndInPlace("job-worker-0", 1, 1, "Error", said, "running");
  cluster_.Run(5 * kSecond);
  EXPECT_FALSE(Is("Failed"));
  EndInPlace("job-worker-0", 1, 1, "Error", said, "CrashLoopBackOff");
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
  EXPECT_EQ(cluster_.Reason(kPyTorchJobs, "default/job", "Failed"), "UserError");
}

TEST_F(FailureTest, AMemberThatStepsAgainAfterItsFirstFailureDoesNotFail) {
  SubmitAndRun({.workers = 1, .restart = "OnFailure"});
  EndInPlace("job-worker-0", 1, 1, "Error", "ValueError: x", "running");
  ASSERT_TRUE(cluster_.Until([&] { return Is("Degraded"); }));
  cluster_.Run(3 * kSecond);
  const auto step = [this] {
    const std::string changed = api::FormatTime(cluster_.sim.Now());
    const std::string ranks = StrCat(
        R"({"ranks":[{"rank":0,"world":1,"phase":"step","step":5,"changed":")", changed, "\"}]}");
    ASSERT_TRUE(
        cluster_
            .Patch(kPods, "default/job-worker-0",
                   StrCat("{metadata: {annotations: {", api::keys::kProgress, ": '", ranks, "'}}}"))
            .ok());
  };
  step();
  ASSERT_TRUE(cluster_.Until([&] { return !Is("Degraded"); }, std::chrono::seconds(20)));
  // At its second failure it fails again and again, and has to last for a minute.
  EndInPlace("job-worker-0", 2, 1, "Error", "ValueError: x", "running");
  ASSERT_TRUE(cluster_.Until([&] { return Is("Degraded"); }));
  cluster_.Run(3 * kSecond);
  step();
  cluster_.Run(20 * kSecond);
  EXPECT_TRUE(Is("Degraded"));
}

TEST_F(FailureTest, AContainerKilledInPlaceGetsMoreMemoryBeforeItsLastStartCounts) {
  SubmitAndRun({.workers = 1, .restart = "OnFailure", .run_policy = "backoffLimit: 1"});
  const std::string uid = cluster_.PodUid("default/job-worker-0");
  // The node started it again at once.
  EndInPlace("job-worker-0", 1, 137, "OOMKilled", "", "running");
  ASSERT_TRUE(RunsAgain("job-worker-0", uid));
  EXPECT_EQ(JobAnnotation(api::keys::kMemoryRaised), "worker/pytorch=1536Mi");
  EXPECT_TRUE(Is("MemoryRaised"));
  EXPECT_FALSE(Is("Failed"));
}

TEST_F(FailureTest, AUserMayWantUserErrorsRestarted) {
  SubmitAndRun(
      {.workers = 1, .restart = "ExitCode", .annotations = "swell.dev/on-user-error: Restart"});
  for (int i = 0; i < 3; ++i) FailAndRunAgain("job-worker-0", 255, "SyntaxError: invalid syntax");
  EXPECT_FALSE(Is("Failed"));
}

TEST_F(FailureTest, PeersThatLostAMemberAreNotCounted) {
  SubmitAndRun({.workers = 3, .restart = "ExitCode", .run_policy = "backoffLimit: 1"});
  const std::string uid = cluster_.PodUid("default/job-worker-1");
  cluster_.Run(2 * kSecond);
  End("job-worker-0", 139, "Error", "");
  cluster_.Run(kSecond);
  End("job-worker-1", 134, "Error", "RuntimeError: Connection closed by peer");
  cluster_.Run(kSecond);
  End("job-worker-2", 134, "Error", "RuntimeError: Connection reset by peer");
  ASSERT_TRUE(RunsAgain("job-worker-1", uid));
  EXPECT_FALSE(Is("Failed"));
  EXPECT_EQ(cluster_.Int(kPyTorchJobs, "default/job", {"status", "restarts"}), 1);
}

TEST_F(FailureTest, AnErrorThatTellsOfALostPeerIsNoErrorOfItsOwn) {
  SubmitAndRun({.workers = 1, .restart = "ExitCode", .run_policy = "backoffLimit: 1"});
  const std::string uid = cluster_.PodUid("default/job-master-0");
  cluster_.Run(2 * kSecond);
  End("job-worker-0", 137, "Error", "");
  cluster_.Run(kSecond);
  // torchrun exits with 1 when a rank of its own lost a peer.
  End("job-master-0", 1, "Error", "RuntimeError: Connection closed by peer");
  ASSERT_TRUE(RunsAgain("job-master-0", uid));
  EXPECT_FALSE(Is("Failed"));
  EXPECT_EQ(cluster_.Int(kPyTorchJobs, "default/job", {"status", "restarts"}), 1);
}

TEST_F(FailureTest, ASignalThatTheLauncherReportsIsNoErrorOfTheProgram) {
  SubmitAndRun({.workers = 1, .restart = "ExitCode", .run_policy = "backoffLimit: 1"});
  FailAndRunAgain("job-worker-0", 1,
                  "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) "
                  "local_rank: 0 (pid: 4) of binary: python");
  EXPECT_FALSE(Is("Failed"));
  EXPECT_EQ(cluster_.Int(kPyTorchJobs, "default/job", {"status", "restarts"}), 1);
  End("job-worker-0", 1, "Error",
      "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) "
      "local_rank: 0 (pid: 4) of binary: python");
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
}

TEST_F(FailureTest, AFailureOfHardwareIsNotCounted) {
  SubmitAndRun({.workers = 2, .restart = "ExitCode", .run_policy = "backoffLimit: 0"});
  for (int i = 1; i <= 10; ++i) {
    const std::string uid = cluster_.PodUid("default/job-worker-1");
    // A peer that loses the member has failed for the same reason.
    FailAndRunAgain("job-worker-0", 1, "CUDA error: uncorrectable ECC error encountered");
    cluster_.Run(kSecond);
    End("job-worker-1", 134, "Error", "RuntimeError: Connection closed by peer");
    ASSERT_TRUE(RunsAgain("job-worker-1", uid)) << i;
    EXPECT_EQ(JobAnnotation(api::keys::kHardwareFailures), std::to_string(i));
    cluster_.Run(std::chrono::minutes(2));
  }
  EXPECT_FALSE(Is("Failed"));
  EXPECT_EQ(cluster_.Int(kPyTorchJobs, "default/job", {"status", "restarts"}), 0);
  EXPECT_NE(cluster_.EventMessage("HardwareFailed").find("Node node-a is charged with it, and"),
            std::string::npos)
      << cluster_.EventMessage("HardwareFailed");
  // A program that always says so is not restarted for ever.
  End("job-worker-0", 1, "Error", "CUDA error: uncorrectable ECC error encountered");
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
}

TEST_F(FailureTest, AfterAFailureOfHardwareTheMemberGoesToAnotherNode) {
  SubmitAndRun({.workers = 1, .restart = "ExitCode"});
  // Placement packs: but for the preference, the member would go back to node-a.
  cluster_.AddNode("node-b", 4);
  FailAndRunAgain("job-worker-0", 1, "CUDA error: uncorrectable ECC error encountered");
  EXPECT_EQ(JobAnnotation(api::keys::kAvoidedNodes), "node-a");
  EXPECT_EQ(api::NodeName(*cluster_.Get(kPods, "default/job-worker-0")), "node-b");
  EXPECT_EQ(api::NodeName(*cluster_.Get(kPods, "default/job-master-0")), "node-a");
  // Where no other node has room, it is used again.
  ASSERT_TRUE(
      cluster_.Patch(client::resources::kNodes, "node-b", "{spec: {unschedulable: true}}").ok());
  FailAndRunAgain("job-worker-0", 1, "CUDA error: uncorrectable ECC error encountered");
  EXPECT_EQ(JobAnnotation(api::keys::kAvoidedNodes), "node-b,node-a");
  EXPECT_EQ(api::NodeName(*cluster_.Get(kPods, "default/job-worker-0")), "node-a");
}

TEST_F(FailureTest, APodThatIsNeverRestartedIsNotRestartedForHardwareEither) {
  SubmitAndRun({.workers = 1, .restart = "Never"});
  End("job-worker-0", 1, "Error", "CUDA error: uncorrectable ECC error encountered");
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
}

TEST_F(FailureTest, AKilledContainerGetsMoreMemoryAndIsNotCounted) {
  SubmitAndRun({.workers = 1, .restart = "ExitCode", .run_policy = "backoffLimit: 0"});
  for (const char* memory : {"1536Mi", "2304Mi", "3456Mi"}) {
    const std::string uid = cluster_.PodUid("default/job-worker-0");
    End("job-worker-0", 137, "OOMKilled", "");
    ASSERT_TRUE(RunsAgain("job-worker-0", uid));
    EXPECT_EQ(JobAnnotation(api::keys::kMemoryRaised), StrCat("worker/pytorch=", memory));
    EXPECT_EQ(MemoryText(MemoryLimitOf(*cluster_.Get(kPods, "default/job-worker-0"), "pytorch")),
              memory);
    EXPECT_TRUE(Is("MemoryRaised"));
    EXPECT_FALSE(Is("Failed"));
  }
  EXPECT_EQ(MemoryLimitOf(*cluster_.Get(kPods, "default/job-master-0"), "pytorch"), 1 << 30);
  EXPECT_NE(cluster_.EventMessage("MemoryRaised").find("was killed at its limit of "),
            std::string::npos);
  // Three raises are all.
  End("job-worker-0", 137, "OOMKilled", "");
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
  EXPECT_EQ(cluster_.Reason(kPyTorchJobs, "default/job", "Failed"), "BackoffLimitExceeded");
}

TEST_F(FailureTest, WhatLackedMemoryIsToldWhatItGetsNext) {
  SubmitAndRun({.workers = 1, .restart = "ExitCode", .run_policy = "backoffLimit: 0"});
  std::string uid = cluster_.PodUid("default/job-worker-0");
  End("job-worker-0", 137, "OOMKilled", "");
  ASSERT_TRUE(RunsAgain("job-worker-0", uid));
  EXPECT_NE(cluster_.EventMessage("PyTorchJobRestarting")
                .find("it used all of its 1024Mi, and its next pod gets 1536Mi"),
            std::string::npos)
      << cluster_.EventMessage("PyTorchJobRestarting");
  for (int i = 0; i < 2; ++i) {
    uid = cluster_.PodUid("default/job-worker-0");
    End("job-worker-0", 137, "OOMKilled", "");
    ASSERT_TRUE(RunsAgain("job-worker-0", uid));
  }
  End("job-worker-0", 137, "OOMKilled", "");
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
  EXPECT_NE(Message("Failed").find("it used all of its 3456Mi; the limit is not raised, since it "
                                   "was raised from 1024Mi three times already"),
            std::string::npos)
      << Message("Failed");
}

TEST_F(FailureTest, MemoryStaysWhereTheJobSaysSo) {
  SubmitAndRun({.workers = 1,
                .restart = "ExitCode",
                .run_policy = "backoffLimit: 0",
                .annotations = "swell.dev/raise-memory: 'false'"});
  End("job-worker-0", 137, "OOMKilled", "");
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
  EXPECT_EQ(JobAnnotation(api::keys::kMemoryRaised), "");
  EXPECT_NE(Message("Failed").find("since the job's annotation swell.dev/raise-memory is false"),
            std::string::npos)
      << Message("Failed");
}

TEST_F(FailureTest, AQuotaThatRefusesTheMemoryIsRespected) {
  SubmitAndRun({.workers = 1, .restart = "ExitCode"});
  cluster_.Create(
      "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: default}\n"
      "spec: {hard: {limits.memory: 2Gi}}\n");
  cluster_.Run(kSecond);
  const std::string uid = cluster_.PodUid("default/job-worker-0");
  End("job-worker-0", 137, "OOMKilled", "");
  ASSERT_TRUE(RunsAgain("job-worker-0", uid));
  EXPECT_EQ(MemoryLimitOf(*cluster_.Get(kPods, "default/job-worker-0"), "pytorch"), 1 << 30);
  EXPECT_EQ(cluster_.Events("MemoryNotRaised"), 1);
}

TEST_F(FailureTest, AJobThatFailsAgainAndAgainPreemptsNobodyForAWhile) {
  SubmitAndRun({.workers = 1, .restart = "ExitCode"});
  FailAndRunAgain("job-worker-0", 139);
  EXPECT_EQ(JobAnnotation(api::keys::kPreemptsFrom), "");
  FailAndRunAgain("job-worker-0", 139);
  EXPECT_EQ(JobAnnotation(api::keys::kCrashes), "2");
  // There was room, so it runs; the mark is of no use then.
  EXPECT_EQ(api::Annotation(*cluster_.Get(kPods, "default/job-worker-0"), api::keys::kPreemptsFrom),
            JobAnnotation(api::keys::kPreemptsFrom));
  // Where there is no room it waits, and may preempt when its time has come.
  const std::string uid = cluster_.PodUid("default/job-worker-0");
  ASSERT_TRUE(
      cluster_.Patch(client::resources::kNodes, "node-a", "{spec: {unschedulable: true}}").ok());
  End("job-worker-0", 139, "Error", "");
  ASSERT_TRUE(cluster_.Until([&] {
    return cluster_.PodPhase("default/job-worker-0") == "Pending" &&
           cluster_.PodUid("default/job-worker-0") != uid;
  }));
  EXPECT_FALSE(sched_inputs::ToPodInfo(*cluster_.Get(kPods, "default/job-worker-0")).may_preempt);
  EXPECT_GE(cluster_.Events("PreemptionHeld"), 1);
  cluster_.Run(30 * kSecond);
  EXPECT_FALSE(sched_inputs::ToPodInfo(*cluster_.Get(kPods, "default/job-worker-0")).may_preempt);
  cluster_.Run(15 * kSecond);
  EXPECT_TRUE(sched_inputs::ToPodInfo(*cluster_.Get(kPods, "default/job-worker-0")).may_preempt);
}

TEST_F(FailureTest, AJobThatFailsAtOnceWaitsForItsNextStart) {
  SubmitAndRun({.workers = 0, .gpus = 0, .restart = "ExitCode"});
  FailAndRunAgain("job-master-0", 139);
  EXPECT_EQ(JobAnnotation(api::keys::kStartsFrom), "") << "the first time it starts again at once";
  End("job-master-0", 139, "Error", "");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.PodPhase("default/job-master-0").empty(); }));
  EXPECT_EQ(cluster_.EventMessage("RestartDelayed"),
            StrCat("PyTorchJob job failed 2 times in a row, at its start or soon after it. It "
                   "starts again at ",
                   JobAnnotation(api::keys::kStartsFrom), "."));
  cluster_.Run(7 * kSecond);
  EXPECT_EQ(cluster_.PodPhase("default/job-master-0"), "");
  EXPECT_NE(Message("Restarting").find("PyTorchJob job starts again at "), std::string::npos)
      << Message("Restarting");
  EXPECT_EQ(cluster_.Reason(kPyTorchJobs, "default/job", "Degraded"), "CrashLoopBackOff");
  ASSERT_TRUE(cluster_.Until([&] { return Is("Running") && cluster_.Pods("Running") == 1; }));
  // Nobody is preempted for a job without GPUs.
  EXPECT_EQ(cluster_.Events("PreemptionHeld"), 0);
  // One that has run for a while starts again at once.
  cluster_.Run(std::chrono::minutes(2));
  End("job-master-0", 139, "Error", "");
  cluster_.Run(5 * kSecond);
  EXPECT_EQ(cluster_.PodPhase("default/job-master-0"), "Running");
}

TEST_F(FailureTest, AJobThatWaitsAfterItsLastRaiseIsToldWhyItGetsNoMore) {
  SubmitAndRun(
      {.workers = 0, .restart = "ExitCode", .annotations = "swell.dev/raise-memory: 'false'"});
  for (int i = 0; i < 2; ++i) {
    const std::string uid = cluster_.PodUid("default/job-master-0");
    End("job-master-0", 137, "OOMKilled", "");
    ASSERT_TRUE(cluster_.Until([&] { return cluster_.PodUid("default/job-master-0") != uid; }));
    if (i > 0) break;
    ASSERT_TRUE(RunsAgain("job-master-0", uid));
  }
  ASSERT_EQ(cluster_.PodPhase("default/job-master-0"), "");
  EXPECT_EQ(
      json::GetString(*cluster_.Get(kPyTorchJobs, "default/job"), {"status", "failure", "advice"}),
      "it used all of its 1024Mi; the limit is not raised, since the job's annotation "
      "swell.dev/raise-memory is false: give it more memory, or let it use less");
}

TEST_F(FailureTest, MembersThatAllFailInTheirPlacesGiveTheirGpusBackForAWhile) {
  SubmitAndRun({.workers = 1, .restart = "OnFailure"});
  EndInPlace("job-worker-0", 2, 3, "Error", "no data", "CrashLoopBackOff");
  cluster_.Run(5 * kSecond);
  EXPECT_EQ(cluster_.Pods(""), 2) << "the master may be of use";
  EndInPlace("job-master-0", 2, 3, "Error", "no data", "CrashLoopBackOff");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
  EXPECT_EQ(cluster_.Reason(kPyTorchJobs, "default/job", "Restarting"), "GpusGivenBack");
  EXPECT_TRUE(Message("Restarting").find("no data") != std::string::npos) << Message("Restarting");
  EXPECT_EQ(cluster_.Int(kPyTorchJobs, "default/job", {"status", "restarts"}), 5);
  cluster_.Run(50 * kSecond);
  EXPECT_EQ(cluster_.Pods(""), 0);
  EXPECT_TRUE(Is("Degraded"));
  EXPECT_EQ(cluster_.Events("GpusGivenBack"), 1);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 2 && Is("Running"); }));
}

TEST_F(FailureTest, MembersInTheirPlacesCountForTheLimitAfterTheyHaveGivenTheirGpusBack) {
  SubmitAndRun({.workers = 0, .restart = "OnFailure", .run_policy = "backoffLimit: 3"});
  EndInPlace("job-master-0", 2, 3, "Error", "", "CrashLoopBackOff");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
  ASSERT_TRUE(
      cluster_.Until([&] { return cluster_.Pods("Running") == 1; }, std::chrono::minutes(2)));
  EXPECT_FALSE(Is("Failed"));
  EndInPlace("job-master-0", 1, 3, "Error", "", "running");
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
  EXPECT_EQ(cluster_.Reason(kPyTorchJobs, "default/job", "Failed"), "BackoffLimitExceeded");
}

TEST_F(FailureTest, AnImageThatIsNotThereHoldsNoGpusForLong) {
  SubmitAndRun({.workers = 0, .restart = "OnFailure", .run_policy = "backoffLimit: 0"});
  CannotStart("job-master-0", "ErrImagePull");
  cluster_.Run(std::chrono::minutes(1));
  EXPECT_EQ(cluster_.Pods(""), 1);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }, std::chrono::seconds(90)));
  EXPECT_EQ(cluster_.Reason(kPyTorchJobs, "default/job", "Restarting"), "GpusGivenBack");
  EXPECT_FALSE(Is("Failed"));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 1; }, std::chrono::minutes(2)));
}

TEST_F(FailureTest, AJobThatCouldNotStartPreemptsNobodyForLong) {
  SubmitAndRun({.workers = 0, .restart = "OnFailure"});
  CannotStart("job-master-0", "ErrImagePull");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }, std::chrono::minutes(3)));
  // Others have the room meanwhile.
  ASSERT_TRUE(
      cluster_.Patch(client::resources::kNodes, "node-a", "{spec: {unschedulable: true}}").ok());
  const auto may_preempt = [&] {
    return sched_inputs::ToPodInfo(*cluster_.Get(kPods, "default/job-master-0")).may_preempt;
  };
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 1; }, std::chrono::minutes(2)));
  EXPECT_EQ(cluster_.Events("PreemptionHeld"), 1);
  cluster_.Run(std::chrono::minutes(9));
  EXPECT_FALSE(may_preempt());
  cluster_.Run(std::chrono::minutes(2));
  EXPECT_TRUE(may_preempt());
}

TEST_F(FailureTest, AResumedJobMayPreemptAtOnce) {
  SubmitAndRun({.workers = 0, .restart = "OnFailure"});
  CannotStart("job-master-0", "ErrImagePull");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }, std::chrono::minutes(3)));
  for (std::string_view suspend : {"true", "false"}) {
    ASSERT_TRUE(cluster_
                    .Patch(kPyTorchJobs, "default/job",
                           StrCat("{spec: {runPolicy: {suspend: ", suspend, "}}}"))
                    .ok());
    cluster_.Run(2 * kSecond);
  }
  EXPECT_EQ(cluster_.Pods(""), 1);
  EXPECT_EQ(JobAnnotation(api::keys::kPreemptsFrom), "");
  EXPECT_EQ(api::Annotation(*cluster_.Get(kPods, "default/job-master-0"), api::keys::kPreemptsFrom),
            "");
}

TEST_F(FailureTest, APodThatOutgrewItsDiskHasFailedByItself) {
  for (const auto& [message, over] :
       {std::pair("The node was low on resource: ephemeral-storage.", false),
        std::pair(R"(Usage of EmptyDir volume \"o\" exceeds the limit \"5Mi\".)", true)}) {
    SubmitAndRun({.workers = 0});
    const std::string uid = cluster_.PodUid("default/job-master-0");
    const Status patched = cluster_.Patch(
        kPods, "default/job-master-0",
        StrCat("{status: {phase: Failed, reason: Evicted, message: \"", message, "\"}}"), "status");
    ASSERT_TRUE(patched.ok()) << patched.ToString();
    if (over) {
      ASSERT_TRUE(cluster_.Until([&] { return Is("Failed"); })) << message;
      EXPECT_NE(Message("Failed").find("raise the limit that the message names"), std::string::npos)
          << Message("Failed");
    } else {
      ASSERT_TRUE(RunsAgain("job-master-0", uid)) << message;
    }
    ASSERT_TRUE(cluster_.Delete(kPyTorchJobs, "default/job").ok());
    ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
  }
}

TEST_F(FailureTest, MembersThatWaitInVainForEachOtherReachTheBackoffLimit) {
  SubmitAndRun({.workers = 1, .restart = "ExitCode", .run_policy = "backoffLimit: 2"});
  const std::string pods[] = {"job-master-0", "job-worker-0"};
  int runs = 0;
  for (; runs < 6 && !Is("Failed"); ++runs) {
    cluster_.Run(std::chrono::seconds(61));
    std::map<std::string, std::string> uids;
    for (const std::string& pod : pods) {
      uids[pod] = cluster_.PodUid("default/" + pod);
      End(pod, 1, "Error",
          "torch.distributed.DistStoreError: Timed out after 61 seconds waiting for clients. 1/2 "
          "clients joined.");
    }
    const auto again = [&](const std::string& pod) {
      return cluster_.PodPhase("default/" + pod) == "Running" &&
             cluster_.PodUid("default/" + pod) != uids[pod];
    };
    ASSERT_TRUE(cluster_.Until(
        [&] { return Is("Failed") || std::all_of(std::begin(pods), std::end(pods), again); },
        std::chrono::minutes(10)));
  }
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(cluster_.Reason(kPyTorchJobs, "default/job", "Failed"), "BackoffLimitExceeded");
}

TEST_F(FailureTest, MembersThatCannotStartAreMadeAnewOfTheCorrectedTemplate) {
  SubmitAndRun({.workers = 0, .gpus = 0, .restart = "OnFailure"});
  const std::string uid = cluster_.PodUid("default/job-master-0");
  CannotStart("job-master-0", "ErrImagePull");
  cluster_.Run(10 * kSecond);
  EXPECT_EQ(cluster_.PodUid("default/job-master-0"), uid);
  CorrectImage("right");
  ASSERT_TRUE(RunsAgain("job-master-0", uid));
  EXPECT_EQ(
      json::GetString(api::Containers(*cluster_.Get(kPods, "default/job-master-0"))[0], {"image"}),
      "right");
  ASSERT_TRUE(cluster_.Until([&] { return !Is("Degraded"); }));
  EXPECT_EQ(cluster_.Events("TemplateChanged"), 1);
  EXPECT_EQ(JobAnnotation(api::keys::kFailedTemplates), "");
}

TEST_F(FailureTest, ACorrectedTemplateEndsTheWaitForTheNextStart) {
  SubmitAndRun({.workers = 0, .restart = "OnFailure"});
  CannotStart("job-master-0", "ErrImagePull");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }, std::chrono::minutes(3)));
  cluster_.Run(5 * kSecond);
  ASSERT_EQ(cluster_.Pods(""), 0);
  CorrectImage("right");
  cluster_.Run(2 * kSecond);
  EXPECT_EQ(cluster_.Pods(""), 1);
  EXPECT_EQ(api::Annotation(*cluster_.Get(kPods, "default/job-master-0"), api::keys::kPreemptsFrom),
            "");
  for (std::string_view key :
       {api::keys::kStartsFrom, api::keys::kPreemptsFrom, api::keys::kCrashes}) {
    EXPECT_EQ(JobAnnotation(key), "") << key;
  }
  EXPECT_EQ(cluster_.Events("TemplateChanged"), 1);
}

TEST_F(FailureTest, AChangedTemplateLeavesMembersThatRunAlone) {
  SubmitAndRun({.workers = 0, .restart = "OnFailure"});
  const std::string uid = cluster_.PodUid("default/job-master-0");
  EndInPlace("job-master-0", 1, 3, "Error", "no data", "running");
  cluster_.Run(3 * kSecond);
  ASSERT_NE(JobAnnotation(api::keys::kFailedTemplates), "");
  cluster_.Run(std::chrono::minutes(2));
  EXPECT_EQ(JobAnnotation(api::keys::kFailedTemplates), "") << "it has recovered";
  CorrectImage("other");
  cluster_.Run(10 * kSecond);
  EXPECT_EQ(cluster_.PodUid("default/job-master-0"), uid);
  EXPECT_EQ(cluster_.Events("TemplateChanged"), 0);
}

}  // namespace
}  // namespace swell::jobs
