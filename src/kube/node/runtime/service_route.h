// ServiceRoute: where connections to one port of an address go: of a service's cluster IP, or of
// this machine (node ports, load balancers, host ports of pods).
// - Threads: values. `backends` are the ready pods' addresses, at the ports they listen on.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace swell::node {

struct ServiceBackend {
  std::string ip;
  uint16_t port = 0;
  bool operator==(const ServiceBackend&) const = default;
};

// The object that asks for a port of this machine.
struct RouteOwner {
  std::string kind;  // Service or Pod; empty: the route is a cluster IP's
  std::string ns;
  std::string name;
  std::string uid;
  std::string created = {};  // when, as its metadata says
  bool operator==(const RouteOwner&) const = default;
};

struct ServiceRoute {
  std::string ip;  // the cluster IP, or an address of this machine
  uint16_t port = 0;
  std::vector<ServiceBackend> backends;
  Duration affinity{0};  // how long a client stays with its backend; 0: each connection anew
  RouteOwner owner;
  bool operator==(const ServiceRoute&) const = default;
};

// A port of this machine that is not served.
struct RouteFault {
  RouteOwner owner;
  std::string message;
};
using OnRouted = std::function<void(std::vector<RouteFault>)>;

// Takes all routes there are, whenever they have changed, and answers when they are in force.
using RouteServices = std::function<void(std::vector<ServiceRoute>, OnRouted)>;

// Where ports of this machine are served.
struct MachineAddresses {
  std::string nodes;     // node ports and host ports; empty: they are not served
  std::string external;  // services of type LoadBalancer; empty: they are not served
};

}  // namespace swell::node
