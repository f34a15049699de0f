// QueuedJobs: resumes jobs of one kind that are created suspended for Kueue (a label names its
// queue) on clusters without Kueue. Each job is resumed once, and then waits for its place like all
// work. A job that is suspended later stays suspended.
// - Threads: core executor only.
#pragma once

#include <string>

#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class QueuedJobs {
 public:
  // `suspend` is the field below spec that suspends jobs of the kind; `component` is named in
  // events and writes.
  QueuedJobs(Context context,
             const client::Resource& resource,
             std::string suspend,
             const std::string& component);

 private:
  bool Waits(const json::Value& job) const;
  void Reconcile(const std::string& key, const client::WorkQueue::Done& done);
  void Release(const json::SharedValue& job, const client::WorkQueue::Done& done);

  Context context_;
  std::string suspend_;
  client::Informer& jobs_;
  client::EventRecorder events_;
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::controllers
