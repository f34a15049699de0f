// GpuUse: the holder of each GPU of a node. NamespaceProjects: the project that the work of each
// namespace is charged to. Several views use both.
// - Threads: pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/views/node_view.h"
#include "ui/views/views.h"

namespace swell::ui {

using NamespaceProjects = std::map<std::string, std::string, std::less<>>;
NamespaceProjects ProjectsOfNamespaces(const ViewInput& input);

// Empty: it belongs to none.
std::string ProjectOf(const json::Value& pod, const NamespaceProjects& projects);

// The nodes that the user may list, with how much of each all pods together hold. The pods
// themselves are shown only to users who may list them (MaySeePod). `partial` becomes true when
// something is left out.
std::vector<cli::NodeView> NodesOf(const ViewInput& input, bool& partial);
bool MaySeePod(const ViewInput& input, const json::Value& pod);

struct GpuUse {
  int64_t milli = 0;      // of the GPU that is held
  json::SharedValue pod;  // one of those that hold it and that the user may see; mostly null
  std::string project, job;
};
// In the order of the node's GPUs.
std::vector<GpuUse> GpusOf(const cli::NodeView& node,
                           const NamespaceProjects& projects,
                           const ViewInput& input);

// The first by name of the pools that select the node, where its work runs; empty: none. `pools`
// are in that order.
std::string PoolOfNode(const json::Value& node, const std::vector<json::SharedValue>& pools);

}  // namespace swell::ui
