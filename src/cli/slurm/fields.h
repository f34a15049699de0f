// Fields: the columns of Slurm's tables, chosen by letters ("%.18i %j") or by names
// ("JobID,State%20", "JobID:10,State").
// - Threads: pure functions.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/flags.h"

namespace swell::cli::slurm {

struct FormatPart {
  std::string text;  // before the column
  char letter = 0;   // 0: text alone
  size_t width = 0;  // 0: as wide as the value
  bool right = false;
  bool known = true;  // else its value is N/A
};
// "%all" is every column. Misuse naming `flag` where no letter stands behind a %. `unknown`: the
// columns that are not among `letters`.
Result<std::vector<FormatPart>> ParseFormat(std::string_view flag,
                                            std::string_view format,
                                            std::string_view letters,
                                            std::string* unknown);
// A column that --Format names.
struct LongName {
  std::string_view name;
  char letter;
};
// "JobID:10,Name:.30", of `names` in any case, as the letters that they stand for. "all": every one
// of them. A column that
// says no width has 20, as Slurm's; what follows the width is printed after the column.
Result<std::vector<FormatPart>> ParseLongFormat(std::string_view list,
                                                std::span<const LongName> names,
                                                std::string* unknown);
// What is said of them.
std::string UnknownColumns(std::string_view unknown);
std::string FormatRow(const std::vector<FormatPart>& format,
                      const std::function<std::string(char)>& value);
// A table whose columns are chosen by names.
struct NamedColumn {
  std::string_view name;
  size_t width;
  bool right;
};
struct ChosenColumn {
  std::optional<size_t> known;  // its place among the known ones; empty: its values are N/A
  std::string title;
  size_t width = 10;
  bool right = true;
};
// The names and widths of a table's columns, which have more to them.
template <class Columns>
std::vector<NamedColumn> Names(const Columns& columns) {
  std::vector<NamedColumn> names;
  for (const auto& one : columns) names.push_back({one.name, one.width, one.right});
  return names;
}
// "JobID,State%20", of `known`, upper or lower case; "all": every one. `unknown`: the names that
// are not among them. Misuse where a width is not from 1 to 1000.
Result<std::vector<ChosenColumn>> ParseColumns(std::string_view list,
                                               const std::vector<NamedColumn>& known,
                                               std::string* unknown);
struct TableForm {
  bool aligned = true;  // else the delimiter is between columns
  bool closed = false;  // and at the end
  std::string delimiter;
};
// Slurm's flags of tables whose columns are chosen by names.
class TableFlags {
 public:
  void Declare(Flags& flags);
  TableForm form() const;
  bool with_header() const { return !no_header_; }
  // The names of the columns are asked for, and nothing else.
  bool help() const { return help_; }

 private:
  std::string delimiter_ = "|";
  bool parsable_ = false, parsable2_ = false, no_header_ = false, help_ = false;
};
std::string FormatRow(const std::vector<ChosenColumn>& columns,
                      const TableForm& form,
                      const std::function<std::string(const ChosenColumn&)>& value);
// The titles, and a line below them where the columns are aligned.
std::string FormatTitles(const std::vector<ChosenColumn>& columns, const TableForm& form);
// The text, cut or filled to `width` columns. `right`: filled on its left.
std::string Fit(const std::string& text, size_t width, bool right);

}  // namespace swell::cli::slurm
