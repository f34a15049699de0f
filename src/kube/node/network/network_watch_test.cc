#include "kube/node/network/network_watch.h"

#include <gtest/gtest.h>

#include "kube/node/agent_fixture.h"

namespace swell::node {
namespace {

json::Value PodAt(const std::string& name, const std::string& node, const std::string& ip) {
  return Parse(StrCat(R"({"metadata":{"name":")", name, R"(","namespace":"default"},
      "spec":{"nodeName":")",
                      node, R"(","containers":[]},"status":{"phase":"Running","podIP":")", ip,
                      R"("}})"));
}

class NetworkWatchTest : public ::testing::Test {
 protected:
  void Watch(std::set<std::string, std::less<>> nodes) {
    watch_ = std::make_unique<NetworkWatch>(
        sim_, sim_, api_, api::UserInfo{},
        [this](SharedRules rules, const std::function<void(Status)>& done) {
          rules_ = std::move(rules);
          done(Status::Ok());
        },
        std::move(nodes));
    watch_->Start();
    sim_.Advance(std::chrono::seconds(1));
  }
  std::vector<std::string> Judged() const {
    std::vector<std::string> out;
    for (const auto& [ip, rules] : rules_->pods) out.push_back(ip);
    return out;
  }

  SimExecutor sim_;
  std::shared_ptr<FakeApi> api_ = std::make_shared<FakeApi>(sim_);
  SharedRules rules_;
  std::unique_ptr<NetworkWatch> watch_;
};

// Pods of other machines may have the same addresses.
TEST_F(NetworkWatchTest, AnAgentJudgesThePodsOfItsOwnNodes) {
  api_->Put("/api/v1/namespaces", Parse(R"({"metadata":{"name":"default"}})"));
  api_->Put(kPods, PodAt("a", "here-1", "10.64.0.2"));
  api_->Put(kPods, PodAt("b", "here-2", "10.64.0.3"));
  api_->Put(kPods, PodAt("c", "there", "10.64.0.4"));
  api_->Put("/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
            Parse(R"({"metadata":{"name":"deny","namespace":"default"},
                "spec":{"podSelector":{},"policyTypes":["Ingress"]}})"));
  Watch({"here-1", "here-2"});
  EXPECT_EQ(Judged(), (std::vector<std::string>{"10.64.0.2", "10.64.0.3"}));
  Watch({});
  EXPECT_EQ(Judged().size(), 3u);
}

}  // namespace
}  // namespace swell::node
