// What the status of a CronJob, and of KubeDL's Cron, says of the jobs that run.
// - Threads: pure functions.
#pragma once

#include "json/value.h"

namespace swell::controllers {

// Puts `active`, references to the jobs, into the status if other jobs run than `known` says: the
// status that the API has. A reference has the job's resourceVersion, which changes with each write
// to the job and is worth no write of its own.
void SetActive(const json::Value& known, json::Array active, json::Value& status);

}  // namespace swell::controllers
