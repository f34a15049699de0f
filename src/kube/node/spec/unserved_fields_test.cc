#include "kube/node/spec/unserved_fields.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/node/agent_fixture.h"
#include "kube/node/health/disk_limits.h"

namespace swell::node {
namespace {

using std::chrono::seconds;

std::string Why(const std::string& spec) {
  const auto found = FindUnserved(Parse(StrCat(R"({"spec":)", spec, "}")));
  return found ? found->message : "";
}

TEST(UnservedFields, AreNamedWithWhatToDo) {
  EXPECT_EQ(Why(R"({"containers":[{"name":"a","volumeMounts":[{"name":"v"}]}]})"), "");
  EXPECT_EQ(Why(R"({"os":{"name":"linux"},"resourceClaims":[],"resources":{}})"), "");
  EXPECT_EQ(Why(R"({"os":{"name":"windows"}})"), "spec.os.name: \"windows\": this node runs Linux");
  EXPECT_EQ(Why(R"({"resourceClaims":[{"name":"gpu"}]})"), "");
  EXPECT_EQ(Why(R"({"resources":{"limits":{"cpu":"1"}}})"), "");
  EXPECT_EQ(Why(R"({"containers":[{"name":"a","volumeDevices":[{"name":"d"}]}]})"),
            "spec.containers[a].volumeDevices: there are no block devices here; mount a volume "
            "instead");
  EXPECT_EQ(Why(R"({"containers":[{"name":"a","restartPolicy":"Never"}]})"), "");
  EXPECT_EQ(Why(R"({"containers":[{"name":"a","restartPolicyRules":[{"action":
                "RestartAllContainers","exitCodes":{"operator":"In","values":[1]}}]}]})"),
            "spec.containers[a].restartPolicyRules: RestartAllContainers: a container restarts "
            "alone here; use Restart");
  EXPECT_EQ(Why(R"({"initContainers":[{"name":"a","restartPolicy":"Always"}]})"), "");
  EXPECT_EQ(Why(R"({"containers":[{"name":"a","env":[{"name":"X","value":"1"},{"name":"Y",
                "valueFrom":{"fileKeyRef":{"volumeName":"v","path":"p","key":"k"}}}]}]})"),
            "spec.containers[a].env[Y].valueFrom.fileKeyRef: variables are not read from files "
            "here; let the container's command read the file");
  EXPECT_EQ(Why(R"({"containers":[{"name":"a","volumeMounts":[{"name":"v",
                "mountPropagation":"Bidirectional"}]}]})"),
            "spec.containers[a].volumeMounts[v].mountPropagation: Bidirectional: what a container "
            "mounts never reaches the node");
  EXPECT_EQ(FindIgnored(Parse(R"({"spec":{"containers":[{"name":"a","volumeMounts":[
                {"name":"v","mountPropagation":"HostToContainer"},
                {"name":"w","mountPropagation":"None"}]}]}})"))
                .size(),
            1u);
  const std::string udp = R"("containers":[{"name":"a","ports":[{"hostPort":53,"protocol":"UDP"},
      {"hostPort":80}]}])";
  EXPECT_EQ(
      FindIgnored(Parse(StrCat(R"({"spec":{)", udp, "}}"))),
      std::vector<std::string>{"spec.containers[a].ports.hostPort: 53: the node serves TCP alone"});
  EXPECT_TRUE(FindIgnored(Parse(StrCat(R"({"spec":{"hostNetwork":true,)", udp, "}}"))).empty());
}

TEST(UnservedFields, HandlersOfRuntimeClasses) {
  EXPECT_FALSE(FindUnservedHandler(Parse(R"({"handler":"nvidia"})")));
  EXPECT_TRUE(FindUnservedHandler(Parse(R"({"handler":"kata"})")));
}

TEST_F(AgentTest, APodThatAsksForWhatTheNodeHasNotIsRefused) {
  Create("a", R"({"os":{"name":"windows"},"containers":[{"name":"main","image":"x"}]})");
  sim_.Advance(seconds(1));
  EXPECT_EQ(Phase("a"), "Failed");
  EXPECT_TRUE(Saw("PodOSNotSupported"));
  Create("b", R"({"containers":[{"name":"main","image":"x","volumeMounts":[{"name":"v",
      "mountPath":"/v","mountPropagation":"HostToContainer"}]}],
      "volumes":[{"name":"v","emptyDir":{}}]})");
  sim_.Advance(seconds(1));
  EXPECT_EQ(Phase("b"), "Running");
  EXPECT_TRUE(Saw("FieldIgnored"));
}

