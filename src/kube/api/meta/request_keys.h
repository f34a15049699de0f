// Annotations by which the processes of a pod request something of their job.
//
// A process writes {"jobRequest": "requeue"} to request.json beside SWELL_REPORT_FILE, and the node
// agent publishes the word on the pod. Where no agent of Swell's runs the pod, the same document is
// the container's termination message, which a kubelet publishes when the container has ended.
//
// - Threads: constants.
// - Invariants: values are plain text that people may write, so every reader copes with nonsense.
#pragma once

#include <string_view>

namespace swell::api::keys {

// On pods, written by their node.
inline constexpr std::string_view kJobRequest = "swell.dev/job-request";
// Its values, and the field of the document.
inline constexpr std::string_view kRequestField = "jobRequest";
inline constexpr std::string_view kRequestRequeue = "requeue";
inline constexpr std::string_view kRequestCancel = "cancel";

// On jobs: how often it was requeued. On its pods: how often it had been when they were made.
// Pods that have the lesser number are stopped, and made anew.
inline constexpr std::string_view kRequeues = "swell.dev/requeues";

// The reason of the condition Failed of a job that was cancelled by a process of its own.
inline constexpr std::string_view kCancelled = "Cancelled";

}  // namespace swell::api::keys
