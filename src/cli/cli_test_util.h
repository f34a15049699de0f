// A session of commands against an API server in this process: memory store, virtual time.
// - Threads: one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "cli/cli.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/test_server.h"

namespace swell::cli {

class SimLoop final : public EventLoop {
 public:
  explicit SimLoop(SimExecutor& executor) : executor_(executor) {}
  Executor& executor() override { return executor_; }
  bool RunUntil(const std::function<bool()>& done, Duration limit) override {
    executor_.RunPosted();
    return done() || executor_.RunUntil(done, limit);
  }

 private:
  SimExecutor& executor_;
};

// Shares the test's server with the commands, which want to own theirs. What happens between two
// requests of a command is up to `before`, where it is set.
class Shared final : public api::RestHandler {
 public:
  using Before = std::function<void(const api::RestRequest& request)>;
  Shared(api::RestHandler& server, const Before& before) : server_(server), before_(before) {}
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    if (before_) before_(request);
    return server_.Handle(std::move(request), std::move(sink));
  }

 private:
  api::RestHandler& server_;
  const Before& before_;
};

class CliTest : public ::testing::Test {
 protected:
  CliTest() {
    server_.Boot();
    EXPECT_TRUE(server_.boot.ok()) << server_.boot.ToString();
    env_.out = [this](std::string_view text) {
      out_ += text;
      return true;
    };
    env_.err = [this](std::string_view text) {
      err_ += text;
      return true;
    };
    env_.read_stdin = [this] { return Result<std::string>(stdin_); };
    env_.getenv = [](const std::string&) { return std::string(); };
    env_.clock = &server_.executor;
    env_.loop = &loop_;
    env_.connect = [this](const ClusterFlags&) {
      Connection connection;
      connection.server = std::make_shared<Shared>(*server_.server, before_);
      connection.url = url_;
      connection.user = {.name = "tester", .groups = {"system:masters"}};
      return Result<Connection>(std::move(connection));
    };
  }

  int Run(const std::vector<std::string>& argv) {
    out_.clear();
    err_.clear();
    return RunCli(argv, env_);
  }
  // `swell create -f -` of these documents.
  void Create(std::string yaml) {
    stdin_ = std::move(yaml);
    ASSERT_EQ(Run({"swell", "create", "-f", "-"}), 0) << err_;
  }
  void Status(const std::string& path, const std::string& status) {
    auto answer = server_.Send(
        server_.Request("PATCH", path + "/status", status, "application/merge-patch+json"));
    ASSERT_EQ(answer.status, 200) << answer.text;
  }
  int SubmitMedium() {
    return Run({"arena", "--loglevel", "info", "submit", "pytorch", "--name=medium-job", "--gpus=4",
                "--workers=2", "--image=img", "--priority=medium", "python a.py --epochs 2"});
  }
  void MediumClass() {
    Create(
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: medium}, "
        "value: 1000000}");
  }
  // A pod of the job, as its controller and the node agent would have made it.
  void Pod(const std::string& role, int index, const std::string& phase) {
    auto job = server_.Send(
        server_.Request("GET", "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/medium-job"));
    std::string name = StrCat("medium-job-", role, "-", index);
    Create(StrCat("{apiVersion: v1, kind: Pod, metadata: {name: ", name,
                  ", labels: {pytorch-replica-type: ", role, ", pytorch-replica-index: \"", index,
                  "\"}, ownerReferences: [{apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: "
                  "medium-job, controller: true, uid: ",
                  job.Str({"metadata", "uid"}),
                  "}]}, spec: {nodeName: node-1, priorityClassName: medium, containers: [{name: "
                  "pytorch, image: img, resources: {limits: {nvidia.com/gpu: 4}}}]}}"));
    Status("/api/v1/namespaces/default/pods/" + name,
           StrCat(R"({"status":{"phase":")", phase, R"(","hostIP":"10.0.0.1"}})"));
  }
  void JobIs(const std::string& condition) {
    Status("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/medium-job",
           StrCat(R"({"status":{"startTime":")", api::FormatTime(server_.executor.Now()),
                  R"(","conditions":[{"type":")", condition,
                  R"(","status":"True","reason":"R","message":"M","lastTransitionTime":")",
                  api::FormatTime(server_.executor.Now()), R"("}]}})"));
  }

  apiserver::TestServer server_;
  SimLoop loop_{server_.executor};
  CliEnv env_;
  Shared::Before before_;
  std::string out_, err_, stdin_;
  std::string url_ = "https://test:6443";
};

}  // namespace swell::cli
