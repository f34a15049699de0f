#include "kube/controllers/cluster/volume_binder.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/cluster/volume_match.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::controllers {
namespace {

using client::resources::kPersistentVolumeClaims;
using client::resources::kPersistentVolumes;
using client::resources::kPods;
using manager::TestCluster;

class VolumeBinderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-a", 4);
    cluster_.StartManager(
        {.remove_volume = [this](const std::string& handle) { removed_.push_back(handle); }});
  }

  void Volume(const std::string& name, const std::string& size, const std::string& more = "") {
    cluster_.Create(StrCat("apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: ", name,
                           "}\nspec: {capacity: {storage: ", size,
                           "}, accessModes: [ReadWriteOnce, ReadWriteMany], hostPath: {path: /x}",
                           more, "}\n"));
  }
  void Claim(const std::string& name, const std::string& size, const std::string& more = "") {
    cluster_.Create(StrCat("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: ", name,
                           ", namespace: default}\nspec: {accessModes: [ReadWriteMany], resources: "
                           "{requests: {storage: ",
                           size, "}}", more, "}\n"));
  }
  void User(const std::string& name, const std::string& claim) {
    cluster_.Create(StrCat("apiVersion: v1\nkind: Pod\nmetadata: {name: ", name,
                           ", namespace: default}\nspec: {containers: [{name: c, image: x}], "
                           "volumes: [{name: v, persistentVolumeClaim: {claimName: ",
                           claim, "}}]}\n"));
  }
  // "phase volume" of a claim, "phase claim" of a volume.
  std::string StateOfClaim(const std::string& name) {
    const json::SharedValue claim = cluster_.Get(kPersistentVolumeClaims, "default/" + name);
    if (!claim) return "gone";
    return StrCat(json::GetString(*claim, {"status", "phase"}), " ",
                  json::GetString(*claim, {"spec", "volumeName"}));
  }
  std::string StateOfVolume(const std::string& name) {
    const json::SharedValue volume = cluster_.Get(kPersistentVolumes, name);
    if (!volume) return "gone";
    return StrCat(json::GetString(*volume, {"status", "phase"}), " ",
                  json::GetString(*volume, {"spec", "claimRef", "name"}));
  }
  void RunFiveSeconds() { cluster_.Run(std::chrono::seconds(5)); }

  TestCluster cluster_;
  std::vector<std::string> removed_;
};

TEST_F(VolumeBinderTest, AClaimGetsTheSmallestVolumeThatFits) {
  Volume("large", "20Gi");
  Volume("small", "1Gi");
  Volume("right", "5Gi");
  Volume("fast", "5Gi", ", storageClassName: fast");
  RunFiveSeconds();
  EXPECT_EQ(StateOfVolume("right"), "Available ");
  Claim("data", "4Gi");
  RunFiveSeconds();
  EXPECT_EQ(StateOfClaim("data"), "Bound right");
  EXPECT_EQ(StateOfVolume("right"), "Bound data");
  const json::SharedValue claim = cluster_.Get(kPersistentVolumeClaims, "default/data");
  EXPECT_EQ(json::GetString(*claim, {"status", "capacity", "storage"}), "5Gi");
  Claim("fast", "1Gi", ", storageClassName: fast");
  Claim("huge", "1Ti");
  RunFiveSeconds();
  EXPECT_EQ(StateOfClaim("fast"), "Bound fast");
  EXPECT_EQ(StateOfClaim("huge"), "Pending ");
}

TEST_F(VolumeBinderTest, AClaimMayNameItsVolume) {
  Volume("other", "5Gi");
  Claim("data", "5Gi", ", volumeName: mine");
  RunFiveSeconds();
  EXPECT_EQ(StateOfClaim("data"), "Pending mine");
  Volume("mine", "9Gi");
  RunFiveSeconds();
  EXPECT_EQ(StateOfClaim("data"), "Bound mine");
  Claim("late", "1Gi", ", volumeName: mine");
  Claim("small", "6Gi", ", volumeName: other");
  RunFiveSeconds();
  EXPECT_EQ(StateOfClaim("late"), "Pending mine");
  EXPECT_EQ(cluster_.EventMessage("VolumeMismatch"),
            "Cannot bind to requested volume \"other\": requested PV is too small");
}

