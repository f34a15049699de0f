// TenantGpus, TenantParts: how many GPUs each project may have at one instant, by quota and weight.
// - Threads: pure functions.
// - Invariants: equal input, equal GPUs; together they are all GPUs, or all that is wanted.
#pragma once

#include <map>
#include <string>

#include "lab/policy.h"

namespace swell::lab {

// `wanted` says how many GPUs the jobs of each project could use. A project gets its quota first,
// then what is left by weight, and never more than it wants. Quotas that exceed the GPUs together
// shrink alike. Whole GPUs; the largest remainders are rounded up.
std::map<std::string, int> TenantGpus(int gpus,
                                      const std::map<std::string, TenantShare>& shares,
                                      const std::map<std::string, int>& wanted);

// The same before it is rounded to whole GPUs.
std::map<std::string, double> TenantParts(int gpus,
                                          const std::map<std::string, TenantShare>& shares,
                                          const std::map<std::string, int>& wanted);

}  // namespace swell::lab
