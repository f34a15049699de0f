#include "manager/admission.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/patch.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::manager {
namespace {

class AdmissionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-0", 8);
    cluster_.Create(
        "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: lab}}\n---\n"
        "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: other}}\n---\n"
        "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: team}, spec: {parent: lab, "
        "namespace: team, resources: {gpu: {quota: 2, limit: 4}}}}");
    Open({});
  }
  void Open(AdmissionOptions options) {
    informers_ = std::make_unique<controllers::Informers>(
        cluster_.sim, cluster_.server, api::UserInfo{"system:masters", "", {"system:masters"}}, 1);
    admission_ = std::make_unique<AdmissionReviewer>(*informers_, options);
    informers_->Start();
    ASSERT_TRUE(cluster_.Until([&] { return informers_->synced(); }));
  }
  json::Value Ask(std::string_view resource, std::string_view yaml, std::string_view ns) {
    auto object = json::ParseYaml(yaml);
    EXPECT_TRUE(object.ok()) << object.status().ToString() << "\n" << yaml;
    object_ = object.ok() ? object->front() : json::Value();
    const size_t dot = resource.find('.');
    const std::string group(dot == std::string_view::npos ? "" : resource.substr(dot + 1));
    return admission_->Review(json::Object{
        {"apiVersion", "admission.k8s.io/v1"},
        {"kind", "AdmissionReview"},
        {"request", json::Object{{"uid", "u-1"},
                                 {"userInfo", user_},
                                 {"operation", operation_},
                                 {"oldObject", old_},
                                 {"namespace", ns},
                                 {"resource", json::Object{{"group", group},
                                                           {"resource", resource.substr(0, dot)}}},
                                 {"object", object_}}}});
  }
  // The reason why not; empty: it is let in, and object_ is what became of it.
  std::string Refused(std::string_view resource,
                      std::string_view yaml,
                      std::string_view ns = "team") {
    const json::Value review = Ask(resource, yaml, ns);
    EXPECT_EQ(json::GetString(review, {"response", "uid"}), "u-1");
    if (!json::GetBool(review, {"response", "allowed"})) {
      return std::string(json::GetString(review, {"response", "status", "message"}));
    }
    const std::string_view patch = json::GetString(review, {"response", "patch"});
    if (patch.empty()) return "";
    auto parsed = json::Parse(*Base64Decode(patch));
    auto patched = parsed.ok() ? json::ApplyJsonPatch(object_, *parsed) : parsed.status();
    EXPECT_TRUE(patched.ok()) << patched.status().ToString();
    if (patched.ok()) object_ = *patched;
    return "";
  }
  static std::string Pod(std::string_view spec, std::string_view meta = "") {
    return StrCat("{metadata: {name: p", meta.empty() ? "" : ", ", meta, "}, spec: {", spec,
                  spec.empty() ? "" : ", ", "containers: [{name: main, image: i}]}}");
  }
  static std::string Gpus(int count) {
    return StrCat(
        "{metadata: {name: p}, spec: {containers: [{name: main, image: i, resources: "
        "{limits: {nvidia.com/gpu: ",
        count, "}}}]}}");
  }

  // A Cron's template whose job could be of several kinds.
  static json::Value Roles(int gpus) {
    auto parsed = json::ParseYaml(StrCat(
        "{workload: {spec: {roles: {worker: {template: {spec: {containers: [{name: c, image: i, "
        "resources: {limits: {nvidia.com/gpu: ",
        gpus, "}}}]}}}}}}}"));
    return parsed.ok() ? parsed->front() : json::Value();
  }

  TestCluster cluster_;
  std::unique_ptr<controllers::Informers> informers_;
  std::unique_ptr<AdmissionReviewer> admission_;
  json::Value object_, old_;
  std::string operation_ = "CREATE";
  json::Value user_ = json::Object{{"username", "system:serviceaccount:a:b"}};
};

