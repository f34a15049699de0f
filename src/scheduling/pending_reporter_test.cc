// PendingReporter reports why jobs wait, often enough and no more often.
#include "scheduling/pending_reporter.h"

#include <utility>

#include <gtest/gtest.h>

#include "base/sim_executor.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::scheduling {
namespace {

using std::chrono::seconds;
constexpr Duration kTick = std::chrono::milliseconds(100);

// Has pods, takes what is said of them, and counts.
class Listener final : public api::RestHandler {
 public:
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    if (request.path.find("/events") != std::string::npos) {
      ++events;
      const auto event = json::Parse(request.body);
      last_event =
          StrCat(json::GetString(*event, {"type"}), " ", json::GetString(*event, {"reason"}));
      Answer(*sink, 201);
      return nullptr;
    }
    ++writes;
    if (deaf) {
      held.push_back(std::move(sink));
      return nullptr;
    }
    if (refusing) {
      Answer(*sink, 503);
      return nullptr;
    }
    const std::vector<std::string_view> parts = Split(request.path, '/');
    const std::string pod = StrCat(parts[4], "/", parts[6]);
    auto patch = json::Parse(request.body);
    json::Value changed = *pods.at(pod);
    for (const auto& [field, value] : json::Find(*patch, {"status"})->get_object()) {
      json::Set(changed, {"status", field}, value);
    }
    pods[pod] = std::make_shared<const json::Value>(std::move(changed));
    Answer(*sink, 200);
    return nullptr;
  }
  // As if they had come to nothing new.
  void AnswerHeld() {
    for (const auto& sink : std::exchange(held, {})) Answer(*sink, 200);
  }
  void AddPod(const std::string& name) {
    pods["default/" + name] = std::make_shared<const json::Value>(json::Object{
        {"kind", "Pod"},
        {"apiVersion", "v1"},
        {"metadata",
         json::Object{{"name", name}, {"namespace", "default"}, {"uid", "uid-" + name}}}});
  }
  std::string Reported(const std::string& name) const {
    const std::optional<api::Condition> told =
        api::FindCondition(*pods.at("default/" + name), "PodScheduled");
    return told ? std::string(told->message) : "";
  }

  std::string Nominated(const std::string& name) const {
    return std::string(
        json::GetString(*pods.at("default/" + name), {"status", "nominatedNodeName"}));
  }

  std::map<std::string, json::SharedValue> pods;
  int writes = 0, events = 0;
  std::string last_event;  // "Warning FailedScheduling"
  bool deaf = false, refusing = false;
  std::vector<std::shared_ptr<api::RestSink>> held;

 private:
  static void Answer(api::RestSink& sink, int status) {
    api::RestResponse response;
    response.status = status;
    response.body.push_back(std::make_shared<const std::string>("{}"));
    sink.OnResponse(std::move(response));
  }
};

class PendingReporterTest : public testing::Test {
 protected:
  void MakeReporter() {
    reporter = std::make_unique<PendingReporter>(
        controllers::Context{sim, sim, random, server, {}, informers}, events,
        [this](const std::string& pod) {
          auto it = server->pods.find(pod);
          return it == server->pods.end() ? nullptr : it->second;
        });
  }
  void SetUp() override { MakeReporter(); }
  void Report(const std::string& pod, const std::string& reason, const std::string& least = {}) {
    reporter->Report(
        {.group = "", .pods = {"default/" + pod}, .reason = reason, .least_change = least});
  }

  // With all pods of the server.
  void ReportGang(const std::string& reason, bool incomplete) {
    std::vector<std::string> pods;
    for (const auto& [key, pod] : server->pods) pods.push_back(key);
    reporter->Report(
        {.group = "default/g", .pods = pods, .reason = reason, .incomplete = incomplete});
  }

  SimExecutor sim;
  Random random{1};
  std::shared_ptr<Listener> server = std::make_shared<Listener>();
  controllers::Informers informers{sim, server, {}, 1};
  client::EventRecorder events{sim, sim, server, {}, "swell-scheduler", 1};
  std::unique_ptr<PendingReporter> reporter;
};

