#include "kube/edge/streams/command_server.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "json/value.h"
#include "kube/edge/streams/spdy_connection.h"
#include "kube/edge/streams/websocket_connection.h"

namespace swell::edge {
namespace {

constexpr Duration kStreamCreationTimeout = std::chrono::seconds(30);
constexpr size_t kResizeBytesMax = 256;
enum Channel : uint8_t { kInput = 0, kOutput = 1, kErrorOutput = 2, kStatus = 3, kResize = 4 };
constexpr std::string_view kStreamTypes[] = {"stdin", "stdout", "stderr", "error", "resize"};

// The last word on a command, as remotecommand v4 carries it.
std::string StatusJson(const Result<int>& code, bool attached, const std::string& command) {
  json::Object status{{"metadata", json::Object()}};
  if (code.ok() && *code == 0) {
    status["status"] = "Success";
    return json::Print(status);
  }
  status["status"] = "Failure";
  if (code.ok()) {
    status["message"] =
        StrCat("command terminated with non-zero exit code: error executing command ", command,
               ", exit code ", *code);
    status["reason"] = "NonZeroExitCode";
    status["details"] = json::Object{
        {"causes",
         json::Array{json::Object{{"reason", "ExitCode"}, {"message", std::to_string(*code)}}}}};
    return json::Print(status);
  }
  const std::string what =
      StrCat(attached ? "error attaching to container: " : "error executing command in container: ",
             code.status().message());
  status["message"] = StrCat("Internal error occurred: ", what);
  status["reason"] = "InternalError";
  status["details"] = json::Object{{"causes", json::Array{json::Object{{"message", what}}}}};
  status["code"] = 500;
  return json::Print(status);
}

class CommandServer : public std::enable_shared_from_this<CommandServer> {
 public:
  CommandServer(Executor& executor, std::string protocol, CommandRequest request)
      : executor_(executor), protocol_(std::move(protocol)), request_(std::move(request)) {}

  void ServeSpdy(api::DuplexPtr wire) {
    auto spdy =
        std::make_shared<SpdyConnection>(SpdyConnection::Role::kServer, executor_, std::move(wire));
    mux_ = spdy;
    // One for the error stream, which every version has.
    expected_ = 1 + (request_.spec.input ? 1 : 0) + (request_.spec.output ? 1 : 0) +
                (request_.spec.error ? 1 : 0) + (request_.spec.tty && Resizes() ? 1 : 0);
    spdy->OnOpened([weak = weak_from_this()](SpdyConnection::Accepted accepted) {
      if (auto self = weak.lock()) self->TakeStream(std::move(accepted));
    });
    timer_ = executor_.After(kStreamCreationTimeout, [weak = weak_from_this()] {
      auto self = weak.lock();
      if (!self) return;
      self->timer_ = kNoTimer;
      SWELL_LOG_DEBUG("kubelet", "a client did not create its streams in time");
      self->Leave();
    });
    Begin();
  }

  void ServeWebSocket(api::DuplexPtr wire) {
    const bool base64 = protocol_.find("base64") != std::string::npos;
    auto channels = std::make_shared<WebSocketChannels>(
        net::WebSocketCodec::Role::kServer, executor_, std::move(wire),
        WebSocketChannels::Form{base64, protocol_.starts_with("v5.")});
    mux_ = channels;
    const node::StdioSpec& spec = request_.spec;
    if (spec.input) streams_[kInput] = channels->Channel(kInput);
    if (spec.output) streams_[kOutput] = channels->Channel(kOutput);
    if (spec.error) streams_[kErrorOutput] = channels->Channel(kErrorOutput);
    streams_[kStatus] = channels->Channel(kStatus);
    streams_[kResize] = channels->Channel(kResize);
    Begin();
    // v5's clients take the 101 for an answer, and do not know a channel that early.
    if (!Version("v5.")) {
      channels->Announce(spec.output ? kOutput : spec.error ? kErrorOutput : kStatus);
    }
    Run();
  }

 private:
  bool Version(std::string_view prefix) const { return protocol_.starts_with(prefix); }
  bool Resizes() const { return Version("v3.") || Version("v4.") || Version("v5."); }
  bool JsonStatus() const { return Version("v4.") || Version("v5."); }

  // From here the connection keeps the session alive.
  void Begin() {
    mux_->Begin([self = shared_from_this()](const Status&) { self->Leave(); });
  }

  void TakeStream(SpdyConnection::Accepted accepted) {
    const std::string* type = net::FindHeader(accepted.headers, "streamtype");
    for (int i = 0; type != nullptr && i < 5; ++i) {
      if (*type != kStreamTypes[i] || streams_[i] || (i == kResize && !Resizes())) continue;
      streams_[i] = std::move(accepted.stream);
      if (--expected_ == 0) {
        executor_.Cancel(std::exchange(timer_, kNoTimer));
        Run();
      }
      return;
    }
  }

  void Run() {
    request_.open([weak = weak_from_this()](Result<std::shared_ptr<node::StdioSession>> session) {
      auto self = weak.lock();
      if (!self || self->over_) return;
      if (!session.ok()) return self->Finish(session.status());
      self->session_ = std::move(*session);
      self->Connect();
    });
  }

