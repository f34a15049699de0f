// What claims and slices become for the scheduler.
#include "sched_inputs/device_catalog.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/strings.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"

namespace swell::sched_inputs {
namespace {

json::SharedValue Y(const std::string& yaml) {
  auto documents = json::ParseYaml(yaml);
  EXPECT_TRUE(documents.ok()) << documents.status().ToString() << "\n" << yaml;
  if (!documents.ok() || documents->size() != 1) return std::make_shared<const json::Value>();
  return std::make_shared<const json::Value>(documents->front());
}

class DeviceCatalogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Class("gpu.swell.dev", "device.driver == \"gpu.swell.dev\"");
    Class("nic", "device.driver == \"nic.example.com\"");
  }
  void Class(const std::string& name, const std::string& condition) {
    catalog_.SetClass(Y(StrCat("metadata: {name: ", name,
                               "}\nspec: {selectors: [{cel: {expression: '", condition, "'}}]}")));
  }
  // GPUs of these models; memory of 10 GiB times the index and one.
  void Gpus(const std::string& node, const std::vector<std::string>& models, int generation = 1) {
    std::string devices;
    for (size_t i = 0; i < models.size(); ++i) {
      devices += StrCat(i > 0 ? ", " : "", "{name: gpu-", i, ", attributes: {index: {int: ", i,
                        "}, model: {string: ", models[i],
                        "}, driver: {version: 1.9.0}}, capacity: {memory: {value: ", 10 * (i + 1),
                        "Gi}}}");
    }
    Slice(node, "gpu.swell.dev", devices, generation);
  }
  void Slice(const std::string& node,
             const std::string& driver,
             const std::string& devices,
             int generation = 1,
             int count = 1) {
    catalog_.SetSlice(
        Y(StrCat("metadata: {name: ", node, "-", driver, "}\nspec: {driver: ", driver,
                 ", nodeName: ", node, ", pool: {name: ", node, ", generation: ", generation,
                 ", resourceSliceCount: ", count, "}, devices: [", devices, "]}")));
  }
  void Claim(const std::string& name, const std::string& devices, const std::string& status = "") {
    const std::string key = "default/" + name;
    claims_[key] = Y(StrCat("metadata: {name: ", name, ", namespace: default, uid: c-", name,
                            "}\nspec: {devices: {", devices, "}}",
                            status.empty() ? "" : StrCat("\nstatus: {", status, "}")));
  }
  static std::string Exactly(const std::string& what) {
    return StrCat("requests: [{name: gpu, exactly: {", what, "}}]");
  }
  const json::Value& Pod(const std::string& name,
                         const std::string& claim,
                         const std::string& node = "",
                         int second = 0) {
    const std::string key = "default/" + name;
    pods_[key] =
        Y(StrCat("metadata: {name: ", name, ", namespace: default, uid: u-", name,
                 ", creationTimestamp: '2026-01-01T00:00:0", second, "Z'}\nspec: {nodeName: '",
                 node, "', resourceClaims: [{name: g, resourceClaimName: ", claim, "}]}"));
    return *pods_[key];
  }
  DeviceCatalog::View View() {
    auto find = [](const auto& objects) {
      return [&objects](std::string_view key) -> const json::Value* {
        const auto it = objects.find(std::string(key));
        return it == objects.end() ? nullptr : it->second.get();
      };
    };
    return {find(claims_), find(pods_), [this](const std::string& claim) {
              std::vector<json::SharedValue> out;
              for (const auto& [key, pod] : pods_) {
                if ("default/" + std::string(api::DeviceClaimsOf(*pod)[0].claim) == claim) {
                  out.push_back(pod);
                }
              }
              return out;
            }};
  }
  sched::PodInfo Info(const json::Value& pod) {
    sched::PodInfo info;
    catalog_.AddToPod(pod, View(), info);
    return info;
  }
  // "GPUs of class x=0,1;…" of the kinds that are known.
  std::string Kinds(const std::string& node, const std::string& gpus = "") {
    sched::NodeInfo info;
    info.name = node;
    if (!gpus.empty()) info.allocatable.extended["nvidia.com/gpu"] = *ParseInt(gpus);
    catalog_.AddToNode(info);
    std::string out;
    for (const auto& [key, value] : info.labels) out += StrCat(key, "=", value, ";");
    return out;
  }
  std::string Asked(const json::Value& pod) {
    std::string out;
    const sched::PodInfo info = Info(pod);
    for (const auto& [key, value] : info.requests.extended) out += StrCat(key, "=", value, ";");
    return out + info.obstacle;
  }

