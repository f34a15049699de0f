// Pods whose devices are tainted are evicted. Pods whose claims tolerate the taint stay, or stay
// for a while.
#include "kube/controllers/cluster/device_taints.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/one_node_fixture.h"

namespace swell::controllers {
namespace {

using client::resources::kPods;
using client::resources::kResourceClaims;
using client::resources::kResourceSlices;
using manager::kSecond;
using manager::OneNodeTest;

class DeviceTaintsTest : public OneNodeTest {
 protected:
  // On node-a, with this device of driver d.example.com, whose claim has these tolerations.
  void PodWith(const std::string& name,
               const std::string& device,
               const std::string& tolerations = "") {
    cluster_.Create(StrCat(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: ", name,
        ", namespace: default}\nspec: {devices: {requests: [{name: d, exactly: ",
        "{deviceClassName: none}}]}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: ", name,
        ", namespace: default}\nspec: {restartPolicy: Never, nodeName: node-a, resourceClaims: ",
        "[{name: d, resourceClaimName: ", name, "}], containers: [{name: c, image: x}]}\n"));
    const Status status = cluster_.Patch(
        kResourceClaims, "default/" + name,
        StrCat("status: {allocation: {devices: {results: [{request: d, driver: d.example.com, ",
               "pool: node-a, device: ", device, ", tolerations: [", tolerations,
               "]}]}}, reservedFor: [{resource: pods, name: ", name,
               ", uid: ", cluster_.PodUid("default/" + name), "}]}"),
        "status");
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  void Rule(const std::string& device, const std::string& effect) {
    cluster_.Create(
        StrCat("apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: worn}\n",
               "spec: {deviceSelector: {driver: d.example.com, device: ", device,
               "}, taint: {key: worn, value: 'yes', effect: ", effect, "}}\n"));
  }
  std::string Said() {
    const json::SharedValue rule = cluster_.Get(client::resources::kDeviceTaintRules, "worn");
    const auto condition = api::FindCondition(*rule, "EvictionInProgress");
    return condition ? std::string(condition->message) : "";
  }
  bool InProgress() {
    return cluster_.Condition(client::resources::kDeviceTaintRules, "worn", "EvictionInProgress");
  }
  bool Stays(const std::string& pod) {
    const json::SharedValue object = cluster_.Get(kPods, "default/" + pod);
    return object && !api::IsDeleting(*object);
  }
};

TEST_F(DeviceTaintsTest, ARuleEvictsThePodsOfItsDevices) {
  PodWith("a", "d-0");
  PodWith("b", "d-1");
  PodWith("c", "d-0", "{key: worn, operator: Exists, effect: NoExecute}");
  PodWith("d", "d-0", "{key: other, operator: Exists, effect: NoExecute}");
  Rule("d-0", "NoExecute");
  EXPECT_TRUE(cluster_.Until([&] { return !Stays("a") && !Stays("d"); }));
  cluster_.Run(5 * kSecond);
  EXPECT_TRUE(Stays("b"));
  EXPECT_TRUE(Stays("c"));
  EXPECT_TRUE(cluster_.Until([&] {
    for (const json::SharedValue& event : cluster_.List(client::resources::kEvents)) {
      if (json::GetString(*event, {"reason"}) != "DeviceTaintManagerEviction") continue;
      return json::GetString(*event, {"message"}) ==
             "Marking for deletion: a device of the pod has taint worn=yes:NoExecute";
    }
    return false;
  }));
}

TEST_F(DeviceTaintsTest, OnlyNoExecuteEvicts) {
  PodWith("a", "d-0");
  Rule("d-0", "NoSchedule");
  cluster_.Run(30 * kSecond);
  EXPECT_TRUE(Stays("a"));
  ASSERT_TRUE(
      cluster_
          .Patch(client::resources::kDeviceTaintRules, "worn", "spec: {taint: {effect: NoExecute}}")
          .ok());
  EXPECT_TRUE(cluster_.Until([&] { return !Stays("a"); }));
}

TEST_F(DeviceTaintsTest, ATolerationBearsATaintForItsTime) {
  PodWith("a", "d-0", "{key: worn, operator: Exists, effect: NoExecute, tolerationSeconds: 60}");
  Rule("d-0", "NoExecute");
  cluster_.Run(50 * kSecond);
  EXPECT_TRUE(Stays("a"));
  cluster_.Run(20 * kSecond);
  EXPECT_FALSE(Stays("a"));
}

TEST_F(DeviceTaintsTest, ARuleSaysHowManyPodsItEvictsAndHasEvicted) {
  PodWith("a", "d-0");
  PodWith("b", "d-0", "{key: worn, operator: Exists, effect: NoExecute, tolerationSeconds: 60}");
  PodWith("c", "d-0", "{key: worn, operator: Exists, effect: NoExecute}");
  Rule("d-0", "NoExecute");
  ASSERT_TRUE(cluster_.Until([&] {
    return Said() ==
           "1 pod to evict; 1 pod evicted since the "
           "controller started";
  }));
  EXPECT_TRUE(InProgress());
  cluster_.Run(70 * kSecond);
  EXPECT_EQ(Said(), "0 pods to evict; 2 pods evicted since the controller started");
  EXPECT_FALSE(InProgress());
}

TEST_F(DeviceTaintsTest, ARuleWithoutEffectSaysOnceWhatItWouldDo) {
  PodWith("a", "d-0");
  PodWith("b", "d-1");
  Rule("d-0", "None");
  ASSERT_TRUE(cluster_.Until([&] { return !Said().empty(); }));
  EXPECT_EQ(Said(), "with the effect NoExecute, 1 pod would be evicted");
  EXPECT_FALSE(InProgress());
  PodWith("c", "d-0");
  cluster_.Run(10 * kSecond);
  EXPECT_EQ(Said(), "with the effect NoExecute, 1 pod would be evicted");
  EXPECT_TRUE(Stays("a"));
  ASSERT_TRUE(
      cluster_.Patch(client::resources::kDeviceTaintRules, "worn", "spec: {taint: {value: very}}")
          .ok());
  EXPECT_TRUE(cluster_.Until(
      [&] { return Said() == "with the effect NoExecute, 2 pods would be evicted"; }));
}

TEST_F(DeviceTaintsTest, ATaintOfTheDriverCountsInTheNewestSlice) {
  auto slice = [](const std::string& name, int generation, const std::string& taints) {
    return StrCat("apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: ", name,
                  "}\nspec: {driver: d.example.com, nodeName: node-a, pool: {name: node-a, ",
                  "generation: ", generation,
                  ", resourceSliceCount: 1}, devices: [{name: d-0, taints: [", taints, "]}]}\n");
  };
  PodWith("a", "d-0");
  cluster_.Create(slice("new", 2, ""));
  cluster_.Run(2 * kSecond);
  cluster_.Create(slice("old", 1, "{key: worn, effect: NoExecute}"));
  cluster_.Run(30 * kSecond);
  EXPECT_TRUE(Stays("a"));
  ASSERT_TRUE(cluster_.Delete(kResourceSlices, "new").ok());
  cluster_.Create(slice("newer", 3, "{key: worn, effect: NoExecute}"));
  EXPECT_TRUE(cluster_.Until([&] { return !Stays("a"); }));
}

}  // namespace
}  // namespace swell::controllers
