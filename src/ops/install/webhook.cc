#include "ops/install/webhook.h"

#include "base/host_port.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/net/http/http.h"
#include "ops/install/service_certificate.h"

namespace swell::ops {
namespace {

const client::Resource kConfigurations{"admissionregistration.k8s.io", "v1",
                                       "mutatingwebhookconfigurations", false};
constexpr Duration kCheckEvery = std::chrono::seconds(10);
constexpr Duration kRenewBefore = std::chrono::hours(24 * 30);
constexpr int kTriesMax = 5;

}  // namespace

ControllerWebhook::ControllerWebhook(RemoteProcess& process, WebhookOptions options)
    : process_(process),
      options_(std::move(options)),
      informers_(process_.core(), process_.server(), {}, process_.random().Next()),
      timer_(process_.core()),
      client_(process_.core(), process_.server(), {}, "swell-webhook") {
  const auto served = process_.Serves(client::resources::kDeviceClasses);
  if (!served.ok() || !*served) informers_.LeaveOut(client::resources::kDeviceClasses);
  admission_ = std::make_unique<manager::AdmissionReviewer>(informers_, options_.admission);
}

json::Value ControllerWebhook::SecretOf(const edge::WebhookAuthority& authority,
                                        const json::Value* known) const {
  json::Value secret =
      json::Object{{"apiVersion", "v1"},
                   {"kind", "Secret"},
                   {"type", "kubernetes.io/tls"},
                   {"metadata", json::Object{{"name", kWebhookSecret}, {"namespace", options_.ns}}},
                   {"data", authority.Data()}};
  if (known != nullptr) {
    json::Set(secret, {"metadata", "resourceVersion"}, api::ResourceVersionText(*known));
  }
  return secret;
}

// If several replicas start together, one creates the Secret and the others read it.
Status ControllerWebhook::FindAuthority() {
  Status last = Status::Ok();
  for (int i = 0; i < kTriesMax; ++i) {
    auto known = process_.Await([&](client::ObjectCallback done) {
      client_.Get(client::resources::kSecrets, options_.ns, kWebhookSecret, std::move(done));
    });
    if (!known.ok() && known.status().code() != Code::kNotFound) return known.status();
    if (known.ok()) {
      const json::Value* data = json::Find(**known, {"data"});
      authority_ = edge::WebhookAuthority::Read(data != nullptr ? *data : json::Value());
    }
    SWELL_ASSIGN_OR_RETURN(auto renewed,
                           edge::Renew(authority_, kWebhookSecret, process_.clock().Now()));
    if (!renewed) return Status::Ok();
    const json::Value secret = SecretOf(*renewed, known.ok() ? known->get() : nullptr);
    auto written = process_.Await([&](client::ObjectCallback done) {
      if (known.ok()) return client_.Update(client::resources::kSecrets, secret, std::move(done));
      client_.Create(client::resources::kSecrets, options_.ns, secret, std::move(done));
    });
    last = written.status();
    if (!last.ok() && last.code() != Code::kAlreadyExists && last.code() != Code::kConflict) break;
  }
  return last.WithContext(StrCat("secret ", options_.ns, "/", kWebhookSecret));
}

Status ControllerWebhook::Listen() {
  const WallTime now = process_.clock().Now();
  net::CertSpec spec = CertificateOfService(kWebhookName, options_.ns, now);
  for (const std::string& host : hosts_) {
    (IsIpAddress(host) ? spec.ip_addresses : spec.dns_names).push_back(host);
  }
  SWELL_ASSIGN_OR_RETURN(net::CertificatePair pair, net::IssueCert(authority_.current, spec));
  renew_at_ = now + spec.validity - kRenewBefore;
  server_.reset();
  server_ = std::make_unique<edge::WebhookServer>(
      process_.core(), process_.clock(),
      [this](const json::Value& review) { return admission_->Review(review); });
  auto port = server_->Listen(StrCat(":", options_.port), {pair.cert_pem, pair.key_pem, {}});
  return port.ok() ? Status::Ok() : port.status().WithContext("--webhook-port");
}

Status ControllerWebhook::Start() {
  SWELL_RETURN_IF_ERROR(FindAuthority());
  informers_.Start();
  SWELL_RETURN_IF_ERROR(Listen());
  SWELL_LOG_INFO("webhook", "listening", {"port", std::to_string(options_.port)});
  CheckAuthority();
  return Status::Ok();
}

void ControllerWebhook::CheckAuthority() {
  client_.Get(client::resources::kSecrets, options_.ns, kWebhookSecret,
              [this](const Result<json::SharedValue>& secret) {
                OnAuthority(secret);
                CheckConfiguration();
              });
}

// The Secret decides. The first replica that finds it due for renewal writes the next one.
void ControllerWebhook::OnAuthority(const Result<json::SharedValue>& secret) {
  if (!secret.ok()) return;  // as before
  const json::Value* data = json::Find(**secret, {"data"});
  auto known = edge::WebhookAuthority::Read(data != nullptr ? *data : json::Value());
  auto renewed = edge::Renew(known, kWebhookSecret, process_.clock().Now());
  if (!renewed.ok()) {
    SWELL_LOG_WARNING("webhook", renewed.status().message());
    return;
  }
  if (*renewed) {
    client_.Update(client::resources::kSecrets, SecretOf(**renewed, secret->get()),
                   [](const Result<json::SharedValue>& written) {
                     if (written.ok()) {
                       SWELL_LOG_INFO("webhook", "its authority is renewed");
                     } else if (written.status().code() != Code::kConflict) {
                       SWELL_LOG_WARNING("webhook", "its authority is not renewed",
                                         {"because", written.status().message()});
                     }
                   });
  }
  if (known.current.cert_pem.empty()) return;  // until somebody has made it anew
  const bool another = known.current.cert_pem != authority_.current.cert_pem;
  authority_ = std::move(known);
  if (another) renew_at_ = process_.clock().Now();
}

void ControllerWebhook::CheckConfiguration() {
  client_.Get(kConfigurations, "", kWebhookName, [this](const Result<json::SharedValue>& found) {
    if (found.ok()) OnConfiguration(**found);
    if (!found.ok() && !reported_) {
      reported_ = true;
      SWELL_LOG_WARNING("webhook", "nobody asks it yet: swell install --webhook",
                        {"because", found.status().message()});
    }
    if (process_.clock().Now() >= renew_at_) {
      Status renewed = Listen();
      if (!renewed.ok()) SWELL_LOG_WARNING("webhook", renewed.message());
    }
    timer_.Start(kCheckEvery, [this] { CheckAuthority(); });
  });
}

void ControllerWebhook::OnConfiguration(const json::Value& configuration) {
  const std::string bundle = Base64Encode(authority_.Bundle());
  json::Array webhooks = json::GetArray(configuration, {"webhooks"});
  bool changed = false;
  std::vector<std::string> hosts;
  for (json::Value& webhook : webhooks) {
    auto url = net::ParseUrl(json::GetString(webhook, {"clientConfig", "url"}));
    if (url.ok()) hosts.push_back(std::move(url->host));
    if (json::GetString(webhook, {"clientConfig", "caBundle"}) == bundle) continue;
    json::Set(webhook, {"clientConfig", "caBundle"}, bundle);
    changed = true;
  }
  if (hosts != hosts_) {
    hosts_ = std::move(hosts);
    Status issued = Listen();
    if (!issued.ok()) SWELL_LOG_WARNING("webhook", issued.message());
  }
  if (!changed) return;
  json::Value patch = json::Object{{"webhooks", std::move(webhooks)}};
  json::Set(patch, {"metadata", "resourceVersion"}, api::ResourceVersionText(configuration));
  client_.Patch(kConfigurations, "", kWebhookName, client::PatchType::kMerge, patch,
                [](const Result<json::SharedValue>& result) {
                  if (result.ok()) {
                    SWELL_LOG_INFO("webhook", "the API server trusts it");
                  } else if (result.status().code() != Code::kConflict) {
                    SWELL_LOG_WARNING("webhook", "the configuration has no caBundle",
                                      {"because", result.status().message()});
                  }
                });
}

}  // namespace swell::ops
