#include "cli/top/frame.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/strings.h"

namespace swell::cli {
namespace {

// Bytes of the UTF-8 character that begins at the front; 1 for bytes that are not UTF-8.
size_t GlyphBytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  size_t bytes = 1;
  if (lead >= 0xf0) {
    bytes = 4;
  } else if (lead >= 0xe0) {
    bytes = 3;
  } else if (lead >= 0xc0) {
    bytes = 2;
  }
  return IsValidUtf8(text.substr(0, bytes)) ? std::min(bytes, text.size()) : 1;
}

bool IsPrintable(std::string_view glyph) {
  const auto lead = static_cast<unsigned char>(glyph[0]);
  if (glyph.size() == 1) return lead >= 0x20 && lead < 0x7f;
  // U+0080 to U+009F are control characters, too.
  return lead != 0xc2 || static_cast<unsigned char>(glyph[1]) >= 0xa0;
}

std::string_view Escape(Ink ink, bool colours) {
  switch (ink) {
    case Ink::kPlain:
      return "\x1b[0m";
    case Ink::kBold:
      return "\x1b[0;1m";
    case Ink::kSelected:
      return "\x1b[0;7m";
    case Ink::kDim:
      return colours ? "\x1b[0;90m" : "\x1b[0m";
    case Ink::kGood:
      return colours ? "\x1b[0;32m" : "\x1b[0m";
    case Ink::kWarn:
      return colours ? "\x1b[0;33m" : "\x1b[0m";
    case Ink::kBad:
      return colours ? "\x1b[0;31m" : "\x1b[0;1m";
    case Ink::kAccent:
      return colours ? "\x1b[0;36m" : "\x1b[0;1m";
    case Ink::kBar:
      return colours ? "\x1b[0;34m" : "\x1b[0m";
  }
  return "\x1b[0m";
}

std::string Utf8(char32_t code) {
  std::string out;
  out += static_cast<char>(0xe0 | (code >> 12));
  out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
  out += static_cast<char>(0x80 | (code & 0x3f));
  return out;
}

}  // namespace

Frame::Frame(int columns, int rows)
    : columns_(std::max(columns, 1)),
      rows_(std::max(rows, 1)),
      cells_(static_cast<size_t>(columns_) * static_cast<size_t>(rows_)) {}

const Frame::Cell& Frame::At(int row, int column) const {
  return cells_[static_cast<size_t>(row) * static_cast<size_t>(columns_) +
                static_cast<size_t>(column)];
}

Frame::Cell& Frame::At(int row, int column) {
  return const_cast<Cell&>(std::as_const(*this).At(row, column));
}

int Frame::Put(int row, int column, std::string_view text, Ink ink, int most) {
  if (row < 0 || row >= rows_) return column;
  for (; !text.empty() && most > 0; --most) {
    const size_t bytes = GlyphBytes(text);
    const std::string_view glyph = text.substr(0, bytes);
    text.remove_prefix(bytes);
    if (column >= 0 && column < columns_) {
      At(row, column) = {IsPrintable(glyph) ? std::string(glyph) : "?", ink};
    }
    ++column;
  }
  return column;
}

void Frame::Paint(int row, int from, int to, Ink ink) {
  if (row < 0 || row >= rows_) return;
  for (int column = std::max(from, 0); column < std::min(to, columns_); ++column) {
    At(row, column).ink = ink;
  }
}

std::string Frame::Line(int row, bool colours) const {
  int end = columns_;
  while (end > 0 && At(row, end - 1) == Cell{}) --end;
  std::string out;
  Ink ink = Ink::kPlain;
  for (int column = 0; column < end; ++column) {
    const Cell& cell = At(row, column);
    if (cell.ink != ink && (colours || cell.ink == Ink::kSelected || ink == Ink::kSelected ||
                            cell.ink == Ink::kBold || ink == Ink::kBold)) {
      out += Escape(cell.ink, colours);
    }
    ink = cell.ink;
    out += cell.glyph;
  }
  if (out.find('\x1b') != std::string::npos) out += "\x1b[0m";
  return out;
}

std::string Frame::Text() const {
  std::string out;
  for (int row = 0; row < rows_; ++row) {
    std::string line;
    for (int column = 0; column < columns_; ++column) line += At(row, column).glyph;
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string Frame::Bytes(const Frame* before, bool colours) const {
  const bool whole = before == nullptr || before->columns_ != columns_ || before->rows_ != rows_;
  std::string out = whole ? "\x1b[0m\x1b[2J" : "";
  for (int row = 0; row < rows_; ++row) {
    const std::string line = Line(row, colours);
    if (!whole && line == before->Line(row, colours)) continue;
    out += StrCat("\x1b[", row + 1, ";1H", line, "\x1b[K");
  }
  return out;
}

std::string BarText(double part, double whole, int width) {
  static constexpr std::array<std::string_view, 8> kEighths = {"·", "▏", "▎", "▍",
                                                               "▌", "▋", "▊", "▉"};
  const double share = whole > 0 ? std::clamp(part / whole, 0.0, 1.0) : 0.0;
  const auto eighths = static_cast<int>(std::lround(share * width * 8));
  std::string out;
  for (int cell = 0; cell < width; ++cell) {
    const int left = eighths - cell * 8;
    out += left >= 8 ? std::string_view("█") : kEighths[static_cast<size_t>(std::max(left, 0))];
  }
  return out;
}

std::string CurveText(const std::vector<double>& values, double most, int width) {
  // The dots of a Braille cell from the bottom up, left column and right column.
  static constexpr std::array<std::array<char32_t, 4>, 2> kDots = {
      {{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}}};
  const size_t wanted = static_cast<size_t>(width) * 2;
  const size_t skip = values.size() > wanted ? values.size() - wanted : 0;
  const size_t blank = wanted - (values.size() - skip);
  std::string out;
  for (size_t cell = 0; cell < static_cast<size_t>(width); ++cell) {
    char32_t dots = 0;
    for (size_t side = 0; side < 2; ++side) {
      const size_t at = cell * 2 + side;
      if (at < blank) continue;
      const double value = values[skip + at - blank];
      const double share = most > 0 ? std::clamp(value / most, 0.0, 1.0) : 0.0;
      const auto height = static_cast<size_t>(std::lround(share * 4));
      for (size_t dot = 0; dot < height; ++dot) dots |= kDots[side][dot];
    }
    out += dots == 0 ? std::string(" ") : Utf8(0x2800 + dots);
  }
  return out;
}

}  // namespace swell::cli
