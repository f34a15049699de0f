// TFJob, XGBoostJob, PaddleJob, JAXJob, XDLJob and MarsJob: what their processes are told, and when
// they are over.
#include "jobs/kinds/role_job.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::jobs {
namespace {

using client::resources::kPods;
using client::resources::kServices;
using manager::TestCluster;

const client::Resource kTfJobs{"kubeflow.org", "v1", "tfjobs", true};
const client::Resource kKubedlTfJobs{"training.kubedl.io", "v1alpha1", "tfjobs", true};
const client::Resource kXdlJobs{"training.kubedl.io", "v1alpha1", "xdljobs", true};
const client::Resource kMarsJobs{"training.kubedl.io", "v1alpha1", "marsjobs", true};

std::string Role(std::string_view name, int replicas, std::string_view more = "") {
  return StrCat(name, ": {replicas: ", replicas, more,
                ", template: {spec: {containers: [{name: main, image: i}]}}}");
}

class RoleJobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-a", 8);
    cluster_.StartManager();
  }
  void Submit(std::string_view api_version,
              std::string_view kind,
              std::string_view field,
              const std::vector<std::string>& roles,
              std::string_view more = "") {
    cluster_.Create(StrCat("{apiVersion: ", api_version, ", kind: ", kind,
                           ", metadata: {name: job, namespace: default}, spec: {", field, ": {",
                           Join(roles, ", "), "}", more, "}}"));
  }
  bool AllRun(int pods) {
    return cluster_.Until([&] { return cluster_.Pods("Running") == pods; });
  }
  std::map<std::string, std::string> Env(const std::string& pod) {
    std::map<std::string, std::string> env;
    json::SharedValue found = cluster_.Get(kPods, "default/" + pod);
    if (!found) return env;
    for (const json::Value& one :
         json::GetArray(json::GetArray(*found, {"spec", "containers"})[0], {"env"})) {
      const json::Value* from = json::Find(one, {"valueFrom", "fieldRef", "fieldPath"});
      env[std::string(json::GetString(one, {"name"}))] =
          from ? json::Print(*from) : std::string(json::GetString(one, {"value"}));
    }
    return env;
  }
  bool Is(const client::Resource& jobs, std::string_view type) {
    return cluster_.Until([&] { return cluster_.Condition(jobs, "default/job", type); },
                          std::chrono::seconds(10));
  }
  static std::unique_ptr<JobKind> Find(std::string_view name) {
    std::vector<std::unique_ptr<JobKind>> kinds = MakeRoleJobKinds({});
    for (std::unique_ptr<JobKind>& kind : kinds) {
      if (kind->kind() == name) return std::move(kind);
    }
    return nullptr;
  }
  TestCluster cluster_;
};

TEST_F(RoleJobTest, TensorFlowIsToldOfEverybodyButTheEvaluator) {
  Submit("kubeflow.org/v1", "TFJob", "tfReplicaSpecs",
         {Role("PS", 1), Role("Worker", 2), Role("Evaluator", 1)});
  ASSERT_TRUE(AllRun(4));
  const std::string cluster =
      R"("cluster":{"worker":["job-worker-0.default.svc:2222","job-worker-1.default.svc:2222"],)"
      R"("ps":["job-ps-0.default.svc:2222"]})";
  auto config = [&](const std::string& pod) { return Env(pod)["TF_CONFIG"]; };
  EXPECT_EQ(config("job-worker-1"), StrCat(R"({"environment":"cloud",)", cluster,
                                           R"(,"task":{"type":"worker","index":1}})"));
  EXPECT_EQ(config("job-evaluator-0"), StrCat(R"({"environment":"cloud",)", cluster,
                                              R"(,"task":{"type":"evaluator","index":0}})"));
  json::SharedValue pod = cluster_.Get(kPods, "default/job-ps-0");
  EXPECT_EQ(api::Label(*pod, "training.kubeflow.org/replica-type"), "ps");
  EXPECT_EQ(api::Label(*pod, "tf-job-name"), "job");
  for (const char* name : {"job-worker-0", "job-worker-1", "job-ps-0", "job-evaluator-0"}) {
    json::SharedValue service = cluster_.Get(kServices, StrCat("default/", name));
    ASSERT_TRUE(service) << name;
    EXPECT_EQ(json::GetString(*service, {"spec", "clusterIP"}), "None");
  }
}

