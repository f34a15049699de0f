// Claims that a provisioner of others serves once the scheduler has named a node in them.
#include "scheduling/volume_waits.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/cluster/volume_match.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::scheduling {
namespace {

using client::resources::kNodes;
using client::resources::kPersistentVolumeClaims;
using client::resources::kPods;
using manager::TestCluster;

class VolumeWaitsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-a", 4);
    cluster_.AddNode("node-b", 4);
    cluster_.StartManager();
    Class("far", "");
  }
  void Class(const std::string& name, const std::string& more) {
    cluster_.Create(StrCat(
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: ", name,
        "}\nprovisioner: disks.example.com\n", "volumeBindingMode: WaitForFirstConsumer\n", more));
  }
  void Claim(const std::string& name, const std::string& storage_class = "far") {
    cluster_.Create(StrCat("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: ", name,
                           ", namespace: default}\nspec: {accessModes: [ReadWriteOnce], "
                           "storageClassName: ",
                           storage_class, ", resources: {requests: {storage: 1Gi}}}\n"));
  }
  void Pod(const std::string& name, const std::vector<std::string>& claims, int gpus = 1) {
    std::string volumes;
    for (const std::string& claim : claims) {
      volumes += StrCat("{name: ", claim, ", persistentVolumeClaim: {claimName: ", claim, "}}, ");
    }
    cluster_.Create(StrCat("apiVersion: v1\nkind: Pod\nmetadata: {name: ", name,
                           ", namespace: default}\nspec: {schedulerName: swell, containers: "
                           "[{name: c, image: x, resources: {limits: {nvidia.com/gpu: ",
                           gpus, "}}}], volumes: [", volumes, "]}\n"));
  }
  std::string NodeOf(const std::string& pod) {
    const json::SharedValue object = cluster_.Get(kPods, "default/" + pod);
    return object ? std::string(json::GetString(*object, {"spec", "nodeName"})) : "no pod";
  }
  std::string Selected(const std::string& claim) {
    return std::string(
        controllers::SelectedNode(*cluster_.Get(kPersistentVolumeClaims, "default/" + claim)));
  }
  void Select(const std::string& claim, const std::string& node) {
    EXPECT_TRUE(cluster_
                    .Patch(kPersistentVolumeClaims, "default/" + claim,
                           StrCat("metadata: {annotations: {", controllers::kSelectedNode, ": ",
                                  node, "}}"))
                    .ok());
  }
  // What the provisioner does in the end: a volume for the claim.
  void Provision(const std::string& claim) {
    cluster_.Create(StrCat("apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: made-", claim,
                           "}\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], "
                           "storageClassName: far, claimRef: {namespace: default, name: ",
                           claim, "}, csi: {driver: disks.example.com, volumeHandle: x}}\n"));
  }
  void RunFiveSeconds() { cluster_.Run(std::chrono::seconds(5)); }

  TestCluster cluster_;
};

TEST_F(VolumeWaitsTest, APodIsBoundWhenItsClaimsHaveTheirVolumesOnTheNodeTheyName) {
  Claim("one");
  Claim("two");
  Pod("p", {"one", "two"});
  RunFiveSeconds();
  EXPECT_EQ(Selected("one"), "node-a");
  EXPECT_EQ(Selected("two"), "node-a");
  EXPECT_EQ(NodeOf("p"), "");
  Provision("one");
  RunFiveSeconds();
  EXPECT_EQ(NodeOf("p"), "");
  Provision("two");
  RunFiveSeconds();
  EXPECT_EQ(NodeOf("p"), "node-a");
}

