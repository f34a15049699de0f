// The whole way: a client over a real socket, the API server, a node agent's endpoints and a
// runtime that simulates.

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/api_server.h"
#include "kube/client/client.h"
#include "kube/edge/edge_test_util.h"
#include "kube/edge/http/http_front.h"
#include "kube/edge/http/http_transport.h"
#include "kube/edge/kubelet/kubelet_server.h"
#include "kube/edge/streams/command_client.h"
#include "kube/net/http/server.h"
#include "kube/net/net_testing.h"
#include "kube/net/reactor/reactor.h"
#include "kube/node/node_fleet.h"
#include "kube/node/runtime/simulated_runtime.h"
#include "kube/store/backend.h"

namespace swell::edge {
namespace {

class KubeletTest : public ::testing::Test {
 protected:
  KubeletTest() {
    store_ = std::move(store::Store::Open(core_, store::MakeMemoryBackend(core_), {})).value();
    apiserver::Options options;
    options.tokens = {{"secret", {"admin", "1", {"system:masters"}}}};
    options.node_dialer =
        [this](const std::string& node) -> Result<std::shared_ptr<api::RestHandler>> {
      if (node == "n1" && endpoints_) return std::shared_ptr<api::RestHandler>(endpoints_);
      return Status(Code::kNotFound, "no such node");
    };
    server_ = apiserver::ApiServer::Create(core_, clock_, random_, *store_, std::move(options));
    bool ready = false;
    server_->Bootstrap([&](const Status& status) { ready = status.ok(); });
    EXPECT_TRUE(Until([&] { return ready; }));
    runtime_ = std::make_unique<node::SimulatedRuntime>(core_, clock_);
    node::NodeConfig node;
    node.name = "n1";
    node.capacity = {{"cpu", "4"}, {"memory", "8Gi"}};
    fleet_ = std::make_unique<node::NodeFleet>(
        node::AgentPlugs{core_, clock_, server_, *runtime_, nullptr, 7},
        std::vector<node::NodeConfig>{node});
    endpoints_ = std::make_shared<WireWatch>(
        MakeKubeletEndpoints(*fleet_->Find("n1"), {forwarded_, commands_}));
    fleet_->Start();
    front_ = std::make_unique<HttpFront>(core_, *server_, HttpFrontConfig{});
    http_ = std::make_unique<net::HttpServer>(io_, clock_, *front_, net::ServerConfig{});
    auto port = http_->Listen("127.0.0.1:0");
    EXPECT_TRUE(port.ok());
    HttpTransportConfig config;
    config.client.base_url = StrCat("http://127.0.0.1:", *port);
    config.bearer_token = "secret";
    auto made = HttpTransport::Make(core_, config);
    EXPECT_TRUE(made.ok());
    transport_ = std::make_shared<WireWatch>(std::move(*made));
    client_ = std::make_unique<client::Client>(core_, transport_, api::UserInfo{}, "test");
    thread_ = std::thread([this] { io_.Run(); });
  }
  ~KubeletTest() override {
    command_.reset();
    client_.reset();
    transport_->Drop();
    EXPECT_TRUE(Until([&] { return transport_->AllGone() && endpoints_->AllGone(); }));
    RunPosted(core_);
    io_.Post([this] {
      http_.reset();
      io_.Stop();
    });
    thread_.join();
    front_.reset();
    endpoints_.reset();
    fleet_.reset();
  }
  // To pod "a", when it is open. `problem`: why it failed or ended.
  auto OpenPortForward(std::string& problem) {
    auto open = std::make_shared<bool>(false);
    auto forward = StartPortForward(
        core_, transport_, {}, "default", "a",
        {.on_open = [open] { *open = true; },
         .on_error = [&problem](uint16_t, const std::string& why) { problem = why; },
         .on_end = [&problem](const Status& why) { problem = why.ToString(); }});
    EXPECT_TRUE(Until([&] { return *open || !problem.empty(); })) << problem;
    return forward;
  }

  bool Until(const std::function<bool()>& done) { return core_.RunUntil(done, net::kPatience); }

  std::string Get(const std::string& path) {
    std::string answer;
    client_->Call({.method = "GET", .path = path}, [&](const Result<api::RestResponse>& r) {
      answer = r.ok() ? r->BodyString() : r.status().ToString();
    });
    EXPECT_TRUE(Until([&] { return !answer.empty(); }));
    return answer;
  }

