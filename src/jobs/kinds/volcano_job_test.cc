// Volcano's Job: what its pods are told, and what its policies do.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "jobs/kinds/job_kinds.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::jobs {
namespace {

using client::resources::kPods;
using manager::kSecond;
using manager::TestCluster;

const client::Resource kVolcanoJobs{"batch.volcano.sh", "v1alpha1", "jobs", true};

std::string Task(std::string_view name, int replicas, std::string_view more = "") {
  return StrCat("{name: ", name, ", replicas: ", replicas, more,
                ", template: {spec: {containers: [{name: main, image: i, command: [x]}]}}}");
}

std::string Manifest(std::string_view more, const std::vector<std::string>& tasks) {
  return StrCat("{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, ",
                "metadata: {name: job, namespace: default}, spec: {", more, "tasks: [",
                Join(tasks, ", "), "]}}");
}

class VolcanoJobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-a", 8);
    cluster_.StartManager();
  }
  void Submit(std::string_view more, const std::vector<std::string>& tasks) {
    cluster_.Create(Manifest(more, tasks));
  }
  bool Run(int pods) {
    return cluster_.Until([&] { return cluster_.Pods("Running") == pods; });
  }
  bool IsPhase(std::string_view phase) {
    return cluster_.Until([&] { return Phase() == phase; });
  }
  std::string Phase() {
    json::SharedValue job = cluster_.Get(kVolcanoJobs, "default/job");
    return job ? std::string(json::GetString(*job, {"status", "state", "phase"})) : "";
  }
  // What the files of the keys may be read by.
  static int64_t KeyMode(const json::Value& pod) {
    for (const json::Value& volume : json::GetArray(pod, {"spec", "volumes"})) {
      if (json::GetString(volume, {"name"}) != "ssh-auth") continue;
      return json::GetInt(volume, {"secret", "defaultMode"}, 0644);
    }
    return -1;
  }
  // The parts of volumes that the pod's first container mounts, as NAME:PATH:SUBPATH.
  std::string KeyMount(const std::string& pod) {
    json::SharedValue found = cluster_.Get(kPods, "default/" + pod);
    if (!found) return "no pod";
    const json::Array& mounts =
        json::GetArray(json::GetArray(*found, {"spec", "containers"})[0], {"volumeMounts"});
    std::vector<std::string> parts;
    for (const json::Value& one : mounts) {
      if (json::GetString(one, {"subPath"}).empty()) continue;
      parts.push_back(StrCat(json::GetString(one, {"name"}), ":",
                             json::GetString(one, {"mountPath"}), ":",
                             json::GetString(one, {"subPath"})));
    }
    return Join(parts, " ");
  }
  TestCluster cluster_;
};

TEST_F(VolcanoJobTest, PodsKnowTheirTasks) {
  Submit("plugins: {env: [], svc: []}, queue: research, ", {Task("ps", 1), Task("a-worker", 2)});
  ASSERT_TRUE(Run(3));
  EXPECT_EQ(cluster_.Env("default/job-a-worker-1", "VC_TASK_INDEX"), "1");
  EXPECT_EQ(cluster_.Env("default/job-ps-0", "VC_A_WORKER_HOSTS"),
            "job-a-worker-0.job,job-a-worker-1.job");
  EXPECT_EQ(cluster_.Env("default/job-ps-0", "VC_PS_NUM"), "1");
  json::SharedValue pod = cluster_.Get(kPods, "default/job-a-worker-1");
  EXPECT_EQ(api::Label(*pod, "volcano.sh/task-spec"), "a-worker");
  EXPECT_EQ(api::Label(*pod, "swell.dev/project"), "research");
  EXPECT_EQ(json::GetString(*pod, {"spec", "subdomain"}), "job");
  EXPECT_NE(cluster_.Get(client::resources::kServices, "default/job"), nullptr);
  json::SharedValue hosts = cluster_.Get(client::resources::kConfigMaps, "default/job-svc");
  ASSERT_NE(hosts, nullptr);
  EXPECT_EQ(json::GetString(*hosts, {"data", "a_worker.host"}),
            "job-a-worker-0.job\njob-a-worker-1.job");
  EXPECT_EQ(Phase(), "Running");
  EXPECT_EQ(cluster_.Int(kVolcanoJobs, "default/job", {"status", "running"}), 3);
}

