#include "kube/cri/pods_device.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>
#include <vector>

#include "base/strings.h"

namespace swell::cri {
namespace {

// Addresses are in network byte order, as the kernel prints them.
struct Route {
  std::string_view device;
  uint32_t network = 0;
  uint32_t gateway = 0;
  uint32_t mask = 0;
  int64_t metric = 0;
};

std::optional<uint32_t> ParseHex(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Nothing for the line of titles.
std::optional<Route> ParseRoute(std::string_view line) {
  enum Column { kDevice, kNetwork, kGateway, kFlags, kReferences, kUses, kMetric, kMask, kColumns };
  const std::vector<std::string_view> words = Split(line, '\t');
  if (words.size() < kColumns) return std::nullopt;
  const auto network = ParseHex(words[kNetwork]);
  const auto gateway = ParseHex(words[kGateway]);
  const auto mask = ParseHex(words[kMask]);
  const auto metric = ParseInt(words[kMetric]);
  if (!network || !gateway || !mask || !metric) return std::nullopt;
  return Route{Trim(words[kDevice]), *network, *gateway, *mask, *metric};
}

// As the kernel prefers them: by the length of the mask, then by the metric.
bool Better(const Route& one, const Route& other) {
  const uint32_t own = ntohl(one.mask);
  const uint32_t others = ntohl(other.mask);
  return own != others ? own > others : one.metric < other.metric;
}

}  // namespace

std::string PodsDevice(std::string_view routes, const std::string& pod_ip) {
  in_addr wanted{};
  if (::inet_pton(AF_INET, pod_ip.c_str(), &wanted) != 1) return "";
  std::optional<Route> best;
  for (std::string_view line : Split(routes, '\n')) {
    const std::optional<Route> route = ParseRoute(line);
    if (!route || (wanted.s_addr & route->mask) != route->network) continue;
    if (!best || Better(*route, *best)) best = route;
  }
  if (!best || best->gateway != 0 || best->mask == 0 || best->mask == ~uint32_t{0}) return "";
  return std::string(best->device);
}

}  // namespace swell::cri
