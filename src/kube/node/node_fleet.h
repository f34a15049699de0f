// NodeFleet: any number of node agents in one process. They share one watch of all bound pods, so
// that thousands of virtual nodes cost one.
// - Threads: core executor only.
// - Ownership: owns its agents; what NodeAgent's plugs refer to outlives it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kube/node/node_agent.h"

namespace swell::node {

class NodeFleet {
 public:
  NodeFleet(AgentPlugs plugs, std::vector<NodeConfig> nodes);
  ~NodeFleet();

  void Start();
  // Ends the pods of all nodes; see NodeAgent. `done` runs once.
  void StopPods(Duration limit, const std::function<void()>& done);
  NodeAgent* Find(std::string_view node) const;
  std::vector<NodeAgent*> nodes() const;
  bool registered() const;  // all of them

 private:
  AgentPlugs plugs_;
  std::map<std::string, std::unique_ptr<NodeAgent>, std::less<>> agents_;
  std::unique_ptr<client::Informer> pods_;
};

}  // namespace swell::node
