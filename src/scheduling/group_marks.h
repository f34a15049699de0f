// GroupMarks: marks the evicted pods of a group together, in the group's status.
//
// A pod is marked before it is stopped (pod_facts.h), so that its end does not count as a failure.
// On a real API server that is one more write beside each deletion. For the members of a gang it is
// one write in all: PodGroup.status.evicted names them, and the pods' informer shows them as if
// each had been marked itself, in every replica.
//
// Only for pods whose controller runs here: other controllers read the pod alone.
//
// - Threads: core executor only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/strings.h"
#include "kube/controllers/context.h"

namespace swell::scheduling {

// Why a pod is taken away.
struct EvictionMark {
  std::string by;    // who needs the place
  std::string rule;  // ActionName()
  int64_t lost_gpu_seconds = 0;
  std::string message;
  std::string time;  // as Kubernetes writes it

  bool operator==(const EvictionMark&) const = default;
  // The patch that writes this mark into the pod.
  json::Value PodPatch(std::string_view uid) const;
};

class GroupMarks {
 public:
  // `changed` is called when a group's marks are others than before, or the group is gone.
  GroupMarks(controllers::Context& context, std::function<void(const std::string& group)> changed);

  struct Victim {
    std::string uid;
    EvictionMark mark;
  };
  // What marks these, and those marked before that are still there, as a patch of the group.
  json::Value GroupPatch(const json::Value& group, const std::vector<Victim>& victims) const;
  bool Has(std::string_view group, std::string_view uid) const;
  // Whether the pods may be marked so: Swell's own job kinds made the group and its pods.
  static bool MayMark(const json::Value& group, const json::Value& pod);

 private:
  using Marks = std::unordered_map<std::string,
                                   std::shared_ptr<const EvictionMark>,
                                   StringHash,
                                   std::equal_to<>>;  // by pod's uid

  void OnGroup(const std::string& key, Marks marks);
  json::SharedValue WithMark(const json::SharedValue& pod) const;

  client::Informer& groups_;
  client::Informer& pods_;
  std::function<void(const std::string& group)> changed_;
  std::map<std::string, Marks, std::less<>> marks_;  // by group; groups without any have no entry
};

// Without those whose pods are gone; the same when all are there.
json::Array LivingMarks(const json::Value& group, const std::vector<json::SharedValue>& pods);

}  // namespace swell::scheduling
