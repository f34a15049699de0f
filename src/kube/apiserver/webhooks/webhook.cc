#include "kube/apiserver/webhooks/webhook.h"

#include <tuple>
#include <utility>

#include "base/random.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/service_address.h"

namespace swell::apiserver {
namespace {

constexpr size_t kMaxServers = 64;
constexpr size_t kMaxShownBody = 1024;

// An address as Go's url.Parse takes it apart: "https://host:port", "/path?query".
std::pair<std::string, std::string> SplitUrl(const std::string& url) {
  const size_t scheme = url.find("://");
  const size_t path = url.find('/', scheme == std::string::npos ? 0 : scheme + 3);
  if (path == std::string::npos) return {url, "/"};
  return {url.substr(0, path), url.substr(path)};
}

struct Place {
  HttpTarget target;
  std::string path;
};

Result<Place> PlaceOf(const Core& core, const Webhook& webhook) {
  Place place;
  place.target.verify = true;
  place.target.ca_pem = webhook.ca_pem;
  if (webhook.service.empty()) {
    if (webhook.url.empty()) {
      return Status(Code::kInternal, "webhook configuration must have either service or URL");
    }
    std::tie(place.target.base_url, place.path) = SplitUrl(webhook.url);
    return place;
  }
  const auto service = core.store.Get({"services", webhook.service_ns, webhook.service});
  if (!service) {
    return Status(Code::kNotFound, StrCat("service ", Quote(webhook.service), " not found"));
  }
  SWELL_ASSIGN_OR_RETURN(
      const std::string address,
      AddressOfService(core, *service->Parsed(), std::to_string(webhook.service_port)));
  place.target.base_url = StrCat("https://", address);
  place.target.server_name = StrCat(webhook.service, ".", webhook.service_ns, ".svc");
  place.path = webhook.service_path.empty() ? "/" : webhook.service_path;
  return place;
}

Result<std::shared_ptr<api::RestHandler>> ServerAt(const Core& core, const HttpTarget& target) {
  if (!core.options.http_dialer) {
    return Status(Code::kUnavailable, "this server reaches no webhooks");
  }
  auto& servers = core.Get<Webhooks>().servers;
  const std::string key = StrCat(target.base_url, "\n", target.server_name, "\n", target.ca_pem);
  if (const auto found = servers.find(key); found != servers.end()) return found->second;
  SWELL_ASSIGN_OR_RETURN(auto server, core.options.http_dialer(target));
  if (servers.size() >= kMaxServers) servers.clear();
  servers.emplace(key, server);
  return server;
}

// An error of the connection in Go's words, as far as ours tell what it was.
std::string DialProblem(const std::string& message, const std::string& address) {
  const size_t at = message.find("connect: ");
  if (at != std::string::npos) {
    return StrCat("dial tcp ", address, ": ", ToLower(message.substr(at)));
  }
  for (const char* unknown : {"self-signed certificate", "self signed certificate",
                              "unable to get local issuer certificate"}) {
    if (message.find(unknown) != std::string::npos) {
      return "x509: certificate signed by unknown authority";
    }
  }
  return message;
}

// What a client of Kubernetes says about an answer that is an error.
std::string HttpProblem(int status, const std::string& body) {
  switch (status) {
    case 401:
      return "the server has asked for the client to provide credentials";
    case 403:
      return body.substr(0, kMaxShownBody);
    case 404:
      return "the server could not find the requested resource";
    case 405:
      return "the server does not allow this method on the requested resource";
    case 415:
      return "the body of the request was in an unknown format";
    case 429:
      return "the server has received too many requests and has asked us to try again later";
    case 503:
      return "the server is currently unable to handle the request";
    case 504:
      return "the server was unable to return a response in the time allotted, but may still be "
             "processing the request";
    default:
      break;
  }
  if (status >= 500) {
    return StrCat("an error on the server (", Quote(body.substr(0, kMaxShownBody)),
                  ") has prevented the request from succeeding");
  }
  return "the server rejected our request for an unknown reason";
}

Callouts::Answer AnswerIn(const api::RestResponse& response,
                          const std::string& url,
                          const std::string& address) {
  const std::string body = response.BodyString();
  auto parsed = json::Parse(body);
  if (parsed.ok() && json::GetString(*parsed, {"kind"}) == "Status" &&
      !json::GetArray(*parsed, {"details", "causes"}).empty() && response.status >= 503) {
    // Our own HTTP client made this answer: the server did not.
    return Status(Code::kUnavailable,
                  StrCat("Post ", Quote(url), ": ",
                         DialProblem(std::string(json::GetString(*parsed, {"message"})), address)));
  }
  if (response.status < 200 || response.status > 206) {
    const bool text = response.content_type.empty() || response.content_type.starts_with("text/");
    return Status(Code::kUnavailable,
                  HttpProblem(response.status, text ? std::string(Trim(body)) : "unknown"));
  }
  if (!parsed.ok()) {
    return Status(Code::kInternal, StrCat("couldn't get version/kind; json parse error: ",
                                          parsed.status().message()));
  }
  if (!parsed->is_object()) {
    return Status(Code::kInternal, "couldn't get version/kind; json parse error: not an object");
  }
  return parsed;
}

}  // namespace

Webhook Webhook::FromJson(const json::Value* client_config) {
  Webhook webhook;
  if (client_config == nullptr) return webhook;
  webhook.url = json::GetString(*client_config, {"url"});
  webhook.ca_pem =
      Base64Decode(json::GetString(*client_config, {"caBundle"})).value_or(std::string());
  webhook.service = json::GetString(*client_config, {"service", "name"});
  webhook.service_ns = json::GetString(*client_config, {"service", "namespace"});
  webhook.service_path = json::GetString(*client_config, {"service", "path"});
  const int64_t port = json::GetInt(*client_config, {"service", "port"});
  if (port != 0) webhook.service_port = port;
  return webhook;
}

std::string Webhook::Url() const {
  if (service.empty()) return url;
  return StrCat("https://", service, ".", service_ns, ".svc:", service_port, service_path);
}

Callouts& CalloutsOf(const Core& core, Call& call) {
  if (!call.callouts) call.callouts = std::make_shared<Callouts>(core.executor);
  return *call.callouts;
}

namespace {

Result<Callouts::Request> ReviewRequest(const Core& core,
                                        const Webhook& webhook,
                                        const json::Value& review,
                                        Duration timeout,
                                        const std::string& query,
                                        const std::string& url) {
  auto place = PlaceOf(core, webhook);
  if (!place.ok()) {
    return place.status().code() == Code::kInternal
               ? place.status()
               : place.status().WithContext(StrCat("Post ", Quote(url)));
  }
  auto server = ServerAt(core, place->target);
  if (!server.ok()) return server.status().WithContext(StrCat("Post ", Quote(url)));
  api::RestRequest request;
  request.method = "POST";
  const size_t question = place->path.find('?');
  request.path = place->path.substr(0, question);
  request.query = question == std::string::npos
                      ? query
                      : StrCat(place->path.substr(question + 1), query.empty() ? "" : "&", query);
  request.content_type = "application/json";
  request.accept = "application/json, */*";
  request.user_agent = "kube-apiserver-admission";
  request.body = json::Print(review);
  const std::string base = SplitUrl(place->target.base_url).first;
  const std::string address = base.substr(base.find("://") + 3);
  return Callouts::Request{
      std::move(*server), std::move(request), timeout,
      Status(Code::kTimeout, StrCat("Post ", Quote(url), ": context deadline exceeded")),
      [url, address](const api::RestResponse& response) {
        return AnswerIn(response, url, address);
      }};
}

}  // namespace

void SendReview(const Core& core,
                Call& call,
                const std::string& key,
                const Webhook& webhook,
                const json::Value& review,
                Duration timeout,
                bool send_timeout,
                Callouts::File file) {
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout).count();
  const std::string query = send_timeout ? StrCat("timeout=", seconds, "s") : "";
  const std::string url = StrCat(webhook.Url(), query.empty() ? "" : "?", query);
  CalloutsOf(core, call)
      .Send(
          key, [&] { return ReviewRequest(core, webhook, review, timeout, query, url); },
          std::move(file));
}

std::string Digest(std::string_view text) {
  constexpr uint64_t kOtherBasis = 0x9e3779b97f4a7c15ULL;
  return StrCat(text.size(), "-", StableHash(text), "-", StableHash(text, kOtherBasis));
}

std::string GvkText(std::string_view api_version, std::string_view kind) {
  return StrCat(api_version.find('/') == std::string_view::npos ? "/" : "", api_version,
                ", Kind=", kind);
}

}  // namespace swell::apiserver
