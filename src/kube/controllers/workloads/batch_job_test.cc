// batch/v1 Jobs: the rules alone, and the controller against the in-process API server.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "kube/controllers/workloads/batch_rules.h"
#include "manager/testing/cluster_test_util.h"
#include "manager/testing/late_sink.h"

namespace swell::controllers {
namespace {

using client::resources::kJobs;
using client::resources::kPods;
using manager::kSecond;
using manager::TestCluster;

TEST(BatchRules, IndexesReadBackAsWritten) {
  EXPECT_EQ(FormatIndexes({}), "");
  EXPECT_EQ(FormatIndexes({0}), "0");
  EXPECT_EQ(FormatIndexes({0, 1}), "0,1");
  EXPECT_EQ(FormatIndexes({0, 2, 3, 4, 9}), "0,2-4,9");
  EXPECT_EQ(ParseIndexes("0,2-4,9", 10), (std::set<int64_t>{0, 2, 3, 4, 9}));
  EXPECT_EQ(ParseIndexes("0-999999999999", 3), (std::set<int64_t>{0, 1, 2}));
  EXPECT_EQ(ParseIndexes("x,-5,3-", 10), (std::set<int64_t>{}));
}

TEST(BatchRules, BackoffDoublesToSixMinutes) {
  EXPECT_EQ(BackoffAfter(0), Duration::zero());
  EXPECT_EQ(BackoffAfter(1), 10 * kSecond);
  EXPECT_EQ(BackoffAfter(3), 40 * kSecond);
  EXPECT_EQ(BackoffAfter(50), 360 * kSecond);
}

TEST(BatchRules, FailurePolicyTakesTheFirstRule) {
  auto job = json::Parse(R"({"spec":{"podFailurePolicy":{"rules":[
      {"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget","status":"True"}]},
      {"action":"FailJob","onExitCodes":{"containerName":"main","operator":"In","values":[42]}},
      {"action":"Count","onExitCodes":{"operator":"NotIn","values":[7]}}]}}})");
  auto pod = [](int code, bool disrupted) {
    json::Value out = json::Object{{"metadata", json::Object{{"name", "p"}, {"namespace", "n"}}}};
    json::Set(out, {"status", "containerStatuses"},
              json::Array{json::Object{
                  {"name", "main"},
                  {"state", json::Object{{"terminated", json::Object{{"exitCode", code}}}}}}});
    if (disrupted) {
      json::Set(out, {"status", "conditions"},
                json::Array{json::Object{{"type", "DisruptionTarget"}, {"status", "True"}}});
    }
    return out;
  };
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(ClassifyFailure(*job, pod(42, true)).action, FailureAction::kIgnore);
  FailureVerdict verdict = ClassifyFailure(*job, pod(42, false));
  EXPECT_EQ(verdict.action, FailureAction::kFailJob);
  EXPECT_EQ(verdict.message,
            "Container main for pod n/p failed with exit code 42 matching FailJob rule at index 1");
  EXPECT_EQ(ClassifyFailure(*job, pod(1, false)).action, FailureAction::kCount);
}

TEST(BatchRules, SuccessPolicyTakesTheFirstRuleThatIsFulfilled) {
  auto job = json::Parse(R"({"spec":{"completions":5,"successPolicy":{"rules":[
      {"succeededIndexes":"0,2-3"},
      {"succeededIndexes":"1-4","succeededCount":2},
      {"succeededCount":4}]}}})");
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(MatchSuccessPolicy(*job, {0, 2}), std::nullopt);
  EXPECT_EQ(MatchSuccessPolicy(*job, {0, 2, 3}), 0u);
  EXPECT_EQ(MatchSuccessPolicy(*job, {1, 4}), 1u);
  EXPECT_EQ(MatchSuccessPolicy(*json::Parse(R"({"spec":{"completions":5}})"), {0}), std::nullopt);
}

class BatchJobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-a", 8);
    cluster_.StartManager();
  }
  void Submit(std::string_view spec, std::string_view restart = "Never") {
    cluster_.Create(
        StrCat("apiVersion: batch/v1\nkind: Job\nmetadata: {name: job, namespace: "
               "default}\nspec:\n",
               spec, "  template:\n    spec:\n      restartPolicy: ", restart,
               "\n      containers:\n      - {name: main, image: x}\n"));
  }
  bool Is(std::string_view type) { return cluster_.Condition(kJobs, "default/job", type); }
  int64_t Status(std::string_view field) {
    return cluster_.Int(kJobs, "default/job", {"status", field});
  }
  // The job's pods in that phase, in the order of their names.
  std::vector<std::string> Keys(std::string_view phase) {
    std::vector<std::string> out;
    for (const json::SharedValue& pod : cluster_.List(kPods)) {
      if (Phase(*pod) == phase && !api::IsDeleting(*pod)) out.push_back(api::KeyOf(*pod));
    }
    return out;
  }
  bool UntilRunning(size_t count) {
    return cluster_.Until([&] { return Keys("Running").size() == count; });
  }
  std::string Indexes(std::string_view field) {
    json::SharedValue job = cluster_.Get(kJobs, "default/job");
    return std::string(json::GetString(*job, {"status", field}));
  }
  void ExitIndex(int64_t index, int code) {
    for (const std::string& key : Keys("Running")) {
      if (CompletionIndex(*cluster_.Get(kPods, key)) == index) cluster_.agents->Exit(key, code);
    }
  }
  TestCluster cluster_;
};

TEST_F(BatchJobTest, RunsParallelismUntilCompletions) {
  Submit("  parallelism: 2\n  completions: 3\n");
  ASSERT_TRUE(UntilRunning(2));
  json::SharedValue job = cluster_.Get(kJobs, "default/job");
  EXPECT_EQ(json::GetString(
                *job, {"spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid"}),
            api::Uid(*job));
  json::SharedValue pod = cluster_.Get(kPods, Keys("Running")[0]);
  EXPECT_EQ(api::Label(*pod, "job-name"), "job");
  EXPECT_EQ(api::Label(*pod, "batch.kubernetes.io/controller-uid"), api::Uid(*job));
  cluster_.agents->Exit(Keys("Running")[0], 0);
  ASSERT_TRUE(cluster_.Until([&] { return Status("succeeded") == 1; }));
  ASSERT_TRUE(UntilRunning(2));
  for (const std::string& key : Keys("Running")) cluster_.agents->Exit(key, 0);
  ASSERT_TRUE(cluster_.Until([&] { return Is("Complete"); }));
  EXPECT_EQ(Status("succeeded"), 3);
  EXPECT_EQ(Status("active"), 0);
  EXPECT_TRUE(Is("SuccessCriteriaMet"));
  job = cluster_.Get(kJobs, "default/job");
  EXPECT_FALSE(json::GetString(*job, {"status", "completionTime"}).empty());
  EXPECT_EQ(cluster_.Events("Completed", "job"), 1);
  // Counted pods are let go.
  for (const json::SharedValue& one : cluster_.List(kPods)) {
    EXPECT_TRUE(json::GetArray(*one, {"metadata", "finalizers"}).empty()) << json::Print(*one);
  }
}

TEST_F(BatchJobTest, IndexedJobGivesEveryIndexOnePod) {
  Submit("  parallelism: 2\n  completions: 3\n  completionMode: Indexed\n");
  ASSERT_TRUE(UntilRunning(2));
  json::SharedValue pod = cluster_.Get(kPods, Keys("Running")[1]);
  EXPECT_EQ(CompletionIndex(*pod), 1);
  EXPECT_EQ(json::GetString(*pod, {"spec", "hostname"}), "job-1");
  cluster_.agents->Exit(Keys("Running")[1], 0);
  ASSERT_TRUE(cluster_.Until([&] {
    json::SharedValue job = cluster_.Get(kJobs, "default/job");
    return json::GetString(*job, {"status", "completedIndexes"}) == "1";
  }));
  ASSERT_TRUE(UntilRunning(2));
  for (const std::string& key : Keys("Running")) cluster_.agents->Exit(key, 0);
  ASSERT_TRUE(cluster_.Until([&] { return Is("Complete"); }))
      << json::PrintPretty(*cluster_.Get(kJobs, "default/job"), 2);
  EXPECT_EQ(json::GetString(*cluster_.Get(kJobs, "default/job"), {"status", "completedIndexes"}),
            "0-2");
  EXPECT_EQ(Status("succeeded"), 3);
}

