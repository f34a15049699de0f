// Run:ai's DistributedWorkloads: the master and workers that they become, per framework.
#include "jobs/kinds/runai_distributed.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "jobs/job_rules.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::jobs {
namespace {

using client::resources::kConfigMaps;
using client::resources::kPodGroups;
using client::resources::kPods;
using client::resources::kServices;
using manager::TestCluster;

const client::Resource kDistributed{"run.ai", "v2alpha1", "distributedworkloads", true};

std::string Workload(std::string_view spec, std::string_view master = {}) {
  return StrCat(
      "{apiVersion: run.ai/v2alpha1, kind: DistributedWorkload, metadata: {name: job, namespace: "
      "default, labels: {swell.dev/project: team}}, ",
      master.empty() ? "" : StrCat("masterSpec: {", master, "}, "), "spec: {", spec, "}}");
}

class RunaiDistributedTest : public ::testing::Test {
 protected:
  void Start(int gpus = 8) {
    cluster_.AddNode("node-a", gpus);
    cluster_.StartManager();
    cluster_.Create(
        "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: team}, "
        "spec: {namespace: default, resources: {gpu: {quota: 8}}}}");
    if (!cluster_.Get(client::resources::kPriorityClasses, "train")) {
      cluster_.Create(
          "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: train}, value: "
          "50}");
    }
  }
  bool Run(int pods) {
    return cluster_.Until([&] { return cluster_.Pods("Running") == pods; });
  }
  const json::Value& Container(const std::string& pod) {
    pod_ = cluster_.Get(kPods, "default/" + pod);
    static const json::Value kNone;
    return pod_ ? json::GetArray(*pod_, {"spec", "containers"})[0] : kNone;
  }
  std::string Gpus(const std::string& pod) {
    return std::string(json::GetString(Container(pod), {"resources", "limits", "nvidia.com/gpu"}));
  }
  // What the rules say of it; empty: nothing is wrong with it.
  static std::string Wrong(std::string_view spec, std::string_view master = {}) {
    const auto documents = json::ParseYaml(Workload(spec, master));
    const JobRules rules;
    const Status status =
        rules.Check(*rules.Find("run.ai", "distributedworkloads"), documents->front());
    return status.ok() ? "" : std::string(status.message());
  }

  TestCluster cluster_;
  json::SharedValue pod_;
};

// The manifest that `runai submit-dist pytorch --dry-run` of Run:ai 2.11 prints.
TEST_F(RunaiDistributedTest, PyTorchHasAMasterBesideItsWorkers) {
  Start();
  cluster_.Create(Workload(
      "command: {value: sleep infinity}, gpu: {value: '1'}, cpu: {value: '0.05'}, image: "
      "{value: ubuntu}, jobType: PyTorchJob, name: {value: job}, pyTorchJob: {values: {}}, "
      "runPolicy: {values: {cleanPodPolicy: {value: None}}}, workers: {value: 2}"));
  ASSERT_TRUE(Run(3));
  EXPECT_EQ(Gpus("job-master-0"), "1");
  EXPECT_EQ(Gpus("job-worker-1"), "1");
  EXPECT_EQ(json::Print(*json::Find(Container("job-worker-1"), {"command"})),
            R"(["sleep","infinity"])");
  EXPECT_EQ(cluster_.Env("default/job-worker-1", "RANK"), "2");
  EXPECT_EQ(cluster_.Env("default/job-worker-1", "WORLD_SIZE"), "3");
  EXPECT_EQ(cluster_.Env("default/job-worker-1", "MASTER_ADDR"), "job-master-0");
  EXPECT_EQ(cluster_.Env("default/job-worker-1", "RUNAI_JOB_NAME"), "job");
  EXPECT_EQ(cluster_.Env("default/job-worker-1", "RUNAI_PROJECT"), "team");
  EXPECT_EQ(cluster_.Env("default/job-worker-1", "POD_INDEX"), "1");
  EXPECT_EQ(cluster_.Env("default/job-worker-1", "RUNAI_NUM_OF_GPUS"), "1");
  EXPECT_EQ(cluster_.Env("default/job-worker-1", "JOB_UUID"),
            api::Uid(*cluster_.Get(kDistributed, "default/job")));
  EXPECT_EQ(api::Label(*pod_, "training.kubeflow.org/replica-type"), "worker");
  EXPECT_EQ(api::Label(*pod_, api::keys::kWorkload), "train");
  EXPECT_EQ(json::GetString(*pod_, {"spec", "priorityClassName"}), "train");
  EXPECT_EQ(json::GetString(*pod_, {"spec", "restartPolicy"}), "OnFailure");
  EXPECT_EQ(
      json::GetString(*cluster_.Get(kServices, "default/job-master-0"), {"spec", "clusterIP"}),
      "None");
  EXPECT_EQ(
      cluster_.Int(kDistributed, "default/job", {"status", "replicaStatuses", "Worker", "active"}),
      2);
  cluster_.agents->Exit("default/job-master-0", 0);
  EXPECT_TRUE(
      cluster_.Until([&] { return cluster_.Condition(kDistributed, "default/job", "Succeeded"); }));
}

TEST_F(RunaiDistributedTest, AllOfThemStartOrNone) {
  Start(2);
  cluster_.Create(
      Workload("image: {value: i}, gpu: {value: 1}, jobType: PyTorchJob, workers: {value: 2}"));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 3; }));
  cluster_.Run(5 * manager::kSecond);
  EXPECT_EQ(cluster_.Pods("Running"), 0);
}

