// Which pods the words of `swell logs` mean where they name no job.
#include "cli/pods/pod_choice.h"

#include "cli/cli_test_util.h"

namespace swell::cli {
namespace {

class PodChoiceTest : public CliTest {
 protected:
  PodChoiceTest() {
    Create(
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: "
        "{matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: "
        "[{name: c, image: i}]}}}}");
    LabelledPod("web-1", "app: web");
    LabelledPod("web-2", "app: web");
    LabelledPod("other", "app: other");
    // Another operator's job, whose pods are placed as a group.
    LabelledPod("ray-head", "swell.dev/pod-group: ray-1");
    Create(
        "{apiVersion: swell.dev/v1, kind: PodGroup, metadata: {name: ray-1, ownerReferences: "
        "[{apiVersion: ray.io/v1, kind: RayCluster, name: ray, uid: u}]}, spec: {podSets: [{name: "
        "all, minMember: 1}]}}");
  }
  void LabelledPod(const std::string& name, const std::string& labels) {
    Create(StrCat("{apiVersion: v1, kind: Pod, metadata: {name: ", name, ", labels: {", labels,
                  "}}, spec: {containers: [{name: c, image: i}]}}"));
  }
  // Their names, or what is wrong.
  std::string PodsOf(const std::string& words) {
    Api api(env_, *env_.connect({}));
    const auto pods = PodsOfWorkload(api, "default", words);
    if (!pods.ok()) return pods.status().message();
    std::vector<std::string> names;
    for (const json::SharedValue& pod : *pods) names.emplace_back(api::Name(*pod));
    return Join(names, " ");
  }
};

TEST_F(PodChoiceTest, AWorkloadHasThePodsThatItSelects) {
  EXPECT_EQ(PodsOf("web"), "web-1 web-2");
  EXPECT_EQ(PodsOf("deploy/web"), "web-1 web-2");
  EXPECT_EQ(PodsOf("deployments/web"), "web-1 web-2");
  EXPECT_EQ(PodsOf("sts/web"), "statefulsets.apps \"web\" not found");
}

TEST_F(PodChoiceTest, AnotherOperatorsJobHasThePodsOfItsGroup) {
  EXPECT_EQ(PodsOf("ray"), "ray-head");
  EXPECT_EQ(PodsOf("raycluster/ray"), "ray-head");
  EXPECT_EQ(PodsOf("rayjob/ray"), "no workload \"rayjob/ray\" in namespace \"default\"");
  EXPECT_EQ(PodsOf("nobody"), "no workload \"nobody\" in namespace \"default\"");
}

TEST_F(PodChoiceTest, AServerIsKnownByTheNameThatArenaGaveIt) {
  env_.what_if.simulate = [](const StateView&, WallTime) { return json::Value(json::Object{}); };
  const auto serve = [this](const std::string& version) {
    return Run({"arena", "serve", "custom", "--name=bert", "--image=i", "--version=" + version});
  };
  ASSERT_EQ(serve("v1"), 0) << err_;
  EXPECT_EQ(PodsOf("bert"), "deployment/bert-v1-custom-serving has no pods");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"swell", "exec", "bert", "--", "ls"}, {"swell", "logs", "bert"}}) {
    EXPECT_EQ(Run(words), 1);
    EXPECT_EQ(err_, "swell: deployment/bert-v1-custom-serving has no pods\n");
  }
  LabelledPod("one", "app: custom-serving, release: bert-v1");
  EXPECT_EQ(PodsOf("bert"), "one");
  ASSERT_EQ(Run({"swell", "why", "bert"}), 0) << err_;
  EXPECT_TRUE(out_.starts_with("one ")) << out_;
  ASSERT_EQ(Run({"swell", "describe", "bert"}), 0) << err_;
  EXPECT_NE(out_.find(" bert-v1-custom-serving\n"), std::string::npos) << out_;
  ASSERT_EQ(Run({"swell", "get", "bert", "-o", "name"}), 0) << err_;
  EXPECT_EQ(out_, "deployment.apps/bert-v1-custom-serving\n");
  EXPECT_EQ(Run({"swell", "get", "pods,nobody"}), 1);
  EXPECT_EQ(Run({"swell", "list", "bert"}), 1);
  EXPECT_EQ(
      err_,
      "swell: job \"bert\" not found in namespace \"default\"; it is a server: arena serve get "
      "bert, swell logs bert\n");
  ASSERT_EQ(serve("v2"), 0) << err_;
  EXPECT_EQ(Run({"swell", "delete", "bert"}), 2);
  EXPECT_NE(err_.find("\"bert\" is deployment.apps/bert-v1-custom-serving and "
                      "deployment.apps/bert-v2-custom-serving; say which one"),
            std::string::npos)
      << err_;
  ASSERT_EQ(Run({"swell", "delete", "bert-v1-custom-serving"}), 0) << err_;
  ASSERT_EQ(Run({"swell", "delete", "bert"}), 0) << err_;
  EXPECT_EQ(out_, "deployment.apps \"bert-v2-custom-serving\" deleted\n");
}

TEST_F(PodChoiceTest, SeveralWorkloadsAreGotAtOnce) {
  Create(
      "{apiVersion: apps/v1, kind: Deployment, metadata: {name: api}, spec: {selector: "
      "{matchLabels: {app: api}}, template: {metadata: {labels: {app: api}}, spec: {containers: "
      "[{name: c, image: i}]}}}}");
  ASSERT_EQ(Run({"swell", "get", "web,api", "-o", "name"}), 0) << err_;
  EXPECT_EQ(out_, "deployment.apps/web\ndeployment.apps/api\n");
}

TEST_F(PodChoiceTest, LogsSaysThatThereIsNoJobWhereNothingElseHasTheName) {
  EXPECT_EQ(Run({"swell", "logs", "nobody"}), 1);
  EXPECT_TRUE(err_.starts_with("swell: job \"nobody\" not found in namespace \"default\"")) << err_;
  EXPECT_EQ(Run({"swell", "logs", "web", "--previous"}), 2);
  EXPECT_NE(err_.find("--previous: \"web\" has several pods; name one of them"), std::string::npos)
      << err_;
}

TEST_F(PodChoiceTest, DeleteAndWhyTakeACronByItsNameAlone) {
  Create(
      "{apiVersion: batch/v1, kind: CronJob, metadata: {name: nightly}, spec: {schedule: '0 3 * * "
      "*', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, "
      "image: i}]}}}}}}");
  ASSERT_EQ(Run({"swell", "why", "cj", "nightly"}), 0) << err_;
  EXPECT_NE(out_.find("nightly"), std::string::npos) << out_;
  ASSERT_EQ(Run({"swell", "delete", "nightly"}), 0) << err_;
  EXPECT_EQ(out_, "cronjob.batch \"nightly\" deleted\n");
  EXPECT_EQ(Run({"swell", "delete", "nightly"}), 1);
}

}  // namespace
}  // namespace swell::cli
