// Tests of nodes by pods, and what `swell health NODE` says.
#include "cli/nodes/node_check.h"

#include <gtest/gtest.h>

#include "cli/cli_test_util.h"
#include "cli/views/job_view.h"
#include "cli/views/node_view.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/node_health.h"

namespace swell::cli {
namespace {

constexpr char kPods[] = "/api/v1/namespaces/default/pods";

class NodeCheckTest : public CliTest {
 protected:
  NodeCheckTest() {
    for (const char* node : {"node-1", "node-2", "node-3"}) {
      Create(StrCat("{apiVersion: v1, kind: Node, metadata: {name: ", node, "}}"));
      Status(StrCat("/api/v1/nodes/", node),
             R"({"status":{"capacity":{"cpu":"4","nvidia.com/gpu":"2"},
                 "allocatable":{"cpu":"4","nvidia.com/gpu":"2"},
                 "conditions":[{"type":"Ready","status":"True"}]}})");
    }
  }
  // Each pod that is read ends with what `results` has for its node.
  void RunPods(std::map<std::string, std::string> results) {
    before_ = [this, results](const api::RestRequest& request) {
      const std::string prefix = StrCat(kPods, "/node-check-");
      if (request.method != "GET" || !request.path.starts_with(prefix)) return;
      const auto pod = server_.Send(server_.Request("GET", request.path));
      const auto terms = json::Print(pod.body);
      for (const auto& [node, result] : results) {
        if (terms.find(StrCat("[\"", node, "\"]")) == std::string::npos) continue;
        json::Value status = json::Object{
            {"phase", result.find("false") == std::string::npos ? "Succeeded" : "Failed"}};
        json::Set(status, {"containerStatuses"},
                  json::Array{json::Object{
                      {"name", "check"},
                      {"image", "x"},
                      {"imageID", ""},
                      {"ready", false},
                      {"restartCount", 0},
                      {"state", json::Object{{"terminated", json::Object{{"exitCode", 0},
                                                                         {"message", result}}}}}}});
        server_.Send(server_.Request("PATCH", request.path + "/status",
                                     json::Print(json::Object{{"status", status}}),
                                     "application/merge-patch+json"));
      }
    };
  }
  static std::string Result(int compute) {
    return StrCat(R"({"compute":{"ok":true,"rate":)", compute,
                  R"(},"memory":{"ok":true,"rate":900},"disk":{"ok":true,"rate":100}})");
  }
};

TEST_F(NodeCheckTest, EveryNodeHasAVerdictAndThePodsAreRemoved) {
  RunPods({{"node-1", Result(400)}, {"node-2", Result(420)}, {"node-3", Result(410)}});
  ASSERT_EQ(Run({"swell", "node", "check"}), 0) << err_;
  EXPECT_NE(out_.find("node-1   Good"), std::string::npos) << out_;
  EXPECT_NE(out_.find("400 MiB/s"), std::string::npos) << out_;
  const auto left = server_.Send(server_.Request("GET", kPods));
  EXPECT_EQ(left.text.find("node-check-"), std::string::npos);
}

TEST_F(NodeCheckTest, ABadNodeIsNamedAndTheExitCodeSaysSo) {
  RunPods({{"node-2", R"({"compute":{"ok":false,"message":"a checksum came out wrong"}})"}});
  EXPECT_EQ(Run({"swell", "node", "check", "node-2", "-o", "json"}), 1);
  const auto list = json::Parse(out_);
  ASSERT_TRUE(list.ok()) << out_;
  const json::Value& node = json::GetArray(*list, {"nodes"})[0];
  EXPECT_EQ(json::GetString(node, {"verdict"}), "Bad");
  EXPECT_EQ(json::GetString(node, {"message"}), "compute: a checksum came out wrong");
}

TEST_F(NodeCheckTest, ANodeWithoutAnIdleGpuIsSkipped) {
  Create(
      "{apiVersion: v1, kind: Pod, metadata: {name: busy}, spec: {nodeName: node-1, containers: "
      "[{name: c, image: x, resources: {limits: {nvidia.com/gpu: 2}}}]}}");
  RunPods({});
  EXPECT_EQ(Run({"swell", "node", "check", "node-1"}), 0);
  EXPECT_NE(out_.find("Skipped"), std::string::npos) << out_;
  EXPECT_NE(out_.find("none of its GPUs is idle and healthy"), std::string::npos) << out_;
  EXPECT_EQ(Run({"swell", "node", "check", "node-9"}), 1);
  EXPECT_NE(err_.find("node-9"), std::string::npos);
}