TEST_F(VolcanoJobTest, ThePluginPytorchSetsRanks) {
  Submit("plugins: {pytorch: ['--master=m', '--worker=w', '--port=2300']}, ",
         {Task("m", 1), Task("w", 2)});
  ASSERT_TRUE(Run(3));
  EXPECT_EQ(cluster_.Env("default/job-w-1", "MASTER_ADDR"), "job-m-0.job");
  EXPECT_EQ(cluster_.Env("default/job-w-1", "MASTER_PORT"), "2300");
  EXPECT_EQ(cluster_.Env("default/job-w-1", "RANK"), "2");
  EXPECT_EQ(cluster_.Env("default/job-m-0", "RANK"), "0");
  EXPECT_EQ(cluster_.Env("default/job-m-0", "WORLD_SIZE"), "3");
}

TEST_F(VolcanoJobTest, RunsWithoutWaitingForTheMaster) {
  Submit("plugins: {pytorch: [--master=m, --worker=w, --wait-master-enabled=true]}, ",
         {Task("m", 1), Task("w", 1)});
  ASSERT_TRUE(Run(2));
  EXPECT_EQ(cluster_.Env("default/job-w-0", "RANK"), "1");
  EXPECT_EQ(cluster_.EventMessage("FieldIgnored"),
            "the job runs as if it did not say spec.plugins.pytorch[2]");
}

TEST_F(VolcanoJobTest, ThePluginTensorflowSaysWhoTheOthersAre) {
  Submit("plugins: {tensorflow: [--ps=server, --port=2300]}, ",
         {Task("server", 1), Task("worker", 2), Task("board", 1)});
  ASSERT_TRUE(Run(4));
  EXPECT_EQ(cluster_.Env("default/job-worker-1", "TF_CONFIG"),
            R"({"cluster":{"ps":["job-server-0.job:2300"],)"
            R"("worker":["job-worker-0.job:2300","job-worker-1.job:2300"]},)"
            R"("task":{"type":"worker","index":1}})");
  EXPECT_TRUE(cluster_.Env("default/job-server-0", "TF_CONFIG")
                  .ends_with(R"("task":{"type":"ps","index":0}})"));
  EXPECT_EQ(cluster_.Env("default/job-board-0", "TF_CONFIG"), "not set");
  EXPECT_EQ(cluster_.Env("default/job-board-0", "VC_WORKER_NUM"), "2") << "svc comes with it";
}

TEST_F(VolcanoJobTest, ThePluginMpiBringsHostsAndKeys) {
  Submit("plugins: {mpi: [--master=main, --worker=w]}, ", {Task("main", 1), Task("w", 2)});
  ASSERT_TRUE(Run(3));
  EXPECT_EQ(cluster_.Env("default/job-main-0", "MPI_HOST"), "job-w-0.job,job-w-1.job");
  EXPECT_EQ(cluster_.Env("default/job-w-0", "MPI_HOST"), "not set");
  const std::string uid(api::Uid(*cluster_.Get(kVolcanoJobs, "default/job")));
  const std::string secret = StrCat("job-ssh-", uid.substr(0, 8));
  const json::SharedValue keys =
      cluster_.Get(client::resources::kSecrets, StrCat("default/", secret));
  ASSERT_NE(keys, nullptr);
  EXPECT_EQ(Base64Decode(json::GetString(*keys, {"data", "ssh-privatekey"})), "private 1");
  EXPECT_EQ(KeyMount("job-w-1"), "ssh-auth:/root/.ssh:.ssh");
  EXPECT_EQ(KeyMount("job-main-0"), "ssh-auth:/root/.ssh:.ssh");
  EXPECT_EQ(cluster_.Events("FieldIgnored"), 0);
}

