// A process that had to leave its GPU has left its state in memory: the node writes it to disk
// while others use the GPU already.
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "kube/node/agent_fixture.h"

namespace swell::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kFourGpus = R"({"restartPolicy":"Never","containers":[
    {"name":"main","image":"x","resources":{"limits":{"nvidia.com/gpu":4}}}]})";

class PersistTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    runtime_.SetPersistForTest(seconds(20), swell::Status::Ok());
  }
};

TEST_F(PersistTest, TheGpusAreFreeWhileTheStateIsWritten) {
  Create("victim", std::string(kFourGpus));
  api_->Delete(kPods, "victim", 30);
  sim_.Advance(milliseconds(100));
  EXPECT_EQ(Phase("victim"), "Failed") << "the scheduler counts it no more";
  Create("preemptor", std::string(kFourGpus));
  EXPECT_EQ(Phase("preemptor"), "Running");
  sim_.Advance(seconds(19));
  EXPECT_TRUE(api_->Has(kPods, "victim")) << "its job's next pod must find the checkpoint";
  sim_.Advance(seconds(2));
  EXPECT_FALSE(api_->Has(kPods, "victim"));
  EXPECT_FALSE(Saw("CheckpointNotSaved"));
}

TEST_F(PersistTest, AStateThatCannotBeWrittenIsTold) {
  runtime_.SetPersistForTest(seconds(1),
                             swell::Status(Code::kUnavailable, "No space left on device"));
  Create("victim", std::string(kFourGpus));
  api_->Delete(kPods, "victim", 30);
  sim_.Advance(seconds(2));
  EXPECT_TRUE(Saw("CheckpointNotSaved"));
  EXPECT_FALSE(api_->Has(kPods, "victim"));
}

TEST_F(PersistTest, ADiskThatIsFullIsToldBeforeTheStateIsLost) {
  runtime_.SetPersistForTest(seconds(100), swell::Status::Ok(),
                             swell::Status(Code::kNoSpace, "3 MiB are missing in /checkpoints"));
  Create("victim", std::string(kFourGpus));
  api_->Delete(kPods, "victim", 30);
  sim_.Advance(seconds(2));
  EXPECT_TRUE(Saw("CheckpointDelayed"));
  sim_.Advance(seconds(100));
  EXPECT_FALSE(api_->Has(kPods, "victim"));
  EXPECT_FALSE(Saw("CheckpointNotSaved"));
}

TEST_F(PersistTest, AForcedDeletionKeepsTheCopyUntilItIsWritten) {
  const std::string uid = Create("victim", std::string(kFourGpus));
  api_->Delete(kPods, "victim", 0);
  sim_.Advance(seconds(10));
  EXPECT_FALSE(api_->Has(kPods, "victim"));
  EXPECT_NE(runtime_.SandboxOfForTest(uid), nullptr);
  sim_.Advance(seconds(11));
  EXPECT_EQ(runtime_.SandboxOfForTest(uid), nullptr);
}

TEST_F(PersistTest, APodWhoseEndIsToldIsReleasedByTheNextAgentToo) {
  const std::string uid = Create("victim", std::string(kFourGpus));
  runtime_.ExitForTest(uid, "main", 143);
  sim_.Advance(seconds(1));
  EXPECT_EQ(Phase("victim"), "Failed");
  agent_.reset();
  runtime_.SetPersistForTest(seconds(1), swell::Status(Code::kUnavailable, "disk full"));
  Boot();
  sim_.Advance(seconds(2));
  EXPECT_TRUE(Saw("CheckpointNotSaved"));
}

TEST_F(PersistTest, ADeletionWaitsForWhatTheNextAgentReleases) {
  const std::string uid = Create("victim", std::string(kFourGpus));
  runtime_.ExitForTest(uid, "main", 143);
  sim_.Advance(seconds(1));
  agent_.reset();
  Boot();
  api_->Delete(kPods, "victim", 30);
  sim_.Advance(seconds(19));
  EXPECT_TRUE(api_->Has(kPods, "victim")) << "its job's next pod must find the checkpoint";
  sim_.Advance(seconds(2));
  EXPECT_FALSE(api_->Has(kPods, "victim"));
}

TEST_F(PersistTest, ANodeThatShutsDownWaitsForTheDisk) {
  Create("a", std::string(kFourGpus));
  int stopped = 0;
  agent_->StopPods(seconds(30), [&stopped] { ++stopped; });
  sim_.Advance(seconds(19));
  EXPECT_EQ(stopped, 0);
  sim_.Advance(seconds(2));
  EXPECT_EQ(stopped, 1);
}

}  // namespace
}  // namespace swell::node
