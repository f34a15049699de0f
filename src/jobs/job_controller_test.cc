// The life of a PyTorchJob under every policy, against the in-process API server.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "manager/testing/cluster_test_util.h"
#include "sched_inputs/sched_convert.h"

namespace swell::jobs {
namespace {

using client::resources::kPodGroups;
using client::resources::kPods;
using client::resources::kPyTorchJobs;
using client::resources::kServices;
using manager::kSecond;
using manager::PyTorchYaml;
using manager::TestCluster;

class JobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* node : {"node-a", "node-b", "node-c"}) cluster_.AddNode(node, 4);
    cluster_.StartManager();
  }
  bool Is(std::string_view type, const std::string& job = "default/job") {
    return cluster_.Condition(kPyTorchJobs, job, type);
  }
  void SubmitAndRun(const PyTorchYaml& yaml) {
    cluster_.Create(yaml.Text());
    ASSERT_TRUE(cluster_.Until([&] {
      return Is("Running", "default/" + yaml.name) &&
             cluster_.Pods("Running") == yaml.workers + (yaml.master ? 1 : 0);
    }));
  }
  TestCluster cluster_;
};

TEST_F(JobTest, RunsAndSucceedsWithItsMaster) {
  SubmitAndRun({.workers = 2});
  json::SharedValue master = cluster_.Get(kPods, "default/job-master-0");
  ASSERT_TRUE(master);
  EXPECT_EQ(api::Label(*master, "pytorch-replica-type"), "master");
  EXPECT_EQ(api::Label(*master, "job-role"), "master");
  EXPECT_EQ(api::Label(*master, api::keys::kPodGroup), "job");
  std::map<std::string, std::string> env;
  json::SharedValue worker = cluster_.Get(kPods, "default/job-worker-1");
  ASSERT_TRUE(worker);
  for (const json::Value& one :
       json::GetArray(json::GetArray(*worker, {"spec", "containers"})[0], {"env"})) {
    env[std::string(json::GetString(one, {"name"}))] = json::GetString(one, {"value"});
  }
  EXPECT_EQ(env["RANK"], "2");
  EXPECT_EQ(env["WORLD_SIZE"], "3");
  EXPECT_EQ(env["MASTER_ADDR"], "job-master-0");
  EXPECT_EQ(env["MASTER_PORT"], "23456");
  // A bare torchrun joins the job's other pods.
  EXPECT_EQ(env["PET_NNODES"], "3");
  EXPECT_EQ(env["PET_NODE_RANK"], "2");
  EXPECT_EQ(env["PET_MASTER_ADDR"], "job-master-0");
  EXPECT_EQ(env["PET_MASTER_PORT"], "23456");
  EXPECT_FALSE(env.contains("PET_NPROC_PER_NODE"));
  json::SharedValue service = cluster_.Get(kServices, "default/job-master-0");
  ASSERT_TRUE(service);
  EXPECT_EQ(json::GetString(*service, {"spec", "clusterIP"}), "None");
  EXPECT_EQ(
      cluster_.Int(kPyTorchJobs, "default/job", {"status", "replicaStatuses", "Worker", "active"}),
      2);

  cluster_.agents->Exit("default/job-worker-0", 0);
  cluster_.Run(kSecond);
  EXPECT_TRUE(Is("Running"));
  cluster_.agents->Exit("default/job-master-0", 0);
  ASSERT_TRUE(cluster_.Until([&] { return Is("Succeeded"); }));
  EXPECT_FALSE(Is("Running"));
  EXPECT_EQ(cluster_.Reason(kPyTorchJobs, "default/job", "Succeeded"), "PyTorchJobSucceeded");
  json::SharedValue job = cluster_.Get(kPyTorchJobs, "default/job");
  EXPECT_FALSE(json::GetString(*job, {"status", "startTime"}).empty());
  EXPECT_FALSE(json::GetString(*job, {"status", "completionTime"}).empty());
  // Counts that fell to zero are gone from the status, not left behind.
  EXPECT_EQ(json::Find(*job, {"status", "replicaStatuses", "Master", "active"}), nullptr);
  EXPECT_EQ(cluster_.Int(kPyTorchJobs, "default/job",
                         {"status", "replicaStatuses", "Master", "succeeded"}),
            1);
}

