#include "kube/edge/http/http_front.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fair_queue.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "kube/api/rest/sink_capabilities.h"
#include "kube/edge/http/net_duplex.h"

namespace swell::edge {
namespace {

constexpr std::string_view kBearer = "bearer ";

std::string HeaderOr(const net::Headers& headers, std::string_view name) {
  const std::string* value = net::FindHeader(headers, name);
  return value ? *value : std::string();
}

std::string BearerToken(const net::Headers& headers) {
  const std::string* value = net::FindHeader(headers, "Authorization");
  if (!value || value->size() <= kBearer.size()) return {};
  if (!net::EqualsIgnoreCase(std::string_view(*value).substr(0, kBearer.size()), kBearer)) {
    return {};
  }
  return std::string(Trim(std::string_view(*value).substr(kBearer.size())));
}

constexpr std::string_view kImpersonate = "Impersonate-";
constexpr std::string_view kImpersonateExtra = "Impersonate-Extra-";

// Keys of extras come as parts of header names, so they are %-escaped there.
std::string ExtraKey(std::string_view escaped) {
  auto pairs = api::ParseQuery(StrCat("k=", escaped));
  std::string key = pairs.ok() && pairs->size() == 1 ? (*pairs)[0].second : std::string(escaped);
  return ToLower(key);
}

api::UserInfo Impersonated(const net::Headers& headers) {
  api::UserInfo user;
  std::map<std::string, std::vector<std::string>> extra;
  for (const net::Header& header : headers) {
    std::string_view name = header.name;
    if (name.size() < kImpersonate.size() ||
        !net::EqualsIgnoreCase(name.substr(0, kImpersonate.size()), kImpersonate)) {
      continue;
    }
    if (net::EqualsIgnoreCase(name, "Impersonate-User")) {
      user.name = header.value;
    } else if (net::EqualsIgnoreCase(name, "Impersonate-Uid")) {
      user.uid = header.value;
    } else if (net::EqualsIgnoreCase(name, "Impersonate-Group")) {
      user.groups.push_back(header.value);
    } else if (name.size() > kImpersonateExtra.size() &&
               net::EqualsIgnoreCase(name.substr(0, kImpersonateExtra.size()), kImpersonateExtra)) {
      extra[ExtraKey(name.substr(kImpersonateExtra.size()))].push_back(header.value);
    }
  }
  user.extra.assign(extra.begin(), extra.end());
  return user;
}

// What an upgrade is about; empty for other requests.
api::HeaderList UpgradeHeaders(const net::Headers& headers) {
  api::HeaderList out;
  if (!net::HeaderHasToken(headers, "Connection", "upgrade")) return out;
  for (const net::Header& header : headers) {
    const std::string name = ToLower(header.name);
    if (name == "upgrade" || name == "x-stream-protocol-version" ||
        name.starts_with("sec-websocket-")) {
      out.emplace_back(header.name, header.value);
    }
  }
  return out;
}

api::RestRequest ToRest(net::HttpRequest& http) {
  api::RestRequest rest;
  rest.accept = HeaderOr(http.headers, "Accept");
  rest.content_type = HeaderOr(http.headers, "Content-Type");
  rest.user_agent = HeaderOr(http.headers, "User-Agent");
  rest.credentials.bearer_token = BearerToken(http.headers);
  rest.credentials.certificate_common_name = std::move(http.peer.common_name);
  rest.credentials.certificate_organizations = std::move(http.peer.organizations);
  rest.credentials.impersonate = Impersonated(http.headers);
  rest.upgrade = UpgradeHeaders(http.headers);
  rest.remote = std::move(http.peer.remote);
  rest.method = std::move(http.method);
  rest.path = std::move(http.path);
  rest.query = std::move(http.query);
  rest.body = std::move(http.body);
  return rest;
}

// What one of `parts` clients may have: at least 1.
size_t PartOf(size_t all, size_t parts) {
  return std::max<size_t>(1, all / std::max<size_t>(1, parts));
}

net::HttpResponse TooBusy(bool client) {
  auto response = net::StatusResponse(Status(
      Code::kTooManyRequests, client ? "you have too many requests under way; try again"
                                     : "the server has too many requests under way; try again"));
  response.headers.push_back({"Retry-After", "1"});
  return response;
}

// Bodies reach handlers as they are, so an encoding nobody undoes must not get through.
bool HasForeignEncoding(const net::HttpRequest& request) {
  const std::string* encoding = net::FindHeader(request.headers, "Content-Encoding");
  return encoding && !encoding->empty() && !net::EqualsIgnoreCase(*encoding, "identity");
}

}  // namespace

// Shared with what is queued, so that whatever runs late finds it alive and closed.
class HttpFront::State : public std::enable_shared_from_this<State> {
 public:
  State(Executor& core, api::RestHandler& rest, HttpFrontConfig config)
      : core_(core),
        config_(config),
        client_max_(PartOf(config.in_flight_max, config.client_part)),
        queue_(config.queued_max, PartOf(config.queued_max, config.client_part)),
        rest_(&rest) {}