TEST_F(PendingReporterTest, FirstAtOnceThenTheLatestReasonOnly) {
  server->AddPod("a");
  Report("a", "no node");
  sim.Advance(kTick);
  EXPECT_EQ(server->Reported("a"), "no node");
  Report("a", "no room");
  sim.Advance(kTick);
  Report("a", "no quota", "more quota");
  sim.Advance(seconds(1));
  EXPECT_EQ(server->writes, 1);
  sim.Advance(seconds(10));
  EXPECT_EQ(server->writes, 2);
  EXPECT_EQ(server->events, 2);
  EXPECT_EQ(server->Reported("a"), "no quota Would start with: more quota");
}

TEST_F(PendingReporterTest, WarnsOnlyOfJobsThatDoNotRun) {
  server->AddPod("a");
  server->AddPod("b");
  Report("a", "no node");
  sim.Advance(kTick);
  EXPECT_EQ(server->last_event, "Warning FailedScheduling");
  reporter->Report(
      {.group = "default/g", .pods = {"default/b"}, .reason = "no node", .surplus = true});
  sim.Advance(kTick);
  EXPECT_EQ(server->last_event, "Normal WaitsToGrow");
  EXPECT_EQ(server->Reported("b"), "no node");
}

TEST_F(PendingReporterTest, AGangWhoseMembersAreStillBeingCreatedHasASecondForEach) {
  for (const char* pod : {"a", "b", "c"}) {
    server->AddPod(pod);
    ReportGang(StrCat("has ", server->pods.size(), " of 4 pods"), true);
    sim.Advance(std::chrono::milliseconds(800));
  }
  EXPECT_EQ(server->writes, 0);
  sim.Advance(seconds(1));
  EXPECT_EQ(server->Reported("a"), "has 3 of 4 pods");
  // The last one comes: what it waits for then is told at once.
  server->AddPod("d");
  ReportGang("no room", false);
  sim.Advance(kTick);
  EXPECT_EQ(server->Reported("d"), "no room");
}

TEST_F(PendingReporterTest, AGangIsToldThatMembersAreMissingThoughMoreOfThemCome) {
  for (int i = 0; i < 60 && server->writes == 0; ++i) {
    server->AddPod(StrCat("p", i));
    ReportGang(StrCat("has ", server->pods.size(), " of 100 pods"), true);
    sim.Advance(std::chrono::milliseconds(800));
  }
  EXPECT_EQ(server->Reported("p0"), StrCat("has ", server->pods.size(), " of 100 pods"));
  EXPECT_GT(server->pods.size(), 30u);
}

TEST_F(PendingReporterTest, NumbersThatFlickerAreNoNews) {
  server->AddPod("a");
  for (int i = 0; i < 600; ++i) {
    Report("a", StrCat("Needs 2 GPUs; ", i % 3, " free."), StrCat("1 more GPU on node-", i % 7));
    sim.Advance(kTick);
  }
  EXPECT_GE(server->writes, 2);
  EXPECT_LE(server->writes, 3);
  EXPECT_EQ(server->events, 1);
  // In the end they are what they are.
  Report("a", "Needs 2 GPUs; 1 free.");
  sim.Advance(seconds(60));
  EXPECT_EQ(server->Reported("a"), "Needs 2 GPUs; 1 free.");
}

TEST_F(PendingReporterTest, WritesNothingTwice) {
  server->AddPod("a");
  Report("a", "no room");
  sim.Advance(seconds(1));
  Report("a", "no quota");
  Report("a", "no room");
  sim.Advance(seconds(60));
  MakeReporter();  // another scheduler takes over
  Report("a", "no room");
  sim.Advance(seconds(60));
  EXPECT_EQ(server->writes, 1);
  EXPECT_EQ(server->events, 1);
}