// Else a template could run with the numbers of another user, and be charged to that user.
TEST_F(JobTest, APodIsOfItsJobsAuthorWhateverItsTemplateSays) {
  auto yaml = [](const std::string& name, const std::string& annotations) {
    return StrCat("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: ", name,
                  ", namespace: default, annotations: {", annotations,
                  "}}\nspec: {pytorchReplicaSpecs: {Worker: {replicas: 1, template: {metadata: "
                  "{annotations: {swell.dev/user: zoe, swell.dev/pod-security: privileged}}, spec: "
                  "{containers: [{name: pytorch, image: x}]}}}}}\n");
  };
  cluster_.Create(yaml("hers", "swell.dev/user: alice"));
  cluster_.Create(yaml("nobodys", ""));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 2; }));
  auto says = [this](const std::string& pod, std::string_view key) {
    const json::SharedValue found = cluster_.Get(kPods, "default/" + pod + "-worker-0");
    return found ? std::string(api::Annotation(*found, key)) : "no pod";
  };
  EXPECT_EQ(says("hers", api::keys::kUser), "alice");
  EXPECT_EQ(says("nobodys", api::keys::kUser), "");
  EXPECT_EQ(says("nobodys", api::keys::kPodSecurity), "");
}

TEST_F(JobTest, WithoutMasterAllWorkersMustSucceed) {
  SubmitAndRun({.workers = 2, .master = false});
  cluster_.agents->Exit("default/job-worker-0", 0);
  cluster_.Run(kSecond);
  EXPECT_FALSE(Is("Succeeded"));
  cluster_.agents->Exit("default/job-worker-1", 0);
  EXPECT_TRUE(cluster_.Until([&] { return Is("Succeeded"); }));
}

TEST_F(JobTest, GangStartsWholeOrNotAtAll) {
  cluster_.Create(PyTorchYaml{.name = "big", .workers = 3, .gpus = 4}.Text());
  cluster_.Run(5 * kSecond);
  EXPECT_EQ(cluster_.Pods("Running"), 0);
  EXPECT_EQ(cluster_.Pods("Pending"), 4);
  json::SharedValue group = cluster_.Get(kPodGroups, "default/big");
  ASSERT_TRUE(group);
  EXPECT_EQ(json::GetString(*group, {"status", "phase"}), "Pending");
  EXPECT_NE(json::GetString(*group, {"status", "message"}), "");
  EXPECT_GE(cluster_.Events("FailedScheduling"), 1);
  for (const json::SharedValue& pod : cluster_.List(kPods)) {
    EXPECT_EQ(json::GetString(*pod, {"spec", "nodeName"}), "") << api::Name(*pod);
  }
  cluster_.AddNode("node-d", 4);
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 4; }));
}

TEST_F(JobTest, AJobOfThousandsIsMadeInSeveralPasses) {
  cluster_.Create(PyTorchYaml{.name = "big", .workers = 1200, .gpus = 4}.Text());
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") >= 1000; }));
  EXPECT_EQ(cluster_.Pods("Running"), 0) << "a gang that is made in parts has no place yet";
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 1201; }));
  EXPECT_TRUE(cluster_.Get(kPods, "default/big-worker-1199"));
}

TEST_F(JobTest, NeverFailsTheJobAndStopsTheOthers) {
  SubmitAndRun({.workers = 2});
  cluster_.agents->Exit("default/job-worker-0", 1);
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
  EXPECT_EQ(cluster_.Reason(kPyTorchJobs, "default/job", "Failed"), "PyTorchJobFailed");
  // Nothing of a dead job holds GPUs, and everything stays listed.
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("Failed") == 3; }));
  cluster_.Run(60 * kSecond);
  EXPECT_EQ(cluster_.Pods(""), 3);
  EXPECT_EQ(cluster_.PodPhase("default/job-master-0"), "Failed");
}

TEST_F(JobTest, OnFailureRestartsInPlace) {
  SubmitAndRun({.workers = 1, .restart = "OnFailure"});
  std::string uid = cluster_.PodUid("default/job-worker-0");
  cluster_.agents->Exit("default/job-worker-0", 1);
  cluster_.Run(5 * kSecond);
  EXPECT_EQ(cluster_.PodPhase("default/job-worker-0"), "Running");
  EXPECT_EQ(cluster_.PodUid("default/job-worker-0"), uid);
  EXPECT_FALSE(Is("Failed"));
}

