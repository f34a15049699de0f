#include "kube/api/objects/node.h"

#include <gtest/gtest.h>

#include "kube/api/objects/node_pool.h"
#include "kube/api/objects/test_document.h"

namespace swell::api {
namespace {

TEST(Node, FactsAreReadFromTheDocument) {
  const json::Value node = Document(R"(
metadata: {labels: {nvidia.com/gpu.memory: '81920', pool: a}}
spec:
  unschedulable: true
  taints: [{key: dedicated, value: x, effect: NoSchedule}, {key: soft, effect: PreferNoSchedule}]
status: {addresses: [{type: Hostname, address: n1}, {type: InternalIP, address: 10.0.0.7}]}
)");
  EXPECT_TRUE(IsUnschedulable(node));
  EXPECT_EQ(InternalIp(node), "10.0.0.7");
  EXPECT_EQ(GpuMemoryMib(node), 81920);
  const std::vector<Taint> taints = TaintsOf(node);
  ASSERT_EQ(taints.size(), 2U);
  EXPECT_EQ(taints[0].key, "dedicated");
  EXPECT_EQ(taints[0].value, "x");
  EXPECT_TRUE(taints[0].Repels());
  EXPECT_FALSE(taints[1].Repels());
}

TEST(Node, AnEmptyDocumentHasNone) {
  const json::Value node = json::Object{};
  EXPECT_FALSE(IsUnschedulable(node));
  EXPECT_EQ(InternalIp(node), "");
  EXPECT_EQ(GpuMemoryMib(node), 0);
  EXPECT_TRUE(TaintsOf(node).empty());
}

TEST(NodePool, SelectsNodesByTheirLabels) {
  const json::Value pool =
      Document("{spec: {nodeSelector: {pool: a}, placement: {gpu: Spread, cpu: Pack}}}");
  const NodePoolSpec spec(pool);
  EXPECT_TRUE(spec.spreads_gpu);
  EXPECT_FALSE(spec.spreads_cpu || spec.spreads_shared_gpu);
  EXPECT_TRUE(spec.Selects(Document("{metadata: {labels: {pool: a, zone: z}}}")));
  EXPECT_FALSE(spec.Selects(Document("{metadata: {labels: {pool: b}}}")));
  EXPECT_FALSE(spec.Selects(json::Object{}));
  const json::Value all = json::Object{};
  EXPECT_TRUE(NodePoolSpec(all).Selects(json::Object{}));
}

}  // namespace
}  // namespace swell::api
