#include "scheduling/unserved_pods.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::scheduling {
namespace {

using client::resources::kPods;
using manager::kSecond;
using manager::TestCluster;

class UnservedPodsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-a", 4);
    manager::ManagerOptions options;
    options.scheduler_names = {"swell", "volcano"};
    cluster_.StartManager(options);
  }
  void Submit(std::string_view name, std::string_view scheduler) {
    cluster_.Create(StrCat("{apiVersion: v1, kind: Pod, metadata: {name: ", name,
                           ", namespace: default}, spec: {schedulerName: ", scheduler,
                           ", containers: [{name: c, image: i}]}}"));
  }
  int Events(const std::string& pod) { return cluster_.Events("FailedScheduling", pod); }

  TestCluster cluster_;
};

TEST_F(UnservedPodsTest, OneThatNobodyPlacesSaysWhoseWorkItIs) {
  Submit("theirs", "my-scheduler");
  Submit("ours", "volcano");
  cluster_.Run(kSecond * 20);
  EXPECT_EQ(Events("theirs"), 0) << "its scheduler may be about to start";
  cluster_.Run(kSecond * 100);
  EXPECT_EQ(Events("theirs"), 1);
  EXPECT_EQ(cluster_.EventMessage("FailedScheduling", "theirs"),
            "it waits for another scheduler, \"my-scheduler\" (spec.schedulerName), which has not "
            "answered; Swell places pods that name none, or one of swell, volcano");
  EXPECT_EQ(Events("ours"), 0);
  EXPECT_EQ(cluster_.PodPhase("default/ours"), "Running");
}

TEST_F(UnservedPodsTest, OneWhoseSchedulerAnswersIsLeftToIt) {
  Submit("theirs", "my-scheduler");
  ASSERT_TRUE(cluster_
                  .Patch(kPods, "default/theirs",
                         "{status: {conditions: [{type: PodScheduled, status: 'False'}]}}",
                         "status")
                  .ok());
  cluster_.Run(kSecond * 100);
  EXPECT_EQ(Events("theirs"), 0);
}

}  // namespace
}  // namespace swell::scheduling
