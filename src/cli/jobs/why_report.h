// WhyReport: the sentences and the document with which `swell why` explains a job.
// - Threads: pure functions.
#pragma once

#include <string>

#include "cli/jobs/start_forecast.h"
#include "cli/jobs/why_facts.h"

namespace swell::cli {

// `forecast`: of a job that waits for Swell's scheduler; else empty.
std::string WhyText(const WhyFacts& facts, const StartForecast& forecast);
json::Value WhyJson(const WhyFacts& facts, const StartForecast& forecast);

}  // namespace swell::cli