TEST_F(RunaiDistributedTest, TheMasterIsAsItsOwnSpecSays) {
  Start();
  cluster_.Create(
      Workload("image: {value: i}, command: {value: work}, gpu: {value: 2}, memory: {value: 1G}, "
               "jobType: XGBoostJob, workers: {value: 1}, ports: {items: {web: {value: {container: "
               "80}}}}, nonPreemptible: {value: true}",
               "name: {value: job}, command: {value: lead}, gpuMemory: {value: 4G}, environment: "
               "{items: {ROLE: {value: master}}}"));
  // No node here says how much memory its GPUs have.
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 2; }));
  EXPECT_EQ(json::Print(*json::Find(Container("job-worker-0"), {"command"})), R"(["work"])");
  EXPECT_EQ(Gpus("job-worker-0"), "2");
  EXPECT_EQ(cluster_.Env("default/job-worker-0", "ROLE"), "not set");
  const json::Value& master = Container("job-master-0");
  EXPECT_EQ(json::Print(*json::Find(master, {"command"})), R"(["lead"])");
  EXPECT_EQ(json::GetString(master, {"image"}), "i");
  EXPECT_EQ(json::GetString(master, {"resources", "requests", "memory"}), "1G");
  EXPECT_EQ(json::Find(master, {"resources", "limits", "nvidia.com/gpu"}), nullptr);
  EXPECT_EQ(api::Annotation(*pod_, api::keys::kGpuMemory), "3814");
  EXPECT_EQ(cluster_.Env("default/job-master-0", "ROLE"), "master");
  EXPECT_EQ(cluster_.Env("default/job-master-0", "MASTER_PORT"), "9999");
  const json::SharedValue service = cluster_.Get(kServices, "default/job");
  ASSERT_TRUE(service);
  EXPECT_EQ(json::GetString(*service, {"spec", "selector", "training.kubeflow.org/replica-type"}),
            "master");
  EXPECT_EQ(json::GetString(*cluster_.Get(kPodGroups, "default/job"), {"spec", "preemptibility"}),
            "NonPreemptible");
}

TEST_F(RunaiDistributedTest, TheLauncherOfMpiAloneRunsTheCommand) {
  Start();
  cluster_.Create(
      Workload("image: {value: i}, command: {value: mpirun work}, gpu: {value: 1}, jobType: "
               "MPIJob, workers: {value: 2}, mpiJob: {values: {slotsPerWorker: {value: 4}}}, "
               "ports: {items: {web: {value: {container: 80}}}}"));
  ASSERT_TRUE(Run(3));
  EXPECT_EQ(json::Print(*json::Find(Container("job-launcher"), {"command"})),
            R"(["mpirun","work"])");
  EXPECT_EQ(Gpus("job-launcher"), "");
  EXPECT_EQ(Gpus("job-worker-1"), "1");
  EXPECT_EQ(json::Print(*json::Find(Container("job-worker-1"), {"command"})).find("mpirun work"),
            std::string::npos);
  const json::SharedValue config = cluster_.Get(kConfigMaps, "default/job-config");
  ASSERT_TRUE(config);
  EXPECT_EQ(json::GetString(*config, {"data", "hostfile"}),
            "job-worker-0 slots=4\njob-worker-1 slots=4\n");
  EXPECT_TRUE(cluster_.Get(kServices, "default/job-ports"));
}

