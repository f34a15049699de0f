#include "cli/jobs/service_address.h"

#include "base/host_port.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/net/http/http.h"

namespace swell::cli {
namespace {

std::string BalancerOf(const json::Value& service) {
  const json::Array& all = json::GetArray(service, {"status", "loadBalancer", "ingress"});
  if (all.empty()) return "";
  return std::string(json::GetString(all[0], {"ip"}, json::GetString(all[0], {"hostname"})));
}

std::string AwaitBalancer(Api& api, const json::Value& service) {
  constexpr int kLooks = 50;
  std::string address = BalancerOf(service);
  for (int looks = 0; address.empty() && looks < kLooks; ++looks) {
    if (!api.Pause(std::chrono::milliseconds(100))) return "";
    auto now = api.Get(client::resources::kServices, api::Namespace(service), api::Name(service));
    if (!now.ok()) return "";
    address = BalancerOf(**now);
  }
  return address;
}

// Every node answers at node ports. Nodes that are not machines of their own have no address of
// their own: there it is the machine of the API server.
std::string NodeAddress(Api& api) {
  auto nodes = api.List(client::resources::kNodes, "");
  for (const json::SharedValue& node : nodes.ok() ? *nodes : std::vector<json::SharedValue>()) {
    for (const json::Value& one : json::GetArray(*node, {"status", "addresses"})) {
      const std::string_view ip = json::GetString(one, {"address"});
      if (json::GetString(one, {"type"}) != "InternalIP" || ip.starts_with("127.")) continue;
      return std::string(ip);
    }
  }
  auto server = net::ParseUrl(api.connection().url);
  return server.ok() ? std::move(server->host) : std::string();
}

bool IsBalanced(const json::Value& service) {
  return json::GetString(service, {"spec", "type"}) == "LoadBalancer";
}

// Whether people reach it, and not only pods.
bool IsForPeople(const json::Value& service) {
  return IsBalanced(service) || json::GetString(service, {"spec", "type"}) == "NodePort";
}

std::vector<std::string> PortsAt(const std::string& host, const json::Value& service) {
  std::vector<std::string> addresses;
  for (const json::Value& port : json::GetArray(service, {"spec", "ports"})) {
    const int64_t number = json::GetInt(port, {IsBalanced(service) ? "port" : "nodePort"});
    if (!host.empty() && number != 0) addresses.push_back(StrCat(Bracketed(host), ":", number));
  }
  return addresses;
}

}  // namespace

std::vector<std::string> AddressesOf(Api& api, const json::Value& service) {
  if (!IsForPeople(service)) return {};
  return PortsAt(IsBalanced(service) ? AwaitBalancer(api, service) : NodeAddress(api), service);
}

JobAddresses::JobAddresses(Api& api, std::string_view ns) : api_(api) {
  const auto services = api_.List(client::resources::kServices, ns);
  if (!services.ok()) return;
  for (const json::SharedValue& service : *services) {
    if (!IsForPeople(*service)) continue;
    for (const api::OwnerReference& owner : api::Owners(*service)) {
      by_owner_[owner.uid].push_back(service);
    }
  }
}

std::vector<std::string> JobAddresses::Of(std::string_view uid) {
  std::vector<std::string> all;
  const auto services = by_owner_.find(uid);
  if (services == by_owner_.end()) return all;
  for (const json::SharedValue& service : services->second) {
    if (!IsBalanced(*service) && !node_) node_ = NodeAddress(api_);
    for (std::string& address :
         PortsAt(IsBalanced(*service) ? BalancerOf(*service) : *node_, *service)) {
      all.push_back(std::move(address));
    }
  }
  return all;
}

}  // namespace swell::cli
