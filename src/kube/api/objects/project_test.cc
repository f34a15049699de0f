#include "kube/api/objects/project.h"

#include <gtest/gtest.h>

#include "kube/api/meta/meta.h"
#include "kube/api/objects/test_document.h"

namespace swell::api {
namespace {

TEST(Project, NamespaceIsItsNameUnlessItSaysOtherwise) {
  const json::Object metadata{{"name", "vision"}};
  EXPECT_EQ(NamespaceOfProject(json::Object{{"metadata", metadata}}), "vision");
  const json::Value project =
      json::Object{{"metadata", metadata},
                   {"spec", json::Object{{"namespace", "vision-ns"}, {"parent", "research"}}}};
  EXPECT_EQ(NamespaceOfProject(project), "vision-ns");
  EXPECT_EQ(ParentOfProject(project), "research");
}

TEST(Project, ARootHasNoParent) { EXPECT_EQ(ParentOfProject(json::Object{}), ""); }

TEST(Project, MembersAreViewersUnlessTheyHaveARole) {
  const auto role = [](json::Object fields) {
    const json::Value member(std::move(fields));
    return std::string(ProjectMember(member).ClusterRole());
  };
  EXPECT_EQ(role({}), "viewer");
  EXPECT_EQ(role({{"role", "admin"}}), "project-admin");
  EXPECT_EQ(role({{"role", "editor"}}), "editor");
}

TEST(Project, AMemberIsAUserUnlessItSaysOtherwise) {
  const json::Value alice = json::Object{{"name", "alice"}};
  const json::Value same = json::Object{{"name", "alice"}, {"kind", "User"}, {"role", "admin"}};
  const json::Value group = json::Object{{"name", "alice"}, {"kind", "Group"}};
  EXPECT_TRUE(ProjectMember(alice).SameSubject(ProjectMember(same)));
  EXPECT_FALSE(ProjectMember(alice).SameSubject(ProjectMember(group)));
}

TEST(Project, SharesAreNumbersOrQuantities) {
  const json::Value project = Document(R"(
metadata: {name: vision}
spec:
  description: pictures
  priority: 7
  minRuntimeSeconds: 60
  resources:
    gpu: {quota: 4, limit: 8, lendingLimit: 1, overQuotaWeight: 2}
    memory: {quota: 2Ki}
    cpu: {quota: [], limit: many}
  nodePools:
  - {name: a100, resources: {gpu: {quota: -1}}}
)");
  const ProjectSpec spec(project);
  EXPECT_EQ(spec.ns, "vision");
  EXPECT_EQ(spec.description, "pictures");
  EXPECT_EQ(spec.priority, 7);
  EXPECT_EQ(spec.min_runtime_seconds, 60);
  EXPECT_FALSE(spec.reclaim_min_runtime_seconds);
  EXPECT_EQ(spec.shares.gpu.quota, 4);
  EXPECT_EQ(spec.shares.gpu.limit, 8);
  EXPECT_EQ(spec.shares.gpu.lending_limit, 1);
  EXPECT_EQ(spec.shares.gpu.over_quota_weight, 2);
  EXPECT_EQ(spec.shares.memory.quota, 2048);
  EXPECT_FALSE(spec.shares.cpu.quota);
  EXPECT_FALSE(spec.shares.cpu.limit);
  ASSERT_EQ(spec.pools.size(), 1U);
  EXPECT_EQ(spec.pools[0].name, "a100");
  EXPECT_EQ(spec.pools[0].shares.gpu.quota, -1);
}

TEST(Project, ItsWholeShareAddsUpTheOnesOfItsPools) {
  const auto whole = [](std::string_view yaml) {
    const ResourceShare share = ProjectSpec(Document(yaml)).Whole(&ResourceShares::gpu);
    return std::pair(*share.quota, *share.limit);
  };
  EXPECT_EQ(whole("{spec: {}}"), std::pair(-1.0, -1.0));
  EXPECT_EQ(whole("{spec: {resources: {gpu: {quota: 4}}}}"), std::pair(4.0, -1.0));
  EXPECT_EQ(whole("{spec: {nodePools: [{name: a, resources: {gpu: {quota: 4, limit: 6}}}, "
                  "{name: b, resources: {gpu: {quota: 2, limit: 2}}}]}}"),
            std::pair(6.0, 8.0));
  EXPECT_EQ(whole("{spec: {resources: {gpu: {quota: 1, limit: 1}}, nodePools: [{name: a}]}}"),
            std::pair(-1.0, -1.0));
}

TEST(Project, UseIsReadByPool) {
  const json::Value project = Document(R"(
status:
  usage: {gpu: {allocated: 5, requested: 6, fairShare: 4}}
  pools:
  - {name: a100, usage: {gpu: {quota: 2, allocated: 5, requested: 6, fairShare: 4}}}
  - {usage: {gpu: {allocated: 0}}}
)");
  EXPECT_EQ(UsageOf(project, "gpu").allocated, 5);
  EXPECT_EQ(UsageOf(Document("{}"), "gpu").allocated, 0);
  const std::vector<PoolUsage> pools = PoolUsageOf(project, "gpu");
  ASSERT_EQ(pools.size(), 2U);
  EXPECT_EQ(pools[0].pool, "a100");
  EXPECT_EQ(pools[0].quota, 2);
  EXPECT_EQ(pools[0].usage.requested, 6);
  EXPECT_EQ(pools[1].pool, "");
  EXPECT_FALSE(pools[1].quota);
}

TEST(Project, PoolsThatItListsAreAllItHasUnlessItSharesAllPools) {
  const auto has_others = [](std::string_view yaml) {
    return ProjectSpec(Document(yaml)).HasQuotaInOtherPools();
  };
  EXPECT_TRUE(has_others("{spec: {}}"));
  EXPECT_FALSE(has_others("{spec: {nodePools: [{name: a}]}}"));
  EXPECT_TRUE(has_others("{spec: {nodePools: [{name: a}], resources: {}}}"));
}

TEST(Project, UsageAndPastUseAreWhatTheSchedulerReported) {
  const json::Value project = Document(R"(
status:
  usage: {gpu: {allocated: 3, requested: 4.5, fairShare: 2}}
  pastUse:
    asOf: '2026-01-01T00:00:00Z'
    pools: [{pool: a, gpuHours: 1.5}, {pool: b, gpuHours: odd, cpuHours: 2}]
)");
  const ResourceUsage gpu = UsageOf(project, "gpu");
  EXPECT_EQ(gpu.allocated, 3);
  EXPECT_EQ(gpu.requested, 4.5);
  EXPECT_EQ(gpu.fair_share, 2);
  EXPECT_FALSE(UsageOf(project, "cpu").fair_share);
  const auto past = PastUseOf(project);
  ASSERT_TRUE(past);
  EXPECT_EQ(past->as_of, ParseTime("2026-01-01T00:00:00Z"));
  ASSERT_EQ(past->pools.size(), 2U);
  EXPECT_EQ(past->pools[0].gpu_hours, 1.5);
  EXPECT_EQ(past->pools[1].gpu_hours, 0);
  EXPECT_EQ(past->pools[1].cpu_hours, 2);
  EXPECT_FALSE(PastUseOf(json::Object{}));
}

}  // namespace
}  // namespace swell::api
