// Arena's crons: jobs that a Cron of KubeDL (apps.kubedl.io/v1alpha1) starts at its times.
// - Threads: one thread.
#pragma once

#include <string>

#include "cli/arena/arena.h"
#include "cli/jobs/why_cron.h"
#include "json/value.h"

namespace swell::cli::arena {

// The flags by which `arena cron tfjob` says when, and the Cron that they make of a job.
class CronFlags {
 public:
  void Declare(Flags& flags);
  // kBadRequest (misuse) naming the flag.
  Status Check() const;
  json::Value CronOf(const json::Value& job) const;

 private:
  std::string schedule_, concurrency_policy_ = "Allow", deadline_;
  bool suspend_ = false;
  int64_t history_limit_ = 10;
};

// Whether the namespace has a Cron of that name.
Result<bool> HasCron(Api& api, const std::string& ns, const std::string& name);

}  // namespace swell::cli::arena
