#include "kube/api/objects/job.h"

#include <gtest/gtest.h>

#include "kube/api/meta/meta.h"
#include "kube/api/objects/test_document.h"

namespace swell::api {
namespace {

TEST(Job, ARolesNameSaysWhetherItLeads) {
  for (const char* role : {"master", "Chief", "leader", "Launcher"}) {
    EXPECT_TRUE(IsLeadingRole(role)) << role;
  }
  for (const char* role : {"worker", "masters", "ps", ""}) EXPECT_FALSE(IsLeadingRole(role));
}

TEST(Job, AnElasticPolicyIsReadOnce) {
  const json::Value spec = Document(R"(
elasticPolicy:
  minReplicas: 2
  maxReplicas: 8
  rdzvBackend: etcd
  rdzvEndpoint: host:1
  rdzvHost: leader
  rdzvPort: 29400
  rdzvId: run
  nProcPerNode: 4
  maxRestarts: 3
  standalone: true
  rdzvConf: [{key: timeout, value: '30'}]
)");
  const ElasticPolicy policy(spec);
  EXPECT_TRUE(policy.given);
  EXPECT_EQ(policy.bounds.least, 2);
  EXPECT_EQ(policy.bounds.most, 8);
  EXPECT_EQ(policy.backend, "etcd");
  EXPECT_EQ(policy.endpoint, "host:1");
  EXPECT_EQ(policy.host, "leader");
  EXPECT_EQ(policy.port, 29400);
  EXPECT_EQ(policy.id, "run");
  EXPECT_EQ(policy.processes_per_node, 4);
  EXPECT_EQ(policy.max_restarts, 3);
  EXPECT_TRUE(policy.standalone);
  ASSERT_EQ(policy.options.size(), 1U);
  EXPECT_EQ(policy.options[0].first, "timeout");
  EXPECT_EQ(policy.options[0].second, "30");
}

TEST(Job, WithoutAnElasticPolicyAllIsAsUsual) {
  const json::Value none = json::Object{};
  const ElasticPolicy policy(none);
  EXPECT_FALSE(policy.given);
  EXPECT_EQ(policy.bounds.least, 1);
  EXPECT_FALSE(policy.bounds.most);
  EXPECT_EQ(policy.backend, "c10d");
  EXPECT_FALSE(policy.port);
  EXPECT_EQ(policy.max_restarts, 100);
}

TEST(Job, RolesHaveOneReplicaUnlessTheySayOtherwise) {
  const json::Value none = json::Object{};
  EXPECT_EQ(ReplicasOf(none), 1);
  EXPECT_EQ(TemplateOf(none), nullptr);
  const json::Value role = json::Object{{"replicas", 0}, {"template", json::Object{}}};
  EXPECT_EQ(ReplicasOf(role), 0);
  EXPECT_NE(TemplateOf(role), nullptr);
}

TEST(Job, TheSizeIsInTheFieldOfItsKind) {
  for (const std::string_view field : {"elastic", "size"}) {
    const json::Value size = Document(
        "{replicas: 2, desiredReplicas: 3, minReplicas: 1, maxReplicas: 4, message: full, history:"
        " [{time: '2026-01-01T00:00:00Z', replicas: 1, desired: 3, reason: started},"
        " {replicas: 2, throughput: 9.5}]}");
    const json::Value job = json::Object{{"status", json::Object{{field, size}}}};
    const auto read = SizeOfJob(job);
    ASSERT_TRUE(read) << field;
    EXPECT_EQ(read->replicas, 2);
    EXPECT_EQ(read->desired, 3);
    EXPECT_EQ(read->least, 1);
    EXPECT_EQ(read->most, 4);
    EXPECT_EQ(read->message, "full");
    ASSERT_EQ(read->history.size(), 2U);
    EXPECT_EQ(read->history[0].time, ParseTime("2026-01-01T00:00:00Z"));
    EXPECT_EQ(read->history[0].reason, "started");
    EXPECT_EQ(read->history[0].throughput, 0);
    EXPECT_EQ(read->history[1].throughput, 9.5);
  }
  EXPECT_FALSE(SizeOfJob(json::Object{}));
}

TEST(Job, AnotherManagerIsOneThatSwellDoesNotStandInFor) {
  const auto manager = [](std::string_view spec) {
    return std::string(OtherManager(json::Object{{"spec", Document(spec)}}));
  };
  EXPECT_EQ(manager("{}"), "");
  EXPECT_EQ(manager("{runPolicy: {managedBy: kubeflow.org/training-operator}}"), "");
  EXPECT_EQ(manager("{runPolicy: {managedBy: kueue.x-k8s.io/multikueue}}"),
            "kueue.x-k8s.io/multikueue");
  EXPECT_EQ(manager("{managedBy: kueue.x-k8s.io/multikueue}"), "kueue.x-k8s.io/multikueue");
}

TEST(Job, IsSuspendedByTheFieldOfItsKind) {
  for (const char* field : {"suspend", "runPolicy.suspend"}) {
    json::Value job = Document("{spec: {runPolicy: {backoffLimit: 1}}}");
    EXPECT_FALSE(IsSuspended(job, field));
    SetSuspended(job, field, true);
    EXPECT_TRUE(IsSuspended(job, field));
    EXPECT_EQ(json::GetInt(job, {"spec", "runPolicy", "backoffLimit"}), 1);
    SetSuspended(job, field, false);
    EXPECT_FALSE(IsSuspended(job, field));
  }
  EXPECT_FALSE(IsSuspended(Document("{spec: {suspend: true}}"), "runPolicy.suspend"));
}

TEST(Job, TheQueueThatEverybodyHasNamesNoProject) {
  EXPECT_EQ(ProjectOfQueue(Document("{queue: vision}")), "vision");
  EXPECT_EQ(ProjectOfQueue(Document("{queue: default}")), "");
  EXPECT_EQ(ProjectOfQueue(Document("{}")), "");
}

}  // namespace
}  // namespace swell::api