TEST_F(VolcanoJobTest, ThePluginSshPutsKeysWhereItSays) {
  Submit("plugins: {ssh: [--ssh-key-file-path=/home/mpi/.ssh]}, ", {Task("w", 1)});
  ASSERT_TRUE(Run(1));
  EXPECT_EQ(KeyMount("job-w-0"), "ssh-auth:/home/mpi/.ssh:.ssh");
}

TEST_F(VolcanoJobTest, KeysThatRootReadsAreRootsAlone) {
  struct Row {
    std::string_view folder, pod, container;
    int64_t mode;
  };
  for (const Row& row : {
           Row{"/root/.ssh", "", "", 0600},
           Row{"/root/.ssh/", "", "", 0600},
           Row{"/keys", "", "", 0644},
           Row{"/keys", "securityContext: {runAsUser: 0}, ", "", 0600},
           Row{"/keys", "securityContext: {runAsUser: 0}, ", "securityContext: {runAsUser: 7}, ",
               0644},
           Row{"/root/.ssh", "securityContext: {runAsUser: 7}, ", "", 0644},
       }) {
    Submit(StrCat("plugins: {ssh: ['--ssh-key-file-path=", row.folder, "']}, "),
           {StrCat("{name: w, replicas: 1, template: {spec: {", row.pod, "containers: [{",
                   row.container, "name: main, image: i, command: [x]}]}}}")});
    ASSERT_TRUE(Run(1));
    const json::SharedValue pod = cluster_.Get(kPods, "default/job-w-0");
    EXPECT_EQ(KeyMode(*pod), row.mode) << row.folder << " " << row.pod << row.container;
    EXPECT_TRUE(cluster_.Delete(kVolcanoJobs, "default/job").ok());
    ASSERT_TRUE(Run(0));
  }
}

TEST_F(VolcanoJobTest, KeysOfTheTemplateStay) {
  const std::string_view own =
      "{name: v, replicas: 1, template: {spec: {volumes: [{name: ssh-auth, emptyDir: {}}], "
      "containers: [{name: main, image: i, volumeMounts: "
      "[{name: ssh-auth, mountPath: /k, subPath: a}]}]}}}";
  const std::string_view mounted =
      "{name: m, replicas: 1, template: {spec: {volumes: [{name: own, emptyDir: {}}], "
      "containers: [{name: main, image: i, volumeMounts: "
      "[{name: own, mountPath: /root/.ssh/, subPath: b}]}]}}}";
  Submit("plugins: {ssh: []}, ", {std::string(own), std::string(mounted)});
  ASSERT_TRUE(Run(2));
  EXPECT_EQ(KeyMount("job-v-0"), "ssh-auth:/k:a");
  EXPECT_EQ(KeyMount("job-m-0"), "own:/root/.ssh/:b");
}

TEST_F(VolcanoJobTest, AJobOfAnotherKindKeepsItsPodGroup) {
  cluster_.Create(
      "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: job, namespace: default}, "
      "spec: {pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: "
      "[{name: pytorch, image: i, command: [x]}]}}}}}}");
  ASSERT_TRUE(Run(2));
  Submit("", {Task("t", 1)});
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Events("FailedCreate") > 0; }));
  EXPECT_EQ(cluster_.Pods("Running"), 2);
  EXPECT_TRUE(cluster_.Delete(client::resources::kPyTorchJobs, "default/job").ok());
  EXPECT_TRUE(Run(1));
  EXPECT_TRUE(IsPhase("Running"));
}

TEST_F(VolcanoJobTest, CompletesWhenEnoughMembersSucceeded) {
  Submit("minAvailable: 1, ", {Task("w", 2)});
  ASSERT_TRUE(Run(2));
  cluster_.agents->Exit("default/job-w-0", 1);  // no policy: the others continue
  cluster_.Run(kSecond * 5);
  EXPECT_EQ(Phase(), "Running");
  cluster_.agents->Exit("default/job-w-1", 0);
  EXPECT_TRUE(IsPhase("Completed"));
}

