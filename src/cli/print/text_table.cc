#include "cli/print/text_table.h"

#include <algorithm>

#include "base/strings.h"

namespace swell::cli {

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

std::string TextTable::ToString(std::string_view indent) const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    if (row.size() > widths.size()) widths.resize(row.size());
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  std::string out;
  for (const auto& row : rows_) {
    out += indent;
    for (size_t i = 0; i < row.size(); ++i) {
      out += row[i];
      if (i + 1 < row.size()) out.append(widths[i] - DisplayWidth(row[i]) + padding_, ' ');
    }
    // Empty cells at the end leave nothing behind.
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

}  // namespace swell::cli
