// What `swell why` says of Crons and CronJobs.
#include "cli/cli_test_util.h"

namespace swell::cli {
namespace {

class WhyCronTest : public CliTest {
 protected:
  // A Cron at 22:00 each day, made at midnight.
  void Nightly(std::string_view more = "", std::string_view metadata = "") {
    Create(
        StrCat("{apiVersion: apps.kubedl.io/v1alpha1, kind: Cron, metadata: {name: nightly}, "
               "spec: {schedule: '0 22 * * *', ",
               more, "template: {apiVersion: kubeflow.org/v1, kind: TFJob, workload: {", metadata,
               "spec: {tfReplicaSpecs: {Worker: {template: {spec: {containers: [{name: c, "
               "image: i}]}}}}}}}}}"));
  }
  void NightlyIs(const std::string& status) {
    Status("/apis/apps.kubedl.io/v1alpha1/namespaces/default/crons/nightly",
           StrCat(R"({"status":)", status, "}"));
  }
  void Event(std::string_view reason, std::string_view message) {
    const auto cron = server_.Send(
        server_.Request("GET", "/apis/apps.kubedl.io/v1alpha1/namespaces/default/crons/nightly"));
    Create(StrCat("{apiVersion: v1, kind: Event, metadata: {name: ", ToLower(reason),
                  "}, involvedObject: {kind: Cron, name: nightly, namespace: default, uid: ",
                  cron.Str({"metadata", "uid"}), "}, type: Warning, reason: ", reason,
                  ", lastTimestamp: '", api::FormatTime(server_.executor.Now()), "', message: '",
                  message, "'}"));
  }
  std::string Why(const std::string& name) {
    EXPECT_EQ(Run({"swell", "why", name}), 0) << err_;
    return out_;
  }
};

TEST_F(WhyCronTest, SaysWhenItStartsItsNextJobAndWhatTheLastOneDid) {
  Nightly();
  server_.executor.Advance(std::chrono::hours(21));
  EXPECT_EQ(Why("nightly"),
            "nightly starts its next job at 2026-01-01T22:00:00Z, in 60m.\n"
            "Last:     it has started no job yet\n");
  server_.executor.Advance(std::chrono::hours(2));
  NightlyIs(R"({"lastScheduleTime":"2026-01-01T22:00:00Z","history":[{"object":{"apiGroup":)"
            R"("kubeflow.org","kind":"TFJob","name":"nightly-1"},"status":"Succeeded",)"
            R"("created":"2026-01-01T22:00:00Z","finished":"2026-01-01T22:30:00Z"}]})");
  EXPECT_EQ(Why("cron/nightly"),
            "nightly starts its next job at 2026-01-02T22:00:00Z, in 23h.\n"
            "Last:     nightly-1 (TFJob) Succeeded 30m ago, after 30m\n");
  ASSERT_EQ(Run({"swell", "why", "nightly", "-o", "json"}), 0) << err_;
  for (const char* part :
       {R"("cron": "cron.apps.kubedl.io/nightly")", R"("nextRun": "2026-01-02T22:00:00Z")",
        R"("status": "Succeeded")", R"("suspended": false)"}) {
    EXPECT_NE(out_.find(part), std::string::npos) << part << "\n" << out_;
  }
  EXPECT_EQ(Run({"swell", "why", "cronjob/nightly"}), 1);
  EXPECT_EQ(Run({"swell", "why", "daily"}), 1);
  EXPECT_NE(err_.find("job \"daily\" not found in namespace \"default\""), std::string::npos)
      << err_;
  EXPECT_EQ(Run({"swell", "why", "-A", "nightly"}), 0) << err_;
}

TEST_F(WhyCronTest, SaysWhyItStartsNoMoreJobs) {
  Nightly("suspend: true, ");
  EXPECT_EQ(Why("nightly"),
            "nightly is suspended, and starts no jobs.\n"
            "Last:     it has started no job yet\n"
            "Next:     arena cron resume nightly -n default lets it start jobs again\n");
  ASSERT_EQ(Run({"swell", "delete", "cron", "nightly"}), 0) << err_;
  Nightly("deadline: '2026-01-02T12:00:00Z', ");
  server_.executor.Advance(std::chrono::hours(23));
  NightlyIs(R"({"lastScheduleTime":"2026-01-01T22:00:00Z"})");
  EXPECT_EQ(Why("nightly"),
            "nightly starts no more jobs: its deadline, 2026-01-02T12:00:00Z, is before its next "
            "time, 2026-01-02T22:00:00Z.\n"
            "Last:     nothing is left of the time 2026-01-01T22:00:00Z\n");
  server_.executor.Advance(std::chrono::hours(24));
  EXPECT_TRUE(Why("nightly").starts_with(
      "nightly starts no more jobs: its deadline, 2026-01-02T12:00:00Z, has passed.\n"))
      << out_;
}

TEST_F(WhyCronTest, SaysWhatKeepsADueJobFromStarting) {
  Nightly("concurrencyPolicy: Forbid, ");
  const std::string runs =
      R"("history":[{"object":{"kind":"TFJob","name":"nightly-1"},"status":"Running",)"
      R"("created":"2026-01-01T22:00:00Z"}]})";
  NightlyIs(R"({"lastScheduleTime":"2026-01-01T22:00:00Z",)" + runs);
  server_.executor.Advance(std::chrono::hours(23));
  EXPECT_EQ(Why("nightly"),
            "nightly starts its next job at 2026-01-02T22:00:00Z, in 23h, unless nightly-1 still "
            "runs then (concurrencyPolicy is Forbid).\n"
            "Last:     nightly-1 (TFJob) is Running, started 60m ago\n");
  server_.executor.Advance(std::chrono::hours(24));
  EXPECT_TRUE(Why("nightly").starts_with(
      "nightly starts its next job at 2026-01-03T22:00:00Z, in 23h.\n"
      "Why:      the job of 2026-01-02T22:00:00Z waits: nightly-1 still runs, and "
      "concurrencyPolicy is Forbid\n"))
      << out_;
  ASSERT_EQ(Run({"swell", "delete", "cron", "nightly"}), 0) << err_;
  Nightly("", "metadata: {name: fixed}, ");
  NightlyIs(R"({"lastScheduleTime":"2026-01-01T22:00:00Z",)" + runs);
  EXPECT_NE(Why("nightly").find("waits: nightly-1 still runs, and the template names the job, so "
                                "there is one at a time\n"),
            std::string::npos)
      << out_;
  NightlyIs(R"({"lastScheduleTime":"2026-01-01T22:00:00Z","history":null})");
  EXPECT_NE(Why("nightly").find("Why:      the job of 2026-01-02T22:00:00Z is due, and has not "
                                "started yet\n"),
            std::string::npos)
      << out_;
}

TEST_F(WhyCronTest, SaysWhyAJobWasRefused) {
  Nightly();
  server_.executor.Advance(std::chrono::hours(23));
  NightlyIs(R"({"lastScheduleTime":"2026-01-01T22:00:00Z"})");
  Event("FailedCreate", "Error creating workload: needs 5 GPUs at once");
  EXPECT_NE(Why("nightly").find("Why:      Error creating workload: needs 5 GPUs at once\n"),
            std::string::npos)
      << out_;
  server_.executor.Advance(std::chrono::seconds(5));
  Event("SuccessfulCreate", "Created workload: nightly-1");
  EXPECT_EQ(Why("nightly").find("Why:"), std::string::npos) << "a later job was created\n" << out_;
}

TEST_F(WhyCronTest, CronJobsOfKubernetesAreExplainedToo) {
  Create(
      "{apiVersion: batch/v1, kind: CronJob, metadata: {name: tick}, spec: {schedule: '30 6 * * "
      "*', timeZone: Europe/Berlin, startingDeadlineSeconds: 60, jobTemplate: {spec: {template: "
      "{spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}");
  EXPECT_EQ(Why("tick"),
            "tick starts its next job at 2026-01-01T05:30:00Z, in 5h30m.\n"
            "Last:     it has started no job yet\n");
  server_.executor.Advance(std::chrono::hours(6));
  EXPECT_TRUE(Why("cj/tick").find("Why:      the job of 2026-01-01T05:30:00Z was missed: it did "
                                  "not start within startingDeadlineSeconds, 60\n") !=
              std::string::npos)
      << out_;
  const auto cron =
      server_.Send(server_.Request("GET", "/apis/batch/v1/namespaces/default/cronjobs/tick"));
  Create(
      StrCat("{apiVersion: batch/v1, kind: Job, metadata: {name: tick-1, ownerReferences: "
             "[{apiVersion: batch/v1, kind: CronJob, name: tick, controller: true, uid: ",
             cron.Str({"metadata", "uid"}),
             "}]}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "
             "i}]}}}}"));
  Status("/apis/batch/v1/namespaces/default/cronjobs/tick",
         R"({"status":{"lastScheduleTime":"2026-01-01T05:30:00Z"}})");
  Status("/apis/batch/v1/namespaces/default/jobs/tick-1",
         StrCat(R"({"status":{"failed":1,"startTime":")", api::FormatTime(server_.executor.Now()),
                R"(","conditions":[{"type":"Failed","status":"True","reason":)"
                R"("BackoffLimitExceeded","lastTransitionTime":")",
                api::FormatTime(server_.executor.Now() + std::chrono::seconds(9)),
                R"(","message":"Job has reached the specified backoff limit"}]}})"));
  server_.executor.Advance(std::chrono::minutes(5));
  EXPECT_NE(Why("tick").find("Last:     tick-1 (Job) Failed 4m"), std::string::npos) << out_;
  EXPECT_NE(out_.find(". Job has reached the specified backoff limit"), std::string::npos) << out_;
  ASSERT_EQ(Run({"swell", "delete", "cronjob", "tick"}), 0) << err_;
  Create(
      "{apiVersion: batch/v1, kind: CronJob, metadata: {name: tick}, spec: {schedule: '@every 1h', "
      "jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "
      "i}]}}}}}}");
  EXPECT_TRUE(
      Why("tick").starts_with("tick starts no jobs: spec.schedule: \"@every 1h\": @every is "
                              "not supported; write five fields, such as */5 * * * *.\n"))
      << out_;
}

}  // namespace
}  // namespace swell::cli
