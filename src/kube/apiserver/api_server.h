// ApiServer: Kubernetes' REST API over the store. Requests in, responses and watch streams out; no
// sockets, no threads of its own.
//
// Path of a write: authenticate → route → admit → decode → default → validate → store.Write →
// answer once durable. Reads answer from durable memory at once. Watches live on store watches;
// each ends on its own when its receiver is too slow.
//
// - Threads: core executor only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/health.h"
#include "base/metrics.h"
#include "base/random.h"
#include "json/value.h"
#include "kube/api/meta/kubernetes_version.h"
#include "kube/api/rest/binder.h"
#include "kube/api/rest/rest.h"
#include "kube/api/schema/scheme.h"
#include "kube/apiserver/audit_query.h"
#include "kube/store/store.h"

namespace swell::apiserver {

// One line of kube-apiserver's --token-auth-file: token,user,uid,"group1,group2".
struct StaticToken {
  std::string token;
  api::UserInfo user;
};
Result<std::vector<StaticToken>> ParseTokenFile(std::string_view csv);

// Answers the kubelet's endpoints (/containerLogs/…, /exec/…) of a node, for pods' log and exec
// subresources. Embedded: the agent in this process; else an HTTP client to the node.
using NodeDialer =
    std::function<Result<std::shared_ptr<api::RestHandler>>(const std::string& node_name)>;

// Speaks HTTP with a pod or a webhook.
struct HttpTarget {
  std::string base_url;     // "http://10.88.0.3:8080"
  bool verify = false;      // its certificate
  std::string ca_pem;       // whom that is trusted by; empty: whom this machine trusts
  std::string server_name;  // whose it is; empty: the URL's host
};
using HttpDialer =
    std::function<Result<std::shared_ptr<api::RestHandler>>(const HttpTarget& target)>;

// Checks a binding against what the node has left, after the API's own checks and before the
// write. The last word against two schedulers placing on one node.
using BindCheck = std::function<Status(const json::Value& pod, const std::string& node_name)>;

// What is wrong with an object of a custom kind beyond what its definition can say; `old` is null
// of a new one.
using ObjectRules = std::function<std::vector<api::FieldError>(
    const api::KindInfo& kind, const json::Value& object, const json::Value* old)>;

// What service account tokens are signed with.
class TokenKey {
 public:
  virtual ~TokenKey() = default;
  virtual std::string Sign(std::string_view bytes) const = 0;
  virtual bool Verify(std::string_view bytes, std::string_view signature) const = 0;
  // The public key as JSON Web Key; "alg" and "kid" go into the tokens' headers.
  virtual const json::Value& jwk() const = 0;
};

struct CertificateAndKey {
  std::string certificate, key;  // PEM
};

struct CertificateSubject {
  std::string common_name;
  std::vector<std::string> organizations;
};

// Which requests from the network the audit log has.
enum class AuditLevel {
  kNone,
  kWrites,  // what changes something or reads a secret, commands in pods, and what was refused
  kAll,
};

struct Options {
  std::vector<StaticToken> tokens;
  bool anonymous = false;  // else 401 without credentials
  // Whether requests that must be recorded are refused while the audit log cannot be written.
  bool audit_required = false;
  std::string git_version = api::kKubernetesVersion;
  size_t body_limit_bytes = 3 << 20;
  Duration bookmark_interval = std::chrono::seconds(60);
  Duration event_ttl = std::chrono::hours(1);
  NodeDialer node_dialer;
  HttpDialer http_dialer;    // empty: pods and services cannot be proxied to, webhooks not asked
  BindCheck bind_check;      // empty: every binding fits
  ObjectRules object_rules;  // empty: definitions say all
  // Null: there are no service account tokens, and pods get none.
  std::shared_ptr<const TokenKey> token_key;
  std::string ca_pem;  // what clients in pods trust this server by; goes into legacy token secrets
  // Roles and bindings decide; else every authenticated user may do anything.
  bool rbac = false;
  std::string default_scheduler = "swell";  // of pods that name none
  // Cluster IPs of services: `service_ip_count` addresses from this one on.
  std::string service_ip_base = "10.96.0.1";
  uint32_t service_ip_count = 65'534;
  // Where clients inside the cluster find this server; empty: no Service `kubernetes`.
  std::string advertise_address;
  int advertise_port = 6443;
  size_t watches_max = 20'000;
  // Watches, logs, commands in pods and connections to them, together, of one user or account.
  // Half of the commands that a machine takes, and of the connections from one address.
  size_t streams_of_user_max = 2000;
  // What GET /metrics answers; the server adds its own. Null: 404. Outlives the server.
  Metrics* metrics = nullptr;
  // What /healthz, /livez and /readyz ask beside the server's own store.
  HealthChecks health;
  // Runs work that takes long on another thread; false: its queue has no room for `bytes` more.
  // Empty: the work is done at once.
  std::function<bool(std::function<void()> work, size_t bytes)> offload;
  // Answers POST /swell/v1/backup: writes the whole store into a file beside the database and says
  // which. Empty: 404.
  std::function<void(std::function<void(Result<json::Value>)>)> backup;
  // Answers POST /swell/v1/pages/codes: a code with which the caller, whose credentials these are,
  // logs in to the pages. Empty: 404.
  std::function<json::Value(const api::Credentials&)> page_code;
  // Issues client certificates for users (common name, organization); empty: it cannot.
  std::function<Result<CertificateAndKey>(
      const std::string& name, const std::string& organization, Duration validity)>
      issue_certificate;
  // The subject of the certificate that a signing request (PEM) asks for; empty: it is not read.
  std::function<Result<CertificateSubject>(const std::string& request_pem)> requested_subject;
  // How long a token or a certificate for a user is good at most.
  Duration token_life_max = std::chrono::hours(24 * 365);
  // Takes the lines of the audit log (audit.k8s.io/v1 events as JSON); empty: no audit log.
  std::function<void(std::string)> audit;
  AuditLevel audit_level = AuditLevel::kWrites;
  // Says why the audit log cannot be written now; "" if it can. An empty function: it always can.
  std::function<std::string()> audit_problem;
  // Answers GET /swell/v1/audit with events of the log. Empty: 404.
  std::function<void(AuditQuery, std::function<void(Result<json::Value>)>)> search_audit;
};

class ApiServer : public api::RestHandler, public api::Binder {
 public:
  // The store must outlive the server.
  static std::unique_ptr<ApiServer> Create(
      Executor& executor, Clock& clock, Random& random, store::Store& store, Options options);
  // Where clients inside the cluster find this server, when it is known only after Create: becomes
  // the Service `kubernetes`. Before Bootstrap.
  virtual void Advertise(std::string address, int port) = 0;
  // Creates what every cluster has (default namespaces, priority classes system-*, Swell's CRDs),
  // then calls ready. Idempotent.
  virtual void Bootstrap(std::function<void(const Status&)> ready) = 0;
  virtual const api::Scheme& scheme() const = 0;
};

}  // namespace swell::apiserver
