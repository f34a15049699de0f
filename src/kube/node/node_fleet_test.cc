#include "kube/node/node_fleet.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kube/node/agent_fixture.h"

namespace swell::node {
namespace {

using std::chrono::seconds;

TEST(FleetTest, AThousandNodesShareOneWatch) {
  SimExecutor sim;
  auto api = std::make_shared<FakeApi>(sim);
  SimulatedRuntime runtime(sim, sim);
  std::vector<NodeConfig> configs;
  for (int i = 0; i < 1000; ++i) {
    NodeConfig config;
    config.name = StrCat("node-", i);
    config.capacity = {{"cpu", "4"}, {"memory", "8Gi"}};
    config.record_events = false;
    configs.push_back(std::move(config));
  }
  NodeFleet fleet(AgentPlugs{sim, sim, api, runtime}, std::move(configs));
  fleet.Start();
  sim.Advance(seconds(1));
  EXPECT_TRUE(fleet.registered());
  size_t watches = static_cast<size_t>(
      std::count(api->requests.begin(), api->requests.end(), "GET /api/v1/pods"));
  EXPECT_EQ(watches, 2u);  // one list, one watch
  json::Value pod = Parse(R"({"metadata":{"name":"a","namespace":"default"},
                              "spec":{"nodeName":"node-700","containers":[{"name":"m"}]}})");
  api->Put(kPods, pod);
  sim.Advance(seconds(1));
  EXPECT_EQ(json::GetString(api->Get(kPods, "a"), {"status", "phase"}), "Running");
  EXPECT_EQ(fleet.Find("node-700")->worker_count(), 1u);
}

}  // namespace
}  // namespace swell::node