  DeviceCatalog catalog_;
  std::map<std::string, json::SharedValue> claims_, pods_;
};

TEST_F(DeviceCatalogTest, AClaimAsksForGpusOfItsClass) {
  Gpus("n1", {"A", "B"});
  Claim("c", Exactly("deviceClassName: gpu.swell.dev, allocationMode: ExactCount, count: 2"));
  EXPECT_EQ(Asked(Pod("a", "c")), "GPUs of class gpu.swell.dev=2;nvidia.com/gpu=2;");
  EXPECT_EQ(catalog_.TakeChangedNodes(), std::set<std::string>{"n1"});
  EXPECT_EQ(Kinds("n1", "2"), "GPUs of class gpu.swell.dev=0,1;");
  EXPECT_EQ(Kinds("n2"), "");
}

TEST_F(DeviceCatalogTest, ConditionsChooseDevices) {
  Gpus("n1", {"A", "B", "A"});
  const char* kConditions[][2] = {
      {"device.attributes[\"gpu.swell.dev\"].model == \"A\"", "0,2"},
      {"device.capacity[\"gpu.swell.dev\"].memory.compareTo(quantity(\"20Gi\")) >= 0", "1,2"},
      {"device.attributes[\"gpu.swell.dev\"].index in [1]", "1"},
      {"device.attributes[\"gpu.swell.dev\"].driver.isLessThan(semver(\"1.10.0\"))", "0,1,2"},
      {"device.attributes[\"gpu.swell.dev\"].?none.orValue(1) == 2", ""},
      {"device.attributes[\"gpu.swell.dev\"].nonsense == 1", ""},
  };
  for (const auto& [condition, devices] : kConditions) {
    Claim("c", Exactly(StrCat("deviceClassName: gpu.swell.dev, selectors: [{cel: {expression: '",
                              condition, "'}}]")));
    const std::string asked = Asked(Pod("a", "c"));
    EXPECT_NE(asked.find(StrCat("class gpu.swell.dev with ", condition, "=1;")), std::string::npos)
        << asked;
    const std::string kinds = Kinds("n1", "3");
    const std::string wanted = StrCat("with ", condition, "=", devices, ";");
    EXPECT_EQ(kinds.find(wanted) != std::string::npos, *devices != '\0') << kinds;
  }
}

TEST_F(DeviceCatalogTest, WhatCannotBeHadIsSaid) {
  Gpus("n1", {"A"});
  Claim("c", Exactly("deviceClassName: missing"));
  EXPECT_EQ(Asked(Pod("a", "c")),
            "resourceclaim \"c\" asks for device class \"missing\", which is not there");
  EXPECT_EQ(Asked(Pod("a", "nothing")), "resourceclaim \"nothing\" not found");
  Claim("d",
        Exactly("deviceClassName: gpu.swell.dev, selectors: [{cel: {expression: 'device.'}}]"));
  EXPECT_NE(Asked(Pod("a", "d")).find("condition of request \"gpu\" is not understood"),
            std::string::npos);
  Claim("f", Exactly("deviceClassName: gpu.swell.dev, count: 33"));
  EXPECT_NE(Asked(Pod("a", "f")).find("32 at most"), std::string::npos);
}

TEST_F(DeviceCatalogTest, AClaimIsToldThatDevicesOfNoSingleNodeAreNotAllocated) {
  Claim("c", Exactly("deviceClassName: nic"));
  EXPECT_EQ(Asked(Pod("a", "c")), "devices of class nic=1;") << "there is none at all";
  catalog_.SetSlice(
      Y("metadata: {name: net}\nspec: {driver: nic.example.com, allNodes: true, pool: {name: net, "
        "generation: 1, resourceSliceCount: 1}, devices: [{name: x0}]}"));
  EXPECT_NE(Asked(Pod("a", "c"))
                .find("resourceclaim \"c\" asks for devices that belong to no single node "
                      "(resourceslice \"net\"); Swell allocates devices of single nodes only"),
            std::string::npos);
  Slice("n1", "nic.example.com", "{name: x1}");
  EXPECT_EQ(Asked(Pod("a", "c")), "devices of class nic=1;") << "that of the node can be had";
}

