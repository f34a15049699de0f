// Run:ai's workloads: the pods that they become, and what of them is refused.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "jobs/job_rules.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::jobs {
namespace {

using client::resources::kPodGroups;
using client::resources::kPods;
using client::resources::kServices;
using manager::TestCluster;

const client::Resource kTraining{"run.ai", "v2alpha1", "trainingworkloads", true};
const client::Resource kInference{"run.ai", "v2alpha1", "inferenceworkloads", true};

std::string Workload(std::string_view kind, std::string_view spec) {
  return StrCat("{apiVersion: run.ai/v2alpha1, kind: ", kind,
                ", metadata: {name: job, namespace: default, labels: {swell.dev/project: team}}, ",
                "spec: {image: {value: ubuntu}, ", spec, "}}");
}

class RunaiJobTest : public ::testing::Test {
 protected:
  void Start() {
    cluster_.AddNode("node-a", 8);
    cluster_.StartManager();
    cluster_.Create(
        "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: team}, "
        "spec: {namespace: default, resources: {gpu: {quota: 8}}}}");
    for (const char* name : {"train", "interactive", "inference"}) {
      if (cluster_.Get(client::resources::kPriorityClasses, name)) continue;
      cluster_.Create(
          StrCat("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: "
                 "{name: ",
                 name, "}, value: 50}"));
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
  // What the rules say of a training workload; empty: nothing is wrong with it.
  static std::string Wrong(std::string_view spec, std::string_view kind = "TrainingWorkload") {
    const auto documents = json::ParseYaml(Workload(kind, spec));
    const JobRules rules;
    const Status status =
        rules.Check(*rules.Find("run.ai", ToLower(kind) + "s"), documents->front());
    return status.ok() ? "" : std::string(status.message());
  }

  TestCluster cluster_;
  json::SharedValue pod_;
};

TEST_F(RunaiJobTest, PodsKnowTheProjectOfTheirNamespaceAndTheirGpus) {
  Start();
  cluster_.Create("{apiVersion: v1, kind: Namespace, metadata: {name: older}}");
  cluster_.Create("{apiVersion: swell.dev/v1, kind: Project, metadata: {name: older}}");
  cluster_.Create(
      "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: red}, spec: {namespace: made}}");
  ASSERT_TRUE(cluster_.Until(
      [&] { return cluster_.Get(client::resources::kNamespaces, "made") != nullptr; }));
  for (const char* ns : {"made", "older"}) {
    cluster_.Create(
        StrCat("{apiVersion: run.ai/v2alpha1, kind: TrainingWorkload, metadata: {name: job, "
               "namespace: ",
               ns, "}, spec: {image: {value: ubuntu}, gpu: {value: '0.5'}, arguments: {value: ",
               "'--base_url=/${RUNAI_PROJECT}'}}}"));
  }
  ASSERT_TRUE(cluster_.Until([&] {
    return cluster_.Get(kPods, "made/job-worker-0") && cluster_.Get(kPods, "older/job-worker-0");
  }));
  EXPECT_EQ(cluster_.Env("made/job-worker-0", "RUNAI_PROJECT"), "red");
  EXPECT_EQ(cluster_.Env("older/job-worker-0", "RUNAI_PROJECT"), "older");
  EXPECT_EQ(cluster_.Env("made/job-worker-0", "RUNAI_NUM_OF_GPUS"), "0.5");
  EXPECT_EQ(cluster_.Env("made/job-worker-0", "JOB_UUID"),
            api::Uid(*cluster_.Get(kTraining, "made/job")));
  const json::SharedValue pod = cluster_.Get(kPods, "made/job-worker-0");
  const json::Value& container = json::GetArray(*pod, {"spec", "containers"})[0];
  EXPECT_EQ(json::Print(*json::Find(container, {"args"})), R"x(["--base_url=/$(RUNAI_PROJECT)"])x");
}

TEST_F(RunaiJobTest, TrainingIsOnePodAsRunaiSubmitMakesIt) {
  Start();
  cluster_.Create(Workload(
      "TrainingWorkload",
      "name: {value: job}, gpu: {value: '1'}, command: {value: \"sh -c 'sleep 1'\"}, arguments: "
      "{value: a b}, environment: {items: {A: {value: x}}}, cpu: {value: 0.5}, memory: {value: "
      "1G}, cpuLimit: {value: '1'}, pvcs: {items: {d: {value: {claimName: data, existingPvc: true, "
      "path: /data}}}}, labels: {items: {team: {value: red}}}, workingDir: {value: /w}"));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 1; }));
  const json::Value& container = Container("job-worker-0");
  EXPECT_EQ(json::Print(*json::Find(container, {"command"})), R"(["sh","-c","sleep 1"])");
  EXPECT_EQ(json::Print(*json::Find(container, {"args"})), R"(["a","b"])");
  EXPECT_EQ(json::GetString(container, {"resources", "limits", "nvidia.com/gpu"}), "1");
  EXPECT_EQ(json::GetString(container, {"resources", "requests", "cpu"}), "500m");
  EXPECT_EQ(json::GetString(container, {"workingDir"}), "/w");
  EXPECT_EQ(json::GetString(json::GetArray(container, {"volumeMounts"})[0], {"mountPath"}),
            "/data");
  EXPECT_EQ(api::Label(*pod_, "team"), "red");
  EXPECT_EQ(api::Label(*pod_, api::keys::kWorkload), "train");
  EXPECT_EQ(json::GetString(*pod_, {"spec", "priorityClassName"}), "train");
  EXPECT_EQ(cluster_.Env("default/job-worker-0", "A"), "x");
  EXPECT_EQ(cluster_.Env("default/job-worker-0", "RUNAI_JOB_NAME"), "job");
  EXPECT_EQ(cluster_.Env("default/job-worker-0", "RUNAI_PROJECT"), "team");
  EXPECT_EQ(cluster_.Env("default/job-worker-0", "NVIDIA_VISIBLE_DEVICES"), "not set");
}

