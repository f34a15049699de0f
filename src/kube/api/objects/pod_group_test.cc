#include "kube/api/objects/pod_group.h"

#include <gtest/gtest.h>

#include "kube/api/meta/meta.h"
#include "kube/api/objects/test_document.h"

namespace swell::api {
namespace {

TEST(PodGroup, SpecIsReadOnce) {
  const json::Value group = Document(R"(
spec:
  project: vision
  priorityClassName: train
  preemptibility: Preemptible
  onPreemption: Fail
  preemptUnit: Pod
  minRuntimeSeconds: 30
  topology: {name: rack, required: zone}
  groups: [{name: left, parent: all}, {name: all}]
  podSets: [{name: worker, minMember: 3, parent: left}, {name: master}]
)");
  const PodGroupSpec spec(group);
  EXPECT_EQ(spec.project, "vision");
  EXPECT_EQ(spec.priority_class, "train");
  EXPECT_EQ(spec.preemptibility, "Preemptible");
  EXPECT_EQ(spec.on_preemption, "Fail");
  EXPECT_EQ(spec.preempt_unit, "Pod");
  EXPECT_EQ(spec.min_runtime_seconds, 30);
  EXPECT_EQ(spec.topology.name, "rack");
  EXPECT_EQ(spec.topology.required, "zone");
  ASSERT_EQ(spec.parts.size(), 2U);
  EXPECT_EQ(spec.parts[0].parent, "all");
  ASSERT_EQ(spec.pod_sets.size(), 2U);
  EXPECT_EQ(spec.pod_sets[0].parent, "left");
  EXPECT_EQ(spec.pod_sets[0].min_member, 3);
  EXPECT_EQ(spec.pod_sets[1].min_member, 1);
  EXPECT_EQ(MinMembers(group), 4);
}

TEST(PodGroup, AnEmptyDocumentHasTheUsual) {
  const json::Value group = json::Object{};
  const PodGroupSpec spec(group);
  EXPECT_EQ(spec.on_preemption, "Requeue");
  EXPECT_EQ(spec.preempt_unit, "Gang");
  EXPECT_EQ(MinMembers(group), 0);
  EXPECT_FALSE(LastPreemptionOf(group));
  EXPECT_TRUE(EvictionRecords(group).empty());
}

TEST(PodGroup, StatusTellsOfPreemptions) {
  const json::Value group = Document(R"(
status:
  scheduled: 2
  preemptions: 5
  lastPreemption: {time: '2026-01-01T00:00:00Z', by: ns/other, rule: Quota, message: why}
  evicted:
  - {by: ns/other, rule: Quota, message: why, time: t, lostGpuSeconds: 9, pods: [u1, 7, u2]}
)");
  EXPECT_EQ(ScheduledCount(group), 2);
  EXPECT_EQ(PreemptionCount(group), 5);
  const auto last = LastPreemptionOf(group);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->time, ParseTime("2026-01-01T00:00:00Z"));
  EXPECT_EQ(last->by, "ns/other");
  EXPECT_EQ(last->rule, "Quota");
  EXPECT_EQ(last->message, "why");
  const std::vector<EvictionRecord> records = EvictionRecords(group);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].lost_gpu_seconds, 9);
  // Text that is not a uid counts as nothing.
  EXPECT_EQ(records[0].pods, (std::vector<std::string_view>{"u1", "u2"}));
}

}  // namespace
}  // namespace swell::api
