#include "kube/process/network/rule_text.h"

#include <map>
#include <vector>

#include "base/random.h"
#include "base/strings.h"

namespace swell::process {
namespace {

using node::Allowance;
using node::Allowances;
using node::AllowedBlock;
using node::AllowedPorts;

std::string Braced(const std::vector<std::string>& items) {
  return StrCat("{ ", Join(items, ", "), " }");
}

// One match of nftables for each protocol: "tcp dport { 80, 90-99 } ".
std::vector<std::string> PortMatches(const std::vector<AllowedPorts>& ports) {
  if (ports.empty()) return {""};
  std::map<std::string, std::vector<std::string>> ranges;
  for (const AllowedPorts& one : ports) {
    ranges[ToLower(one.protocol)].push_back(
        one.first == one.last ? StrCat(one.first) : StrCat(one.first, "-", one.last));
  }
  std::vector<std::string> out;
  for (const auto& [protocol, list] : ranges) {
    // Ranges of one rule may overlap, which a set refuses.
    for (const std::string& range : list) out.push_back(StrCat(protocol, " dport ", range, " "));
  }
  return out;
}

std::vector<std::string> PeerMatches(const Allowance& one, std::string_view end) {
  if (one.anybody) return {""};
  std::vector<std::string> out;
  if (!one.addresses.empty()) {
    const std::vector<std::string> all(one.addresses.begin(), one.addresses.end());
    out.push_back(StrCat("ip ", end, " ", Braced(all), " "));
  }
  for (const AllowedBlock& block : one.blocks) {
    std::string match = StrCat("ip ", end, " ", block.cidr, " ");
    for (const std::string& part : block.except) match += StrCat("ip ", end, " != ", part, " ");
    out.push_back(std::move(match));
  }
  return out;
}

// What a pod's connections must match one of. `end`: saddr of what comes in, daddr of what goes
// out.
std::string Body(const Allowances& allowances, std::string_view end) {
  std::string body;
  for (const auto& one : allowances) {
    for (const std::string& peer : PeerMatches(*one, end)) {
      for (const std::string& port : PortMatches(one->ports)) {
        body += StrCat("    ", peer, port, "return\n");
      }
    }
  }
  return body + "    drop\n";
}

// Chains of pods; pods with the same rules share one.
class Chains {
 public:
  // Pods of other machines are these machines' to guard.
  void Add(const std::string& ip, const Allowances& allowances, bool in) {
    auto& name = names_[in][allowances];
    if (name.empty()) {
      std::string body = Body(allowances, in ? "saddr" : "daddr");
      name = StrCat(in ? "in_" : "out_", StableHash(body));
      bodies_[name] = std::move(body);
    }
    verdicts_[in].push_back(StrCat(ip, " : jump ", name));
  }

  std::string Verdicts(bool in) const {
    if (verdicts_[in].empty()) return "";
    return StrCat("    ip ", in ? "daddr" : "saddr", " vmap ", Braced(verdicts_[in]), "\n");
  }
  const std::map<std::string, std::string>& bodies() const { return bodies_; }

