// Pods that become gangs, and what their groups say.
#include <gtest/gtest.h>

#include "operator/testing/one_node_fixture.h"

namespace swell::controllers {
namespace {

using client::resources::kPodGroups;
using client::resources::kPods;
using PodGroupTest = OneNodeTest;

TEST_F(PodGroupTest, LabelledPodsBecomeAGang) {
  Pod("a", "swell.dev/pod-group: gang", 2, "swell.dev/min-member: '2'");
  cluster_.Run(5 * kSecond);
  json::SharedValue group = cluster_.Get(kPodGroups, "default/gang");
  ASSERT_TRUE(group);
  EXPECT_EQ(json::GetInt(*group, {"status", "minMember"}), 2);
  EXPECT_EQ(cluster_.PodPhase("default/a"), "Pending");
  Pod("b", "swell.dev/pod-group: gang", 2);
  ASSERT_TRUE(UntilRunning("a"));
  ASSERT_TRUE(UntilRunning("b"));
  ASSERT_TRUE(cluster_.Until([&] {
    return json::GetString(*cluster_.Get(kPodGroups, "default/gang"), {"status", "phase"}) ==
           "Running";
  }));
  for (const char* pod : {"default/a", "default/b"}) ASSERT_TRUE(cluster_.Delete(kPods, pod).ok());
  EXPECT_TRUE(cluster_.Until([&] { return !cluster_.Get(kPodGroups, "default/gang"); }));
}

TEST_F(PodGroupTest, AGroupHasSucceededStillWhenItsPodsAreCleanedUp) {
  cluster_.Create(PyTorchYaml{.workers = 0, .run_policy = "cleanPodPolicy: All"}.Text());
  ASSERT_TRUE(UntilRunning("job-master-0"));
  cluster_.agents->Exit("default/job-master-0", 0);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
  cluster_.Run(5 * kSecond);
  EXPECT_EQ(json::GetString(*cluster_.Get(kPodGroups, "default/job"), {"status", "phase"}),
            "Succeeded");
}

}  // namespace
}  // namespace swell::controllers
