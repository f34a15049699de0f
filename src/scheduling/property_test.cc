// Random kills, crashes, preemptions, node deaths and controller restarts: in the end every job is
// over, nothing is booked twice, and no pod is left that belongs to nobody.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "manager/testing/cluster_test_util.h"
#include "sched_inputs/sched_convert.h"

namespace swell::scheduling {
namespace {

using client::resources::kPods;
using client::resources::kPyTorchJobs;
using manager::kSecond;
using manager::PyTorchYaml;
using manager::TestCluster;
constexpr int kNodes = 3;
constexpr int kGpus = 4;

class Chaos {
 public:
  explicit Chaos(uint64_t seed) : random_(seed), cluster_(seed) {}

  void Run() {
    for (int i = 0; i < kNodes; ++i) cluster_.AddNode(StrCat("node-", i), kGpus);
    cluster_.StartManager({.eviction_delay = 10 * kSecond});
    cluster_.Create(
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\n"
        "value: 1000\n");
    for (int step = 0; step < 60; ++step) {
      Step();
      cluster_.Run(std::chrono::milliseconds(200 + random_.Below(3000)));
      CheckBooking();
    }
    FinishEverything();
  }

 private:
  std::vector<std::string> Running() {
    std::vector<std::string> out;
    for (const json::SharedValue& pod : cluster_.List(kPods)) {
      if (api::Phase(*pod) == "Running" && !api::IsDeleting(*pod)) out.push_back(api::KeyOf(*pod));
    }
    return out;
  }

  void Submit() {
    static constexpr const char* kRestart[] = {"Never", "OnFailure", "ExitCode"};
    static constexpr const char* kPolicy[] = {"None", "Running", "All"};
    PyTorchYaml yaml{.name = StrCat("job-", ++jobs_),
                     .workers = static_cast<int>(random_.Below(3)),
                     .gpus = 1 + static_cast<int>(random_.Below(3)),
                     .priority = random_.OneIn(3) ? "high" : "",
                     .restart = kRestart[random_.Below(3)],
                     .run_policy = StrCat("cleanPodPolicy: ", kPolicy[random_.Below(3)]),
                     .annotations = random_.OneIn(4) ? "swell.dev/on-preemption: Fail" : ""};
    cluster_.Create(yaml.Text());
  }

  void Step() {
    std::vector<std::string> running = Running();
    std::string pod = running.empty() ? "" : running[random_.Below(running.size())];
    uint64_t dice = random_.Below(12);
    if (dice < 3 && jobs_ < 12) {
      Submit();
    } else if (dice < 5 && !pod.empty()) {
      static constexpr int kCodes[] = {0, 1, 137};
      int code = kCodes[random_.Below(3)];
      json::SharedValue object = cluster_.Get(kPods, pod);
      // A container may have ended since the list.
      if (object && api::Phase(*object) == "Running") cluster_.agents->Exit(pod, code);
    } else if (dice < 6 && !pod.empty()) {
      (void)cluster_.Delete(kPods, pod);
    } else if (dice == 6) {
      cluster_.StopManager();
      cluster_.Run(kSecond);
      cluster_.StartManager({.eviction_delay = 10 * kSecond});
    } else if (dice == 7 && dead_.empty()) {
      dead_ = StrCat("node-", random_.Below(kNodes));
      cluster_.agents->Kill(dead_);
      cluster_.Run(std::chrono::seconds(random_.Below(90)));
    } else if (dice == 8 && !dead_.empty()) {
      cluster_.agents->Revive(dead_);
      dead_.clear();
    }
  }

  // No node carries more than it has.
  void CheckBooking() {
    std::map<std::string, int64_t> used;
    for (const json::SharedValue& pod : cluster_.List(kPods)) {
      std::string node(json::GetString(*pod, {"spec", "nodeName"}));
      if (node.empty() || api::HasEnded(*pod)) continue;
      sched::Resources requests = sched_inputs::PodRequests(*json::Find(*pod, {"spec"}));
      used[node] += requests.extended["nvidia.com/gpu"];
    }
    for (const auto& [node, gpus] : used) ASSERT_LE(gpus, kGpus) << node;
  }

  bool AllOver() {
    bool over = true;
    for (const json::SharedValue& job : cluster_.List(kPyTorchJobs)) {
      over =
          over && (api::ConditionIsTrue(*job, "Succeeded") || api::ConditionIsTrue(*job, "Failed"));
    }
    return over;
  }

  // Faults are over: the node is back, and what runs finishes.
  void FinishEverything() {
    if (!dead_.empty()) cluster_.agents->Revive(dead_);
    for (int round = 0; round < 200 && !AllOver(); ++round) {
      for (const std::string& pod : Running()) cluster_.agents->Exit(pod, 0);
      cluster_.Run(2 * kSecond);
    }
    if (!AllOver()) {
      for (const json::SharedValue& pod : cluster_.List(kPods)) {
        ADD_FAILURE() << "still there: " << api::KeyOf(*pod) << " " << api::Phase(*pod) << " on "
                      << json::GetString(*pod, {"spec", "nodeName"}) << " "
                      << json::GetString(*pod, {"metadata", "deletionTimestamp"}) << " "
                      << json::Print(json::GetArray(*pod, {"status", "conditions"}));
      }
    }
    for (const json::SharedValue& job : cluster_.List(kPyTorchJobs)) {
      bool succeeded = api::ConditionIsTrue(*job, "Succeeded");
      bool failed = api::ConditionIsTrue(*job, "Failed");
      EXPECT_TRUE(succeeded != failed) << json::PrintPretty(*job, 2);
      ASSERT_TRUE(cluster_.Delete(kPyTorchJobs, api::KeyOf(*job)).ok());
    }
    EXPECT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
    EXPECT_EQ(cluster_.List(client::resources::kPodGroups).size(), 0u);
    EXPECT_EQ(cluster_.manager->scheduler().model().pod_count(), 0u);
  }

  Random random_;
  TestCluster cluster_;
  int jobs_ = 0;
  std::string dead_;
};

class ChaosTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(ChaosTest, EveryJobEndsAndNothingLeaks) {
  SCOPED_TRACE(StrCat("seed ", GetParam()));
  Chaos(GetParam()).Run();
}

INSTANTIATE_TEST_SUITE_P(Seeds, ChaosTest, ::testing::Range<uint64_t>(1, 13));

}  // namespace
}  // namespace swell::scheduling
