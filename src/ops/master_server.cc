#include "ops/master_server.h"

#include <thread>

#include "base/strings.h"

namespace swell::ops {
namespace {

constexpr Duration kTick = std::chrono::seconds(1);

void Respond(net::Exchange& exchange, const json::Value& body) {
  exchange.Respond(
      {200, {{"Content-Type", "application/json"}}, {net::MakeChunk(json::Print(body))}});
}

}  // namespace

struct MasterServer::JournalThread {
  net::Reactor reactor;
  std::thread thread{[this] { reactor.Run(); }};

  ~JournalThread() {
    reactor.Post([this] { reactor.Stop(); });
    thread.join();
  }
};

MasterServer::MasterServer(net::Reactor& reactor, const Clock& clock)
    : reactor_(reactor), clock_(clock), master_(clock.Now().unix_ns / 1000) {}

MasterServer::~MasterServer() = default;

Result<std::unique_ptr<MasterServer>> MasterServer::Make(net::Reactor& reactor,
                                                         const Clock& clock,
                                                         const std::string& journal) {
  std::unique_ptr<MasterServer> server(new MasterServer(reactor, clock));
  if (!journal.empty()) {
    SWELL_ASSIGN_OR_RETURN(server->journal_,
                           elastic::MasterJournal::Open(journal, server->master_));
    server->thread_ = std::make_unique<JournalThread>();
  }
  server->master_.ForgiveSilence(clock.Now());
  server->Tick();
  return server;
}

void MasterServer::OnRequest(std::shared_ptr<net::Exchange> exchange) {
  const net::HttpRequest& request = exchange->request();
  if (request.method == "GET") return Get(*exchange);
  if (request.method != "POST") {
    return exchange->Respond(net::StatusResponse(
        Status(Code::kMethodNotAllowed, StrCat(request.method, " is not GET or POST"))));
  }
  if (!broken_.ok()) return exchange->Respond(net::StatusResponse(broken_));
  auto body = json::Parse(request.body.empty() ? "{}" : std::string_view(request.body),
                          {.depth = 16, .bytes = 3 << 20});
  if (!body.ok()) return exchange->Respond(net::StatusResponse(body.status()));
  const WallTime now = clock_.Now();
  auto answer = master_.Handle(request.path, *body, now);
  if (!answer.ok()) return exchange->Respond(net::StatusResponse(answer.status()));
  if (!answer->changed || !journal_) return Respond(*exchange, answer->body);
  waiting_.emplace_back(exchange, std::move(answer->body));
  Keep(elastic::MasterJournal::PrintRequest(request.path, *body, now));
}

void MasterServer::Get(net::Exchange& exchange) {
  const std::string& path = exchange.request().path;
  const WallTime now = clock_.Now();
  if (path == "/v1/state") return Respond(exchange, master_.State(now));
  if (path == "/v1/snapshot") return Respond(exchange, master_.Snapshot());
  if (path == "/healthz") return exchange.Respond({200, {}, {net::MakeChunk("ok")}});
  if (path == "/metrics") {
    return exchange.Respond({200,
                             {{"Content-Type", "text/plain; version=0.0.4"}},
                             {net::MakeChunk(master_.Metrics(now))}});
  }
  exchange.Respond(net::StatusResponse(Status(Code::kNotFound, StrCat("there is no ", path))));
}

void MasterServer::Keep(std::string line) {
  lines_ += line;
  if (!committing_) {
    committing_ = true;
    // Whatever else has arrived by now goes along.
    reactor_.Post([this] { Commit(); });
  }
}

void MasterServer::Commit() {
  const bool replace = journal_bytes_ + lines_.size() > elastic::MasterJournal::kBytesMax;
  if (replace) {
    lines_ = elastic::MasterJournal::PrintSnapshot(master_);
    journal_bytes_ = 0;
  }
  journal_bytes_ += lines_.size();
  thread_->reactor.Post([this, replace, lines = std::exchange(lines_, {}),
                         answers = std::exchange(waiting_, {})]() mutable {
    Status status = replace ? journal_->Replace(lines) : journal_->Append(lines);
    reactor_.Post([this, status, answers = std::move(answers)]() mutable {
      Committed(status, std::move(answers));
    });
  });
}

void MasterServer::Committed(const Status& status, Waiting answers) {
  if (!status.ok() && broken_.ok()) broken_ = status;
  for (auto& [exchange, body] : answers) {
    if (broken_.ok()) {
      Respond(*exchange, body);
    } else {
      exchange->Respond(net::StatusResponse(broken_));
    }
  }
  committing_ = !lines_.empty();
  if (committing_) Commit();
}

void MasterServer::Tick() {
  const WallTime now = clock_.Now();
  const json::Value expired = master_.FindExpired(now);
  if (!expired.is_null() && broken_.ok() && master_.Handle("/v1/expire", expired, now).ok()) {
    if (journal_) Keep(elastic::MasterJournal::PrintRequest("/v1/expire", expired, now));
  }
  reactor_.After(kTick, [this] { Tick(); });
}

}  // namespace swell::ops
