// Rules of services, endpoints, ingresses and network policies.
#include <optional>
#include <set>

#include "base/strings.h"
#include "kube/api/meta/cidr.h"
#include "kube/api/meta/meta.h"
#include "kube/api/validate/validate_rules.h"

namespace swell::api {
namespace {

using json::Value;

// A range of addresses; nullopt where the text names no range.
std::optional<Cidr> CheckRange(std::string_view text, const std::string& at, FieldErrors& errors) {
  std::optional<Cidr> range = ParseCidr(text);
  if (!range) {
    errors.push_back(
        InvalidText(at, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"));
  } else if (!range->IsNetwork()) {
    errors.push_back(InvalidText(at, text, "must not have bits set beyond the prefix length"));
  }
  return range;
}

void CheckIpBlock(const Value& block, const std::string& at, FieldErrors& errors) {
  const std::string_view text = TextOf(block, "cidr");
  if (text.empty()) {
    errors.push_back(RequiredError(PathField(at, "cidr")));
    return;
  }
  const std::optional<Cidr> range = CheckRange(text, PathField(at, "cidr"), errors);
  if (!range) return;
  for (const auto& [excluded, where] : ItemsOf(block, "except", at)) {
    const std::optional<Cidr> part = CheckRange(TextIn(excluded), where, errors);
    if (!part) continue;
    if (!range->Contains(*part) || range->bits >= part->bits) {
      errors.push_back(InvalidText(where, TextIn(excluded), "must be a strict subset of `cidr`"));
    }
  }
}

bool IsLoopbackIp(std::string_view ip) { return ip.starts_with("127.") || ip == "::1"; }

// An address that can be another machine's.
void CheckOrdinaryIp(std::string_view ip, const std::string& at, FieldErrors& errors) {
  auto invalid = [&](std::string_view why) { errors.push_back(InvalidText(at, ip, why)); };
  if (ip == "0.0.0.0" || ip == "::") {
    invalid(StrCat("may not be unspecified (", ip, ")"));
  } else if (IsLoopbackIp(ip)) {
    invalid("may not be in the loopback range (127.0.0.0/8, ::1/128)");
  } else if (ip.starts_with("169.254.")) {
    invalid("may not be in the link-local range (169.254.0.0/16, fe80::/10)");
  } else if (ip.starts_with("224.0.0.")) {
    invalid("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
  }
}

void CheckServicePort(const Value& port,
                      const std::string& at,
                      bool named,
                      std::set<std::string>& names,
                      FieldErrors& errors) {
  std::string name(TextOf(port, "name"));
  if (name.empty()) {
    if (named) errors.push_back(RequiredError(PathField(at, "name")));
  } else {
    CheckText(name, CheckDnsLabel, PathField(at, "name"), errors);
    if (!names.insert(name).second) {
      errors.push_back(DuplicateError(PathField(at, "name"), Value(name)));
    }
  }
  const int64_t number = json::GetInt(port, {"port"});
  CheckPort(number, PathField(at, "port"), errors);
  CheckOneOf(port, "protocol", at, {"SCTP", "TCP", "UDP"}, errors);
  if (const Value* target = MemberOf(port, "targetPort")) {
    CheckPortOrName(*target, PathField(at, "targetPort"), errors);
  }
  if (const Value* protocol = MemberOf(port, "appProtocol")) {
    CheckQualified(TextIn(*protocol), PathField(at, "appProtocol"), errors);
  }
}

// What a port of a service is known by, as Go prints it.
std::string ShowServicePort(std::string_view protocol, int64_t port) {
  return StrCat("core.ServicePort{Name:\"\", Protocol:", Quote(protocol),
                ", AppProtocol:(*string)(nil), Port:", port,
                ", TargetPort:intstr.IntOrString{Type:0, IntVal:0, StrVal:\"\"}, NodePort:0}");
}

void CheckPortsTogether(const Value& spec, FieldErrors& errors) {
  const json::Array& ports = json::GetArray(spec, {"ports"});
  std::string_view type = TextOf(spec, "type");
  std::set<std::string> node_ports;
  for (const auto& [port, port_at] : ItemsOf(ports, "spec.ports")) {
    const int64_t number = json::GetInt(port, {"nodePort"});
    if (number == 0) continue;
    std::string at = PathField(port_at, "nodePort");
    if (type == "ClusterIP") {
      errors.push_back(ForbiddenError(at, "may not be used when `type` is 'ClusterIP'"));
    }
    if (!node_ports.insert(StrCat(TextOf(port, "protocol"), "/", number)).second) {
      errors.push_back(DuplicateError(at, Value(number)));
    }
  }
  std::set<std::string> numbers;
  for (const auto& [port, port_at] : ItemsOf(ports, "spec.ports")) {
    std::string key = ShowServicePort(TextOf(port, "protocol"), json::GetInt(port, {"port"}));
    if (!numbers.insert(key).second) {
      errors.push_back({"FieldValueDuplicate", port_at, StrCat("Duplicate value: ", key)});
    }
  }
}

void CheckExternalName(const Value& spec, FieldErrors& errors) {
  std::string_view name = TextOf(spec, "externalName");
  if (name.ends_with('.')) name.remove_suffix(1);
  CheckRequired(name, CheckDnsSubdomain, "spec.externalName", errors);
}

void CheckAffinityOfClients(const Value& spec, FieldErrors& errors) {
  constexpr int64_t kMaxSeconds = 86400;
  CheckOneOf(spec, "sessionAffinity", "spec", {"ClientIP", "None"}, errors);
  const Value* config = MemberOf(spec, "sessionAffinityConfig");
  if (config == nullptr) return;
  if (TextOf(spec, "sessionAffinity") == "None") {
    errors.push_back(ForbiddenError("spec.sessionAffinityConfig",
                                    "must not be set when session affinity is None"));
    return;
  }
  const Value* seconds = json::Find(*config, {"clientIP", "timeoutSeconds"});
  if (seconds == nullptr || !seconds->is_int64()) return;
  if (seconds->get_int64() <= 0 || seconds->get_int64() > kMaxSeconds) {
    errors.push_back(InvalidError("spec.sessionAffinityConfig.clientIP.timeoutSeconds", *seconds,
                                  StrCat("must be greater than 0 and less than ", kMaxSeconds)));
  }
}

void CheckServiceAddresses(const Value& spec, FieldErrors& errors) {
  const std::string_view ip = TextOf(spec, "clusterIP");
  if (!ip.empty() && ip != "None") {
    CheckText(ip, CheckIp, "spec.clusterIPs[0]", errors);
  }
  for (const auto& [one, at] : ItemsOf(spec, "externalIPs", "spec")) {
    const std::string_view address = TextIn(one);
    if (std::string why = CheckIp(address); !why.empty()) {
      errors.push_back(InvalidText(at, address, why));
    } else {
      CheckOrdinaryIp(address, at, errors);
    }
  }
}

void CheckOutsideTraffic(const Value& spec, FieldErrors& errors) {
  const std::string_view type = TextOf(spec, "type");
  const json::Array& ranges = json::GetArray(spec, {"loadBalancerSourceRanges"});
  if (!ranges.empty()) {
    const std::string at = "spec.LoadBalancerSourceRanges";
    if (type != "LoadBalancer") {
      errors.push_back(ForbiddenError(at, "may only be used when `type` is 'LoadBalancer'"));
    }
    for (const auto& [range, range_at] : ItemsOf(ranges, at)) {
      CheckRange(Trim(TextIn(range)), range_at, errors);
    }
  }
  const std::string_view policy = TextOf(spec, "externalTrafficPolicy");
  const bool reachable = type == "NodePort" || type == "LoadBalancer" ||
                         (type == "ClusterIP" && !json::GetArray(spec, {"externalIPs"}).empty());
  if (!reachable && !policy.empty()) {
    errors.push_back(InvalidText("spec.externalTrafficPolicy", policy,
                                 "may only be set for externally-accessible services"));
  } else {
    CheckOneOf(spec, "externalTrafficPolicy", "spec", {"Cluster", "Local"}, errors);
  }
  const Value* health = MemberOf(spec, "healthCheckNodePort");
  const int64_t port = health ? json::GetInt(*health, {}) : 0;
  if (port == 0) return;
  if (type != "LoadBalancer" || policy != "Local") {
    errors.push_back(InvalidError("spec.healthCheckNodePort", *health,
                                  "may only be set when `type` is 'LoadBalancer' and "
                                  "`externalTrafficPolicy` is 'Local'"));
  } else {
    CheckPort(port, "spec.healthCheckNodePort", errors);
  }
}

void CheckService(const Value& service, const Value* old, FieldErrors& errors) {
  const Value& spec = SpecOf(service);
  const std::string_view ip = TextOf(spec, "clusterIP");
  const std::string_view type = TextOf(spec, "type");
  const bool headless = ip == "None";
  const json::Array& ports = json::GetArray(spec, {"ports"});
  if (ports.empty() && !headless && type != "ExternalName") {
    errors.push_back(RequiredError("spec.ports"));
  }
  if (headless && (type == "NodePort" || type == "LoadBalancer")) {
    errors.push_back(InvalidText("spec.clusterIPs[0]", ip,
                                 StrCat("may not be set to 'None' for ", type, " services")));
  }
  if (type == "ExternalName") {
    if (!ip.empty()) {
      errors.push_back(
          ForbiddenError("spec.clusterIPs", "may not be set for ExternalName services"));
    }
    CheckExternalName(spec, errors);
  }
  std::set<std::string> names;
  for (size_t i = 0; i < ports.size(); ++i) {
    CheckServicePort(ports[i], PathIndex("spec.ports", i), ports.size() > 1, names, errors);
  }
  if (const Value* selector = MemberOf(spec, "selector")) {
    CheckLabels(*selector, "spec.selector", errors);
  }
  CheckAffinityOfClients(spec, errors);
  if (type != "ExternalName") CheckServiceAddresses(spec, errors);
  CheckOneOf(spec, "type", "spec", {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"},
             errors);
  CheckPortsTogether(spec, errors);
  CheckOutsideTraffic(spec, errors);
  if (old == nullptr) return;
  std::string_view before = json::GetString(*old, {"spec", "clusterIP"});
  bool same_type = json::GetString(*old, {"spec", "type"}) == type;
  if (!before.empty() && same_type && !ip.empty() && before != ip) {
    errors.push_back(InvalidText("spec.clusterIP", ip, "may not change once set"));
  }
}

void CheckEndpointAddress(const Value& address, const std::string& at, FieldErrors& errors) {
  const std::string_view ip = TextOf(address, "ip");
  const std::string wrong = CheckIp(ip);
  if (!wrong.empty()) errors.push_back(InvalidText(PathField(at, "ip"), ip, wrong));
  const std::string_view host = TextOf(address, "hostname");
  if (!host.empty()) CheckText(host, CheckDnsLabel, PathField(at, "hostname"), errors);
  CheckSubdomain(address, "nodeName", at, errors);
  if (!wrong.empty()) {
    errors.push_back(InvalidText(PathField(at, "ip"), ip, "must be a valid IP address"));
  } else if (!IsLoopbackIp(ip)) {  // a cluster on one machine has such
    CheckOrdinaryIp(ip, PathField(at, "ip"), errors);
  }
}

void CheckEndpoints(const Value& object, FieldErrors& errors) {
  for (const auto& [subset, at] : ItemsOf(object, "subsets", "")) {
    bool any = false;
    for (std::string_view list : {"addresses", "notReadyAddresses"}) {
      const json::Array& addresses = json::GetArray(subset, {list});
      any = any || !addresses.empty();
      for (const auto& [address, address_at] : ItemsOf(addresses, PathField(at, list))) {
        CheckEndpointAddress(address, address_at, errors);
      }
    }
    if (!any)
      errors.push_back(RequiredError(at, "must specify `addresses` or `notReadyAddresses`"));
    const json::Array& ports = json::GetArray(subset, {"ports"});
    for (size_t j = 0; j < ports.size(); ++j) {
      const std::string port_at = PathIndex(PathField(at, "ports"), j);
      const std::string_view name = TextOf(ports[j], "name");
      if (name.empty() && ports.size() > 1) {
        errors.push_back(RequiredError(PathField(port_at, "name")));
      } else if (!name.empty()) {
        CheckText(name, CheckDnsLabel, PathField(port_at, "name"), errors);
      }
      const int64_t number = json::GetInt(ports[j], {"port"});
      CheckPort(number, PathField(port_at, "port"), errors);
      CheckOneOf(ports[j], "protocol", port_at, {"SCTP", "TCP", "UDP"}, errors);
    }
  }
}

void CheckEndpointSlice(const Value& slice, FieldErrors& errors) {
  constexpr size_t kAddressesMax = 100;
  if (TextOf(slice, "addressType").empty()) {
    errors.push_back(RequiredError("addressType"));
  }
  CheckOneOf(slice, "addressType", "", {"FQDN", "IPv4", "IPv6"}, errors);
  for (const auto& [endpoint, endpoint_at] : ItemsOf(slice, "endpoints", "")) {
    const std::string at = PathField(endpoint_at, "addresses");
    const json::Array& addresses = json::GetArray(endpoint, {"addresses"});
    if (addresses.empty()) {
      errors.push_back(RequiredError(at, "must contain at least 1 address"));
    } else if (addresses.size() > kAddressesMax) {
      errors.push_back(TooManyError(at, addresses.size(), kAddressesMax));
    }
    const bool v4 = TextOf(slice, "addressType") == "IPv4";
    for (size_t j = 0; v4 && j < addresses.size(); ++j) {
      const std::string_view ip = TextIn(addresses[j]);
      if (ip.find(':') != std::string_view::npos || !CheckIp(ip).empty()) {
        errors.push_back(InvalidText(PathIndex(at, j), ip, "must be a valid IPv4 address"));
      }
    }
    const std::string_view host = TextOf(endpoint, "hostname");
    if (!host.empty()) CheckText(host, CheckDnsLabel, PathField(endpoint_at, "hostname"), errors);
  }
  std::set<std::string> names;
  for (const auto& [port, at] : ItemsOf(slice, "ports", "")) {
    std::string name(TextOf(port, "name"));
    if (!name.empty()) CheckText(name, CheckDnsLabel, PathField(at, "name"), errors);
    if (!names.insert(name).second) {
      errors.push_back(DuplicateError(PathField(at, "name"), Value(name)));
    }
    CheckOneOf(port, "protocol", at, {"SCTP", "TCP", "UDP"}, errors);
  }
}

std::string CheckHost(std::string_view host) {
  if (host.find('*') == std::string_view::npos) return CheckDnsSubdomain(host);
  if (host.starts_with("*.") && CheckDnsSubdomain(host.substr(2)).empty()) return {};
  return "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, "
         "which must consist of lower case alphanumeric characters, '-' or '.' and end with an "
         "alphanumeric character (e.g. '*.example.com', regex used for validation is "
         "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
}

// What an object of another kind is called.
void CheckTypedReference(const Value& reference, const std::string& at, FieldErrors& errors) {
  CheckSubdomain(reference, "apiGroup", at, errors);
  for (std::string_view key : {"kind", "name"}) {
    const std::string_view text = TextOf(reference, key);
    if (text.empty()) {
      errors.push_back(RequiredError(PathField(at, key), StrCat(key, " is required")));
    } else {
      CheckText(text, CheckPathSegmentName, PathField(at, key), errors);
    }
  }
}

void CheckIngressBackend(const Value* backend, const std::string& at, FieldErrors& errors) {
  const Value* service = backend ? MemberOf(*backend, "service") : nullptr;
  const Value* resource = backend ? MemberOf(*backend, "resource") : nullptr;
  if (service != nullptr && resource != nullptr) {
    errors.push_back(InvalidText(at, "", "cannot set both resource and service backends"));
    return;
  }
  if (resource != nullptr) {
    CheckTypedReference(*resource, PathField(at, "resource"), errors);
    return;
  }
  if (service == nullptr) {
    errors.push_back(InvalidText(at, "", "resource or service backend is required"));
    return;
  }
  const std::string_view name = TextOf(*service, "name");
  CheckRequired(name, CheckDnsLabel, PathField(at, "service.name"), errors);
  const std::string_view port_name = json::GetString(*service, {"port", "name"});
  const int64_t number = json::GetInt(*service, {"port", "number"});
  if (!port_name.empty() && number != 0) {
    errors.push_back(InvalidText(at, "", "cannot set both port name & port number"));
  } else if (!port_name.empty()) {
    CheckPortOrName(Value(port_name), PathField(at, "service.port.name"), errors);
  } else if (number != 0) {
    CheckPortOrName(Value(number), PathField(at, "service.port.number"), errors);
  } else {
    errors.push_back(RequiredError(at, "port name or number is required"));
  }
}

void CheckIngressPath(const Value& path, const std::string& at, FieldErrors& errors) {
  const std::string_view type = TextOf(path, "pathType");
  const std::string_view text = TextOf(path, "path");
  if (type.empty()) {
    errors.push_back(RequiredError(PathField(at, "pathType"), "pathType must be specified"));
    return;
  }
  const bool exact = type == "Exact" || type == "Prefix";
  auto invalid = [&](std::string_view why) {
    errors.push_back(InvalidText(PathField(at, "path"), text, why));
  };
  if ((exact || (type == "ImplementationSpecific" && !text.empty())) && !text.starts_with('/')) {
    invalid("must be an absolute path");
  }
  if (exact) {
    for (std::string_view part : {"//", "/./", "/../", "%2f", "%2F"}) {
      if (text.find(part) != std::string_view::npos) {
        invalid(StrCat("must not contain '", part, "'"));
      }
    }
    for (std::string_view end : {"/..", "/."}) {
      if (text.ends_with(end)) invalid(StrCat("cannot end with '", end, "'"));
    }
  }
  CheckOneOf(path, "pathType", at, {"Exact", "ImplementationSpecific", "Prefix"}, errors);
  CheckIngressBackend(MemberOf(path, "backend"), PathField(at, "backend"), errors);
}

void CheckIngressRules(const Value& spec, FieldErrors& errors) {
  for (const auto& [rule, at] : ItemsOf(spec, "rules", "spec")) {
    const std::string_view host = TextOf(rule, "host");
    if (!host.empty() && CheckIp(host).empty()) {
      errors.push_back(
          InvalidText(PathField(at, "host"), host, "must be a DNS name, not an IP address"));
    }
    if (!host.empty()) CheckText(host, CheckHost, PathField(at, "host"), errors);
    const Value* http = MemberOf(rule, "http");
    if (http == nullptr) continue;
    const std::string paths_at = PathField(at, "http.paths");
    const json::Array& paths = json::GetArray(*http, {"paths"});
    if (paths.empty()) errors.push_back(RequiredError(paths_at));
    for (const auto& [entry, entry_at] : ItemsOf(paths, paths_at)) {
      CheckIngressPath(entry, entry_at, errors);
    }
  }
}

void CheckIngress(const Value& ingress, FieldErrors& errors) {
  constexpr std::string_view kClass = "kubernetes.io/ingress.class";
  const Value& spec = SpecOf(ingress);
  const std::string_view annotated = Annotation(ingress, kClass);
  if (!annotated.empty() && MemberOf(spec, "ingressClassName") != nullptr) {
    errors.push_back(InvalidText(PathField("annotations", kClass), annotated,
                                 "can not be set when the class field is also set"));
  }
  const Value* backend = MemberOf(spec, "defaultBackend");
  if (backend == nullptr && json::GetArray(spec, {"rules"}).empty()) {
    errors.push_back({"FieldValueInvalid", "spec",
                      "Invalid value: []networking.IngressRule(nil): either `defaultBackend` or "
                      "`rules` must be specified"});
  }
  if (backend != nullptr) CheckIngressBackend(backend, "spec.defaultBackend", errors);
  CheckIngressRules(spec, errors);
  for (const auto& [entry, entry_at] : ItemsOf(spec, "tls", "spec")) {
    for (const auto& [host, host_at] : ItemsOf(entry, "hosts", entry_at)) {
      CheckText(TextIn(host), CheckHost, host_at, errors);
    }
    CheckSubdomain(entry, "secretName", entry_at, errors);
  }
  CheckSubdomain(spec, "ingressClassName", "spec", errors);
}

void CheckPeer(const Value& peer, const std::string& at, FieldErrors& errors) {
  bool selects = false;
  for (std::string_view key : {"podSelector", "namespaceSelector"}) {
    const Value* selector = MemberOf(peer, key);
    if (selector == nullptr) continue;
    selects = true;
    CheckLabelSelector(*selector, PathField(at, key), errors);
  }
  const Value* block = MemberOf(peer, "ipBlock");
  if (block != nullptr) {
    CheckIpBlock(*block, PathField(at, "ipBlock"), errors);
    if (selects) {
      errors.push_back(ForbiddenError(at, "may not specify both ipBlock and another peer"));
    }
  } else if (!selects) {
    errors.push_back(RequiredError(at, "must specify a peer"));
  }
}

// The end of a range of ports, which only a number begins.
void CheckEndPort(const Value& range, const std::string& path, FieldErrors& errors) {
  const Value* end = MemberOf(range, "endPort");
  if (end == nullptr) return;
  const std::string at = PathField(path, "endPort");
  const Value* first = MemberOf(range, "port");
  if (first == nullptr || first->is_string()) {
    const std::string_view how = first == nullptr ? "not specified" : "non-numeric";
    errors.push_back(InvalidError(at, *end, StrCat("may not be specified when `port` is ", how)));
    return;
  }
  const int64_t last = json::GetInt(*end, {});
  if (last < json::GetInt(*first, {})) {
    errors.push_back(InvalidError(at, *end, "must be greater than or equal to `port`"));
  }
  CheckPort(last, at, errors);
}

void CheckPolicyRule(const Value& rule,
                     std::string_view peers,
                     const std::string& at,
                     FieldErrors& errors) {
  for (const auto& [one, port_at] : ItemsOf(rule, "ports", at)) {
    CheckOneOf(one, "protocol", port_at, {"TCP", "UDP", "SCTP"}, errors);
    if (const Value* port = MemberOf(one, "port")) {
      CheckPortOrName(*port, PathField(port_at, "port"), errors);
    }
    CheckEndPort(one, port_at, errors);
  }
  for (const auto& [item, item_at] : ItemsOf(rule, peers, at)) {
    CheckPeer(item, item_at, errors);
  }
}

void CheckNetworkPolicy(const Value& policy, FieldErrors& errors) {
  const Value& spec = SpecOf(policy);
  if (const Value* pods = MemberOf(spec, "podSelector")) {
    CheckLabelSelector(*pods, "spec.podSelector", errors);
  }
  for (const auto& [direction, peers] : {std::pair{"ingress", "from"}, std::pair{"egress", "to"}}) {
    for (const auto& [rule, rule_at] : ItemsOf(spec, direction, "spec")) {
      CheckPolicyRule(rule, peers, rule_at, errors);
    }
  }
  const json::Array& types = json::GetArray(spec, {"policyTypes"});
  if (types.size() > 2) {
    std::vector<std::string> shown;
    for (const Value& type : types) shown.push_back(Quote(TextIn(type)));
    errors.push_back({"FieldValueInvalid", "spec.policyTypes",
                      StrCat("Invalid value: []networking.PolicyType{", Join(shown, ", "),
                             "}: may not specify more than two policyTypes")});
    return;
  }
  for (const auto& [one, item_at] : ItemsOf(types, "spec.policyTypes")) {
    const std::string_view type = TextIn(one);
    if (type == "Ingress" || type == "Egress") continue;
    errors.push_back(NotSupportedError(item_at, type, {"Ingress", "Egress"}));
  }
}

void CheckIngressClass(const Value& object, FieldErrors& errors) {
  const std::string_view controller = json::GetString(object, {"spec", "controller"});
  const size_t slash = controller.find('/');
  if (controller.empty()) {
    errors.push_back(RequiredError("spec.controller"));
  } else if (slash == std::string_view::npos || slash + 1 == controller.size() ||
             !CheckDnsSubdomain(controller.substr(0, slash)).empty()) {
    errors.push_back(InvalidText("spec.controller", controller,
                                 "must be a domain-prefixed path (such as \"acme.io/foo\")"));
  }
  if (const Value* parameters = json::Find(object, {"spec", "parameters"})) {
    CheckTypedReference(*parameters, "spec.parameters", errors);
  }
}

void CheckServiceRange(const Value& object, const Value* old, FieldErrors& errors) {
  const json::Array& ranges = json::GetArray(object, {"spec", "cidrs"});
  const std::string at = "spec.cidrs";
  if (ranges.empty()) errors.push_back(RequiredError(at, "at least one CIDR required"));
  if (ranges.size() > 2) {
    errors.push_back(InvalidTexts(at, ranges, "may only hold up to 2 values"));
    return;
  }
  std::vector<Cidr> parsed;
  for (const auto& [one, item_at] : ItemsOf(ranges, at)) {
    if (const auto range = ParseCidr(TextIn(one))) {
      parsed.push_back(*range);
      continue;
    }
    errors.push_back(InvalidText(
        item_at, TextIn(one), "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"));
  }
  if (parsed.size() == 2 && parsed[0].v6 == parsed[1].v6) {
    errors.push_back(InvalidTexts(at, ranges,
                                  "may specify no more than one IP for each IP family, i.e "
                                  "192.168.0.0/24 and 2001:db8::/64"));
  }
  if (old == nullptr) return;
  // A second family may be added later; what was there stays.
  const json::Array& before = json::GetArray(*old, {"spec", "cidrs"});
  if (ranges.size() < before.size()) {
    errors.push_back(InvalidTexts(at, ranges, "field is immutable"));
    return;
  }
  for (size_t i = 0; i < before.size(); ++i) {
    CheckImmutable(&ranges[i], &before[i], PathIndex(at, i), errors);
  }
}

void CheckAddress(const Value& object, const Value* old, FieldErrors& errors) {
  const std::string at = "spec.parentRef";
  const Value* parent = json::Find(object, {"spec", "parentRef"});
  if (parent == nullptr || !parent->is_object()) {
    errors.push_back(RequiredError(at));
    return;
  }
  CheckSubdomain(*parent, "group", at, errors);
  for (std::string_view key : {"resource", "name", "namespace"}) {
    const std::string_view text = TextOf(*parent, key);
    if (text.empty()) {
      if (key != "namespace") errors.push_back(RequiredError(PathField(at, key)));
    } else {
      CheckText(text, CheckPathSegmentName, PathField(at, key), errors);
    }
  }
  if (old != nullptr) {
    CheckImmutable(parent, json::Find(*old, {"spec", "parentRef"}), at, errors);
  }
}

}  // namespace

bool CheckNetwork(const KindInfo& kind,
                  const Value& object,
                  const Value* old,
                  FieldErrors& errors) {
  const std::string& k = kind.gvk.kind;
  if (k == "Service") {
    CheckService(object, old, errors);
  } else if (k == "Endpoints") {
    CheckEndpoints(object, errors);
  } else if (k == "EndpointSlice") {
    CheckEndpointSlice(object, errors);
  } else if (k == "Ingress") {
    CheckIngress(object, errors);
  } else if (k == "IngressClass") {
    CheckIngressClass(object, errors);
  } else if (k == "NetworkPolicy") {
    CheckNetworkPolicy(object, errors);
  } else if (k == "ServiceCIDR") {
    CheckServiceRange(object, old, errors);
  } else if (k == "IPAddress") {
    CheckAddress(object, old, errors);
  } else {
    return false;
  }
  return true;
}

}  // namespace swell::api
