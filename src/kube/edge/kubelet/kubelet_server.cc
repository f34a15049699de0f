#include "kube/edge/kubelet/kubelet_server.h"

#include <utility>

#include "base/strings.h"
#include "kube/client/client.h"
#include "kube/edge/http/http_front.h"
#include "kube/edge/streams/upgrade.h"
#include "kube/net/http/server.h"
#include "kube/net/reactor/reactor.h"
#include "kube/node/kubelet_handler.h"

namespace swell::edge {
namespace {

const client::Resource kTokenReviews{"authentication.k8s.io", "v1", "tokenreviews", false};
const client::Resource kAccessReviews{"authorization.k8s.io", "v1", "subjectaccessreviews", false};

std::string VerbOf(const std::string& method) {
  if (method == "POST") return "create";
  if (method == "PUT") return "update";
  return method == "GET" || method == "HEAD" ? "get" : ToLower(method);
}

// The subresource of nodes that an endpoint is a part of, as kubelets have it.
std::string_view SubresourceOf(std::string_view path) {
  for (std::string_view part : {"stats", "metrics"}) {
    if (path == StrCat("/", part) || path.starts_with(StrCat("/", part, "/"))) return part;
  }
  return "proxy";
}

// The access to a node's endpoints that the caller must have.
json::Value AccessReview(const json::Value& user,
                         const std::string& node,
                         const std::string& verb,
                         std::string_view subresource) {
  json::Object spec{{"user", json::GetString(user, {"username"})},
                    {"groups", json::GetArray(user, {"groups"})},
                    {"resourceAttributes", json::Object{{"verb", verb},
                                                        {"version", "v1"},
                                                        {"resource", "nodes"},
                                                        {"subresource", subresource},
                                                        {"name", node}}}};
  return json::Object{{"apiVersion", "authorization.k8s.io/v1"},
                      {"kind", "SubjectAccessReview"},
                      {"metadata", json::Object()},
                      {"spec", std::move(spec)}};
}

// A call that waits for what the API server says about its caller.
class ReviewedCall final : public api::RestCall {
 public:
  struct State {
    api::RestRequest request;
    std::shared_ptr<api::RestSink> sink;  // null once cancelled
    std::unique_ptr<api::RestCall> inner;
  };
  explicit ReviewedCall(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~ReviewedCall() override {
    state_->sink = nullptr;
    state_->inner.reset();
  }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace

// One node's endpoint: lets callers in and hands their requests to the node's handler.
class KubeletServer::Node final : public api::RestHandler {
 public:
  Node(Executor& core,
       net::Reactor& io,
       const Clock& clock,
       const KubeletServerConfig& config,
       std::string name)
      : config_(config),
        name_(std::move(name)),
        front_(core, *this, HttpFrontConfig{}),
        server_(io, clock, front_, net::ServerConfig{}) {
    if (config.api) {
      client_ =
          std::make_unique<client::Client>(core, config.api, api::UserInfo{}, "swell-kubelet");
    }
  }

  Result<uint16_t> Listen(const std::string& address) {
    return server_.Listen(address, config_.tls);
  }
  void Serve(std::shared_ptr<api::RestHandler> handler) { handler_ = std::move(handler); }

  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    const api::Credentials& who = request.credentials;
    if (!who.certificate_common_name.empty() || config_.anonymous) {
      return Pass(std::move(request), std::move(sink));
    }
    if (who.bearer_token.empty() || client_ == nullptr) {
      sink->OnResponse(TextResponse(401, "Unauthorized"));
      return nullptr;
    }
    auto state = std::make_shared<ReviewedCall::State>();
    state->request = std::move(request);
    state->sink = std::move(sink);
    ReviewToken(state);
    return std::make_unique<ReviewedCall>(std::move(state));
  }

 private:
  using StatePtr = std::shared_ptr<ReviewedCall::State>;

  std::unique_ptr<api::RestCall> Pass(api::RestRequest request,
                                      std::shared_ptr<api::RestSink> sink) {
    if (handler_ != nullptr) return handler_->Handle(std::move(request), std::move(sink));
    sink->OnResponse(TextResponse(503, StrCat("node ", name_, " is starting")));
    return nullptr;
  }

  void ReviewToken(const StatePtr& state) {
    json::Value review =
        json::Object{{"apiVersion", "authentication.k8s.io/v1"},
                     {"kind", "TokenReview"},
                     {"metadata", json::Object()},
                     {"spec", json::Object{{"token", state->request.credentials.bearer_token}}}};
    client_->Create(kTokenReviews, "", review, [this, state](Result<json::SharedValue> answer) {
      if (!state->sink) return;
      if (!answer.ok()) return Refuse(state, 500, answer.status().message());
      if (!json::GetBool(**answer, {"status", "authenticated"})) {
        return Refuse(state, 401, "Unauthorized");
      }
      const json::Value* user = json::Find(**answer, {"status", "user"});
      if (user == nullptr) return Refuse(state, 401, "Unauthorized");
      ReviewAccess(state, *user);
    });
  }

  void ReviewAccess(const StatePtr& state, const json::Value& user) {
    const std::string verb = VerbOf(state->request.method);
    const std::string name(json::GetString(user, {"username"}));
    const std::string part(SubresourceOf(state->request.path));
    client_->Create(kAccessReviews, "", AccessReview(user, name_, verb, part),
                    [this, state, verb, name, part](Result<json::SharedValue> answer) {
                      if (!state->sink) return;
                      if (!answer.ok()) return Refuse(state, 500, answer.status().message());
                      if (!json::GetBool(**answer, {"status", "allowed"})) {
                        return Refuse(state, 403,
                                      StrCat("Forbidden (user=", name, ", verb=", verb,
                                             ", resource=nodes, subresource=", part, ")"));
                      }
                      state->inner = Pass(std::move(state->request), state->sink);
                    });
  }

  static void Refuse(const StatePtr& state, int status, std::string text) {
    auto sink = std::exchange(state->sink, nullptr);
    sink->OnResponse(TextResponse(status, std::move(text)));
  }

  const KubeletServerConfig& config_;
  const std::string name_;
  std::shared_ptr<api::RestHandler> handler_;
  std::unique_ptr<client::Client> client_;
  HttpFront front_;
  net::HttpServer server_;
};

KubeletServer::KubeletServer(Executor& core,
                             net::Reactor& io,
                             const Clock& clock,
                             KubeletServerConfig config)
    : core_(core), io_(io), clock_(clock), config_(std::move(config)) {}

KubeletServer::~KubeletServer() = default;

Result<uint16_t> KubeletServer::Listen(const std::string& node, const std::string& address) {
  auto& endpoint = nodes_[node];
  if (!endpoint) endpoint = std::make_unique<Node>(core_, io_, clock_, config_, node);
  auto port = endpoint->Listen(address);
  if (!port.ok())
    return port.status().WithContext(StrCat("kubelet endpoint of node ", Quote(node)));
  return port;
}

void KubeletServer::Serve(const std::string& node, std::shared_ptr<api::RestHandler> endpoints) {
  auto it = nodes_.find(node);
  if (it != nodes_.end()) it->second->Serve(std::move(endpoints));
}

}  // namespace swell::edge
