#include "cli/slurm/fields.h"

#include <algorithm>
#include <cctype>

#include "base/strings.h"
#include "cli/flags.h"
#include "cli/print/text_table.h"

namespace swell::cli::slurm {
namespace {

constexpr size_t kWidthMax = 1000;

}  // namespace

Result<std::vector<FormatPart>> ParseFormat(std::string_view flag,
                                            std::string_view format,
                                            std::string_view letters,
                                            std::string* unknown) {
  std::vector<FormatPart> parts(1);
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      parts.back().text += format[i];
      continue;
    }
    if (i + 1 < format.size() && format[i + 1] == '%') {
      parts.back().text += format[i++];
      continue;
    }
    FormatPart& part = parts.back();
    if (i + 1 < format.size() && format[i + 1] == '.') {
      part.right = true;
      ++i;
    }
    while (i + 1 < format.size() && format[i + 1] >= '0' && format[i + 1] <= '9') {
      part.width = std::min(kWidthMax, part.width * 10 + static_cast<size_t>(format[++i] - '0'));
    }
    part.letter = i + 1 < format.size() ? format[++i] : '%';
    if (letters.find(part.letter) == std::string_view::npos) {
      if (std::isalpha(static_cast<unsigned char>(part.letter)) == 0) {
        return Misuse(StrCat(flag, " ", Quote(format), ": expected a letter after %"));
      }
      *unknown += StrCat(unknown->empty() ? "%" : " %", part.letter);
      part.known = false;
    }
    parts.emplace_back();
  }
  return parts;
}

std::string UnknownColumns(std::string_view unknown) {
  return StrCat("warning: nothing is known here for ", unknown, "; N/A stands in its place");
}

std::string Fit(const std::string& text, size_t width, bool right) {
  const std::string line = OneLine(text);
  if (width == 0) return line;
  const size_t columns = DisplayWidth(line);
  if (columns > width) return line.size() == columns ? line.substr(0, width) : line;
  const std::string space(width - columns, ' ');
  return right ? space + line : line + space;
}

std::string FormatRow(const std::vector<FormatPart>& format,
                      const std::function<std::string(char)>& value) {
  std::string line;
  for (const FormatPart& part : format) {
    line += part.text;
    if (part.letter == 0) continue;
    line += Fit(part.known ? value(part.letter) : "N/A", part.width, part.right);
  }
  return line + "\n";
}

}  // namespace swell::cli::slurm
