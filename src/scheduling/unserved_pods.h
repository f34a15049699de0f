// UnservedPods: writes an event for a pod that waits for another scheduler, if that one does not
// answer. Without it the pod would wait with no reason given.
// - Threads: core executor only.
#pragma once

#include <string>
#include <vector>

#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::scheduling {

class UnservedPods {
 public:
  // `served`: the schedulers whose pods are placed here.
  UnservedPods(controllers::Context context, std::vector<std::string> served);

 private:
  // It names another scheduler, which has neither placed it nor said why not.
  bool IsUnserved(const json::Value& pod) const;
  void Reconcile(const std::string& key, const client::WorkQueue::Done& done);

  controllers::Context context_;
  const std::vector<std::string> served_;
  client::Informer& pods_;
  client::EventRecorder events_;
  client::WorkQueue queue_;
};

}  // namespace swell::scheduling
