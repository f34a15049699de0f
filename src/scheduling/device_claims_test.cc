// Claims from the pod to its binding, in a whole cluster of virtual time.
#include "scheduling/device_claims.h"

#include <set>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/api/rest/scripted_server_test_util.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::scheduling {
namespace {

using client::resources::kPods;
using client::resources::kResourceClaims;
using manager::kSecond;
using manager::TestCluster;

class DeviceClaimsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    AddNode("node-a", 4);
    cluster_.StartManager();
    ASSERT_TRUE(cluster_.Until([&] {
      return cluster_.Get(client::resources::kDeviceClasses, "gpu.swell.dev") != nullptr;
    }));
  }
  // With its slice, as an agent publishes it.
  void AddNode(const std::string& name, int gpus) {
    cluster_.AddNode(name, gpus);
    std::string devices;
    for (int i = 0; i < gpus; ++i) {
      devices += StrCat(i > 0 ? ", " : "", "{name: gpu-", i, ", attributes: {index: {int: ", i,
                        "}, model: {string: ", i % 2 == 0 ? "even" : "odd", "}}}");
    }
    cluster_.Create(
        StrCat("apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: ", name,
               "-gpu}\nspec: {driver: gpu.swell.dev, nodeName: ", name, ", pool: {name: ", name,
               ", generation: 1, resourceSliceCount: 1}, devices: [", devices, "]}\n"));
  }
  void Template(const std::string& name, int count, const std::string& condition = "") {
    const std::string selectors =
        condition.empty() ? "" : StrCat(", selectors: [{cel: {expression: '", condition, "'}}]");
    cluster_.Create(StrCat(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\n", "metadata: {name: ", name,
        ", namespace: default}\nspec: {spec: {devices: {requests: [{name: gpu, ",
        "exactly: {deviceClassName: gpu.swell.dev, count: ", count, selectors, "}}]}}}\n"));
  }
  void Pod(const std::string& name,
           const std::string& claim,
           const std::string& more = "",
           int gpus = 0) {
    const std::string limits =
        gpus > 0 ? StrCat(", resources: {limits: {nvidia.com/gpu: ", gpus, "}}") : "";
    cluster_.Create(
        StrCat("apiVersion: v1\nkind: Pod\nmetadata: {name: ", name, ", namespace: default}\n",
               "spec: {restartPolicy: Never, schedulerName: swell, ", more,
               claim.empty() ? "" : StrCat("resourceClaims: [{name: g, ", claim, "}], "),
               "containers: [{name: c, image: x", limits, "}]}\n"));
  }
  bool UntilRunning(const std::string& name) {
    return cluster_.Until([&] { return cluster_.PodPhase("default/" + name) == "Running"; });
  }
  json::SharedValue ClaimOf(const std::string& pod) {
    const json::SharedValue object = cluster_.Get(kPods, "default/" + pod);
    const auto claims = object ? api::DeviceClaimsOf(*object) : std::vector<api::PodClaim>();
    if (claims.empty()) return nullptr;
    return cluster_.Get(kResourceClaims, StrCat("default/", claims[0].claim));
  }
  // The devices of the pod's claim, by name.
  std::string Devices(const std::string& pod) {
    const json::SharedValue claim = ClaimOf(pod);
    std::string out;
    for (const auto& device :
         claim ? api::AllocatedDevices(*claim) : std::vector<api::AllocatedDevice>()) {
      out += StrCat(out.empty() ? "" : ",", device.device);
    }
    return out;
  }
  std::string Annotation(const std::string& pod) {
    return std::string(
        api::Annotation(*cluster_.Get(kPods, "default/" + pod), "swell.dev/gpu-devices"));
  }
  std::string WaitsFor(const std::string& pod) {
    const json::SharedValue object = cluster_.Get(kPods, "default/" + pod);
    const auto condition = api::FindCondition(*object, "PodScheduled");
    return condition ? std::string(condition->message) : "";
  }
  TestCluster cluster_;
};

TEST_F(DeviceClaimsTest, APodGetsTheDevicesOfItsTemplate) {
  Template("two", 2);
  Pod("a", "resourceClaimTemplateName: two");
  ASSERT_TRUE(UntilRunning("a"));
  EXPECT_EQ(Devices("a"), "gpu-0,gpu-1");
  EXPECT_EQ(Annotation("a"), "0,1");
  const json::SharedValue claim = ClaimOf("a");
  EXPECT_TRUE(api::IsReservedFor(*claim, cluster_.PodUid("default/a")));
  EXPECT_EQ(api::Finalizers(*claim).size(), 1u);
  const auto view = cluster_.manager->scheduler().model().Pod("default/a");
  ASSERT_TRUE(view);
  EXPECT_EQ(view->gpus, 2);
}

