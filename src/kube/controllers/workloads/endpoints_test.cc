// Services and the pods behind them.
#include <gtest/gtest.h>

#include "operator/testing/one_node_fixture.h"

namespace swell::controllers {
namespace {

using client::resources::kEndpoints;
using EndpointsTest = OneNodeTest;

TEST_F(EndpointsTest, EndpointsFollowTheReadyPods) {
  cluster_.Create(
      "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: default}\n"
      "spec: {selector: {app: x}, ports: [{port: 80, targetPort: web}]}\n");
  Pod("a", "app: x");
  Pod("b", "app: other");
  ASSERT_TRUE(UntilRunning("a"));
  ASSERT_TRUE(UntilRunning("b"));
  cluster_.Run(kSecond);
  json::SharedValue endpoints = cluster_.Get(kEndpoints, "default/s");
  ASSERT_TRUE(endpoints);
  const json::Array& subsets = json::GetArray(*endpoints, {"subsets"});
  ASSERT_EQ(subsets.size(), 1u);
  ASSERT_EQ(json::GetArray(subsets[0], {"addresses"}).size(), 1u);
  EXPECT_EQ(json::GetString(json::GetArray(subsets[0], {"addresses"})[0], {"targetRef", "name"}),
            "a");
  EXPECT_EQ(json::GetInt(json::GetArray(subsets[0], {"ports"})[0], {"port"}), 8080);
  cluster_.agents->Exit("default/a", 0);
  EXPECT_TRUE(cluster_.Until([&] {
    json::SharedValue now = cluster_.Get(kEndpoints, "default/s");
    return now && json::GetArray(*now, {"subsets"}).empty();
  }));
  ASSERT_TRUE(cluster_.Delete(client::resources::kServices, "default/s").ok());
  EXPECT_TRUE(cluster_.Until([&] { return !cluster_.Get(kEndpoints, "default/s"); }));
}

}  // namespace
}  // namespace swell::controllers
