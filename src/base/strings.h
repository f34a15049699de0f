// Small string helpers that the standard library lacks.
// - Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace swell {

// "a,b,,c" → {"a","b","","c"}; "" → {}.
std::vector<std::string_view> Split(std::string_view text, char separator);
std::string Join(const std::vector<std::string>& parts, std::string_view separator);
bool Contains(const std::vector<std::string>& texts, std::string_view text);
std::string_view Trim(std::string_view text);
std::string ToLower(std::string_view text);
std::string ToUpper(std::string_view text);
int HexDigit(char c);  // its value, or -1
// Strict: the whole text must be one decimal number that fits.
std::optional<int64_t> ParseInt(std::string_view text);
std::optional<uint64_t> ParseUint(std::string_view text);
bool IsValidUtf8(std::string_view text);
// Go's %q: quotes, with escapes, so that hostile names stay on one line of an error message.
std::string Quote(std::string_view text);
std::string Base64Encode(std::string_view bytes);
std::optional<std::string> Base64Decode(std::string_view text);

template <class... Parts>
std::string StrCat(const Parts&... parts) {
  std::string out;
  auto append = [&out](const auto& part) {
    using T = std::decay_t<decltype(part)>;
    if constexpr (std::is_same_v<T, char>) {
      out += part;
    } else if constexpr (std::is_arithmetic_v<T>) {
      out += std::to_string(part);
    } else {
      out += std::string_view(part);
    }
  };
  (append(parts), ...);
  return out;
}

// A hash for unordered containers of std::string looked up by string_view.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

}  // namespace swell
