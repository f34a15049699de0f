// NodeTaints: taints that follow from node conditions, and how long pods tolerate them.
// - Threads: pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"
#include "json/value.h"

namespace swell::controllers {

// The Ready condition's status; "" if the node has no such condition.
std::string_view ReadyStatus(const json::Value& node);
json::Value Taints(const json::Value& node);  // spec.taints, never null
// The node's taints with those that follow from its condition put right: not-ready, unreachable,
// unschedulable. Times of taints that stay are kept.
json::Array WantedTaints(const json::Value& node, std::string_view ready, WallTime now);
// Until when the pod may stay on the node; nullopt: for ever. `usual_delay` stands for the API
// server's default toleration of 300 s.
std::optional<WallTime> ToleratedFor(const json::Value& pod,
                                     const json::Value& node,
                                     Duration usual_delay);

}  // namespace swell::controllers
