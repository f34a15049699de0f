// ServiceRoute: where connections to one port of a service's cluster IP go.
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

struct ServiceRoute {
  std::string ip;  // the cluster IP
  uint16_t port = 0;
  std::vector<ServiceBackend> backends;
  Duration affinity{0};  // how long a client stays with its backend; 0: each connection anew
  bool operator==(const ServiceRoute&) const = default;
};

// Takes all routes there are, whenever they have changed.
using RouteServices = std::function<void(std::vector<ServiceRoute>)>;

}  // namespace swell::node
