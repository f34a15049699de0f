// Where a service is reached: the address of one endpoint behind one of its ports.
// - Threads: core executor only.
#pragma once

#include <string>
#include <string_view>

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// "10.0.0.1:80", "[::1]:80"; without a port, the address alone.
std::string HostAndPort(std::string_view address, std::string_view port);

// Host and port of the first endpoint that has the service's port, given by number or name.
Result<std::string> AddressOfService(const Core& core,
                                     const json::Value& service,
                                     const std::string& port);

}  // namespace swell::apiserver
