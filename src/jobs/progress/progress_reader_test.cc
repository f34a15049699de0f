// Jobs whose scripts report nothing: how far they are is read in their logs.
#include "jobs/progress/progress_reader.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "jobs/job_rules.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/progress.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::jobs {
namespace {

using client::resources::kPods;
using client::resources::kTrainingJobs;
using manager::TestCluster;

// Answers requests for logs.
class LogServer final : public api::RestHandler {
 public:
  explicit LogServer(std::shared_ptr<api::RestHandler> server) : server_(std::move(server)) {}
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    if (!request.path.ends_with("/log")) {
      return server_->Handle(std::move(request), std::move(sink));
    }
    ++asked;
    last = StrCat(request.path, "?", request.query);
    api::RestResponse response;
    response.content_type = "text/plain";
    response.body.push_back(api::MakeChunk(log));
    sink->OnResponse(std::move(response));
    return nullptr;
  }
  api::HandlerCapabilities capabilities() override { return server_->capabilities(); }

  std::string log, last;
  int asked = 0;

 private:
  std::shared_ptr<api::RestHandler> server_;
};

class ProgressReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    logs_ = std::make_shared<LogServer>(cluster_.server);
    cluster_.between = logs_;
    cluster_.AddNode("node-a", 8);
    cluster_.StartManager();
  }
  static std::string Job(const std::string& progress) {
    return StrCat(R"(
apiVersion: swell.dev/v1
kind: TrainingJob
metadata: {name: job, namespace: default}
spec:
  progress: {)",
                  progress, R"(}
  roles:
    worker:
      replicas: 2
      template: {spec: {containers: [{name: main, image: busybox}]}}
)");
  }
  // A line of the log, at this moment.
  void Says(const std::string& text) {
    logs_->log += StrCat(api::FormatTime(cluster_.sim.Now()), " ", text, "\n");
  }
  int64_t Number(std::string_view field) {
    return cluster_.Int(kTrainingJobs, "default/job", {"status", "progress", field});
  }
  std::string Metric(const std::string& name) {
    const std::string series =
        StrCat("\n", name, R"({namespace="default",job="job",resource="trainingjobs.swell.dev"} )");
    const std::string page = cluster_.metrics.Print();
    const size_t at = page.find(series);
    if (at == std::string::npos) return "none";
    const size_t value = at + series.size();
    return page.substr(value, page.find('\n', value) - value);
  }

  TestCluster cluster_;
  std::shared_ptr<LogServer> logs_;
};

TEST_F(ProgressReaderTest, TheLogSaysHowFarTheJobIs) {
  cluster_.Create(Job(R"(logPattern: 'at (?P<step>\d+) of (?P<total>\d+), loss (?P<loss>\S+)')"));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 2; }));
  Says("at 10 of 200, loss 0.75");
  cluster_.Run(std::chrono::seconds(10));
  Says("at 30 of 200, loss 0.5");
  ASSERT_TRUE(cluster_.Until([&] { return Number("step") == 30; }));
  EXPECT_NE(logs_->last.find("/pods/job-worker-0/log?tailLines=200&"), std::string::npos)
      << logs_->last;
  EXPECT_EQ(Number("totalSteps"), 200);
  EXPECT_EQ(Number("progressPercentage"), 15);
  EXPECT_EQ(Number("estimatedRemainingSeconds"), 85) << "two steps a second";
  EXPECT_EQ(Number("world"), 2);
  const auto pod = cluster_.Get(kPods, "default/job-worker-0");
  EXPECT_EQ(api::Annotation(*pod, api::keys::kMetrics),
            R"({"training_step":30,"steps_per_second":2,"loss":0.5})");
  EXPECT_EQ(Metric("swell_job_step"), "30");
  EXPECT_EQ(Metric("swell_job_progress_ratio"), "0.15");
  EXPECT_EQ(Metric("swell_job_steps_per_second"), "2");
  EXPECT_EQ(Metric("swell_job_remaining_seconds"), "85");
  Says("at 31 of 200, loss nan");
  ASSERT_TRUE(cluster_.Until([&] { return Number("step") == 31; }));
  const auto later = cluster_.Get(kPods, "default/job-worker-0");
  EXPECT_NE(api::Annotation(*later, api::keys::kMetrics).find(R"("loss":"NaN")"),
            std::string_view::npos);
  Says("at 32 of 200, loss nan");
  ASSERT_TRUE(cluster_.Until([&] { return Number("step") == 32; }));
  const auto last = cluster_.Get(kPods, "default/job-worker-0");
  EXPECT_NE(api::Annotation(*last, api::keys::kMetrics).find(R"("not_finite_since":31)"),
            std::string_view::npos);
}

