#include "kube/node/network/network_rules.h"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/selector.h"
#include "kube/api/objects/pod.h"

namespace swell::node {
namespace {

std::optional<uint32_t> ParseAddress(const std::string& text) {
  in_addr parsed;
  if (::inet_pton(AF_INET, text.c_str(), &parsed) != 1) return std::nullopt;
  return ntohl(parsed.s_addr);
}

bool InBlock(uint32_t address, std::string_view cidr) {
  const size_t slash = cidr.find('/');
  if (slash == std::string_view::npos) return false;
  const auto base = ParseAddress(std::string(cidr.substr(0, slash)));
  const auto bits = ParseInt(cidr.substr(slash + 1));
  if (!base || !bits || *bits < 0 || *bits > 32) return false;
  const uint32_t mask = *bits == 0 ? 0 : ~uint32_t{0} << (32 - *bits);
  return (*base & mask) == (address & mask);
}

bool Admits(const Allowance& one,
            const std::string& other,
            std::string_view protocol,
            uint16_t port) {
  const bool by_port =
      one.ports.empty() || std::any_of(one.ports.begin(), one.ports.end(), [&](const auto& range) {
        return range.protocol == protocol && range.first <= port && port <= range.last;
      });
  if (!by_port) return false;
  if (one.anybody || one.addresses.contains(other)) return true;
  const auto address = ParseAddress(other);
  if (!address) return false;
  return std::any_of(one.blocks.begin(), one.blocks.end(), [&](const AllowedBlock& block) {
    return InBlock(*address, block.cidr) &&
           std::none_of(block.except.begin(), block.except.end(),
                        [&](const std::string& part) { return InBlock(*address, part); });
  });
}

bool AnyAdmits(const std::optional<Allowances>& allowances,
               const std::string& other,
               std::string_view protocol,
               uint16_t port) {
  if (!allowances) return true;
  return std::any_of(allowances->begin(), allowances->end(),
                     [&](const auto& one) { return Admits(*one, other, protocol, port); });
}

// A port's number in a pod, which may be given by name; 0: the pod has no such port.
uint16_t NumberOf(const json::Value& port, std::string_view protocol, const json::Value& pod) {
  for (const json::Value& container : json::GetArray(pod, {"spec", "containers"})) {
    for (const json::Value& one : json::GetArray(container, {"ports"})) {
      if (json::GetString(one, {"name"}) != json::View(port.get_string())) continue;
      if (json::GetString(one, {"protocol"}, "TCP") != protocol) continue;
      return static_cast<uint16_t>(json::GetInt(one, {"containerPort"}));
    }
  }
  return 0;
}

bool HasNames(const json::Array& ports) {
  return std::any_of(ports.begin(), ports.end(), [](const json::Value& port) {
    const json::Value* number = json::Find(port, {"port"});
    return number != nullptr && number->is_string();
  });
}

// The ports as numbers. `pod`: where the connection ends, for ports with names; may be null.
std::vector<AllowedPorts> PortsIn(const json::Array& ports, const json::Value* pod) {
  std::vector<AllowedPorts> out;
  for (const json::Value& port : ports) {
    AllowedPorts range{.protocol = std::string(json::GetString(port, {"protocol"}, "TCP"))};
    const json::Value* number = json::Find(port, {"port"});
    if (number != nullptr && number->is_string()) {
      range.first = range.last = pod == nullptr ? 0 : NumberOf(*number, range.protocol, *pod);
      if (range.first == 0) continue;
    } else if (number != nullptr) {
      range.first = static_cast<uint16_t>(json::GetInt(port, {"port"}));
      range.last = static_cast<uint16_t>(json::GetInt(port, {"endPort"}, range.first));
    }
    out.push_back(std::move(range));
  }
  return out;
}

class Maker {
 public:
  Maker(const std::vector<json::SharedValue>& pods,
        const std::vector<json::SharedValue>& namespaces) {
    for (const json::SharedValue& ns : namespaces) namespaces_[std::string(api::Name(*ns))] = ns;
    for (const json::SharedValue& pod : pods) {
      if (json::GetBool(*pod, {"spec", "hostNetwork"}) || !api::IsActive(*pod)) continue;
      const std::string address(json::GetString(*pod, {"status", "podIP"}));
      if (!ParseAddress(address)) continue;
      by_namespace_[std::string(api::Namespace(*pod))].push_back({address, pod});
    }
  }

  void Add(const json::Value& policy) {
    const auto selector = api::LabelSelector::FromJson(json::Find(policy, {"spec", "podSelector"}));
    if (!selector.ok()) return;
    const std::vector<Pod> selected = Select(std::string(api::Namespace(policy)), *selector);
    if (selected.empty()) return;
    for (const json::Value& type : json::GetArray(policy, {"spec", "policyTypes"})) {
      if (!type.is_string()) continue;
      const bool in = json::View(type.get_string()) == "Ingress";
      for (const Pod& pod : selected) {
        auto& way = in ? rules_.pods[pod.address].in : rules_.pods[pod.address].out;
        if (!way) way.emplace();
      }
      for (const json::Value& rule : json::GetArray(policy, {"spec", in ? "ingress" : "egress"})) {
        in ? AddIn(policy, rule, selected) : AddOut(policy, rule, selected);
      }
    }
  }

  NetworkRules Take() { return std::move(rules_); }

 private:
  struct Pod {
    std::string address;
    json::SharedValue object;
  };

