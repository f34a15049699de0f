// Addresses as text: HOST, HOST:PORT, and [HOST]:PORT where the host is an IPv6 address.
// - Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace swell {

// "localhost:80" → "localhost", "[::1]:80" → "[::1]". The result refers to the text.
std::string_view WithoutPort(std::string_view address);

// The host by which this machine reaches what listens at the address: "0.0.0.0:80" and ":80" →
// "127.0.0.1".
std::string HostForClients(std::string_view address);
// The same as an IP address: "localhost:80" → "127.0.0.1", "[::1]:80" → "::1".
std::string IpForClients(std::string_view address);

// "::1" → "[::1]", as a URL or HOST:PORT has it; other hosts stay as they are.
std::string Bracketed(std::string_view host);
// "[::1]" → "::1", as certificates and sockets have it. The result refers to the text.
std::string_view Unbracketed(std::string_view host);

// Whether the host is an address and not a name.
bool IsIpAddress(std::string_view host);
// Whether only this machine reaches the address, which may have a port.
bool IsLoopback(std::string_view address);

}  // namespace swell
