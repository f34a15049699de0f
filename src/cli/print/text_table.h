// TextTable: rows of text in aligned columns, as kubectl and Arena print them. Cells may contain
// untrusted text: control characters other than our own colours are made visible.
// - Threads: a value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace swell::cli {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header = {}, size_t padding = 3) : padding_(padding) {
    if (!header.empty()) Add(std::move(header));
  }
  void Add(std::vector<std::string> row);
  size_t size() const { return rows_.size(); }
  // Leaves out columns that say nothing: below the header all cells are "-".
  void DropEmptyColumns();
  // Lines, each ended by a newline; nothing follows the last cell of a row.
  std::string ToString(std::string_view indent = {}) const;
  // The same, then forgets the rows. Later rows keep at least these widths.
  std::string TakeText();

 private:
  size_t padding_;
  std::vector<size_t> widths_;  // of the columns
  std::vector<std::vector<std::string>> rows_;
};

// Columns on a terminal: escape sequences take none, a UTF-8 character takes one.
size_t DisplayWidth(std::string_view text);
// Control characters made visible, so that hostile names and messages stay on their line.
std::string OneLine(std::string_view text);
// The same, but what Session::Paint coloured keeps its colour.
std::string PaintedLine(std::string_view text);
// "-" for an empty text.
std::string OrDash(const std::string& text);

}  // namespace swell::cli
