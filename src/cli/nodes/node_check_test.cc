// Tests of nodes by pods, and what `swell health NODE` says.
#include "cli/nodes/node_check.h"

#include <gtest/gtest.h>

#include "cli/cli_test_util.h"
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
  EXPECT_NE(out_.find("all its GPUs are in use"), std::string::npos) << out_;
  EXPECT_EQ(Run({"swell", "node", "check", "node-9"}), 1);
  EXPECT_NE(err_.find("node-9"), std::string::npos);
}

TEST_F(NodeCheckTest, ATestThatFindsNoRoomIsNoVerdict) {
  RunPods({});
  EXPECT_EQ(Run({"swell", "node", "check", "node-1", "--timeout", "5s"}), 0);
  EXPECT_NE(out_.find("the test did not start in time"), std::string::npos) << out_;
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
       {"node node-1: has faults, and gets new pods", "XidError79", "1     unhealthy: no new pods",
        "score 1.00 (suspect from 3.00 on)", "default/train-1", "Hardware"}) {
    EXPECT_NE(out_.find(text), std::string::npos) << text << " in\n" << out_;
  }
}

}  // namespace
}  // namespace swell::cli
