#include "lab/policy.h"

#include "base/strings.h"

namespace swell::lab {

int ClusterShape::gpus() const {
  int sum = 0;
  for (const NodeGroup& group : groups) sum += group.gpus();
  for (int node : away) sum -= groups[GroupOf(node)].gpus_per_node;
  return sum;
}

int ClusterShape::nodes() const {
  int sum = 0;
  for (const NodeGroup& group : groups) sum += group.nodes;
  return sum;
}

int ClusterShape::GroupOf(int node) const {
  int group = 0;
  for (; node >= groups[group].nodes; ++group) node -= groups[group].nodes;
  return group;
}

std::string ClusterShape::ToString() const {
  std::string text;
  for (const NodeGroup& group : groups) {
    text += StrCat(text.empty() ? "" : ",", group.nodes, "x", group.gpus_per_node,
                   group.type.empty() ? "" : ":", group.type);
  }
  return text;
}

}  // namespace swell::lab