  std::vector<Pod> Select(const std::string& ns, const api::LabelSelector& selector) const {
    std::vector<Pod> found;
    const auto pods = by_namespace_.find(ns);
    if (pods == by_namespace_.end()) return found;
    for (const Pod& pod : pods->second) {
      const json::Value labels = json::GetObject(*pod.object, {"metadata", "labels"});
      if (selector.Matches(labels)) found.push_back(pod);
    }
    return found;
  }

  // The pods that a peer means.
  std::vector<Pod> PodsOf(const json::Value& policy, const json::Value& peer) const {
    const json::Value* by_pod = json::Find(peer, {"podSelector"});
    const json::Value* by_namespace = json::Find(peer, {"namespaceSelector"});
    const json::Value everything = json::Object{};
    const auto pods = api::LabelSelector::FromJson(by_pod != nullptr ? by_pod : &everything);
    if (!pods.ok() || (by_pod == nullptr && by_namespace == nullptr)) return {};
    if (by_namespace == nullptr) return Select(std::string(api::Namespace(policy)), *pods);
    const auto spaces = api::LabelSelector::FromJson(by_namespace);
    std::vector<Pod> found;
    for (const auto& [name, ns] : namespaces_) {
      const json::Value labels = json::GetObject(*ns, {"metadata", "labels"});
      if (!spaces.ok() || !spaces->Matches(labels)) continue;
      for (Pod& pod : Select(name, *pods)) found.push_back(std::move(pod));
    }
    return found;
  }

  std::vector<Pod> AllPods() const {
    std::vector<Pod> all;
    for (const auto& [ns, pods] : by_namespace_) all.insert(all.end(), pods.begin(), pods.end());
    return all;
  }

  // The ends that a rule names, and the pods among them.
  Allowance PeersOf(const json::Value& policy,
                    const json::Array& peers,
                    std::vector<Pod>& pods) const {
    Allowance allowance;
    allowance.anybody = peers.empty();
    if (peers.empty()) pods = AllPods();
    for (const json::Value& peer : peers) {
      const std::string cidr(json::GetString(peer, {"ipBlock", "cidr"}));
      // Pods have no IPv6 addresses.
      if (!cidr.empty() && cidr.find(':') == std::string::npos) {
        AllowedBlock block{cidr, {}};
        for (const json::Value& part : json::GetArray(peer, {"ipBlock", "except"})) {
          if (part.is_string()) block.except.emplace_back(json::View(part.get_string()));
        }
        allowance.blocks.push_back(std::move(block));
      }
      for (Pod& pod : PodsOf(policy, peer)) {
        allowance.addresses.insert(pod.address);
        pods.push_back(std::move(pod));
      }
    }
    return allowance;
  }

  // Rules without ports allow all; rules whose ports lead nowhere allow none.
  static std::shared_ptr<const Allowance> WithPorts(Allowance allowance,
                                                    const json::Array& ports,
                                                    const json::Value* pod) {
    allowance.ports = PortsIn(ports, pod);
    if (allowance.ports.empty() && !ports.empty()) return nullptr;
    return std::make_shared<const Allowance>(std::move(allowance));
  }

  void AddIn(const json::Value& policy, const json::Value& rule, const std::vector<Pod>& selected) {
    std::vector<Pod> pods;
    const Allowance peers = PeersOf(policy, json::GetArray(rule, {"from"}), pods);
    const json::Array& ports = json::GetArray(rule, {"ports"});
    const auto common = HasNames(ports) ? nullptr : WithPorts(peers, ports, nullptr);
    for (const Pod& pod : selected) {
      // A name may be another number in each of them.
      const auto one = common ? common : WithPorts(peers, ports, &*pod.object);
      if (one) rules_.pods[pod.address].in->push_back(one);
    }
  }

  void AddOut(const json::Value& policy,
              const json::Value& rule,
              const std::vector<Pod>& selected) {
    std::vector<Pod> pods;
    const Allowance peers = PeersOf(policy, json::GetArray(rule, {"to"}), pods);
    const json::Array& ports = json::GetArray(rule, {"ports"});
    Allowances made;
    // Ports with names mean something only at pods, and another number in each of them.
    if (auto all = WithPorts(peers, ports, nullptr)) made.push_back(std::move(all));
    for (const Pod& pod : HasNames(ports) ? pods : std::vector<Pod>()) {
      Allowance single;
      single.addresses.insert(pod.address);
      if (auto one = WithPorts(std::move(single), ports, &*pod.object)) {
        made.push_back(std::move(one));
      }
    }
    for (const Pod& pod : selected) {
      Allowances& out = *rules_.pods[pod.address].out;
      out.insert(out.end(), made.begin(), made.end());
    }
  }

  std::map<std::string, json::SharedValue> namespaces_;
  std::map<std::string, std::vector<Pod>> by_namespace_;
  NetworkRules rules_;
};

}  // namespace

bool NetworkRules::Allows(const std::string& from,
                          const std::string& to,
                          std::string_view protocol,
                          uint16_t port) const {
  const auto sender = pods.find(from);
  if (sender != pods.end() && !AnyAdmits(sender->second.out, to, protocol, port)) return false;
  const auto receiver = pods.find(to);
  return receiver == pods.end() || AnyAdmits(receiver->second.in, from, protocol, port);
}

NetworkRules MakeNetworkRules(const std::vector<json::SharedValue>& policies,
                              const std::vector<json::SharedValue>& pods,
                              const std::vector<json::SharedValue>& namespaces) {
  Maker maker(pods, namespaces);
  for (const json::SharedValue& policy : policies) maker.Add(*policy);
  return maker.Take();
}

}  // namespace swell::node
