// ExplainCron: when a Cron (KubeDL's) or a CronJob starts its next job, what its last one did, and
// why it starts none: what `swell why` prints of them. ViewCron: the same in short, for lists.
// - Threads: ExplainCron blocks on the session's loop; ViewCron is a pure function.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cli/session.h"
#include "json/value.h"

namespace swell::cli {

struct CronAnswer {
  std::string text;
  json::Value document;
  std::string resource_name;  // "cron.apps.kubedl.io/nightly"
};

// A job that one of them started.
struct CronRun {
  std::string kind, name, status;
  std::optional<WallTime> began, ended;
};

struct CronView {
  std::string starts;  // the kind of object that it makes
  std::string schedule, zone;
  std::string policy;  // for a run that is due while the last one is active
  std::string state;   // "Active", "Suspended", "Ended", "Invalid", "Deleting"
  std::string reason;  // why it starts none, or why the one that is due waits; mostly empty
  std::optional<WallTime> next, last;
  std::vector<CronRun> runs;  // oldest first
};

// Whether a word says that it names one: "cron/nightly", "cj/nightly".
bool NamesCron(std::string_view word);
// `word`: the name of a Cron or a CronJob, or KIND/NAME. `ns` empty: in any namespace.
Result<CronAnswer> ExplainCron(Session& session,
                               Api& api,
                               std::string_view ns,
                               std::string_view word);
// `kind`: "Cron" or "CronJob". `jobs`: those that a CronJob owns; a Cron keeps its own history.
CronView ViewCron(const json::SharedValue& cron,
                  std::string_view kind,
                  const std::vector<json::SharedValue>& jobs,
                  WallTime now);

}  // namespace swell::cli
