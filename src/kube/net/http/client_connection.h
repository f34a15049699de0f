// ClientConnection and ClientImpl: one connection to the server, and the pool of them. Internal to
// net.
// - Threads: the reactor's thread only.
// - Ownership: ClientImpl owns connections; a closed one lives until the loop's next turn, because
//   its own callbacks may be running. A callback may destroy the HttpClient.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/timer.h"
#include "kube/net/connection/byte_stream_state.h"
#include "kube/net/connection/channel.h"
#include "kube/net/http/client.h"
#include "kube/net/http/http1_codec.h"

namespace swell::net {

class ClientConnection;

// One request on its way.
struct ClientJob {
  enum class Kind { kSend, kStream, kUpgrade };

  RequestId id = 0;
  Kind kind = Kind::kSend;
  std::string method;
  Chunk bytes;
  std::string what;  // "GET https://host/path", for errors
  HttpClient::ResponseCallback on_response;
  HttpClient::HeadCallback on_head;
  HttpClient::DataCallback on_data;
  HttpClient::EndCallback on_end;
  HttpClient::UpgradeCallback on_upgrade;
  Duration limit = Duration::zero();  // from its turn on; zero: none
  bool urgent = false;
  TimerId timer = kNoTimer;
  ClientConnection* connection = nullptr;  // null while waiting
  std::string body;
  bool on_reused = false;  // sent on a connection that had been idle
  bool answered = false;   // at least one byte of the answer has come
  bool retried = false;
};

class ClientImpl : public std::enable_shared_from_this<ClientImpl> {
 public:
  ClientImpl(Reactor& reactor, ClientConfig config, Url url, std::shared_ptr<TlsContext> tls);

  RequestId Submit(HttpRequest request, Duration limit, std::shared_ptr<ClientJob> job);
  void Cancel(RequestId id);
  void CloseAll();

  // For connections.
  void Release(ClientConnection* connection);  // idle again
  void Remove(ClientConnection* connection, bool was_pooled);
  // The connection broke under the job: again on a new one, or its error.
  void JobBroke(const std::shared_ptr<ClientJob>& job, const Status& why);
  void FinishJob(const std::shared_ptr<ClientJob>& job, Status why, HttpResponse response);
  void FinishUpgrade(const std::shared_ptr<ClientJob>& job, HttpClient::UpgradeResult result);
  void HeadArrived(ClientJob* job);

  Reactor& reactor;
  ClientConfig config;
  const Url url;
  const std::shared_ptr<TlsContext> tls;

 private:
  void Assign(const std::shared_ptr<ClientJob>& job, bool fresh);
  void StartClock(ClientJob* job);
  void Connect(const std::shared_ptr<ClientJob>& job);
  void ServeWaiting();
  void TimeOut(RequestId id);
  void ArmSweep();
  void Sweep();
  // Takes the job out; false when it is already over.
  bool Retire(ClientJob* job);

  RequestId next_id_ = 1;
  bool closed_ = false;
  bool in_submit_ = false;
  std::unordered_map<RequestId, std::shared_ptr<ClientJob>> jobs_;
  std::deque<std::shared_ptr<ClientJob>> urgent_, waiting_;     // may hold jobs that are over
  std::vector<std::shared_ptr<ClientConnection>> connections_;  // each knows its index
  std::vector<ClientConnection*> idle_;                         // latest used last
  size_t pooled_ = 0;                                           // idle or serving Send
  TimerId sweep_ = kNoTimer;
};

class ClientConnection final : public Channel::Events,
                               public std::enable_shared_from_this<ClientConnection> {
 public:
  ClientConnection(ClientImpl& client, bool pooled);

  void Start(std::shared_ptr<ClientJob> job);
  // On an idle connection.
  void Begin(std::shared_ptr<ClientJob> job);
  // Without telling the job.
  void Close();
  bool pooled() const { return pooled_; }
  SteadyTime idle_since() const { return idle_since_; }
  bool Stalled(SteadyTime now) const;

  void OnOpen() override;
  void OnData(std::string_view bytes) override;
  void OnEof() override;
  void OnProgress() override {}
  void OnError(const Status& why) override;

  size_t index = 0;  // in ClientImpl's list

 private:
  void TryNextAddress(const Status& last);
  void Write();
  // Returns bytes consumed; stops when the answer is over.
  size_t Parse(std::string_view bytes);
  bool HandleHead(size_t used, std::string_view bytes);
  void HandleDone(bool clean);
  void Break(const Status& why);

  ClientImpl& client_;
  const bool pooled_;
  std::shared_ptr<Channel> channel_;
  std::vector<SocketAddress> addresses_;
  size_t next_address_ = 0;
  Timer connect_timer_{client_.reactor};
  bool open_ = false;
  bool closed_ = false;
  ResponseParser parser_;
  std::string buffered_;
  std::shared_ptr<ClientJob> job_;
  std::shared_ptr<ByteStreamState> upgraded_;
  SteadyTime idle_since_;
};

}  // namespace swell::net
