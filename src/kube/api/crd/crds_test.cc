#include "kube/api/crd/crds.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/json_test_util.h"
#include "kube/api/schema/scheme.h"

namespace swell::api {
namespace {

using json::J;

std::string Errors(const std::vector<FieldError>& errors) {
  std::string out;
  for (const FieldError& e : errors) out += e.field + ": " + e.message + "\n";
  return out;
}

class CrdsTest : public ::testing::Test {
 protected:
  CrdsTest() {
    for (const json::Value& crd : SwellCrds()) {
      Result<std::vector<CrdVersion>> kinds = KindsOfCrd(crd);
      EXPECT_TRUE(kinds.ok()) << kinds.status().ToString();
      if (!kinds.ok()) continue;
      for (CrdVersion& version : *kinds) scheme_->Register(version.kind, version.storage);
    }
  }
  // What is wrong with an object, after defaulting.
  std::string Check(json::Value& object) {
    KindPtr kind = scheme_->FindKind(
        ParseGvk(json::GetString(object, {"apiVersion"}), json::GetString(object, {"kind"})));
    if (kind == nullptr) return "no such kind";
    std::string out;
    for (const std::string& f : UnknownFields(*kind->schema, object)) out += f + " unknown\n";
    ApplyDefaults(*kind->schema, object);
    DefaultObject(*kind, object);
    out += Errors(ValidateAgainst(*kind->schema, object));
    out += Errors(ValidateObject(*kind, object, nullptr));
    return out;
  }
  std::unique_ptr<Scheme> scheme_ = Scheme::BuiltIn();
};

TEST_F(CrdsTest, AllAreValidByTheRulesForEverybody) {
  std::vector<json::Value> crds = SwellCrds();
  EXPECT_EQ(crds.size(), 28u);
  KindPtr kind = scheme_->FindKind({"apiextensions.k8s.io", "v1", "CustomResourceDefinition"});
  for (json::Value& crd : crds) {
    EXPECT_EQ(UnknownFields(*kind->schema, crd), std::vector<std::string>{})
        << json::GetString(crd, {"metadata", "name"});
    EXPECT_EQ(Check(crd), "") << json::GetString(crd, {"metadata", "name"});
    EXPECT_LT(json::Print(crd).size(), 64u << 10);
  }
}

TEST_F(CrdsTest, WhatPodsDoNotHaveIsFoundInTheTemplatesOfJobs) {
  auto unknown = [this](const char* kind, const char* spec) {
    const json::Value job = json::Object{{"spec", J(spec)}};
    const KindPtr known = scheme_->FindKind(ParseGvk(kind[0] == 'T'   ? "swell.dev/v1"
                                                     : kind[0] == 'E' ? "elasticdl.org/v1alpha1"
                                                                      : "kubeflow.org/v1",
                                                     kind));
    return Join(UnknownFields(*known->schema, job, &PodTemplateSchema()), " ");
  };
  EXPECT_EQ(unknown("TrainingJob", R"({"roles":{"worker":{"replica":1,"template":{"metadate":{},
      "spec":{"containers":[{"name":"c","image":"i","resoruces":{},
      "resources":{"limits":{"nvidia.com/gpu":1}}}],"tolerations":[{"key":"a"}]}}}}})"),
            "spec.roles.worker.replica spec.roles.worker.template.metadate "
            "spec.roles.worker.template.spec.containers[0].resoruces");
  EXPECT_EQ(unknown("PyTorchJob", R"({"pytorchReplicaSpecs":{"Worker":{"template":{"spec":{
      "hostNetwork":true,"nodeSelektor":{}}}}}})"),
            "spec.pytorchReplicaSpecs.Worker.template.spec.nodeSelektor");
  EXPECT_EQ(unknown("XGBoostJob", R"({"xgbReplicaSpecs":{"Master":{"kind":"Pod","template":{
      "apiVersion":"v1","kind":"Pod","spec":{"kind":"Pod"}}}}})"),
            "spec.xgbReplicaSpecs.Master.kind spec.xgbReplicaSpecs.Master.template.spec.kind")
      << "a template may be headed like a Pod";
  EXPECT_EQ(unknown("ElasticDLJob", R"({"elasticdlReplicaSpecs":{},"epochs":1})"), "spec.epochs");
}

