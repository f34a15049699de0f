// MPIJob: a launcher and workers that it reaches.
#include "jobs/mpi_job.h"

#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "base/temp_dir.h"
#include "jobs/role_job.h"
#include "kube/api/meta/meta.h"
#include "operator/testing/cluster_test_util.h"

namespace swell::controllers {
namespace {

using client::resources::kConfigMaps;
using client::resources::kPods;

const client::Resource kMpiJobs{"kubeflow.org", "v1", "mpijobs", true};
const client::Resource kRoles{"rbac.authorization.k8s.io", "v1", "roles", true};

class MpiJobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-a", 4);
    cluster_.StartManager();
  }
  void Submit(int workers,
              std::string_view more = "",
              std::string_view version = "v1",
              std::string_view worker_command = "") {
    cluster_.Create(StrCat(
        "apiVersion: kubeflow.org/", version,
        "\nkind: MPIJob\nmetadata: {name: pi, namespace: default}\nspec:\n  slotsPerWorker: 2\n",
        more,
        "  mpiReplicaSpecs:\n    Launcher: {replicas: 1, template: {spec: {containers: [{name: "
        "main, image: i, command: [mpirun, ./pi]}]}}}\n    Worker: {replicas: ",
        workers, ", template: {spec: {containers: [{name: main, image: i, ", worker_command,
        "resources: {limits: {nvidia.com/gpu: 1}}}]}}}\n"));
  }
  bool AllRun(int pods) {
    return cluster_.Until([&] { return cluster_.Pods("Running") == pods; });
  }
  bool Is(std::string_view type) {
    return cluster_.Until([&] { return cluster_.Condition(kMpiJobs, "default/pi", type); });
  }
  json::SharedValue Pod(const std::string& name) { return cluster_.Get(kPods, "default/" + name); }
  std::string Env(const std::string& pod, std::string_view name) {
    json::SharedValue found = Pod(pod);
    for (const json::Value& one :
         json::GetArray(json::GetArray(*found, {"spec", "containers"})[0], {"env"})) {
      if (json::GetString(one, {"name"}) == name) {
        return std::string(json::GetString(one, {"value"}));
      }
    }
    return "none";
  }
  std::string Command(const std::string& pod) {
    return json::Print(
        *json::Find(json::GetArray(*Pod(pod), {"spec", "containers"})[0], {"command"}));
  }
  std::string Hostfile() {
    json::SharedValue map = cluster_.Get(kConfigMaps, "default/pi-config");
    return map ? std::string(json::GetString(*map, {"data", "hostfile"})) : "none";
  }

  // A pod "urgent" that takes GPUs from those below it.
  void AddUrgent(int gpus) {
    cluster_.Create(StrCat(
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: "
        "1000}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: urgent, namespace: default}, "
        "spec: {schedulerName: swell, priorityClassName: high, containers: [{name: main, image: i, "
        "resources: {limits: {nvidia.com/gpu: ",
        gpus, "}}}]}}"));
  }

  TestCluster cluster_;
};

TEST_F(MpiJobTest, ALauncherIsToldOfItsWorkersAndEndsTheJob) {
  Submit(2);
  ASSERT_TRUE(AllRun(3));
  EXPECT_EQ(Hostfile(), "pi-worker-0 slots=2\npi-worker-1 slots=2\n");
  EXPECT_EQ(Env("pi-launcher", "OMPI_MCA_plm_rsh_agent"), "/etc/mpi/kubexec.sh");
  EXPECT_EQ(Env("pi-launcher", "OMPI_MCA_orte_default_hostfile"), "/etc/mpi/hostfile");
  EXPECT_EQ(json::GetString(*Pod("pi-launcher"), {"spec", "serviceAccountName"}), "pi-launcher");
  EXPECT_EQ(Command("pi-worker-1"), R"(["sleep"])") << "it waits for what is started in it";
  EXPECT_EQ(api::Label(*Pod("pi-worker-1"), "training.kubeflow.org/job-role"), "worker");
  EXPECT_EQ(api::Label(*Pod("pi-launcher"), "training.kubeflow.org/replica-type"), "launcher");
  for (const char* worker : {"default/pi-worker-0", "default/pi-worker-1"}) {
    EXPECT_TRUE(cluster_.Get(client::resources::kServices, worker)) << "its name resolves";
  }
  EXPECT_TRUE(Is("Running"));
  cluster_.agents->Exit("default/pi-launcher", 0);
  EXPECT_TRUE(Is("Succeeded"));
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 0; }))
      << "workers never end by themselves";
  ASSERT_TRUE(cluster_.Delete(kMpiJobs, "default/pi").ok());
  EXPECT_TRUE(cluster_.Until([&] { return Hostfile() == "none"; })) << "it goes with its job";
}

