// QueuedJobs: resumes Jobs that are created suspended for Kueue (a label names its queue) on
// clusters without Kueue. Each Job is resumed once, and then waits for its place like all work. A
// Job that a user suspends later stays suspended.
// - Threads: core executor only.
#pragma once

#include <string>

#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class QueuedJobs {
 public:
  explicit QueuedJobs(Context context);

 private:
  void Reconcile(const std::string& key, const client::WorkQueue::Done& done);
  void Release(const json::SharedValue& job, const client::WorkQueue::Done& done);

  Context context_;
  client::Informer& jobs_;
  client::EventRecorder events_;
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::controllers