TEST_F(NodeCheckTest, ATestThatFindsNoRoomIsNoVerdict) {
  RunPods({});
  EXPECT_EQ(Run({"swell", "node", "check", "node-1", "--timeout", "5s"}), 0);
  EXPECT_NE(out_.find("the test did not start in time"), std::string::npos) << out_;
}

TEST_F(NodeCheckTest, AnImageThatCannotBePulledIsNoVerdictAndTheExitCodeSaysSo) {
  before_ = [this](const api::RestRequest& request) {
    const std::string prefix = StrCat(kPods, "/node-check-");
    if (request.method != "GET" || !request.path.starts_with(prefix)) return;
    server_.Send(server_.Request("POST", request.path + "/binding",
                                 R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":")" +
                                     request.path.substr(request.path.rfind('/') + 1) +
                                     R"("},"target":{"name":"node-1"}})"));
    server_.Send(server_.Request(
        "PATCH", request.path + "/status",
        R"({"status":{"phase":"Pending","containerStatuses":[{"name":"check","image":"pythn:3",
            "imageID":"","ready":false,"restartCount":0,"state":{"waiting":{
            "reason":"ImagePullBackOff","message":"no image pythn:3"}}}]}})",
        "application/merge-patch+json"));
  };
  EXPECT_EQ(Run({"swell", "node", "check", "node-1", "--image", "pythn:3", "--timeout", "5s"}), 3);
  EXPECT_NE(out_.find("Unknown"), std::string::npos) << out_;
  EXPECT_NE(out_.find("the test did not start: ImagePullBackOff: no image pythn:3"),
            std::string::npos)
      << out_;
}

TEST(NodeCheck, ANodeMuchSlowerThanMostIsSlow) {
  std::vector<NodeCheck> checks(4);
  for (NodeCheck& one : checks) {
    one.verdict = NodeCheck::Verdict::kGood;
    one.parts[2] = {CheckPart::State::kGood, 100, ""};
  }
  checks[3].parts[2].rate = 20;
  CompareChecks(checks);
  EXPECT_EQ(checks[3].verdict, NodeCheck::Verdict::kSlow);
  EXPECT_EQ(checks[3].message, "disk is at 20 % of most nodes' speed");
  EXPECT_EQ(checks[0].verdict, NodeCheck::Verdict::kGood);
}

TEST_F(NodeCheckTest, HealthOfANodeShowsConditionsGpusAndFailures) {
  Status("/api/v1/nodes/node-1",
         R"({"status":{"conditions":[{"type":"Ready","status":"True"},
             {"type":"GpuHealthy","status":"False","reason":"XidError79",
              "message":"GPU 1: it has fallen off the bus"}]}})");
  std::vector<api::NodeFailure> failures;
  api::AddNodeFailure(failures, {server_.executor.Now(), "default/train-1", "u",
                                 api::FailureClass::kHardware, 1, "uncorrectable ECC"});
  json::Value patch = json::Object{};
  json::Set(patch, {"metadata", "annotations", api::keys::kUnhealthyGpus}, "1");
  json::Set(patch, {"metadata", "annotations", api::keys::kNodeFailures},
            api::NodeFailuresText(failures));
  ASSERT_EQ(server_
                .Send(server_.Request("PATCH", "/api/v1/nodes/node-1", json::Print(patch),
                                      "application/merge-patch+json"))
                .status,
            200);
  ASSERT_EQ(Run({"swell", "health", "node-1"}), 0) << err_;
  for (const char* text :
       {"node node-1: GPU 1 is unhealthy and gets no new pods; the rest of the node gets them",
        "XidError79", "1     unhealthy: no new pods", "score 1.00 (suspect from 3.00 on)",
        "default/train-1", "Hardware"}) {
    EXPECT_NE(out_.find(text), std::string::npos) << text << " in\n" << out_;
  }
}

TEST_F(NodeCheckTest, HealthOfANameThatNobodyHasNamesNodesAndJobs) {
  EXPECT_EQ(Run({"swell", "health", "node-99"}), 1);
  EXPECT_TRUE(err_.starts_with("swell: no node \"node-99\", and job \"node-99\" not found in "))
      << err_;
}