TEST_F(DeviceCatalogTest, ConditionsThatCostTooMuchAreRefused) {
  Gpus("n1", {"A", "B"});
  std::string numbers = "0";
  for (int i = 1; i < 40; ++i) numbers += StrCat(",", i);
  Claim("c", Exactly(StrCat("deviceClassName: gpu.swell.dev, selectors: [{cel: {expression: '[",
                            numbers, "].all(a, [", numbers, "].all(b, a + b >= 0))'}}]")));
  EXPECT_EQ(Asked(Pod("a", "c")),
            "resourceclaim \"c\": the conditions of request \"gpu\" take more than 1000 steps for "
            "one device");
  EXPECT_EQ(Kinds("n1").find("=0,1;"), std::string::npos) << Kinds("n1");
  // A list that people write is far below.
  Claim("d", Exactly(StrCat("deviceClassName: gpu.swell.dev, selectors: [{cel: {expression: "
                            "'device.attributes[\"gpu.swell.dev\"].index in [",
                            numbers, "]'}}]")));
  const std::string asked = Asked(Pod("b", "d"));
  EXPECT_NE(Kinds("n1").find("=0,1;"), std::string::npos) << asked << Kinds("n1");
}

TEST_F(DeviceCatalogTest, TheFirstWayThatSomeNodeHasIsTaken) {
  Gpus("n1", {"A", "B"});
  Claim("c",
        "requests: [{name: gpu, firstAvailable: ["
        "{name: four, deviceClassName: gpu.swell.dev, count: 4}, "
        "{name: two, deviceClassName: gpu.swell.dev, count: 2}]}]");
  EXPECT_EQ(Asked(Pod("a", "c")), "GPUs of class gpu.swell.dev=2;nvidia.com/gpu=2;");
  const auto grants = catalog_.GrantsFor(*pods_["default/a"], View(), "n1", {0, 1});
  ASSERT_TRUE(grants.ok()) << grants.status().ToString();
  const json::Array& results = json::GetArray(grants->claims[0].allocation, {"devices", "results"});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(json::GetString(results[0], {"request"}), "gpu/two");
}

TEST_F(DeviceCatalogTest, AllDevicesOfANodeAreAsManyAsMostNodesHave) {
  Gpus("n1", {"A", "A"});
  Gpus("n2", {"A", "A"});
  Gpus("n3", {"A", "A", "A"});
  Claim("c", Exactly("deviceClassName: gpu.swell.dev, allocationMode: All"));
  EXPECT_EQ(Asked(Pod("a", "c")), "GPUs of class gpu.swell.dev (all 2)=2;nvidia.com/gpu=2;");
  EXPECT_NE(Kinds("n2", "2").find("(all 2)=0,1;"), std::string::npos);
  EXPECT_EQ(Kinds("n3", "3").find("(all 2)"), std::string::npos);
}

TEST_F(DeviceCatalogTest, DevicesThatMatchHaveOneValue) {
  Gpus("n1", {"A", "B", "B"});
  Claim("c", StrCat(Exactly("deviceClassName: gpu.swell.dev, count: 2"),
                    ", constraints: [{matchAttribute: gpu.swell.dev/model}]"));
  EXPECT_EQ(Asked(Pod("a", "c")),
            "GPUs of class gpu.swell.dev alike in gpu.swell.dev/model=2;nvidia.com/gpu=2;");
  EXPECT_NE(Kinds("n1", "3").find("alike in gpu.swell.dev/model=1,2;"), std::string::npos);
}

TEST_F(DeviceCatalogTest, APodThatAsksForMoreThatMatchLeavesOthersTheirs) {
  Gpus("n1", {"A", "B", "B"});
  for (const int count : {3, 2}) {
    Claim("c", StrCat(Exactly(StrCat("deviceClassName: gpu.swell.dev, count: ", count)),
                      ", constraints: [{matchAttribute: gpu.swell.dev/model}]"));
    EXPECT_EQ(Asked(Pod("a", "c")),
              StrCat("GPUs of class gpu.swell.dev alike in gpu.swell.dev/model=", count,
                     ";nvidia.com/gpu=", count, ";"));
    EXPECT_NE(Kinds("n1", "3").find("alike in gpu.swell.dev/model=1,2;"), std::string::npos);
  }
}