TEST_F(RunaiJobTest, TrainingEndsWithItsPodAndCanBeSuspended) {
  Start();
  cluster_.Create(Workload("TrainingWorkload", "command: {value: sleep 1}"));
  ASSERT_TRUE(Run(1));
  EXPECT_EQ(cluster_.Env("default/job-worker-0", "NVIDIA_VISIBLE_DEVICES"), "void");
  ASSERT_TRUE(cluster_.Patch(kTraining, "default/job", "{spec: {suspend: true}}").ok());
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
  ASSERT_TRUE(cluster_.Patch(kTraining, "default/job", "{spec: {suspend: false}}").ok());
  ASSERT_TRUE(Run(1));
  cluster_.agents->Exit("default/job-worker-0", 0);
  EXPECT_TRUE(
      cluster_.Until([&] { return cluster_.Condition(kTraining, "default/job", "Succeeded"); }));
}

TEST_F(RunaiJobTest, AWorkspaceKeepsItsTerminalAndHasItsPorts) {
  Start();
  cluster_.Create(Workload("InteractiveWorkload",
                           "gpu: {value: 0.5}, preemptible: {value: false}, ports: {items: {web: "
                           "{value: {container: 8888, external: 30080, serviceType: NodePort, "
                           "toolType: jupyter-notebook}}}}"));
  ASSERT_TRUE(Run(1));
  const json::Value& container = Container("job-workspace-0");
  EXPECT_TRUE(json::GetBool(container, {"tty"}));
  EXPECT_EQ(api::Annotation(*pod_, api::keys::kGpuFraction), "0.5");
  EXPECT_EQ(api::Label(*pod_, api::keys::kWorkload), "interactive");
  const json::SharedValue service = cluster_.Get(kServices, "default/job");
  ASSERT_TRUE(service);
  EXPECT_EQ(json::GetString(*service, {"spec", "type"}), "NodePort");
  const json::Value& port = json::GetArray(*service, {"spec", "ports"})[0];
  EXPECT_EQ(json::GetInt(port, {"port"}), 30080);
  EXPECT_EQ(json::GetInt(port, {"targetPort"}), 8888);
  EXPECT_EQ(json::GetString(*cluster_.Get(kPodGroups, "default/job"), {"spec", "preemptibility"}),
            "NonPreemptible");
  EXPECT_NE(cluster_.EventMessage("FieldIgnored").find("spec.ports.items.web.value.toolType"),
            std::string::npos);
}

