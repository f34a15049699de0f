#include "ops/pages/cluster_pages.h"

#include <pthread.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>

#include "base/file.h"
#include "base/host_port.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/strings.h"
#include "cli/flags.h"
#include "kube/edge/http/http_front.h"
#include "kube/net/http/server.h"
#include "kube/net/reactor/reactor.h"
#include "ops/cluster/last_port.h"
#include "ops/commands.h"
#include "ops/flags.h"
#include "ui/commands/command_runner.h"
#include "ui/history/history_keeper.h"
#include "ui/history/history_metrics.h"
#include "ui/page_server.h"
#include "ui/programs/pod_relay.h"
#include "ui/state/cluster_state.h"
#include "ui/state/core_calls.h"
#include "ui/static_files.h"

namespace swell::ops {
namespace {

constexpr Duration kGrace = std::chrono::milliseconds(200);
constexpr int kPortFileMode = 0644;

net::ServerConfig PagesServer() {
  net::ServerConfig config;
  config.max_connections = 4096;
  config.stream_buffer_bytes = 32 << 20;  // a view of ten thousand jobs is several MB
  return config;
}

// What pods serve is passed on as it comes, so that little waits here.
net::ServerConfig ProgramsServer() {
  net::ServerConfig config;
  config.max_connections = 1024;
  config.header_bytes = 32 << 10;
  config.stream_buffer_bytes = 1 << 20;
  return config;
}

// Browsers may take localhost for either loopback address, so that nobody else may be at the other.
Result<uint16_t> ListenAtLoopback(net::HttpServer& http, uint16_t wanted) {
  auto port = http.Listen(StrCat("127.0.0.1:", wanted));
  if (!port.ok()) return port;
  const auto six = http.Listen(StrCat("[::1]:", *port));
  if (!six.ok() && six.status().message().ends_with(std::strerror(EADDRINUSE))) return six.status();
  return port;  // else this machine has no IPv6
}

}  // namespace

Status CheckPagesAddresses(const std::string& pages, const std::string& programs) {
  if (pages == kOff) return Status::Ok();
  constexpr std::string_view kForm = "HOST:PORT or off";
  if (!pages.empty()) {
    SWELL_RETURN_IF_ERROR(CheckHostPort("--ui-address", pages, kForm, "127.0.0.1:8080"));
  }
  if (programs.empty() || programs == kOff) return Status::Ok();
  SWELL_RETURN_IF_ERROR(CheckHostPort("--ui-programs-address", programs, kForm, "127.0.0.1:8081"));
  if (IsLoopback(programs) == (pages.empty() || IsLoopback(pages))) return Status::Ok();
  return cli::Misuse(StrCat("--ui-programs-address ", Quote(programs),
                            ": browsers must reach it as they reach --ui-address, which is ",
                            pages.empty() ? "127.0.0.1" : pages));
}

// Destroyed from the last to the first, when neither thread runs any more.
struct ClusterPages::Impl {
  Impl(Executor& core_executor,
       const Clock& the_clock,
       const PagesSources& from,
       std::unique_ptr<ui::HistoryFile> file)
      : core(core_executor),
        clock(the_clock),
        sources(from),
        own_calls(ui::MakeCoreCalls(reactor, core, sources.server)),
        history(reactor, clock, state, own_calls, sources.user, std::move(file)),
        metrics(sources.metrics, clock),
        commands(reactor, core, sources.callers, clock, MakeWhatIfEngine()),
        front(core, *sources.callers, edge::HttpFrontConfig{}),
        relay(core, sources.callers),
        pages({.pages = reactor,
               .clock = clock,
               .server = ui::MakeCoreCalls(reactor, core, sources.callers),
               .front = front,
               .state = state,
               .secret = RandomSecret,
               .files = ui::EmbeddedPages(),
               .history = &history.history(),
               .commands = &commands,
               .address = sources.address,
               .reviewer = own_calls,
               .relay = &relay}),
        http(reactor, clock, pages, PagesServer()),
        programs(reactor, clock, pages.programs(), ProgramsServer()) {
    history.OnSamples(
        [this](const std::vector<ui::Sample>& samples) { metrics.OnSamples(samples); });
  }