// A gang below its minimum is stopped after a time, but nobody waits for this member.
TEST_F(VolcanoJobTest, AFailureThatIsIgnoredLeavesTheOthersInPeace) {
  Submit("", {Task("w", 3)});
  ASSERT_TRUE(Run(3));
  const std::string other = cluster_.PodUid("default/job-w-1");
  cluster_.agents->Exit("default/job-w-0", 1);
  cluster_.Run(std::chrono::minutes(5));
  EXPECT_EQ(cluster_.PodUid("default/job-w-1"), other);
  EXPECT_EQ(cluster_.Pods("Running"), 2);
  EXPECT_EQ(Phase(), "Running");
  const json::SharedValue group = cluster_.Get(client::resources::kPodGroups, "default/job");
  EXPECT_EQ(json::GetString(*group, {"status", "staleSince"}), "");
}

TEST_F(VolcanoJobTest, FailsWhenTooFewSucceeded) {
  Submit("", {Task("w", 2)});
  ASSERT_TRUE(Run(2));
  cluster_.agents->Exit("default/job-w-0", 1);
  cluster_.agents->Exit("default/job-w-1", 0);
  EXPECT_TRUE(IsPhase("Failed"));
}

TEST_F(VolcanoJobTest, ATaskCanCompleteTheJob) {
  Submit("", {Task("ps", 1),
              Task("w", 1, ", policies: [{event: TaskCompleted, action: CompleteJob}]")});
  ASSERT_TRUE(Run(2));
  cluster_.agents->Exit("default/job-w-0", 0);
  EXPECT_TRUE(IsPhase("Completed"));
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 0; }));
}

TEST_F(VolcanoJobTest, AnExitCodeCanCompleteTheJob) {
  Submit("", {Task("ps", 1), Task("w", 1, ", policies: [{exitCode: 3, action: CompleteJob}]")});
  ASSERT_TRUE(Run(2));
  cluster_.agents->Exit("default/job-w-0", 3);
  EXPECT_TRUE(IsPhase("Completed"));
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 0; }));
}

TEST_F(VolcanoJobTest, AFailureRestartsTheWholeJobUntilRetriesAreUsedUp) {
  Submit("maxRetry: 1, policies: [{event: PodFailed, action: RestartJob}], ", {Task("w", 2)});
  ASSERT_TRUE(Run(2));
  const std::string other = cluster_.PodUid("default/job-w-1");
  cluster_.agents->Exit("default/job-w-0", 1);
  ASSERT_TRUE(cluster_.Until([&] {
    return cluster_.PodUid("default/job-w-1") != other && cluster_.Pods("Running") == 2;
  }));
  EXPECT_EQ(cluster_.Int(kVolcanoJobs, "default/job", {"status", "retryCount"}), 1);
  cluster_.agents->Exit("default/job-w-1", 1);
  EXPECT_TRUE(IsPhase("Failed"));
}

TEST_F(VolcanoJobTest, AJobWhoseMembersHaveAllEndedIsRestarted) {
  Submit("maxRetry: 2, policies: [{event: PodFailed, action: RestartJob}], ", {Task("w", 1)});
  ASSERT_TRUE(Run(1));
  const std::string first = cluster_.PodUid("default/job-w-0");
  cluster_.agents->Exit("default/job-w-0", 1);
  ASSERT_TRUE(cluster_.Until([&] {
    return cluster_.PodUid("default/job-w-0") != first && cluster_.Pods("Running") == 1;
  }));
  EXPECT_EQ(Phase(), "Running");
  cluster_.agents->Exit("default/job-w-0", 0);
  EXPECT_TRUE(IsPhase("Completed"));
}

