// PodFacts: what controllers read from a pod's status: how it ended, why it was preempted, how
// often it was restarted.
// - Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "json/value.h"
#include "kube/api/objects/pod.h"

namespace swell::controllers {

using api::HasEnded;
using api::Phase;
using api::RestartCount;

// The scheduler took its place, or is taking it.
bool WasPreempted(const json::Value& pod);
// "Preempted by default/x-master-0 …"; empty when it was not.
std::string PreemptionMessage(const json::Value& pod);
// When it was marked; nullopt when it was not, or does not say.
std::optional<WallTime> PreemptionTime(const json::Value& pod);
// It is being taken away by the cluster for whatever reason (condition DisruptionTarget): the
// scheduler, an eviction, a lost node. What its peers do then is not their failure.
bool WasDisrupted(const json::Value& pod);
// It failed through no fault of its own: evicted, its node lost or full at the last moment.
bool FailedByCluster(const json::Value& pod);
// The exit code of the first container that failed; nullopt if none has.
std::optional<int64_t> ExitCode(const json::Value& pod);
// The uid of the batch Job whose pods carry the pod's label; empty without one.
std::string_view JobUidLabel(const json::Value& pod);
// The size of the training group that the pod reports: 0 while it waits to join, -1 if it has not
// reported any.
int64_t ReportedWorld(const json::Value& pod);

}  // namespace swell::controllers
