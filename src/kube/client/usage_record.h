// UsageDay: who held what on one day (UTC), as the cluster keeps it: a ConfigMap per day, named
// swell-usage-2026-11-21, whose `usage` is a JSON document of rows by project, user and hour.
// - Threads: values and pure functions.
// - Invariants: a day has at most kRowsMax rows; what comes beyond is told together under
//   "(others)".
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "base/clock.h"
#include "base/result.h"
#include "json/value.h"

namespace swell::client {

inline constexpr std::string_view kUsageNamespace = "swell-system";
inline constexpr std::string_view kUsageLabel = "swell.dev/usage";  // "day"
inline constexpr std::string_view kUsageOthers = "(others)";

struct UsageRow {
  double gpu_s = 0;  // held: GPUs times seconds
  double cpu_s = 0;
  int64_t started = 0;  // work that got its places, and how long it had waited
  double wait_s = 0;
  double wait_max_s = 0;
  int64_t preempted = 0;  // pods
  double lost_gpu_s = 0;  // work since their last checkpoints

  void Add(const UsageRow& other);
};

struct UsageDay {
  static constexpr size_t kRowsMax = 4000;
  using Key = std::tuple<std::string, std::string, int>;  // project, user, hour

  std::string date;  // "2026-11-21"
  std::map<Key, UsageRow> rows;
  std::array<double, 24> capacity_gpu_s{};  // of all nodes
  WallTime until;                           // up to when it is complete

  UsageRow& Row(std::string_view project, std::string_view user, int hour);

  json::Value ToConfigMap(std::string_view ns) const;
  // An error names the ConfigMap and what is wrong with it.
  static Result<UsageDay> FromConfigMap(const json::Value& object);
};

// "2026-11-21", and the hour of that day.
std::string UsageDate(WallTime time);
int UsageHour(WallTime time);
std::string UsageConfigMapName(std::string_view date);

}  // namespace swell::client