TEST_F(BatchJobTest, FailuresWaitLongerAndLongerUntilTheLimit) {
  Submit("  backoffLimit: 2\n");
  for (int failure = 1; failure <= 3; ++failure) {
    ASSERT_TRUE(UntilRunning(1)) << failure;
    cluster_.agents->Exit(Keys("Running")[0], 1);
    cluster_.Run(5 * kSecond);
    EXPECT_EQ(Keys("Running").size(), 0u) << failure;
  }
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
  EXPECT_EQ(cluster_.Reason(kJobs, "default/job", "Failed"), "BackoffLimitExceeded");
  const std::string said = cluster_.EventMessage("BackoffLimitExceeded");
  EXPECT_TRUE(said.starts_with("Job has reached the specified backoff limit. job-")) << said;
  EXPECT_NE(said.find(" failed: container "), std::string::npos) << said;
  EXPECT_EQ(Status("failed"), 3);
}

TEST_F(BatchJobTest, OnFailureRestartsCountToo) {
  Submit("  backoffLimit: 2\n", "OnFailure");
  ASSERT_TRUE(UntilRunning(1));
  std::string key = Keys("Running")[0];
  cluster_.agents->Exit(key, 1);
  cluster_.Run(kSecond);
  EXPECT_FALSE(Is("Failed"));
  cluster_.agents->Exit(key, 1);
  EXPECT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
  EXPECT_TRUE(cluster_.Until([&] { return Keys("Running").empty(); }));
}

TEST_F(BatchJobTest, DeletedPodIsReplacedAndPreemptedOneIsNotAFailure) {
  Submit("  backoffLimit: 5\n");
  ASSERT_TRUE(UntilRunning(1));
  std::string key = Keys("Running")[0];
  ASSERT_TRUE(cluster_
                  .Patch(kPods, key,
                         "{status: {conditions: [{type: DisruptionTarget, status: 'True', reason: "
                         "PreemptionByScheduler}]}}",
                         "status")
                  .ok());
  ASSERT_TRUE(cluster_.Delete(kPods, key).ok());
  ASSERT_TRUE(UntilRunning(1));
  EXPECT_NE(Keys("Running")[0], "");
  EXPECT_LE(Status("failed"), 0);
  ASSERT_TRUE(cluster_.Delete(kPods, Keys("Running")[0]).ok());
  ASSERT_TRUE(cluster_.Until([&] { return Status("failed") == 1; }));
  EXPECT_TRUE(UntilRunning(1));
}

TEST_F(BatchJobTest, DeadlineAndTtl) {
  Submit("  activeDeadlineSeconds: 20\n  ttlSecondsAfterFinished: 30\n");
  ASSERT_TRUE(UntilRunning(1));
  cluster_.Run(25 * kSecond);
  EXPECT_EQ(cluster_.Reason(kJobs, "default/job", "Failed"), "DeadlineExceeded");
  EXPECT_EQ(Status("failed"), 1);
  EXPECT_EQ(cluster_.Events("SuccessfulDelete", "job"), 1);
  EXPECT_TRUE(Keys("Running").empty());
  cluster_.Run(60 * kSecond);
  EXPECT_FALSE(cluster_.Get(kJobs, "default/job"));
  EXPECT_EQ(cluster_.Pods(""), 0);
}

