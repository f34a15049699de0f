#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/node/agent_fixture.h"

namespace swell::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(AgentTest, AHookThatAsksAServerRestartsTheContainerWhenNobodyAnswers) {
  std::string uid = Create("a", R"({"terminationGracePeriodSeconds":0,"containers":[{
      "name":"main","image":"x","ports":[{"name":"web","containerPort":80}],
      "lifecycle":{"postStart":{"httpGet":{"port":"web","path":"ready"}}}}]})");
  sim_.Advance(seconds(5));
  EXPECT_EQ(json::GetInt(Status("a"), {"restartCount"}), 0);
  EXPECT_FALSE(Saw("FailedPostStartHook"));
  runtime_.SetHealthForTest(uid, false);
  runtime_.ExitForTest(uid, "main", 1);
  sim_.Advance(seconds(15));
  EXPECT_TRUE(Saw("FailedPostStartHook"));
  EXPECT_GE(json::GetInt(Status("a"), {"restartCount"}), 2);
}

TEST_F(AgentTest, AHookThatNoKubeletRunsFails) {
  Create("a", R"({"terminationGracePeriodSeconds":0,"restartPolicy":"Never","containers":[{
      "name":"main","image":"x","lifecycle":{"postStart":{"tcpSocket":{"port":80}}}}]})");
  sim_.Advance(seconds(2));
  EXPECT_TRUE(Saw("FailedPostStartHook"));
  EXPECT_EQ(Phase("a"), "Failed");
}

TEST_F(AgentTest, AHookThatTakesAllTheTimeLeavesSomeToEndOnTheSignal) {
  const auto end_after = [this](const std::string& name, int stop_seconds) {
    const std::string uid =
        Create(name, R"({"terminationGracePeriodSeconds":3,"containers":[{"name":"main","image":"x",
          "lifecycle":{"preStop":{"sleep":{"seconds":60}}},
          "livenessProbe":{"exec":{"command":["true"]},"periodSeconds":1,"failureThreshold":1}}]})",
               StrCat(R"({"annotations":{"swell.dev/stop-seconds":")", stop_seconds, R"("}})"));
    sim_.Advance(milliseconds(500));
    runtime_.SetHealthForTest(uid, false);
    sim_.Advance(seconds(10));
    return json::GetInt(Status(name), {"lastState", "terminated", "exitCode"});
  };
  EXPECT_EQ(end_after("a", 1), 143);
  EXPECT_FALSE(Saw("KilledAfterGracePeriod"));
  EXPECT_EQ(end_after("b", 5), 137);
  EXPECT_TRUE(Saw("KilledAfterGracePeriod"));
  for (const std::string& name : api_->Names("/api/v1/events")) {
    const json::Value event = api_->Get("/api/v1/namespaces/default/events", name);
    if (json::GetString(event, {"reason"}) != "KilledAfterGracePeriod") continue;
    const std::string_view message = json::GetString(event, {"message"});
    EXPECT_TRUE(message.starts_with("Container main did not end within 2 s of SIGTERM")) << message;
  }
}

TEST_F(AgentTest, AHookThatTakesAllTheTimeOfADeletedPodLeavesSome) {
  Create("a", R"({"containers":[{"name":"main","image":"x",
      "lifecycle":{"preStop":{"sleep":{"seconds":60}}}}]})",
         R"({"annotations":{"swell.dev/stop-seconds":"1"}})");
  sim_.Advance(seconds(1));
  api_->Delete(kPods, "a", 3);
  sim_.Advance(milliseconds(3900));
  EXPECT_EQ(runtime_.running(), 1u);
  sim_.Advance(milliseconds(200));
  EXPECT_EQ(runtime_.running(), 0u);
  EXPECT_FALSE(Saw("KilledAfterGracePeriod"));
}

