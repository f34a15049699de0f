#include "kube/api/objects/node_pool.h"

#include <algorithm>

#include "kube/api/meta/meta.h"

namespace swell::api {
namespace {

bool Spreads(const json::Value& node_pool, std::string_view what) {
  return json::GetString(node_pool, {"spec", "placement", what}) == "Spread";
}

}  // namespace

NodePoolSpec::NodePoolSpec(const json::Value& node_pool)
    : node_selector(&json::GetObject(node_pool, {"spec", "nodeSelector"})),
      spreads_gpu(Spreads(node_pool, "gpu")),
      spreads_cpu(Spreads(node_pool, "cpu")),
      spreads_shared_gpu(Spreads(node_pool, "sharedGpu")) {}

bool NodePoolSpec::Selects(const json::Value& node) const {
  const json::Object& labels = Labels(node);
  return std::all_of(node_selector->begin(), node_selector->end(), [&](const auto& wanted) {
    const json::Value* value = labels.if_contains(wanted.key());
    return value != nullptr && json::Equal(*value, wanted.value());
  });
}

}  // namespace swell::api