TEST_F(RunaiJobTest, ItsServiceFollowsItsPorts) {
  Start();
  cluster_.Create(
      Workload("TrainingWorkload",
               "ports: {items: {web: {value: {container: 8888, serviceType: NodePort}}, more: "
               "{value: {container: 6006, serviceType: NodePort}}}}"));
  ASSERT_TRUE(Run(1));
  auto service = [this] { return cluster_.Get(kServices, "default/job"); };
  auto ports = [&] { return json::GetArray(*service(), {"spec", "ports"}); };
  ASSERT_EQ(ports().size(), 2u);
  EXPECT_NE(json::GetInt(ports()[0], {"nodePort"}), 0);
  const std::string version(api::ResourceVersionText(*service()));
  ASSERT_TRUE(cluster_.Patch(kTraining, "default/job", "{metadata: {labels: {a: b}}}").ok());
  cluster_.Run(manager::kSecond);
  EXPECT_EQ(api::ResourceVersionText(*service()), version) << "written though it is as it should";

  ASSERT_TRUE(cluster_
                  .Patch(kTraining, "default/job",
                         "{spec: {ports: {items: {more: null, web: {value: {external: 80}}}}}}")
                  .ok());
  ASSERT_TRUE(cluster_.Until([&] { return ports().size() == 1; }));
  EXPECT_EQ(json::GetInt(ports()[0], {"port"}), 80);
  EXPECT_EQ(json::GetInt(ports()[0], {"targetPort"}), 8888);
  ASSERT_TRUE(cluster_
                  .Patch(kTraining, "default/job",
                         "{spec: {ports: {items: {web: {value: {serviceType: ClusterIP}}}}}}")
                  .ok());
  ASSERT_TRUE(cluster_.Until([&] {
    return json::GetString(*service(), {"spec", "type"}) == "ClusterIP";
  }));
  EXPECT_EQ(json::GetInt(ports()[0], {"nodePort"}), 0);
  ASSERT_TRUE(cluster_.Patch(kTraining, "default/job", "{spec: {ports: null}}").ok());
  EXPECT_TRUE(cluster_.Until([&] { return service() == nullptr; }));
}

TEST_F(RunaiJobTest, RunsInTheNodesOfItsPoolsAndWaitsForPoolsToCome) {
  Start();
  cluster_.Create(Workload("TrainingWorkload", "nodePools: {value: fast slow}"));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Events("ReferenceNotFound") == 1; }));
  EXPECT_EQ(cluster_.EventMessage("ReferenceNotFound"),
            "spec.nodePools: the NodePool \"fast\" does not exist; the workload waits for it");
  for (const char* name : {"fast", "slow"}) {
    cluster_.Create(StrCat("{apiVersion: swell.dev/v1, kind: NodePool, metadata: {name: ", name,
                           "}, spec: {nodeSelector: {pool: ", name, "}}}"));
  }
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 1; }));
  Container("job-worker-0");
  const json::Array& terms = json::GetArray(
      *pod_, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
              "nodeSelectorTerms"});
  ASSERT_EQ(terms.size(), 2u);
  EXPECT_EQ(json::Print(terms[1]),
            R"({"matchExpressions":[{"key":"pool","operator":"In","values":["slow"]}]})");
}

