#include "kube/node/node_fleet.h"

#include <algorithm>
#include <utility>

#include "kube/api/objects/pod.h"

namespace swell::node {
namespace {

// A fleet of more nodes publishes no ResourceSlices: a slice takes 30 KB of the cluster's memory.
constexpr size_t kPublishingNodes = 500;

}  // namespace

NodeFleet::NodeFleet(AgentPlugs plugs, std::vector<NodeConfig> nodes) : plugs_(std::move(plugs)) {
  const bool publish = nodes.size() <= kPublishingNodes;
  for (NodeConfig& config : nodes) {
    std::string name = config.name;
    config.publish_gpus = config.publish_gpus && publish;
    agents_.emplace(name, std::make_unique<NodeAgent>(plugs_, std::move(config)));
  }
}

NodeFleet::~NodeFleet() { pods_.reset(); }

void NodeFleet::Start() {
  if (agents_.empty()) return;
  for (auto& [name, agent] : agents_) agent->Start(/*own_pods=*/false);
  client::InformerOptions options;
  // One node watches its own pods only; many share one watch of all bound pods.
  options.field_selector = agents_.size() == 1 ? "spec.nodeName=" + agents_.begin()->first
                                               : std::string("spec.nodeName!=");
  pods_ = std::make_unique<client::Informer>(plugs_.executor, plugs_.server,
                                             NodeUser(agents_.begin()->first),
                                             client::resources::kPods, options, plugs_.seed);
  auto agent_of = [this](const json::SharedValue& pod) { return Find(api::NodeName(*pod)); };
  auto on_pod = [agent_of](const json::SharedValue& pod) {
    if (NodeAgent* agent = agent_of(pod)) agent->OnPod(pod);
  };
  pods_->AddHandlers(
      {on_pod, [on_pod](const json::SharedValue&, const json::SharedValue& pod) { on_pod(pod); },
       [agent_of](const json::SharedValue& pod) {
         if (NodeAgent* agent = agent_of(pod)) agent->OnPodDeleted(pod);
       }});
  pods_->WhenSynced([this] {
    for (auto& [name, agent] : agents_) agent->OnPodsSynced();
  });
  pods_->Start();
}

void NodeFleet::StopPods(Duration limit, const std::function<void()>& done) {
  pods_.reset();
  auto left = std::make_shared<size_t>(agents_.size() + 1);
  const auto step = [left, done] {
    if (--*left == 0) done();
  };
  for (auto& [name, agent] : agents_) agent->StopPods(limit, step);
  step();
}

NodeAgent* NodeFleet::Find(std::string_view node) const {
  auto it = agents_.find(node);
  return it == agents_.end() ? nullptr : it->second.get();
}

std::vector<NodeAgent*> NodeFleet::nodes() const {
  std::vector<NodeAgent*> all;
  for (const auto& [name, agent] : agents_) all.push_back(agent.get());
  return all;
}

bool NodeFleet::registered() const {
  return std::all_of(agents_.begin(), agents_.end(),
                     [](const auto& entry) { return entry.second->registered(); });
}

}  // namespace swell::node
