#include "kube/edge/streams/command_client.h"

#include <utility>

#include "base/callback_scope.h"
#include "base/strings.h"
#include "json/value.h"
#include "kube/client/client.h"
#include "kube/edge/streams/spdy_connection.h"
#include "kube/edge/streams/upgrade.h"

namespace swell::edge {
namespace {

// What a client may be told in an error stream.
constexpr size_t kErrorBytesMax = 64 << 10;

// Turns a request into an upgraded connection, or the reason why not.
class Upgrading final : public api::RestSink {
 public:
  using Done = std::function<void(Result<api::DuplexPtr>)>;
  Upgrading(Executor& executor, Done done) : executor_(executor), done_(std::move(done)) {}

  void Forget() { done_ = nullptr; }

  void OnResponse(api::RestResponse response) override {
    Tell(client::StatusFromResponse(response.status, response.BodyString()));
  }
  void OnStreamStart(int, std::string) override {}
  bool OnChunk(const api::Chunk&) override { return false; }
  void OnStreamEnd(const Status&) override {
    Tell(Status(Code::kInternal, "the server answered without upgrading the connection"));
  }
  api::DuplexPtr OnUpgrade(api::HeaderList) override {
    auto [ours, theirs] = api::MakePipe(executor_);
    Tell(std::move(ours));
    return theirs;
  }

 private:
  void Tell(Result<api::DuplexPtr> result) {
    auto done = std::exchange(done_, nullptr);
    if (!done) return;
    // Never from inside the call that asked.
    executor_.Post([done = std::move(done), result = std::move(result)] { done(result); });
  }

  Executor& executor_;
  Done done_;
};

api::RestRequest UpgradeRequest(const api::UserInfo& user,
                                const std::string& ns,
                                const std::string& pod,
                                std::string_view subresource,
                                std::string query,
                                const std::vector<std::string>& protocols) {
  return {.method = "POST",
          .path = client::resources::kPods.Path(ns, pod, subresource),
          .query = std::move(query),
          .accept = "*/*",
          .user = user,
          .upgrade = OfferSpdy(protocols)};
}

std::string CommandQuery(const CommandOptions& options) {
  std::string query = StrCat("container=", api::EscapeQuery(options.container));
  for (const std::string& word : options.command) {
    query += StrCat("&command=", api::EscapeQuery(word));
  }
  if (options.input) query += "&stdin=true";
  if (options.output) query += "&stdout=true";
  if (options.error && !options.tty) query += "&stderr=true";
  if (options.tty) query += "&tty=true";
  return query;
}

class SpdyCommand final : public CommandClient {
 public:
  SpdyCommand(Executor& executor, CommandOptions options, CommandEvents events)
      : executor_(executor), options_(std::move(options)), events_(std::move(events)) {}
  ~SpdyCommand() override {
    if (sink_) sink_->Forget();
    call_.reset();
    scope_.Close();
    if (spdy_) spdy_->Close();
  }

  void Start(api::RestHandler& server, const api::UserInfo& user) {
    sink_ = std::make_shared<Upgrading>(
        executor_, scope_.Wrap([this](Result<api::DuplexPtr> wire) { OnWire(std::move(wire)); }));
    call_ = server.Handle(UpgradeRequest(user, options_.ns, options_.pod,
                                         options_.command.empty() ? "attach" : "exec",
                                         CommandQuery(options_), {"v4.channel.k8s.io"}),
                          sink_);
  }

  bool Write(api::Chunk bytes) override {
    if (over_) return false;
    if (!input_) {
      early_.push_back(std::move(bytes));
      return true;
    }
    return input_->Write(std::move(bytes));
  }
  size_t queued_bytes() const override {
    size_t size = input_ ? input_->queued_bytes() : 0;
    for (const api::Chunk& chunk : early_) size += chunk->size();
    return size;
  }
  void OnDrained(std::function<void()> callback) override {
    if (input_) return input_->OnDrained(std::move(callback));
    drained_.push_back(std::move(callback));
  }
  void CloseInput() override {
    input_closed_ = true;
    if (input_) input_->CloseWrite();
  }
  void Resize(uint16_t columns, uint16_t rows) override {
    size_ = StrCat("{\"Width\":", columns, ",\"Height\":", rows, "}\n");
    if (resize_) resize_->Write(api::MakeChunk(size_));
  }

 private:
  void OnWire(Result<api::DuplexPtr> wire) {
    if (!wire.ok()) return Exit(wire.status());
    spdy_ = std::make_shared<SpdyConnection>(SpdyConnection::Role::kClient, executor_,
                                             std::move(*wire));
    spdy_->Begin(scope_.Wrap([this](const Status& why) {
      Exit(status_text_.empty() ? Result<int>(why) : ReadCommandStatus(status_text_));
    }));
    status_ = Open("error");
    if (options_.input) input_ = Open("stdin");
    if (options_.output) Read(output_ = Open("stdout"), false);
    if (options_.error && !options_.tty) Read(error_ = Open("stderr"), true);
    if (options_.tty) resize_ = Open("resize");
    status_->Start({.on_data = scope_.Wrap([this](const api::Chunk& bytes) {
                      if (status_text_.size() < kErrorBytesMax) {
                        status_text_ += *bytes;
                      }
                    }),
                    .on_end = scope_.Wrap([this](const Status&) { EndOne(); })});
    ++open_;
    if (resize_ && !size_.empty()) resize_->Write(api::MakeChunk(size_));
    for (api::Chunk& chunk : std::exchange(early_, {})) {
      if (input_) input_->Write(std::move(chunk));
    }
    if (input_ && input_closed_) input_->CloseWrite();
    if (events_.on_open) events_.on_open();
    for (auto& fn : std::exchange(drained_, {})) fn();
  }

