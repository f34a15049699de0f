#include "kube/cri/engine_stdio.h"

#include <memory>
#include <optional>
#include <utility>

#include "base/callback_scope.h"
#include "base/strings.h"
#include "kube/edge/http/net_duplex.h"
#include "kube/edge/streams/command_client.h"
#include "kube/edge/streams/spdy_connection.h"
#include "kube/edge/streams/upgrade.h"
#include "kube/net/http/client.h"

namespace swell::cri {
namespace {

constexpr size_t kStatusBytesMax = 64 << 10;

// Standard input and output as one stream; either may be missing.
class BothWays final : public api::DuplexStream {
 public:
  BothWays(Executor& executor, api::DuplexPtr in, api::DuplexPtr out)
      : executor_(executor), in_(std::move(in)), out_(std::move(out)) {}
  ~BothWays() override { CloseBoth(); }

  void Start(Callbacks callbacks) override {
    if (out_) return out_->Start(std::move(callbacks));
    executor_.Post([end = std::move(callbacks.on_end)] { end(Status::Ok()); });
  }
  void SetReading(bool on) override {
    if (out_) out_->SetReading(on);
  }
  bool Write(api::Chunk bytes) override { return in_ && in_->Write(std::move(bytes)); }
  size_t queued_bytes() const override { return in_ ? in_->queued_bytes() : 0; }
  void OnDrained(std::function<void()> callback) override {
    if (in_) in_->OnDrained(std::move(callback));
  }
  void CloseWrite() override {
    if (in_) in_->CloseWrite();
  }
  void Close() override { CloseBoth(); }

 private:
  void CloseBoth() {
    if (in_) in_->Close();
    if (out_) out_->Close();
  }

  Executor& executor_;
  api::DuplexPtr in_, out_;
};

class EngineStdio final : public node::StdioSession {
 public:
  explicit EngineStdio(net::Reactor& core) : core_(core) {}
  ~EngineStdio() override {
    scope_.Close();
    if (spdy_) spdy_->Close();
  }

  // `done` gets this session once the engine has agreed.
  static void Open(const std::shared_ptr<EngineStdio>& session,
                   const std::string& url,
                   const node::StdioSpec& spec,
                   const node::StdioCallback& done) {
    const size_t host_end = url.find('/', url.find("://") + 3);
    if (host_end == std::string::npos) {
      return done(Status(Code::kInternal, StrCat("the engine gave the address ", Quote(url))));
    }
    auto client = net::HttpClient::Make(session->core_, {.base_url = url.substr(0, host_end)});
    if (!client.ok()) return done(client.status());
    session->client_ = std::move(*client);
    net::HttpRequest request;
    request.method = "POST";
    request.target = url.substr(host_end);
    for (auto& [name, value] : edge::OfferSpdy({"v4.channel.k8s.io"})) {
      request.headers.push_back({std::move(name), std::move(value)});
    }
    session->client_->Upgrade(
        std::move(request), [session, spec, done](Result<net::HttpClient::UpgradeResult> result) {
          if (!result.ok()) return done(result.status());
          if (result->stream == nullptr) {
            return done(Status(Code::kInternal, StrCat("the engine refused the streams: ",
                                                       result->response.status)));
          }
          session->Begin(edge::MakeNetDuplex(session->core_, std::move(result->stream)), spec);
          done(std::shared_ptr<node::StdioSession>(session));
        });
  }

  const api::DuplexPtr& io() override { return io_; }
  const api::DuplexPtr& error() override { return error_; }
  void Resize(node::TerminalSize size) override {
    if (!resize_) return;
    resize_->Write(
        api::MakeChunk(StrCat("{\"Width\":", size.columns, ",\"Height\":", size.rows, "}\n")));
  }
  void OnExit(std::function<void(Result<int>)> done) override {
    if (exit_) return done(*exit_);
    on_exit_ = std::move(done);
  }

 private:
  void Begin(api::DuplexPtr wire, const node::StdioSpec& spec) {
    spdy_ = std::make_shared<edge::SpdyConnection>(edge::SpdyConnection::Role::kClient, core_,
                                                   std::move(wire));
    spdy_->Begin(scope_.Wrap([this](const Status& why) {
      End(status_text_.empty() ? Result<int>(why) : edge::ReadCommandStatus(status_text_));
    }));
    auto open = [this](std::string_view type) {
      return spdy_->Open({{"streamtype", std::string(type)}});
    };
    status_ = open("error");
    const api::DuplexPtr in = spec.input ? open("stdin") : nullptr;
    const api::DuplexPtr out = spec.output ? open("stdout") : nullptr;
    if (spec.error && !spec.tty) error_ = open("stderr");
    if (spec.tty) resize_ = open("resize");
    io_ = std::make_shared<BothWays>(core_, in, out);
    status_->Start({.on_data = scope_.Wrap([this](const api::Chunk& bytes) {
                      if (status_text_.size() < kStatusBytesMax) status_text_ += *bytes;
                    }),
                    .on_end = scope_.Wrap(
                        [this](const Status&) { End(edge::ReadCommandStatus(status_text_)); })});
  }

  void End(const Result<int>& code) {
    if (exit_) return;
    exit_ = code;
    if (auto told = std::exchange(on_exit_, nullptr)) told(code);
  }

  net::Reactor& core_;
  std::unique_ptr<net::HttpClient> client_;
  std::shared_ptr<edge::SpdyConnection> spdy_;
  api::DuplexPtr status_, io_, error_, resize_;
  std::string status_text_;
  std::optional<Result<int>> exit_;
  std::function<void(Result<int>)> on_exit_;
  CallbackScope scope_;
};

}  // namespace

void OpenEngineStdio(net::Reactor& core,
                     const std::string& url,
                     const node::StdioSpec& spec,
                     const node::StdioCallback& done) {
  EngineStdio::Open(std::make_shared<EngineStdio>(core), url, spec, done);
}

}  // namespace swell::cri
