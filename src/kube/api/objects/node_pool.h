// NodePool: nodes that are shared under the same rules, read from its document in one place.
// - Threads: pure functions.
#pragma once

#include "json/value.h"

namespace swell::api {

struct NodePoolSpec {
  explicit NodePoolSpec(const json::Value& node_pool);
  explicit NodePoolSpec(const json::Value&&) = delete;

  // The labels that its nodes have; the document's own. Empty: all nodes.
  const json::Object* node_selector;
  // Whether pods of each kind are spread over the nodes; they are packed otherwise.
  bool spreads_gpu = false, spreads_cpu = false, spreads_shared_gpu = false;

  bool Selects(const json::Value& node) const;
};

}  // namespace swell::api
