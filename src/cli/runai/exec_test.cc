// runai attach and port-forward: which terminal and which ports they take without flags.
#include "cli/runai/runai_test_util.h"

namespace swell::cli {
namespace {

class Terminal final : public Console {
 public:
  bool input_is_terminal() const override { return true; }
  swell::Status SetRaw() override { return swell::Status::Ok(); }
  void Start(api::DuplexStream::Callbacks) override {}
  void SetReading(bool) override {}
  bool Size(uint16_t*, uint16_t*) const override { return false; }
  void OnResize(std::function<void()>) override {}
};

// Notes with which query a container is attached to, and refuses it.
class NotesAttach final : public api::RestHandler {
 public:
  NotesAttach(api::RestHandler& server, std::string& query) : server_(server), query_(query) {}
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    if (!request.path.ends_with("/attach"))
      return server_.Handle(std::move(request), std::move(sink));
    query_ = request.query;
    api::RestResponse response;
    response.status = 500;
    response.body.push_back(api::MakeChunk(R"({"kind":"Status","status":"Failure","code":500})"));
    sink->OnResponse(std::move(response));
    return nullptr;
  }

 private:
  api::RestHandler& server_;
  std::string& query_;
};

class RunaiExecTest : public RunaiTest {
 protected:
  // The only pod of a workload, with a container that says this of itself.
  void PodWith(const std::string& container) {
    const std::string path = "/api/v1/namespaces/project-a/pods/large-training-job-worker-0";
    server_.Send(server_.Request("DELETE", path, R"({"gracePeriodSeconds":0})"));
    Create(
        StrCat("{apiVersion: v1, kind: Pod, metadata: {namespace: project-a, name: "
               "large-training-job-worker-0, labels: {swell.dev/job-name: large-training-job, "
               "swell.dev/pod-group: large-training-job, swell.dev/job-role: worker, "
               "swell.dev/job-index: \"0\", swell.dev/project: project-a}, ownerReferences: "
               "[{apiVersion: swell.dev/v1, kind: TrainingJob, controller: true, name: "
               "large-training-job, uid: ",
               json::GetString(Job(), {"metadata", "uid"}),
               "}]}, spec: {nodeName: node-1, containers: [{name: worker, image: img, ", container,
               "}]}}"));
    Status(path, R"({"status":{"phase":"Running"}})");
  }
  // What `runai attach` asks of the node for such a container.
  std::string Attached(const std::string& container, std::vector<std::string> more = {}) {
    PodWith(container);
    std::string query;
    const auto connect = env_.connect;
    env_.connect = [this, &query, connect](const ClusterFlags& flags) {
      auto connection = connect(flags);
      connection->server = std::make_shared<NotesAttach>(*server_.server, query);
      return connection;
    };
    std::vector<std::string> words{"runai", "attach", "large-training-job", "-p", "project-a"};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(Run(words), 1) << out_;
    env_.connect = connect;
    EXPECT_FALSE(query.empty()) << err_;
    return query;
  }
  static bool Has(const std::string& query, std::string_view word) {
    return query.find(word) != std::string::npos;
  }
};

TEST_F(RunaiExecTest, AttachGivesTheTerminalToAProgramThatHasOne) {
  Cluster();
  ASSERT_EQ(Submit(), 0) << err_;
  const std::string piped = Attached("stdin: true, tty: true");
  EXPECT_FALSE(Has(piped, "stdin=true") || Has(piped, "tty=true")) << piped;
  env_.console = [] { return std::make_unique<Terminal>(); };
  const std::string workspace = Attached("stdin: true, tty: true");
  EXPECT_TRUE(Has(workspace, "stdin=true") && Has(workspace, "tty=true")) << workspace;
  const std::string training = Attached("workingDir: /");
  EXPECT_FALSE(Has(training, "stdin=true") || Has(training, "tty=true")) << training;
  const std::string watched = Attached("stdin: true, tty: true", {"--no-stdin"});
  EXPECT_FALSE(Has(watched, "stdin=true") || Has(watched, "tty=true")) << watched;
  const std::string plain = Attached("stdin: true, tty: true", {"--no-tty"});
  EXPECT_TRUE(Has(plain, "stdin=true") && !Has(plain, "tty=true")) << plain;
  EXPECT_EQ(Run({"runai", "attach", "large-training-job", "-p", "project-a", "-i", "--no-stdin"}),
            2);
  EXPECT_TRUE(err_.starts_with("runai attach: --stdin and --no-stdin exclude each other\n"))
      << err_;
}

TEST_F(RunaiExecTest, APodThatDoesNotRunYetIsWaitedFor) {
  Cluster();
  ASSERT_EQ(Submit(), 0) << err_;
  for (const char* flag : {"--wait-timeout", "--pod-running-timeout"}) {
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"logs", "w", "--limit-bytes", "10"},
          std::vector<std::string>{"exec", "w", "-c", "c"},
          std::vector<std::string>{"bash", "w", "-c", "c"},
          std::vector<std::string>{"port-forward", "w", "--port", "1:2"}}) {
      std::vector<std::string> words{"runai"};
      words.insert(words.end(), command.begin(), command.end());
      words[2] = "large-training-job";
      words.insert(words.end(), {"-p", "project-a", flag, "1ms"});
      if (command[0] == "exec") words.insert(words.end(), {"--", "ls"});
      EXPECT_EQ(Run(words), 1) << command[0];
      EXPECT_NE(err_.find("has no pod"), std::string::npos) << err_;
    }
  }
  EXPECT_EQ(Run({"runai", "logs", "large-training-job", "-p", "project-a", "--wait-timeout", "x"}),
            2);
  EXPECT_NE(err_.find("--wait-timeout"), std::string::npos) << err_;
}

