#include "kube/apiserver/kinds/service_ips.h"

#include <bit>

#include "base/strings.h"

namespace swell::apiserver {

std::optional<uint32_t> ParseIpv4(std::string_view text) {
  const auto parts = Split(text, '.');
  if (parts.size() != 4) return std::nullopt;
  uint32_t address = 0;
  for (std::string_view part : parts) {
    const auto number = ParseUint(part);
    if (!number || *number > 255 || part.size() > 3) return std::nullopt;
    address = address << 8 | static_cast<uint32_t>(*number);
  }
  return address;
}

std::string FormatIpv4(uint32_t address) {
  return StrCat(address >> 24, ".", address >> 16 & 255, ".", address >> 8 & 255, ".",
                address & 255);
}

ServiceIps::ServiceIps(std::string_view base, uint32_t count) {
  const auto address = ParseIpv4(base);
  if (!address) return;
  base_ = *address;
  count_ = std::min(count, ~uint32_t{0} - base_);
}

bool ServiceIps::InRange(std::string_view ip) const {
  const auto address = ParseIpv4(ip);
  return address && *address >= base_ && *address - base_ < count_;
}

bool ServiceIps::Taken(std::string_view ip) const {
  const auto address = ParseIpv4(ip);
  return address && taken_.count(*address) > 0;
}

void ServiceIps::Take(std::string_view ip) {
  if (const auto address = ParseIpv4(ip)) taken_.insert(*address);
}

void ServiceIps::Release(std::string_view ip) {
  if (const auto address = ParseIpv4(ip)) taken_.erase(*address);
}

std::optional<std::string> ServiceIps::Allocate() {
  for (uint32_t tried = 0; tried < count_; ++tried) {
    if (next_ >= count_) next_ = 1 < count_ ? 1 : 0;
    const uint32_t address = base_ + next_++;
    if (taken_.insert(address).second) return FormatIpv4(address);
  }
  return std::nullopt;
}

std::string ServiceIps::first() const { return FormatIpv4(base_); }

std::string ServiceIps::Cidr() const {
  const uint32_t bits = static_cast<uint32_t>(std::bit_width(count_ == 0 ? 0U : count_ - 1));
  const uint32_t network = bits >= 32 ? 0 : base_ >> bits << bits;
  return StrCat(FormatIpv4(network), "/", 32 - bits);
}

}  // namespace swell::apiserver