TEST_F(RoleJobTest, CreatedPodsAreOneEventOfTheJob) {
  Submit("kubeflow.org/v1", "TFJob", "tfReplicaSpecs", {Role("PS", 1), Role("Worker", 5)});
  ASSERT_TRUE(AllRun(6));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Events("SuccessfulCreatePod", "job") > 0; }));
  EXPECT_EQ(cluster_.Events("SuccessfulCreatePod", "job"), 1);
  const std::string message = cluster_.EventMessage("SuccessfulCreatePod", "job");
  EXPECT_TRUE(message.starts_with("Created pods: job-")) << message;
  EXPECT_TRUE(message.ends_with(" and 2 more")) << message;
  EXPECT_EQ(cluster_.Events("SuccessfulCreateService", "job"), 1);
}

TEST_F(RoleJobTest, ADynamicWorkerIsToldOfItselfAndTheServers) {
  Submit("kubeflow.org/v1", "TFJob", "tfReplicaSpecs", {Role("PS", 1), Role("Worker", 2)},
         ", enableDynamicWorker: true");
  ASSERT_TRUE(AllRun(3));
  EXPECT_EQ(Env("job-worker-1")["TF_CONFIG"],
            R"({"cluster":{"worker":{"1":"job-worker-1.default.svc:2222"},)"
            R"("ps":["job-ps-0.default.svc:2222"]},"task":{"type":"worker","index":1}})");
}

TEST_F(RoleJobTest, OneProcessAloneIsToldNothing) {
  Submit("kubeflow.org/v1", "TFJob", "tfReplicaSpecs", {Role("Worker", 1)});
  ASSERT_TRUE(AllRun(1));
  EXPECT_EQ(Env("job-worker-0").count("TF_CONFIG"), 0u);
}

TEST_F(RoleJobTest, ATensorFlowJobEndsWithItsFirstWorkerThoughServersRunOn) {
  Submit("kubeflow.org/v1", "TFJob", "tfReplicaSpecs", {Role("PS", 1), Role("Worker", 2)},
         ", runPolicy: {cleanPodPolicy: Running}");
  ASSERT_TRUE(AllRun(3));
  cluster_.agents->Exit("default/job-worker-1", 0);
  cluster_.Run(std::chrono::seconds(2));
  EXPECT_FALSE(cluster_.Condition(kTfJobs, "default/job", "Succeeded"));
  cluster_.agents->Exit("default/job-worker-0", 0);
  EXPECT_TRUE(Is(kTfJobs, "Succeeded"));
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 0; }));
}

TEST_F(RoleJobTest, ATensorFlowJobEndsWithAllWorkersWhereItSaysSo) {
  Submit("kubeflow.org/v1", "TFJob", "tfReplicaSpecs", {Role("Worker", 2)},
         ", successPolicy: AllWorkers");
  ASSERT_TRUE(AllRun(2));
  cluster_.agents->Exit("default/job-worker-0", 0);
  cluster_.Run(std::chrono::seconds(2));
  EXPECT_FALSE(cluster_.Condition(kTfJobs, "default/job", "Succeeded"));
  cluster_.agents->Exit("default/job-worker-1", 0);
  EXPECT_TRUE(Is(kTfJobs, "Succeeded"));
}

TEST_F(RoleJobTest, AChiefsEndIsTheJobs) {
  Submit("kubeflow.org/v1", "TFJob", "tfReplicaSpecs", {Role("Chief", 1), Role("Worker", 1)});
  ASSERT_TRUE(AllRun(2));
  json::SharedValue chief = cluster_.Get(kPods, "default/job-chief-0");
  EXPECT_EQ(api::Label(*chief, "job-role"), "master");
  cluster_.agents->Exit("default/job-chief-0", 0);
  EXPECT_TRUE(Is(kTfJobs, "Succeeded"));
}

TEST_F(RoleJobTest, WithoutAChiefTheFirstWorkerLeads) {
  Submit("kubeflow.org/v1", "TFJob", "tfReplicaSpecs", {Role("PS", 1), Role("Worker", 2)});
  ASSERT_TRUE(AllRun(3));
  const auto role = [this](const char* pod) {
    const json::SharedValue found = cluster_.Get(kPods, StrCat("default/", pod));
    return std::string(api::Label(*found, "training.kubeflow.org/job-role"));
  };
  EXPECT_EQ(role("job-worker-0"), "master");
  EXPECT_EQ(role("job-worker-1"), "");
  EXPECT_EQ(role("job-ps-0"), "");
}

