// The node agent and devices: it publishes its GPUs, and gives pods those of their claims.
#include "kube/node/agent_fixture.h"

namespace swell::node {
namespace {

using std::chrono::seconds;

const std::string kSlices = "/apis/resource.k8s.io/v1/resourceslices";
const std::string kClaims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";

class AgentClaimsTest : public AgentTest {
 protected:
  // A claim whose request "gpu" got the devices, reserved for the uid.
  void PutClaim(const std::string& name,
                const std::vector<std::string>& devices,
                const std::string& uid,
                const std::string& driver = "gpu.swell.dev") {
    json::Array results;
    for (const std::string& device : devices) {
      results.push_back(json::Object{
          {"request", "gpu"}, {"driver", driver}, {"pool", "node-0"}, {"device", device}});
    }
    json::Object status{
        {"allocation", json::Object{{"devices", json::Object{{"results", std::move(results)}}}}},
        {"reservedFor",
         json::Array{json::Object{{"resource", "pods"}, {"name", "a"}, {"uid", uid}}}}};
    api_->Put(kClaims, json::Object{{"apiVersion", "resource.k8s.io/v1"},
                                    {"kind", "ResourceClaim"},
                                    {"metadata", json::Object{{"name", name},
                                                              {"namespace", "default"},
                                                              {"uid", "claim-" + name}}},
                                    {"status", std::move(status)}});
  }
  static std::string SpecWithClaim(const std::string& claim, const std::string& more = "") {
    return StrCat(R"({"resourceClaims":[{"name":"g","resourceClaimName":")", claim,
                  R"("}],"containers":[{"name":"main","image":"x","resources":{"claims":[)",
                  R"({"name":"g"}])", more, R"(}},{"name":"side","image":"x"}]})");
  }
  std::string Reason(const std::string& pod) {
    return std::string(json::GetString(Pod(pod), {"status", "reason"}));
  }
};

TEST_F(AgentClaimsTest, PublishesItsGpus) {
  const json::Value slice = api_->Get(kSlices, "node-0-gpu.swell.dev");
  ASSERT_TRUE(slice.is_object());
  EXPECT_EQ(json::GetString(slice, {"spec", "driver"}), "gpu.swell.dev");
  EXPECT_EQ(json::GetString(slice, {"spec", "nodeName"}), "node-0");
  EXPECT_EQ(json::GetString(slice, {"spec", "pool", "name"}), "node-0");
  const json::Array& devices = json::GetArray(slice, {"spec", "devices"});
  ASSERT_EQ(devices.size(), 4u);
  EXPECT_EQ(json::GetString(devices[2], {"name"}), "gpu-2");
  EXPECT_EQ(json::GetInt(devices[2], {"attributes", "index", "int"}), 2);
  EXPECT_EQ(json::GetString(devices[2], {"attributes", "type", "string"}), "gpu");
  EXPECT_EQ(json::GetString(devices[2], {"capacity", "memory", "value"}), "2048Mi");
  const auto owners = api::Owners(slice);
  ASSERT_EQ(owners.size(), 1u);
  EXPECT_EQ(owners[0].uid, api::Uid(api_->Get("/api/v1/nodes", "node-0")));
}

TEST_F(AgentClaimsTest, TellsWhenItsGpusChange) {
  config_.capacity["nvidia.com/gpu"] = "2";
  agent_.reset();
  Boot();
  const json::Value slice = api_->Get(kSlices, "node-0-gpu.swell.dev");
  EXPECT_EQ(json::GetArray(slice, {"spec", "devices"}).size(), 2u);
  EXPECT_EQ(json::GetInt(slice, {"spec", "pool", "generation"}), 2);
  agent_.reset();
  Boot();
  EXPECT_EQ(
      json::GetInt(api_->Get(kSlices, "node-0-gpu.swell.dev"), {"spec", "pool", "generation"}), 2);
}

TEST_F(AgentClaimsTest, GivesTheContainerThatNamesTheClaimItsDevices) {
  PutClaim("c", {"gpu-3", "gpu-1"}, "u-a");
  const std::string uid = Create("a", SpecWithClaim("c"), R"({"uid":"u-a"})");
  ASSERT_EQ(uid, "u-a");
  EXPECT_EQ(Phase("a"), "Running");
  EXPECT_EQ(EnvOf(uid, "CUDA_VISIBLE_DEVICES"), "3,1");
  EXPECT_EQ(EnvOf(uid, "CUDA_VISIBLE_DEVICES", "side"), "(unset)");
  // A pod that asks for GPUs of the node gets others.
  const std::string other = Create(
      "b",
      R"({"containers":[{"name":"main","image":"x","resources":{"limits":{"nvidia.com/gpu":"2"},"requests":{"nvidia.com/gpu":"2"}}}]})");
  EXPECT_EQ(EnvOf(other, "CUDA_VISIBLE_DEVICES"), "0,2");
}

TEST_F(AgentClaimsTest, APodHasClaimsBesideTheGpusThatItRequests) {
  PutClaim("c", {"gpu-0"}, "u-a");
  const std::string uid = Create(
      "a",
      SpecWithClaim("c", R"(,"limits":{"nvidia.com/gpu":"1"},"requests":{"nvidia.com/gpu":"1"})"),
      R"({"uid":"u-a","annotations":{"swell.dev/gpu-devices":"2,0"}})");
  EXPECT_EQ(Phase("a"), "Running");
  EXPECT_EQ(EnvOf(uid, "CUDA_VISIBLE_DEVICES"), "0,2");
}

TEST_F(AgentClaimsTest, WaitsUntilTheClaimIsItsOwn) {
  PutClaim("c", {"gpu-0"}, "somebody-else");
  Create("a", SpecWithClaim("c"), R"({"uid":"u-a"})");
  EXPECT_EQ(Phase("a"), "Pending");
  EXPECT_TRUE(Saw("FailedPrepareDynamicResources"));
  PutClaim("c", {"gpu-0"}, "u-a");
  sim_.Advance(seconds(2));
  EXPECT_EQ(Phase("a"), "Running");
}

TEST_F(AgentClaimsTest, PodsShareTheDevicesOfOneClaimAlone) {
  PutClaim("c", {"gpu-0"}, "u-a");
  Create("a", SpecWithClaim("c"), R"({"uid":"u-a"})");
  ASSERT_EQ(Phase("a"), "Running");
  json::Value claim = api_->Get(kClaims, "c");
  json::FindMutable(claim, {"status", "reservedFor"})
      ->get_array()
      .push_back(json::Object{{"resource", "pods"}, {"name", "b"}, {"uid", "u-b"}});
  api_->Put(kClaims, claim);
  const std::string uid = Create("b", SpecWithClaim("c"), R"({"uid":"u-b"})");
  EXPECT_EQ(Phase("b"), "Running");
  EXPECT_EQ(EnvOf(uid, "CUDA_VISIBLE_DEVICES"), "0");
  // Another claim to the same device is a mistake of the scheduler that allocated it.
  PutClaim("d", {"gpu-0"}, "u-d");
  Create("d", SpecWithClaim("d"), R"({"uid":"u-d"})");
  EXPECT_EQ(Phase("d"), "Failed");
  EXPECT_EQ(Reason("d"), "UnexpectedAdmissionError");
}

TEST_F(AgentClaimsTest, AVolumeOfOnePodIsMountedByOnePodAtATime) {
  const std::string spec =
      R"({"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"one"}}],
      "containers":[{"name":"main","image":"x"}]})";
  api_->Put("/api/v1/namespaces/default/persistentvolumeclaims",
            Parse(R"({"metadata":{"name":"one"},"spec":{"accessModes":["ReadWriteOncePod"]}})"));
  Create("a", spec);
  EXPECT_EQ(Phase("a"), "Running");
  Create("b", spec);
  sim_.Advance(seconds(30));
  EXPECT_EQ(Phase("b"), "Pending");
  EXPECT_TRUE(Saw("FailedMount"));
  EXPECT_NE(json::Print(Status("b"))
                .find("MountVolume.SetUp failed for volume \\\"data\\\" : volume uses the "
                      "ReadWriteOncePod access mode and is already in use by another pod"),
            std::string::npos)
      << json::Print(Status("b"));
  api_->Delete(kPods, "a", 0);
  sim_.Advance(seconds(90));
  EXPECT_EQ(Phase("b"), "Running");
}

