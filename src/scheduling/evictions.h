// Evictions: carries out that pods are to make room: marks them, then deletes them.
//
// The mark comes first: a pod that is gone without one looks like somebody's deletion. Where writes
// keep their order both are sent at once. On other servers the members of a gang are marked by one
// write to their group and deleted once the watch tells of it, so that whoever hears of a pod's end
// has heard of its mark (group_marks.h); a pod by itself is marked by a write of its own.
//
// - Threads: core executor only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kube/controllers/context.h"
#include "sched/scheduler.h"
#include "scheduling/group_marks.h"

namespace swell::controllers {

class Evictions {
 public:
  struct Outcomes {
    std::function<void()> done;  // the pod is being deleted, or gone
    std::function<void(const sched::Decision& eviction, const Status& why)> failed;
  };
  Evictions(Context context, client::Client& client, Outcomes outcomes);

  // So many of one gang are marked together.
  void MarkTogether(size_t least) { together_min_ = least; }
  // Of one cycle.
  void Take(const std::vector<sched::Decision>& decisions);

 private:
  void MarkEach(const std::vector<sched::Decision>& victims);
  void MarkAll(const std::string& group, std::vector<sched::Decision> victims);
  bool MayMarkAll(const std::string& group, const std::vector<sched::Decision>& victims) const;
  void OnMarked(const std::string& group);
  void Delete(const sched::Decision& decision);
  EvictionMark MarkOf(const sched::Decision& decision) const;

  Context context_;
  client::Client& client_;  // the scheduler's: what it sends keeps its order
  Outcomes outcomes_;
  client::Informer& groups_;
  client::Informer& pods_;
  size_t together_min_ = 16;
  // By group: marked in a write that the watch has not told of yet.
  std::map<std::string, std::vector<sched::Decision>, std::less<>> marked_;
  GroupMarks marks_;  // tells of what it finds at once
};

// Who needs the place, as people name it: the job's pod, else the group.
std::string Beneficiary(const sched::Decision& decision);

}  // namespace swell::controllers