TEST_F(DeviceClaimsTest, ClaimedAndRequestedGpusAreOthers) {
  Template("two", 2);
  Pod("plain", "", "", 1);
  ASSERT_TRUE(UntilRunning("plain"));
  Pod("a", "resourceClaimTemplateName: two");
  ASSERT_TRUE(UntilRunning("a"));
  EXPECT_EQ(Devices("a"), "gpu-1,gpu-2");
  Pod("late", "", "", 2);
  ASSERT_TRUE(cluster_.Until([&] { return !WaitsFor("late").empty(); }));
  EXPECT_EQ(WaitsFor("late"),
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. Needs 2 GPUs; 1 free. Would "
            "start with: 1 more free GPU on node-a, which has 1 of 4 free");
  // With the pod the claim goes, and the devices are free.
  ASSERT_TRUE(cluster_.Delete(kPods, "default/a").ok());
  EXPECT_TRUE(UntilRunning("late"));
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.List(kResourceClaims).empty(); }));
}

TEST_F(DeviceClaimsTest, ConditionsChooseAndSayWhatIsMissing) {
  Template("odd", 1, "device.attributes[\"gpu.swell.dev\"].model == \"odd\"");
  for (const char* name : {"a", "b", "c"}) Pod(name, "resourceClaimTemplateName: odd");
  ASSERT_TRUE(UntilRunning("a"));
  ASSERT_TRUE(UntilRunning("b"));
  EXPECT_EQ(Devices("a"), "gpu-1");
  EXPECT_EQ(Devices("b"), "gpu-3");
  ASSERT_TRUE(cluster_.Until([&] { return !WaitsFor("c").empty(); }));
  cluster_.Run(2 * kSecond);
  EXPECT_EQ(WaitsFor("c"),
            "0/1 nodes are available: 1 node(s) had fewer than 1 free GPUs of class gpu.swell.dev "
            "with device.attributes[\"gpu.swell.dev\"].model == \"odd\". Needs 1 GPUs of class "
            "gpu.swell.dev; 0 free.");
}

// As of Kubernetes' own scheduler.
TEST_F(DeviceClaimsTest, APodThatRequestsAClassAsAResourceGetsAClaim) {
  cluster_.Create(
      "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: acc}\n"
      "spec: {extendedResourceName: example.com/acc, selectors: [{cel: {expression: "
      "'device.driver == \"gpu.swell.dev\"'}}]}\n");
  const char* kResources[] = {"example.com/acc", "deviceclass.resource.kubernetes.io/acc"};
  for (const char* resource : kResources) {
    const auto pod = [&](const char* name, int count) {
      cluster_.Create(StrCat(
          "apiVersion: v1\nkind: Pod\nmetadata: {name: ", name, ", namespace: default}\n",
          "spec: {schedulerName: swell, containers: [{name: c, image: x, resources: {limits: {",
          resource, ": ", count, "}}}]}\n"));
    };
    pod("p", 3);
    ASSERT_TRUE(UntilRunning("p")) << WaitsFor("p");
    EXPECT_EQ(Devices("p"), "gpu-0,gpu-1,gpu-2");
    const json::SharedValue running = cluster_.Get(kPods, "default/p");
    EXPECT_EQ(json::Print(*json::Find(
                  *running, {"status", "extendedResourceClaimStatus", "requestMappings"})),
              StrCat(R"([{"containerName":"c","resourceName":")", resource,
                     R"(","requestName":"container-0-request-0"}])"));
    const auto view = cluster_.manager->scheduler().model().Pod("default/p");
    ASSERT_TRUE(view);
    EXPECT_EQ(view->gpus, 3);
    // The devices that are left are too few, and the reason says which.
    pod("q", 2);
    EXPECT_TRUE(cluster_.Until([&] {
      return WaitsFor("q").find("1 node(s) had fewer than 2 free GPUs of class acc") !=
             std::string::npos;
    })) << WaitsFor("q");
    // With the pod the claim goes, and the devices are free.
    ASSERT_TRUE(cluster_.Delete(kPods, "default/p").ok());
    EXPECT_TRUE(UntilRunning("q")) << WaitsFor("q");
    ASSERT_TRUE(cluster_.Delete(kPods, "default/q").ok());
    EXPECT_TRUE(cluster_.Until([&] { return cluster_.List(kResourceClaims).empty(); }));
    ASSERT_TRUE(cluster_.Until([&] { return cluster_.Get(kPods, "default/q") == nullptr; }));
  }
}

