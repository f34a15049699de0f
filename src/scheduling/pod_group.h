// PodGroupController: keeps the status of PodGroups: phase, counts, preemptions.
//
// Pods with the label swell.dev/pod-group whose PodGroup nobody made get one, so that plain pods
// can form a gang: its minimum is the annotation swell.dev/min-member of the first pod, default 1.
// Such a group goes with its last pod. Swell's own job kinds make their groups themselves.
//
// A phase that ends or begins a run is written at once, and others when nothing has changed for a
// second, or after five. Counts alone take five times as long: a gang that starts is worth two
// writes. PendingReporter writes why a group waits, with its first counts. A group that nobody
// gives pods is written after a minute.
//
// - Threads: core executor only.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::scheduling {

// How many pods of a group there are, and in which state.
struct PodGroupCounts {
  explicit PodGroupCounts(const std::vector<json::SharedValue>& pods);
  bool operator==(const PodGroupCounts&) const = default;

  int64_t total = 0, scheduled = 0, running = 0, succeeded = 0, failed = 0, preempted = 0;
  int64_t preempted_staying = 0;  // marked, their deletion not seen yet
  // Ended and deleted: how a pod ends that was told to stop says nothing of the run.
  int64_t stopped = 0;
  std::string preempted_by, preempted_rule, preempted_message;
};

// What a group's status should say of its pods, as a merge of it.
json::Object PodGroupStatus(const json::Value& group, const PodGroupCounts& counts, WallTime now);

class PodGroupController {
 public:
  explicit PodGroupController(controllers::Context context);

 private:
  void Reconcile(const std::string& key, client::WorkQueue::Done done);
  void MakeGroup(const std::string& key,
                 const json::Value& first_pod,
                 client::WorkQueue::Done done);
  void DropGroup(const json::Value& group, client::WorkQueue::Done done);
  void OnPod(const json::Value& pod);
  Duration LagOf(const std::string& key,
                 const json::Value& group,
                 std::string_view phase,
                 PodGroupCounts counts);
  bool ShowsLastWrite(const std::string& key, const json::Value& group);

  struct Unwritten {
    PodGroupCounts counts;
    SteadyTime since;  // when they became so
    SteadyTime first;  // when the status was last true
  };

  controllers::Context context_;
  client::Informer& groups_;
  client::Informer& pods_;
  client::WorkQueue queue_;
  client::Client client_;
  std::map<std::string, Unwritten> unwritten_;  // by group; only where the counts may lag
  // By group: the version that was written over, until the cache shows another.
  std::map<std::string, std::string> written_over_;
};

}  // namespace swell::scheduling
