// What the guard lets through while the watch is behind.
#include <gtest/gtest.h>

#include "manager/testing/one_node_fixture.h"

namespace swell::scheduling {
namespace {

using client::resources::kPods;
using manager::kSecond;
using manager::OneNodeTest;
using CapacityGuardTest = OneNodeTest;

TEST_F(CapacityGuardTest, GuardRefusesWhatDoesNotFit) {
  Pod("a", "", 3);
  ASSERT_TRUE(UntilRunning("a"));
  Pod("b", "", 2);
  cluster_.Run(2 * kSecond);
  json::SharedValue pod = cluster_.Get(kPods, "default/b");
  Status status = cluster_.manager->CheckBind(*pod, "node-a");
  EXPECT_EQ(status.code(), Code::kConflict);
  EXPECT_EQ(status.message(),
            "pod \"default/b\" asks for 2 nvidia.com/gpu, node \"node-a\" has 1 free");
  EXPECT_TRUE(cluster_.manager->CheckBind(*pod, "node-unknown").ok());
  // What was let through counts before the watch shows it.
  json::Value one = *pod;
  json::Set(one, {"metadata", "uid"}, "x");
  json::Set(one, {"metadata", "name"}, "x");
  json::Set(one, {"spec", "containers"},
            json::Array{json::Object{
                {"resources", json::Object{{"limits", json::Object{{"nvidia.com/gpu", "1"}}}}}}});
  EXPECT_TRUE(cluster_.manager->CheckBind(one, "node-a").ok());
  EXPECT_TRUE(cluster_.manager->CheckBind(one, "node-a").ok());
  json::Set(one, {"metadata", "uid"}, "y");
  EXPECT_FALSE(cluster_.manager->CheckBind(one, "node-a").ok());
  cluster_.Run(11 * kSecond);
  EXPECT_TRUE(cluster_.manager->CheckBind(one, "node-a").ok());
}

TEST_F(CapacityGuardTest, GuardForgetsAPodThatCameAndWent) {
  Pod("a", "", 4);
  ASSERT_TRUE(UntilRunning("a"));
  ASSERT_TRUE(cluster_.Delete(kPods, "default/a").ok());
  ASSERT_TRUE(cluster_.Until([&] { return !cluster_.Get(kPods, "default/a"); }));
  Pod("b", "", 4);
  cluster_.Run(kSecond);
  json::SharedValue pod = cluster_.Get(kPods, "default/b");
  ASSERT_TRUE(pod);
  EXPECT_EQ(json::GetString(*pod, {"spec", "nodeName"}), "node-a");
}

}  // namespace
}  // namespace swell::scheduling
