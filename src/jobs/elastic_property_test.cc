// Elastic jobs under thousands of random preemptions, with simulated training: whatever comes,
// every job keeps between its bounds, ends, and settles down as soon as it is left alone.
#include <cstdlib>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "jobs/kinds/training_job.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::jobs {
namespace {

using client::resources::kPods;
using client::resources::kPyTorchJobs;
using client::resources::kTrainingJobs;
using manager::kSecond;
using manager::PyTorchYaml;
using manager::TestCluster;
constexpr int kNodes = 2;
constexpr int kGpus = 4;

struct Job {
  std::string key;
  int least = 1, most = 1;
  double work_s = 0;  // of one member alone
};

class Sequence {
 public:
  explicit Sequence(uint64_t seed) : random_(seed), cluster_(seed) {}

  int preemptions() const { return preemptions_; }

  void Run() {
    for (int i = 0; i < kNodes; ++i) cluster_.AddNode(StrCat("node-", i), kGpus);
    cluster_.agents->stop_after = std::chrono::milliseconds(100 + random_.Below(2000));
    cluster_.StartManager();
    cluster_.Create(
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\n"
        "value: 1000\n");
    uint64_t jobs = 1 + random_.Below(3);
    for (uint64_t i = 0; i < jobs; ++i) Submit();
    for (uint64_t steps = 3 + random_.Below(8); steps > 0; --steps) {
      Disturb();
      Train(std::chrono::milliseconds(500 + random_.Below(6000)));
    }
    ExpectStableSizes();
    Finish();
  }

 private:
  void Submit() {
    Job job;
    job.least = 1 + static_cast<int>(random_.Below(3));
    job.most = job.least + 1 + static_cast<int>(random_.Below(6));
    job.work_s = 60.0 + static_cast<double>(random_.Below(240));
    std::string name = StrCat("elastic-", jobs_.size());
    job.key = StrCat("default/", name);
    cluster_.Create(
        StrCat("apiVersion: swell.dev/v1\nkind: TrainingJob\nmetadata: {name: ", name,
               ", namespace: default}\nspec:\n  roles:\n    worker:\n      replicas: ", job.most,
               "\n      elastic: {minReplicas: ", job.least, ", maxReplicas: ", job.most,
               "}\n      template: {spec: {containers: [{name: main, image: i, resources: {limits: "
               "{nvidia.com/gpu: 1}}}]}}\n"));
    jobs_.push_back(std::move(job));
  }

  // Somebody more important comes or goes, or a job is asked to change its size.
  void Disturb() {
    uint64_t dice = random_.Below(10);
    if (dice < 5) {
      PyTorchYaml yaml{.name = StrCat("urgent-", ++urgent_),
                       .workers = static_cast<int>(random_.Below(3)),
                       .gpus = 1 + static_cast<int>(random_.Below(2)),
                       .priority = "high"};
      cluster_.Create(yaml.Text());
      present_.push_back(StrCat("default/", yaml.name));
    } else if (dice < 8 && !present_.empty()) {
      size_t which = random_.Below(present_.size());
      ASSERT_TRUE(cluster_.Delete(kPyTorchJobs, present_[which]).ok());
      present_.erase(present_.begin() + static_cast<std::ptrdiff_t>(which));
    } else {
      // Numbers outside the bounds are asked for, too.
      const Job& job = jobs_[random_.Below(jobs_.size())];
      (void)cluster_.Patch(kTrainingJobs, job.key,
                           StrCat("spec: {roles: {worker: {replicas: ", random_.Below(12), "}}}"));
    }
  }

  // By job, all pods of one look.
  std::map<std::string, std::vector<json::SharedValue>> Pods() {
    std::map<std::string, std::vector<json::SharedValue>> pods;
    for (const json::SharedValue& pod : cluster_.List(kPods, "default")) {
      pods[StrCat("default/", api::Label(*pod, api::keys::kPodGroup))].push_back(pod);
    }
    return pods;
  }

