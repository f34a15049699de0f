// PodJanitor: keeps ended pods that nobody owns from piling up (the oldest beyond a limit go), and
// removes pods that are being deleted and were never placed anywhere, as no agent will.
// - Threads: core executor only.
#pragma once

#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class PodJanitor {
 public:
  PodJanitor(Context context, size_t ended_pods_max);

 private:
  void Reconcile(client::WorkQueue::Done done);

  Context context_;
  size_t ended_pods_max_;
  client::Informer& pods_;
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::controllers
