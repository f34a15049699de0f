#include "ops/nodes/node_gpus.h"

#include <gtest/gtest.h>

namespace swell::ops {
namespace {

json::Value Parse(std::string_view text) {
  auto value = json::Parse(text);
  EXPECT_TRUE(value.ok()) << value.status().message();
  return value.ok() ? *value : json::Value();
}

json::SharedValue Shared(std::string_view text) {
  return std::make_shared<const json::Value>(Parse(text));
}

constexpr char kNode[] = R"({"metadata":{"name":"node-1","labels":{
    "nvidia.com/gpu.product":"H100","nvidia.com/gpu.memory":"8192"}},"status":{
    "nodeInfo":{"containerRuntimeVersion":"process://0.1.0"},
    "capacity":{"cpu":"4","nvidia.com/gpu":"3"},
    "allocatable":{"cpu":"4","memory":"8Gi","nvidia.com/gpu":"3"}}})";

TEST(NodeGpus, ShowWhatContainersUseOfThem) {
  const auto whole = Shared(R"({"metadata":{"namespace":"red","name":"train","annotations":{
      "swell.dev/gpu-devices":"0,2"}},"spec":{"nodeName":"node-1","containers":[
      {"name":"side"},
      {"name":"main","resources":{"limits":{"nvidia.com/gpu":"2","cpu":"2"}}}]},
      "status":{"phase":"Running"}})");
  auto shares = [](const char* name) {
    return Shared(std::string(R"({"metadata":{"namespace":"red","name":")") + name +
                  R"(","annotations":{"swell.dev/gpu-devices":"1","swell.dev/gpu-fraction":"0.5"}},
      "spec":{"nodeName":"node-1","containers":[{"name":"main",
      "resources":{"requests":{"cpu":"1"}}}]},"status":{"phase":"Running"}})");
  };
  const auto ended = Shared(R"({"metadata":{"namespace":"red","name":"old","annotations":{
      "swell.dev/gpu-devices":"0"}},"spec":{"nodeName":"node-1","containers":[{"name":"main"}]},
      "status":{"phase":"Succeeded"}})");
  const json::Value usage = Parse(R"({"items":[
      {"metadata":{"namespace":"red","name":"train"},"containers":[
        {"name":"side","usage":{"cpu":"2","memory":"1Gi"}},
        {"name":"main","usage":{"cpu":"500m","memory":"600Mi"}}]},
      {"metadata":{"namespace":"red","name":"a"},"containers":[
        {"name":"main","usage":{"cpu":"300m","memory":"100Mi"}}]},
      {"metadata":{"namespace":"red","name":"b"},"containers":[
        {"name":"main","usage":{"cpu":"900m","memory":"20Gi"}}]}]})");
  const auto gpus = DescribeNodeGpus(Parse(kNode), {whole, shares("a"), shares("b"), ended}, usage);
  ASSERT_TRUE(gpus.ok()) << gpus.status().message();
  EXPECT_EQ(gpus->devices,
            "0|H100 (virtual)|GPU-virtual-node-1-0|8192|25|300\n"
            "1|H100 (virtual)|GPU-virtual-node-1-1|8192|100|8192\n"
            "2|H100 (virtual)|GPU-virtual-node-1-2|8192|25|300\n");
  EXPECT_EQ(gpus->programs,
            "0|-|red/train/main|300\n2|-|red/train/main|300\n1|-|red/a/main|100\n"
            "1|-|red/b/main|8092\n");
}

TEST(NodeGpus, WithoutFiguresTheyAreIdle) {
  const auto gpus = DescribeNodeGpus(Parse(kNode), {}, {});
  ASSERT_TRUE(gpus.ok());
  EXPECT_TRUE(gpus->devices.starts_with("0|H100 (virtual)|GPU-virtual-node-1-0|8192|0|0\n"));
  EXPECT_EQ(gpus->programs, "");
}

TEST(NodeGpus, RealOnesAreNvidias) {
  json::Value real = Parse(kNode);
  json::Set(real, {"metadata", "labels", "nvidia.com/gpu.present"}, json::Value("true"));
  EXPECT_EQ(DescribeNodeGpus(real, {}, {}).status().code(), Code::kInvalid);
  json::Value other = Parse(kNode);
  json::Set(other, {"status", "nodeInfo", "containerRuntimeVersion"},
            json::Value("containerd://2.0"));
  EXPECT_EQ(DescribeNodeGpus(other, {}, {}).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace swell::ops
