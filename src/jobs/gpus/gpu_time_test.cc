#include "jobs/gpus/gpu_time.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/progress.h"

namespace swell::jobs {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class GpuTimeTest : public ::testing::Test {
 protected:
  // A pod that was bound when the test began.
  void Pod(const std::string& name, std::string_view phase, std::string_view doing = "") {
    json::Value pod = json::Object{
        {"metadata", json::Object{{"name", name}, {"namespace", "default"}, {"uid", name}}}};
    json::Set(pod, {"spec", "nodeName"}, "node-1");
    json::Set(
        pod, {"spec", "containers"},
        json::Array{json::Object{
            {"name", "main"},
            {"resources", json::Object{{"requests", json::Object{{"nvidia.com/gpu", "2"}}}}}}});
    json::Set(pod, {"status", "phase"}, phase);
    json::Set(pod, {"status", "startTime"}, api::FormatTime(begin_));
    json::Set(pod, {"status", "conditions"},
              json::Array{json::Object{{"type", "PodScheduled"},
                                       {"status", "True"},
                                       {"lastTransitionTime", api::FormatTime(begin_)}}});
    if (!doing.empty()) {
      json::Set(pod, {"metadata", "annotations", api::keys::kProgress},
                json::Print(api::RanksToJson({{.phase = std::string(doing), .step = 1}})));
    }
    if (phase == "Failed") {
      json::Set(
          pod, {"status", "containerStatuses"},
          json::Array{json::Object{
              {"name", "main"},
              {"state", json::Object{{"terminated",
                                      json::Object{{"exitCode", 1},
                                                   {"finishedAt", api::FormatTime(now_)}}}}}}});
    }
    pods_[name] = std::make_shared<const json::Value>(std::move(pod));
  }
  void Pass(Duration time, bool over = false) {
    now_ = now_ + time;
    time_.Note("job", pods_, gang_runs_, now_, over, status_);
  }
  int64_t Get(json::Path path) { return json::GetInt(status_, path); }
  int64_t Of(std::string_view use) { return Get({"gpuTime", "seconds", use}); }

