// The HTTP codec without sockets, and a whole server under load over loopback.
//
// The load benchmarks run I/O and handler on their own threads, as the program does, and the load
// generator on the benchmark's thread; on a small machine the three share its cores.
#include <thread>

#include <benchmark/benchmark.h>

#include "base/strings.h"
#include "kube/net/http/client.h"
#include "kube/net/http/http1_codec.h"
#include "kube/net/http/load.h"
#include "kube/net/http/server.h"
#include "kube/net/reactor/reactor.h"

namespace swell::net {
namespace {

constexpr std::string_view kRequest =
    "GET /api/v1/namespaces/default/pods/resnet-worker-0 HTTP/1.1\r\n"
    "Host: 127.0.0.1:6443\r\n"
    "User-Agent: kubectl/v1.29.0 (linux/amd64) kubernetes/3f7a50f\r\n"
    "Accept: application/json\r\n"
    "Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n"
    "Accept-Encoding: gzip\r\n\r\n";

void BM_ParseRequest(benchmark::State& state) {
  RequestParser parser({});
  for ([[maybe_unused]] auto _ : state) {
    RequestParser::Step step = parser.Parse(kRequest);
    HttpRequest request = parser.Take();
    benchmark::DoNotOptimize(request);
    benchmark::DoNotOptimize(step);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kRequest.size()));
}
BENCHMARK(BM_ParseRequest);

void BM_ParseChunkedBody(benchmark::State& state) {
  std::string body;
  for (int i = 0; i < 100; ++i) {
    AppendChunkHeader(&body, 4096);
    body.append(4096, 'x').append("\r\n");
  }
  body += "0\r\n\r\n";
  for ([[maybe_unused]] auto _ : state) {
    BodyDecoder decoder;
    decoder.StartChunked(1024);
    std::string_view rest = body;
    while (true) {
      BodyDecoder::Step step = decoder.Next(rest);
      rest.remove_prefix(step.consumed);
      if (step.result != BodyDecoder::Result::kData) break;
      benchmark::DoNotOptimize(step.data.data());
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * body.size()));
}
BENCHMARK(BM_ParseChunkedBody);

void BM_WriteResponseHead(benchmark::State& state) {
  Headers headers = {{"Content-Type", "application/json"}, {"Audit-Id", "0123-4567-89ab"}};
  std::string out;
  for ([[maybe_unused]] auto _ : state) {
    out.clear();
    AppendResponseHead(&out, 200, headers, Framing::kLength, 12345, true,
                       "Sun, 06 Nov 1994 08:49:37 GMT");
    benchmark::DoNotOptimize(out);
  }
}
BENCHMARK(BM_WriteResponseHead);

// A server on its own thread whose handler answers from another.
class BenchServer final : public Handler {
 public:
  explicit BenchServer(size_t body_bytes, bool tls)
      : body_(MakeChunk(std::string(body_bytes, 'x'))) {
    if (tls) {
      CertificatePair ca = GenerateCa("bench", clock_.Now() - std::chrono::hours(1)).value();
      CertSpec spec;
      spec.common_name = "bench";
      spec.ip_addresses = {"127.0.0.1"};
      spec.server = true;
      spec.not_before = clock_.Now() - std::chrono::hours(1);
      CertificatePair cert = IssueCert(ca, spec).value();
      tls_ = TlsServerConfig{cert.cert_pem, cert.key_pem, ""};
      ca_pem_ = ca.cert_pem;
    }
    server_ = std::make_unique<HttpServer>(io_, clock_, *this, ServerConfig{});
    port_ = server_->Listen("127.0.0.1:0", tls_).value();
    io_thread_ = std::thread([this] { io_.Run(); });
    core_thread_ = std::thread([this] { core_.Run(); });
  }
  ~BenchServer() override {
    core_.Stop();
    core_thread_.join();
    io_.Stop();
    io_thread_.join();
    held_.clear();
  }

