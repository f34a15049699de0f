// UsageDay: who held what on one day (UTC), as the cluster keeps it: a ConfigMap per day, named
// swell-usage-2026-11-21, whose `usage` is a JSON document of rows by project, user and hour, and
// of the day's jobs.
// - Threads: values and pure functions.
// - Invariants: a day has at most kRowsMax rows and kJobsMax jobs; what exceeds them is summed
//   under "(others)".
#pragma once

#include <array>
#include <cstddef>
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

// What a held GPU is used for. Every second of it has one of these names.
enum class GpuUse : uint8_t {
  kStarting,  // images, volumes, init containers
  kWaiting,   // for other members of the gang
  kLoading,   // program, state and data, before the first step
  kTraining,
  kSaving,
  kHung,
  kFailing,   // a container failed, and waits to start again
  kStopping,  // from notice and SIGTERM to the end
};
inline constexpr size_t kGpuUses = 8;
// "waitingForPeers"
std::string_view GpuUseName(GpuUse use);

struct UsageRow {
  double gpu_s = 0;  // held: GPUs times seconds
  double cpu_s = 0;
  int64_t started = 0;  // work that got its places, and how long it had waited
  double wait_s = 0;
  double wait_max_s = 0;
  int64_t preempted = 0;                     // pods
  double lost_gpu_s = 0;                     // work since their last checkpoints
  std::array<double, kGpuUses> use_gpu_s{};  // of gpu_s

  double& Of(GpuUse use) { return use_gpu_s[static_cast<size_t>(use)]; }
  double Of(GpuUse use) const { return use_gpu_s[static_cast<size_t>(use)]; }
  // Training that was not lost again.
  double Productive() const;
  void Add(const UsageRow& other);
};

// What a job's row does not add up to: which job it was, when it came, how much it held at once.
// `swell lab run --from-cluster` makes a trace of it when the job's object is gone.
struct UsageJobFacts {
  std::string uid;       // of the job; empty: not known, as in records before this one was kept
  WallTime submitted;    // the first one that was seen
  double gpus = 0;       // the most that it held at once
  WallTime first, last;  // it held GPUs between these, not always
  bool several = false;  // jobs of one name followed each other on this day: they share the row

  // What is known of the same name, on this day or another.
  void Add(const UsageJobFacts& other);
};

struct UsageDay {
  static constexpr size_t kRowsMax = 2500;
  static constexpr size_t kJobsMax = 300;
  using Key = std::tuple<std::string, std::string, int>;             // project, user, hour
  using JobKey = std::tuple<std::string, std::string, std::string>;  // project, user, job

  std::string date;  // "2026-11-21"
  std::map<Key, UsageRow> rows;
  // By project, user and "namespace/job", of the whole day.
  std::map<JobKey, UsageRow> jobs;
  std::map<JobKey, UsageJobFacts> facts;    // of `jobs`, as far as they are known
  std::array<double, 24> capacity_gpu_s{};  // of all nodes
  WallTime until;                           // up to when it is complete

  UsageRow& Row(std::string_view project, std::string_view user, int hour);
  UsageRow& Job(std::string_view project, std::string_view user, std::string_view job);
  // Nothing is kept of a job that has no row of its own.
  void NoteJob(const JobKey& key, const UsageJobFacts& facts);

  json::Value ToConfigMap(std::string_view ns) const;
  // An error names the ConfigMap and what is wrong with it.
  static Result<UsageDay> FromConfigMap(const json::Value& object);
};

// "2026-11-21", and the hour of that day.
std::string UsageDate(WallTime time);
int UsageHour(WallTime time);
std::string UsageConfigMapName(std::string_view date);

}  // namespace swell::client
