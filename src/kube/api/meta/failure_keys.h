// Annotations that say what follows from failures and idleness, and that remember what did.
// - Threads: constants.
// - Invariants: values are plain text that people may write, so every reader copes with nonsense.
#pragma once

#include <string_view>

namespace swell::api::keys {

// On jobs, written by users.
// "false": members that were killed for lack of memory are made again with the same memory.
inline constexpr std::string_view kRaiseMemory = "swell.dev/raise-memory";
// "Restart": errors that no restart can mend are restarted like others.
inline constexpr std::string_view kOnUserError = "swell.dev/on-user-error";

// On jobs and projects: how long GPUs of interactive work may be idle, "2h".
inline constexpr std::string_view kIdleTimeout = "swell.dev/idle-timeout";

// On jobs, written by their controller.
// Memory limits of containers that were killed at smaller ones: "worker/main=1536Mi".
inline constexpr std::string_view kMemoryRaised = "swell.dev/memory-raised";
// Why the server refused pods with more memory.
inline constexpr std::string_view kMemoryRefused = "swell.dev/memory-refused";
// The latest failure that counts as a restart: its time and class, "2026-01-01T00:00:00Z Unknown".
inline constexpr std::string_view kLastFailure = "swell.dev/last-failure";
// Failures in a row that each came soon after the start.
inline constexpr std::string_view kCrashes = "swell.dev/crashes";
// No member is made before this time.
inline constexpr std::string_view kStartsFrom = "swell.dev/starts-from";
// A mark of the pod templates that failed: when they change, nothing of that failure holds any
// more.
inline constexpr std::string_view kFailedTemplates = "swell.dev/failed-templates";
// How many failures of hardware did not count as restarts.
inline constexpr std::string_view kHardwareFailures = "swell.dev/hardware-failures";
// The nodes on which hardware failed under the job, newest first: "node-2,node-7".
inline constexpr std::string_view kAvoidedNodes = "swell.dev/avoided-nodes";
// On jobs and their pods that wait: when they may preempt others again.
inline constexpr std::string_view kPreemptsFrom = "swell.dev/preempts-from";

}  // namespace swell::api::keys
