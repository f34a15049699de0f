// What jobs of every kind are refused for when they are written.
#include "jobs/job_rules.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/yaml.h"

namespace swell::jobs {
namespace {

constexpr char kTemplate[] = "template: {spec: {containers: [{name: c, image: i}]}}";

api::KindInfo KindOf(const JobKind& kind) {
  api::KindInfo info;
  info.gvk = {kind.resource().group, kind.resource().version, kind.kind()};
  info.plural = kind.resource().plural;
  return info;
}

class JobRulesTest : public ::testing::Test {
 protected:
  // "REASON FIELD: MESSAGE" of what is wrong with the job in YAML; empty: nothing.
  std::string Wrong(std::string_view group,
                    std::string_view plural,
                    std::string_view spec,
                    std::string_view annotations = "{}",
                    std::string_view old_spec = "") {
    const JobKind* kind = rules_.Find(group, plural);
    if (kind == nullptr) return "no such kind";
    const json::Value job = Job(spec, annotations);
    const json::Value old = Job(old_spec, annotations);
    std::string text;
    for (const api::FieldError& error :
         rules_.CheckWrite(KindOf(*kind), job, old_spec.empty() ? nullptr : &old)) {
      text += StrCat(error.reason, " ", error.field, ": ", error.message);
    }
    return text;
  }
  static json::Value Job(std::string_view spec, std::string_view annotations) {
    auto job = json::ParseYaml(
        StrCat("{metadata: {name: j, annotations: ", annotations, "}, spec: {", spec, "}}"));
    EXPECT_TRUE(job.ok()) << spec << ": " << job.status().ToString();
    return job.ok() && job->size() == 1 ? job->front() : json::Value();
  }
  std::string Training(std::string_view role, std::string_view more = "") {
    return Wrong("swell.dev", "trainingjobs",
                 StrCat("roles: {worker: {", role, ", ", kTemplate, "}}", more));
  }
  // Both kinds of PyTorchJob read this policy.
  std::string PyTorch(std::string_view policy) {
    const std::string spec =
        StrCat("elasticPolicy: {", policy, "}, pytorchReplicaSpecs: {Worker: {", kTemplate, "}}");
    std::string ours = Wrong("kubeflow.org", "pytorchjobs", spec);
    EXPECT_EQ(Wrong("training.kubedl.io", "pytorchjobs", spec), ours);
    return ours;
  }