TEST_F(DeviceClaimsTest, AResourceThatANodeOffersIsItsDevicePlugins) {
  cluster_.Create(
      "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: acc}\n"
      "spec: {extendedResourceName: example.com/acc}\n");
  ASSERT_TRUE(cluster_
                  .Patch(client::resources::kNodes, "node-a",
                         "status: {capacity: {example.com/acc: '1'}, allocatable: "
                         "{example.com/acc: '1'}}",
                         "status")
                  .ok());
  cluster_.Create(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\n"
      "spec: {schedulerName: swell, containers: [{name: c, image: x, resources: {limits: "
      "{example.com/acc: 1}}}]}\n");
  ASSERT_TRUE(UntilRunning("p")) << WaitsFor("p");
  EXPECT_TRUE(cluster_.List(kResourceClaims).empty());
}

TEST_F(DeviceClaimsTest, AClaimThatCannotBeMadeIsTheReasonAndIsMadeLater) {
  cluster_.Create(
      "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: acc}\n"
      "spec: {extendedResourceName: example.com/acc, selectors: [{cel: {expression: "
      "'device.driver == \"gpu.swell.dev\"'}}]}\n---\n"
      "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: none, namespace: default}\n"
      "spec: {hard: {count/resourceclaims.resource.k8s.io: '0'}}\n");
  cluster_.Run(kSecond);
  cluster_.Create(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\n"
      "spec: {schedulerName: swell, containers: [{name: c, image: x, resources: {limits: "
      "{example.com/acc: 1}}}]}\n");
  ASSERT_TRUE(cluster_.Until([&] { return !WaitsFor("p").empty(); }));
  EXPECT_NE(WaitsFor("p").find("its claim to the devices that it requests cannot be made: "),
            std::string::npos)
      << WaitsFor("p");
  EXPECT_NE(WaitsFor("p").find("exceeded quota: none"), std::string::npos) << WaitsFor("p");
  ASSERT_TRUE(cluster_.Delete({"", "v1", "resourcequotas", true}, "default/none").ok());
  EXPECT_TRUE(UntilRunning("p")) << WaitsFor("p");
}

TEST_F(DeviceClaimsTest, PodsShareAClaimOnItsNode) {
  AddNode("node-b", 4);
  cluster_.Create(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
      "metadata: {name: shared, namespace: default}\nspec: {devices: {requests: [{name: gpu, "
      "exactly: {deviceClassName: gpu.swell.dev}}]}}\n");
  for (const char* name : {"a", "b", "c"}) Pod(name, "resourceClaimName: shared");
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(UntilRunning(name)) << WaitsFor(name);
  EXPECT_EQ(api::ConsumersOf(*ClaimOf("a")).size(), 3u);
  const auto node_of = [&](const char* pod) {
    return std::string(api::NodeName(*cluster_.Get(kPods, StrCat("default/", pod))));
  };
  EXPECT_EQ(node_of("a"), node_of("b"));
  EXPECT_EQ(node_of("a"), node_of("c"));
  double held = 0;
  for (const auto& pod : cluster_.manager->scheduler().model().Pods()) held += pod.gpus;
  EXPECT_EQ(held, 1);
  // The device stays taken while any of them runs.
  ASSERT_TRUE(cluster_.Delete(kPods, "default/a").ok());
  cluster_.Run(5 * kSecond);
  held = 0;
  for (const auto& pod : cluster_.manager->scheduler().model().Pods()) held += pod.gpus;
  EXPECT_EQ(held, 1);
  ASSERT_TRUE(cluster_.Delete(kPods, "default/b").ok());
  ASSERT_TRUE(cluster_.Delete(kPods, "default/c").ok());
  EXPECT_TRUE(cluster_.Until(
      [&] { return !api::IsAllocated(*cluster_.Get(kResourceClaims, "default/shared")); }));
  Pod("d", "resourceClaimName: shared");
  EXPECT_TRUE(UntilRunning("d"));
}