TEST_F(JobTest, AMemberThatFailsAgainAndAgainIsTheJobsCondition) {
  SubmitAndRun({.workers = 1, .restart = "OnFailure"});
  cluster_.agents->Exit("default/job-worker-0", 3);
  ASSERT_TRUE(cluster_.Until([&] { return Is("Degraded"); }));
  EXPECT_TRUE(Is("Running"));  // as Kubeflow has it
  const json::SharedValue job = cluster_.Get(kPyTorchJobs, "default/job");
  EXPECT_EQ(json::GetString(*job, {"status", "failure", "member"}), "job-worker-0");
  EXPECT_EQ(json::GetInt(*job, {"status", "failure", "exitCode"}), 3);
  EXPECT_TRUE(cluster_.EventMessage("Degraded")
                  .starts_with("job-worker-0 failed and starts again (1 restart): container "))
      << cluster_.EventMessage("Degraded");
  const json::Array& conditions = json::GetArray(*job, {"status", "conditions"});
  EXPECT_EQ(json::GetString(conditions.back(), {"type"}), "Running");
  // It recovers when the container runs on.
  ASSERT_TRUE(cluster_.Until([&] { return !Is("Degraded"); }, std::chrono::minutes(3)));
  EXPECT_EQ(json::Find(*cluster_.Get(kPyTorchJobs, "default/job"), {"status", "failure"}), nullptr);
}

TEST_F(JobTest, TheFailureThatEndsTheJobIsInItsStatus) {
  SubmitAndRun({.workers = 2});
  cluster_.agents->Exit("default/job-worker-1", 1);
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
  const json::SharedValue job = cluster_.Get(kPyTorchJobs, "default/job");
  EXPECT_EQ(json::GetString(*job, {"status", "failure", "member"}), "job-worker-1");
  EXPECT_EQ(json::GetString(*job, {"status", "failure", "class"}), "UserError");
  EXPECT_NE(cluster_.EventMessage("PyTorchJobFailed").find("job-worker-1 failed: container "),
            std::string::npos)
      << cluster_.EventMessage("PyTorchJobFailed");
}

TEST_F(JobTest, PodsThatAreGoneStayInTheStatus) {
  SubmitAndRun({.workers = 1, .restart = "ExitCode"});
  const std::string uid = cluster_.PodUid("default/job-worker-0");
  for (int i = 0; i < 2; ++i) {
    cluster_.Run(kSecond);
    const std::string before = cluster_.PodUid("default/job-worker-0");
    cluster_.agents->Exit("default/job-worker-0", 130);
    ASSERT_TRUE(cluster_.Until([&] {
      return cluster_.PodPhase("default/job-worker-0") == "Running" &&
             cluster_.PodUid("default/job-worker-0") != before;
    }));
  }
  ASSERT_TRUE(cluster_.Until([&] {
    return json::GetArray(*cluster_.Get(kPyTorchJobs, "default/job"), {"status", "attempts"})
               .size() == 2;
  }));
  const json::SharedValue job = cluster_.Get(kPyTorchJobs, "default/job");
  const json::Value& first = json::GetArray(*job, {"status", "attempts"})[0];
  EXPECT_EQ(json::GetString(first, {"member"}), "job-worker-0");
  EXPECT_EQ(json::GetString(first, {"uid"}), uid);
  EXPECT_EQ(json::GetInt(first, {"attempt"}), 1);
  EXPECT_EQ(json::GetString(first, {"result"}), "Failed");
  EXPECT_EQ(json::GetInt(json::GetArray(*job, {"status", "attempts"})[1], {"attempt"}), 2);
}

TEST_F(JobTest, BackoffLimitCountsRestartsInPlace) {
  SubmitAndRun({.workers = 1, .restart = "OnFailure", .run_policy = "backoffLimit: 2"});
  cluster_.agents->Exit("default/job-worker-0", 1);
  cluster_.Run(2 * kSecond);
  EXPECT_FALSE(Is("Failed"));
  cluster_.agents->Exit("default/job-worker-0", 1);
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
  EXPECT_EQ(cluster_.Reason(kPyTorchJobs, "default/job", "Failed"), "BackoffLimitExceeded");
  EXPECT_EQ(json::GetString(*cluster_.Get(kPyTorchJobs, "default/job"),
                            {"status", "failure", "waitsWith"}),
            "");
  // They are stopped and stay listed, so that their logs can be read.
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("Failed") == 2; }));
}

