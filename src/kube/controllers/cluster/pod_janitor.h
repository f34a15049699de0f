// PodJanitor: deletes the oldest ended pods beyond a limit, and pods that are being deleted but
// have no node, since no agent removes those. The namespaces with the most ended pods lose them: a
// flood in one does not push out those of others.
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
