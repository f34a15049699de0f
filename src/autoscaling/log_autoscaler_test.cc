// Jobs that are scaled by metrics, in a whole cluster: KubeDL's PyTorchJob as the walkthrough has
// it, and TrainingJob. The first member pushes its seconds per step, as the SDK does.
#include <gtest/gtest.h>

#include "autoscaling/scale_target.h"
#include "base/duration.h"
#include "base/strings.h"
#include "jobs/kinds/kubedl_job.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::autoscaling {
namespace {

using client::resources::kPods;
using client::resources::kServices;
using client::resources::kTrainingJobs;
using jobs::kKubedlPyTorchJobs;
using manager::kSecond;
using manager::TestCluster;

class LogAutoscalerTest : public ::testing::Test {
 protected:
  void SetUp() override { cluster_.StartManager(); }

  static std::string Resnet(std::string_view ns = "default",
                            std::string_view more = "enableElastic: true",
                            int max = 3) {
    return StrCat(
        "apiVersion: training.kubedl.io/v1alpha1\nkind: PyTorchJob\n"
        "metadata: {name: resnet, namespace: ",
        ns,
        ", annotations: {swell.dev/autoscale-interval: 2s, swell.dev/autoscale-observations: "
        "'3'}}\n"
        "spec:\n  ",
        more,
        "\n"
        "  elasticPolicy: {rdzvBackend: etcd, rdzvEndpoint: 'etcd-service:2379', minReplicas: 1, "
        "maxReplicas: ",
        max,
        ", nProcPerNode: 1}\n"
        "  pytorchReplicaSpecs:\n"
        "    Master: {replicas: 1, restartPolicy: ExitCode, template: {spec: {containers: "
        "[{name: pytorch, image: m}]}}}\n"
        "    Worker: {replicas: 1, restartPolicy: OnFailure, template: {spec: {containers: "
        "[{name: pytorch, image: w, args: [main.py, --arch=resnet50], resources: "
        "{limits: {nvidia.com/gpu: 1}}}]}}}\n");
  }

  // From now on the job's first worker reports a step each second.
  void Train(const std::string& pod, const std::function<double(int64_t)>& seconds) {
    cluster_.sim.After(kSecond, [this, pod, seconds] {
      auto slash = pod.find('/');
      ++step_;
      std::string ns = pod.substr(0, slash), name = pod.substr(slash + 1);
      json::Value patch;
      json::Set(patch, {"metadata", "annotations", api::keys::kStep}, std::to_string(step_));
      json::Set(patch, {"metadata", "annotations", api::keys::kMetrics},
                json::Print(json::Object{{"latency", seconds(members_[ns])}}));
      cluster_.client->Patch(kPods, ns, name, client::PatchType::kMerge, patch, {});
      cluster_.client->List(kPods, ns, {.label_selector = "replica-type=worker"},
                            [this, ns](const Result<client::ObjectList>& list) {
                              if (!list.ok()) return;
                              members_[ns] = static_cast<int64_t>(list->items.size());
                            });
      Train(pod, seconds);
    });
  }

  std::string Elastic(const std::string& key = "default/resnet") {
    json::SharedValue job = cluster_.Get(kKubedlPyTorchJobs, key);
    const json::Value* found =
        job ? json::Find(*job, {"status", "elasticScaling", "Worker"}) : nullptr;
    if (found == nullptr) return "";
    json::Value copy = *found;
    started_ = json::GetString(copy, {"startTime"});
    json::Remove(copy, {"startTime"});
    return json::Print(copy);
  }
  bool Is(std::string_view condition, const std::string& key = "default/resnet") {
    return Elastic(key).find(StrCat("\"elasticCondition\":\"", condition, "\"")) !=
           std::string::npos;
  }
  // What the autoscaler said with this reason, oldest first.
  std::vector<std::string> Told(std::string_view reason) {
    std::vector<std::pair<std::string, std::string>> found;
    for (const json::SharedValue& event : cluster_.List(client::resources::kEvents)) {
      if (json::GetString(*event, {"reason"}) != reason ||
          json::GetString(*event, {"source", "component"}) != "autoscaler") {
        continue;
      }
      found.emplace_back(json::GetString(*event, {"firstTimestamp"}),
                         json::GetString(*event, {"message"}));
    }
    std::sort(found.begin(), found.end());
    std::vector<std::string> messages;
    for (auto& [time, message] : found) messages.push_back(std::move(message));
    return messages;
  }
  int64_t Replicas(const std::string& key = "default/resnet") {
    return cluster_.Int(kKubedlPyTorchJobs, key,
                        {"spec", "pytorchReplicaSpecs", "Worker", "replicas"});
  }

