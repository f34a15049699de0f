// RoleAggregation: fills ClusterRoles that aggregate others by label.
// - Threads: core executor only.
#pragma once

#include <string>

#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class RoleAggregation {
 public:
  explicit RoleAggregation(Context context);

 private:
  void OnRole();
  void Reconcile(const std::string& name, client::WorkQueue::Done done);

  Context context_;
  client::Informer& roles_;
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::controllers
