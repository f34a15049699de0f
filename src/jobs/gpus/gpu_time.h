// GpuTime: what the GPUs of a job were used for since it began, in status.gpuTime: seconds by use
// (jobs/gpus/gpu_use.h), the work that was lost, and the share that was productive.
//
// Time is charged to the use that a pod had before, whenever the job is looked at. The sums are in
// memory, and are written once a minute and at the end. Nothing is written while nothing happens. A
// controller that starts anew continues from what the status says, with the pods that still hold
// their places.
//
// - Threads: core executor only.
// - Ownership: belongs to the JobController.
// - Invariants: bounded by the pods that hold GPUs. A job without GPUs has no account.
#pragma once

#include <array>
#include <map>
#include <string>

#include "base/clock.h"
#include "jobs/gpus/gpu_use.h"
#include "json/value.h"
#include "kube/client/usage_record.h"

namespace swell::jobs {

class GpuTime {
 public:
  static constexpr Duration kWriteEvery = std::chrono::minutes(1);

  // Charges what came since the last call. `pods` are those of the job, by name.
  void Note(const std::string& job_uid,
            const std::map<std::string, json::SharedValue>& pods,
            bool gang_runs,
            WallTime now,
            bool over,
            json::Value& status);
  void Forget(const std::string& job_uid) { jobs_.erase(job_uid); }

 private:
  struct Held {
    client::GpuUse use = client::GpuUse::kStarting;
    double gpus = 0;
    WallTime since;   // not charged yet from here on
    double lost = 0;  // GPU-seconds, if the pod ends as it was seen last
    LossInPlace lost_in_place;
    bool seen = false;
  };
  struct Job {
    std::map<std::string, Held, std::less<>> held;  // by the pod's uid
    std::array<double, client::kGpuUses> seconds{};
    double lost = 0;
    WallTime until;  // what the status had at first
  };
  static Job FromStatus(const json::Value& status);
  static void Charge(Job& job, Held& held, WallTime until);
  static void ChargePod(Job& job, const json::Value& pod, bool gang_runs, WallTime now);
  static json::Value ToJson(const Job& job, WallTime now);

  std::map<std::string, Job> jobs_;  // by uid
};

}  // namespace swell::jobs
