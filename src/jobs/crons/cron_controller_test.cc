// KubeDL's Crons: jobs at the times of a schedule, against the in-process API server.
#include "jobs/crons/cron_controller.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/rest/scripted_server_test_util.h"
#include "manager/testing/cluster_test_util.h"
#include "manager/testing/late_sink.h"

namespace swell::jobs {
namespace {

using client::resources::kPods;
using client::resources::kPyTorchJobs;
using manager::kSecond;
using manager::PyTorchYaml;
using manager::TestCluster;

constexpr Duration kMinute = std::chrono::seconds(60);

std::string CronYaml(std::string_view more, std::string_view metadata = "{labels: {team: red}}") {
  return StrCat(R"(
apiVersion: apps.kubedl.io/v1alpha1
kind: Cron
metadata: {name: tick}
spec:
  schedule: '* * * * *'
  )",
                more, R"(
  template:
    apiVersion: kubeflow.org/v1
    kind: PyTorchJob
    workload:
      metadata: )",
                metadata, R"(
      spec:
        pytorchReplicaSpecs:
          Master:
            replicas: 1
            restartPolicy: Never
            template: {spec: {containers: [{name: pytorch, image: x}]}}
)");
}

class CronTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("n0", 1);
    cluster_.StartManager();
    // Some seconds into a minute, so that runs have started when a test looks.
    const int64_t now = cluster_.sim.Now().unix_ns;
    cluster_.Run(kMinute - Duration(now % kMinute.count()) + std::chrono::seconds(5));
  }
  size_t Jobs() { return cluster_.List(kPyTorchJobs).size(); }
  void FinishPods(int code = 0) {
    for (const json::SharedValue& pod : cluster_.List(kPods)) {
      const std::string key = api::KeyOf(*pod);
      if (cluster_.PodPhase(key) == "Running") cluster_.agents->Exit(key, code);
    }
    cluster_.Run(kSecond);
  }
  json::Value Status() {
    return json::GetObject(*cluster_.Get(client::resources::kCrons, "default/tick"), {"status"});
  }
  // "Succeeded Running": the statuses of its runs, oldest first; "." after one that has finished.
  std::string History() {
    std::string words;
    const json::Value status = Status();
    for (const json::Value& row : json::GetArray(status, {"history"})) {
      words += StrCat(words.empty() ? "" : " ", json::GetString(row, {"status"}),
                      json::Find(row, {"finished"}) != nullptr ? "." : "");
    }
    return words;
  }
  size_t Active() { return json::GetArray(Status(), {"active"}).size(); }

  TestCluster cluster_;
};

