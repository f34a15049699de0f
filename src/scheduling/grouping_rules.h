// GroupingRules: how pods that other operators made form gangs, as a table: whose pods, which of
// them run together, how many at least. Built-in rules know the usual operators; people add their
// own, or replace one by its name, without code (docs/scheduling.md has the fields).
//
// A rule is about the pods below an owner of some kind, however many owners are between them; the
// topmost owner that has a rule counts. Or about pods that name their object in a label, an
// annotation or a field.
//
// - Threads: values; pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "kube/client/client.h"

namespace swell::scheduling {

// A number, or where the owner says it: the first of some paths that is there.
struct Count {
  std::optional<int64_t> number;
  std::vector<std::string> paths;
};

struct PodSetRule {
  std::string each;  // a list or a map in the owner: one pod set for each of its entries
  std::string name;  // of the set; with `each`, where the entry says it ("" in a map: its key)
  std::vector<Count> min_member;                          // multiplied; none: 1
  std::vector<std::pair<std::string, std::string>> pods;  // labels of its pods; $name is its name
};

struct GroupingRule {
  std::string name;
  std::string group, kind, resource;  // of the owner
  std::string version;                // of the object that pods name
  std::string pod_label, pod_annotation, pod_field;
  std::vector<std::pair<std::string, std::string>> when;  // path in the owner and its value
  bool via = false;                                       // only leads on to the owner's owner
  std::string per_label;                                  // a group for each value of the label
  bool per_pod = false;
  std::vector<Count> min_member;
  std::vector<PodSetRule> pod_sets;
  std::vector<std::string> priority_paths, project_paths;
  std::string priority_class;               // where the pods have none
  std::vector<std::string> topology_paths;  // to the node label whose value all pods share
  // Paths in the owner and their values. The group is stopped whole if all match, else pod by pod.
  // Empty: it is stopped whole.
  std::vector<std::pair<std::string, std::string>> whole_when;
  bool only_with_gpus = false, only_in_projects = false;
  bool disabled = false;

  // Rather than found as the owner of its pods.
  bool NamedByPods() const {
    return !pod_label.empty() || !pod_annotation.empty() || !pod_field.empty();
  }
};

class GroupingRules {
 public:
  GroupingRules();  // the built-in ones

  struct Read {
    std::vector<GroupingRule> rules;
    std::vector<std::string> faults;  // `rule "x": podSets[0].minMember: Invalid value: …`
  };
  // A YAML document: {rules: [...]}. A rule with a fault is left out, the others hold.
  static Read Parse(std::string_view yaml);
  // What people say comes before what is built in, and replaces what has the same name.
  void Extend(std::vector<GroupingRule> rules);

  const std::vector<GroupingRule>& rules() const { return rules_; }
  // The resource of owners of the kind, where a rule knows it.
  std::optional<client::Resource> Knows(std::string_view api_version, std::string_view kind) const;
  // The first rule for pods below that object, or null.
  const GroupingRule* For(std::string_view api_version,
                          std::string_view kind,
                          const json::Value& owner) const;
  // The first rule by whose label, annotation or field the pod names its object; the name goes to
  // `named`.
  const GroupingRule* Named(const json::Value& pod, std::string_view& named) const;

 private:
  std::vector<GroupingRule> built_in_, rules_;
};

// "raycluster.NAME", with the label's value or the pod's name where there are several; at most 63
// bytes, as a label's value.
std::string GroupNameOf(const GroupingRule& rule, const json::Value& owner, const json::Value& pod);
// The name of the pod's set; the first one where none of them fits.
std::string PodSetOf(const GroupingRule& rule, const json::Value& owner, const json::Value& pod);
// The spec of the PodGroup; `pod` is one of its pods. What others call a queue is its project where
// there is one of that name.
using IsProject = std::function<bool(std::string_view name)>;
json::Object GroupSpecOf(const GroupingRule& rule,
                         const json::Value& owner,
                         const json::Value& pod,
                         const IsProject& is_project);

}  // namespace swell::scheduling
