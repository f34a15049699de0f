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

TEST_F(PodJanitorTest, AFloodInOneNamespacePushesOutItsOwnPodsAlone) {
  cluster_.Create("{apiVersion: v1, kind: Namespace, metadata: {name: quiet}}");
  auto run = [this](const std::string& ns, const std::string& name) {
    cluster_.Create(StrCat("{apiVersion: v1, kind: Pod, metadata: {name: ", name,
                           ", namespace: ", ns,
                           "}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}"));
    const std::string pod = StrCat(ns, "/", name);
    EXPECT_TRUE(cluster_.Until([&] { return cluster_.PodPhase(pod) == "Running"; }));
    cluster_.agents->Exit(pod, 0);
    cluster_.Run(2 * kSecond);
  };
  run("quiet", "oldest");
  for (const char* pod : {"a", "b", "c", "d", "e"}) run("default", pod);
  cluster_.StopManager();
  cluster_.StartManager({.ended_pods_max = 3});
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 3; }));
  EXPECT_EQ(cluster_.PodPhase("quiet/oldest"), "Succeeded");
  EXPECT_EQ(cluster_.PodPhase("default/c"), "");
  EXPECT_EQ(cluster_.PodPhase("default/d"), "Succeeded");
}

}  // namespace
}  // namespace swell::controllers
