// Ended pods do not pile up.
#include <gtest/gtest.h>

#include "manager/testing/one_node_fixture.h"

namespace swell::controllers {
namespace {

using manager::kSecond;
using manager::OneNodeTest;

using PodJanitorTest = OneNodeTest;

TEST_F(PodJanitorTest, JanitorRemovesTheOldestEndedPods) {
  cluster_.StopManager();
  cluster_.StartManager({.ended_pods_max = 2});
  for (const char* pod : {"a", "b", "c", "d"}) {
    Pod(pod, "");
    ASSERT_TRUE(UntilRunning(pod));
    cluster_.agents->Exit(StrCat("default/", pod), 0);
    cluster_.Run(2 * kSecond);
  }
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 2; }));
  EXPECT_EQ(cluster_.PodPhase("default/a"), "");
  EXPECT_EQ(cluster_.PodPhase("default/d"), "Succeeded");
}

}  // namespace
}  // namespace swell::controllers