TEST_F(BatchJobTest, SuspendAndResume) {
  Submit("  suspend: true\n");
  ASSERT_TRUE(cluster_.Until([&] { return Is("Suspended"); }));
  EXPECT_EQ(cluster_.Pods(""), 0);
  ASSERT_TRUE(cluster_.Patch(kJobs, "default/job", "{spec: {suspend: false}}").ok());
  ASSERT_TRUE(UntilRunning(1));
  EXPECT_FALSE(Is("Suspended"));
  ASSERT_TRUE(cluster_.Patch(kJobs, "default/job", "{spec: {suspend: true}}").ok());
  ASSERT_TRUE(cluster_.Until([&] { return Is("Suspended") && cluster_.Pods("") == 0; }));
  EXPECT_LE(Status("failed"), 0);
}

TEST_F(BatchJobTest, ParallelismShrinks) {
  Submit("  parallelism: 4\n  completions: 10\n");
  ASSERT_TRUE(UntilRunning(4));
  ASSERT_TRUE(cluster_.Patch(kJobs, "default/job", "{spec: {parallelism: 1}}").ok());
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 1; }));
  EXPECT_LE(Status("failed"), 0);
}

// Passes on what watches of pods tell after three seconds.
class LatePods final : public api::RestHandler {
 public:
  LatePods(std::shared_ptr<api::RestHandler> server, Executor& executor)
      : server_(std::move(server)), executor_(executor) {}

  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    if (request.path.ends_with("/pods") && request.query.find("watch=") != std::string::npos) {
      sink = std::make_shared<manager::LateSink>(executor_, 3 * kSecond, std::move(sink));
    }
    return server_->Handle(std::move(request), std::move(sink));
  }

 private:
  std::shared_ptr<api::RestHandler> server_;
  Executor& executor_;
};

TEST_F(BatchJobTest, APodThatSucceedsBeforeItIsStoppedCounts) {
  cluster_.StopManager();
  cluster_.between = std::make_shared<LatePods>(cluster_.server, cluster_.sim);
  cluster_.StartManager();
  Submit("  parallelism: 2\n  completions: 2\n");
  ASSERT_TRUE(UntilRunning(2));
  cluster_.Run(10 * kSecond);
  for (const std::string& key : Keys("Running")) cluster_.agents->Exit(key, 0);
  ASSERT_TRUE(cluster_.Until([&] { return Keys("Succeeded").size() == 2; }, kSecond));
  ASSERT_TRUE(cluster_.Patch(kJobs, "default/job", "{spec: {parallelism: 1}}").ok());
  ASSERT_TRUE(cluster_.Until([&] { return Is("Complete"); }));
  EXPECT_EQ(Status("succeeded"), 2);
  EXPECT_EQ(cluster_.Pods("Succeeded"), 2);
  EXPECT_EQ(cluster_.Pods(""), 2);
}

TEST_F(BatchJobTest, APodThatFailsBeforeItIsStoppedCountsOnce) {
  cluster_.StopManager();
  cluster_.between = std::make_shared<LatePods>(cluster_.server, cluster_.sim);
  cluster_.StartManager();
  Submit(
      "  parallelism: 2\n  completions: 2\n  podFailurePolicy: {rules: [{action: FailJob, "
      "onExitCodes: {operator: In, values: [42]}}]}\n");
  ASSERT_TRUE(UntilRunning(2));
  cluster_.Run(10 * kSecond);
  const std::vector<std::string> running = Keys("Running");
  cluster_.agents->Exit(running[0], 42);
  cluster_.Run(kSecond);
  cluster_.agents->Exit(running[1], 42);
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
  cluster_.Run(10 * kSecond);
  EXPECT_EQ(Status("failed"), 2);
  EXPECT_EQ(cluster_.Pods("Failed"), 2);
}

TEST_F(BatchJobTest, FailJobRuleEndsItAtOnce) {
  Submit(
      "  backoffLimit: 6\n  podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: "
      "In, values: [42]}}]}\n");
  ASSERT_TRUE(UntilRunning(1));
  cluster_.agents->Exit(Keys("Running")[0], 42);
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
  EXPECT_EQ(cluster_.Reason(kJobs, "default/job", "Failed"), "PodFailurePolicy");
}