TEST_F(RoleJobTest, KubedlsJobsSpeakKubedlsWords) {
  Submit("training.kubedl.io/v1alpha1", "TFJob", "tfReplicaSpecs",
         {Role("PS", 1), Role("Worker", 1, ", restartPolicy: Never")});
  ASSERT_TRUE(AllRun(2));
  json::SharedValue pod = cluster_.Get(kPods, "default/job-worker-0");
  EXPECT_EQ(api::Label(*pod, "group-name"), "training.kubedl.io");
  EXPECT_EQ(api::Label(*pod, "replica-type"), "worker");
  EXPECT_EQ(cluster_.Reason(kKubedlTfJobs, "default/job", "Running"), "JobRunning");
  cluster_.agents->Exit("default/job-worker-0", 1);
  EXPECT_TRUE(Is(kKubedlTfJobs, "Failed"));
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 0; }))
      << "KubeDL stops what runs on by itself";
}

TEST_F(RoleJobTest, WhatNobodyFollowsIsTold) {
  Submit("training.kubedl.io/v1alpha1", "TFJob", "tfReplicaSpecs",
         {Role("Worker", 2, ", spotReplicaSpec: {spotReplicaNumber: 1}")});
  ASSERT_TRUE(AllRun(2));
  EXPECT_EQ(cluster_.EventMessage("FieldIgnored"),
            "the job runs as if it did not say spec.tfReplicaSpecs.Worker.spotReplicaSpec");
}

TEST_F(RoleJobTest, IgnoredFieldsOfKubedlAreNamed) {
  const auto job = json::Parse(
      R"({"metadata":{"annotations":{"kubedl.io/tenancy":"{}","kubedl.io/network-mode":"host",)"
      R"("kubedl.io/enable-elastic-training":"true","kubedl.io/tensorboard-config":"{}"}},)"
      R"("spec":{"schedulingPolicy":{"priority":7,"queue":"q"}}})");
  EXPECT_EQ(IgnoredFields(*job),
            (std::vector<std::string>{"spec.schedulingPolicy.priority",
                                      "metadata.annotations[kubedl.io/tensorboard-config]",
                                      "metadata.annotations[kubedl.io/network-mode]",
                                      "metadata.annotations[kubedl.io/enable-elastic-training]",
                                      "metadata.annotations[kubedl.io/tenancy]"}));
}

TEST_F(RoleJobTest, XgboostIsToldOfItsTrackerAndItsMachines) {
  Submit("kubeflow.org/v1", "XGBoostJob", "xgbReplicaSpecs",
         {Role("Master", 1), Role("Worker", 2)});
  ASSERT_TRUE(AllRun(3));
  auto env = Env("job-worker-1");
  EXPECT_EQ(env["RANK"], "2");
  EXPECT_EQ(env["WORLD_SIZE"], "3");
  EXPECT_EQ(env["MASTER_ADDR"], "job-master-0");
  EXPECT_EQ(env["MASTER_PORT"], "9999");
  EXPECT_EQ(env["WORKER_PORT"], "9999");
  EXPECT_EQ(env["WORKER_ADDRS"], "job-worker-0,job-worker-1");
  EXPECT_EQ(Env("job-master-0")["MASTER_ADDR"], "job-master-0");
  cluster_.agents->Exit("default/job-master-0", 0);
  EXPECT_TRUE(Is({"kubeflow.org", "v1", "xgboostjobs", true}, "Succeeded"));
}

TEST_F(RoleJobTest, PaddlesFirstNodeKnowsItsOwnAddress) {
  Submit("kubeflow.org/v1", "PaddleJob", "paddleReplicaSpecs", {Role("Worker", 2)});
  ASSERT_TRUE(AllRun(2));
  auto first = Env("job-worker-0"), second = Env("job-worker-1");
  EXPECT_EQ(first["POD_IP_DUMMY"], "\"status.podIP\"");
  EXPECT_EQ(first["PADDLE_MASTER"], "$(POD_IP_DUMMY):36543");
  EXPECT_EQ(second["PADDLE_MASTER"], "job-worker-0:36543");
  EXPECT_EQ(second["PADDLE_NNODES"], "2");
  EXPECT_EQ(second["PADDLE_JOB_ID"], "job");
  EXPECT_EQ(second.count("PADDLE_TRAINER_NUM"), 0u);
}

