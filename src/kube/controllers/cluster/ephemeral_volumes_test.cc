// Ephemeral volumes: their claims are made, waited for, and go with their pods.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod_claims.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::controllers {
namespace {

using client::resources::kPersistentVolumeClaims;
using client::resources::kPods;
using manager::TestCluster;

class EphemeralVolumesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-a", 4);
    cluster_.StartManager();
  }
  void Class(const std::string& name) {
    cluster_.Create(
        StrCat("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: ", name,
               "}\nprovisioner: local.swell.dev\n", "volumeBindingMode: WaitForFirstConsumer\n"));
  }
  void Pod(const std::string& volumes) {
    cluster_.Create(StrCat("apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\n",
                           "spec: {containers: [{name: c, image: x}], volumes: [", volumes, "]}"));
  }
  static std::string Volume(const std::string& name, const std::string& storage_class) {
    return StrCat("{name: ", name,
                  ", ephemeral: {volumeClaimTemplate: {metadata: {labels: {of: scratch}}, spec: {"
                  "accessModes: [ReadWriteOnce], storageClassName: ",
                  storage_class, ", resources: {requests: {storage: 1Gi}}}}}}");
  }
  json::SharedValue Claim(const std::string& name) {
    return cluster_.Get(kPersistentVolumeClaims, "default/" + name);
  }
  bool Runs() {
    return cluster_.Until([&] { return cluster_.Pods("Running") == 1; });
  }
  bool Gone(const std::string& claim) {
    return cluster_.Until([&] { return Claim(claim) == nullptr; });
  }

  TestCluster cluster_;
};

TEST_F(EphemeralVolumesTest, EachHasAClaimThatGoesWithThePod) {
  Class("local");
  Pod(StrCat(Volume("a", "local"), ", ", Volume("b", "local"), ", {name: c, emptyDir: {}}"));
  ASSERT_TRUE(Runs());
  const json::SharedValue pod = cluster_.Get(kPods, "default/p");
  for (const char* name : {"p-a", "p-b"}) {
    const json::SharedValue claim = Claim(name);
    ASSERT_TRUE(claim) << name;
    EXPECT_TRUE(api::IsMadeFor(*claim, *pod)) << name;
    EXPECT_EQ(api::Label(*claim, "of"), "scratch") << name;
    EXPECT_TRUE(cluster_.Until([&] { return api::StatusPhase(*Claim(name)) == "Bound"; })) << name;
  }
  ASSERT_TRUE(cluster_.Delete(kPods, "default/p").ok());
  EXPECT_TRUE(Gone("p-a"));
  EXPECT_TRUE(Gone("p-b"));
}

TEST_F(EphemeralVolumesTest, ThePodWaitsForAClassThatDoesNotExist) {
  Pod(Volume("a", "fast"));
  EXPECT_TRUE(cluster_.Until([&] { return Claim("p-a") != nullptr; }));
  cluster_.Run(std::chrono::seconds(20));
  EXPECT_EQ(cluster_.Pods("Running"), 0);
  Class("fast");
  EXPECT_TRUE(Runs());
}

TEST_F(EphemeralVolumesTest, ThePodWaitsUntilTheVolumeBeforeIsRemoved) {
  Class("local");
  cluster_.Create(
      "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: old, finalizers: [x.io/held]}\n"
      "spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], claimRef: {namespace: "
      "default, name: p-a, uid: gone}, persistentVolumeReclaimPolicy: Delete, csi: {driver: "
      "local.swell.dev, volumeHandle: default/p-a}}");
  Pod(Volume("a", "local"));
  cluster_.Run(std::chrono::seconds(20));
  EXPECT_FALSE(Claim("p-a"));
  ASSERT_TRUE(cluster_.Delete(client::resources::kPersistentVolumes, "old").ok());
  ASSERT_TRUE(
      cluster_.Patch(client::resources::kPersistentVolumes, "old", "{metadata: {finalizers: null}}")
          .ok());
  EXPECT_TRUE(Runs());
}

TEST_F(EphemeralVolumesTest, AClaimOfAnotherIsNotUsed) {
  Class("local");
  cluster_.Create(
      "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: p-a, namespace: default}\n"
      "spec: {accessModes: [ReadWriteOnce], storageClassName: local, resources: {requests: "
      "{storage: 1Gi}}}");
  Pod(Volume("a", "local"));
  cluster_.Run(std::chrono::seconds(20));
  EXPECT_EQ(cluster_.Pods("Running"), 0);
  EXPECT_EQ(cluster_.EventMessage("FailedBinding"),
            "ephemeral volume a: PVC default/p-a was not created for pod default/p (pod is not "
            "owner)");
  ASSERT_TRUE(cluster_.Delete(kPersistentVolumeClaims, "default/p-a").ok());
  EXPECT_TRUE(Runs());
}

}  // namespace
}  // namespace swell::controllers
