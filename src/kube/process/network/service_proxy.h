// ServiceProxy: cluster IPs of services, for pods with networks of their own, and the ports of this
// machine that lead to pods (node ports, load balancers, host ports).
//
// The pods' bridge gets each cluster IP that leads anywhere, and a socket listens there on each
// port of its service; what pods say to it goes to the next ready pod, at that pod's own port. The
// sockets accept connections from the bridge alone, so several clusters of one machine may use the
// same cluster IPs. Pods see connections through services as coming from their gateway; so whether
// a pod may be reached by the client is asked here, before it is dialled. TCP only.
//
// - Threads: the reactor's thread.
// - Ownership: the reactor outlives the proxy; connections end with it, or with their service's
//   port.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kube/net/reactor/reactor.h"
#include "kube/node/runtime/service_route.h"

namespace swell::process {

class ServiceProxy {
 public:
  // Whether the client at this address may be connected to the backend.
  using Judge = std::function<bool(const std::string& from, const node::ServiceBackend& to)>;

  // `device`: the bridge. Empty: the cluster IPs are addresses of this machine already.
  // `pods_device`: the interface by which pods reach this machine, if that is not the bridge;
  // empty: any.
  ServiceProxy(net::Reactor& reactor,
               std::string device,
               Judge judge = {},
               std::optional<std::string> pods_device = {},
               size_t flows_max = 4096);
  ~ServiceProxy();

  // `routes` are all there are; one without backends refuses connections. A port that several
  // owners ask for stays with the one that had it, with or without backends; else the oldest gets
  // it. Returns what cannot be served.
  std::vector<node::RouteFault> Update(const std::vector<node::ServiceRoute>& routes);
  // Cluster IPs and ports that are served.
  std::set<std::pair<std::string, uint16_t>> ClusterPorts() const;

 private:
  class FlowBook;
  class Listener;
  using Key = std::pair<std::string, uint16_t>;  // cluster IP and port

  // Addresses that an earlier run of swell left on the bridge.
  void FindAddresses();
  Status SetAddress(const std::string& ip, bool present);
  void SetAddresses(const std::set<std::string>& ips);
  // The routes by their right to an address that several ask for.
  std::vector<const node::ServiceRoute*> ByRight(
      const std::vector<node::ServiceRoute>& routes) const;
  // Opens what is not open yet.
  Status Serve(const Key& key, const node::ServiceRoute& route);

  net::Reactor& reactor_;
  const std::string device_;
  const std::string pods_device_;
  const Judge judge_;
  std::set<std::string> addresses_;  // cluster IPs that the bridge has
  std::unique_ptr<FlowBook> flows_;  // connections of all listeners, which end before it
  std::map<Key, std::unique_ptr<Listener>> listeners_;
  std::map<Key, std::string> holders_;  // uids of the owners
};

}  // namespace swell::process