  TestCluster cluster_;
  int64_t step_ = 0;
  std::map<std::string, int64_t> members_;
  std::string started_;
};

TEST_F(LogAutoscalerTest, TheJobIsMadeAsTheDocumentHasIt) {
  cluster_.AddNode("node-a", 2);
  cluster_.Create(Resnet());
  ASSERT_TRUE(cluster_.Until([&] { return Is("Start"); }));
  EXPECT_EQ(Elastic(), R"({"elasticCondition":"Start","continue":true,"currentReplicas":1})");
  EXPECT_FALSE(started_.empty());
  json::SharedValue job = cluster_.Get(kKubedlPyTorchJobs, "default/resnet");
  const json::Array& conditions = json::GetArray(*job, {"status", "conditions"});
  ASSERT_EQ(conditions.size(), 1u);
  EXPECT_EQ(json::GetString(conditions[0], {"type"}), "Running");
  EXPECT_EQ(json::GetString(conditions[0], {"reason"}), "JobRunning");
  EXPECT_EQ(json::GetString(conditions[0], {"message"}), "PyTorchJob resnet is running.");
  EXPECT_EQ(json::Print(*json::Find(*job, {"status", "replicaStatuses"})),
            R"({"Master":{"active":1},"Worker":{"active":1}})");
  json::SharedValue worker = cluster_.Get(kPods, "default/resnet-worker-0");
  ASSERT_TRUE(worker);
  EXPECT_EQ(json::Print(*json::Find(json::GetArray(*worker, {"spec", "containers"})[0], {"args"})),
            R"(["--rdzv_backend=etcd","--rdzv_endpoint=etcd-service:2379","--rdzv_id=resnet",)"
            R"("--nproc_per_node=1","--nnodes=1:3","main.py","--arch=resnet50"])");
  for (const char* name : {"default/resnet-master-0", "default/resnet-worker-0"}) {
    json::SharedValue service = cluster_.Get(kServices, name);
    ASSERT_TRUE(service) << name;
    EXPECT_EQ(json::GetString(*service, {"spec", "clusterIP"}), "None");
    EXPECT_EQ(json::GetInt(json::GetArray(*service, {"spec", "ports"})[0], {"port"}), 23456);
  }
}

TEST_F(LogAutoscalerTest, ReturnsFromPendingPodsAndGrowsWhenANodeComes) {
  cluster_.AddNode("node-a", 2);
  cluster_.Create(Resnet());
  Train("default/resnet-worker-0", [](int64_t) { return 0.25; });
  ASSERT_TRUE(
      cluster_.Until([&] { return cluster_.PodPhase("default/resnet-worker-2") == "Pending"; }));
  EXPECT_EQ(Elastic(), R"({"elasticCondition":"Continue","continue":true,"currentReplicas":3,)"
                       R"("lastReplicas":2,"message":"Pytorch job continues to be scaled"})");
  ASSERT_TRUE(cluster_.Until([&] { return Is("Stop"); }));
  EXPECT_EQ(Elastic(),
            R"({"elasticCondition":"Stop","continue":false,"currentReplicas":2,"lastReplicas":3,)"
            R"("message":"There exists pending pods, return to the last replicas"})");
  ASSERT_TRUE(cluster_.Until([&] { return !cluster_.Get(kPods, "default/resnet-worker-2"); }));
  EXPECT_FALSE(cluster_.Get(kServices, "default/resnet-worker-2")) << "its service goes with it";
  EXPECT_EQ(Told("Shrunk"),
            (std::vector<std::string>{"Worker shrinks from 3 to 2: there is no room for 1 of 3"}));
  cluster_.Run(std::chrono::minutes(10));
  EXPECT_EQ(Told("Grown").size(), 2u) << "nothing has changed";

  std::string uid = cluster_.PodUid("default/resnet-worker-0");
  cluster_.AddNode("node-b", 1);
  ASSERT_TRUE(cluster_.Until([&] { return Is("ReachMaxReplicas"); }));
  EXPECT_EQ(cluster_.PodPhase("default/resnet-worker-2"), "Running");
  EXPECT_EQ(cluster_.PodUid("default/resnet-worker-0"), uid) << "the job never stopped";
}

TEST_F(LogAutoscalerTest, ReachesTheBestMetricAndRestsThere) {
  cluster_.AddNode("node-a", 8);
  cluster_.Create(Resnet("default", "enableElastic: true", 8));
  Train("default/resnet-worker-0",
        [](int64_t n) { return n < 4 ? 1.5 : 1.5 * static_cast<double>(n) / 2; });
  ASSERT_TRUE(cluster_.Until([&] { return Is("ReachMaxMetric"); }, 120 * kSecond));
  EXPECT_EQ(Elastic(), R"({"elasticCondition":"ReachMaxMetric","continue":false,)"
                       R"("currentReplicas":2,"lastReplicas":4,)"
                       R"("message":"Pytorch job has reached the max metrics"})");
  EXPECT_EQ(Told("Shrunk"),
            (std::vector<std::string>{
                "Worker shrinks from 4 to 2: 1.500 s a step with 2, 3.000 s a step with 4"}));
  cluster_.Run(kSecond * 60);
  json::SharedValue before = cluster_.Get(kKubedlPyTorchJobs, "default/resnet");
  cluster_.Run(std::chrono::minutes(30));
  json::SharedValue after = cluster_.Get(kKubedlPyTorchJobs, "default/resnet");
  EXPECT_EQ(api::ResourceVersion(*before), api::ResourceVersion(*after)) << "nothing is written";
}

TEST_F(LogAutoscalerTest, GoesOnAfterARestart) {
  cluster_.AddNode("node-a", 2);
  cluster_.Create(Resnet());
  Train("default/resnet-worker-0", [](int64_t) { return 0.25; });
  // A new manager every few seconds: memory is in the job alone.
  for (int i = 0; i < 30 && !Is("Stop"); ++i) {
    cluster_.Run(5 * kSecond);
    cluster_.StopManager();
    cluster_.StartManager();
  }
  ASSERT_TRUE(Is("Stop")) << Elastic();
  EXPECT_EQ(Replicas(), 2);
  EXPECT_EQ(Told("Grown").size(), 2u);
}

TEST_F(LogAutoscalerTest, NamespacesAreApart) {
  cluster_.AddNode("node-a", 8);
  cluster_.Create("apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n");
  cluster_.Create(Resnet("default", "enableElastic: true", 4));
  cluster_.Create(Resnet("other", "enableElastic: true", 4));
  Train("default/resnet-worker-0", [](int64_t) { return 0.25; });
  Train("other/resnet-worker-0", [](int64_t n) { return 0.25 * static_cast<double>(n); });
  ASSERT_TRUE(
      cluster_.Until([&] { return Is("ReachMaxReplicas") && Is("ReachMaxMetric", "other/resnet"); },
                     120 * kSecond));
  EXPECT_EQ(Replicas(), 4);
  EXPECT_EQ(Replicas("other/resnet"), 1);
}

TEST_F(LogAutoscalerTest, OrdinaryJobsAreLeftAlone) {
  cluster_.AddNode("node-a", 8);
  cluster_.Create(Resnet("default", "enableElastic: false"));
  Train("default/resnet-worker-0", [](int64_t) { return 0.25; });
  cluster_.Run(60 * kSecond);
  EXPECT_EQ(Replicas(), 1);
  EXPECT_EQ(Elastic(), "");
}

TEST_F(LogAutoscalerTest, ScalingByHandHolds) {
  cluster_.AddNode("node-a", 8);
  cluster_.Create(Resnet("default", "enableElastic: true", 8));
  Train("default/resnet-worker-0", [](int64_t) { return 0.25; });
  ASSERT_TRUE(cluster_.Until([&] { return Is("Continue"); }));
  ASSERT_TRUE(
      cluster_.Patch(kKubedlPyTorchJobs, "default/resnet", "{spec: {replicas: 5}}", "scale").ok());
  cluster_.Run(120 * kSecond);
  EXPECT_EQ(Replicas(), 5);
  EXPECT_TRUE(Is("Stop"));
  EXPECT_EQ(cluster_.PodPhase("default/resnet-worker-4"), "Running");
}

TEST_F(LogAutoscalerTest, GivesMembersAwayWithoutStopping) {
  cluster_.AddNode("node-a", 3);
  cluster_.Create(Resnet());
  Train("default/resnet-worker-0", [](int64_t) { return 0.25; });
  ASSERT_TRUE(cluster_.Until([&] { return Is("ReachMaxReplicas"); }, 120 * kSecond));
  std::string uid = cluster_.PodUid("default/resnet-worker-0");
  cluster_.Create(
      "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: urgent}\nvalue: "
      "1000\n"
      "---\napiVersion: v1\nkind: Pod\nmetadata: {name: other, namespace: default}\nspec: "
      "{schedulerName: swell, priorityClassName: urgent, containers: [{name: c, image: x, "
      "resources: "
      "{limits: {nvidia.com/gpu: 2}}}]}\n");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.PodPhase("default/other") == "Running"; }));
  cluster_.Run(60 * kSecond);
  EXPECT_EQ(cluster_.PodUid("default/resnet-worker-0"), uid);
  EXPECT_TRUE(Is("ReachMaxReplicas")) << Elastic();
  EXPECT_TRUE(cluster_.Condition(kKubedlPyTorchJobs, "default/resnet", "Running"));
  ASSERT_TRUE(cluster_.Delete(kPods, "default/other").ok());
  ASSERT_TRUE(
      cluster_.Until([&] { return cluster_.PodPhase("default/resnet-worker-2") == "Running"; }));
  EXPECT_EQ(cluster_.PodUid("default/resnet-worker-0"), uid);
}