  enum class Entry { kTaken, kFull, kClientFull };
  // Any thread. Takes one place of the bounds, where there is one.
  Entry Enter(const std::string& client) {
    MutexLock lock(mutex_);
    if (stats_.in_flight.load() >= config_.in_flight_max) return Entry::kFull;
    size_t& its_own = in_flight_[client];
    if (its_own >= client_max_) return Entry::kClientFull;
    ++its_own;
    stats_.in_flight.fetch_add(1);
    return Entry::kTaken;
  }
  void Leave(const std::string& client) {
    MutexLock lock(mutex_);
    const auto found = in_flight_.find(client);
    if (--found->second == 0) in_flight_.erase(found);
    stats_.in_flight.fetch_sub(1);
  }

  // Any thread. False when the queue is full.
  bool Enqueue(std::shared_ptr<Sink> sink);
  // Core thread: what is left of a call's answer, before all else that its client waits for.
  void EnqueueRest(std::shared_ptr<Sink> sink, std::function<void()> rest);

  void Close();
  // Core thread: the call is answered. Its RestCall may be what is calling us: it dies later.
  void Finished(uint64_t id);

  HttpFrontStats& stats() { return stats_; }
  Executor& core() { return core_; }

 private:
  struct Turn {
    std::shared_ptr<Sink> sink;
    std::function<void()> rest;  // null: of a request that comes to its handler now
  };

  void Wake() {
    core_.Post([self = shared_from_this()] { self->RunBatch(); });
  }
  void RunBatch();
  void TakeTurn(const Turn& turn);
  void Start(const std::shared_ptr<Sink>& sink);
  void Abandon(uint64_t id);

  Executor& core_;
  const HttpFrontConfig config_;
  const size_t client_max_;  // requests under way of one client
  HttpFrontStats stats_;

  RealClock clock_;
  Mutex mutex_;
  FairQueue<Turn> queue_ SWELL_GUARDED_BY(mutex_);
  std::map<std::string, size_t> in_flight_ SWELL_GUARDED_BY(mutex_);  // by client
  bool awake_ SWELL_GUARDED_BY(mutex_) = false;

