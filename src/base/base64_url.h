// Base64 as tokens and their keys have it: for URLs, without padding (RFC 4648, section 5).
// - Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace swell {

std::string Base64UrlEncode(std::string_view bytes);
std::optional<std::string> Base64UrlDecode(std::string_view text);

}  // namespace swell
