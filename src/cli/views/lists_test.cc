// Lists of jobs and of all kinds.
#include "cli/cli_test_util.h"

namespace swell::cli {
namespace {

constexpr std::string_view kNever = "restartPolicy: Never, ";
constexpr std::string_view kOnNode = "nodeName: n1, ";

class ListsTest : public CliTest {
 protected:
  // A pod of the job at `path`, with these fields of its spec besides a container.
  void PodOf(const std::string& path,
             std::string_view name,
             std::string_view spec = "",
             std::string_view container = "name: c, image: i") {
    const auto job = server_.Send(server_.Request("GET", path));
    Create(StrCat("{apiVersion: v1, kind: Pod, metadata: {name: ", name,
                  ", ownerReferences: [{apiVersion: ", job.Str({"apiVersion"}),
                  ", kind: ", job.Str({"kind"}), ", name: ", job.Str({"metadata", "name"}),
                  ", controller: true, uid: ", job.Str({"metadata", "uid"}), "}]}, spec: {", spec,
                  "containers: [{", container, "}]}}"));
  }
};

TEST_F(ListsTest, TheGpusOfATrainJobAreThoseThatItsPodsAskFor) {
  Create(
      "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: tj}, spec: "
      "{runtimeRef: {name: torch-distributed}, trainer: {numNodes: 2}}}");
  for (const char* name : {"tj-0", "tj-1"}) {
    PodOf("/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs/tj", name, "",
          "name: c, image: i, resources: {limits: {nvidia.com/gpu: 3}}");
  }
  // One has done its part, and one has no node yet.
  Status("/api/v1/namespaces/default/pods/tj-0", R"({"status":{"phase":"Succeeded"}})");
  ASSERT_EQ(Run({"swell", "list"}), 0) << err_;
  EXPECT_NE(out_.find(" 6      0/2 "), std::string::npos) << out_;
}

TEST_F(ListsTest, ATrainJobWithoutANumberOfItsOwnHasThatOfItsRuntime) {
  Create(
      "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: tj}, spec: "
      "{runtimeRef: {name: torch-distributed}}}");
  Create(
      "{apiVersion: swell.dev/v1, kind: PodGroup, metadata: {name: tj}, spec: {podSets: [{name: "
      "node, minMember: 3}]}}");
  ASSERT_EQ(Run({"swell", "list"}), 0) << err_;
  EXPECT_NE(out_.find(" 0/3 "), std::string::npos) << out_;
}

TEST_F(ListsTest, APreemptedTrainJobIsNotBackBeforeAllItsNodesAre) {
  const std::string path = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs/tj";
  Create(
      "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: tj}, spec: "
      "{runtimeRef: {name: torch-distributed}}}");
  Status(path, R"({"status":{"conditions":[{"type":"Preempted","status":"True"}]}})");
  Create(
      "{apiVersion: swell.dev/v1, kind: PodGroup, metadata: {name: tj}, spec: {podSets: [{name: "
      "node, minMember: 2}]}}");
  PodOf(path, "tj-0", "nodeName: n1, ", "name: c, image: i");
  ASSERT_EQ(Run({"swell", "list"}), 0) << err_;
  EXPECT_NE(out_.find(" Preempted "), std::string::npos) << out_;
  PodOf(path, "tj-1", "nodeName: n1, ", "name: c, image: i");
  ASSERT_EQ(Run({"swell", "list"}), 0) << err_;
  EXPECT_NE(out_.find(" Pending "), std::string::npos) << out_;
}

TEST_F(ListsTest, ABatchJobWhosePodsWaitForANodeDoesNotRun) {
  Create(
      "{apiVersion: batch/v1, kind: Job, metadata: {name: bj}, spec: {template: {spec: "
      "{restartPolicy: Never, containers: [{name: c, image: i}]}}}}");
  const std::string path = "/apis/batch/v1/namespaces/default/jobs/bj";
  PodOf(path, "bj-1", kNever);
  Status("/api/v1/namespaces/default/pods/bj-1",
         R"({"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",)"
         R"("reason":"Unschedulable","message":"0/2 nodes are available"}]}})");
  Status(path, R"({"status":{"active":1,"startTime":"2026-01-01T00:00:00Z"}})");
  ASSERT_EQ(Run({"swell", "list", "-o", "wide", "--no-headers"}), 0) << err_;
  EXPECT_NE(out_.find(" Pending "), std::string::npos) << out_;
  EXPECT_NE(out_.find("0/2 nodes are available"), std::string::npos) << out_;
  PodOf(path, "bj-2", StrCat(kOnNode, kNever));
  ASSERT_EQ(Run({"swell", "list", "--no-headers"}), 0) << err_;
  EXPECT_NE(out_.find(" Running "), std::string::npos) << out_;
}

TEST_F(ListsTest, AJobThatWasPreemptedAndHasItsPlacesAgainIsStarting) {
  ASSERT_EQ(Run({"swell", "submit", "j", "-i", "i", "--", "true"}), 0) << err_;
  const std::string path = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/j";
  Status(path, R"({"status":{"conditions":[{"type":"Preempted","status":"True"}]}})");
  const auto shows = [this](std::string_view status) {
    EXPECT_EQ(Run({"swell", "list", "--no-headers"}), 0) << err_;
    EXPECT_NE(out_.find(StrCat(" ", status, " ")), std::string::npos) << out_;
  };
  PodOf(path, "j-waits");
  shows("Preempted");
  PodOf(path, "j-starts", kOnNode);
  shows("Pending");
}

TEST_F(ListsTest, AVolcanoJobRunsOnWithoutAPodThatFailed) {
  Create(
      "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: vj}, spec: {tasks: "
      "[{name: w, replicas: 2, template: {spec: {containers: [{name: c, image: i}]}}}]}}");
  const std::string path = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/vj";
  for (const char* name : {"vj-w-0", "vj-w-1"}) PodOf(path, name, StrCat(kOnNode, kNever));
  Status("/api/v1/namespaces/default/pods/vj-w-0",
         R"({"status":{"phase":"Failed","containerStatuses":[{"name":"c","image":"i","imageID":"",)"
         R"("ready":false,"restartCount":0,"state":{"terminated":{"exitCode":1}}}]}})");
  Status("/api/v1/namespaces/default/pods/vj-w-1", R"({"status":{"phase":"Running"}})");
  Status(path, R"({"status":{"conditions":[{"type":"Running","status":"True"}]}})");
  ASSERT_EQ(Run({"swell", "list", "--no-headers"}), 0) << err_;
  EXPECT_NE(out_.find(" Running "), std::string::npos) << out_;
}

TEST_F(ListsTest, AResizeThatTheNodeCanNeverGiveTakesNothingOfIt) {
  Create(
      "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {capacity: {cpu: 4}, "
      "allocatable: {cpu: 4}}}");
  Create(
      "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: n1, containers: [{name: "
      "c, image: i, resources: {requests: {cpu: 80}}}]}}");
  Status("/api/v1/namespaces/default/pods/p",
         R"({"status":{"phase":"Running","conditions":[{"type":"PodResizePending","status":"True",)"
         R"("reason":"Infeasible"}],"containerStatuses":[{"name":"c","image":"i","imageID":"",)"
         R"("ready":true,"restartCount":0,"allocatedResources":{"cpu":"1"}}]}})");
  ASSERT_EQ(Run({"swell", "top", "node"}), 0) << err_;
  EXPECT_NE(out_.find(" 1/4 (25%) "), std::string::npos) << out_;
}

TEST_F(ListsTest, AnObjectOfAKindWithSeveralVersionsIsListedOnce) {
  Create(
      "{apiVersion: batch/v1, kind: CronJob, metadata: {name: nightly}, spec: {schedule: \"0 0 * * "
      "*\", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, "
      "image: i}]}}}}}}");
  ASSERT_EQ(Run({"swell", "get", "all", "-o", "name"}), 0) << err_;
  EXPECT_EQ(out_, "cronjob.batch/nightly\n");
}

TEST_F(ListsTest, JobsThatWereMadeTogetherStandInTheOrderOfTheirNumbers) {
  for (const char* name : {"sw-1", "sw-10", "sw-2"}) {
    Create(StrCat("{apiVersion: batch/v1, kind: Job, metadata: {name: ", name,
                  "}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "
                  "i}]}}}}"));
  }
  ASSERT_EQ(Run({"swell", "list", "-o", "name"}), 0) << err_;
  EXPECT_EQ(out_, "job.batch/sw-1\njob.batch/sw-2\njob.batch/sw-10\n");
}

TEST_F(ListsTest, WhatCannotBeDeletedSoIsSaidWithWhatCan) {
  EXPECT_EQ(Run({"swell", "delete", "-l", "team=a"}), 2);
  EXPECT_NE(err_.find("name a kind, for example: swell delete trainingjobs -l team=a"),
            std::string::npos)
      << err_;
  EXPECT_EQ(Run({"swell", "delete", "--all"}), 2);
  EXPECT_NE(err_.find("swell delete trainingjobs --all"), std::string::npos) << err_;
  EXPECT_EQ(Run({"swell", "delete", "a,b"}), 2);
  EXPECT_NE(err_.find("\"a,b\": separate names with spaces"), std::string::npos) << err_;
}

}  // namespace
}  // namespace swell::cli