  static bool Trains(const json::Value& pod) {
    return api::Phase(pod) == "Running" && !api::IsDeleting(pod) && !controllers::WasPreempted(pod);
  }

  // Time passes; members that run do their share, and a job whose work is done ends.
  void Train(Duration span) {
    for (Duration passed{0}; passed < span; passed += kSecond) {
      cluster_.Run(kSecond);
      std::map<std::string, std::vector<json::SharedValue>> all = Pods();
      for (Job& job : jobs_) {
        int members = 0;
        const std::vector<json::SharedValue>& pods = all[job.key];
        for (const json::SharedValue& pod : pods) members += Trains(*pod);
        CheckBounds(job, pods, members);
        if (members == 0 || job.work_s <= 0) continue;
        if (cluster_.Condition(kTrainingJobs, job.key, "Running")) job.work_s -= members;
        if (job.work_s > 0) continue;
        for (const json::SharedValue& pod : pods) {
          if (Trains(*pod)) cluster_.agents->Exit(api::KeyOf(*pod), 0);
        }
      }
    }
  }

  void CheckBounds(const Job& job, const std::vector<json::SharedValue>& pods, int members) {
    int alive = 0;
    for (const json::SharedValue& pod : pods)
      alive += !api::HasEnded(*pod) && !api::IsDeleting(*pod);
    ASSERT_LE(alive, job.most) << job.key;
    json::SharedValue object = cluster_.Get(kTrainingJobs, job.key);
    ASSERT_TRUE(object);
    if (job.work_s <= 0) return;
    const json::Value* elastic = json::Find(*object, {"status", "elastic"});
    if (elastic != nullptr) {
      ASSERT_LE(json::GetInt(*elastic, {"replicas"}), job.most);
      ASSERT_GE(json::GetInt(*elastic, {"desiredReplicas"}), job.least);
      ASSERT_LE(json::GetInt(*elastic, {"desiredReplicas"}), job.most);
      ASSERT_LE(json::GetArray(*elastic, {"history"}).size(), 48u);
    }
    // A job that says it runs has its least; one that lost more is stopped whole.
    if (json::GetString(*object, {"status", "phase"}) == "Running") {
      ASSERT_GE(members, job.least) << json::PrintPretty(*object, 2);
    }
  }

  int Resizes() {
    int changes = 0;
    for (const Job& job : jobs_) {
      json::SharedValue object = cluster_.Get(kTrainingJobs, job.key);
      const json::Array& history = json::GetArray(*object, {"status", "elastic", "history"});
      changes += static_cast<int>(history.size());
    }
    return changes;
  }

  // Left alone, jobs change size a few times and then no more.
  void ExpectStableSizes() {
    for (const json::SharedValue& group : cluster_.List(client::resources::kPodGroups)) {
      preemptions_ += static_cast<int>(json::GetInt(*group, {"status", "preemptions"}));
    }
    preemptions_ += cluster_.Events("Shrunk");
    for (Job& job : jobs_) job.work_s = job.work_s <= 0 ? job.work_s : 1e6;
    Train(15 * kSecond);
    int shrunk = cluster_.Events("Shrunk"), resizes = Resizes();
    Train(30 * kSecond);
    EXPECT_EQ(cluster_.Events("Shrunk"), shrunk) << "shrinks although nobody came";
    EXPECT_EQ(Resizes(), resizes) << "changes its size although nothing else changed";
  }

  // Everybody else goes: every elastic job ends well.
  void Finish() {
    for (const std::string& key : present_) ASSERT_TRUE(cluster_.Delete(kPyTorchJobs, key).ok());
    for (Job& job : jobs_) job.work_s = std::min(job.work_s, 20.0);
    for (int round = 0; round < 120 && !AllSucceeded(); ++round) Train(kSecond);
    for (const Job& job : jobs_) {
      EXPECT_TRUE(cluster_.Condition(kTrainingJobs, job.key, "Succeeded"))
          << json::PrintPretty(*cluster_.Get(kTrainingJobs, job.key), 2);
    }
  }