struct ExitCase {
  int code;
  bool retried;
};

class ExitCodeTest : public JobTest, public ::testing::WithParamInterface<ExitCase> {};

TEST_P(ExitCodeTest, DecidesByTheCode) {
  SubmitAndRun({.workers = 1, .restart = "ExitCode"});
  std::string uid = cluster_.PodUid("default/job-worker-0");
  cluster_.agents->Exit("default/job-worker-0", GetParam().code);
  if (!GetParam().retried) {
    EXPECT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
    return;
  }
  ASSERT_TRUE(cluster_.Until([&] {
    return cluster_.PodPhase("default/job-worker-0") == "Running" &&
           cluster_.PodUid("default/job-worker-0") != uid;
  }));
  EXPECT_FALSE(Is("Failed"));
  EXPECT_EQ(cluster_.Int(kPyTorchJobs, "default/job", {"status", "restarts"}), 1);
  EXPECT_TRUE(cluster_.Until([&] { return Is("Running") && !Is("Restarting"); }));
}

INSTANTIATE_TEST_SUITE_P(Codes,
                         ExitCodeTest,
                         ::testing::Values(ExitCase{1, false},
                                           ExitCase{2, false},
                                           ExitCase{127, false},
                                           ExitCase{128, true},
                                           ExitCase{130, true},
                                           ExitCase{137, true},
                                           ExitCase{138, true},
                                           ExitCase{143, true}));

TEST_F(JobTest, BackoffLimitCountsPodsMadeAnew) {
  SubmitAndRun({.workers = 1, .restart = "ExitCode", .run_policy = "backoffLimit: 1"});
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(
        cluster_.Until([&] { return cluster_.PodPhase("default/job-worker-0") == "Running"; }));
    EXPECT_FALSE(Is("Failed"));
    cluster_.agents->Exit("default/job-worker-0", 137);
    cluster_.Run(kSecond);
  }
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
  EXPECT_EQ(cluster_.Reason(kPyTorchJobs, "default/job", "Failed"), "BackoffLimitExceeded");
}

struct CleanCase {
  const char* policy;
  bool fails;
  int left;     // pods still there
  int running;  // of them
};

class CleanTest : public JobTest, public ::testing::WithParamInterface<CleanCase> {};

// A success leaves running workers alone under None, as Kubeflow does; a failure never leaves
// anything holding GPUs.
TEST_P(CleanTest, RemovesPodsByPolicy) {
  SubmitAndRun({.workers = 2, .run_policy = StrCat("cleanPodPolicy: ", GetParam().policy)});
  cluster_.agents->Exit("default/job-worker-0", 0);
  cluster_.agents->Exit("default/job-master-0", GetParam().fails ? 1 : 0);
  ASSERT_TRUE(cluster_.Until([&] { return Is(GetParam().fails ? "Failed" : "Succeeded"); }));
  cluster_.Run(10 * kSecond);
  EXPECT_EQ(cluster_.Pods(""), GetParam().left);
  EXPECT_EQ(cluster_.Pods("Running"), GetParam().running);
  const auto count = [this](const char* role, const char* field) {
    return cluster_.Int(kPyTorchJobs, "default/job", {"status", "replicaStatuses", role, field});
  };
  EXPECT_EQ(count("Worker", "succeeded"), 1) << "though its pod may be gone";
  EXPECT_EQ(count("Master", GetParam().fails ? "failed" : "succeeded"), 1);
}

INSTANTIATE_TEST_SUITE_P(Policies,
                         CleanTest,
                         ::testing::Values(CleanCase{"None", false, 3, 1},
                                           CleanCase{"Running", false, 2, 0},
                                           CleanCase{"All", false, 0, 0},
                                           CleanCase{"None", true, 3, 0},
                                           CleanCase{"Running", true, 2, 0},
                                           CleanCase{"All", true, 0, 0}));

TEST_F(JobTest, DeadlineEndsTheJob) {
  SubmitAndRun({.workers = 1, .run_policy = "activeDeadlineSeconds: 30"});
  cluster_.Run(20 * kSecond);
  EXPECT_FALSE(Is("Failed"));
  cluster_.Run(12 * kSecond);
  EXPECT_EQ(cluster_.Reason(kPyTorchJobs, "default/job", "Failed"), "DeadlineExceeded");
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 0; }));
}

