// Commands and prints about the health of nodes.
// - Threads: the thread of main().
#pragma once

#include "cli/command.h"
#include "cli/session.h"

namespace swell::cli {

class ViewOutput;

Command NodeCommandSpec();
// `swell node list` and `swell top node`: each node with its status and what pods request of it.
std::unique_ptr<Action> MakeNodeTable();
// `swell health NODE`: conditions, GPUs, failures there and their score.
Result<int> PrintNodeHealth(Session& session,
                            Api& api,
                            const json::Value& node,
                            const ViewOutput& output);

// Nodes with something to tell of their health: as a table, and as a list.
struct NodeFaultTable {
  size_t nodes = 0;  // all; 0 where the user may not read them
  std::string text;
  json::Array list;
};
Result<NodeFaultTable> ReadNodeFaults(Session& session, Api& api);

}  // namespace swell::cli