TEST_F(AgentTest, APodOfARuntimeClassWaitsForAHandlerThatTheNodeHas) {
  const std::string classes = "/apis/node.k8s.io/v1/runtimeclasses";
  api_->Put(classes, Parse(R"({"metadata":{"name":"boxed"},"handler":"kata"})"));
  Create("a", R"({"runtimeClassName":"boxed","containers":[{"name":"main","image":"x"}]})");
  sim_.Advance(seconds(1));
  EXPECT_EQ(Phase("a"), "Pending");
  EXPECT_TRUE(Saw("FailedCreatePodSandBox"));
  api_->Put(classes, Parse(R"({"metadata":{"name":"boxed"},"handler":"runc"})"));
  sim_.Advance(seconds(120));
  EXPECT_EQ(Phase("a"), "Running");
}

TEST(DiskLimits, SayWhatIsTooMuchInTheKubeletsWords) {
  const json::Value pod = Parse(R"({"spec":{
      "containers":[{"name":"a","resources":{"limits":{"ephemeral-storage":"1Ki"}}},
                    {"name":"b","resources":{"limits":{"ephemeral-storage":"2Ki"}}}],
      "volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Ki"}},{"name":"w","emptyDir":{}},
                 {"name":"m","emptyDir":{"medium":"Memory","sizeLimit":"1Ki"}}]}})");
  EXPECT_TRUE(HasDiskLimits(pod));
  EXPECT_FALSE(BeyondDiskLimit(pod, {}));
  EXPECT_FALSE(BeyondDiskLimit(pod, {{{"v", 1024}, {"w", 100}}, {{"a", 1024}, {"b", 900}}}));
  EXPECT_EQ(BeyondDiskLimit(pod, {{{"v", 1025}}, {}}),
            "Usage of EmptyDir volume \"v\" exceeds the limit \"1Ki\".");
  EXPECT_EQ(BeyondDiskLimit(pod, {{}, {{"a", 1025}}}),
            "Container a exceeded its local ephemeral storage limit \"1Ki\".");
  EXPECT_EQ(BeyondDiskLimit(pod, {{{"w", 3000}}, {{"b", 1000}}}),
            "Pod ephemeral local storage usage exceeds the total limit of containers 3Ki.");
  EXPECT_FALSE(HasDiskLimits(Parse(R"({"spec":{"containers":[{"name":"a"}],
      "volumes":[{"name":"m","emptyDir":{"medium":"Memory","sizeLimit":"1Ki"}}]}})")));
}

TEST_F(AgentTest, APodThatOutgrowsItsEmptyDirIsEvicted) {
  const std::string uid = Create("a", R"({"restartPolicy":"Always","containers":[{"name":"main",
      "image":"x"}],"volumes":[{"name":"v","emptyDir":{"sizeLimit":"10Mi"}}]})");
  runtime_.SetDiskUseForTest(uid, {{{"v", 10 << 20}}, {}});
  sim_.Advance(seconds(60));
  EXPECT_EQ(Phase("a"), "Running");
  runtime_.SetDiskUseForTest(uid, {{{"v", 11 << 20}}, {}});
  sim_.Advance(seconds(15));
  EXPECT_EQ(Phase("a"), "Failed");
  EXPECT_EQ(json::GetString(Pod("a"), {"status", "reason"}), "Evicted");
  EXPECT_EQ(json::GetString(Pod("a"), {"status", "message"}),
            "Usage of EmptyDir volume \"v\" exceeds the limit \"10Mi\".");
  EXPECT_TRUE(Saw("Evicted"));
}

TEST_F(AgentTest, VolumesInMemoryAreNoLargerThanThePodsMemory) {
  const std::string uid = Create("a", R"({"containers":[{"name":"main","image":"x",
      "resources":{"limits":{"memory":"1Gi"}}}],"volumes":[
      {"name":"own","emptyDir":{"medium":"Memory"}},
      {"name":"small","emptyDir":{"medium":"Memory","sizeLimit":"1Mi"}},
      {"name":"large","emptyDir":{"medium":"Memory","sizeLimit":"2Gi"}}]})");
  const SandboxSpec* sandbox = runtime_.SandboxOfForTest(uid);
  ASSERT_NE(sandbox, nullptr);
  EXPECT_EQ(sandbox->volumes[0].size_limit_bytes, 1 << 30);
  EXPECT_EQ(sandbox->volumes[1].size_limit_bytes, 1 << 20);
  EXPECT_EQ(sandbox->volumes[2].size_limit_bytes, 1 << 30);
}

