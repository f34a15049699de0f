#include "kube/net/http/client.h"

#include <algorithm>

#include "base/check.h"
#include "base/strings.h"
#include "kube/net/http/client_connection.h"

namespace swell::net {
namespace {

bool IsIdempotent(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" ||
         method == "OPTIONS";
}

}  // namespace

ClientImpl::ClientImpl(Reactor& reactor,
                       ClientConfig config,
                       Url url,
                       std::shared_ptr<TlsContext> tls)
    : reactor(reactor), config(std::move(config)), url(std::move(url)), tls(std::move(tls)) {}

RequestId ClientImpl::Submit(HttpRequest request, Duration limit, std::shared_ptr<ClientJob> job) {
  job->id = next_id_++;
  job->method = request.method;
  job->urgent = request.urgent;
  std::string target = url.path;
  target += !request.target.empty() ? request.target : request.path;
  if (request.target.empty() && !request.query.empty()) target.append("?").append(request.query);
  job->what = StrCat(request.method, " ", url.scheme, "://",
                     url.scheme == "unix" ? url.host : url.Authority(), target);
  std::string bytes;
  bytes.reserve(512 + request.body.size());
  bool upgrade = job->kind == ClientJob::Kind::kUpgrade;
  Status encoded =
      AppendRequest(&bytes, request, target, url.Authority(), config.default_headers, upgrade);
  jobs_.emplace(job->id, job);
  in_submit_ = true;
  if (!encoded.ok()) {
    FinishJob(job, encoded, {});
  } else {
    job->bytes = MakeChunk(std::move(bytes));
    job->limit = limit;
    Assign(job, false);
  }
  in_submit_ = false;
  return job->id;
}

// A request's time begins with its turn: those that wait for a connection are not late for it.
void ClientImpl::StartClock(ClientJob* job) {
  if (job->timer != kNoTimer || job->limit <= Duration::zero()) return;
  job->timer = reactor.After(job->limit, [this, id = job->id] { TimeOut(id); });
}

void ClientImpl::Assign(const std::shared_ptr<ClientJob>& job, bool fresh) {
  if (job->kind != ClientJob::Kind::kSend) {
    if (connections_.size() - pooled_ >= config.max_streams) {
      FinishJob(job,
                Status(Code::kUnavailable, StrCat("more than ", config.max_streams, " streams")),
                {});
      return;
    }
    Connect(job);
    return;
  }
  if (!fresh && !idle_.empty()) {
    ClientConnection* connection = idle_.back();
    idle_.pop_back();
    StartClock(job.get());
    connection->Begin(job);
  } else if (pooled_ < config.max_connections) {
    Connect(job);
  } else if (urgent_.size() + waiting_.size() < config.max_waiting) {
    (job->urgent ? urgent_ : waiting_).push_back(job);
  } else {
    FinishJob(job,
              Status(Code::kUnavailable,
                     StrCat("more than ", config.max_waiting, " requests are waiting")),
              {});
  }
}

void ClientImpl::Connect(const std::shared_ptr<ClientJob>& job) {
  bool pooled = job->kind == ClientJob::Kind::kSend;
  auto connection = std::make_shared<ClientConnection>(*this, pooled);
  connection->index = connections_.size();
  connections_.push_back(connection);
  if (pooled) ++pooled_;
  StartClock(job.get());
  connection->Start(job);
  ArmSweep();
}

void ClientImpl::Release(ClientConnection* connection) {
  idle_.push_back(connection);
  ServeWaiting();
}

void ClientImpl::Remove(ClientConnection* connection, bool was_pooled) {
  size_t index = connection->index;
  std::shared_ptr<ClientConnection> removed = std::move(connections_[index]);
  if (index + 1 < connections_.size()) {
    connections_[index] = std::move(connections_.back());
    connections_[index]->index = index;
  }
  connections_.pop_back();
  idle_.erase(std::remove(idle_.begin(), idle_.end(), connection), idle_.end());
  if (was_pooled) --pooled_;
  // Its own methods may be on the stack; and it refers to this client.
  reactor.Post([self = shared_from_this(), removed = std::move(removed)]() mutable {
    removed = nullptr;
    if (!self->closed_) self->ServeWaiting();
  });
}

void ClientImpl::ServeWaiting() {
  while (!idle_.empty() || pooled_ < config.max_connections) {
    auto& from = urgent_.empty() ? waiting_ : urgent_;
    if (from.empty()) return;
    std::shared_ptr<ClientJob> job = std::move(from.front());
    from.pop_front();
    if (jobs_.count(job->id) != 0) Assign(job, false);
  }
}

bool ClientImpl::Retire(ClientJob* job) {
  reactor.Cancel(std::exchange(job->timer, kNoTimer));
  return jobs_.erase(job->id) != 0;
}

void ClientImpl::JobBroke(const std::shared_ptr<ClientJob>& job, const Status& why) {
  bool again = job->kind == ClientJob::Kind::kSend && job->on_reused && !job->answered &&
               !job->retried && IsIdempotent(job->method) && jobs_.count(job->id) != 0;
  if (again) {
    job->retried = true;
    Assign(job, true);
    return;
  }
  FinishJob(job, why, {});
}

void ClientImpl::FinishJob(const std::shared_ptr<ClientJob>& job,
                           Status why,
                           HttpResponse response) {
  if (in_submit_) {
    // The caller does not know the request's id yet.
    reactor.Post(
        [self = shared_from_this(), job, why = std::move(why)] { self->FinishJob(job, why, {}); });
    return;
  }
  if (!Retire(job.get())) return;
  if (!why.ok()) why = why.WithContext(job->what);
  switch (job->kind) {
    case ClientJob::Kind::kSend:
      job->on_response(why.ok() ? Result<HttpResponse>(std::move(response))
                                : Result<HttpResponse>(std::move(why)));
      return;
    case ClientJob::Kind::kStream:
      job->on_end(std::move(why));
      return;
    case ClientJob::Kind::kUpgrade:
      if (why.ok()) {
        job->on_upgrade(HttpClient::UpgradeResult{std::move(response), nullptr});
      } else {
        job->on_upgrade(std::move(why));
      }
      return;
  }
}

void ClientImpl::FinishUpgrade(const std::shared_ptr<ClientJob>& job,
                               HttpClient::UpgradeResult result) {
  if (Retire(job.get())) job->on_upgrade(std::move(result));
}

void ClientImpl::HeadArrived(ClientJob* job) {
  // A stream may now take as long as it likes; a plain request's deadline is for all of it.
  if (job->kind == ClientJob::Kind::kStream) reactor.Cancel(std::exchange(job->timer, kNoTimer));
}

void ClientImpl::TimeOut(RequestId id) {
  auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  std::shared_ptr<ClientJob> job = found->second;
  job->timer = kNoTimer;
  if (job->connection != nullptr) std::exchange(job->connection, nullptr)->Close();
  FinishJob(job, Status(Code::kTimeout, "the server did not answer in time"), {});
}

void ClientImpl::Cancel(RequestId id) {
  auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  std::shared_ptr<ClientJob> job = found->second;
  Retire(job.get());
  if (job->connection != nullptr) std::exchange(job->connection, nullptr)->Close();
}

void ClientImpl::CloseAll() {
  closed_ = true;
  for (auto& [id, job] : jobs_) reactor.Cancel(job->timer);
  jobs_.clear();
  urgent_.clear();
  waiting_.clear();
  reactor.Cancel(std::exchange(sweep_, kNoTimer));
  while (!connections_.empty()) {
    auto last = connections_.back();
    last->Close();
  }
}

void ClientImpl::ArmSweep() {
  if (sweep_ != kNoTimer || closed_) return;
  Duration period = std::max<Duration>(config.idle_timeout / 4, std::chrono::milliseconds(1));
  sweep_ = reactor.After(period, [this] { Sweep(); });
}

void ClientImpl::Sweep() {
  sweep_ = kNoTimer;
  SteadyTime now = reactor.Now();
  auto idle = idle_;
  for (ClientConnection* connection : idle) {
    if (now - connection->idle_since() > config.idle_timeout) connection->Close();
  }
  auto all = connections_;
  for (const auto& connection : all) {
    if (connection->Stalled(now)) connection->Close();
  }
  if (!connections_.empty()) ArmSweep();
}

HttpClient::HttpClient(std::shared_ptr<ClientImpl> impl) : impl_(std::move(impl)) {}

HttpClient::~HttpClient() { impl_->CloseAll(); }

Result<std::unique_ptr<HttpClient>> HttpClient::Make(Reactor& reactor, ClientConfig config) {
  SWELL_ASSIGN_OR_RETURN(Url url, ParseUrl(config.base_url));
  std::shared_ptr<TlsContext> tls;
  if (url.scheme == "https") {
    SWELL_ASSIGN_OR_RETURN(tls, MakeClientContext(config.tls));
  }
  return std::unique_ptr<HttpClient>(new HttpClient(
      std::make_shared<ClientImpl>(reactor, std::move(config), std::move(url), std::move(tls))));
}

RequestId HttpClient::Send(HttpRequest request, Duration deadline, ResponseCallback done) {
  SWELL_CHECK(impl_->reactor.OnThread());
  auto job = std::make_shared<ClientJob>();
  job->kind = ClientJob::Kind::kSend;
  job->on_response = std::move(done);
  return impl_->Submit(std::move(request), deadline, std::move(job));
}

RequestId HttpClient::Stream(HttpRequest request,
                             HeadCallback on_head,
                             DataCallback on_data,
                             EndCallback on_end) {
  SWELL_CHECK(impl_->reactor.OnThread());
  auto job = std::make_shared<ClientJob>();
  job->kind = ClientJob::Kind::kStream;
  job->on_head = std::move(on_head);
  job->on_data = std::move(on_data);
  job->on_end = std::move(on_end);
  return impl_->Submit(std::move(request), impl_->config.header_timeout, std::move(job));
}

RequestId HttpClient::Upgrade(HttpRequest request, UpgradeCallback done) {
  SWELL_CHECK(impl_->reactor.OnThread());
  auto job = std::make_shared<ClientJob>();
  job->kind = ClientJob::Kind::kUpgrade;
  job->on_upgrade = std::move(done);
  return impl_->Submit(std::move(request), impl_->config.header_timeout, std::move(job));
}

void HttpClient::Cancel(RequestId id) { impl_->Cancel(id); }

void HttpClient::SetDefaultHeader(const std::string& name, const std::string& value) {
  for (Header& header : impl_->config.default_headers) {
    if (EqualsIgnoreCase(header.name, name)) {
      header.value = value;
      return;
    }
  }
  impl_->config.default_headers.push_back({name, value});
}

}  // namespace swell::net
