#include "ops/nodes/old_nodes.h"

#include <set>
#include <string>

#include "base/log.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"

namespace swell::ops {
namespace {

constexpr char kMark[] = "swell-up";

}  // namespace

void MarkNodes(std::vector<node::NodeConfig>& nodes) {
  for (node::NodeConfig& node : nodes) node.annotations[std::string(api::keys::kStartedBy)] = kMark;
}

void ForgetOldNodes(client::Client& client, const std::vector<node::NodeConfig>& nodes) {
  std::set<std::string, std::less<>> planned;
  for (const node::NodeConfig& node : nodes) planned.insert(node.name);
  client.List(client::resources::kNodes, "", {},
              [&client, planned = std::move(planned)](const Result<client::ObjectList>& found) {
                if (!found.ok()) {
                  SWELL_LOG_WARNING("cluster", "nodes of an earlier start may be left",
                                    {"error", found.status().ToString()});
                  return;
                }
                for (const json::SharedValue& node : found->items) {
                  const std::string_view name = api::Name(*node);
                  const bool marked = api::Annotation(*node, api::keys::kStartedBy) == kMark;
                  if (!marked || planned.contains(name)) continue;
                  SWELL_LOG_INFO("cluster", "node of an earlier start forgotten",
                                 {"node", std::string(name)});
                  client.Delete(client::resources::kNodes, "", name, {}, {});
                }
              });
}

}  // namespace swell::ops
