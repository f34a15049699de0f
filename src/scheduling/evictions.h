// Evictions: marks pods as preempted, then deletes them.
//
// The mark comes first: a pod that disappears without one looks as if a user had deleted it. If the
// server keeps the order of writes, both are sent at once. Else one write to the group marks the
// members of a gang, and they are deleted once the watch shows it: then every reader sees the mark
// before a pod's end (group_marks.h). A pod without a group is marked by a write of its own.
//
// - Threads: core executor only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/controllers/context.h"
#include "sched/scheduler.h"
#include "scheduling/group_marks.h"

namespace swell::scheduling {

class Evictions {
 public:
  struct Outcomes {
    std::function<void()> done;  // the pod is being deleted, or gone
    std::function<void(const sched::Decision& eviction, const Status& why)> failed;
  };
  Evictions(controllers::Context context, client::Client& client, Outcomes outcomes);

  // When at least that many members of a gang are evicted, one write marks them all.
  void MarkTogether(size_t least) { together_min_ = least; }
  // The evictions of one cycle.
  void Take(const std::vector<sched::Decision>& decisions);
  // A pod of namespace `ns` waits for room on the node. Pods of other namespaces that their users
  // deleted there get no longer grace period than evicted ones.
  void Hasten(const std::string& node, std::string_view ns);

 private:
  void MarkEach(const std::vector<sched::Decision>& victims);
  void MarkAll(const std::string& group, std::vector<sched::Decision> victims);
  bool MayMarkAll(const std::string& group, const std::vector<sched::Decision>& victims) const;
  void OnMarked(const std::string& group);
  void Delete(const sched::Decision& decision);
  EvictionMark MarkOf(const sched::Decision& decision) const;

  controllers::Context context_;
  client::Client& client_;  // the scheduler's: what it sends keeps its order
  Outcomes outcomes_;
  client::Informer& groups_;
  client::Informer& pods_;
  size_t together_min_ = 16;
  // By group: victims that a write has marked, and the watch has not shown yet.
  std::map<std::string, std::vector<sched::Decision>, std::less<>> marked_;
  std::set<std::string, std::less<>> hastened_;  // uids; until the server has answered
  GroupMarks marks_;                             // may call OnMarked while it is constructed
};

// The pod that needs the place; its group if the decision names no pod.
std::string Beneficiary(const sched::Decision& decision);

}  // namespace swell::scheduling
