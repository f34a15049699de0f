// Which system calls ordinary programs use, and which ones a capability opens: the content of the
// RuntimeDefault profile.
// - Threads: constants.
#pragma once

#include <string_view>
#include <vector>

namespace swell::process {

struct CapabilityCalls {
  std::string_view capability;
  std::vector<std::string_view> calls;
};

const std::vector<std::string_view>& OrdinaryCalls();
const std::vector<CapabilityCalls>& CallsOfCapabilities();

}  // namespace swell::process
