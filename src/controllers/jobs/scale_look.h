// ScaleLook: what the two autoscalers have in common: when a job is looked at next, what its
// members pushed, how the job is written, faults and changes are told.
//
// Thread-safety: values; functions for the core executor only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "client/event_recorder.h"
#include "json/value.h"

namespace swell::controllers {

struct ScaleLook {
  std::string uid;       // of the job
  uint64_t version = 0;  // of the job that a write of ours answered with
  std::optional<SteadyTime> looked;
  std::string complaint;
};

// How long it is until the next look; zero when it is now, which is remembered.
Duration UntilNextLook(ScaleLook& look, SteadyTime now, Duration interval);

// Adds to a merge patch that it is for this very version of the job, and what is to be remembered
// with it (kScaleMemory).
json::Value WithMemory(json::Value patch, const json::Value& job, std::string_view memory);

// A merge patch that makes the status of the role's scaling `wanted`.
json::Value ScalingStatusPatch(const json::Value& job, std::string_view role, json::Value wanted);

// The query for the end of the log of the pod's first container.
std::string LogTailQuery(const json::Value& pod, int lines, int bytes);

// A number that the pod has pushed by that name.
std::optional<double> PushedMetric(const json::Value& pod, std::string_view metric);

// Each complaint once, until there is another one.
void Complain(client::EventRecorder& events,
              const json::Value& job,
              ScaleLook& look,
              const std::string& message);

void TellResized(client::EventRecorder& events,
                 const json::Value& job,
                 std::string_view role,
                 int64_t from,
                 int64_t to,
                 std::string_view why);

}  // namespace swell::controllers
