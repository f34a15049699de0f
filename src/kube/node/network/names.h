// ServiceNames: which address every name of the cluster means, for the hosts files of pods.
//
// There is no DNS server. A headless Service's names lead to all its ready pods, the others' to
// their cluster IP, where `route` says that somebody serves it (process::ServiceProxy). Pods in the
// host's network do not reach cluster IPs, and where pods have no networks nobody does: for them a
// service's names lead straight to the first of its pods, at its own ports. A headless service
// whose pods are not ready yet leads to those that run: training processes look for each other
// before anyone calls them ready. Names come in the forms x, x.ns, x.ns.svc and
// x.ns.svc.cluster.local; pods with hostname and subdomain get theirs as in Kubernetes.
//
// It also says which ports of this machine lead to pods: node ports, the ports of load balancers
// and host ports of pods that have networks of their own.
//
// Changes are passed on at most every 100 ms, the first of them at once.
//
// - Threads: core executor only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/callback_scope.h"
#include "base/timer.h"
#include "kube/client/informer.h"
#include "kube/node/runtime/runtime.h"
#include "kube/node/runtime/service_route.h"
#include "kube/node/spec/pod_spec.h"

namespace swell::node {

class ServiceNames {
 public:
  // `route` is told where cluster IPs lead; null if the runtime does not serve them.
  ServiceNames(Executor& executor,
               std::shared_ptr<api::RestHandler> server,
               api::UserInfo user,
               RouteServices route = nullptr,
               MachineAddresses machine = {},
               OnRouted routed = {});

  void Start();

  // The lines of the pod's hosts file beyond localhost and itself.
  std::vector<HostsEntry> HostsFor(const json::Value& pod) const;
  // NAME_SERVICE_HOST and the like for the services of the pod's namespace.
  EnvList ServiceEnv(const json::Value& pod) const;

  // `changed` runs when names that pods of the namespace see have changed, until the returned
  // handle is destroyed. The number grows with every change.
  [[nodiscard]] std::shared_ptr<void> Subscribe(const std::string& ns,
                                                std::function<void(uint64_t)> changed);

 private:
  enum class Audience { kAllPods, kPodNetwork, kHostNetwork };
  struct Entry {
    Audience audience = Audience::kAllPods;
    std::string ns;
    std::string ip;
    std::vector<std::string> local;  // forms for pods of the same namespace
    std::vector<std::string> full;   // forms for pods of all namespaces
    bool operator==(const Entry&) const = default;
  };
  struct Subscriber {
    std::string ns;
    std::function<void(uint64_t)> changed;
  };

  void OnChange();
  void Flush();
  void AddService(const json::Value& service, std::vector<Entry>& entries) const;
  std::vector<Entry> Compute() const;
  // `faults` gets what is not served because a namespace asks for too much.
  std::vector<ServiceRoute> Routes(std::vector<RouteFault>& faults) const;
  void AddHostPorts(std::vector<ServiceRoute>& routes) const;
  // The cluster IP at which this pod reaches the service; empty if it does not.
  std::string_view ClusterIpFor(const json::Value& pod, const json::Value& service) const;
  std::vector<std::string> AddressesOf(const json::Value& service) const;

  Executor& executor_;
  const RouteServices route_;
  const MachineAddresses machine_;
  const OnRouted routed_;
  std::vector<ServiceRoute> routes_;
  std::vector<Entry> entries_;
  uint64_t generation_ = 0;
  bool flush_posted_ = false;
  bool dirty_ = false;
  Timer flush_timer_;  // pending: too soon for another flush
  std::map<uint64_t, std::weak_ptr<Subscriber>> subscribers_;
  uint64_t next_subscriber_ = 1;
  CallbackScope scope_;
  client::Informer services_;
  client::Informer endpoints_;
  client::Informer slices_;
  client::Informer pods_;
};

}  // namespace swell::node