  void OnRequest(std::shared_ptr<Exchange> exchange) override {
    core_.Post([this, exchange = std::move(exchange)] {
      if (exchange->request().path == "/watch") {
        exchange->StartStream(200, {{"Content-Type", "application/json"}});
        held_.push_back(exchange);
        return;
      }
      exchange->Respond({200, {{"Content-Type", "application/json"}}, {body_}});
    });
  }
  void Broadcast(const Chunk& chunk) {
    core_.Post([this, chunk] {
      for (auto& exchange : held_) exchange->Write(chunk);
    });
  }

  LoadOptions Options(int connections, uint64_t requests) const {
    LoadOptions options;
    options.base_url = StrCat(tls_ ? "https" : "http", "://127.0.0.1:", static_cast<int>(port_));
    options.tls.ca_pem = ca_pem_;
    options.connections = connections;
    options.requests = requests;
    options.duration = std::chrono::seconds(60);
    options.make_request = [](uint64_t) {
      HttpRequest request;
      request.method = "GET";
      request.target = "/api/v1/namespaces/default/pods/resnet-worker-0";
      request.headers = {{"Accept", "application/json"}};
      return request;
    };
    return options;
  }
  std::string base_url() const { return StrCat("http://127.0.0.1:", static_cast<int>(port_)); }

 private:
  RealClock clock_;
  Reactor io_;
  Reactor core_;
  Chunk body_;
  std::string ca_pem_;
  std::optional<TlsServerConfig> tls_;
  std::unique_ptr<HttpServer> server_;
  uint16_t port_ = 0;
  std::thread io_thread_;
  std::thread core_thread_;
  std::vector<std::shared_ptr<Exchange>> held_;  // core thread
};

void Serve(benchmark::State& state, size_t body_bytes, bool tls, uint64_t requests) {
  BenchServer server(body_bytes, tls);
  Reactor reactor;
  LoadReport last;
  for ([[maybe_unused]] auto _ : state) {
    auto report = RunLoad(reactor, server.Options(16, requests));
    if (!report.ok() || report->errors != 0) {
      state.SkipWithError("requests failed");
      return;
    }
    last = *report;
    state.SetIterationTime(std::chrono::duration<double>(report->elapsed).count());
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * requests));
  state.SetLabel(last.ToString());
}

void BM_SmallGets(benchmark::State& state) { Serve(state, 1000, false, 20'000); }
BENCHMARK(BM_SmallGets)->UseManualTime()->Unit(benchmark::kMillisecond);
void BM_SmallGetsTls(benchmark::State& state) { Serve(state, 1000, true, 20'000); }
BENCHMARK(BM_SmallGetsTls)->UseManualTime()->Unit(benchmark::kMillisecond);
void BM_LargeLists(benchmark::State& state) { Serve(state, 2'500'000, false, 200); }
BENCHMARK(BM_LargeLists)->UseManualTime()->Unit(benchmark::kMillisecond);
void BM_LargeListsTls(benchmark::State& state) { Serve(state, 2'500'000, true, 100); }
BENCHMARK(BM_LargeListsTls)->UseManualTime()->Unit(benchmark::kMillisecond);

// One event of 1 KB to many streams: until the last has it.
void BM_EventToManyStreams(benchmark::State& state) {
  BenchServer server(0, false);
  Reactor reactor;
  ClientConfig config;
  config.base_url = server.base_url();
  auto client = std::move(HttpClient::Make(reactor, config)).value();
  auto streams = static_cast<size_t>(state.range(0));
  constexpr size_t kEvent = 1000;
  size_t heads = 0;
  size_t bytes = 0;
  for (size_t i = 0; i < streams; ++i) {
    HttpRequest request;
    request.method = "GET";
    request.target = "/watch";
    client->Stream(
        request, [&](int, const Headers&) { ++heads; },
        [&](std::string_view data) { bytes += data.size(); }, [](Status) {});
  }
  reactor.RunUntil([&] { return heads == streams; }, std::chrono::seconds(30));
  Chunk event = MakeChunk(std::string(kEvent, 'e'));
  for ([[maybe_unused]] auto _ : state) {
    bytes = 0;
    server.Broadcast(event);
    reactor.RunUntil([&] { return bytes == streams * kEvent; }, std::chrono::seconds(10));
  }
}
BENCHMARK(BM_EventToManyStreams)->Arg(100)->Arg(1000)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace swell::net
