// ExplainJob: why a job waits or was stopped, and what would start it: what `swell why` prints.
// - Threads: blocks on the session's loop.
#pragma once

#include <string>
#include <string_view>

#include "cli/jobs/start_forecast.h"
#include "cli/jobs/why_facts.h"
#include "cli/session.h"

namespace swell::cli {

struct WhyAnswer {
  WhyFacts facts;
  StartForecast forecast;
};

// `name`: of a job, a pod group or a pod, or KIND/NAME. `ns` empty: in any namespace.
Result<WhyAnswer> ExplainJob(Session& session,
                             Api& api,
                             std::string_view ns,
                             const std::string& name);

}  // namespace swell::cli
