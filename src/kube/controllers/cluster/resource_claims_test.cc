// Claims made for pods, and devices taken back.
#include "kube/controllers/cluster/resource_claims.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/one_node_fixture.h"

namespace swell::controllers {
namespace {

using client::resources::kPods;
using client::resources::kResourceClaims;
using manager::kSecond;
using manager::OneNodeTest;

class ResourceClaimsTest : public OneNodeTest {
 protected:
  void Template(const std::string& name) {
    cluster_.Create(StrCat(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\n", "metadata: {name: ", name,
        ", namespace: default}\nspec: {metadata: {labels: {team: a}}, spec: ",
        "{devices: {requests: [{name: gpu, exactly: {deviceClassName: none}}]}}}\n"));
  }
  void PodOf(const std::string& name, const std::string& claims) {
    cluster_.Create(StrCat("apiVersion: v1\nkind: Pod\nmetadata: {name: ", name,
                           ", namespace: default}\nspec: {restartPolicy: Never, nodeName: node-a, ",
                           "resourceClaims: [", claims, "], containers: [{name: c, image: x}]}\n"));
  }
  // The claim that was made for the pod; empty: none was.
  std::string MadeFor(const std::string& pod) {
    const json::SharedValue object = cluster_.Get(kPods, "default/" + pod);
    if (!object) return "";
    const auto claims = api::DeviceClaimsOf(*object);
    return claims.empty() ? "" : std::string(claims[0].claim);
  }
  json::SharedValue Claim(const std::string& name) {
    return cluster_.Get(kResourceClaims, "default/" + name);
  }
  void Allocate(const std::string& claim, const std::vector<std::string>& pods) {
    std::string users;
    for (const std::string& pod : pods) {
      users += StrCat(users.empty() ? "" : ", ", "{resource: pods, name: ", pod,
                      ", uid: ", cluster_.PodUid("default/" + pod), "}");
    }
    ASSERT_TRUE(cluster_
                    .Patch(kResourceClaims, "default/" + claim,
                           StrCat("metadata: {finalizers: [", api::kDeviceClaimFinalizer, "]}"))
                    .ok());
    const Status status = cluster_.Patch(
        kResourceClaims, "default/" + claim,
        StrCat("status: {allocation: {devices: {results: [{request: gpu, driver: d.example.com, ",
               "pool: node-a, device: gpu-0}]}}, reservedFor: [", users, "]}"),
        "status");
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
};

TEST_F(ResourceClaimsTest, APodGetsTheClaimOfItsTemplate) {
  Template("one");
  PodOf("a", "{name: g, resourceClaimTemplateName: one}");
  ASSERT_TRUE(cluster_.Until([&] { return !MadeFor("a").empty(); }));
  const json::SharedValue claim = Claim(MadeFor("a"));
  ASSERT_TRUE(claim);
  EXPECT_TRUE(api::Name(*claim).starts_with("a-g-"));
  EXPECT_EQ(api::Label(*claim, "team"), "a");
  EXPECT_EQ(api::Annotation(*claim, api::kPodClaimName), "g");
  EXPECT_EQ(api::PodOfClaim(*claim), cluster_.PodUid("default/a"));
  EXPECT_EQ(json::GetArray(*claim, {"spec", "devices", "requests"}).size(), 1u);
  cluster_.Run(5 * kSecond);
  EXPECT_EQ(cluster_.List(kResourceClaims).size(), 1u);
}

TEST_F(ResourceClaimsTest, APodWaitsForItsTemplateAndSaysSo) {
  PodOf("a", "{name: g, resourceClaimTemplateName: late}");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Events("FailedResourceClaimCreation") == 1; }));
  EXPECT_EQ(cluster_.EventMessage("FailedResourceClaimCreation"),
            "PodResourceClaim g: resource claim template \"late\" not found");
  Template("late");
  EXPECT_TRUE(cluster_.Until([&] { return !MadeFor("a").empty(); }));
}

TEST_F(ResourceClaimsTest, TheClaimOfAPodEndsWithIt) {
  Template("one");
  PodOf("a", "{name: g, resourceClaimTemplateName: one}");
  ASSERT_TRUE(cluster_.Until([&] { return !MadeFor("a").empty(); }));
  Allocate(MadeFor("a"), {"a"});
  ASSERT_TRUE(UntilRunning("a"));
  cluster_.agents->Exit("default/a", 0);
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.List(kResourceClaims).empty(); }));
  EXPECT_EQ(cluster_.PodPhase("default/a"), "Succeeded");
}

TEST_F(ResourceClaimsTest, TheClaimOfADeletedPodGoes) {
  Template("one");
  PodOf("a", "{name: g, resourceClaimTemplateName: one}");
  ASSERT_TRUE(cluster_.Until([&] { return !MadeFor("a").empty(); }));
  Allocate(MadeFor("a"), {"a"});
  ASSERT_TRUE(cluster_.Delete(kPods, "default/a").ok());
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.List(kResourceClaims).empty(); }));
}

