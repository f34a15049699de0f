// Webhooks: servers outside the cluster's own that are called before a request can be answered, to
// admit an object or to convert it to another version.
// - Threads: core executor only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kube/apiserver/core.h"
#include "kube/apiserver/request/callouts.h"

namespace swell::apiserver {

// How a webhook is reached: a clientConfig of the three kinds that have one.
struct Webhook {
  std::string url;      // https://host:port/path; empty: the service
  std::string service;  // its name
  std::string service_ns;
  std::string service_path;
  int64_t service_port = 443;
  std::string ca_pem;

  static Webhook FromJson(const json::Value* client_config);
  // What is called, without the parameters: of a service, https://name.ns.svc:443/path.
  std::string Url() const;
};

// The call's callouts, made when first needed.
Callouts& CalloutsOf(const Core& core, Call& call);
// Sends the review to the webhook, once for each key. `send_timeout`: the query says how long the
// answer is waited for.
void SendReview(const Core& core,
                Call& call,
                const std::string& key,
                const Webhook& webhook,
                const json::Value& review,
                Duration timeout,
                bool send_timeout,
                Callouts::File file);

// A short name of a text, for keys.
std::string Digest(std::string_view text);

// "a.b/v1, Kind=C".
std::string GvkText(std::string_view api_version, std::string_view kind);

// How the objects of one definition get from version to version.
struct Converter {
  Webhook webhook;
  std::vector<std::string> review_versions;
};

// What converts, and the connections to webhooks.
struct Webhooks final : CorePart {
  std::map<std::string, Converter, std::less<>> converters;  // by "foos.example.com"
  // Servers that were called, by address and certificates.
  std::map<std::string, std::shared_ptr<api::RestHandler>> servers;
};

}  // namespace swell::apiserver
