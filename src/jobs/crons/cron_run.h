// NewRun: the job that a Cron (apps.kubedl.io) starts at a time. The controller creates it, and
// the rules for a new Cron look at the same job.
// - Threads: pure functions.
#pragma once

#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/client/client.h"

namespace swell::jobs {

// KubeDL's label of a job that a Cron has made: the Cron's name.
inline constexpr std::string_view kCronNameLabel = "kubedl.io/cron-name";

struct NewRun {
  client::Resource resource;  // in the version that the template names
  json::Value job;
  // The template names the job: two runs can never be there at once.
  bool named = false;
};

// kInvalid with the field of the Cron that is wrong.
Result<NewRun> MakeCronRun(const json::Value& cron, WallTime at);

}  // namespace swell::jobs