TEST_F(BatchJobTest, AnIndexThatFailsTooOftenFailsAloneUntilTheOthersAreDone) {
  Submit(
      "  parallelism: 3\n  completions: 3\n  completionMode: Indexed\n  backoffLimitPerIndex: 1\n");
  ASSERT_TRUE(UntilRunning(3));
  ExitIndex(1, 1);
  ASSERT_TRUE(UntilRunning(2));
  // What it has used up is known by the pod that follows, also to a controller that starts anew.
  cluster_.StopManager();
  cluster_.StartManager();
  ASSERT_TRUE(UntilRunning(3));
  EXPECT_EQ(Indexes("failedIndexes"), "");
  ExitIndex(1, 1);
  ASSERT_TRUE(cluster_.Until([&] { return Indexes("failedIndexes") == "1"; }));
  ExitIndex(0, 0);
  cluster_.Run(60 * kSecond);
  EXPECT_EQ(Keys("Running").size(), 1u);
  EXPECT_FALSE(Is("Failed"));
  ExitIndex(2, 0);
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
  EXPECT_EQ(cluster_.Reason(kJobs, "default/job", "Failed"), "FailedIndexes");
  EXPECT_EQ(Indexes("completedIndexes"), "0,2");
  EXPECT_EQ(Status("failed"), 2);
  for (const json::SharedValue& pod : cluster_.List(kPods)) {
    EXPECT_TRUE(json::GetArray(*pod, {"metadata", "finalizers"}).empty()) << json::Print(*pod);
  }
}

TEST_F(BatchJobTest, TooManyFailedIndexesEndTheJob) {
  Submit(
      "  parallelism: 3\n  completions: 3\n  completionMode: Indexed\n  backoffLimitPerIndex: 9\n"
      "  maxFailedIndexes: 1\n  podFailurePolicy: {rules: [{action: FailIndex, onExitCodes: "
      "{operator: In, values: [42]}}]}\n");
  ASSERT_TRUE(UntilRunning(3));
  ExitIndex(0, 42);
  ASSERT_TRUE(cluster_.Until([&] { return Indexes("failedIndexes") == "0"; }));
  EXPECT_FALSE(Is("Failed"));
  ExitIndex(2, 42);
  ASSERT_TRUE(cluster_.Until([&] { return Is("Failed"); }));
  EXPECT_EQ(cluster_.Reason(kJobs, "default/job", "Failed"), "MaxFailedIndexesExceeded");
  EXPECT_TRUE(cluster_.Until([&] { return Keys("Running").empty(); }));
}

TEST_F(BatchJobTest, TheLeadersSuccessEndsTheOthers) {
  Submit(
      "  parallelism: 3\n  completions: 3\n  completionMode: Indexed\n"
      "  successPolicy: {rules: [{succeededIndexes: '0'}]}\n");
  ASSERT_TRUE(UntilRunning(3));
  ExitIndex(1, 0);
  cluster_.Run(kSecond);
  EXPECT_FALSE(Is("Complete"));
  ExitIndex(0, 0);
  ASSERT_TRUE(cluster_.Until([&] { return Is("Complete"); }));
  EXPECT_EQ(cluster_.Reason(kJobs, "default/job", "SuccessCriteriaMet"), "SuccessPolicy");
  EXPECT_TRUE(cluster_.Until([&] { return Keys("Running").empty(); }));
}

TEST_F(BatchJobTest, CountsEachPodOnceAcrossRestarts) {
  Submit("  parallelism: 3\n  completions: 6\n");
  for (int round = 0; round < 6 && !Is("Complete"); ++round) {
    ASSERT_TRUE(cluster_.Until([&] { return !Keys("Running").empty(); }));
    cluster_.agents->Exit(Keys("Running")[0], 0);
    cluster_.StopManager();
    cluster_.Run(kSecond);
    cluster_.StartManager();
  }
  ASSERT_TRUE(cluster_.Until([&] { return Is("Complete"); }));
  EXPECT_EQ(Status("succeeded"), 6);
  EXPECT_EQ(cluster_.Pods("Succeeded"), 6);
}

