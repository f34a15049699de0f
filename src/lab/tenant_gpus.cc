#include "lab/tenant_gpus.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace swell::lab {
namespace {

constexpr double kNothing = 1e-9;

struct Tenant {
  std::string name;
  double wanted = 0;
  double quota = 0;
  double weight = 1;
  double gets = 0;
};

// What is left goes to those that want more, by weight, until one has what it wants; again.
void ShareOut(std::vector<Tenant>& tenants, double left) {
  while (left > kNothing) {
    double weights = 0, step = INFINITY;
    for (const Tenant& tenant : tenants) {
      if (tenant.wanted - tenant.gets <= kNothing || tenant.weight <= 0) continue;
      weights += tenant.weight;
      step = std::min(step, (tenant.wanted - tenant.gets) / tenant.weight);
    }
    if (weights <= 0) return;
    step = std::min(step, left / weights);
    for (Tenant& tenant : tenants) {
      if (tenant.wanted - tenant.gets <= kNothing || tenant.weight <= 0) continue;
      tenant.gets += step * tenant.weight;
      left -= step * tenant.weight;
    }
  }
}

std::map<std::string, int> Whole(const std::vector<Tenant>& tenants, int gpus) {
  std::map<std::string, int> whole;
  std::vector<const Tenant*> order;
  double sum = 0;
  for (const Tenant& tenant : tenants) {
    whole[tenant.name] = static_cast<int>(tenant.gets + kNothing);
    sum += tenant.gets;
    order.push_back(&tenant);
  }
  int left = std::min(gpus, static_cast<int>(std::llround(sum)));
  for (const auto& [name, gets] : whole) left -= gets;
  auto rest = [](const Tenant* tenant) {
    return tenant->gets - std::floor(tenant->gets + kNothing);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Tenant* a, const Tenant* b) { return rest(a) > rest(b); });
  for (size_t i = 0; i < order.size() && left > 0; ++i, --left) ++whole[order[i]->name];
  return whole;
}

std::vector<Tenant> Shared(int gpus,
                           const std::map<std::string, TenantShare>& shares,
                           const std::map<std::string, int>& wanted) {
  std::vector<Tenant> tenants;
  double quotas = 0;
  for (const auto& [name, most] : wanted) {
    const auto known = shares.find(name);
    const TenantShare share = known == shares.end() ? TenantShare{} : known->second;
    const double unlimited = share.quota < 0 ? gpus : share.quota;
    tenants.push_back({name, static_cast<double>(most), unlimited, share.weight});
    quotas += std::min(unlimited, tenants.back().wanted);
  }
  const double part = quotas > gpus ? gpus / quotas : 1;
  double left = gpus;
  for (Tenant& tenant : tenants) {
    tenant.gets = part * std::min(tenant.quota, tenant.wanted);
    left -= tenant.gets;
  }
  ShareOut(tenants, left);
  return tenants;
}

}  // namespace

std::map<std::string, int> TenantGpus(int gpus,
                                      const std::map<std::string, TenantShare>& shares,
                                      const std::map<std::string, int>& wanted) {
  return Whole(Shared(gpus, shares, wanted), gpus);
}

std::map<std::string, double> TenantParts(int gpus,
                                          const std::map<std::string, TenantShare>& shares,
                                          const std::map<std::string, int>& wanted) {
  std::map<std::string, double> parts;
  for (const Tenant& tenant : Shared(gpus, shares, wanted)) parts[tenant.name] = tenant.gets;
  return parts;
}

}  // namespace swell::lab
