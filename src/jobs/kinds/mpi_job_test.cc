// MPIJob: a launcher and workers that it reaches.
#include "jobs/kinds/mpi_job.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "jobs/kinds/role_job.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::jobs {
namespace {

using client::resources::kConfigMaps;
using client::resources::kPods;
using client::resources::kSecrets;
using manager::TestCluster;

const client::Resource kMpiJobs{"kubeflow.org", "v1", "mpijobs", true};
const client::Resource kRoles{"rbac.authorization.k8s.io", "v1", "roles", true};

// NAME:PATH of what containers mount, but for the job's configuration and accounts' tokens.
std::string KeyMounts(const json::Value& pod) {
  std::vector<std::string> out;
  for (const json::Value& container : json::GetArray(pod, {"spec", "containers"})) {
    for (const json::Value& mount : json::GetArray(container, {"volumeMounts"})) {
      const std::string_view path = json::GetString(mount, {"mountPath"});
      if (path == "/etc/mpi" || path.starts_with("/var/run/secrets/")) continue;
      out.push_back(StrCat(json::GetString(mount, {"name"}), ":", path));
    }
  }
  return Join(out, " ");
}

int64_t KeyMode(const json::Value& pod) {
  for (const json::Value& volume : json::GetArray(pod, {"spec", "volumes"})) {
    if (json::Find(volume, {"secret"}) == nullptr) continue;
    return json::GetInt(volume, {"secret", "defaultMode"});
  }
  return -1;
}

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
  // Joined by spaces; what the controller puts before a server's own words is "...".
  std::string Words(const std::string& pod, std::string_view field) {
    std::vector<std::string> words;
    const json::SharedValue found = Pod(pod);
    for (const json::Value& word :
         json::GetArray(json::GetArray(*found, {"spec", "containers"})[0], {field})) {
      words.emplace_back(json::View(word.get_string()));
    }
    const bool ours = words.size() > 4 && words[0] == "/bin/sh" && words[3] == "worker";
    if (ours) words.erase(words.begin(), words.begin() + 3);
    if (ours) words[0] = "...";
    return Join(words, " ");
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
  EXPECT_EQ(cluster_.Env("default/pi-launcher", "OMPI_MCA_plm_rsh_agent"), "/etc/mpi/kubexec.sh");
  EXPECT_EQ(cluster_.Env("default/pi-launcher", "OMPI_MCA_orte_default_hostfile"),
            "/etc/mpi/hostfile");
  EXPECT_EQ(json::GetString(*Pod("pi-launcher"), {"spec", "serviceAccountName"}), "pi-launcher");
  EXPECT_EQ(api::Label(*Pod("pi-worker-1"), "training.kubeflow.org/job-role"), "worker");
  EXPECT_EQ(api::Label(*Pod("pi-launcher"), "training.kubeflow.org/replica-type"), "launcher");
  // Their names resolve, with the job as their domain, too.
  for (const char* name : {"default/pi-worker-0", "default/pi-worker-1", "default/pi"}) {
    EXPECT_TRUE(cluster_.Get(client::resources::kServices, name)) << name;
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

TEST_F(MpiJobTest, JobsOfTheNewerVersionHaveTheirKeysWhereTheySay) {
  Submit(1,
         "  sshAuthMountPath: /home/mpiuser/.ssh\n  mpiImplementation: MPICH\n"
         "  launcherCreationPolicy: AtStartup\n",
         "v2beta1", "command: [/usr/sbin/sshd], args: [-De, -f, /home/mpiuser/.sshd_config], ");
  ASSERT_TRUE(AllRun(2));
  EXPECT_EQ(Hostfile(), "pi-worker-0:2\n");
  EXPECT_EQ(cluster_.Env("default/pi-launcher", "HYDRA_LAUNCHER_EXEC"), "/etc/mpi/kubexec.sh");
  EXPECT_EQ(cluster_.Env("default/pi-launcher", "OMPI_MCA_plm_rsh_agent"), "not set");
  for (const char* pod : {"pi-launcher", "pi-worker-0"}) {
    EXPECT_EQ(KeyMounts(*Pod(pod)), "ssh-auth:/home/mpiuser/.ssh") << pod;
    // The server's default, as the files are not the user's.
    EXPECT_EQ(KeyMode(*Pod(pod)), 0644) << pod;
    EXPECT_EQ(json::GetString(*Pod(pod), {"spec", "subdomain"}), "pi") << pod;
  }
  EXPECT_EQ(cluster_.Events("FieldIgnored"), 0);
}

TEST_F(MpiJobTest, AFieldThatNothingFollowsIsNamed) {
  Submit(1, "  launcherCreationPolicy: WaitForWorkersReady\n", "v2beta1");
  ASSERT_TRUE(AllRun(2));
  EXPECT_EQ(cluster_.EventMessage("FieldIgnored"),
            "the job runs as if it did not say spec.launcherCreationPolicy");
}

TEST_F(MpiJobTest, KubedlsJobRunsAsKubeflowsDoes) {
  cluster_.Create(
      "apiVersion: training.kubedl.io/v1alpha1\nkind: MPIJob\n"
      "metadata: {name: pi, namespace: default}\nspec:\n  slotsPerWorker: 2\n"
      "  cleanPodPolicy: Running\n  mpiDistribution: IntelMPI\n  mpiReplicaSpecs:\n"
      "    Launcher: {replicas: 1, template: {spec: {containers: [{name: main, image: i, command: "
      "[mpirun, ./pi], resources: {limits: {nvidia.com/gpu: 1}}}]}}}\n"
      "    Worker: {replicas: 1, template: {spec: {containers: [{name: main, image: i}]}}}\n");
  ASSERT_TRUE(AllRun(2));
  EXPECT_EQ(Hostfile(), "pi-launcher:2\npi-worker-0:2\n") << "a launcher with GPUs works, too";
  EXPECT_EQ(cluster_.Env("default/pi-launcher", "I_MPI_HYDRA_HOST_FILE"), "/etc/mpi/hostfile");
  EXPECT_EQ(api::Label(*Pod("pi-worker-0"), "group-name"), "training.kubedl.io");
  cluster_.agents->Exit("default/pi-launcher", 0);
  const client::Resource kubedls{"training.kubedl.io", "v1alpha1", "mpijobs", true};
  EXPECT_TRUE(
      cluster_.Until([&] { return cluster_.Condition(kubedls, "default/pi", "Succeeded"); }));
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 0; }));
}

