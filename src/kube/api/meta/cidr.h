// Ranges of IP addresses as text has them: "10.0.0.0/8", "fd00::/8".
// - Threads: values and pure functions.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace swell::api {

struct Cidr {
  std::array<unsigned char, 16> bytes{};
  int bits = 0;
  bool v6 = false;

  bool Contains(const Cidr& other) const;
  // Whether no bit of the address stands beyond the prefix: not in "10.0.0.1/8".
  bool IsNetwork() const;
};

std::optional<Cidr> ParseCidr(std::string_view text);

}  // namespace swell::api