TEST_F(BatchJobTest, OrphanedPodsAreNotHeld) {
  Submit("");
  ASSERT_TRUE(UntilRunning(1));
  std::string key = Keys("Running")[0];
  ASSERT_TRUE(cluster_.Delete(kJobs, "default/job", {.propagation = "Orphan"}).ok());
  ASSERT_TRUE(cluster_.Until([&] { return !cluster_.Get(kJobs, "default/job"); }));
  cluster_.Run(5 * kSecond);
  EXPECT_EQ(cluster_.PodPhase(key), "Running");
  ASSERT_TRUE(cluster_.Delete(kPods, key).ok());
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
}

TEST_F(BatchJobTest, AdoptsWhatItSelectsAndReleasesWhatItDoesNot) {
  Submit("  parallelism: 2\n  completions: 2\n");
  ASSERT_TRUE(UntilRunning(2));
  const std::vector<std::string> keys = Keys("Running");
  ASSERT_TRUE(cluster_.Patch(kPods, keys[0], "metadata: {ownerReferences: null}").ok());
  ASSERT_TRUE(
      cluster_.Until([&] { return api::ControllerOf(*cluster_.Get(kPods, keys[0])).has_value(); }));
  cluster_.Run(5 * kSecond);
  EXPECT_EQ(cluster_.Pods(""), 2);

  ASSERT_TRUE(cluster_
                  .Patch(kPods, keys[0],
                         "metadata: {labels: {controller-uid: null, "
                         "batch.kubernetes.io/controller-uid: null}}")
                  .ok());
  ASSERT_TRUE(UntilRunning(3));
  EXPECT_FALSE(api::ControllerOf(*cluster_.Get(kPods, keys[0])));

  // What it lost may end as it likes; what it has counts, though it was an orphan in between.
  cluster_.agents->Exit(keys[0], 1);
  ASSERT_TRUE(UntilRunning(2));
  for (const std::string& key : Keys("Running")) cluster_.agents->Exit(key, 0);
  ASSERT_TRUE(cluster_.Until([&] { return Is("Complete"); }));
  EXPECT_EQ(Status("succeeded"), 2);
  EXPECT_EQ(Status("failed"), 0);
}

TEST_F(BatchJobTest, AManualSelectorFindsPodsOfAnEarlierJob) {
  cluster_.Create(R"(
apiVersion: v1
kind: Pod
metadata: {name: old, namespace: default, labels: {work: x}}
spec: {restartPolicy: Never, containers: [{name: main, image: x}]}
)");
  ASSERT_TRUE(UntilRunning(1));
  cluster_.Create(R"(
apiVersion: batch/v1
kind: Job
metadata: {name: job, namespace: default}
spec:
  manualSelector: true
  selector: {matchLabels: {work: x}}
  template:
    metadata: {labels: {work: x}}
    spec: {restartPolicy: Never, containers: [{name: main, image: x}]}
)");
  ASSERT_TRUE(cluster_.Until([&] { return Status("active") == 1; }));
  EXPECT_EQ(cluster_.Pods(""), 1);
  cluster_.agents->Exit("default/old", 0);
  ASSERT_TRUE(cluster_.Until([&] { return Is("Complete"); }));
  EXPECT_EQ(Status("succeeded"), 1);
}

TEST_F(BatchJobTest, AnIndexedJobAdoptsNoPodWithoutAnIndex) {
  cluster_.Create(R"(
apiVersion: v1
kind: Pod
metadata: {name: old, namespace: default, labels: {work: x}}
spec: {restartPolicy: Never, containers: [{name: main, image: x}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: job, namespace: default}
spec:
  completionMode: Indexed
  completions: 1
  manualSelector: true
  selector: {matchLabels: {work: x}}
  template:
    metadata: {labels: {work: x}}
    spec: {restartPolicy: Never, containers: [{name: main, image: x}]}
)");
  ASSERT_TRUE(UntilRunning(2));
  EXPECT_FALSE(api::ControllerOf(*cluster_.Get(kPods, "default/old")));
}

}  // namespace
}  // namespace swell::controllers