TEST_F(RoleJobTest, JaxProcessesAreNumbered) {
  Submit("kubeflow.org/v1", "JAXJob", "jaxReplicaSpecs", {Role("Worker", 2)});
  ASSERT_TRUE(AllRun(2));
  auto env = Env("job-worker-1");
  EXPECT_EQ(env["COORDINATOR_ADDRESS"], "job-worker-0");
  EXPECT_EQ(env["COORDINATOR_PORT"], "6666");
  EXPECT_EQ(env["NUM_PROCESSES"], "2");
  EXPECT_EQ(env["PROCESS_ID"], "1");
}

TEST_F(RoleJobTest, XdlIsToldOfItsTaskAndItsPlaceInZooKeeper) {
  const std::string scheduler =
      "Scheduler: {template: {spec: {containers: [{name: xdl, image: i, env: [{name: ZK_ADDR, "
      "value: 'zfs://zk:2181/xdl'}]}]}}}";
  Submit("training.kubedl.io/v1alpha1", "XDLJob", "xdlReplicaSpecs",
         {scheduler, Role("PS", 1), Role("Worker", 2), Role("ExtendRole", 1)});
  ASSERT_TRUE(AllRun(5));
  auto env = Env("job-worker-1");
  EXPECT_EQ(env["TASK_NAME"], "worker");
  EXPECT_EQ(env["TASK_INDEX"], "1");
  EXPECT_EQ(env["XDL_CONFIG"],
            R"({"cluster":{"worker":["job-worker-0:2222","job-worker-1:2222"],)"
            R"("extendrole":["job-extendrole-0:2222"],"ps":["job-ps-0:2222"],)"
            R"("scheduler":["job-scheduler-0:2222"]},"task":{"type":"worker","index":1}})");
  EXPECT_EQ(env.count("ZK_ADDR"), 0u);
  const json::SharedValue job = cluster_.Get(kXdlJobs, "default/job");
  EXPECT_EQ(Env("job-scheduler-0")["ZK_ADDR"], StrCat("zfs://zk:2181/xdl/", api::Uid(*job)));
  EXPECT_EQ(Env("job-extendrole-0")["TASK_NAME"], "extendrole");
  for (const char* pod : {"job-worker-0", "job-scheduler-0"}) {
    EXPECT_EQ(api::Label(*cluster_.Get(kPods, StrCat("default/", pod)), "job-role"), "") << pod;
  }
}

TEST_F(RoleJobTest, AnXdlJobEndsWithEnoughOfItsWorkers) {
  Submit("training.kubedl.io/v1alpha1", "XDLJob", "xdlReplicaSpecs",
         {Role("PS", 1), Role("Worker", 3), Role("ExtendRole", 1)}, ", minFinishWorkRate: 60");
  ASSERT_TRUE(AllRun(5));
  cluster_.agents->Exit("default/job-worker-0", 0);
  cluster_.agents->Exit("default/job-extendrole-0", 0);
  cluster_.Run(std::chrono::seconds(2));
  EXPECT_FALSE(cluster_.Condition(kXdlJobs, "default/job", "Succeeded")) << "60 % of 4 are 3";
  cluster_.agents->Exit("default/job-worker-2", 0);
  EXPECT_TRUE(Is(kXdlJobs, "Succeeded"));
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 0; }));
}

