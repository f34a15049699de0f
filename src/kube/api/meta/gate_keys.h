// Labels and annotations by which a job waits, suspended, for other jobs, for a time, or for its
// turn in an array.
// - Threads: constants.
// - Invariants: values are plain text that people may write, so every reader copes with nonsense.
#pragma once

#include <string_view>

namespace swell::api::keys {

// On jobs, written by users.
// "closed": its controller lets the suspended job run when all that the others say has come true,
// and removes this one.
inline constexpr std::string_view kGate = "swell.dev/gate";
// "afterok:a:b,afterany:c": jobs of the same namespace, by name; with ? for a comma, any term does.
// "a+b" counts as one job, which has failed when all of its parts have ended and one has failed.
inline constexpr std::string_view kStartAfter = "swell.dev/start-after";
// A time, as in Kubernetes' documents.
inline constexpr std::string_view kStartNotBefore = "swell.dev/start-not-before";
// A label: jobs with the same value are an array. And how many of them may be let run at once.
inline constexpr std::string_view kArray = "swell.dev/array";
inline constexpr std::string_view kArrayAtOnce = "swell.dev/array-at-once";
// A label: the number that a job of `swell slurm sbatch` has.
inline constexpr std::string_view kSlurmJobId = "swell.dev/slurm-job-id";
// A person's name, or any text: nothing lets the job run before it is removed.
inline constexpr std::string_view kHeld = "swell.dev/held";
// "Fail": a job that waits for something that cannot come true any more fails; "Delete": it is
// deleted.
inline constexpr std::string_view kIfNever = "swell.dev/if-never";
// The reason of the condition Failed then.
inline constexpr std::string_view kNeverSatisfied = "DependencyNeverSatisfied";

// Any text: when the suspended job has no pods left, it is deleted. What its pods need while they
// save themselves is there for that long.
inline constexpr std::string_view kDeleteWhenStopped = "swell.dev/delete-when-stopped";

// On jobs, written by their controller: a word and a sentence.
// "Dependency: waits for train to succeed".
inline constexpr std::string_view kGateReason = "swell.dev/gate-reason";

}  // namespace swell::api::keys