TEST_F(RunaiJobTest, AServiceThatCannotBeMadeIsTold) {
  Start();
  cluster_.Create(
      "{apiVersion: v1, kind: ResourceQuota, metadata: {name: few, namespace: default}, "
      "spec: {hard: {services.nodeports: 0}}}");
  cluster_.Create(Workload("InteractiveWorkload",
                           "ports: {items: {web: {value: {container: 8888, serviceType: "
                           "NodePort}}}}"));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Events("FailedCreateService") > 0; }));
  EXPECT_NE(cluster_.EventMessage("FailedCreateService").find("exceeded quota: few"),
            std::string::npos)
      << cluster_.EventMessage("FailedCreateService");
  EXPECT_TRUE(Run(1)) << "its pod runs all the same";
}

TEST_F(RunaiJobTest, AServiceOfItsNameThatIsNotItsOwnStaysAndIsToldOnce) {
  Start();
  cluster_.Create(
      "{apiVersion: v1, kind: Service, metadata: {name: job, namespace: default}, spec: {selector: "
      "{app: web}, ports: [{port: 80}]}}");
  const std::string version(api::ResourceVersionText(*cluster_.Get(kServices, "default/job")));
  cluster_.Create(
      Workload("TrainingWorkload", "ports: {items: {web: {value: {container: 8888}}}}"));
  ASSERT_TRUE(Run(1)) << "its pod runs all the same";
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Events("FailedCreateService") == 1; }));
  EXPECT_EQ(cluster_.EventMessage("FailedCreateService"),
            "Service job exists and does not belong to the job, so this name leads to what that "
            "Service selects. Delete it, or give the job another name.");
  // Many passes later.
  for (const char* label : {"a", "b", "c"}) {
    ASSERT_TRUE(
        cluster_.Patch(kTraining, "default/job", StrCat("{metadata: {labels: {a: ", label, "}}}"))
            .ok());
    cluster_.Run(std::chrono::minutes(1));
  }
  EXPECT_EQ(cluster_.Events("FailedCreateService"), 1);
  EXPECT_EQ(api::ResourceVersionText(*cluster_.Get(kServices, "default/job")), version);

  ASSERT_TRUE(cluster_.Delete(kServices, "default/job").ok());
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Get(kServices, "default/job") != nullptr; }));
  EXPECT_EQ(api::ControllerOf(*cluster_.Get(kServices, "default/job"))->name, "job");
  EXPECT_EQ(cluster_.Events("FailedCreateService"), 1);
}

TEST_F(RunaiJobTest, ServersStartOneByOneAndStartAgain) {
  Start();
  cluster_.Create(
      Workload("InferenceWorkload",
               "gpu: {value: 3}, minScale: {value: 3}, maxScale: {value: 4}, metric: {value: "
               "concurrency}, target: {value: 80}, ports: {items: {web: {value: {container: "
               "8000}}}}"));
  // Two of them fit on the node, and they serve.
  ASSERT_TRUE(Run(2));
  const json::Value& container = Container("job-server-0");
  EXPECT_EQ(json::GetInt(json::GetArray(container, {"ports"})[0], {"containerPort"}), 8000);
  EXPECT_EQ(api::Label(*pod_, api::keys::kWorkload), "inference");
  EXPECT_EQ(json::GetString(*pod_, {"spec", "restartPolicy"}), "Always");
  EXPECT_EQ(json::GetString(*pod_, {"spec", "priorityClassName"}), "inference");
  const json::SharedValue service = cluster_.Get(kServices, "default/job");
  ASSERT_TRUE(service);
  EXPECT_EQ(json::GetString(*service, {"spec", "selector", api::keys::kJobRole}), "server");
  EXPECT_EQ(cluster_.EventMessage("FieldIgnored"),
            "the job runs as if it did not say spec.maxScale, spec.metric, spec.target");

  ASSERT_TRUE(cluster_.Patch(kInference, "default/job", "{spec: {minScale: {value: 1}}}").ok());
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 1; }));
  ASSERT_TRUE(cluster_.Patch(kInference, "default/job", "{spec: {minScale: {value: 2}}}").ok());
  EXPECT_TRUE(Run(2));
}

