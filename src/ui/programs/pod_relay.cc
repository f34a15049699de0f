#include "ui/programs/pod_relay.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/callback_scope.h"
#include "base/strings.h"
#include "base/timer.h"
#include "json/value.h"
#include "kube/client/client.h"
#include "kube/edge/streams/command_client.h"
#include "kube/net/http/http1_codec.h"
#include "ui/state/as_user.h"

namespace swell::ui {
namespace {

constexpr int kFirstFinal = 200;
constexpr int kBadGateway = 502;
constexpr int kGatewayTimeout = 504;

struct PodPort {
  std::string pod;
  uint16_t port = 0;
};

// A ready pod of the Service, by its Endpoints.
std::optional<PodPort> ReadyPod(const json::Value& endpoints) {
  for (const json::Value& subset : json::GetArray(endpoints, {"subsets"})) {
    const json::Array& ports = json::GetArray(subset, {"ports"});
    for (const json::Value& address : json::GetArray(subset, {"addresses"})) {
      const std::string_view pod = json::GetString(address, {"targetRef", "name"});
      if (pod.empty() || ports.empty()) continue;
      const int64_t port = json::GetInt(ports[0], {"port"});
      if (port > 0 && port <= UINT16_MAX) return {{std::string(pod), static_cast<uint16_t>(port)}};
    }
  }
  return std::nullopt;
}

}  // namespace

struct PodRelay::State {
  State(Executor& core_executor, std::shared_ptr<api::RestHandler> api_server)
      : core(core_executor), server(std::move(api_server)) {}

  void Begin(const std::shared_ptr<State>& self,
             std::shared_ptr<net::Exchange> exchange,
             RelayTarget target);

  Executor& core;
  std::shared_ptr<api::RestHandler> server;
  std::set<std::shared_ptr<Call>> calls;  // core thread
};

// One request from here to its answer. Its callbacks may come from its own parts, so it dies by a
// post.
class PodRelay::Call final : public std::enable_shared_from_this<Call> {
 public:
  Call(State& state, std::shared_ptr<net::Exchange> exchange, RelayTarget target)
      : core_(state.core),
        target_(std::move(target)),
        exchange_(std::move(exchange)),
        server_(MakeAsUser(state.server, target_.credentials)),
        client_(core_, server_, {}, "swell-pages"),
        timer_(core_) {}
  ~Call() {
    if (stream_) stream_->Close();
  }

  const std::string& session() const { return target_.session; }

  // `ended` runs once.
  void Start(std::function<void()> ended) {
    ended_ = std::move(ended);
    const net::HttpRequest to = ToProgram(exchange_->mutable_request(), target_.place);
    const Status made =
        net::AppendRequest(&request_, to, to.target, target_.place.authority, {}, false);
    if (!made.ok()) return Fail(made);
    parser_.Start(to.method);
    exchange_->OnClose(scope_.Wrap([this] { End(); }), core_);
    timer_.Start(kHeadWithin,
                 [this] { Refuse(kGatewayTimeout, StrCat(Where(), " takes too long to answer")); });
    client_.Get(client::resources::kEndpoints, target_.ns, target_.service,
                scope_.Wrap([this](const Result<json::SharedValue>& found) {
                  if (!found.ok()) return Fail(found.status());
                  const auto pod = ReadyPod(**found);
                  if (!pod)
                    return Refuse(kBadGateway, StrCat(Where(), " has no pod that is ready"));
                  Dial(*pod);
                }));
  }

  // The session is over.
  void Cut() { Refuse(HttpStatus(Code::kUnauthorized), "the session is over"); }

 private:
  std::string Where() const { return StrCat("Service ", target_.ns, "/", target_.service); }

  void Dial(const PodPort& to) {
    edge::PortForwardEvents events;
    events.on_open = scope_.Wrap([this, port = to.port] { Send(port); });
    events.on_error = scope_.Wrap([this](uint16_t port, const std::string& why) {
      Refuse(kBadGateway, StrCat(Where(), ", port ", port, ": ", why));
    });
    events.on_end = scope_.Wrap([this](const Status& why) {
      if (stream_ == nullptr) return Fail(why.ok() ? Broken("broke off") : why);
      if (!why.ok()) OnEnd(why);
    });
    forward_ = edge::StartPortForward(core_, server_, {}, target_.ns, to.pod, std::move(events));
  }

  void Send(uint16_t port) {
    auto [ours, theirs] = api::MakePipe(core_);
    stream_ = ours;
    stream_->Start({.on_data = scope_.Wrap([this](const api::Chunk& bytes) { OnData(*bytes); }),
                    .on_end = scope_.Wrap([this](const Status& why) { OnEnd(why); })});
    forward_->Forward(port, theirs);
    stream_->Write(api::MakeChunk(std::exchange(request_, {})));
  }

