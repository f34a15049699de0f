#include "kube/edge/streams/port_forward_server.h"

#include <map>
#include <utility>

#include "base/strings.h"
#include "kube/edge/streams/spdy_connection.h"
#include "kube/edge/streams/websocket_connection.h"

namespace swell::edge {
namespace {

constexpr Duration kStreamCreationTimeout = std::chrono::seconds(30);
constexpr std::string_view kTunnel = "SPDY/3.1+portforward.k8s.io";

class PortForwardServer : public std::enable_shared_from_this<PortForwardServer> {
 public:
  PortForwardServer(Executor& executor, PortForwardRequest request)
      : executor_(executor), request_(std::move(request)) {}

  void ServeSpdy(api::DuplexPtr wire) {
    auto spdy =
        std::make_shared<SpdyConnection>(SpdyConnection::Role::kServer, executor_, std::move(wire));
    spdy->OnOpened([weak = weak_from_this()](SpdyConnection::Accepted accepted) {
      if (auto self = weak.lock()) self->TakeStream(std::move(accepted));
    });
    Begin(*spdy);
  }

  void ServeChannels(api::DuplexPtr wire, bool base64) {
    auto channels = std::make_shared<WebSocketChannels>(net::WebSocketCodec::Role::kServer,
                                                        executor_, std::move(wire),
                                                        WebSocketChannels::Form{base64, false});
    std::vector<Pair> pairs;
    for (size_t i = 0; i < request_.ports.size(); ++i) {
      const auto number = static_cast<uint8_t>(2 * i);
      Pair pair{request_.ports[i], channels->Channel(number),
                channels->Channel(static_cast<uint8_t>(number + 1))};
      pairs.push_back(std::move(pair));
    }
    Begin(*channels);
    // A channel cannot say that it ends: when all ports have, the connection does.
    auto left = std::make_shared<size_t>(pairs.size());
    auto ended = [left, weak = std::weak_ptr<Mux>(channels)] {
      auto mux = weak.lock();
      if (--*left == 0 && mux) mux->Close();
    };
    for (Pair& pair : pairs) {
      // Which port the channel is for: two bytes, the low one first.
      const std::string port{static_cast<char>(pair.port & 255), static_cast<char>(pair.port >> 8)};
      pair.data->Write(api::MakeChunk(port));
      pair.error->Write(api::MakeChunk(port));
      Forward(std::move(pair), ended);
    }
  }

 private:
  struct Pair {
    uint16_t port = 0;
    api::DuplexPtr data;
    api::DuplexPtr error;
  };
  struct Waiting {
    Pair pair;
    TimerId timer = kNoTimer;
  };

  // From here the connection keeps the session alive.
  void Begin(Mux& mux) {
    mux.Begin([self = shared_from_this()](const Status&) { self->Leave(); });
  }

  void Leave() {
    for (auto& [id, waiting] : waiting_) executor_.Cancel(waiting.timer);
    waiting_.clear();
  }

  // Clients of old name no request: their error stream comes right before its data stream.
  static std::string RequestId(const SpdyConnection::Accepted& accepted, bool data) {
    const std::string* id = net::FindHeader(accepted.headers, "requestid");
    if (id != nullptr && !id->empty()) return *id;
    return StrCat("stream ", data ? accepted.id - 2 : accepted.id);
  }

  void TakeStream(SpdyConnection::Accepted accepted) {
    const std::string* type = net::FindHeader(accepted.headers, "streamtype");
    const std::string* port_text = net::FindHeader(accepted.headers, "port");
    const auto port = port_text == nullptr ? std::nullopt : ParseUint(*port_text);
    const bool data = type != nullptr && *type == "data";
    // Dropped, and so refused: a stream that says neither what it is nor for which port.
    if (type == nullptr || (!data && *type != "error") || !port || *port < 1 || *port > 65535) {
      return;
    }
    const std::string id = RequestId(accepted, data);
    Waiting& waiting = waiting_[id];
    if (waiting.timer == kNoTimer) {
      waiting.timer = executor_.After(kStreamCreationTimeout, [weak = weak_from_this(), id] {
        auto self = weak.lock();
        if (self) self->waiting_.erase(id);
      });
    }
    waiting.pair.port = static_cast<uint16_t>(*port);
    (data ? waiting.pair.data : waiting.pair.error) = std::move(accepted.stream);
    if (!waiting.pair.data || !waiting.pair.error) return;
    executor_.Cancel(waiting.timer);
    Pair pair = std::move(waiting.pair);
    waiting_.erase(id);
    Forward(std::move(pair), nullptr);
  }

  // `ended` runs when the pod's side has said all; null where a stream says so itself.
  void Forward(Pair pair, std::function<void()> ended) {
    const uint16_t port = pair.port;
    request_.dial(port, [pair = std::move(pair), pod = request_.pod,
                         ended = std::move(ended)](Result<api::DuplexPtr> to) {
      if (!to.ok()) {
        pair.error->Write(api::MakeChunk(StrCat("error forwarding port ", pair.port, " to pod ",
                                                pod, ": ", to.status().message())));
      }
      pair.error->CloseWrite();
      DrainUntilEnd(pair.error);
      if (!to.ok()) {
        pair.data->CloseWrite();
        DrainUntilEnd(pair.data);
        if (ended) ended();
      } else if (ended) {
        Carry(pair.data, *to, [to = *to] { to->Close(); });
        Carry(*to, pair.data, [to = *to, ended] {
          to->Close();
          ended();
        });
      } else {
        api::Splice(pair.data, *to);
      }
    });
  }

  static void Carry(const api::DuplexPtr& from,
                    const api::DuplexPtr& to,
                    std::function<void()> end) {
    from->Start({.on_data =
                     [from, to](const api::Chunk& bytes) {
                       if (to->Write(bytes)) api::HoldBack(from, to);
                     },
                 .on_end = [end = std::move(end)](const Status&) { end(); }});
  }

  // Keeps a stream until its client ends it: an earlier reset could overtake our last words.
  static void DrainUntilEnd(const api::DuplexPtr& stream) {
    stream->Start({.on_data = [](const api::Chunk&) {}, .on_end = [stream](const Status&) {}});
  }

  Executor& executor_;
  const PortForwardRequest request_;
  std::map<std::string, Waiting> waiting_;
};

}  // namespace

const std::vector<std::string>& PortForwardSpdyProtocols() {
  static const std::vector<std::string> protocols{"portforward.k8s.io"};
  return protocols;
}

const std::vector<std::string>& PortForwardWebSocketProtocols() {
  static const std::vector<std::string> protocols{std::string(kTunnel), "v4.channel.k8s.io",
                                                  "v4.base64.channel.k8s.io", "portforward.k8s.io"};
  return protocols;
}

void ServePortForward(Executor& executor,
                      const Agreement& agreement,
                      api::DuplexPtr wire,
                      PortForwardRequest request) {
  auto server = std::make_shared<PortForwardServer>(executor, std::move(request));
  if (!agreement.web_socket) return server->ServeSpdy(std::move(wire));
  if (agreement.protocol == kTunnel) {
    return server->ServeSpdy(
        MakeWebSocketTunnel(net::WebSocketCodec::Role::kServer, executor, std::move(wire)));
  }
  server->ServeChannels(std::move(wire), agreement.protocol.find("base64") != std::string::npos);
}

}  // namespace swell::edge