TEST_F(RunaiJobTest, AServerThatFailsAgainAndAgainEndsNoOther) {
  Start();
  cluster_.Create(
      Workload("InferenceWorkload",
               "minScale: {value: 2}, ports: {items: {web: {value: {container: 8000}}}}"));
  ASSERT_TRUE(Run(2));
  const std::string now = api::FormatTime(cluster_.sim.Now());
  const Status patched = cluster_.Patch(
      kPods, "default/job-server-0",
      StrCat("{status: {containerStatuses: [{name: server, image: x, imageID: x, ready: false, "
             "restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}}, lastState: "
             "{terminated: {exitCode: 1, reason: Error, message: 'ModuleNotFoundError: No module "
             "named x', startedAt: '",
             now, "', finishedAt: '", now, "'}}}]}}"),
      "status");
  ASSERT_TRUE(patched.ok()) << patched.ToString();
  EXPECT_TRUE(
      cluster_.Until([&] { return cluster_.Condition(kInference, "default/job", "Degraded"); }));
  cluster_.Run(5 * manager::kSecond);
  EXPECT_FALSE(cluster_.Condition(kInference, "default/job", "Failed"))
      << cluster_.EventMessage("UserError");
  EXPECT_EQ(cluster_.Pods("Running"), 2);
}

TEST_F(RunaiJobTest, ServersOfAFixedNumberIgnoreNoField) {
  Start();
  cluster_.Create(
      Workload("InferenceWorkload",
               "minScale: {value: 1}, maxScale: {value: 1}, metric: {value: latency}, "
               "serviceType: {value: NodePort}, ports: {items: {web: {value: {container: 80}}}}"));
  ASSERT_TRUE(Run(1));
  EXPECT_EQ(cluster_.Events("FieldIgnored"), 0);
  EXPECT_EQ(json::GetString(*cluster_.Get(kServices, "default/job"), {"spec", "type"}), "NodePort");
}

TEST_F(RunaiJobTest, WrongServersAreRefusedByField) {
  const auto wrong = [](std::string_view spec) { return Wrong(spec, "InferenceWorkload"); };
  const std::string port = "ports: {items: {web: {value: {container: 80}}}}";
  EXPECT_EQ(wrong(port), "");
  EXPECT_EQ(wrong("minScale: {value: 1}"), "spec.ports: Required value: where the servers listen");
  EXPECT_EQ(wrong(StrCat("minScale: {value: 0}, ", port)),
            "spec.minScale.value: Invalid value: 0: must be between 1 and 10000: servers are not "
            "scaled by their load, so nothing would start one");
  EXPECT_EQ(wrong(StrCat("minScale: {value: 3}, maxScale: {value: 2}, ", port)),
            "spec.maxScale.value: Invalid value: 2: must be at least minScale, 3");
  EXPECT_EQ(wrong(StrCat("serviceType: {value: nodeport}, ", port)),
            "spec.serviceType.value: Invalid value: \"nodeport\": must be ClusterIP, NodePort, "
            "LoadBalancer or ExternalUrl");
}

TEST_F(RunaiJobTest, APodHasWhatItsWorkloadSaysOfNodeAndUser) {
  Start();
  cluster_.Create(
      Workload("TrainingWorkload",
               "gpuDevices: {value: 2}, nodePools: {value: default}, hostIpc: {value: true}, "
               "runAsUser: {value: true}, supplementalGroups: {value: '10;20'}, username: {value: "
               "ada}, usage: Submit, autoDeletionTimeAfterCompletionSeconds: {value: 20}"));
  ASSERT_TRUE(Run(1));
  const json::Value& container = Container("job-worker-0");
  EXPECT_EQ(json::GetString(container, {"resources", "limits", "nvidia.com/gpu"}), "2");
  EXPECT_TRUE(json::GetBool(*pod_, {"spec", "hostIPC"}));
  EXPECT_EQ(json::Print(*json::Find(*pod_, {"spec", "securityContext", "supplementalGroups"})),
            "[10,20]");
  EXPECT_EQ(cluster_.EventMessage("FieldIgnored"),
            "the job runs as if it did not say spec.username, spec.runAsUser");
  cluster_.agents->Exit("default/job-worker-0", 0);
  EXPECT_TRUE(cluster_.Until([&] { return !cluster_.Get(kTraining, "default/job"); }))
      << "it is kept for some seconds only";
}

