#include "cli/print/text_table.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace swell::cli {
namespace {

// The colour, or the end of one, with which the text begins; empty: none.
std::string_view ColourAt(std::string_view text) {
  for (const std::string_view code : {"\033[0m", "\033[1m"}) {
    if (text.starts_with(code)) return code;
  }
  const bool colour = text.size() >= 5 && text.starts_with("\033[") && text[4] == 'm' &&
                      (text[2] == '3' || text[2] == '9') && text[3] >= '0' && text[3] <= '7';
  return colour ? text.substr(0, 5) : std::string_view();
}

std::string Cell(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view colour = ColourAt(text);
    out += colour;
    text.remove_prefix(colour.size());
    const size_t end = std::min(text.find('\033', colour.empty() ? 1 : 0), text.size());
    out += OneLine(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

}  // namespace

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      while (i < text.size() && text[i] != 'm') ++i;
    } else if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) {
      ++width;
    }
  }
  return width;
}

std::string OneLine(std::string_view text) {
  const auto in_hex = [](char c) {
    constexpr std::string_view kHex = "0123456789abcdef";
    return StrCat("\\x", kHex[(c >> 4) & 15], kHex[c & 15]);
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += in_hex(c);
    } else if (c == '\xc2' && i + 1 < text.size() && (text[i + 1] & 0xe0) == 0x80) {
      // U+0080 to U+009F: to many terminals U+009B is what ESC [ is.
      out += in_hex(text[++i]);
    } else {
      out += c;
    }
  }
  return out;
}

void TextTable::Add(std::vector<std::string> row) {
  if (row.size() > widths_.size()) widths_.resize(row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    row[i] = Cell(row[i]);
    widths_[i] = std::max(widths_[i], DisplayWidth(row[i]));
  }
  rows_.push_back(std::move(row));
}

void TextTable::DropEmptyColumns() {
  if (rows_.size() < 2) return;
  for (size_t column = widths_.size(); column-- > 0;) {
    const bool says_something = std::any_of(rows_.begin() + 1, rows_.end(), [&](const auto& row) {
      return column < row.size() && row[column] != "-";
    });
    if (says_something) continue;
    const auto at = static_cast<std::ptrdiff_t>(column);
    widths_.erase(widths_.begin() + at);
    for (auto& row : rows_) {
      if (column < row.size()) row.erase(row.begin() + at);
    }
  }
}

std::string TextTable::ToString(std::string_view indent) const {
  std::string out;
  for (const auto& row : rows_) {
    out += indent;
    for (size_t i = 0; i < row.size(); ++i) {
      out += row[i];
      if (i + 1 < row.size()) out.append(widths_[i] - DisplayWidth(row[i]) + padding_, ' ');
    }
    // Empty cells at the end leave nothing behind.
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

std::string TextTable::TakeText() {
  std::string text = ToString();
  rows_.clear();
  return text;
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

}  // namespace swell::cli