  // Core thread only.
  api::RestHandler* rest_;  // null once closed
  uint64_t next_id_ = 1;
  std::map<uint64_t, std::unique_ptr<api::RestCall>> calls_;
  std::vector<std::unique_ptr<api::RestCall>> finished_;
  bool sweeping_ = false;
};

// One request from arrival to answer; holds its place in the bound for as long as it lives.
class HttpFront::Sink final : public api::RestSink,
                              public api::TurnSink,
                              public api::PacedSink,
                              public std::enable_shared_from_this<Sink> {
 public:
  Sink(std::shared_ptr<State> state, std::shared_ptr<net::Exchange> exchange, std::string client)
      : state_(std::move(state)),
        exchange_(std::move(exchange)),
        client_(std::move(client)),
        program_(HeaderOr(exchange_->request().headers, "User-Agent")) {}
  ~Sink() override { state_->Leave(client_); }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  api::SinkCapabilities capabilities() override { return {.turns = this, .paced = this}; }
  void OnResponse(api::RestResponse response) override {
    net::HttpResponse http;
    http.status = response.status;
    http.headers = TakeHeaders(response);
    http.body = std::move(response.body);
    exchange_->Respond(std::move(http));
    Finish();
  }
  void OnLongResponse(api::RestResponse head) override {
    exchange_->StartStream(head.status, TakeHeaders(head));
  }
  void OnStreamStart(int status, std::string content_type) override {
    net::Headers headers;
    if (!content_type.empty()) headers.push_back({"Content-Type", std::move(content_type)});
    headers.push_back({"Cache-Control", "no-cache, private"});
    exchange_->StartStream(status, std::move(headers));
  }
  bool OnChunk(const api::Chunk& chunk) override { return exchange_->Write(chunk); }
  void OnStreamEnd(const Status& why) override {
    // A cut connection is how HTTP says that more should have come.
    if (why.ok()) {
      exchange_->EndStream();
    } else {
      exchange_->Abort();
    }
    Finish();
  }
  api::DuplexPtr OnUpgrade(api::HeaderList headers) override {
    net::Headers http;
    for (auto& [name, value] : headers) http.push_back({std::move(name), std::move(value)});
    auto stream = MakeNetDuplex(state_->core(), exchange_->Upgrade(std::move(http)));
    Finish();
    return stream;
  }

  void InTurn(std::function<void()> rest) override {
    state_->EnqueueRest(shared_from_this(), std::move(rest));
  }

  bool HasRoom() const override { return exchange_->HasRoom(); }
  void WhenRoom(std::function<void()> go_on) override {
    exchange_->OnDrained(std::move(go_on), state_->core());
  }

  net::Exchange& exchange() const { return *exchange_; }
  const std::string& client() const { return client_; }
  const std::string& program() const { return program_; }
  bool finished() const { return finished_; }
  void set_id(uint64_t id) { id_ = id; }

 private:
  static net::Headers TakeHeaders(api::RestResponse& response) {
    net::Headers headers;
    headers.reserve(response.headers.size() + 1);
    if (!response.content_type.empty()) {
      headers.push_back({"Content-Type", std::move(response.content_type)});
    }
    for (auto& [name, value] : response.headers) {
      headers.push_back({std::move(name), std::move(value)});
    }
    return headers;
  }
  void Finish() {
    finished_ = true;
    if (id_ != 0) state_->Finished(id_);
  }

  std::shared_ptr<State> state_;
  std::shared_ptr<net::Exchange> exchange_;
  const std::string client_;
  const std::string program_;
  uint64_t id_ = 0;
  bool finished_ = false;
};

bool HttpFront::State::Enqueue(std::shared_ptr<Sink> sink) {
  const Sink& whose = *sink;
  bool wake = false;
  {
    MutexLock lock(mutex_);
    if (!queue_.Push(whose.client(), whose.program(), {std::move(sink), nullptr})) return false;
    wake = !std::exchange(awake_, true);
  }
  if (wake) Wake();
  return true;
}

void HttpFront::State::EnqueueRest(std::shared_ptr<Sink> sink, std::function<void()> rest) {
  const Sink& whose = *sink;
  bool wake = false;
  {
    MutexLock lock(mutex_);
    queue_.PushRest(whose.client(), whose.program(), {std::move(sink), std::move(rest)});
    wake = !std::exchange(awake_, true);
  }
  if (wake) Wake();
}

// Runs one request after the other, so that new requests need not wait for the whole batch.
void HttpFront::State::RunBatch() {
  std::string charged;
  Duration cost{0};
  bool more = false;
  SteadyTime now = clock_.Steady();
  const SteadyTime end = now + config_.batch_for;
  for (size_t i = 0;; ++i) {
    std::optional<std::pair<std::string, Turn>> next;
    {
      MutexLock lock(mutex_);
      if (!charged.empty()) queue_.Charge(charged, cost);
      if (i == config_.batch_max || now >= end || queue_.empty()) {
        awake_ = more = !queue_.empty();
        break;
      }
      next = queue_.Pop();
    }
    const SteadyTime began = now;
    TakeTurn(next->second);
    next->second = {};  // what dies with it is its own
    now = clock_.Steady();
    cost = now - began;
    charged = std::move(next->first);
  }
  if (more) Wake();
}

void HttpFront::State::TakeTurn(const Turn& turn) {
  if (turn.rest == nullptr) return Start(turn.sink);
  if (rest_ != nullptr) turn.rest();
}

void HttpFront::State::Start(const std::shared_ptr<Sink>& sink) {
  if (rest_ == nullptr) {
    sink->exchange().Respond(
        net::StatusResponse(Status(Code::kUnavailable, "the server is shutting down")));
    return;
  }
  auto call = rest_->Handle(ToRest(sink->exchange().mutable_request()), sink);
  if (sink->finished() || !call) return;
  uint64_t id = next_id_++;
  sink->set_id(id);
  calls_.emplace(id, std::move(call));
  sink->exchange().OnClose([self = shared_from_this(), id] { self->Abandon(id); }, core_);
}

void HttpFront::State::Finished(uint64_t id) {
  auto node = calls_.extract(id);
  if (node.empty()) return;
  finished_.push_back(std::move(node.mapped()));
  if (std::exchange(sweeping_, true)) return;
  core_.Post([self = shared_from_this()] {
    self->sweeping_ = false;
    std::vector<std::unique_ptr<api::RestCall>> dead = std::move(self->finished_);
    self->finished_.clear();
  });
}

void HttpFront::State::Abandon(uint64_t id) {
  auto node = calls_.extract(id);
  if (!node.empty()) stats_.abandoned.fetch_add(1);
}

void HttpFront::State::Close() {
  rest_ = nullptr;
  std::vector<Turn> waiting;
  {
    MutexLock lock(mutex_);
    while (auto next = queue_.Pop()) waiting.push_back(std::move(next->second));
  }
  for (const Turn& turn : waiting) TakeTurn(turn);
  waiting.clear();
  auto calls = std::move(calls_);
  calls_.clear();
  calls.clear();
  finished_.clear();
}

HttpFront::HttpFront(Executor& core, api::RestHandler& rest, HttpFrontConfig config)
    : state_(std::make_shared<State>(core, rest, config)) {}

HttpFront::~HttpFront() { Close(); }

void HttpFront::Close() { state_->Close(); }

const HttpFrontStats& HttpFront::stats() const { return state_->stats(); }

void HttpFront::OnRequest(std::shared_ptr<net::Exchange> exchange) {
  state_->stats().requests.fetch_add(1);
  if (HasForeignEncoding(exchange->request())) {
    exchange->Respond(net::StatusResponse(Status(
        Code::kUnsupportedMediaType,
        StrCat("Content-Encoding: ", HeaderOr(exchange->request().headers, "Content-Encoding"),
               ": only plain request bodies are accepted"))));
    return;
  }
  std::string client = exchange->request().client;
  const State::Entry entry = state_->Enter(client);
  auto refuse = [&](bool client_full) {
    state_->stats().refused.fetch_add(1);
    if (client_full) state_->stats().refused_clients.fetch_add(1);
    exchange->Respond(TooBusy(client_full));
  };
  if (entry != State::Entry::kTaken) return refuse(entry == State::Entry::kClientFull);
  auto sink = std::make_shared<Sink>(state_, exchange, std::move(client));
  if (!state_->Enqueue(sink)) refuse(true);
}

}  // namespace swell::edge
