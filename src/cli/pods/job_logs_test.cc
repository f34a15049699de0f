// `swell logs JOB` shows the log of rank 0, and `swell stacks` says why nothing runs.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "cli/cli_test_util.h"

namespace swell::cli {
namespace {

constexpr std::string_view kJobPath = "/apis/swell.dev/v1/namespaces/default/trainingjobs/el";

class JobLogsTest : public CliTest {
 protected:
  void Job(std::string_view bounds) {
    Create(
        StrCat("{apiVersion: swell.dev/v1, kind: TrainingJob, metadata: {name: el}, spec: "
               "{roles: {worker: {replicas: 2, ",
               bounds,
               "template: {spec: {containers: [{name: main, image: i, resources: {limits: "
               "{nvidia.com/gpu: 1}}}]}}}}}}"));
  }
  // A worker that runs, and has this rank.
  void Worker(int index, int rank, std::string_view pid = "7") {
    const auto job = server_.Send(server_.Request("GET", std::string(kJobPath)));
    const std::string name = StrCat("el-worker-", index);
    const std::string ranks =
        StrCat(R"({"ranks":[{"rank":)", rank, R"(,"pid":)", pid,
               R"(,"phase":"step","step":3,"changed":"2026-01-01T00:00:0)", index, R"(Z"}]})");
    Create(StrCat("{apiVersion: v1, kind: Pod, metadata: {name: ", name,
                  ", labels: {swell.dev/job-role: worker, swell.dev/job-index: \"", index,
                  "\"}, annotations: {swell.dev/progress: '", ranks,
                  "'}, ownerReferences: [{apiVersion: swell.dev/v1, kind: TrainingJob, name: el, "
                  "controller: true, uid: ",
                  job.Str({"metadata", "uid"}),
                  "}]}, spec: {nodeName: node-1, containers: [{name: main, image: i}]}}"));
    Status("/api/v1/namespaces/default/pods/" + name,
           R"({"status":{"phase":"Running","containerStatuses":[{"name":"main","image":"i",)"
           R"("imageID":"i","ready":true,"restartCount":0,"state":{"running":{}}}]}})");
  }
  // The pods whose logs the command asks for.
  std::string AskedFor(const std::vector<std::string>& argv) {
    std::string asked;
    before_ = [&asked](const api::RestRequest& request) {
      if (!request.path.ends_with("/log")) return;
      for (std::string_view part : Split(request.path, '/')) {
        if (part.starts_with("el-")) asked += StrCat(asked.empty() ? "" : " ", part);
      }
    };
    Run(argv);
    before_ = nullptr;
    return asked;
  }
};

TEST_F(JobLogsTest, AnElasticJobsLogIsThatOfTheMemberThatHasRankZero) {
  Job("elastic: {minReplicas: 1, maxReplicas: 2}, ");
  Worker(0, 1);
  Worker(1, 0);
  EXPECT_EQ(AskedFor({"swell", "logs", "el"}), "el-worker-1");
  EXPECT_EQ(AskedFor({"swell", "logs", "el-worker-0"}), "el-worker-0");
}

TEST_F(JobLogsTest, TheFirstMemberLeadsWhereRanksDoNotMove) {
  Job("");
  Worker(0, 1);
  Worker(1, 0);
  EXPECT_EQ(AskedFor({"swell", "logs", "el"}), "el-worker-0");
}

TEST_F(JobLogsTest, NumbersThatWereFoundInALogNameNoLeader) {
  Job("elastic: {minReplicas: 1, maxReplicas: 2}, ");
  Worker(0, 1, "0");
  Worker(1, 0, "0");
  EXPECT_EQ(AskedFor({"swell", "logs", "el"}), "el-worker-0");
}

TEST_F(JobLogsTest, StacksOfAJobThatDoesNotRunSayWhy) {
  Job("");
  Status(std::string(kJobPath),
         R"({"status":{"conditions":[{"type":"Created","status":"True","reason":"R",)"
         R"("message":"TrainingJob el is created.","lastTransitionTime":"2026-01-01T00:00:00Z"},)"
         R"({"type":"ReplicaFailure","status":"True","reason":"R","message":)"
         R"("exceeded quota: q","lastTransitionTime":"2026-01-01T00:00:01Z"}]}})");
  EXPECT_EQ(Run({"swell", "stacks", "el"}), 1);
  EXPECT_EQ(err_, "swell: el has not started yet: exceeded quota: q\n");
  EXPECT_EQ(Run({"swell", "health", "el"}), 0);
  EXPECT_EQ(err_, "el has not started yet: exceeded quota: q\n");
  Status(std::string(kJobPath),
         R"({"status":{"conditions":[{"type":"Failed","status":"True","reason":"DeadlineExceeded",)"
         R"("message":"too long","lastTransitionTime":"2026-01-01T00:00:02Z"}]}})");
  EXPECT_EQ(Run({"swell", "stacks", "el"}), 1);
  EXPECT_EQ(err_, "swell: el is over: Failed: DeadlineExceeded; none of it runs\n");
}

TEST_F(JobLogsTest, NumbersThatWereFoundInALogHaveNoStacks) {
  Job("");
  Worker(0, 0, "0");
  EXPECT_EQ(Run({"swell", "stacks", "el"}), 1);
  EXPECT_EQ(err_,
            "swell: no rank of el reports what it does: only scripts that use Swell's Python SDK "
            "do\n");
  EXPECT_EQ(Run({"swell", "health", "el"}), 0);
  EXPECT_NE(out_.find(" -          by its log\n"), std::string::npos) << out_;
}

}  // namespace
}  // namespace swell::cli