TEST_F(MpiJobTest, AJobHasOneKeyPairForItsLife) {
  Submit(1);
  ASSERT_TRUE(AllRun(2));
  const std::string uid(api::Uid(*cluster_.Get(kMpiJobs, "default/pi")));
  const std::string secret = StrCat("default/pi-ssh-", uid.substr(0, 8));
  const json::SharedValue made = cluster_.Get(kSecrets, secret);
  ASSERT_TRUE(made);
  EXPECT_EQ(json::GetString(*made, {"type"}), "kubernetes.io/ssh-auth");
  EXPECT_EQ(Base64Decode(json::GetString(*made, {"data", "ssh-privatekey"})), "private 1");
  EXPECT_EQ(Base64Decode(json::GetString(*made, {"data", "ssh-publickey"})), "public 1");
  EXPECT_EQ(KeyMounts(*Pod("pi-worker-0")), "ssh-auth:/root/.ssh");
  EXPECT_EQ(KeyMode(*Pod("pi-worker-0")), 0600);
  ASSERT_TRUE(
      cluster_.Patch(kMpiJobs, "default/pi", "spec: {mpiReplicaSpecs: {Worker: {replicas: 2}}}")
          .ok());
  ASSERT_TRUE(AllRun(3));
  EXPECT_EQ(Hostfile(), "pi-worker-0 slots=2\npi-worker-1 slots=2\n") << "this one is written";
  const json::SharedValue now = cluster_.Get(kSecrets, secret);
  ASSERT_TRUE(now);
  EXPECT_EQ(json::Print(*now), json::Print(*made));
  ASSERT_TRUE(cluster_.Delete(kMpiJobs, "default/pi").ok());
  EXPECT_TRUE(cluster_.Until([&] { return !cluster_.Get(kSecrets, secret); }));
}