  void MakePod(const std::string& name,
               const std::string& node,
               const std::string& phase,
               const std::string& annotations = "{}") {
    std::string spec = StrCat("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"",
                              name, "\",\"namespace\":\"default\",\"annotations\":", annotations,
                              "},\"spec\":{", node.empty() ? "" : "\"nodeName\":\"n1\",",
                              "\"containers\":[{\"name\":\"main\",\"image\":\"x\"},{\"name\":"
                              "\"side\",\"image\":\"x\"}]}}");
    std::optional<Status> created;
    client_->Create(client::resources::kPods, "default", *json::Parse(spec),
                    [&](const Result<json::SharedValue>& r) { created = r.status(); });
    ASSERT_TRUE(Until([&] { return created.has_value(); }));
    ASSERT_TRUE(created->ok()) << created->ToString();
    bool there = phase.empty();
    std::function<void()> look = [&] {
      client_->Get(client::resources::kPods, "default", name,
                   [&](const Result<json::SharedValue>& r) {
                     there = r.ok() && json::GetString(**r, {"status", "phase"}) == phase;
                     if (!there) look();
                   });
    };
    if (!there) look();
    ASSERT_TRUE(Until([&] { return there; }));
  }

  // The command's output, and its exit code or the error.
  std::string Run(const std::string& pod,
                  const std::string& container,
                  std::vector<std::string> argv,
                  const std::string& input = {}) {
    std::string out, end;
    CommandOptions options;
    options.ns = "default";
    options.pod = pod;
    options.container = container;
    options.command = std::move(argv);
    options.input = !input.empty();
    command_ = StartCommand(core_, transport_, {}, options,
                            {.on_output = [&](bool, const api::Chunk& bytes) { out += *bytes; },
                             .on_exit =
                                 [&](const Result<int>& code) {
                                   end =
                                       code.ok() ? StrCat("exit ", *code) : code.status().message();
                                 }});
    if (!input.empty()) {
      command_->Write(api::MakeChunk(input));
      command_->CloseInput();
    }
    EXPECT_TRUE(Until([&] { return !end.empty(); }));
    command_.reset();
    return out + end;
  }