TEST_F(DeviceCatalogTest, DevicesThatDifferTakeTheOnlyOneOfTheirValue) {
  Gpus("n1", {"A", "B", "B"});
  Claim("c", StrCat(Exactly("deviceClassName: gpu.swell.dev, count: 2"),
                    ", constraints: [{distinctAttribute: gpu.swell.dev/model}]"));
  const std::string asked = Asked(Pod("a", "c"));
  EXPECT_TRUE(asked.starts_with("GPUs of class gpu.swell.dev distinct in gpu.swell.dev/model #"))
      << asked;
  const std::string kinds = Kinds("n1", "3");
  EXPECT_NE(kinds.find("=0,1,2|0:0=1;1:1=1;2:1=1;"), std::string::npos) << kinds;
  EXPECT_NE(kinds.find("device counters=~1,~1||;"), std::string::npos) << kinds;
  EXPECT_TRUE(catalog_.GrantsFor(*pods_["default/a"], View(), "n1", {0, 2}).ok());
  EXPECT_FALSE(catalog_.GrantsFor(*pods_["default/a"], View(), "n1", {1, 2}).ok());
}

// Two whole GPUs, and two halves of the first.
const char kPartitions[] =
    "{name: gpu-0, attributes: {index: {int: 0}, type: {string: gpu}}, consumesCounters: "
    "[{counterSet: gpu-0, counters: {memory: {value: 80Gi}}}]}, "
    "{name: gpu-1, attributes: {index: {int: 1}, type: {string: gpu}}}, "
    "{name: half-a, attributes: {type: {string: half}}, consumesCounters: "
    "[{counterSet: gpu-0, counters: {memory: {value: 40Gi}}}]}, "
    "{name: half-b, attributes: {type: {string: half}}, consumesCounters: "
    "[{counterSet: gpu-0, counters: {memory: {value: 40Gi}}}]}, "
    "{name: odd, attributes: {type: {string: half}}, consumesCounters: "
    "[{counterSet: unknown, counters: {memory: {value: 40Gi}}}]}";

TEST_F(DeviceCatalogTest, PartitionsAreThePartOfAGpuThatTheyTake) {
  for (const char* type : {"gpu", "half"}) {
    Class(type, StrCat("device.attributes[\"gpu.swell.dev\"].type == \"", type, "\""));
  }
  catalog_.SetSlice(
      Y("metadata: {name: sets}\nspec: {driver: gpu.swell.dev, nodeName: n1, pool: {name: n1, "
        "generation: 1, resourceSliceCount: 2}, sharedCounters: [{name: gpu-0, counters: {memory: "
        "{value: 80Gi}}}]}"));
  Slice("n1", "gpu.swell.dev", kPartitions, 1, 2);
  Claim("half", Exactly("deviceClassName: half"));
  Claim("whole", Exactly("deviceClassName: gpu"));
  EXPECT_EQ(Asked(Pod("a", "half")), "parts of GPUs of class half (0.5 of a GPU)=1;");
  EXPECT_EQ(Asked(Pod("b", "whole")), "GPUs of class gpu=1;nvidia.com/gpu=1;");
  const std::string kinds = Kinds("n1");
  EXPECT_NE(kinds.find("GPUs of class gpu=0,1;"), std::string::npos) << kinds;
  EXPECT_NE(kinds.find("parts of GPUs of class half (0.5 of a GPU)=126,127;"), std::string::npos)
      << kinds;
  EXPECT_NE(kinds.find("device counters=85899345920000||"), std::string::npos) << kinds;
  // A plain request for GPUs there could get the one of which others have parts.
  EXPECT_EQ(Kinds("n1", "2").find("parts of GPUs"), std::string::npos);
  const auto grants = catalog_.GrantsFor(*pods_["default/a"], View(), "n1", {127});
  ASSERT_TRUE(grants.ok()) << grants.status().ToString();
  EXPECT_TRUE(grants->gpus.empty());
  const json::Array& results = json::GetArray(grants->claims[0].allocation, {"devices", "results"});
  EXPECT_EQ(json::GetString(results[0], {"device"}), "half-a");
}