TEST_F(AdmissionTest, PodsOfAProjectGetSchedulerProjectAndClass) {
  EXPECT_EQ(Refused("pods", Pod("schedulerName: default-scheduler, priority: 0, preemptionPolicy: "
                                "PreemptLowerPriority")),
            "");
  EXPECT_EQ(json::Print(*json::Find(object_, {"spec"})),
            R"({"schedulerName":"swell","containers":[{"name":"main","image":"i"}],)"
            R"("priorityClassName":"train"})");
  EXPECT_EQ(json::Print(*json::Find(object_, {"metadata", "labels"})),
            R"({"swell.dev/project":"team"})");
  EXPECT_EQ(
      Refused("pods", Pod("priorityClassName: build", "labels: {a: b, swell.dev/workload: x}")),
      "");
  EXPECT_EQ(json::GetString(object_, {"spec", "priorityClassName"}), "build");
  EXPECT_EQ(json::GetString(object_, {"metadata", "labels", "a"}), "b");
}

TEST_F(AdmissionTest, PeoplesWorkCarriesTheirName) {
  auto user_of = [&](std::string_view resource, const std::string& yaml) {
    EXPECT_EQ(Refused(resource, yaml), "");
    return std::string(api::Annotation(object_, api::keys::kUser));
  };
  const std::string claims = "annotations: {swell.dev/user: zoe}";
  const std::string job =
      "{metadata: {name: j}, spec: {pytorchReplicaSpecs: {Master: {template: {spec: {containers: "
      "[{name: pytorch, image: i}]}}}}}}";
  user_ = json::Object{{"username", "alice"}, {"groups", json::Array{"system:authenticated"}}};
  EXPECT_EQ(user_of("pods", Pod("")), "alice");
  EXPECT_EQ(user_of("pods", Pod("", claims)), "alice");
  EXPECT_EQ(user_of("pytorchjobs.kubeflow.org", job), "alice");
  // Controllers bring the name from the work, and masters whom they act for.
  user_ = json::Object{{"username", "system:serviceaccount:swell-system:swell-controller"}};
  EXPECT_EQ(user_of("pods", Pod("", claims)), "zoe");
  user_ = json::Object{{"username", "admin"}, {"groups", json::Array{"system:masters"}}};
  EXPECT_EQ(user_of("pods", Pod("", claims)), "zoe");
}

TEST_F(AdmissionTest, ACronsJobsCarryTheNameOfWhoWroteThemAndKeepTheLimits) {
  const auto cron = [](std::string_view metadata, int gpus) {
    return StrCat(
        "{metadata: {name: c}, spec: {schedule: '@daily', template: {apiVersion: kubeflow.org/v1, "
        "kind: PyTorchJob, workload: {",
        metadata,
        "spec: {pytorchReplicaSpecs: {Master: {template: {spec: {containers: [{name: pytorch, "
        "image: i, resources: {limits: {nvidia.com/gpu: ",
        gpus, "}}}]}}}}}}}}}");
  };
  const auto user_of = [&] {
    return json::GetString(
        object_, {"spec", "template", "workload", "metadata", "annotations", api::keys::kUser});
  };
  constexpr std::string_view kCrons = "crons.apps.kubedl.io";
  constexpr std::string_view kForged = "metadata: {annotations: {swell.dev/user: zoe}}, ";
  user_ = json::Object{{"username", "alice"}, {"groups", json::Array{"system:authenticated"}}};
  EXPECT_EQ(Refused(kCrons, cron("", 1)), "");
  EXPECT_EQ(user_of(), "alice");
  EXPECT_EQ(Refused(kCrons, cron(kForged, 1)), "");
  EXPECT_EQ(user_of(), "alice");
  EXPECT_EQ(Refused(kCrons, cron("", 5)),
            "needs 5 GPUs at once; the limit of project \"team\" is 4");
  EXPECT_EQ(Refused(kCrons, "{metadata: {name: c}, spec: {schedule: '@never', template: {}}}"),
            "Cron can not run: spec.schedule: Invalid value: \"@never\": expected exactly 5 "
            "fields, found 1");
  EXPECT_EQ(
      Refused(kCrons,
              "{metadata: {name: c}, spec: {schedule: '@daily', template: {apiVersion: "
              "kubeflow.org/v1, kind: PyTorchJob, workload: {spec: {pytorchReplicaSpecs: "
              "{Master: {replicas: one, template: {spec: {containers: [{name: pytorch, image: "
              "i}]}}}}}}}}}"),
      "Cron can not run: spec.template.workload.spec.pytorchReplicaSpecs.Master.replicas: "
      "Invalid value: \"string\": spec.pytorchReplicaSpecs.Master.replicas in body must be of type "
      "integer: \"string\"");
  // A change of the time leaves it; who changes the jobs answers for them.
  operation_ = "UPDATE";
  EXPECT_EQ(Refused(kCrons, cron(kForged, 1)), "");
  EXPECT_EQ(user_of(), "alice");
  old_ = object_;
  user_ = json::Object{{"username", "bob"}, {"groups", json::Array{"system:authenticated"}}};
  json::Value later = old_;
  json::Set(later, {"spec", "schedule"}, "@hourly");
  EXPECT_EQ(Refused(kCrons, json::PrintYaml(later)), "");
  EXPECT_EQ(user_of(), "alice");
  EXPECT_EQ(Refused(kCrons, cron(kForged, 2)), "");
  EXPECT_EQ(user_of(), "bob");
  // The same words as another kind are another job.
  json::Value kind = old_;
  json::Set(kind, {"spec", "template"},
            json::Object{{"apiVersion", "swell.dev/v1"},
                         {"kind", "TrainingJob"},
                         {"workload", *json::Find(Roles(5), {"workload"})}});
  old_ = kind;
  json::Set(old_, {"spec", "template", "kind"}, "PyTorchJob");
  json::Set(old_, {"spec", "template", "apiVersion"}, "kubeflow.org/v1");
  EXPECT_EQ(Refused(kCrons, json::PrintYaml(kind)),
            "needs 5 GPUs at once; the limit of project \"team\" is 4");
}

