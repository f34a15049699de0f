// ServiceAddresses: gives services of type LoadBalancer the machine's address in their status once
// their ports are served there, and says in events which ports of the machine are not served.
// - Threads: core executor only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kube/client/client.h"
#include "kube/client/event_recorder.h"
#include "kube/client/informer.h"
#include "kube/node/runtime/service_route.h"

namespace swell::node {

class ServiceAddresses {
 public:
  // `external`: the address of load balancers.
  ServiceAddresses(Executor& executor,
                   Clock& clock,
                   const std::shared_ptr<api::RestHandler>& server,
                   const api::UserInfo& user,
                   std::string external);

  void Start();
  // The latest word about the ports of this machine.
  void OnRouted(const std::vector<RouteFault>& faults);

 private:
  void Write();
  void WriteStatus(const json::Value& service, bool served);

  const std::string external_;
  bool routed_ = false;
  std::map<std::string, std::string> faults_;  // uid of the owner → what is wrong
  client::EventRecorder events_;
  client::Client client_;
  client::Informer services_;
};

}  // namespace swell::node
