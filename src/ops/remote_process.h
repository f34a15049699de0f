// RemoteProcess: what `swell controller`, `agent` and `install` have in common: an event loop with
// a connection to a cluster that runs elsewhere.
// - Threads: the thread that makes it runs it and is the core thread.
// - Ownership: components made over it are destroyed before it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "kube/client/client.h"
#include "kube/edge/cluster/cluster_transport.h"
#include "kube/net/reactor/reactor.h"
#include "ops/flags.h"

namespace swell::ops {

class RemoteProcess {
 public:
  static Result<std::unique_ptr<RemoteProcess>> Connect(const RemoteFlags& flags,
                                                        edge::ClusterTransportOptions options);

  net::Reactor& core() { return core_; }
  Clock& clock() { return clock_; }
  Random& random() { return random_; }
  const std::shared_ptr<api::RestHandler>& server() const { return server_; }
  const client::ClusterAccess& access() const { return access_; }
  client::Client& client() { return *client_; }

  // One call after the other: runs the loop until the answer is there.
  Result<json::SharedValue> Await(const std::function<void(client::ObjectCallback)>& call);
  // The document that answers any request.
  Result<json::SharedValue> Call(api::RestRequest request);
  // Whether the cluster serves this version of an API group.
  Result<bool> Serves(const std::string& group, const std::string& version);
  // Whether it has the resource, which gates and settings may leave out of a version.
  Result<bool> Serves(const client::Resource& resource);
  // What it says it is: "v1.32.4", of a cluster of swell up "v1.37.2+swell".
  Result<std::string> ServerVersion();
  // Lets the loop run for a while.
  void Pause(Duration span) { core_.RunFor(span); }

  // Runs until SIGINT or SIGTERM, which call `stop`; it ends the loop with core().Stop().
  Status Run(const std::function<void()>& stop);

 private:
  RemoteProcess();

  RealClock clock_;
  Random random_;
  net::Reactor core_;
  client::ClusterAccess access_;
  std::shared_ptr<api::RestHandler> server_;
  std::unique_ptr<client::Client> client_;
};

// The custom resources that Swell needs and the cluster does not serve: "podgroups.swell.dev".
Result<std::vector<std::string>> MissingCrds(RemoteProcess& process);

}  // namespace swell::ops