TEST_F(AgentTest, ContainersWithoutLimitsHaveThoseOfTheWholePod) {
  const std::string uid = Create("a", R"({
      "resources":{"requests":{"cpu":"1","memory":"3Gi"},"limits":{"cpu":"2","memory":"4Gi"}},
      "volumes":[{"name":"v","emptyDir":{"medium":"Memory"}}],"containers":[
        {"name":"main","image":"x","env":[
          {"name":"CPUS","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}},
          {"name":"MEM","valueFrom":{"resourceFieldRef":{"resource":"limits.memory",
                                                         "divisor":"1Gi"}}}]},
        {"name":"side","image":"x","resources":{"requests":{"cpu":"250m","memory":"1Gi"},
                                                "limits":{"memory":"2Gi"}}}]})");
  sim_.Advance(seconds(1));
  EXPECT_EQ(EnvOf(uid, "CPUS"), "2");
  EXPECT_EQ(EnvOf(uid, "MEM"), "4");
  constexpr int64_t kGi = 1 << 30;
  EXPECT_EQ(runtime_.SandboxOfForTest(uid)->volumes[0].size_limit_bytes, 4 * kGi);
  const ContainerSpec* own = runtime_.SpecOfForTest(uid, "main");
  ASSERT_NE(own, nullptr);
  EXPECT_EQ(own->cpu_request_milli, 2000);
  EXPECT_EQ(own->cpu_limit_milli, 2000);
  EXPECT_EQ(own->memory_limit_bytes, 4 * kGi);
  EXPECT_EQ(own->memory_request_bytes, kGi) << "half of what the containers leave";
  const ContainerSpec* side = runtime_.SpecOfForTest(uid, "side");
  ASSERT_NE(side, nullptr);
  EXPECT_EQ(side->cpu_request_milli, 250);
  EXPECT_EQ(side->memory_limit_bytes, 2 * kGi);
  EXPECT_EQ(side->memory_request_bytes, 2 * kGi);
  ASSERT_TRUE(side->whole_pod.has_value());
  EXPECT_EQ(side->whole_pod->cpu_request_milli, 1000);
  EXPECT_EQ(side->whole_pod->cpu_limit_milli, 2000);
  EXPECT_EQ(side->whole_pod->memory_limit_bytes, 4 * kGi);
}

TEST_F(AgentTest, ProjectedSourcesThatTheNodeHasNotAreNamed) {
  Create("a", R"({"containers":[{"name":"main","image":"x"}],"volumes":[{"name":"v","projected":{
      "sources":[{"clusterTrustBundle":{"name":"b","path":"ca"}}]}}]})");
  sim_.Advance(seconds(1));
  EXPECT_EQ(Phase("a"), "Pending");
  EXPECT_TRUE(Saw("FailedMount"));
  Create("b", R"({"containers":[{"name":"main","image":"x"}],"volumes":[{"name":"v","projected":{
      "sources":[{"clusterTrustBundle":{"name":"b","path":"ca","optional":true}}]}}]})");
  sim_.Advance(seconds(1));
  EXPECT_EQ(Phase("b"), "Running");
  Create("c", R"({"containers":[{"name":"main","image":"x"}],"volumes":[{"name":"v","projected":{
      "sources":[{"podCertificate":{"signerName":"a.b/c","keyType":"ED25519","keyPath":"k"}}]}}]})");
  sim_.Advance(seconds(1));
  EXPECT_EQ(Phase("c"), "Pending");
}

TEST_F(AgentTest, StopSignalsGroupsAndHostNamesAreTheContainers) {
  const std::string uid = Create("a", R"({"hostname":"weaker","hostnameOverride":"own.example",
      "securityContext":{"supplementalGroupsPolicy":"Strict"},"containers":[{"name":"main",
      "image":"x","lifecycle":{"stopSignal":"SIGUSR1"}}]})");
  EXPECT_EQ(runtime_.SandboxOfForTest(uid)->hostname, "own.example");
  sim_.Advance(seconds(1));
  const ContainerSpec* spec = runtime_.SpecOfForTest(uid, "main");
  ASSERT_NE(spec, nullptr);
  EXPECT_EQ(spec->stop_signal, "SIGUSR1");
  EXPECT_TRUE(spec->strict_groups);
}

}  // namespace
}  // namespace swell::node
