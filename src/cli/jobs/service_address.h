// The addresses where people reach a job's Service, for commands to print.
// - Threads: the loop's thread.
#pragma once

#include <string>
#include <vector>

#include "cli/api.h"
#include "json/value.h"

namespace swell::cli {

// "192.0.2.7:30080" or "[2001:db8::7]:30080", one for each port. A load balancer's address is
// waited for, some seconds. Empty: only pods reach the Service, or the load balancer has no address
// yet.
std::vector<std::string> AddressesOf(Api& api, const json::Value& service);

}  // namespace swell::cli