TEST_F(RoleJobTest, HowManyXdlWorkersMustSucceed) {
  const std::unique_ptr<JobKind> kind = Find("XDLJob");
  const auto least = [&](int workers, std::string_view more) {
    const auto spec = kind->Parse(*json::Parse(StrCat(
        R"({"metadata":{"name":"job"},"spec":{"xdlReplicaSpecs":{"Worker":{"replicas":)", workers,
        R"(,"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}})", more, "}}")));
    return spec.ok() ? std::to_string(spec->min_success.value_or(-1))
                     : std::string(spec.status().message());
  };
  EXPECT_EQ(least(10, ""), "9");
  EXPECT_EQ(least(1, ""), "1");
  EXPECT_EQ(least(10, R"(,"minFinishWorkNum":4)"), "4");
  EXPECT_EQ(least(10, R"(,"minFinishWorkNum":4,"minFinishWorkRate":51)"), "6");
  EXPECT_EQ(least(10, R"(,"minFinishWorkNum":0)"), "-1") << "all";
  EXPECT_EQ(least(2, R"(,"minFinishWorkNum":3)"),
            "spec.minFinishWorkNum: Invalid value: 3: must be between 0 (all) and 2, the members "
            "of Worker and ExtendRole");
  EXPECT_EQ(least(2, R"(,"minFinishWorkRate":101)"),
            "spec.minFinishWorkRate: Invalid value: 101: must be between 0 (all) and 100, a "
            "percentage");
  EXPECT_EQ(least(0, ""),
            "spec.xdlReplicaSpecs: Invalid value: must have members of a role, one "
            "of \"Worker\", \"ExtendRole\", \"PS\", \"Scheduler\"");
}

TEST_F(RoleJobTest, MarsIsToldOfItsSchedulersAndOfItsMemory) {
  const std::string worker =
      "Worker: {replicas: 2, template: {spec: {containers: [{name: sidecar, image: i}, {name: "
      "mars, image: i, resources: {requests: {cpu: 1500m, memory: 1Gi, ephemeral-storage: "
      "2000}}}]}}}";
  Submit("training.kubedl.io/v1alpha1", "MarsJob", "marsReplicaSpecs",
         {Role("Scheduler", 1), Role("WebService", 1), worker},
         ", workerMemoryTuningPolicy: {spillDirs: [/spill/a, /spill/b], lockFreeFileIO: false, "
         "workerCachePercentage: 50, plasmaStore: /plasma}");
  // No node has this storage, and what pods are told does not wait for one.
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Pending") == 4; }));
  const std::string cluster = R"({"cluster":{"scheduler":["job-scheduler-0.default.svc:11111"],)"
                              R"("webservice":["job-webservice-0.default.svc:11111"]},"task":)";
  auto env = Env("job-worker-1");
  EXPECT_EQ(env["MARS_CLUSTER_DETAIL"],
            StrCat(cluster, R"({"type":"worker","index":1,"resources":{"cpu_procs":2,"phy_mem":)",
                   1 << 30, "}}}"));
  EXPECT_EQ(env["MARS_CPU_TOTAL"], "2");
  EXPECT_EQ(env["MARS_MEMORY_TOTAL"], std::to_string(1 << 30));
  EXPECT_EQ(env["MARS_BIND_PORT"], "11111");
  EXPECT_EQ(env["MARS_K8S_GROUP_LABELS"], "job-name");
  EXPECT_EQ(env["MARS_CONTAINER_IP"], "\"status.podIP\"");
  EXPECT_EQ(env["MARS_SPILL_DIRS"], "/spill/a,/spill/b");
  EXPECT_EQ(env["MARS_PLASMA_DIRS"], "/plasma");
  EXPECT_EQ(env["MARS_LOCK_FREE_FILEIO"], "0");
  EXPECT_EQ(env["MARS_CACHE_MEM_SIZE"], std::to_string((1 << 30) / 100 * 50));
  std::map<std::string, std::string> sizes;
  const json::SharedValue pod = cluster_.Get(kPods, "default/job-worker-1");
  for (const json::Value& volume : json::GetArray(*pod, {"spec", "volumes"})) {
    sizes[std::string(json::GetString(volume, {"name"}))] =
        json::GetString(volume, {"emptyDir", "sizeLimit"});
  }
  EXPECT_EQ(sizes["mars-empty-dir-1"], "1k");
  EXPECT_EQ(sizes["mars-shared-cache"], "536870900");
  auto scheduler = Env("job-scheduler-0");
  EXPECT_EQ(scheduler["MARS_CLUSTER_DETAIL"],
            StrCat(cluster, R"({"type":"scheduler","index":0}})"));
  EXPECT_EQ(scheduler.count("MARS_CPU_TOTAL"), 0u) << "it asks for none";
  EXPECT_EQ(scheduler.count("MARS_PLASMA_DIRS"), 0u);
}

