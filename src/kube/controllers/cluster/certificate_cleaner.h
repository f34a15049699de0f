// CertificateCleaner: removes CertificateSigningRequests that nobody looks at any more, of every
// signer: an hour after their certificate was issued, they were denied or failed, and a day after
// they were made where nobody has decided. Who was given a certificate keeps it.
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
