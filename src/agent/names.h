// ServiceNames: which address every name of the cluster means, for the hosts files of pods.
//
// There is no DNS server and no proxy on a machine of plain processes, so a Service's names lead
// straight to pods: a headless service to all its ready pods, one with a cluster IP to the first
// of them. A service whose pods are not ready yet leads to those that run: training processes look
// for each other before anyone calls them ready. Names come in the forms x, x.ns, x.ns.svc and
// x.ns.svc.cluster.local; pods with hostname and subdomain get theirs as in Kubernetes.
//
// Changes are passed on at most every 100 ms, the first of them at once.
// Thread-safety: core executor only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/pod_spec.h"
#include "agent/runtime.h"
#include "client/informer.h"

namespace swell::agent {

class ServiceNames {
 public:
  ServiceNames(Executor& executor, std::shared_ptr<api::RestHandler> server, api::UserInfo user);
  ~ServiceNames();

  void Start();

  // What the pod's hosts file says beyond localhost and itself.
  std::vector<HostsEntry> HostsFor(const json::Value& pod) const;
  // NAME_SERVICE_HOST and friends of the namespace's services.
  EnvList ServiceEnv(std::string_view ns) const;

  // `changed` runs when names that pods of the namespace see have changed, until the answer is
  // dropped. The number grows with every change.
  [[nodiscard]] std::shared_ptr<void> Subscribe(const std::string& ns,
                                                std::function<void(uint64_t)> changed);

 private:
  struct Entry {
    std::string ns;
    std::string ip;
    std::vector<std::string> local;  // forms for pods of the same namespace
    std::vector<std::string> full;   // forms for everybody
    bool operator==(const Entry&) const = default;
  };
  struct Subscriber {
    std::string ns;
    std::function<void(uint64_t)> changed;
  };

  void Touch();
  void Flush();
  std::vector<Entry> Compute() const;
  std::vector<std::string> AddressesOf(const json::Value& service) const;

  Executor& executor_;
  std::vector<Entry> entries_;
  uint64_t generation_ = 0;
  bool flush_posted_ = false;
  bool cooling_ = false;
  bool dirty_ = false;
  TimerId timer_ = kNoTimer;
  std::map<uint64_t, std::weak_ptr<Subscriber>> subscribers_;
  uint64_t next_subscriber_ = 1;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  client::Informer services_;
  client::Informer endpoints_;
  client::Informer pods_;
};

}  // namespace swell::agent
