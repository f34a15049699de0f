#include "lab/tenant_hours.h"

#include <algorithm>
#include <utility>

#include "lab/tenant_gpus.h"

namespace swell::lab {
namespace {

constexpr int64_t kHourS = 3600;

}  // namespace

void TenantHours::Ask(int64_t now_s, const std::string& tenant, int gpus) {
  PassTo(now_s);
  tenants_[tenant].asked += gpus;
  changed_ = true;
}

void TenantHours::Hold(int64_t now_s, const std::string& tenant, int gpus) {
  PassTo(now_s);
  tenants_[tenant].held += gpus;
}

void TenantHours::Wait(int64_t now_s, const std::string& tenant, int gpus, bool waits) {
  PassTo(now_s);
  std::map<int, int>& waiting = tenants_[tenant].waiting;
  if ((waiting[gpus] += waits ? 1 : -1) == 0) waiting.erase(gpus);
}

void TenantHours::SetGpus(int64_t now_s, int gpus) {
  PassTo(now_s);
  gpus_ = gpus;
  wanted_.clear();
  changed_ = true;
}

std::vector<TenantHour> TenantHours::Take(int64_t now_s) {
  PassTo(now_s);
  Close();
  return std::move(hours_);
}

void TenantHours::PassTo(int64_t now_s) {
  if (now_s == at_s_) return;
  if (changed_) ShareOut();
  while (at_s_ < now_s) {
    const int64_t end = std::min(now_s, (at_s_ / kHourS + 1) * kHourS);
    const auto seconds = static_cast<double>(end - at_s_);
    bool any = false;
    for (auto& [name, tenant] : tenants_) {
      tenant.open.asked += tenant.asked * seconds;
      tenant.open.share += tenant.share * seconds;
      tenant.open.held += tenant.held * seconds;
      const double lacks = tenant.share - tenant.held;
      const auto& waiting = tenant.waiting;
      if (lacks > 0 && !waiting.empty() && waiting.begin()->first > lacks) {
        tenant.open.too_little += lacks * seconds;
      }
      any |= tenant.asked > 0;
    }
    at_s_ = end;
    if (end % kHourS == 0) Close();
    if (!any) at_s_ = now_s;  // nothing is asked for until then
  }
}

void TenantHours::ShareOut() {
  changed_ = false;
  std::map<std::string, int> wanted;
  for (const auto& [name, tenant] : tenants_) {
    if (tenant.asked > 0) wanted[name] = std::min(tenant.asked, gpus_);
  }
  if (wanted == wanted_) return;
  wanted_ = std::move(wanted);
  for (auto& [name, tenant] : tenants_) tenant.share = 0;
  for (const auto& [name, part] : TenantParts(gpus_, shares_, wanted_)) {
    tenants_[name].share = part;
  }
}

void TenantHours::Close() {
  const int64_t hour = (at_s_ - 1) / kHourS;
  for (auto& [name, tenant] : tenants_) {
    TenantHour open = std::exchange(tenant.open, {});
    if (open.asked <= 0) continue;
    hours_.push_back({name, hour, open.asked / kHourS, open.share / kHourS, open.held / kHourS,
                      open.too_little / kHourS});
  }
}

}  // namespace swell::lab