 private:
  std::map<Allowances, std::string> names_[2];
  std::map<std::string, std::string> bodies_;
  std::vector<std::string> verdicts_[2];
};

std::string Chain(std::string_view name, std::string_view body) {
  return StrCat("  chain ", name, " {\n", body, "  }\n");
}

std::string Hook(std::string_view hook, std::string_view body) {
  return Chain(hook, StrCat("    type filter hook ", hook, " priority 0; policy accept;\n", body));
}

// Nobody speaks with the address of a pod that rules name, and such a pod with no other.
std::string Honesty(const std::vector<std::string>& addresses,
                    const std::vector<std::string>& ports,
                    const std::vector<std::string>& owners,
                    const RuleScope& scope) {
  const std::string from_pod = StrCat("    iifname \"", scope.ports, "*\" ");
  // Pods have IPv4 addresses alone: rules would not see the rest.
  std::string body = StrCat(from_pod, "ether type != { ip, arp } drop\n");
  for (const char* source : {"ip saddr", "arp saddr ip"}) {
    const std::string owned = StrCat("iifname . ", source, " != ", Braced(owners), " drop\n");
    body += StrCat(from_pod, source, " ", scope.gateway, " drop\n");
    if (owners.empty()) continue;
    body += StrCat(from_pod, source, " ", Braced(addresses), " ", owned);
    body += StrCat("    iifname ", Braced(ports), " ", owned);
  }
  return body;
}

}  // namespace

RuleText MakeRuleText(const node::NetworkRules& rules,
                      const RuleScope& scope,
                      const std::set<std::string>& old_chains) {
  Chains chains;
  std::vector<std::string> addresses, ports, owners;
  for (const auto& [ip, pod] : rules.pods) {
    const std::string port = scope.port_of(ip);
    if (port.empty()) continue;
    if (pod.in) chains.Add(ip, *pod.in, true);
    if (pod.out) chains.Add(ip, *pod.out, false);
    addresses.push_back(ip);
    ports.push_back(Quote(port));
    owners.push_back(StrCat(Quote(port), " . ", ip));
  }
  RuleText made;
  const std::string table = StrCat("table bridge ", scope.table);
  made.text = StrCat("add ", table, "\nflush ", table, "\n");
  for (const std::string& chain : old_chains) {
    if (chains.bodies().contains(chain)) continue;
    made.text += StrCat("delete chain bridge ", scope.table, " ", chain, "\n");
  }
  made.text += StrCat(table, " {\n  set flows {\n    type ipv4_addr . ipv4_addr . inet_proto . ",
                      "inet_service . inet_service\n    size 65536\n    flags dynamic,timeout\n",
                      "    timeout 3m\n  }\n");
  for (const auto& [name, body] : chains.bodies()) {
    made.text += Chain(name, body);
    made.chains.insert(name);
  }
  // A packet's further parts are of no use without the first. An answer is not a question. No
  // connection has segments with none of the three flags: they ask what listens there.
  made.text += Chain("known",
                     "    ip frag-off & 0x1fff != 0 accept\n"
                     "    ip protocol tcp tcp flags & (syn | ack | rst) == 0x0 drop\n"
                     "    ip protocol tcp tcp flags & (syn | ack) != syn accept\n"
                     "    ip protocol icmp icmp type { echo-reply, destination-unreachable, "
                     "time-exceeded, parameter-problem } accept\n"
                     "    ip protocol { udp, sctp } ip saddr . ip daddr . ip protocol . th sport . "
                     "th dport @flows accept\n");
  made.text += Chain("remember",
                     "    ip protocol { udp, sctp } update @flows { ip daddr . ip saddr . "
                     "ip protocol . th dport . th sport }\n");
  made.text += Hook("prerouting", Honesty(addresses, ports, owners, scope));
  made.text +=
      Hook("forward", StrCat("    iifname != \"", scope.ports, "*\" accept\n    jump known\n",
                             chains.Verdicts(false), chains.Verdicts(true), "    jump remember\n"));
  // The proxy judges what is said to services, by the pods that it leads to.
  std::vector<std::string> services;
  for (const auto& [ip, port] : scope.services) services.push_back(StrCat(ip, " . ", port));
  std::string to_services;
  if (!services.empty()) {
    to_services = StrCat("    ip daddr . tcp dport ", Braced(services), " accept\n");
  }
  made.text +=
      Hook("input", StrCat("    iifname != \"", scope.ports, "*\" accept\n    jump known\n",
                           to_services, chains.Verdicts(false), "    jump remember\n"));
  // The machine's own address is the gateway's; others come through it from elsewhere.
  made.text += Hook(
      "output", StrCat("    oifname != \"", scope.ports, "*\" accept\n    ip saddr ", scope.gateway,
                       " jump remember\n    ip saddr ", scope.gateway, " accept\n    jump known\n",
                       chains.Verdicts(true), "    jump remember\n"));
  made.text += "}\n";
  return made;
}

}  // namespace swell::process