  net::Reactor core_, io_;
  RealClock clock_;
  Random random_{1};
  std::unique_ptr<store::Store> store_;
  std::shared_ptr<apiserver::ApiServer> server_;
  std::unique_ptr<node::SimulatedRuntime> runtime_;
  std::unique_ptr<node::NodeFleet> fleet_;
  const std::shared_ptr<FairPlaces> forwarded_ = std::make_shared<FairPlaces>(4);
  const std::shared_ptr<FairPlaces> commands_ = std::make_shared<FairPlaces>(4);
  std::shared_ptr<WireWatch> endpoints_;
  std::unique_ptr<HttpFront> front_;
  std::unique_ptr<net::HttpServer> http_;
  std::thread thread_;
  std::shared_ptr<WireWatch> transport_;
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<CommandClient> command_;
};

TEST_F(KubeletTest, ACommandGoesThroughTheApiServerToItsNode) {
  MakePod("a", "n1", "Running");
  EXPECT_EQ(Run("a", "main", {"ls", "-l"}), "simulated: ls -l\nexit 0");
  EXPECT_EQ(Run("a", "side", {"cat"}, "typed\n"), "simulated: cat\ntyped\nexit 0");
}

TEST_F(KubeletTest, RefusalsAreKubernetesOwn) {
  MakePod("a", "n1", "Running");
  MakePod("waits", "", "");
  EXPECT_EQ(Run("a", "", {"ls"}),
            "a container name must be specified for pod a, choose one of: [main side]");
  EXPECT_EQ(Run("a", "nope", {"ls"}), "container nope is not valid for pod a");
  EXPECT_EQ(Run("none", "main", {"ls"}), "pods \"none\" not found");
  EXPECT_EQ(Run("waits", "main", {"ls"}), "pod waits does not have a host assigned");
}

TEST_F(KubeletTest, PortsAreForwardedThroughTheApiServer) {
  MakePod("a", "n1", "Running");
  std::string problem, answer;
  const auto forward = OpenPortForward(problem);
  auto [local, carried] = api::MakePipe(core_);
  forward->Forward(8080, carried);
  local->Start({[&](const api::Chunk& bytes) { answer += *bytes; }, [](const Status&) {}});
  local->Write(api::MakeChunk("echo"));
  EXPECT_TRUE(Until([&] { return answer == "echo"; }));
  EXPECT_EQ(problem, "");
}

TEST_F(KubeletTest, OneUsersForwardedConnectionsLeavePlacesToOthers) {
  MakePod("a", "n1", "Running");
  std::string problem;
  const auto forward = OpenPortForward(problem);
  // One user may hold two of the four places.
  std::vector<api::DuplexPtr> local;
  for (size_t i = 1; i <= 3; ++i) {
    auto [near, far] = api::MakePipe(core_);
    forward->Forward(8080, far);
    near->Start({[](const api::Chunk&) {}, [](const Status&) {}});
    local.push_back(near);
    ASSERT_TRUE(Until([&] { return forwarded_->taken() == std::min<size_t>(i, 2); }));
  }
  ASSERT_TRUE(Until([&] { return !problem.empty(); }));
  EXPECT_NE(problem.find("2 forwarded connections are open, and too many of them are yours"),
            std::string::npos)
      << problem;
  EXPECT_NE(forwarded_->Take("another"), nullptr);
  local.front()->Close();
  EXPECT_TRUE(Until([&] { return forwarded_->taken() == 1; }));
}

TEST_F(KubeletTest, OneUsersCommandsLeavePlacesToOthers) {
  MakePod("a", "n1", "Running");
  // One user may hold two of the four places. A command without an end of its input stays.
  std::vector<std::unique_ptr<CommandClient>> running;
  for (size_t i = 1; i <= 2; ++i) {
    CommandOptions options;
    options.ns = "default";
    options.pod = "a";
    options.container = "main";
    options.command = {"cat"};
    options.input = true;
    running.push_back(StartCommand(
        core_, transport_, {}, options,
        {.on_output = [](bool, const api::Chunk&) {}, .on_exit = [](const Result<int>&) {}}));
    ASSERT_TRUE(Until([&] { return commands_->taken() == i; }));
  }
  EXPECT_EQ(Run("a", "main", {"ls"}),
            "2 commands run in pods, and too many of them are yours: end some");
  EXPECT_NE(commands_->Take("another"), nullptr);
  running.pop_back();
  EXPECT_TRUE(Until([&] { return commands_->taken() == 1; }));
  EXPECT_EQ(Run("a", "main", {"ls"}), "simulated: ls\nexit 0");
}

TEST_F(KubeletTest, ANodesEndpointsAreItsProxy) {
  EXPECT_EQ(Get("/api/v1/nodes/n1/proxy/healthz"), "ok");
}

TEST_F(KubeletTest, WhatAPodUsesIsMeasuredByItsNode) {
  MakePod("a", "n1", "Running", R"({"swell.dev/used-cpu":"300m","swell.dev/used-memory":"1Gi"})");
  const std::string api = "/apis/metrics.k8s.io/v1beta1/";
  const std::string pod = Get(api + "namespaces/default/pods/a");
  for (const char* part : {R"("kind":"PodMetrics")", R"({"name":"main","usage":{"cpu":")",
                           R"(,"memory":"1048576Ki"}},{"name":"side",)"}) {
    EXPECT_NE(pod.find(part), std::string::npos) << part << " in " << pod;
  }
  const std::string node = Get(api + "nodes");
  EXPECT_NE(node.find(R"("memory":"2097152Ki")"), std::string::npos) << node;
  // What metrics servers of Kubernetes scrape.
  const std::string metrics = Get("/api/v1/nodes/n1/proxy/metrics/resource");
  for (const char* part :
       {"# TYPE container_cpu_usage_seconds_total counter\n",
        R"(container_cpu_usage_seconds_total{container="main",namespace="default",pod="a"} )",
        R"(container_memory_working_set_bytes{container="side",namespace="default",pod="a"} )"
        "1073741824 ",
        "node_memory_working_set_bytes 2147483648 ", "node_cpu_usage_seconds_total ",
        R"(pod_memory_working_set_bytes{namespace="default",pod="a"} 2147483648 )",
        "container_start_time_seconds{", "resource_scrape_error 0\n"}) {
    EXPECT_NE(metrics.find(part), std::string::npos) << part << " in " << metrics;
  }
}

}  // namespace
}  // namespace swell::edge