TEST_F(CronTest, ARunIsAJobOfItsTime) {
  cluster_.Create(CronYaml("", "{labels: {team: red}, annotations: {swell.dev/user: alice}}"));
  cluster_.Run(kMinute);
  ASSERT_EQ(Jobs(), 1U);
  const json::SharedValue job = cluster_.List(kPyTorchJobs).front();
  const auto time = api::ParseTime(json::GetString(Status(), {"lastScheduleTime"}));
  ASSERT_TRUE(time);
  EXPECT_EQ(time->unix_ns % kMinute.count(), 0);
  EXPECT_EQ(api::Name(*job), StrCat("tick-", time->unix_ns / 1'000'000'000));
  EXPECT_EQ(api::Label(*job, "team"), "red");
  EXPECT_EQ(api::Label(*job, "kubedl.io/cron-name"), "tick");
  EXPECT_EQ(api::Annotation(*job, api::keys::kUser), "alice");
  const auto owner = api::ControllerOf(*job);
  ASSERT_TRUE(owner);
  EXPECT_EQ(StrCat(owner->api_version, " ", owner->kind, " ", owner->name),
            "apps.kubedl.io/v1alpha1 Cron tick");
  // It runs as any other job does.
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  ASSERT_TRUE(cluster_.Until([&] { return History() == "Running"; }));
  const json::Value status = Status();
  const json::Value& active = json::GetArray(status, {"active"}).front();
  EXPECT_EQ(json::GetString(active, {"kind"}), "PyTorchJob");
  EXPECT_EQ(json::GetString(active, {"apiVersion"}), "kubeflow.org/v1");
  EXPECT_EQ(json::GetString(active, {"uid"}), api::Uid(*job));
  EXPECT_EQ(cluster_.EventMessage("SuccessfulCreate", "tick"),
            StrCat("Created workload: ", api::Name(*job)));
  FinishPods();
  ASSERT_TRUE(cluster_.Until([&] { return History() == "Succeeded."; }));
  EXPECT_EQ(Active(), 0U);
  EXPECT_GE(cluster_.Events("SawCompletedWorkload", "tick"), 1);
  const json::Value ended = Status();
  const json::Value& row = json::GetArray(ended, {"history"}).front();
  EXPECT_EQ(json::GetString(row, {"object", "apiGroup"}), "kubeflow.org");
  EXPECT_EQ(json::GetString(row, {"object", "kind"}), "PyTorchJob");
  EXPECT_EQ(json::GetString(row, {"object", "name"}), api::Name(*job));
  EXPECT_EQ(json::GetString(row, {"created"}), api::CreationTimestamp(*job));
}

TEST_F(CronTest, JobsOfAnyKindAreRuns) {
  cluster_.Create(R"(
apiVersion: apps.kubedl.io/v1alpha1
kind: Cron
metadata: {name: tick}
spec:
  schedule: '* * * * *'
  template:
    apiVersion: swell.dev/v1
    kind: TrainingJob
    workload:
      spec:
        backoffLimit: 0
        roles:
          worker: {restartPolicy: Never, template: {spec: {containers: [{name: c, image: x}]}}}
)");
  cluster_.Run(kMinute);
  EXPECT_EQ(cluster_.List(client::resources::kTrainingJobs).size(), 1U);
  FinishPods(1);
  ASSERT_TRUE(cluster_.Until([&] { return History().starts_with("Failed."); })) << History();
}

TEST_F(CronTest, TheMasterBesideASpecIsTheRunsToo) {
  cluster_.Create(R"(
apiVersion: apps.kubedl.io/v1alpha1
kind: Cron
metadata: {name: tick}
spec:
  schedule: '* * * * *'
  template:
    apiVersion: run.ai/v2alpha1
    kind: DistributedWorkload
    workload:
      masterSpec: {command: {value: lead}}
      spec: {image: {value: x}, jobType: PyTorchJob}
)");
  cluster_.Run(kMinute);
  const auto runs = cluster_.List({"run.ai", "v2alpha1", "distributedworkloads", true});
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(json::GetString(*runs.front(), {"masterSpec", "command", "value"}), "lead");
}

TEST_F(CronTest, AllowStartsOneEachTime) {
  cluster_.Create(CronYaml(""));
  cluster_.Run(3 * kMinute);
  EXPECT_EQ(Jobs(), 3U);
  EXPECT_EQ(Active(), 3U);
}

TEST_F(CronTest, ForbidWaitsForTheOneThatRuns) {
  cluster_.Create(CronYaml("concurrencyPolicy: Forbid"));
  cluster_.Run(3 * kMinute);
  EXPECT_EQ(Jobs(), 1U);
  EXPECT_GE(cluster_.Events("AlreadyActive", "tick"), 1);
  FinishPods();
  // The latest time that was missed is made up for; its run counts, too.
  cluster_.Run(kMinute);
  EXPECT_EQ(Jobs(), 2U);
  EXPECT_EQ(Active(), 1U);
}

TEST_F(CronTest, ReplaceEndsTheOneBefore) {
  cluster_.Create(CronYaml("concurrencyPolicy: Replace"));
  cluster_.Run(3 * kMinute);
  EXPECT_EQ(Jobs(), 1U);
  EXPECT_EQ(Active(), 1U);
  EXPECT_EQ(cluster_.Events("SuccessfulDelete", "tick"), 2);
  EXPECT_EQ(cluster_.Events("MissingWorkload", "tick"), 0);
  EXPECT_EQ(History(), "Deleted. Deleted. Running");
}

TEST_F(CronTest, FinishedRunsBeyondTheLimitAreDeleted) {
  cluster_.Create(CronYaml("historyLimit: 2"));
  for (int minute = 0; minute < 4; ++minute) {
    cluster_.Run(kMinute);
    FinishPods();
  }
  ASSERT_TRUE(cluster_.Until([&] { return History() == "Succeeded. Succeeded." && Jobs() == 2; }))
      << History();
  ASSERT_TRUE(cluster_
                  .Patch(client::resources::kCrons, "default/tick",
                         "spec: {suspend: true, historyLimit: 0}")
                  .ok());
  ASSERT_TRUE(cluster_.Until([&] { return Jobs() == 0 && History().empty(); })) << History();
}

TEST_F(CronTest, TheHistoryOutlivesItsJobs) {
  cluster_.Create(CronYaml(""));
  cluster_.Run(kMinute);
  FinishPods();
  ASSERT_TRUE(cluster_.Until([&] { return History() == "Succeeded."; }));
  ASSERT_TRUE(
      cluster_.Patch(client::resources::kCrons, "default/tick", "spec: {suspend: true}").ok());
  const std::string name(api::Name(*cluster_.List(kPyTorchJobs).front()));
  ASSERT_TRUE(cluster_.Delete(kPyTorchJobs, StrCat("default/", name)).ok());
  cluster_.Run(kSecond);
  EXPECT_EQ(History(), "Succeeded.");
  EXPECT_EQ(cluster_.Events("MissingWorkload", "tick"), 0);
}

TEST_F(CronTest, ARunThatSomebodyDeletesIsMissed) {
  cluster_.Create(CronYaml(""));
  cluster_.Run(kMinute);
  const std::string name(api::Name(*cluster_.List(kPyTorchJobs).front()));
  ASSERT_TRUE(cluster_.Delete(kPyTorchJobs, StrCat("default/", name)).ok());
  cluster_.Run(kSecond);
  EXPECT_EQ(cluster_.EventMessage("MissingWorkload", "tick"),
            StrCat("Active workload went missing: ", name));
  EXPECT_EQ(History(), "Deleted.");
  EXPECT_EQ(Active(), 0U);
}

TEST_F(CronTest, SuspendedItStartsNoneAndThenTheLatest) {
  cluster_.Create(CronYaml("suspend: true"));
  cluster_.Run(std::chrono::hours(3));
  EXPECT_EQ(Jobs(), 0U);
  ASSERT_TRUE(
      cluster_.Patch(client::resources::kCrons, "default/tick", "spec: {suspend: false}").ok());
  cluster_.Run(kSecond);
  EXPECT_EQ(Jobs(), 1U);
  EXPECT_GE(cluster_.Events("TooManyMissedTimes", "tick"), 1);
}

TEST_F(CronTest, AfterTheDeadlineNoneStarts) {
  const WallTime now = cluster_.sim.Now();
  cluster_.Create(CronYaml(StrCat("deadline: '", api::FormatTime(now + 2 * kMinute), "'")));
  cluster_.Run(5 * kMinute);
  EXPECT_EQ(Jobs(), 2U);
  EXPECT_GE(cluster_.Events("Deadline", "tick"), 1);
}

TEST_F(CronTest, ANameInTheTemplateIsOneRunAtATime) {
  cluster_.Create(CronYaml("", "{name: nightly}"));
  cluster_.Run(kMinute);
  const json::SharedValue first = cluster_.Get(kPyTorchJobs, "default/nightly");
  ASSERT_TRUE(first);
  cluster_.Run(2 * kMinute);
  EXPECT_EQ(Jobs(), 1U);
  EXPECT_GE(cluster_.Events("OverridePolicy", "tick"), 1);
  EXPECT_GE(cluster_.Events("AlreadyActive", "tick"), 1);
  // The one that has finished makes room.
  FinishPods();
  cluster_.Run(kMinute);
  const json::SharedValue second = cluster_.Get(kPyTorchJobs, "default/nightly");
  ASSERT_TRUE(second);
  EXPECT_NE(api::Uid(*second), api::Uid(*first));
}

TEST_F(CronTest, AJobOfSomebodyElsesIsLeftAlone) {
  cluster_.Create(PyTorchYaml{.name = "nightly"}.Text());
  const std::string uid(api::Uid(*cluster_.Get(kPyTorchJobs, "default/nightly")));
  cluster_.Create(CronYaml("", "{name: nightly}"));
  cluster_.Run(3 * kMinute);
  EXPECT_EQ(api::Uid(*cluster_.Get(kPyTorchJobs, "default/nightly")), uid);
  EXPECT_NE(cluster_.EventMessage("FailedCreate", "tick").find("already exists"),
            std::string::npos);
  EXPECT_EQ(Active(), 0U);
}

TEST_F(CronTest, ARefusedRunIsTriedAgainAtTheNextTime) {
  // No controller of a job looks at it: the server refuses it by its schema.
  cluster_.Create(R"(
apiVersion: apps.kubedl.io/v1alpha1
kind: Cron
metadata: {name: tick}
spec:
  schedule: '* * * * *'
  template:
    apiVersion: kubeflow.org/v1
    kind: PyTorchJob
    workload: {spec: {pytorchReplicaSpecs: {Master: {replicas: many}}}}
)");
  cluster_.Run(kMinute);
  EXPECT_EQ(cluster_.Events("FailedCreate", "tick"), 1);
  cluster_.Run(kMinute);
  EXPECT_EQ(cluster_.Events("FailedCreate", "tick"), 2);
  EXPECT_EQ(Jobs(), 0U);
}

TEST_F(CronTest, ANewLeaderMakesNoRunTwice) {
  cluster_.Create(CronYaml("concurrencyPolicy: Forbid"));
  cluster_.Run(kMinute);
  ASSERT_EQ(Jobs(), 1U);
  cluster_.StopManager();
  cluster_.Run(10 * kSecond);
  cluster_.StartManager();
  cluster_.Run(10 * kSecond);
  EXPECT_EQ(Jobs(), 1U);
  EXPECT_EQ(History(), "Running");
  EXPECT_EQ(cluster_.Events("SuccessfulCreate", "tick"), 1);
}

// Answers the first requests of a sort with an error of its own.
std::shared_ptr<api::RestHandler> BusyServer(std::shared_ptr<api::RestHandler> server,
                                             int refusals,
                                             std::string_view method = "POST",
                                             std::string_view path = "/pytorchjobs") {
  return std::make_shared<api::ScriptedServer>(
      std::move(server),
      [left = refusals, method,
       path](const api::RestRequest& request) mutable -> std::optional<api::RestResponse> {
        if (request.method != method || !request.path.ends_with(path) || left-- <= 0) {
          return std::nullopt;
        }
        return api::Refusal(Code::kUnavailable);
      });
}

// Creates jobs at once and says so late.
class SlowServer final : public api::RestHandler {
 public:
  SlowServer(std::shared_ptr<api::RestHandler> server, Executor& executor, Duration late)
      : server_(std::move(server)), executor_(executor), late_(late) {}
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    if (request.method == "POST" && request.path.ends_with("/pytorchjobs")) {
      sink = std::make_shared<manager::LateSink>(executor_, late_, std::move(sink));
    }
    return server_->Handle(std::move(request), std::move(sink));
  }
  api::HandlerCapabilities capabilities() override { return server_->capabilities(); }

 private:
  std::shared_ptr<api::RestHandler> server_;
  Executor& executor_;
  Duration late_;
};

// As when the leader dies before it writes the status: the job says alone that its time was served.
TEST_F(CronTest, ANewLeaderMakesNoNamedRunTwice) {
  cluster_.StopManager();
  cluster_.between = BusyServer(cluster_.server, 1'000'000, "PATCH", "/crons/tick/status");
  cluster_.StartManager();
  cluster_.Create(CronYaml("", "{name: nightly}"));
  cluster_.Run(kMinute);
  const json::SharedValue first = cluster_.Get(kPyTorchJobs, "default/nightly");
  ASSERT_TRUE(first);
  ASSERT_EQ(json::GetString(Status(), {"lastScheduleTime"}), "");
  cluster_.StopManager();
  cluster_.between = nullptr;
  cluster_.StartManager();
  cluster_.Run(5 * kSecond);
  EXPECT_NE(json::GetString(Status(), {"lastScheduleTime"}), "");
  EXPECT_EQ(cluster_.Events("AlreadyActive", "tick"), 0);
  FinishPods();
  cluster_.Run(10 * kSecond);
  const json::SharedValue still = cluster_.Get(kPyTorchJobs, "default/nightly");
  ASSERT_TRUE(still);
  EXPECT_EQ(api::Uid(*still), api::Uid(*first));
  EXPECT_EQ(History(), "Succeeded.");
  // The next time has a run of its own.
  cluster_.Run(kMinute);
  const json::SharedValue second = cluster_.Get(kPyTorchJobs, "default/nightly");
  ASSERT_TRUE(second);
  EXPECT_NE(api::Uid(*second), api::Uid(*first));
}

TEST_F(CronTest, EachTimeIsToldOfOnce) {
  cluster_.Create(CronYaml("", "{name: nightly}"));
  for (int minute = 0; minute < 3; ++minute) {
    cluster_.Run(kMinute);
    for (std::string_view word : {"a", "b", "c"}) {
      const std::string label = StrCat("metadata: {labels: {touched: ", word, "}}");
      ASSERT_TRUE(cluster_.Patch(kPyTorchJobs, "default/nightly", label).ok());
      cluster_.Run(kSecond);
    }
  }
  EXPECT_EQ(cluster_.Events("OverridePolicy", "tick"), 3);
  EXPECT_EQ(cluster_.Events("AlreadyActive", "tick"), 2);
  const std::string passed =
      StrCat("spec: {deadline: '", api::FormatTime(cluster_.sim.Now() + (-1 * kMinute)), "'}");
  ASSERT_TRUE(cluster_.Patch(client::resources::kCrons, "default/tick", passed).ok());
  cluster_.Run(kSecond);
  FinishPods();
  EXPECT_EQ(History(), "Succeeded.");
  EXPECT_EQ(cluster_.Events("Deadline", "tick"), 1);
}

TEST_F(CronTest, ManyMissedTimesAreToldOfOnce) {
  cluster_.Create(CronYaml("concurrencyPolicy: Forbid"));
  cluster_.Run(110 * kMinute);
  EXPECT_EQ(Jobs(), 1U);
  EXPECT_EQ(cluster_.Events("TooManyMissedTimes", "tick"), 1);
}

TEST_F(CronTest, TheStatusListsTheNewestRuns) {
  cluster_.Create(CronYaml(""));
  cluster_.Run(103 * kMinute);
  EXPECT_EQ(Jobs(), 103U);
  const json::Value status = Status();
  const json::Array& active = json::GetArray(status, {"active"});
  const json::Array& history = json::GetArray(status, {"history"});
  ASSERT_EQ(active.size(), CronController::kListedMax);
  ASSERT_EQ(history.size(), CronController::kListedMax);
  const auto last = api::ParseTime(json::GetString(status, {"lastScheduleTime"}));
  ASSERT_TRUE(last);
  const std::string newest = StrCat("tick-", last->unix_ns / 1'000'000'000);
  EXPECT_EQ(json::GetString(active.back(), {"name"}), newest);
  EXPECT_EQ(json::GetString(history.back(), {"object", "name"}), newest);
  EXPECT_EQ(cluster_.Events("MissingWorkload", "tick"), 0);
}

TEST_F(CronTest, WhatIsHeardAfterItsEndIsNotItsSuccessors) {
  cluster_.StopManager();
  cluster_.between =
      std::make_shared<SlowServer>(cluster_.server, cluster_.sim, std::chrono::seconds(20));
  cluster_.StartManager();
  cluster_.Create(CronYaml(""));
  cluster_.Run(kMinute);
  ASSERT_EQ(Jobs(), 1U);
  ASSERT_TRUE(
      cluster_.Delete(client::resources::kCrons, "default/tick", {.propagation = "Background"})
          .ok());
  cluster_.Create(CronYaml("suspend: true"));
  cluster_.Run(30 * kSecond);
  EXPECT_EQ(json::Print(Status()), "{}");
}

TEST_F(CronTest, ARunIsTriedAgainWhenTheServerWasBusy) {
  cluster_.StopManager();
  cluster_.between = BusyServer(cluster_.server, 3);
  cluster_.StartManager();
  cluster_.Create(CronYaml(""));
  cluster_.Run(kMinute);
  EXPECT_EQ(Jobs(), 1U);
  EXPECT_EQ(cluster_.Events("FailedCreate", "tick"), 3);
  EXPECT_EQ(Active(), 1U);
}

TEST_F(CronTest, ItsJobsGoWithIt) {
  cluster_.Create(CronYaml(""));
  cluster_.Run(2 * kMinute);
  ASSERT_EQ(Jobs(), 2U);
  ASSERT_TRUE(
      cluster_.Delete(client::resources::kCrons, "default/tick", {.propagation = "Background"})
          .ok());
  ASSERT_TRUE(cluster_.Until([&] { return Jobs() == 0; }));
}

TEST_F(CronTest, WhereKubedlRunsItOrItsKindNothingIsMade) {
  cluster_.StopManager();
  cluster_.StartManager({.others_jobs = {"crons.apps.kubedl.io"}});
  cluster_.Create(CronYaml(""));
  cluster_.Run(2 * kMinute);
  EXPECT_EQ(Jobs(), 0U);
  cluster_.StopManager();
  cluster_.StartManager({.others_jobs = {"pytorchjobs.kubeflow.org"}});
  cluster_.Run(kMinute);
  EXPECT_EQ(Jobs(), 0U);
  EXPECT_EQ(cluster_.EventMessage("FailedCreate", "tick"),
            "Error creating workload: another operator runs pytorchjobs.kubeflow.org here");
}

}  // namespace
}  // namespace swell::jobs
