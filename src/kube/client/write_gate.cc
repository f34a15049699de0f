#include "kube/client/write_gate.h"

#include <deque>
#include <map>
#include <utility>

#include "base/strings.h"
#include "json/value.h"
#include "kube/api/meta/lease_term.h"

namespace swell::client {
namespace {

void Refuse(api::RestSink& sink, int code, std::string_view reason, std::string_view message) {
  json::Value status =
      json::Object{{"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", json::Object{}},
                   {"status", "Failure"}, {"message", message}, {"reason", reason},
                   {"code", code}};
  api::RestResponse response;
  response.status = code;
  response.body.push_back(api::MakeChunk(json::Print(status)));
  sink.OnResponse(std::move(response));
}

void RefuseFollower(api::RestSink& sink) {
  Refuse(sink, 429, "TooManyRequests", "this replica does not lead, and writes nothing");
}

bool PassesAlways(const api::RestRequest& request) {
  return request.method == "GET" || request.path.find("/events") != std::string::npos;
}

}  // namespace

struct WriteGate::Write {
  uint64_t number = 0;
  api::RestRequest request;
  std::string term;                     // in which it was asked for
  std::shared_ptr<api::RestSink> sink;  // null: answered or given up
  std::unique_ptr<api::RestCall> call;  // once it was sent
};

struct WriteGate::State : std::enable_shared_from_this<WriteGate::State> {
  void Pump();
  void Send(const std::shared_ptr<Write>& write);
  // It is answered or given up: the next may go.
  void End(const std::shared_ptr<Write>& write);

  std::shared_ptr<api::RestHandler> server;
  std::function<std::optional<std::string>()> term;
  size_t waiting_max = 0;
  size_t under_way_max = 0;
  std::deque<std::shared_ptr<Write>> waiting;
  std::map<uint64_t, std::shared_ptr<Write>> sent;  // by number
  uint64_t next = 0;
  bool pumping = false;
};

class WriteGate::Call final : public api::RestCall {
 public:
  Call(std::weak_ptr<State> state, std::shared_ptr<Write> write)
      : state_(std::move(state)), write_(std::move(write)) {}
  ~Call() override {
    write_->sink = nullptr;
    write_->call = nullptr;
    if (auto state = state_.lock()) state->End(write_);
  }

 private:
  std::weak_ptr<State> state_;
  std::shared_ptr<Write> write_;
};

class WriteGate::Sink final : public api::RestSink {
 public:
  Sink(std::weak_ptr<State> state, std::weak_ptr<Write> write)
      : state_(std::move(state)), write_(std::move(write)) {}

  void OnResponse(api::RestResponse response) override {
    if (auto sink = End()) sink->OnResponse(std::move(response));
  }
  void OnStreamStart(int status, std::string content_type) override {
    auto write = write_.lock();
    if (write && write->sink) write->sink->OnStreamStart(status, std::move(content_type));
  }
  bool OnChunk(const api::Chunk& chunk) override {
    auto write = write_.lock();
    return write && write->sink && write->sink->OnChunk(chunk);
  }
  void OnStreamEnd(const Status& why) override {
    if (auto sink = End()) sink->OnStreamEnd(why);
  }

 private:
  std::shared_ptr<api::RestSink> End() {
    auto write = write_.lock();
    if (!write) return nullptr;
    auto sink = std::exchange(write->sink, nullptr);
    if (auto state = state_.lock()) state->End(write);
    return sink;
  }

  std::weak_ptr<State> state_;
  std::weak_ptr<Write> write_;
};

void WriteGate::State::Send(const std::shared_ptr<Write>& write) {
  sent[write->number] = write;
  auto call =
      server->Handle(std::move(write->request), std::make_shared<Sink>(weak_from_this(), write));
  if (write->sink) write->call = std::move(call);
}

void WriteGate::State::Pump() {
  if (pumping) return;
  pumping = true;
  while (!waiting.empty() && sent.size() < under_way_max) {
    std::shared_ptr<Write> write = std::move(waiting.front());
    waiting.pop_front();
    if (!write->sink) continue;
    if (term() == write->term) {
      Send(write);
    } else {
      RefuseFollower(*std::exchange(write->sink, nullptr));
    }
  }
  pumping = false;
}

void WriteGate::State::End(const std::shared_ptr<Write>& write) {
  if (sent.erase(write->number) > 0) Pump();
}

WriteGate::WriteGate(std::shared_ptr<api::RestHandler> server,
                     std::function<std::optional<std::string>()> term,
                     size_t waiting_max,
                     size_t under_way_max)
    : state_(std::make_shared<State>()) {
  state_->server = std::move(server);
  state_->term = std::move(term);
  state_->waiting_max = waiting_max;
  state_->under_way_max = under_way_max;
}

WriteGate::~WriteGate() = default;

void WriteGate::Cut() {
  const auto waiting = std::exchange(state_->waiting, {});
  const auto sent = std::exchange(state_->sent, {});
  for (const std::shared_ptr<Write>& write : waiting) {
    if (auto sink = std::exchange(write->sink, nullptr)) RefuseFollower(*sink);
  }
  for (const auto& [number, write] : sent) {
    write->call = nullptr;
    auto sink = std::exchange(write->sink, nullptr);
    if (!sink) continue;
    Refuse(*sink, 503, "ServiceUnavailable", "this replica does not lead any more");
  }
}

size_t WriteGate::under_way() const { return state_->sent.size() + state_->waiting.size(); }

std::unique_ptr<api::RestCall> WriteGate::Handle(api::RestRequest request,
                                                 std::shared_ptr<api::RestSink> sink) {
  if (PassesAlways(request)) return state_->server->Handle(std::move(request), std::move(sink));
  const std::optional<std::string> term = state_->term();
  if (!term) {
    RefuseFollower(*sink);
    return nullptr;
  }
  if (state_->waiting.size() >= state_->waiting_max) {
    Refuse(*sink, 429, "TooManyRequests", "too many writes are waiting");
    return nullptr;
  }
  auto write = std::make_shared<Write>();
  write->number = state_->next++;
  write->request = std::move(request);
  write->term = *term;
  if (!term->empty()) {
    write->request.query += StrCat(write->request.query.empty() ? "" : "&",
                                   api::kLeaseTermParameter, "=", api::EscapeQuery(*term));
  }
  write->sink = std::move(sink);
  state_->waiting.push_back(write);
  state_->Pump();
  if (!write->sink) return nullptr;
  return std::make_unique<Call>(state_, std::move(write));
}

}  // namespace swell::client
