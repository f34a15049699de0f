#include "lab/tenant_gpus.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/strings.h"

namespace swell::lab {
namespace {

using Counts = std::map<std::string, int>;

TEST(TenantGpus, QuotasComeFirstAndTheRestGoesByWeight) {
  const std::map<std::string, TenantShare> shares{{"a", {4, 1}}, {"b", {2, 3}}};
  EXPECT_EQ(TenantGpus(10, shares, {{"a", 10}, {"b", 10}}), (Counts{{"a", 5}, {"b", 5}}));
}

TEST(TenantGpus, WhatOneDoesNotWantIsLent) {
  const std::map<std::string, TenantShare> shares{{"a", {6, 1}}, {"b", {2, 1}}};
  EXPECT_EQ(TenantGpus(8, shares, {{"a", 1}, {"b", 9}}), (Counts{{"a", 1}, {"b", 7}}));
  EXPECT_EQ(TenantGpus(8, shares, {{"a", 9}, {"b", 9}}), (Counts{{"a", 6}, {"b", 2}}));
}

TEST(TenantGpus, WhoIsUnknownHasNoQuotaAndAWeightOfOne) {
  EXPECT_EQ(TenantGpus(9, {}, {{"a", 9}, {"b", 9}, {"c", 9}}),
            (Counts{{"a", 3}, {"b", 3}, {"c", 3}}));
}

TEST(TenantGpus, QuotasBeyondTheClusterShrinkAlike) {
  const std::map<std::string, TenantShare> shares{{"a", {12, 1}}, {"b", {4, 1}}};
  EXPECT_EQ(TenantGpus(8, shares, {{"a", 20}, {"b", 20}}), (Counts{{"a", 6}, {"b", 2}}));
}

TEST(TenantGpus, AWeightOfZeroGetsItsQuotaOnly) {
  const std::map<std::string, TenantShare> shares{{"a", {2, 0}}, {"b", {0, 1}}};
  EXPECT_EQ(TenantGpus(8, shares, {{"a", 8}, {"b", 3}}), (Counts{{"a", 2}, {"b", 3}}));
}

// Nobody gets more than it wants, or less than its quota where it wants that; nothing is idle that
// somebody with a weight wants.
TEST(TenantGpus, AllRulesHoldForAnyProjects) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const int gpus = 1 + static_cast<int>(random.Below(40));
    std::map<std::string, TenantShare> shares;
    Counts wanted;
    double quotas = 0;
    int wants = 0;
    for (uint64_t i = 0; i < 1 + random.Below(6); ++i) {
      const std::string name = StrCat("t", i);
      shares[name] = {static_cast<double>(random.Below(10)),
                      static_cast<double>(1 + random.Below(4))};
      wanted[name] = static_cast<int>(random.Below(20));
      quotas += shares[name].quota;
      wants += wanted[name];
    }
    int sum = 0;
    for (const auto& [name, gets] : TenantGpus(gpus, shares, wanted)) {
      EXPECT_LE(gets, wanted[name]) << "seed " << seed;
      if (quotas <= gpus) {
        EXPECT_GE(gets, std::min<int>(wanted[name], static_cast<int>(shares[name].quota)))
            << "seed " << seed;
      }
      sum += gets;
    }
    EXPECT_EQ(sum, std::min(gpus, wants)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace swell::lab
