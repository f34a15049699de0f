// What processes of a job's own pods request of it: a requeue, or its end.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/request_keys.h"
#include "kube/api/meta/swell_keys.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::jobs {
namespace {

using client::resources::kPods;
using client::resources::kPyTorchJobs;
using manager::PyTorchYaml;
using manager::TestCluster;

class JobRequestsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-a", 4);
    cluster_.StartManager();
  }
  void SubmitAndRun(const PyTorchYaml& yaml = {}) {
    cluster_.Create(yaml.Text());
    ASSERT_TRUE(cluster_.Patch(kPyTorchJobs, kJob, kSlurmLabel).ok());
    ASSERT_TRUE(AllRun());
  }
  bool Is(std::string_view type) { return cluster_.Condition(kPyTorchJobs, kJob, type); }
  bool AllRun() {
    return cluster_.Until([&] { return Is("Running") && cluster_.Pods("Running") == 2; });
  }
  void Request(const std::string& pod, std::string_view word) {
    ASSERT_TRUE(
        cluster_
            .Patch(kPods, pod,
                   StrCat("metadata: {annotations: {", api::keys::kJobRequest, ": ", word, "}}"))
            .ok());
  }
  std::string Uid(const std::string& pod) {
    const json::SharedValue found = cluster_.Get(kPods, pod);
    return found ? std::string(api::Uid(*found)) : "";
  }
  std::string Requeues(const std::string& pod) {
    const json::SharedValue found = cluster_.Get(kPods, pod);
    return found ? std::string(api::Annotation(*found, api::keys::kRequeues)) : "none";
  }
  // Both pods are other ones than before, and they run.
  bool IsMadeAnew(const std::string& master, const std::string& worker) {
    return cluster_.Until([&] {
      return Is("Running") && cluster_.Pods("Running") == 2 && Uid(kMaster) != master &&
             Uid(kWorker) != worker;
    });
  }

  static constexpr const char* kJob = "default/job";
  static constexpr const char* kMaster = "default/job-master-0";
  static constexpr const char* kWorker = "default/job-worker-0";
  static constexpr const char* kSlurmLabel = "metadata: {labels: {swell.dev/slurm-job-id: '7'}}";
  TestCluster cluster_;
};

TEST_F(JobRequestsTest, AnyPodHasAllMadeAnewAndCounted) {
  SubmitAndRun();
  for (const char* count : {"1", "2"}) {
    const std::string master = Uid(kMaster), worker = Uid(kWorker);
    Request(kWorker, "requeue");
    ASSERT_TRUE(IsMadeAnew(master, worker));
    EXPECT_EQ(Requeues(kMaster), count);
    EXPECT_EQ(Requeues(kWorker), count);
  }
  EXPECT_FALSE(Is("Restarting"));
  EXPECT_EQ(cluster_.Events("Requeued", "job"), 2);
  EXPECT_LE(cluster_.Int(kPyTorchJobs, kJob, {"status", "restarts"}), 0);
}

// A script that traps the signal may well request it and end, with any exit code.
TEST_F(JobRequestsTest, APodThatHasEndedWithItsRequestIsNoEndOfTheJob) {
  SubmitAndRun({.run_policy = "backoffLimit: 0"});
  for (const int code : {0, 1}) {
    const std::string master = Uid(kMaster), worker = Uid(kWorker);
    Request(kMaster, "requeue");
    cluster_.agents->Exit(kMaster, code);
    ASSERT_TRUE(IsMadeAnew(master, worker)) << code;
  }
  EXPECT_FALSE(Is("Succeeded"));
  EXPECT_FALSE(Is("Failed"));
}

// As a kubelet reports it, which publishes no reports.
TEST_F(JobRequestsTest, ATerminationMessageIsARequestToo) {
  SubmitAndRun();
  const std::string master = Uid(kMaster), worker = Uid(kWorker);
  ASSERT_TRUE(cluster_
                  .Patch(kPods, kMaster,
                         "status: {phase: Failed, containerStatuses: [{name: pytorch, ready: "
                         "false, restartCount: 0, image: i, imageID: i, state: {terminated: "
                         "{exitCode: 143, message: '{\"jobRequest\": \"requeue\"}'}}}]}",
                         "status")
                  .ok());
  ASSERT_TRUE(IsMadeAnew(master, worker));
  EXPECT_EQ(Requeues(kMaster), "1");
}

TEST_F(JobRequestsTest, ARequeueFromOutsideIsACount) {
  SubmitAndRun();
  const std::string master = Uid(kMaster), worker = Uid(kWorker);
  ASSERT_TRUE(cluster_
                  .Patch(kPyTorchJobs, kJob,
                         StrCat("metadata: {annotations: {", api::keys::kRequeues, ": '1'}}"))
                  .ok());
  ASSERT_TRUE(IsMadeAnew(master, worker));
  EXPECT_EQ(cluster_.Events("Requeued", "job"), 1);
  cluster_.Run(std::chrono::seconds(30));
  EXPECT_EQ(cluster_.Events("Requeued", "job"), 1);
}

// Its script saved itself because of the preemption, and asked for what comes anyway.
TEST_F(JobRequestsTest, APreemptedJobCountsOneRestart) {
  SubmitAndRun();
  const std::string master = Uid(kMaster), worker = Uid(kWorker);
  ASSERT_TRUE(cluster_
                  .Patch(kPods, kMaster,
                         StrCat("metadata: {annotations: {", api::keys::kPreemptedBy,
                                ": default/other, ", api::keys::kJobRequest, ": requeue}}"))
                  .ok());
  ASSERT_TRUE(cluster_.Delete(kPods, kMaster).ok());
  ASSERT_TRUE(IsMadeAnew(master, worker));
  EXPECT_EQ(Requeues(kMaster), "");
  EXPECT_EQ(cluster_.Int(kPyTorchJobs, kJob, {"status", "preemptions"}), 1);
}

TEST_F(JobRequestsTest, ACancelledJobHasFailedAndRunsNoMore) {
  SubmitAndRun();
  Request(kMaster, "cancel");
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed") && cluster_.Pods("Running") == 0; }));
  EXPECT_EQ(cluster_.Reason(kPyTorchJobs, kJob, "Failed"), "Cancelled");
}

TEST_F(JobRequestsTest, WordsWithoutMeaningAndJobsOfOtherKindsAreLeftAlone) {
  SubmitAndRun();
  const std::string master = Uid(kMaster);
  Request(kMaster, "explode");
  cluster_.Run(std::chrono::seconds(10));
  ASSERT_TRUE(
      cluster_.Patch(kPyTorchJobs, kJob, "metadata: {labels: {swell.dev/slurm-job-id: null}}")
          .ok());
  cluster_.Run(std::chrono::seconds(10));
  Request(kMaster, "requeue");
  cluster_.Run(std::chrono::seconds(10));
  EXPECT_EQ(Uid(kMaster), master);
}

}  // namespace
}  // namespace swell::jobs
