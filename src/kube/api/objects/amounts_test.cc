#include "kube/api/objects/amounts.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/objects/test_document.h"

namespace swell::api {
namespace {

std::string Requests(std::string_view spec, AmountField field = AmountField::kRequests) {
  auto documents = json::ParseYaml(spec);
  EXPECT_TRUE(documents.ok() && documents->size() == 1);
  std::string out;
  for (const auto& [name, amount] : PodAmounts(documents->front(), field)) {
    out += (out.empty() ? "" : " ") + name + "=" + amount.ToString();
  }
  return out;
}

TEST(PodAmounts, ContainersAddUp) {
  EXPECT_EQ(Requests("containers: [{resources: {requests: {cpu: 1, memory: 1Gi}}},"
                     " {resources: {requests: {cpu: 500m}}}, {}]"),
            "cpu=1500m memory=1Gi");
}

TEST(PodAmounts, LimitsStandInForMissingRequests) {
  constexpr std::string_view kSpec =
      "containers: [{resources: {requests: {cpu: 1}, limits: {cpu: 2, nvidia.com/gpu: 1}}}]";
  EXPECT_EQ(Requests(kSpec), "cpu=1 nvidia.com/gpu=1");
  EXPECT_EQ(Requests(kSpec, AmountField::kLimits), "cpu=2 nvidia.com/gpu=1");
}

TEST(PodAmounts, OneInitContainerRunsAtATime) {
  EXPECT_EQ(Requests("initContainers: [{resources: {requests: {cpu: 3}}},"
                     " {resources: {requests: {cpu: 2, memory: 1Gi}}}]\n"
                     "containers: [{resources: {requests: {cpu: 1}}}]"),
            "cpu=3 memory=1Gi");
}

TEST(PodAmounts, SidecarsRunBesideTheContainers) {
  EXPECT_EQ(Requests("initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 1}}}]\n"
                     "containers: [{resources: {requests: {cpu: 2}}}]"),
            "cpu=3");
}

// KEP 753: an init container starts beside the sidecars before it, not beside those after it.
TEST(PodAmounts, InitContainersStartBesideEarlierSidecars) {
  EXPECT_EQ(Requests("initContainers:\n"
                     "- {restartPolicy: Always, resources: {requests: {cpu: 1}}}\n"
                     "- {resources: {requests: {cpu: 4}}}\n"
                     "- {restartPolicy: Always, resources: {requests: {cpu: 2}}}\n"
                     "containers: [{resources: {requests: {cpu: 1}}}]"),
            "cpu=5");
}

TEST(PodAmounts, AmountsOfTheWholePodReplaceTheSum) {
  EXPECT_EQ(Requests("resources: {requests: {cpu: 8}}\noverhead: {cpu: 100m}\n"
                     "containers: [{resources: {requests: {cpu: 1, memory: 1Gi}}}]"),
            "cpu=8100m memory=1Gi");
}

TEST(PodAmounts, AmountsOfTheWholePodAreCompleted) {
  // A request that is not given: the containers', or the limit. Devices are the containers' alone.
  constexpr std::string_view kLimits =
      "resources: {limits: {cpu: 4, memory: 8Gi, nvidia.com/gpu: 9}}\n"
      "containers: [{resources: {requests: {cpu: 1}, limits: {nvidia.com/gpu: 1}}}, {}]";
  EXPECT_EQ(Requests(kLimits), "cpu=1 memory=8Gi nvidia.com/gpu=1");
  EXPECT_EQ(Requests(kLimits, AmountField::kLimits), "cpu=4 memory=8Gi nvidia.com/gpu=1");
  // A limit that is not given: the containers', if each has one, and not below the request.
  constexpr std::string_view kRequests =
      "resources: {requests: {cpu: 3, memory: 1Gi}}\n"
      "containers: [{resources: {limits: {cpu: 1, memory: 1Gi}}}, {resources: {limits: {cpu: 1}}}]";
  EXPECT_EQ(Requests(kRequests), "cpu=3 memory=1Gi");
  json::Value spec = Document(kRequests);
  CompleteWholePod(spec);
  EXPECT_EQ(json::Print(*json::Find(spec, {"resources"})),
            R"({"requests":{"cpu":3,"memory":"1Gi"},"limits":{"cpu":"3"}})");
  // Huge pages are limited and requested alike.
  EXPECT_EQ(Requests("resources: {limits: {cpu: 1, hugepages-2Mi: 8Mi}}\n"
                     "containers: [{resources: {limits: {hugepages-2Mi: 2Mi}}}]"),
            "cpu=1 hugepages-2Mi=8Mi");
  json::Value none = Document("containers: [{resources: {limits: {cpu: 1}}}]\nresources: {}");
  CompleteWholePod(none);
  EXPECT_TRUE(json::GetObject(none, {"resources"}).empty());
}

TEST(QosClass, OfAWholePodIsThatOfItsAmounts) {
  const auto qos = [](const char* resources) {
    return QosClass(Document(StrCat("spec: {resources: ", resources,
                                    ", containers: [{resources: {limits: {cpu: 1}}}, {}]}")));
  };
  EXPECT_EQ(qos("{limits: {cpu: 2, memory: 1Gi}, requests: {cpu: 2}}"), "Guaranteed");
  EXPECT_EQ(qos("{limits: {cpu: 2, memory: 1Gi}}"), "Burstable");  // the containers request one
  EXPECT_EQ(qos("{requests: {memory: 1Gi}}"), "Burstable");
  EXPECT_EQ(qos("{limits: {memory: 0}, requests: {cpu: 0}}"), "BestEffort");
  EXPECT_EQ(qos("{}"), "Burstable");
}

TEST(QosClass, ComparesAmountsAndNotTheirTexts) {
  const auto qos = [](const char* containers) {
    return QosClass(Document(StrCat("spec: {containers: [", containers, "]}")));
  };
  EXPECT_EQ(qos("{resources: {requests: {cpu: 1000m, memory: 1Gi},"
                " limits: {cpu: 1, memory: 1024Mi}}}"),
            "Guaranteed");
  EXPECT_EQ(qos("{resources: {limits: {cpu: 1, memory: 1Gi}}}"), "Guaranteed");
  EXPECT_EQ(qos("{resources: {limits: {cpu: 1, memory: 1Gi}}}, {}"), "Burstable");
  EXPECT_EQ(qos("{resources: {requests: {cpu: 500m}, limits: {cpu: 1, memory: 1Gi}}}"),
            "Burstable");
  EXPECT_EQ(qos("{resources: {requests: {nvidia.com/gpu: 1}}}"), "BestEffort");
  EXPECT_EQ(qos("{resources: {limits: {cpu: 0}}}"), "BestEffort");
}

TEST(PodAmounts, NonsenseCountsAsNothing) {
  EXPECT_EQ(Requests("containers: [{resources: {requests: {cpu: fast}}}, 7]"), "");
  EXPECT_EQ(Requests("containers: 3"), "");
}

std::string HeldCpu(const std::string& spec_cpu,
                    const std::string& given_cpu,
                    const std::string& conditions = "[]") {
  const json::Value pod = *json::Parse(
      StrCat(R"({"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":")", spec_cpu,
             R"("}}},{"name":"d","resources":{"requests":{"cpu":"1"}}}]},"status":{"conditions":)",
             conditions, R"(,"containerStatuses":[{"name":"c","allocatedResources":{"cpu":")",
             given_cpu, R"("}}]}})"));
  return HeldAmounts(pod)["cpu"].ToString();
}