TEST_F(DeviceCatalogTest, SharesTakeWhatIsAskedOfADevice) {
  Slice("n1", "gpu.swell.dev",
        "{name: gpu-0, allowMultipleAllocations: true, capacity: {memory: {value: 80Gi, "
        "requestPolicy: {default: 10Gi, validRange: {min: 10Gi, max: 40Gi, step: 5Gi}}}}}");
  auto ask = [this](const std::string& pod, const std::string& memory) {
    Claim(pod, Exactly(StrCat("deviceClassName: gpu.swell.dev, capacity: {requests: {memory: ",
                              memory, "}}")));
    return Asked(Pod(pod, pod));
  };
  EXPECT_EQ(ask("a", "18Gi"),
            "parts of GPUs of class gpu.swell.dev with memory of 18Gi (0.25 of a GPU)=1;");
  const std::string kinds = Kinds("n1");
  EXPECT_NE(kinds.find("(0.25 of a GPU)=0|0:0=21474836480000;"), std::string::npos) << kinds;
  EXPECT_NE(kinds.find("GPUs by kind="), std::string::npos) << kinds;
  sched::NodeInfo info;
  info.name = "n1";
  catalog_.AddToNode(info);
  EXPECT_EQ(info.allocatable.extended["nvidia.com/gpu"], 1);
  EXPECT_EQ(info.allocatable.extended[std::string(
                "parts of GPUs of class gpu.swell.dev with memory of 18Gi (0.25 of a GPU)")],
            4);
  // More than one may take: no device is of the kind.
  EXPECT_EQ(ask("b", "41Gi"), "devices of class gpu.swell.dev with memory of 41Gi=1;");
  EXPECT_EQ(Kinds("n1").find("41Gi"), std::string::npos);
  const auto grants = catalog_.GrantsFor(*pods_["default/a"], View(), "n1", {0});
  ASSERT_TRUE(grants.ok()) << grants.status().ToString();
  EXPECT_TRUE(grants->gpus.empty());
  const json::Array& results = json::GetArray(grants->claims[0].allocation, {"devices", "results"});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(json::GetString(results[0], {"consumedCapacity", "memory"}), "20Gi");
  EXPECT_EQ(json::GetString(results[0], {"shareID"}).size(), 36u);
}

TEST_F(DeviceCatalogTest, AdminsSeeDevicesThatOthersHaveAndTakeNone) {
  Gpus("n1", {"A", "A"});
  Gpus("n2", {"A"});
  Claim("c", Exactly("deviceClassName: gpu.swell.dev, count: 2, adminAccess: true"));
  const sched::PodInfo info = Info(Pod("a", "c"));
  EXPECT_EQ(info.obstacle, "");
  EXPECT_TRUE(info.requests.extended.empty());
  ASSERT_EQ(info.required_node_affinity.size(), 1u);
  const std::string label = info.required_node_affinity[0].expressions[0].key;
  EXPECT_EQ(label, "devices of class gpu.swell.dev for admins (at least 2)");
  EXPECT_NE(Kinds("n1", "2").find(label + "=0,1;"), std::string::npos);
  EXPECT_EQ(Kinds("n2", "1").find(label), std::string::npos);
  const auto grants = catalog_.GrantsFor(*pods_["default/a"], View(), "n1", {});
  ASSERT_TRUE(grants.ok()) << grants.status().ToString();
  EXPECT_TRUE(grants->gpus.empty());
  const json::Array& results = json::GetArray(grants->claims[0].allocation, {"devices", "results"});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_TRUE(json::GetBool(results[1], {"adminAccess"}));
  EXPECT_FALSE(catalog_.GrantsFor(*pods_["default/a"], View(), "n2", {}).ok());
}

