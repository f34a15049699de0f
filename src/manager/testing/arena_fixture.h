// The cluster of the Arena walkthrough, and its two jobs.
#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::manager {

inline constexpr std::string_view kArenaClasses = R"(
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: critical}
value: 1100000
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: medium}
value: 1000000
)";

// The Arena walkthrough's cluster: three nodes of four GPUs.
class ArenaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* node : {"node-a", "node-b", "node-c"}) cluster_.AddNode(node, 4);
    cluster_.StartManager();
    cluster_.Create(kArenaClasses);
  }
  bool Is(const std::string& job, std::string_view type) {
    return cluster_.Condition(client::resources::kPyTorchJobs, "default/" + job, type);
  }
  void FillWithMedium(const std::string& on_preemption) {
    cluster_.Create(PyTorchYaml{
        .name = "medium",
        .workers = 2,
        .gpus = 4,
        .priority = "medium",
        .annotations = on_preemption.empty() ? "" : "swell.dev/on-preemption: " + on_preemption}
                        .Text());
    ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 3; }));
    cluster_.Run(20 * kSecond);
  }
  void SubmitCritical() {
    cluster_.Create(
        PyTorchYaml{.name = "critical", .workers = 0, .gpus = 1, .priority = "critical"}.Text());
  }
  TestCluster cluster_;
};

}  // namespace swell::manager
