#include "kube/net/http/client_connection.h"

#include <algorithm>

#include "base/strings.h"

namespace swell::net {
namespace {

constexpr size_t kMaxReserve = 8 << 20;  // believed of a Content-Length before the bytes come

}  // namespace

ClientConnection::ClientConnection(ClientImpl& client, bool pooled)
    : client_(client), pooled_(pooled), parser_(CodecLimits{}) {}

void ClientConnection::Start(std::shared_ptr<ClientJob> job) {
  job->connection = this;
  job_ = std::move(job);
  connect_timer_.Start(client_.config.connect_timeout,
                       [this] { Break(Status(Code::kTimeout, "connect: took too long")); });
  const Url& url = client_.url;
  auto literal = url.scheme == "unix" ? UnixAddress(url.host) : LiteralAddress(url.host, url.port);
  if (literal.ok()) {
    addresses_.push_back(std::move(*literal));
    TryNextAddress({});
    return;
  }
  if (url.scheme == "unix") {
    Break(literal.status());
    return;
  }
  client_.reactor.Resolve(url.host, url.port,
                          [weak = weak_from_this()](Result<std::vector<SocketAddress>> found) {
                            auto self = weak.lock();
                            if (self == nullptr || self->closed_) return;
                            if (!found.ok()) return self->Break(found.status());
                            self->addresses_ = std::move(*found);
                            self->TryNextAddress(Status(Code::kUnavailable, "host has no address"));
                          });
}

void ClientConnection::TryNextAddress(const Status& last) {
  Status why = last;
  while (next_address_ < addresses_.size()) {
    auto fd = ConnectTo(addresses_[next_address_++]);
    if (!fd.ok()) {
      why = fd.status();
      continue;
    }
    channel_ = std::make_shared<Channel>(client_.reactor, std::move(*fd), this);
    why = channel_->StartConnecting(client_.tls, client_.url.host);
    if (why.ok()) return;
    channel_->Close();
  }
  Break(why);
}

void ClientConnection::OnOpen() {
  open_ = true;
  connect_timer_.Cancel();
  channel_->SetReading(true);
  Write();
}

void ClientConnection::Begin(std::shared_ptr<ClientJob> job) {
  job->connection = this;
  job->on_reused = true;
  job_ = std::move(job);
  Write();
}

void ClientConnection::Write() {
  parser_.Start(job_->method);
  buffered_.clear();
  channel_->Send(job_->bytes);
  channel_->Flush();
}

bool ClientConnection::Stalled(SteadyTime now) const {
  return upgraded_ != nullptr && upgraded_->Stalled(now, client_.config.upgraded_stall_timeout);
}

void ClientConnection::OnData(std::string_view bytes) {
  auto self = shared_from_this();
  if (job_ == nullptr) {
    Close();  // a server that speaks unasked cannot be trusted with the next request
    return;
  }
  job_->answered = true;
  if (buffered_.empty()) {
    size_t used = Parse(bytes);
    if (!closed_ && job_ != nullptr) buffered_ = bytes.substr(used);
    return;
  }
  buffered_.append(bytes);
  std::string all = std::move(buffered_);
  buffered_.clear();
  size_t used = Parse(all);
  if (closed_ || job_ == nullptr) return;
  all.erase(0, used);
  buffered_ = std::move(all);
}

size_t ClientConnection::Parse(std::string_view bytes) {
  size_t used = 0;
  while (true) {
    ResponseParser::Step step = parser_.Parse(bytes.substr(used));
    used += step.consumed;
    switch (step.result) {
      case ResponseParser::Result::kNeedMore:
        return used;
      case ResponseParser::Result::kHead:
        if (!HandleHead(used, bytes)) return bytes.size();
        break;
      case ResponseParser::Result::kData:
        if (job_->kind == ClientJob::Kind::kStream) {
          auto job = job_;  // Cancel inside the callback lets go of it
          job->on_data(step.data);
          if (closed_) return used;
        } else if (job_->body.size() + step.data.size() > client_.config.max_response_bytes) {
          job_->retried = true;
          Break(Status(Code::kTooLarge, StrCat("answer is larger than ",
                                               client_.config.max_response_bytes, " bytes")));
          return used;
        } else {
          job_->body.append(step.data);
        }
        break;
      case ResponseParser::Result::kDone:
        HandleDone(used == bytes.size());
        return used;
      case ResponseParser::Result::kError:
        job_->retried = true;  // it would say the same again
        Break(Status(Code::kUnavailable, StrCat("malformed answer: ", parser_.error())));
        return used;
    }
  }
}

// False when the connection is not HTTP's any more.
bool ClientConnection::HandleHead(size_t used, std::string_view bytes) {
  client_.HeadArrived(job_.get());
  auto job = job_;
  if (job->kind == ClientJob::Kind::kStream) {
    job->on_head(parser_.status(), parser_.headers());
    return !closed_;
  }
  if (parser_.status() == 101 && job->kind == ClientJob::Kind::kUpgrade) {
    auto stream =
        std::make_shared<ByteStreamState>(&client_.reactor, client_.config.stream_buffer_bytes);
    upgraded_ = stream;
    job_ = nullptr;
    stream->Attach(channel_, std::string(bytes.substr(used)), [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->Close();
    });
    HttpClient::UpgradeResult result;
    result.response.status = 101;
    result.response.headers = std::move(parser_.headers());
    result.stream = std::make_shared<ByteStream>(stream);
    client_.FinishUpgrade(job, std::move(result));
    return false;
  }
  if (parser_.status() == 101) {
    job->retried = true;
    Break(Status(Code::kUnavailable, "unexpected answer: 101 Switching Protocols"));
    return false;
  }
  if (const std::string* length = FindHeader(parser_.headers(), "Content-Length")) {
    job->body.reserve(std::min<uint64_t>(ParseUint(*length).value_or(0), kMaxReserve));
  }
  return true;
}

void ClientConnection::HandleDone(bool clean) {
  auto job = std::exchange(job_, nullptr);
  job->connection = nullptr;
  HttpResponse response;
  response.status = parser_.status();
  response.headers = std::move(parser_.headers());
  if (!job->body.empty()) response.body.push_back(MakeChunk(std::move(job->body)));
  // Before the callback, whose next request may then use this connection.
  auto client = client_.shared_from_this();
  if (clean && pooled_ && parser_.keep_alive()) {
    idle_since_ = client->reactor.Now();
    client->Release(this);
  } else {
    Close();
  }
  client->FinishJob(job, Status::Ok(), std::move(response));
}

void ClientConnection::OnEof() {
  if (job_ != nullptr && open_ && parser_.FinishAtClose() && parser_.status() != 0) {
    HandleDone(false);
    return;
  }
  if (job_ == nullptr) {
    Close();
    return;
  }
  Break(Status(Code::kUnavailable, job_->answered
                                       ? "the server closed the connection within its answer"
                                       : "the server closed the connection without an answer"));
}

void ClientConnection::OnError(const Status& why) {
  if (!open_ && next_address_ < addresses_.size()) {
    TryNextAddress(why);
    return;
  }
  Break(why);
}

void ClientConnection::Break(const Status& why) {
  auto self = shared_from_this();
  auto client = client_.shared_from_this();
  auto job = std::exchange(job_, nullptr);
  Close();
  if (job == nullptr) return;
  job->connection = nullptr;
  client->JobBroke(job, why);
}

void ClientConnection::Close() {
  if (std::exchange(closed_, true)) return;
  auto self = shared_from_this();
  connect_timer_.Cancel();
  if (channel_ != nullptr) channel_->Close();
  job_ = nullptr;
  if (auto stream = std::move(upgraded_)) {
    stream->Detach(Status(Code::kUnavailable, "the client has gone"));
  }
  client_.Remove(this, pooled_);
}

}  // namespace swell::net
