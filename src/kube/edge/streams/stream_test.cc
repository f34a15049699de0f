// Exec, attach and port-forward between real sockets: a node's half behind an HttpServer, asked
// through HttpTransport by our own client and by bytes as other clients send them.

#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "base/sim_executor.h"
#include "base/strings.h"
#include "json/value.h"
#include "kube/edge/edge_test_util.h"
#include "kube/edge/http/http_front.h"
#include "kube/edge/http/http_transport.h"
#include "kube/edge/kubelet/kubelet_server.h"
#include "kube/edge/streams/command_client.h"
#include "kube/edge/streams/command_server.h"
#include "kube/edge/streams/port_forward_server.h"
#include "kube/edge/streams/spdy_connection.h"
#include "kube/edge/streams/websocket_connection.h"
#include "kube/net/http/server.h"
#include "kube/net/net_testing.h"
#include "kube/net/reactor/reactor.h"
#include "kube/net/tls/tls.h"

namespace swell::edge {
namespace {

using Role = net::WebSocketCodec::Role;

// A command whose inside is the test's.
class FakeSession final : public node::StdioSession {
 public:
  FakeSession(Executor& executor, int& alive) : alive_(alive) {
    ++alive_;
    std::tie(io_, inside) = api::MakePipe(executor);
    std::tie(error_, inside_error) = api::MakePipe(executor);
  }
  ~FakeSession() override { --alive_; }
  const api::DuplexPtr& io() override { return io_; }
  const api::DuplexPtr& error() override { return error_; }
  void Resize(node::TerminalSize size) override {
    sizes += StrCat(size.columns, "x", size.rows, " ");
  }
  void OnExit(std::function<void(Result<int>)> done) override { done_ = std::move(done); }

  void Exit(int code) {
    inside->CloseWrite();
    inside_error->CloseWrite();
    done_(code);
  }

  api::DuplexPtr inside, inside_error;
  std::string sizes;

 private:
  api::DuplexPtr io_, error_;
  std::function<void(Result<int>)> done_;
  int& alive_;
};

// A node's endpoints without a node.
class StreamNode final : public api::RestHandler {
 public:
  explicit StreamNode(Executor& executor) : executor_(executor) {}

  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    requests.push_back(request);
    const bool forward = request.path.ends_with("portforward");
    Agreement agreement;
    api::RestResponse refusal;
    if (!Negotiate(request.upgrade, forward ? PortForwardSpdyProtocols() : CommandSpdyProtocols(),
                   forward ? PortForwardWebSocketProtocols() : CommandWebSocketProtocols(),
                   &agreement, &refusal)) {
      sink->OnResponse(std::move(refusal));
      return nullptr;
    }
    auto wire = sink->OnUpgrade(agreement.headers);
    if (forward) {
      ServePortForward(executor_, agreement, std::move(wire), Forward());
    } else {
      ServeCommand(executor_, agreement, std::move(wire), Command(request));
    }
    return nullptr;
  }

  std::shared_ptr<FakeSession> session() { return session_.lock(); }

  std::vector<api::RestRequest> requests;
  node::StdioSpec spec;
  int sessions_alive = 0;
  std::map<uint16_t, api::DuplexPtr> dialed;

 private:
  CommandRequest Command(const api::RestRequest& request) {
    auto has = [&](std::string_view flag) {
      return request.query.find(StrCat(flag, "=true")) != std::string::npos;
    };
    CommandRequest out;
    out.spec.argv = {"sh", "-c", "x"};
    out.spec.input = has("stdin");
    out.spec.output = has("stdout");
    out.spec.error = has("stderr");
    out.spec.tty = has("tty");
    spec = out.spec;
    out.open = [this](const node::StdioCallback& done) {
      auto made = std::make_shared<FakeSession>(executor_, sessions_alive);
      session_ = made;
      done(std::static_pointer_cast<node::StdioSession>(made));
    };
    return out;
  }
  PortForwardRequest Forward() {
    return {.pod = "web_default, uid 7",
            .ports = {80, 81},
            .dial = [this](uint16_t port, const std::function<void(Result<api::DuplexPtr>)>& done) {
              if (port == 81) return done(Status(Code::kUnavailable, "connection refused"));
              auto [theirs, ours] = api::MakePipe(executor_);
              dialed[port] = ours;
              done(theirs);
            }};
  }