TEST_F(JobTest, ItsDeadlineIsKnownToTheScheduler) {
  SubmitAndRun({.workers = 1, .run_policy = "activeDeadlineSeconds: 30"});
  const sched::PodInfo pod = sched_inputs::ToPodInfo(*cluster_.Get(kPods, "default/job-worker-0"));
  EXPECT_EQ(pod.max_runtime, 30 * kSecond);
}

TEST_F(JobTest, TtlRemovesTheJobAndAllOfIt) {
  SubmitAndRun({.workers = 1, .run_policy = "ttlSecondsAfterFinished: 60"});
  cluster_.agents->Exit("default/job-master-0", 0);
  ASSERT_TRUE(cluster_.Until([&] { return Is("Succeeded"); }));
  cluster_.Run(50 * kSecond);
  EXPECT_TRUE(cluster_.Get(kPyTorchJobs, "default/job"));
  cluster_.Run(15 * kSecond);
  EXPECT_FALSE(cluster_.Get(kPyTorchJobs, "default/job"));
  EXPECT_TRUE(cluster_.Until([&] {
    return cluster_.Pods("") == 0 && !cluster_.Get(kPodGroups, "default/job") &&
           !cluster_.Get(kServices, "default/job-master-0");
  }));
}

TEST_F(JobTest, SuspendStopsAndResumeStartsAgain) {
  SubmitAndRun({.workers = 1});
  std::string start(
      json::GetString(*cluster_.Get(kPyTorchJobs, "default/job"), {"status", "startTime"}));
  ASSERT_TRUE(
      cluster_.Patch(kPyTorchJobs, "default/job", "{spec: {runPolicy: {suspend: true}}}").ok());
  ASSERT_TRUE(cluster_.Until([&] { return Is("Suspended") && cluster_.Pods("") == 0; }));
  EXPECT_FALSE(Is("Running"));
  EXPECT_EQ(json::Find(*cluster_.Get(kPyTorchJobs, "default/job"), {"status", "startTime"}),
            nullptr);
  cluster_.Run(30 * kSecond);
  EXPECT_EQ(cluster_.Pods(""), 0);
  ASSERT_TRUE(
      cluster_.Patch(kPyTorchJobs, "default/job", "{spec: {runPolicy: {suspend: false}}}").ok());
  ASSERT_TRUE(cluster_.Until([&] { return Is("Running"); }));
  EXPECT_FALSE(Is("Suspended"));
  EXPECT_NE(json::GetString(*cluster_.Get(kPyTorchJobs, "default/job"), {"status", "startTime"}),
            start);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Events("Resumed", "job") == 1; }));
  EXPECT_TRUE(cluster_.EventMessage("Resumed", "job").starts_with("PyTorchJob job runs again"));
}

TEST_F(JobTest, AnAttemptThatASuspensionEndedSaysSo) {
  SubmitAndRun({.workers = 1});
  ASSERT_TRUE(
      cluster_.Patch(kPyTorchJobs, "default/job", "{spec: {runPolicy: {suspend: true}}}").ok());
  const auto results = [this] {
    std::string text;
    const json::SharedValue job = cluster_.Get(kPyTorchJobs, "default/job");
    for (const json::Value& one : json::GetArray(*job, {"status", "attempts"})) {
      text += StrCat(json::GetString(one, {"member"}), " ", json::GetString(one, {"result"}), " ");
    }
    return text;
  };
  EXPECT_TRUE(cluster_.Until([&] {
    return results() == "job-master-0 Suspended job-worker-0 Suspended ";
  })) << results();
}

TEST_F(JobTest, AJobOfOnePodRunsAgainAsAWhole) {
  SubmitAndRun({.workers = 0});
  for (std::string_view suspend : {"true", "false"}) {
    ASSERT_TRUE(cluster_
                    .Patch(kPyTorchJobs, "default/job",
                           StrCat("{spec: {runPolicy: {suspend: ", suspend, "}}}"))
                    .ok());
    ASSERT_TRUE(cluster_.Until([&] { return Is("Suspended") == (suspend == "true"); }));
  }
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Events("Resumed", "job") == 1; }));
  EXPECT_EQ(cluster_.EventMessage("Resumed", "job"), "PyTorchJob job runs again.");
}