TEST_F(LogAutoscalerTest, EndsWithItsWorkers) {
  cluster_.AddNode("node-a", 2);
  cluster_.Create(Resnet());
  ASSERT_TRUE(cluster_.Until([&] { return Is("Start"); }));
  cluster_.agents->Exit("default/resnet-master-0", 0);
  cluster_.Run(10 * kSecond);
  EXPECT_FALSE(cluster_.Condition(kKubedlPyTorchJobs, "default/resnet", "Succeeded"))
      << "the master has no part in the training";
  cluster_.agents->Exit("default/resnet-worker-0", 0);
  EXPECT_TRUE(cluster_.Until(
      [&] { return cluster_.Condition(kKubedlPyTorchJobs, "default/resnet", "Succeeded"); }));
  EXPECT_EQ(cluster_.Reason(kKubedlPyTorchJobs, "default/resnet", "Succeeded"), "JobSucceeded");
}

TEST_F(LogAutoscalerTest, TrainingJobsSayItInTheirSpec) {
  cluster_.AddNode("node-a", 8);
  cluster_.Create(
      "apiVersion: swell.dev/v1\nkind: TrainingJob\nmetadata: {name: t, namespace: "
      "default}\nspec:\n"
      "  autoscaling: {mode: Metric, step: AddOne, intervalSeconds: 1, observations: 2, metrics: "
      "[{name: latency, regex: 'took (.*)s'}]}\n"
      "  roles: {worker: {replicas: 1, elastic: {minReplicas: 1, maxReplicas: 4}, template: {spec: "
      "{containers: [{name: c, image: x, resources: {limits: {nvidia.com/gpu: 1}}}]}}}}\n");
  Train("default/t-worker-0", [](int64_t) { return 0.1; });
  ASSERT_TRUE(cluster_.Until([&] {
    return cluster_.Int(kTrainingJobs, "default/t", {"spec", "roles", "worker", "replicas"}) == 4;
  }));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.PodPhase("default/t-worker-3") == "Running"; }));
  json::SharedValue job = cluster_.Get(kTrainingJobs, "default/t");
  EXPECT_EQ(Told("Grown"),
            (std::vector<std::string>{"worker grows from 1 to 2: 0.100 s a step with 1",
                                      "worker grows from 2 to 3: 0.100 s a step with 2",
                                      "worker grows from 3 to 4: 0.100 s a step with 3"}));
}