TEST_F(MpiJobTest, ALauncherMayRunCommandsInItsOwnWorkersAlone) {
  Submit(1);
  ASSERT_TRUE(AllRun(2));
  json::SharedValue role = cluster_.Get(kRoles, "default/pi-launcher");
  ASSERT_TRUE(role);
  const json::Value& rule = json::GetArray(*role, {"rules"})[1];
  EXPECT_EQ(json::Print(*json::Find(rule, {"resources"})), R"(["pods/exec"])");
  EXPECT_EQ(json::Print(*json::Find(rule, {"resourceNames"})), R"(["pi-launcher","pi-worker-0"])");
}

// What stands in for ssh, with a kubectl and a sleep of the test's own.
class RemoteShell {
 public:
  RemoteShell(std::string text, std::string_view hostfile) {
    constexpr std::string_view kFolder = "/etc/mpi";
    for (size_t at; (at = text.find(kFolder)) != std::string::npos;) {
      text.replace(at, kFolder.size(), dir_.path());
    }
    Write("ssh", text);
    Write("hostfile", hostfile);
    Write("kubectl", StrCat("#!/bin/sh\ncase $1 in\nget) cat ", dir_.path(),
                            "/phase ;;\nexec) echo \"$*\" ;;\nesac\n"));
    Write("sleep", StrCat("#!/bin/sh\n[ ! -e ", dir_.path(), "/later ] || mv ", dir_.path(),
                          "/later ", dir_.path(), "/phase\n"));
  }
  // What the API server says of the worker: now, and after the first wait.
  void Phase(std::string_view now, std::string_view later = {}) {
    Write("phase", now);
    if (!later.empty()) Write("later", later);
  }
  // Output and exit code.
  std::string Run(const std::string& words) {
    const std::string line = StrCat("PATH=", dir_.path(), ":$PATH ssh ", words, " 2>&1");
    FILE* pipe = ::popen(line.c_str(), "r");
    if (pipe == nullptr) return "cannot run it";
    std::string out;
    char part[512];
    for (size_t n = 0; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) out.append(part, n);
    const int code = WEXITSTATUS(::pclose(pipe));
    return StrCat(out, code);
  }
  const std::string& folder() const { return dir_.path(); }