TEST_F(RunaiExecTest, PortForwardListensOnThePortsOfTheSubmission) {
  Cluster();
  ASSERT_EQ(Submit({"--port", "8899:8888"}), 0) << err_;
  PodWith("workingDir: /");
  env_.listen = [](const std::string&,
                   std::function<void(api::DuplexPtr)>) -> Result<std::unique_ptr<PortListener>> {
    return swell::Status(Code::kUnavailable, "no");
  };
  // A port that leads nowhere is named: that of the Service, and that of the pod when a port is
  // said.
  server_.Send(server_.Request("PATCH", "/api/v1/namespaces/project-a/services/large-training-job",
                               R"({"spec":{"ports":[{"port":8899,"targetPort":"none"}]}})",
                               "application/merge-patch+json"));
  EXPECT_EQ(Run({"runai", "port-forward", "large-training-job", "-p", "project-a"}), 1);
  EXPECT_EQ(err_, "runai: Service large-training-job does not have a service port 8899\n");
  EXPECT_EQ(
      Run({"runai", "port-forward", "large-training-job", "-p", "project-a", "--port", "1:http"}),
      1);
  EXPECT_EQ(err_, "runai: Pod 'large-training-job-worker-0' does not have a named port 'http'\n");
}

TEST_F(RunaiExecTest, PortForwardAsksForAPortInWordsThatRunaiTakes) {
  Cluster();
  ASSERT_EQ(Submit(), 0) << err_;
  PodWith("workingDir: /");
  env_.listen = [](const std::string&,
                   std::function<void(api::DuplexPtr)>) -> Result<std::unique_ptr<PortListener>> {
    return swell::Status(Code::kUnavailable, "no");
  };
  EXPECT_EQ(Run({"runai", "port-forward", "large-training-job", "-p", "project-a"}), 2);
  EXPECT_TRUE(
      err_.starts_with("runai port-forward: Pod large-training-job-worker-0 names no ports; "
                       "say which to forward after its name, like 8888\n"))
      << err_;
}

}  // namespace
}  // namespace swell::cli