TEST_F(RoleJobTest, AMarsJobEndsWithItsSchedulerAndContinuesWithoutOneWorker) {
  Submit("training.kubedl.io/v1alpha1", "MarsJob", "marsReplicaSpecs",
         {Role("Scheduler", 1), Role("Worker", 2)});
  ASSERT_TRUE(AllRun(3));
  cluster_.agents->Exit("default/job-worker-0", 1);
  cluster_.Run(std::chrono::seconds(5));
  EXPECT_FALSE(cluster_.Condition(kMarsJobs, "default/job", "Failed"));
  EXPECT_EQ(cluster_.Pods("Running"), 2);
  cluster_.agents->Exit("default/job-worker-1", 137);  // as ExitCode says: made again
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  ASSERT_TRUE(AllRun(2));
  cluster_.agents->Exit("default/job-scheduler-0", 0);
  EXPECT_TRUE(Is(kMarsJobs, "Succeeded"));
}

TEST_F(RoleJobTest, AMarsJobMayHaveVolumesOfItsOwnWhereItsMemoryIs) {
  const std::string worker =
      "Worker: {template: {spec: {volumes: [{name: own, emptyDir: {medium: Memory}}], containers: "
      "[{name: mars, image: i, volumeMounts: [{name: own, mountPath: /dev/shm}, {name: own, "
      "mountPath: /a}]}]}}}";
  Submit("training.kubedl.io/v1alpha1", "MarsJob", "marsReplicaSpecs",
         {Role("Scheduler", 1), worker},
         ", workerMemoryTuningPolicy: {spillDirs: [/a, /b], workerCacheSize: 1Gi}");
  ASSERT_TRUE(AllRun(2));
  EXPECT_EQ(Env("job-worker-0")["MARS_SPILL_DIRS"], "/a,/b");
  const json::SharedValue pod = cluster_.Get(kPods, "default/job-worker-0");
  std::string volumes;
  for (const json::Value& mount :
       json::GetArray(json::GetArray(*pod, {"spec", "containers"})[0], {"volumeMounts"})) {
    volumes +=
        StrCat(json::GetString(mount, {"mountPath"}), "=", json::GetString(mount, {"name"}), " ");
  }
  EXPECT_TRUE(volumes.starts_with("/dev/shm=own /a=own /b=mars-empty-dir-1 ")) << volumes;
  EXPECT_EQ(volumes.find("mars-shared-cache"), std::string::npos) << volumes;
}

TEST_F(RoleJobTest, AMarsJobFailsWithoutAnyWorkerLeft) {
  Submit("training.kubedl.io/v1alpha1", "MarsJob", "marsReplicaSpecs",
         {Role("Scheduler", 1), Role("Worker", 2)});
  ASSERT_TRUE(AllRun(3));
  cluster_.agents->Exit("default/job-worker-0", 1);
  cluster_.agents->Exit("default/job-worker-1", 1);
  EXPECT_TRUE(Is(kMarsJobs, "Failed"));
}