 private:
  void Write(std::string_view name, std::string_view text) {
    const std::string path = dir_.File(name);
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  TempDir dir_;
};

TEST_F(MpiJobTest, AWorkerIsWaitedForAndAnyOtherNameIsRefusedAtOnce) {
  Submit(1);
  ASSERT_TRUE(AllRun(2));
  const json::SharedValue map = cluster_.Get(kConfigMaps, "default/pi-config");
  RemoteShell shell(std::string(json::GetString(*map, {"data", "kubexec.sh"})), Hostfile());
  shell.Phase("Running");
  const std::string runs = "exec pi-worker-0 -- /bin/sh -c hostname -s\n0";
  EXPECT_EQ(shell.Run("-o A=b -p 22 root@pi-worker-0.pi hostname -s"), runs);
  shell.Phase("Pending", "Running");
  EXPECT_EQ(shell.Run("pi-worker-0 hostname -s"), runs);
  shell.Phase("", "Running");
  EXPECT_EQ(shell.Run("pi-worker-0 hostname -s"), runs) << "the hostfile has it";
  // A worker that has come since: the hostfile of a running pod is behind.
  shell.Phase("Pending", "Running");
  EXPECT_EQ(shell.Run("pi-worker-1 id"), "exec pi-worker-1 -- /bin/sh -c id\n0");
  shell.Phase("Failed");
  EXPECT_EQ(shell.Run("pi-worker-0 id"),
            "kubexec.sh: worker pi-worker-0 does not run: its pod is Failed\n255");
  shell.Phase("", "Running");
  for (const char* other : {"pi-worker-9", "pi-worker", "10.0.0.1", "pi.worker-0"}) {
    EXPECT_EQ(
        shell.Run(StrCat("-o A=b root@", other, " id")),
        StrCat("kubexec.sh: ", other, " is not a worker of the job pi; its workers are listed in ",
               shell.folder(), "/hostfile\n255"));
  }
  EXPECT_EQ(shell.Run("pi-worker-0"), "kubexec.sh: usage: kubexec.sh WORKER COMMAND...\n255");
}

TEST_F(MpiJobTest, JobsOfTheNewerVersionRunWithoutSsh) {
  Submit(1, "  sshAuthMountPath: /home/mpiuser/.ssh\n  mpiImplementation: MPICH\n", "v2beta1",
         "command: [/usr/sbin/sshd], args: [-De], ");
  ASSERT_TRUE(AllRun(2));
  EXPECT_EQ(Hostfile(), "pi-worker-0:2\n");
  EXPECT_EQ(Env("pi-launcher", "HYDRA_LAUNCHER_EXEC"), "/etc/mpi/kubexec.sh");
  EXPECT_EQ(Env("pi-launcher", "OMPI_MCA_plm_rsh_agent"), "none");
  EXPECT_EQ(Command("pi-worker-0"), R"(["sleep"])");
  EXPECT_EQ(cluster_.EventMessage("FieldIgnored"),
            "the job runs as if it did not say spec.sshAuthMountPath");
}

TEST_F(MpiJobTest, AHostfileFollowsTheNumberOfWorkers) {
  Submit(1, "  runLauncherAsWorker: true\n");
  ASSERT_TRUE(AllRun(2));
  EXPECT_EQ(Hostfile(), "pi-launcher slots=2\npi-worker-0 slots=2\n");
  ASSERT_TRUE(
      cluster_.Patch(kMpiJobs, "default/pi", "spec: {mpiReplicaSpecs: {Worker: {replicas: 2}}}")
          .ok());
  ASSERT_TRUE(AllRun(3));
  EXPECT_EQ(Hostfile(), "pi-launcher slots=2\npi-worker-0 slots=2\npi-worker-1 slots=2\n");
}

TEST_F(MpiJobTest, WhatIsSomebodyElsesIsNotTakenOver) {
  cluster_.Create(
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: pi-config, namespace: default}, data: "
      "{hostfile: mine}}");
  Submit(1);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Events("FailedCreate") > 0; }));
  EXPECT_EQ(cluster_.EventMessage("FailedCreate"),
            "Error creating: configmaps \"pi-config\" exists and belongs to another object");
  EXPECT_EQ(cluster_.Pods(""), 0);
  EXPECT_EQ(Hostfile(), "mine");
}

TEST_F(MpiJobTest, AGangThatDoesNotFitStartsNobodyAndAPreemptedOneComesBackWhole) {
  Submit(5);
  cluster_.Run(std::chrono::seconds(5));
  EXPECT_EQ(cluster_.Pods("Running"), 0) << "not even the launcher";
  ASSERT_TRUE(cluster_.Delete(kMpiJobs, "default/pi").ok());
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
  Submit(3);
  ASSERT_TRUE(AllRun(4));
  const std::string first = cluster_.PodUid("default/pi-launcher");
  AddUrgent(2);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.PodPhase("default/urgent") == "Running"; }));
  ASSERT_TRUE(Is("Preempted"));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  ASSERT_TRUE(cluster_.Delete(kPods, "default/urgent").ok());
  ASSERT_TRUE(AllRun(4));
  EXPECT_NE(cluster_.PodUid("default/pi-launcher"), first);
  EXPECT_TRUE(Is("Running"));
}

TEST_F(MpiJobTest, WorkersOfAnElasticJobComeAndGoWhileItsLauncherRuns) {
  Submit(3, "  elasticPolicy: {minReplicas: 1, maxReplicas: 3}\n");
  ASSERT_TRUE(AllRun(4));
  const std::string launcher = cluster_.PodUid("default/pi-launcher");
  AddUrgent(2);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.PodPhase("default/urgent") == "Running"; }));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.PodPhase("default/pi-worker-2") == "Pending"; }))
      << "it waits for room";
  EXPECT_TRUE(Is("Running"));
  EXPECT_FALSE(cluster_.Condition(kMpiJobs, "default/pi", "Preempted"));
  ASSERT_TRUE(cluster_.Delete(kPods, "default/urgent").ok());
  ASSERT_TRUE(AllRun(4));
  ASSERT_TRUE(
      cluster_.Patch(kMpiJobs, "default/pi", "spec: {mpiReplicaSpecs: {Worker: {replicas: 1}}}")
          .ok());
  ASSERT_TRUE(AllRun(2));
  EXPECT_TRUE(cluster_.Until([&] { return Hostfile() == "pi-worker-0 slots=2\n"; })) << Hostfile();
  EXPECT_EQ(cluster_.PodUid("default/pi-launcher"), launcher);
  cluster_.agents->Exit("default/pi-launcher", 0);
  EXPECT_TRUE(Is("Succeeded"));
}