TEST_F(DeviceCatalogTest, ATaintThatIsToleratedKeepsNobodyAway) {
  Slice("n1", "nic.example.com",
        "{name: nic-a, taints: [{key: worn, value: 'yes', effect: NoSchedule}]}");
  Claim("c", Exactly("deviceClassName: nic"));
  Asked(Pod("a", "c"));
  EXPECT_EQ(Kinds("n1"), "");
  Claim("c", Exactly("deviceClassName: nic, tolerations: [{key: worn, operator: Exists}]"));
  EXPECT_EQ(Asked(*pods_["default/a"]), "devices of class nic with taint worn=1;");
  EXPECT_EQ(Kinds("n1"), "devices of class nic with taint worn=127;");
  const auto grants = catalog_.GrantsFor(*pods_["default/a"], View(), "n1", {127});
  ASSERT_TRUE(grants.ok());
  const json::Array& results = json::GetArray(grants->claims[0].allocation, {"devices", "results"});
  EXPECT_EQ(json::GetArray(results[0], {"tolerations"}).size(), 1u);
}

TEST_F(DeviceCatalogTest, ARuleTaintsDevicesUntilItGoes) {
  Gpus("n1", {"A", "A"});
  Claim("c", Exactly("deviceClassName: gpu.swell.dev"));
  Claim("d", Exactly("deviceClassName: gpu.swell.dev, tolerations: [{key: worn, value: 'yes'}]"));
  Asked(Pod("a", "c"));
  Asked(Pod("b", "d"));
  catalog_.TakeChangedNodes();
  auto rule = [this](const std::string& selector, const std::string& effect) {
    catalog_.SetTaintRule(Y(StrCat("metadata: {name: r}\nspec: {", selector,
                                   "taint: {key: worn, value: 'yes', effect: ", effect, "}}")));
    return Kinds("n1", "2");
  };
  const std::string one = "deviceSelector: {driver: gpu.swell.dev, pool: n1, device: gpu-0}, ";
  EXPECT_EQ(rule(one, "NoSchedule"),
            "GPUs of class gpu.swell.dev=1;GPUs of class gpu.swell.dev with taint worn=yes=0,1;");
  EXPECT_EQ(catalog_.TakeChangedNodes(), std::set<std::string>{"n1"});
  EXPECT_EQ(rule(one, "NoExecute").find("gpu.swell.dev=1;"), 14u);
  EXPECT_EQ(rule(one, "None").find("gpu.swell.dev=0,1;"), 14u);
  EXPECT_EQ(rule("", "NoSchedule").find("gpu.swell.dev=0,1;"), 14u) << "it selects nothing";
  EXPECT_EQ(rule("deviceSelector: {}, ", "NoSchedule"),
            "GPUs of class gpu.swell.dev with taint worn=yes=0,1;");
  catalog_.RemoveTaintRule("r");
  EXPECT_NE(Kinds("n1", "2").find("gpu.swell.dev=0,1;"), std::string::npos);
}

TEST_F(DeviceCatalogTest, DevicesOfOtherDriversAreNoGpus) {
  Gpus("n1", {"A"});
  Slice("n1", "nic.example.com",
        "{name: nic-a}, {name: nic-b, taints: [{key: x, effect: NoSchedule}]}");
  Claim("c", Exactly("deviceClassName: nic"));
  EXPECT_EQ(Asked(Pod("a", "c")), "devices of class nic=1;");
  EXPECT_EQ(Kinds("n1", "1"), "devices of class nic=127;");
  const auto grants = catalog_.GrantsFor(*pods_["default/a"], View(), "n1", {127});
  ASSERT_TRUE(grants.ok());
  EXPECT_TRUE(grants->gpus.empty());
  const json::Array& results = json::GetArray(grants->claims[0].allocation, {"devices", "results"});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(json::GetString(results[0], {"device"}), "nic-a");
}

TEST_F(DeviceCatalogTest, NodesWithoutADevicePluginGiveTheirGpusByClaim) {
  Gpus("n1", {"A", "A"});
  sched::NodeInfo info;
  info.name = "n1";
  catalog_.AddToNode(info);
  EXPECT_EQ(info.allocatable.extended["nvidia.com/gpu"], 2);
  EXPECT_TRUE(info.labels.contains("GPUs by kind"));
}

