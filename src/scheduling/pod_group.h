// PodGroupController: keeps the status of PodGroups: phase, counts, preemptions.
//
// Pods with the label swell.dev/pod-group whose PodGroup nobody made get one, so that plain pods
// can form a gang: its minimum is the annotation swell.dev/min-member of the first pod, default 1.
// Such a group goes with its last pod. Swell's own job kinds make their groups themselves.
//
// Counts may lag by a second; a phase that ends or begins a run is written at once.
//
// - Threads: core executor only.
#pragma once

#include <map>
#include <string>

#include "base/clock.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class PodGroupController {
 public:
  explicit PodGroupController(Context context);

 private:
  void Reconcile(const std::string& key, client::WorkQueue::Done done);
  void MakeGroup(const std::string& key,
                 const json::Value& first_pod,
                 client::WorkQueue::Done done);
  void DropGroup(const json::Value& group, client::WorkQueue::Done done);
  void OnPod(const json::Value& pod);

  Context context_;
  client::Informer& groups_;
  client::Informer& pods_;
  client::WorkQueue queue_;
  client::Client client_;
  std::map<std::string, SteadyTime> counts_due_;  // group → when its counts must be written
};

}  // namespace swell::controllers
