// YAML scalars the way Kubernetes' own YAML reader resolves them (YAML 1.1 words included).
// - Threads: pure functions. Private to json/.
#pragma once

#include <string_view>

#include "json/value.h"

namespace swell::json {

// What a plain scalar means: null, a boolean, a number or a string. Infinities and NaN, which JSON
// cannot say, are kBadRequest.
Result<Value> ResolveYamlScalar(std::string_view text);

// Whether the text, written plain, would be read as that very string by any YAML reader around.
bool ReadsAsYamlString(std::string_view text);

}  // namespace swell::json
