// Frame: one picture of a terminal, a grid of characters with inks, and the bytes that show it.
// - Threads: values; pure functions.
// - Invariants: every row has exactly the frame's columns; no cell has a control
//   character.
#pragma once

#include <climits>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace swell::cli {

enum class Ink : uint8_t { kPlain, kBold, kDim, kGood, kWarn, kBad, kAccent, kBar, kSelected };

class Frame {
 public:
  Frame(int columns, int rows);

  int columns() const { return columns_; }
  int rows() const { return rows_; }

  // Writes text from a column on and returns the column after it. What leaves the frame is cut off,
  // and what comes after `most` characters. A character of UTF-8 takes one cell.
  int Put(int row, int column, std::string_view text, Ink ink = Ink::kPlain, int most = INT_MAX);
  // Gives cells of a row another ink.
  void Paint(int row, int from, int to, Ink ink);

  // The rows as text, without blanks at their ends.
  std::string Text() const;
  // The bytes that turn the terminal that shows `before` into this frame. Null: an unknown screen,
  // which is cleared first. Without colours only bold and reverse are used.
  std::string Bytes(const Frame* before, bool colours) const;
  // One row with its colours, as a line of output.
  std::string Line(int row, bool colours) const;

 private:
  struct Cell {
    std::string glyph = " ";
    Ink ink = Ink::kPlain;
    bool operator==(const Cell&) const = default;
  };
  const Cell& At(int row, int column) const;
  Cell& At(int row, int column);

  int columns_, rows_;
  std::vector<Cell> cells_;
};

// A bar of `width` cells of which `part` of `whole` is full, in eighths of a cell.
std::string BarText(double part, double whole, int width);
// A curve of the newest values, two a cell, in Braille dots; `most` is the full height.
std::string CurveText(const std::vector<double>& values, double most, int width);

}  // namespace swell::cli
