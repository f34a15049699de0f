// The parts of an embedded cluster that can run without one: its port, its backup and its metrics.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "base/unique_fd.h"
#include "kube/apiserver/test_server.h"
#include "kube/net/reactor/reactor.h"
#include "kube/node/runtime/simulated_runtime.h"
#include "kube/store/backend.h"
#include "ops/backup/online_backup.h"
#include "ops/cluster/cluster_metrics.h"
#include "ops/cluster/last_port.h"

namespace swell::ops {
namespace {

class LastPortTest : public ::testing::Test {
 protected:
  // Ports in `taken` are refused; 0 gets 40000, as from the kernel.
  Result<uint16_t> Listen(std::set<uint16_t> taken, bool all_taken = false) {
    return ListenAtLastPort(dir_.PortFile(), random_, [&](uint16_t port) -> Result<uint16_t> {
      tried_.push_back(port);
      if (port == 0) return uint16_t{40000};
      if (all_taken || taken.contains(port)) return Status(Code::kConflict, "in use");
      return port;
    });
  }
  void Ran(std::string_view port) {
    ASSERT_TRUE(WriteFileAtomically(dir_.PortFile(), port, 0644).ok());
  }

  TempDir folder_;
  DataDir dir_{folder_.path()};
  Random random_{7};
  std::vector<uint16_t> tried_;
};

TEST_F(LastPortTest, TheFirstRunTakesAPortThatTheKernelDoesNotHandOut) {
  const uint16_t port = Listen({}).value();
  EXPECT_GE(port, 12000);
  EXPECT_LT(port, 30000);
}

TEST_F(LastPortTest, ARestartKeepsThePort) {
  Ran("23456\n");
  EXPECT_EQ(Listen({}).value(), 23456);
  EXPECT_NE(Listen({23456}).value(), 23456);
}

TEST_F(LastPortTest, AFileThatHoldsNoPortIsIgnored) {
  for (const char* text : {"", "no port", "70000"}) {
    Ran(text);
    EXPECT_GE(Listen({}).value(), 12000) << text;
  }
}

TEST_F(LastPortTest, TheKernelChoosesAtLast) {
  EXPECT_EQ(Listen({}, true).value(), 40000);
  EXPECT_EQ(tried_.size(), 21U);
}

TEST_F(LastPortTest, APortThatOthersWereToldIsNotChangedWithoutAWord) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(socket.get(), any, size), 0);
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  ASSERT_EQ(::getsockname(socket.get(), any, &size), 0);
  const int port = ntohs(address.sin_port);
  Ran(std::to_string(port));
  auto in_use = [](uint16_t) -> Result<uint16_t> { return Status(Code::kConflict, "in use"); };
  const std::string why = ListenAtRecordedPort(dir_.PortFile(), random_, in_use).status().message();
  EXPECT_NE(
      why.find(StrCat("port ", port, ", which the kubeconfigs of this cluster name, is taken, ",
                      "by process ", ::getpid(), " (")),
      std::string::npos)
      << why;
  auto free = [](uint16_t one) -> Result<uint16_t> { return one; };
  EXPECT_EQ(ListenAtRecordedPort(dir_.PortFile(), random_, free).value(), port);
  ASSERT_TRUE(RemoveTree(dir_.PortFile()).ok());
  EXPECT_GE(ListenAtRecordedPort(dir_.PortFile(), random_, free).value(), 12000);
}

class OnlineBackupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store_ = store::Store::Open(core_, store::MakeMemoryBackend(core_)).value();
  }
  Result<json::Value> Write(const std::string& path) {
    std::optional<Result<json::Value>> answer;
    backup_.Write(*store_, path, nullptr, [&](Result<json::Value> result) {
      answer = std::move(result);
      core_.Stop();
    });
    Result<json::Value> second = json::Value();
    backup_.Write(*store_, path, nullptr,
                  [&](Result<json::Value> result) { second = std::move(result); });
    EXPECT_EQ(second.status().code(), Code::kTooManyRequests);
    core_.Run();
    return *answer;
  }

  TempDir folder_;
  net::Reactor core_;
  std::unique_ptr<store::Store> store_;
  OnlineBackup backup_{core_};
};

TEST_F(OnlineBackupTest, WritesADatabaseOneAtATime) {
  const std::string path = folder_.path() + "/backup.db";
  const Result<json::Value> answer = Write(path);
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_EQ(json::GetString(*answer, {"file"}), path);
  EXPECT_TRUE(ReadFile(path, 1 << 20).value().starts_with("SQLite format 3"));
}

TEST_F(OnlineBackupTest, SaysWhyAFileCannotBeWritten) {
  const Result<json::Value> answer = Write(folder_.path() + "/missing/backup.db");
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.status().message().find("backup"), std::string::npos);
}

TEST(ClusterMetricsTest, NamesEveryCounterOnce) {
  TempDir folder;
  const DataDir dir{folder.path()};
  ASSERT_TRUE(WriteFileAtomically(dir.Database(), "12345", 0600).ok());
  net::ServerStats sockets;
  sockets.connections_open = 3;
  edge::HttpFrontStats requests;
  requests.refused = 2;
  Metrics metrics;
  auto registered = metrics.Register([&](MetricPage& page) {
    AddSocketMetrics(page, sockets, requests);
    AddDatabaseMetrics(page, dir);
    AddPodMetrics(page, nullptr);
  });
  const std::string text = metrics.Print();
  for (const char* line :
       {"swell_http_connections 3\n", "swell_http_requests_refused_total 2\n",
        "swell_store_size_bytes{file=\"swell.db\"} 5\n", "swell_agent_pods 0\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST(ClusterMetricsTest, AnAgentCountsItsNodes) {
  apiserver::TestServer server;
  ASSERT_TRUE(server.Boot().boot.ok());
  SimExecutor& core = server.executor;
  node::SimulatedRuntime runtime(core, core);
  std::vector<node::NodeConfig> nodes(2);
  for (node::NodeConfig& node : nodes) node.capacity = {{"cpu", "4"}, {"memory", "8Gi"}};
  nodes[0].name = "gpu-1";
  nodes[1].name = "gpu-2";
  const std::shared_ptr<api::RestHandler> api(server.server.get(), [](api::RestHandler*) {});
  node::NodeFleet fleet(node::AgentPlugs{core, core, api, runtime, nullptr, 7}, nodes);
  Metrics metrics;
  auto registered = metrics.Register([&](MetricPage& page) { AddAgentMetrics(page, fleet); });
  const std::string before = metrics.Print();
  EXPECT_NE(before.find("swell_agent_nodes 2\n"), std::string::npos) << before;
  EXPECT_NE(before.find("swell_agent_nodes_registered 0\n"), std::string::npos) << before;
  fleet.Start();
  core.Advance(std::chrono::seconds(1));
  const std::string after = metrics.Print();
  EXPECT_NE(after.find("swell_agent_nodes_registered 2\n"), std::string::npos) << after;
  EXPECT_NE(after.find("swell_agent_pods 0\n"), std::string::npos) << after;
}

}  // namespace
}  // namespace swell::ops