  bool AllSucceeded() {
    return std::all_of(jobs_.begin(), jobs_.end(), [this](const Job& job) {
      return cluster_.Condition(kTrainingJobs, job.key, "Succeeded");
    });
  }

  Random random_;
  TestCluster cluster_;
  std::vector<Job> jobs_;
  std::vector<std::string> present_;
  int urgent_ = 0;
  int preemptions_ = 0;
};

// SWELL_SEED replays one sequence; SWELL_SEQUENCES runs more of them.
TEST(ElasticPropertyTest, JobsKeepTheirBoundsSettleDownAndEnd) {
  const char* seed = std::getenv("SWELL_SEED");
  const char* count = std::getenv("SWELL_SEQUENCES");
  uint64_t first = seed ? ParseUint(seed).value_or(1) : 1;
  uint64_t last = seed ? first : ParseUint(count ? count : "").value_or(24);
  int preemptions = 0;
  for (uint64_t i = first; i <= last; ++i) {
    SCOPED_TRACE(StrCat("SWELL_SEED=", i));
    Sequence sequence(i);
    sequence.Run();
    preemptions += sequence.preemptions();
    if (::testing::Test::HasFailure()) break;
  }
  if (!seed) {
    EXPECT_GT(preemptions, static_cast<int>(last) / 2);
  }
  RecordProperty("preemptions", preemptions);
}

TEST(ElasticSizeTest, ABatchThatIsChosenHasAMaximum) {
  TestCluster cluster;
  cluster.AddNode("node-0", 8);
  cluster.StartManager();
  const auto create = [&](const std::string& name, const std::string& batch) {
    cluster.Create(
        StrCat("apiVersion: swell.dev/v1\nkind: TrainingJob\nmetadata: {name: ", name,
               ", namespace: default}\nspec:\n  batch: ", batch,
               "\n  roles: {worker: {replicas: 1, template: {spec: {containers: [{name: main, "
               "image: i}]}}}}\n"));
  };
  create("t", "{effective: Goodput, max: 512, learningRate: AdaScale}");
  ASSERT_TRUE(cluster.Until([&] { return cluster.Get(kPods, "default/t-worker-0") != nullptr; }));
  const json::SharedValue pod = cluster.Get(kPods, "default/t-worker-0");
  std::map<std::string, std::string> env;
  for (const json::Value& entry :
       json::GetArray(json::GetArray(*pod, {"spec", "containers"})[0], {"env"})) {
    env[std::string(json::GetString(entry, {"name"}))] = json::GetString(entry, {"value"});
  }
  EXPECT_EQ(env["SWELL_BATCH_OF"], "goodput");
  EXPECT_EQ(env["SWELL_BATCH_MAX"], "512");
  EXPECT_EQ(env["SWELL_LEARNING_RATE"], "adascale");
  const auto wrong = [](const char* batch) {
    const auto job = json::Parse(StrCat(
        R"({"spec":{"batch":)", batch,
        R"(,"roles":{"worker":{"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}}})"));
    SWELL_CHECK(job.ok());
    return std::string(MakeTrainingJobKind({})->Parse(*job).status().message());
  };
  EXPECT_EQ(wrong(R"({"effective":"Goodput"})"),
            "spec.batch.max: Required value: the largest batch that effective Goodput may choose");
  EXPECT_EQ(wrong(R"({"max":5})"),
            "spec.batch.max: Forbidden: only effective Goodput chooses the batch");
  EXPECT_EQ(wrong(R"({"effective":"Goodput","max":5})"), "");
}