TEST_F(ProgressReaderTest, TheSpeedOfAnotherNumberOfMembersDoesNotStay) {
  cluster_.Create(Job("logPattern: auto"));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 2; }));
  Says("step 10");
  cluster_.Run(std::chrono::seconds(10));
  Says("step 30");
  ASSERT_TRUE(cluster_.Until([&] { return Metric("swell_job_steps_per_second") == "2"; }));
  ASSERT_TRUE(
      cluster_.Patch(kTrainingJobs, "default/job", "spec: {roles: {worker: {replicas: 3}}}").ok());
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 3; }));
  cluster_.Run(std::chrono::seconds(30));
  Says("step 40");
  const WallTime began = cluster_.sim.Now();
  ASSERT_TRUE(cluster_.Until([&] { return Number("step") == 40; }));
  EXPECT_EQ(Metric("swell_job_steps_per_second"), "none") << "one step says nothing of the speed";
  EXPECT_EQ(api::Annotation(*cluster_.Get(kPods, "default/job-worker-0"), api::keys::kMetrics),
            R"({"training_step":40})");
  cluster_.Run(std::chrono::seconds(10));
  Says("step 80");
  const std::chrono::duration<double> took = cluster_.sim.Now() - began;
  ASSERT_TRUE(cluster_.Until([&] { return Number("step") == 80; }));
  EXPECT_NEAR(std::stod(Metric("swell_job_steps_per_second")), 40 / took.count(), 0.1);
}

TEST_F(ProgressReaderTest, AJobThatIsOverHasNoSeries) {
  cluster_.Create(Job("logPattern: auto"));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 2; }));
  Says("step 7/9");
  ASSERT_TRUE(cluster_.Until([&] { return Metric("swell_job_step") == "7"; }));
  for (const char* pod : {"default/job-worker-0", "default/job-worker-1"}) {
    cluster_.agents->Exit(pod, 0);
  }
  ASSERT_TRUE(cluster_.Until(
      [&] { return cluster_.Condition(kTrainingJobs, "default/job", "Succeeded"); }));
  EXPECT_EQ(Metric("swell_job_step"), "none");
}

TEST_F(ProgressReaderTest, LogsAreReadEvery15SecondsAndOnlyWhereThatIsWanted) {
  cluster_.Create(Job(""));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 2; }));
  Says("step 7/9");
  cluster_.Run(std::chrono::minutes(2));
  EXPECT_EQ(logs_->asked, 0);
  ASSERT_TRUE(
      cluster_
          .Patch(kTrainingJobs, "default/job",
                 StrCat("metadata: {annotations: {", api::keys::kProgressPattern, ": auto}}"))
          .ok());
  ASSERT_TRUE(cluster_.Until([&] { return Number("step") == 7; }));
  logs_->asked = 0;
  cluster_.Run(std::chrono::minutes(2));
  EXPECT_EQ(logs_->asked, 8);
}

TEST_F(ProgressReaderTest, WhatTheSdkReportsIsLeftAlone) {
  cluster_.Create(Job("logPattern: auto"));
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 2; }));
  api::RankProgress rank{.world = 2, .phase = "step", .step = 3, .pid = 17};
  rank.changed = cluster_.sim.Now();
  ASSERT_TRUE(cluster_
                  .Patch(kPods, "default/job-worker-0",
                         StrCat("metadata: {annotations: {", api::keys::kProgress, ": '",
                                json::Print(api::RanksToJson({rank})), "'}}"))
                  .ok());
  cluster_.Run(std::chrono::seconds(20));
  Says("step 7/9");
  logs_->asked = 0;
  cluster_.Run(std::chrono::minutes(1));
  EXPECT_EQ(logs_->asked, 0);
  EXPECT_EQ(Number("step"), 3);
}

TEST_F(ProgressReaderTest, APatternThatFindsNoStepsIsRefused) {
  const JobRules rules;
  const auto job = json::ParseYaml(Job(R"(logPattern: 'step (\d+)')"));
  ASSERT_TRUE(job.ok());
  const Status refused = rules.Check(*rules.Find("swell.dev", "trainingjobs"), job->front());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.message().find("spec.progress.logPattern"), std::string::npos)
      << refused.message();
  EXPECT_NE(refused.message().find("must have a group named step or epoch"), std::string::npos);
}

}  // namespace
}  // namespace swell::jobs
