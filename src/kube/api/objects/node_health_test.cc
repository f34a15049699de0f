#include "kube/api/objects/node_health.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/test_document.h"

namespace swell::api {
namespace {

using std::chrono::hours;

TEST(NodeHealth, SwellsConditionsCountWhenFalseAndThoseOfTheProblemDetectorWhenTrue) {
  const json::Value node = Document(R"(
metadata: {annotations: {swell.dev/ignored-conditions: 'Noise, Other'}}
status:
  conditions:
  - {type: Ready, status: 'False'}
  - {type: DiskPressure, status: 'True'}
  - {type: DiskHealthy, status: 'False', reason: ReadOnly, message: cannot write}
  - {type: MemoryHealthy, status: 'True'}
  - {type: CableHealthy, status: Unknown}
  - {type: KernelDeadlock, status: 'True', reason: DockerHung, message: blocked}
  - {type: ReadonlyFilesystem, status: 'False'}
  - {type: EtcdIsVoter, status: 'True'}
  - {type: SriovReady, status: 'True'}
  - {type: Noise, status: 'True'}
  - {type: ClockHealthy, status: 'False', reason: ClockStepped, message: set}
)");
  const std::vector<NodeFault> faults = FaultsOf(node);
  EXPECT_EQ(FaultsText(faults),
            "DiskHealthy (ReadOnly): cannot write; KernelDeadlock (DockerHung): blocked; "
            "ClockHealthy (ClockStepped): set");
  EXPECT_TRUE(faults[0].taints);
  EXPECT_TRUE(faults[1].taints);
  EXPECT_FALSE(faults[2].taints);
}

TEST(NodeHealth, AGpuIsToldOnceWhicheverChecksBlameItAndOneGpuDoesNotTaint) {
  const json::Value node = Document(R"(
metadata: {annotations: {swell.dev/unhealthy-gpus: '0'}}
status:
  capacity: {nvidia.com/gpu: '2'}
  conditions:
  - {type: DiskHealthy, status: 'False', reason: ReadOnly, message: cannot write}
  - {type: GpuHealthy, status: 'False', reason: GpuUnhealthy, message: 'GPU 0: too hot'}
  - {type: GpuHeatHealthy, status: 'False', reason: GpuUnhealthy, message: 'gpu 0: too hot'}
  - {type: OddHealthy, status: Unknown, reason: CheckNotRun, message: 'odd.sh is not run'}
  - {type: LateHealthy, status: Unknown, reason: CheckUnknown, message: 'no tool'}
)");
  EXPECT_EQ(FaultsText(FaultsOf(node)),
            "DiskHealthy (ReadOnly): cannot write; GpuHealthy (GpuUnhealthy): GPU 0: too hot");
  EXPECT_EQ(FaultsSaid(FaultsOf(node)), "cannot write; GPU 0: too hot");
  EXPECT_EQ(FaultsText(TaintingFaultsOf(node)), "DiskHealthy (ReadOnly): cannot write");
  EXPECT_EQ(BrokenChecksOf(node), std::vector<std::string>{"OddHealthy"});
}

TEST(NodeHealth, GpusAreReadWithinTheNodesCapacity) {
  const json::Value node = Document(R"(
metadata: {annotations: {swell.dev/unhealthy-gpus: '3,1,x,-1,9,1'}}
status: {capacity: {nvidia.com/gpu: '4'}}
)");
  EXPECT_EQ(UnhealthyGpus(node), (std::vector<int>{1, 3}));
  EXPECT_TRUE(UnhealthyGpus(Document("{metadata: {name: n}}")).empty());
}

TEST(NodeHealth, FailuresAreKeptOnceAndTheirScoreDecays) {
  const WallTime now = *ParseTime("2026-01-02T00:00:00Z");
  std::vector<NodeFailure> failures;
  const auto add = [&](int number, Duration ago) {
    return AddNodeFailure(
        failures, {now - ago, "ns/p", StrCat("uid-", number), FailureClass::kHardware, 1, "bus"});
  };
  EXPECT_TRUE(add(1, hours(6)));
  EXPECT_TRUE(add(2, hours(0)));
  EXPECT_FALSE(add(2, hours(0)));
  EXPECT_NEAR(NodeScore(failures, now), 1.5, 1e-9);
  EXPECT_NEAR(NodeScore(failures, now + hours(6)), 0.75, 1e-9);
  EXPECT_EQ(NodeScore(failures, now + hours(24)), 0);
  json::Value node = json::Object{};
  json::Set(node, {"metadata", "annotations", keys::kNodeFailures}, NodeFailuresText(failures));
  const auto read = NodeFailuresOf(node);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].uid, "uid-2");
  EXPECT_EQ(read[1].which, FailureClass::kHardware);
  for (int i = 10; i < 40; ++i) add(i, hours(1));
  EXPECT_EQ(failures.size(), kNodeFailuresKept);
  EXPECT_FALSE(add(1, hours(6))) << "older than all that are kept";
}

TEST(NodeHealth, NonsenseInTheAnnotationIsNoFailure) {
  for (const char* text : {"x", "{}", "[1, {}]", R"([{"time":"never"}])"}) {
    json::Value node = json::Object{};
    json::Set(node, {"metadata", "annotations", keys::kNodeFailures}, text);
    EXPECT_TRUE(NodeFailuresOf(node).empty()) << text;
  }
}

}  // namespace
}  // namespace swell::api