TEST(ElasticSizeTest, ScalingIsClampedToldAndRemembered) {
  TestCluster cluster;
  cluster.AddNode("node-0", 8);
  cluster.StartManager();
  cluster.Create(
      "apiVersion: swell.dev/v1\nkind: TrainingJob\nmetadata: {name: t, namespace: default}\n"
      "spec:\n  batch: {effective: PerReplica, learningRate: Linear}\n"
      "  checkpoint: {directory: /data/c, intervalSeconds: 60, graceSeconds: 90}\n"
      "  roles:\n    worker:\n      replicas: 4\n      elastic: {minReplicas: 2, maxReplicas: 6}\n"
      "      template: {spec: {containers: [{name: main, image: i, resources: {limits: "
      "{nvidia.com/gpu: 1}}}]}}\n");
  auto size = [&](int64_t replicas) {
    return cluster.Until([&] {
      return cluster.Int(kTrainingJobs, "default/t", {"status", "elastic", "replicas"}) == replicas;
    });
  };
  ASSERT_TRUE(size(4));
  json::SharedValue pod = cluster.Get(kPods, "default/t-worker-1");
  std::map<std::string, std::string> env;
  for (const json::Value& entry :
       json::GetArray(json::GetArray(*pod, {"spec", "containers"})[0], {"env"})) {
    env[std::string(json::GetString(entry, {"name"}))] = json::GetString(entry, {"value"});
  }
  EXPECT_EQ(env["PET_NNODES"], "2:6") << "it may grow to 6 while its processes run";
  EXPECT_EQ(env["WORLD_SIZE"], "4");
  EXPECT_EQ(env["SWELL_BATCH_OF"], "rank");
  EXPECT_EQ(env["SWELL_LEARNING_RATE"], "linear");
  EXPECT_EQ(env["SWELL_CHECKPOINT_DIR"], "/data/c");
  EXPECT_EQ(env["SWELL_CHECKPOINT_SECONDS"], "60");
  EXPECT_EQ(json::GetInt(*pod, {"spec", "terminationGracePeriodSeconds"}), 90);
  std::string first = cluster.PodUid("default/t-worker-0");
  cluster.Run(10 * kSecond);
  // As `kubectl scale` does.
  ASSERT_TRUE(cluster.Patch(kTrainingJobs, "default/t", "spec: {replicas: 3}", "scale").ok());
  ASSERT_TRUE(size(3));
  EXPECT_EQ(cluster.EventMessage("Shrunk"), "Shrunk from 4 to 3 replicas, as asked (2 to 6)");
  cluster.Run(10 * kSecond);
  ASSERT_TRUE(cluster.Patch(kTrainingJobs, "default/t", "spec: {replicas: 50}", "scale").ok());
  ASSERT_TRUE(size(6));
  json::SharedValue job = cluster.Get(kTrainingJobs, "default/t");
  EXPECT_EQ(json::GetString(*job, {"status", "elastic", "message"}),
            "50 were asked for; 6 is the most");
  EXPECT_EQ(json::GetString(*job, {"status", "replicaStatuses", "worker", "selector"}),
            "swell.dev/pod-group=t,swell.dev/pod-set=worker");
  EXPECT_EQ(cluster.PodUid("default/t-worker-0"), first) << "nobody was stopped";
  std::vector<std::string> history;
  for (const json::Value& entry : json::GetArray(*job, {"status", "elastic", "history"})) {
    history.push_back(StrCat(json::GetInt(entry, {"replicas"}), " of ",
                             json::GetInt(entry, {"desired"}), ": ",
                             json::GetString(entry, {"reason"})));
  }
  EXPECT_EQ(history, (std::vector<std::string>{"4 of 4: started", "3 of 3: scaled from 4 to 3",
                                               "6 of 6: scaled from 3 to 6"}));
}