TEST_F(MpiJobTest, AVolumeOfTheTemplateIsNotHiddenByKeys) {
  const auto kinds = MakeRoleJobKinds({.make_ssh_key = [] { return SshKeyPair{"a", "b"}; }});
  auto mounts = [&](std::string_view container, std::string_view pod) {
    json::Value job = *json::Parse(StrCat(
        R"({"metadata":{"name":"j"},"spec":{"mainContainer":"train","mpiReplicaSpecs":{"Launcher":)"
        R"({"template":{"spec":{"containers":[{"name":"c")",
        container, R"(},{"name":"log"},{"name":"train"}])", pod, "}}}}}}"));
    for (const auto& kind : kinds) {
      if (kind->kind() != "MPIJob") continue;
      const Result<JobSpec> spec = kind->Parse(job);
      json::Value made = spec->replicas[0].pod_template;
      kind->PreparePod({job, *spec, spec->replicas[0], 0}, made);
      return KeyMounts(made);
    }
    return std::string("no kind");
  };
  EXPECT_EQ(mounts("", ""), "ssh-auth:/root/.ssh ssh-auth:/root/.ssh") << "not in the log's";
  EXPECT_EQ(mounts(R"(,"volumeMounts":[{"name":"own","mountPath":"/root/.ssh/"}])", ""),
            "own:/root/.ssh/ ssh-auth:/root/.ssh");
  EXPECT_EQ(mounts(R"(,"volumeMounts":[{"name":"ssh-auth","mountPath":"/keys"}])",
                   R"(,"volumes":[{"name":"ssh-auth","emptyDir":{}}])"),
            "ssh-auth:/keys");
}

TEST_F(MpiJobTest, AWorkerServesSshUnlessItsCommandSaysOtherwise) {
  struct Row {
    const char *written, *command, *args;
  };
  for (const Row& row : {
           Row{"", "... /usr/sbin/sshd -De -o StrictModes=no", ""},
           Row{"command: [/usr/sbin/sshd], args: [-De, -f, x], ", "... /usr/sbin/sshd", "-De -f x"},
           Row{"command: [/usr/sbin/sshd, -De], ", "... /usr/sbin/sshd -De", ""},
           Row{"args: [/usr/sbin/sshd, -De], ", "", "... /usr/sbin/sshd -De"},
           Row{"command: [sh, -c, sshd], ", "sh -c sshd", ""},
           Row{"args: [wait], ", "", "wait"},
       }) {
    Submit(1, "", "v1", row.written);
    ASSERT_TRUE(AllRun(2));
    EXPECT_EQ(Words("pi-worker-0", "command"), row.command) << row.written;
    EXPECT_EQ(Words("pi-worker-0", "args"), row.args) << row.written;
    ASSERT_TRUE(cluster_.Delete(kMpiJobs, "default/pi").ok());
    ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
  }
}

// A real cluster's API server, where the controller may give nobody rights.
class NoRights final : public api::RestHandler {
 public:
  explicit NoRights(std::shared_ptr<api::RestHandler> server) : server_(std::move(server)) {}
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    for (std::string_view kind : {"/serviceaccounts", "/roles", "/rolebindings"}) {
      if (request.method != "POST" || !request.path.ends_with(kind)) continue;
      api::RestResponse response;
      response.status = 403;
      response.body.push_back(api::MakeChunk(
          R"({"kind":"Status","status":"Failure","reason":"Forbidden","code":403})"));
      sink->OnResponse(std::move(response));
      return nullptr;
    }
    return server_->Handle(std::move(request), std::move(sink));
  }
  api::HandlerCapabilities capabilities() override { return server_->capabilities(); }

 private:
  std::shared_ptr<api::RestHandler> server_;
};

TEST(MpiJobRights, WithoutTheRightToGiveRightsLaunchersHaveNoAccountOfTheirOwn) {
  TestCluster cluster;
  cluster.between = std::make_shared<NoRights>(cluster.server);
  cluster.AddNode("node-a", 4);
  cluster.StartManager();
  cluster.Create(
      "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: pi, namespace: default}\n"
      "spec:\n  mpiReplicaSpecs:\n    Launcher: {template: {spec: {containers: [{name: c, image: "
      "i}]}}}\n    Worker: {replicas: 1, template: {spec: {containers: [{name: c, image: i}]}}}\n");
  ASSERT_TRUE(cluster.Until([&] { return cluster.Pods("Running") == 2; }));
  EXPECT_EQ(
      json::GetString(*cluster.Get(kPods, "default/pi-launcher"), {"spec", "serviceAccountName"}),
      "default");
  EXPECT_FALSE(cluster.Get(kRoles, "default/pi-launcher"));
  const std::string uid(api::Uid(*cluster.Get(kMpiJobs, "default/pi")));
  EXPECT_TRUE(cluster.Get(kSecrets, StrCat("default/pi-ssh-", uid.substr(0, 8))));
  EXPECT_EQ(cluster.Events("FailedCreate"), 0);
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
}  // namespace swell::jobs
