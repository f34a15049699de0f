#include "scheduling/grouping_rules.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"

namespace swell::scheduling {
namespace {

json::Value Y(std::string_view text) {
  auto parsed = json::ParseYaml(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status().ToString() << "\n" << text;
  return parsed.ok() && !parsed->empty() ? parsed->front() : json::Value();
}

// "NAME: set minMember, …; PODSET" for a pod below the owner, by the rules given or built in.
std::string Grouped(std::string_view owner_yaml,
                    std::string_view pod_yaml,
                    const GroupingRules& rules = {}) {
  const json::Value owner = Y(owner_yaml), pod = Y(pod_yaml);
  const GroupingRule* rule =
      rules.For(json::GetString(owner, {"apiVersion"}), json::GetString(owner, {"kind"}), owner);
  if (rule == nullptr) return "none";
  const json::Value spec =
      GroupSpecOf(*rule, owner, pod, [](std::string_view name) { return name == "team"; });
  std::string sets;
  for (const json::Value& set : json::GetArray(spec, {"podSets"})) {
    sets += StrCat(sets.empty() ? "" : ", ", json::GetString(set, {"name"}), " ",
                   json::GetInt(set, {"minMember"}));
  }
  const std::string_view priority = json::GetString(spec, {"priorityClassName"});
  const std::string_view project = json::GetString(spec, {"project"});
  return StrCat(GroupNameOf(*rule, owner, pod), ": ", sets, "; ", PodSetOf(*rule, owner, pod),
                priority.empty() ? "" : StrCat("; ", priority),
                project.empty() ? "" : StrCat("; of ", project));
}

std::string Pod(std::string_view labels) {
  return StrCat("{metadata: {name: p, labels: {", labels, "}}}");
}

TEST(GroupingRules, TheUsualOperators) {
  const std::string ray =
      "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: c}\nspec:\n"
      "  workerGroupSpecs: [{groupName: small, replicas: 2, minReplicas: 1}, {groupName: big, "
      "replicas: 3, numOfHosts: 2}]\n";
  EXPECT_EQ(Grouped(ray, Pod("ray.io/node-type: head, ray.io/group: headgroup")),
            "raycluster.c: head 1, small 2, big 6; head");
  EXPECT_EQ(Grouped(ray + "  enableInTreeAutoscaling: true\n",
                    Pod("ray.io/node-type: worker, ray.io/group: small")),
            "raycluster.c: head 1, small 1, big 0; small");
  const std::string mpi =
      "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: m}\nspec: "
      "{mpiReplicaSpecs: "
      "{Launcher: {replicas: 1}, Worker: {replicas: 4}}, runPolicy: {schedulingPolicy: "
      "{priorityClass: high}}}\n";
  EXPECT_EQ(Grouped(mpi, Pod("training.kubeflow.org/job-role: worker")),
            "mpijob.m: launcher 0, worker 4; worker; high");
  EXPECT_EQ(Grouped(mpi, Pod("training.kubeflow.org/job-role: launcher")),
            "mpijob.m: launcher 0, worker 4; launcher; high");
  EXPECT_EQ(Grouped("apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: t}\nspec: "
                    "{tfReplicaSpecs: {PS: {replicas: 2}, Worker: {replicas: 3}, Chief: {}}}\n",
                    Pod("training.kubeflow.org/replica-type: worker")),
            "tfjob.t: ps 2, worker 3, chief 1; worker");
  EXPECT_EQ(
      Grouped("apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: s}\nspec: "
              "{replicatedJobs: [{name: driver, template: {spec: {}}}, {name: workers, "
              "replicas: 2, template: {spec: {parallelism: 4}}}]}\n",
              Pod("jobset.sigs.k8s.io/replicatedjob-name: workers")),
      "jobset.s: driver 1, workers 8; workers");
  const std::string lws =
      "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: l}\nspec:\n"
      "  leaderWorkerTemplate: {size: 4}\n";
  EXPECT_EQ(Grouped(lws, Pod("leaderworkerset.sigs.k8s.io/group-index: '1'")),
            "leaderworkerset.l.1: default 4; default");
  // Workers are made when the leader runs: a gang would wait for them forever.
  EXPECT_EQ(Grouped(lws + "  startupPolicy: LeaderReady\n",
                    Pod("leaderworkerset.sigs.k8s.io/group-index: '0'")),
            "leaderworkerset.l.0: default 1; default");
  EXPECT_EQ(Grouped("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: e}\nspec: "
                    "{elasticPolicy: {minReplicas: 2}, pytorchReplicaSpecs: {Worker: {replicas: "
                    "4}}}\n",
                    Pod("training.kubeflow.org/replica-type: worker")),
            "pytorchjob.e: worker 2, master 0; worker");
  EXPECT_EQ(Grouped("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}", Pod("a: b")),
            "p: default 1; default; inference");
  EXPECT_EQ(Grouped("{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}}", Pod("a: b")),
            "none");
}

// A gang of all would wait for ever for jobs that are made when the first ones run, or are over.
TEST(GroupingRules, JobsThatWaitForOthersAreGangsOfTheirOwn) {
  const std::string set =
      "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: s}\nspec:\n";
  const std::string node = Pod("jobset.sigs.k8s.io/replicatedjob-name: node");
  EXPECT_EQ(Grouped(set + "  startupPolicy: {startupPolicyOrder: InOrder}\n  replicatedJobs: "
                          "[{name: driver}, {name: node, replicas: 2, template: {spec: "
                          "{parallelism: 3}}}]\n",
                    node),
            "jobset.s.node: node 6; node");
  // As Kubeflow's TrainJob makes it.
  const std::string train =
      set +
      "  replicatedJobs: [{name: dataset-initializer}, {name: node, dependsOn: [{name: "
      "dataset-initializer, status: Complete}], template: {spec: {parallelism: 4}}}]\n";
  EXPECT_EQ(Grouped(train, node), "jobset.s.node: node 4; node");
  EXPECT_EQ(Grouped(train, Pod("jobset.sigs.k8s.io/replicatedjob-name: dataset-initializer")),
            "jobset.s.dataset-initializer: dataset-initializer 1; dataset-initializer");
  // Its workers are made when the leader has its node, by which their domain is chosen.
  EXPECT_EQ(Grouped("apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: "
                    "{name: l, annotations: {leaderworkerset.sigs.k8s.io/exclusive-topology: "
                    "rack}}\nspec: {leaderWorkerTemplate: {size: 4}}\n",
                    Pod("leaderworkerset.sigs.k8s.io/group-index: '0'")),
            "leaderworkerset.l.0: default 1; default");
}

TEST(GroupingRules, AJobInAKueueIsAGangThatMayShrinkToWhatItSays) {
  const std::string job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, labels: ";
  EXPECT_EQ(
      Grouped(job + "{kueue.x-k8s.io/queue-name: team}}\nspec: {parallelism: 3}\n", Pod("a: b")),
      "job.j: default 3; default; of team");
  EXPECT_EQ(Grouped(job + "{kueue.x-k8s.io/queue-name: other}, annotations: "
                          "{kueue.x-k8s.io/job-min-parallelism: '2'}}\nspec: {parallelism: 5}\n",
                    Pod("a: b")),
            "job.j: default 2; default")
      << "nobody's project is called so";
  EXPECT_EQ(Grouped(job + "{}}\nspec: {parallelism: 3}\n", Pod("a: b")), "none");
}

TEST(GroupingRules, WhatOthersCallAQueueIsTheProjectOfThatName) {
  const std::string ray = "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: c";
  for (const char* label : {"kai.scheduler/queue", "runai/queue", "volcano.sh/queue-name"}) {
    EXPECT_EQ(Grouped(ray + "}\n", Pod(StrCat(label, ": team"))),
              "raycluster.c: head 1; head; of team")
        << label;
  }
  EXPECT_EQ(Grouped(ray + ", labels: {kai.scheduler/queue: team}}\n", Pod("a: b")),
            "raycluster.c: head 1; head; of team");
  EXPECT_EQ(Grouped(ray + ", labels: {swell.dev/project: mine, runai/queue: team}}\n", Pod("a: b")),
            "raycluster.c: head 1; head; of mine");
  const GroupingRules rules;
  const json::Value group = Y("{metadata: {name: g}, spec: {minMember: 2, queue: team}}");
  std::string_view named;
  const json::Value pod =
      Y("{metadata: {name: p, annotations: {scheduling.k8s.io/group-name: g}}}");
  const json::Value spec = GroupSpecOf(*rules.Named(pod, named), group, pod,
                                       [](std::string_view name) { return name == "team"; });
  EXPECT_EQ(json::GetString(spec, {"project"}), "team");
}

TEST(GroupingRules, PodsMayNameTheirObject) {
  GroupingRules rules;
  std::string_view named;
  const json::Value pod =
      Y("{metadata: {name: p, annotations: {scheduling.k8s.io/group-name: g}}}");
  const GroupingRule* rule = rules.Named(pod, named);
  ASSERT_NE(rule, nullptr);
  EXPECT_EQ(named, "g");
  EXPECT_EQ(StrCat(rule->group, "/", rule->version, " ", rule->resource),
            "scheduling.volcano.sh/v1beta1 podgroups");
  EXPECT_EQ(rules.Named(Y("{metadata: {name: p}}"), named), nullptr);
}

TEST(GroupingRules, OnlyPodsAskForAClassThatKubernetesNeeds) {
  const std::string mpi =
      "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: m}\nspec: "
      "{mpiReplicaSpecs: {Worker: {replicas: 4}}, runPolicy: {schedulingPolicy: "
      "{priorityClass: system-node-critical}}}\n";
  EXPECT_EQ(Grouped(mpi, "{metadata: {name: p}}"), "mpijob.m: launcher 0, worker 4; worker");
  EXPECT_EQ(Grouped(mpi, "{metadata: {name: p}, spec: {priorityClassName: high}}"),
            "mpijob.m: launcher 0, worker 4; worker; high");
  EXPECT_EQ(Grouped(mpi, "{metadata: {name: p}, spec: {priorityClassName: system-node-critical}}"),
            "mpijob.m: launcher 0, worker 4; worker; system-node-critical");
}

TEST(GroupingRules, KubernetesOwnGroupsSayHowTheyAreStopped) {
  const GroupingRules rules;
  std::string_view named;
  const json::Value pod =
      Y("{metadata: {name: p}, spec: {schedulingGroup: {podGroupName: trainers}}}");
  const GroupingRule* rule = rules.Named(pod, named);
  ASSERT_NE(rule, nullptr);
  EXPECT_EQ(rule->name, "kubernetes");
  EXPECT_EQ(named, "trainers");
  const auto spec = [&](const std::string& text) {
    const json::Value group = Y(StrCat("{metadata: {name: trainers}, spec: {", text, "}}"));
    return json::Print(GroupSpecOf(*rule, group, pod, [](std::string_view) { return false; }));
  };
  EXPECT_EQ(spec("schedulingPolicy: {gang: {minCount: 3}}, priorityClassName: train"),
            R"({"podSets":[{"name":"default","minMember":3}],"priorityClassName":"train",)"
            R"("preemptUnit":"Pod"})");
  EXPECT_EQ(spec("schedulingPolicy: {gang: {minCount: 3}}, disruptionMode: {all: {}}"),
            R"({"podSets":[{"name":"default","minMember":3}],"preemptUnit":"Gang"})");
  EXPECT_EQ(spec("schedulingPolicy: {basic: {}}, disruptionMode: {single: {}}"),
            R"({"podSets":[{"name":"default","minMember":1}],"preemptUnit":"Pod"})");
  EXPECT_EQ(spec("schedulingPolicy: {basic: {}}, schedulingConstraints: {topology: [{key: rack}]}"),
            R"({"podSets":[{"name":"default","minMember":1}],"preemptUnit":"Pod",)"
            R"("topology":{"required":"rack"}})");
}

TEST(GroupingRules, PeoplesRulesComeFirstAndReplaceByName) {
  GroupingRules rules;
  GroupingRules::Read read = GroupingRules::Parse(
      "rules:\n- name: things\n  owner: {group: example.com, kind: Thing}\n"
      "  podSets: [{each: spec.parts, name: id, minMember: [count, m | 2], pods: {part: $name}}]\n"
      "- {name: deployment, disabled: true}\n");
  ASSERT_EQ(read.faults, std::vector<std::string>{});
  rules.Extend(std::move(read.rules));
  EXPECT_EQ(Grouped("{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}, spec: {parts: "
                    "[{id: a, count: 3}, {id: b, count: 2, m: 5}]}}",
                    Pod("part: b"), rules),
            "thing.x: a 6, b 10; b");
  EXPECT_EQ(
      Grouped("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}", Pod("a: b"), rules),
      "none");
  rules.Extend({});
  EXPECT_NE(
      Grouped("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}", Pod("a: b"), rules),
      "none");
}

TEST(GroupingRules, FaultsNameRuleAndField) {
  auto fault = [](std::string_view yaml) {
    GroupingRules::Read read = GroupingRules::Parse(StrCat("rules:\n- ", yaml, "\n"));
    EXPECT_TRUE(read.rules.empty());
    return read.faults.empty() ? std::string() : read.faults.front();
  };
  EXPECT_EQ(fault("{name: a}"), "rule \"a\": owner: Required value");
  EXPECT_EQ(fault("{name: a, owner: {kind: T}}"), "rule \"a\": owner.group: Required value");
  EXPECT_EQ(fault("{owner: {group: g, kind: T}}"), "rules[0]: name: Required value");
  EXPECT_EQ(fault("{name: a, owner: {group: g, kind: T}, podSets: [{name: w, minMember: -1}]}"),
            "rule \"a\": podSets[0].minMember: Invalid value: -1: must be between 0 and 1000000");
  EXPECT_EQ(fault("{name: a, owner: {group: g, kind: T}, minMember: [1, {}]}"),
            "rule \"a\": minMember[1]: Invalid value: {}: must be a number or a path");
  EXPECT_EQ(fault("{name: a, owner: {group: g, kind: T}, minMember: '1 | spec.size'}"),
            "rule \"a\": minMember: Invalid value: \"1 | spec.size\": must be paths with | between "
            "them, a number last");
  EXPECT_EQ(fault("{name: a, owner: {group: g, kind: T}, projectFrom: spec.queue}"),
            "rule \"a\": projectFrom: Invalid value: must be a list of paths");
  EXPECT_EQ(fault("{name: a, owner: {group: g, kind: T}, perPod: maybe}"),
            "rule \"a\": perPod: Invalid value: \"maybe\": must be true or false");
  EXPECT_EQ(fault("{name: a, owner: {group: g, kind: T}, podLabel: l}"),
            "rule \"a\": owner.version: Required value: pods name the object");
  EXPECT_EQ(fault("{name: a, owner: {group: g, kind: T}, minMembers: 1}").substr(0, 42),
            "rule \"a\": minMembers: unknown field; there");
  GroupingRules::Read read = GroupingRules::Parse("rule: []");
  EXPECT_EQ(read.faults, std::vector<std::string>{"rules: Required value: a list of rules"});
  read = GroupingRules::Parse("rules: [{name: a}, {name: b, owner: {group: g, kind: T}}]");
  EXPECT_EQ(read.rules.size(), 1u) << "the others hold";
}

TEST(GroupingRules, LongNamesStayDifferent) {
  GroupingRule rule;
  rule.kind = "Thing";
  auto name = [&](char last) {
    return GroupNameOf(
        rule, json::Object{{"metadata", json::Object{{"name", std::string(100, 'x') + last}}}},
        json::Object{});
  };
  EXPECT_LE(name('a').size(), 63u);
  EXPECT_NE(name('a'), name('b'));
  EXPECT_EQ(api::CheckLabelValue(name('a')), "");
}

}  // namespace
}  // namespace swell::scheduling