TEST_F(DeviceClaimsTest, AGangSharesAClaimThatNobodyHas) {
  AddNode("node-b", 4);
  for (const char* node : {"node-a", "node-b"}) {
    ASSERT_TRUE(cluster_
                    .Patch(client::resources::kNodes, node,
                           StrCat("metadata: {labels: {kubernetes.io/hostname: ", node, "}}"))
                    .ok());
  }
  cluster_.Create(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
      "metadata: {name: shared, namespace: default}\nspec: {devices: {requests: [{name: gpu, "
      "exactly: {deviceClassName: gpu.swell.dev, count: 2}}]}}\n"
      "---\napiVersion: swell.dev/v1\nkind: PodGroup\nmetadata: {name: gang, namespace: default}\n"
      "spec: {podSets: [{name: all, minMember: 3}]}\n");
  for (const char* name : {"a", "b", "c"}) {
    cluster_.Create(
        StrCat("apiVersion: v1\nkind: Pod\nmetadata: {name: ", name,
               ", namespace: default, labels: {swell.dev/pod-group: gang}}\nspec: ",
               "{restartPolicy: Never, schedulerName: swell, resourceClaims: [{name: g, ",
               "resourceClaimName: shared}], containers: [{name: c, image: x}]}\n"));
  }
  std::set<std::string> nodes;
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(UntilRunning(name)) << WaitsFor(name);
    EXPECT_EQ(Annotation(name), "0,1");
    nodes.insert(std::string(api::NodeName(*cluster_.Get(kPods, StrCat("default/", name)))));
  }
  EXPECT_EQ(nodes.size(), 1u);
  EXPECT_EQ(api::ConsumersOf(*ClaimOf("a")).size(), 3u);
  EXPECT_EQ(cluster_.manager->scheduler().stats().binds, 3);
  double held = 0;
  for (const auto& pod : cluster_.manager->scheduler().model().Pods()) held += pod.gpus;
  EXPECT_EQ(held, 2);
}

TEST_F(DeviceClaimsTest, PreemptionFreesWhatWasClaimed) {
  cluster_.Create(
      "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 90\n");
  Template("four", 4);
  Pod("low", "resourceClaimTemplateName: four");
  ASSERT_TRUE(UntilRunning("low"));
  Pod("high", "resourceClaimTemplateName: four", "priorityClassName: high, ");
  EXPECT_TRUE(UntilRunning("high")) << WaitsFor("high");
  EXPECT_EQ(cluster_.PodPhase("default/low"), "");
  EXPECT_EQ(Devices("high"), "gpu-0,gpu-1,gpu-2,gpu-3");
  EXPECT_TRUE(cluster_.Until([&] { return cluster_.List(kResourceClaims).size() == 1; }));
}

TEST_F(DeviceClaimsTest, PodsGetSharesOfADeviceAsFarAsItGoes) {
  cluster_.AddNode("node-s", 0);
  cluster_.Create(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: node-s-gpu}\n"
      "spec: {driver: gpu.nvidia.com, nodeName: node-s, pool: {name: node-s, generation: 1, "
      "resourceSliceCount: 1}, devices: [{name: gpu-0, allowMultipleAllocations: true, "
      "capacity: {memory: {value: 80Gi}}}]}\n"
      "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: shared}\n"
      "spec: {selectors: [{cel: {expression: 'device.allowMultipleAllocations'}}]}\n");
  for (const char* name : {"a", "b", "c"}) {
    cluster_.Create(
        StrCat("apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: ", name,
               ", namespace: default}\nspec: {devices: {requests: [{name: gpu, exactly: ",
               "{deviceClassName: shared, capacity: {requests: {memory: 40Gi}}}}]}}\n"));
    Pod(name, StrCat("resourceClaimName: ", name));
  }
  ASSERT_TRUE(UntilRunning("a")) << WaitsFor("a");
  ASSERT_TRUE(UntilRunning("b")) << WaitsFor("b");
  ASSERT_TRUE(cluster_.Until([&] { return !WaitsFor("c").empty(); }));
  EXPECT_NE(WaitsFor("c").find("fewer than 1 free parts of GPUs of class shared"),
            std::string::npos)
      << WaitsFor("c");
  EXPECT_EQ(Devices("a"), "gpu-0");
  EXPECT_EQ(Devices("b"), "gpu-0");
  EXPECT_EQ(Annotation("a"), "");
  const json::SharedValue claim = ClaimOf("a");
  ASSERT_NE(claim, nullptr);
  const json::Array& results =
      json::GetArray(*claim, {"status", "allocation", "devices", "results"});
  EXPECT_EQ(json::GetString(results[0], {"consumedCapacity", "memory"}), "40Gi");
  const auto since = [&] {
    return std::string(
        json::GetString(*ClaimOf("a"), {"status", "allocation", "allocationTimestamp"}));
  };
  const std::string allocated = since();
  const auto allocated_at = api::ParseTime(allocated);
  ASSERT_TRUE(allocated_at) << allocated;
  EXPECT_LE(*allocated_at, cluster_.sim.Now());
  // A new manager counts the same.
  cluster_.StopManager();
  cluster_.StartManager();
  cluster_.Run(5 * kSecond);
  EXPECT_EQ(cluster_.PodPhase("default/c"), "Pending");
  EXPECT_EQ(since(), allocated);
  ASSERT_TRUE(cluster_.Delete(kPods, "default/b").ok());
  EXPECT_TRUE(UntilRunning("c")) << WaitsFor("c");
}

