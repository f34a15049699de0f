#include "kube/node/network/service_addresses.h"

#include <utility>

#include "kube/api/meta/meta.h"

namespace swell::node {

ServiceAddresses::ServiceAddresses(Executor& executor,
                                   Clock& clock,
                                   const std::shared_ptr<api::RestHandler>& server,
                                   const api::UserInfo& user,
                                   std::string external)
    : external_(std::move(external)),
      events_(executor, clock, server, user, "services", 41),
      client_(executor, server, user, "service-addresses"),
      services_(executor, server, user, client::resources::kServices, {}, 42) {
  services_.AddHandlers({[this](const json::SharedValue&) { Write(); },
                         [this](const json::SharedValue&, const json::SharedValue&) { Write(); },
                         nullptr});
}

void ServiceAddresses::Start() { services_.Start(); }

void ServiceAddresses::OnRouted(const std::vector<RouteFault>& faults) {
  routed_ = true;
  std::map<std::string, std::string> now;
  for (const RouteFault& fault : faults) {
    now[fault.owner.uid] = fault.message;
    const auto known = faults_.find(fault.owner.uid);
    if (known != faults_.end() && known->second == fault.message) continue;
    const json::Value owner = json::Object{{"apiVersion", "v1"},
                                           {"kind", fault.owner.kind},
                                           {"metadata", json::Object{{"namespace", fault.owner.ns},
                                                                     {"name", fault.owner.name},
                                                                     {"uid", fault.owner.uid}}}};
    events_.Record(owner, "Warning", "PortNotServed", fault.message);
  }
  faults_ = std::move(now);
  Write();
}

void ServiceAddresses::Write() {
  if (!routed_) return;
  for (const auto& [key, service] : services_.objects()) {
    const bool balanced = json::GetString(*service, {"spec", "type"}) == "LoadBalancer";
    WriteStatus(*service, balanced && !faults_.contains(std::string(api::Uid(*service))));
  }
}

// A write that fails is repeated with the next change of a service.
void ServiceAddresses::WriteStatus(const json::Value& service, bool served) {
  const json::Array& addresses = json::GetArray(service, {"status", "loadBalancer", "ingress"});
  const bool has = addresses.size() == 1 && json::GetString(addresses[0], {"ip"}) == external_;
  if (served ? has : addresses.empty()) return;
  json::Object balancer{{"ingress", nullptr}};
  if (served) balancer["ingress"] = json::Array{json::Value(json::Object{{"ip", external_}})};
  client_.Patch(client::resources::kServices, api::Namespace(service), api::Name(service),
                client::PatchType::kMerge,
                json::Object{{"status", json::Object{{"loadBalancer", std::move(balancer)}}}}, {},
                "status");
}

}  // namespace swell::node
