// A schema's `format`: what Kubernetes holds the texts of custom objects to. Other formats (int-or-
// string, semver, ...) are annotations and hold nothing to anything.
// - Threads: pure functions.
#pragma once

#include <string_view>

namespace swell::api {

bool HasFormat(std::string_view text, std::string_view format);

}  // namespace swell::api