TEST_F(LogAutoscalerTest, SaysWhatCannotBe) {
  cluster_.AddNode("node-a", 8);
  std::string yaml = Resnet();
  yaml.replace(yaml.find("interval: 2s"), 12, "interval: soon");
  cluster_.Create(yaml);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Events("InvalidAutoscaling", "resnet") == 1; }));
  EXPECT_EQ(
      cluster_.EventMessage("InvalidAutoscaling", "resnet"),
      "metadata.annotations[swell.dev/autoscale-interval]: Invalid value: \"soon\": must be a "
      "duration from 1ms to 24h, such as 30s or 1h30m");
}

TEST(ScaleTarget, AnIntervalIsADurationWithinBounds) {
  auto interval = [](const std::string& text) -> std::string {
    const json::Value job = json::Object{
        {"metadata", json::Object{{"annotations", json::Object{{kScaleInterval, text}}}}},
        {"spec", json::Object{{"enableElastic", true},
                              {"elasticPolicy", json::Object{{"maxReplicas", 3}}},
                              {"pytorchReplicaSpecs", json::Object{{"Worker", json::Object()}}}}}};
    const auto target = KubedlScaleTarget(job);
    return target.ok() ? FormatDuration((*target)->policy.interval) : target.status().message();
  };
  EXPECT_EQ(interval("1h"), "1h0m0s");
  EXPECT_EQ(interval("1h30m"), "1h30m0s");
  EXPECT_EQ(interval("90s"), "1m30s");
  EXPECT_EQ(interval("90"), "1m30s");
  EXPECT_EQ(interval("500ms"), "500ms");
  EXPECT_EQ(interval("1.5s"), "1.5s");
  EXPECT_EQ(interval("24h"), "24h0m0s");
  for (const char* wrong : {"24h1ms", "0", "0s", "-1s", "1us", "1h30", "1 h", "soon"}) {
    EXPECT_EQ(interval(wrong),
              StrCat("metadata.annotations[swell.dev/autoscale-interval]: Invalid value: \"", wrong,
                     "\": must be a duration from 1ms to 24h, such as 30s or 1h30m"));
  }
}

