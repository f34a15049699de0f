// EndpointsController: keeps the Endpoints object of each Service, from the pods it selects.
// - Threads: core executor only.
#pragma once

#include <set>
#include <string>

#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class EndpointsController {
 public:
  explicit EndpointsController(Context context);

 private:
  void Reconcile(const std::string& key, client::WorkQueue::Done done);
  void OnPod(const json::Value& pod);
  json::Value Wanted(const json::Value& service) const;
  void Remove(const std::string& key, client::WorkQueue::Done done);

  Context context_;
  std::set<std::string> gone_;  // services that were deleted, until their Endpoints are
  client::Informer& services_;
  client::Informer& endpoints_;
  client::Informer& pods_;
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::controllers