TEST_F(JobTest, TorchrunJoinsThePodsOfATrainingJobOfOneSize) {
  cluster_.Create(
      "apiVersion: swell.dev/v1\nkind: TrainingJob\nmetadata: {name: t, namespace: default}\n"
      "spec:\n  roles:\n    worker:\n      replicas: 3\n"
      "      template: {spec: {containers: [{name: main, image: i}]}}\n");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Get(kPods, "default/t-worker-2") != nullptr; }));
  std::map<std::string, std::string> env;
  const json::SharedValue pod = cluster_.Get(kPods, "default/t-worker-2");
  for (const json::Value& one :
       json::GetArray(json::GetArray(*pod, {"spec", "containers"})[0], {"env"})) {
    env[std::string(json::GetString(one, {"name"}))] = json::GetString(one, {"value"});
  }
  EXPECT_EQ(env["PET_NNODES"], "3");
  EXPECT_EQ(env["PET_NODE_RANK"], "2");
  EXPECT_EQ(env["PET_MASTER_ADDR"], "t-worker-0");
  EXPECT_EQ(env["PET_MASTER_PORT"], env["MASTER_PORT"]);
  EXPECT_FALSE(env.contains("PET_RDZV_ENDPOINT"));
}

TEST_F(JobTest, WhatCanNotBeRunHasFailedAndSaysWhy) {
  cluster_.Create(
      "apiVersion: swell.dev/v1\nkind: TrainingJob\nmetadata: {name: t, namespace: default}\n"
      "spec:\n  roles:\n    worker:\n      replicas: 2\n"
      "      elastic: {minReplicas: 5, maxReplicas: 3}\n"
      "      template: {spec: {containers: [{name: main, image: i}]}}\n");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Events("InvalidSpec", "t") == 1; }));
  EXPECT_EQ(
      cluster_.EventMessage("InvalidSpec", "t"),
      "TrainingJob t cannot run: spec.roles.worker.elastic.minReplicas: Invalid value: 5: must "
      "be between 0 and maxReplicas, 3");
  const json::SharedValue job = cluster_.Get(client::resources::kTrainingJobs, "default/t");
  EXPECT_EQ(json::GetString(*job, {"status", "phase"}), "Failed");
  EXPECT_EQ(cluster_.Pods(""), 0);
}

TEST_F(JobTest, InvalidJobFailsInWords) {
  cluster_.Create(
      "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: job}\n"
      "spec: {pytorchReplicaSpecs: {Master: {replicas: 2, template: {spec: {containers: "
      "[{name: pytorch, image: x}]}}}}}\n");
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
  json::SharedValue job = cluster_.Get(kPyTorchJobs, "default/job");
  const std::optional<api::Condition> failed = api::FindCondition(*job, "Failed");
  EXPECT_NE(failed->message.find("pytorchReplicaSpecs.Master.replicas"), std::string_view::npos);
  EXPECT_EQ(cluster_.Pods(""), 0);
}

TEST_F(JobTest, WhyItsMembersCannotBeCreatedIsACondition) {
  cluster_.Create(
      "{apiVersion: v1, kind: ResourceQuota, metadata: {name: few, namespace: default}, "
      "spec: {hard: {pods: 1}}}");
  cluster_.Create(PyTorchYaml{.workers = 1}.Text());
  ASSERT_TRUE(cluster_.Until([&] { return Is("ReplicaFailure"); }));
  const json::SharedValue job = cluster_.Get(kPyTorchJobs, "default/job");
  const std::optional<api::Condition> refused = api::FindCondition(*job, "ReplicaFailure");
  EXPECT_TRUE(refused->message.find("exceeded quota: few") != std::string_view::npos)
      << refused->message;
  EXPECT_EQ(refused->reason, "FailedCreate");
  // Kubeflow's clients read the last condition as the state of the job.
  EXPECT_NE(api::Conditions(*job).back().type, "ReplicaFailure");

  ASSERT_TRUE(
      cluster_.Patch(client::resources::kResourceQuotas, "default/few", "{spec: {hard: {pods: 2}}}")
          .ok());
  ASSERT_TRUE(cluster_.Until([&] { return Is("Running") && !Is("ReplicaFailure"); },
                             std::chrono::minutes(5)));
}