TEST_F(DeviceClaimsTest, AdminsLookAfterDevicesThatOthersHave) {
  Template("four", 4);
  Pod("owner", "resourceClaimTemplateName: four");
  ASSERT_TRUE(UntilRunning("owner"));
  ASSERT_TRUE(cluster_
                  .Patch(client::resources::kNamespaces, "default",
                         "metadata: {labels: {resource.kubernetes.io/admin-access: 'true'}}")
                  .ok());
  cluster_.Create(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
      "metadata: {name: look, namespace: default}\nspec: {devices: {requests: [{name: gpu, "
      "exactly: {deviceClassName: gpu.swell.dev, allocationMode: All, adminAccess: true}}]}}\n");
  Pod("admin", "resourceClaimName: look");
  ASSERT_TRUE(UntilRunning("admin")) << WaitsFor("admin");
  EXPECT_EQ(Devices("admin"), "gpu-0,gpu-1,gpu-2,gpu-3");
  EXPECT_TRUE(api::AllocatedDevices(*ClaimOf("admin"))[0].admin);
  EXPECT_EQ(Annotation("admin"), "");
  double held = 0;
  for (const auto& pod : cluster_.manager->scheduler().model().Pods()) held += pod.gpus;
  EXPECT_EQ(held, 4);
}

TEST_F(DeviceClaimsTest, ClaimsCountAgainstTheProject) {
  cluster_.Create(
      "apiVersion: swell.dev/v1\nkind: Project\nmetadata: {name: team}\n"
      "spec: {namespace: default, resources: {gpu: {quota: 1, limit: 1}}}\n");
  Template("one", 1);
  Pod("a", "resourceClaimTemplateName: one");
  ASSERT_TRUE(UntilRunning("a"));
  Pod("b", "resourceClaimTemplateName: one");
  ASSERT_TRUE(cluster_.Until([&] { return WaitsFor("b").find("limit") != std::string::npos; }))
      << WaitsFor("b");
}

TEST_F(DeviceClaimsTest, ANewManagerKnowsWhatIsTaken) {
  Template("two", 2);
  Pod("a", "resourceClaimTemplateName: two");
  ASSERT_TRUE(UntilRunning("a"));
  cluster_.StopManager();
  Pod("b", "resourceClaimTemplateName: two");
  cluster_.StartManager();
  ASSERT_TRUE(UntilRunning("b"));
  EXPECT_EQ(Devices("b"), "gpu-2,gpu-3");
}

TEST_F(DeviceClaimsTest, SomebodyElsesWriteIsNotOverwritten) {
  Template("one", 1);
  int refused = 0;
  cluster_.StopManager();
  cluster_.between = std::make_shared<api::ScriptedServer>(
      cluster_.server,
      [&refused](const api::RestRequest& request) -> std::optional<api::RestResponse> {
        const bool claim = request.path.find("/resourceclaims/") != std::string::npos;
        if (request.method != "PUT" || !claim || refused == 3) return std::nullopt;
        ++refused;
        return api::Refusal(Code::kConflict);
      });
  cluster_.StartManager();
  Pod("a", "resourceClaimTemplateName: one");
  EXPECT_TRUE(UntilRunning("a"));
  EXPECT_EQ(refused, 3);
  EXPECT_EQ(Devices("a"), "gpu-0");
}

}  // namespace
}  // namespace swell::scheduling
