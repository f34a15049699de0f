// Reading documents in which an object names a member twice: the last one counts, as for Go, and
// each is noted.
// - Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace swell::json {

// As Parse. `duplicates` receives the paths of repeated members ("spec.containers[0].image"), at
// most 100.
Result<Value> ParseNoting(std::string_view text,
                          const ParseLimits& limits,
                          std::vector<std::string>& duplicates);
// As ParseYaml: `line 3: key "a" already set in map`.
Result<std::vector<Value>> ParseYamlNoting(std::string_view text,
                                           const ParseLimits& limits,
                                           std::vector<std::string>& duplicates);

}  // namespace swell::json
