// SchedulerPod: where people who come from Run:ai look for the scheduler's log: a pod in namespace
// runai-system, there as soon as there are projects. It follows the scheduler's lines in the
// cluster's log file; the scheduler itself is not a pod in the embedded cluster.
// - Threads: core executor only.
#pragma once

#include <string>

#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::scheduling {

class SchedulerPod {
 public:
  // `log_file`: on the machine whose nodes run the pod.
  SchedulerPod(controllers::Context context, std::string log_file);

 private:
  void Reconcile(client::WorkQueue::Done done);

  controllers::Context context_;
  std::string log_file_;
  client::Informer& projects_;
  client::Informer& pods_;
  client::Informer& namespaces_;
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::scheduling
