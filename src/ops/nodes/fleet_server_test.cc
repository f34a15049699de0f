// Where an API server finds the nodes of an agent.
#include "ops/nodes/fleet_server.h"

#include <set>

#include <gtest/gtest.h>

#include "base/strings.h"

namespace swell::ops {
namespace {

class FleetServerTest : public testing::Test {
 protected:
  std::vector<node::NodeConfig> Nodes(size_t count) {
    std::vector<node::NodeConfig> nodes(count);
    for (size_t i = 0; i < count; ++i) {
      nodes[i].name = StrCat("node-", i);
      nodes[i].internal_ip = "127.0.0.1";
    }
    return nodes;
  }
  Result<std::unique_ptr<FleetServer>> Listen(std::vector<node::NodeConfig>& nodes) {
    return FleetServer::Listen(core_, clock_, nodes, "", nullptr);
  }

  RealClock clock_;
  net::Reactor core_;
};

TEST_F(FleetServerTest, EveryNodeHasAPortOfItsOwn) {
  auto nodes = Nodes(3);
  const auto server = Listen(nodes);
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  ASSERT_NE(*server, nullptr);
  std::set<int64_t> ports;
  for (const node::NodeConfig& node : nodes) ports.insert(node.kubelet_port);
  EXPECT_EQ(ports.size(), 3U);
  EXPECT_FALSE(ports.contains(0));
}

TEST_F(FleetServerTest, ALargeFleetHasNone) {
  auto nodes = Nodes(FleetServer::kNodesMax + 1);
  const auto server = Listen(nodes);
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  EXPECT_EQ(*server, nullptr);
  EXPECT_EQ(nodes[0].kubelet_port, 0);
}

TEST_F(FleetServerTest, AnAddressThatIsNotOfThisMachineIsAnError) {
  auto nodes = Nodes(1);
  nodes[0].internal_ip = "192.0.2.1";
  EXPECT_FALSE(Listen(nodes).ok());
}

}  // namespace
}  // namespace swell::ops
