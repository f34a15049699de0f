// A schema's `format`: which texts of custom objects Kubernetes accepts. Other formats
// (int-or-string, semver, ...) are annotations and restrict nothing.
// - Threads: pure functions.
#pragma once

#include <string_view>

namespace swell::api {

bool HasFormat(std::string_view text, std::string_view format);

}  // namespace swell::api
