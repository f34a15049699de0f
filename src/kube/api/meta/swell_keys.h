// Labels and annotations by which Swell's components talk to each other, in one place.
// - Threads: constants.
// - Invariants: all are in the domain swell.dev; values are plain text that people may read and
//   write, so every reader copes with nonsense.
#pragma once

#include <string_view>

namespace swell::api::keys {

// Labels of pods.
inline constexpr std::string_view kPodGroup = "swell.dev/pod-group";
inline constexpr std::string_view kPodSet = "swell.dev/pod-set";
inline constexpr std::string_view kJobName = "swell.dev/job-name";
inline constexpr std::string_view kJobRole = "swell.dev/job-role";
inline constexpr std::string_view kJobIndex = "swell.dev/job-index";
// On pods, jobs and namespaces.
inline constexpr std::string_view kProject = "swell.dev/project";
// A finalizer of projects: they stay while work or projects are in them.
inline constexpr std::string_view kProjectInUse = "swell.dev/in-use";
// On jobs: train, interactive, build or inference.
inline constexpr std::string_view kWorkload = "swell.dev/workload";

// GPUs of a pod: which devices ("0,2"), or a part of one.
inline constexpr std::string_view kGpuDevices = "swell.dev/gpu-devices";
inline constexpr std::string_view kGpuFraction = "swell.dev/gpu-fraction";
inline constexpr std::string_view kGpuMemory = "swell.dev/gpu-memory";  // MiB
inline constexpr std::string_view kGpuFractionDevices = "swell.dev/gpu-fraction-devices";
// What a pod that asked for memory was given with its node, in GPUs: "0.25".
inline constexpr std::string_view kGpuShare = "swell.dev/gpu-share";
// Within its group, a pod with a higher value is placed earlier and given up later.
inline constexpr std::string_view kMemberPriority = "swell.dev/member-priority";
// Seconds after its start at which the pod's job will have ended it at the latest.
inline constexpr std::string_view kMaxRunSeconds = "swell.dev/max-run-seconds";
// On pods without a controller of Swell's: they ask for a PodGroup.
inline constexpr std::string_view kMinMember = "swell.dev/min-member";
inline constexpr std::string_view kMadeForPods = "swell.dev/made-for-pods";  // on that group

// On pods of other operators: the uid of the object that their gang belongs to.
inline constexpr std::string_view kGroupOwner = "swell.dev/group-owner";

// What a pod reports of its training.
inline constexpr std::string_view kCheckpointTime = "swell.dev/checkpoint-time";
inline constexpr std::string_view kStep = "swell.dev/step";
inline constexpr std::string_view kEpoch = "swell.dev/epoch";
inline constexpr std::string_view kMetrics = "swell.dev/metrics";

// How often the pod's job had been preempted when the pod was made; missing: never.
inline constexpr std::string_view kPreemptionsBefore = "swell.dev/preemptions-before";

// Why a pod was stopped.
inline constexpr std::string_view kPreemptedBy = "swell.dev/preempted-by";      // "ns/pod"
inline constexpr std::string_view kPreemptedRule = "swell.dev/preempted-rule";  // "preempt"
inline constexpr std::string_view kPreemptedMessage = "swell.dev/preempted-message";
inline constexpr std::string_view kPreemptedLost = "swell.dev/preempted-lost-gpu-seconds";
inline constexpr std::string_view kStopRequested = "swell.dev/stop-requested";  // text: why

// On jobs.
inline constexpr std::string_view kOnPreemption = "swell.dev/on-preemption";  // Requeue, Fail
inline constexpr std::string_view kRestarts = "swell.dev/restarts";
inline constexpr std::string_view kUser = "swell.dev/user";
// "privileged": the author may exceed the namespace's Pod Security level. On pods, their templates
// and jobs; the API server alone writes it.
inline constexpr std::string_view kPodSecurity = "swell.dev/pod-security";
inline constexpr std::string_view kCommandLine = "swell.dev/command-line";

// A label of the Secret that represents a user of the embedded cluster, and of the bindings of the
// user's roles.
inline constexpr std::string_view kUserSecret = "swell.dev/user-secret";

// The ConfigMap in which a scheduler publishes its settings.
inline constexpr std::string_view kSchedulerSettings = "swell-scheduler";

// On nodes.
inline constexpr std::string_view kRuntimeLimits = "swell.dev/runtime-limits";
inline constexpr std::string_view kStartedBy = "swell.dev/started-by";  // "swell-up"

}  // namespace swell::api::keys
