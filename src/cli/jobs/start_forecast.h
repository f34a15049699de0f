// StartForecast: when a waiting job starts, and the single changes that would start it.
// - Threads: pure functions; a search runs up to some hundred scheduling cycles.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/jobs/expected_end.h"
#include "cli/jobs/what_if.h"
#include "cli/jobs/why_facts.h"

namespace swell::cli {

struct StartForecast {
  Outcome now;  // what the scheduler does next
  // Each alone starts the job, as part of a sentence: "one more node like node-1".
  std::vector<std::string> changes;
  // nullopt: too little of the work that holds its GPUs has an expected end.
  std::optional<CouldStart> could_start;
};

// `what_if`: of the cluster that `facts` were read from. Nothing in the cluster is changed.
StartForecast ForecastStart(const WhyFacts& facts, const WhatIf& what_if);

}  // namespace swell::cli
