// CertificateSigner: issues certificates for approved CertificateSigningRequests of the signer
// kubernetes.io/kube-apiserver-client: client certificates for the API server. It ignores requests
// of other signers.
// - Threads: core executor only.
#pragma once

#include <functional>
#include <string>

#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

struct ClientCertificateRequest {
  std::string pem;
  bool digital_signature = false;
  bool key_encipherment = false;
  Duration validity;
};
// Makes the certificate (PEM).
using SignClientCertificate = std::function<Result<std::string>(const ClientCertificateRequest&)>;

class CertificateSigner {
 public:
  CertificateSigner(Context context, SignClientCertificate sign);

 private:
  void Reconcile(const std::string& name, client::WorkQueue::Done done);

  SignClientCertificate sign_;
  Context context_;
  client::Informer& requests_;
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::controllers
