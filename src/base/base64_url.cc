#include "base/base64_url.h"

#include "base/strings.h"

namespace swell {

std::string Base64UrlEncode(std::string_view bytes) {
  std::string text = Base64Encode(bytes);
  for (char& c : text) {
    if (c == '+') c = '-';
    if (c == '/') c = '_';
  }
  while (text.ends_with('=')) text.pop_back();
  return text;
}

std::optional<std::string> Base64UrlDecode(std::string_view text) {
  std::string padded(text);
  for (char& c : padded) {
    if (c == '-') c = '+';
    if (c == '_') c = '/';
  }
  while (padded.size() % 4 != 0) padded += '=';
  return Base64Decode(padded);
}

}  // namespace swell