TEST_F(NodeCheckTest, FailuresAreForgivenAndStayKnown) {
  std::vector<api::NodeFailure> failures;
  for (const char* uid : {"a", "b", "c"}) {
    api::AddNodeFailure(failures, {server_.executor.Now(), "default/train-1", uid,
                                   api::FailureClass::kHardware, 1, "uncorrectable ECC"});
  }
  json::Value patch = json::Object{};
  json::Set(patch, {"metadata", "annotations", api::keys::kNodeFailures},
            api::NodeFailuresText(failures));
  server_.Send(server_.Request("PATCH", "/api/v1/nodes/node-1", json::Print(patch),
                               "application/merge-patch+json"));
  ASSERT_EQ(Run({"swell", "node", "clear", "node-1", "node-2"}), 0) << err_;
  EXPECT_EQ(out_, "node node-1: 3 failures cleared\nnode node-2: no failure counts against it\n");
  ASSERT_EQ(Run({"swell", "health", "node-1"}), 0) << err_;
  EXPECT_NE(out_.find("score 0.00"), std::string::npos) << out_;
  const auto node = server_.Send(server_.Request("GET", "/api/v1/nodes/node-1"));
  std::vector<api::NodeFailure> kept = api::NodeFailuresOf(node.body);
  // The controller that finds one again on its pod does not count it again.
  EXPECT_EQ(kept.size(), 3u);
  EXPECT_FALSE(api::AddNodeFailure(kept, failures[0]));
  EXPECT_EQ(Run({"swell", "node", "clear", "node-9"}), 1);
  EXPECT_NE(err_.find("node-9"), std::string::npos) << err_;
  EXPECT_EQ(Run({"swell", "node", "clear"}), 2);
}

// What nodes say of themselves in all views.
class NodeFaultsTest : public NodeCheckTest {
 protected:
  void SetUp() override {
    Status("/api/v1/nodes/node-1",
           R"({"status":{"allocatable":{"cpu":"4","nvidia.com/gpu":"1"},
               "conditions":[{"type":"Ready","status":"True"},
               {"type":"GpuHealthy","status":"False","reason":"GpuUnhealthy",
                "message":"GPU 1: too hot"},
               {"type":"GpuHeatHealthy","status":"False","reason":"GpuUnhealthy",
                "message":"gpu 1: too hot"},
               {"type":"OddHealthy","status":"Unknown","reason":"CheckNotRun",
                "message":"odd.sh is not run"}]}})");
    Change("node-1", R"({"metadata":{"annotations":{"swell.dev/unhealthy-gpus":"1"}}})");
    Status("/api/v1/nodes/node-2",
           R"({"status":{"conditions":[{"type":"Ready","status":"True"},
               {"type":"DiskHealthy","status":"False","reason":"ReadOnly",
                "message":"the disk is read-only"}]}})");
    Change("node-2", R"({"spec":{"unschedulable":true,"taints":[
        {"key":"swell.dev/unhealthy","effect":"NoSchedule"}]}})");
    for (const char* gpu : {"0", "1"}) {
      Create(StrCat("{apiVersion: v1, kind: Pod, metadata: {name: on-", gpu,
                    ", annotations: {swell.dev/gpu-devices: '", gpu,
                    "'}}, spec: {nodeName: node-1, containers: [{name: c, image: x, resources: "
                    "{limits: {nvidia.com/gpu: 1}}}]}}"));
    }
  }
  void Change(const std::string& node, const std::string& patch) {
    ASSERT_EQ(server_
                  .Send(server_.Request("PATCH", "/api/v1/nodes/" + node, patch,
                                        "application/merge-patch+json"))
                  .status,
              200);
  }
  void Expect(std::vector<std::string> command, const std::vector<std::string>& texts) {
    out_.clear();
    err_.clear();
    ASSERT_EQ(Run(command), 0) << err_;
    for (const std::string& text : texts) {
      EXPECT_NE(out_.find(text), std::string::npos) << text << " in\n" << out_;
    }
  }
};

TEST_F(NodeFaultsTest, TheOverviewListsNodesWithFaults) {
  Expect({"swell", "health"},
         {"2 of 3 nodes need attention", "node-1   Faulty", "1/2 healthy   GPU 1: too hot",
          "Unhealthy,SchedulingDisabled", "the disk is read-only"});
  EXPECT_EQ(out_.find("node-3"), std::string::npos) << out_;
  Expect({"swell", "health", "-o", "json"}, {});
  const auto document = json::Parse(out_);
  ASSERT_TRUE(document.ok()) << out_;
  const json::Array& nodes = json::GetArray(*document, {"nodes"});
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(json::GetInt(nodes[0], {"healthyGpus"}), 1);
  EXPECT_EQ(json::GetString(nodes[1], {"reason"}), "the disk is read-only");
  Expect({"swell", "health", "node-1", "-o", "json"}, {});
  const auto node = json::Parse(out_);
  ASSERT_TRUE(node.ok()) << out_;
  EXPECT_EQ(json::GetString(*node, {"name"}), "node-1");
  const json::Array& gpus = json::GetArray(*node, {"gpus"});
  ASSERT_EQ(gpus.size(), 2U) << out_;
  EXPECT_TRUE(json::GetBool(gpus[0], {"healthy"}));
  EXPECT_FALSE(json::GetBool(gpus[1], {"healthy"}));
  EXPECT_EQ(Run({"swell", "health", "node-1", "-o", "wide"}), 2);
}

