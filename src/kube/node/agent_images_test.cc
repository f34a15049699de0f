#include <chrono>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/node/agent_fixture.h"
#include "kube/node/spec/pull_words.h"

namespace swell::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class AgentImagesTest : public AgentTest {
 protected:
  void SetUp() override {
    runtime_.SetImagesForTest([this](const ImageRequest& request) -> Result<ImageReady> {
      requests_.push_back(request);
      if (!answer_.ok()) return answer_;
      return ready_;
    });
    AgentTest::SetUp();
  }

  std::string Waiting(std::string_view field = "reason") {
    return std::string(json::GetString(Status("a"), {"state", "waiting", field}));
  }
  bool Said(std::string_view reason, std::string_view message) {
    for (const std::string& name : api_->Names("/api/v1/events")) {
      json::Value event = api_->Get("/api/v1/namespaces/default/events", name);
      if (json::GetString(event, {"reason"}) == reason &&
          json::GetString(event, {"message"}) == message) {
        return true;
      }
    }
    return false;
  }
  std::string Run(const std::string& more = "", const std::string& spec = "") {
    return Create("a", StrCat(R"({)", spec, R"("containers":[{"name":"main","image":"team/app:1")",
                              more, "}]}"));
  }

  std::vector<ImageRequest> requests_;
  swell::Status answer_;
  ImageReady ready_{.handle = "sha256:1", .id = "docker.io/team/app@sha256:2"};
};

TEST_F(AgentImagesTest, APulledImageIsToldWithItsTimeAndSize) {
  ready_.pulled = true;
  ready_.took = milliseconds(1234);
  ready_.waited = seconds(65);
  ready_.size_bytes = 4096;
  std::string uid = Run();
  EXPECT_EQ(State("a"), "running");
  EXPECT_EQ(json::GetString(Status("a"), {"imageID"}), "docker.io/team/app@sha256:2");
  EXPECT_EQ(runtime_.SpecOfForTest(uid, "main")->image_handle, "sha256:1");
  EXPECT_TRUE(Said("Pulling", "Pulling image \"team/app:1\""));
  EXPECT_TRUE(Said("Pulled",
                   "Successfully pulled image \"team/app:1\" in 1.234s (1m5s including waiting). "
                   "Image size: 4096 bytes."));
  EXPECT_TRUE(Saw("Created"));
}

TEST_F(AgentImagesTest, AnImageThatIsHereIsNotPulled) {
  Run();
  EXPECT_EQ(State("a"), "running");
  EXPECT_FALSE(Saw("Pulling"));
  EXPECT_TRUE(Said("Pulled", "Container image \"team/app:1\" already present on machine"));
}

TEST_F(AgentImagesTest, AStandInIsAWarning) {
  ready_ = {.own_programs = true, .instead = "nobody knows registry docker.io"};
  Run();
  EXPECT_EQ(State("a"), "running");
  EXPECT_TRUE(Said("StandIn",
                   "Programs of this machine stand in for image \"team/app:1\", because nobody "
                   "knows registry docker.io"));
  EXPECT_FALSE(Saw("Pulled"));
}

TEST_F(AgentImagesTest, AFailedPullBacksOffAndEndsWhenItSucceeds) {
  answer_ = swell::Status(Code::kUnavailable, "the registry sleeps");
  Run();
  EXPECT_EQ(Waiting(), "ErrImagePull");
  EXPECT_EQ(Waiting("message"), "the registry sleeps");
  EXPECT_TRUE(Said("Failed", "Failed to pull image \"team/app:1\": the registry sleeps"));
  EXPECT_TRUE(Said("Failed", "Error: ErrImagePull"));
  sim_.Advance(seconds(3));
  EXPECT_EQ(Waiting(), "ImagePullBackOff");
  EXPECT_EQ(Waiting("message"), "Back-off pulling image \"team/app:1\": the registry sleeps");
  EXPECT_TRUE(Said("BackOff", "Back-off pulling image \"team/app:1\""));
  EXPECT_TRUE(Said("Failed", "Error: ImagePullBackOff"));
  EXPECT_EQ(requests_.size(), 1u);
  // After 10, 20, 40, 80, 160, 300, 300 s.
  sim_.Advance(seconds(8));
  EXPECT_EQ(requests_.size(), 2u);
  sim_.Advance(minutes(10));
  EXPECT_EQ(requests_.size(), 7u);
  sim_.Advance(minutes(9));
  EXPECT_EQ(requests_.size(), 8u);
  answer_ = swell::Status::Ok();
  sim_.Advance(minutes(5));
  EXPECT_EQ(State("a"), "running");
  EXPECT_EQ(json::GetInt(Status("a"), {"restartCount"}), 0);
}

