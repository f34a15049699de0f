// What the flags of swell controller mean for the replica that it runs.
#include "ops/options/controller_replica.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"

namespace swell::ops {
namespace {

TEST(ControllerReplicaTest, WhatIsSwellsOwnIsInTheNamespaceOfTheLease) {
  ControllerOptions controller;
  controller.election.ns = "swell-system";
  const auto replica = ReplicaOptionsOf(controller, {.others_jobs = {"mpijobs.kubeflow.org"}});
  ASSERT_TRUE(replica.ok()) << replica.status().ToString();
  EXPECT_EQ(replica->manager.own_namespace, "swell-system");
  EXPECT_EQ(replica->manager.grouping_namespace, "swell-system");
  EXPECT_EQ(replica->manager.others_jobs, (std::set<std::string>{"mpijobs.kubeflow.org"}));
  EXPECT_EQ(replica->manager.scheme, nullptr) << "Kubernetes' own controllers run elsewhere";
  ASSERT_TRUE(replica->election.has_value());
}

TEST(ControllerReplicaTest, WithoutElectionItLeadsAlone) {
  ControllerOptions controller;
  controller.election.elect = false;
  controller.election.lease_duration = "not read";
  const auto replica = ReplicaOptionsOf(controller, {});
  ASSERT_TRUE(replica.ok()) << replica.status().ToString();
  EXPECT_FALSE(replica->election.has_value());
  controller.election.elect = true;
  EXPECT_FALSE(ReplicaOptionsOf(controller, {}).ok());
}

TEST(ControllerReplicaTest, WrongGroupingRulesAreAnError) {
  const TempDir folder;
  ControllerOptions controller;
  controller.grouping_rules = folder.File("rules.yaml");
  ASSERT_TRUE(WriteFileAtomically(controller.grouping_rules, "{}\n").ok());
  EXPECT_FALSE(ReplicaOptionsOf(controller, {}).ok());
}

}  // namespace
}  // namespace swell::ops
