// NamespaceDefaults: keeps the service account `default` and the ConfigMap kube-root-ca.crt, by
// which pods trust the API server, in every namespace. Both are created again if they are deleted.
// - Threads: core executor only.
#pragma once

#include <string>

#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class NamespaceDefaults {
 public:
  // An empty `ca_pem`: no ConfigMap is kept.
  NamespaceDefaults(Context context, std::string ca_pem);

 private:
  void Reconcile(const std::string& name, client::WorkQueue::Done done);

  Context context_;
  std::string ca_pem_;
  client::Informer& namespaces_;
  client::Informer& accounts_;
  client::Informer config_maps_;  // those alone that it keeps
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::controllers