  void Connect() {
    const api::DuplexPtr io = session_->io();
    open_outputs_ = 1;
    CarryOutput(io, streams_[kOutput]);
    if (const api::DuplexPtr& error = session_->error()) {
      ++open_outputs_;
      CarryOutput(error, streams_[kErrorOutput]);
    }
    if (const api::DuplexPtr& input = streams_[kInput]) CarryInput(input, io);
    if (const api::DuplexPtr& resize = streams_[kResize]) {
      resize->Start({.on_data = [weak = weak_from_this()](const api::Chunk& bytes) {
        if (auto self = weak.lock()) self->TakeResize(*bytes);
      }});
    }
    session_->OnExit([weak = weak_from_this()](const Result<int>& code) {
      auto self = weak.lock();
      if (!self) return;
      self->code_ = code;
      self->FinishIfDone();
    });
  }

  void CarryOutput(const api::DuplexPtr& from, const api::DuplexPtr& to) {
    from->Start({.on_data =
                     [from = std::weak_ptr(from), to](const api::Chunk& bytes) {
                       auto alive = from.lock();
                       if (to && alive && to->Write(bytes)) api::HoldBack(alive, to);
                     },
                 .on_end =
                     [weak = weak_from_this()](const Status&) {
                       auto self = weak.lock();
                       if (!self) return;
                       --self->open_outputs_;
                       self->FinishIfDone();
                     }});
  }

  void CarryInput(const api::DuplexPtr& input, const api::DuplexPtr& io) {
    input->Start({.on_data =
                      [input = std::weak_ptr(input), io](const api::Chunk& bytes) {
                        auto alive = input.lock();
                        if (alive && io->Write(bytes)) api::HoldBack(alive, io);
                      },
                  .on_end =
                      [weak = weak_from_this(), io](const Status& why) {
                        auto self = weak.lock();
                        if (!self || !why.ok()) return;  // a broken connection is the mux's to tell
                        if (self->request_.input_ends_with_client) return io->CloseWrite();
                        self->Finish(0);
                      }});
  }

  // JSON documents one behind the other: {"Width":80,"Height":24}. Only the last one that arrived
  // is applied: a message may be megabytes of them.
  void TakeResize(std::string_view bytes) {
    bytes.remove_prefix(bytes.size() - std::min(bytes.size(), kResizeBytesMax));
    resize_text_ += bytes;
    const size_t end = resize_text_.rfind('}');
    const size_t begin = end == std::string::npos ? end : resize_text_.rfind('{', end);
    if (begin != std::string::npos) {
      const auto size = json::Parse(resize_text_.substr(begin, end + 1 - begin));
      auto part = [&size](std::string_view name) {
        const int64_t value = json::GetInt(*size, {name});
        return static_cast<uint16_t>(value < 0 || value > 65535 ? 0 : value);
      };
      if (size.ok() && session_) session_->Resize({part("Width"), part("Height")});
    }
    if (end != std::string::npos) resize_text_.erase(0, end + 1);
    if (resize_text_.size() > kResizeBytesMax) resize_text_.clear();
  }

  void FinishIfDone() {
    if (code_ && open_outputs_ == 0) Finish(*code_);
  }

  // Tells the client how it ended, and lets it go.
  void Finish(const Result<int>& code) {
    if (over_) return;
    auto self = shared_from_this();
    const bool attached = request_.spec.argv.empty();
    std::string words;
    if (JsonStatus()) {
      words = StatusJson(code, attached, StrCat("[", Join(request_.spec.argv, " "), "]"));
    } else if (!code.ok()) {
      words = code.status().message();
    } else if (*code != 0) {
      words = StrCat("command terminated with non-zero exit code: ", *code);
    }
    for (int i : {kOutput, kErrorOutput}) {
      if (streams_[i]) streams_[i]->CloseWrite();
    }
    if (!words.empty()) streams_[kStatus]->Write(api::MakeChunk(std::move(words)));
    streams_[kStatus]->CloseWrite();
    mux_->Close();
    Leave();
  }

  void Leave() {
    if (std::exchange(over_, true)) return;
    auto self = shared_from_this();
    executor_.Cancel(std::exchange(timer_, kNoTimer));
    mux_->Close();
    for (api::DuplexPtr& stream : streams_) stream.reset();
    session_.reset();
    request_.open = nullptr;
  }

  Executor& executor_;
  const std::string protocol_;
  CommandRequest request_;
  std::shared_ptr<Mux> mux_;
  api::DuplexPtr streams_[5];
  int expected_ = 0;
  TimerId timer_ = kNoTimer;
  std::shared_ptr<node::StdioSession> session_;
  int open_outputs_ = 0;
  std::optional<Result<int>> code_;
  std::string resize_text_;
  bool over_ = false;
};

}  // namespace

const std::vector<std::string>& CommandSpdyProtocols() {
  static const std::vector<std::string> protocols{"v4.channel.k8s.io", "v3.channel.k8s.io",
                                                  "v2.channel.k8s.io", "channel.k8s.io"};
  return protocols;
}

const std::vector<std::string>& CommandWebSocketProtocols() {
  static const std::vector<std::string> protocols{"v5.channel.k8s.io", "v4.channel.k8s.io",
                                                  "v4.base64.channel.k8s.io", "channel.k8s.io",
                                                  "base64.channel.k8s.io"};
  return protocols;
}

void ServeCommand(Executor& executor,
                  const Agreement& agreement,
                  api::DuplexPtr wire,
                  CommandRequest request) {
  auto server = std::make_shared<CommandServer>(executor, agreement.protocol, std::move(request));
  if (agreement.web_socket) {
    server->ServeWebSocket(std::move(wire));
  } else {
    server->ServeSpdy(std::move(wire));
  }
}

}  // namespace swell::edge
