// Services and the pods behind them.
#include <gtest/gtest.h>

#include "kube/api/meta/meta.h"
#include "manager/testing/one_node_fixture.h"

namespace swell::controllers {
namespace {

using client::resources::kEndpoints;
using manager::kSecond;
using manager::OneNodeTest;
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

TEST_F(EndpointsTest, EndpointsHaveTheServicesLabels) {
  cluster_.Create(
      "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: default, labels: {a: b}}\n"
      "spec: {selector: {app: x}, ports: [{port: 80}]}\n");
  auto labels = [&] {
    const json::SharedValue known = cluster_.Get(kEndpoints, "default/s");
    return known ? json::Print(json::Value(json::GetObject(*known, {"metadata", "labels"}))) : "";
  };
  EXPECT_TRUE(cluster_.Until([&] {
    return labels() == R"({"a":"b","endpoints.kubernetes.io/managed-by":"endpoint-controller"})";
  })) << labels();
  ASSERT_TRUE(
      cluster_
          .Patch(client::resources::kServices, "default/s", "{metadata: {labels: {a: null, c: d}}}")
          .ok());
  EXPECT_TRUE(cluster_.Until([&] {
    return labels().find(R"("c":"d")") != std::string::npos &&
           labels().find(R"("a":)") == std::string::npos;
  })) << labels();
  // A slice says who writes slices, and not who writes Endpoints.
  for (const json::SharedValue& slice : cluster_.List(client::resources::kEndpointSlices)) {
    EXPECT_EQ(api::Label(*slice, "endpoints.kubernetes.io/managed-by"), "");
  }
}

TEST_F(EndpointsTest, EndpointsWithoutAServiceStay) {
  cluster_.Create(
      "apiVersion: v1\nkind: Endpoints\nmetadata: {name: own, namespace: default, labels: {a: b}}\n"
      "subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 80}]}]\n");
  cluster_.Run(10 * kSecond);
  EXPECT_TRUE(cluster_.Get(kEndpoints, "default/own"));
  // A service of their name takes them along when it goes.
  cluster_.Create(
      "apiVersion: v1\nkind: Service\nmetadata: {name: own, namespace: default}\n"
      "spec: {ports: [{port: 80}]}\n");
  cluster_.Run(kSecond);
  ASSERT_TRUE(cluster_.Delete(client::resources::kServices, "default/own").ok());
  EXPECT_TRUE(cluster_.Until([&] { return !cluster_.Get(kEndpoints, "default/own"); }));
}

}  // namespace
}  // namespace swell::controllers
