// PodCidr: the range of addresses that the pods of a machine have.
// - Threads: values and pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace swell::process {

struct PodCidr {
  uint32_t base = 0;  // in host byte order
  int bits = 16;
};

// An IPv4 network from /8 to /28; kInvalid otherwise. Bits beyond the prefix are dropped.
Result<PodCidr> ParsePodCidr(std::string_view text);

}  // namespace swell::process