TEST_F(AgentClaimsTest, ExtendedResourcesAreDevicesOfTheirContainer) {
  PutClaim("c", {"gpu-2"}, "u-a");
  const json::Value status = Parse(
      R"({"extendedResourceClaimStatus":{"resourceClaimName":"c","requestMappings":[
      {"containerName":"main","resourceName":"example.com/acc","requestName":"gpu"}]}})");
  json::Value pod = Parse(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"default","uid":"u-a"},
      "spec":{"nodeName":"node-0","containers":[{"name":"main","image":"x","resources":
      {"limits":{"example.com/acc":"1"},"requests":{"example.com/acc":"1"}}},
      {"name":"side","image":"x"}]}})");
  json::Set(pod, {"status"}, status);
  api_->Put(kPods, pod);
  sim_.Advance(seconds(1));
  EXPECT_EQ(Phase("a"), "Running") << json::Print(Pod("a"));
  EXPECT_EQ(EnvOf("u-a", "CUDA_VISIBLE_DEVICES"), "2");
  EXPECT_EQ(EnvOf("u-a", "CUDA_VISIBLE_DEVICES", "side"), "(unset)");
}

TEST_F(AgentClaimsTest, SaysThatTheDriverIsNotHere) {
  PutClaim("c", {"gpu-0"}, "u-a", "nic.example.com");
  Create("a", SpecWithClaim("c"), R"({"uid":"u-a"})");
  EXPECT_EQ(Phase("a"), "Pending");
  EXPECT_TRUE(Saw("FailedPrepareDynamicResources"));
}

TEST_F(AgentClaimsTest, ARestartedAgentKnowsTheDevices) {
  PutClaim("c", {"gpu-1"}, "u-a");
  Create("a", SpecWithClaim("c"), R"({"uid":"u-a"})");
  ASSERT_EQ(Phase("a"), "Running");
  agent_.reset();
  Boot();
  sim_.Advance(seconds(1));
  const std::string other = Create(
      "b",
      R"({"containers":[{"name":"main","image":"x","resources":{"limits":{"nvidia.com/gpu":"2"},"requests":{"nvidia.com/gpu":"2"}}}]})");
  EXPECT_EQ(EnvOf(other, "CUDA_VISIBLE_DEVICES"), "0,2");
  PutClaim("d", {"gpu-1"}, "u-d");
  Create("d", SpecWithClaim("d"), R"({"uid":"u-d"})");
  EXPECT_EQ(Phase("d"), "Failed");
}

}  // namespace
}  // namespace swell::node
