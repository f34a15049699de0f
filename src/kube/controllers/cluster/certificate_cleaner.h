// CertificateCleaner: removes old CertificateSigningRequests of every signer: one hour after they
// were issued, denied or failed, and one day after creation if they were never approved or denied.
// Issued certificates stay valid.
// - Threads: core executor only.
#pragma once

#include <string>

#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class CertificateCleaner {
 public:
  explicit CertificateCleaner(Context context);

 private:
  void Reconcile(const std::string& name, client::WorkQueue::Done done);

  Context context_;
  client::Informer& requests_;
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::controllers
