// RuleText: NetworkRules in the language of nftables, for the hooks of the pods' bridge.
//
// The rules are the machine's: no right within a pod's namespaces changes them. They decide about
// the first packet of a connection, so what is established continues when rules change. TCP needs
// no memory for that; answers to UDP and SCTP pass because the set `flows` remembers who asked (a
// bridge has no connection tracking on every kernel). What the machine itself sends to its pods
// passes: probes, logs, and the service proxy, which asks NetworkRules::Allows first.
//
// - Threads: plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "kube/node/network/network_rules.h"

namespace swell::process {

struct RuleScope {
  std::string table;    // of the family bridge
  std::string ports;    // how the names of the bridge's ports begin
  std::string gateway;  // the machine's address on the bridge
  // The bridge's port that a pod with this address has; empty: the address is not of this bridge.
  std::function<std::string(const std::string& ip)> port_of;
  // Cluster IPs and ports where the service proxy listens.
  std::set<std::pair<std::string, uint16_t>> services;
};

struct RuleText {
  std::string text;              // for one transaction
  std::set<std::string> chains;  // those that hold the rules of pods
};

// `old_chains`: of the text that is in force.
RuleText MakeRuleText(const node::NetworkRules& rules,
                      const RuleScope& scope,
                      const std::set<std::string>& old_chains);

}  // namespace swell::process
