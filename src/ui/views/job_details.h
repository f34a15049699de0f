// Parts of a job's documents that several views use: its progress, its hang, and its logs.
// - Threads: pure functions.
#pragma once

#include <vector>

#include "cli/views/job_view.h"
#include "json/value.h"

namespace swell::ui {

// Null: its script reports nothing.
json::Value ProgressOf(const cli::JobView& job);
// Null: it has never hung. The evidence stays when the ranks move again.
json::Value HangOf(const cli::JobView& job);
// What is wrong with a job that runs, by its conditions: a straggler, a save that failed, ranks
// that train apart, a suspension that waits.
json::Array WarningsOf(const cli::JobView& job);
// Null: it is not scaled by goodput. `others`: the jobs that may exchange members with it.
json::Value GoodputDocument(const cli::JobView& job, const std::vector<cli::JobView>& others);
// Whether the job's condition says that this pod's rank is much slower than its peers.
bool IsStraggler(const cli::JobView& job, std::string_view pod);
// A row for each start of a container that has a log, also of pods that are gone.
json::Array LogsOf(const cli::JobView& job);
// How the attempt of the job ended that was over at `to`, as far as its status tells; may be null.
json::Value EndOfAttempt(const cli::JobView& job, WallTime from, WallTime to);

}  // namespace swell::ui
