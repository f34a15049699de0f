#include "cli/print/text_table.h"

#include <algorithm>
#include <utility>

#include "base/control_characters.h"
#include "base/strings.h"

namespace swell::cli {
namespace {

constexpr std::string_view kPlain = "\033[0m";

// What Session::Paint makes, at the beginning of the text: a colour, words without any, the end of
// the colour. Empty: it begins with something else.
std::string_view PaintedAt(std::string_view text) {
  for (const std::string_view code :
       {"\033[31m", "\033[32m", "\033[33m", "\033[34m", "\033[36m", "\033[90m", "\033[1m"}) {
    if (!text.starts_with(code)) continue;
    const size_t end = text.find('\033', code.size());
    if (end == text.npos || !text.substr(end).starts_with(kPlain)) return {};
    return text.substr(0, end + kPlain.size());
  }
  return {};
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
    } else if (const size_t bytes = ControlBytes(text, i); bytes > 0) {
      // The second of two bytes is the character's number.
      for (size_t k = bytes == 2 ? 1 : 0; k < bytes; ++k) out += in_hex(text[i + k]);
      i += bytes - 1;
    } else {
      out += c;
    }
  }
  return out;
}

std::string PaintedLine(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (const std::string_view painted = PaintedAt(text); !painted.empty()) {
      const size_t words = painted.find('m') + 1;
      out += painted.substr(0, words);
      out += OneLine(painted.substr(words, painted.size() - words - kPlain.size()));
      out += kPlain;
      text.remove_prefix(painted.size());
      continue;
    }
    const size_t end = std::min(text.find('\033', 1), text.size());
    out += OneLine(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

void TextTable::Add(std::vector<std::string> row) {
  if (row.size() > widths_.size()) widths_.resize(row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    row[i] = PaintedLine(row[i]);
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