TEST(HeldAmounts, APodThatIsResizedHoldsTheLargerOfBoth) {
  EXPECT_EQ(HeldCpu("2", "2"), "3");
  EXPECT_EQ(HeldCpu("3", "2"), "4");     // it waits for room
  EXPECT_EQ(HeldCpu("500m", "2"), "3");  // not given back yet
  EXPECT_EQ(HeldCpu("90", "2", R"([{"type":"PodResizePending","reason":"Infeasible"}])"), "3");
}

TEST(HeldAmounts, APodWithAmountsOfItsOwnHoldsTheLargerOfThose) {
  const auto held = [](std::string_view spec_cpu, std::string_view given_cpu,
                       std::string_view conditions) {
    std::string out;
    for (const auto& [name, amount] : HeldAmounts(Document(StrCat(
             "spec: {resources: {requests: {cpu: ", spec_cpu, "}}, overhead: {cpu: 1},",
             " containers: [{name: c, resources: {requests: {cpu: 1},",
             " limits: {nvidia.com/gpu: 2}}}]}\n", "status: {allocatedResources: {cpu: ", given_cpu,
             ", nvidia.com/gpu: 2},", " conditions: [", conditions, "],",
             " containerStatuses: [{name: c, allocatedResources: {cpu: 9}}]}")))) {
      out += StrCat(out.empty() ? "" : " ", name, "=", amount.ToString());
    }
    return out;
  };
  EXPECT_EQ(held("2", "3", ""), "cpu=3 nvidia.com/gpu=2") << "overhead is counted once";
  EXPECT_EQ(held("4", "3", ""), "cpu=5 nvidia.com/gpu=2") << "it waits for room";
  EXPECT_EQ(held("1", "3", ""), "cpu=3 nvidia.com/gpu=2") << "not given back yet";
  EXPECT_EQ(held("90", "3", "{type: PodResizePending, reason: Infeasible}"),
            "cpu=3 nvidia.com/gpu=2");
}

}  // namespace
}  // namespace swell::api
