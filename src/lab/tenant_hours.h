// TenantHours: what each tenant held in each hour of a run, beside its share.
//
// The share at an instant is what quotas and weights give a tenant (TenantParts): its quota first,
// then what is left by weight, and never more than its jobs ask for.
//
// - Threads: none; belongs to one run. Times do not go back.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lab/policy.h"

namespace swell::lab {

// An hour in which the tenant asked for GPUs, for at least a part of it: averages over the hour.
struct TenantHour {
  std::string tenant;
  int64_t hour = 0;  // since the beginning of the trace
  double asked = 0;  // GPUs that its jobs could use
  double share = 0;
  double held = 0;
  // The part of the missing share that was too small for any of its waiting jobs. Jobs are not
  // split, so one more would have taken the tenant beyond its share.
  double too_little = 0;

  double Short() const { return share > held ? share - held : 0; }
};

class TenantHours {
 public:
  TenantHours(int gpus, const std::map<std::string, TenantShare>& shares)
      : gpus_(gpus), shares_(shares) {}

  // Changes from `now_s` on.
  void Ask(int64_t now_s, const std::string& tenant, int gpus);
  void Hold(int64_t now_s, const std::string& tenant, int gpus);
  // A job that needs `gpus` to start waits, or no longer waits.
  void Wait(int64_t now_s, const std::string& tenant, int gpus, bool waits);
  // The cluster's GPUs, as nodes go and come back.
  void SetGpus(int64_t now_s, int gpus);
  // All hours up to `now_s`, by time and tenant.
  std::vector<TenantHour> Take(int64_t now_s);

 private:
  struct Tenant {
    int asked = 0, held = 0;
    double share = 0;
    std::map<int, int> waiting;  // jobs, by the GPUs with which they start
    TenantHour open;             // GPU-seconds of the hour under way
  };

  void PassTo(int64_t now_s);
  void ShareOut();
  void Close();

  int gpus_;
  const std::map<std::string, TenantShare>& shares_;
  std::map<std::string, Tenant> tenants_;
  std::map<std::string, int> wanted_;  // what the shares follow from; no more than all GPUs
  int64_t at_s_ = 0;
  bool changed_ = false;
  std::vector<TenantHour> hours_;
};

}  // namespace swell::lab
