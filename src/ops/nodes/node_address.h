// What this machine is called, and its address that a server sees.
// - Threads: main thread; may look names up.
#pragma once

#include <string>

namespace swell::ops {

// "" when that is loopback (the server runs here) or cannot be found out.
std::string AddressTowards(const std::string& url);

// In lower case, as names of nodes are.
std::string HostName();

}  // namespace swell::ops
