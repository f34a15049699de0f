// Command lines against an API server in this process: memory store, virtual time.

#include "cli/cli.h"

#include <gtest/gtest.h>

#include "api/meta.h"
#include "apiserver/test_server.h"
#include "base/strings.h"

namespace swell::cli {
namespace {

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

// Shares the test's server with the commands, which want to own theirs.
class Shared final : public api::RestHandler {
 public:
  explicit Shared(api::RestHandler& server) : server_(server) {}
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    return server_.Handle(std::move(request), std::move(sink));
  }

 private:
  api::RestHandler& server_;
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
      connection.server = std::make_shared<Shared>(*server_.server);
      connection.url = "https://test:6443";
      connection.user = {.name = "tester", .groups = {"system:masters"}};
      return Result<Connection>(std::move(connection));
    };
  }

  int Run(std::vector<std::string> argv) {
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
  std::string out_, err_, stdin_;
};

TEST_F(CliTest, ArenaSubmitPrintsWhatItAlwaysPrinted) {
  MediumClass();
  ASSERT_EQ(SubmitMedium(), 0) << err_;
  EXPECT_EQ(out_,
            "configmap/medium-job-pytorchjob created\n"
            "configmap/medium-job-pytorchjob labeled\n"
            "pytorchjob.kubeflow.org/medium-job created\n");
  EXPECT_EQ(err_,
            "INFO[0000] The Job medium-job has been submitted successfully\n"
            "INFO[0000] You can run `arena get medium-job --type pytorchjob` to check the job "
            "status\n");
  EXPECT_EQ(SubmitMedium(), 1);
  EXPECT_EQ(err_,
            "arena: the job medium-job is already exist, please delete it first. use 'arena delete "
            "medium-job'\n");
}

TEST_F(CliTest, ArenaSubmitNeedsAPriorityClassThatExists) {
  MediumClass();
  EXPECT_EQ(Run({"arena", "submit", "pytorch", "--name=x", "--image=i", "--priority=meduim", "a"}),
            1);
  EXPECT_NE(err_.find("did you mean medium?"), std::string::npos) << err_;
  EXPECT_NE(err_.find("There are: "), std::string::npos) << err_;
}

TEST_F(CliTest, ArenaGetAndListFollowTheJob) {
  MediumClass();
  ASSERT_EQ(SubmitMedium(), 0) << err_;
  Pod("master", 0, "Running");
  Pod("worker", 0, "Pending");
  JobIs("Running");
  server_.executor.Advance(std::chrono::minutes(3));
  ASSERT_EQ(Run({"arena", "get", "medium-job"}), 0) << err_;
  EXPECT_TRUE(out_.starts_with("STATUS: PENDING\n")) << "an instance is pending: " << out_;
  Status("/api/v1/namespaces/default/pods/medium-job-worker-0",
         R"({"status":{"phase":"Running"}})");
  ASSERT_EQ(Run({"arena", "get", "medium-job"}), 0) << err_;
  EXPECT_EQ(out_,
            "STATUS: RUNNING\n"
            "NAMESPACE: default\n"
            "PRIORITY: medium\n"
            "TRAINING DURATION: 3m\n"
            "\n"
            "NAME        STATUS   TRAINER     AGE  INSTANCE             NODE\n"
            "medium-job  RUNNING  PYTORCHJOB  3m   medium-job-master-0  10.0.0.1\n"
            "medium-job  RUNNING  PYTORCHJOB  3m   medium-job-worker-0  10.0.0.1\n");
  ASSERT_EQ(Run({"arena", "list"}), 0) << err_;
  EXPECT_EQ(out_,
            "NAME        STATUS   TRAINER     AGE  NODE\n"
            "medium-job  RUNNING  PYTORCHJOB  3m   10.0.0.1\n");
  ASSERT_EQ(Run({"swell", "list"}), 0) << err_;
  EXPECT_EQ(
      out_,
      "NAME         KIND         STATUS    PRIORITY   PROJECT   GPUS   PODS   DURATION   AGE\n"
      "medium-job   PyTorchJob   Running   medium     -         8      2/2    3m         3m\n");
  ASSERT_EQ(Run({"arena", "get", "medium-job", "-o", "json"}), 0) << err_;
  EXPECT_EQ(json::GetString(json::Parse(out_).value(), {"chiefName"}), "medium-job-master-0");
}

