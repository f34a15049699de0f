// AgentTest: a node agent in virtual time, with a fake API and a runtime that runs nothing.
// - Threads: the test's thread.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/sim_executor.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/node/fake_api.h"
#include "kube/node/node_agent.h"
#include "kube/node/runtime/simulated_runtime.h"

namespace swell::node {

inline const std::string kPods = "/api/v1/namespaces/default/pods";

inline json::Value Parse(std::string_view text) {
  auto value = json::Parse(text);
  EXPECT_TRUE(value.ok()) << value.status().ToString() << " in " << text;
  return value.ok() ? *value : json::Value();
}

class AgentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    config_.name = "node-0";
    config_.capacity = {{"cpu", "4"}, {"memory", "8Gi"}, {"nvidia.com/gpu", "4"}};
    config_.system_reserved = {{"cpu", "100m"}};
    config_.internal_ip = "10.0.0.5";
    config_.base_env = {{"KUBERNETES_SERVICE_HOST", "10.88.0.1"}};
    Boot();
  }

  void Boot() {
    AgentPlugs plugs{sim_,     sim_,          api_, runtime_, with_names_ ? names_.get() : nullptr,
                     ++boots_, health_source_};
    agent_ = std::make_unique<NodeAgent>(plugs, config_);
    agent_->Start();
    sim_.Advance(std::chrono::milliseconds(1));
  }

  // The machine goes down with the pod and comes back without it.
  void LoseMachine(const std::string& uid) {
    agent_.reset();
    runtime_.Remove(uid, [](const swell::Status&) {});
    Boot();
    sim_.Advance(std::chrono::milliseconds(50));
  }

  // spec is the pod's spec without its node; extra goes into metadata.
  std::string Create(const std::string& name,
                     const std::string& spec,
                     const std::string& metadata = "{}") {
    json::Value pod = json::Object{{"apiVersion", "v1"}, {"kind", "Pod"}};
    json::Set(pod, {"metadata"}, Parse(metadata));
    json::Set(pod, {"metadata", "name"}, json::Value(name));
    json::Set(pod, {"metadata", "namespace"}, json::Value("default"));
    json::Set(pod, {"spec"}, Parse(spec));
    json::Set(pod, {"spec", "nodeName"}, json::Value("node-0"));
    api_->Put(kPods, pod);
    std::string uid(api::Uid(api_->Get(kPods, name)));
    sim_.Advance(std::chrono::milliseconds(20));
    return uid;
  }

  json::Value Pod(const std::string& name) { return api_->Get(kPods, name); }
  std::string Phase(const std::string& name) { return std::string(api::StatusPhase(Pod(name))); }
  json::Value Status(const std::string& name, size_t index = 0) {
    json::Value pod = Pod(name);
    const json::Array& list = json::GetArray(pod, {"status", "containerStatuses"});
    return index < list.size() ? list[index] : json::Value();
  }
  std::string State(const std::string& name, size_t index = 0) {
    json::Value status = Status(name, index);
    for (std::string_view state : {"waiting", "running", "terminated"}) {
      if (json::Find(status, {"state", state}) != nullptr) return std::string(state);
    }
    return "";
  }
  std::vector<std::string> EventReasons() {
    std::vector<std::string> reasons;
    for (const std::string& name : api_->Names("/api/v1/events")) {
      json::Value event = api_->Get("/api/v1/namespaces/default/events", name);
      reasons.emplace_back(json::GetString(event, {"reason"}));
    }
    return reasons;
  }
  bool Saw(std::string_view reason) {
    auto reasons = EventReasons();
    return std::find(reasons.begin(), reasons.end(), reason) != reasons.end();
  }
  std::string EnvOf(const std::string& uid,
                    const std::string& name,
                    const std::string& container = "main") {
    const ContainerSpec* spec = runtime_.SpecOfForTest(uid, container);
    std::string value = "(unset)";
    if (spec == nullptr) return "(no container)";
    for (const auto& [key, text] : spec->env) {
      if (key == name) value = text;
    }
    return value;
  }

  SimExecutor sim_;
  std::shared_ptr<FakeApi> api_ = std::make_shared<FakeApi>(sim_);
  SimulatedRuntime runtime_{sim_, sim_, {.resolves_names = true, .keeps_specs = true}};
  NodeConfig config_;
  bool with_names_ = false;
  HealthSource* health_source_ = nullptr;
  uint64_t boots_ = 0;
  std::unique_ptr<ServiceNames> names_;
  std::unique_ptr<NodeAgent> agent_;
};

}  // namespace swell::node