TEST_F(AgentImagesTest, ARegistryIsAskedAgainWhenItSaid) {
  StatusDetails later;
  later.retry_after_s = 120;
  answer_ = swell::Status(Code::kTooManyRequests, "busy", later);
  Run();
  sim_.Advance(seconds(119));
  EXPECT_EQ(requests_.size(), 1u);
  later.retry_after_s = 3600;
  answer_ = swell::Status(Code::kTooManyRequests, "busy", later);
  sim_.Advance(seconds(2));
  EXPECT_EQ(requests_.size(), 2u);
  // No longer than Kubernetes waits at most.
  sim_.Advance(seconds(301));
  EXPECT_EQ(requests_.size(), 3u);
}

TEST_F(AgentImagesTest, OtherFailuresHaveReasonsOfTheirOwn) {
  answer_ = swell::Status(Code::kInvalid, "a capital letter");
  Run();
  EXPECT_EQ(Waiting(), "InvalidImageName");
  EXPECT_TRUE(Saw("InspectFailed"));
  EXPECT_FALSE(Saw("Pulling"));
  answer_ = swell::Status(Code::kMethodNotAllowed, "it is not here");
  sim_.Advance(seconds(11));
  EXPECT_EQ(Waiting(), "ErrImageNeverPull");
  EXPECT_TRUE(Said("ErrImageNeverPull",
                   "Container image \"team/app:1\" is not present with pull policy of Never: it is "
                   "not here"));
  EXPECT_TRUE(Said("Failed", "Error: ErrImageNeverPull"));
}

TEST_F(AgentImagesTest, PoliciesAndSecretsReachTheRuntime) {
  json::Value secret =
      Parse(R"({"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/dockerconfigjson"})");
  json::Set(secret, {"metadata"}, Parse(R"({"name":"pull","namespace":"default"})"));
  json::Set(secret, {"data", ".dockerconfigjson"}, Base64Encode("{\"auths\":{}}"));
  api_->Put("/api/v1/namespaces/default/secrets", secret);
  Run(R"(,"imagePullPolicy":"Always")", R"("imagePullSecrets":[{"name":"pull"},{"name":"gone"}],)");
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_EQ(requests_[0].image, "team/app:1");
  EXPECT_EQ(requests_[0].policy, ImageRequest::Policy::kAlways);
  EXPECT_EQ(requests_[0].docker_configs, std::vector<std::string>{"{\"auths\":{}}"});
  EXPECT_TRUE(
      Said("FailedToRetrieveImagePullSecret",
           "Unable to retrieve some image pull secrets (gone); attempting to pull the image "
           "may not succeed."));
  EXPECT_EQ(State("a"), "running");
}

TEST_F(AgentImagesTest, ASecretThatComesLaterIsUsed) {
  answer_ = swell::Status(Code::kUnauthorized, "no");
  Run("", R"("imagePullSecrets":[{"name":"late"}],)");
  EXPECT_TRUE(requests_.back().docker_configs.empty());
  EXPECT_EQ(json::GetString(Status("a"), {"state", "waiting", "message"}),
            "no; no Secret with a registry's credentials is called late (imagePullSecrets)");
  json::Value secret = Parse(R"({"apiVersion":"v1","kind":"Secret"})");
  json::Set(secret, {"metadata"}, Parse(R"({"name":"late","namespace":"default"})"));
  json::Set(secret, {"data", ".dockercfg"}, Base64Encode("{\"h\":{}}"));
  api_->Put("/api/v1/namespaces/default/secrets", secret);
  sim_.Advance(seconds(11));
  EXPECT_EQ(requests_.back().docker_configs, std::vector<std::string>{"{\"auths\":{\"h\":{}}}"});
}

TEST_F(AgentImagesTest, APodThatIsDeletedDoesNotWaitForItsPull) {
  answer_ = swell::Status(Code::kUnavailable, "slow");
  std::string uid = Run();
  json::Value pod = Pod("a");
  json::Set(pod, {"metadata", "deletionTimestamp"}, json::Value("2030-01-01T00:00:00Z"));
  json::Set(pod, {"metadata", "deletionGracePeriodSeconds"}, json::Value(5));
  api_->Put(kPods, pod);
  sim_.Advance(seconds(1));
  const size_t asked = requests_.size();
  EXPECT_EQ(api_->Names(kPods).size(), 0u);
  sim_.Advance(minutes(10));
  EXPECT_EQ(requests_.size(), asked);
}

TEST(PullWords, DurationsAreGos) {
  EXPECT_EQ(GoMillis(milliseconds(0)), "0ms");
  EXPECT_EQ(GoMillis(milliseconds(850)), "850ms");
  EXPECT_EQ(GoMillis(milliseconds(1000)), "1s");
  EXPECT_EQ(GoMillis(milliseconds(1050)), "1.05s");
  EXPECT_EQ(GoMillis(milliseconds(62'500)), "1m2.5s");
}

}  // namespace
}  // namespace swell::node