  Executor& executor_;
  std::weak_ptr<FakeSession> session_;
};

// What comes out of a stream.
struct Reader {
  std::string text;
  std::optional<Status> end;
  void Read(const api::DuplexPtr& stream) {
    stream->Start({[this](const api::Chunk& bytes) { text += *bytes; },
                   [this](const Status& why) { end = why; }});
  }
};

class StreamTest : public ::testing::Test {
 protected:
  StreamTest() {
    front_ = std::make_unique<HttpFront>(core_, *node_watch_, HttpFrontConfig{});
    server_ = std::make_unique<net::HttpServer>(io_, clock_, *front_, net::ServerConfig{});
    auto port = server_->Listen("127.0.0.1:0");
    EXPECT_TRUE(port.ok());
    HttpTransportConfig config;
    config.client.base_url = StrCat("http://127.0.0.1:", *port);
    auto made = HttpTransport::Make(core_, config);
    EXPECT_TRUE(made.ok());
    transport_ = std::make_shared<WireWatch>(std::move(*made));
    thread_ = std::thread([this] { io_.Run(); });
  }
  ~StreamTest() override {
    command_.reset();
    forward_.reset();
    node_->dialed.clear();
    transport_->Drop();
    // Whatever a test left open: nothing of it stays when its owners are gone.
    EXPECT_TRUE(Until([&] {
      return server_->stats().connections_open.load() == 0 && transport_->AllGone() &&
             node_watch_->AllGone();
    }));
    RunPosted(core_);
    io_.Post([this] {
      server_.reset();
      io_.Stop();
    });
    thread_.join();
    front_.reset();
  }

  bool Until(const std::function<bool()>& done) { return core_.RunUntil(done, net::kPatience); }

  void Exec(CommandOptions options = {}) {
    options.ns = "default";
    options.pod = "a";
    options.container = "main";
    options.command = {"sh"};
    command_ = StartCommand(
        core_, transport_, {}, options,
        {.on_output = [this](bool error,
                             const api::Chunk& bytes) { (error ? err_ : out_) += *bytes; },
         .on_exit = [this](Result<int> code) { code_ = std::move(code); }});
    ASSERT_TRUE(Until([&] { return node_->session() != nullptr || code_.has_value(); }));
  }