  // Bytes that the parser leaves come again with those behind them.
  void OnData(const std::string& bytes) {
    rest_ += bytes;
    size_t at = 0;
    while (!over_) {
      const auto step = parser_.Parse(std::string_view(rest_).substr(at));
      at += step.consumed;
      using Kind = net::ResponseParser::Result;
      if (step.result == Kind::kNeedMore) break;
      if (step.result == Kind::kError) return Fail(Broken(parser_.error()));
      if (step.result == Kind::kHead && !TakeHead()) return;
      if (step.result == Kind::kData && !exchange_->Write(net::MakeChunk(std::string(step.data)))) {
        return End();
      }
      if (step.result == Kind::kDone) return Finish();
    }
    rest_.erase(0, at);
    if (begun_) HoldBack();
  }

  // False: it cannot be passed on.
  bool TakeHead() {
    const int status = parser_.status();
    if (status < kFirstFinal) {
      Fail(Broken(StrCat("answered ", status, ", which nobody asked for")));
      return false;
    }
    begun_ = true;
    if (exchange_->StartStream(status, FromProgram(parser_.headers(), target_.place))) return true;
    End();
    return false;
  }

  // Reads no more than the browser takes.
  void HoldBack() {
    if (exchange_->HasRoom()) {
      timer_.Start(kSilenceMost, [this] { Fail(Broken("says nothing more")); });
      return;
    }
    timer_.Cancel();  // the server's port watches a browser that reads nothing
    stream_->SetReading(false);
    exchange_->OnDrained(scope_.Wrap([this] {
      if (over_) return;
      stream_->SetReading(true);
      HoldBack();
    }),
                         core_);
  }

  void OnEnd(const Status& why) {
    if (over_) return;
    if (parser_.FinishAtClose()) return Finish();
    Fail(Broken(why.ok() ? "broke off" : why.message()));
  }

  Status Broken(std::string_view what) const {
    return Status(Code::kUnavailable, StrCat(Where(), ": its pod ", what));
  }

  void Fail(const Status& why) {
    const bool own = why.code() == Code::kForbidden || why.code() == Code::kUnauthorized ||
                     why.code() == Code::kNotFound || why.code() == Code::kTooManyRequests;
    Refuse(own ? HttpStatus(why.code()) : kBadGateway, why.message());
  }

  // Before the answer has begun it is this; later it is cut.
  void Refuse(int status, std::string_view message) {
    if (over_) return;
    if (begun_) {
      exchange_->Abort();
    } else {
      exchange_->Respond(ProgramText(status, message));
    }
    End();
  }

  void Finish() {
    if (over_) return;
    exchange_->EndStream();
    End();
  }

  void End() {
    if (std::exchange(over_, true)) return;
    timer_.Cancel();
    core_.Post(std::exchange(ended_, nullptr));
  }

  Executor& core_;
  const RelayTarget target_;
  const std::shared_ptr<net::Exchange> exchange_;
  std::shared_ptr<api::RestHandler> server_;
  client::Client client_;
  std::string request_;  // until it is sent
  std::string rest_;     // of what has come and was not parsed yet
  net::ResponseParser parser_{net::CodecLimits{}};
  std::unique_ptr<edge::PortForwardClient> forward_;
  api::DuplexPtr stream_;
  bool begun_ = false;  // the head of the answer has gone out
  bool over_ = false;
  std::function<void()> ended_;
  Timer timer_;
  CallbackScope scope_;
};

void PodRelay::State::Begin(const std::shared_ptr<State>& self,
                            std::shared_ptr<net::Exchange> exchange,
                            RelayTarget target) {
  const auto own = std::count_if(calls.begin(), calls.end(), [&target](const auto& one) {
    return one->session() == target.session;
  });
  if (calls.size() >= kCallsMax || static_cast<size_t>(own) >= kCallsPerSession) {
    return exchange->Respond(ProgramText(HttpStatus(Code::kTooManyRequests),
                                         "too many requests to programs of pods are under way"));
  }
  auto call = std::make_shared<Call>(*this, std::move(exchange), std::move(target));
  calls.insert(call);
  call->Start([weak_state = std::weak_ptr(self), weak = std::weak_ptr(call)] {
    if (auto state = weak_state.lock()) state->calls.erase(weak.lock());
  });
}

PodRelay::PodRelay(Executor& core, std::shared_ptr<api::RestHandler> server)
    : state_(std::make_shared<State>(core, std::move(server))) {}

PodRelay::~PodRelay() = default;

void PodRelay::Carry(std::shared_ptr<net::Exchange> exchange, RelayTarget target) {
  state_->core.Post([weak = std::weak_ptr(state_), exchange = std::move(exchange),
                     target = std::move(target)]() mutable {
    if (auto state = weak.lock()) state->Begin(state, std::move(exchange), std::move(target));
  });
}

void PodRelay::EndSession(const std::string& session) {
  state_->core.Post([weak = std::weak_ptr(state_), session] {
    auto state = weak.lock();
    if (!state) return;
    for (const auto& call : state->calls) {
      if (call->session() == session) call->Cut();
    }
  });
}

}  // namespace swell::ui
