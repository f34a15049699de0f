// SplitWords, ShellWords: the parts of a text that spaces and tabs separate.
// - Threads: pure functions.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace swell {

// " a\t b " → {"a","b"}. They refer to the text.
inline std::vector<std::string_view> SplitWords(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  std::vector<std::string_view> words;
  size_t at = 0;
  while ((at = text.find_first_not_of(kBlanks, at)) != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

// As a shell takes a command apart: by quotation marks, backslashes, ends of lines and the # of a
// comment. Variables are left as they are. Empty where a quotation mark is not closed.
std::optional<std::vector<std::string>> ShellWords(std::string_view text);

}  // namespace swell