TEST_F(CliTest, ArenaTopNode) {
  MediumClass();
  for (const char* node : {"node-1", "node-2"}) {
    Create(StrCat("{apiVersion: v1, kind: Node, metadata: {name: ", node, "}}"));
    Status(StrCat("/api/v1/nodes/", node),
           R"({"status":{"capacity":{"nvidia.com/gpu":"4"},"allocatable":{"nvidia.com/gpu":"4"},)"
           R"("addresses":[{"type":"InternalIP","address":"10.0.0.1"}],)"
           R"("conditions":[{"type":"Ready","status":"True"}]}})");
  }
  Create(
      "{apiVersion: v1, kind: Node, metadata: {name: z-master, labels: "
      "{node-role.kubernetes.io/master: \"\"}}}");
  ASSERT_EQ(SubmitMedium(), 0) << err_;
  Pod("master", 0, "Running");
  ASSERT_EQ(Run({"arena", "top", "node"}), 0) << err_;
  EXPECT_EQ(out_,
            "NAME      IPADDRESS  ROLE    STATUS    GPU(Total)  GPU(Allocated)\n"
            "z-master             master  notReady  0           0\n"
            "node-1    10.0.0.1   <none>  ready     4           4\n"
            "node-2    10.0.0.1   <none>  ready     4           0\n" +
                std::string(89, '-') +
                "\n"
                "Allocated/Total GPUs In Cluster:\n"
                "4/8 (50%)\n");
}

TEST_F(CliTest, ArenaDeleteTakesEverythingAway) {
  MediumClass();
  ASSERT_EQ(SubmitMedium(), 0) << err_;
  ASSERT_EQ(Run({"arena", "delete", "medium-job"}), 0) << err_;
  EXPECT_EQ(err_, "INFO[0000] The Job medium-job has been deleted successfully\n");
  ASSERT_EQ(Run({"arena", "delete", "medium-job"}), 1);
  EXPECT_EQ(err_, "ERRO[0000] The job medium-job doesn't exist in namespace default\n");
  EXPECT_EQ(SubmitMedium(), 0) << "the name is free again: " << err_;
}

TEST_F(CliTest, ArenaSaysWhatItDoesNotDo) {
  EXPECT_EQ(Run({"arena", "submit", "tf", "--name=x", "--ps=2"}), 2);
  EXPECT_NE(err_.find("arena submit pytorch"), std::string::npos) << err_;
  EXPECT_EQ(Run({"swell", "arena", "serve", "list"}), 2);
  EXPECT_EQ(Run({"arena", "get", "x", "--type", "mpijob"}), 2);
  EXPECT_EQ(Run({"arena", "prune"}), 2);
}

TEST_F(CliTest, ApplyCreatesConfiguresAndLeavesAlone) {
  stdin_ = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: '1', b: '2'}}";
  ASSERT_EQ(Run({"swell", "apply", "-f", "-"}), 0) << err_;
  EXPECT_EQ(out_, "configmap/c created\n");
  ASSERT_EQ(Run({"swell", "apply", "-f", "-"}), 0) << err_;
  EXPECT_EQ(out_, "configmap/c unchanged\n");
  stdin_ = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: '3'}}";
  ASSERT_EQ(Run({"swell", "apply", "--dry-run=server", "-f", "-"}), 0) << err_;
  EXPECT_EQ(out_, "configmap/c configured (server dry run)\n");
  ASSERT_EQ(Run({"swell", "apply", "-f", "-"}), 0) << err_;
  EXPECT_EQ(out_, "configmap/c configured\n");
  ASSERT_EQ(Run({"swell", "get", "cm", "c", "-o", "jsonpath={.data}"}), 0) << err_;
  EXPECT_EQ(out_, "{\"a\":\"3\"}");
  stdin_ = "{apiVersion: v1, kind: ConfigMap, metadata: {name: d}, dta: {}}";
  EXPECT_EQ(Run({"swell", "apply", "-f", "-"}), 1);
  EXPECT_NE(err_.find("unknown field \"dta\""), std::string::npos) << err_;
}

