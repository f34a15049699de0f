// QueuedJobs: Jobs that come suspended because Kueue is to start them (their label names one of its
// queues), where there is no Kueue. Each is let go, once, and waits for its place as all work does;
// one that people suspend later rests.
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
