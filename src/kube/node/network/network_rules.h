// NetworkRules: which connections of pods NetworkPolicies allow, by the pods' addresses.
// - Threads: immutable values once made.
// - Invariants: a pod is named only if a policy selects it; the other pods' connections are free.
//   Allowances that several pods have in common are one object.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace swell::node {

struct AllowedPorts {
  std::string protocol = "TCP";  // TCP, UDP or SCTP
  uint16_t first = 0;            // 0 to 65535: all of them
  uint16_t last = 65535;
  bool operator==(const AllowedPorts&) const = default;
};

struct AllowedBlock {
  std::string cidr;  // IPv4
  std::vector<std::string> except;
  bool operator==(const AllowedBlock&) const = default;
};

// One way to be allowed: the other end is one of these, and the port one of those.
struct Allowance {
  bool anybody = false;
  std::set<std::string> addresses;  // of pods
  std::vector<AllowedBlock> blocks;
  std::vector<AllowedPorts> ports;  // empty: every port, and protocols that have none
};

using Allowances = std::vector<std::shared_ptr<const Allowance>>;

struct PodRules {
  std::optional<Allowances> in;   // empty optional: everything may come in
  std::optional<Allowances> out;  // the same for what goes out
};

struct NetworkRules {
  std::map<std::string, PodRules> pods;  // by address

  // Whether a connection may begin. An address that is not a pod's is judged by blocks alone.
  bool Allows(const std::string& from,
              const std::string& to,
              std::string_view protocol,
              uint16_t port) const;
};

using SharedRules = std::shared_ptr<const NetworkRules>;

// Has the kernel keep these rules instead of the last ones, and answers when it does.
using EnforceRules = std::function<void(SharedRules, std::function<void(Status)>)>;

// Pods in the machine's network, without an address or past their end do not count. Objects are
// valid: the API server has checked them.
NetworkRules MakeNetworkRules(const std::vector<json::SharedValue>& policies,
                              const std::vector<json::SharedValue>& pods,
                              const std::vector<json::SharedValue>& namespaces);

}  // namespace swell::node