TEST_F(AdmissionTest, ACronThatWasWrongBeforeMayStaySo) {
  constexpr std::string_view kCrons = "crons.apps.kubedl.io";
  constexpr std::string_view kWrong =
      "{metadata: {name: c}, spec: {schedule: '@every 1h', suspend: false, template: {apiVersion: "
      "xdl.kubedl.io/v1alpha1, kind: XDLJob, workload: {spec: {}}}}}";
  const std::string refusal =
      "Cron can not run: spec.schedule: Invalid value: \"@every 1h\": @every is not "
      "supported; write five fields, such as */5 * * * *";
  user_ = json::Object{{"username", "alice"}, {"groups", json::Array{"system:authenticated"}}};
  EXPECT_EQ(Refused(kCrons, kWrong), refusal);
  operation_ = "UPDATE";
  old_ = object_;
  json::Value suspended = old_;
  json::Set(suspended, {"spec", "suspend"}, true);
  EXPECT_EQ(Refused(kCrons, json::PrintYaml(suspended)), "");
  EXPECT_EQ(json::Print(object_), json::Print(suspended));
  // What has no job at all, too.
  json::Value bare = old_;
  json::Remove(bare, {"spec", "template"});
  EXPECT_EQ(Refused(kCrons, json::PrintYaml(bare)), "");
  // But nothing new may be wrong, unless it goes.
  json::Value worse = old_;
  json::Set(worse, {"spec", "schedule"}, "@never");
  EXPECT_NE(Refused(kCrons, json::PrintYaml(worse)), "");
  json::Set(worse, {"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z");
  EXPECT_EQ(Refused(kCrons, json::PrintYaml(worse)), "");
  // KubeDL knows more kinds and schedules.
  operation_ = "CREATE";
  Open({.others_crons = true});
  EXPECT_EQ(Refused(kCrons, kWrong), "");
  EXPECT_EQ(json::GetString(object_, {"spec", "template", "workload", "metadata", "annotations",
                                      api::keys::kUser}),
            "alice");
}

TEST_F(AdmissionTest, OthersStayAsTheyAre) {
  for (const std::string& pod :
       {Pod("schedulerName: volcano"), Pod("nodeName: node-0"),
        Pod("",
            "ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: u, "
            "controller: true}]")}) {
    const json::Value review = Ask("pods", pod, "team");
    EXPECT_EQ(json::Print(*json::Find(review, {"response"})), R"({"uid":"u-1","allowed":true})");
  }
  const json::Value review = Ask("pods", Pod(""), "elsewhere");
  EXPECT_EQ(json::Print(*json::Find(review, {"response"})), R"({"uid":"u-1","allowed":true})");
  EXPECT_EQ(Refused("configmaps", "{metadata: {name: c}}"), "");
  EXPECT_TRUE(json::GetBool(admission_->Review(json::Value("nonsense")), {"response", "allowed"}));
}

TEST_F(AdmissionTest, WhatCanNeverRunIsRefusedWithTheReason) {
  EXPECT_EQ(Refused("pods", Pod("", "labels: {swell.dev/project: nobody}"), "default"),
            "project \"nobody\" does not exist; those with work are other, team");
  EXPECT_EQ(Refused("pods", Pod("", "labels: {swell.dev/project: lab}")),
            "project \"lab\" has projects below it, and work belongs to one of those; those with "
            "work are other, team");
  EXPECT_EQ(Refused("pods", Pod("", "labels: {swell.dev/project: other}")),
            "project \"other\": namespace \"team\" is project team's, which what runs there is "
            "charged to");
  EXPECT_EQ(Refused("pods", Pod("priorityClassName: urgent")),
            "no PriorityClass with name urgent was found");
  EXPECT_EQ(
      Refused("pods", Pod("", "annotations: {swell.dev/gpu-fraction: '1.5'}")),
      "metadata.annotations[swell.dev/gpu-fraction]: Invalid value: \"1.5\": must be a part of "
      "a GPU, at least 0.01 and at most 1");
  EXPECT_EQ(Refused("pods", Gpus(16)),
            "requests 16 of nvidia.com/gpu; the largest node that it may run on has 8");
  EXPECT_EQ(
      Refused("pods",
              "{metadata: {name: p}, spec: {containers: [{name: main, image: i, resources: "
              "{requests: {memory: 9000Gi}}}]}}"),
      "requests 9000 GiB of memory; the largest node that it may run on has 128 GiB of memory");
  EXPECT_EQ(Refused("pods",
                    "{metadata: {name: p}, spec: {containers: [{name: main, image: i, resources: "
                    "{limits: {nvidia.com/gpus: 1}}}]}}"),
            "requests 1 of nvidia.com/gpus; the largest node that it may run on has 0; did you "
            "mean nvidia.com/gpu?");
  EXPECT_EQ(Refused("pods", Gpus(5)), "needs 5 GPUs at once; the limit of project \"team\" is 4");
  EXPECT_EQ(Refused("pods", Gpus(4)), "");
  EXPECT_EQ(Refused("pods", Pod("nodeSelector: {zone: moon}")),
            "spec.nodeSelector: no node has the labels zone=moon");
  EXPECT_EQ(
      Refused("pods",
              "{metadata: {name: p}, spec: {priorityClassName: build, containers: "
              "[{name: main, image: i, resources: {limits: {nvidia.com/gpu: 3}}}]}}"),
      "needs 3 GPUs at once; work of priority class \"build\" is never preempted, and must fit "
      "the quota of project \"team\", which is 2");
}

TEST_F(AdmissionTest, WhatAClassOfDevicesStandsForIsForTheScheduler) {
  const std::string pod =
      "{metadata: {name: p}, spec: {containers: [{name: main, image: i, resources: {limits: "
      "{example.com/acc: 1}}}]}}";
  EXPECT_EQ(Refused("pods", pod),
            "requests 1 of example.com/acc; the largest node that it may run on has 0");
  cluster_.Create(
      "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: acc}, spec: "
      "{extendedResourceName: example.com/acc}}");
  cluster_.Run(kSecond);
  EXPECT_EQ(Refused("pods", pod), "");
}

TEST_F(AdmissionTest, AProjectThatIsBeingDeletedTakesNoNewWork) {
  ASSERT_TRUE(
      cluster_
          .Patch(client::resources::kProjects, "team", "metadata: {finalizers: [swell.dev/in-use]}")
          .ok());
  ASSERT_TRUE(cluster_.Delete(client::resources::kProjects, "team").ok());
  cluster_.Run(kSecond);
  EXPECT_EQ(Refused("pods", Pod("")), "project \"team\" is being deleted and takes no new work");
  EXPECT_EQ(Refused("pods", Pod("",
                                "ownerReferences: [{apiVersion: v1, kind: Job, name: j, uid: u, "
                                "controller: true}]")),
            "");
}

TEST_F(AdmissionTest, WhereNodesMayComeTheLargestOneIsAWarning) {
  Open({.admit_oversized_pods = true});
  const json::Value review = Ask("pods", Gpus(16), "default");
  EXPECT_EQ(json::Print(*json::Find(review, {"response"})), R"({"uid":"u-1","allowed":true})");
  const json::Value ours =
      Ask("pods",
          "{metadata: {name: p}, spec: {schedulerName: swell, containers: [{name: main, image: i, "
          "resources: {limits: {nvidia.com/gpu: 16}}}]}}",
          "default");
  EXPECT_EQ(json::Print(*json::Find(ours, {"response", "warnings"})),
            R"(["requests 16 of nvidia.com/gpu; the largest node that it may run on has 8"])");
}

TEST_F(AdmissionTest, JobsByWhatTheirGangNeeds) {
  auto job = [](int replicas, std::string_view more) {
    return StrCat("{metadata: {name: j}, spec: {roles: {worker: {replicas: ", replicas, ", ", more,
                  "template: {spec: {containers: [{name: main, image: i, resources: {limits: "
                  "{nvidia.com/gpu: 1}}}]}}}}}}");
  };
  EXPECT_EQ(Refused("trainingjobs.swell.dev", job(6, "")),
            "needs 6 GPUs at once; the limit of project \"team\" is 4");
  EXPECT_EQ(
      Refused("trainingjobs.swell.dev", job(6, "elastic: {minReplicas: 2, maxReplicas: 6}, ")), "");
  EXPECT_EQ(json::GetString(object_, {"spec", "priorityClassName"}), "train");
  EXPECT_EQ(json::GetString(object_, {"metadata", "labels", "swell.dev/project"}), "team");
  EXPECT_EQ(
      Refused("trainingjobs.swell.dev", job(6, "elastic: {minReplicas: 9, maxReplicas: 6}, ")),
      "TrainingJob can not run: spec.roles.worker.elastic.minReplicas: Invalid value: 9: must "
      "be between 0 and maxReplicas, 6");
  EXPECT_EQ(Refused("trainingjobs.swell.dev", job(1, "priorityClassName: gold, ")),
            "no PriorityClass with name gold was found");
}

TEST_F(AdmissionTest, AChangedJobNamesPriorityClassesThatExist) {
  constexpr std::string_view kJobs = "trainingjobs.swell.dev";
  auto job = [](std::string_view whole, std::string_view more = "", std::string_view meta = "") {
    return StrCat("{metadata: {name: j", meta, "}, spec: {priorityClassName: ", whole,
                  ", roles: {worker: {replicas: 6, ", more,
                  "template: {spec: {containers: [{name: main, image: i, resources: {limits: "
                  "{nvidia.com/gpu: 1}}}]}}}}}}");
  };
  const std::string refusal = "no PriorityClass with name gold was found";
  operation_ = "UPDATE";
  // What a job needs beside is for its creation: it runs already.
  old_ = json::ParseYaml(job("train"))->front();
  EXPECT_EQ(Refused(kJobs, job("build")), "");
  EXPECT_EQ(Refused(kJobs, job("gold")), refusal);
  EXPECT_EQ(Refused(kJobs, job("train", "priorityClassName: gold=0.5, ")), refusal);
  EXPECT_EQ(Refused(kJobs, job("gold", "", ", deletionTimestamp: '2026-01-01T00:00:00Z'")), "");
  // A class that was removed since does not keep others from changing the job.
  old_ = json::ParseYaml(job("gold"))->front();
  EXPECT_EQ(Refused(kJobs, job("gold", "priorityClassName: build, ")), "");
  EXPECT_EQ(Refused(kJobs, job("silver")), "no PriorityClass with name silver was found");
}

}  // namespace
}  // namespace swell::manager