TEST(ElasticSizeTest, WhoWaitsToJoinIsNotWaitedForAtTheEnd) {
  TestCluster cluster;
  cluster.AddNode("node-0", 8);
  cluster.StartManager();
  cluster.Create(
      "apiVersion: swell.dev/v1\nkind: TrainingJob\nmetadata: {name: t, namespace: default}\n"
      "spec:\n  roles:\n    worker:\n      replicas: 4\n"
      "      elastic: {minReplicas: 1, maxReplicas: 4}\n"
      "      template: {spec: {containers: [{name: main, image: i, resources: {limits: "
      "{nvidia.com/gpu: 1}}}]}}\n");
  ASSERT_TRUE(cluster.Until([&] { return cluster.Pods("Running") == 4; }));
  for (int i = 0; i < 4; ++i) {
    std::string metrics = StrCat(R"({\"world\": )", i == 3 ? 0 : 3, "}");
    ASSERT_TRUE(
        cluster
            .Patch(kPods, StrCat("default/t-worker-", i),
                   StrCat("metadata: {annotations: {swell.dev/metrics: \"", metrics, "\"}}"))
            .ok());
  }
  cluster.agents->Exit("default/t-worker-0", 0);
  cluster.agents->Exit("default/t-worker-1", 0);
  cluster.Run(10 * kSecond);
  EXPECT_EQ(cluster.PodPhase("default/t-worker-3"), "") << "it waits for nobody";
  EXPECT_EQ(cluster.PodPhase("default/t-worker-2"), "Running") << "it may have something to finish";
  EXPECT_FALSE(cluster.Condition(kTrainingJobs, "default/t", "Succeeded"));
  cluster.agents->Exit("default/t-worker-2", 0);
  EXPECT_TRUE(
      cluster.Until([&] { return cluster.Condition(kTrainingJobs, "default/t", "Succeeded"); }));
}

class TiersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-0", 4);
    cluster_.StartManager();
    for (const auto& [name, value] :
         {std::pair("low", 10), std::pair("medium", 500), std::pair("high", 1000)}) {
      cluster_.Create(
          StrCat("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: ", name,
                 "}\nvalue: ", value, "\n"));
    }
  }
  static std::string Role(std::string_view name, int replicas, std::string_view more) {
    return StrCat("    ", name, ":\n      replicas: ", replicas, "\n", more,
                  "      template: {spec: {containers: [{name: main, image: i, resources: "
                  "{limits: {nvidia.com/gpu: 1}}}]}}\n");
  }
  static std::string Job(std::string_view name, std::string_view priority, std::string_view roles) {
    return StrCat("apiVersion: swell.dev/v1\nkind: TrainingJob\nmetadata: {name: ", name,
                  ", namespace: default}\nspec:\n",
                  priority.empty() ? "" : StrCat("  priorityClassName: ", priority, "\n"),
                  "  roles:\n", roles);
  }
  // "worker-0 high Running job, worker-1 …": class, phase and group of each pod.
  std::string Pods(std::string_view job) {
    std::string text;
    for (const json::SharedValue& pod : cluster_.List(kPods, "default")) {
      if (api::Label(*pod, api::keys::kJobName) != job) continue;
      text += StrCat(text.empty() ? "" : ", ", api::Name(*pod).substr(job.size() + 1), " ",
                     json::GetString(*pod, {"spec", "priorityClassName"}), " ",
                     json::GetString(*pod, {"status", "phase"}), " ",
                     api::Label(*pod, api::keys::kPodGroup));
    }
    return text;
  }
  std::string FailedBecause(std::string_view job) {
    json::SharedValue found = cluster_.Get(kTrainingJobs, StrCat("default/", job));
    const std::optional<api::Condition> failed =
        found ? api::FindCondition(*found, "Failed") : std::nullopt;
    return failed ? std::string(failed->message) : "";
  }

  TestCluster cluster_;
};

