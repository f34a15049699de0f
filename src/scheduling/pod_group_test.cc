// Pods that become gangs, and what their groups say.
#include <gtest/gtest.h>

#include "operator/testing/one_node_fixture.h"

namespace swell::controllers {
namespace {

using client::resources::kPodGroups;
using client::resources::kPods;
using PodGroupTest = OneNodeTest;

// Counts what is written to the status of PodGroups.
class CountingServer final : public api::RestHandler {
 public:
  explicit CountingServer(std::shared_ptr<api::RestHandler> server) : server_(std::move(server)) {}
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    const bool counts = request.method == "PATCH" && request.path.ends_with("/status") &&
                        request.path.find("/podgroups/") != std::string::npos;
    if (counts) ++writes;
    return server_->Handle(std::move(request), std::move(sink));
  }
  api::HandlerCapabilities capabilities() override { return server_->capabilities(); }

  int writes = 0;

 private:
  std::shared_ptr<api::RestHandler> server_;
};

class GangWritesTest : public OneNodeTest {
 protected:
  void SetUp() override {
    counting_ = std::make_shared<CountingServer>(cluster_.server);
    cluster_.between = counting_;
    OneNodeTest::SetUp();
  }
  std::shared_ptr<CountingServer> counting_;
};

TEST_F(GangWritesTest, AGangIsWorthFewWrites) {
  for (int i = 0; i < 8; ++i) {
    Pod(StrCat("p", i), "swell.dev/pod-group: gang", 0, "swell.dev/min-member: '8'");
    cluster_.Run(std::chrono::milliseconds(50));
  }
  ASSERT_TRUE(cluster_.Until([&] {
    const json::SharedValue group = cluster_.Get(kPodGroups, "default/gang");
    return json::GetString(*group, {"status", "phase"}) == "Running" &&
           json::GetInt(*group, {"status", "running"}) == 8;
  }));
  cluster_.Run(5 * kSecond);
  EXPECT_LE(counting_->writes, 3);
}

TEST_F(PodGroupTest, LabelledPodsBecomeAGang) {
  Pod("a", "swell.dev/pod-group: gang", 2, "swell.dev/min-member: '2'");
  cluster_.Run(5 * kSecond);
  json::SharedValue group = cluster_.Get(kPodGroups, "default/gang");
  ASSERT_TRUE(group);
  EXPECT_EQ(json::GetInt(*group, {"status", "minMember"}), 2);
  EXPECT_EQ(cluster_.PodPhase("default/a"), "Pending");
  Pod("b", "swell.dev/pod-group: gang", 2);
  ASSERT_TRUE(UntilRunning("a"));
  ASSERT_TRUE(UntilRunning("b"));
  ASSERT_TRUE(cluster_.Until([&] {
    return json::GetString(*cluster_.Get(kPodGroups, "default/gang"), {"status", "phase"}) ==
           "Running";
  }));
  for (const char* pod : {"default/a", "default/b"}) ASSERT_TRUE(cluster_.Delete(kPods, pod).ok());
  EXPECT_TRUE(cluster_.Until([&] { return !cluster_.Get(kPodGroups, "default/gang"); }));
}

TEST_F(PodGroupTest, AGroupHasSucceededStillWhenItsPodsAreCleanedUp) {
  cluster_.Create(PyTorchYaml{.workers = 0, .run_policy = "cleanPodPolicy: All"}.Text());
  ASSERT_TRUE(UntilRunning("job-master-0"));
  cluster_.agents->Exit("default/job-master-0", 0);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("") == 0; }));
  cluster_.Run(5 * kSecond);
  EXPECT_EQ(json::GetString(*cluster_.Get(kPodGroups, "default/job"), {"status", "phase"}),
            "Succeeded");
}

}  // namespace
}  // namespace swell::controllers
