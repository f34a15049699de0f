#include "base/host_port.h"

#include "base/strings.h"

namespace swell {

std::string_view WithoutPort(std::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return address;
  const size_t bracket = address.rfind(']');
  return bracket != std::string_view::npos && bracket > colon ? address : address.substr(0, colon);
}

std::string HostForClients(std::string_view address) {
  const std::string_view host = WithoutPort(address);
  const bool any = host.empty() || host == "0.0.0.0" || host == "[::]";
  return any ? "127.0.0.1" : std::string(host);
}

std::string IpForClients(std::string_view address) {
  const std::string host = HostForClients(address);
  return host == "localhost" ? "127.0.0.1" : std::string(Unbracketed(host));
}

std::string Bracketed(std::string_view host) {
  const bool bare = host.find(':') != std::string_view::npos && !host.starts_with('[');
  return bare ? StrCat("[", host, "]") : std::string(host);
}

std::string_view Unbracketed(std::string_view host) {
  if (!host.starts_with('[') || !host.ends_with(']')) return host;
  return host.substr(1, host.size() - 2);
}

bool IsIpAddress(std::string_view host) {
  return host.find(':') != std::string_view::npos ||
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool IsLoopback(std::string_view address) {
  const std::string_view host = WithoutPort(address);
  return host == "localhost" || host == "[::1]" || (host.starts_with("127.") && IsIpAddress(host));
}

}  // namespace swell
