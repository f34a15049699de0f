// ScaleLook: what the two autoscalers have in common: when a job is looked at next, what its
// members pushed, how faults and changes are told.
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