TEST_F(NodeFaultsTest, TheHeaderOfANodeSaysWhatFollows) {
  Expect({"swell", "health", "node/node-1"},
         {"node node-1: GPU 1 is unhealthy and gets no new pods; the rest of the node gets them; 1 "
          "check does not work: OddHealthy\n"});
  Expect({"swell", "health", "node-2"},
         {"node node-2: unhealthy; the node is cordoned: it gets no new pods\n"});
  Expect({"swell", "health", "node-3"}, {"node node-3: healthy\n"});
  Change("node-3", R"({"spec":{"taints":[{"key":"swell.dev/unhealthy","effect":"NoSchedule"}]}})");
  Expect({"swell", "health", "node-3"},
         {"node node-3: well again, but not for long enough yet: it gets no new pods\n"});
  Change("node-3", R"({"spec":{"taints":null}})");
  Change("node-3", R"({"spec":{"unschedulable":true}})");
  Expect({"swell", "health", "node-3"},
         {"node node-3: healthy, but cordoned: it gets no new pods\n"});
  // A user who ignores the conditions still reads that the GPU stays away.
  Change("node-1", R"({"metadata":{"annotations":{
      "swell.dev/ignored-conditions":"GpuHeatHealthy,GpuHealthy"}}})");
  Expect({"swell", "health", "node-1"}, {"node node-1: GPU 1 is unhealthy and gets no new pods"});
}

TEST_F(NodeFaultsTest, ViewsCountGpusAlike) {
  Expect({"swell", "top", "node"},
         {"2/2 (100%), 1 unhealthy", "Ready,SchedulingDisabled,Unhealthy"});
  Expect({"arena", "top", "node"}, {"2/6 (33%)", "1/6 (16%)"});
  Expect({"runai", "list", "nodes"}, {"2 (2), 1 unhealthy"});
  Expect({"swell", "get", "nodes"}, {"Ready,SchedulingDisabled,Unhealthy"});
  Expect({"swell", "describe", "node", "node-1"}, {"GPU 1: too hot"});
  Expect({"swell", "top", "node", "-o", "jsonpath={.nodes[0].gpus.unhealthy} {.all.gpus.total}"},
         {"1 6"});
  Change("node-3", R"({"metadata":{"annotations":{"swell.dev/unhealthy-gpus":"1"}}})");
  Expect({"swell", "top", "--once", "--view", "nodes"}, {"■■", "2/2, 1 bad", "□×", "0/2, 1 bad"});
}

TEST_F(NodeFaultsTest, AnUnhealthyGpuThatIsHeldCountsOnce) {
  const auto node = [](int64_t unhealthy, const char* bad, std::vector<std::string> held) {
    json::Value object = json::Object{};
    json::Set(object, {"metadata", "annotations", api::keys::kUnhealthyGpus}, bad);
    json::Set(object, {"status", "capacity", "nvidia.com/gpu"}, "4");
    NodeView view{.object = std::make_shared<const json::Value>(std::move(object))};
    view.total.milli_gpus = 4000;
    view.unhealthy_gpus = unhealthy;
    for (const std::string& devices : held) {
      json::Value pod = json::Object{};
      json::Set(pod, {"metadata", "annotations", api::keys::kGpuDevices}, devices);
      const auto count = static_cast<int64_t>(Split(devices, ',').size());
      json::Set(
          pod, {"spec", "containers"},
          json::Array{json::Object{
              {"name", "c"},
              {"resources",
               json::Object{{"requests", json::Object{{"nvidia.com/gpu", StrCat(count)}}}}}}});
      view.used.AddPod(pod);
      view.pods.push_back(std::make_shared<const json::Value>(std::move(pod)));
    }
    return view.FreeMilliGpus();
  };
  EXPECT_EQ(node(0, "", {"0,1"}), 2000);
  EXPECT_EQ(node(1, "3", {"0,1"}), 1000);
  EXPECT_EQ(node(1, "1", {"0,1"}), 2000);
  EXPECT_EQ(node(2, "0,1", {"0,1", "2,3"}), 0);
  EXPECT_EQ(node(4, "0,1,2,3", {"0,1", "2,3"}), 0);
}

}  // namespace
}  // namespace swell::cli