TEST_F(TiersTest, HalfOfTheMembersAreAFloor) {
  cluster_.Create(Job("t", "low",
                      Role("worker", 4,
                           "      priorityClassName: high=0.5\n"
                           "      elastic: {minReplicas: 2, maxReplicas: 4}\n")));
  const std::string all =
      "worker-0 high Running t, worker-1 high Running t, worker-2 low Running t.low, "
      "worker-3 low Running t.low";
  ASSERT_TRUE(cluster_.Until([&] { return Pods("t") == all; })) << Pods("t");
  json::SharedValue job = cluster_.Get(kTrainingJobs, "default/t");
  EXPECT_EQ(json::GetString(*job, {"status", "replicaStatuses", "worker", "selector"}),
            "swell.dev/job-name=t,swell.dev/job-role=worker");
  const std::string first = cluster_.PodUid("default/t-worker-0");
  // Three GPUs for somebody in between: two are to be had, and no more.
  for (int i = 0; i < 3; ++i) {
    cluster_.Create(Job(StrCat("m", i), "medium", Role("worker", 1, "")));
  }
  const std::string floor =
      "worker-0 high Running t, worker-1 high Running t, worker-2 low Pending t.low, "
      "worker-3 low Pending t.low";
  ASSERT_TRUE(cluster_.Until([&] { return Pods("t") == floor; })) << Pods("t");
  cluster_.Run(30 * kSecond);
  EXPECT_EQ(Pods("t"), floor);
  EXPECT_EQ(cluster_.PodUid("default/t-worker-0"), first);
  EXPECT_TRUE(cluster_.Condition(kTrainingJobs, "default/t", "Running"));
  EXPECT_EQ(cluster_.PodPhase("default/m2-worker-0"), "Pending");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(cluster_.Delete(kTrainingJobs, StrCat("default/m", i)).ok());
  }
  ASSERT_TRUE(cluster_.Until([&] { return Pods("t") == all; })) << Pods("t");
  // Members with the class keep it when the number of members changes.
  ASSERT_TRUE(cluster_.Patch(kTrainingJobs, "default/t", "spec: {replicas: 2}", "scale").ok());
  ASSERT_TRUE(cluster_.Until([&] {
    return Pods("t") == "worker-0 high Running t, worker-1 high Running t";
  })) << Pods("t");
  ASSERT_TRUE(cluster_.Patch(kTrainingJobs, "default/t", "spec: {replicas: 4}", "scale").ok());
  ASSERT_TRUE(cluster_.Until([&] { return Pods("t") == all; })) << Pods("t");
  EXPECT_EQ(cluster_.PodUid("default/t-worker-0"), first);
}

TEST_F(TiersTest, SurplusOfAnotherClassWaitsForItsGang) {
  cluster_.Create(Job("busy", "medium", Role("worker", 3, "")));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 3; }));
  cluster_.Create(
      Job("t", "medium",
          Role("leader", 1, "") + Role("worker", 3,
                                       "      priorityClassName: low\n"
                                       "      elastic: {minReplicas: 1, maxReplicas: 3}\n")));
  cluster_.Run(20 * kSecond);
  EXPECT_EQ(Pods("t"), "leader-0 medium Pending t, worker-0 low Pending t");
  ASSERT_TRUE(cluster_.Delete(kTrainingJobs, "default/busy").ok());
  const std::string all =
      "leader-0 medium Running t, worker-0 low Running t, worker-1 low Running t.low, "
      "worker-2 low Running t.low";
  ASSERT_TRUE(cluster_.Until([&] { return Pods("t") == all; })) << Pods("t");
  // The gang goes, and with it who can not train without it.
  cluster_.Create(Job("urgent", "high", Role("worker", 4, "")));
  ASSERT_TRUE(cluster_.Until(
      [&] { return cluster_.Condition(kTrainingJobs, "default/urgent", "Running"); }));
  EXPECT_TRUE(cluster_.Until([&] {
    return Pods("t") == "leader-0 medium Pending t, worker-0 low Pending t";
  })) << Pods("t");
  ASSERT_TRUE(cluster_.Delete(kTrainingJobs, "default/urgent").ok());
  EXPECT_TRUE(cluster_.Until([&] { return Pods("t") == all; })) << Pods("t");
}