TEST_F(AgentTest, ASidecarMayEndOnItsSignalAfterTheGracePeriod) {
  Create("a", R"({"restartPolicy":"Never","activeDeadlineSeconds":5,
      "terminationGracePeriodSeconds":3,
      "initContainers":[{"name":"beside","image":"x","restartPolicy":"Always"}],
      "containers":[{"name":"main","image":"x",
          "lifecycle":{"preStop":{"sleep":{"seconds":60}}}}]})",
         R"({"annotations":{"swell.dev/stop-seconds":"0.5"}})");
  sim_.Advance(seconds(12));
  EXPECT_EQ(Phase("a"), "Failed");
  const json::Value pod = Pod("a");
  const json::Array& sidecars = json::GetArray(pod, {"status", "initContainerStatuses"});
  ASSERT_EQ(sidecars.size(), 1u);
  EXPECT_EQ(json::GetInt(sidecars[0], {"state", "terminated", "exitCode"}), 143);
  EXPECT_EQ(json::GetInt(Status("a"), {"state", "terminated", "exitCode"}), 143);
}

TEST_F(AgentTest, ASandboxGetsThePodsNamesAndNameServers) {
  std::string uid = Create("a", R"({"hostname":"one","subdomain":"two","setHostnameAsFQDN":true,
      "dnsPolicy":"None","dnsConfig":{"nameservers":["1.2.3.4"],"searches":["x.example"],
      "options":[{"name":"ndots","value":"2"},{"name":"rotate"}]},
      "containers":[{"name":"main","image":"x"}]})");
  const SandboxSpec* sandbox = runtime_.SandboxOfForTest(uid);
  ASSERT_NE(sandbox, nullptr);
  EXPECT_EQ(sandbox->hostname, "one.two.default.svc.cluster.local");
  EXPECT_EQ(sandbox->full_name, sandbox->hostname);
  EXPECT_TRUE(sandbox->dns.alone);
  EXPECT_EQ(sandbox->dns.servers, (std::vector<std::string>{"1.2.3.4"}));
  EXPECT_EQ(sandbox->dns.searches, (std::vector<std::string>{"x.example"}));
  EXPECT_EQ(sandbox->dns.options,
            (std::vector<std::pair<std::string, std::string>>{{"ndots", "2"}, {"rotate", ""}}));
}

TEST_F(AgentTest, AFullNameThatIsTooLongForTheKernelIsRefusedWithAReason) {
  Create("a", R"({"subdomain":"a-name-of-a-service-that-is-rather-long","setHostnameAsFQDN":true,
      "containers":[{"name":"main","image":"x"}]})");
  sim_.Advance(seconds(1));
  EXPECT_EQ(Phase("a"), "Pending");
  EXPECT_TRUE(Saw("FailedCreatePodSandBox"));
}

TEST_F(AgentTest, ASandboxThatCannotBeMadeIsTriedEverMoreRarely) {
  std::vector<WallTime> tries;
  bool broken = true;
  runtime_.SetSandboxesForTest([&](const SandboxSpec&) {
    tries.push_back(sim_.Now());
    return broken ? swell::Status(Code::kInternal, "the bridge has no addresses left")
                  : swell::Status::Ok();
  });
  Create("a", R"({"containers":[{"name":"main","image":"x"}]})");
  sim_.Advance(std::chrono::minutes(60));
  ASSERT_GE(tries.size(), 4u);
  EXPECT_LE(tries[1] - tries[0], seconds(1));
  EXPECT_GE(tries.back() - tries[tries.size() - 2], seconds(300));
  EXPECT_LE(tries.back() - tries[tries.size() - 2], seconds(301));
  EXPECT_LT(tries.size(), 25u);
  const json::Value status = Status("a");
  EXPECT_EQ(json::GetString(status, {"state", "waiting", "reason"}), "ContainerCreating");
  EXPECT_NE(json::GetString(status, {"state", "waiting", "message"}).find("no addresses left"),
            std::string_view::npos);
  broken = false;
  sim_.Advance(seconds(302));
  EXPECT_EQ(State("a"), "running");
  EXPECT_EQ(json::Find(Status("a"), {"state", "waiting"}), nullptr);
}

}  // namespace
}  // namespace swell::node
