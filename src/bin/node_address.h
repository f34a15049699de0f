// The address of this machine that a server sees. Thread-safety: main thread; may look names up.
#pragma once

#include <string>

namespace swell {

// "" when that is loopback (the server runs here) or cannot be found out.
std::string AddressTowards(const std::string& url);

}  // namespace swell