TEST_F(TiersTest, ARigidRolesPartsAreTheirsAndTheGangHasTheJobs) {
  cluster_.Create(Job("t", "low", Role("worker", 3, "      priorityClassName: high=0.5\n")));
  ASSERT_TRUE(cluster_.Until([&] {
    return Pods("t") == "worker-0 high Running t, worker-1 low Running t, worker-2 high Running t";
  })) << Pods("t");
  json::SharedValue group = cluster_.Get(client::resources::kPodGroups, "default/t");
  EXPECT_EQ(json::GetString(*group, {"spec", "priorityClassName"}), "low");
}

TEST_F(TiersTest, WhatCanNotBeIsAnsweredWithTheField) {
  cluster_.Create(Job("a", "",
                      Role("leader", 1, "      priorityClassName: high\n") +
                          Role("worker", 1, "      priorityClassName: low\n")));
  cluster_.Create(Job("b", "", Role("worker", 2, "      priorityClassName: high=1.5\n")));
  ASSERT_TRUE(cluster_.Until([&] { return !FailedBecause("a").empty(); }));
  EXPECT_NE(FailedBecause("a").find("spec.priorityClassName: Required value: members that must run "
                                    "together have the priority classes \"high\" and \"low\""),
            std::string::npos)
      << FailedBecause("a");
  ASSERT_TRUE(cluster_.Until([&] { return !FailedBecause("b").empty(); }));
  EXPECT_NE(FailedBecause("b").find("spec.roles.worker.priorityClassName: Invalid value: "
                                    "\"high=1.5\": the part of the members that have the class "
                                    "must be between 0 and 1"),
            std::string::npos)
      << FailedBecause("b");
}

TEST_F(TiersTest, ElasticdlsFractionMayNameTheClass) {
  cluster_.Create(
      "apiVersion: elasticdl.org/v1alpha1\nkind: ElasticDLJob\nmetadata: {name: e, namespace: "
      "default}\n"
      "spec:\n  elasticdlReplicaSpecs:\n"
      "    Master: {template: {spec: {containers: [{name: main, image: x}]}}}\n"
      "    Worker: {replicas: 3, priorityClassName: medium=0.5, template: {spec: {containers: "
      "[{name: main, image: x}]}}}\n");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 4; }));
  std::string classes;
  for (int i = 0; i < 3; ++i) {
    json::SharedValue pod = cluster_.Get(kPods, StrCat("default/elasticdl-worker-e-", i));
    classes += StrCat(json::GetString(*pod, {"spec", "priorityClassName"}), " ");
  }
  EXPECT_EQ(classes, "medium low medium ");
}

TEST(ElasticSizeTest, WhatAMemberWaitsForIsToldToItsEnd) {
  TestCluster cluster;
  const std::string node = StrCat("node.", std::string(60, 'a'), ".", std::string(60, 'b'));
  cluster.AddNode(node, 3);
  cluster.StartManager();
  PyTorchYaml yaml{.workers = 3,
                   .more_spec = "  elasticPolicy: {minReplicas: 2, maxReplicas: 4}\n"};
  cluster.Create(yaml.Text());
  ASSERT_TRUE(cluster.Until([&] { return cluster.Pods("Running") == 3; }));
  cluster.Run(10 * kSecond);
  json::SharedValue job = cluster.Get(kPyTorchJobs, "default/job");
  const std::string_view message = json::GetString(*job, {"status", "elastic", "message"});
  EXPECT_TRUE(message.starts_with("waits for 1 more: ")) << message;
  EXPECT_TRUE(message.ends_with(StrCat("on ", node, ", which has 0 of 3 free"))) << message;
}

