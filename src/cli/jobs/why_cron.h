// ExplainCron: when a Cron (KubeDL's) or a CronJob starts its next job, what its last one did, and
// why it starts none: what `swell why` prints of them.
// - Threads: blocks on the session's loop.
#pragma once

#include <string>
#include <string_view>

#include "cli/session.h"
#include "json/value.h"

namespace swell::cli {

struct CronAnswer {
  std::string text;
  json::Value document;
  std::string resource_name;  // "cron.apps.kubedl.io/nightly"
};

// Whether a word says that it names one: "cron/nightly", "cj/nightly".
bool NamesCron(std::string_view word);
// `word`: the name of a Cron or a CronJob, or KIND/NAME. `ns` empty: in any namespace.
Result<CronAnswer> ExplainCron(Session& session,
                               Api& api,
                               std::string_view ns,
                               std::string_view word);

}  // namespace swell::cli