TEST_F(RunaiDistributedTest, TensorFlowHasAChiefAndJaxHasNone) {
  Start();
  cluster_.Create(Workload("image: {value: i}, jobType: TFJob, workers: {value: 1}"));
  ASSERT_TRUE(Run(2));
  EXPECT_NE(cluster_.Env("default/job-worker-0", "TF_CONFIG").find(R"("chief":["job-chief-0.)"),
            std::string::npos)
      << cluster_.Env("default/job-worker-0", "TF_CONFIG");
  ASSERT_TRUE(cluster_.Delete(kDistributed, "default/job").ok());
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
  cluster_.Create(Workload("image: {value: i}, jobType: JAXJob, workers: {value: 2}"));
  ASSERT_TRUE(Run(2));
  EXPECT_EQ(cluster_.Env("default/job-worker-1", "NUM_PROCESSES"), "2");
  cluster_.agents->Exit("default/job-worker-0", 0);
  cluster_.Run(manager::kSecond);
  EXPECT_FALSE(cluster_.Condition(kDistributed, "default/job", "Succeeded"));
  cluster_.agents->Exit("default/job-worker-1", 0);
  EXPECT_TRUE(
      cluster_.Until([&] { return cluster_.Condition(kDistributed, "default/job", "Succeeded"); }));
}

TEST_F(RunaiDistributedTest, WorkersOfPyTorchMayBeFewerThanAskedFor) {
  Start(3);
  cluster_.Create(
      Workload("image: {value: i}, gpu: {value: 1}, jobType: PyTorchJob, workers: {value: 4}, "
               "pyTorchJob: {values: {minReplicas: {value: 1}, maxReplicas: {value: 4}}}"));
  ASSERT_TRUE(Run(3));
  EXPECT_EQ(cluster_.Env("default/job-worker-0", "PET_NNODES"), "2:5");
}

TEST_F(RunaiDistributedTest, WrongFieldsAreRefusedByName) {
  const std::string torch = "image: {value: i}, jobType: PyTorchJob";
  EXPECT_EQ(Wrong(torch), "");
  EXPECT_EQ(Wrong(torch, "gpu: {value: 1}"), "");
  EXPECT_EQ(Wrong("image: {value: i}, jobType: Horovod"),
            "spec.jobType: Invalid value: \"Horovod\": must be PyTorchJob, TFJob, MPIJob, "
            "XGBoostJob or JAXJob");
  EXPECT_EQ(Wrong(StrCat(torch, ", mpiJob: {values: {slotsPerWorker: {value: 2}}}")),
            "spec.mpiJob: Forbidden: spec.jobType is PyTorchJob");
  EXPECT_EQ(Wrong("image: {value: i}, jobType: JAXJob", "gpu: {value: 1}"),
            "masterSpec: Forbidden: a JAXJob has no master");
  EXPECT_EQ(Wrong("image: {value: i}, jobType: MPIJob, workers: {value: 0}"),
            "spec.workers.value: Invalid value: 0: must be between 1 and 10000");
  EXPECT_EQ(Wrong(StrCat(torch, ", runPolicy: {values: {cleanPodPolicy: {value: Some}}}")),
            "spec.runPolicy.values.cleanPodPolicy.value: Invalid value: \"Some\": must be None, "
            "Running or All");
  EXPECT_EQ(Wrong(StrCat(torch, ", pyTorchJob: {values: {maxReplicas: {value: 0}}}")),
            "spec.pyTorchJob.values.maxReplicas.value: Invalid value: 0: must be at least 1");
  EXPECT_EQ(Wrong(torch, "memory: {value: lots}"),
            "masterSpec.memory.value: Invalid value: \"lots\": must be an amount such as 2, 500m "
            "or 8Gi");
  EXPECT_EQ(Wrong(torch, "gpu: {value: 1}, gpuMemory: {value: 4G}"),
            "masterSpec.gpuMemory: Forbidden: masterSpec.gpu says how many GPUs there are");
  EXPECT_EQ(Wrong(torch, "gitSync: {items: {}}"),
            "masterSpec.gitSync: Forbidden: it is not supported; runai submit --git-sync fetches "
            "code");
  EXPECT_EQ(Wrong(StrCat(torch, ", serviceType: {value: NodePort}"),
                  "ports: {items: {a: {value: {container: 1}}, b: {value: {container: 2, "
                  "serviceType: ClusterIP}}}}"),
            "masterSpec.ports.items.b.value.serviceType: Invalid value: \"ClusterIP\": another "
            "port has NodePort; all ports of a workload have one type");
}

}  // namespace
}  // namespace swell::jobs
