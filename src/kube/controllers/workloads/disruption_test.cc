// What disruption budgets allow.
#include <gtest/gtest.h>

#include "manager/testing/one_node_fixture.h"

namespace swell::controllers {
namespace {

using client::resources::kPodDisruptionBudgets;
using manager::OneNodeTest;
using DisruptionTest = OneNodeTest;

TEST_F(DisruptionTest, BudgetCountsHealthyPods) {
  for (const char* pod : {"a", "b", "c"}) Pod(pod, "app: x");
  cluster_.Create(
      "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b, namespace: default}\n"
      "spec: {minAvailable: 2, selector: {matchLabels: {app: x}}}\n");
  ASSERT_TRUE(cluster_.Until([&] {
    return cluster_.Int(kPodDisruptionBudgets, "default/b", {"status", "disruptionsAllowed"}) == 1;
  }));
  EXPECT_EQ(cluster_.Int(kPodDisruptionBudgets, "default/b", {"status", "currentHealthy"}), 3);
  EXPECT_EQ(cluster_.Int(kPodDisruptionBudgets, "default/b", {"status", "expectedPods"}), 3);
  cluster_.agents->Exit("default/a", 1);
  EXPECT_TRUE(cluster_.Until([&] {
    return cluster_.Int(kPodDisruptionBudgets, "default/b", {"status", "disruptionsAllowed"}) == 0;
  }));
}

TEST_F(DisruptionTest, BudgetAsPercentage) {
  for (const char* pod : {"a", "b", "c", "d"}) Pod(pod, "app: x");
  cluster_.Create(
      "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b, namespace: default}\n"
      "spec: {maxUnavailable: 50%, selector: {matchLabels: {app: x}}}\n");
  EXPECT_TRUE(cluster_.Until([&] {
    return cluster_.Int(kPodDisruptionBudgets, "default/b", {"status", "disruptionsAllowed"}) == 2;
  }));
}

}  // namespace
}  // namespace swell::controllers