TEST_F(VolumeWaitsTest, AnEphemeralVolumesClaimIsWaitedForToo) {
  cluster_.Create(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\nspec: {schedulerName: "
      "swell, containers: [{name: c, image: x}], volumes: [{name: scratch, ephemeral: "
      "{volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], storageClassName: far, "
      "resources: {requests: {storage: 1Gi}}}}}}]}\n");
  RunFiveSeconds();
  EXPECT_EQ(Selected("p-scratch"), "node-a");
  EXPECT_EQ(NodeOf("p"), "");
  Provision("p-scratch");
  RunFiveSeconds();
  EXPECT_EQ(NodeOf("p"), "node-a");
}

// Its place is kept while it waits, and nobody else waits for that.
TEST_F(VolumeWaitsTest, OthersArePlacedBesideIt) {
  Claim("one");
  Pod("p", {"one"}, 3);
  RunFiveSeconds();
  Pod("large", {}, 3);
  Pod("small", {}, 1);
  RunFiveSeconds();
  EXPECT_EQ(NodeOf("p"), "");
  EXPECT_EQ(NodeOf("large"), "node-b");
  EXPECT_NE(NodeOf("small"), "");
}

TEST_F(VolumeWaitsTest, AnotherNodeIsChosenWhenTheProvisionerHasNothingForTheFirst) {
  Claim("one");
  Pod("p", {"one"});
  RunFiveSeconds();
  ASSERT_EQ(Selected("one"), "node-a");
  EXPECT_TRUE(cluster_.Patch(kNodes, "node-a", "spec: {unschedulable: true}").ok());
  Select("one", "null");
  RunFiveSeconds();
  EXPECT_EQ(Selected("one"), "node-b");
  Provision("one");
  RunFiveSeconds();
  EXPECT_EQ(NodeOf("p"), "node-b");
}

TEST_F(VolumeWaitsTest, WhatAClaimOrItsClassSaysOfNodesIsKept) {
  Claim("chosen");
  Select("chosen", "node-b");
  Pod("p", {"chosen"});
  EXPECT_TRUE(cluster_.Patch(kNodes, "node-b", "metadata: {labels: {zone: east}}").ok());
  Class("east", "allowedTopologies: [{matchLabelExpressions: [{key: zone, values: [east]}]}]\n");
  Claim("eastern", "east");
  Pod("q", {"eastern"});
  RunFiveSeconds();
  Provision("chosen");
  RunFiveSeconds();
  EXPECT_EQ(NodeOf("p"), "node-b");
  EXPECT_EQ(Selected("eastern"), "node-b");
}

TEST_F(VolumeWaitsTest, APodThatGoesGivesItsPlaceBack) {
  Claim("one");
  Pod("p", {"one"}, 4);
  RunFiveSeconds();
  ASSERT_EQ(Selected("one"), "node-a");
  EXPECT_TRUE(cluster_.Delete(kPods, "default/p").ok());
  Pod("a", {}, 4);
  Pod("b", {}, 4);
  RunFiveSeconds();
  EXPECT_NE(NodeOf("a"), "");
  EXPECT_NE(NodeOf("b"), "");
}

TEST_F(VolumeWaitsTest, AClaimOfOnePodServesOnePodAtATime) {
  cluster_.Create(
      "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: one}\nspec: {capacity: {storage: "
      "1Gi}, accessModes: [ReadWriteOncePod], storageClassName: '', claimRef: {namespace: default, "
      "name: one}, hostPath: {path: /srv/one}}\n---\n"
      "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: one, namespace: default}\n"
      "spec: {accessModes: [ReadWriteOncePod], storageClassName: '', volumeName: one, resources: "
      "{requests: {storage: 1Gi}}}\n");
  Pod("p", {"one"});
  RunFiveSeconds();
  EXPECT_EQ(NodeOf("p"), "node-a");
  Pod("q", {"one"});
  RunFiveSeconds();
  EXPECT_EQ(NodeOf("q"), "");
  EXPECT_NE(cluster_.EventMessage("FailedScheduling", "q")
                .find("2 node has pod using PersistentVolumeClaim with the same name and "
                      "ReadWriteOncePod access mode"),
            std::string::npos)
      << cluster_.EventMessage("FailedScheduling", "q");
  EXPECT_TRUE(cluster_.Delete(kPods, "default/p").ok());
  RunFiveSeconds();
  EXPECT_NE(NodeOf("q"), "");
}

TEST_F(VolumeWaitsTest, AfterTenMinutesThePodIsPlacedAnew) {
  Claim("one");
  Pod("p", {"one"}, 4);
  RunFiveSeconds();
  cluster_.Run(std::chrono::minutes(11));
  EXPECT_EQ(NodeOf("p"), "");
  Provision("one");
  cluster_.Run(std::chrono::seconds(30));
  EXPECT_EQ(NodeOf("p"), "node-a");
}

}  // namespace
}  // namespace swell::scheduling
