#include "kube/edge/cluster/cluster_transport.h"

#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "json/value.h"
#include "kube/net/http/http.h"

namespace swell::edge {
namespace {

constexpr Duration kTokenFileAge = std::chrono::minutes(1);
// Credentials are renewed this long before they expire.
constexpr Duration kExpiryMargin = std::chrono::seconds(15);
// A plugin that fails, or whose credentials are refused, is not asked more often.
constexpr Duration kPluginRest = std::chrono::seconds(2);
constexpr size_t kRetiredMax = 4;

bool IsAboutLease(const api::RestRequest& request) {
  return request.path.starts_with("/apis/coordination.k8s.io/") &&
         request.query.find("watch=") == std::string::npos;
}

bool IsEventWrite(const api::RestRequest& request) {
  return request.method != "GET" && request.path.find("/events") != std::string::npos;
}

// Deeper than /api/v1 and /apis/GROUP/VERSION, which are discovery's.
bool NamesResource(std::string_view path) {
  return Split(path, '/').size() > (path.starts_with("/apis/") ? 4u : 3u);
}

// Whether an error is about one object: then it says which.
bool NamesObject(const std::string& body) {
  auto parsed = json::Parse(body);
  return parsed.ok() && !json::GetString(*parsed, {"details", "name"}).empty();
}

void Answer(api::RestSink& sink, const Status& status) {
  net::HttpResponse http = net::StatusResponse(status);
  api::RestResponse response;
  response.status = http.status;
  response.body = std::move(http.body);
  sink.OnResponse(std::move(response));
}

}  // namespace

struct ClusterTransport::Waiting {
  api::RestRequest request;
  std::shared_ptr<api::RestSink> sink;  // null: given up
  std::unique_ptr<api::RestCall> call;  // once it was sent
};

class ClusterTransport::WaitingCall final : public api::RestCall {
 public:
  explicit WaitingCall(std::shared_ptr<Waiting> waiting) : waiting_(std::move(waiting)) {}
  ~WaitingCall() override {
    waiting_->sink = nullptr;
    waiting_->call = nullptr;
  }

 private:
  std::shared_ptr<Waiting> waiting_;
};

// Passes an answer on, notices when it is 401, and mends a 404 that is about no object.
class ClusterTransport::WatchfulSink final : public api::RestSink {
 public:
  WatchfulSink(ClusterTransport& owner, bool doubts, std::shared_ptr<api::RestSink> sink)
      : owner_(owner),
        guard_(owner.scope_.guard()),
        generation_(owner.generation_),
        doubts_(doubts),
        sink_(std::move(sink)) {}

  void OnResponse(api::RestResponse response) override {
    NoteStatus(response.status);
    if (response.status == 404 && doubts_ && !NamesObject(response.BodyString())) {
      return Answer(*sink_,
                    Status(Code::kUnavailable, "the server could not find the requested resource"));
    }
    sink_->OnResponse(std::move(response));
  }
  void OnStreamStart(int status, std::string content_type) override {
    NoteStatus(status);
    sink_->OnStreamStart(status, std::move(content_type));
  }
  bool OnChunk(const api::Chunk& chunk) override { return sink_->OnChunk(chunk); }
  void OnStreamEnd(const Status& why) override { sink_->OnStreamEnd(why); }
  api::DuplexPtr OnUpgrade(api::HeaderList headers) override {
    return sink_->OnUpgrade(std::move(headers));
  }

 private:
  void NoteStatus(int status) {
    if (status == 401 && !guard_.closed()) owner_.OnUnauthorized(generation_);
  }