TEST(ElasticSizeTest, PyTorchJobsKeepToTheirPolicy) {
  TestCluster cluster;
  cluster.AddNode("node-0", 8);
  cluster.StartManager();
  PyTorchYaml yaml{.workers = 2,
                   .more_spec = "  elasticPolicy: {minReplicas: 2, maxReplicas: 4}\n"};
  cluster.Create(yaml.Text());
  ASSERT_TRUE(cluster.Until([&] { return cluster.Pods("Running") == 3; }));
  ASSERT_TRUE(cluster.Patch(kPyTorchJobs, "default/job", "spec: {replicas: 50}", "scale").ok());
  cluster.Run(10 * kSecond);
  EXPECT_EQ(cluster.Pods(""), 5);
  ASSERT_TRUE(cluster.Patch(kPyTorchJobs, "default/job", "spec: {replicas: 1}", "scale").ok());
  cluster.Run(10 * kSecond);
  EXPECT_EQ(cluster.Pods(""), 3);
  EXPECT_TRUE(cluster.Condition(kPyTorchJobs, "default/job", "Running"));
  json::SharedValue job = cluster.Get(kPyTorchJobs, "default/job");
  EXPECT_EQ(json::GetInt(*job, {"status", "elastic", "replicas"}), 2);
  EXPECT_EQ(json::GetString(*job, {"status", "elastic", "message"}),
            "1 were asked for; 2 is the least");
  std::vector<int64_t> sizes;
  for (const json::Value& entry : json::GetArray(*job, {"status", "elastic", "history"})) {
    sizes.push_back(json::GetInt(entry, {"replicas"}));
  }
  EXPECT_EQ(sizes, (std::vector<int64_t>{2, 4, 2}));
  EXPECT_EQ(cluster.Events("Grown"), 1) << "once, by whom it was asked of";
  EXPECT_EQ(cluster.EventMessage("Grown"), "Grown from 2 to 4 replicas, as asked (2 to 4)");
  EXPECT_EQ(cluster.EventMessage("Shrunk"), "Shrunk from 4 to 2 replicas, as asked (2 to 4)");
}

TEST(ElasticSizeTest, AGrowthIsToldWithTheNumberThatItReached) {
  TestCluster cluster;
  cluster.AddNode("node-0", 4);
  cluster.StartManager();
  PyTorchYaml yaml{.workers = 2,
                   .more_spec = "  elasticPolicy: {minReplicas: 2, maxReplicas: 6}\n"};
  cluster.Create(yaml.Text());
  ASSERT_TRUE(cluster.Until([&] { return cluster.Pods("Running") == 3; }));
  ASSERT_TRUE(cluster.Patch(kPyTorchJobs, "default/job", "spec: {replicas: 6}", "scale").ok());
  ASSERT_TRUE(cluster.Until([&] { return cluster.Pods("Running") == 4; }));
  cluster.Run(10 * kSecond);
  EXPECT_EQ(cluster.Events("Grown"), 1);
  EXPECT_EQ(cluster.EventMessage("Grown"), "Grown from 2 to 3 of 6 replicas, as asked (2 to 6)");
  // What finds room later is the scheduler's to tell, of the group.
  cluster.AddNode("node-1", 1);
  ASSERT_TRUE(cluster.Until([&] { return cluster.Pods("Running") == 5; }));
  cluster.Run(10 * kSecond);
  EXPECT_EQ(cluster.Events("Grown"), 2);
  // Nothing is reached by a number for which there is no room.
  ASSERT_TRUE(cluster.Patch(kPyTorchJobs, "default/job", "spec: {replicas: 5}", "scale").ok());
  cluster.Run(10 * kSecond);
  EXPECT_EQ(cluster.Events("Grown"), 2);
  EXPECT_EQ(cluster.Events("Shrunk"), 0);
  EXPECT_EQ(cluster.Int(kPyTorchJobs, "default/job", {"status", "elastic", "desiredReplicas"}), 5);
}

}  // namespace
}  // namespace swell::jobs