  api::DuplexPtr Open(std::string_view type) {
    return spdy_->Open({{"streamtype", std::string(type)}});
  }
  void Read(const api::DuplexPtr& stream, bool error) {
    ++open_;
    stream->Start({.on_data = scope_.Wrap(
                       [this, error](const api::Chunk& bytes) { events_.on_output(error, bytes); }),
                   .on_end = scope_.Wrap([this](const Status&) { EndOne(); })});
  }
  // The status may come before the last of the output.
  void EndOne() {
    if (--open_ == 0) Exit(ReadCommandStatus(status_text_));
  }
  void Exit(const Result<int>& code) {
    if (std::exchange(over_, true)) return;
    auto on_exit = std::move(events_.on_exit);
    if (on_exit) on_exit(code);
  }

  Executor& executor_;
  const CommandOptions options_;
  CommandEvents events_;
  std::shared_ptr<Upgrading> sink_;
  std::unique_ptr<api::RestCall> call_;
  std::shared_ptr<SpdyConnection> spdy_;
  api::DuplexPtr status_, input_, output_, error_, resize_;
  int open_ = 0;
  std::vector<api::Chunk> early_;  // input written before the connection was there
  std::vector<std::function<void()>> drained_;
  bool input_closed_ = false;
  std::string size_;
  std::string status_text_;
  bool over_ = false;
  CallbackScope scope_;
};

class SpdyPortForward final : public PortForwardClient {
 public:
  SpdyPortForward(Executor& executor, PortForwardEvents events)
      : executor_(executor), events_(std::move(events)) {}
  ~SpdyPortForward() override {
    if (sink_) sink_->Forget();
    call_.reset();
    scope_.Close();
    if (spdy_) spdy_->Close();
  }

  void Start(api::RestHandler& server,
             const api::UserInfo& user,
             const std::string& ns,
             const std::string& pod) {
    sink_ = std::make_shared<Upgrading>(
        executor_, scope_.Wrap([this](Result<api::DuplexPtr> wire) { OnWire(std::move(wire)); }));
    call_ = server.Handle(UpgradeRequest(user, ns, pod, "portforward", "", {"portforward.k8s.io"}),
                          sink_);
  }

  void Forward(uint16_t port, api::DuplexPtr connection) override {
    const std::string id = std::to_string(next_request_++);
    auto open = [&](const char* type) -> api::DuplexPtr {
      if (!spdy_) return nullptr;
      return spdy_->Open({{"streamtype", type}, {"port", std::to_string(port)}, {"requestid", id}});
    };
    const api::DuplexPtr error = open("error");
    const api::DuplexPtr data = error ? open("data") : nullptr;
    if (!data) {
      events_.on_error(port, "too many connections at once");
      return connection->Close();
    }
    error->CloseWrite();
    auto text = std::make_shared<std::string>();
    error->Start({.on_data =
                      [text](const api::Chunk& bytes) {
                        if (text->size() < kErrorBytesMax) *text += *bytes;
                      },
                  .on_end = scope_.Wrap([this, text, port, error](const Status&) {
                    if (!text->empty()) events_.on_error(port, *text);
                  })});
    api::Splice(connection, data);
  }

 private:
  void OnWire(Result<api::DuplexPtr> wire) {
    if (!wire.ok()) return events_.on_end(wire.status());
    spdy_ = std::make_shared<SpdyConnection>(SpdyConnection::Role::kClient, executor_,
                                             std::move(*wire));
    spdy_->Begin(scope_.Wrap([this](const Status& why) { events_.on_end(why); }));
    events_.on_open();
  }

  Executor& executor_;
  const PortForwardEvents events_;
  std::shared_ptr<Upgrading> sink_;
  std::unique_ptr<api::RestCall> call_;
  std::shared_ptr<SpdyConnection> spdy_;
  uint64_t next_request_ = 0;
  CallbackScope scope_;
};

}  // namespace

Result<int> ReadCommandStatus(const std::string& text) {
  auto status = json::Parse(text);
  if (!status.ok()) {
    return Status(Code::kInternal, text.empty() ? "the connection broke off" : text);
  }
  if (json::GetString(*status, {"status"}) == "Success") return 0;
  if (json::GetString(*status, {"reason"}) == "NonZeroExitCode") {
    for (const json::Value& cause : json::GetArray(*status, {"details", "causes"})) {
      if (json::GetString(cause, {"reason"}) != "ExitCode") continue;
      if (auto code = ParseInt(json::GetString(cause, {"message"}))) return static_cast<int>(*code);
    }
  }
  return Status(Code::kInternal, std::string(json::GetString(*status, {"message"}, text)));
}

std::unique_ptr<CommandClient> StartCommand(Executor& executor,
                                            std::shared_ptr<api::RestHandler> server,
                                            const api::UserInfo& user,
                                            const CommandOptions& options,
                                            CommandEvents events) {
  auto command = std::make_unique<SpdyCommand>(executor, options, std::move(events));
  command->Start(*server, user);
  return command;
}

std::unique_ptr<PortForwardClient> StartPortForward(Executor& executor,
                                                    std::shared_ptr<api::RestHandler> server,
                                                    const api::UserInfo& user,
                                                    const std::string& ns,
                                                    const std::string& pod,
                                                    PortForwardEvents events) {
  auto forward = std::make_unique<SpdyPortForward>(executor, std::move(events));
  forward->Start(*server, user, ns, pod);
  return forward;
}

}  // namespace swell::edge
