// GangTree: Kubernetes' CompositePodGroups as parts of one gang. The gang is that of the topmost
// composite group above a PodGroup that starts together; those with the policy `basic` place what
// is below them one by one, and join nothing.
//
// A tree waits until as many groups of each composite group are there as it needs. Then all that
// are there are needed.
//
// - Threads: pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace swell::controllers {

struct GangTree {
  json::SharedValue root;  // the composite group
  json::Array groups;      // as spec.groups and spec.podSets of a PodGroup of Swell
  json::Array pod_sets;
};

struct GangObjects {
  // By name, in the namespace of the group.
  std::function<json::SharedValue(std::string_view name)> composite;
  // All of the namespace.
  std::function<std::vector<json::SharedValue>()> composites, groups;
};

// nullopt: the PodGroup is a gang of its own. The error says for what it waits.
Result<std::optional<GangTree>> ReadGangTree(const json::Value& pod_group,
                                             const GangObjects& objects);
// The pod set of a PodGroup in its tree.
std::string PodSetOfGang(std::string_view pod_group);

}  // namespace swell::controllers
