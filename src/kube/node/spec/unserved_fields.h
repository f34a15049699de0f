// Fields of a pod that the agent cannot give it: a pod is refused rather than run without what it
// asks for.
// - Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "json/value.h"

namespace swell::node {

struct Refusal {
  std::string reason;  // of the pod's status and event
  std::string message;
};
// Why the pod can never run here.
std::optional<Refusal> FindUnserved(const json::Value& pod);
// Fields that do no harm by having no effect; a message for each.
std::vector<std::string> FindIgnored(const json::Value& pod);
// Why the pod's RuntimeClass cannot be followed here; `runtime_class` is the object.
std::optional<std::string> FindUnservedHandler(const json::Value& runtime_class);

}  // namespace swell::node