  // An upgraded connection as another client would have it; null when it was refused.
  struct RawSink final : api::RestSink {
    explicit RawSink(Executor& executor_in) : executor(executor_in) {}
    void OnResponse(api::RestResponse r) override { response = std::move(r); }
    void OnStreamStart(int, std::string) override {}
    bool OnChunk(const api::Chunk&) override { return false; }
    void OnStreamEnd(const Status&) override {}
    api::DuplexPtr OnUpgrade(api::HeaderList h) override {
      headers = std::move(h);
      api::DuplexPtr theirs;
      std::tie(ours, theirs) = api::MakePipe(executor);
      return theirs;
    }
    Executor& executor;
    std::optional<api::RestResponse> response;
    api::HeaderList headers;
    api::DuplexPtr ours;
  };
  std::shared_ptr<RawSink> Upgrade(const std::string& path,
                                   const std::string& query,
                                   api::HeaderList headers) {
    auto sink = std::make_shared<RawSink>(core_);
    auto call = transport_->Handle(
        {.method = "GET", .path = path, .query = query, .upgrade = std::move(headers)}, sink);
    EXPECT_TRUE(Until([&] { return sink->ours != nullptr || sink->response.has_value(); }));
    return sink;
  }
  static api::HeaderList WebSocketOffer(const std::string& protocols) {
    return {{"Upgrade", "websocket"},
            {"Sec-WebSocket-Version", "13"},
            {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
            {"Sec-WebSocket-Protocol", protocols}};
  }

  net::Reactor core_, io_;
  RealClock clock_;
  const std::shared_ptr<StreamNode> node_ = std::make_shared<StreamNode>(core_);
  const std::shared_ptr<WireWatch> node_watch_ = std::make_shared<WireWatch>(node_);
  std::unique_ptr<HttpFront> front_;
  std::unique_ptr<net::HttpServer> server_;
  std::thread thread_;
  std::shared_ptr<WireWatch> transport_;
  std::unique_ptr<CommandClient> command_;
  std::unique_ptr<PortForwardClient> forward_;
  std::string out_, err_;
  std::optional<Result<int>> code_;
};

TEST_F(StreamTest, ACommandsOutputAndExitCodeArrive) {
  Exec();
  auto session = node_->session();
  session->inside->Write(api::MakeChunk("out"));
  session->inside_error->Write(api::MakeChunk("err"));
  session->Exit(3);
  ASSERT_TRUE(Until([&] { return code_.has_value(); }));
  ASSERT_TRUE(code_->ok()) << code_->status().ToString();
  EXPECT_EQ(**code_, 3);
  EXPECT_EQ(out_, "out");
  EXPECT_EQ(err_, "err");
  session.reset();
  EXPECT_TRUE(Until([&] { return node_->sessions_alive == 0; }));
}

TEST_F(StreamTest, ManyMegabytesGoBothWaysInBoundedMemory) {
  Exec({.input = true});
  auto session = node_->session();
  size_t queued_max = 0;
  auto inside = session->inside;
  inside->Start({[&](const api::Chunk& bytes) {
                   inside->Write(bytes);
                   queued_max = std::max(queued_max, inside->queued_bytes());
                   api::HoldBack(inside, inside);
                 },
                 [&](const Status&) { session->Exit(0); }});
  size_t sent = 0;
  constexpr size_t kTotal = 40 << 20;
  std::function<void()> feed = [&] {
    while (sent < kTotal && command_->queued_bytes() <= api::kDuplexHighWater) {
      std::string piece(64 << 10, '\0');
      for (size_t i = 0; i < piece.size(); ++i) piece[i] = static_cast<char>((sent + i) * 31 >> 8);
      sent += piece.size();
      command_->Write(api::MakeChunk(std::move(piece)));
    }
    if (sent >= kTotal) return command_->CloseInput();
    command_->OnDrained(feed);
  };
  feed();
  ASSERT_TRUE(Until([&] { return code_.has_value(); }));
  ASSERT_EQ(out_.size(), kTotal);
  for (size_t i = 0; i < kTotal; ++i) {
    ASSERT_EQ(out_[i], static_cast<char>(i * 31 >> 8)) << "at " << i;
  }
  EXPECT_LT(queued_max, size_t{4} << 20);
}

TEST_F(StreamTest, ATerminalsSizeArrivesAndItsErrorsAreItsOutput) {
  Exec({.input = true, .tty = true});
  command_->Resize(120, 40);
  ASSERT_TRUE(Until([&] { return node_->session()->sizes == "120x40 "; }));
  EXPECT_TRUE(node_->spec.tty);
  EXPECT_FALSE(node_->spec.error);
}

TEST_F(StreamTest, AClientThatLeavesHangsUp) {
  Exec();
  EXPECT_EQ(node_->sessions_alive, 1);
  command_.reset();
  EXPECT_TRUE(Until([&] { return node_->sessions_alive == 0; }));
}

TEST_F(StreamTest, WhatANodeCannotUpgradeIsAnAnswer) {
  auto sink =
      Upgrade("/exec", "stdout=true",
              {{"Upgrade", "SPDY/3.1"}, {"X-Stream-Protocol-Version", "v9.channel.k8s.io"}});
  ASSERT_TRUE(sink->response);
  EXPECT_EQ(sink->response->status, 403);
  EXPECT_EQ(sink->response->BodyString(),
            "unable to upgrade: unable to negotiate protocol: client supports [v9.channel.k8s.io], "
            "server accepts [v4.channel.k8s.io v3.channel.k8s.io v2.channel.k8s.io "
            "channel.k8s.io]\n");
  sink = Upgrade("/exec", "stdout=true", {{"Upgrade", "SPDY/3.1"}});
  EXPECT_EQ(sink->response->BodyString(),
            "unable to upgrade: X-Stream-Protocol-Version is required\n");
  sink = Upgrade("/exec", "stdout=true", WebSocketOffer("chat"));
  EXPECT_EQ(sink->response->status, 403);
}

TEST_F(StreamTest, WebSocketChannelsCarryACommand) {
  auto sink = Upgrade("/exec", "stdin=true&stdout=true&stderr=true",
                      WebSocketOffer("v5.channel.k8s.io, v4.channel.k8s.io"));
  ASSERT_TRUE(sink->ours);
  auto client = std::make_shared<WebSocketChannels>(Role::kClient, core_, sink->ours,
                                                    WebSocketChannels::Form{false, true});
  auto input = client->Channel(0);
  Reader out, err, status;
  auto out_channel = client->Channel(1), err_channel = client->Channel(2);
  auto status_channel = client->Channel(3), resize = client->Channel(4);
  out.Read(out_channel);
  err.Read(err_channel);
  status.Read(status_channel);
  client->Begin([](const Status&) {});
  ASSERT_TRUE(Until([&] { return node_->session() != nullptr; }));
  auto session = node_->session();
  Reader inside;
  inside.Read(session->inside);
  input->Write(api::MakeChunk("typed"));
  resize->Write(api::MakeChunk("{\"Width\":80,\"Height\":24}"));
  ASSERT_TRUE(Until([&] { return inside.text == "typed" && session->sizes == "80x24 "; }));
  EXPECT_FALSE(inside.end);
  input->CloseWrite();  // v5 can say so
  ASSERT_TRUE(Until([&] { return inside.end.has_value(); }));
  session->inside->Write(api::MakeChunk("answer"));
  session->inside_error->Write(api::MakeChunk("oops"));
  session->Exit(0);
  ASSERT_TRUE(Until([&] { return status.end.has_value(); }));
  EXPECT_EQ(out.text, "answer");
  EXPECT_EQ(err.text, "oops");
  EXPECT_EQ(status.text, "{\"metadata\":{},\"status\":\"Success\"}");
}

TEST_F(StreamTest, Base64ChannelsCarryText) {
  auto sink = Upgrade("/exec", "stdin=true&stdout=true", WebSocketOffer("base64.channel.k8s.io"));
  auto client = std::make_shared<WebSocketChannels>(Role::kClient, core_, sink->ours,
                                                    WebSocketChannels::Form{true, false});
  auto input = client->Channel(0), output = client->Channel(1), status = client->Channel(3);
  Reader out, end;
  out.Read(output);
  end.Read(status);
  client->Begin([](const Status&) {});
  ASSERT_TRUE(Until([&] { return node_->session() != nullptr; }));
  auto session = node_->session();
  Reader inside;
  inside.Read(session->inside);
  input->Write(api::MakeChunk(std::string("\0\xff!", 3)));
  ASSERT_TRUE(Until([&] { return inside.text.size() == 3; }));
  EXPECT_EQ(inside.text, std::string("\0\xff!", 3));
  session->inside->Write(api::MakeChunk("ok"));
  session->Exit(2);
  ASSERT_TRUE(Until([&] { return end.end.has_value(); }));
  EXPECT_EQ(out.text, "ok");
  EXPECT_EQ(end.text, "command terminated with non-zero exit code: 2");  // before v4: words
}

// In place of a size come four megabytes of what ends one.
TEST_F(StreamTest, SizesThatAreNoneKeepNobodyWaiting) {
  auto sink = Upgrade("/exec", "stdout=true&tty=true", WebSocketOffer("v4.channel.k8s.io"));
  auto client = std::make_shared<WebSocketChannels>(Role::kClient, core_, sink->ours,
                                                    WebSocketChannels::Form{false, false});
  auto resize = client->Channel(4);
  client->Begin([](const Status&) {});
  ASSERT_TRUE(Until([&] { return node_->session() != nullptr; }));
  resize->Write(api::MakeChunk(std::string(size_t{4} << 20, '}')));
  resize->Write(api::MakeChunk("{\"Width\":1,\"Height\":2}{\"Width\":80,"));
  resize->Write(api::MakeChunk("\"Height\":24}"));
  auto session = node_->session();
  EXPECT_TRUE(Until([&] { return session->sizes == "80x24 " || session->sizes == "1x2 80x24 "; }));
  session->Exit(0);
}

TEST(Mux, APeerThatAsksAndTakesNoAnswersIsNotListenedTo) {
  SimExecutor executor;
  auto [theirs, ours] = api::MakePipe(executor);
  auto server =
      std::make_shared<WebSocketChannels>(Role::kServer, executor, ours, WebSocketChannels::Form{});
  server->Begin([](const Status&) {});
  net::WebSocketCodec client(Role::kClient, 1 << 20);
  constexpr size_t kPings = 100'000;
  const std::string payload(100, 'p');
  for (size_t i = 0; i < kPings; ++i) {
    theirs->Write(api::MakeChunk(client.Encode(net::WebSocketCodec::Opcode::kPing, payload)));
  }
  executor.RunPosted();
  EXPECT_LT(ours->queued_bytes(), 3 * api::kDuplexHighWater);
  EXPECT_GT(theirs->queued_bytes(), 0U);
  size_t answered = 0;
  theirs->Start({[&answered](const api::Chunk& bytes) { answered += bytes->size(); }, {}});
  executor.RunPosted();
  EXPECT_EQ(theirs->queued_bytes(), 0U);
  EXPECT_EQ(answered, kPings * (2 + payload.size()));
  server->Close();
}

TEST_F(StreamTest, ABrokenWebSocketEndsTheSession) {
  auto sink = Upgrade("/exec", "stdout=true", WebSocketOffer("v4.channel.k8s.io"));
  ASSERT_TRUE(Until([&] { return node_->sessions_alive == 1; }));
  sink->ours->Write(api::MakeChunk("\xff\xff\xff garbage"));
  EXPECT_TRUE(Until([&] { return node_->sessions_alive == 0; }));
}

TEST_F(StreamTest, PortsAreForwardedAndErrorsTold) {
  bool open = false;
  std::string errors;
  std::optional<Status> ended;
  forward_ = StartPortForward(
      core_, transport_, {}, "default", "web",
      {.on_open = [&] { open = true; },
       .on_error = [&](uint16_t port,
                       const std::string& why) { errors += StrCat(port, ": ", why, "\n"); },
       .on_end = [&](const Status& why) { ended = why; }});
  ASSERT_TRUE(Until([&] { return open; }));
  auto [local, carried] = api::MakePipe(core_);
  forward_->Forward(80, carried);
  carried.reset();
  Reader answer;
  answer.Read(local);
  local->Write(api::MakeChunk("GET /"));
  local->CloseWrite();
  ASSERT_TRUE(Until([&] { return node_->dialed.contains(80); }));
  Reader asked;
  asked.Read(node_->dialed[80]);
  // The end of one direction passes, and the other still carries.
  ASSERT_TRUE(Until([&] { return asked.end.has_value(); }));
  EXPECT_EQ(asked.text, "GET /");
  node_->dialed[80]->Write(api::MakeChunk("200 OK"));
  node_->dialed[80]->CloseWrite();
  ASSERT_TRUE(Until([&] { return answer.end.has_value(); }));
  EXPECT_EQ(answer.text, "200 OK");
  auto [refused, carried_too] = api::MakePipe(core_);
  forward_->Forward(81, carried_too);
  ASSERT_TRUE(Until([&] { return !errors.empty(); }));
  EXPECT_EQ(errors, "81: error forwarding port 81 to pod web_default, uid 7: connection refused\n");
  EXPECT_FALSE(ended);
}

TEST_F(StreamTest, PortsAreForwardedInsideAWebSocket) {
  auto sink = Upgrade("/portforward", "", WebSocketOffer("SPDY/3.1+portforward.k8s.io"));
  ASSERT_TRUE(sink->ours);
  auto tunnel = MakeWebSocketTunnel(Role::kClient, core_, sink->ours);
  auto spdy = std::make_shared<SpdyConnection>(SpdyConnection::Role::kClient, core_, tunnel);
  spdy->Begin([](const Status&) {});
  auto error = spdy->Open({{"streamtype", "error"}, {"port", "80"}, {"requestID", "0"}});
  auto data = spdy->Open({{"streamtype", "data"}, {"port", "80"}, {"requestID", "0"}});
  Reader answer;
  answer.Read(data);
  data->Write(api::MakeChunk("ping"));
  ASSERT_TRUE(Until([&] { return node_->dialed.contains(80); }));
  Reader asked;
  asked.Read(node_->dialed[80]);
  node_->dialed[80]->Write(api::MakeChunk("pong"));
  EXPECT_TRUE(Until([&] { return asked.text == "ping" && answer.text == "pong"; }));
}

TEST_F(StreamTest, WebSocketChannelsCarryThePortsOfTheQuery) {
  auto sink = Upgrade("/portforward", "port=80&port=81", WebSocketOffer("v4.channel.k8s.io"));
  auto client = std::make_shared<WebSocketChannels>(Role::kClient, core_, sink->ours,
                                                    WebSocketChannels::Form{});
  std::vector<api::DuplexPtr> channels;
  std::vector<Reader> got(4);
  for (uint8_t i = 0; i < 4; ++i) {
    channels.push_back(client->Channel(i));
    got[i].Read(channels.back());
  }
  client->Begin([](const Status&) {});
  ASSERT_TRUE(Until([&] { return node_->dialed.contains(80) && got[3].text.size() > 2; }));
  // First of all, on each channel: its port, the low byte first.
  EXPECT_EQ(got[0].text, std::string("\x50\0", 2));
  EXPECT_EQ(got[3].text.substr(0, 2), std::string("\x51\0", 2));
  EXPECT_EQ(got[3].text.substr(2),
            "error forwarding port 81 to pod web_default, uid 7: connection refused");
  Reader asked;
  asked.Read(node_->dialed[80]);
  channels[0]->Write(api::MakeChunk("hello"));
  EXPECT_TRUE(Until([&] { return asked.text == "hello"; }));
  // No channel can end by itself: the connection does when the last port is done.
  node_->dialed[80]->Write(api::MakeChunk("bye"));
  node_->dialed[80]->CloseWrite();
  EXPECT_TRUE(Until([&] { return got[0].end.has_value(); }));
  EXPECT_EQ(got[0].text.substr(2), "bye");
}

// ---- the kubelet's own server ----

class Answering final : public api::RestHandler {
 public:
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    api::RestResponse response;
    if (request.path.ends_with("/tokenreviews")) {
      auto review = json::Parse(request.body);
      const bool good = review.ok() && json::GetString(*review, {"spec", "token"}) != "bad";
      const std::string name(review.ok() ? json::GetString(*review, {"spec", "token"}) : "");
      response.status = 201;
      response.body.push_back(api::MakeChunk(json::Print(
          json::Object{{"status", json::Object{{"authenticated", good},
                                               {"user", json::Object{{"username", name}}}}}})));
    } else if (request.path.ends_with("/subjectaccessreviews")) {
      auto review = json::Parse(request.body);
      reviewed = request.body;
      const bool allowed = review.ok() && json::GetString(*review, {"spec", "user"}) == "admin";
      response.status = 201;
      response.body.push_back(api::MakeChunk(
          json::Print(json::Object{{"status", json::Object{{"allowed", allowed}}}})));
    } else {
      response.content_type = "text/plain";
      response.body.push_back(api::MakeChunk("the node's answer"));
    }
    sink->OnResponse(std::move(response));
    return nullptr;
  }
  std::string reviewed;
};

class KubeletServerTest : public ::testing::Test {
 protected:
  KubeletServerTest() {
    const WallTime now = clock_.Now() - std::chrono::hours(1);
    ca_ = *net::GenerateCa("test-ca", now);
    api_ = std::make_shared<Answering>();
    auto own = net::IssueCert(ca_, {.common_name = "system:node:n1",
                                    .dns_names = {"localhost"},
                                    .ip_addresses = {"127.0.0.1"},
                                    .server = true,
                                    .not_before = now});
    server_ = std::make_unique<KubeletServer>(
        core_, io_, clock_,
        KubeletServerConfig{.tls = {own->cert_pem, own->key_pem, ca_.cert_pem}, .api = api_});
    auto port = server_->Listen("n1", "127.0.0.1:0");
    EXPECT_TRUE(port.ok()) << port.status().ToString();
    port_ = *port;
    thread_ = std::thread([this] { io_.Run(); });
  }
  ~KubeletServerTest() override {
    io_.Stop();
    thread_.join();
    server_.reset();
  }

