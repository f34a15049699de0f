#include "bin/cluster_pages.h"

#include <pthread.h>

#include <thread>

#include "base/file.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/strings.h"
#include "kube/edge/http/http_front.h"
#include "kube/net/http/server.h"
#include "kube/net/reactor/reactor.h"
#include "ops/commands.h"
#include "ops/last_port.h"
#include "ui/commands/command_runner.h"
#include "ui/history/history_keeper.h"
#include "ui/history/history_metrics.h"
#include "ui/page_server.h"
#include "ui/state/cluster_state.h"
#include "ui/state/core_calls.h"
#include "ui/static_files.h"

namespace swell {
namespace {

constexpr Duration kGrace = std::chrono::milliseconds(200);

net::ServerConfig PagesServer() {
  net::ServerConfig config;
  config.max_connections = 4096;
  config.stream_buffer_bytes = 32 << 20;  // a view of ten thousand jobs is several MB
  return config;
}

std::string HostOf(const std::string& address) { return address.substr(0, address.rfind(':')); }

}  // namespace

bool IsLoopback(const std::string& address) {
  const std::string host = HostOf(address);
  return host.starts_with("127.") || host == "localhost" || host == "[::1]";
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
               .reviewer = own_calls}),
        http(reactor, clock, pages, PagesServer()) {
    history.OnSamples([this](const std::vector<ui::Sample>& samples) { metrics.Hear(samples); });
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
  ui::PageServer pages;
  net::HttpServer http;
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
  impl_->pages.SetPort(loopback, tls.has_value());
  std::string host = kept ? "127.0.0.1" : HostOf(options.address);
  if (host.empty() || host == "0.0.0.0" || host == "[::]") host = "127.0.0.1";
  impl_->url = StrCat(tls ? "https://" : "http://", host, ":", *port, "/");
  if (options.port_file.empty()) return Status::Ok();
  return WriteFileAtomically(options.port_file, std::to_string(*port), 0644);
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
  impl_->reactor.Post([this] { impl_->http.Shutdown(kGrace, [this] { impl_->reactor.Stop(); }); });
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

}  // namespace swell
