// ServiceIps: which cluster IPs are taken. A bounded IPv4 range.
// - Threads: core executor only.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "kube/apiserver/core.h"

namespace swell::apiserver {

std::optional<uint32_t> ParseIpv4(std::string_view text);
std::string FormatIpv4(uint32_t address);

class ServiceIps final : public CorePart {
 public:
  // Range [base, base+count). A bad base makes an empty range.
  ServiceIps(std::string_view base, uint32_t count);

  bool InRange(std::string_view ip) const;
  bool Taken(std::string_view ip) const;
  void Take(std::string_view ip);
  void Release(std::string_view ip);
  // The next free one, after the last given; nullopt when all are taken.
  std::optional<std::string> Allocate();
  std::string first() const;
  std::string Cidr() const;

 private:
  uint32_t base_ = 0;
  uint32_t count_ = 0;
  uint32_t next_ = 1;  // the first address is the API server's own service
  std::set<uint32_t> taken_;
};

}  // namespace swell::apiserver
