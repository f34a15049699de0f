#include "cli/arena/command_text.h"

#include <string_view>

#include "base/strings.h"

namespace swell::cli::arena {
namespace {

std::string_view WithoutQuotes(std::string_view text) {
  if (text.size() < 2 || text.front() != text.back()) return text;
  const char quote = text.front();
  if (quote != '\'' && quote != '"') return text;
  const std::string_view inner = text.substr(1, text.size() - 2);
  return inner.find(quote) == std::string_view::npos ? inner : text;
}

// Whether a line begins with a flag of the command before it: as a script it would fail there.
bool CarriesOn(const std::vector<std::string_view>& lines) {
  for (size_t i = 1; i < lines.size(); ++i) {
    if (Trim(lines[i]).starts_with('-') && !lines[i - 1].ends_with('\\')) return true;
  }
  return false;
}

}  // namespace

std::string CommandText(const std::vector<std::string>& words) {
  const std::string joined = Join(words, " ");
  const std::string_view text = WithoutQuotes(Trim(joined));
  const std::vector<std::string_view> lines = Split(text, '\n');
  // The lines of a here-document are not the shell's.
  if (!CarriesOn(lines) || text.find("<<") != std::string_view::npos) return std::string(text);
  std::vector<std::string> parts;
  for (std::string_view line : lines) {
    line = Trim(line);
    if (line.ends_with('\\')) line = Trim(line.substr(0, line.size() - 1));
    if (!line.empty()) parts.emplace_back(line);
  }
  return Join(parts, " ");
}

}  // namespace swell::cli::arena