TEST_F(VolumeBinderTest, AVolumeMayBeKeptForAClaim) {
  Volume("kept", "5Gi", ", claimRef: {namespace: default, name: later}");
  Claim("first", "1Gi");
  RunFiveSeconds();
  EXPECT_EQ(StateOfVolume("kept"), "Available later");
  EXPECT_EQ(StateOfClaim("first"), "Pending ");
  Claim("later", "1Gi");
  RunFiveSeconds();
  EXPECT_EQ(StateOfClaim("later"), "Bound kept");
}

TEST_F(VolumeBinderTest, WhatIsLeftFollowsFromTheReclaimPolicy) {
  Volume("kept", "5Gi");
  Volume("odd", "9Gi", ", persistentVolumeReclaimPolicy: Delete");
  Claim("a", "5Gi");
  Claim("b", "9Gi");
  RunFiveSeconds();
  ASSERT_EQ(StateOfClaim("a"), "Bound kept");
  ASSERT_EQ(StateOfClaim("b"), "Bound odd");
  ASSERT_TRUE(cluster_.Delete(kPersistentVolumeClaims, "default/a").ok());
  ASSERT_TRUE(cluster_.Delete(kPersistentVolumeClaims, "default/b").ok());
  RunFiveSeconds();
  EXPECT_EQ(StateOfVolume("kept"), "Released a");
  EXPECT_EQ(StateOfVolume("odd"), "Failed b") << "nobody knows how to delete it";
  ASSERT_TRUE(cluster_.Delete(kPersistentVolumes, "kept").ok());
  RunFiveSeconds();
  EXPECT_EQ(StateOfVolume("kept"), "gone");
}

TEST_F(VolumeBinderTest, AVolumeIsMadeForTheFirstPod) {
  Claim("data", "5Gi");
  RunFiveSeconds();
  EXPECT_EQ(StateOfClaim("data"), "Pending ");
  User("p", "data");
  RunFiveSeconds();
  const json::SharedValue claim = cluster_.Get(kPersistentVolumeClaims, "default/data");
  const std::string volume = StrCat("pvc-", api::Uid(*claim));
  EXPECT_EQ(StateOfClaim("data"), "Bound " + volume);
  EXPECT_EQ(StateOfVolume(volume), "Bound data");
  EXPECT_EQ(json::GetString(*claim, {"spec", "storageClassName"}), "standard");
  ASSERT_TRUE(cluster_.Delete(kPersistentVolumeClaims, "default/data").ok());
  RunFiveSeconds();
  EXPECT_EQ(StateOfClaim("data"), "Bound " + volume) << "a pod uses it";
  ASSERT_TRUE(cluster_.Delete(kPods, "default/p").ok());
  RunFiveSeconds();
  EXPECT_EQ(StateOfClaim("data"), "gone");
  EXPECT_EQ(StateOfVolume(volume), "gone");
  EXPECT_EQ(removed_, std::vector<std::string>{"default/data"});
}

TEST_F(VolumeBinderTest, AClaimWhoseVolumeIsGoneIsLost) {
  Volume("v", "5Gi");
  Claim("data", "5Gi");
  RunFiveSeconds();
  ASSERT_EQ(StateOfClaim("data"), "Bound v");
  ASSERT_TRUE(cluster_.Delete(kPersistentVolumes, "v").ok());
  RunFiveSeconds();
  EXPECT_EQ(StateOfVolume("v"), "Bound data") << "protected";
  ASSERT_TRUE(cluster_.Patch(kPersistentVolumes, "v", "metadata: {finalizers: null}").ok());
  RunFiveSeconds();
  EXPECT_EQ(StateOfClaim("data"), "Lost v");
}

TEST(VolumeMatch, SaysWhatDoesNotFit) {
  auto yaml = [](std::string_view text) { return json::ParseYaml(text)->front(); };
  const json::Value volume =
      yaml("spec: {capacity: {storage: 5Gi}, accessModes: [ReadWriteOnce], storageClassName: s}");
  auto why = [&](std::string_view spec) {
    return WhyNotFor(volume, yaml(StrCat("metadata: {name: c, namespace: n}\nspec: ", spec)));
  };
  EXPECT_EQ(why("{accessModes: [ReadWriteOnce], storageClassName: s}"), "");
  EXPECT_EQ(why("{resources: {requests: {storage: 6Gi}}, storageClassName: s}"),
            "requested PV is too small");
  EXPECT_EQ(why("{}"), "storageClassName does not match");
  EXPECT_EQ(why("{storageClassName: s, volumeMode: Block}"), "incompatible volumeMode");
  EXPECT_EQ(why("{storageClassName: s, accessModes: [ReadWriteMany]}"), "incompatible accessMode");
}

}  // namespace
}  // namespace swell::controllers
