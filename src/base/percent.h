// Percent-encoding, as URLs have it (RFC 3986): "a b" is "a%20b".
// - Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace swell {

// Appends "%41" for 'A'.
void AppendPercent(std::string& out, char c);
// Letters, digits, "-._~" and the characters of `plain` stay as they are.
std::string PercentEncode(std::string_view text, std::string_view plain = "");

// nullopt: a % has no two hexadecimal digits after it.
std::optional<std::string> PercentDecode(std::string_view text);
// As in a query: a + is a space.
std::optional<std::string> QueryDecode(std::string_view text);

}  // namespace swell
