// ClusterTransport: a RestHandler for the cluster that a kubeconfig names: HttpTransport plus
// credentials that change under it.
//
// Token files are read again every minute. Exec plugins run before the first request, when what
// they gave is about to expire, and after an answer 401; requests wait meanwhile (bounded), and get
// the plugin's error as their answer when it fails. A 401 itself is passed on.
//
// An API server that has just started does not serve custom resources yet and answers 404 for all
// of them. For a controller that would mean "this object is gone", so such an answer becomes 503.
//
// Events and Leases may have connections of their own: nothing waits behind many Events, and Leases
// wait behind nothing.
//
// - Threads: the reactor's thread.
// - Ownership: reactor and clock outlive it; calls may outlive it, their sinks are then not called
//   any more.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/callback_scope.h"
#include "base/clock.h"
#include "kube/edge/cluster/exec_credential.h"
#include "kube/edge/http/http_transport.h"

namespace swell::edge {

struct ClusterTransportOptions {
  size_t connections = 32;
  size_t waiting_max = 10'000;   // requests waiting for a connection or for credentials
  size_t event_connections = 0;  // for Events alone; 0: they share the others
  size_t lease_connections = 0;  // for Leases alone; 0: they share the others
  bool trust_not_found = false;  // pass every 404 on, as commands want it
};

class ClusterTransport final : public api::RestHandler {
 public:
  static Result<std::unique_ptr<ClusterTransport>> Open(net::Reactor& reactor,
                                                        const Clock& clock,
                                                        client::ClusterAccess access,
                                                        ClusterTransportOptions options = {});
  ~ClusterTransport() override;

  [[nodiscard]] std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                                      std::shared_ptr<api::RestSink> sink) override;

 private:
  struct Lanes {
    std::unique_ptr<HttpTransport> main;
    std::unique_ptr<HttpTransport> events;  // null: main
    std::unique_ptr<HttpTransport> leases;  // null: main
  };
  struct Waiting;
  class WaitingCall;
  class WatchfulSink;

  ClusterTransport(net::Reactor& reactor,
                   const Clock& clock,
                   client::ClusterAccess access,
                   ClusterTransportOptions options);
  Status MakeLanes();
  HttpTransport& LaneOf(const api::RestRequest& request);
  std::unique_ptr<api::RestCall> Send(api::RestRequest request,
                                      std::shared_ptr<api::RestSink> sink);
  void SetToken(const std::string& token);
  void ReadTokenFile();
  bool NeedsCredential() const;
  void RunPlugin();
  void OnCredential(Result<ExecCredential> result);
  // The server refused what was sent with the credentials of that generation.
  void OnUnauthorized(uint64_t generation);

  net::Reactor& reactor_;
  const Clock& clock_;
  client::ClusterAccess access_;
  ClusterTransportOptions options_;
  Lanes lanes_;
  std::deque<Lanes> retired_;  // of earlier client certificates: their watches go on
  SteadyTime token_read_;
  uint64_t generation_ = 0;
  bool have_credential_ = false;
  std::optional<WallTime> expires_;
  SteadyTime plugin_ran_;
  Status plugin_error_;
  std::deque<std::shared_ptr<Waiting>> waiting_;
  std::unique_ptr<ExecCredentialRun> run_;
  CallbackScope scope_;
};

}  // namespace swell::edge