TEST_F(MpiJobTest, AnElasticJobKeepsToItsBounds) {
  Submit(9, "  elasticPolicy: {minReplicas: 2, maxReplicas: 3}\n");
  ASSERT_TRUE(AllRun(4)) << "nobody is above the most";
  EXPECT_EQ(cluster_.Int(kMpiJobs, "default/pi", {"status", "elastic", "maxReplicas"}), 3);
  AddUrgent(3);
  ASSERT_TRUE(Is("Preempted")) << "the least do not fit beside it";
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
}

TEST_F(MpiJobTest, AnElasticJobOfNoWorkersKeepsItsLeast) {
  Submit(2, "  elasticPolicy: {minReplicas: 1, maxReplicas: 3}\n");
  ASSERT_TRUE(AllRun(3));
  ASSERT_TRUE(
      cluster_.Patch(kMpiJobs, "default/pi", "spec: {mpiReplicaSpecs: {Worker: {replicas: 0}}}")
          .ok());
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 2; }));
  cluster_.Run(std::chrono::seconds(10));
  EXPECT_EQ(cluster_.Pods("Running"), 2) << "the launcher and one worker";
}

TEST_F(MpiJobTest, AnElasticJobThatLosesItsLauncherStartsAgainWhole) {
  cluster_.AddNode("node-b", 0);
  Submit(3, "  elasticPolicy: {minReplicas: 1, maxReplicas: 3}\n");
  ASSERT_TRUE(AllRun(4));
  const std::string worker = cluster_.PodUid("default/pi-worker-0");
  ASSERT_TRUE(cluster_
                  .Patch(kPods, "default/pi-launcher",
                         "status: {conditions: [{type: DisruptionTarget, status: 'True', reason: "
                         "DeletionByTaintManager, message: drained}]}",
                         "status")
                  .ok());
  ASSERT_TRUE(cluster_.Delete(kPods, "default/pi-launcher").ok());
  ASSERT_TRUE(cluster_.Until([&] {
    return cluster_.Pods("Running") == 4 && cluster_.PodUid("default/pi-worker-0") != worker;
  })) << "what its workers ran was the launcher's";
}

TEST_F(MpiJobTest, BoundsThatCannotBeAreRefusedByField) {
  auto said = [](std::string_view policy) {
    auto job = json::Parse(StrCat(
        R"({"metadata":{"name":"j"},"spec":{"elasticPolicy":)", policy,
        R"(,"mpiReplicaSpecs":{"Launcher":{"template":{"spec":{"containers":[{"name":"c"}]}}},)"
        R"("Worker":{"template":{"spec":{"containers":[{"name":"c"}]}}}}}})"));
    std::string text;
    for (const auto& kind : MakeRoleJobKinds({})) {
      if (kind->kind() == "MPIJob") text = kind->Parse(*job).status().message();
    }
    return text;
  };
  EXPECT_EQ(said(R"({"minReplicas":0})"),
            "spec.elasticPolicy.minReplicas: Invalid value: 0: must be at least 1");
  EXPECT_EQ(said(R"({"minReplicas":3,"maxReplicas":2})"),
            "spec.elasticPolicy.maxReplicas: Invalid value: 2: must be at least minReplicas, 3");
}

TEST_F(MpiJobTest, ACommandThatIsNotThereIsNamedAsTheReason) {
  Submit(1);
  ASSERT_TRUE(AllRun(2));
  cluster_.agents->Exit("default/pi-launcher", 127);
  ASSERT_TRUE(Is("Failed"));
  EXPECT_EQ(cluster_.EventMessage("MPIJobFailed"),
            "MPIJob pi failed because 1 Launcher replica(s) failed. pi-launcher failed: container "
            "main exited with 127; check the command of container main, and whether its image has "
            "it");
}

TEST_F(MpiJobTest, AJobWithoutALauncherIsRefused) {
  auto job = json::Parse(
      R"({"metadata":{"name":"j"},"spec":{"mpiReplicaSpecs":{"Worker":{"template":{"spec":)"
      R"({"containers":[{"name":"c","image":"i"}]}}}}}})");
  std::string said;
  for (const auto& kind : MakeRoleJobKinds({})) {
    if (kind->kind() == "MPIJob") said = kind->Parse(*job).status().message();
  }
  EXPECT_EQ(said, "spec.mpiReplicaSpecs.Launcher: Required value");
}

}  // namespace
}  // namespace swell::controllers
