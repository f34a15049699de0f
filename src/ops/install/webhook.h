// ControllerWebhook: the admission webhook of `swell controller`: its port, its certificates, and
// the configuration that the API server finds it by (`swell install --webhook`).
//
// The certificate authority is in the Secret NAMESPACE/swell-webhook-ca, made by the first replica
// that needs it, so all of them are trusted by one caBundle. Each replica issues its own
// certificate from it, for the Service's names and the host of the configuration's URL, and issues
// it anew before it expires. The caBundle is put into the configuration whenever it is not there.
//
// The Secret is read again before each check of the configuration, and one replica renews it in
// time (kube/edge/webhook/webhook_authority.h).
//
// - Threads: the core thread.
// - Ownership: the process and the informers outlive it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/timer.h"
#include "kube/edge/webhook/webhook_authority.h"
#include "kube/edge/webhook/webhook_server.h"
#include "manager/admission.h"
#include "ops/install/install_objects.h"
#include "ops/remote_process.h"

namespace swell::ops {

struct WebhookOptions {
  std::string ns = "swell-system";
  int64_t port = 0;  // 0: there is no webhook
  manager::AdmissionOptions admission;
};

class ControllerWebhook {
 public:
  ControllerWebhook(RemoteProcess& process, WebhookOptions options);

  // Returns once it answers. What changes later is followed while the process runs.
  Status Start();

 private:
  Status FindAuthority();
  Status Listen();
  void CheckAuthority();
  void OnAuthority(const Result<json::SharedValue>& secret);
  void CheckConfiguration();
  json::Value SecretOf(const edge::WebhookAuthority& authority, const json::Value* known) const;
  void OnConfiguration(const json::Value& configuration);

  RemoteProcess& process_;
  WebhookOptions options_;
  controllers::Informers informers_;
  std::unique_ptr<manager::AdmissionReviewer> admission_;
  edge::WebhookAuthority authority_;
  std::vector<std::string> hosts_;  // that the certificate is for, besides the Service's names
  WallTime renew_at_;
  std::unique_ptr<edge::WebhookServer> server_;
  Timer timer_;
  bool reported_ = false;  // that there is no configuration
  client::Client client_;
};

}  // namespace swell::ops