  std::string Ask(const std::string& token, bool certificate, const std::string& path = "/pods") {
    HttpTransportConfig config;
    config.client.base_url = StrCat("https://127.0.0.1:", port_);
    config.client.tls.ca_pem = ca_.cert_pem;
    config.bearer_token = token;
    if (certificate) {
      auto pair = net::IssueCert(ca_, {.common_name = "kube-apiserver",
                                       .client = true,
                                       .not_before = clock_.Now() - std::chrono::hours(1)});
      config.client.tls.cert_pem = pair->cert_pem;
      config.client.tls.key_pem = pair->key_pem;
    }
    auto transport = HttpTransport::Make(core_, config);
    EXPECT_TRUE(transport.ok());
    struct Sink final : api::RestSink {
      void OnResponse(api::RestResponse r) override {
        answer = StrCat(r.status, " ", r.BodyString());
      }
      void OnStreamStart(int, std::string) override {}
      bool OnChunk(const api::Chunk&) override { return true; }
      void OnStreamEnd(const Status&) override {}
      std::string answer;
    };
    auto sink = std::make_shared<Sink>();
    auto call = (*transport)->Handle({.method = "GET", .path = path}, sink);
    EXPECT_TRUE(core_.RunUntil([&] { return !sink->answer.empty(); }, net::kPatience));
    return sink->answer;
  }