TEST_F(CliTest, GetShowsTablesAndSaysWhatIsMissing) {
  ASSERT_EQ(Run({"swell", "get", "ns", "default"}), 0) << err_;
  EXPECT_EQ(out_, "NAME      STATUS   AGE\ndefault   Active   0s\n");
  ASSERT_EQ(Run({"swell", "get", "pods"}), 0);
  EXPECT_EQ(err_, "No resources found in default namespace.\n");
  EXPECT_EQ(Run({"swell", "get", "ns", "nope", "default"}), 1);
  EXPECT_NE(out_.find("default"), std::string::npos) << "what is there is shown";
  EXPECT_EQ(err_, "swell: namespaces \"nope\" not found\n");
  EXPECT_EQ(Run({"swell", "get", "podz"}), 1);
  EXPECT_NE(err_.find("did you mean pods?"), std::string::npos) << err_;
  ASSERT_EQ(Run({"swell", "get", "ns", "-o", "name"}), 0);
  EXPECT_NE(out_.find("namespace/default\n"), std::string::npos) << out_;
}

TEST_F(CliTest, SubmitPassesTheCommandOnUntouched) {
  ASSERT_EQ(Run({"swell", "submit", "net", "--image", "i", "--", "python", "a.py", "--lr", "0.1"}),
            0)
      << err_;
  EXPECT_EQ(out_, "pytorchjob.kubeflow.org/net created\n");
  ASSERT_EQ(
      Run({"swell", "get", "pytorchjob", "net", "-o",
           "jsonpath={.spec.pytorchReplicaSpecs.Master.template.spec.containers[0].command}"}),
      0);
  EXPECT_EQ(out_, R"(["python","a.py","--lr","0.1"])");
  ASSERT_EQ(Run({"swell", "suspend", "net"}), 0) << err_;
  EXPECT_EQ(out_, "pytorchjob.kubeflow.org/net suspended\n");
  ASSERT_EQ(Run({"swell", "describe", "net"}), 0) << err_;
  EXPECT_NE(out_.find("When preempted:   comes back by itself"), std::string::npos) << out_;
  ASSERT_EQ(Run({"swell", "delete", "net"}), 0) << err_;
  EXPECT_EQ(out_, "pytorchjob.kubeflow.org \"net\" deleted\n");
  EXPECT_EQ(Run({"swell", "wait", "pytorchjob/net", "--for=delete"}), 0) << err_;
}

TEST_F(CliTest, UnknownWordsAreMisuse) {
  EXPECT_EQ(Run({"swell", "gte", "pods"}), 2);
  EXPECT_EQ(err_, "swell: unknown command \"gte\"\nDid you mean: swell get\nSee: swell --help\n");
  EXPECT_EQ(Run({"swell", "top", "nod"}), 2);
  EXPECT_EQ(err_,
            "swell top: unknown command \"nod\"\nDid you mean: swell top node\nSee: swell top "
            "--help\n");
}

TEST_F(CliTest, EveryCommandHelpsWithoutACluster) {
  env_.connect = [](const ClusterFlags&) {
    return Result<Connection>(swell::Status(Code::kNotFound, "no cluster to talk to"));
  };
  for (const char* command : {"get", "list", "describe", "logs", "events", "submit", "apply",
                              "create", "delete", "suspend", "resume", "wait"}) {
    EXPECT_EQ(Run({"swell", command, "--help"}), 0) << command;
    EXPECT_NE(out_.find("Examples:\n  # "), std::string::npos) << command;
    EXPECT_NE(out_.find(StrCat("  swell ", command)), std::string::npos) << command;
  }
  EXPECT_EQ(Run({"swell", "list"}), 1);
  EXPECT_EQ(err_, "swell: no cluster to talk to\n");
}

TEST_F(CliTest, NoReaderIsNoError) {
  env_.out = [](std::string_view) { return false; };
  EXPECT_EQ(Run({"swell", "get", "ns"}), 0);
}

}  // namespace
}  // namespace swell::cli
