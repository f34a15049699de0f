// FailureAdvice: what to do about a failure, by its class, its signal and the words it ended with.
// - Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "json/value.h"
#include "kube/api/objects/failure.h"

namespace swell::api {

// Begins the end of an advice that sends people to the log.
inline constexpr std::string_view kMoreInLog = "more is in: ";

// Without a full stop; empty: there is nothing to do.
std::string AdviceFor(const Failure& failure, const json::Value& pod);
// The container of that name in the pod's spec; null if it has none.
const json::Value* SpecOfContainer(const json::Value& pod, std::string_view container);

}  // namespace swell::api
