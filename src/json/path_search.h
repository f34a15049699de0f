// PathSearch: where in a document something is, as messages write it: "spec.tasks[2].template".
// - Threads: pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "json/value.h"

namespace swell::json {

// The path of the first value, depth first, that `is` it. `key` is empty for the document and for
// items of arrays. What is deeper than `depth_max` is not looked at. nullopt: there is none.
std::optional<std::string> FindPathOf(
    const Value& document,
    int depth_max,
    const std::function<bool(std::string_view key, const Value& value)>& is);

}  // namespace swell::json
