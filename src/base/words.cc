#include "base/words.h"

#include <utility>

namespace swell {
namespace {

// What a backslash takes its meaning from between double quotes; before others it is itself.
constexpr std::string_view kEscaped = "\"\\$`";

}  // namespace

std::optional<std::vector<std::string>> ShellWords(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool escapes = c == '\\' && i + 1 < text.size();
    if (escapes && text[i + 1] == '\n' && quote != '\'') {
      ++i;
      continue;
    }
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else if (escapes && quote == '"' && kEscaped.find(text[i + 1]) != std::string_view::npos) {
        word += text[++i];
      } else {
        word += c;
      }
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\n') {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
      continue;
    }
    if (c == '#' && !in_word) {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    in_word = true;
    if (c == '\'' || c == '"') {
      quote = c;
    } else if (escapes) {
      word += text[++i];
    } else {
      word += c;
    }
  }
  if (quote != 0) return std::nullopt;
  if (in_word) words.push_back(std::move(word));
  return words;
}

}  // namespace swell