TEST_F(CrdsTest, ATrainJobsMisspelledFieldsAreFound) {
  const KindPtr kind = scheme_->FindKind(ParseGvk("trainer.kubeflow.org/v1alpha1", "TrainJob"));
  auto unknown = [&](const char* spec) {
    return Join(UnknownFields(*kind->schema, json::Object{{"spec", J(spec)}}), " ");
  };
  EXPECT_EQ(unknown(R"({"runtimeRef":{"name":"r"},"trianer":{},
      "trainer":{"comand":["x"],"env":[{"name":"A"}],"resourcesPerNode":{"limits":{"cpu":1}}}})"),
            "spec.trianer spec.trainer.comand");
  EXPECT_EQ(unknown(R"({"podTemplateOverrides":[{"targetJobs":[{"name":"node"}],
      "spec":{"hostNetwork":true,"tolerations":[{"key":"a"}]}}]})"),
            "spec.podTemplateOverrides[0].spec.hostNetwork");
  EXPECT_EQ(unknown(R"({"podSpecOverrides":[{"targetJobs":[{"name":"node"}],"hostPID":true,
      "nodeSelector":{"a":"b"}}]})"),
            "spec.podSpecOverrides[0].hostPID");
  EXPECT_EQ(unknown(R"({"podTemplateOverrides":[{"targetJobs":[{"name":"node"}]}],
      "initializer":{"model":{"storageUri":"hf://a"}},"labels":{"a":"b"}})"),
            "");
}

TEST_F(CrdsTest, ARunaiWorkloadsFieldsAreWrittenAsRunaiWritesThem) {
  auto wrong = [&](std::string_view spec) {
    json::Value job = J(StrCat(R"({"apiVersion":"run.ai/v2alpha1","kind":"TrainingWorkload",)"
                               R"("metadata":{"name":"a","namespace":"n"},"spec":{)",
                               spec, "}}"));
    return Check(job);
  };
  EXPECT_EQ(wrong(R"("image":{"value":"i"},"gpu":{"value":"1"},"cpu":{"value":0.5},
      "environment":{"items":{"A":{"value":"b"}}})"),
            "");
  EXPECT_EQ(wrong(R"("image":{"value":"i"},"gpus":{"value":"1"},"name":{"val":"x","value":"a"})"),
            "spec.gpus unknown\nspec.name.val unknown\n");
  EXPECT_EQ(wrong(R"("gpu":{"value":"1"})"), "spec.image: Required value\n");
  EXPECT_EQ(wrong(R"("image":"i")"),
            "spec.image: Invalid value: \"string\": spec.image in body must be of type object: "
            "\"string\"\n");
}

TEST_F(CrdsTest, AVolcanoJobsMisspelledFieldsAreFound) {
  const KindPtr kind = scheme_->FindKind(ParseGvk("batch.volcano.sh/v1alpha1", "Job"));
  const json::Value job =
      json::Object{{"spec", J(R"({"minAvailabel":1,"suspend":true,"networkTopology":{"mode":"soft"},
      "tasks":[{"name":"w","replica":1,"topologyPolicy":"none","template":{"spec":{"containers":
      [{"name":"c","imagee":"i"}],"tolerations":[{"key":"a"}]}}}]})")}};
  EXPECT_EQ(Join(UnknownFields(*kind->schema, job, &PodTemplateSchema()), " "),
            "spec.minAvailabel spec.tasks[0].replica "
            "spec.tasks[0].template.spec.containers[0].imagee");
}

TEST_F(CrdsTest, PodGroupDefaultsAndRules) {
  json::Value group = J(R"({"apiVersion":"swell.dev/v1","kind":"PodGroup",
      "metadata":{"name":"g","namespace":"default"},
      "spec":{"podSets":[{"name":"worker"}],"groups":[{"name":"r","topology":{"name":"dc",
      "required":"example.com/rack"}}]}})");
  EXPECT_EQ(Check(group), "");
  EXPECT_EQ(json::GetString(group, {"spec", "onPreemption"}), "Requeue");
  EXPECT_EQ(json::GetString(group, {"spec", "preemptUnit"}), "Gang");
  EXPECT_EQ(json::GetInt(json::GetArray(group, {"spec", "podSets"})[0], {"minMember"}), 1);
  json::Set(group, {"spec", "onPreemption"}, json::Value("Explode"));
  EXPECT_NE(Check(group).find("spec.onPreemption: Unsupported value: \"Explode\": supported "
                              "values: \"Fail\", \"Requeue\""),
            std::string::npos)
      << Check(group);
  json::Remove(group, {"spec", "onPreemption"});
  json::Set(group, {"spec", "podSets"}, J(R"([{"name":"a"},{"name":"a"}])"));
  EXPECT_NE(Check(group).find("spec.podSets[1]: Duplicate value"), std::string::npos);
}

