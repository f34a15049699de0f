#include "cli/slurm/fields.h"

#include <algorithm>
#include <cctype>

#include "base/strings.h"
#include "cli/print/text_table.h"
#include "cli/slurm/values.h"

namespace swell::cli::slurm {
namespace {

constexpr size_t kWidthMax = 1000;
constexpr size_t kLongFormatWidth = 20;

// Takes the digits at its beginning.
size_t TakeWidth(std::string_view& text) {
  size_t width = 0;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    width = std::min(kWidthMax, width * 10 + static_cast<size_t>(text[0] - '0'));
    text.remove_prefix(1);
  }
  return width;
}

// The columns that are named, separated by commas; "all": every one that is known.
template <class Columns>
std::vector<std::string> WordsOf(std::string_view list, const Columns& known) {
  if (ToLower(list) != "all") return CommaList(list);
  std::vector<std::string> words;
  for (const auto& one : known) words.emplace_back(one.name);
  return words;
}

}  // namespace

Result<std::vector<FormatPart>> ParseFormat(std::string_view flag,
                                            std::string_view format,
                                            std::string_view letters,
                                            std::string* unknown) {
  if (format == "%all") {
    std::string all;
    for (const char letter : letters) all += StrCat(all.empty() ? "%" : "|%", letter);
    return ParseFormat(flag, all, letters, unknown);
  }
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
    std::string_view rest = format.substr(i + 1);
    part.width = TakeWidth(rest);
    i = format.size() - rest.size() - 1;
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

Result<std::vector<FormatPart>> ParseLongFormat(std::string_view list,
                                                std::span<const LongName> names,
                                                std::string* unknown) {
  std::vector<FormatPart> parts(1);
  for (const std::string& word : WordsOf(list, names)) {
    FormatPart& part = parts.back();
    const size_t colon = word.find(':');
    const std::string name = ToLower(word.substr(0, colon));
    const auto found = std::find_if(names.begin(), names.end(), [&name](const LongName& one) {
      return ToLower(one.name) == name;
    });
    part.known = found != names.end();
    part.letter = part.known ? found->letter : '?';
    if (!part.known) *unknown += StrCat(unknown->empty() ? "" : " ", word.substr(0, colon));
    part.width = kLongFormatWidth;
    std::string_view rest;
    if (colon != std::string::npos) {
      rest = std::string_view(word).substr(colon + 1);
      part.right = rest.starts_with('.');
      if (part.right) rest.remove_prefix(1);
      part.width = TakeWidth(rest);
    }
    parts.push_back({.text = std::string(rest)});
  }
  if (parts.size() == 1) {
    return Misuse(
        StrCat("--Format ", Quote(list), ": expected names of columns, like JobID:10,Name:.30"));
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

Result<std::vector<ChosenColumn>> ParseColumns(std::string_view list,
                                               const std::vector<NamedColumn>& known,
                                               std::string* unknown) {
  std::vector<ChosenColumn> columns;
  for (const std::string& word : WordsOf(list, known)) {
    const size_t percent = word.find('%');
    const std::string name = word.substr(0, percent);
    const auto found = std::find_if(known.begin(), known.end(), [&name](const NamedColumn& one) {
      return ToLower(one.name) == ToLower(name);
    });
    ChosenColumn column{.title = name};
    if (found != known.end()) {
      column = {static_cast<size_t>(found - known.begin()), std::string(found->name), found->width,
                found->right};
    } else {
      *unknown += StrCat(unknown->empty() ? "" : " ", name);
    }
    if (percent != std::string::npos) {
      constexpr auto kMost = static_cast<int64_t>(kWidthMax);
      const auto width = ParseInt(word.substr(percent + 1));
      if (!width || *width == 0 || *width > kMost || *width < -kMost) {
        return Misuse(StrCat("--format ", Quote(word), ": expected a width from 1 to ", kMost));
      }
      column.width = static_cast<size_t>(*width < 0 ? -*width : *width);
      column.right = *width > 0;
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

void TableFlags::Declare(Flags& flags) {
  flags.Switch("-P,--parsable2", &parsable2_, "columns between |");
  flags.Switch("-p,--parsable", &parsable_, "the same, with a | at the end");
  flags.Text("--delimiter", &delimiter_, "TEXT", "in place of that |");
  flags.Switch("-n,--noheader", &no_header_, "omit the header");
  flags.Switch("-e,--helpformat", &help_, "list the columns");
}

TableForm TableFlags::form() const {
  return {.aligned = !parsable_ && !parsable2_,
          .closed = parsable_ && !parsable2_,
          .delimiter = delimiter_};
}

std::string FormatRow(const std::vector<ChosenColumn>& columns,
                      const TableForm& form,
                      const std::function<std::string(const ChosenColumn&)>& value) {
  std::string line;
  for (const ChosenColumn& one : columns) {
    std::string text = value(one);
    if (!form.aligned) {
      line += (&one == &columns.front() ? "" : form.delimiter) + OneLine(text);
      continue;
    }
    // One that is cut shows it, as Slurm's does.
    if (DisplayWidth(text) > one.width) {
      text.resize(std::min<size_t>(text.size(), one.width - 1));
      text += "+";
    }
    line += Fit(text, one.width, one.right) + " ";
  }
  if (form.closed) line += form.delimiter;
  return line + "\n";
}

std::string FormatTitles(const std::vector<ChosenColumn>& columns, const TableForm& form) {
  std::string lines = FormatRow(columns, form, [](const ChosenColumn& one) { return one.title; });
  if (form.aligned) {
    lines += FormatRow(columns, form,
                       [](const ChosenColumn& one) { return std::string(one.width, '-'); });
  }
  return lines;
}

}  // namespace swell::cli::slurm