TEST_F(DeviceCatalogTest, OnlyTheLastGenerationOfAPoolCountsOnceItIsWhole) {
  Gpus("n1", {"A", "A"});
  Claim("c", Exactly("deviceClassName: gpu.swell.dev"));
  Info(Pod("a", "c"));
  EXPECT_EQ(Kinds("n1", "2"), "GPUs of class gpu.swell.dev=0,1;");
  catalog_.SetSlice(
      Y("metadata: {name: newer}\nspec: {driver: gpu.swell.dev, nodeName: n1, pool: {name: n1, "
        "generation: 2, resourceSliceCount: 2}, devices: [{name: gpu-0, attributes: {index: {int: "
        "0}}}]}"));
  EXPECT_EQ(Kinds("n1", "2"), "");
  catalog_.SetSlice(
      Y("metadata: {name: rest}\nspec: {driver: gpu.swell.dev, nodeName: n1, pool: {name: n1, "
        "generation: 2, resourceSliceCount: 2}, devices: [{name: gpu-5, attributes: {index: {int: "
        "5}}}]}"));
  EXPECT_EQ(Kinds("n1", "2"), "GPUs of class gpu.swell.dev=0,5;");
  catalog_.RemoveSlice("rest");
  catalog_.RemoveSlice("newer");
  EXPECT_EQ(Kinds("n1", "2"), "GPUs of class gpu.swell.dev=0,1;");
}

const char kGiven[] =
    "allocation: {devices: {results: [{request: gpu, driver: gpu.swell.dev, pool: n1, device: "
    "gpu-1}]}, nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: "
    "In, values: [n1]}]}]}}, reservedFor: [";

TEST_F(DeviceCatalogTest, TheFirstUserIsChargedAndTheOthersAreNot) {
  Gpus("n1", {"A", "A"});
  Claim(
      "c", Exactly("deviceClassName: gpu.swell.dev"),
      StrCat(kGiven, "{resource: pods, name: a, uid: u-a}, {resource: pods, name: b, uid: u-b}]"));
  Pod("a", "c", "n1");
  Pod("b", "c", "n1", 1);
  sched::PodInfo a = Info(*pods_["default/a"]);
  EXPECT_EQ(a.requests.extended["nvidia.com/gpu"], 1);
  EXPECT_EQ(a.gpu_devices, std::vector<int>{1});
  sched::PodInfo b;
  b.gpu_devices = {1};  // as its annotation says
  catalog_.AddToPod(*pods_["default/b"], View(), b);
  EXPECT_TRUE(b.requests.extended.empty());
  EXPECT_TRUE(b.gpu_devices.empty());
  // The first is over: the second is charged.
  pods_.erase("default/a");
  EXPECT_EQ(Info(*pods_["default/b"]).gpu_devices, std::vector<int>{1});
}

TEST_F(DeviceCatalogTest, APodIsChargedWithWhatItHasWhenItsClaimIsTakenAway) {
  Gpus("n1", {"A", "A"});
  sched::PodInfo info;
  info.node = "n1";
  info.gpu_devices = {1};  // as its annotation says
  catalog_.AddToPod(Pod("a", "gone", "n1"), View(), info);
  EXPECT_EQ(info.requests.extended["nvidia.com/gpu"], 1);
  EXPECT_EQ(info.gpu_devices, std::vector<int>{1});
}

TEST_F(DeviceCatalogTest, APodJoinsTheClaimOfAnotherOnItsNode) {
  Gpus("n1", {"A", "A"});
  Claim("c", Exactly("deviceClassName: gpu.swell.dev"),
        StrCat(kGiven, "{resource: pods, name: a, uid: u-a}]"));
  Pod("a", "c", "n1");
  const sched::PodInfo info = Info(Pod("b", "c", "", 1));
  EXPECT_EQ(info.obstacle, "");
  EXPECT_TRUE(info.requests.extended.empty());
  ASSERT_EQ(info.volume_affinity.size(), 1u);
  const auto grants = catalog_.GrantsFor(*pods_["default/b"], View(), "n1", {});
  ASSERT_TRUE(grants.ok());
  EXPECT_TRUE(grants->claims[0].allocation.is_null());
  EXPECT_EQ(grants->gpus, std::vector<int>{1});
}