TEST_F(ResourceClaimsTest, ASharedClaimIsFreeWhenItsLastUserIsOver) {
  cluster_.Create(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
      "metadata: {name: shared, namespace: default}\n"
      "spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: none}}]}}\n");
  PodOf("a", "{name: g, resourceClaimName: shared}");
  PodOf("b", "{name: g, resourceClaimName: shared}");
  ASSERT_TRUE(UntilRunning("a"));
  ASSERT_TRUE(UntilRunning("b"));
  Allocate("shared", {"a", "b"});
  cluster_.agents->Exit("default/a", 0);
  ASSERT_TRUE(cluster_.Until([&] { return api::ConsumersOf(*Claim("shared")).size() == 1; }));
  EXPECT_EQ(api::ConsumersOf(*Claim("shared"))[0].name, "b");
  EXPECT_TRUE(api::IsAllocated(*Claim("shared")));
  ASSERT_TRUE(cluster_.Delete(kPods, "default/b").ok());
  ASSERT_TRUE(cluster_.Until([&] {
    const json::SharedValue claim = Claim("shared");
    return !api::IsAllocated(*claim) && api::Finalizers(*claim).empty();
  }));
  EXPECT_TRUE(api::ConsumersOf(*Claim("shared")).empty());
}

TEST_F(ResourceClaimsTest, TheMembersOfAGroupShareTheClaimThatItMakes) {
  Template("one");
  Template("other");
  auto pod = [&](const std::string& name) {
    cluster_.Create(StrCat(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: ", name,
        ", namespace: default}\nspec: {restartPolicy: Never, nodeName: node-a, schedulingGroup: ",
        "{podGroupName: gang}, resourceClaims: [{name: g, resourceClaimTemplateName: one}, ",
        "{name: own, resourceClaimTemplateName: other}], containers: [{name: c, image: x}]}\n"));
  };
  auto claims = [&](const std::string& name) {
    std::vector<std::string> out;
    const json::SharedValue object = cluster_.Get(kPods, "default/" + name);
    for (const api::PodClaim& claim : api::DeviceClaimsOf(*object)) out.emplace_back(claim.claim);
    return out;
  };
  pod("a");
  cluster_.Run(5 * kSecond);
  EXPECT_EQ(claims("a")[0], "") << "whether it is shared is known when the group is there";
  cluster_.Create(
      "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\n"
      "metadata: {name: gang, namespace: default}\n"
      "spec: {schedulingPolicy: {gang: {minCount: 2}}, "
      "resourceClaims: [{name: g, resourceClaimTemplateName: one}]}\n");
  pod("b");
  ASSERT_TRUE(cluster_.Until([&] {
    return !claims("a")[0].empty() && !claims("a")[1].empty() && !claims("b")[1].empty();
  }));
  EXPECT_EQ(claims("a")[0], claims("b")[0]);
  EXPECT_NE(claims("a")[1], claims("b")[1]);
  EXPECT_EQ(cluster_.List(kResourceClaims).size(), 3u);
  const json::SharedValue shared = Claim(claims("a")[0]);
  EXPECT_TRUE(api::Name(*shared).starts_with("gang-g-"));
  EXPECT_EQ(api::ControllerOf(*shared)->kind, "PodGroup");

  // It outlives a pod, and goes with the group.
  Allocate(claims("a")[0], {"a", "b"});
  ASSERT_TRUE(cluster_.Delete(kPods, "default/a").ok());
  ASSERT_TRUE(cluster_.Until([&] { return api::ConsumersOf(*Claim(claims("b")[0])).size() == 1; }));
  ASSERT_TRUE(cluster_.Delete(kPods, "default/b").ok());
  ASSERT_TRUE(cluster_.Delete(client::resources::kGangs, "default/gang").ok());
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.List(kResourceClaims).empty(); }));
}

TEST_F(ResourceClaimsTest, AGroupWaitsForItsTemplateAndSaysSo) {
  cluster_.Create(
      "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\n"
      "metadata: {name: gang, namespace: default}\n"
      "spec: {schedulingPolicy: {gang: {minCount: 2}}, "
      "resourceClaims: [{name: g, resourceClaimTemplateName: late}]}\n");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Events("FailedResourceClaimCreation") == 1; }));
  EXPECT_EQ(cluster_.EventMessage("FailedResourceClaimCreation"),
            "PodGroupResourceClaim g: resource claim template \"late\" not found");
  Template("late");
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.List(kResourceClaims).size() == 1; }));
}

}  // namespace
}  // namespace swell::controllers