TEST_F(RunaiJobTest, WhatCannotBeFollowedIsRefusedByField) {
  EXPECT_EQ(Wrong("gpu: {value: '2'}"), "");
  EXPECT_EQ(Wrong("name: {value: other}"),
            "spec.name.value: Invalid value: \"other\": must be metadata.name, \"job\"");
  EXPECT_EQ(Wrong("gpu: {value: '1.5'}"),
            "spec.gpu.value: Invalid value: \"1.5\": must be a whole number, or a part of a GPU "
            "such as 0.5");
  EXPECT_EQ(Wrong("gpu: {value: 1}, gpuMemory: {value: 4G}"),
            "spec.gpuMemory: Forbidden: spec.gpu says how many GPUs there are");
  EXPECT_EQ(Wrong("gpuDevices: {value: 1}, gpu: {value: 1}"),
            "spec.gpuDevices: Forbidden: spec.gpu says how many GPUs there are");
  EXPECT_EQ(Wrong("supplementalGroups: {value: '10,20'}"),
            "spec.supplementalGroups.value: Invalid value: \"10,20\": must be group IDs such as "
            "10;20");
  EXPECT_EQ(Wrong("supplementalGroups: {value: '2147483648'}"),
            "spec.supplementalGroups.value: Invalid value: \"2147483648\": must be group IDs such "
            "as 10;20");
  EXPECT_EQ(Wrong("usage: Template"),
            "spec.usage: Invalid value: \"Template\": must be Submit: templates are not stored; "
            "keep the manifest instead");
  EXPECT_EQ(Wrong("memory: {value: lots}"),
            "spec.memory.value: Invalid value: \"lots\": must be an amount such as 2, 500m or 8Gi");
  EXPECT_EQ(Wrong("cpu: {value: -0.5}"),
            "spec.cpu.value: Invalid value: \"-0.5\": must be an amount such as 2, 500m or 8Gi");
  EXPECT_EQ(Wrong("command: {value: \"sh -c 'a\"}"),
            "spec.command.value: Invalid value: \"sh -c 'a\": a quotation mark is not closed");
  EXPECT_EQ(Wrong("gitSync: {items: {}}"),
            "spec.gitSync: Forbidden: it is not supported; runai submit --git-sync fetches code");
  EXPECT_EQ(Wrong("pvcs: {items: {d: {value: {claimName: d, path: /d, existingPvc: false}}}}"),
            "spec.pvcs.items.d.value.existingPvc: Unsupported value: false: no claim is made for "
            "the workload; make a PersistentVolumeClaim and name it");
  EXPECT_EQ(Wrong("ports: {items: {a: {value: {container: 1, serviceType: NodePort}}, b: {value: "
                  "{container: 2, serviceType: ClusterIP}}}}"),
            "spec.ports.items.b.value.serviceType: Invalid value: \"ClusterIP\": another port has "
            "NodePort; all ports of a workload have one type");
  EXPECT_EQ(
      Wrong("ports: {items: {a: {value: {container: 80}}, b: {value: {container: 81, external: "
            "80}}}}"),
      "spec.ports.items.b.value.external: Duplicate value: 80: another port has this number "
      "in the Service; set external");
  EXPECT_EQ(Wrong("annotations: {items: {swell.dev/run-as-of: {value: ada}}}"),
            "spec.annotations.items.swell.dev/run-as-of: Forbidden: keys of swell.dev are the "
            "system's own");
}

}  // namespace
}  // namespace swell::jobs
