#include "kube/node/network/names.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/selector.h"
#include "kube/api/objects/pod.h"

namespace swell::node {
namespace {

constexpr Duration kFlushInterval = std::chrono::milliseconds(100);
constexpr std::string_view kDomain = "cluster.local";
// Each is a socket of the process that runs the cluster.
constexpr size_t kPortsOfNamespaceMax = 2000;
constexpr int64_t kAffinitySeconds = 10'800;  // Kubernetes' default

// Names depend on nothing else of a pod.
bool SameForNames(const json::Value& a, const json::Value& b) {
  return json::GetString(a, {"status", "podIP"}) == json::GetString(b, {"status", "podIP"}) &&
         api::IsActive(a) == api::IsActive(b) &&
         api::ConditionIsTrue(a, "Ready") == api::ConditionIsTrue(b, "Ready") &&
         json::Print(json::GetObject(a, {"metadata", "labels"})) ==
             json::Print(json::GetObject(b, {"metadata", "labels"}));
}

bool HostNetwork(const json::Value& pod) { return json::GetBool(pod, {"spec", "hostNetwork"}); }

// Empty for headless and ExternalName services.
std::string_view ClusterIp(const json::Value& service) {
  const std::string_view ip = json::GetString(service, {"spec", "clusterIP"});
  return ip == "None" ? std::string_view() : ip;
}

void AddBackend(std::string_view ip, uint16_t port, std::vector<ServiceBackend>& backends) {
  const bool known = std::any_of(backends.begin(), backends.end(), [&](const ServiceBackend& one) {
    return one.ip == ip && one.port == port;
  });
  if (!known) backends.push_back({std::string(ip), port});
}

// The ready addresses of a slice, which may have several for each endpoint.
std::vector<std::string_view> ReadyIn(const json::Value& slice) {
  std::vector<std::string_view> ready;
  if (json::GetString(slice, {"addressType"}) != "IPv4") return ready;
  for (const json::Value& endpoint : json::GetArray(slice, {"endpoints"})) {
    if (!json::GetBool(endpoint, {"conditions", "ready"}, true)) continue;
    for (const json::Value& address : json::GetArray(endpoint, {"addresses"})) {
      if (address.is_string()) ready.push_back(json::View(address.get_string()));
    }
  }
  return ready;
}

void AddBackendsOf(const json::Value& slice,
                   std::string_view port_name,
                   std::vector<ServiceBackend>& backends) {
  for (const json::Value& port : json::GetArray(slice, {"ports"})) {
    if (json::GetString(port, {"name"}) != port_name) continue;
    const auto number = static_cast<uint16_t>(json::GetInt(port, {"port"}));
    for (std::string_view ip : ReadyIn(slice)) AddBackend(ip, number, backends);
  }
}

// Slices that controllers make of Endpoints and pods say nothing new.
bool IsMade(const json::Value& slice) {
  const std::string_view by = api::Label(slice, "endpointslice.kubernetes.io/managed-by");
  return by == "endpointslice-controller.k8s.io" ||
         by == "endpointslicemirroring-controller.k8s.io";
}

// The ready backends of a service's port: Endpoints have each pod's own number for it.
std::vector<ServiceBackend> Backends(const json::Value& endpoints, std::string_view port_name) {
  std::vector<ServiceBackend> backends;
  for (const json::Value& subset : json::GetArray(endpoints, {"subsets"})) {
    for (const json::Value& port : json::GetArray(subset, {"ports"})) {
      if (json::GetString(port, {"name"}) != port_name) continue;
      const auto number = static_cast<uint16_t>(json::GetInt(port, {"port"}));
      for (const json::Value& address : json::GetArray(subset, {"addresses"})) {
        backends.push_back({std::string(json::GetString(address, {"ip"})), number});
      }
    }
  }
  return backends;
}

RouteOwner OwnerOf(std::string_view kind, const json::Value& object) {
  return {std::string(kind), std::string(api::Namespace(object)), std::string(api::Name(object)),
          std::string(api::Uid(object)),
          std::string(json::GetString(object, {"metadata", "creationTimestamp"}))};
}

// The ports of this machine that lead where `route` leads, the cluster IP's.
void AddMachineRoutes(const json::Value& service,
                      const json::Value& port,
                      ServiceRoute route,
                      const MachineAddresses& machine,
                      std::vector<ServiceRoute>& routes) {
  route.owner = OwnerOf("Service", service);
  const int64_t node_port = json::GetInt(port, {"nodePort"});
  if (node_port != 0 && !machine.nodes.empty()) {
    route.ip = machine.nodes;
    const uint16_t own = std::exchange(route.port, static_cast<uint16_t>(node_port));
    routes.push_back(route);
    route.port = own;
  }
  if (json::GetString(service, {"spec", "type"}) != "LoadBalancer") return;
  if (machine.external.empty()) return;
  route.ip = machine.external;
  routes.push_back(std::move(route));
}

std::string EnvName(std::string_view name) {
  std::string out = ToUpper(name);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

}  // namespace

ServiceNames::ServiceNames(Executor& executor,
                           std::shared_ptr<api::RestHandler> server,
                           api::UserInfo user,
                           RouteServices route,
                           MachineAddresses machine,
                           OnRouted routed)
    : executor_(executor),
      route_(std::move(route)),
      machine_(std::move(machine)),
      routed_(std::move(routed)),
      flush_timer_(executor),
      services_(executor, server, user, client::resources::kServices, {}, 11),
      endpoints_(executor, server, user, client::resources::kEndpoints, {}, 12),
      slices_(executor, server, user, client::resources::kEndpointSlices, {}, 14),
      pods_(executor,
            std::move(server),
            std::move(user),
            client::resources::kPods,
            {.ns = "", .label_selector = "", .field_selector = "spec.nodeName!="},
            13) {
  pods_.AddIndex("namespace",
                 [](const json::Value& pod) { return std::string(api::Namespace(pod)); });
  slices_.AddIndex("service", [](const json::Value& slice) {
    if (IsMade(slice)) return std::string();
    return StrCat(api::Namespace(slice), "/", api::Label(slice, "kubernetes.io/service-name"));
  });
  auto on_object = [this](const json::SharedValue&) { OnChange(); };
  auto on_update = [this](const json::SharedValue&, const json::SharedValue&) { OnChange(); };
  services_.AddHandlers({on_object, on_update, on_object});
  endpoints_.AddHandlers({on_object, on_update, on_object});
  auto on_slice = [this](const json::SharedValue& slice) {
    if (!IsMade(*slice)) OnChange();
  };
  slices_.AddHandlers(
      {on_slice,
       [on_slice](const json::SharedValue&, const json::SharedValue& slice) { on_slice(slice); },
       on_slice});
  pods_.AddHandlers({on_object,
                     [this](const json::SharedValue& old_pod, const json::SharedValue& pod) {
                       if (!SameForNames(*old_pod, *pod)) OnChange();
                     },
                     on_object});
}

void ServiceNames::Start() {
  services_.Start();
  endpoints_.Start();
  slices_.Start();
  pods_.Start();
}

void ServiceNames::OnChange() {
  dirty_ = true;
  if (flush_timer_.pending() || flush_posted_) return;
  flush_posted_ = true;
  executor_.Post(scope_.Wrap([this] {
    flush_posted_ = false;
    Flush();
  }));
}

void ServiceNames::Flush() {
  if (!dirty_) return;
  dirty_ = false;
  flush_timer_.Start(kFlushInterval, [this] { Flush(); });
  if (route_) {
    // Addresses must lead somewhere before pods see them.
    std::vector<RouteFault> own;
    std::vector<ServiceRoute> routes = Routes(own);
    if (routes != routes_) {
      route_(routes, scope_.Wrap([this, own](std::vector<RouteFault> faults) {
        faults.insert(faults.end(), own.begin(), own.end());
        if (routed_) routed_(std::move(faults));
      }));
    }
    routes_ = std::move(routes);
  }
  std::vector<Entry> now = Compute();
  std::set<std::string> changed;  // namespaces whose names differ
  auto collect = [&changed](const std::vector<Entry>& from, const std::vector<Entry>& other) {
    for (const Entry& entry : from) {
      if (std::find(other.begin(), other.end(), entry) == other.end()) changed.insert(entry.ns);
    }
  };
  collect(now, entries_);
  collect(entries_, now);
  if (changed.empty()) return;
  entries_ = std::move(now);
  ++generation_;
  // All pods see the full names of every namespace.
  std::vector<std::shared_ptr<Subscriber>> live;
  for (auto it = subscribers_.begin(); it != subscribers_.end();) {
    if (auto subscriber = it->second.lock()) {
      live.push_back(std::move(subscriber));
      ++it;
    } else {
      it = subscribers_.erase(it);
    }
  }
  for (const auto& subscriber : live) subscriber->changed(generation_);
}

std::vector<std::string> ServiceNames::AddressesOf(const json::Value& service) const {
  std::vector<std::string> ready, running;
  const json::Object& selector = json::GetObject(service, {"spec", "selector"});
  bool publish_all = json::GetBool(service, {"spec", "publishNotReadyAddresses"});
  if (!selector.empty()) {
    for (const json::SharedValue& pod : pods_.ByIndex("namespace", api::Namespace(service))) {
      std::string_view ip = json::GetString(*pod, {"status", "podIP"});
      if (ip.empty() || !api::IsActive(*pod) || !api::HasLabels(*pod, selector)) continue;
      running.emplace_back(ip);
      if (publish_all || api::ConditionIsTrue(*pod, "Ready")) ready.emplace_back(ip);
    }
  } else if (auto endpoints = endpoints_.Get(api::KeyOf(service))) {
    for (const json::Value& subset : json::GetArray(*endpoints, {"subsets"})) {
      for (const json::Value& address : json::GetArray(subset, {"addresses"})) {
        ready.emplace_back(json::GetString(address, {"ip"}));
      }
    }
  }
  for (const json::SharedValue& slice : slices_.ByIndex("service", api::KeyOf(service))) {
    for (std::string_view ip : ReadyIn(*slice)) {
      if (std::find(ready.begin(), ready.end(), ip) == ready.end()) ready.emplace_back(ip);
    }
  }
  return ready.empty() ? running : ready;
}

void ServiceNames::AddService(const json::Value& service, std::vector<Entry>& entries) const {
  const std::string name(api::Name(service));
  const std::string ns(api::Namespace(service));
  auto add = [&](Audience audience, std::string ip) {
    entries.push_back({audience,
                       ns,
                       std::move(ip),
                       {name},
                       {StrCat(name, ".", ns), StrCat(name, ".", ns, ".svc"),
                        StrCat(name, ".", ns, ".svc.", kDomain)}});
  };
  std::vector<std::string> addresses = AddressesOf(service);
  const std::string_view cluster_ip = ClusterIp(service);
  const bool routed = route_ && !cluster_ip.empty();
  if (routed) add(Audience::kPodNetwork, std::string(cluster_ip));
  if (!cluster_ip.empty() && addresses.size() > 1) addresses.resize(1);
  for (std::string& ip : addresses) {
    add(routed ? Audience::kHostNetwork : Audience::kAllPods, std::move(ip));
  }
}

std::vector<ServiceNames::Entry> ServiceNames::Compute() const {
  std::vector<Entry> entries;
  for (const auto& [key, service] : services_.objects()) AddService(*service, entries);
  for (const auto& [key, pod] : pods_.objects()) {
    std::string_view ip = json::GetString(*pod, {"status", "podIP"});
    std::string_view subdomain = json::GetString(*pod, {"spec", "subdomain"});
    if (ip.empty() || subdomain.empty() || !api::IsActive(*pod)) continue;
    std::string ns(api::Namespace(*pod));
    std::string name =
        StrCat(json::GetString(*pod, {"spec", "hostname"}, api::Name(*pod)), ".", subdomain);
    entries.push_back({Audience::kAllPods,
                       ns,
                       std::string(ip),
                       {name},
                       {StrCat(name, ".", ns), StrCat(name, ".", ns, ".svc"),
                        StrCat(name, ".", ns, ".svc.", kDomain)}});
  }
  return entries;
}

std::vector<ServiceRoute> ServiceNames::Routes(std::vector<RouteFault>& faults) const {
  std::vector<ServiceRoute> routes;
  std::map<std::string_view, size_t> ports_of;  // by namespace
  for (const auto& [key, service] : services_.objects()) {
    const std::string_view ip = ClusterIp(*service);
    if (ip.empty()) continue;
    const json::SharedValue endpoints = endpoints_.Get(key);
    for (const json::Value& port : json::GetArray(*service, {"spec", "ports"})) {
      if (json::GetString(port, {"protocol"}, "TCP") != "TCP") continue;
      if (++ports_of[api::Namespace(*service)] > kPortsOfNamespaceMax) {
        faults.push_back(
            {OwnerOf("Service", *service),
             StrCat("port ", json::GetInt(port, {"port"}),
                    " and those after it are not served: the services of namespace ",
                    api::Namespace(*service), " have more than ", kPortsOfNamespaceMax, " ports")});
        break;
      }
      ServiceRoute route{.ip = std::string(ip),
                         .port = static_cast<uint16_t>(json::GetInt(port, {"port"}))};
      if (endpoints) route.backends = Backends(*endpoints, json::GetString(port, {"name"}));
      for (const json::SharedValue& slice : slices_.ByIndex("service", key)) {
        AddBackendsOf(*slice, json::GetString(port, {"name"}), route.backends);
      }
      if (json::GetString(*service, {"spec", "sessionAffinity"}) == "ClientIP") {
        route.affinity = std::chrono::seconds(
            json::GetInt(*service, {"spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds"},
                         kAffinitySeconds));
      }
      AddMachineRoutes(*service, port, route, machine_, routes);
      routes.push_back(std::move(route));
    }
  }
  if (!machine_.nodes.empty()) AddHostPorts(routes);
  return routes;
}

void ServiceNames::AddHostPorts(std::vector<ServiceRoute>& routes) const {
  for (const auto& [key, pod] : pods_.objects()) {
    const std::string_view ip = json::GetString(*pod, {"status", "podIP"});
    if (ip.empty() || HostNetwork(*pod) || !api::IsActive(*pod)) continue;
    for (const json::Value& container : json::GetArray(*pod, {"spec", "containers"})) {
      for (const json::Value& port : json::GetArray(container, {"ports"})) {
        const int64_t number = json::GetInt(port, {"hostPort"});
        if (number == 0 || json::GetString(port, {"protocol"}, "TCP") != "TCP") continue;
        const std::string_view host = json::GetString(port, {"hostIP"});
        ServiceRoute route{
            .ip = host.empty() || host == "0.0.0.0" ? machine_.nodes : std::string(host),
            .port = static_cast<uint16_t>(number),
            .owner = OwnerOf("Pod", *pod)};
        route.backends = {
            {std::string(ip), static_cast<uint16_t>(json::GetInt(port, {"containerPort"}))}};
        routes.push_back(std::move(route));
      }
    }
  }
}

std::vector<HostsEntry> ServiceNames::HostsFor(const json::Value& pod) const {
  std::vector<HostsEntry> hosts;
  std::string_view ns = api::Namespace(pod);
  const Audience other = HostNetwork(pod) ? Audience::kPodNetwork : Audience::kHostNetwork;
  for (const Entry& entry : entries_) {
    if (entry.audience == other) continue;
    HostsEntry line{entry.ip, {}};
    if (entry.ns == ns) line.names = entry.local;
    line.names.insert(line.names.end(), entry.full.begin(), entry.full.end());
    hosts.push_back(std::move(line));
  }
  return hosts;
}

std::string_view ServiceNames::ClusterIpFor(const json::Value& pod,
                                            const json::Value& service) const {
  return route_ && !HostNetwork(pod) ? ClusterIp(service) : std::string_view();
}

EnvList ServiceNames::ServiceEnv(const json::Value& pod) const {
  EnvList env;
  for (const auto& [key, service] : services_.objects()) {
    if (api::Namespace(*service) != api::Namespace(pod)) continue;
    const json::Array& ports = json::GetArray(*service, {"spec", "ports"});
    // Headless services have no variables.
    if (ClusterIp(*service).empty() || ports.empty()) continue;
    std::string host(ClusterIpFor(pod, *service));
    const bool routed = !host.empty();
    if (!routed) {
      // The cluster IP does not work for this pod: the variables have the address of the name.
      std::vector<std::string> addresses = AddressesOf(*service);
      if (addresses.empty()) continue;
      host = std::move(addresses.front());
    }
    const std::string name = EnvName(api::Name(*service));
    auto number = [routed](const json::Value& port) {
      const int64_t own = json::GetInt(port, {"port"});
      return std::to_string(routed ? own : json::GetInt(port, {"targetPort"}, own));
    };
    env.emplace_back(name + "_SERVICE_HOST", host);
    env.emplace_back(name + "_SERVICE_PORT", number(ports.front()));
    for (const json::Value& port : ports) {
      std::string_view port_name = json::GetString(port, {"name"});
      if (port_name.empty()) continue;
      env.emplace_back(StrCat(name, "_SERVICE_PORT_", EnvName(port_name)), number(port));
    }
    env.emplace_back(name + "_PORT", StrCat("tcp://", host, ":", number(ports.front())));
    for (const json::Value& port : ports) {
      const std::string protocol(json::GetString(port, {"protocol"}, "TCP"));
      const std::string prefix = StrCat(name, "_PORT_", number(port), "_", protocol);
      env.emplace_back(prefix, StrCat(ToLower(protocol), "://", host, ":", number(port)));
      env.emplace_back(prefix + "_PROTO", ToLower(protocol));
      env.emplace_back(prefix + "_PORT", number(port));
      env.emplace_back(prefix + "_ADDR", host);
    }
  }
  return env;
}

std::shared_ptr<void> ServiceNames::Subscribe(const std::string& ns,
                                              std::function<void(uint64_t)> changed) {
  auto subscriber = std::make_shared<Subscriber>(Subscriber{ns, std::move(changed)});
  subscribers_[next_subscriber_++] = subscriber;
  return subscriber;
}

}  // namespace swell::node