  Executor& core;
  const Clock& clock;
  const PagesSources sources;
  net::Reactor reactor;
  ui::ClusterState state{clock};
  std::shared_ptr<api::RestHandler> own_calls;
  ui::HistoryKeeper history;
  ui::HistoryMetrics metrics;
  ui::CommandRunner commands;
  edge::HttpFront front;
  ui::PodRelay relay;
  ui::PageServer pages;
  net::HttpServer http;
  net::HttpServer programs;
  std::string url;
  std::unique_ptr<ui::ClusterFeed> feed;
  std::thread thread;
};

ClusterPages::ClusterPages(Executor& core,
                           const Clock& clock,
                           PagesSources sources,
                           const std::string& history_file)
    : sources_(std::move(sources)) {
  std::unique_ptr<ui::HistoryFile> kept;
  if (!history_file.empty()) {
    auto file = ui::HistoryFile::Open(history_file);
    if (file.ok()) {
      kept = std::move(*file);
    } else {
      SWELL_LOG_WARNING("pages", "the history will not survive a restart",
                        {"error", file.status().ToString()});
    }
  }
  impl_ = std::make_unique<Impl>(core, clock, sources_, std::move(kept));
}

ClusterPages::~ClusterPages() { Stop(); }

Status ClusterPages::Listen(const PagesOptions& options, Random& random) {
  const bool kept = options.address.empty();
  const bool loopback = kept || IsLoopback(options.address);
  std::optional<net::TlsServerConfig> tls;
  if (!loopback) tls = {options.cert_pem, options.key_pem, ""};
  auto port = kept ? ListenAtLastPort(options.port_file, random,
                                      [this](uint16_t one) {
                                        return impl_->http.Listen(StrCat("127.0.0.1:", one));
                                      })
                   : impl_->http.Listen(options.address, tls);
  if (!port.ok()) return port.status().WithContext(StrCat("--ui-address ", options.address));
  const ui::PortKind kind{.loopback = loopback, .secure = tls.has_value()};
  impl_->pages.SetPort(kind);
  impl_->url =
      StrCat(tls ? "https://" : "http://", HostForClients(options.address), ":", *port, "/");
  if (!options.port_file.empty()) {
    SWELL_RETURN_IF_ERROR(
        WriteFileAtomically(options.port_file, std::to_string(*port), kPortFileMode));
  }
  return ListenPrograms(options, kind, tls, random);
}

Status ClusterPages::ListenPrograms(const PagesOptions& options,
                                    ui::PortKind kind,
                                    const std::optional<net::TlsServerConfig>& tls,
                                    Random& random) {
  const std::string& address = options.programs_address;
  if (address == kOff) return Status::Ok();
  net::HttpServer& http = impl_->programs;
  const std::string host(WithoutPort(options.address));
  const auto listen = [&http, &kind, &tls, &host](uint16_t one) {
    return kind.loopback ? ListenAtLoopback(http, one) : http.Listen(StrCat(host, ":", one), tls);
  };
  auto port = address.empty() ? ListenAtLastPort(options.programs_port_file, random, listen)
                              : http.Listen(address, tls);
  if (!port.ok()) return port.status().WithContext(StrCat("--ui-programs-address ", address));
  impl_->pages.programs().SetPort(kind, *port);
  if (options.programs_port_file.empty()) return Status::Ok();
  return WriteFileAtomically(options.programs_port_file, std::to_string(*port), kPortFileMode);
}

void ClusterPages::Start(controllers::Informers& informers, uint64_t seed) {
  const ui::KindSet without = sources_.registered_users ? 0 : ui::Bit(ui::Kind::kUser);
  impl_->feed =
      std::make_unique<ui::ClusterFeed>(impl_->core, impl_->reactor, informers, sources_.server,
                                        sources_.user, impl_->state, seed, without);
  // What was known before comes before what is seen now.
  impl_->reactor.Post([this] { impl_->history.Start(); });
  impl_->feed->Start();
  impl_->thread = std::thread([this] { impl_->reactor.Run(); });
  // As `top -H` shows it: what the pages cost is told apart from the cluster itself.
  pthread_setname_np(impl_->thread.native_handle(), "swell-pages");
}

void ClusterPages::Stop() {
  if (!impl_->thread.joinable()) return;
  impl_->feed.reset();
  impl_->reactor.Post([this] {
    impl_->programs.Shutdown(Duration::zero(), [this] {
      impl_->http.Shutdown(kGrace, [this] { impl_->reactor.Stop(); });
    });
  });
  impl_->thread.join();
}

const std::string& ClusterPages::url() const { return impl_->url; }

json::Value ClusterPages::MakeCode(const api::Credentials& credentials) {
  const std::string code = RandomSecret();
  // The browser's request comes behind this post.
  impl_->reactor.Post(
      [&pages = impl_->pages, code, credentials] { pages.AddCode(code, credentials); });
  const int64_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(ui::Sessions::kCodeLife).count();
  return json::Object{{"code", code}, {"url", impl_->url}, {"expiresSeconds", seconds}};
}

}  // namespace swell::ops
