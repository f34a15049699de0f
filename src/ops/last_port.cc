#include "ops/last_port.h"

#include "base/file.h"
#include "base/strings.h"

namespace swell {
namespace {

constexpr uint64_t kFirstPort = 12000, kPorts = 18000;
constexpr int kPortTries = 20;

// 0 if there was no run.
uint64_t LastPort(const std::string& file) {
  auto text = ReadFile(file, 16);
  const uint64_t port = text.ok() ? ParseUint(Trim(*text)).value_or(0) : 0;
  return port <= 65535 ? port : 0;
}

}  // namespace

Result<uint16_t> ListenAtLastPort(const std::string& file, Random& random, const ListenAt& listen) {
  uint64_t port = LastPort(file);
  for (int tries = 0; tries < kPortTries; ++tries) {
    if (port == 0) port = kFirstPort + random.Below(kPorts);
    auto listening = listen(static_cast<uint16_t>(port));
    if (listening.ok()) return listening;
    port = 0;
  }
  return listen(0);
}

}  // namespace swell