  ClusterTransport& owner_;
  CallbackScope::Guard guard_;
  uint64_t generation_;
  bool doubts_;  // a 404 about no object means that the server has just started
  std::shared_ptr<api::RestSink> sink_;
};

Result<std::unique_ptr<ClusterTransport>> ClusterTransport::Open(net::Reactor& reactor,
                                                                 const Clock& clock,
                                                                 client::ClusterAccess access,
                                                                 ClusterTransportOptions options) {
  std::unique_ptr<ClusterTransport> transport(
      new ClusterTransport(reactor, clock, std::move(access), options));
  SWELL_RETURN_IF_ERROR(transport->MakeLanes());
  return transport;
}

ClusterTransport::ClusterTransport(net::Reactor& reactor,
                                   const Clock& clock,
                                   client::ClusterAccess access,
                                   ClusterTransportOptions options)
    : reactor_(reactor),
      clock_(clock),
      access_(std::move(access)),
      options_(options),
      token_read_(clock.Steady()) {}

ClusterTransport::~ClusterTransport() { scope_.Close(); }

Status ClusterTransport::MakeLanes() {
  HttpTransportConfig config = TransportConfig(access_);
  config.client.max_connections = options_.connections;
  config.client.max_waiting = options_.waiting_max;
  Lanes lanes;
  SWELL_ASSIGN_OR_RETURN(lanes.main, HttpTransport::Make(reactor_, config));
  if (options_.event_connections > 0) {
    config.client.max_connections = options_.event_connections;
    SWELL_ASSIGN_OR_RETURN(lanes.events, HttpTransport::Make(reactor_, config));
  }
  if (options_.lease_connections > 0) {
    config.client.max_connections = options_.lease_connections;
    SWELL_ASSIGN_OR_RETURN(lanes.leases, HttpTransport::Make(reactor_, config));
  }
  if (lanes_.main) retired_.push_back(std::move(lanes_));
  if (retired_.size() > kRetiredMax) retired_.pop_front();
  lanes_ = std::move(lanes);
  return Status::Ok();
}

std::unique_ptr<api::RestCall> ClusterTransport::Handle(api::RestRequest request,
                                                        std::shared_ptr<api::RestSink> sink) {
  if (!access_.token_file.empty()) ReadTokenFile();
  if (!access_.exec || !NeedsCredential()) return Send(std::move(request), std::move(sink));
  bool resting = !run_ && !plugin_error_.ok() && clock_.Steady() - plugin_ran_ < kPluginRest;
  if (resting || waiting_.size() >= options_.waiting_max) {
    Answer(*sink, resting ? plugin_error_
                          : Status(Code::kTooManyRequests,
                                   StrCat("more than ", options_.waiting_max,
                                          " requests are waiting for credentials")));
    return nullptr;
  }
  auto waiting = std::make_shared<Waiting>();
  waiting->request = std::move(request);
  waiting->sink = std::move(sink);
  waiting_.push_back(waiting);
  RunPlugin();
  return std::make_unique<WaitingCall>(std::move(waiting));
}

HttpTransport& ClusterTransport::LaneOf(const api::RestRequest& request) {
  if (lanes_.events && IsEventWrite(request)) return *lanes_.events;
  if (lanes_.leases && IsAboutLease(request)) return *lanes_.leases;
  return *lanes_.main;
}

std::unique_ptr<api::RestCall> ClusterTransport::Send(api::RestRequest request,
                                                      std::shared_ptr<api::RestSink> sink) {
  const bool doubts = !options_.trust_not_found && NamesResource(request.path);
  sink = std::make_shared<WatchfulSink>(*this, doubts, std::move(sink));
  HttpTransport& lane = LaneOf(request);
  return lane.Handle(std::move(request), std::move(sink));
}

void ClusterTransport::SetToken(const std::string& token) {
  if (token.empty() || token == access_.token) return;
  access_.token = token;
  lanes_.main->SetBearerToken(token);
  if (lanes_.events) lanes_.events->SetBearerToken(token);
  if (lanes_.leases) lanes_.leases->SetBearerToken(token);
}

void ClusterTransport::ReadTokenFile() {
  SteadyTime now = clock_.Steady();
  if (now - token_read_ < kTokenFileAge) return;
  token_read_ = now;
  auto token = ReadFile(access_.token_file, 1 << 20);
  if (token.ok()) return SetToken(std::string(Trim(*token)));
  SWELL_LOG_WARNING("cluster", "token file not read", {"error", token.status().ToString()});
}

bool ClusterTransport::NeedsCredential() const {
  return run_ || !have_credential_ || (expires_ && *expires_ - clock_.Now() < kExpiryMargin);
}

void ClusterTransport::RunPlugin() {
  if (run_) return;
  plugin_ran_ = clock_.Steady();
  run_ = ExecCredentialRun::Start(reactor_, access_, [this](Result<ExecCredential> result) {
    OnCredential(std::move(result));
  });
}

void ClusterTransport::OnCredential(Result<ExecCredential> result) {
  auto finished = std::move(run_);  // its callback is this one
  reactor_.Post([finished = std::shared_ptr<ExecCredentialRun>(std::move(finished))] {});
  plugin_error_ = result.ok() ? Status::Ok() : result.status();
  if (result.ok()) {
    ++generation_;
    have_credential_ = true;
    expires_ = result->expires;
    SetToken(result->token);
    if (!result->client_cert_pem.empty() && result->client_cert_pem != access_.client_cert_pem) {
      access_.client_cert_pem = std::move(result->client_cert_pem);
      access_.client_key_pem = std::move(result->client_key_pem);
      plugin_error_ = MakeLanes();
    }
  }
  for (const auto& waiting : std::exchange(waiting_, {})) {
    if (!waiting->sink) continue;
    std::shared_ptr<api::RestSink> sink = std::move(waiting->sink);
    if (!plugin_error_.ok()) {
      Answer(*sink, plugin_error_);
    } else {
      waiting->call = Send(std::move(waiting->request), std::move(sink));
    }
  }
}

void ClusterTransport::OnUnauthorized(uint64_t generation) {
  if (!access_.token_file.empty()) {
    token_read_ = SteadyTime();
    return;
  }
  if (!access_.exec || generation != generation_ || clock_.Steady() - plugin_ran_ < kPluginRest)
    return;
  have_credential_ = false;
}

}  // namespace swell::edge