TEST_F(PendingReporterTest, ReportsHundredsOfJobsInTurn) {
  constexpr int kJobs = 300;
  for (int i = 0; i < kJobs; ++i) server->AddPod(StrCat("p", i));
  auto tell_all = [&](const std::string& reason) {
    for (int i = 0; i < kJobs; ++i) Report(StrCat("p", i), reason);
  };
  tell_all("no node");
  sim.Advance(seconds(1));
  EXPECT_EQ(server->writes, kJobs);
  for (int i = 0; i < 200; ++i) {
    tell_all(i % 2 == 0 ? "no room" : "no quota");
    sim.Advance(kTick);
  }
  // Half of twenty a second are pods'; the other half is left to their groups.
  EXPECT_LE(server->writes, kJobs + 20 * 20);
  EXPECT_GE(server->writes, kJobs + 20 * 5);
  tell_all("no luck");
  sim.Advance(seconds(120));
  for (int i = 0; i < kJobs; ++i) EXPECT_EQ(server->Reported(StrCat("p", i)), "no luck") << i;
}

TEST_F(PendingReporterTest, ASlowServerIsAskedFewThingsAtOnce) {
  server->deaf = true;
  for (int i = 0; i < 100; ++i) {
    server->AddPod(StrCat("p", i));
    Report(StrCat("p", i), "no room");
  }
  sim.Advance(seconds(60));
  EXPECT_EQ(server->writes, PendingReporterOptions().pods_at_once);
}

TEST_F(PendingReporterTest, WritesFewPodsOfALargeGangAtATimeWithTheLatestReason) {
  std::vector<std::string> pods;
  for (int i = 0; i < 100; ++i) {
    server->AddPod(StrCat("p", i));
    pods.push_back(StrCat("default/p", i));
  }
  server->deaf = true;
  reporter->Report(
      {.group = "default/gang", .pods = pods, .reason = "not all are here", .least_change = {}});
  sim.Advance(kTick);
  EXPECT_EQ(server->writes, 4);
  reporter->Report(
      {.group = "default/gang", .pods = pods, .reason = "no room", .least_change = {}});
  server->deaf = false;
  server->AnswerHeld();
  sim.Advance(seconds(1));
  EXPECT_EQ(server->writes, 100);
  EXPECT_EQ(server->Reported("p99"), "no room");
  sim.Advance(seconds(30));
  EXPECT_EQ(server->writes, 104) << "the first pods got the earlier reason";
  EXPECT_EQ(server->Reported("p0"), "no room");
}

TEST_F(PendingReporterTest, WritesANominationWithThePodsReportOrAlone) {
  for (const char* pod : {"a", "b", "c"}) server->AddPod(pod);
  Report("b", "no room");
  sim.Advance(kTick);
  EXPECT_EQ(server->writes, 1);
  for (const char* pod : {"default/a", "default/b", "default/c"}) reporter->Nominate(pod, "node-1");
  reporter->Nominate("default/c", "");
  Report("a", "no room");
  Report("c", "no room");
  reporter->WriteNominations();
  reporter->WriteNominations();
  sim.Advance(kTick);
  EXPECT_EQ(server->writes, 4) << "a with its nomination, c without, b's alone";
  EXPECT_EQ(server->Nominated("a"), "node-1");
  EXPECT_EQ(server->Nominated("b"), "node-1");
  EXPECT_EQ(server->Nominated("c"), "");
  EXPECT_EQ(server->Reported("b"), "no room");
}

TEST_F(PendingReporterTest, RepeatsARefusedReport) {
  server->AddPod("a");
  server->refusing = true;
  Report("a", "no room");
  sim.Advance(seconds(1));
  EXPECT_EQ(server->writes, 1);
  EXPECT_EQ(server->Reported("a"), "");
  server->refusing = false;
  sim.Advance(seconds(20));
  EXPECT_EQ(server->Reported("a"), "no room");
  EXPECT_EQ(server->writes, 2);
}

TEST_F(PendingReporterTest, ReportsNothingOfPodsThatStarted) {
  server->AddPod("a");
  Report("a", "no room");
  sim.Advance(seconds(1));
  Report("a", "no quota");
  server->pods.clear();
  sim.Advance(seconds(60));
  EXPECT_EQ(server->writes, 1);
}

}  // namespace
}  // namespace swell::scheduling
