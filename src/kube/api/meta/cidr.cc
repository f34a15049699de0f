#include "kube/api/meta/cidr.h"

#include <arpa/inet.h>

#include <string>

#include "base/strings.h"

namespace swell::api {

bool Cidr::Contains(const Cidr& other) const {
  if (v6 != other.v6) return false;
  for (int i = 0; i < bits; ++i) {
    const int mask = 0x80 >> (i % 8);
    if ((bytes[i / 8] & mask) != (other.bytes[i / 8] & mask)) return false;
  }
  return true;
}

bool Cidr::IsNetwork() const {
  for (int i = bits; i < (v6 ? 128 : 32); ++i) {
    if ((bytes[i / 8] & (0x80 >> (i % 8))) != 0) return false;
  }
  return true;
}

std::optional<Cidr> ParseCidr(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  Cidr out;
  const std::string address(text.substr(0, slash));
  out.v6 = address.find(':') != std::string::npos;
  const auto bits = ParseUint(text.substr(slash + 1));
  if (!bits || *bits > (out.v6 ? 128 : 32)) return std::nullopt;
  out.bits = static_cast<int>(*bits);
  if (inet_pton(out.v6 ? AF_INET6 : AF_INET, address.c_str(), out.bytes.data()) != 1) {
    return std::nullopt;
  }
  return out;
}

}  // namespace swell::api