  const WallTime begin_ = *api::ParseTime("2026-01-01T00:00:00Z");
  WallTime now_ = begin_;
  std::map<std::string, json::SharedValue> pods_;
  bool gang_runs_ = true;
  json::Value status_ = json::Object{};
  GpuTime time_;
};

TEST_F(GpuTimeTest, EverySecondIsChargedToWhatThePodDid) {
  Pod("a", "Pending");
  Pass(seconds(0));
  Pod("a", "Running", "load");
  Pass(seconds(30));
  Pod("a", "Running", "step");
  Pass(seconds(10));
  Pod("a", "Running", "save");
  Pass(minutes(10));
  pods_.clear();
  Pass(seconds(20), true);
  EXPECT_EQ(Of("starting"), 60);
  EXPECT_EQ(Of("loading"), 20);
  EXPECT_EQ(Of("training"), 1200);
  EXPECT_EQ(Of("saving"), 40);
  EXPECT_EQ(Get({"gpuTime", "heldSeconds"}), 1320);
  EXPECT_EQ(Get({"gpuTime", "productivePercentage"}), 90);
}

TEST_F(GpuTimeTest, ItIsWrittenOnceAMinuteAndAtTheEnd) {
  Pod("a", "Running", "step");
  Pass(seconds(0));
  Pass(seconds(61));
  EXPECT_EQ(Of("training"), 122);
  Pass(seconds(30));
  EXPECT_EQ(Of("training"), 122);
  Pass(seconds(1), true);
  EXPECT_EQ(Of("training"), 184);
}

TEST_F(GpuTimeTest, WhatASuspendedJobHeldIsWrittenWhenItsPodsAreGone) {
  Pod("a", "Pending");
  Pass(seconds(0));
  Pod("a", "Running", "step");
  Pass(seconds(2));
  EXPECT_EQ(Get({"gpuTime", "heldSeconds"}), 4);
  Pass(seconds(10));
  EXPECT_EQ(Get({"gpuTime", "heldSeconds"}), 4) << "once a minute";
  pods_.clear();
  Pass(seconds(1));
  EXPECT_EQ(Get({"gpuTime", "heldSeconds"}), 26);
  const json::Value before = status_;
  Pass(seconds(10));
  EXPECT_EQ(status_, before);
}

TEST_F(GpuTimeTest, APodThatFailsLosesWhatItHadNotSaved) {
  Pod("a", "Running", "step");
  Pass(seconds(0));
  now_ = now_ + minutes(10);
  Pod("a", "Failed");
  Pass(seconds(5), true);
  EXPECT_EQ(Of("training"), 1200) << "until its end, not until it was seen";
  EXPECT_EQ(Get({"gpuTime", "lostSeconds"}), 1200);
  EXPECT_EQ(Get({"gpuTime", "productivePercentage"}), 0);
}

TEST_F(GpuTimeTest, AScriptThatStartsAgainInItsPodLosesWhatItHadNotSaved) {
  const auto fails = [this](WallTime from, std::string_view sdk) {
    Pod("a", "Running");
    json::Value pod = *pods_["a"];
    json::Set(
        pod, {"status", "containerStatuses"},
        json::Array{json::Object{
            {"name", "main"},
            {"restartCount", 1},
            {"state", json::Object{{"running", json::Object{}}}},
            {"lastState",
             json::Object{{"terminated", json::Object{{"exitCode", 1},
                                                      {"startedAt", api::FormatTime(from)},
                                                      {"finishedAt", api::FormatTime(now_)}}}}}}});
    if (!sdk.empty()) json::Set(pod, {"metadata", "annotations", api::keys::kProgress}, sdk);
    pods_["a"] = std::make_shared<const json::Value>(std::move(pod));
  };
  Pod("a", "Running");
  Pass(seconds(0));
  now_ = now_ + minutes(10);
  fails(begin_, "");
  Pass(seconds(1));
  Pass(minutes(2));
  EXPECT_EQ(Get({"gpuTime", "lostSeconds"}), 1200) << "once";
  // The next one begins where the one before ended.
  const WallTime again = now_;
  now_ = now_ + seconds(30);
  fails(again, "");
  Pass(minutes(2));
  EXPECT_EQ(Get({"gpuTime", "lostSeconds"}), 1260);
  // The SDK's next process finds the state in memory.
  now_ = now_ + seconds(30);
  fails(again, json::Print(api::RanksToJson({{.phase = "step", .step = 5, .pid = 7}})));
  Pass(minutes(2), true);
  EXPECT_EQ(Get({"gpuTime", "lostSeconds"}), 1260);
}

TEST_F(GpuTimeTest, AMemberThatFailsAtLastLosesItsLastRunOnly) {
  Pod("a", "Running");
  Pass(seconds(0));
  now_ = now_ + minutes(10);
  Pod("a", "Failed");
  json::Value pod = *pods_["a"];
  json::Array statuses = json::GetArray(pod, {"status", "containerStatuses"});
  json::Set(statuses[0], {"state", "terminated", "startedAt"}, api::FormatTime(now_ - seconds(60)));
  json::Set(pod, {"status", "containerStatuses"}, statuses);
  // An elastic job's members have the state of a script that uses the SDK, of no other.
  json::Set(pod, {"metadata", "annotations", api::keys::kMemberPriority}, "1");
  pods_["a"] = std::make_shared<const json::Value>(std::move(pod));
  Pass(seconds(5), true);
  EXPECT_EQ(Get({"gpuTime", "lostSeconds"}), 120);
}

TEST_F(GpuTimeTest, AVictimThatDoesNotSaveItselfLosesWhatItHadDoneWhenItWasTold) {
  enum class Saves { kFirstRank, kOtherRank, kNo };
  for (const Saves saves : {Saves::kFirstRank, Saves::kOtherRank, Saves::kNo}) {
    Pod("victim", "Running", "step");
    Pass(minutes(5));
    json::Value pod = *pods_["victim"];
    json::Set(pod, {"metadata", "annotations", api::keys::kPreemptedBy}, "default/urgent");
    json::Set(pod, {"metadata", "annotations", api::keys::kPreemptedLost}, "600");
    json::Set(pod, {"status", "conditions"},
              json::Array{json::Object{{"type", "DisruptionTarget"},
                                       {"status", "True"},
                                       {"reason", "PreemptionByScheduler"},
                                       {"lastTransitionTime", api::FormatTime(now_)}}});
    if (saves == Saves::kFirstRank) {
      json::Set(pod, {"metadata", "annotations", api::keys::kCheckpointTime},
                api::FormatTime(now_ + seconds(2)));
    }
    if (saves == Saves::kOtherRank) {
      json::Object end{{"exitCode", 143}, {"message", R"({"checkpoint": {"step": 39}})"}};
      json::Object state{{"terminated", std::move(end)}};
      json::Set(pod, {"status", "containerStatuses"},
                json::Array{json::Object{{"name", "c"}, {"state", std::move(state)}}});
    }
    pods_["victim"] = std::make_shared<const json::Value>(std::move(pod));
    Pass(seconds(3));
    pods_.clear();  // it ends and is gone before anybody looks
    Pass(seconds(1), true);
    EXPECT_EQ(Get({"gpuTime", "lostSeconds"}), saves == Saves::kNo ? 600 : 0);
  }
}

TEST_F(GpuTimeTest, MembersThatWaitForOthersAreNamed) {
  Pod("a", "Running", "step");
  gang_runs_ = false;
  Pass(seconds(0));
  Pass(minutes(2));
  EXPECT_EQ(Of("waitingForPeers"), 240);
}

TEST_F(GpuTimeTest, AnotherControllerContinuesFromTheStatus) {
  Pod("a", "Running", "step");
  Pass(seconds(0));
  Pass(minutes(2));
  GpuTime other;
  now_ = now_ + minutes(3);
  other.Note("job", pods_, true, now_, true, status_);
  EXPECT_EQ(Of("training"), 600);
}

TEST_F(GpuTimeTest, AJobWithoutGpusAndNonsenseInTheStatusHaveNoAccount) {
  Pass(minutes(5), true);
  EXPECT_EQ(json::Find(status_, {"gpuTime"}), nullptr);
  status_ = *json::Parse(R"({"gpuTime": {"seconds": {"training": -7, "saving": "x"},
                             "lostSeconds": 1e300, "lastUpdateTime": "soon"}})");
  Pod("a", "Running", "step");
  Pass(seconds(0));
  Pass(minutes(1), true);
  EXPECT_EQ(Of("training"), 2 * 360) << "it is bound since the test began";
}

}  // namespace
}  // namespace swell::jobs