TEST_F(CrdsTest, KubeflowsJobWithLegacyFields) {
  json::Value job = J(R"({"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob",
      "metadata":{"name":"j"},"spec":{"cleanPodPolicy":"None","pytorchReplicaSpecs":{
      "Master":{"replicas":1,"restartPolicy":"Never","template":{
        "metadata":{"creationTimestamp":null,"labels":{"a":"b"}},
        "spec":{"containers":[{"name":"pytorch","image":"x","env":[{"name":"A","value":"1"}],
        "resources":{"limits":{"nvidia.com/gpu":4}}}],"tolerations":[],
        "priorityClassName":"medium"}}},
      "Worker":{"replicas":2,"template":{"spec":{"containers":[{"name":"pytorch"}]}}}}}})");
  EXPECT_EQ(Check(job), "");
  json::Value before = job;
  KindPtr kind = scheme_->FindKind({"kubeflow.org", "v1", "PyTorchJob"});
  PruneUnknown(*kind->schema, job);
  EXPECT_TRUE(json::Equal(job, before)) << json::Print(job);
  EXPECT_TRUE(kind->has_scale);
  EXPECT_TRUE(kind->has_status);
  ASSERT_EQ(kind->columns.size(), 2u);
  EXPECT_EQ(kind->columns[0].name, "State");
  EXPECT_EQ(kind->columns[0].json_path, ".status.conditions[-1:].type");
  json::Set(job, {"spec", "pytorchReplicaSpecs", "Master", "restartPolicy"},
            json::Value("Sometimes"));
  EXPECT_NE(Check(job).find("spec.pytorchReplicaSpecs.Master.restartPolicy: Unsupported value"),
            std::string::npos);
}

TEST_F(CrdsTest, KubedlsJobFromItsTutorial) {
  json::Value job = J(R"({"apiVersion":"training.kubedl.io/v1alpha1","kind":"PyTorchJob",
      "metadata":{"name":"resnet","namespace":"elastic-job"},"spec":{"enableElastic":true,
      "elasticPolicy":{"rdzvBackend":"etcd","rdzvEndpoint":"etcd-service:2379","minReplicas":1,
      "maxReplicas":3,"nProcPerNode":1},"pytorchReplicaSpecs":{
      "Master":{"replicas":1,"restartPolicy":"ExitCode","template":{"spec":{"containers":[
        {"name":"pytorch","image":"kubedl/pytorch-dist-example","imagePullPolicy":"Always"}]}}},
      "Worker":{"replicas":1,"restartPolicy":"OnFailure","template":{"spec":{"volumes":[
        {"name":"checkpoint","persistentVolumeClaim":{"claimName":"pvc-torch-checkpoint"}}],
        "containers":[{"name":"pytorch","image":"wanziyu/imagenet:1.1","args":["main.py"],
        "resources":{"limits":{"nvidia.com/gpu":1}}}]}}}}}})");
  EXPECT_EQ(Check(job), "");
}

TEST_F(CrdsTest, TheOtherKinds) {
  const char* const kObjects[] = {
      R"({"apiVersion":"swell.dev/v1","kind":"Project","metadata":{"name":"team-a"},"spec":{
          "parent":"dep","priority":100,"resources":{"gpu":{"quota":4,"limit":-1,
          "overQuotaWeight":2},"cpu":{"quota":0.5}},"nodePools":[{"name":"p","resources":{}}]}})",
      R"({"apiVersion":"swell.dev/v1","kind":"NodePool","metadata":{"name":"p"},"spec":{
          "nodeSelector":{"a":"b"},"placement":{"gpu":"Spread"}}})",
      R"({"apiVersion":"swell.dev/v1","kind":"Topology","metadata":{"name":"dc"},"spec":{
          "levels":["example.com/block","example.com/rack"]}})",
      R"({"apiVersion":"swell.dev/v1","kind":"TrainingJob","metadata":{"name":"t"},"spec":{
          "project":"team-a","roles":{"worker":{"replicas":2,"elastic":{"minReplicas":1,
          "maxReplicas":4},"template":{"spec":{"containers":[{"name":"main","image":"x"}]}}}},
          "checkpoint":{"intervalSeconds":60},"preemption":{"onPreemption":"Requeue"}}})",
      R"({"apiVersion":"elasticdl.org/v1alpha1","kind":"ElasticDLJob","metadata":{"name":"e"},
          "spec":{"elasticdlReplicaSpecs":{"Master":{"replicas":1},"Worker":{"replicas":2}},
          "data":{"trainingData":"/data","recordsPerTask":100,"gradsToWait":2}}})",
  };
  for (const char* text : kObjects) {
    json::Value object = J(text);
    EXPECT_EQ(Check(object), "") << text;
  }
}

TEST_F(CrdsTest, BadDefinitionsSayWhy) {
  json::Value crd = SwellCrds()[0];
  json::Set(crd, {"metadata", "name"}, json::Value("wrong"));
  Result<std::vector<CrdVersion>> kinds = KindsOfCrd(crd);
  ASSERT_FALSE(kinds.ok());
  EXPECT_EQ(kinds.status().code(), Code::kInvalid);
  ASSERT_EQ(kinds.status().details().causes.size(), 1u);
  EXPECT_EQ(kinds.status().details().causes[0].field, "metadata.name");
  for (const char* text : {"null", "[]", "{}", R"({"spec":7})", R"({"spec":{"versions":{}}})",
                           R"({"spec":{"versions":[7]}})"}) {
    (void)KindsOfCrd(J(text)).ok();  // any answer, no harm
  }
}

}  // namespace
}  // namespace swell::api