TEST_F(JobTest, DeletedPodComesBack) {
  SubmitAndRun({.workers = 1, .restart = "OnFailure"});
  std::string uid = cluster_.PodUid("default/job-worker-0");
  ASSERT_TRUE(cluster_.Delete(kPods, "default/job-worker-0").ok());
  EXPECT_TRUE(cluster_.Until([&] {
    return cluster_.PodPhase("default/job-worker-0") == "Running" &&
           cluster_.PodUid("default/job-worker-0") != uid;
  }));
  EXPECT_FALSE(Is("Failed"));
}

TEST_F(JobTest, FewerWorkersAreRemoved) {
  SubmitAndRun({.workers = 3});
  ASSERT_TRUE(cluster_
                  .Patch(kPyTorchJobs, "default/job",
                         "{spec: {pytorchReplicaSpecs: {Worker: {replicas: 1}}}}")
                  .ok());
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 2; }));
  EXPECT_EQ(cluster_.PodPhase("default/job-worker-0"), "Running");
}

TEST_F(JobTest, RestartedControllerGoesOn) {
  SubmitAndRun({.workers = 2});
  std::string uid = cluster_.PodUid("default/job-worker-0");
  cluster_.StopManager();
  cluster_.agents->Exit("default/job-master-0", 0);
  cluster_.Run(5 * kSecond);
  EXPECT_FALSE(Is("Succeeded"));
  cluster_.StartManager();
  EXPECT_TRUE(cluster_.Until([&] { return Is("Succeeded"); }));
  EXPECT_EQ(cluster_.PodUid("default/job-worker-0"), uid);
  EXPECT_EQ(cluster_.Pods(""), 3);
}

TEST_F(JobTest, QuietWhenNothingHappens) {
  SubmitAndRun({.workers = 2});
  cluster_.Run(30 * kSecond);
  json::SharedValue before = cluster_.Get(kPyTorchJobs, "default/job");
  int64_t binds = cluster_.manager->scheduler().stats().binds;
  cluster_.Run(std::chrono::minutes(10));
  json::SharedValue after = cluster_.Get(kPyTorchJobs, "default/job");
  EXPECT_EQ(api::ResourceVersion(*before), api::ResourceVersion(*after));
  EXPECT_EQ(cluster_.manager->scheduler().stats().binds, binds);
  EXPECT_EQ(cluster_.manager->scheduler().stats().refused, 0);
}

// Nobody is left to train with, so a member that is gone is not made anew, and nobody waits for it.
TEST_F(JobTest, AnElasticJobIsOverWhenOneMemberHasFinishedAndTheOthersAreGone) {
  SubmitAndRun({.workers = 2,
                .more_spec = "  elasticPolicy: {minReplicas: 1, maxReplicas: 2}\n",
                .master = false});
  cluster_.agents->Exit("default/job-worker-0", 0);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Succeeded") == 1; }));
  EXPECT_FALSE(Is("Succeeded"));
  ASSERT_TRUE(cluster_.Delete(kPods, "default/job-worker-1").ok());
  ASSERT_TRUE(cluster_.Until([&] { return Is("Succeeded"); }));
  EXPECT_EQ(cluster_.Pods("Running"), 0);
}

TEST_F(JobTest, ElasticJobGetsARendezvous) {
  SubmitAndRun({.workers = 2,
                .more_spec = "  elasticPolicy: {minReplicas: 1, maxReplicas: 4, standalone: true, "
                             "rdzvConf: [{key: timeout, value: '900'}, {key: ttl, value: '5'}]}\n",
                .master = false});
  json::SharedValue worker = cluster_.Get(kPods, "default/job-worker-1");
  std::map<std::string, std::string> env;
  for (const json::Value& one :
       json::GetArray(json::GetArray(*worker, {"spec", "containers"})[0], {"env"})) {
    env[std::string(json::GetString(one, {"name"}))] = json::GetString(one, {"value"});
  }
  EXPECT_EQ(env["PET_NNODES"], "1:4");
  EXPECT_EQ(env["PET_RDZV_ENDPOINT"], "job-worker-0:23456");
  EXPECT_EQ(env["PET_RDZV_CONF"], "timeout=900,ttl=5");
  EXPECT_EQ(env["PET_STANDALONE"], "1");
  json::SharedValue group = cluster_.Get(kPodGroups, "default/job");
  ASSERT_TRUE(group);
  EXPECT_EQ(json::GetInt(json::GetArray(*group, {"spec", "podSets"})[0], {"minMember"}), 1);
}

}  // namespace
}  // namespace swell::jobs
