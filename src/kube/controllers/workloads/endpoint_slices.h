// EndpointSliceController: keeps one EndpointSlice per subset of every Endpoints object.
//
// Slices follow the Endpoints, not pods and services, so that both always agree.
//
// - Threads: core executor only.
#pragma once

#include <string>

#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class EndpointSliceController {
 public:
  explicit EndpointSliceController(Context context);

 private:
  void Reconcile(const std::string& key, client::WorkQueue::Done done);

  Context context_;
  client::Informer& endpoints_;
  client::Informer& services_;
  client::Informer& slices_;
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::controllers
