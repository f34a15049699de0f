// YAML as Kubernetes uses it: YAML 1.2 core scalars with JSON's data model, several documents.
// - Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace swell::json {

// Every document of the text that is not empty. Aliases are expanded within `limits` (a bomb of
// aliases is an error); errors are kBadRequest with line and column, or kTooLarge.
Result<std::vector<Value>> ParseYaml(std::string_view text, const ParseLimits& limits = {});

// As kubectl prints: two spaces, keys sorted, strings quoted only where they must be.
std::string PrintYaml(const Value& value);

}  // namespace swell::json