TEST_F(RoleJobTest, AMarsJobNeedsASchedulerAndAbsolutePaths) {
  const std::unique_ptr<JobKind> kind = Find("MarsJob");
  const auto wrong = [&](std::string_view roles, std::string_view more) {
    return std::string(kind->Parse(*json::Parse(StrCat(
                                       R"({"metadata":{"name":"job"},"spec":{"marsReplicaSpecs":{)",
                                       roles, "}", more, "}}")))
                           .status()
                           .message());
  };
  const auto role = [](std::string_view name) {
    return StrCat("\"", name,
                  R"(":{"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}})");
  };
  EXPECT_EQ(
      wrong(role("Worker"), ""),
      "spec.marsReplicaSpecs: Invalid value: must have members of \"Scheduler\": they end the "
      "job");
  EXPECT_EQ(wrong(role("Scheduler"), R"(,"workerMemoryTuningPolicy":{"spillDirs":["/a","b"]})"),
            "spec.workerMemoryTuningPolicy.spillDirs[1]: Invalid value: \"b\": must be an absolute "
            "path");
  EXPECT_EQ(wrong(role("Scheduler"), R"(,"workerMemoryTuningPolicy":{"workerCacheSize":"-1Gi"})"),
            "spec.workerMemoryTuningPolicy.workerCacheSize: Invalid value: -1073741824: must be at "
            "least 0");
  std::string dirs;
  for (int i = 0; i < 33; ++i) dirs += StrCat(i > 0 ? "," : "", "\"/", i, "\"");
  EXPECT_EQ(
      wrong(role("Scheduler"), StrCat(R"(,"workerMemoryTuningPolicy":{"spillDirs":[)", dirs, "]}")),
      "spec.workerMemoryTuningPolicy.spillDirs: Too many: 33: must have at most 32 items");
  const auto job = json::Parse(R"({"spec":{"webHost":"mars.example.com"}})");
  EXPECT_EQ(IgnoredFields(*job), std::vector<std::string>{"spec.webHost"});
}

TEST_F(RoleJobTest, KubedlStartsElasticdlsMasterAlone) {
  Submit("training.kubedl.io/v1alpha1", "ElasticDLJob", "elasticdlReplicaSpecs",
         {Role("Master", 1)});
  ASSERT_TRUE(AllRun(1));
  const json::SharedValue pod = cluster_.Get(kPods, "default/elasticdl-job-master");
  ASSERT_TRUE(pod);
  EXPECT_EQ(api::Label(*pod, "job-role"), "master");
  cluster_.agents->Exit("default/elasticdl-job-master", 0);
  EXPECT_TRUE(Is({"training.kubedl.io", "v1alpha1", "elasticdljobs", true}, "Succeeded"));
}

TEST_F(RoleJobTest, AGangThatDoesNotFitStartsNobody) {
  auto gpus = [](std::string_view role, int replicas) {
    return StrCat(role, ": {replicas: ", replicas,
                  ", template: {spec: {containers: [{name: main, image: i, resources: {limits: "
                  "{nvidia.com/gpu: 4}}}]}}}");
  };
  Submit("kubeflow.org/v1", "TFJob", "tfReplicaSpecs", {gpus("Worker", 3)});
  cluster_.Run(std::chrono::seconds(5));
  EXPECT_EQ(cluster_.Pods("Pending"), 3);
  EXPECT_EQ(cluster_.Pods("Running"), 0);
}

TEST_F(RoleJobTest, MembersOnTheHostsNetworkHaveAPortEach) {
  const auto kinds = MakeRoleJobKinds({.host_network = true});
  auto job = json::Parse(
      R"({"metadata":{"name":"job","namespace":"default","uid":"u"},"spec":{"tfReplicaSpecs":{)"
      R"("PS":{"replicas":1,"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}},)"
      R"("Worker":{"replicas":2,"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}}})");
  ASSERT_TRUE(job.ok());
  auto spec = kinds[0]->Parse(*job);
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  std::set<int64_t> ports;
  for (const json::Value& service : kinds[0]->Services(*job, *spec)) {
    ports.insert(json::GetInt(json::GetArray(service, {"spec", "ports"})[0], {"port"}));
  }
  EXPECT_EQ(ports.size(), 3u);
}

TEST_F(RoleJobTest, WhatIsNoRoleIsRefused) {
  const auto kinds = MakeRoleJobKinds({});
  auto wrong = [&](size_t kind, std::string_view spec) {
    auto job = json::Parse(StrCat(R"({"metadata":{"name":"job"},"spec":)", spec, "}"));
    return std::string(kinds[kind]->Parse(*job).status().message());
  };
  constexpr std::string_view kPs =
      R"({"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}})";
  EXPECT_EQ(wrong(0, "{}"), "spec.tfReplicaSpecs: Required value");
  EXPECT_EQ(wrong(0, StrCat(R"({"tfReplicaSpecs":{"Boss":)", kPs, "}}")),
            "spec.tfReplicaSpecs.Boss: Unsupported value: \"Boss\": supported values: \"Chief\", "
            "\"Master\", \"Worker\", \"PS\", \"Evaluator\"");
  EXPECT_EQ(wrong(0, StrCat(R"({"tfReplicaSpecs":{"PS":)", kPs, "}}")),
            "spec.tfReplicaSpecs: Invalid value: must have Workers, or a role that leads them");
  EXPECT_EQ(wrong(0, StrCat(R"({"successPolicy":"Any","tfReplicaSpecs":{"Worker":)", kPs, "}}")),
            "spec.successPolicy: Unsupported value: \"Any\": supported values: \"\", "
            "\"AllWorkers\"");
}

}  // namespace
}  // namespace swell::jobs
