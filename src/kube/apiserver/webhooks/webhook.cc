#include "kube/apiserver/webhooks/webhook.h"

#include <tuple>
#include <utility>

#include "base/random.h"
#include "base/strings.h"
#include "kube/api/meta.h"
#include "kube/apiserver/handlers.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr size_t kMaxServers = 64;
constexpr size_t kMaxShownBody = 1024;
constexpr char kWaiting[] = "waiting for a webhook";

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
  SWELL_ASSIGN_OR_RETURN(
      const std::string address,
      ServiceAddress(core, webhook.service_ns, webhook.service, webhook.service_port));
  place.target.base_url = StrCat("https://", address);
  place.target.server_name = StrCat(webhook.service, ".", webhook.service_ns, ".svc");
  place.path = webhook.service_path.empty() ? "/" : webhook.service_path;
  return place;
}

Result<std::shared_ptr<api::RestHandler>> ServerAt(const Core& core, const HttpTarget& target) {
  if (!core.options.http_dialer) {
    return Status(Code::kUnavailable, "this server reaches no webhooks");
  }
  auto& servers = core.webhooks->servers;
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

Questions::Answer AnswerIn(const api::RestResponse& response,
                           const std::string& url,
                           const std::string& address) {
  const std::string body = response.BodyString();
  auto parsed = json::Parse(body);
  if (parsed.ok() && json::GetString(*parsed, {"kind"}) == "Status" &&
      !json::GetArray(*parsed, {"details", "causes"}).empty() && response.status >= 503) {
    // Of our own client: nobody answered.
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

class Reply final : public api::RestSink {
 public:
  using Done = std::function<void(const api::RestResponse&)>;
  explicit Reply(Done done) : done_(std::move(done)) {}

  void OnResponse(api::RestResponse response) override { done_(response); }
  void OnStreamStart(int, std::string) override {}
  bool OnChunk(const api::Chunk&) override { return false; }
  void OnStreamEnd(const Status&) override {}

 private:
  Done done_;
};

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

Questions::~Questions() {
  for (const auto& [number, question] : under_way_) core_.executor.Cancel(question.timer);
}

const Questions::Answer* Questions::Find(const std::string& key) const {
  const auto found = answers_.find(key);
  return found == answers_.end() ? nullptr : &found->second;
}

void Questions::Ask(const std::string& key,
                    const Webhook& webhook,
                    const json::Value& review,
                    Duration timeout,
                    bool tell_timeout,
                    File file) {
  if (!asked_.insert(key).second) return;
  const uint64_t number = next_;
  const Finished finish = Begin(std::move(file));
  // Never answered from inside the handler that asks.
  auto refuse = [this, finish](const Status& why) {
    core_.executor.Post([finish, why] { finish(why); });
  };
  if (number > kMaxQuestions) return refuse(Status(Code::kInternal, "too many calls of webhooks"));
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout).count();
  const std::string query = tell_timeout ? StrCat("timeout=", seconds, "s") : "";
  const std::string url = StrCat(webhook.Url(), query.empty() ? "" : "?", query);
  auto place = PlaceOf(core_, webhook);
  if (!place.ok()) {
    return refuse(place.status().code() == Code::kInternal
                      ? place.status()
                      : place.status().WithContext(StrCat("Post ", Quote(url))));
  }
  auto server = ServerAt(core_, place->target);
  if (!server.ok()) return refuse(server.status().WithContext(StrCat("Post ", Quote(url))));
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
  const std::string address = SplitUrl(place->target.base_url).first;
  const auto expired = [finish, url] {
    finish(Status(Code::kTimeout, StrCat("Post ", Quote(url), ": context deadline exceeded")));
  };
  Send(number, *server, std::move(request), timeout, expired,
       [finish, url, address = address.substr(address.find("://") + 3)](
           const api::RestResponse& response) { finish(AnswerIn(response, url, address)); });
}

void Questions::AskNode(const std::string& key,
                        std::shared_ptr<api::RestHandler> node,
                        api::RestRequest request,
                        Duration timeout) {
  if (!asked_.insert(key).second) return;
  const uint64_t number = next_;
  const Finished finish =
      Begin([key](Questions& questions, const Answer& answer) { questions.Put(key, answer); });
  const auto expired = [finish] { finish(Status(Code::kTimeout, "the node does not answer")); };
  Send(number, std::move(node), std::move(request), timeout, expired,
       [finish](const api::RestResponse& response) {
         finish(response.status == 200 ? json::Parse(response.BodyString())
                                       : Status(Code::kUnavailable, "the node refused"));
       });
}

Questions::Finished Questions::Begin(File file) {
  const uint64_t number = next_++;
  ++open_;
  fresh_ = true;
  return [weak = weak_from_this(), number, file = std::move(file)](const Answer& answer) {
    if (const auto self = weak.lock()) self->Finish(number, file, answer);
  };
}

void Questions::Send(uint64_t number,
                     std::shared_ptr<api::RestHandler> server,
                     api::RestRequest request,
                     Duration timeout,
                     std::function<void()> expired,
                     std::function<void(const api::RestResponse&)> done) {
  UnderWay& one = under_way_[number];
  one.server = std::move(server);
  one.timer = core_.executor.After(timeout, std::move(expired));
  auto call = one.server->Handle(std::move(request), std::make_shared<Reply>(std::move(done)));
  // It may have been answered at once.
  const auto still = under_way_.find(number);
  if (still != under_way_.end()) still->second.call = std::move(call);
}

void Questions::Finish(uint64_t number, const File& file, const Answer& answer) {
  const auto found = under_way_.find(number);
  if (found != under_way_.end()) {
    core_.executor.Cancel(found->second.timer);
    // Not from inside the call's own callback.
    core_.executor.Post(
        [ended = std::make_shared<UnderWay>(std::move(found->second))] { ended->call.reset(); });
    under_way_.erase(found);
  }
  file(*this, answer);
  --open_;
  GoOn();
}

void Questions::WhenAnswered(std::function<void()> then) {
  fresh_ = false;
  then_ = std::move(then);
  GoOn();
}

void Questions::GoOn() {
  if (open_ > 0 || !then_) return;
  // Never from inside another's callback.
  core_.executor.Post([then = std::exchange(then_, nullptr)] { then(); });
}

Status Unanswered() { return Status(Code::kUnavailable, kWaiting); }

bool IsUnanswered(const Status& status) {
  return status.code() == Code::kUnavailable && status.message() == kWaiting;
}

Questions& QuestionsOf(const Core& core, Call& call) {
  if (!call.questions) call.questions = std::make_shared<Questions>(core);
  return *call.questions;
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