TEST_F(DeviceCatalogTest, WhoComesFirstGetsAClaimThatNobodyHas) {
  Gpus("n1", {"A", "A"});
  Claim("c", Exactly("deviceClassName: gpu.swell.dev"));
  Pod("a", "c");
  Pod("b", "c", "", 1);
  EXPECT_EQ(Info(*pods_["default/a"]).obstacle, "");
  EXPECT_EQ(Info(*pods_["default/b"]).obstacle, "resourceclaim \"c\" goes to pod a first");
  // It has it, and is not on its node yet.
  Claim("c", Exactly("deviceClassName: gpu.swell.dev"),
        StrCat(kGiven, "{resource: pods, name: a, uid: u-a}]"));
  EXPECT_EQ(Info(*pods_["default/b"]).obstacle, "resourceclaim \"c\" is reserved for pods/a");
  EXPECT_EQ(Asked(*pods_["default/a"]), "GPUs of class gpu.swell.dev=1;nvidia.com/gpu=1;");
}

TEST_F(DeviceCatalogTest, GpusThatArePlainlyRequestedComeFirst) {
  Gpus("n1", {"A", "A", "B"});
  Claim("c", Exactly("deviceClassName: gpu.swell.dev, selectors: [{cel: {expression: "
                     "'device.attributes[\"gpu.swell.dev\"].model == \"A\"'}}]"));
  const auto grants = catalog_.GrantsFor(Pod("a", "c"), View(), "n1", {0, 2});
  ASSERT_TRUE(grants.ok());
  EXPECT_EQ(grants->gpus, (std::vector<int>{2, 0}));
  EXPECT_FALSE(catalog_.GrantsFor(Pod("a", "c"), View(), "n1", {2}).ok());
  EXPECT_FALSE(catalog_.GrantsFor(Pod("a", "c"), View(), "elsewhere", {0}).ok());
}

// Two conditions beyond the length of names, of one name.
std::pair<std::string, std::string> ConditionsOfOneName() {
  std::string start;
  while (start.size() < 200) start += "1 == 1 && ";
  std::map<uint64_t, std::string> of_hash;
  for (int i = 0;; ++i) {
    const std::string condition = StrCat(start, i, " >= 0");
    const auto [known, fresh] = of_hash.emplace(StableHash(condition) % 1'000'000, condition);
    if (!fresh) return {known->second, condition};
  }
}

TEST_F(DeviceCatalogTest, KindsOfOneNameAreTwo) {
  Gpus("n1", {"A", "A"});
  auto ask = [this](const std::string& claim, const std::string& condition) {
    Claim(claim, Exactly(StrCat("allocationMode: All, deviceClassName: gpu.swell.dev, selectors: "
                                "[{cel: {expression: \"",
                                condition, "\"}}]")));
    return Asked(Pod(claim, claim));
  };
  // On one line the second half is a part of the comment.
  const std::string none = ask("a", "true // all\\n&& false");
  const std::string all = ask("b", "true // all && false");
  EXPECT_EQ(all,
            "GPUs of class gpu.swell.dev with true // all && false' (all 2)=2;nvidia.com/gpu=2;");
  EXPECT_EQ(none.find("(all 2)"), std::string::npos) << none;
  EXPECT_EQ(ask("c", "true // all\\n&& false"), none);
  const auto [one, other] = ConditionsOfOneName();
  const std::string first = ask("d", one);
  EXPECT_NE(ask("e", other), first);
  EXPECT_EQ(ask("f", one), first);
}

TEST_F(DeviceCatalogTest, KindsAreBoundedAndForgotten) {
  Gpus("n1", {"A"});
  std::string obstacle;
  for (int i = 0; i < 600 && obstacle.empty(); ++i) {
    Claim("c", Exactly(StrCat("deviceClassName: gpu.swell.dev, selectors: [{cel: {expression: '", i,
                              " == 1'}}]")));
    obstacle = Info(Pod("a", "c")).obstacle;
  }
  EXPECT_EQ(obstacle,
            "resourceclaim \"c\" asks for devices in yet another way; namespace default has 128 in "
            "use already");
  // Pods of other namespaces are not kept from theirs.
  claims_["lab/c"] = claims_["default/c"];
  const auto other =
      Y("metadata: {name: a, namespace: lab, uid: u}\nspec: {resourceClaims: "
        "[{name: g, resourceClaimName: c}]}");
  EXPECT_EQ(Info(*other).obstacle, "");
  EXPECT_TRUE(catalog_.ForgetKinds());
  EXPECT_FALSE(catalog_.ForgetKinds());
  EXPECT_EQ(Info(*pods_["default/a"]).obstacle, "");
}

}  // namespace
}  // namespace swell::sched_inputs
