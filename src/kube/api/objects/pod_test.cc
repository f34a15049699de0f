#include "kube/api/objects/pod.h"

#include <gtest/gtest.h>

#include "kube/api/meta/meta.h"
#include "kube/api/objects/container_list.h"
#include "kube/api/objects/pod_claims.h"
#include "kube/api/objects/test_document.h"

namespace swell::api {
namespace {

TEST(Pod, FactsAreReadFromTheDocument) {
  struct Case {
    std::string_view yaml, phase, node;
    bool ended = false, ready = false, active = true, sidecar = false;
    int64_t restarts = 0;
  };
  for (const Case& expected : std::initializer_list<Case>{
           {.yaml = "{}", .phase = "Pending"},
           {.yaml = "{spec: {nodeName: n1}, status: {phase: Running,"
                    " conditions: [{type: Ready, status: 'True'}],"
                    " containerStatuses: [{restartCount: 2}, {restartCount: 1}]}}",
           .phase = "Running",
           .node = "n1",
           .ready = true,
           .restarts = 3},
           {.yaml = "{status: {phase: Running, conditions: [{type: Ready, status: 'False'}]}}",
           .phase = "Running"},
           {.yaml = "{status: {phase: Succeeded}}",
           .phase = "Succeeded",
           .ended = true,
           .active = false},
           {.yaml = "{status: {phase: Failed}}", .phase = "Failed", .ended = true, .active = false},
           {.yaml = "{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}}",
           .phase = "Pending",
           .active = false},
           {.yaml = "{spec: {initContainers: [{name: proxy, restartPolicy: Always}]}}",
           .phase = "Pending",
           .sidecar = true},
           {.yaml = "{spec: {initContainers: [{name: proxy}],"
                    " containers: [{name: proxy, restartPolicy: Always}]}}",
           .phase = "Pending"},
       }) {
    const json::Value pod = Document(expected.yaml);
    EXPECT_EQ(Phase(pod), expected.phase) << expected.yaml;
    EXPECT_EQ(NodeName(pod), expected.node) << expected.yaml;
    EXPECT_EQ(IsBound(pod), !expected.node.empty()) << expected.yaml;
    EXPECT_EQ(HasEnded(pod), expected.ended) << expected.yaml;
    EXPECT_EQ(IsReady(pod), expected.ready) << expected.yaml;
    EXPECT_EQ(IsActive(pod), expected.active) << expected.yaml;
    EXPECT_EQ(HasSidecar(pod, "proxy"), expected.sidecar) << expected.yaml;
    EXPECT_EQ(RestartCount(pod), expected.restarts) << expected.yaml;
  }
}

TEST(Pod, SchedulerAndNominatedNodeAreEmptyUntilTheyAreSet) {
  const json::Value pod = json::Object{{"spec", json::Object{{"schedulerName", "swell"}}},
                                       {"status", json::Object{{"nominatedNodeName", "n2"}}}};
  EXPECT_EQ(SchedulerName(pod), "swell");
  EXPECT_EQ(NominatedNode(pod), "n2");
  EXPECT_EQ(SchedulerName(json::Object{}), "");
  EXPECT_EQ(NominatedNode(json::Object{}), "");
}

TEST(Pod, ContainersPortsAndVolumesAreRead) {
  const json::Value pod = Document(R"(
metadata: {name: p}
spec:
  containers:
  - name: a
    ports: [{name: web, containerPort: 80}]
  - name: b
    ports: [{name: rpc, containerPort: 9000, hostPort: 9001, hostIP: 10.0.0.1, protocol: UDP}]
  volumes:
  - {name: x, emptyDir: {}}
  - {name: y, persistentVolumeClaim: {claimName: data}}
  - {name: scratch, ephemeral: {volumeClaimTemplate: {spec: {}}}}
)");
  ASSERT_EQ(Containers(pod).size(), 2U);
  EXPECT_EQ(ContainerName(Containers(pod)[1]), "b");
  const std::vector<ContainerPort> ports = Ports(Containers(pod)[1]);
  ASSERT_EQ(ports.size(), 1U);
  EXPECT_EQ(ports[0].protocol, "UDP");
  EXPECT_EQ(ports[0].host_ip, "10.0.0.1");
  EXPECT_EQ(ports[0].host_port, 9001);
  EXPECT_EQ(Ports(Containers(pod)[0])[0].protocol, "TCP");
  EXPECT_EQ(NamedPort(pod, "rpc"), 9000);
  EXPECT_FALSE(NamedPort(pod, "none"));
  EXPECT_TRUE(HasVolumes(pod));
  const std::vector<MountedClaim> claims = MountedClaims(pod);
  ASSERT_EQ(claims.size(), 2U);
  EXPECT_EQ(claims[0].name, "data");
  EXPECT_EQ(claims[0].claim_template, nullptr);
  EXPECT_EQ(claims[1].name, "p-scratch");
  EXPECT_NE(claims[1].claim_template, nullptr);
}

TEST(Pod, EachStateOfAContainerIsRead) {
  const json::Value pod = Document(R"(
status:
  containerStatuses:
  - {name: w, state: {waiting: {reason: ErrImagePull, message: no such image}}}
  - {name: r, ready: true, started: true, state: {running: {startedAt: '2026-01-01T00:00:00Z'}}}
  - name: t
    restartCount: 3
    state: {terminated: {exitCode: 137, reason: OOMKilled, finishedAt: '2026-01-01T00:01:00Z'}}
  - {name: u}
  initContainerStatuses: [{name: i}]
)");
  const std::vector<ContainerStatus> all = ContainerStatuses(pod);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_TRUE(all[0].Waits());
  EXPECT_EQ(all[0].reason, "ErrImagePull");
  EXPECT_EQ(all[0].message, "no such image");
  EXPECT_TRUE(all[1].Runs() && all[1].ready && all[1].started);
  EXPECT_EQ(all[1].started_at, "2026-01-01T00:00:00Z");
  EXPECT_TRUE(all[2].Ended());
  EXPECT_EQ(all[2].exit_code, 137);
  EXPECT_EQ(all[2].restart_count, 3);
  EXPECT_EQ(all[2].finished_at, ParseTime("2026-01-01T00:01:00Z"));
  EXPECT_EQ(all[3].state, ContainerStatus::State::kUnknown);
  EXPECT_EQ(InitContainerStatuses(pod).size(), 1U);
}

TEST(Pod, ContainersAreComparedByNameInTheirOrder) {
  const auto same = [](const std::string& a, const std::string& b) {
    return SameContainers(json::GetArray(Document(a), {"c"}), json::GetArray(Document(b), {"c"}));
  };
  EXPECT_TRUE(same("{}", "{c: []}"));
  EXPECT_TRUE(same("{c: [{name: a, image: x}, {name: b}]}", "{c: [{name: a}, {name: b}]}"));
  EXPECT_FALSE(same("{c: [{name: a}, {name: b}]}", "{c: [{name: b}, {name: a}]}"));
  EXPECT_FALSE(same("{c: [{name: a}]}", "{c: [{name: a}, {name: b}]}"));
}

TEST(Pod, AContainerIsFoundByItsName) {
  const json::Array containers{json::Object{{"name", "a"}, {"image", "x"}},
                               json::Object{{"name", "b"}, {"image", "y"}}};
  const json::Value* found = ContainerIn(containers, "b");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(json::GetString(*found, {"image"}), "y");
  EXPECT_EQ(ContainerIn(containers, "c"), nullptr);
  EXPECT_EQ(ContainerIn({}, "a"), nullptr);
}

}  // namespace
}  // namespace swell::api
