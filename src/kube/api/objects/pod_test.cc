#include "kube/api/objects/pod.h"

#include <gtest/gtest.h>

#include "json/yaml.h"

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
    auto documents = json::ParseYaml(expected.yaml);
    ASSERT_TRUE(documents.ok() && documents->size() == 1) << expected.yaml;
    const json::Value& pod = documents->front();
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

}  // namespace
}  // namespace swell::api
