// GangTree: a tree of Kubernetes' CompositePodGroups as one gang with parts. Its root is the
// topmost composite group with the policy `gang` above a PodGroup. A composite group with the
// policy `basic` joins nothing: the groups below it are placed one by one.
//
// A tree waits until each of its composite groups has the least number of groups that it needs.
// From then on, all groups that exist are needed.
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

namespace swell::scheduling {

struct GangTree {
  json::SharedValue root;  // the composite group
  json::Array groups;      // as spec.groups and spec.podSets of a PodGroup of Swell
  json::Array pod_sets;
};

// In the namespace of the group.
using CompositeByName = std::function<json::SharedValue(std::string_view name)>;

struct GangObjects {
  CompositeByName composite;
  // All objects of the namespace.
  std::function<std::vector<json::SharedValue>()> composites, groups;
};

// nullopt: the PodGroup is a gang of its own. The error says what the tree waits for.
Result<std::optional<GangTree>> ReadGangTree(const json::Value& pod_group,
                                             const GangObjects& objects);
// Whether the groups below the composite group start together.
bool IsCompositeGang(const json::Value& composite);
// The root of the tree that the PodGroup or composite group is below; null: it is below none. The
// error says what is not there.
Result<json::SharedValue> RootAbove(const json::Value& group, const CompositeByName& composite);
// The name of a PodGroup's pod set, or of a composite group's group, in its tree.
std::string PodSetOfGang(std::string_view pod_group);

}  // namespace swell::scheduling