  RealClock clock_;
  net::Reactor core_, io_;
  net::CertificatePair ca_;
  std::shared_ptr<Answering> api_;
  std::unique_ptr<KubeletServer> server_;
  uint16_t port_ = 0;
  std::thread thread_;
};

TEST_F(KubeletServerTest, LetsInWhomTheCaOrTheApiServerVouchesFor) {
  EXPECT_EQ(Ask("", true), "503 node n1 is starting\n");
  server_->Serve("n1", std::make_shared<Answering>());
  EXPECT_EQ(Ask("", true), "200 the node's answer");
  EXPECT_EQ(Ask("admin", false), "200 the node's answer");
  EXPECT_NE(api_->reviewed.find("\"subresource\":\"proxy\""), std::string::npos);
  EXPECT_EQ(Ask("someone", false),
            "403 Forbidden (user=someone, verb=get, resource=nodes, subresource=proxy)\n");
  // What a metrics server may do, and no more.
  for (const char* path : {"/metrics/resource", "/stats/summary", "/metricsx"}) {
    const std::string part = path[1] == 's' ? "stats" : path[8] == '/' ? "metrics" : "proxy";
    EXPECT_EQ(
        Ask("someone", false, path),
        StrCat("403 Forbidden (user=someone, verb=get, resource=nodes, subresource=", part, ")\n"));
  }
  EXPECT_EQ(Ask("bad", false), "401 Unauthorized\n");
  EXPECT_EQ(Ask("", false), "401 Unauthorized\n");
}

}  // namespace
}  // namespace swell::edge