TEST_F(VolcanoJobTest, ARestartedTaskLeavesTheOthersAlone) {
  Submit("", {Task("w", 2, ", policies: [{exitCode: 3, action: RestartTask}]")});
  ASSERT_TRUE(Run(2));
  const std::string failed = cluster_.PodUid("default/job-w-0");
  const std::string other = cluster_.PodUid("default/job-w-1");
  cluster_.agents->Exit("default/job-w-0", 3);
  ASSERT_TRUE(cluster_.Until([&] {
    return cluster_.PodUid("default/job-w-0") != failed && cluster_.Pods("Running") == 2;
  }));
  EXPECT_EQ(cluster_.PodUid("default/job-w-1"), other);
}

TEST_F(VolcanoJobTest, AbortsTheJobAtTheFirstFailure) {
  Submit("policies: [{events: [PodFailed, PodEvicted], action: AbortJob}], ", {Task("w", 2)});
  ASSERT_TRUE(Run(2));
  cluster_.agents->Exit("default/job-w-0", 1);
  EXPECT_TRUE(IsPhase("Failed"));
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 0; }));
}

TEST(VolcanoJobRules, WhatCannotBeFollowedIsRefusedByItsField) {
  struct Case {
    std::string manifest, message;
  };
  const std::string task = Task("w", 2);
  const std::vector<Case> cases = {
      {Manifest("", {}), "spec.tasks: Required value"},
      {Manifest("minAvailable: 3, ", {task}), "spec.minAvailable: Invalid value: 3"},
      {Manifest("plugins: {ray: []}, ", {task}), "spec.plugins.ray: Unsupported"},
      {Manifest("plugins: {tensorflow: [--master=w]}, ", {task}),
       "spec.plugins.tensorflow[0]: Invalid value: \"--master=w\": must be --ps=TASK, "
       "--worker=TASK, --chief=TASK, --evaluator=TASK, or --port=NUMBER"},
      {Manifest("plugins: {ssh: [--ssh-private-key=x]}, ", {task}),
       "spec.plugins.ssh[0]: Invalid value: \"--ssh-private-key=x\""},
      {Manifest("plugins: {pytorch: [--port=x]}, ", {task}), "spec.plugins.pytorch[0]: Invalid"},
      {Manifest("policies: [{event: JobUnknown, action: RestartJob}], ", {task}),
       "spec.policies[0].event: Unsupported value: \"JobUnknown\""},
      {Manifest("policies: [{event: PodFailed, action: Dance}], ", {task}),
       "spec.policies[0].action: Unsupported value: \"Dance\""},
      {Manifest("policies: [{event: PodFailed, action: AbortJob, timeout: 10m}], ", {task}),
       "spec.policies[0].timeout: Forbidden"},
      {Manifest("policies: [{event: PodFailed, exitCode: 3, action: RestartJob}], ", {task}),
       "spec.policies[0].exitCode: Forbidden: a policy has an exitCode or an event, not both"},
      {Manifest("volumes: [{mountPath: /data}], ", {task}),
       "spec.volumes[0].volumeClaimName: Required value"},
      {Manifest("", {task, task}), "spec.tasks[1].name: Duplicate value: \"w\""},
      {Manifest("", {Task("w", 2, ", dependsOn: {name: [x]}")}), "spec.tasks[0].dependsOn"},
      {Manifest("", {Task("w", 2, ", topologyPolicy: restricted")}),
       "spec.tasks[0].topologyPolicy: Forbidden: pods are not placed by a node's NUMA topology"},
      {Manifest("policies: [{event: PodEvicted, action: CompleteJob}], ", {task}),
       "spec.policies[0].action: Unsupported value: \"CompleteJob\""},
  };
  for (const JobKindEntry& entry : MakeJobKinds({})) {
    if (entry.kind->resource().group != "batch.volcano.sh") continue;
    for (const Case& one : cases) {
      const auto documents = json::ParseYaml(one.manifest);
      ASSERT_TRUE(documents.ok()) << one.manifest;
      const auto spec = entry.kind->Parse(documents->front());
      ASSERT_FALSE(spec.ok()) << one.manifest;
      EXPECT_TRUE(spec.status().message().starts_with(one.message)) << spec.status().message();
    }
  }
}

}  // namespace
}  // namespace swell::jobs