  JobRules rules_;
};

TEST_F(JobRulesTest, PodsHaveNoHostNamesWithDots) {
  const auto wrong = [this](std::string_view pod_spec) {
    json::Value job = Job(StrCat("roles: {worker: {template: {spec: {", pod_spec, "}}}}"), "{}");
    json::Set(job, {"metadata", "name"}, "a.b");
    return std::string(rules_.Check(*rules_.Find("swell.dev", "trainingjobs"), job).message());
  };
  EXPECT_EQ(wrong("containers: [{name: c, image: i}]"),
            "metadata.name: Invalid value: \"a.b\": the job's pods would have host names with a "
            "dot (a.b-worker-0); take a name without dots");
  EXPECT_EQ(wrong("hostname: h, containers: [{name: c, image: i}]"), "");
}

TEST_F(JobRulesTest, AnIdleTimeoutIsADuration) {
  const std::string spec = StrCat("roles: {worker: {", kTemplate, "}}");
  const auto wrong = [&](std::string_view timeout) {
    return Wrong("swell.dev", "trainingjobs", spec,
                 StrCat("{swell.dev/idle-timeout: '", timeout, "'}"));
  };
  EXPECT_EQ(wrong("2h"), "");
  EXPECT_EQ(wrong("0"), "");
  EXPECT_NE(wrong("soon").find("metadata.annotations[swell.dev/idle-timeout]: Invalid value: "
                               "\"soon\": must be a duration such as 30m or 2h"),
            std::string::npos)
      << wrong("soon");
}

TEST_F(JobRulesTest, WhatIsRightAndWhatIsNoJobIsLetThrough) {
  EXPECT_EQ(Training("elastic: {minReplicas: 1, maxReplicas: 4}"), "");
  EXPECT_EQ(PyTorch("minReplicas: 1, maxReplicas: 3, rdzvBackend: etcd, rdzvEndpoint: "
                    "'etcd-service:2379', nProcPerNode: 1"),
            "");
  EXPECT_EQ(rules_.Find("", "pods"), nullptr);
  api::KindInfo pods;
  pods.plural = "pods";
  EXPECT_TRUE(rules_.CheckWrite(pods, json::Value("nonsense"), nullptr).empty());
}

TEST_F(JobRulesTest, ANameLeavesRoomForThoseOfThePods) {
  const JobKind* kind = rules_.Find("kubeflow.org", "pytorchjobs");
  ASSERT_NE(kind, nullptr);
  const auto wrong = [&](size_t length) {
    json::Value job =
        Job(StrCat("pytorchReplicaSpecs: {Master: {replicas: 1, ", kTemplate, "}}"), "{}");
    json::Set(job, {"metadata", "name"}, std::string(length, 'n'));
    const auto errors = rules_.CheckWrite(KindOf(*kind), job, nullptr);
    return errors.empty() ? std::string() : StrCat(errors[0].field, ": ", errors[0].message);
  };
  EXPECT_EQ(wrong(54), "");
  EXPECT_NE(wrong(56).find("metadata.name: Invalid value: \"nnn"), std::string::npos) << wrong(56);
  EXPECT_NE(wrong(56).find("65 characters"), std::string::npos) << wrong(56);
  EXPECT_NE(wrong(56).find("take a name that is 2 shorter"), std::string::npos) << wrong(56);
}

TEST_F(JobRulesTest, BoundsOfElasticJobsAreOnesThatANumberFits) {
  EXPECT_EQ(PyTorch("minReplicas: 5, maxReplicas: 3"),
            "FieldValueInvalid spec.elasticPolicy.maxReplicas: Invalid value: 3: must be at least "
            "minReplicas, 5");
  EXPECT_EQ(PyTorch("minReplicas: 0, maxReplicas: 3"),
            "FieldValueInvalid spec.elasticPolicy.minReplicas: Invalid value: 0: must be at least "
            "1");
  EXPECT_EQ(Training("elastic: {minReplicas: 5, maxReplicas: 4}"),
            "FieldValueInvalid spec.roles.worker.elastic.minReplicas: Invalid value: 5: must be "
            "between 0 and maxReplicas, 4");
  EXPECT_EQ(Training("elastic: {minReplicas: 1, maxReplicas: 100000}"),
            "FieldValueInvalid spec.roles.worker.elastic.maxReplicas: Invalid value: 100000: must "
            "be at most 10000");
}

TEST_F(JobRulesTest, MembersAreAsManyAsAClusterCanBear) {
  auto roles = [](int count, int replicas) {
    std::string text = "roles: {";
    for (int i = 0; i < count; ++i) {
      text += StrCat("r", i, ": {replicas: ", replicas, ", ", kTemplate, "}, ");
    }
    return text + "}";
  };
  EXPECT_EQ(Wrong("swell.dev", "trainingjobs", roles(2, 10'000)), "");
  EXPECT_EQ(Wrong("swell.dev", "trainingjobs", roles(3, 10'000)),
            "FieldValueInvalid spec: Invalid value: it has 30000 replicas in all roles; a job has "
            "20000 at most: make several jobs");
  EXPECT_EQ(Wrong("swell.dev", "trainingjobs", roles(101, 1)),
            "FieldValueInvalid spec: Invalid value: it has 101 roles with replicas; a job has 100 "
            "at most: make several jobs");
}

TEST_F(JobRulesTest, WhatMembersAreToldOfEachOtherFitsIntoAVariable) {
  auto tensorflow = [this](int workers) {
    return Wrong("kubeflow.org", "tfjobs",
                 StrCat("tfReplicaSpecs: {Worker: {replicas: ", workers, ", ", kTemplate, "}}"));
  };
  EXPECT_EQ(tensorflow(2000), "");
  const std::string wrong = tensorflow(10'000);
  EXPECT_NE(wrong.find("with 10000 members, the variable TF_CONFIG of each would have "),
            std::string::npos)
      << wrong;
}

TEST_F(JobRulesTest, TheRendezvousIsOneThatCanBeMetAt) {
  EXPECT_EQ(PyTorch("rdzvBackend: zookeeper"),
            "FieldValueNotSupported spec.elasticPolicy.rdzvBackend: Unsupported value: "
            "\"zookeeper\": supported values: \"c10d\", \"etcd\", \"etcd-v2\"");
  for (const char* endpoint : {"etcd:99999", "etcd:port", "etcd:"}) {
    EXPECT_EQ(PyTorch(StrCat("rdzvEndpoint: '", endpoint, "'")),
              StrCat("FieldValueInvalid spec.elasticPolicy.rdzvEndpoint: Invalid value: \"",
                     endpoint, "\": must be HOST or HOST:PORT, the port between 1 and 65535"));
  }
  EXPECT_EQ(PyTorch("rdzvEndpoint: '[fd00::1]'"), "");
  EXPECT_EQ(PyTorch("rdzvEndpoint: '[fd00::1]:29400'"), "");
  EXPECT_EQ(PyTorch("rdzvPort: 0"),
            "FieldValueInvalid spec.elasticPolicy.rdzvPort: Invalid value: 0: must be between 1 "
            "and 65535");
  EXPECT_EQ(PyTorch("nProcPerNode: 0"),
            "FieldValueInvalid spec.elasticPolicy.nProcPerNode: Invalid value: 0: must be between "
            "1 and 10000");
}

TEST_F(JobRulesTest, RolesAreThoseOfTheKindAndHaveContainers) {
  for (const char* group : {"kubeflow.org", "training.kubedl.io"}) {
    EXPECT_EQ(
        Wrong(group, "pytorchjobs", StrCat("pytorchReplicaSpecs: {Wurker: {", kTemplate, "}}")),
        "FieldValueNotSupported spec.pytorchReplicaSpecs.Wurker: Unsupported value: "
        "\"Wurker\": supported values: \"Master\", \"Worker\"");
    EXPECT_EQ(Wrong(group, "pytorchjobs", "pytorchReplicaSpecs: {Worker: {}}"),
              "FieldValueRequired spec.pytorchReplicaSpecs.Worker.template.spec.containers: "
              "Required value");
  }
  EXPECT_EQ(Wrong("training.kubedl.io", "pytorchjobs",
                  StrCat("cronPolicy: {schedule: '@daily'}, pytorchReplicaSpecs: {Worker: {",
                         kTemplate, "}}")),
            "FieldValueForbidden spec.cronPolicy: Forbidden: jobs run once; a Cron "
            "(apps.kubedl.io/v1alpha1) makes one at each time of a schedule");
  EXPECT_EQ(
      Wrong("training.kubedl.io", "tfjobs",
            StrCat("modelVersion: {modelName: m}, tfReplicaSpecs: {Worker: {", kTemplate, "}}")),
      "FieldValueForbidden spec.modelVersion: Forbidden: no image is built of a trained "
      "model; leave it out, save the model to a volume, and build the image from there");
  EXPECT_EQ(Wrong("training.kubedl.io", "tfjobs",
                  StrCat("cacheBackend: {name: c}, tfReplicaSpecs: {Worker: {", kTemplate, "}}")),
            "FieldValueForbidden spec.cacheBackend: Forbidden: training data are not cached; leave "
            "it out, and mount the volume that has them");
  EXPECT_EQ(Wrong("elasticdl.org", "elasticdljobs",
                  StrCat("elasticdlReplicaSpecs: {Worker: {", kTemplate, "}}")),
            "FieldValueRequired spec.elasticdlReplicaSpecs.Master: Required value");
  EXPECT_EQ(Training("priorityClassName: high=1.5"),
            "FieldValueInvalid spec.roles.worker.priorityClassName: Invalid value: \"high=1.5\": "
            "the part of the members that have the class must be between 0 and 1");
}

TEST_F(JobRulesTest, ScalingByMetricsIsReadAtOnce) {
  const std::string elastic = "elastic: {minReplicas: 1, maxReplicas: 4}";
  EXPECT_EQ(Training(elastic, ", autoscaling: {mode: Metric, role: boss}"),
            "FieldValueInvalid spec.autoscaling.role: Invalid value: \"boss\": must be a role with "
            "elastic");
  EXPECT_EQ(
      Training(elastic, ", autoscaling: {mode: Metric, metrics: [{name: m, regex: 'Time (['}]}"),
      "FieldValueInvalid spec.autoscaling.metrics[0].regex: Invalid value: \"Time ([\": missing ]: "
      "[");
  EXPECT_EQ(Training(elastic, ", autoscaling: {mode: Metric, metrics: [{type: Pods}]}"),
            "FieldValueRequired spec.autoscaling.metrics[0].pods: Required value");
  const std::string kubedl = StrCat(
      "enableElastic: true, elasticPolicy: {minReplicas: 1, maxReplicas: 3}, "
      "pytorchReplicaSpecs: {Worker: {",
      kTemplate, "}}");
  EXPECT_EQ(
      Wrong("training.kubedl.io", "pytorchjobs", kubedl, "{swell.dev/autoscale-interval: soon}"),
      "FieldValueInvalid metadata.annotations[swell.dev/autoscale-interval]: Invalid value: "
      "\"soon\": must be a duration from 1ms to 24h, such as 30s or 1h30m");
}

TEST_F(JobRulesTest, WhatWasWrongBeforeMayStaySo) {
  const std::string wrong =
      StrCat("roles: {worker: {elastic: {minReplicas: 5, maxReplicas: 4}, ", kTemplate, "}}");
  const std::string right = StrCat("roles: {worker: {", kTemplate, "}}");
  EXPECT_EQ(Wrong("swell.dev", "trainingjobs", wrong, "{}", wrong), "");
  EXPECT_EQ(Wrong("swell.dev", "trainingjobs", right, "{}", wrong), "");
  EXPECT_NE(Wrong("swell.dev", "trainingjobs", wrong, "{}", right), "");
}

TEST_F(JobRulesTest, WhatAPodAsksOfGpusIsSomething) {
  api::KindInfo pods;
  pods.plural = "pods";
  auto wrong = [&](const std::string& annotations, const std::string& limits = "cpu: 1") {
    const auto pod = json::ParseYaml(StrCat("{metadata: {name: p, annotations: {", annotations,
                                            "}}, spec: {containers: [{name: c, resources: "
                                            "{limits: {",
                                            limits, "}}}]}}"));
    std::string text;
    for (const auto& error : rules_.CheckWrite(pods, pod->front(), nullptr)) {
      text += StrCat(error.field, ": ", error.message);
    }
    return text;
  };
  EXPECT_EQ(wrong("swell.dev/gpu-fraction: '0.5', swell.dev/gpu-fraction-devices: '2'"), "");
  EXPECT_EQ(wrong("swell.dev/gpu-memory: '2048'"), "");
  EXPECT_EQ(wrong("", "nvidia.com/gpu: 1"), "");
  EXPECT_EQ(wrong("swell.dev/gpu-fraction: '1.5'"),
            "metadata.annotations[swell.dev/gpu-fraction]: Invalid value: \"1.5\": must be a part "
            "of a GPU, at least 0.01 and at most 1");
  EXPECT_EQ(wrong("swell.dev/gpu-memory: 4Gi"),
            "metadata.annotations[swell.dev/gpu-memory]: Invalid value: \"4Gi\": must be a number "
            "of MiB of a GPU's memory, above 0");
  EXPECT_EQ(wrong("swell.dev/gpu-fraction: '0.5', swell.dev/gpu-fraction-devices: '0'"),
            "metadata.annotations[swell.dev/gpu-fraction-devices]: Invalid value: \"0\": must be a "
            "number of GPUs, at least 1");
  EXPECT_EQ(wrong("swell.dev/gpu-fraction-devices: '2'"),
            "metadata.annotations[swell.dev/gpu-fraction-devices]: Invalid value: \"2\": says on "
            "how many GPUs a part is taken, and there is no swell.dev/gpu-fraction");
  EXPECT_EQ(wrong("swell.dev/gpu-fraction: '0.5'", "nvidia.com/gpu: 1"),
            "metadata.annotations[swell.dev/gpu-fraction]: Invalid value: \"0.5\": a pod that "
            "shares a GPU requests no whole ones (nvidia.com/gpu)");
  EXPECT_EQ(wrong("swell.dev/member-priority: x"),
            "metadata.annotations[swell.dev/member-priority]: Invalid value: \"x\": must be a "
            "whole number");
}

TEST_F(JobRulesTest, AmountsInTemplatesAreOnesThatPodsCanHave) {
  auto training = [this](std::string_view limits) {
    return Wrong("swell.dev", "trainingjobs",
                 StrCat("roles: {worker: {replicas: 1, template: {spec: {containers: [{name: c, "
                        "resources: {limits: {",
                        limits, "}}}]}}}}"));
  };
  EXPECT_EQ(training("nvidia.com/gpu: 2, cpu: 500m, memory: 8Gi"), "");
  EXPECT_EQ(training("nvidia.com/gpu: 1.5"),
            "FieldValueInvalid spec.roles.worker.template.spec.containers[0].resources.limits"
            "[nvidia.com/gpu]: Invalid value: 1.5: must be an integer; a part of a GPU is asked "
            "for by the annotation swell.dev/gpu-fraction");
  EXPECT_EQ(training("cpu: many"),
            "FieldValueInvalid spec.roles.worker.template.spec.containers[0].resources.limits[cpu]"
            ": Invalid value: \"many\": must be an amount such as 2, 500m or 8Gi");
}

TEST_F(JobRulesTest, PartsOfAPodGroupBelongToPartsThatThereAre) {
  api::KindInfo groups;
  groups.gvk.group = "swell.dev";
  groups.plural = "podgroups";
  auto wrong = [&](const std::string& spec) {
    const auto group = json::ParseYaml(StrCat("{metadata: {name: g}, spec: {", spec, "}}"));
    std::string text;
    for (const auto& error : rules_.CheckWrite(groups, group->front(), nullptr)) {
      text += StrCat(error.field, ": ", error.message);
    }
    return text;
  };
  EXPECT_EQ(wrong("groups: [{name: a}, {name: b, parent: a}], podSets: [{name: s, parent: b}]"),
            "");
  EXPECT_EQ(wrong("groups: [{name: a}], podSets: [{name: s}, {name: t, parent: b}]"),
            "spec.podSets[1].parent: Not found: \"b\": spec.groups has no such");
  EXPECT_EQ(wrong("groups: [{name: a, parent: b}, {name: b, parent: a}]"),
            "spec.groups[0].parent: Invalid value: \"b\": leads into itself, or more than 16 up");
}

TEST_F(JobRulesTest, ALimitOfAProjectIsNotBelowItsQuota) {
  api::KindInfo projects;
  projects.gvk.group = "swell.dev";
  projects.plural = "projects";
  auto wrong = [&](const std::string& spec) {
    const auto project = json::ParseYaml(StrCat("{metadata: {name: p}, spec: {", spec, "}}"));
    std::string text;
    for (const auto& error : rules_.CheckWrite(projects, project->front(), nullptr)) {
      text += StrCat(error.field, ": ", error.message);
    }
    return text;
  };
  EXPECT_EQ(wrong("resources: {gpu: {quota: 4, limit: 4}, cpu: {limit: 1}}"), "");
  EXPECT_EQ(wrong("resources: {gpu: {quota: 4, limit: -1}}"), "");
  EXPECT_EQ(wrong("resources: {gpu: {quota: 4, limit: 2}}"),
            "spec.resources.gpu.limit: Invalid value: 2: is below the quota of 4");
  EXPECT_EQ(
      wrong("nodePools: [{name: a}, {name: b, resources: {memory: {quota: 2Gi, limit: 1Gi}}}]"),
      "spec.nodePools[1].resources.memory.limit: Invalid value: 1073741824: is below the "
      "quota of 2147483648");
  EXPECT_EQ(wrong("namespace: default"), "");
  EXPECT_EQ(wrong("namespace: kube-system"),
            "spec.namespace: Invalid value: \"kube-system\": namespaces that begin with \"kube-\" "
            "are Kubernetes' own; choose another for the project's work");
}

TEST_F(JobRulesTest, ACronIsRefusedForWhatItsJobsWouldBe) {
  api::KindInfo crons;
  crons.gvk.group = "apps.kubedl.io";
  crons.plural = "crons";
  auto wrong = [&](std::string_view schedule, std::string_view of, std::string_view workload,
                   std::string_view name = "c") {
    const auto cron =
        json::ParseYaml(StrCat("{metadata: {name: ", name, "}, spec: {schedule: '", schedule,
                               "', template: {", of, ", workload: {", workload, "}}}}"));
    EXPECT_TRUE(cron.ok()) << cron.status().ToString();
    std::string text;
    for (const auto& error : rules_.CheckWrite(crons, cron->front(), nullptr)) {
      text += StrCat(error.reason, " ", error.field, ": ", error.message);
    }
    return text;
  };
  constexpr char kOf[] = "apiVersion: kubeflow.org/v1, kind: TFJob";
  const std::string spec = StrCat("spec: {tfReplicaSpecs: {Worker: {", kTemplate, "}}}");
  EXPECT_EQ(wrong("@daily", kOf, spec), "");
  EXPECT_EQ(wrong("*/5 1-3 * * mon", kOf, StrCat(kOf, ", ", spec)), "");
  EXPECT_EQ(wrong("@daily", "apiVersion: kubeflow.org/v2beta1, kind: MPIJob",
                  StrCat("spec: {mpiReplicaSpecs: {Launcher: {", kTemplate, "}}}")),
            "");
  EXPECT_EQ(wrong("0 0 22 * * ?", kOf, spec),
            "FieldValueInvalid spec.schedule: Invalid value: \"0 0 22 * * ?\": expected "
            "exactly 5 fields, found 6; leave out the seconds");
  EXPECT_EQ(wrong("61 * * * *", kOf, spec),
            "FieldValueInvalid spec.schedule: Invalid value: \"61 * * * *\": minute 61 is not in "
            "0-59");
  EXPECT_EQ(wrong("0 0 30 2 *", kOf, spec),
            "FieldValueInvalid spec.schedule: Invalid value: \"0 0 30 2 *\": matches no date");
  EXPECT_NE(wrong("@daily", "apiVersion: batch/v1, kind: Job", spec)
                .find("spec.template.kind: Invalid value: \"Job (batch/v1)\": must be a kind of "
                      "job: TrainingJob (swell.dev/v1), "),
            std::string::npos);
  EXPECT_EQ(wrong("@daily", kOf, StrCat("kind: PyTorchJob, ", spec)),
            "FieldValueInvalid spec.template.workload.kind: Invalid value: \"PyTorchJob\": must be "
            "TFJob, as spec.template.kind says");
  EXPECT_EQ(wrong("@daily", kOf, "spec: {tfReplicaSpecs: {Worker: {}}}"),
            "FieldValueRequired spec.template.workload.spec.tfReplicaSpecs.Worker.template.spec."
            "containers: Required value");
  // Types are those of the template's own kind, and all that is wrong is said.
  const std::string typed =
      StrCat("spec: {runPolicy: {backoffLimit: -1}, tfReplicaSpecs: {Worker: {replicas: two, ",
             kTemplate, "}}}");
  EXPECT_EQ(wrong("@daily", kOf, typed),
            "FieldValueInvalid spec.template.workload.spec.runPolicy.backoffLimit: Invalid value: "
            "-1: spec.runPolicy.backoffLimit in body should be greater than or equal to 0"
            "FieldValueTypeInvalid spec.template.workload.spec.tfReplicaSpecs.Worker.replicas: "
            "Invalid value: \"string\": spec.tfReplicaSpecs.Worker.replicas in body must be of "
            "type integer: \"string\"");
  EXPECT_NE(
      wrong("@daily", "apiVersion: kubeflow.org/v2beta1, kind: MPIJob",
            StrCat("spec: {slotsPerWorker: '2', mpiReplicaSpecs: {Launcher: {", kTemplate, "}}}"))
          .find("spec.template.workload.spec.slotsPerWorker: Invalid value: \"string\""),
      std::string::npos);
  EXPECT_NE(wrong("@daily", kOf, StrCat("metadata: {labels: {a: 'b c'}}, ", spec))
                .find("spec.template.workload.metadata.labels: Invalid value: \"b c\""),
            std::string::npos);
  // Names of runs are longer than the Cron's, and those of pods longer still.
  const std::string name(50, 'c');
  EXPECT_EQ(wrong("@daily", kOf, spec, name),
            StrCat("FieldValueInvalid metadata.name: Invalid value: \"", name,
                   "-2000000000\": the job's pods would have names of 70 characters (", name,
                   "-2000000000-worker-0), and 63 fit; take a name that is 7 shorter"));
  EXPECT_EQ(wrong("@daily", kOf, StrCat("metadata: {name: x}, ", spec), name), "");
}

TEST_F(JobRulesTest, APriorityClassThatIsNamedAnewExists) {
  const auto wrong = [this](std::string_view group, std::string_view plural, std::string_view spec,
                            std::string_view old_spec = "") {
    api::KindInfo kind;
    kind.gvk.group = group;
    kind.plural = plural;
    const json::Value job = Job(spec, "{}");
    const json::Value old = Job(old_spec, "{}");
    std::string text;
    for (const api::FieldError& error :
         rules_.CheckClasses(kind, job, old_spec.empty() ? nullptr : &old,
                             [](const std::string& name) { return name == "train"; })) {
      text += StrCat(error.field, ": ", error.message, "; ");
    }
    return text;
  };
  const auto training = [](std::string_view more, std::string_view of_role = "") {
    return StrCat(more, "roles: {worker: {", of_role, kTemplate, "}}");
  };
  const std::string refusal =
      "Invalid value: \"gold\": no PriorityClass with name gold was found; ";
  constexpr std::string_view kGroup = "swell.dev", kJobs = "trainingjobs";
  EXPECT_EQ(wrong(kGroup, kJobs, training("")), "");
  EXPECT_EQ(wrong(kGroup, kJobs, training("priorityClassName: train, ")), "");
  EXPECT_EQ(wrong(kGroup, kJobs, training("priorityClassName: gold, ")),
            StrCat("spec.priorityClassName: ", refusal));
  EXPECT_EQ(
      wrong(kGroup, kJobs, training("priorityClassName: train, ", "priorityClassName: gold=0.5, ")),
      StrCat("spec.roles.worker.priorityClassName: ", refusal));
  // A job keeps what it had, and takes nothing new.
  EXPECT_EQ(wrong(kGroup, kJobs, training("priorityClassName: gold, suspend: true, "),
                  training("priorityClassName: gold, ")),
            "");
  EXPECT_EQ(wrong(kGroup, kJobs, training("priorityClassName: gold, "),
                  training("priorityClassName: train, ")),
            StrCat("spec.priorityClassName: ", refusal));
  const std::string roles =
      "pytorchReplicaSpecs: {Master: {template: {spec: {priorityClassName: gold, containers: "
      "[{name: pytorch, image: i}]}}}}";
  const std::string of_pods = "pytorchReplicaSpecs.Master.template.spec.priorityClassName: ";
  EXPECT_EQ(wrong("kubeflow.org", "pytorchjobs", roles), StrCat("spec.", of_pods, refusal));
  EXPECT_EQ(wrong("kubeflow.org", "pytorchjobs",
                  StrCat("runPolicy: {schedulingPolicy: {priorityClass: gold}}, "
                         "pytorchReplicaSpecs: {Master: {",
                         kTemplate, "}}")),
            StrCat("spec.runPolicy.schedulingPolicy.priorityClass: ", refusal));
  EXPECT_EQ(wrong("apps.kubedl.io", "crons",
                  StrCat("schedule: '@daily', template: {apiVersion: kubeflow.org/v1, kind: "
                         "PyTorchJob, workload: {spec: {",
                         roles, "}}}")),
            StrCat("spec.template.workload.spec.", of_pods, refusal));
  // Nothing is said of what no job is, or cannot be read.
  EXPECT_EQ(wrong("apps", "deployments", "priorityClassName: gold"), "");
  EXPECT_EQ(wrong(kGroup, kJobs, "priorityClassName: gold"), "");
}

}  // namespace
}  // namespace swell::jobs
