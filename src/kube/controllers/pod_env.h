// PodEnv: adds an environment variable to every container of a pod.
// - Threads: pure functions.
// - Invariants: a variable that the user set stays as it is.
#pragma once

#include <string_view>

#include "json/value.h"

namespace swell::controllers {

void SetEnv(json::Value& pod, std::string_view name, std::string_view value);
// The value is a field of the pod itself, such as "status.podIP".
void SetEnvFromField(json::Value& pod, std::string_view name, std::string_view field);

}  // namespace swell::controllers