TEST_F(LogAutoscalerTest, NamesThePatternThatIsNone) {
  cluster_.AddNode("node-a", 8);
  std::string yaml = Resnet();
  yaml.replace(yaml.find("autoscale-observations: '3'"), 27, "autoscale-pattern: 'Time (['");
  cluster_.Create(yaml);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Events("InvalidAutoscaling", "resnet") == 1; }));
  EXPECT_EQ(
      cluster_.EventMessage("InvalidAutoscaling", "resnet"),
      "metadata.annotations[swell.dev/autoscale-pattern]: Invalid value: \"Time ([\": missing "
      "]: [");
}

TEST_F(LogAutoscalerTest, KubedlsStatusHasItsSizeBehindWhatTheDocumentShows) {
  cluster_.AddNode("node-a", 2);
  cluster_.Create(Resnet());
  Train("default/resnet-worker-0", [](int64_t) { return 0.25; });
  ASSERT_TRUE(cluster_.Until([&] { return Is("Stop"); }));
  json::SharedValue job = cluster_.Get(kKubedlPyTorchJobs, "default/resnet");
  EXPECT_FALSE(json::Find(*job, {"status", "elastic"}));
  EXPECT_EQ(json::GetInt(*job, {"status", "size", "replicas"}), 2);
  EXPECT_EQ(json::GetInt(*job, {"status", "size", "maxReplicas"}), 3);
  const json::Array& history = json::GetArray(*job, {"status", "size", "history"});
  ASSERT_EQ(history.size(), 2u) << json::PrintPretty(*job, 2);
  EXPECT_EQ(json::GetString(history[0], {"reason"}), "started");
  EXPECT_EQ(json::GetString(history[1], {"reason"}), "scaled from 1 to 2");
  // The autoscaler told of each change of what is wanted; nobody else did.
  EXPECT_EQ(Told("Grown").size() + Told("Shrunk").size(),
            static_cast<size_t>(cluster_.Events("Grown") + cluster_.Events("Shrunk")));
}

}  // namespace
}  // namespace swell::autoscaling
