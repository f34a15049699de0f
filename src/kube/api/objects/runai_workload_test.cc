#include "kube/api/objects/runai_workload.h"

#include <gtest/gtest.h>

#include "json/json_test_util.h"

namespace swell::api {
namespace {

using json::J;

TEST(RunaiWorkloadTest, FieldsHaveValuesAndItems) {
  const json::Value body =
      J(R"({"image":{"value":"i"},"cpu":{"value":0.5},"tty":{"value":true},"pvcs":{"items":{"a":
      {"value":{}}}}})");
  EXPECT_EQ(WorkloadText(body, "image"), "i");
  EXPECT_EQ(WorkloadText(body, "cpu"), "0.5");
  EXPECT_EQ(WorkloadText(body, "command"), "");
  EXPECT_TRUE(WorkloadSwitch(body, "tty"));
  EXPECT_FALSE(WorkloadSwitch(body, "stdin"));
  EXPECT_EQ(WorkloadItems(body, "pvcs").size(), 1u);
  EXPECT_TRUE(WorkloadItems(body, "ports").empty());
}

TEST(RunaiWorkloadTest, APortsServiceHasTheExternalOneElseTheContainers) {
  const json::Value body = J(R"({"ports":{"items":{
      "a":{"value":{"container":8888,"external":80,"serviceType":"LoadBalancer"}},
      "b":{"value":{"container":22}},"c":{}}}})");
  const std::vector<WorkloadPort> ports = WorkloadPorts(body);
  ASSERT_EQ(ports.size(), 2u);
  EXPECT_EQ(ports[0].item, "ports.items.a.value");
  EXPECT_EQ(ports[0].container, 8888);
  EXPECT_EQ(ports[0].outer, 80);
  EXPECT_EQ(ports[0].outer_field, "external");
  EXPECT_EQ(ports[0].type, "LoadBalancer");
  EXPECT_EQ(ports[1].outer, 22);
  EXPECT_EQ(ports[1].outer_field, "container");
  EXPECT_EQ(ports[1].type, "ClusterIP");
}

TEST(RunaiWorkloadTest, APortHasTheTypeOfItsWorkload) {
  const json::Value body = J(R"({"serviceType":{"value":"NodePort"},"ports":{"items":{
      "a":{"value":{"container":1}},"b":{"value":{"container":2,"serviceType":"ClusterIP"}}}}})");
  const std::vector<WorkloadPort> ports = WorkloadPorts(body);
  EXPECT_EQ(ports[0].type, "NodePort");
  EXPECT_EQ(ports[1].type, "ClusterIP");
  const json::Value empty =
      J(R"({"serviceType":{"value":""},"ports":{"items":{"a":{"value":{"container":1}}}}})");
  EXPECT_EQ(WorkloadPorts(empty)[0].type, "ClusterIP") << "as a Service of no type has it";
}

TEST(RunaiWorkloadTest, CountsItsPods) {
  EXPECT_EQ(WorkloadMembers(J("{}")), 1);
  EXPECT_EQ(WorkloadMembers(J(R"({"minScale":{"value":3}})")), 3);
  EXPECT_EQ(WorkloadMembers(J(R"({"jobType":"MPIJob","workers":{"value":3}})")), 4);
  EXPECT_EQ(WorkloadMembers(J(R"({"jobType":"JAXJob"})")), 1);
}

TEST(RunaiWorkloadTest, AMasterReplacesWhatItSays) {
  const json::Value merged =
      WithMasterSpec(J(R"({"image":{"value":"i"},"gpu":{"value":1},"cpu":{"value":1}})"),
                     J(R"({"cpu":{"value":2},"gpuMemory":{"value":"4G"}})"));
  EXPECT_EQ(json::Print(merged),
            R"({"image":{"value":"i"},"cpu":{"value":2},"gpuMemory":{"value":"4G"}})");
}

}  // namespace
}  // namespace swell::api
