// Members of a gang that are marked together when they are evicted.
#include "scheduling/group_marks.h"

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "manager/testing/arena_fixture.h"

namespace swell::scheduling {
namespace {

using client::resources::kPodGroups;
using client::resources::kPods;
using manager::ArenaTest;
using manager::kArenaClasses;
using manager::kSecond;

// A server whose clients' writes may overtake each other, as a real one's do; it counts marks, and
// refuses what it is told to.
class RealServer final : public api::RestHandler {
 public:
  explicit RealServer(std::shared_ptr<api::RestHandler> server) : server_(std::move(server)) {}
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    const bool patch = request.method == "PATCH" && request.path.ends_with("/status");
    const bool of_pod = request.path.find("/pods/") != std::string::npos;
    const bool marks_pod =
        patch && of_pod && request.body.find("preempted-by") != std::string::npos;
    const bool marks_group = patch && request.body.find("\"evicted\":[") != std::string::npos;
    pods_marked += marks_pod;
    groups_marked += marks_group;
    // It would take with it what was marked in the meantime.
    blind_drops += patch && request.body.find("\"evicted\":null") != std::string::npos &&
                   request.body.find("resourceVersion") == std::string::npos;
    const bool refused = (marks_group && refuses_groups) ||
                         (request.method == "DELETE" && of_pod && refuses_deletions);
    if (!refused) return server_->Handle(std::move(request), std::move(sink));
    api::RestResponse response;
    response.status = 503;
    sink->OnResponse(std::move(response));
    return nullptr;
  }

  int pods_marked = 0, groups_marked = 0, blind_drops = 0;
  bool refuses_groups = false, refuses_deletions = false;

 private:
  std::shared_ptr<api::RestHandler> server_;
};

class GroupMarksTest : public ArenaTest {
 protected:
  void SetUp() override {
    server_ = std::make_shared<RealServer>(cluster_.server);
    cluster_.between = server_;
    for (const char* node : {"node-a", "node-b", "node-c"}) cluster_.AddNode(node, 4);
    cluster_.StartManager({.mark_together = 3});
    cluster_.Create(kArenaClasses);
  }
  json::SharedValue Group() { return cluster_.Get(kPodGroups, "default/medium"); }
  int64_t Preemptions() {
    return cluster_.Int(client::resources::kPyTorchJobs, "default/medium",
                        {"status", "preemptions"});
  }
  // The three pods of the job make room, and come back when they can.
  void ComesBack() {
    EXPECT_TRUE(cluster_.Until([&] { return Is("critical", "Running"); }));
    EXPECT_EQ(Preemptions(), 1);
    EXPECT_FALSE(Is("medium", "Failed"));
    ASSERT_TRUE(cluster_.Delete(client::resources::kPyTorchJobs, "default/critical").ok());
    EXPECT_TRUE(
        cluster_.Until([&] { return cluster_.Pods("Running") == 3 && Is("medium", "Running"); }));
  }
  std::shared_ptr<RealServer> server_;
};

TEST_F(GroupMarksTest, OneWriteMarksAGang) {
  FillWithMedium("");
  SubmitCritical();
  ComesBack();
  EXPECT_EQ(server_->blind_drops, 0);
  EXPECT_EQ(server_->groups_marked, 1);
  EXPECT_EQ(server_->pods_marked, 0);
  EXPECT_EQ(json::GetString(*Group(), {"status", "lastPreemption", "by"}),
            "default/critical-master-0");
  // Those whom it named are gone.
  EXPECT_TRUE(json::GetArray(*Group(), {"status", "evicted"}).empty());
}

TEST_F(GroupMarksTest, EverybodySeesThePodsAsMarked) {
  FillWithMedium("");
  server_->refuses_deletions = true;
  SubmitCritical();
  ASSERT_TRUE(cluster_.Until([&] { return server_->groups_marked == 1; }));
  cluster_.Run(kSecond);
  for (const json::SharedValue& pod :
       cluster_.informers->Of(kPods).ByIndex("group", "default/medium")) {
    EXPECT_TRUE(controllers::WasPreempted(*pod)) << api::Name(*pod);
    EXPECT_EQ(controllers::PreemptionMessage(*pod).find("Preempted by default/critical"), 0u)
        << controllers::PreemptionMessage(*pod);
  }
  for (const json::SharedValue& pod : cluster_.List(kPods)) {
    EXPECT_FALSE(controllers::WasPreempted(*pod)) << api::Name(*pod) << " is marked itself";
  }
  server_->refuses_deletions = false;
  ComesBack();
}

TEST_F(GroupMarksTest, WhoComesAfterTheLeaderKnowsTheMarks) {
  FillWithMedium("");
  server_->refuses_deletions = true;
  SubmitCritical();
  ASSERT_TRUE(cluster_.Until([&] { return server_->groups_marked == 1; }));
  cluster_.StopManager();
  for (const json::SharedValue& pod : cluster_.List(kPods)) {
    if (api::Name(*pod) == "medium-worker-1") {
      // Deleted by the scheduler's last word, while nobody led.
      server_->refuses_deletions = false;
      ASSERT_TRUE(cluster_.Delete(kPods, "default/medium-worker-1").ok());
    }
  }
  cluster_.StartManager({.mark_together = 3});
  ComesBack();
}

TEST_F(GroupMarksTest, AMarkThatIsRefusedIsMadeForEachPod) {
  FillWithMedium("");
  server_->refuses_groups = true;
  SubmitCritical();
  ComesBack();
  EXPECT_EQ(server_->pods_marked, 3);
}

TEST_F(GroupMarksTest, PodsThatSomebodyElseRunsAreMarkedThemselves) {
  cluster_.Create(R"(
apiVersion: v1
kind: ConfigMap
metadata: {name: runner, namespace: default}
)");
  const std::string uid(api::Uid(*cluster_.Get(client::resources::kConfigMaps, "default/runner")));
  for (int i = 0; i < 3; ++i) {
    const std::string name = StrCat("theirs-", i);
    cluster_.Create(StrCat(R"(
apiVersion: v1
kind: Pod
metadata:
  name: )",
                           name, R"(
  labels: {swell.dev/pod-group: theirs}
  annotations: {swell.dev/min-member: "3"}
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: runner, uid: )",
                           uid, R"(, controller: true}]
spec:
  schedulerName: swell
  priorityClassName: medium
  containers: [{name: main, image: busybox, resources: {limits: {nvidia.com/gpu: 4}}}]
)"));
  }
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 3; }));
  SubmitCritical();
  EXPECT_TRUE(cluster_.Until([&] { return Is("critical", "Running"); }));
  EXPECT_EQ(server_->groups_marked, 0);
  EXPECT_GT(server_->pods_marked, 0);
}

TEST_F(GroupMarksTest, MarksOfPodsThatAreGoneAreNotKept) {
  auto group = json::Parse(R"({"status": {"evicted": [
    {"by": "a", "pods": ["1", "2"]}, {"by": "b", "pods": ["3"]}]}})");
  auto pod = [](const char* uid) {
    return std::make_shared<const json::Value>(
        json::Object{{"metadata", json::Object{{"uid", uid}}}});
  };
  EXPECT_EQ(json::Print(json::Value(LivingMarks(*group, {pod("2"), pod("4")}))),
            R"([{"by":"a","pods":["2"]}])");
  EXPECT_TRUE(LivingMarks(*group, {}).empty());
}

}  // namespace
}  // namespace swell::scheduling
