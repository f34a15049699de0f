// Fields: the columns of Slurm's tables, chosen by letters ("%.18i %j") or by names
// ("JobID,State%20").
// - Threads: pure functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace swell::cli::slurm {

struct FormatPart {
  std::string text;  // before the column
  char letter = 0;   // 0: text alone
  size_t width = 0;  // 0: as wide as the value
  bool right = false;
  bool known = true;  // else its value is N/A
};
// Misuse naming `flag` where no letter stands behind a %. `unknown`: the columns that are not among
// `letters`.
Result<std::vector<FormatPart>> ParseFormat(std::string_view flag,
                                            std::string_view format,
                                            std::string_view letters,
                                            std::string* unknown);
// What is said of them.
std::string UnknownColumns(std::string_view unknown);
std::string FormatRow(const std::vector<FormatPart>& format,
                      const std::function<std::string(char)>& value);
// The text in so many columns, cut or filled; on the left where it is to stand right.
std::string Fit(const std::string& text, size_t width, bool right);

}  // namespace swell::cli::slurm
